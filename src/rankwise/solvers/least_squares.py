"""Minimize ``loss(f) + λ‖f‖²`` for a list of λ: by Cholesky, by one reduction, by iterations.

Both forms of RankRLS are symmetric systems ``(A + λI) x = t``: primal with ``A = Rᵀ L R``
([RankRLS09] equation 28), kernel with ``A = Fᵀ K F`` where ``F Fᵀ = L`` (equation 17 made
symmetric).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from rankwise.arrays import Array
from rankwise.losses import SquaredLoss
from rankwise.runtime.threads import allow_threads

Watch = Callable[[int, float], None]  # told the number of iterations and the largest residual
BLOCK = 64  # columns that LAPACK takes at a time at most
SHARED_STEPS = 200  # that all λ share before each goes on alone
ROUNDING = 1e-14  # a relative residual that no step makes smaller


class IterativeSolution(NamedTuple):
    """Solutions of shape (n, k), iterations until the last column was done, and success of all."""

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
    """Solve ``A x = t`` for every column of t, with one product an iteration for all of them.

    Textbook preconditioned conjugate gradients (Shewchuk 1994, section 12) with the diagonal of A
    as preconditioner. Each column has its own step lengths; a column that is done leaves the
    product.

    Parameters
    ----------
    product : callable
        Takes V of shape (n, k) to ``A V``; A is symmetric and positive definite.
    t : ndarray of shape (n, k)
        Right-hand sides.
    diagonal : ndarray of shape (n,)
        Diagonal of A, or anything positive that is near it.
    tol : float
        A column is done when the norm of its residual is at most this times that of its t.
    max_iter : int, optional
        Limit; ten times n if None.
    start : ndarray of shape (n, k), optional
        First guess; zero if not given.
    watch : callable, optional
        Called after each iteration.
    """
    unit = binary_scale(t)
    t = t / unit  # squares of what is left neither overflow nor vanish
    x = np.zeros_like(t) if start is None else start / unit
    residual = t.copy() if start is None else t - product(x)
    size = np.linalg.norm(t, axis=0)
    goal = tol * size
    columns = np.flatnonzero(np.linalg.norm(residual, axis=0) > goal)  # those not yet done
    r = residual[:, columns]
    p = z = r / diagonal[:, None]
    rz = np.sum(r * z, axis=0)
    limit = 10 * len(t) if max_iter is None else max_iter
    n_iter = 0
    while len(columns) and n_iter < limit:
        q = product(p)
        step = rz / np.sum(p * q, axis=0)
        x[:, columns] += step * p
        r -= step * q
        n_iter += 1
        norm = np.linalg.norm(r, axis=0)
        if watch is not None:
            watch(n_iter, float(np.max(norm / size[columns])))
        going = norm > goal[columns]
        columns, r, p, rz = columns[going], r[:, going], p[:, going], rz[going]
        z = r / diagonal[:, None]
        rz_before, rz = rz, np.sum(r * z, axis=0)
        p = z + (rz / rz_before) * p
    return IterativeSolution(x * unit, n_iter, not len(columns))


def binary_scale(t: Array) -> Array:
    """A power of two near the largest entry of each column: dividing by it rounds nothing."""
    return np.asarray(np.ldexp(1.0, np.frexp(np.abs(t).max(axis=0, initial=0.0))[1] - 1))


def solve_shifted(A: Array, t: Array, shifts: Sequence[float] | Array) -> tuple[Array, bool]:
    """Solve ``(A + λI) x = t`` for every λ: Cholesky for one, one reduction for many.

    The symmetric matrix A is overwritten. Returns x of shape (n_shifts, n, n_outputs) and whether
    every A + λI was positive definite. x is nan if A is not finite.
    """
    t = t.reshape(len(t), -1)
    if not np.isfinite(np.diagonal(A)).all():
        return np.full((len(shifts), *t.shape), np.nan), True
    with allow_threads(len(A) ** 3):
        if len(shifts) > 1 and len(A) > 2:
            return solve_reduced(A, t, np.asarray(shifts, dtype=np.float64))
        solved = [solve_symmetric(A.copy() if len(shifts) > 1 else A, t, float(x)) for x in shifts]
    solutions, are_definite = zip(*solved, strict=True)
    return np.stack(solutions), all(are_definite)


def solve_symmetric(A: Array, t: Array, shift: float) -> tuple[Array, bool]:
    """Solve ``(A + shift I) x = t`` by Cholesky; the symmetric matrix A is overwritten.

    Returns
    -------
    x : ndarray
        Solution.
    is_definite : bool
        False if A + shift I was not positive definite, which only an indefinite kernel can cause;
        x is then the stationary point, from a symmetric indefinite factorization.
    """
    diagonal = np.diag_indices(len(A))
    before = A[diagonal].copy()
    A[diagonal] += shift
    factor, info = lapack.dpotrf(_columns_first(A), lower=0, clean=0, overwrite_a=1)
    if info == 0:
        x, _ = lapack.dpotrs(factor, t, lower=0)
        return np.asarray(x).reshape(t.shape), True
    symmetric = np.tril(factor, -1)  # the triangle that dpotrf left alone
    symmetric += symmetric.T
    symmetric[diagonal] = before + shift
    try:
        return np.asarray(scipy.linalg.solve(symmetric, t, assume_a="sym")), False
    except np.linalg.LinAlgError:  # equal items: A is the rounding of numbers far above the shift
        return np.asarray(scipy.linalg.lstsq(symmetric, t)[0]), True


def solve_reduced(A: Array, t: Array, shifts: Array) -> tuple[Array, bool]:
    """The same for many λ and three rows or more by ``A = Q T Qᵀ`` with T tridiagonal.

    About 4/3 n³ operations, a quarter of a full eigendecomposition; afterwards each λ costs one
    tridiagonal solve and one rotation. Q is kept as the Householder vectors of LAPACK's sytrd.
    """
    n = len(A)
    vectors, diagonal, off_diagonal, scales, _ = lapack.dsytrd(
        _columns_first(A), lower=1, lwork=BLOCK * n, overwrite_a=1
    )

    def rotate(flag: str, V: Array) -> Array:
        """``Qᵀ V`` or ``Q V``; Q leaves the first coordinate alone."""
        out, work = np.array(V, order="F"), BLOCK * (V.shape[1] + BLOCK + 1)
        out[1:], _, _ = lapack.dormqr("L", flag, vectors[1:, :-1], scales, out[1:], lwork=work)
        return out

    n_shifts, n_outputs = len(shifts), t.shape[1]  # one system with the diagonal blocks T + λI
    diagonal = (diagonal + shifts[:, None]).ravel()
    off_diagonal = np.tile(np.append(off_diagonal, 0.0), n_shifts)[:-1]
    target = np.tile(rotate("T", t), (n_shifts, 1))
    _, _, x, info = lapack.dptsv(diagonal, off_diagonal, target)
    if info != 0:
        x = lapack.dgtsv(off_diagonal, diagonal, off_diagonal, target)[3]
    solved = np.asarray(x).reshape(n_shifts, n, n_outputs)
    rotated = rotate("N", solved.transpose(1, 0, 2).reshape(n, -1))
    return rotated.reshape(n, n_shifts, n_outputs).transpose(1, 0, 2), info == 0


def _columns_first(A: Array) -> Array:
    """The same symmetric matrix in the memory order of LAPACK, without a copy."""
    return A if A.flags.f_contiguous else A.T


class Solutions(NamedTuple):
    """Minimizers for every λ.

    Attributes
    ----------
    coef : ndarray of shape (n_shifts, n, n_outputs)
        Coefficients of the columns of R or of the items.
    is_definite : bool
        False if the kernel is indefinite and some solution is a stationary point, not a minimum.
    n_iter : int
        Largest number of iterations; 1 for direct methods.
    unfinished : tuple of float
        The λ whose solution did not reach the tolerance.
    """

    coef: Array
    is_definite: bool = True
    n_iter: int = 1
    unfinished: tuple[float, ...] = ()


def minimize(
    method: str,
    loss: SquaredLoss,
    matrix: Any,
    shifts: Array,
    **limits: Any,
) -> Solutions:
    """Minimize by the method "primal", "dual" or "iterative"; a dual matrix is overwritten.

    The limits are those of `minimize_iteratively`.

    Primal: ``(Rᵀ A R + λI) w = Rᵀ t``, [RankRLS09] equation 28. R is read once; the solution is nan
    if R is not finite.

    Dual: ``(A K + λI) a = t``, equation 17, in symmetric form. With ``F Fᵀ = A`` and ``F b = t``,
    solve ``(Fᵀ K F + λI) c = b``; then ``a = F c``.
    """
    if method == "primal":
        with np.errstate(invalid="ignore", over="ignore"):
            gram, moment = loss.system(matrix)
        return Solutions(*solve_shifted(gram, moment, shifts))
    if method == "dual":
        root = loss.root()
        c, is_definite = solve_shifted(root.sandwich(matrix), root.solve(loss.target), shifts)
        return Solutions(np.stack([root.apply(columns) for columns in c]), is_definite)
    return minimize_iteratively(loss, matrix, shifts, **limits)


def minimize_iteratively(
    loss: SquaredLoss,
    R: Any,
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
    `galerkin_path`;
    conjugate gradients finish what these leave. `norms` is the diagonal of the matrix, or near it.
    """
    t, RT = loss.moment(R).reshape(R.shape[1], -1), R.T
    norms = np.maximum(loss.norms(R), 0.0) if norms is None else norms

    def gram(W: Array) -> Array:
        return np.asarray(RT @ loss.times_A(R @ W))

    coef, residual, n_iter = np.zeros((len(shifts), *t.shape)), np.full(len(shifts), np.inf), 0
    if len(shifts) > 1:
        most = SHARED_STEPS if max_iter is None else min(SHARED_STEPS, max_iter)
        paths = [galerkin_path(gram, column, norms, shifts, tol, most) for column in t.T]
        coef = np.stack([x for x, _, _ in paths], axis=2)
        residual = np.max([residuals for _, residuals, _ in paths], axis=0)
        n_iter = max(n for _, _, n in paths)
    unfinished, left = [], None if max_iter is None else max_iter - n_iter
    for k in np.flatnonzero(residual > tol):
        shift = float(shifts[k])

        def product(W: Array, shift: float = shift) -> Array:
            return gram(W) + shift * W

        coef[k], n_more, converged = conjugate_gradients(
            product, t, norms + shift, tol=tol, max_iter=left, start=coef[k], watch=watch
        )
        n_iter = max(n_iter, n_more)
        if not converged:
            unfinished.append(shift)
    return Solutions(coef, True, max(n_iter, 1), tuple(unfinished))


