"""Ranks and tiers from the errors of all differences, each with its own degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array, Indices, Mask
from rankwise.groups import indices_by_group
from rankwise.leaderboard.inference.pair_errors import PairErrors
from rankwise.leaderboard.inference.ranks import IntervalColumns, RatedItems, holm_rejects
from rankwise.uncertainty.possible_ranks import CovarianceRoot, joint_quantile

WIDEST_INTERVAL = 100.0  # times the range of the ratings; wider intervals are not informative


@dataclass(frozen=True, eq=False)
class RatingErrors:
    """Errors of the ratings of a board of scores.

    Attributes
    ----------
    pair_errors : PairErrors
        Errors of all differences; the last row is the reference of the ratings, such as the mean of
        the ranked models.
    spread : CovarianceRoot or None
        Covariance of the ratings, if simultaneous statements use the largest of all errors; None if
        they use Holm's procedure.
    rounding : float
        Differences up to this size are rounding errors.
    """

    pair_errors: PairErrors
    spread: CovarianceRoot | None
    rounding: float

    def differences(self, ratings: Array) -> Array:
        """Return all differences, rounding errors as 0."""
        differences = ratings[:, None] - ratings
        differences[np.abs(differences) <= self.rounding] = 0.0
        return differences


def interval_columns_by_pairs(
    rated: RatedItems, errors: RatingErrors, *, reference: float, confidence: float
) -> IntervalColumns:
    """Return intervals, possible ranks and tiers.

    Parameters
    ----------
    rated : RatedItems
        Ratings. Items that are not rated have no interval, and items with few data no tier.
    errors : RatingErrors
        Errors of their differences.
    reference : float
        Rating of the reference; the interval of a rating is that of its difference to it.
    confidence : float
        Confidence of the intervals.
    """
    n_items = len(rated.items)
    reference_row = n_items  # the last row and column of the errors are the reference
    half_widths = errors.pair_errors.half_widths(reference_row, confidence)[:n_items]
    # An interval much wider than the range of all ratings is not informative
    widest = WIDEST_INTERVAL * float(np.ptp(rated.ratings)) + errors.rounding
    has_interval = rated.is_rated & (half_widths <= widest)  # False for NaN
    half_widths[~has_interval] = np.nan

    all_differences = errors.differences(np.append(rated.ratings, reference))
    p_values = errors.pair_errors.p_values(all_differences)[:n_items, :n_items]
    differences = all_differences[:n_items, :n_items]
    is_same_component = rated.components[:, None] == rated.components
    is_comparable = is_same_component & rated.is_ranked[:, None] & rated.is_ranked
    p_values[~is_comparable] = 1.0

    level = 1 - confidence
    is_apart = (p_values <= level) & is_comparable
    best_rank, worst_rank = ranks_of_pairs(differences, is_apart, is_comparable)
    # Intervals that hold for all ranks at once
    is_apart_at_once = simultaneous_differences(rated, errors, p_values, is_comparable, level)
    best_of_all, worst_of_all = ranks_of_pairs(differences, is_apart_at_once, is_comparable)

    tiers = np.zeros(n_items, np.intp)
    has_tier = rated.is_ranked & ~rated.win_counts.thin  # thin: few data
    for component_items in indices_by_group(rated.components):
        items = component_items[has_tier[component_items]]
        tiers[items] = tiers_of_pairs(rated.ratings[items], is_apart[np.ix_(items, items)])
    return IntervalColumns(
        low=rated.ratings - half_widths,
        high=rated.ratings + half_widths,
        best_rank=best_rank,
        worst_rank=worst_rank,
        best_of_all=best_of_all,
        worst_of_all=worst_of_all,
        tier=tiers,
    )


def ranks_of_pairs(
    differences: Array, is_apart: Mask, is_comparable: Mask
) -> tuple[Indices, Indices]:
    """Best and worst rank of each item by the pairs that differ; 0 for items without a rank.

    The best rank is 1 + the number of items significantly above, the worst rank is the number of
    items that are not significantly below.
    """
    is_ranked = is_comparable.diagonal()  # every ranked item is comparable with itself
    n_comparable = is_comparable.sum(axis=1)
    # Items that are certainly above or below each item
    n_above = np.sum(is_apart & (differences < 0), axis=1)
    n_below = np.sum(is_apart & (differences > 0), axis=1)
    best = np.where(is_ranked, 1 + n_above, 0)
    worst = np.where(is_ranked, n_comparable - n_below, 0)
    return best, worst


def simultaneous_differences(
    rated: RatedItems, errors: RatingErrors, p_values: Array, is_comparable: Mask, level: float
) -> Mask:
    """Pairs that differ, all statements together being true with the confidence 1 − level.

    By the largest of all errors if these have a common covariance, else by Holm's procedure.
    """
    spread = errors.spread  # root of the common covariance of all ratings
    if spread is None:  # no common covariance: Holm's procedure
        first, second = np.nonzero(np.triu(is_comparable, k=1))
        is_rejected = holm_rejects(p_values[first, second], level)
        is_apart = np.zeros_like(is_comparable)
        is_apart[first[is_rejected], second[is_rejected]] = True  # first < second only
        return is_apart | is_apart.T

    # One quantile for all differences, of the largest |t| (max-t).
    ranked = np.flatnonzero(rated.is_ranked)
    ranked_spread = CovarianceRoot(spread.root[ranked], spread.freedom)
    quantile = joint_quantile(ranked_spread, rated.components[ranked], 1 - level)
    absolute_difference = np.abs(errors.differences(rated.ratings))
    n_items = len(rated.items)  # without the reference, the last row and column of the variances
    # A common covariance is of a complete table, for which there is no masking test.
    variance = errors.pair_errors.by_tasks_or_seeds.variance[:n_items, :n_items]
    return (absolute_difference > quantile * np.sqrt(variance)) & is_comparable


def tiers_of_pairs(ratings: Array, is_apart: Mask) -> Indices:
    """Number the tiers; a tier ends before the first item significantly below its first item."""
    # An item that is certainly below the first item of a tier begins the next tier.
    tiers = np.ones(len(ratings), np.intp)
    tier = 1
    first_of_tier = None
    for item in np.argsort(-ratings, kind="stable").tolist():
        if first_of_tier is None:
            first_of_tier = item
        if is_apart[first_of_tier, item]:
            tier += 1
            first_of_tier = item
        tiers[item] = tier
    return tiers
