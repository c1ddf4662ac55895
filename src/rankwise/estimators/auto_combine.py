"""How AutoRanker makes one ranker of its members: a stack, the mean of the best, or the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators.auto_hold_out import CLEAR, HeldOutItems, Units, choose_alpha, is_worse
from rankwise.estimators.auto_members import Member
from rankwise.estimators.rank_rls import RankRLS
from rankwise.model_selection.measures import check_scoring, mean_defined

AVERAGED = 4  # members that the mean is taken of
LEAST_FOR_STACK = 200  # items: weights from fewer are noise


@dataclass(eq=False)
class Combination:
    """Weights of the members, and how good they are on held-out data.

    Attributes
    ----------
    how : {"stack", "mean", "best"}
        What was chosen.
    weights : ndarray of shape (n_members,)
        Weights of the scores of the members, each scaled in its group.
    by_unit : ndarray of shape (n_units,)
        The metric in each unit that was held out, also from the weights of a stack.
    note : str
        Why this, if something else was asked for.
    """

    how: str
    weights: Array
    by_unit: Array
    note: str = ""


def combine_members(members: list[Member], units: Units, how: str) -> Combination:
    """Combine as asked for; a stack gives way to what is clearly better on held-out data.

    The stack is ``RankRLS(cost="sign")`` on the held-out scores H of the members, centered and
    scaled in each group. Its alpha is chosen by leave-group-out and the share of pairs in the wrong
    order, which is what its cost asks for and varies less than other metrics. The best of several
    members flatters itself a little, so it replaces the stack only if it is better by a standard
    error of the difference over groups. With fewer than 200 items the mean of the best members
    takes the place of the stack: it does not learn weights from noise.
    """
    sign = 1.0 if units.metric.greater_is_better else -1.0
    score = [sign * float(mean_defined(member.by_unit)) for member in members]
    order = sorted(range(len(members)), key=lambda k: -score[k])
    best = Combination("best", np.eye(len(members))[order[0]], members[order[0]].by_unit)
    if how == "best" or len(members) == 1:
        return best
    Z = units.scaled(np.stack([member.held for member in members], axis=1))
    weights = np.zeros(len(members))
    weights[order[:AVERAGED]] = 1.0 / len(order[:AVERAGED])
    mean = Combination("mean", weights, units.judge((Z @ weights)[:, None])[:, 0])
    if how == "mean":
        return mean
    if len(Z) < LEAST_FOR_STACK:
        what = "the mean of the best takes the place of the stack"
        mean.note = f"{what}: {len(Z)} items are too few for its weights"
        return mean
    stack = _stack(Z, units)
    other = max(mean, best, key=lambda each: sign * float(mean_defined(each.by_unit)))
    if stack.weights.any() and not is_worse(stack.by_unit, other.by_unit, sign, CLEAR):
        return stack
    what = "the mean of the best" if other.how == "mean" else "the best member"
    values = [float(mean_defined(each.by_unit)) for each in (other, stack)]
    note = f"{what} takes the place of the stack: {units.metric.name} {{:.4f}} against {{:.4f}}"
    other.note = note.format(*values) + " on held-out data"
    return other


def _stack(Z: Array, units: Units) -> Combination:
    graph, folds = units.second_level()
    task: Any = RankRLS().hold_out_task(Z, graph)
    level = HeldOutItems(graph, check_scoring("disagreement"), folds)
    choice = choose_alpha(task, level)
    weights = RankRLS(choice.alpha).fit(Z, graph).coef_
    weights = weights / (np.abs(weights).sum() or 1.0)
    return Combination("stack", weights, units.judge(choice.held[:, None])[:, 0])