def galerkin_path(
    product: Callable[[Array], Array],
    t: Array,
    diagonal: Array,
    shifts: Array,
    tol: float,
    n_steps: int,
) -> tuple[Array, Array, int]:
    """Solve ``(A + λI) x = t`` for every λ in one space that grows, the largest λ first.

    Galerkin's solution is ``x = V y`` with ``(Vᵀ A V + λI) y = Vᵀ t``. While its residual is too
    large, V takes in the residual divided by the diagonal of A + λI, a step of preconditioned
    conjugate gradients that serves all smaller λ, too.

    Returns
    -------
    x : ndarray of shape (n_shifts, n)
        Solutions.
    residuals : ndarray of shape (n_shifts,)
        Norms of the residuals, relative to that of t.
    n_iter : int
        Products with A.
    """
    size = float(np.linalg.norm(t)) or 1.0
    t, n_steps, k = t / size, min(n_steps, len(t)), 0
    V, AV = np.empty((n_steps, len(t))), np.empty((n_steps, len(t)))
    H, moment = np.empty((n_steps, n_steps)), np.empty(n_steps)
    Y, residuals = np.zeros((len(shifts), n_steps)), np.empty(len(shifts))
    for a in np.argsort(shifts)[::-1]:
        while True:
            y = np.linalg.solve(H[:k, :k] + shifts[a] * np.eye(k), moment[:k])
            r = t - y @ AV[:k] - shifts[a] * (y @ V[:k])
            Y[a, :k], residuals[a] = y, np.linalg.norm(r)
            if residuals[a] <= max(tol, ROUNDING) or k == n_steps:
                break
            v = r / (diagonal + shifts[a])
            v -= (V[:k] @ v) @ V[:k]
            v /= np.linalg.norm(v)
            V[k], AV[k], moment[k] = v, product(v), v @ t
            H[k, : k + 1] = H[: k + 1, k] = V[: k + 1] @ AV[k]
            k += 1
    return size * (Y[:, :k] @ V[:k]), residuals, max(k, 1)
