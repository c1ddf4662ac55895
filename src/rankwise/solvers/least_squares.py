"""Minimize ``loss(f) + λ‖f‖²`` for a list of λ: by Cholesky, by one reduction, by iterations.

Both forms of RankRLS are symmetric systems ``(A + λI) x = t``: primal with ``A = Rᵀ L R``
([RankRLS09] equation 28), kernel with ``A = Fᵀ K F`` where ``F Fᵀ = L`` (equation 17 made
symmetric).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import lapack

from rankwise.arrays import Array, Matrix
from rankwise.losses import SquaredLoss
from rankwise.runtime.threads import allow_threads

Watch = Callable[[int, float], None]  # called with number of iterations and largest residual
LAPACK_BLOCK = 64  # largest number of columns in a block of LAPACK
SHARED_STEPS = 200  # limit of the steps that all λ share; then each continues separately
MIN_RESIDUAL = 1e-14  # relative to the right-hand side; rounding permits no smaller residual


class IterativeSolution(NamedTuple):
    """Result of `conjugate_gradients`.

    Attributes
    ----------
    x : ndarray of shape (n, k)
        Solutions.
    n_iter : int
        Iterations until the last column reached the tolerance.
    converged : bool
        Whether all columns reached it.
    """

    x: Array
    n_iter: int
    converged: bool


def conjugate_gradients(
    product: Callable[[Array], Array],
    t: Array,
    diagonal: Array,
    *,
    tol: float,
    max_iter: int | None = None,
    start: Array | None = None,
    watch: Watch | None = None,
) -> IterativeSolution:
    """Solve ``A x = t`` for every column of t, with one product per iteration for all of them.

    Textbook preconditioned conjugate gradients (Shewchuk 1994, section 12) with the diagonal of A
    as preconditioner. Each column has its own step lengths; a column that has reached the tolerance
    leaves the product.

    Parameters
    ----------
    product : callable
        Product of A with a V of shape (n, k); A is symmetric and positive definite.
    t : ndarray of shape (n, k)
        Right-hand sides.
    diagonal : ndarray of shape (n,)
        Diagonal of A, or positive numbers near it.
    tol : float
        Largest norm of the residual of a column, relative to that of its t.
    max_iter : int, optional
        Limit of iterations; ten times n by default.
    start : ndarray of shape (n, k), optional
        First guess; zero by default.
    watch : callable, optional
        Called after each iteration.

    Returns
    -------
    IterativeSolution
        Solutions, number of iterations, and whether all columns converged.
    """
    if max_iter is None:
        max_iter = 10 * len(t)
    scale = binary_scale(t)
    t = t / scale  # squares of residuals neither overflow nor vanish
    if start is None:
        x = np.zeros_like(t)
        residual = t.copy()
    else:
        x = start / scale
        residual = t - product(x)
    norm_of_t = np.linalg.norm(t, axis=0)
    threshold = tol * norm_of_t
    columns = np.flatnonzero(np.linalg.norm(residual, axis=0) > threshold)  # not yet converged
    r = residual[:, columns]
    z = r / diagonal[:, None]
    p = z
    rz = np.sum(r * z, axis=0)
    n_iter = 0
    while len(columns) and n_iter < max_iter:
        q = product(p)
        step = rz / np.sum(p * q, axis=0)
        x[:, columns] += step * p
        r -= step * q
        n_iter += 1
        norm = np.linalg.norm(r, axis=0)
        if watch is not None:
            watch(n_iter, float(np.max(norm / norm_of_t[columns])))
        is_open = norm > threshold[columns]
        columns = columns[is_open]
        r = r[:, is_open]
        p = p[:, is_open]
        previous_rz = rz[is_open]
        z = r / diagonal[:, None]
        rz = np.sum(r * z, axis=0)
        p = z + (rz / previous_rz) * p
    return IterativeSolution(x * scale, n_iter, not len(columns))


def binary_scale(t: Array) -> Array:
    """A power of two near the largest entry of each column: dividing by it rounds nothing."""
    largest = np.abs(t).max(axis=0, initial=0.0)
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(1.0, exponent - 1))


def solve_shifted(
    A: Array, t: Array, shifts: Sequence[float] | Array, *, overwrite: bool = False
) -> tuple[Array, bool]:
    """Solve ``(A + λI) x = t`` for every λ: Cholesky for one, one reduction for many.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric.
    t : ndarray of shape (n,) or (n, n_outputs)
        Right-hand sides.
    shifts : sequence of float
        The λ.
    overwrite : bool, default=False
        Whether A may be overwritten.

    Returns
    -------
    x : ndarray of shape (n_shifts, n, n_outputs)
        Solutions; nan if A is not finite.
    is_definite : bool
        Whether every A + λI was positive definite.
    """
    t = t.reshape(len(t), -1)
    if not np.isfinite(np.diagonal(A)).all():
        return np.full((len(shifts), *t.shape), np.nan), True
    shifts = np.asarray(shifts, dtype=np.float64)
    if not shifts.all():
        return _solve_with_limit(A, t, shifts)
    with allow_threads(len(A) ** 3):
        if len(shifts) > 1 and len(A) > 2:
            if A.flags.f_contiguous:  # to the order of rows; A is symmetric
                A = A.T
            x, are_definite = solve_reduced(A[None], t[None], shifts, overwrite=overwrite)
            return x[0], bool(are_definite[0])
        overwrite = overwrite and len(shifts) == 1
        solutions = []
        all_definite = True
        for shift in shifts:
            solution, is_definite = solve_symmetric(A, t, float(shift), overwrite=overwrite)
            solutions.append(solution)
            all_definite = all_definite and is_definite
    return np.stack(solutions), all_definite


def solve_shifted_systems(A: Array, t: Array, shifts: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Solve ``(A + λI) x = t`` of several systems of one size for every λ.

    Parameters
    ----------
    A : ndarray of shape (n_systems, n, n)
        Symmetric.
    t : ndarray of shape (n_systems, n, n_outputs)
        Right-hand sides.
    shifts : ndarray of shape (n_shifts,)
        The λ.

    Returns
    -------
    x : ndarray of shape (n_systems, n_shifts, n, n_outputs)
        Solutions; nan for an A that is not finite.
    is_definite : ndarray of bool, shape (n_systems,)
        Whether every A + λI of the system was positive definite.
    """
    n = A.shape[1]
    is_finite = bool(np.isfinite(np.diagonal(A, axis1=1, axis2=2)).all())
    if len(shifts) > 1 and n > 2 and is_finite and shifts.all():
        with allow_threads(n**3):
            return solve_reduced(A, t, shifts)
    solved = [solve_shifted(A_k, t_k, shifts) for A_k, t_k in zip(A, t, strict=True)]
    return np.stack([x for x, _ in solved]), np.array([is_definite for _, is_definite in solved])


