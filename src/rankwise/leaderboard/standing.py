"""From ratings to the rows of a board: ranks, intervals, wins and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.graphs import PairGraph
from rankwise.leaderboard.board import LeaderboardRow

__all__ = ["number_components", "ranks_within", "standings"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
EQUAL = 1e-10  # of the largest rating; a smaller difference is rounding


def number_components(graph: PairGraph) -> Codes:
    """The component of each item, numbered from 1 by size."""
    sizes = np.bincount(graph.components)
    number = np.empty(len(sizes), dtype=np.intp)
    number[np.argsort(-sizes, kind="stable")] = np.arange(1, len(sizes) + 1)
    return number[graph.components]


def ranks_within(ratings: Array, components: Codes) -> NDArray[np.intp]:
    """Rank of each item in its component, 1 for the highest rating; equal ones share the best.

    Parameters
    ----------
    ratings : ndarray of shape (n_ratings, n_items)
        Each row is ranked by itself.
    components : ndarray of shape (n_items,)
        Component of each item.
    """
    least = EQUAL * np.abs(ratings).max(axis=1, keepdims=True, initial=0.0)
    ranks = np.empty(ratings.shape, dtype=np.intp)
    for component in np.unique(components):
        members = np.flatnonzero(components == component)
        order = members[np.argsort(-ratings[:, members], axis=1)]
        falling = np.take_along_axis(ratings, order, axis=1)
        is_lower = -np.diff(falling, axis=1, prepend=np.inf) > least
        place = np.where(is_lower, np.arange(1, len(members) + 1), 0)
        np.put_along_axis(ranks, order, np.maximum.accumulate(place, axis=1), axis=1)
    return ranks


def standings(
    graph: PairGraph,
    items: NDArray[Any],
    ratings: Array,
    samples: Array,
    components: Codes,
    confidence: float,
) -> tuple[LeaderboardRow, ...]:
    """The rows of a board, in its order."""
    ranks = ranks_within(ratings[None], components)[0]
    records = _records(graph)
    columns = [
        ranks,
        items,
        ratings,
        *_intervals(samples, components, confidence),
        *records,
        components,
    ]
    lists = [
        [None] * len(items) if column is None else np.asarray(column).tolist() for column in columns
    ]
    rows = [LeaderboardRow(*values) for values in zip(*lists, strict=True)]
    order = np.lexsort((ranks, components))
    return tuple(rows[k] for k in order)


def _records(graph: PairGraph) -> list[Codes]:
    """Comparisons, wins, ties and losses of each item."""

    def count(ends: Codes) -> Codes:
        return np.bincount(ends, minlength=graph.n_items)

    tied = graph.magnitude == 0
    wins, losses = count(graph.winner[~tied]), count(graph.loser[~tied])
    ties = count(graph.winner[tied]) + count(graph.loser[tied])
    return [wins + ties + losses, wins, ties, losses]


def _intervals(samples: Array, components: Codes, confidence: float) -> list[Any]:
    """low, high, rank_low, rank_high and rank_upper of each item, or None five times."""
    if not len(samples):
        return [None] * 5
    tail = (1 - confidence) / 2
    low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
    ranks = ranks_within(samples, components)
    rank_low = np.quantile(ranks, tail, axis=0, method="lower")
    rank_high = np.quantile(ranks, 1 - tail, axis=0, method="higher")
    rank_upper = np.ones(len(low), dtype=np.intp)
    for component in np.unique(components):
        members = np.flatnonzero(components == component)
        sorted_low = np.sort(low[members])
        not_above = np.searchsorted(sorted_low, high[members], side="right")
        rank_upper[members] += len(members) - not_above
    return [low, high, rank_low, rank_high, rank_upper]
