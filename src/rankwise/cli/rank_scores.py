"""Scores over tasks in `rankwise rank`: recognize the columns, read them, and rate the models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from rankwise.cli import terminal
from rankwise.cli.pair_options import PairOptions
from rankwise.cli.rank_options import ComparisonOptions, RatingOptions
from rankwise.cli.shared_options import split_names
from rankwise.cli.task_options import TaskOptions
from rankwise.formatting import count, join_words

if TYPE_CHECKING:
    from rankwise.datasets.table_files import TableFile
    from rankwise.leaderboard import TaskLeaderboard

LEAST_TASKS = 2  # columns of numbers from which a table of one model a row is recognized
SUMMARY_WORDS = {"average", "avg", "mean", "overall", "parameters", "params", "rank", "total"}
OPTIONS_OF_COMPARISONS = {
    field.name
    for record in (PairOptions, ComparisonOptions, RatingOptions)
    for field in fields(record)
}
OPTIONS_OF_COMPARISONS |= {"until", "backtest"}
OPTIONS_OF_COMPARISONS -= {"item", "delimiter", "no_header", "confidence"}  # of scores, too
OPTIONS_OF_COMPARISONS.remove("weight")  # has a message of its own
OPTIONS_OF_TASKS = {field.name for field in fields(TaskOptions)}


class TaskScoreFile(NamedTuple):
    """A file with scores over tasks, and its columns.

    Attributes
    ----------
    file : TableFile
        The file.
    item : str
        Column of the models.
    task : str or None
        Column of the tasks; None if there is one column for each task.
    score : list of str
        Column of the scores, or the columns of the tasks.
    """

    file: TableFile
    item: str
    task: str | None
    score: list[str]


def find_scores(
    file: TableFile, pair_columns: PairOptions, comparisons: ComparisonOptions, tasks: TaskOptions
) -> TaskScoreFile | None:
    """Return the columns of scores over tasks; None if the file has comparisons."""
    score_columns = split_names(tasks.score)
    if tasks.task is not None or score_columns:
        return _find_named_columns(file, comparisons, tasks, score_columns)
    if not pair_columns.is_empty() or comparisons.are_named() or _has_comparisons(file):
        return None
    scores = _recognize_one_score_per_row(file, comparisons)
    if scores is not None:
        return scores
    _refuse_scores_with_errors(file)
    scores = _recognize_one_model_per_row(file, comparisons, tasks)
    if scores is None:
        _refuse_second_header_line(file)
    return scores


def _refuse_scores_with_errors(file: TableFile) -> None:
    """Refuse cells such as 60.2 ± 1.4: other columns would be read as the scores."""
    from rankwise.datasets.vocabulary import shown_value

    for name, cell in _first_row(file):
        if "±" in cell:
            raise ValueError(
                f"{file.path}: column {shown_value(name)} has texts such as {shown_value(cell)}. "
                "Write one number in each cell, without its error, or name the columns of the "
                "scores with --item and --score."
            )


def _refuse_second_header_line(file: TableFile) -> None:
    """Refuse a first line without the names of columns, which the second line may have."""
    from rankwise.datasets.vocabulary import shown_value

    cells_without_name = [cell for name, cell in _first_row(file) if not name and cell]
    if len(cells_without_name) >= 2:
        raise ValueError(
            f"{file.path}: the first line has no names for {len(cells_without_name)} columns, "
            f"which have {join_words(map(shown_value, cells_without_name), 3)} in the second "
            "line. If the names are in the second line, as in leaderboards with two header lines, "
            "delete the first line; otherwise complete the names."
        )


def _first_row(file: TableFile) -> list[tuple[str, str]]:
    """Names and cells of the first row of a text file; empty for other formats."""
    from rankwise.datasets.delimited_table import DelimitedTable

    if not isinstance(file, DelimitedTable):
        return []
    for record in file.records():
        if record.cells:  # a blank line has none
            return list(zip(file.names, record.cells, strict=True))
    return []


def _find_named_columns(
    file: TableFile, comparisons: ComparisonOptions, tasks: TaskOptions, score_columns: list[str]
) -> TaskScoreFile:
    """Return the columns that options name; others are recognized by their names."""
    # called only if --task or --score is passed
    item = comparisons.item or usual_name(file, "item")
    if item is None:
        raise ValueError(
            f"pass --item, the column of the models; the columns are {_list_of_names(file)}."
        )
    task = tasks.task
    if task is None and len(score_columns) == 1:  # several columns have one task each
        task = usual_name(file, "task")
        if task is None:
            raise ValueError("--score names one column; pass --task as well.")
    if not score_columns:
        score = usual_name(file, "score")
        if score is None:
            raise ValueError(
                f"pass --score, the column of the scores; the columns are {_list_of_names(file)}."
            )
        score_columns = [score]
    _refuse_words_in_scores(file, score_columns)
    return TaskScoreFile(file, item, task, score_columns)


def _refuse_words_in_scores(file: TableFile, score_columns: Sequence[str]) -> None:
    """Refuse columns of scores with text; the error has the first cell that is no number."""
    import numpy as np

    from rankwise.datasets.column_values import distinct_cells, is_number
    from rankwise.datasets.vocabulary import GAPS, MISSING, finite_number, shown_value

    positions = [file.names.index(name) for name in score_columns if name in file.names]
    if not positions:
        return
    for position, column in file.read([], positions).items():
        if is_number(column.type):
            continue
        codes, texts = distinct_cells(column)
        is_gap = [text.lower() in MISSING | GAPS for text in texts]
        is_word = np.array([finite_number(text) is None for text in texts]) & ~np.array(is_gap)
        if is_word.any():
            row = int(is_word[codes].argmax())
            raise file.error(
                f"column {shown_value(file.names[position])} has {shown_value(texts[codes[row]])}, "
                "expected a number, or an empty cell where there is no score.",
                row,
            )


def _has_comparisons(file: TableFile) -> bool:
    """Whether the names of the columns are those of comparisons or rankings."""
    from rankwise.datasets.pair_data import infer_columns, validate_columns
    from rankwise.datasets.preflib import PreflibTable

    if isinstance(file, PreflibTable):
        return True
    lowercase_names = {name.lower() for name in file.names}
    if lowercase_names & {"winner", "loser", "ranking", "place"}:
        return True
    _, description_of_columns = infer_columns(validate_columns({}), file.names)
    return description_of_columns != ""  # empty if no columns of comparisons are recognized


def _recognize_one_score_per_row(
    file: TableFile, comparisons: ComparisonOptions
) -> TaskScoreFile | None:
    """Recognize columns of models, tasks and scores by their names."""
    item = comparisons.item or usual_name(file, "item")
    task = usual_name(file, "task")
    score = usual_name(file, "score")
    if item is None or task is None or score is None:
        return None
    terminal.note(
        f"{score!r} is read as the scores of {item!r} on {task!r}; change it with --item, --task "
        "and --score."
    )
    _refuse_words_in_scores(file, [score])
    return TaskScoreFile(file, item, task, [score])


class WideColumns(NamedTuple):
    """Columns of a table of one model a row.

    Attributes
    ----------
    item : str or None
        Column of the models; None if it is not recognized.
    tasks : list of str
        Columns of the tasks.
    others : list of str
        Columns that are left out: other texts, and summaries such as Average.
    """

    item: str | None
    tasks: list[str]
    others: list[str]


def _recognize_one_model_per_row(
    file: TableFile, comparisons: ComparisonOptions, options: TaskOptions
) -> TaskScoreFile | None:
    """Recognize a column of models, and columns of numbers, one for each task."""
    item, tasks, others = _find_wide_columns(file, comparisons.item, options.seed)
    if item is None or not tasks:
        return None
    if item == usual_name(file, "task"):
        raise ValueError(
            f"the rows of {file.path} look like tasks ({item!r}), and its columns like models; "
            f"transpose the table, or rename {item!r} if its values are models."
        )
    noun_of_rows = "model" if options.seed is None else "row"  # a model has a row for each seed
    left_out = ""
    if others:
        left_out = f", without {join_words(others, 3)}"
    terminal.note(
        f"the table is read as scores of {count(file.n_rows(), noun_of_rows)} ({item!r}) on "
        f"{count(len(tasks), 'task')} ({join_words(tasks, 3)}){left_out}; change it with --item "
        "and --score."
    )
    return TaskScoreFile(file, item, None, tasks)


def _find_wide_columns(file: TableFile, item: str | None, seed: str | None) -> WideColumns:
    """Find the column of models and the columns of tasks."""
    from rankwise.datasets.column_values import is_number

    columns = file.read([], range(len(file.names)))  # with the type of their values
    number_columns = []
    text_columns = []
    for position, name in enumerate(file.names):
        if is_number(columns[position].type):
            number_columns.append(name)
        else:
            text_columns.append(name)
    item = item or usual_name(file, "item")
    if item is None and len(text_columns) == 1 and len(number_columns) >= LEAST_TASKS:
        item = text_columns[0]

    tasks = []
    others = [name for name in text_columns if name != item]
    for name in number_columns:
        if name in (item, seed):
            continue
        if is_summary(name):
            others.append(name)
        else:
            tasks.append(name)
    return WideColumns(item, tasks, others)


def is_summary(name: str) -> bool:
    """Whether a column summarizes others or describes the model, by the first word of its name."""
    first_word = re.search(r"[a-z]+", name.lower())
    return first_word is not None and first_word[0] in SUMMARY_WORDS


def usual_name(file: TableFile, role: str) -> str | None:
    """Name of the first column whose name is usual for a role of scores."""
    from rankwise.leaderboard.score_reader import usual_column

    return usual_column(file.names, role)


def _list_of_names(file: TableFile) -> str:
    return join_words(file.names)


def rate_file(
    scores: TaskScoreFile, tasks: TaskOptions, weight: str | None, confidence: float
) -> TaskLeaderboard:
    """Rate the models of a file."""
    from rankwise.leaderboard.score_options import ScoreOptions
    from rankwise.leaderboard.score_rating import rate_frame
    from rankwise.leaderboard.score_reader import ScoreColumns

    if weight is not None:
        raise ValueError("--weight is the weight of comparisons; use --task-weight for tasks.")
    lower_is_better: bool | list[str] = split_names(tasks.lower_is_better)
    if lower_is_better == ["all"]:
        lower_is_better = True
    one_column_per_task = scores.task is None
    columns = ScoreColumns(
        item=scores.item,
        task=scores.task,
        score=scores.score if one_column_per_task else scores.score[0],
        seed=tasks.seed,
        family=tasks.family,
        task_weight=tasks.task_weight,
    )
    options = ScoreOptions(
        balance=tasks.balance,
        lower_is_better=lower_is_better,
        task_scale=tasks.task_scale,
        tasks="fixed" if tasks.fixed_tasks else "sample",
        missing=tasks.missing,
        min_tasks=tasks.min_tasks,
        baseline=tasks.baseline,
        confidence=confidence,
    )
    frame = _read_columns(
        scores.file,
        label_columns=[scores.item, scores.task, tasks.seed, tasks.family],
        number_columns=[*scores.score, tasks.task_weight],
    )
    return rate_frame(frame, columns, options)


def _read_columns(
    file: TableFile, label_columns: list[str | None], number_columns: list[str | None]
) -> dict[str, object]:
    """Read columns of labels as text, and columns of numbers as numbers; None is no column."""
    from rankwise.datasets.column_values import label_column

    label_positions = _positions_of_columns(file, label_columns)
    number_positions = _positions_of_columns(file, number_columns)
    columns = file.read(label_positions, number_positions)
    values_of_column: dict[str, object] = {}
    for position in label_positions:
        values_of_column[file.names[position]] = label_column(columns[position])
    for position in number_positions:
        values_of_column[file.names[position]] = columns[position]
    return values_of_column


def _positions_of_columns(file: TableFile, names: list[str | None]) -> list[int]:
    """Positions of columns; None is no column."""
    from rankwise.validation import suggestion

    positions = []
    for name in names:
        if name is None:
            continue
        if name not in file.names:
            raise ValueError(
                f"{file.path} has no column {name!r}{suggestion(name, file.names)} The columns "
                f"are {_list_of_names(file)}."
            )
        positions.append(file.names.index(name))
    return positions
