"""The exponential loss of RankBoost, computed without listing the pairs of scored items."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from rankwise.arrays import Array, weights_or_ones
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.violated_pairs import EdgePairs, OrderedPairs
from rankwise.losses.pairwise import LossValue, Plane, StrictPairLoss

MAX_LOG_LOSS = 100.0  # logarithm of the loss above which the loss is continued by its tangent


class ExponentialLoss(StrictPairLoss):
    """``loss(f) = 1/W Σ_k ω_k exp(−(f_i − f_j))`` over strict preferences k = (i → j).

    Use it in `RankSVM(loss="exponential")`.

    The loss of RankBoost (Freund, Iyer, Schapire and Singer, JMLR 4, 2003, equation 1). A wrongly
    ordered pair costs exponentially much, so the loss is sensitive to outliers.

    It is computed as ``e^ℓ``, where ℓ is its logarithm, which does not overflow. For ℓ above 100
    the loss is continued by its tangent, ``e¹⁰⁰ (1 + ℓ − 100)``: convex, and without effect on the
    minimum, which is at most 1. For scored items the pairs of an item are sums over the items of
    lower or higher level, so that one evaluation costs O(m log m).

    Parameters
    ----------
    graph : PreferenceGraph
        The preferences.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ScoreGraph
    >>> from rankwise.losses import ExponentialLoss
    >>> loss = ExponentialLoss(ScoreGraph([2, 1, 0]))
    >>> [round(loss.at(np.array(f)).value, 3) for f in ([0, 0, 0], [2, 1, 0])]
    [1.0, 0.29]
    """

    def __init__(self, graph: PreferenceGraph) -> None:
        super().__init__(graph)
        self._sums = make_pair_sums(self.preferences)

    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives; a Hessian product costs about as much.

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
        # share of the loss in the pairs that an item should win, and in those it should lose
        log_loss, share_won, share_lost = self._sums.loss_shares(f)

        # above e¹⁰⁰ the loss is continued by its tangent, of slope e¹⁰⁰ in log_loss
        excess = max(log_loss - MAX_LOG_LOSS, 0.0)
        scale = float(np.exp(min(log_loss, MAX_LOG_LOSS)))
        value = scale * (1 + excess)
        gradient = scale * (share_lost - share_won)

        def hessian_product(v: Array) -> Array:
            return scale * self._sums.laplacian_product(f, log_loss, v)

        # centered scores make the terms of the offset smaller, and do not change it
        centered = self._sums.center(f)
        offset = value - float(gradient @ centered)
        offset_terms = value + scale * float((share_won + share_lost) @ np.abs(centered))
        plane = Plane(offset, offset_terms, gradient_terms=2 * scale)
        return LossValue(value, gradient, hessian_product, plane)


class LossShares(NamedTuple):
    """The exponential loss at some scores, and how it is shared by the items.

    Attributes
    ----------
    log_loss : float
        Logarithm of the loss.
    won, lost : ndarray of shape (n_items,)
        Share of the loss due to pairs where the item is preferred, or the other item.
    """

    log_loss: float
    won: Array
    lost: Array


class ListedPairSums:
    """Sums over listed pairs."""

    def __init__(self, pairs: EdgePairs) -> None:
        self._winner = pairs.winner
        self._loser = pairs.loser
        self._n_items = pairs.graph.n_items
        with np.errstate(divide="ignore"):  # log 0 = −∞: a pair of weight 0 has no effect
            self._log_weight = np.log(pairs.weight / pairs.total_weight)

    def center(self, f: Array) -> Array:
        """Subtract the mean, which changes no difference."""
        return np.asarray(f - f.mean())

    def loss_shares(self, f: Array) -> LossShares:
        """Logarithm of the loss, and the shares of the items."""
        log_pair_losses = self._log_pair_losses(f)
        log_loss = float(logsumexp(log_pair_losses))
        share_of_pair = np.exp(log_pair_losses - log_loss)
        won = np.bincount(self._winner, share_of_pair, self._n_items)
        lost = np.bincount(self._loser, share_of_pair, self._n_items)
        return LossShares(log_loss, won.astype(np.float64), lost.astype(np.float64))

    def laplacian_product(self, f: Array, log_loss: float, v: Array) -> Array:
        """``Σ share_k (v_i − v_j) (e_i − e_j)`` over the pairs k = (i → j)."""
        # Laplacian of the pairs, each weighted by its share of the loss, times v
        share_of_pair = np.exp(self._log_pair_losses(f) - log_loss)
        flow = share_of_pair * (v[self._winner] - v[self._loser])
        to_winners = np.bincount(self._winner, flow, self._n_items)
        from_losers = np.bincount(self._loser, flow, self._n_items)
        return np.asarray(to_winners - from_losers)

    def _log_pair_losses(self, f: Array) -> Array:
        """Logarithm of ``ω/W exp(−(f_i − f_j))`` for each pair i → j."""
        return np.asarray(self._log_weight - (f[self._winner] - f[self._loser]))


class OrderedPairSums:
    """Sums over all pairs of different level, from logarithms of running sums by level."""

    def __init__(self, pairs: OrderedPairs) -> None:
        n_items = pairs.n_items
        self._pairs = pairs
        self._group_bounds = np.append(pairs.group_starts, n_items).tolist()

        # sorted by group, and by level inside a group; the item of the higher level should win
        self._order = np.lexsort((pairs.level, pairs.group))
        sorted_level = pairs.level[self._order]

        # first and end position of the items that have the group and level of a sorted item
        starts_level = np.ones(n_items, dtype=bool)
        starts_level[1:] = np.diff(sorted_level) != 0
        starts_level[pairs.group_starts[pairs.group_sizes > 0]] = True  # neighbors of two groups
        first_of_level = np.flatnonzero(starts_level)
        end_of_level = np.append(first_of_level[1:], n_items)
        level_number = np.cumsum(starts_level) - 1
        self._level_start = first_of_level[level_number]
        self._level_end = end_of_level[level_number]

        # the weight of a pair is the product of a weight of its winner and one of its loser
        winner_weight = weights_or_ones(pairs.weight_of_item, n_items)
        loser_weight = weights_or_ones(pairs.item_weights, n_items)
        if pairs.can_lose is not None:
            loser_weight = np.where(pairs.can_lose, loser_weight, 0.0)
        with np.errstate(divide="ignore"):  # log 0 = −∞: an item of weight 0 has no effect
            self._log_winner_weight = np.log(winner_weight / pairs.total_weight)[self._order]
            self._log_loser_weight = np.log(loser_weight)[self._order]

    def center(self, f: Array) -> Array:
        """Subtract the mean of each group."""
        return self._pairs.center(f)

    def loss_shares(self, f: Array) -> LossShares:
        """Logarithm of the loss, and the shares of the items."""
        log_won, log_lost = self._log_sums(f, log_factor=np.zeros(len(f)))
        log_loss = float(logsumexp(log_won))
        won = self._in_order_of_items(np.exp(log_won - log_loss))
        lost = self._in_order_of_items(np.exp(log_lost - log_loss))
        return LossShares(log_loss, won, lost)

    def laplacian_product(self, f: Array, log_loss: float, v: Array) -> Array:
        """``Σ share_k (v_i − v_j) (e_i − e_j)`` over the pairs k = (i → j)."""
        # Laplacian of the pairs, each weighted by its share of the loss, times v.
        # A constant does not change the product, and logarithms of sums need positive terms
        v = v - v.min()
        with np.errstate(divide="ignore"):
            log_v = np.log(v)
        # for each item Σ share_k v_j over its pairs k with an item j
        log_won, log_lost = self._log_sums(f, log_factor=log_v)
        sorted_sums = np.exp(log_won - log_loss) + np.exp(log_lost - log_loss)
        share_times_v_of_partners = self._in_order_of_items(sorted_sums)

        _, share_won, share_lost = self.loss_shares(f)
        return (share_won + share_lost) * v - share_times_v_of_partners

    def _log_sums(self, f: Array, *, log_factor: Array) -> tuple[Array, Array]:
        """For each sorted item the logarithm of the sum over the pairs that it wins, or loses.

        A term of the sum is the loss of the pair times a factor of the other item of the pair.
        """
        # log Σ factor_j · loss of the pair over the losers j, and over the winners j, of each item
        sorted_scores = self._pairs.center(f)[self._order]
        sorted_factor = log_factor[self._order]

        # the loss of a pair is the product of a term of its winner and a term of its loser
        log_winner_term = self._log_winner_weight - sorted_scores
        log_loser_term = self._log_loser_weight + sorted_scores
        log_sum_of_lower = np.full(len(f), -np.inf)  # over the items of lower level in the group
        log_sum_of_higher = np.full(len(f), -np.inf)
        for start, stop in itertools.pairwise(self._group_bounds):
            group = slice(start, stop)
            log_losers = log_loser_term[group] + sorted_factor[group]
            log_winners = log_winner_term[group] + sorted_factor[group]

            # entry k is the sum over the lowest, or the highest, k items of the group
            log_sum_of_lowest = np.logaddexp.accumulate(np.append(-np.inf, log_losers))
            log_sum_of_highest = np.logaddexp.accumulate(np.append(-np.inf, log_winners[::-1]))
            n_lower = self._level_start[group] - start
            n_higher = stop - self._level_end[group]
            log_sum_of_lower[group] = log_sum_of_lowest[n_lower]
            log_sum_of_higher[group] = log_sum_of_highest[n_higher]
        return log_winner_term + log_sum_of_lower, log_loser_term + log_sum_of_higher

    def _in_order_of_items(self, sorted_values: Array) -> Array:
        values = np.empty_like(sorted_values)
        values[self._order] = sorted_values
        return values


def make_pair_sums(pairs: EdgePairs | OrderedPairs) -> ListedPairSums | OrderedPairSums:
    """Sums over pairs that are listed, or ordered by levels."""
    if isinstance(pairs, OrderedPairs):
        return OrderedPairSums(pairs)
    return ListedPairSums(pairs)
