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
    a place are a block. In Efron's formula the d choices of a block are exchangeable: before the
    l-th choice (l from 0) the share l/d of each item of the block has left the candidates.

    Attributes
    ----------
    rows : ndarray of int, shape (m, n_rankings)
        Row of the scores.
    ranking : ndarray of shape (n_rankings,)
        Number of the ranking.
    start, end : ndarray of int
        First and last position of the block.
    removed_share : ndarray
        l/d.
    weight : ndarray
        ω of the choice; 0 for items without a place.
    is_block_start : ndarray
        1.0 at the first position of a block, else 0.0.
    """

    rows: Indices
    ranking: Indices
    start: Indices
    end: Indices
    removed_share: Array
    weight: Array
    is_block_start: Array

    def choice_probabilities(self, f: Array) -> ChoiceProbabilities:
        """Probabilities of the candidates of every choice, for scores f of all rows."""
        # each position of a ranking is a choice among its item and all later ones; items that
        # share a place are a block, and each of them leaves the candidates in equal shares
        scores = f[self.rows][:, :, None]  # (n_positions, n_rankings, 1)

        # log Σ e^f over a position and all later ones, and over its block and all later ones
        log_sum_from_position = np.logaddexp.accumulate(scores[::-1], axis=0)[::-1]
        log_total = np.take_along_axis(log_sum_from_position, self.start, axis=0)
        # ratio of the sum to that of the previous position
        total_ratio = np.exp(np.diff(log_total, axis=0, prepend=log_total[:1]))

        # share of the item in the sum, and of the candidates that are left when it is chosen
        item_share = np.exp(scores - log_total)
        candidate_share = 1 - self.removed_share * self.block_sums(item_share)
        return ChoiceProbabilities(
            self, scores, log_total, item_share, total_ratio, candidate_share
        )

    def block_sums(self, values: Array) -> Array:
        """Sum over the block of each position, repeated at all positions of the block."""
        # Σ over the block of each position, at all its positions; items of a block share a place
        if self.is_block_start.all():  # each block has one item
            return values
        running_sums = values.copy()  # restarted at each block
        for position in range(1, len(values)):
            continues_block = 1 - self.is_block_start[position]
            running_sums[position] += continues_block * running_sums[position - 1]
        return np.take_along_axis(running_sums, self.end, axis=0)


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
    total_ratio : ndarray
        Ratio of the sum to that of the previous position, at most 1.
    candidate_share : ndarray
        Share of the sum that belongs to the candidates of the choice, at least 1/d.
    """

    rankings: PaddedRankings
    scores: Array
    log_total: Array
    item_share: Array
    total_ratio: Array
    candidate_share: Array

    def sum_over_choices(self, values: Array) -> Array:
        """``Σ_p v_p π_pj`` of each position j; π_pj is the probability of j in choice p."""
        # Σ_p values_p π_pj for each item j, with its probability π_pj in choice p
        rankings = self.rankings
        scaled = values / self.candidate_share

        # sum of the scaled values of all earlier blocks, relative to the total of the position
        is_block_end = np.roll(rankings.is_block_start, -1, axis=0)
        sum_at_block_end = rankings.block_sums(scaled) * is_block_end
        earlier_blocks = np.zeros_like(scaled)
        for position in range(1, len(scaled)):
            previous = position - 1
            np.add(
                earlier_blocks[previous], sum_at_block_end[previous], out=earlier_blocks[position]
            )
            earlier_blocks[position] *= self.total_ratio[position]

        # choices of the own block, from which a share of the item was removed
        own_block = rankings.block_sums((1 - rankings.removed_share) * scaled)
        expected = earlier_blocks + own_block
        expected *= self.item_share
        return expected

    def mean_over_candidates(self, v: Array) -> Array:
        """``Σ_j π_pj v_j`` of each choice p, for v of shape (m, n_rankings, k)."""
        # Σ_j π_pj v_j for each choice p, with the probability π_pj of item j
        rankings = self.rankings
        own_block = rankings.block_sums(self.item_share * v)

        # sum over all later blocks, relative to the total of the position
        sum_at_block_start = own_block * rankings.is_block_start
        later_blocks = np.zeros_like(own_block)
        for position in range(len(v) - 2, -1, -1):
            following = position + 1
            np.add(
                later_blocks[following], sum_at_block_start[following], out=later_blocks[position]
            )
            later_blocks[position] *= self.total_ratio[following]

        # candidates of the own block, from which a share of each item was removed
        means = later_blocks + (1 - rankings.removed_share) * own_block
        means /= self.candidate_share
        return means


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
        if placed is None:  # the items of lowest score have no place, unless ties count
            lowest_of_group = np.full(graph.n_groups, np.inf)
            np.minimum.at(lowest_of_group, graph.groups, scores)
            placed = scores > lowest_of_group[graph.groups]
            if graph.ties == "include":
                placed[:] = True
        tables = list(_tables_by_length(scores, graph.groups, placed))
        if weight is None:
            weight = np.ones(graph.n_groups)  # of each ranking
            if graph.group_weight == "groups":  # its choices weigh 1 together
                for table in tables:
                    n_choices = table.weight.sum(axis=(0, 2))
                    weight[table.ranking] = 1 / np.maximum(n_choices, 1)
        self._tables = []
        for table in tables:
            weight_of_choice = table.weight * weight[table.ranking, None]
            self._tables.append(table._replace(weight=weight_of_choice))
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
        value = 0.0
        gradient = np.zeros_like(f)
        probabilities_of_tables = []
        for table in self._tables:
            probabilities = table.choice_probabilities(f)

            # − log π of the chosen item
            log_inverse_share = probabilities.log_total - probabilities.scores
            choice_losses = log_inverse_share + np.log(probabilities.candidate_share)
            value += float(np.vdot(table.weight, choice_losses))

            # how often an item is chosen by its probabilities, less how often it is chosen
            expected = probabilities.sum_over_choices(table.weight)
            gradient[table.rows] = (expected - table.weight)[:, :, 0]  # tables share no items
            probabilities_of_tables.append((probabilities, expected))
        value /= self.total_weight
        gradient /= self.total_weight
        plane = Plane.from_difference(value, gradient, f)
        return LossValue(value, gradient, self._hessian_product(probabilities_of_tables), plane)

    def _hessian_product(
        self, probabilities_of_tables: list[tuple[ChoiceProbabilities, Array]]
    ) -> Callable[[Array], Array]:
        """Product of the Hessian with a vector: of each choice, a covariance of its candidates."""

        def product(v: Array) -> Array:
            result = np.zeros_like(v)
            for probabilities, expected in probabilities_of_tables:
                table = probabilities.rankings
                values = v[table.rows][:, :, None]
                # (diag(Σ_p ω_p π_p) − Σ_p ω_p π_p π_pᵀ) v, with the probabilities π_p of the items
                # in choice p and its weight ω_p
                weighted_means = table.weight * probabilities.mean_over_candidates(values)
                covariances = expected * values - probabilities.sum_over_choices(weighted_means)
                result[table.rows] = covariances[:, :, 0]
            return np.asarray(result / self.total_weight)

        return product

    def derivatives_by_ranking(self, f: Array) -> Iterator[tuple[PaddedRankings, Array, Array]]:
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
        # each table has rankings of one length; for each the gradient and Hessian of its loss
        for table in self._tables:
            probabilities = table.choice_probabilities(f)
            expected = probabilities.sum_over_choices(table.weight)
            gradients = (expected - table.weight)[:, :, 0].T

            # π of shape (n_rankings, n_candidates, n_choices)
            unit_vectors = np.eye(len(expected))[:, None]
            choice_matrix = probabilities.mean_over_candidates(unit_vectors).transpose(1, 2, 0)

            # of each ranking diag(Σ_p ω_p π_p) − Σ_p ω_p π_p π_pᵀ
            weights = table.weight[:, :, 0].T[:, None]
            hessians = choice_matrix * -weights @ choice_matrix.swapaxes(1, 2)
            diagonal = np.arange(len(expected))
            hessians[:, diagonal, diagonal] += expected[:, :, 0].T
            yield table, gradients, hessians

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
        # whether f ranks every placed item strictly above the next one
        for table in self._tables:
            is_placed = table.weight[:-1] > 0
            shares_place = np.diff(table.start, axis=0) == 0
            is_not_above_next = np.diff(f[table.rows], axis=0)[:, :, None] >= 0
            # items that share a place cannot both be above the other
            if (is_placed & (is_not_above_next | shares_place)).any():
                return False
        return True


