"""Leaderboards from scores in model files: the table and arguments, from which they are rated."""

from __future__ import annotations

from dataclasses import asdict, fields

import numpy as np

from rankwise.arrays import AnyArray
from rankwise.leaderboard import TaskLeaderboard
from rankwise.leaderboard.score_options import ScoreOptions, check_score_options
from rankwise.leaderboard.score_rating import rate_table
from rankwise.leaderboard.score_table import Repetitions, ScoreTable

TABLE_FIELDS = [field.name for field in fields(ScoreTable)]
OPTION_FIELDS = [field.name for field in fields(ScoreOptions)]


def score_board_facts(board: TaskLeaderboard) -> dict[str, object]:
    """The table of a board and the arguments of `rate_scores`, as plain values and arrays."""
    table: dict[str, object] = {name: vars(board.table)[name] for name in TABLE_FIELDS}
    if board.table.repetitions is not None:
        table["repetitions"] = board.table.repetitions._asdict()
    options = asdict(board.options)
    lower_is_better = board.options.lower_is_better
    if not isinstance(lower_is_better, bool):  # names of tasks
        options["lower_is_better"] = [str(task) for task in lower_is_better]
    return {"table": table, "options": options}


def restore_score_board(facts: object) -> TaskLeaderboard:
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
    for labels in (table.models, table.tasks):
        if labels.shape != (len(labels),) or len(set(labels.tolist())) != len(labels):
            raise ValueError("the labels of a board are not unique")
    n_models_of_task = np.sum(table.is_observed, axis=0)
    are_comparable = n_tasks > 0 and bool((n_models_of_task > 1).all())  # two models on each task
    if np.isinf(table.scores).any() or not are_comparable:
        raise ValueError("the scores of a board cannot be compared")
    has_score = table.is_observed.any(axis=1)
    if not has_score.all():
        raise ValueError("a model of a board has no score")
    _check_weights(table)
    _check_families_and_repetitions(table)
    return table


def _check_weights(table: ScoreTable) -> None:
    weights = table.task_weights
    has_one_per_task = weights.shape == (len(table.tasks),)
    if not has_one_per_task or not np.isfinite(weights).all() or not (weights > 0).all():
        raise ValueError("the weights of the tasks of a board are not positive")


def _check_families_and_repetitions(table: ScoreTable) -> None:
    """Check numbers of families, models, tasks and seeds."""
    n_tasks = len(table.tasks)
    if table.families is not None and table.family_labels is not None:
        n_families = len(table.family_labels)
        _check_positions(table.families, n_families, size=n_tasks)
        if len(np.unique(table.families)) != n_families:
            raise ValueError("a board has families without tasks")
    repetitions = table.repetitions
    if repetitions is not None:
        deviations = repetitions.deviation
        is_column = deviations.dtype == np.float64 and deviations.ndim == 1
        if not is_column or not np.isfinite(deviations).all():
            raise ValueError("the repetitions of a board are not finite numbers")
        n_repetitions = len(deviations)
        _check_positions(repetitions.model, len(table.models), size=n_repetitions)
        _check_positions(repetitions.task, n_tasks, size=n_repetitions)
        _check_positions(repetitions.seed, n_repetitions, size=n_repetitions)


def _check_positions(numbers: AnyArray, limit: int, *, size: int) -> None:
    """Raise ValueError unless there are `size` integers from 0 to ``limit - 1``."""
    is_column_of_integers = numbers.dtype.kind == "i" and numbers.shape == (size,)
    if not is_column_of_integers or not np.isin(numbers, np.arange(limit)).all():
        raise ValueError("a board has numbers of models, tasks or families that do not exist")
