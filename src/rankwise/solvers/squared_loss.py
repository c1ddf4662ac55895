"""Minimise ``loss(f) + λ‖f‖²`` for a list of λ: the way to each row of the table in DESIGN.md 3."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.losses import SquaredLoss
from rankwise.solvers.closed_form import solve_shifted
from rankwise.solvers.iterative import conjugate_gradient

__all__ = [
    "Solutions",
    "minimise",
    "minimise_dual",
    "minimise_iteratively",
    "minimise_primal",
]

Array = NDArray[np.float64]


class Solutions(NamedTuple):
    """Minimisers for every λ.

    Attributes
    ----------
    coef : ndarray of shape (n_shifts, n, n_outputs)
        Coefficients of the columns of R or of the items.
    is_definite : bool
        False if an indefinite kernel made some solution a mere stationary point.
    n_iter : int
        Largest number of iterations; 1 for direct methods.
    unfinished : tuple of float
        The λ whose solution did not reach the tolerance.
    """

    coef: Array
    is_definite: bool = True
    n_iter: int = 1
    unfinished: tuple[float, ...] = ()


def minimise(
    method: str, loss: SquaredLoss, matrix: Any, shifts: Array, *, tol: float, max_iter: int | None
) -> Solutions:
    """By the method of a design, "primal", "dual" or "iterative"; a dual matrix is overwritten."""
    if method == "primal":
        return minimise_primal(loss, matrix, shifts)
    if method == "dual":
        return minimise_dual(loss, matrix, shifts)
    return minimise_iteratively(loss, matrix, shifts, tol=tol, max_iter=max_iter)


def minimise_primal(loss: SquaredLoss, R: Any, shifts: Array) -> Solutions:
    """``(Rᵀ A R + λI) w = Rᵀ t``, [RankRLS09] equation 28."""
    return Solutions(*solve_shifted(loss.gram(R), loss.moment(R), shifts))


def minimise_dual(loss: SquaredLoss, K: Array, shifts: Array) -> Solutions:
    """``(A K + λI) a = t``, [RankRLS09] equation 17, in symmetric form; K is overwritten.

    With ``F Fᵀ = A`` and ``F b = t``, solve ``(Fᵀ K F + λI) c = b``; then ``a = F c``.
    """
    root = loss.root()
    c, is_definite = solve_shifted(root.sandwich(K), root.solve(loss.target), shifts)
    return Solutions(np.stack([root.apply(columns) for columns in c]), is_definite)


def minimise_iteratively(
    loss: SquaredLoss, R: Any, shifts: Array, *, tol: float, max_iter: int | None
) -> Solutions:
    """The primal system by conjugate gradients, from the largest λ down, each from the last."""
    n_outputs = loss.target.reshape(len(loss.target), -1).shape[1]
    coef = np.empty((len(shifts), R.shape[1], n_outputs))
    start, n_iter, unfinished = None, 1, []
    for k in np.argsort(shifts)[::-1]:
        result = conjugate_gradient(R, loss, shifts[k], tol=tol, max_iter=max_iter, start=start)
        coef[k] = start = result.coef
        n_iter = max(n_iter, result.n_iter)
        if not result.converged:
            unfinished.append(float(shifts[k]))
    return Solutions(coef, True, n_iter, tuple(unfinished))
