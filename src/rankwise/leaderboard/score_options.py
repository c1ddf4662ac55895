"""Arguments of `rate_scores` that are not columns, and their validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.leaderboard.arguments import is_number_between
from rankwise.leaderboard.score_transforms import RULES_FOR_MISSING, TASK_SCALES
from rankwise.validation import check_option

TASK_KINDS = ("sample", "fixed")


@dataclass(frozen=True)
class ScoreOptions:
    """Arguments of `rate_scores` that are not columns; see there.

    Attributes
    ----------
    balance : {"family"} or None
        Whether each family has the same weight.
    lower_is_better : bool or sequence of tasks
        Tasks whose scores are negated.
    task_scale : {"none", "sd", "rank", "logit"}
        Scale of the scores.
    tasks : {"sample", "fixed"}
        Whether conclusions are about further tasks or about these.
    missing : {"model", "common", "worst"} or label of a model
        Rule for missing cells.
    min_tasks : float
        Share of the tasks that a model needs for a rank.
    baseline : label or None
        Model from which intervals are measured.
    confidence : float
        Confidence of the intervals.
    """

    balance: str | None = None
    lower_is_better: bool | Sequence[object] = ()
    task_scale: str = "none"
    tasks: str = "sample"
    missing: object = "model"
    min_tasks: float = 0.5
    baseline: object = None
    confidence: float = DEFAULT_CONFIDENCE


def check_score_options(options: ScoreOptions, *, has_families: bool, has_seeds: bool) -> None:
    """Raise a ValueError if an argument is not valid."""
    check_option("task_scale", options.task_scale, TASK_SCALES)
    check_option("tasks", options.tasks, TASK_KINDS)
    if not is_number_between(options.confidence, 0.0, 1.0):
        raise ValueError(f"confidence={options.confidence!r}; expected a number between 0 and 1.")
    is_share = options.min_tasks in (0, 1) or is_number_between(options.min_tasks, 0.0, 1.0)
    if isinstance(options.min_tasks, bool) or not is_share:
        raise ValueError(
            f"min_tasks={options.min_tasks!r}; expected the share of the tasks that a model needs "
            "for a rank, between 0 and 1."
        )
    if options.balance is not None:
        check_option("balance", options.balance, ("family",))
        if not has_families:
            raise ValueError("balance='family' needs family=, the family of each task.")
    if options.missing is None or isinstance(options.missing, bool):
        choices = ", ".join(map(repr, RULES_FOR_MISSING))
        raise ValueError(f"missing={options.missing!r}; expected {choices} or a model.")
    if options.tasks == "fixed" and not has_seeds:
        raise ValueError(
            "tasks='fixed' computes intervals from repeated scores of each cell; name the column "
            "that distinguishes them with seed=."
        )
    if options.tasks == "fixed" and options.task_scale == "rank":
        raise ValueError("tasks='fixed' has no intervals for task_scale='rank'; use another scale.")
