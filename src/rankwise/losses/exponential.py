"""The exponential loss of RankBoost, without a list of pairs for scored items."""

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
        self._sums = exponential_sums(self.preferences)

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
        log_loss, won, lost = self._sums.shares(f)
        scale = float(np.exp(min(log_loss, MAX_LOG_LOSS)))
        value = scale * (1 + max(log_loss - MAX_LOG_LOSS, 0.0))
        gradient = scale * (lost - won)

        def hessian_product(v: Array) -> Array:
            return scale * self._sums.laplacian(f, log_loss, v)

        centered = self._sums.center(f)
        offset = value - float(gradient @ centered)
        offset_terms = value + scale * float((won + lost) @ np.abs(centered))
        plane = Plane(offset, offset_terms, gradient_terms=2 * scale)
        return LossValue(value, gradient, hessian_product, plane)


class Shares(NamedTuple):
    """The exponential loss at some scores.

    Attributes
    ----------
    log_loss : float
        Logarithm of the loss.
    won, lost : ndarray of shape (n_items,)
        Share of the loss in the pairs in which the item is preferred, or is not.
    """

    log_loss: float
    won: Array
    lost: Array


class EdgeSums:
    """Sums over listed edges."""

    def __init__(self, pairs: EdgePairs) -> None:
        self._pairs = pairs
        self._n_items = pairs.graph.n_items
        with np.errstate(divide="ignore"):
            self._log_weight = np.log(pairs.weight / pairs.total_weight)

    def center(self, f: Array) -> Array:
        """Subtract the mean, which changes no difference."""
        return np.asarray(f - f.mean())

    def shares(self, f: Array) -> Shares:
        """Logarithm of the loss, and the shares of the items."""
        exponent = self._exponent(f)
        log_loss = float(logsumexp(exponent))
        share = np.exp(exponent - log_loss)
        won = np.bincount(self._pairs.winner, share, self._n_items)
        lost = np.bincount(self._pairs.loser, share, self._n_items)
        return Shares(log_loss, won.astype(np.float64), lost.astype(np.float64))

    def laplacian(self, f: Array, log_loss: float, v: Array) -> Array:
        """Product of v with the Laplacian of the pairs, weighted by their shares of the loss."""
        share = np.exp(self._exponent(f) - log_loss)
        flow = share * (v[self._pairs.winner] - v[self._pairs.loser])
        inflow = np.bincount(self._pairs.winner, flow, self._n_items)
        return np.asarray(inflow - np.bincount(self._pairs.loser, flow, self._n_items))

    def _exponent(self, f: Array) -> Array:
        return np.asarray(self._log_weight - (f[self._pairs.winner] - f[self._pairs.loser]))


class OrderedSums:
    """Sums over all pairs of different level, from logarithms of running sums by level."""

    def __init__(self, pairs: OrderedPairs) -> None:
        n_items = pairs.n_items
        self._pairs = pairs
        self._order = np.lexsort((pairs.level, pairs.group))
        self._bounds = np.append(pairs.starts, n_items).tolist()
        starts_level = np.ones(n_items, dtype=bool)
        starts_level[1:] = np.diff(pairs.level[self._order]) != 0
        starts_level[pairs.starts[pairs.size > 0]] = True
        level_starts = np.flatnonzero(starts_level)
        level = np.cumsum(starts_level) - 1
        self._level_start = level_starts[level]
        self._level_end = np.append(level_starts, n_items)[level + 1]
        loser_weight = weights_or_ones(pairs.item_weights, n_items)
        winner_weight = weights_or_ones(pairs.weight_of_item, n_items)
        if pairs.can_lose is not None:
            loser_weight = np.where(pairs.can_lose, loser_weight, 0.0)
        with np.errstate(divide="ignore"):
            self._log_winner = np.log(winner_weight / pairs.total_weight)[self._order]
            self._log_loser = np.log(loser_weight)[self._order]

    def center(self, f: Array) -> Array:
        """Subtract the mean of each group."""
        return self._pairs.center(f)

    def shares(self, f: Array) -> Shares:
        """Logarithm of the loss, and the shares of the items."""
        log_won, log_lost = self._log_sums(f, np.zeros(len(f)))
        log_loss = float(logsumexp(log_won))
        won = self._to_items(np.exp(log_won - log_loss))
        lost = self._to_items(np.exp(log_lost - log_loss))
        return Shares(log_loss, won, lost)

    def laplacian(self, f: Array, log_loss: float, v: Array) -> Array:
        """Product of v with the Laplacian of the pairs, weighted by their shares of the loss."""
        v = v - v.min()  # the logarithms of the sums need positive terms
        with np.errstate(divide="ignore"):
            log_v = np.log(v)
        shares = self.shares(f)
        log_won, log_lost = self._log_sums(f, log_v)
        sum_over_partners = self._to_items(np.exp(log_won - log_loss) + np.exp(log_lost - log_loss))
        return (shares.won + shares.lost) * v - sum_over_partners

    def _log_sums(self, f: Array, log_factor: Array) -> tuple[Array, Array]:
        """For each sorted item the logarithm of the sum over the pairs that it wins, or loses.

        The other item of a pair has a factor, of which the logarithm is given.
        """
        scores = self._pairs.center(f)[self._order]
        factor = log_factor[self._order]
        lower = np.full(len(scores), -np.inf)
        higher = np.full(len(scores), -np.inf)
        of_losers = self._log_loser + scores + factor
        of_winners = self._log_winner - scores + factor
        for start, stop in itertools.pairwise(self._bounds):
            group = slice(start, stop)
            below = np.logaddexp.accumulate(np.append(-np.inf, of_losers[group]))
            above = np.logaddexp.accumulate(np.append(-np.inf, of_winners[group][::-1]))
            lower[group] = below[self._level_start[group] - start]
            higher[group] = above[stop - self._level_end[group]]
        return self._log_winner - scores + lower, self._log_loser + scores + higher

    def _to_items(self, sorted_values: Array) -> Array:
        values = np.empty_like(sorted_values)
        values[self._order] = sorted_values
        return values


def exponential_sums(pairs: EdgePairs | OrderedPairs) -> EdgeSums | OrderedSums:
    """Sums over pairs that are listed, or ordered by levels."""
    if isinstance(pairs, OrderedPairs):
        return OrderedSums(pairs)
    return EdgeSums(pairs)
