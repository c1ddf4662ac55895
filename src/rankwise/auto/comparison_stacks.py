"""The two stacks of members for comparisons: of orders, and of models of both items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array
from rankwise.auto.capped_link import Outcomes, as_log_odds
from rankwise.auto.comparison_folds import HeldOutComparisons
from rankwise.auto.comparison_problem import EvaluatedPairMember
from rankwise.auto.log_odds_stack import (
    LogOddsStack,
    Resample,
    fit_order_stack,
    fit_stack,
    resample_items,
)
from rankwise.metrics.shared_items import dyadic_robust_mean

PAIRS_ERRORS = 2.0  # standard errors by which pairs must be better than the order
LEAST_RESAMPLED = 10  # comparisons to fit and to evaluate the stacks of a resample


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """Log loss and errors of held-out comparisons.

    Attributes
    ----------
    order_loss, pairs_loss : ndarray of shape (n_held_out,)
        Log losses by the stack of orders and by that of pairs.
    order_wrong, pairs_wrong : ndarray of shape (n_held_out,)
        1 for the wrong winner, 1/2 for equal scores, NaN for a tie.
    """

    order_loss: Array
    pairs_loss: Array
    order_wrong: Array
    pairs_wrong: Array

    def wrong_shares(self, uses_pairs: bool) -> Array:
        """Errors of the stack of pairs, or of the stack of orders."""
        if uses_pairs:
            return self.pairs_wrong
        return self.order_wrong


@dataclass(frozen=True, eq=False)
class ComparisonStacks:
    """The stack of orders, which ranks, and the stack of pairs.

    Attributes
    ----------
    order_members, pair_members : list of EvaluatedPairMember
        The members of each. Capped orders are not in the stack of pairs.
    order, pairs : LogOddsStack
        The stacks.
    order_differences : ndarray of shape (n_held_out,)
        Held-out differences of the order.
    pair_log_odds : ndarray of shape (n_held_out,)
        Held-out log odds of the stack of pairs.
    losses : HeldOutLosses
        Their held-out losses.
    uses_pairs : bool
        Whether the stack of pairs is better than the order by two dyadic-robust standard errors.
    """

    order_members: list[EvaluatedPairMember]
    pair_members: list[EvaluatedPairMember]
    order: LogOddsStack
    pairs: LogOddsStack
    order_differences: Array
    pair_log_odds: Array
    losses: HeldOutLosses
    uses_pairs: bool

    @classmethod
    def fit(
        cls, members: list[EvaluatedPairMember], hold_out: HeldOutComparisons
    ) -> ComparisonStacks:
        """Fit both stacks to the held-out comparisons."""
        order_members = [member for member in members if member.is_order]
        # members of the stack of log odds: models of pairs, and orders with the logistic link
        pair_members = [member for member in members if member.min_upset_probability == 0]
        if not order_members or not pair_members:
            raise ValueError("members must have an order, and a member that is not capped.")
        columns = StackColumns.of(order_members, pair_members)
        outcomes = hold_out.comparisons.outcomes
        order = fit_order_stack(columns.orders, outcomes)
        pairs = fit_stack(columns.pairs, outcomes)
        losses = columns.losses(order, pairs, outcomes.first_win_share)
        has_model_of_pairs = any(not member.is_order for member in pair_members)
        return cls(
            order_members=order_members,
            pair_members=pair_members,
            order=order,
            pairs=pairs,
            order_differences=columns.orders @ order.factors,
            pair_log_odds=columns.pairs @ pairs.factors,
            losses=losses,
            uses_pairs=has_model_of_pairs and _are_pairs_better(losses, hold_out),
        )


@dataclass(frozen=True, eq=False)
class StackColumns:
    """One column of held-out differences for each member of the two stacks."""

    orders: Array
    pairs: Array

    @classmethod
    def of(
        cls, order_members: list[EvaluatedPairMember], pair_members: list[EvaluatedPairMember]
    ) -> StackColumns:
        """Columns of the members."""
        orders = [member.differences for member in order_members]
        pairs = [
            as_log_odds(member.differences, member.min_upset_probability) for member in pair_members
        ]
        return cls(np.column_stack(orders), np.column_stack(pairs))

    def losses(
        self, order: LogOddsStack, pairs: LogOddsStack, first_win_share: Array
    ) -> HeldOutLosses:
        """Losses of all comparisons by these stacks."""
        return HeldOutLosses(
            order_loss=order.losses(self.orders, first_win_share),
            pairs_loss=pairs.losses(self.pairs, first_win_share),
            order_wrong=order.wrong_shares(self.orders, first_win_share),
            pairs_wrong=pairs.wrong_shares(self.pairs, first_win_share),
        )


def out_of_bag_losses(
    stacks: ComparisonStacks,
    hold_out: HeldOutComparisons,
    n_resamples: int,
    rng: np.random.Generator,
) -> HeldOutLosses:
    """Mean losses by stacks that were fitted to other items.

    Units of items are drawn with replacement; stacks are fitted to comparisons of drawn items, and
    evaluated where neither item was drawn. Comparisons that were never evaluated are NaN.
    """
    columns = StackColumns.of(stacks.order_members, stacks.pair_members)
    outcomes = hold_out.comparisons.outcomes
    n_held_out = len(outcomes.first_win_share)
    sums_of_losses = np.zeros((4, n_held_out))  # of the four kinds of `HeldOutLosses`
    n_evaluated = np.zeros(n_held_out)
    for _ in range(n_resamples):
        resample = resample_items(hold_out, rng)
        not_drawn = resample.not_drawn
        if min(len(resample.drawn), len(not_drawn)) < LEAST_RESAMPLED:
            continue
        losses = _losses_of_resample(
            resample, columns, outcomes, stacks.order.min_upset_probability
        )
        sums_of_losses[:, not_drawn] += [
            losses.order_loss,
            losses.pairs_loss,
            losses.order_wrong,
            losses.pairs_wrong,
        ]
        n_evaluated[not_drawn] += 1
    never_evaluated = np.full(sums_of_losses.shape, np.nan)
    means = np.divide(sums_of_losses, n_evaluated, out=never_evaluated, where=n_evaluated > 0)
    order_loss, pairs_loss, order_wrong, pairs_wrong = means
    return HeldOutLosses(order_loss, pairs_loss, order_wrong, pairs_wrong)


def _losses_of_resample(
    resample: Resample, columns: StackColumns, outcomes: Outcomes, min_upset_probability: float
) -> HeldOutLosses:
    """Losses where no item was drawn, by stacks that were fitted where both items were drawn."""
    drawn = resample.drawn
    not_drawn = resample.not_drawn
    weight = outcomes.weight[drawn] * resample.n_draws
    drawn_outcomes = Outcomes(outcomes.first_win_share[drawn], weight)
    order = fit_stack(columns.orders[drawn], drawn_outcomes, min_upset_probability)
    pairs = fit_stack(columns.pairs[drawn], drawn_outcomes)
    columns_not_drawn = StackColumns(columns.orders[not_drawn], columns.pairs[not_drawn])
    return columns_not_drawn.losses(order, pairs, outcomes.first_win_share[not_drawn])


def _are_pairs_better(losses: HeldOutLosses, hold_out: HeldOutComparisons) -> bool:
    comparisons = hold_out.comparisons
    gain = dyadic_robust_mean(
        losses.order_loss - losses.pairs_loss,
        comparisons.first,
        comparisons.second,
        sample_weight=comparisons.weight,
    )
    return gain.mean > PAIRS_ERRORS * gain.standard_error
