"""Read scores of models on tasks from long and wide data frames."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Array, Indices, Labels
from rankwise.formatting import join_words
from rankwise.frames import FLOATS, as_array, frame_columns, narwhals_frame
from rankwise.groups import Groups, encode_groups
from rankwise.leaderboard.score_table import Repetitions, ScoreTable
from rankwise.validation import check_float_array, suggestion

if TYPE_CHECKING:
    import pandas as pd

ColumnName = str | int
ScoreNames = ColumnName | Sequence[ColumnName]
TaskValues = ColumnName | Mapping[Hashable, object]

#: Usual names of the columns of a long table, in small letters.
USUAL_NAMES = {
    "item": ("model", "system", "item", "method", "framework", "algorithm", "submission"),
    "task": ("task", "dataset", "benchmark", "query", "problem", "subset"),
    "score": ("score", "value", "result", "metric", "main_score", "accuracy", "performance"),
    "seed": ("seed", "fold", "repetition", "run", "draw", "trial"),
    "family": ("family", "kind", "type", "task_type", "category"),
}


class ScoreColumns(NamedTuple):
    """Arguments of `rate_scores` that name columns.

    Attributes
    ----------
    item, task, seed : str, int or None
        Columns of the models, tasks and seeds.
    score : str, int, list of these, or None
        Column of the scores, or one column for each task.
    family, task_weight : str, int, mapping or None
        Family and weight of the tasks: a column, or values by task.
    """

    item: ColumnName | None
    task: ColumnName | None
    score: ScoreNames | None
    seed: ColumnName | None = None
    family: TaskValues | None = None
    task_weight: TaskValues | None = None


class FrameColumns:
    """Columns of a data frame or of a dictionary, by name.

    Attributes
    ----------
    names : list of str
        Names of the columns.
    n_rows : int
        Number of rows.
    index : ndarray or None
        Labels of the rows of a pandas frame that has any.
    index_name : str
        Name of the index; empty without a name.
    """

    def __init__(self, frame: object) -> None:
        by_name = frame if isinstance(frame, Mapping) else frame_columns(frame)
        if by_name is None:
            raise TypeError(
                f"the scores are of type {type(frame).__name__}; expected a data frame (pandas, "
                "polars, Arrow) or a dictionary of columns."
            )
        self._by_name = {str(name): column for name, column in by_name.items()}
        self.names = list(self._by_name)

        sizes = {name: len(column) for name, column in self._by_name.items()}
        n_distinct_sizes = len(set(sizes.values()))
        if n_distinct_sizes > 1:
            raise ValueError(f"the columns have different lengths: {sizes}.")
        self.n_rows = max(sizes.values(), default=0)  # all are equal
        if self.n_rows == 0:
            raise ValueError("the frame has no rows; a leaderboard needs scores.")

        # Labels of the rows, if it is a pandas frame with more than a range as its index.
        self._pandas = _pandas_frame(frame)
        self.index: Labels | None = None
        self.index_name = ""
        index = _labeled_index(self._pandas)
        if index is not None:
            self.index = np.asarray(index)
            self.index_name = "" if index.name is None else str(index.name)

    def values(self, role: str, name: ColumnName) -> AnyArray:
        """Return the column that an argument names."""
        if isinstance(name, int):  # the position of a column
            if not -len(self.names) <= name < len(self.names):
                raise ValueError(
                    f"{role}={name} is out of range: the frame has {len(self.names)} columns, "
                    "numbered from 0."
                )
            name = self.names[name]
        if name not in self._by_name:
            raise ValueError(
                f"{role}={name!r} is not a column{suggestion(name, self.names)} The columns are "
                f"{join_words(self.names)}."
            )
        return np.asarray(as_array(self._by_name[name], name))

    def numbers(self, role: str, name: ColumnName) -> Array:
        """Return a column of numbers; NaN is missing."""
        values = self.values(role, name)
        _refuse_text(f"{role}={name!r}", values)
        numbers = check_float_array(f"{role}={name!r}", values)
        if np.isinf(numbers).any():
            row = int(np.isinf(numbers).argmax())
            raise ValueError(f"{role}={name!r} is {numbers[row]} in row {row}; expected a number.")
        return numbers

    def matrix(self, role: str, names: Sequence[ColumnName]) -> Array:
        """Return columns of numbers side by side, shape (n_rows, n_names); NaN is missing."""
        frame = self._pandas
        are_all_columns = list(names) == self.names
        if frame is not None and are_all_columns and set(frame.dtypes) <= FLOATS:
            # One conversion for all columns: 5,000 of them take longer than their statistics.
            matrix = np.asarray(frame, np.float64)
            if not np.isinf(matrix).any():
                return matrix
        return np.stack([self.numbers(role, name) for name in names], axis=1)

    def labels(self, role: str, name: ColumnName) -> Groups:
        """Return a column of labels, encoded."""
        return encode_groups(self.values(role, name), self.n_rows, f"{role}={name!r}")

    def numeric_names(self) -> list[str]:
        """Names of the columns of numbers."""
        numeric = []
        for name in self.names:
            kind = np.asarray(as_array(self._by_name[name], name)).dtype.kind
            if kind in "fiu":
                numeric.append(name)
        return numeric


def _refuse_text(described: str, values: AnyArray) -> None:
    """Refuse text in a column of numbers, such as "81%" or "N/A"."""
    if values.dtype.kind not in "OU":  # neither objects nor text
        return
    for row, value in enumerate(values.tolist()):
        if isinstance(value, str):
            raise ValueError(
                f"{described} has the text {value!r} in row {row}; expected real numbers, and "
                "empty cells where there is no score."
            )


def usual_column(names: Sequence[str], role: str) -> str | None:
    """Return the first column whose name is usual for a role, regardless of case."""
    name_of_lowercase = {name.lower(): name for name in reversed(names)}  # the first one counts
    for usual_name in USUAL_NAMES[role]:
        if usual_name in name_of_lowercase:
            return name_of_lowercase[usual_name]
    return None


def _pandas_frame(frame: object) -> pd.DataFrame | None:
    """The frame, if it is one of pandas."""
    wrapped = narwhals_frame(frame)
    if wrapped is None or not wrapped.implementation.is_pandas_like():
        return None
    native: pd.DataFrame = wrapped.to_native()
    return native


def _labeled_index(frame: pd.DataFrame | None) -> pd.Index | None:
    """Index of a pandas frame, unless it only numbers the rows."""
    # Numbers are row numbers, not labels of models.
    if frame is None or frame.index.nlevels > 1 or frame.index.dtype.kind in "iuf":
        return None
    return frame.index


class Cells(NamedTuple):
    """One score in each row, of a model on a task.

    Attributes
    ----------
    models, tasks : Groups
        Models and tasks of the rows.
    values : ndarray of shape (n_rows,)
        Scores; NaN is missing.
    seeds : Groups or None
        Seeds of the rows.
    """

    models: Groups
    tasks: Groups
    values: Array
    seeds: Groups | None


def read_scores(frame: object, names: ScoreColumns) -> ScoreTable:
    """Return the table of a long or wide data frame."""
    columns = FrameColumns(frame)
    _refuse_swapped(names)
    if isinstance(names.score, (str, int)):
        return _read_long(columns, names, names.score)
    if names.task is not None:
        raise ValueError(
            f"task={names.task!r} names the column of the tasks of a table with one score in each "
            f"row, so score must be one column, not {names.score!r}."
        )
    return _read_wide(columns, names, names.score)


def _refuse_swapped(names: ScoreColumns) -> None:
    """Refuse item= and task= if their names say that they are swapped."""
    # Usual names of columns are in the argument of the other role.
    item_is_task = str(names.item).lower() in USUAL_NAMES["task"]
    task_is_item = str(names.task).lower() in USUAL_NAMES["item"]
    if item_is_task and task_is_item:
        raise ValueError(
            f"item={names.item!r} and task={names.task!r} look swapped: item= names the models to "
            "rank, task= what they were run on. Rename the columns if they are not."
        )


def _read_long(columns: FrameColumns, names: ScoreColumns, score: ColumnName) -> ScoreTable:
    """Read one score in each row."""
    if names.item is None or names.task is None:
        missing = _unnamed_columns(names)
        raise ValueError(
            f"score={score!r} is one column, so {missing} must be named as well; "
            f"{_advice(columns)}."
        )
    is_unknown = isinstance(names.task, str) and names.task not in columns.names
    if is_unknown and usual_column(columns.names, "task") is None:
        raise ValueError(f"task={names.task!r} is not a column; {_advice(columns)}.")
    tasks = columns.labels("task", names.task)
    cells = Cells(
        models=columns.labels("item", names.item),
        tasks=tasks,
        values=columns.numbers("score", score),
        seeds=None if names.seed is None else columns.labels("seed", names.seed),
    )
    families = _task_values(columns, "family", names.family, tasks)
    weights = _task_values(columns, "task_weight", names.task_weight, tasks)
    return _average_cells(cells, families, weights, n_nan=int(np.isnan(cells.values).sum()))


def _unnamed_columns(names: ScoreColumns) -> str:
    """Names of the arguments item and task that are missing."""
    missing = []
    if names.item is None:
        missing.append("item")
    if names.task is None:
        missing.append("task")
    return " and ".join(missing)


def _read_wide(
    columns: FrameColumns, names: ScoreColumns, score: Sequence[ColumnName] | None
) -> ScoreTable:
    """Read one model in each row, with one column for each task."""
    _refuse_tasks_in_rows(columns, names)
    models = _wide_models(columns, names)
    task_columns = _task_columns(columns, names, score)
    values = columns.matrix("score", task_columns)  # (n_rows, n_tasks)
    n_tasks = len(task_columns)
    task_names = np.array([_column_label(columns, name) for name in task_columns], dtype=object)
    tasks = Groups(np.arange(n_tasks, dtype=np.intp), task_names.astype(np.str_))
    seeds = None
    if names.seed is not None:
        seed_of_row = columns.labels("seed", names.seed)
        seeds = Groups(np.repeat(seed_of_row.codes, n_tasks), seed_of_row.labels)

    # One cell after the other, row by row.
    cells = Cells(
        models=Groups(np.repeat(models.codes, n_tasks), models.labels),
        tasks=Groups(np.tile(tasks.codes, columns.n_rows), tasks.labels),
        values=values.ravel(),
        seeds=seeds,
    )
    _refuse_columns_of_task_values(names)
    families = _task_values(columns, "family", names.family, tasks)
    weights = _task_values(columns, "task_weight", names.task_weight, tasks)
    return _average_cells(cells, families, weights, n_nan=0)  # an empty cell is not a failed run


def _wide_models(columns: FrameColumns, names: ScoreColumns) -> Groups:
    """Return the model of each row of a wide table: a column, or the index of a pandas frame."""
    if names.item is not None:
        return columns.labels("item", names.item)
    if columns.index is None:
        raise ValueError(f"item= is missing; {_advice(columns)}.")
    return encode_groups(columns.index, columns.n_rows, "the index of the frame")


def _task_columns(
    columns: FrameColumns, names: ScoreColumns, score: Sequence[ColumnName] | None
) -> Sequence[ColumnName]:
    """Return the columns of the tasks of a wide table."""
    if score is None:
        # All columns are tasks if the index has the models; with item= one is that of the models.
        if names.item is not None:
            raise ValueError(f"score= is missing; {_advice(columns)}.")
        return columns.names
    if len(score) != len(set(score)):
        raise ValueError("score= names a column twice.")
    task = usual_column(columns.names, "task")
    if len(score) == 1 and task is not None:
        raise ValueError(
            f"score={list(score)} is one column, and {task!r} looks like the tasks; "
            f"{_advice(columns)}."
        )
    return score


def _refuse_columns_of_task_values(names: ScoreColumns) -> None:
    """Refuse columns of families and weights in a wide table."""
    for role, argument in (("family", names.family), ("task_weight", names.task_weight)):
        if isinstance(argument, (str, int)):
            raise ValueError(
                f"{role}={argument!r} names a column, but tasks are columns here; pass a "
                f"dictionary from task to {role}."
            )


def _refuse_tasks_in_rows(columns: FrameColumns, names: ScoreColumns) -> None:
    """Refuse a wide table whose rows are tasks by their name."""
    name = columns.index_name
    if names.item is not None:
        name = _column_label(columns, names.item)
    if name.lower() not in USUAL_NAMES["task"]:
        return
    transposed_frame = "frame.T"
    if names.item is not None:
        transposed_frame = f"frame.set_index({name!r}).T"
    raise ValueError(
        f"the rows are models to rank, but {name!r} looks like tasks; pass {transposed_frame} if "
        "the models are the columns, or rename it if they are not."
    )


def _column_label(columns: FrameColumns, name: ColumnName) -> str:
    return columns.names[name] if isinstance(name, int) else name


def _advice(columns: FrameColumns) -> str:
    """Say how to name the columns of a table that looks long or wide."""
    item = usual_column(columns.names, "item")
    task = usual_column(columns.names, "task")
    score = usual_column(columns.names, "score")
    if task is not None and score is not None:  # one score in each row
        if item is None:
            item = "…"
        return f'pass item="{item}", task="{task}", score="{score}"'

    # A column for each task: the numeric ones.
    numeric_columns = columns.numeric_names()
    text_columns = [name for name in columns.names if name not in numeric_columns]
    if item is None:
        item = text_columns[0] if text_columns else "…"
    tasks = [name for name in numeric_columns if name != item]
    return (
        f"the frame looks like {columns.n_rows} models × {len(tasks)} tasks; pass "
        f'item="{item}" and score=[{join_words(map(repr, tasks), 3)}], or one score in each row '
        "with item=, task= and score="
    )


def _task_values(
    columns: FrameColumns, role: str, argument: TaskValues | None, tasks: Groups
) -> AnyArray | None:
    """Return one value for each task, from a column or a mapping; None if nothing is passed."""
    if argument is None:
        return None
    if isinstance(argument, Mapping):
        value_by_task = {str(task): value for task, value in argument.items()}
        task_names = [str(label) for label in tasks.labels.tolist()]
        missing = [name for name in task_names if name not in value_by_task]
        if missing:
            raise ValueError(f"{role} has no value for the tasks {join_words(missing)}.")
        return np.array([value_by_task[name] for name in task_names])
    # A column: every task has the value of its first row, and so must its other rows.
    values = encode_groups(columns.values(role, argument), columns.n_rows, f"{role}={argument!r}")
    first_row_of_task = np.full(tasks.n_groups, columns.n_rows)
    np.minimum.at(first_row_of_task, tasks.codes, np.arange(columns.n_rows))
    code_of_task = values.codes[first_row_of_task]
    is_different = code_of_task[tasks.codes] != values.codes
    if is_different.any():
        task = tasks.labels[tasks.codes[is_different.argmax()]]
        raise ValueError(
            f"{role}={argument!r} has several values for the task {task!s}; expected one for each."
        )
    return np.asarray(values.labels[code_of_task])


def _average_cells(
    cells: Cells, families: AnyArray | None, weights: AnyArray | None, n_nan: int
) -> ScoreTable:
    """Average the rows of each cell."""
    present = np.flatnonzero(~np.isnan(cells.values))
    if len(present) == 0:
        raise ValueError("all scores are missing.")

    # One number for each cell of the table, and the mean of its rows.
    n_models = cells.models.n_groups
    n_tasks = cells.tasks.n_groups
    n_cells = n_models * n_tasks
    model = cells.models.codes[present]
    task = cells.tasks.codes[present]
    values = cells.values[present]
    cell = model * n_tasks + task
    n_rows_of_cell = np.bincount(cell, minlength=n_cells)
    sums = np.bincount(cell, values, minlength=n_cells)
    means = np.full(n_cells, np.nan)
    np.divide(sums, n_rows_of_cell, out=means, where=n_rows_of_cell > 0)

    repetitions = None
    if cells.seeds is None:
        _refuse_repeated_cells(cells, n_rows_of_cell)
    else:
        seed = cells.seeds.codes[present]
        _refuse_repeated_seeds(cells, cells.seeds, cell, seed)
        repetitions = Repetitions(model, task, seed, deviation=values - means[cell])

    family_codes = None
    family_labels = None
    if families is not None:
        encoded_families = encode_groups(families, n_tasks, "family")
        family_codes = encoded_families.codes
        family_labels = encoded_families.labels
    return ScoreTable(
        models=cells.models.labels,
        tasks=cells.tasks.labels,
        scores=means.reshape(n_models, n_tasks),
        repetitions=repetitions,
        families=family_codes,
        family_labels=family_labels,
        weights=None if weights is None else _check_task_weights(weights),
        n_nan=n_nan,
    )


def _check_task_weights(weights: AnyArray) -> Array:
    """Return positive weights with the mean 1."""
    numbers = check_float_array("task_weight", weights)
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError("task_weight must be positive for every task; drop tasks without weight.")
    return np.asarray(numbers / numbers.mean())


def _refuse_repeated_cells(cells: Cells, n_rows_of_cell: Indices) -> None:
    if n_rows_of_cell.max() == 1:
        return
    cell = int(n_rows_of_cell.argmax())
    model, task = divmod(cell, cells.tasks.n_groups)
    raise ValueError(
        f"model {cells.models.labels[model]!s} has {n_rows_of_cell[cell]} scores for the task "
        f"{cells.tasks.labels[task]!s}; name the column that distinguishes them (such as "
        'seed="fold"), or average them.'
    )


def _refuse_repeated_seeds(cells: Cells, seeds: Groups, cell: Indices, seed: Indices) -> None:
    codes, n_scores = np.unique(cell * seeds.n_groups + seed, return_counts=True)
    if n_scores.max() == 1:
        return
    repeated_code = int(codes[n_scores.argmax()])
    repeated_cell, repeated_seed = divmod(repeated_code, seeds.n_groups)
    model, task = divmod(repeated_cell, cells.tasks.n_groups)
    raise ValueError(
        f"model {cells.models.labels[model]!s} has {n_scores.max()} scores for the task "
        f"{cells.tasks.labels[task]!s} and the seed {seeds.labels[repeated_seed]!s}; expected one."
    )
