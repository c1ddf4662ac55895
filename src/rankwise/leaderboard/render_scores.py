"""A board of scores over tasks as text: for the terminal, Markdown, CSV, JSON, LaTeX and HTML."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rankwise.formatting import JsonObject, TextTable, csv_text, join_tables, to_json_values
from rankwise.leaderboard.inference.ranks import FEW
from rankwise.leaderboard.inference.task_power import detectable_difference
from rankwise.leaderboard.render import (
    FORMATS,
    MISSING,
    optional_text,
    rank_range,
    rating_digits,
    separate_unranked,
)
from rankwise.leaderboard.score_notes import tasks_or_families
from rankwise.validation import check_option

if TYPE_CHECKING:
    from rankwise.leaderboard.board_records import LeaderboardRow
    from rankwise.leaderboard.score_board import TaskLeaderboard

MOST_TASKS = 5  # tasks below the board
SCALE_NOTES = {
    "none": "rating: mean score over the tasks",
    "sd": "rating: mean score over the tasks, in standard deviations of the task",
    "rank": "rating: mean share of the other models that are worse on a task",
    "logit": "rating: mean log odds of the scores over the tasks",
}


def render_board(board: TaskLeaderboard, format: str) -> str:
    """Return the board in a format, see `TaskLeaderboard.to_text`."""
    check_option("format", format, FORMATS)
    if format == "csv":
        return csv_text(list(board.columns), board.rows)
    if format == "json":
        return json.dumps(board.to_dict(), indent=2, ensure_ascii=False) + "\n"
    return join_tables(board_tables(board), format)


def board_tables(board: TaskLeaderboard) -> list[TextTable]:
    """Return the models, and the tasks with the largest share of the errors, with footnotes."""
    digits = rating_digits(board.ratings)
    header = ["rank", "model", "rating", f"{100 * board.confidence:g}% interval"]
    header += ["ranks", "at once", "tier", "tasks", "w/t/l"]
    if board.n_components > 1:
        header.append("part")
    cells = [_model_cells(board, row, digits) for row in board.rows]
    model_table = TextTable(header, separate_unranked(board.rows, cells), names=(1,))
    task_table = TextTable(
        _TASK_HEADER,
        _task_rows(board, digits),
        title=f"{tasks_or_families(board)} with the largest share of the squared errors",
        notes=board_footnotes(board),
    )
    return [model_table, task_table]


_TASK_HEADER = ["task", "weight", "spread", "share", "reversed pairs", "first without it"]


def _model_cells(board: TaskLeaderboard, row: LeaderboardRow, digits: int) -> list[str]:
    """Return the cells of one model."""
    mark = " †" if row.thin else ""  # few data
    interval = MISSING
    if row.low is not None:
        interval = f"{row.low:z.{digits}f} … {row.high:z.{digits}f}"
    cells = [
        optional_text(row.rank),
        f"{row.item}{mark}",
        f"{row.rating:z.{digits}f}",
        interval,
        rank_range(row.best_rank, row.worst_rank),
        rank_range(row.best_of_all, row.worst_of_all),
        optional_text(row.tier),
        str(row.n),
        f"{row.wins}/{row.ties}/{row.losses}",
    ]
    if board.n_components > 1:
        cells.append(str(row.component))
    return cells


def _task_rows(board: TaskLeaderboard, digits: int) -> list[list[str]]:
    rows = []
    for task in board.tasks[:MOST_TASKS]:
        cells = [
            str(task.task),
            f"{100 * task.weight:.3g}%",
            f"{task.spread:.{digits}f}",
            f"{100 * task.share:.3g}%",
            str(task.n_reversed),
            str(task.first_without),
        ]
        rows.append(cells)
    return rows


def board_footnotes(board: TaskLeaderboard) -> list[str]:
    """Return warnings, notes, the meaning of the columns and the source of the numbers."""
    confidence = f"{100 * board.confidence:g}%"
    lines = list(board.notes)
    lines.append(SCALE_NOTES[board.options.task_scale])
    lines.append(f"interval: of the difference to {_reference_text(board)}")
    lines.append(f"ranks: possible ranks, {confidence} for each model; at once: for all models")
    lines.append("tier: models not significantly below the tier's first model; two may differ")
    if any(row.thin for row in board.rows):
        lines.append(f"† few data: fewer than {FEW} tasks")
    if any(row.rank is None for row in board.rows):
        lines.append(
            f"below the line: fewer than {100 * board.options.min_tasks:g}% of the tasks, or no "
            "interval; not ranked"
        )
    lines.append(_source_text(board))
    lines += neighbor_note(board)
    return lines


def _reference_text(board: TaskLeaderboard) -> str:
    if board.options.baseline is not None:
        return str(board.options.baseline)
    if board.n_components > 1:
        return "the mean of the models of the part"
    n_ranked = int(board.is_ranked.sum())
    return f"the mean of the {n_ranked} ranked models"


def _source_text(board: TaskLeaderboard) -> str:
    n_units = board.design.n_units
    if board.options.tasks == "fixed":
        method = "intervals for these tasks only, from repeated scores"
    else:
        method = f"jackknife over {n_units} {tasks_or_families(board)}"
    n_tasks = len(board.rated_table.tasks)
    return f"{len(board)} models × {n_tasks} tasks; {method}"


def neighbor_note(board: TaskLeaderboard) -> list[str]:
    """Compare the differences of neighbors with those that such a table detects."""
    first_component = [row for row in board.rows if row.component == 1]
    ranked = [board.position(row.item) for row in first_component if row.rank is not None]
    if len(ranked) < 2:
        return []

    # Observed and detectable differences of neighbors in the ranking.
    differences = []
    detectable = []
    errors = board.errors.pair_errors.by_tasks_or_seeds
    for upper, lower in pairwise(ranked):
        differences.append(board.ratings[upper] - board.ratings[lower])
        error = errors.variance[upper, lower] ** 0.5
        freedom = errors.freedom[upper, lower]
        detectable.append(detectable_difference(error, freedom, board.confidence))
    return [
        f"neighbors differ by {np.median(differences):.3g} (median); such a table detects "
        f"differences of {np.median(detectable):.3g} with 80% power"
    ]


def board_document(board: TaskLeaderboard) -> JsonObject:
    """Return the board for JSON."""
    options = board.options
    return {
        "model": "scores over tasks",
        "confidence": board.confidence,
        "n_models": len(board),
        "n_tasks": len(board.rated_table.tasks),
        "n_units": board.design.n_units,
        "effective_units": to_json_values(board.effective_tasks),
        "n_components": board.n_components,
        "missing_share": 1 - float(board.table.is_observed.mean()),
        "task_scale": options.task_scale,
        "balance": options.balance,
        "tasks_are": options.tasks,
        "missing": to_json_values(options.missing),
        "min_tasks": options.min_tasks,
        "baseline": to_json_values(options.baseline),
        "noise": to_json_values(board.noise._asdict()),
        "warnings": list(board.warnings),
        "notes": list(board.notes),
        "tasks": [to_json_values(task._asdict()) for task in board.tasks],
        "rows": [to_json_values(row._asdict()) for row in board.rows],
    }
