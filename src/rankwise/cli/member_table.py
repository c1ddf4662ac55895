"""The members of an AutoRanker as the command shows and notes them."""

from __future__ import annotations

import math
from typing import Any


def describe_members(ranker: Any) -> dict[str, Any]:
    """What there is to note about a combination; JSON has no nan."""
    return {
        "metric": ranker.scoring_,
        "held_out_score": _finite(ranker.score_),
        "combine": ranker.combine_,
        "best_member": ranker.best_member_,
        "estimate": {name: _finite(value) for name, value in ranker.estimate_.items()},
        "members": [{name: _finite(v) for name, v in row.items()} for row in ranker.members_],
        "notes": list(ranker.notes_),
    }


def member_lines(chosen: dict[str, Any]) -> list[tuple[str, str]]:
    """The combination in a few lines."""
    what = {"stack": "a stack of", "mean": "the mean of the best of", "best": "the best of"}
    judged = sum("score" in row for row in chosen["members"])
    return [
        ("chosen", f"{what[chosen['combine']]} {judged} members by {chosen['metric']}"),
        ("best member", chosen["best_member"]),
        *(("note", note) for note in chosen["notes"]),
    ]


def print_members(ranker: Any) -> None:
    """One row for each member."""
    from rankwise.cli.output import print_table, say, shown
    from rankwise.text_tables import Table

    def cells(row: dict[str, Any]) -> list[str]:
        if "score" not in row:
            return [row["name"], "", "", "", "", f"{row['seconds']:.1f}", row["note"]]
        interval = f"{shown(row['low'])} … {shown(row['high'])}"
        alpha = "" if math.isnan(row["alpha"]) else f"{row['alpha']:.3g}"
        numbers = [shown(row["score"]), interval, alpha, f"{row['weight']:+.3f}"]
        return [row["name"], *numbers, f"{row['seconds']:.1f}", row["note"]]

    say("")
    header = ["member", ranker.scoring_, "95% interval", "alpha", "weight", "seconds", ""]
    print_table(Table(header, [cells(row) for row in ranker.members_]))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
