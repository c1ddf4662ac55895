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
from rankwise.machine import idle_cores

Watch = Callable[[int, float], None]  # told the number of iterations and the largest residual
BLOCK = 64  # columns that LAPACK takes at a time at most


class IterativeSolution(NamedTuple):
    """Solutions of all right-hand sides.

    Attributes
    ----------
    x : ndarray of shape (n, k)
        One column for each right-hand side.
    n_iter : int
        Iterations until the last column was done.
    converged : bool
        Whether every column reached the tolerance.
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


class Reduction(NamedTuple):
    """``A = Q T Qᵀ`` with T tridiagonal, and ``z = Qᵀ t``.

    Attributes
    ----------
    diagonal, off_diagonal : ndarray
        T.
    reflectors, scales : ndarray
        Q as the Householder vectors of LAPACK's sytrd.
    target : ndarray of shape (n, n_outputs)
        z.
    """

    diagonal: Array
    off_diagonal: Array
    reflectors: Array
    scales: Array
    target: Array


def solve_shifted(A: Array, t: Array, shifts: Sequence[float] | Array) -> tuple[Array, bool]:
    """Solve ``(A + λI) x = t`` for every λ: Cholesky for one, one reduction for many.

    The symmetric matrix A is overwritten. Returns x of shape (n_shifts, n, n_outputs) and whether
    every A + λI was positive definite. x is nan if A is not finite.
    """
    t = t.reshape(len(t), -1)
    if not np.isfinite(np.diagonal(A)).all():
        return np.full((len(shifts), *t.shape), np.nan), True
    with idle_cores(len(A) ** 3):
        if len(shifts) == 1:
            x, is_definite = solve_symmetric(A, t, float(shifts[0]))
            return x[None], is_definite
        return solve_reduced(reduce_symmetric(A, t), shifts)


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
    return np.asarray(scipy.linalg.solve(symmetric, t, assume_a="sym")), False


def reduce_symmetric(A: Array, t: Array) -> Reduction:
    """Reduce the symmetric matrix A to tridiagonal form; A is overwritten.

    About 4/3 n³ operations, a quarter of a full eigendecomposition; afterwards each λ costs one
    tridiagonal solve and one rotation (`solve_reduced`).
    """
    columns = t.reshape(len(t), -1)
    if len(A) == 1:
        return Reduction(A[0].copy(), np.empty(0), A, np.empty(0), columns)
    reflectors, diagonal, off_diagonal, scales, _ = lapack.dsytrd(
        _columns_first(A), lower=1, lwork=BLOCK * len(A), overwrite_a=1
    )
    reduction = Reduction(diagonal, off_diagonal, reflectors, scales, columns)
    return reduction._replace(target=_rotate(reduction, columns, transpose=True))


def solve_reduced(reduction: Reduction, shifts: Sequence[float] | Array) -> tuple[Array, bool]:
    """Solve ``(A + λI) x = t`` for every λ.

    Returns
    -------
    x : ndarray of shape (n_shifts, n, n_outputs)
        Solutions.
    is_definite : bool
        False if A + λI is not positive definite for some λ.
    """
    n, n_outputs = reduction.target.shape
    if n == 1:
        pivots = reduction.diagonal + np.asarray(shifts)[:, None, None]
        return reduction.target / pivots, bool((pivots > 0).all())
    solved, is_definite = _solve_tridiagonal(reduction, np.asarray(shifts, dtype=np.float64))
    columns = solved.transpose(1, 0, 2).reshape(n, -1)
    rotated = _rotate(reduction, columns, transpose=False)
    return rotated.reshape(n, len(shifts), n_outputs).transpose(1, 0, 2), is_definite


def _solve_tridiagonal(reduction: Reduction, shifts: Array) -> tuple[Array, bool]:
    """``(T + λI)⁻¹ z`` for every λ, shape (n_shifts, n, n_outputs); and whether all are definite.

    All λ are solved as one system with the diagonal blocks T + λI.
    """
    n, n_outputs = reduction.target.shape
    diagonal = (reduction.diagonal + shifts[:, None]).ravel()
    off_diagonal = np.tile(np.append(reduction.off_diagonal, 0.0), len(shifts))[:-1]
    target = np.tile(reduction.target, (len(shifts), 1))
    _, _, x, info = lapack.dptsv(diagonal, off_diagonal, target)
    if info != 0:
        x = lapack.dgtsv(off_diagonal, diagonal, off_diagonal, target)[3]
    return np.asarray(x).reshape(len(shifts), n, n_outputs), info == 0


def _columns_first(A: Array) -> Array:
    """The same symmetric matrix in the memory order of LAPACK, without a copy."""
    return A if A.flags.f_contiguous else A.T


def _rotate(reduction: Reduction, V: Array, *, transpose: bool) -> Array:
    """``Qᵀ V`` or ``Q V``; Q leaves the first coordinate alone (LAPACK's ormtr with uplo='L')."""
    out = np.array(V, order="F")
    if len(out) < 3:
        return out  # the only reflector is the identity
    vectors, scales = reduction.reflectors[1:, :-1], reduction.scales
    flag = "T" if transpose else "N"
    work = BLOCK * (out.shape[1] + BLOCK + 1)
    out[1:], _, _ = lapack.dormqr("L", flag, vectors, scales, out[1:], lwork=work)
    return out


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
    *,
    tol: float,
    max_iter: int | None,
    watch: Watch | None = None,
) -> Solutions:
    """Minimize by the method "primal", "dual" or "iterative"; a dual matrix is overwritten."""
    if method == "primal":
        return minimize_primal(loss, matrix, shifts)
    if method == "dual":
        return minimize_dual(loss, matrix, shifts)
    return minimize_iteratively(loss, matrix, shifts, tol=tol, max_iter=max_iter, watch=watch)


