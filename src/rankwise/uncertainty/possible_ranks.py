"""Roots of covariance matrices of scores, and the ranks that they make possible."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from rankwise.arrays import Array, Indices
from rankwise.groups import encode_groups, indices_by_group

COVARIANCE_LIMIT = 2000
"""Lists with more items use s_i + s_j as the error of a difference."""
JOINT_LIMIT = 300
"""With more items the joint quantile is Bonferroni's instead of simulated."""
JOINT_DRAWS = 1000
EQUAL = 1e-7
"""Scores that differ by less, relative to the largest score, are equal."""


@dataclass(frozen=True)
class CovarianceRoot:
    """Covariance V = F Fᵀ of scores or ratings, stored as its root F.

    Attributes
    ----------
    root : ndarray of shape (n_items, n_columns)
        Root of the scores or ratings.
    freedom : float
        Degrees of freedom of Student's t for the intervals.
    effects_root : ndarray of shape (n_covariates, n_columns)
        Root of the effects of the covariates of a leaderboard; no rows for a ranker.
    is_from_draws : bool
        Whether the columns of F are random draws, so that V is an estimate.
    unknowns_root : ndarray of shape (n_unknowns, n_columns) or None
        Root of the unknowns of the model of a leaderboard, for sums of ratings; None for a ranker.
    """

    root: Array
    freedom: float
    effects_root: Array = field(default_factory=lambda: np.empty((0, 0)))
    is_from_draws: bool = False
    unknowns_root: Array | None = None

    @property
    def errors(self) -> Array:
        """Standard error of each score."""
        # Norms of the rows: the square roots of the diagonal of F Fᵀ
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.root, self.root)))

    def error_of_difference(self, i: int, j: int) -> float:
        """Standard error of r_i − r_j."""
        return float(np.linalg.norm(self.root[i] - self.root[j]))

    def quantile(self, probability: float) -> float:
        """Quantile of Student's t."""
        return float(student.ppf(probability, self.freedom))

    def probability(self, ratio: float) -> float:
        """Distribution function of Student's t."""
        return float(student.cdf(ratio, self.freedom))


def ranks_within(scores: Array, lists: Indices) -> Indices:
    """Rank of each item in its list, 1 for the highest score; ties share the best rank."""
    return encode_groups(lists, len(scores)).rank(scores, _tie_tolerance(scores))


def _tie_tolerance(scores: Array) -> float:
    """Difference up to which scores are tied."""
    return EQUAL * float(np.abs(scores).max(initial=0.0))


def possible_ranks(
    scores: Array,
    spread: CovarianceRoot,
    lists: Indices,
    confidence: float,
    quantile: float | None = None,
) -> tuple[Indices, Indices]:
    """Best and worst rank of each item in its list.

    Item j is significantly above item i if the interval of ``f_j − f_i`` is above 0. The best rank
    is 1 + the number of items significantly above, the worst rank excludes the items significantly
    below. An interval misses the true rank k only if more items are falsely above than are truly
    but not significantly above. So the intervals contain the true ranks with at least the given
    confidence on average over the items (98–99% for 95% in simulations), but not for all items at
    once, and not for the true winner among equal items; use the `quantile` of `joint_quantile` for
    these. In lists of more than 2,000 items the error of a difference is bounded by s_i + s_j.

    Parameters
    ----------
    scores : ndarray of shape (n_items,)
        Scores or ratings.
    spread : CovarianceRoot
        Their covariance.
    lists : ndarray of int, shape (n_items,)
        Number of the list of each item.
    confidence : float
        Confidence level of the intervals of differences.
    quantile : float, default=None
        Half width of the intervals in standard errors; None takes Student's t.

    Returns
    -------
    best, worst : ndarray of int, shape (n_items,)
        Ends of the intervals of the ranks.
    """
    if quantile is None:  # of Student's t distribution, for one difference at a time
        quantile = spread.quantile((1 + confidence) / 2)
    best = np.empty(len(scores), np.intp)
    worst = np.empty(len(scores), np.intp)
    for items in indices_by_group(lists):
        rank_bounds = _rank_bounds_of_list
        if len(items) > COVARIANCE_LIMIT:
            rank_bounds = _rank_bounds_of_long_list
        best[items], worst[items] = rank_bounds(scores[items], spread.root[items], quantile)
    return best, worst


