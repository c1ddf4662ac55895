"""Rows of the members of AutoRanker: of its attribute `members_`, and of the log."""

from __future__ import annotations

import sys
from typing import Any

from rankwise.auto.budgeted_evaluation import Evaluated, Skipped
from rankwise.metrics.by_group import mean_interval


def print_result(result: Evaluated | Skipped, scoring: str) -> None:
    """Print a member and its score to standard error."""
    row = table_row(result)
    outcome = f"{scoring} {row['score']:.4f}" if "score" in row else row["note"]
    sys.stderr.write(f"AutoRanker: {result.name}: {outcome}, {result.seconds:.1f} s\n")


def table_row(result: Evaluated | Skipped) -> dict[str, Any]:
    """A row of `members_`, without the weight."""
    if isinstance(result, Skipped):
        note = f"left out: {result.reason}"
        return {"name": result.name, "note": note, "seconds": result.seconds}
    member = result.member
    return {
        "name": result.name,
        "note": f"{member.n_trees} trees" if member.n_trees else "",
        "alpha": member.alpha,
        **mean_interval(member.by_unit),
        "seconds": result.seconds,
    }
