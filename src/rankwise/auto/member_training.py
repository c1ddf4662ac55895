"""Training of the members that have a weight in the stack."""

from __future__ import annotations

from typing import Any, NamedTuple

from rankwise.auto.evaluated_member import EvaluatedMember
from rankwise.auto.stacking import Stack, Stacking
from rankwise.auto.time_budget import TimeBudget
from rankwise.auto.training_data import HoldOut
from rankwise.runtime.progress import track


class TrainedStack(NamedTuple):
    """A combination with its trained members.

    Attributes
    ----------
    stack : Stack
        The combination.
    weights : dict of float
        Weights of all evaluated members, by name.
    models : dict
        Trained models of members, by name; all that have a weight are trained.
    n_untrained : int
        Number of members that were left out because no time was left.
    """

    stack: Stack
    weights: dict[str, float]
    models: dict[str, Any]
    n_untrained: int


def train_members(
    evaluated: dict[str, EvaluatedMember],
    stack: Stack,
    hold_out: HoldOut,
    budget: TimeBudget,
    combine: str,
) -> TrainedStack:
    """Train the members that have a weight, the largest weight first.

    If there is no time for some of them, the trained members are combined again.

    Parameters
    ----------
    evaluated : dict
        Members by name.
    stack : Stack
        Their combination.
    hold_out : HoldOut
        What was held out.
    budget : TimeBudget
        Time that is left.
    combine : {"stack", "mean", "best"}
        How members are combined again.
    """
    weights = dict(zip(evaluated, stack.weights.tolist(), strict=True))
    in_use = [name for name, weight in weights.items() if weight]
    largest_weight_first = sorted(in_use, key=lambda name: -abs(weights[name]))
    models: dict[str, Any] = {}
    budget.release()  # the time that was reserved for training
    for name in track(largest_weight_first, "AutoRanker trains"):
        if not models or budget.left() > 0:  # the first one is always trained
            models[name] = evaluated[name].train()
    n_untrained = len(in_use) - len(models)
    if n_untrained:  # weights of the trained members only
        members = [evaluated[name] for name in models]
        stack = Stacking(members, hold_out, combine).combine()
        weights = dict.fromkeys(evaluated, 0.0)
        weights.update(zip(models, stack.weights.tolist(), strict=True))
    return TrainedStack(stack, weights, models, n_untrained)


def training_notes(trained: TrainedStack, hold_out: HoldOut) -> list[str]:
    """Remarks on untrained members, on the kind of the combination and on a sample of items."""
    notes = []
    if trained.n_untrained:
        notes.append(f"no time was left to train {trained.n_untrained} of the members")
    if trained.stack.note:
        notes.append(trained.stack.note)
    if hold_out.is_sample:
        n_evaluated = hold_out.graph.n_items
        n_all = hold_out.all_data.graph.n_items
        notes.append(
            f"members were chosen on {n_evaluated:,} of {n_all:,} items, and trained on all"
        )
    return notes
