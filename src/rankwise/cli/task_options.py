"""Options of `rankwise rank` for scores over tasks."""

from __future__ import annotations

from dataclasses import dataclass

from rankwise.cli.command import option, option_group

SCORES = "Scores over tasks"  # section of the help


@dataclass(frozen=True)
class TaskOptions:
    """Columns of scores over tasks, and arguments of `rankwise.leaderboard.rate_scores`."""

    task: str | None
    score: tuple[str, ...]
    seed: str | None
    family: str | None
    balance: str | None
    task_weight: str | None
    lower_is_better: tuple[str, ...]
    task_scale: str
    fixed_tasks: bool
    missing: str
    min_tasks: float
    baseline: str | None


task_options = option_group(
    TaskOptions,
    "tasks",
    option(
        "--task",
        metavar="COLUMN",
        section=SCORES,
        help="Column of tasks, if each row has one score.",
    ),
    option(
        "--score",
        metavar="COLUMNS",
        multiple=True,
        section=SCORES,
        help="Column of scores, or one column for each task.",
    ),
    option(
        "--seed",
        metavar="COLUMN",
        section=SCORES,
        is_advanced=True,
        help="Column of the seed, fold or draw of repeated scores.",
    ),
    option(
        "--family",
        metavar="COLUMN",
        section=SCORES,
        is_advanced=True,
        help="Column of task families; all tasks of a family are held out together.",
    ),
    option(
        "--balance",
        metavar="family",
        section=SCORES,
        is_advanced=True,
        help="Give each family the same weight.",
    ),
    option(
        "--task-weight",
        metavar="COLUMN",
        section=SCORES,
        is_advanced=True,
        help="Column of task weights.",
    ),
    option(
        "--lower-is-better",
        metavar="TASKS",
        multiple=True,
        section=SCORES,
        is_advanced=True,
        help="Tasks whose lower scores are better; all for all tasks.",
    ),
    option(
        "--task-scale",
        metavar="NAME",
        default="none",
        section=SCORES,
        is_advanced=True,
        help="Scale of the scores: none, sd, rank or logit.",
    ),
    option(
        "--fixed-tasks",
        is_flag=True,
        section=SCORES,
        is_advanced=True,
        help="Restrict conclusions to these tasks; needs --seed.",
    ),
    option(
        "--missing",
        metavar="model|common|worst|MODEL",
        default="model",
        section=SCORES,
        is_advanced=True,
        help="Missing scores: by the additive model, tasks of all models, worst score of the "
        "task, or scores of a model.",
    ),
    option(
        "--min-tasks",
        metavar="SHARE",
        type=float,
        default=0.5,
        section=SCORES,
        is_advanced=True,
        help="Share of the tasks that a model needs for a rank.",
    ),
    option(
        "--baseline",
        metavar="MODEL",
        section=SCORES,
        is_advanced=True,
        help="Model that the intervals compare with.",
    ),
)
