"""Conjugate gradients on ``(Rᵀ A R + λI) w = Rᵀ t``, never forming the matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from rankwise.losses import SquaredLoss

__all__ = ["IterativeSolution", "conjugate_gradient"]

Array = NDArray[np.float64]


class IterativeSolution(NamedTuple):
    """Weights, the largest number of iterations over the outputs, and whether all converged."""

    coef: Array
    n_iter: int
    converged: bool


def conjugate_gradient(
    R: Any,
    loss: SquaredLoss,
    shift: float,
    *,
    tol: float,
    max_iter: int | None,
    start: Array | None = None,
) -> IterativeSolution:
    """Solve for each output of the loss; one iteration costs two products with R and one with A.

    [RankRLS09] section 4.3. `tol` bounds the residual relative to the right-hand side.
    """
    n_features = R.shape[1]
    operator = LinearOperator(
        (n_features, n_features),
        matvec=lambda w: R.T @ loss.product(R @ w) + shift * w,
        dtype=np.float64,
    )
    target = loss.moment(R).reshape(n_features, -1)
    coef = np.zeros_like(target) if start is None else start.reshape(target.shape).copy()
    counts = np.zeros(target.shape[1], dtype=int)
    converged = True
    for k, t in enumerate(target.T):

        def count(_: Array, k: int = k) -> None:
            counts[k] += 1

        coef[:, k], info = cg(
            operator, t, x0=coef[:, k], rtol=tol, atol=0.0, maxiter=max_iter, callback=count
        )
        converged = converged and info == 0
    return IterativeSolution(coef, max(1, int(counts.max(initial=0))), converged)
