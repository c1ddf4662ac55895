"""A bundle of planes below the loss: the lower bound that certifies a solution.

Each plane ``aᵀ w + b`` lies below the convex loss R(w) everywhere, so that for any λ of the
simplex (λ ≥ 0, Σ λ = 1), with ``a_λ = Σ λ_t a_t``,

    min_w R(w) + α ‖w‖²  ≥  min_w a_λᵀ w + b_λ + α ‖w‖²  =  b_λ − ‖a_λ‖²/(4α)

([TreeRSVM11] section 3). The best λ solves the master problem; a worse one gives a weaker bound,
never a wrong one. Planes do not depend on α: a path over α keeps them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bundle", "maximise_on_simplex"]

Array = NDArray[np.float64]
MAX_PLANES = 250
MAX_ENTRIES = 2**27  # one GiB of planes
SLACK = 0.02  # of the gap, that a solution of the master problem may leave


class Bundle:
    """Planes below a loss that is never negative.

    Parameters
    ----------
    n_features : int
        Length of w.
    """

    def __init__(self, n_features: int) -> None:
        self._capacity = max(4, min(MAX_PLANES, MAX_ENTRIES // max(1, n_features)))
        self._slopes = np.zeros((1, n_features))  # the first plane says that no loss is negative
        self._offsets = np.zeros(1)
        self._gram = np.zeros((1, 1))
        self._mix = np.ones(1)

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, slope: Array, offset: float) -> None:
        """Add the plane ``slopeᵀ w + offset``; a full bundle first merges what it needs least."""
        if len(self) >= self._capacity:
            self._merge()
        products = self._slopes @ slope
        self._gram = np.block(
            [[self._gram, products[:, None]], [products[None], np.array([[slope @ slope]])]]
        )
        self._slopes = np.vstack([self._slopes, slope])
        self._offsets = np.append(self._offsets, offset)
        self._mix = np.append(self._mix, 0.0)

    def solve(self, alpha: float, best: float = np.inf) -> tuple[float, Array]:
        """Solve the master problem, exactly enough to judge an objective of `best`.

        Returns
        -------
        bound : float
            A lower bound of the objective, whatever the accuracy of the solution.
        w : ndarray of shape (n_features,)
            Where the planes and the regulariser together are lowest.
        """
        Q = self._gram / (2 * alpha)
        self._mix = maximise_on_simplex(Q, self._offsets, self._mix, best)
        used = self._mix > 0
        slope = self._mix[used] @ self._slopes[used]
        bound = float(self._mix @ self._offsets - slope @ slope / (4 * alpha))
        return bound, slope / (-2 * alpha)

    def _merge(self) -> None:
        """Keep the half that the solution uses most, and their mixture: the bound stays."""
        kept = np.sort(np.argsort(self._mix)[len(self) // 2 :])
        kept = np.unique(np.r_[0, kept])
        slope, offset = self._mix @ self._slopes, self._mix @ self._offsets
        self._slopes, self._offsets = self._slopes[kept], self._offsets[kept]
        self._gram = self._gram[np.ix_(kept, kept)]
        self._mix = np.zeros(len(kept))
        self._mix[0] = 1.0
        self.add(slope, float(offset))
        self._mix = np.zeros(len(self))
        self._mix[-1] = 1.0


def maximise_on_simplex(
    Q: Array, c: Array, start: Array, ceiling: float = np.inf, max_steps: int = 500
) -> Array:
    """Maximise ``cᵀ x − xᵀ Q x / 2`` over x ≥ 0 with Σ x = 1, by the active-set method.

    Parameters
    ----------
    Q : ndarray of shape (n, n)
        Positive semidefinite.
    c : ndarray of shape (n,)
        Linear part.
    start : ndarray of shape (n,)
        A point of the simplex.
    ceiling : float
        What the maximum cannot exceed: what is lacking of the maximum need only be small beside
        what is lacking of the ceiling.
    max_steps : int
        Limit of changes of the active set.

    Returns
    -------
    ndarray of shape (n,)
        A point of the simplex; the maximiser unless the limit was reached.
    """
    x, active = start.copy(), start > 0
    value = float(c @ x - 0.5 * (x @ Q @ x))
    for _ in range(max_steps):
        face = np.flatnonzero(active)
        target = _on_face(Q[np.ix_(face, face)], c[face])
        if not np.isfinite(target).all():
            break
        if (target < 0).any():
            falling = target < 0
            ratio = np.ones(len(face))
            ratio[falling] = x[face][falling] / (x[face] - target)[falling]
            first = int(np.argmin(ratio))
            x[face] += ratio[first] * (target - x[face])
            active[face[first]] = False
            x = _on_simplex(np.where(active, x, 0.0))
            continue
        x[face] = target
        x = _on_simplex(x)
        gain = c - Q @ x
        best, reached = int(np.argmax(gain)), float(x @ gain)
        improved = float(c @ x - 0.5 * (x @ Q @ x))
        enough = 1e-10 * abs(improved)
        if np.isfinite(ceiling):
            enough = max(enough, SLACK * (ceiling - improved))
        if active[best] or gain[best] - reached <= enough:
            break
        active[best] = True
    return x if float(c @ x - 0.5 * (x @ Q @ x)) >= value else start


def _on_face(Q: Array, c: Array) -> Array:
    """Maximiser of ``cᵀ x − xᵀ Q x / 2`` subject to Σ x = 1 alone."""
    n = len(c)
    diagonal = Q.diagonal()
    least = max(1e-24 * float(diagonal.max()), 1e-16 * float(np.abs(c).max()), 1e-300)
    scale = 1 / np.sqrt(np.maximum(diagonal, least))
    bordered = np.zeros((n + 1, n + 1))
    bordered[:n, :n] = Q * scale[:, None] * scale
    bordered[np.arange(n), np.arange(n)] += 1e-14 * n
    bordered[n, :n] = bordered[:n, n] = scale / scale.max()
    right = np.append(c * scale, 1 / scale.max())
    return np.asarray(_solve(bordered, right)[:n] * scale)


def _solve(A: Array, b: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(A, b), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A, b)[0])


def _on_simplex(x: Array) -> Array:
    x = np.maximum(x, 0.0)
    return np.asarray(x / x.sum())
