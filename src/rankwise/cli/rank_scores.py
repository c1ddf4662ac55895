"""Scores over tasks in `rankwise rank`: recognize the columns, read them, and rate the models."""

from __future__ import annotations

import re
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
OPTIONS_OF_COMPARISONS -= {"item", "delimiter", "confidence"}  # scores have them, too
OPTIONS_OF_COMPARISONS.remove("weight")  # has a message of its own
OPTIONS_OF_TASKS = {field.name for field in fields(TaskOptions)}


class ScoreFile(NamedTuple):
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
    file: TableFile, pairs: PairOptions, comparisons: ComparisonOptions, tasks: TaskOptions
) -> ScoreFile | None:
    """Return the columns of scores over tasks; None if the file has comparisons."""
    score = split_names(tasks.score)
    if tasks.task is not None or score:
        return _named_columns(file, comparisons, tasks, score)
    if not pairs.is_empty() or comparisons.are_named() or _has_comparisons(file):
        return None
    return _long_columns(file, comparisons) or _wide_columns(file, comparisons, tasks)


def _named_columns(
    file: TableFile, comparisons: ComparisonOptions, tasks: TaskOptions, score: list[str]
) -> ScoreFile:
    """Return the columns that options name; others are recognized by their names."""
    item = comparisons.item or usual_name(file, "item")
    if item is None:
        raise ValueError(f"pass --item, the column of the models; the columns are {_names(file)}.")
    task = tasks.task
    if task is None and len(score) == 1:
        task = usual_name(file, "task")
        if task is None:
            raise ValueError("--score names one column; pass --task as well.")
    if not score:
        score_name = usual_name(file, "score")
        if score_name is None:
            raise ValueError(
                f"pass --score, the column of the scores; the columns are {_names(file)}."
            )
        score = [score_name]
    return ScoreFile(file, item, task, score)


def _has_comparisons(file: TableFile) -> bool:
    """Whether the names of the columns are those of comparisons or rankings."""
    from rankwise.datasets.pair_data import infer_columns, validate_columns
    from rankwise.datasets.preflib import PreflibTable

    if isinstance(file, PreflibTable):
        return True
    lowercase = {name.lower() for name in file.names}
    if lowercase & {"winner", "loser", "ranking", "place"}:
        return True
    return bool(infer_columns(validate_columns({}), file.names)[1])


def _long_columns(file: TableFile, comparisons: ComparisonOptions) -> ScoreFile | None:
    """Recognize one score a row by the names of the columns."""
    item = comparisons.item or usual_name(file, "item")
    task = usual_name(file, "task")
    score = usual_name(file, "score")
    if item is None or task is None or score is None:
        return None
    terminal.note(
        f"{score!r} is read as the scores of {item!r} on {task!r}; change it with --item, --task "
        "and --score."
    )
    return ScoreFile(file, item, task, [score])


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


def _wide_columns(
    file: TableFile, comparisons: ComparisonOptions, options: TaskOptions
) -> ScoreFile | None:
    """Recognize one model a row: a column of models, and columns of numbers."""
    item, tasks, others = _sort_columns(file, comparisons.item, options.seed)
    if item is None or not tasks:
        return None
    if item == usual_name(file, "task"):
        raise ValueError(
            f"the rows of {file.path} look like tasks ({item!r}), and its columns like models; "
            f"transpose the table, or rename {item!r} if its values are models."
        )
    rows = count(file.n_rows(), "model")
    if options.seed is not None:
        rows = count(file.n_rows(), "row")
    left_out = ""
    if others:
        left_out = f", without {join_words(others, 3)}"
    terminal.note(
        f"the table is read as scores of {rows} ({item!r}) on {count(len(tasks), 'task')} "
        f"({join_words(tasks, 3)}){left_out}; change it with --item and --score."
    )
    return ScoreFile(file, item, None, tasks)


def _sort_columns(file: TableFile, item: str | None, seed: str | None) -> WideColumns:
    """Find the column of models and the columns of tasks."""
    from rankwise.datasets.column_values import is_number

    columns = file.read([], range(len(file.names)))
    numeric = [name for at, name in enumerate(file.names) if is_number(columns[at].type)]
    texts = [name for name in file.names if name not in numeric]
    item = item or usual_name(file, "item")
    if item is None and len(texts) == 1 and len(numeric) >= LEAST_TASKS:
        (item,) = texts
    candidates = [name for name in numeric if name not in (item, seed)]
    tasks = [name for name in candidates if not is_summary(name)]
    others = [name for name in texts if name != item]
    others += [name for name in candidates if is_summary(name)]
    return WideColumns(item, tasks, others)


def is_summary(name: str) -> bool:
    """Whether a column summarizes others or describes the model, by the first word of its name."""
    words = re.findall(r"[a-z]+", name.lower())
    return bool(words) and words[0] in SUMMARY_WORDS


def usual_name(file: TableFile, role: str) -> str | None:
    """Name of the first column whose name is usual for a role of scores."""
    from rankwise.leaderboard.score_reader import usual_column

    return usual_column(file.names, role)


def _names(file: TableFile) -> str:
    return join_words(file.names)


def rate_file(
    scores: ScoreFile, tasks: TaskOptions, weight: str | None, confidence: float
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
    labels = [scores.item, scores.task, tasks.seed, tasks.family]
    numbers = [*scores.score, tasks.task_weight]
    columns = ScoreColumns(
        item=scores.item,
        task=scores.task,
        score=scores.score if scores.task is None else scores.score[0],
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
    return rate_frame(_read_columns(scores.file, labels, numbers), columns, options)


def _read_columns(
    file: TableFile, labels: list[str | None], numbers: list[str | None]
) -> dict[str, object]:
    """Read columns of labels as text, and columns of numbers as numbers."""
    from rankwise.datasets.column_values import label_column

    text_positions = _positions(file, labels)
    number_positions = _positions(file, numbers)
    columns = file.read(text_positions, number_positions)
    read: dict[str, object] = {}
    for at in text_positions:
        read[file.names[at]] = label_column(columns[at])
    for at in number_positions:
        read[file.names[at]] = columns[at]
    return read


def _positions(file: TableFile, names: list[str | None]) -> list[int]:
    """Positions of columns; names are compared regardless of case."""
    from rankwise.validation import suggestion

    positions = []
    for name in names:
        if name is None:
            continue
        if name not in file.names:
            raise ValueError(
                f"{file.path} has no column {name!r}{suggestion(name, file.names)} The columns "
                f"are {_names(file)}."
            )
        positions.append(file.names.index(name))
    return positions
