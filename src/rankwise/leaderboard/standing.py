"""From ratings to the rows of a board: ranks, the ranks that are possible, tiers, records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.pair_data import Rankings
from rankwise.groups import members_of
from rankwise.leaderboard.solving import Tally
from rankwise.uncertainty.jackknife import (
    EQUAL,
    Spread,
    joint_quantile,
    possible_ranks,
    ranks_within,
)

FEW = 5  # comparisons; an item with fewer is thin
COLUMNS = ("rank", "item", "rating", "low", "high", "best_rank", "worst_rank", "best_of_all",
           "worst_of_all", "tier", "n", "wins", "ties", "losses", "thin", "component")  # fmt: skip


class Records(NamedTuple):
    """How the comparisons of each item ended; thin are few, or those that all ended alike."""

    n: Indices
    wins: Indices
    ties: Indices
    losses: Indices
    thin: NDArray[np.bool_]


def records_of(tally: Tally, rankings: Rankings | None) -> Records:
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
    return Records(n, wins, ties, losses, (n < FEW) | ended_alike)


def board_columns(
    items: NDArray[Any],
    ratings: Array,
    spread: Spread | None,
    components: Indices,
    records: Records,
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
        joint = joint_quantile(ranked, lists, confidence)
        best_of_all[counted], worst_of_all[counted] = possible_ranks(
            ratings[counted], ranked, lists, confidence, joint
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


def _tiers(ratings: Array, spread: Spread, components: Indices, confidence: float) -> Indices:
    """A tier ends before the first item that is surely below the first one of the tier."""
    tiers, quantile = np.ones(len(ratings), np.intp), spread.quantile((1 + confidence) / 2)
    for items in members_of(components):
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