def _solve_with_limit(A: Array, t: Array, shifts: Array) -> tuple[Array, bool]:
    """The same for λ of which some are 0, which stands for the limit λ → 0."""
    x = np.empty((len(shifts), *t.shape))
    is_definite = True
    is_positive = shifts > 0
    if is_positive.any():
        x[is_positive], is_definite = solve_shifted(A, t, shifts[is_positive])
    x[~is_positive] = solve_minimum_norm(A, t)
    return x, is_definite


def solve_minimum_norm(A: Array, t: Array) -> Array:
    """The solution of smallest norm of a consistent system ``A x = t``, A symmetric.

    It is the limit of ``(A + λI)⁻¹ t`` for λ → 0. Eigenvalues below rounding count as zero.
    """
    with allow_threads(len(A) ** 3):
        values, Q = scipy.linalg.eigh(A, check_finite=False)
    magnitude = np.abs(values)
    is_nonzero = magnitude > len(A) * np.finfo(float).eps * magnitude.max(initial=0.0)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=is_nonzero)
    return np.asarray(Q @ (inverse[:, None] * (Q.T @ t)))


def solve_symmetric(
    A: Array, t: Array, shift: float, *, overwrite: bool = False
) -> tuple[Array, bool]:
    """Solve ``(A + shift I) x = t`` by Cholesky.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric.
    t : ndarray of shape (n, n_outputs)
        Right-hand sides.
    shift : float
        Added to the diagonal.
    overwrite : bool, default=False
        Whether A may be overwritten.

    Returns
    -------
    x : ndarray of shape (n, n_outputs)
        Solution.
    is_definite : bool
        False if A + shift I was not positive definite, which only an indefinite kernel can cause;
        x is then the stationary point, from a symmetric indefinite factorization.
    """
    if not overwrite:
        A = A.copy()
    on_diagonal = np.diag_indices(len(A))
    diagonal = A[on_diagonal]
    A[on_diagonal] += shift
    if not A.flags.f_contiguous:  # to the memory order of LAPACK; A is symmetric
        A = A.T
    factor, info = lapack.dpotrf(A, lower=0, clean=0, overwrite_a=1)
    if info == 0:
        x, _ = lapack.dpotrs(factor, t, lower=0)
        return np.asarray(x).reshape(t.shape), True
    symmetric = np.tril(factor, -1)  # dpotrf overwrites the upper triangle only
    symmetric += symmetric.T
    symmetric[on_diagonal] = diagonal + shift
    try:
        return np.asarray(scipy.linalg.solve(symmetric, t, assume_a="sym")), False
    except np.linalg.LinAlgError:  # equal items: A is rounding of numbers far above the shift
        least_squares, *_ = scipy.linalg.lstsq(symmetric, t)
        return np.asarray(least_squares), True


