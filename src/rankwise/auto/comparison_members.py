"""The members of AutoRanker for comparisons, and their evaluation in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import NamedTuple

from rankwise.auto.comparison_problem import ComparisonProblem, EvaluatedPairMember
from rankwise.auto.order_members import evaluate_hinges, evaluate_item_trees, evaluate_strengths
from rankwise.auto.pair_members import evaluate_joint, evaluate_pair_trees
from rankwise.validation import check_option


class ComparisonMember(NamedTuple):
    """One entry of the menu.

    Attributes
    ----------
    name : str
        Its name.
    evaluate : callable
        Evaluates the member on held-out comparisons; raises ValueError if there are too few data.
    is_applicable : callable
        Whether the data have the columns, names or times that the member requires.
    """

    name: str
    evaluate: Callable[[ComparisonProblem], EvaluatedPairMember]
    is_applicable: Callable[[ComparisonProblem], bool]


class EvaluatedEntry(NamedTuple):
    """An evaluated member, and the seconds of its evaluation."""

    member: EvaluatedPairMember
    seconds: float


class SkippedEntry(NamedTuple):
    """A member that was not evaluated, the reason, and the seconds until it was skipped."""

    name: str
    reason: str
    seconds: float


def _always(problem: ComparisonProblem) -> bool:
    return True


def _has_cells(problem: ComparisonProblem) -> bool:
    return problem.cells is not None


def _has_lasting_names(problem: ComparisonProblem) -> bool:
    """Whether later comparisons are held out, so that held-out items have a strength."""
    return problem.name_codes is not None and problem.hold_out.is_by_time


#: The first entry is evaluated regardless of the time limit; the most useful entries come first.
COMPARISON_MEMBERS = (
    ComparisonMember("hinges", partial(evaluate_hinges, min_upset_probability=0.0), _always),
    ComparisonMember(
        "hinges, capped at 0.06", partial(evaluate_hinges, min_upset_probability=0.06), _always
    ),
    ComparisonMember("strengths of known items", evaluate_strengths, _has_lasting_names),
    ComparisonMember("joint linear model of pairs", evaluate_joint, _has_cells),
    ComparisonMember("trees of items", evaluate_item_trees, _has_cells),
    ComparisonMember("trees of pairs", evaluate_pair_trees, _has_cells),
    ComparisonMember(
        "hinges, capped at 0.02", partial(evaluate_hinges, min_upset_probability=0.02), _always
    ),
)


def requested_comparison_members(
    requests: object, problem: ComparisonProblem
) -> list[ComparisonMember]:
    """Entries of the menu by name; "default" is replaced by all entries that the data allow."""
    menu = {entry.name: entry for entry in COMPARISON_MEMBERS if entry.is_applicable(problem)}
    names = requests
    if isinstance(requests, str):
        names = [requests]
    if not isinstance(names, Sequence) or not names:
        raise ValueError(f"members={requests!r}; expected 'default' or a list of names.")
    selected: dict[str, ComparisonMember] = {}
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"members contains {name!r:.80}; for comparisons expected names among: "
                + ", ".join(menu)
            )
        check_option("members", name, ("default", *menu))
        if name == "default":
            selected.update(menu)
        else:
            selected[name] = menu[name]
    return list(selected.values())


def evaluate_entry(
    entry: ComparisonMember, problem: ComparisonProblem, is_required: bool
) -> EvaluatedEntry | SkippedEntry:
    """Evaluate a member, unless the time limit is reached."""
    if problem.is_time_over() and not is_required:
        return SkippedEntry(entry.name, "the time limit was over", 0.0)
    start = perf_counter()
    try:
        member = entry.evaluate(problem)
    except ValueError as error:  # too few data for this member
        if is_required:
            raise
        reason = str(error).rstrip(".")
        return SkippedEntry(entry.name, reason, perf_counter() - start)
    return EvaluatedEntry(member, perf_counter() - start)
