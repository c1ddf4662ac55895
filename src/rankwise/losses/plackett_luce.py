"""The Plackett-Luce loss: a ranking is a sequence of choices, the best item first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph
from rankwise.losses.pairwise import LossValue, PairwiseLoss, Plane

HESSIAN_ENTRIES = 2**21  # entries of the Hessians of the rankings in one table


class PaddedRankings(NamedTuple):
    """Rankings of the same length m, best item first; arrays have the shape (m, n_rankings, 1).

    Position p is the choice of its item among the items that are not yet placed. Items that share
    a place are a block. Efron's formula treats the d choices of a block alike: before the l-th of
    them (l from 0) the share l/d of each item of the block has left the candidates.

    Attributes
    ----------
    rows : ndarray of int, shape (m, n_rankings)
        Row of the scores.
    ranking : ndarray of shape (n_rankings,)
        Number of the ranking.
    start, end : ndarray of int
        First and last position of the block.
    share : ndarray
        l/d.
    weight : ndarray
        ω of the choice; 0 for items without a place.
    opens : ndarray
        1 at the first position of a block, else 0.
    """

    rows: Indices
    ranking: Indices
    start: Indices
    end: Indices
    share: Array
    weight: Array
    opens: Array

    def at(self, f: Array) -> ChoiceProbabilities:
        """Probabilities of the candidates of every choice, for scores f of all rows."""
        scores = f[self.rows][:, :, None]
        log_sums = np.logaddexp.accumulate(scores[::-1], axis=0)[::-1]
        log_total = np.take_along_axis(log_sums, self.start, 0)
        item_share = np.exp(scores - log_total)
        decrease = np.exp(np.diff(log_total, axis=0, prepend=log_total[:1]))
        candidate_share = 1 - self.share * self.block_sums(item_share)
        return ChoiceProbabilities(self, scores, log_total, item_share, decrease, candidate_share)

    def block_sums(self, values: Array) -> Array:
        """Sum over the block of each position, repeated at all positions of the block."""
        if self.opens.all():
            return values
        sums = values.copy()
        for position in range(1, len(values)):
            sums[position] += (1 - self.opens[position]) * sums[position - 1]
        return np.take_along_axis(sums, self.end, 0)


class ChoiceProbabilities(NamedTuple):
    """Rankings at one vector of scores; arrays have the shape (m, n_rankings, 1).

    Attributes
    ----------
    rankings : PaddedRankings
        The rankings.
    scores : ndarray
        f of the item at each position.
    log_total : ndarray
        Log of the sum of e^f over the block of the position and all later positions.
    item_share : ndarray
        Share of the item in that sum.
    decrease : ndarray
        Ratio of the sum to that of the previous position.
    candidate_share : ndarray
        Share of the sum that belongs to the candidates of the choice, at least 1/d.
    """

    rankings: PaddedRankings
    scores: Array
    log_total: Array
    item_share: Array
    decrease: Array
    candidate_share: Array

    def expected_weights(self, values: Array) -> Array:
        """``Σ_p v_p π_pj`` of each position j; π_pj is the probability of j in choice p."""
        rankings = self.rankings
        scaled = values / self.candidate_share
        block_totals = rankings.block_sums(scaled) * np.roll(rankings.opens, -1, axis=0)
        sums = np.zeros_like(scaled)
        for position in range(1, len(scaled)):
            np.add(sums[position - 1], block_totals[position - 1], out=sums[position])
            sums[position] *= self.decrease[position]
        sums += rankings.block_sums((1 - rankings.share) * scaled)
        sums *= self.item_share
        return sums

    def means(self, v: Array) -> Array:
        """``Σ_j π_pj v_j`` of each choice p, for v of shape (m, n_rankings, k)."""
        rankings = self.rankings
        block_totals = rankings.block_sums(self.item_share * v)
        counted_once = block_totals * rankings.opens
        later_blocks = np.zeros_like(block_totals)
        for position in range(len(v) - 2, -1, -1):
            np.add(
                later_blocks[position + 1],
                counted_once[position + 1],
                out=later_blocks[position],
            )
            later_blocks[position] *= self.decrease[position + 1]
        later_blocks += (1 - rankings.share) * block_totals
        later_blocks /= self.candidate_share
        return later_blocks


class PlackettLuceLoss(PairwiseLoss):
    """``loss(f) = 1/W Σ ω [log Σ_{j not yet placed} e^{f_j} − f_i]`` over the choices of items i.

    It is minus the mean log likelihood of rankings that arise by choosing the best item, then the
    best of the others, and so on, an item with a probability proportional to e^f (Luce, Individual
    choice behavior, 1959; Plackett, The analysis of permutations, 1975). Items of the same score
    share a place by Efron's formula, so the loss is minus Cox's partial likelihood. For two items
    it is the logistic loss.

    Parameters
    ----------
    graph : ScoreGraph
        Scores, of which only the order is used; every group is a ranking.
    placed : ndarray of bool, shape (n_items,), optional
        Whether the item has a place. Items without a place are below those with one, in no order.
        By default the lowest score of a group is not a place if the graph drops ties.
    weight : ndarray of shape (n_groups,), optional
        ω of the rankings. The default depends on `group_weight` of the graph: 1, or such that all
        rankings have equal weight.

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
        if not graph.has_relevance or graph.item_weights is not None:
            raise ValueError(
                "likelihood='plackett-luce' needs scores in groups without sample_weight, each "
                "group a ranking; use likelihood='pairs' for comparisons and for weights."
            )
        scores = np.ravel(graph.y)
        codes = graph.groups
        if placed is None:
            lowest = np.full(graph.n_groups, np.inf)
            np.minimum.at(lowest, codes, scores)
            placed = (scores > lowest[codes]) | (graph.ties == "include")
        tables = list(_tables(scores, codes, placed))
        if weight is None:
            weight = np.ones(graph.n_groups)
            if graph.group_weight == "groups":
                for table in tables:
                    n_choices = table.weight.sum(axis=(0, 2))
                    weight[table.ranking] = 1 / np.maximum(n_choices, 1)
        self._tables = [
            table._replace(weight=table.weight * weight[table.ranking, None]) for table in tables
        ]
        self.graph = graph
        self.total_weight = float(sum(table.weight.sum() for table in self._tables))

    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives, by one pass over the rankings; a Hessian product is one more.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Returns
        -------
        LossValue
            Value, gradient and Hessian products.
        """
        f = np.asarray(f, dtype=np.float64)
        total = 0.0
        flow = np.zeros_like(f)
        choices = []
        for table in self._tables:
            probabilities = table.at(f)
            log_odds = probabilities.log_total - probabilities.scores
            choice_losses = log_odds + np.log(probabilities.candidate_share)
            expected = probabilities.expected_weights(table.weight)
            total += float(np.vdot(table.weight, choice_losses))
            flow[table.rows] = (expected - table.weight)[:, :, 0]
            choices.append((probabilities, expected))
        value = total / self.total_weight
        gradient = flow / self.total_weight
        plane = Plane.from_difference(value, gradient, f)
        return LossValue(value, gradient, self._hessian_product(choices), plane)

    def _hessian_product(
        self, choices: list[tuple[ChoiceProbabilities, Array]]
    ) -> Callable[[Array], Array]:
        """Product of the Hessian with a vector: of each choice, a covariance of its candidates."""

        def product(v: Array) -> Array:
            result = np.zeros_like(v)
            for probabilities, expected in choices:
                table = probabilities.rankings
                values = v[table.rows][:, :, None]
                weighted_means = table.weight * probabilities.means(values)
                centered = expected * values - probabilities.expected_weights(weighted_means)
                result[table.rows] = centered[:, :, 0]
            return np.asarray(result / self.total_weight)

        return product

    def by_ranking(self, f: Array) -> Iterator[tuple[PaddedRankings, Array, Array]]:
        """Gradient and Hessian of each ranking, not divided by W.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Yields
        ------
        table : PaddedRankings
            Rankings of one length m.
        gradients : ndarray of shape (n_rankings, m)
            Their gradients.
        hessians : ndarray of shape (n_rankings, m, m)
            Their Hessians.
        """
        for table in self._tables:
            probabilities = table.at(f)
            expected = probabilities.expected_weights(table.weight)
            unit_vectors = np.eye(len(expected))[:, None]
            # π of shape (ranking, choice, candidate)
            chances = probabilities.means(unit_vectors).transpose(1, 2, 0)
            weights = table.weight[:, :, 0].T[:, None]
            hessians = chances * -weights @ chances.swapaxes(1, 2)
            np.einsum("njj->nj", hessians)[:] += expected[:, :, 0].T
            yield table, (expected - table.weight)[:, :, 0].T, hessians

    def is_separated_by(self, f: Array) -> bool:
        """Whether every placed item has a larger score than all below, and no place is shared.

        Parameters
        ----------
        f : ndarray of shape (n_items,)
            Scores.

        Returns
        -------
        bool
            True if f separates the rankings.
        """
        for table in self._tables:
            is_placed = table.weight[:-1] > 0
            is_shared = np.diff(table.start, axis=0) == 0
            is_wrong = np.diff(f[table.rows], axis=0)[:, :, None] >= 0
            if (is_placed & (is_wrong | is_shared)).any():
                return False
        return True


def _tables(scores: Array, codes: Indices, placed: NDArray[np.bool_]) -> Iterator[PaddedRankings]:
    """Tables of rankings of one length each; rankings of one item have no choice."""
    order = np.lexsort((-scores, ~placed, codes))
    sizes = np.bincount(codes)
    first_row = np.cumsum(sizes) - sizes
    for length in np.unique(sizes[sizes > 1]):
        rankings = np.flatnonzero(sizes == length)
        rankings_per_table = max(1, HESSIAN_ENTRIES // length**2)
        n_tables = math.ceil(len(rankings) / rankings_per_table)
        for numbers in np.array_split(rankings, n_tables):
            rows = order[first_row[numbers] + np.arange(length)[:, None]]
            yield _make_table(rows, numbers, scores, placed)


def _make_table(
    rows: Indices, ranking: Indices, scores: Array, placed: NDArray[np.bool_]
) -> PaddedRankings:
    """The rankings of these rows, of shape (m, n_rankings)."""
    length = len(rows)
    is_placed = placed[rows]
    differs_from_previous = np.diff(scores[rows], axis=0) != 0
    opens = np.ones(rows.shape, bool)
    opens[1:] = differs_from_previous & is_placed[1:]
    opens[1:] |= is_placed[:-1] & ~is_placed[1:]
    closes = np.vstack([opens[1:], opens[:1]])
    position = np.arange(length)[:, None]
    start = np.maximum.accumulate(np.where(opens, position, 0), axis=0)
    end_if_closed = np.where(closes, position, length)
    end = np.minimum.accumulate(end_if_closed[::-1], axis=0)[::-1]
    size = end - start + 1
    has_alternatives = (size > 1) | (end < length - 1)
    weight = (is_placed & has_alternatives).astype(np.float64)
    return PaddedRankings(
        rows,
        ranking,
        start[:, :, None],
        end[:, :, None],
        ((position - start) / size)[:, :, None],
        weight[:, :, None],
        opens[:, :, None].astype(np.float64),
    )
