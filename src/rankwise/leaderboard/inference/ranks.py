"""Ranks, possible ranks, tiers and win counts of a board."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from rankwise.arrays import AnyArray, Array, Indices, Labels
from rankwise.datasets.pair_data import Rankings
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.uncertainty.possible_ranks import (
    COVARIANCE_LIMIT,
    EQUAL,
    CovarianceRoot,
    joint_quantile,
    possible_ranks,
    ranks_within,
)

FEW = 5  # comparisons; an item with fewer has few data
FEW_UNITS = 20  # effective clusters or comparisons; with fewer, Holm's procedure is used
COLUMNS = (
    "rank",
    "item",
    "rating",
    "low",
    "high",
    "best_rank",
    "worst_rank",
    "best_of_all",
    "worst_of_all",
    "tier",
    "n",
    "wins",
    "ties",
    "losses",
    "thin",
    "component",
)


class WinCounts(NamedTuple):
    """Comparisons of each item by outcome.

    Attributes
    ----------
    n : ndarray of shape (n_items,)
        Number of comparisons, or of rankings.
    wins, ties, losses : ndarray of shape (n_items,)
        Number of comparisons with each outcome.
    thin : ndarray of bool, shape (n_items,)
        Items with few comparisons, or with only one kind of outcome.
    """

    n: Indices
    wins: Indices
    ties: Indices
    losses: Indices
    thin: NDArray[np.bool_]


def win_counts(counts: ComparisonCounts, rankings: Rankings | None) -> WinCounts:
    """Count the outcomes of each item; n is the number of rankings if there are rankings."""
    result_of_first = np.sign(counts.target)  # 1 is a win, 0 a tie, −1 a loss

    def count_by_item(result: int) -> Indices:
        as_first = counts.sum_by_pair(counts.count * (result_of_first == result))
        as_second = counts.sum_by_pair(counts.count * (result_of_first == -result))
        return counts.sum_by_item(as_first, as_second).astype(np.intp)

    wins = count_by_item(1)
    ties = count_by_item(0)
    losses = count_by_item(-1)
    n_comparisons = wins + ties + losses
    has_one_outcome = np.maximum(np.maximum(wins, ties), losses) == n_comparisons
    n = n_comparisons
    if rankings is not None:  # an item is counted once in each ranking
        n_rankings = np.bincount(rankings.item, minlength=counts.n_items)
        n = np.where(n_comparisons > 0, n_rankings, 0)
    return WinCounts(n, wins, ties, losses, thin=(n < FEW) | has_one_outcome)


class RatedItems(NamedTuple):
    """Ratings of all items of a board, and which of them are ranked.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        Labels.
    ratings : ndarray of shape (n_items,)
        Ratings.
    components : ndarray of shape (n_items,)
        Items with the same number can be compared.
    win_counts : WinCounts
        Outcomes of each item.
    is_rated : ndarray of bool, shape (n_items,)
        Items with a comparison, features or a prior; the others have no interval.
    is_ranked : ndarray of bool, shape (n_items,)
        Items with enough comparisons for a rank.
    """

    items: Labels
    ratings: Array
    components: Indices
    win_counts: WinCounts
    is_rated: NDArray[np.bool_]
    is_ranked: NDArray[np.bool_]


class IntervalColumns(NamedTuple):
    """Columns of a board that depend on the errors of the ratings, in the order of the items.

    Attributes
    ----------
    low, high : ndarray of shape (n_items,)
        Intervals of the ratings; NaN without one.
    best_rank, worst_rank, best_of_all, worst_of_all : ndarray of int, shape (n_items,)
        Possible ranks of each item, and of all items simultaneously; 0 without a rank.
    tier : ndarray of int, shape (n_items,)
        Tiers; 0 without one.
    """

    low: Array
    high: Array
    best_rank: Indices
    worst_rank: Indices
    best_of_all: Indices
    worst_of_all: Indices
    tier: Indices


def rank_table(
    rated: RatedItems, intervals: IntervalColumns | None, *, order: str = "rating"
) -> dict[str, AnyArray | None]:
    """Return the columns of a board by the fields of `LeaderboardRow`, in the order of the board.

    Items that are not ranked are last in their component, with the rank 0. Without intervals,
    possible ranks and tiers are None.
    """
    columns: dict[str, Any] = dict.fromkeys(COLUMNS)  # None: unknown without intervals
    columns |= {"item": rated.items, "rating": rated.ratings, "component": rated.components}
    columns |= rated.win_counts._asdict()
    if intervals is not None:
        columns |= intervals._asdict()

    # Items are ranked within lists. Items that are not ranked are in other lists, with negative
    # numbers, and do not change the ranks of the others.
    ranked_by = columns["low"] if order == "lower" else rated.ratings
    list_of_item = np.where(rated.is_ranked, rated.components, -rated.components)
    rank = np.where(rated.is_ranked, ranks_within(ranked_by, list_of_item), 0)
    columns["rank"] = rank

    # Rows by component, ranked items first, then by rank, then by decreasing rating.
    rank_or_last = np.where(rated.is_ranked, rank, len(rated.items))
    row_order = np.lexsort((-rated.ratings, rank_or_last, ~rated.is_ranked, rated.components))
    return {
        name: None if column is None else np.asarray(column)[row_order]
        for name, column in columns.items()
    }


def interval_columns(
    rated: RatedItems,
    spread: CovarianceRoot,
    *,
    confidence: float,
    n_effective_units: float = np.inf,
    n_units_by_pair: Array | None = None,
) -> IntervalColumns:
    """Return intervals, possible ranks and tiers by the covariance of the ratings.

    Items that are not rated have no interval, and items with few data no tier.

    Parameters
    ----------
    rated : RatedItems
        Ratings.
    spread : CovarianceRoot
        Their covariance.
    confidence : float
        Confidence of the intervals.
    n_effective_units : float
        Effective number of clusters or comparisons, see `effective_number`.
    n_units_by_pair : ndarray of shape (n_items, n_items), optional
        Effective number of clusters of each difference, if clusters are few.
    """
    n_items = len(rated.items)
    half_width = spread.quantile((1 + confidence) / 2) * spread.errors
    half_width = np.where(rated.is_rated, half_width, np.nan)

    # Possible ranks of the ranked items: of each item by itself, and of all items at once
    is_ranked = rated.is_ranked
    ratings = rated.ratings[is_ranked]
    components = rated.components[is_ranked]
    ranked_spread = replace(spread, root=spread.root[is_ranked])
    best_rank, worst_rank = possible_ranks(ratings, ranked_spread, components, confidence)
    if n_units_by_pair is not None:
        n_units_by_pair = n_units_by_pair[np.ix_(is_ranked, is_ranked)]
    best_of_all, worst_of_all = simultaneous_ranks(
        ratings, ranked_spread, components, confidence, n_effective_units, n_units_by_pair
    )

    has_tier = is_ranked & ~rated.win_counts.thin  # thin: few data
    tier_spread = replace(spread, root=spread.root[has_tier])
    tiers = _tiers(rated.ratings[has_tier], tier_spread, rated.components[has_tier], confidence)

    def column_of(selected: NDArray[np.bool_], values: Indices) -> Indices:
        """Return the values at the selected items, and 0 at the others."""
        column = np.zeros(n_items, np.intp)
        column[selected] = values
        return column

    return IntervalColumns(
        low=rated.ratings - half_width,
        high=rated.ratings + half_width,
        best_rank=column_of(is_ranked, best_rank),
        worst_rank=column_of(is_ranked, worst_rank),
        best_of_all=column_of(is_ranked, best_of_all),
        worst_of_all=column_of(is_ranked, worst_of_all),
        tier=column_of(has_tier, tiers),
    )


def effective_number(weights: Array) -> float:
    """Effective number ``(Σ w)² / Σ w²`` of units with these weights (Carter et al. 2017).

    One cluster with half of the weight makes any number of clusters count as fewer than four.
    """
    # (Σ w)² / Σ w²: n for n equal weights. Scaled, since squares of the weights may overflow.
    scaled = weights / weights.max()
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def simultaneous_ranks(
    scores: Array,
    spread: CovarianceRoot,
    lists: Indices,
    confidence: float,
    n_effective_units: float = np.inf,
    n_units_by_pair: Array | None = None,
) -> tuple[Indices, Indices]:
    """Best and worst rank of each item in its list, valid for all items simultaneously.

    From 20 effective clusters (or comparisons) on, two items differ if the interval of their
    difference with the quantile of the largest of all errors excludes 0 (`joint_quantile`). With
    fewer, the rank of the estimated covariance is too low for that: the errors of many differences
    are underestimated together, and the ranges contain all true ranks for 79% of boards with 30
    equal items and 5 clusters, instead of 95%. Then two items differ if Holm's procedure rejects
    that they are equal by Student's t (`differences_by_holm`), which is valid for every dependence
    of the differences.

    The effective number also sets the degrees of freedom: with one judge who has half of the votes
    of 30, the ranges would otherwise contain all true ranks for 38% of boards. With
    `n_units_by_pair` each difference has its own degrees of freedom.
    """
    # Units that the covariance is estimated from, or their effective number if it is smaller
    n_units = min(spread.freedom + 1, n_effective_units)
    has_too_many_pairs = len(scores) > COVARIANCE_LIMIT  # to test each by Holm's procedure
    if n_units >= FEW_UNITS or has_too_many_pairs:
        # One quantile for all differences of a list, of the largest |t| (max-t)
        quantile = joint_quantile(spread, lists, confidence)
        return possible_ranks(scores, spread, lists, confidence, quantile)

    # Few units: Holm's procedure, with degrees of freedom for each pair.
    n_items = len(scores)
    freedom = np.full((n_items, n_items), n_units - 1)
    if n_units_by_pair is not None:
        freedom = n_units_by_pair - 1
    freedom = np.maximum(1.0, freedom)
    pairs = differences_by_holm(scores, spread.root, lists, 1 - confidence, freedom)
    first_is_above = scores[pairs.first] > scores[pairs.second]
    upper = np.where(first_is_above, pairs.first, pairs.second)
    lower = np.where(first_is_above, pairs.second, pairs.first)

    # Items that are certainly above or below each item, within its list
    n_above = np.bincount(lower[pairs.is_apart], minlength=n_items)
    n_below = np.bincount(upper[pairs.is_apart], minlength=n_items)
    _, list_number, sizes = np.unique(lists, return_inverse=True, return_counts=True)
    best = 1 + n_above
    worst = sizes[list_number] - n_below
    return best, worst


class PairDifferences(NamedTuple):
    """Two items of the same list in every entry, and whether their difference is significant."""

    first: Indices
    second: Indices
    is_apart: NDArray[np.bool_]


def differences_by_holm(
    scores: Array, root: Array, lists: Indices, level: float, freedom: Array
) -> PairDifferences:
    """Test all pairs of items of the same list simultaneously, by Student's t of each pair.

    The k-th smallest of m p-values of Student's t is compared with level / (m − k + 1), from the
    smallest on until one is larger (Holm, A simple sequentially rejective multiple test procedure,
    1979). The probability of any false rejection is at most the level.
    """
    # root @ rootᵀ is the covariance of the scores
    first_items = []
    second_items = []
    t_statistics = []
    for items in indices_by_group(lists):  # all pairs of items of each list
        row, column = np.triu_indices(len(items), k=1)
        first_items.append(items[row])
        second_items.append(items[column])
        t_statistics.append(_t_statistics(scores[items], root[items], row, column))
    first = np.concatenate(first_items)
    second = np.concatenate(second_items)
    p_values = 2 * student.sf(np.concatenate(t_statistics), freedom[first, second])
    return PairDifferences(first, second, holm_rejects(p_values, level))


def _t_statistics(scores: Array, root: Array, row: Indices, column: Indices) -> Array:
    """|difference| / standard error of pairs; 0 for equal scores, infinite without an error."""
    covariance = root @ root.T  # of the scores
    variances = covariance.diagonal()
    difference_variance = variances[row] + variances[column] - 2 * covariance[row, column]
    error = np.sqrt(np.maximum(difference_variance, 0.0))

    rounding = EQUAL * np.abs(scores).max(initial=0.0)
    # Less the rounding error, so that it is 0 between equal scores
    absolute_difference = np.maximum(np.abs(scores[row] - scores[column]) - rounding, 0.0)
    # Without error t is infinite, but 0 between equal scores.
    ratio = np.full_like(absolute_difference, np.inf)
    np.divide(absolute_difference, error, out=ratio, where=error > 0)
    return np.where(absolute_difference > 0, ratio, 0.0)


def holm_rejects(p_values: Array, level: float) -> NDArray[np.bool_]:
    """Return the hypotheses that Holm's procedure rejects."""
    # Compare the smallest p-value with level/n, the next one with level/(n − 1), …, and stop at the
    # first that is too large.
    n_hypotheses = len(p_values)
    increasing = np.argsort(p_values)
    is_small = p_values[increasing] <= level / np.arange(n_hypotheses, 0, -1)
    n_rejected = n_hypotheses
    if not is_small.all():
        n_rejected = int(np.argmin(is_small))  # those before the first that is too large
    is_rejected = np.zeros(n_hypotheses, bool)
    is_rejected[increasing[:n_rejected]] = True
    return is_rejected


def _tiers(
    ratings: Array, spread: CovarianceRoot, components: Indices, confidence: float
) -> Indices:
    """Number the tiers; a tier ends before the first item significantly below its first item."""
    tiers = np.ones(len(ratings), np.intp)
    quantile = spread.quantile((1 + confidence) / 2)
    for items in indices_by_group(components):
        decreasing = items[np.argsort(-ratings[items], kind="stable")].tolist()
        rounding = EQUAL * np.abs(ratings[items]).max(initial=0.0)
        # An item that is certainly below the first item of a tier begins the next tier.
        tier = 1
        first_of_tier = None
        for item in decreasing:
            if first_of_tier is None:
                first_of_tier = item
            error = spread.error_of_difference(first_of_tier, item)
            if ratings[first_of_tier] - ratings[item] > quantile * error + rounding:
                tier += 1
                first_of_tier = item
            tiers[item] = tier
    return tiers
