"""Head-to-head results: what was expected of each pair of items, and what was seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.model import RatingModel, Solution


class HeadToHead(NamedTuple):
    """Matrices by items: row against column; NaN where two never met.

    Attributes
    ----------
    items : ndarray of shape (n_shown,)
        Labels of rows and columns.
    n : ndarray of shape (n_shown, n_shown)
        Number of comparisons.
    observed : ndarray of shape (n_shown, n_shown)
        Weighted mean outcome of the row's item: 1 if it won all, −1 if it lost all.
    expected : ndarray of shape (n_shown, n_shown)
        Mean outcome that ratings and effects let expect in the same comparisons.
    """

    items: NDArray[Any]
    n: Indices
    observed: Array
    expected: Array


class Meetings(NamedTuple):
    """The same by edges: the two items of each, the first one's outcomes."""

    first: Indices
    second: Indices
    n: Indices
    observed: Array
    expected: Array

    def matrix(self, chosen: Indices, labels: NDArray[Any], n_items: int) -> HeadToHead:
        """Of the chosen items, in this order."""
        place = np.full(n_items, -1)
        place[chosen] = np.arange(len(chosen))
        i, j = place[self.first], place[self.second]
        both = (i >= 0) & (j >= 0)
        i, j, size = i[both], j[both], len(chosen)
        n = np.zeros((size, size), np.intp)
        n[i, j] = n[j, i] = self.n[both]
        found = []
        for values in (self.observed[both], self.expected[both]):
            matrix = np.full((size, size), np.nan)
            matrix[i, j], matrix[j, i] = values, -values + 0.0
            found.append(matrix)
        return HeadToHead(labels[chosen], n, *found)


def meetings_of(model: RatingModel, solution: Solution) -> Meetings:
    """Add up the comparisons of the same two items."""
    tally = model.tally
    weights, flows = tally.sums
    expected = model.expected(tally.margins(solution.ratings, solution.effects))
    count = tally.by_pair(tally.count.astype(np.float64))
    total = tally.by_edge(weights)
    return Meetings(
        *tally.ends,
        tally.by_edge(count).astype(np.intp),
        tally.by_edge(flows) / total,
        tally.by_edge(weights * expected) / total,
    )