def minimize_primal(loss: SquaredLoss, R: Any, shifts: Array) -> Solutions:
    """``(Rᵀ A R + λI) w = Rᵀ t``, [RankRLS09] equation 28.

    R is read once; the solution is nan if R is not finite.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        gram, moment = loss.system(R)
    return Solutions(*solve_shifted(gram, moment, shifts))


def minimize_dual(loss: SquaredLoss, K: Array, shifts: Array) -> Solutions:
    """``(A K + λI) a = t``, [RankRLS09] equation 17, in symmetric form; K is overwritten.

    With ``F Fᵀ = A`` and ``F b = t``, solve ``(Fᵀ K F + λI) c = b``; then ``a = F c``.
    """
    root = loss.root()
    c, is_definite = solve_shifted(root.sandwich(K), root.solve(loss.target), shifts)
    return Solutions(np.stack([root.apply(columns) for columns in c]), is_definite)


def minimize_iteratively(
    loss: SquaredLoss,
    R: Any,
    shifts: Array,
    *,
    tol: float,
    max_iter: int | None,
    watch: Watch | None = None,
) -> Solutions:
    """``(Rᵀ A R + λI) w = Rᵀ t`` by conjugate gradients, [RankRLS09] section 4.3.

    The matrix is never formed: an iteration costs two products with R and one with A, linear in the
    non-zeros of R and the items or edges of the graph. The largest λ comes first, and each solution
    is the start of the next.
    """
    norms = np.maximum(loss.norms(R), 0.0)
    t = loss.moment(R).reshape(R.shape[1], -1)
    coef = np.empty((len(shifts), *t.shape))
    start, n_iter, unfinished = None, 1, []
    for k in np.argsort(shifts)[::-1]:
        shift = float(shifts[k])

        def product(W: Array, shift: float = shift) -> Array:
            return np.asarray(R.T @ loss.times_A(R @ W) + shift * W)

        result = conjugate_gradients(
            product, t, norms + shift, tol=tol, max_iter=max_iter, start=start, watch=watch
        )
        coef[k] = start = result.x
        n_iter = max(n_iter, result.n_iter)
        if not result.converged:
            unfinished.append(shift)
    return Solutions(coef, True, n_iter, tuple(unfinished))