def solve_reduced(
    A: Array, t: Array, shifts: Array, *, overwrite: bool = False
) -> tuple[Array, NDArray[np.bool_]]:
    """Solve systems of at least three rows for many λ, by ``A = Q T Qᵀ`` with T tridiagonal.

    About 4/3 n³ operations, a quarter of a full eigendecomposition; afterwards each λ costs one
    tridiagonal solve and one rotation. Q is stored as the Householder vectors of LAPACK's sytrd.

    Parameters
    ----------
    A : ndarray of shape (n_systems, n, n)
        Symmetric.
    t : ndarray of shape (n_systems, n, n_outputs)
        Right-hand sides.
    shifts : ndarray of shape (n_shifts,)
        The λ.
    overwrite : bool, default=False
        Whether A may be overwritten.

    Returns
    -------
    x : ndarray of shape (n_systems, n_shifts, n, n_outputs)
        Solutions.
    is_definite : ndarray of bool, shape (n_systems,)
        Whether every A + λI of the system was positive definite.
    """
    n_systems, n, n_outputs = t.shape
    n_shifts = len(shifts)
    x = np.empty((n_systems, n_shifts, n, n_outputs))
    is_definite = np.ones(n_systems, dtype=bool)
    for k in range(n_systems):
        vectors, diagonal, off_diagonal, scales, _ = lapack.dsytrd(
            A[k].T, lower=1, lwork=LAPACK_BLOCK * n, overwrite_a=int(overwrite)
        )
        reflections = vectors[1:, :-1]  # Q leaves the first coordinate unchanged

        rotated_t = t[k].copy(order="F")  # Qᵀ t
        work_size = LAPACK_BLOCK * (n_outputs + LAPACK_BLOCK + 1)
        rotated_t[1:], _, _ = lapack.dormqr(
            "L", "T", reflections, scales, rotated_t[1:], lwork=work_size
        )

        # one tridiagonal system with the diagonal blocks T + λI
        block_diagonal = (diagonal + shifts[:, None]).ravel()
        block_off_diagonal = np.tile(np.append(off_diagonal, 0.0), n_shifts)[:-1]
        right_hand_sides = np.tile(rotated_t, (n_shifts, 1))
        _, _, rotated_x, info = lapack.dptsv(block_diagonal, block_off_diagonal, right_hand_sides)
        if info != 0:  # not positive definite
            is_definite[k] = False
            *_, rotated_x, _ = lapack.dgtsv(
                block_off_diagonal, block_diagonal, block_off_diagonal, right_hand_sides
            )

        by_row = np.asarray(rotated_x).reshape(n_shifts, n, n_outputs).transpose(1, 0, 2)
        columns = np.array(by_row.reshape(n, -1), order="F")
        work_size = LAPACK_BLOCK * (columns.shape[1] + LAPACK_BLOCK + 1)
        columns[1:], _, _ = lapack.dormqr(
            "L", "N", reflections, scales, columns[1:], lwork=work_size
        )
        x[k] = columns.reshape(n, n_shifts, n_outputs).transpose(1, 0, 2)
    return x, is_definite


