"""The loss of Plackett and Luce: a ranking is a series of choices, the best item first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph
from rankwise.losses.pairwise import LossValue, PairwiseLoss

BLOCK = 2**21  # numbers in the Hessians of the rankings of one table


class PaddedRankings(NamedTuple):
    """Rankings of the same length m, best item first; arrays have the shape (m, n_rankings, 1).

    Position p is the choice of its item among all that are not placed before. Items that share a
    place are a block, and Efron's formula gives each of its d items an equal share of the places:
    the l-th choice of the block takes the share l/d of all its items out of the candidates.

    Attributes
    ----------
    rows : ndarray of int, shape (m, n_rankings)
        The row of the scores.
    ranking : ndarray of shape (n_rankings,)
        The number of the ranking.
    start, end : ndarray of int
        First and last position of the block.
    share : ndarray
        l/d, from 0.
    weight : ndarray
        ω of the choice; 0 for items without a place.
    opens : ndarray
        1 where a block begins, else 0.
    """

    rows: Indices
    ranking: Indices
    start: Indices
    end: Indices
    share: Array
    weight: Array
    opens: Array

    def at(self, f: Array) -> ChoiceProbabilities:
        """The candidates of every choice, for scores f of all rows."""
        f = f[self.rows][:, :, None]
        left = np.logaddexp.accumulate(f[::-1], axis=0)[::-1]
        left = np.take_along_axis(left, self.start, 0)
        own = np.exp(f - left)
        shrunk = np.exp(np.diff(left, axis=0, prepend=left[:1]))
        rest = 1 - self.share * self.block_sums(own)
        return ChoiceProbabilities(self, f, left, own, shrunk, rest)

    def block_sums(self, values: Array) -> Array:
        """The sum over the block of each position, at all its positions."""
        if self.opens.all():
            return values
        sums = values.copy()
        for p in range(1, len(values)):
            sums[p] += (1 - self.opens[p]) * sums[p - 1]
        return np.take_along_axis(sums, self.end, 0)


class ChoiceProbabilities(NamedTuple):
    """Rankings at one vector of scores.

    Attributes
    ----------
    of : PaddedRankings
        The rankings.
    f : ndarray of shape (m, n_rankings, 1)
        Scores.
    left : ndarray
        Log of the sum of e^f over the block of the position and all that follow.
    own : ndarray
        Share of the item in that sum.
    shrunk : ndarray
        The sum, relative to that of the position before.
    rest : ndarray
        Share of the sum that takes part in the choice, at least 1/d.
    """

    of: PaddedRankings
    f: Array
    left: Array
    own: Array
    shrunk: Array
    rest: Array

    def pulls(self, values: Array) -> Array:
        """``Σ_p v_p π_pj`` of each position j; π_pj is the chance of j in choice p."""
        of, q = self.of, values / self.rest
        total, sums = of.block_sums(q) * np.roll(of.opens, -1, axis=0), np.zeros_like(q)
        for p in range(1, len(q)):
            np.add(sums[p - 1], total[p - 1], out=sums[p])
            sums[p] *= self.shrunk[p]
        sums += of.block_sums((1 - of.share) * q)
        sums *= self.own
        return sums

    def means(self, v: Array) -> Array:
        """``Σ_j π_pj v_j`` of each choice p, for v of shape (m, n_rankings, k)."""
        of, block = self.of, self.of.block_sums(self.own * v)
        first, sums = block * of.opens, np.zeros_like(block)  # of the blocks that follow
        for p in range(len(v) - 2, -1, -1):
            np.add(sums[p + 1], first[p + 1], out=sums[p])
            sums[p] *= self.shrunk[p + 1]
        sums += (1 - of.share) * block
        sums /= self.rest
        return sums


class PlackettLuceLoss(PairwiseLoss):
    """``loss(f) = 1/W Σ ω [log Σ_{j not yet placed} e^{f_j} − f_i]`` over the choices of items i.

    It is minus the mean log likelihood of rankings that come about by choosing the best item, then
    the best of the others, and so on, an item with a probability proportional to e^f (Luce,
    Individual choice behavior, 1959; Plackett, The analysis of permutations, 1975). Items of the
    same score share a place by Efron's formula, so that the loss is minus the partial likelihood of
    Cox. For two items it is the logistic loss.

    Parameters
    ----------
    graph : ScoreGraph
        Scores, of which only the order counts; every group is a ranking.
    placed : ndarray of bool, shape (n_items,), optional
        Whether the item has a place. Items without one are below those that have, in no order. By
        default the lowest score of a group is no place if the graph leaves out ties.
    weight : ndarray of shape (n_groups,), optional
        ω of the rankings; by default as `group_weight` of the graph says: 1, or such that every
        ranking counts alike.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ScoreGraph
    >>> from rankwise.losses import PlackettLuceLoss
    >>> loss = PlackettLuceLoss(ScoreGraph([2, 1, 0]))
    >>> [round(loss.at(np.array(f)).value, 3) for f in ([0, 0, 0], [2, 1, 0])]
    [0.896, 0.36]
    """

    def __init__(
        self,
        graph: PreferenceGraph,
        placed: NDArray[np.bool_] | None = None,
        weight: Array | None = None,
    ) -> None:
        if graph.scores is None or graph.item_weights is not None:
            raise ValueError(
                "likelihood='plackett-luce' is for scores in groups without sample_weight, of "
                "which each group is a ranking; comparisons and weights are for 'pairs'."
            )
        scores, codes = np.ravel(graph.scores), graph.groups
        if placed is None:
            lowest = np.full(graph.n_groups, np.inf)
            np.minimum.at(lowest, codes, scores)
            placed = (scores > lowest[codes]) | (graph.ties == "include")
        self._tables = list(_tables(scores, codes, placed))
        if weight is None:
            weight = np.ones(graph.n_groups)
            if graph.group_weight == "groups":
                for of in self._tables:
                    weight[of.ranking] = 1 / np.maximum(of.weight.sum(axis=(0, 2)), 1)
        for k, of in enumerate(self._tables):
            self._tables[k] = of._replace(weight=of.weight * weight[of.ranking, None])
        self.graph = graph
        self.total_weight = float(sum(of.weight.sum() for of in self._tables))

    def at(self, f: NDArray[Any]) -> LossValue:
        """One pass over the rankings; so is every product with the Hessian."""
        f = np.asarray(f, dtype=np.float64)
        value, flow, now = 0.0, np.zeros_like(f), []
        for table in self._tables:
            at = table.at(f)
            pull = at.pulls(table.weight)
            value += float(np.vdot(table.weight, at.left - at.f + np.log(at.rest)))
            flow[table.rows] = (pull - table.weight)[:, :, 0]
            now.append((at, pull))

        def curvature(v: Array) -> Array:
            out = np.zeros_like(v)
            for at, pull in now:
                rows = at.of.rows
                along = v[rows][:, :, None]
                out[rows] = (pull * along - at.pulls(at.of.weight * at.means(along)))[:, :, 0]
            return np.asarray(out / self.total_weight)

        return LossValue(value / self.total_weight, flow / self.total_weight, curvature)

    def by_ranking(self, f: Array) -> Iterator[tuple[PaddedRankings, Array, Array]]:
        """Gradient and Hessian of each ranking, of shapes (n, m) and (n, m, m), not divided by W.

        Those of one length together, in batches.
        """
        for table in self._tables:
            at = table.at(f)
            pull = at.pulls(table.weight)
            chances = at.means(np.eye(len(pull))[:, None]).transpose(1, 2, 0)
            bends = chances * -table.weight[:, :, 0].T[:, None] @ chances.swapaxes(1, 2)
            np.einsum("njj->nj", bends)[:] += pull[:, :, 0].T
            yield table, (pull - table.weight)[:, :, 0].T, bends

    def is_separated_by(self, f: Array) -> bool:
        """Whether every item with a place has a larger score than all below, and none is shared."""
        for table in self._tables:
            is_placed, shared = table.weight[:-1] > 0, np.diff(table.start, axis=0) == 0
            is_wrong = np.diff(f[table.rows], axis=0)[:, :, None] >= 0
            if (is_placed & (is_wrong | shared)).any():
                return False
        return True


def _tables(scores: Array, codes: Indices, placed: NDArray[np.bool_]) -> Iterator[PaddedRankings]:
    """The rankings, those of one length together; of one item nothing can be learned."""
    order = np.lexsort((-scores, ~placed, codes))
    sizes = np.bincount(codes)
    first = np.cumsum(sizes) - sizes
    for m in np.unique(sizes[sizes > 1]):
        every = np.flatnonzero(sizes == m)
        for ranking in np.array_split(every, math.ceil(len(every) / max(1, BLOCK // m**2))):
            rows = order[first[ranking] + np.arange(m)[:, None]]
            opens = np.ones(rows.shape, bool)
            opens[1:] = (np.diff(scores[rows], axis=0) != 0) & placed[rows[1:]]
            opens[1:] |= placed[rows[:-1]] & ~placed[rows[1:]]
            places = np.arange(m)[:, None]
            start = np.maximum.accumulate(np.where(opens, places, 0), axis=0)
            last = np.where(np.vstack([opens[1:], opens[:1]]), places, m)
            end = np.minimum.accumulate(last[::-1], axis=0)[::-1]
            size = end - start + 1
            is_choice = placed[rows] & ((size > 1) | (end < m - 1))
            columns: list[Any] = [start, end, (places - start) / size, 1.0 * is_choice, 1.0 * opens]
            yield PaddedRankings(rows, ranking, *(column[:, :, None] for column in columns))
