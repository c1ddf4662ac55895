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
    # solve A x = t for all columns of t, with A as `product` and its diagonal as preconditioner
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

    # from here on residual and direction have the columns that have not converged
    open_columns = np.flatnonzero(np.linalg.norm(residual, axis=0) > threshold)
    residual = residual[:, open_columns]
    preconditioned = residual / diagonal[:, None]
    direction = preconditioned
    squared_residual = np.sum(residual * preconditioned, axis=0)  # in the preconditioned norm
    n_iter = 0
    while len(open_columns) and n_iter < max_iter:
        A_direction = product(direction)
        step = squared_residual / np.sum(direction * A_direction, axis=0)
        x[:, open_columns] += step * direction
        residual -= step * A_direction
        n_iter += 1

        residual_norm = np.linalg.norm(residual, axis=0)
        if watch is not None:
            watch(n_iter, float(np.max(residual_norm / norm_of_t[open_columns])))
        is_open = residual_norm > threshold[open_columns]
        open_columns = open_columns[is_open]
        residual = residual[:, is_open]

        preconditioned = residual / diagonal[:, None]
        previous_squared_residual = squared_residual[is_open]
        squared_residual = np.sum(residual * preconditioned, axis=0)
        conjugation = squared_residual / previous_squared_residual
        direction = preconditioned + conjugation * direction[:, is_open]
    return IterativeSolution(x * scale, n_iter, converged=len(open_columns) == 0)


def binary_scale(t: Array) -> Array:
    """A power of two near the largest entry of each column, by which division is exact."""
    largest = np.abs(t).max(axis=0, initial=0.0)
    _, exponent = np.frexp(largest)  # largest is at least 2^(exponent − 1)
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
    # solve (A + λI) x = t for a symmetric A and each λ of `shifts`
    t = t.reshape(len(t), -1)
    shifts = np.asarray(shifts, dtype=np.float64)
    if not np.isfinite(np.diagonal(A)).all():  # definiteness is then unknown
        return np.full((len(shifts), *t.shape), np.nan), True
    if (shifts == 0).any():
        return _solve_with_zero_shifts(A, t, shifts)
    with allow_threads(len(A) ** 3):
        if len(shifts) > 1 and len(A) > 2:  # one reduction to tridiagonal form for all λ
            if A.flags.f_contiguous:  # to the order of rows; A is symmetric
                A = A.T
            x, are_definite = solve_reduced(A[None], t[None], shifts, overwrite=overwrite)
            return x[0], bool(are_definite[0])
        overwrite = overwrite and len(shifts) == 1  # else the next λ needs A again
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
    # solve (A_k + λI) x = t_k for the matrices A_k in A, and each λ of `shifts`
    n = A.shape[1]
    is_finite = bool(np.isfinite(np.diagonal(A, axis1=1, axis2=2)).all())
    has_several_shifts = len(shifts) > 1 and shifts.all()
    if has_several_shifts and is_finite and n > 2:
        with allow_threads(n**3):
            return solve_reduced(A, t, shifts)
    x = []
    are_definite = []
    for A_k, t_k in zip(A, t, strict=True):
        x_k, is_definite = solve_shifted(A_k, t_k, shifts)
        x.append(x_k)
        are_definite.append(is_definite)
    return np.stack(x), np.array(are_definite)


def _solve_with_zero_shifts(A: Array, t: Array, shifts: Array) -> tuple[Array, bool]:
    """Solutions if some λ are 0, for which the solution is the limit for λ → 0."""
    # (A + λI) x = t for each λ of `shifts`; A itself may be singular
    x = np.empty((len(shifts), *t.shape))
    is_definite = True
    is_zero = shifts == 0
    if not is_zero.all():
        x[~is_zero], is_definite = solve_shifted(A, t, shifts[~is_zero])
    x[is_zero] = solve_minimum_norm(A, t)
    return x, is_definite