def _rank_bounds_of_list(
    scores: Array, covariance_root: Array, quantile: float
) -> tuple[Indices, Indices]:
    """Best and worst ranks in one list, by the standard errors of all differences."""
    # The best rank counts the items that are significantly above, the worst rank those below
    covariance = covariance_root @ covariance_root.T
    variance = covariance.diagonal()
    variance_of_difference = variance[:, None] + variance - 2 * covariance
    standard_error = np.sqrt(np.maximum(variance_of_difference, 0.0))
    half_width = quantile * standard_error + _tie_tolerance(scores)
    is_above = scores - scores[:, None] > half_width  # [i, j]: j is significantly above i
    n_above = is_above.sum(axis=1)
    n_below = is_above.sum(axis=0)
    return 1 + n_above, len(scores) - n_below


def _rank_bounds_of_long_list(
    scores: Array, covariance_root: Array, quantile: float
) -> tuple[Indices, Indices]:
    """Best and worst ranks in one list, where s_i + s_j bounds the error of a difference."""
    # Intervals of the scores instead of all differences
    n_items = len(scores)
    standard_errors = np.linalg.norm(covariance_root, axis=1)
    half_width = quantile * standard_errors
    low = scores - half_width
    # the tolerance once for two intervals, so that equal scores do not differ significantly
    high = scores + half_width + _tie_tolerance(scores)
    # Item j is significantly above item i if its interval begins above the end of that of i
    n_above = n_items - np.searchsorted(np.sort(low), high, side="right")
    n_below = np.searchsorted(np.sort(high), low, side="left")
    return 1 + n_above, n_items - n_below


def joint_quantile(spread: CovarianceRoot, lists: Indices, confidence: float) -> float:
    """Quantile of the largest |d_ij − δ_ij| / s_ij over all pairs of a list (max-t).

    Intervals of differences with this half width in standard errors hold simultaneously. The
    quantile is simulated; for more than 300 items it is Bonferroni's, which is slightly larger.
    """
    # Quantile for intervals of all differences inside the lists at once; lists: list of each item
    items_of_lists = indices_by_group(lists)
    n_pairs = sum(len(items) * (len(items) - 1) // 2 for items in items_of_lists)
    if len(lists) > JOINT_LIMIT or n_pairs == 0:  # too many items to simulate
        bonferroni_level = (1 - confidence) / max(1, n_pairs)
        return spread.quantile(1 - bonferroni_level / 2)

    # Errors of the scores, drawn from Student's t distribution with this covariance
    rng = np.random.default_rng(0)
    root = spread.root
    largest_entry = float(np.abs(root).max(initial=0.0))
    if largest_entry > 0:
        root = root / largest_entry  # ratios stay the same; single precision overflows at 3e38
    normal = rng.standard_normal((root.shape[1], JOINT_DRAWS))
    scale = np.sqrt(rng.chisquare(spread.freedom, JOINT_DRAWS) / spread.freedom)
    errors = (root @ (normal / scale)).astype(np.float32)

    # In each draw the largest standardized difference of two errors of a list
    largest_ratio = np.zeros(JOINT_DRAWS)
    for items in items_of_lists:
        largest_of_list = _largest_ratios(errors[items], root[items])
        largest_ratio = np.maximum(largest_ratio, largest_of_list)
    return float(np.quantile(largest_ratio, confidence))


def _largest_ratios(errors: NDArray[np.float32], root: Array) -> Array:
    """Largest |e_i − e_j| / s_ij over the pairs of a list, for each draw of the errors e."""
    # For each draw the largest |error i − error j| / standard error over all pairs of items
    n_items, n_draws = errors.shape
    largest = np.zeros(n_draws)
    for i in range(n_items - 1):
        standard_error = np.linalg.norm(root[i + 1 :] - root[i], axis=1)
        has_error = standard_error > 0
        differences = np.abs(errors[i + 1 :][has_error] - errors[i])
        ratios = differences / standard_error[has_error, None]
        largest = np.maximum(largest, ratios.max(axis=0, initial=0.0))
    return largest
