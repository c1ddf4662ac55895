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
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.losses import Plane

Mask = NDArray[np.bool_]
MAX_PLANES = 250
MAX_ENTRIES = 2**27  # one GiB of planes
EPSILON = float(np.finfo(np.float64).eps)
N_REFINEMENTS = 2  # of each solution for the active entries
MASTER_TOLERANCE = 0.02  # error of the master problem, as a share of the gap to the best objective
RELATIVE_TOLERANCE = 1e-10  # error of the master problem, as a share of its value
MAX_ACTIVE_SET_CHANGES = 500
ZERO_PLANE = Plane(0.0, 0.0, 0.0)  # a loss is never negative


class Bundle:
    """Planes below a loss that is never negative.

    Parameters
    ----------
    largest_feature_values : ndarray of shape (n_features,)
        |R|, the largest absolute values of the columns.
    n_items : int
        Number of terms of a sum over items; 0 makes no allowance for rounding.
    max_planes : int, default=250
        Number of planes of a full bundle; fewer if they would take too much memory.
    """

    def __init__(
        self, largest_feature_values: Array, n_items: int, max_planes: int = MAX_PLANES
    ) -> None:
        n_features = len(largest_feature_values)
        n_planes_in_memory = MAX_ENTRIES // max(1, n_features)
        self._capacity = max(4, min(max_planes, n_planes_in_memory))
        self._slopes = np.zeros((1, n_features))  # a_t of each plane
        self._planes = np.array([ZERO_PLANE])  # a loss is at least 0
        self._gram = np.zeros((1, 1))  # inner products of the slopes
        self._mixture_weights = np.ones(1)  # λ of the last solution
        self._largest_feature_values = largest_feature_values
        # η: relative rounding error of a sum over features, then over items
        self._rounding_unit = 0.0
        if n_items:
            self._rounding_unit = EPSILON * (4 + np.sqrt(n_items + n_features))

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
        # η (1 + value + Σ |terms of the gradient| · largest |score|), η: relative rounding error
        largest_score = float(self._largest_feature_values @ np.abs(w))
        return float(self._rounding_unit * (1 + value + plane.gradient_terms * largest_score))

    def add(self, slope: Array, plane: Plane) -> None:
        """Add the plane ``slopeᵀ w + plane.offset``; a full bundle first merges half its planes."""
        if len(self._planes) >= self._capacity:
            self._merge_half()  # makes room
        products = self._slopes @ slope
        squared_norm = np.array([[slope @ slope]])
        self._gram = np.block([[self._gram, products[:, None]], [products[None], squared_norm]])
        self._slopes = np.vstack([self._slopes, slope])
        self._planes = np.vstack([self._planes, plane])
        self._mixture_weights = np.append(self._mixture_weights, 0.0)

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
            A lower bound of the objective, less the allowance for rounding. It is valid for any
            accuracy of the solution.
        w : ndarray of shape (n_features,)
            The minimizer of the mixture of planes plus the regularizer.
        """
        # plane t is slope_tᵀ w + offset_t, at most the loss; minimized over w with the penalty
        # α ‖w‖² added, a mixture of the planes with weights λ has the value offsetsᵀ λ − λᵀ Q λ / 2
        Q = self._gram / (2 * alpha)
        offsets = self._planes[:, 0]
        weights = maximize_on_simplex(Q, offsets, self._mixture_weights, best_objective)
        bound = float(offsets @ weights - 0.5 * (weights @ Q @ weights))
        bound_by_newest_plane = offsets[-1] - 0.5 * Q[-1, -1]
        if bound_by_newest_plane > bound:  # happens near the minimum of a smooth loss
            weights = np.zeros(len(weights))
            weights[-1] = 1.0
        self._mixture_weights = weights

        is_used = weights > 0
        slope, mixture = self._mixture_of(weights, is_used)
        w = slope / (-2 * alpha)  # minimizes slopeᵀ w + α ‖w‖²
        penalty = float(slope @ slope) / (4 * alpha)  # α ‖w‖²
        rounding_error = self._rounding_of_bound(mixture, w, penalty, alpha)
        return mixture.offset - penalty - rounding_error, w

    def _mixture_of(self, weights: Array, is_used: Mask | slice) -> tuple[Array, Plane]:
        """Slope and offset of the weighted mean of these planes."""
        slope = weights[is_used] @ self._slopes[is_used]
        offset_and_terms = weights[is_used] @ self._planes[is_used]
        return slope, Plane(*offset_and_terms.tolist())

    def _rounding_of_bound(self, mixture: Plane, w: Array, penalty: float, alpha: float) -> float:
        """Bound of the rounding error of a bound: the formula of the module's docstring."""
        # η (s + p |R|ᵀ|w|) + ‖η p |R|‖²/(4α) + 4 ε α ‖w‖² with the offset terms s, the gradient
        # terms p, the largest values |R| of the features, and the penalty α ‖w‖²
        slope_error = self._rounding_unit * mixture.gradient_terms * self._largest_feature_values
        rounding_error = self._rounding_unit * mixture.offset_terms + 4 * EPSILON * penalty
        rounding_error += float(slope_error @ np.abs(w))
        rounding_error += float(slope_error @ slope_error) / (4 * alpha)
        return rounding_error

    def _merge_half(self) -> None:
        """Replace half of the planes by the mixture of all planes, which keeps the bound."""
        # keep the planes of large weight, and the mixture of all: it alone gives the same bound
        weights = self._mixture_weights
        all_planes = slice(None)
        slope, mixture = self._mixture_of(weights, all_planes)
        largest_half = np.argsort(weights)[len(weights) // 2 :]
        remaining = np.union1d([0], largest_half)  # plane 0 is the zero plane
        self._slopes = self._slopes[remaining]
        self._planes = self._planes[remaining]
        self._gram = self._gram[np.ix_(remaining, remaining)]
        self._mixture_weights = np.zeros(len(remaining))
        self.add(slope, mixture)
        self._mixture_weights[-1] = 1.0


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

    # maximize cᵀ x − xᵀ Q x / 2 over x ≥ 0 with Σ x = 1, by an active-set method
    def value_at(point: Array) -> float:
        return float(c @ point - 0.5 * (point @ Q @ point))

    x = start.copy()
    is_active = start > 0  # entries that may be positive
    for _ in range(max_steps):
        active = np.flatnonzero(is_active)
        active_maximizer = _maximize_without_bounds(Q[np.ix_(active, active)], c[active])
        if not np.isfinite(active_maximizer).all():
            break
        if (active_maximizer < 0).any():  # stop at the boundary, where one more entry is zero
            zero_entry = _move_until_zero(x, active, active_maximizer)
            is_active[zero_entry] = False
            x = np.where(is_active, np.maximum(x, 0.0), 0.0)
            x /= x.sum()
            continue
        x[active] = active_maximizer
        x /= x.sum()

        # activate the entry of steepest ascent, unless the possible gain is negligible
        Qx = Q @ x
        gradient = c - Qx
        steepest = int(np.argmax(gradient))
        value = float(c @ x - 0.5 * (x @ Qx))
        tolerance = RELATIVE_TOLERANCE * abs(value)
        if np.isfinite(upper_bound):
            tolerance = max(tolerance, MASTER_TOLERANCE * (upper_bound - value))
        possible_gain = gradient[steepest] - float(x @ gradient)  # the maximum is not higher
        if is_active[steepest] or possible_gain <= tolerance:
            break
        is_active[steepest] = True
    if value_at(x) >= value_at(start):
        return x
    return start  # rounding made it worse, or it is nan


def _move_until_zero(x: Array, active: Indices, target: Array) -> int:
    """Move x[active] towards the target until an entry is 0; the index of that entry in x."""
    # change x towards the target until its first entry is zero; first, for each entry that is
    # negative in the target, the step at which it becomes zero
    is_negative = target < 0
    step = np.ones(len(active))
    step[is_negative] = x[active][is_negative] / (x[active] - target)[is_negative]
    first_zero = int(np.argmin(step))
    x[active] += step[first_zero] * (target - x[active])
    return int(active[first_zero])


def _maximize_without_bounds(Q: Array, c: Array) -> Array:
    """Maximizer of ``cᵀ x − xᵀ Q x / 2`` subject to Σ x = 1 only; nan if the system is singular.

    A small number on the diagonal makes Q regular. Two steps of iterative refinement remove its
    effect, which for a small α would be larger than the objective.
    """
    # maximize cᵀ x − xᵀ Q x / 2 with Σ x = 1, where entries of x may be negative
    n = len(c)
    diagonal = Q.diagonal()
    smallest_pivot = max(1e-24 * float(diagonal.max()), 1e-16 * float(np.abs(c).max()), 1e-300)
    scale = 1 / np.sqrt(np.maximum(diagonal, smallest_pivot))

    # the conditions Q x + μ 1 = c and 1ᵀ x = 1, for x / scale
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = Q * scale[:, None] * scale
    system[n, :n] = scale / scale.max()
    system[:n, n] = scale / scale.max()
    right_hand_side = np.append(c * scale, 1 / scale.max())

    # invert a slightly regularized system, and refine its solution by the residuals
    regular_system = system.copy()
    regular_system[np.arange(n), np.arange(n)] += 1e-14 * n
    try:
        inverse = np.linalg.inv(regular_system)
    except np.linalg.LinAlgError:
        return np.full(n, np.nan)
    scaled_x = inverse @ right_hand_side
    for _ in range(N_REFINEMENTS):
        scaled_x += inverse @ (right_hand_side - system @ scaled_x)
    return np.asarray(scaled_x[:n] * scale)