class Solutions(NamedTuple):
    """Minimizers for every λ.

    Attributes
    ----------
    coef : ndarray of shape (n_shifts, n, n_outputs)
        Coefficients of the columns of R or of the items.
    is_definite : bool
        False if the kernel is indefinite and a solution is a stationary point, not a minimum.
    n_iter : int
        Largest number of iterations; 1 for direct methods.
    unfinished : tuple of float
        The λ whose solution did not reach the tolerance.
    """

    coef: Array
    is_definite: bool = True
    n_iter: int = 1
    unfinished: tuple[float, ...] = ()


class IterationLimits(TypedDict, total=False):
    """Options of `minimize_iteratively`, which describes them."""

    tol: float
    max_iter: int | None
    watch: Watch | None
    norms: Array | None


def minimize(
    method: str,
    loss: SquaredLoss,
    matrix: Matrix,
    shifts: Array,
    *,
    overwrite: bool = False,
    **limits: Unpack[IterationLimits],
) -> Solutions:
    """Minimize ``loss(f) + λ‖f‖²`` for every λ by a method that `choose_method` names.

    Primal: ``(Rᵀ A R + λI) w = Rᵀ t``, [RankRLS09] equation 28. R is read once; the solution is nan
    if R is not finite.

    Dual: ``(A K + λI) a = t``, equation 17, in symmetric form. With ``F Fᵀ = A`` and ``F b = t``,
    solve ``(Fᵀ K F + λI) c = b``; then ``a = F c``.

    Parameters
    ----------
    method : {"primal", "dual", "iterative"}
        How to solve.
    loss : SquaredLoss
        The loss.
    matrix : array, sparse matrix or LazyFeatures
        Features R, or the kernel matrix K for "dual".
    shifts : ndarray of shape (n_shifts,)
        The λ.
    overwrite : bool, default=False
        Whether a kernel matrix may be overwritten, which saves a copy of it.
    **limits
        `tol`, `max_iter`, `watch` and `norms` of `minimize_iteratively`.

    Returns
    -------
    Solutions
        The minimizers.
    """
    if method == "primal":
        with np.errstate(invalid="ignore", over="ignore"):
            gram, moment = loss.system(matrix)
        coef, is_definite = solve_shifted(gram, moment, shifts, overwrite=True)
        return Solutions(coef, is_definite)
    if method == "dual":
        root = loss.root()
        K = matrix
        if not overwrite:
            K = matrix.copy()
        rotated, is_definite = solve_shifted(
            root.sandwich(K), root.solve(loss.target), shifts, overwrite=True
        )
        return Solutions(np.stack([root.apply(columns) for columns in rotated]), is_definite)
    return minimize_iteratively(loss, matrix, shifts, **limits)


def minimize_iteratively(
    loss: SquaredLoss,
    R: Matrix,
    shifts: Array,
    *,
    tol: float,
    max_iter: int | None,
    watch: Watch | None = None,
    norms: Array | None = None,
) -> Solutions:
    """``(Rᵀ A R + λI) w = Rᵀ t`` by iterations, [RankRLS09] section 4.3.

    The matrix is never formed: an iteration costs two products with R and one with A, linear in the
    non-zeros of R and the items or edges of the graph. Several λ share the steps of
    `galerkin_path`; conjugate gradients continue from there.

    Parameters
    ----------
    loss : SquaredLoss
        The loss.
    R : array or sparse matrix of shape (n_items, n_features)
        Features.
    shifts : ndarray of shape (n_shifts,)
        The λ.
    tol : float
        Largest norm of a residual, relative to that of the right-hand side.
    max_iter : int or None
        Limit of iterations for each λ; None for ten times the number of features.
    watch : callable, optional
        Called after each iteration of conjugate gradients.
    norms : ndarray of shape (n_features,), optional
        Diagonal of ``Rᵀ A R``, or numbers near it; computed by default.

    Returns
    -------
    Solutions
        The minimizers.
    """
    moment = loss.moment(R).reshape(R.shape[1], -1)
    R_transposed = R.T
    if norms is None:
        norms = np.maximum(loss.norms(R), 0.0)

    def gram_product(W: Array) -> Array:
        return np.asarray(R_transposed @ loss.times_A(R @ W))

    coef = np.zeros((len(shifts), *moment.shape))
    residual = np.full(len(shifts), np.inf)
    n_iter = 0
    if len(shifts) > 1:
        n_steps = SHARED_STEPS
        if max_iter is not None:
            n_steps = min(SHARED_STEPS, max_iter)
        for output, column in enumerate(moment.T):
            path = galerkin_path(gram_product, column, norms, shifts, tol, n_steps)
            coef[:, :, output] = path.x
            if output == 0:
                residual = path.residuals
            else:
                residual = np.maximum(residual, path.residuals)
            n_iter = max(n_iter, path.n_iter)
    remaining_iter = None
    if max_iter is not None:
        remaining_iter = max_iter - n_iter
    unfinished = []
    for k in np.flatnonzero(residual > tol):
        shift = float(shifts[k])

        def shifted_product(W: Array, shift: float = shift) -> Array:
            return gram_product(W) + shift * W

        solution = conjugate_gradients(
            shifted_product,
            moment,
            norms + shift,
            tol=tol,
            max_iter=remaining_iter,
            start=coef[k],
            watch=watch,
        )
        coef[k] = solution.x
        n_iter = max(n_iter, solution.n_iter)
        if not solution.converged:
            unfinished.append(shift)
    return Solutions(coef, True, max(n_iter, 1), tuple(unfinished))


