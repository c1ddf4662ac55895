"""Evaluation of all members of AutoRanker within a time budget."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from rankwise.auto.evaluated_member import EvaluatedMember
from rankwise.auto.expected_time import (
    ExpectedSeconds,
    can_run_together,
    expected_seconds,
    first_tree_seconds,
)
from rankwise.auto.member_evaluation import evaluate_member
from rankwise.auto.members import CandidateMember
from rankwise.auto.time_budget import TimeBudget
from rankwise.auto.training_data import HoldOut, TrainingData
from rankwise.runtime.threads import LARGE_STEP, map_in_threads

MANY_ITEMS = 50_000  # from which members are evaluated on a sample
MAX_SAMPLE = 20_000  # items of that sample
MIN_SAMPLING = 5  # the sample is at most one item in this many
MIN_SAMPLE = 500  # items of a sample that is small because of a time limit
FIRST_SHARE = 0.3  # of a time limit, for the first member
TREE_SHARE = 0.5  # of the time that is left, for trees if other members follow


@dataclass(eq=False)
class Evaluated:
    """An evaluated member, and the seconds of its evaluation."""

    name: str
    member: EvaluatedMember
    seconds: float


@dataclass(eq=False)
class Skipped:
    """A member that was not evaluated, and the reason.

    Attributes
    ----------
    name : str
        Name of the member.
    reason : str
        Message of the error, or a statement that the time limit was reached.
    seconds : float
        Seconds until it was skipped.
    is_foreign_error : bool
        Whether a ranker that is not in the menu raised an error.
    """

    name: str
    reason: str
    seconds: float
    is_foreign_error: bool = False


@dataclass(eq=False)
class EvaluationPlan:
    """Settings of each evaluation of `evaluate_members`.

    Attributes
    ----------
    hold_out : HoldOut
        Held-out data.
    seed : int
        Seed of the basis items.
    budget : TimeBudget
        Time for all members.
    time_limit : float or None
        The limit in seconds, for messages.
    """

    hold_out: HoldOut
    seed: int
    budget: TimeBudget
    time_limit: float | None


def plan_hold_out(
    first_member: Any,
    data: TrainingData,
    scoring: Any,
    budget: TimeBudget,
    rng: np.random.Generator,
) -> HoldOut:
    """Hold out all items, or a sample for which the first member has time."""
    n_items = data.graph.n_items
    n_sample = n_items
    if n_items >= MANY_ITEMS:
        n_sample = min(MAX_SAMPLE, n_items // MIN_SAMPLING)
    while True:  # halve the sample until it fits into the time limit
        rows = None  # all of them
        if n_sample < n_items:
            rows = data.sample_rows(n_sample, rng)
        hold_out = HoldOut.of(data, scoring, rows)
        expected = expected_seconds(first_member, hold_out)
        is_affordable = budget.affords(expected.total, FIRST_SHARE)
        half_n_sample = min(n_sample, hold_out.graph.n_items) // 2
        if is_affordable or half_n_sample < MIN_SAMPLE:
            return hold_out
        n_sample = half_n_sample


def evaluate_members(
    members: dict[str, Any],
    plan: EvaluationPlan,
    report: Callable[[Evaluated | Skipped], None],
) -> list[Evaluated | Skipped]:
    """Evaluate the members, in parallel if cores are idle; results are in the order of members.

    With a time limit the first member is evaluated alone: it measures the speed of the machine.
    `report` is called after each member, by the thread that evaluated it.
    """
    names = list(members)
    hold_out = plan.hold_out
    expected = {name: expected_seconds(member, hold_out) for name, member in members.items()}

    def evaluate_in_turn(block: list[str]) -> list[Evaluated | Skipped]:
        results = []
        for name in block:
            tree_share = TREE_SHARE  # leaves time for the members that follow
            if name == names[-1]:
                tree_share = 1.0
            is_first = name == names[0]
            result = evaluate_one(
                name, members[name], expected[name], plan, tree_share, is_required=is_first
            )
            report(result)
            results.append(result)
        return results

    n_alone = 0
    if plan.time_limit is not None:  # the first member measures the speed of the machine
        n_alone = 1
    first_results = evaluate_in_turn(names[:n_alone])
    work = 0.0  # too little for several threads
    if can_run_together(members, hold_out):
        seconds_of_all = sum(seconds.total for seconds in expected.values())
        work = LARGE_STEP * seconds_of_all  # several threads pay from about one second on
    blocks = map_in_threads(evaluate_in_turn, names[n_alone:], work, one_by_one=True)
    return list(itertools.chain(first_results, *blocks))


def evaluate_one(
    name: str,
    member: Any,
    expected: ExpectedSeconds,
    plan: EvaluationPlan,
    tree_share: float,
    *,
    is_required: bool,
) -> Evaluated | Skipped:
    """Evaluate a member, unless there is no time for it.

    Parameters
    ----------
    name : str
        Name of the member.
    member : CandidateMember or estimator
        The member.
    expected : ExpectedSeconds
        Expected time of the member.
    plan : EvaluationPlan
        Data, seed and budget.
    tree_share : float
        Share of the time left that trees may take.
    is_required : bool
        Whether the member is evaluated even if there is no time.
    """
    start = perf_counter()
    budget = plan.budget
    is_candidate = isinstance(member, CandidateMember)
    is_trees = is_candidate and member.is_trees
    share = 1.0  # of the time that is left
    least_seconds = expected.total
    if is_trees:  # they grow as long as there is time
        share = tree_share
        least_seconds = first_tree_seconds(plan.hold_out)
    available_seconds = share * budget.left()
    if not is_required and not budget.affords(least_seconds, share):
        reason = f"the time limit of {plan.time_limit:g} s was over"
        return Skipped(name, reason, perf_counter() - start)

    # reserve time for training, as expected until the evaluation has measured it
    pace = budget.pace  # seconds that work takes per expected second
    likely_seconds = min(available_seconds, pace * expected.total)
    budget.reserve(name, likely_seconds * expected.training / expected.total)
    try:
        evaluated = evaluate_member(member, plan.hold_out, plan.seed, available_seconds, pace)
    except Exception as error:  # rankers that are not ours may raise any error
        budget.reserve(name, 0.0)
        reason = str(error).rstrip(".")
        seconds = perf_counter() - start
        return Skipped(name, reason, seconds, is_foreign_error=not is_candidate)
    seconds = perf_counter() - start
    # training takes longer than expected by the same factor as the evaluation
    budget.reserve(name, seconds * expected.training / expected.evaluation)
    if not is_trees:  # the time of trees depends on how long they may grow
        budget.observe(seconds, expected.evaluation)
    return Evaluated(name, evaluated, seconds)


def sum_of_expected_seconds(members: dict[str, Any], hold_out: HoldOut) -> float:
    """Expected time of all members on one core."""
    return sum(expected_seconds(member, hold_out).total for member in members.values())
