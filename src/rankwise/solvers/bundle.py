"""A bundle of planes below the loss: the lower bound that certifies a solution.

Each plane ``aᵀ w + b`` lies below the convex loss R(w) everywhere, so that for any λ of the
simplex (λ ≥ 0, Σ λ = 1), with ``a_λ = Σ λ_t a_t``,

    min_w R(w) + α ‖w‖²  ≥  min_w a_λᵀ w + b_λ + α ‖w‖²  =  b_λ − ‖a_λ‖²/(4α)

([TreeRSVM11] section 3). The best λ solves the master problem; any other λ gives a weaker bound,
never a wrong one. Planes do not depend on α, so a path over α keeps them.

Rounding errors can make a bound too large, so the reported bound is reduced by an allowance for
them. With w the minimizer of the mixture, ``|R|`` the largest absolute values of the columns, and
for each plane s_t and p_t the sums of the absolute values of the terms of its offset and of its
derivatives in the scores (`Plane.offset_terms` and `Plane.gradient_terms`; |b_t| and
max(‖u_t‖₁, 2 |b_t|) for the hinge), the allowance is

    η Σ λ_t (s_t + p_t |R|ᵀ|w|) + ‖η Σ λ_t p_t |R|‖²/(4α) + 4 ε α ‖w‖²

with ``η = ε (4 + √(n_items + n_features))`` and ε = 2⁻⁵²,
since a_t is a sum of products of u_t and R. A plane lies below the loss even if rounding moved the
scores at which it was computed.
Rounding errors of either sign grow with the square root of their number (Higham, Accuracy and
Stability of Numerical Algorithms, section 2.8).
"""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.losses import Plane

MAX_PLANES = 250
MAX_ENTRIES = 2**27  # one GiB of planes
EPSILON = float(np.finfo(np.float64).eps)
N_REFINEMENTS = 2  # of each solution on a face of the simplex
MASTER_TOLERANCE = 0.02  # error of the master problem, as a share of the gap to the best objective
RELATIVE_TOLERANCE = 1e-10  # error of the master problem, as a share of its value
MAX_ACTIVE_SET_CHANGES = 500
ZERO_PLANE = Plane(0.0, 0.0, 0.0)  # a loss is never negative


