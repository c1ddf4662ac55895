"""The page of a leaderboard from scores: rows, tasks that decide, and missing scores."""

from __future__ import annotations

import numpy as np

from rankwise.formatting import Json, JsonObject
from rankwise.leaderboard import TaskLeaderboard
from rankwise.leaderboard.render_scores import board_footnotes
from rankwise.pages.board.board_rows import as_sentences, describe_rows, isolated_name
from rankwise.pages.page import assemble
from rankwise.pages.page_values import as_text, short_numbers

MAX_NAMES = 5  # of models in a sentence
MAX_TASKS = 200  # rows of the table of tasks
MAP_MODELS = 400  # rows of the map of missing scores
MAP_TASKS = 400  # columns of the map
DIGITS = 6
SCRIPTS = ("charts.js", "tables.js", "theme.js", "board/ratings.js", "board/scores.js")
WORDS: JsonObject = {
    "item": "Model",
    "items": "models",
    "comparisons": "Tasks",
    "thin": "few data: fewer than 5 tasks",
}


def score_page_text(board: TaskLeaderboard, title: str) -> str:
    """Return the HTML of the page of a board."""
    data = {"boards": [describe_score_board(board)]}
    return assemble("board/scores", ["page.css", "board/board.css"], SCRIPTS, data, title)


def describe_score_board(board: TaskLeaderboard) -> JsonObject:
    """Describe a board for the page's JSON; models are in the order of the board."""
    n_notes = len(board.notes)
    facts = board_footnotes(board)[n_notes:]  # without the notes, with which they begin
    names = [*board.items, *board.table.tasks.tolist(), *board.unit_labels]
    (n_effective,) = short_numbers([board.effective_tasks], 2)
    return {
        "label": "",
        "words": WORDS,
        "scale": "score",
        "headline": score_headline(board),
        "notes": [as_text(note, 1000) for note in as_sentences(board.notes, names)],
        "facts": [as_text(fact, 1000) for fact in as_sentences(facts)],
        "confidence": board.confidence,
        "hasIntervals": True,
        "hasOutcomes": False,
        "isFixed": board.options.tasks == "fixed",
        "nComponents": board.n_components,
        "nTasks": len(board.rated_table.tasks),
        "nUnits": board.design.n_units,
        "nEffective": n_effective,
        "unit": "Tasks" if board.rated_table.families is None else "Families",
        "rows": describe_rows(board),
        "tasks": _describe_tasks(board),
        "taskLead": _explain_task_columns(board),
        **_describe_missing_scores(board),
    }


def score_headline(board: TaskLeaderboard) -> str:
    """Say in one sentence which models may be the best."""
    # component 1 is the largest
    ranked = [row for row in board.rows if row.component == 1 and row.rank is not None]
    if not ranked:
        return "No model has enough tasks for a rank."
    possible_best = [row.item for row in ranked if row.best_rank == 1]
    first = isolated_name(ranked[0].item)
    confidence = f"{100 * board.confidence:g}%"
    if len(ranked) == 1:
        return f"Only {first} has enough tasks for a rank."
    if len(possible_best) == 1:
        return f"{first} is significantly better than each other ranked model ({confidence})."
    names = ", ".join(isolated_name(name) for name in possible_best[:MAX_NAMES])
    n_more = len(possible_best) - MAX_NAMES
    if n_more > 0:
        names += f" and {n_more:,} more"
    return (
        f"{len(possible_best):,} of {len(ranked):,} ranked models may be the best: {names}. This "
        f"holds with {confidence} confidence for each model."
    )


def _describe_tasks(board: TaskLeaderboard) -> list[Json]:
    """Rows of the table of tasks, the largest share first."""
    rows: list[Json] = []
    first_model = next((row.item for row in board.rows if row.rank == 1), None)
    for task in board.tasks[:MAX_TASKS]:
        share, weight, spread = short_numbers([task.share, task.weight, task.spread], DIGITS)
        correlation = None
        if task.correlation is not None:
            (correlation,) = short_numbers([task.correlation], DIGITS)
        first_without = "unchanged"
        if task.first_without != first_model:
            first_without = as_text(task.first_without)
        rows.append(
            {
                "task": as_text(task.task),
                "share": share,
                "weight": weight,
                "spread": spread,
                "correlation": correlation,
                "n_models": task.n_models,
                "n_reversed": task.n_reversed,
                "first_without": first_without,
            }
        )
    return rows


def _explain_task_columns(board: TaskLeaderboard) -> str:
    """Say what the table of tasks shows."""
    unit = "task"
    if board.rated_table.families is not None:
        unit = "family of tasks"
    equal_share = 100 / board.design.n_units
    return (
        f"The share of a {unit} is the percentage of the squared errors of all differences that "
        f"it causes; equal shares would be {equal_share:.2g}%. Spread is the standard deviation "
        "of the scores. Agreement is the rank correlation of the scores with the ratings that are "
        f"computed without the {unit}. Reversed pairs are pairs of ranked models whose order "
        "changes without it."
    )


def _describe_missing_scores(board: TaskLeaderboard) -> JsonObject:
    """Return the map of missing scores: a text of 0 and 1 for each of the first models."""
    is_missing = ~board.table.is_observed  # (n_models, n_tasks)
    (missing_share,) = short_numbers([float(is_missing.mean())], DIGITS)
    facts: JsonObject = {
        "missingShare": missing_share,
        "nMissing": int(is_missing.sum()),
        "missing": [],
        "missingTasks": [],
        "missingLead": "",
    }
    if not is_missing.any():
        return facts
    # rows and columns of `is_missing` in the order of the map
    models = np.array([board.position(row.item) for row in board.rows[:MAP_MODELS]])
    n_missing_of_task = is_missing.sum(axis=0)
    task_order = np.argsort(n_missing_of_task, kind="stable")
    families = board.table.families
    if families is not None:  # tasks of a family next to each other
        task_order = np.lexsort((n_missing_of_task, families))
    tasks = task_order[:MAP_TASKS]
    map_cells = is_missing[np.ix_(models, tasks)].astype(int)
    facts["missing"] = ["".join(map(str, row)) for row in map_cells.tolist()]  # "00101…"
    facts["missingTasks"] = [as_text(task) for task in board.table.tasks[tasks].tolist()]
    facts["missingLead"] = (
        "One row for each model, in the order of the board; one column for each task, by "
        "family if there are families, otherwise the most complete first."
    )
    return facts
