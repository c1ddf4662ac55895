"""rate_scores: a leaderboard from scores of models on tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import warn_user
from rankwise.formatting import join_words
from rankwise.leaderboard.inference.seed_noise import cell_counts
from rankwise.leaderboard.score_board import TaskLeaderboard
from rankwise.leaderboard.score_notes import tasks_or_families
from rankwise.leaderboard.score_options import ScoreOptions, check_score_options
from rankwise.leaderboard.score_reader import (
    ColumnName,
    ScoreColumns,
    ScoreNames,
    TaskValues,
    read_scores,
)
from rankwise.leaderboard.score_table import ScoreTable
from rankwise.leaderboard.score_transforms import fill_missing, lower_is_better_tasks, rescale
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.possible_ranks import COVARIANCE_LIMIT
from rankwise.validation import suggestion


@single_threaded
def rate_scores(
    frame: object,
    *,
    item: ColumnName | None = None,
    task: ColumnName | None = None,
    score: ScoreNames | None = None,
    seed: ColumnName | None = None,
    family: TaskValues | None = None,
    balance: str | None = None,
    task_weight: TaskValues | None = None,
    lower_is_better: bool | Sequence[object] = (),
    task_scale: str = "none",
    tasks: str = "sample",
    missing: object = "model",
    min_tasks: float = 0.5,
    baseline: object = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> TaskLeaderboard:
    """Rate models by their scores over tasks, with intervals of ranks and differences.

    Use it for benchmark tables: models × tasks, systems × queries, algorithms × data sets. The
    intervals show which differences would remain with other tasks of the same kind.

    The score of model m on task t is Y_mt = r_m + b_t + e, fitted by least squares, so a model that
    skips hard tasks is not rated too high. The rating is r_m + the mean of b_t: for a complete
    table the mean score. Tasks are left out one at a time, in closed form. Intervals of differences
    use Student's t, with the degrees of freedom of each pair; for a complete table they are those
    of the paired t-test.

    Parameters
    ----------
    frame : data frame or dict of columns
        Long, with one score in each row (`item`, `task` and `score` name its columns), or wide,
        with one model in each row and one column for each task (`score` names these columns).
        Missing cells are NaN or absent.
    item : str or int, optional
        Column of the models; by default the index of a wide pandas frame.
    task : str or int, optional
        Column of the tasks of a long table.
    score : str, int or list of these, optional
        Column of the scores, or one column for each task. By default all columns of a wide pandas
        frame whose index has the models.
    seed : str or int, optional
        Column that distinguishes repeated scores of a cell: seeds, folds, draws. They are averaged,
        and ``board.noise`` reports how much of the error they cause.
    family : str, int or mapping, optional
        Families of tasks whose errors may depend on each other, such as the kind of the task: a
        column of a long table, or a dictionary from task to family. Whole families are left out.
    balance : {"family"}, optional
        Give each family the same weight; by default each task has the same weight.
    task_weight : str, int or mapping, optional
        Positive weights of the tasks: a column of a long table, or a dictionary.
    lower_is_better : bool or list of tasks, default=()
        Tasks whose scores are better if lower, or True for all. Their scores are negated.
    task_scale : {"none", "sd", "rank", "logit"}, default="none"
        Scale of the scores: unchanged; divided by the standard deviation of the task; shares of
        models that are worse (Borda counts); log odds. On other scales than "none" the order of two
        models also depends on the other models.
    tasks : {"sample", "fixed"}, default="sample"
        Whether conclusions are about further tasks like these, or about these tasks only. For
        "fixed", intervals come from the repetitions of `seed` alone.
    missing : {"model", "common", "worst"} or label of a model, default="model"
        Missing cells: left to the additive model; only tasks that all models have; the worst score
        of the task, for failures; or the score of this model.
    min_tasks : float, default=0.5
        Share of the tasks that a model needs for a rank. Others are listed below a line.
    baseline : label of a model, optional
        Model from which the intervals of ratings are measured; by default the mean of the ranked
        models.
    confidence : float, default=0.95
        Confidence of the intervals, between 0 and 1.

    Returns
    -------
    TaskLeaderboard
        Prints as a table. `needs` returns the number of tasks that a difference requires,
        `next_cells` the cells to run next, `cells_to_flip` the effect of missing cells.

    Warns
    -----
    UserWarning
        If there are fewer than five tasks, one task decides, a task has another unit or direction,
        or models have no common tasks.

    Notes
    -----
    Possible ranks "at once" hold for all models together, by the largest of all errors for complete
    tables of at least 20 effective tasks, otherwise by Holm's procedure with the t test of each
    pair. With missing cells and at least five complete models, an interval is the wider of the
    jackknife's and that of the masking test: the same cells are masked in the complete models.

    Examples
    --------
    >>> from rankwise import rate_scores
    >>> scores = {
    ...     "model": ["owl", "crow", "jay", "wren"],
    ...     "qa": [81.0, 79.5, 70.1, 60.3],
    ...     "code": [64.2, 66.0, 50.8, 41.7],
    ...     "math": [58.3, 55.1, 40.2, 31.0],
    ...     "chat": [77.4, 74.9, 71.3, 55.2],
    ...     "facts": [70.9, 70.2, 61.0, 52.6],
    ...     "tools": [66.1, 64.8, 49.5, 47.4],
    ... }
    >>> names = ["qa", "code", "math", "chat", "facts", "tools"]
    >>> board = rate_scores(scores, item="model", score=names)
    >>> [(row.item, row.rank, row.best_rank, row.worst_rank) for row in board]
    [('owl', 1, 1, 2), ('crow', 2, 1, 2), ('jay', 3, 3, 3), ('wren', 4, 4, 4)]
    >>> board.needs("owl", "crow").n
    18
    """
    columns = ScoreColumns(
        item=item, task=task, score=score, seed=seed, family=family, task_weight=task_weight
    )
    options = ScoreOptions(
        balance=balance,
        lower_is_better=lower_is_better,
        task_scale=task_scale,
        tasks=tasks,
        missing=missing,
        min_tasks=min_tasks,
        baseline=baseline,
        confidence=confidence,
    )
    board = rate_frame(frame, columns, options)
    for message in board.warnings:
        warn_user(f"{message}.")
    return board


def rate_frame(frame: object, columns: ScoreColumns, options: ScoreOptions) -> TaskLeaderboard:
    """Check the options, read a data frame, and rate its models."""
    check_score_options(
        options,
        has_families=columns.family is not None,
        has_seeds=columns.seed is not None,
    )
    table = read_scores(frame, columns)
    return rate_table(table.comparable(), options)


def rate_table(table: ScoreTable, options: ScoreOptions) -> TaskLeaderboard:
    """Rate the models of a table; the options are valid."""
    is_lower_better = lower_is_better_tasks(table, options.lower_is_better)
    rescaled = rescale(table, options.task_scale, is_lower_better)
    board = TaskLeaderboard(table, fill_missing(rescaled, options.missing), options)
    _check_size(board)
    if options.tasks == "fixed":
        _check_repetitions(board.rated_table)
    if options.baseline is not None:
        _check_baseline(board)
    return board


def _check_size(board: TaskLeaderboard) -> None:
    """Refuse tables from which no interval can be computed."""
    has_one_unit = board.design.n_units < 2
    if has_one_unit and board.options.tasks == "sample":
        raise ValueError(
            f"an interval needs at least two {tasks_or_families(board)}; all scores are of "
            f"{board.unit_labels[0]!s}. For conclusions about it only, pass the column of "
            "repetitions as seed= and tasks='fixed'."
        )
    if not board.design.is_complete and len(board) > COVARIANCE_LIMIT:
        raise ValueError(
            f"a table of {len(board):,} models with missing cells takes too long; at most "
            f"{COVARIANCE_LIMIT:,} models. Drop models with few tasks, or pass missing='common'."
        )


def _check_repetitions(table: ScoreTable) -> None:
    """Refuse fixed tasks if a cell has one score only."""
    rows = table.repetitions
    if rows is None:
        return
    n_scores = cell_counts(table.scores.shape, rows)  # of each model on each task
    is_single = (n_scores < 2) & table.is_observed
    if is_single.any():
        model, task = np.argwhere(is_single)[0]
        raise ValueError(
            "tasks='fixed' needs at least two scores in each cell; model "
            f"{table.models[model]!s} has {n_scores[model, task]} on the task "
            f"{table.tasks[task]!s}."
        )


def _check_baseline(board: TaskLeaderboard) -> None:
    baseline = board.options.baseline
    models = board.items.tolist()
    if baseline not in models:
        names = [str(model) for model in models]
        raise ValueError(
            f"baseline={baseline!r} is not a model{suggestion(str(baseline), names)} The models "
            f"are {join_words(names)}."
        )
    if not board.is_ranked[board.position(baseline)]:
        raise ValueError(f"baseline={baseline!r} has too few tasks for a rank; see min_tasks=.")