def _tables_by_length(
    scores: Array, codes: Indices, placed: NDArray[np.bool_]
) -> Iterator[PaddedRankings]:
    """Tables of rankings of one length each; rankings of one item have no choice."""
    # by ranking, placed items first, the best item first
    order = np.lexsort((-scores, ~placed, codes))
    lengths = np.bincount(codes)
    first_position = np.cumsum(lengths) - lengths
    for length in np.unique(lengths[lengths > 1]):
        rankings = np.flatnonzero(lengths == length)
        rankings_per_table = max(1, HESSIAN_ENTRIES // length**2)
        n_tables = math.ceil(len(rankings) / rankings_per_table)
        for rankings_of_table in np.array_split(rankings, n_tables):
            positions = first_position[rankings_of_table] + np.arange(length)[:, None]
            yield _make_table(order[positions], rankings_of_table, scores, placed)


def _make_table(
    rows: Indices, ranking: Indices, scores: Array, placed: NDArray[np.bool_]
) -> PaddedRankings:
    """The rankings of these rows, of shape (m, n_rankings)."""
    length = len(rows)
    is_placed = placed[rows]

    # a block starts where the score of placed items changes, and at the first item without place
    differs_from_previous = np.diff(scores[rows], axis=0) != 0
    is_first_unplaced = is_placed[:-1] & ~is_placed[1:]
    is_block_start = np.ones(rows.shape, bool)
    is_block_start[1:] = (differs_from_previous & is_placed[1:]) | is_first_unplaced
    is_block_end = np.vstack([is_block_start[1:], is_block_start[:1]])  # always at the last one

    # first and last position of the block of each position
    position = np.arange(length)[:, None]
    start_or_0 = np.where(is_block_start, position, 0)
    block_start = np.maximum.accumulate(start_or_0, axis=0)
    end_or_length = np.where(is_block_end, position, length)
    block_end = np.minimum.accumulate(end_or_length[::-1], axis=0)[::-1]

    # the last item of a ranking is no choice
    block_size = block_end - block_start + 1
    has_alternatives = (block_size > 1) | (block_end < length - 1)
    weight = is_placed & has_alternatives
    removed_share = (position - block_start) / block_size
    # a last axis of length 1 is multiplied by the columns of values
    return PaddedRankings(
        rows,
        ranking,
        start=block_start[:, :, None],
        end=block_end[:, :, None],
        removed_share=removed_share[:, :, None],
        weight=weight[:, :, None].astype(np.float64),
        is_block_start=is_block_start[:, :, None].astype(np.float64),
    )
