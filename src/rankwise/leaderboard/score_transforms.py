"""Orient and rescale the scores of tasks, and fill missing cells, before models are rated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logit
from scipy.stats import rankdata

from rankwise.arrays import Array, Mask
from rankwise.formatting import join_words
from rankwise.leaderboard.score_table import ScoreTable
from rankwise.validation import suggestion

TASK_SCALES = ("none", "sd", "rank", "logit")
RULES_FOR_MISSING = ("model", "common", "worst")


class ScaledScores(NamedTuple):
    """Scores on another scale, and how much they change with the original scores.

    Attributes
    ----------
    scores : ndarray of shape (n_models, n_tasks)
        Rescaled scores.
    slopes : ndarray of shape (n_models, n_tasks) or None
        Derivatives, which rescale the deviations of repetitions; None if there are none.
    """

    scores: Array
    slopes: Array | None


def rescale(table: ScoreTable, task_scale: str, is_lower_better: Mask) -> ScoreTable:
    """Return the table with larger scores for better models, on another scale.

    Parameters
    ----------
    table : ScoreTable
        Scores.
    task_scale : {"none", "sd", "rank", "logit"}
        See `rate_scores`.
    is_lower_better : ndarray of bool, shape (n_tasks,)
        Tasks whose scores are negated.
    """
    sign = np.where(is_lower_better, -1.0, 1.0)
    if task_scale == "logit":  # the sign changes afterwards: shares must be positive
        log_odds = _logits(table)
        scaled = log_odds._replace(scores=log_odds.scores * sign)
    else:
        rescale_tasks = SCALES[task_scale]
        scaled = rescale_tasks(table.scores * sign)

    # Deviations of repeated scores are multiplied by the slope of the transformation and its sign.
    repetitions = None
    if table.repetitions is not None and scaled.slopes is not None:
        rows = table.repetitions
        slope_of_row = (scaled.slopes * sign)[rows.model, rows.task]
        repetitions = rows._replace(deviation=slope_of_row * rows.deviation)
    return replace(table, scores=scaled.scores, repetitions=repetitions)


def _unscaled(scores: Array) -> ScaledScores:
    return ScaledScores(scores, np.ones_like(scores))


def _by_standard_deviation(scores: Array) -> ScaledScores:
    """Divide by the standard deviation of each task; a constant task becomes 0."""
    mean = np.nanmean(scores, axis=0)
    deviation = np.nanstd(scores, axis=0, ddof=1)
    is_constant = np.nanmax(scores, axis=0) == np.nanmin(scores, axis=0)
    inverse_deviation = np.zeros_like(deviation)  # 0 for constant scores
    np.divide(1.0, deviation, out=inverse_deviation, where=~is_constant)
    return ScaledScores(
        scores=(scores - mean) * inverse_deviation,
        slopes=np.broadcast_to(inverse_deviation, scores.shape),
    )


def _by_rank(scores: Array) -> ScaledScores:
    """Share of the other models with a score on the task that are worse; half for ties."""
    ranks = rankdata(scores, axis=0, nan_policy="omit")
    n_models = np.sum(~np.isnan(scores), axis=0)
    share_of_worse_models = (ranks - 1) / (n_models - 1)
    return ScaledScores(np.asarray(share_of_worse_models), slopes=None)


SCALES: dict[str, Callable[[Array], ScaledScores]] = {
    "none": _unscaled,
    "sd": _by_standard_deviation,
    "rank": _by_rank,
}


def _logits(table: ScoreTable) -> ScaledScores:
    """Log odds of scores that are shares or percentages."""
    scores = table.scores
    are_percentages = np.nanmax(scores) > 1  # otherwise fractions
    unit = 100.0 if are_percentages else 1.0
    shares = scores / unit
    with np.errstate(invalid="ignore"):
        is_outside = (shares <= 0) | (shares >= 1)
    if is_outside.any():
        model, task = np.argwhere(is_outside)[0]
        raise ValueError(
            "task_scale='logit' needs scores between 0 and 1, or between 0 and 100, without these "
            f"numbers; model {table.models[model]!s} has {scores[model, task]:g} on the task "
            f"{table.tasks[task]!s}."
        )
    slopes = 1 / (unit * shares * (1 - shares))  # derivative of the log odds
    return ScaledScores(logit(shares), slopes)


def lower_is_better_tasks(table: ScoreTable, tasks: bool | Sequence[object]) -> Mask:
    """Return which tasks the argument `lower_is_better` names."""
    if isinstance(tasks, bool):
        return np.full(len(table.tasks), tasks)
    if isinstance(tasks, str):
        tasks = [tasks]
    labels = [str(label) for label in table.tasks.tolist()]
    names = {str(task) for task in tasks}
    unknown = sorted(names - set(labels))
    if unknown:
        raise ValueError(
            f"lower_is_better={unknown[0]!r} is not a task{suggestion(unknown[0], labels)} The "
            f"tasks are {join_words(labels)}."
        )
    return np.isin(labels, list(names))


def fill_missing(table: ScoreTable, missing: object) -> ScoreTable:
    """Apply the argument `missing` of `rate_scores`."""
    is_observed = table.is_observed
    if missing == "model":
        return table
    if missing == "common":
        common_tasks = np.flatnonzero(is_observed.all(axis=0))
        if len(common_tasks) == 0:
            n_tasks = is_observed.sum(axis=1)
            fewest = np.argsort(n_tasks, kind="stable")[:3]
            raise ValueError(
                "missing='common': no task has scores of all models; the models with the fewest "
                f"tasks are {join_words(table.models[fewest])}. Drop models, or use "
                "missing='model'."
            )
        return table.take_tasks(common_tasks)
    if missing == "worst":
        score_by_task = np.nanmin(table.scores, axis=0)
    else:  # the label of a model, whose scores replace missing ones
        score_by_task = _scores_of_model(table, missing)
    return replace(table, scores=np.where(is_observed, table.scores, score_by_task))


def _scores_of_model(table: ScoreTable, missing: object) -> Array:
    """Scores of the model that the argument `missing` names."""
    labels = [str(label) for label in table.models.tolist()]
    if str(missing) not in labels:
        choices = join_words(map(repr, RULES_FOR_MISSING))
        raise ValueError(
            f"missing={missing!r} is not a model; expected {choices}, or a model whose scores "
            "replace missing ones."
        )
    scores = table.scores[labels.index(str(missing))]
    is_needed = ~table.is_observed.all(axis=0)
    is_lacking = np.isnan(scores) & is_needed
    if is_lacking.any():
        raise ValueError(
            f"missing={missing!r}: this model itself has no score on the task "
            f"{table.tasks[is_lacking][0]!s}."
        )
    return np.asarray(scores)