class Bundle:
    """Planes below a loss that is never negative.

    Parameters
    ----------
    magnitude : ndarray of shape (n_features,)
        |R|, the largest absolute values of the columns.
    n_items : int
        Number of terms of a sum over items; 0 makes no allowance for rounding.
    max_planes : int, default=250
        Number of planes of a full bundle; fewer if they would take too much memory.
    """

    def __init__(self, magnitude: Array, n_items: int, max_planes: int = MAX_PLANES) -> None:
        n_features = len(magnitude)
        planes_in_memory = MAX_ENTRIES // max(1, n_features)
        self._capacity = max(4, min(max_planes, planes_in_memory))
        self._slopes = np.zeros((1, n_features))
        self._planes = np.array([ZERO_PLANE])
        self._gram = np.zeros((1, 1))
        self._mix = np.ones(1)
        self._magnitude = magnitude
        self._rounding = 0.0
        if n_items:
            self._rounding = EPSILON * (4 + np.sqrt(n_items + n_features))

    def rounding_of(self, value: float, plane: Plane, w: Array) -> float:
        """Bound of the rounding error of an objective.

        Parameters
        ----------
        value : float
            The objective at w.
        plane : Plane
            Of the loss at w.
        w : ndarray of shape (n_features,)
            Weights.
        """
        largest_score = float(self._magnitude @ np.abs(w))
        return float(self._rounding * (1 + value + plane.gradient_terms * largest_score))

    def add(self, slope: Array, plane: Plane) -> None:
        """Add the plane ``slopeᵀ w + plane.offset``; a full bundle first merges half its planes."""
        if len(self._mix) >= self._capacity:
            self._merge()
        products = self._slopes @ slope
        square = np.array([[slope @ slope]])
        self._gram = np.block([[self._gram, products[:, None]], [products[None], square]])
        self._slopes = np.vstack([self._slopes, slope])
        self._planes = np.vstack([self._planes, plane])
        self._mix = np.append(self._mix, 0.0)

    def solve(self, alpha: float, best_objective: float = np.inf) -> tuple[float, Array]:
        """Solve the master problem, accurately enough to judge an objective of `best_objective`.

        Parameters
        ----------
        alpha : float
            α.
        best_objective : float, default=inf
            An upper bound of the minimum.

        Returns
        -------
        bound : float
            A lower bound of the objective, less the allowance for rounding. It is valid whatever
            the accuracy of the solution.
        w : ndarray of shape (n_features,)
            The minimizer of the mixture of planes plus the regularizer.
        """
        Q = self._gram / (2 * alpha)
        offsets = self._planes[:, 0]
        self._mix = maximize_on_simplex(Q, offsets, self._mix, best_objective)
        value = float(offsets @ self._mix - 0.5 * (self._mix @ Q @ self._mix))
        value_of_newest = offsets[-1] - 0.5 * Q[-1, -1]
        if value_of_newest > value:  # happens near the minimum of a smooth loss
            self._mix = np.zeros(len(self._mix))
            self._mix[-1] = 1.0
        is_used = self._mix > 0
        slope = self._mix[is_used] @ self._slopes[is_used]
        mixture = Plane(*(self._mix[is_used] @ self._planes[is_used]).tolist())
        w = slope / (-2 * alpha)
        penalty = float(slope @ slope) / (4 * alpha)  # α ‖w‖²
        allowance = self._allowance(mixture, w, penalty, alpha)
        return mixture.offset - penalty - allowance, w

    def _allowance(self, mixture: Plane, w: Array, penalty: float, alpha: float) -> float:
        """Bound of the rounding error of a bound: the formula of the module's docstring."""
        slope_error = self._rounding * mixture.gradient_terms * self._magnitude
        allowance = self._rounding * mixture.offset_terms + 4 * EPSILON * penalty
        allowance += float(slope_error @ np.abs(w))
        allowance += float(slope_error @ slope_error) / (4 * alpha)
        return allowance

    def _merge(self) -> None:
        """Keep the half with the largest weights, and the mixture of all: the bound stays."""
        mix = self._mix
        largest_half = np.argsort(mix)[len(mix) // 2 :]
        remaining = np.union1d([0], largest_half)
        slope = mix @ self._slopes
        mixture = Plane(*(mix @ self._planes).tolist())
        self._slopes = self._slopes[remaining]
        self._planes = self._planes[remaining]
        self._gram = self._gram[np.ix_(remaining, remaining)]
        self._mix = np.zeros(len(remaining))
        self.add(slope, mixture)
        self._mix[-1] = 1.0


def maximize_on_simplex(
    Q: Array,
    c: Array,
    start: Array,
    upper_bound: float = np.inf,
    max_steps: int = MAX_ACTIVE_SET_CHANGES,
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
    upper_bound : float, default=inf
        An upper bound of the maximum. The search stops when the distance to the maximum is a small
        share of the distance to this bound.
    max_steps : int, default=500
        Limit of changes of the active set.

    Returns
    -------
    ndarray of shape (n,)
        A point of the simplex; the maximizer unless the limit was reached.
    """

    def value_at(point: Array) -> float:
        return float(c @ point - 0.5 * (point @ Q @ point))

    x = start.copy()
    is_active = start > 0
    for _ in range(max_steps):
        face = np.flatnonzero(is_active)
        target = _maximize_on_face(Q[np.ix_(face, face)], c[face])
        if not np.isfinite(target).all():
            break
        if (target < 0).any():
            first = _move_to_boundary(x, face, target)
            is_active[first] = False
            x = np.where(is_active, np.maximum(x, 0.0), 0.0)
            x /= x.sum()
            continue
        x[face] = target
        x /= x.sum()
        gradient = c - Q @ x
        steepest = int(np.argmax(gradient))
        value = value_at(x)
        tolerance = RELATIVE_TOLERANCE * abs(value)
        if np.isfinite(upper_bound):
            tolerance = max(tolerance, MASTER_TOLERANCE * (upper_bound - value))
        possible_gain = gradient[steepest] - float(x @ gradient)
        if is_active[steepest] or possible_gain <= tolerance:
            break
        is_active[steepest] = True
    if value_at(x) >= value_at(start):
        return x
    return start  # rounding made it worse, or it is nan


def _move_to_boundary(x: Array, face: Indices, target: Array) -> int:
    """Move x along the face towards the target until an entry is 0; the number of that entry."""
    is_negative = target < 0
    step = np.ones(len(face))
    step[is_negative] = x[face][is_negative] / (x[face] - target)[is_negative]
    first = int(np.argmin(step))
    x[face] += step[first] * (target - x[face])
    return int(face[first])


def _maximize_on_face(Q: Array, c: Array) -> Array:
    """Maximizer of ``cᵀ x − xᵀ Q x / 2`` subject to Σ x = 1 only; nan if the system is singular.

    A small number on the diagonal makes Q regular. Two steps of iterative refinement remove its
    effect, which for a small α would be larger than the objective.
    """
    n = len(c)
    diagonal = Q.diagonal()
    smallest_pivot = max(1e-24 * float(diagonal.max()), 1e-16 * float(np.abs(c).max()), 1e-300)
    scale = 1 / np.sqrt(np.maximum(diagonal, smallest_pivot))
    bordered = np.zeros((n + 1, n + 1))
    bordered[:n, :n] = Q * scale[:, None] * scale
    bordered[n, :n] = scale / scale.max()
    bordered[:n, n] = scale / scale.max()
    right = np.append(c * scale, 1 / scale.max())
    regular = bordered.copy()
    regular[np.arange(n), np.arange(n)] += 1e-14 * n
    try:
        inverse = np.linalg.inv(regular)
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
    x = inverse @ right
    for _ in range(N_REFINEMENTS):
        x += inverse @ (right - bordered @ x)
    return np.asarray(x[:n] * scale)
