"""Leaderboards from scores in model files: the table and arguments, from which they are rated."""

from __future__ import annotations

from dataclasses import asdict, fields

import numpy as np

from rankwise.leaderboard import TaskLeaderboard
from rankwise.leaderboard.score_options import ScoreOptions, check_score_options
from rankwise.leaderboard.score_rating import rate_table
from rankwise.leaderboard.score_table import Repetitions, ScoreTable

TABLE_FIELDS = [field.name for field in fields(ScoreTable)]
OPTION_FIELDS = [field.name for field in fields(ScoreOptions)]


def score_board_facts(board: TaskLeaderboard) -> dict[str, object]:
    """The table of a board and the arguments of `rate_scores`, as plain values and arrays."""
    table: dict[str, object] = {name: vars(board.table)[name] for name in TABLE_FIELDS}
    rows = board.table.repetitions
    if rows is not None:
        table["repetitions"] = rows._asdict()
    options = asdict(board.options)
    if not isinstance(board.options.lower_is_better, bool):
        options["lower_is_better"] = [str(task) for task in board.options.lower_is_better]
    return {"table": table, "options": options}


def score_board_from(facts: object) -> TaskLeaderboard:
    """Rate the models from the values of `score_board_facts`."""
    if not isinstance(facts, dict) or set(facts) != {"table", "options"}:
        raise ValueError("a board of scores has unexpected entries")
    table = _read_table(facts["table"])
    options = _read_options(facts["options"])
    check_score_options(
        options,
        has_families=table.families is not None,
        has_seeds=table.repetitions is not None,
    )
    board = rate_table(table, options)
    if not np.isfinite(board.ratings).all():
        raise ValueError("the ratings of a board are not finite")
    return board


def _read_options(values: object) -> ScoreOptions:
    if not isinstance(values, dict) or set(values) != set(OPTION_FIELDS):
        raise ValueError("a board of scores has unexpected options")
    if not isinstance(values["lower_is_better"], (bool, list, tuple)):
        raise ValueError("lower_is_better of a board is not a list of tasks")
    return ScoreOptions(**values)


def _read_table(values: object) -> ScoreTable:
    """Check the table: shapes, finite scores, and numbers of models, tasks and families."""
    if not isinstance(values, dict) or set(values) != set(TABLE_FIELDS):
        raise ValueError("a board of scores has an invalid table")
    values = dict(values)
    if values["repetitions"] is not None:
        values["repetitions"] = Repetitions(**values["repetitions"])
    table = ScoreTable(**values)
    n_models = len(table.models)
    n_tasks = len(table.tasks)
    if table.scores.dtype != np.float64 or table.scores.shape != (n_models, n_tasks):
        raise ValueError("the scores of a board have a wrong shape or type")
    for labels, n in ((table.models, n_models), (table.tasks, n_tasks)):
        if labels.shape != (n,) or len(set(labels.tolist())) != n:
            raise ValueError("the labels of a board are not unique")
    has_two_models = np.sum(table.is_observed, axis=0) > 1
    if np.isinf(table.scores).any() or not has_two_models.all() or n_tasks == 0:
        raise ValueError("the scores of a board cannot be compared")
    if not table.is_observed.any(axis=1).all():
        raise ValueError("a model of a board has no score")
    _check_weights(table)
    _check_numbers(table)
    return table


def _check_weights(table: ScoreTable) -> None:
    weights = table.task_weights
    is_valid = weights.shape == (len(table.tasks),) and np.isfinite(weights).all()
    if not is_valid or not (weights > 0).all():
        raise ValueError("the weights of the tasks of a board are not positive")


def _check_numbers(table: ScoreTable) -> None:
    """Check numbers of families, models, tasks and seeds."""
    columns = []
    if table.families is not None and table.family_labels is not None:
        columns.append((table.families, len(table.family_labels), len(table.tasks)))
        used = np.unique(table.families)
        if len(used) != len(table.family_labels):
            raise ValueError("a board has families without tasks")
    rows = table.repetitions
    if rows is not None:
        n_rows = len(rows.deviation)
        columns.append((rows.model, len(table.models), n_rows))
        columns.append((rows.task, len(table.tasks), n_rows))
        columns.append((rows.seed, n_rows, n_rows))
        is_column = rows.deviation.dtype == np.float64 and rows.deviation.ndim == 1
        if not is_column or not np.isfinite(rows.deviation).all():
            raise ValueError("the repetitions of a board are not finite numbers")
    for numbers, limit, size in columns:
        is_valid = numbers.dtype.kind == "i" and numbers.shape == (size,)
        if not is_valid or not np.isin(numbers, np.arange(limit)).all():
            raise ValueError("a board has numbers of models, tasks or families that do not exist")
