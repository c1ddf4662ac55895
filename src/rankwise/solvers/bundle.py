"""A bundle of planes below the loss: the lower bound that certifies a solution.

Each plane ``aᵀ w + b`` lies below the convex loss R(w) everywhere, so that for any λ of the
simplex (λ ≥ 0, Σ λ = 1), with ``a_λ = Σ λ_t a_t``,

    min_w R(w) + α ‖w‖²  ≥  min_w a_λᵀ w + b_λ + α ‖w‖²  =  b_λ − ‖a_λ‖²/(4α)

([TreeRSVM11] section 3). The best λ solves the master problem; a worse one gives a weaker bound,
never a wrong one. Planes do not depend on α, so a path over α keeps them.

Rounding can make a bound wrong, so the bound that is reported is lower by what rounding may have
added. With w the lowest point of the mixture, ``|R|`` the largest absolute values of the columns,
and for each plane s_t and p_t the sizes of the terms of its offset and of its derivatives in the
scores (|b_t|, and 2 |b_t| or ‖u_t‖₁ for the hinge), that is

    η Σ λ_t (s_t + p_t |R|ᵀ|w|) + ‖η Σ λ_t p_t |R|‖²/(4α) + 4 ε α ‖w‖²

with ``η = ε (4 + √(n_items + n_features))`` and ε = 2⁻⁵²,
since a_t is a sum of products of u_t and R. A plane is one below the loss whatever rounding did to
the scores that it was taken at.
Rounding errors of either sign grow with the square root of their number (Higham, Accuracy and
Stability of Numerical Algorithms, section 2.8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankwise.arrays import Array

if TYPE_CHECKING:
    from rankwise.solvers.certified_descent import Iterate

MAX_PLANES = 250
MAX_ENTRIES = 2**27  # one GiB of planes
EPSILON = float(np.finfo(np.float64).eps)
CORRECTIONS = 2  # of each solution on a face of the simplex
SLACK = 0.02  # share of the gap by which the master problem may be unsolved


class Bundle:
    """Planes below a loss that is never negative.

    Parameters
    ----------
    magnitude : ndarray of shape (n_features,)
        |R|, the largest absolute values of the columns.
    n_items : int
        Number of terms of a sum over items; 0 allows for no rounding.
    """

    def __init__(self, magnitude: Array, n_items: int) -> None:
        n_features = len(magnitude)
        self._capacity = max(4, min(MAX_PLANES, MAX_ENTRIES // max(1, n_features)))
        self._slopes = np.zeros((1, n_features))  # the first plane says that no loss is negative
        self._terms = np.zeros((1, 3))  # b, s and p of each plane
        self._gram = np.zeros((1, 1))
        self._mix = np.ones(1)
        self._magnitude = magnitude
        self._rounding = EPSILON * (4 + np.sqrt(n_items + n_features)) if n_items else 0.0

    def rounding_of(self, point: Iterate) -> float:
        """By how much the objective at a point may be wrong."""
        reach = float(self._magnitude @ np.abs(point.w))
        return float(self._rounding * (1 + point.value + point.plane[2] * reach))

    def add(self, slope: Array, offset: float, size: float = 0.0, pull: float = 0.0) -> None:
        """Add the plane ``slopeᵀ w + offset``; a full bundle first merges what it needs least.

        `size` and `pull` are s and p of the allowance for rounding.
        """
        if len(self._mix) >= self._capacity:
            self._merge()
        products = self._slopes @ slope
        self._gram = np.block(
            [[self._gram, products[:, None]], [products[None], np.array([[slope @ slope]])]]
        )
        self._slopes = np.vstack([self._slopes, slope])
        self._terms = np.vstack([self._terms, (offset, size, pull)])
        self._mix = np.append(self._mix, 0.0)

    def solve(self, alpha: float, best: float = np.inf) -> tuple[float, Array]:
        """Solve the master problem, exactly enough to judge an objective of `best`.

        Returns
        -------
        bound : float
            A lower bound of the objective, whatever the accuracy of the solution; what rounding
            may have added is taken off.
        w : ndarray of shape (n_features,)
            Where the planes and the regularizer together are lowest.
        """
        Q = self._gram / (2 * alpha)
        offsets = self._terms[:, 0]
        self._mix = maximize_on_simplex(Q, offsets, self._mix, best)
        value = float(offsets @ self._mix - 0.5 * (self._mix @ Q @ self._mix))
        if offsets[-1] - 0.5 * Q[-1, -1] > value:  # happens near the minimum of a smooth loss
            self._mix = np.zeros(len(self._mix))
            self._mix[-1] = 1.0
        used = self._mix > 0
        slope = self._mix[used] @ self._slopes[used]
        offset, size, pull = (self._mix[used] @ self._terms[used]).tolist()
        w, norm = slope / (-2 * alpha), float(slope @ slope) / (4 * alpha)
        wrong = self._rounding * pull * self._magnitude  # of the slope
        rounding = self._rounding * size + 4 * EPSILON * norm
        rounding += float(wrong @ np.abs(w)) + float(wrong @ wrong) / (4 * alpha)
        return offset - norm - rounding, w

    def _merge(self) -> None:
        """Keep the half that the solution uses most, and their mixture: the bound stays."""
        mix = self._mix
        kept = np.sort(np.argsort(mix)[len(mix) // 2 :])
        kept = np.unique(np.r_[0, kept])
        slope, terms = mix @ self._slopes, mix @ self._terms
        self._slopes, self._terms = self._slopes[kept], self._terms[kept]
        self._gram = self._gram[np.ix_(kept, kept)]
        self._mix = np.zeros(len(kept))
        self.add(slope, *terms.tolist())
        self._mix[-1] = 1.0


def maximize_on_simplex(
    Q: Array, c: Array, start: Array, ceiling: float = np.inf, max_steps: int = 500
) -> Array:
    """Maximize ``cᵀ x − xᵀ Q x / 2`` over x ≥ 0 with Σ x = 1, by the active-set method.

    Parameters
    ----------
    Q : ndarray of shape (n, n)
        Positive semidefinite.
    c : ndarray of shape (n,)
        Linear part.
    start : ndarray of shape (n,)
        A point of the simplex.
    ceiling : float
        An upper bound of the maximum. The search stops when the distance to the maximum is a small
        share of the distance to this bound.
    max_steps : int
        Limit of changes of the active set.

    Returns
    -------
    ndarray of shape (n,)
        A point of the simplex; the maximizer unless the limit was reached.
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
            x = np.where(active, np.maximum(x, 0.0), 0.0)
            x /= x.sum()
            continue
        x[face] = target
        x /= x.sum()
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
    """Maximizer of ``cᵀ x − xᵀ Q x / 2`` subject to Σ x = 1 alone.

    A small number on the diagonal makes Q regular. Two corrections remove its effect, which for a
    small α would be larger than the objective.
    """
    n = len(c)
    diagonal = Q.diagonal()
    least = max(1e-24 * float(diagonal.max()), 1e-16 * float(np.abs(c).max()), 1e-300)
    scale = 1 / np.sqrt(np.maximum(diagonal, least))
    bordered = np.zeros((n + 1, n + 1))
    bordered[:n, :n] = Q * scale[:, None] * scale
    bordered[n, :n] = bordered[:n, n] = scale / scale.max()
    right = np.append(c * scale, 1 / scale.max())
    regular = bordered.copy()
    regular[np.arange(n), np.arange(n)] += 1e-14 * n
    try:
        inverse = np.linalg.inv(regular)
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
    x = inverse @ right
    for _ in range(CORRECTIONS):
        x += inverse @ (right - bordered @ x)
    return np.asarray(x[:n] * scale)
