"""Rows of the members of AutoRanker: of its attribute `members_`, and of the log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rankwise.auto.budgeted_evaluation import (
    Evaluated,
    EvaluationPlan,
    Skipped,
    evaluate_members,
    sum_of_expected_seconds,
)
from rankwise.auto.evaluated_member import note_of_trees
from rankwise.auto.training_data import HoldOut
from rankwise.metrics.by_group import mean_interval
from rankwise.preprocessing.column_types import ColumnInfo
from rankwise.runtime.progress import Progress

LONG_SECONDS = 3.0  # longer fits are announced on a terminal


def evaluate_with_log(
    members: dict[str, Any],
    plan: EvaluationPlan,
    columns: Sequence[ColumnInfo],
    *,
    is_verbose: bool,
) -> list[Evaluated | Skipped]:
    """Evaluate the members, with progress or a line for each on standard error.

    Parameters
    ----------
    members : dict
        Members by name.
    plan : EvaluationPlan
        Data, seed and budget.
    columns : sequence of ColumnInfo
        Columns of a table.
    is_verbose : bool
        Whether each member is printed.
    """
    announce(columns, members, plan.hold_out, plan.time_limit, is_verbose)
    progress = progress_of_members(len(members), is_verbose)
    n_done = 0

    def show_progress(result: Evaluated | Skipped) -> None:
        nonlocal n_done
        n_done += 1
        progress.update(n_done)
        if is_verbose:
            print_result(result, plan.hold_out.metric.name)

    results = evaluate_members(members, plan, show_progress)
    progress.close()
    return results


def announce(
    columns: Sequence[ColumnInfo],
    members: dict[str, Any],
    hold_out: HoldOut,
    time_limit: float | None,
    is_verbose: bool,
) -> None:
    """Print the use of the columns, the members and the expected time, if the fit is long.

    Parameters
    ----------
    columns : sequence of ColumnInfo
        Columns of a table.
    members : dict
        Members by name.
    hold_out : HoldOut
        What is held out.
    time_limit : float or None
        Seconds.
    is_verbose : bool
        Whether short fits are announced, too.
    """
    if not is_verbose and not sys.stderr.isatty():
        return
    seconds = sum_of_expected_seconds(members, hold_out)
    if not is_verbose and seconds <= LONG_SECONDS:
        return
    for column in columns:
        use = column.words
        if column.why:
            use += f" ({column.why})"
        sys.stderr.write(f"AutoRanker: column {column.name}: {use}\n")
    limit = ""
    if time_limit is not None:
        limit = f", at most {time_limit:g} s"
    sys.stderr.write(
        f"AutoRanker: {len(members)} members on {hold_out.all_data.graph.n_items:,} items, about "
        f"{seconds:.0f} s of one core{limit}\n"
    )


def progress_of_members(n_members: int, is_verbose: bool) -> Progress:
    """Progress of the evaluation; a verbose evaluation prints a line for each member instead."""
    is_shown = None  # on a terminal
    if is_verbose:
        is_shown = False
    return Progress("AutoRanker", n_members, is_shown)


def print_result(result: Evaluated | Skipped, scoring: str) -> None:
    """Print a member and its score to standard error."""
    row = table_row(result)
    outcome = row["note"]
    if "score" in row:
        outcome = f"{scoring} {row['score']:.4f}"
    sys.stderr.write(f"AutoRanker: {result.name}: {outcome}, {result.seconds:.1f} s\n")


def table_row(result: Evaluated | Skipped) -> dict[str, Any]:
    """A row of `members_`, without the weight."""
    if isinstance(result, Skipped):
        note = f"left out: {result.reason}"
        return {"name": result.name, "note": note, "seconds": result.seconds}
    member = result.member
    return {
        "name": result.name,
        "note": note_of_trees(member.n_trees),
        "alpha": member.alpha,
        **mean_interval(member.metric_by_unit),
        "seconds": result.seconds,
    }