class GalerkinPath(NamedTuple):
    """Result of `galerkin_path`.

    Attributes
    ----------
    x : ndarray of shape (n_shifts, n)
        Solutions.
    residuals : ndarray of shape (n_shifts,)
        Norms of the residuals, relative to that of t.
    n_iter : int
        Products with A.
    """

    x: Array
    residuals: Array
    n_iter: int


def galerkin_path(
    product: Callable[[Array], Array],
    t: Array,
    diagonal: Array,
    shifts: Array,
    tol: float,
    n_steps: int,
) -> GalerkinPath:
    """Solve ``(A + λI) x = t`` for every λ in one growing subspace, the largest λ first.

    Galerkin's solution is ``x = V y`` with ``(Vᵀ A V + λI) y = Vᵀ t``. While its residual is too
    large, the residual divided by the diagonal of A + λI is added to the subspace: a step of
    preconditioned conjugate gradients that serves all smaller λ, too.

    Parameters
    ----------
    product : callable
        Product of A with a vector; A is symmetric and positive semidefinite.
    t : ndarray of shape (n,)
        Right-hand side.
    diagonal : ndarray of shape (n,)
        Diagonal of A, or numbers near it.
    shifts : ndarray of shape (n_shifts,)
        The λ.
    tol : float
        Largest norm of a residual, relative to that of t.
    n_steps : int
        Largest dimension of the subspace.

    Returns
    -------
    GalerkinPath
        Solutions and residuals for every λ, and the number of products.
    """
    norm_of_t = float(np.linalg.norm(t))
    if norm_of_t == 0:
        norm_of_t = 1.0
    t = t / norm_of_t
    n_steps = min(n_steps, len(t))
    V = np.empty((n_steps, len(t)))
    AV = np.empty((n_steps, len(t)))
    projected = np.empty((n_steps, n_steps))  # Vᵀ A V
    moment = np.empty(n_steps)  # Vᵀ t
    Y = np.zeros((len(shifts), n_steps))
    residuals = np.empty(len(shifts))
    k = 0
    for index in np.argsort(shifts)[::-1]:
        shift = shifts[index]
        while True:
            y = np.linalg.solve(projected[:k, :k] + shift * np.eye(k), moment[:k])
            residual = t - y @ AV[:k] - shift * (y @ V[:k])
            Y[index, :k] = y
            residuals[index] = np.linalg.norm(residual)
            if residuals[index] <= max(tol, MIN_RESIDUAL) or k == n_steps:
                break
            v = residual / (diagonal + shift)
            v -= (V[:k] @ v) @ V[:k]
            v /= np.linalg.norm(v)
            V[k] = v
            AV[k] = product(v)
            moment[k] = v @ t
            overlap = V[: k + 1] @ AV[k]
            projected[k, : k + 1] = overlap
            projected[: k + 1, k] = overlap
            k += 1
    return GalerkinPath(norm_of_t * (Y[:, :k] @ V[:k]), residuals, max(k, 1))
