"""Stacks of members that were evaluated on held-out comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from rankwise.arrays import Array, Indices
from rankwise.auto.capped_link import (
    Outcomes,
    link_derivatives,
    log_losses,
    wrong_shares,
)
from rankwise.auto.comparison_folds import HeldOutComparisons

SHRINKAGE = 20.0  # number of average comparisons whose information pulls the weights to their mean
ORDER_UPSET_PROBABILITIES = (0.0, 0.02, 0.06)
LOG_TEMPERATURES = (-6.0, 4.0)


@dataclass(frozen=True, eq=False)
class LogOddsStack:
    """A sum of the differences of members.

    Attributes
    ----------
    factors : ndarray of shape (n_members,)
        Temperature times weight of each member, 0 or more.
    weights : ndarray of shape (n_members,)
        Weights of the members at their temperatures.
    min_upset_probability : float
        The c of the link.
    """

    factors: Array
    weights: Array
    min_upset_probability: float

    def losses(self, member_differences: Array, first_win_share: Array) -> Array:
        """Log loss of each comparison, from one column of differences per member."""
        return log_losses(
            member_differences @ self.factors, first_win_share, self.min_upset_probability
        )

    def wrong_shares(self, member_differences: Array, first_win_share: Array) -> Array:
        """1 for each comparison with the wrong winner; see `wrong_shares`."""
        return wrong_shares(member_differences @ self.factors, first_win_share)


def fit_order_stack(member_differences: Array, outcomes: Outcomes) -> LogOddsStack:
    """The stack with the probability of an upset that has the smallest loss."""
    stacks = [
        fit_stack(member_differences, outcomes, min_upset_probability)
        for min_upset_probability in ORDER_UPSET_PROBABILITIES
    ]
    return min(stacks, key=lambda stack: _total_loss(stack, member_differences, outcomes))


def fit_stack(
    member_differences: Array, outcomes: Outcomes, min_upset_probability: float = 0.0
) -> LogOddsStack:
    """Temperature of each member alone, then weights of 0 or more, without an intercept.

    The weights are shrunk to their mean by the information of 20 average comparisons.

    Parameters
    ----------
    member_differences : ndarray of shape (n_comparisons, n_members)
        Held-out differences of the members.
    outcomes : Outcomes
        Results of the comparisons.
    min_upset_probability : float, default=0.0
        The c of the link.
    """
    # calibrate each member: a factor turns its differences into log odds
    temperatures = np.array(
        [
            _temperature(differences, outcomes, min_upset_probability)
            for differences in member_differences.T
        ]
    )
    member_log_odds = member_differences * temperatures
    n_members = member_differences.shape[1]
    mean_weight = 1.0 / n_members

    # ridge to the mean weight: the information of `SHRINKAGE` average comparisons about each weight
    mean_log_odds = member_log_odds.mean(axis=1)
    information = link_derivatives(mean_log_odds, outcomes, min_upset_probability).information
    information_about_weights = information @ member_log_odds**2
    penalty = SHRINKAGE * information_about_weights / outcomes.weight.sum()

    def loss_and_gradient(weights: Array) -> tuple[float, Array]:
        stacked_log_odds = member_log_odds @ weights
        departure = weights - mean_weight
        losses = log_losses(stacked_log_odds, outcomes.first_win_share, min_upset_probability)
        loss = outcomes.weight @ losses + penalty @ departure**2 / 2
        derivatives = link_derivatives(stacked_log_odds, outcomes, min_upset_probability)
        gradient = member_log_odds.T @ derivatives.gradient
        return float(loss), gradient + penalty * departure

    start = np.full(n_members, mean_weight)
    bounds = [(0.0, None)] * n_members
    result = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds)
    weights = np.asarray(result.x)
    factors = weights * temperatures  # of the differences of each member
    return LogOddsStack(factors, weights, min_upset_probability)


def _temperature(differences: Array, outcomes: Outcomes, min_upset_probability: float) -> float:
    """The factor of the differences with the smallest loss."""
    root_mean_square = float(np.sqrt(np.mean(differences**2)))
    if root_mean_square == 0:
        return 1.0

    # the logarithm of the factor of differences with a root mean square of 1
    def loss(log_factor: float) -> float:
        log_odds = np.exp(log_factor) / root_mean_square * differences
        losses = log_losses(log_odds, outcomes.first_win_share, min_upset_probability)
        return float(outcomes.weight @ losses)

    result = minimize_scalar(loss, bounds=LOG_TEMPERATURES, method="bounded")
    return float(np.exp(result.x) / root_mean_square)


def _total_loss(stack: LogOddsStack, member_differences: Array, outcomes: Outcomes) -> float:
    return float(outcomes.weight @ stack.losses(member_differences, outcomes.first_win_share))


class Resample(NamedTuple):
    """Held-out comparisons whose items were both drawn, or both not drawn.

    Attributes
    ----------
    drawn : ndarray of int
        Comparisons with both items drawn.
    n_draws : ndarray of int
        How often each of them counts.
    not_drawn : ndarray of int
        Comparisons with neither item drawn.
    """

    drawn: Indices
    n_draws: Array
    not_drawn: Indices


def resample_items(hold_out: HeldOutComparisons, rng: np.random.Generator) -> Resample:
    """Draw units of items with replacement."""
    comparisons = hold_out.comparisons
    unit_of_item = comparisons.unit_of_item
    n_units = int(unit_of_item.max()) + 1
    drawn_units = rng.integers(n_units, size=n_units)
    draws_of_unit = np.bincount(drawn_units, minlength=n_units)
    draws_of_first = draws_of_unit[unit_of_item[comparisons.first]]
    draws_of_second = draws_of_unit[unit_of_item[comparisons.second]]
    # a comparison counts as often as the pair of its items was drawn
    n_draws = draws_of_first * draws_of_second
    drawn = np.flatnonzero(n_draws)
    not_drawn = np.flatnonzero((draws_of_first == 0) & (draws_of_second == 0))
    return Resample(drawn, n_draws[drawn].astype(np.float64), not_drawn)