def solve_minimum_norm(A: Array, t: Array) -> Array:
    """The solution of smallest norm of a consistent system ``A x = t``, A symmetric.

    It is the limit of ``(A + λI)⁻¹ t`` for λ → 0. Eigenvalues below rounding count as zero.
    """
    # x = A⁺ t with the pseudoinverse A⁺ = Q diag(1 / eigenvalues) Qᵀ
    with allow_threads(len(A) ** 3):
        eigenvalues, Q = scipy.linalg.eigh(A, check_finite=False)
    magnitude = np.abs(eigenvalues)
    rounding_error = len(A) * np.finfo(float).eps * magnitude.max(initial=0.0)
    is_nonzero = magnitude > rounding_error
    inverse = np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=is_nonzero)
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
    # solve (A + shift I) x = t by a Cholesky factorization, which needs a definite matrix
    if not overwrite:
        A = A.copy()
    on_diagonal = np.diag_indices(len(A))
    diagonal = A[on_diagonal]
    A[on_diagonal] += shift
    if not A.flags.f_contiguous:  # to the memory order of LAPACK; A is symmetric
        A = A.T
    cholesky_factor, info = lapack.dpotrf(A, lower=0, clean=0, overwrite_a=1)
    is_definite = info == 0
    if is_definite:
        x, _ = lapack.dpotrs(cholesky_factor, t, lower=0)
        return np.asarray(x).reshape(t.shape), True

    # restore A + shift I from the lower triangle: dpotrf overwrites the upper one only
    shifted = np.tril(cholesky_factor, -1)
    shifted += shifted.T
    shifted[on_diagonal] = diagonal + shift
    try:
        return np.asarray(scipy.linalg.solve(shifted, t, assume_a="sym")), False
    except np.linalg.LinAlgError:  # equal items: rounding errors of A are far above the shift
        x, *_ = scipy.linalg.lstsq(shifted, t)
        return np.asarray(x), True  # the kernel need not be indefinite


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
    # solve (A_k + λI) x = t_k for each λ of `shifts`: A_k is reduced once, to a tridiagonal T
    # LAPACK: dsytrd reduces, dormqr multiplies by Q, dptsv and dgtsv solve tridiagonal systems
    n_systems, n, n_outputs = t.shape
    n_shifts = len(shifts)
    x = np.empty((n_systems, n_shifts, n, n_outputs))
    is_definite = np.ones(n_systems, dtype=bool)
    for k in range(n_systems):
        # A_k = Q T Qᵀ: Q as Householder vectors and their scales, T as its two diagonals
        vectors, diagonal, off_diagonal, scales, _ = lapack.dsytrd(
            A[k].T, lower=1, lwork=LAPACK_BLOCK * n, overwrite_a=int(overwrite)
        )
        reflections = vectors[1:, :-1]  # Q leaves the first coordinate unchanged

        Qt_t = t[k].copy(order="F")  # Qᵀ t
        work_size = LAPACK_BLOCK * (n_outputs + LAPACK_BLOCK + 1)
        Qt_t[1:], _, _ = lapack.dormqr("L", "T", reflections, scales, Qt_t[1:], lwork=work_size)

        # (T + λI) z = Qᵀ t for all λ as one tridiagonal system with these blocks on its diagonal;
        # zeros off the diagonal separate the blocks
        block_diagonal = (diagonal + shifts[:, None]).ravel()
        block_off_diagonal = np.tile(np.append(off_diagonal, 0.0), n_shifts)[:-1]
        right_hand_side = np.tile(Qt_t, (n_shifts, 1))
        _, _, z, info = lapack.dptsv(block_diagonal, block_off_diagonal, right_hand_side)
        if info != 0:  # not positive definite: solve without a Cholesky factorization
            is_definite[k] = False
            *_, z, _ = lapack.dgtsv(
                block_off_diagonal, block_diagonal, block_off_diagonal, right_hand_side
            )

        # x = Q z, with the columns of all λ and outputs side by side
        z_by_row = np.asarray(z).reshape(n_shifts, n, n_outputs).transpose(1, 0, 2)
        columns = np.array(z_by_row.reshape(n, -1), order="F")
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
    squared_norms: Array | None


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
        `tol`, `max_iter`, `watch` and `squared_norms` of `minimize_iteratively`.

    Returns
    -------
    Solutions
        The minimizers.
    """
    # the loss of the scores f is fᵀ A f − 2 fᵀ t, with a matrix A and a vector t;
    # each λ of `shifts` penalizes the norm of the model
    if method == "dual":
        # scores K a of the kernel matrix K; with a root F of A, F Fᵀ = A, and b from F b = t
        # solve (Fᵀ K F + λI) c = b, and then a = F c
        K = matrix
        if not overwrite:
            K = matrix.copy()
        F = loss.root()
        Ft_K_F = F.sandwich(K)
        b = F.solve(loss.target)
        c_by_shift, is_definite = solve_shifted(Ft_K_F, b, shifts, overwrite=True)
        dual_coef = np.stack([F.apply(c) for c in c_by_shift])
        return Solutions(dual_coef, is_definite)

    # scores R w of the features R: solve (Rᵀ A R + λI) w = Rᵀ t
    R = matrix
    if method == "iterative":
        return minimize_iteratively(loss, R, shifts, **limits)
    with np.errstate(invalid="ignore", over="ignore"):  # R may be infinite
        gram, moment = loss.system(R)  # Rᵀ A R and Rᵀ t
    weights, is_definite = solve_shifted(gram, moment, shifts, overwrite=True)
    return Solutions(weights, is_definite)


def minimize_iteratively(
    loss: SquaredLoss,
    R: Matrix,
    shifts: Array,
    *,
    tol: float,
    max_iter: int | None,
    watch: Watch | None = None,
    squared_norms: Array | None = None,
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
    squared_norms : ndarray of shape (n_features,), optional
        Diagonal of ``Rᵀ A R``, or numbers near it; computed by default.

    Returns
    -------
    Solutions
        The minimizers.
    """
    # solve (Rᵀ A R + λI) w = Rᵀ t for every λ, without forming Rᵀ A R
    moment = loss.moment(R).reshape(R.shape[1], -1)  # Rᵀ t
    R_transposed = R.T
    if squared_norms is None:  # rᵀ A r of each column r of R: the diagonal of Rᵀ A R
        squared_norms = np.maximum(loss.norms(R), 0.0)

    def gram_product(W: Array) -> Array:
        return np.asarray(R_transposed @ loss.times_A(R @ W))

    # first all λ together, then each λ that has not reached the tolerance
    coef = np.zeros((len(shifts), *moment.shape))
    largest_residual = np.full(len(shifts), np.inf)  # of all outputs
    n_iter = 0
    remaining_iter = max_iter
    if len(shifts) > 1:
        n_steps = SHARED_STEPS
        if max_iter is not None:
            n_steps = min(SHARED_STEPS, max_iter)
        path_of_output = [
            galerkin_path(gram_product, column, squared_norms, shifts, tol, n_steps)
            for column in moment.T
        ]
        coef = np.stack([path.x for path in path_of_output], axis=2)
        largest_residual = np.max([path.residuals for path in path_of_output], axis=0)
        n_iter = max(path.n_iter for path in path_of_output)
        if max_iter is not None:
            remaining_iter = max_iter - n_iter

    unfinished = []
    for k in np.flatnonzero(largest_residual > tol):
        shift = float(shifts[k])

        def shifted_product(W: Array, shift: float = shift) -> Array:
            return gram_product(W) + shift * W

        solution = conjugate_gradients(
            shifted_product,
            moment,
            squared_norms + shift,
            tol=tol,
            max_iter=remaining_iter,
            start=coef[k],
            watch=watch,
        )
        coef[k] = solution.x
        n_iter = max(n_iter, solution.n_iter)
        if not solution.converged:
            unfinished.append(shift)
    return Solutions(coef, n_iter=max(n_iter, 1), unfinished=tuple(unfinished))


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
    # solve (A + λI) x = t for every λ in one growing subspace, spanned by the rows of V
    norm_of_t = float(np.linalg.norm(t))
    if norm_of_t == 0:
        norm_of_t = 1.0
    t = t / norm_of_t  # so that norms of residuals are relative; x is scaled back in the end
    max_vectors = min(n_steps, len(t))
    V = np.empty((max_vectors, len(t)))  # orthonormal rows that span the subspace
    AV = np.empty((max_vectors, len(t)))
    projected_A = np.empty((max_vectors, max_vectors))  # V A Vᵀ
    projected_t = np.empty(max_vectors)  # V t
    Y = np.zeros((len(shifts), max_vectors))  # coordinates of the solutions in the subspace
    residual_norms = np.empty(len(shifts))
    n_vectors = 0
    for index in np.argsort(shifts)[::-1]:  # the largest λ first: its system is the easiest
        shift = shifts[index]
        while True:
            # the solution in the subspace of the vectors so far
            k = n_vectors
            y = np.linalg.solve(projected_A[:k, :k] + shift * np.eye(k), projected_t[:k])
            residual = t - y @ AV[:k] - shift * (y @ V[:k])  # t − (A + λI) x with x = Vᵀ y
            Y[index, :k] = y
            residual_norms[index] = np.linalg.norm(residual)
            is_accurate = residual_norms[index] <= max(tol, MIN_RESIDUAL)
            if is_accurate or n_vectors == max_vectors:
                break

            # extend the subspace by the preconditioned residual
            v = residual / (diagonal + shift)
            v -= (V[:k] @ v) @ V[:k]
            v /= np.linalg.norm(v)
            V[k] = v
            AV[k] = product(v)
            projected_t[k] = v @ t
            projected_column = V[: k + 1] @ AV[k]
            projected_A[k, : k + 1] = projected_column
            projected_A[: k + 1, k] = projected_column
            n_vectors += 1
    x = norm_of_t * (Y[:, :n_vectors] @ V[:n_vectors])
    return GalerkinPath(x, residual_norms, n_iter=max(n_vectors, 1))
