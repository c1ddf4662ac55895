"""From ratings to the rows of a board: ranks, the ranks that are possible, tiers, records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from rankwise.arrays import Array, Indices
from rankwise.datasets.pair_data import Rankings
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.uncertainty.jackknife_errors import (
    COVARIANCE_LIMIT,
    EQUAL,
    CovarianceRoot,
    joint_quantile,
    possible_ranks,
    ranks_within,
)

FEW = 5  # comparisons; an item with fewer is thin
FEW_UNITS = 20  # clusters or comparisons; with fewer, Holm's procedure replaces the largest error
COLUMNS = ("rank", "item", "rating", "low", "high", "best_rank", "worst_rank", "best_of_all",
           "worst_of_all", "tier", "n", "wins", "ties", "losses", "thin", "component")  # fmt: skip


class WinCounts(NamedTuple):
    """How the comparisons of each item ended; thin are few, or those that all ended alike."""

    n: Indices
    wins: Indices
    ties: Indices
    losses: Indices
    thin: NDArray[np.bool_]


def win_counts(tally: ComparisonCounts, rankings: Rankings | None) -> WinCounts:
    """Comparisons, wins, ties and losses of each item; n is the number of rankings if there are."""
    first, second = tally.first[tally.pair], tally.second[tally.pair]
    table = np.zeros((3, tally.n_items), np.intp)
    for count, sign in zip(table, (1, 0, -1), strict=True):
        np.add.at(count, first, tally.count * (np.sign(tally.target) == sign))
        np.add.at(count, second, tally.count * (np.sign(tally.target) == -sign))
    n = table.sum(axis=0)
    ended_alike = table.max(axis=0) == n
    if rankings is not None:
        n = np.where(n > 0, np.bincount(rankings.item, minlength=tally.n_items), 0)
    wins, ties, losses = table
    return WinCounts(n, wins, ties, losses, (n < FEW) | ended_alike)


def rank_table(
    items: NDArray[Any],
    ratings: Array,
    spread: CovarianceRoot | None,
    components: Indices,
    records: WinCounts,
    *,
    confidence: float,
    order: str,
    counted: NDArray[np.bool_],
    known: NDArray[np.bool_],
) -> dict[str, NDArray[Any] | None]:
    """The columns of a board by the fields of `LeaderboardRow`, in the order of the board.

    Items that are not counted stand below the line: their rank is 0. An item that nothing is known
    of has no interval, and a thin one no tier. Without intervals only the rank is known.
    """
    made: dict[str, Any] = dict.fromkeys(COLUMNS)
    made |= {"item": items, "rating": ratings, "component": components, **records._asdict()}
    key = ratings
    if spread is not None:
        width = np.where(known, spread.quantile((1 + confidence) / 2) * spread.errors, np.nan)
        made["low"], made["high"] = ratings - width, ratings + width
        key = made["low"] if order == "lower" else ratings
        best, worst, best_of_all, worst_of_all, tier = np.zeros((5, len(ratings)), np.intp)
        ranked, lists = replace(spread, root=spread.root[counted]), components[counted]
        best[counted], worst[counted] = possible_ranks(ratings[counted], ranked, lists, confidence)
        best_of_all[counted], worst_of_all[counted] = simultaneous_ranks(
            ratings[counted], ranked, lists, confidence
        )
        sure = counted & ~records.thin
        of_sure = replace(spread, root=spread.root[sure])
        tier[sure] = _tiers(ratings[sure], of_sure, components[sure], confidence)
        made |= {"best_rank": best, "worst_rank": worst, "tier": tier}
        made |= {"best_of_all": best_of_all, "worst_of_all": worst_of_all}
    made["rank"] = np.where(
        counted, ranks_within(key, np.where(counted, components, -components)), 0
    )
    last = np.where(counted, made["rank"], len(items))
    place = np.lexsort((-ratings, last, ~counted, components))
    return {name: None if v is None else np.asarray(v)[place] for name, v in made.items()}


def simultaneous_ranks(
    scores: Array, spread: CovarianceRoot, lists: Indices, confidence: float
) -> tuple[Indices, Indices]:
    """Best and worst rank of each item in its list; all true ranks are inside at once.

    From 20 clusters (or comparisons) on, two items are apart if the interval of their difference
    that is as wide as the largest of all errors excludes 0 (`joint_quantile`). With fewer, the
    estimated covariance has too low a rank for that: the errors of many differences are
    underestimated together, and all true ranks are inside for 79 % of 30 equal items and 5
    clusters, not for 95 %. Then two items are apart if Holm's procedure rejects that they are equal
    by Student's t (`differences_by_holm`), which holds for every dependence of the differences.
    """
    if spread.freedom + 1 >= FEW_UNITS or len(scores) > COVARIANCE_LIMIT:
        joint = joint_quantile(spread, lists, confidence)
        return possible_ranks(scores, spread, lists, confidence, joint)
    first, second, is_apart = differences_by_holm(scores, spread, lists, 1 - confidence)
    first_is_above = scores[first] > scores[second]
    upper = np.where(first_is_above, first, second)[is_apart]
    lower = np.where(first_is_above, second, first)[is_apart]
    n_items = len(scores)
    n_above = np.bincount(lower, minlength=n_items)
    n_below = np.bincount(upper, minlength=n_items)
    _, list_of_item, sizes = np.unique(lists, return_inverse=True, return_counts=True)
    return 1 + n_above, sizes[list_of_item] - n_below


def differences_by_holm(
    scores: Array, spread: CovarianceRoot, lists: Indices, level: float
) -> tuple[Indices, Indices, NDArray[np.bool_]]:
    """All pairs of items of the same list, and whether their difference is significant at once.

    The k-th smallest of m p-values of Student's t is compared with level / (m − k + 1), from the
    smallest on until one is larger (Holm, A simple sequentially rejective multiple test procedure,
    1979). The probability of any false rejection is at most the level.
    """
    first_items, second_items, ratios = [], [], []
    for items in indices_by_group(lists):
        row, column = np.triu_indices(len(items), k=1)
        first, second = items[row], items[column]
        root = spread.root[items]
        products = root @ root.T
        variances = products.diagonal()
        variance = variances[row] + variances[column] - 2 * products[row, column]
        error = np.sqrt(np.maximum(variance, 0.0))
        rounding = EQUAL * np.abs(scores[items]).max(initial=0.0)
        size = np.maximum(np.abs(scores[first] - scores[second]) - rounding, 0.0)
        ratio = np.divide(size, error, out=np.full_like(size, np.inf), where=error > 0)
        first_items.append(first)
        second_items.append(second)
        ratios.append(np.where(size > 0, ratio, 0.0))
    ratio = np.concatenate(ratios)
    p_values = 2 * student.sf(ratio, spread.freedom)
    order = np.argsort(p_values)
    n_pairs = len(order)
    is_small = p_values[order] <= level / np.arange(n_pairs, 0, -1)
    n_rejected = n_pairs if is_small.all() else int(np.argmin(is_small))
    is_apart = np.zeros(n_pairs, bool)
    is_apart[order[:n_rejected]] = True
    return np.concatenate(first_items), np.concatenate(second_items), is_apart


def _tiers(
    ratings: Array, spread: CovarianceRoot, components: Indices, confidence: float
) -> Indices:
    """A tier ends before the first item that is surely below the first one of the tier."""
    tiers, quantile = np.ones(len(ratings), np.intp), spread.quantile((1 + confidence) / 2)
    for items in indices_by_group(components):
        order = items[np.argsort(-ratings[items], kind="stable")]
        least = EQUAL * np.abs(ratings[items]).max(initial=0.0)
        tier, leader = 0, None
        for k in order.tolist():
            if leader is None or ratings[leader] - ratings[k] > (
                quantile * spread.error_of_difference(leader, k) + least
            ):
                tier, leader = tier + 1, k
            tiers[k] = tier
    return tiers
