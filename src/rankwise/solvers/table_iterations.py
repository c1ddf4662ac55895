"""Tables with unknown cells, or with other costs: conjugate gradients with the vec trick.

Features of the two sides, ``G = R Rᵀ`` and ``K = S Sᵀ``, give the scores ``F = R B Sᵀ`` and the
system

    Rᵀ A(R B Sᵀ) S + α B = Rᵀ T S

A product takes four matrix products of the size of the table; the q t × q t kernel matrix of the
dyads is never formed. If A were a Kronecker product ``H ⊗ L`` of diagonal matrices, features with
diagonal ``Rᵀ H R`` and ``Sᵀ L S`` would make the system diagonal. That is the preconditioner: the
solution of a complete table, with weights for rows and columns of fewer scores.
"""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array
from rankwise.losses import TableLoss
from rankwise.solvers.iterative import Watch, conjugate_gradients
from rankwise.solvers.squared_loss import Solutions
from rankwise.solvers.table_sides import WeightedSide

FLOOR = 0.1  # of the mean weight: rows and columns of few scores are weighed as much


def table_weights(loss: TableLoss) -> tuple[Array, Array]:
    """A weight for each row and for each column, with ``A ≈ diag(h) ⊗ diag(l)`` on differences."""
    across, down = loss.degrees()
    count = loss.known.sum(axis=1)
    gain = count.sum() / max(count.sum() - np.count_nonzero(count), 1)  # n/(n − 1) of a full row
    rows = np.maximum(across / across.mean(), FLOOR)
    return rows, np.maximum(down, FLOOR * down.mean()) * (gain / len(rows))


def minimize_table(
    loss: TableLoss,
    rows: WeightedSide,
    columns: WeightedSide,
    alphas: Array,
    *,
    tol: float,
    max_iter: int | None,
    watch: Watch | None = None,
) -> Solutions:
    """B for every alpha, shape (n_alphas, r, s); the largest first, each the start of the next."""
    shape = (len(rows.norms), len(columns.norms))
    t = _to_features(loss.target, rows, columns).reshape(-1, 1)
    curvature = np.outer(rows.norms, columns.norms).reshape(-1)
    coef = np.empty((len(alphas), *shape))
    start, n_iter, unfinished = None, 1, []
    for k in np.argsort(alphas)[::-1]:
        alpha = float(alphas[k])

        def product(b: Array, alpha: float = alpha) -> Array:
            F = _scores(b.reshape(shape), rows, columns)
            return _to_features(loss.times_A(F), rows, columns).reshape(-1, 1) + alpha * b

        found = conjugate_gradients(
            product, t, curvature + alpha, tol=tol, max_iter=max_iter, start=start, watch=watch
        )
        start = found.x
        coef[k] = found.x.reshape(shape)
        n_iter = max(n_iter, found.n_iter)
        if not found.converged:
            unfinished.append(alpha)
    return Solutions(coef, True, n_iter, tuple(unfinished))


def _scores(B: Array, rows: WeightedSide, columns: WeightedSide) -> Array:
    """``R B Sᵀ``, the cheaper product first."""
    R, S = rows.features, columns.features
    if S is None:
        return np.asarray(R @ B)
    if R is None:
        return np.asarray(B @ S.T)
    (q, r), (t, s) = R.shape, S.shape
    if q * s * (r + t) <= t * r * (s + q):
        return np.asarray((R @ B) @ S.T)
    return np.asarray(R @ (B @ S.T))


def _to_features(F: Array, rows: WeightedSide, columns: WeightedSide) -> Array:
    """``Rᵀ F S``."""
    R, S = rows.features, columns.features
    if S is None:
        return np.asarray(R.T @ F)
    if R is None:
        return np.asarray(F @ S)
    (q, r), (t, s) = R.shape, S.shape
    if r * t * (q + s) <= q * s * (t + r):
        return np.asarray((R.T @ F) @ S)
    return np.asarray(R.T @ (F @ S))
