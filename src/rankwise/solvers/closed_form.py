"""Symmetric systems ``(A + λI) x = t``: one λ by Cholesky, many from one tridiagonal reduction.

Both forms of RankRLS are such systems: primal with ``A = Rᵀ L R`` ([RankRLS09] equation 28),
kernel with ``A = Fᵀ K F`` where ``F Fᵀ = L`` (equation 17 made symmetric).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from rankwise.arrays import Array
from rankwise.machine import idle_cores

BLOCK = 64  # columns that LAPACK takes at a time at most


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
