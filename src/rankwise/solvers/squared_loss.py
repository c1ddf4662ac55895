"""Minimize ``loss(f) + λ‖f‖²`` for a list of λ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.losses import SquaredLoss
from rankwise.solvers.closed_form import solve_shifted
from rankwise.solvers.iterative import Watch, conjugate_gradients


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
