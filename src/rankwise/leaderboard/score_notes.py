"""Warnings and notes of a leaderboard from scores over tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from rankwise.arrays import Array, Mask
from rankwise.formatting import count, join_words
from rankwise.leaderboard.inference.task_influence import shares_of
from rankwise.leaderboard.models.task_scores import AdditiveModel

if TYPE_CHECKING:
    from rankwise.leaderboard.score_board import TaskLeaderboard

FEW_TASKS = 5  # with fewer an interval is a rough guess
MOST_CHECKED = 200  # tasks; single queries may differ in spread and direction
LARGEST_SHARE = 1 / 3  # of the expected squared errors, above which one task decides
LARGEST_SQUARES = 1 / 2  # of the observed squared errors, above which one task decides
TASKS_FOR_SQUARES = 10  # with fewer tasks the observed share is noisy
MODELS_FOR_SQUARES = 5  # with fewer models it is, too
LARGEST_SPREAD = 5.0  # times the median spread of the tasks
LEAST_RATIO = 1.5  # of the intervals by the masking test and by the jackknife
CURVATURE = 3.0  # t statistic of Tukey's test from which a note is printed
LEAST_UNIT_RATIO = 20.0  # of the spreads of percentages and of fractions
LARGEST_RATIO = 5.0  # of 100 times a fraction and the median percentage of the task


def score_warnings(board: TaskLeaderboard) -> tuple[str, ...]:
    """Return reasons to distrust a board, one sentence each."""
    checks: tuple[Callable[[TaskLeaderboard], Iterator[str]], ...] = (
        _component_warning,
        _few_tasks_warning,
        _constant_scores_warning,
        _mixed_units_in_task_warning,
        _task_units_warning,
        _reversed_tasks_warning,
        _deciding_task_warning,
    )
    return tuple(message for check in checks for message in check(board))


def score_notes(board: TaskLeaderboard) -> tuple[str, ...]:
    """Return remarks on missing cells and seeds, one sentence each."""
    checks: tuple[Callable[[TaskLeaderboard], Iterator[str]], ...] = (
        _orientation_note,
        _nan_note,
        _missing_cells_note,
        _masking_note,
        _curvature_note,
        _seed_note,
    )
    return tuple(message for check in checks for message in check(board))


def tasks_or_families(board: TaskLeaderboard) -> str:
    """Return the kind of the left-out units: "tasks" or "families"."""
    if board.rated_table.families is None:
        return "tasks"
    return "families"


def _component_warning(board: TaskLeaderboard) -> Iterator[str]:
    if board.n_components > 1:
        components = board.model.components
        component_size = np.bincount(components)[components]
        model_of_smallest = board.items[np.argmin(component_size)]
        yield (
            f"the models are in {board.n_components} parts without common tasks "
            f"({model_of_smallest!s} is in the smallest); ratings and ranks are valid within a "
            "part only"
        )


def _few_tasks_warning(board: TaskLeaderboard) -> Iterator[str]:
    n_units = board.design.n_units
    if board.options.tasks == "sample" and n_units < FEW_TASKS:
        noun = tasks_or_families(board)
        width = _relative_width(n_units, board.confidence)
        ratio = width / _relative_width(10, board.confidence)
        yield (
            f"an interval from {n_units} {noun} is a rough guess; it is about "
            f"{ratio:.2g} times as wide as from 10 {noun}"
        )


def _relative_width(n_units: int, confidence: float) -> float:
    """Half width of Student's interval of a mean, in standard deviations."""
    # Half width of an interval of Student's t, in standard deviations of the units.
    quantile = student.ppf((1 + confidence) / 2, n_units - 1)
    return float(quantile / np.sqrt(n_units))


def _constant_scores_warning(board: TaskLeaderboard) -> Iterator[str]:
    scores = board.rated_table.scores
    is_constant = np.nanmax(scores, axis=0) == np.nanmin(scores, axis=0)
    if is_constant.all():
        yield "on every task all models have the same score"
    elif is_constant.any() and len(is_constant) <= MOST_CHECKED:
        names = join_words(board.rated_table.tasks[is_constant], 3)
        yield f"all models have the same score on {names}; this task does not distinguish models"


def _mixed_units_in_task_warning(board: TaskLeaderboard) -> Iterator[str]:
    """Find models with fractions where the other models have percentages, and the reverse."""
    scores = board.table.scores
    medians = np.nanmedian(scores, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio_to_median = scores / medians

    # The unit of a task, by its median: percentages or fractions.
    is_nonnegative = np.nanmin(scores, axis=0) >= 0
    is_percentage = is_nonnegative & (medians > 1) & (np.nanmax(scores, axis=0) <= 100)
    is_fraction = is_nonnegative & (medians > 0) & (medians <= 1)

    # Scores in the other unit are near the median after a conversion.
    in_range_of_fractions = (scores >= 0) & (scores <= 1)
    in_range_of_percentages = (scores > 1) & (scores <= 100)
    is_fraction_score = is_percentage & in_range_of_fractions & _is_near_1(100 * ratio_to_median)
    is_percentage_score = is_fraction & in_range_of_percentages & _is_near_1(ratio_to_median / 100)

    for unit, unit_of_others, is_in_unit, is_checked_task in (
        ("fractions", "percentages", is_fraction_score, is_percentage),
        ("percentages", "fractions", is_percentage_score, is_fraction),
    ):
        n_checked = (board.table.is_observed & is_checked_task).sum(axis=1)
        n_in_unit = is_in_unit.sum(axis=1)
        is_model_in_unit = (n_in_unit > 0) & (n_in_unit >= n_checked / 2)
        models = board.table.models[is_model_in_unit]
        if len(models):
            yield (
                f"the scores of {join_words(models, 3)} look like {unit} where other models have "
                f"{unit_of_others}; convert them to the same unit"
            )


def _is_near_1(ratio: Array) -> Mask:
    """Whether numbers are of the size of 1."""
    return np.asarray((ratio > 1 / LARGEST_RATIO) & (ratio < LARGEST_RATIO))


def _spreads(board: TaskLeaderboard) -> Array:
    return np.asarray(np.nanstd(board.rated_table.scores, axis=0, ddof=1))


def _task_units_warning(board: TaskLeaderboard) -> Iterator[str]:
    spreads = _spreads(board)  # standard deviation of the scores of each task
    if not 3 <= len(spreads) <= MOST_CHECKED:
        return
    median = float(np.median(spreads))
    widest = int(np.argmax(spreads))
    if median > 0 and spreads[widest] > LARGEST_SPREAD * median:
        yield (
            f"the scores of {board.rated_table.tasks[widest]!s} spread "
            f"{spreads[widest] / median:.3g} times as far as those of the median task and dominate "
            "the mean; task_scale='sd' gives all tasks the same spread"
        )
    elif board.options.task_scale == "none":
        yield from _fractions_and_percentages_warning(board, spreads)


def _fractions_and_percentages_warning(board: TaskLeaderboard, spreads: Array) -> Iterator[str]:
    scores = board.rated_table.scores
    smallest = np.nanmin(scores, axis=0)
    largest = np.nanmax(scores, axis=0)
    is_fraction = (smallest >= 0) & (largest <= 1)
    is_percentage = (smallest >= 0) & (largest > 1) & (largest <= 100)
    if not (is_fraction.any() and is_percentage.any()):
        return
    spread_of_fractions = float(np.median(spreads[is_fraction]))
    spread_of_percentages = float(np.median(spreads[is_percentage]))
    if spread_of_percentages > LEAST_UNIT_RATIO * spread_of_fractions > 0:
        names = join_words(board.rated_table.tasks[is_fraction], 3)
        yield (
            f"the scores of {names} look like fractions, and those of the other tasks like "
            "percentages, which dominate the mean; convert them to the same unit"
        )


def _reversed_tasks_warning(board: TaskLeaderboard) -> Iterator[str]:
    """Find tasks whose scores correlate significantly negatively with the other tasks."""
    if board.design.n_units > MOST_CHECKED or not board.is_ranked.any():
        return
    # Spearman's correlation times √(n − 1) is about normal; Bonferroni's limit for all units.
    limit = norm.ppf(0.05 / board.design.n_units)
    reversed_units = []
    influence = board.influence
    units = zip(board.unit_labels, influence.correlations, influence.n_models_by_unit, strict=True)
    for label, correlation, n_models in units:
        if correlation is not None and correlation * np.sqrt(n_models - 1) < limit:
            reversed_units.append(label)
    if reversed_units:
        yield (
            f"{join_words(map(str, reversed_units), 3)} ranks the models against the other "
            f"{tasks_or_families(board)}; if a lower score is better, pass lower_is_better="
        )


def _deciding_task_warning(board: TaskLeaderboard) -> Iterator[str]:
    """Name the task that decides by its weight, or by its squared errors."""
    n_units = board.design.n_units
    if n_units < FEW_TASKS or board.options.tasks == "fixed":
        return

    # By its weight: a large share of the squared errors even if all cells are equally noisy.
    expected_shares = shares_of(board.score_errors.left_out.unit_shares)
    largest = int(np.argmax(expected_shares))
    effective = board.effective_tasks
    if expected_shares[largest] > LARGEST_SHARE or effective < n_units / 2:
        yield (
            f"{board.unit_labels[largest]!s} alone causes {100 * expected_shares[largest]:.0f}% of "
            f"the expected squared errors; the ratings depend on effectively {effective:.2g} of "
            f"{n_units} {tasks_or_families(board)}"
        )
        return

    # By its scores: a large share of the observed squared errors.
    if n_units < TASKS_FOR_SQUARES or board.is_ranked.sum() < MODELS_FOR_SQUARES:
        return
    shares = board.unit_shares
    largest = int(np.argmax(shares))
    if shares[largest] > LARGEST_SQUARES:
        yield (
            f"{board.unit_labels[largest]!s} causes {100 * shares[largest]:.0f}% of the squared "
            "errors of the differences"
        )


def _orientation_note(board: TaskLeaderboard) -> Iterator[str]:
    if board.options.lower_is_better is True:
        yield "lower scores are better: ratings are minus the mean score"
    elif board.options.lower_is_better:
        yield "scores of tasks in lower_is_better are multiplied by −1"


def _nan_note(board: TaskLeaderboard) -> Iterator[str]:
    n_nan = board.table.n_nan
    if n_nan and board.options.missing == "model":
        yield (
            f"{n_nan:,} scores are NaN and taken as not run; if the models failed, pass "
            "missing='worst'"
        )


def _missing_cells_note(board: TaskLeaderboard) -> Iterator[str]:
    share = 1 - float(board.table.is_observed.mean())
    if share == 0:
        return
    missing = f"{_percent(share)} of the cells are missing"
    missing_rule = board.options.missing
    if missing_rule == "model":
        yield (
            f"{missing}; a model is compared on the tasks that it has, as if its other scores "
            "followed the additive model"
        )
    elif missing_rule == "common":
        n_common = len(board.rated_table.tasks)
        yield f"{missing}; only the {n_common} tasks with scores of all models count"
    elif missing_rule == "worst":
        yield f"{missing} and count as the worst score of their task"
    else:  # the label of a model
        yield f"{missing} and are replaced by the scores of {missing_rule!s}"


def _masking_note(board: TaskLeaderboard) -> Iterator[str]:
    """Report models whose intervals the masking test widens."""
    masking = board.score_errors.masking
    if masking is None or board.options.tasks == "fixed":
        return
    # Half widths of the intervals of the differences to the reference, which is the last row.
    n_models = len(board.items)
    reference = n_models
    by_tasks = board.score_errors.by_tasks.half_widths(reference, board.confidence)[:n_models]
    by_masking = masking.errors.half_widths(reference, board.confidence)[:n_models]
    ratio = np.divide(by_masking, by_tasks, out=np.zeros(n_models), where=by_tasks > 0)
    is_wider = (ratio > LEAST_RATIO) & board.is_ranked
    if not is_wider.any():
        return
    n_wider = int(is_wider.sum())
    yield (
        f"the intervals of {count(n_wider, 'model')} are {np.median(ratio[is_wider]):.2g} times as "
        "wide because of missing cells: masking the same cells changes the ratings of the "
        f"{masking.n_complete} complete models by "
        f"{np.median(masking.missing_cell_errors[is_wider]):.3g} (standard deviation)"
    )


def curvature_t_statistic(model: AdditiveModel) -> float | None:
    """T statistic of Tukey's one degree of freedom for non-additivity, by leaving out tasks.

    It is the slope of the residuals on r_m (b_t − b̄) within tasks: positive if hard tasks
    distinguish models less than easy tasks.
    """
    # Tukey's test of additivity: t of the product of the effects of the model and of the task.
    design = model.design
    task_effects = model.task_effects - np.average(model.task_effects, weights=design.weights)
    products = np.where(design.is_observed, model.effects[:, None] * task_effects, 0.0)
    mean_products = products.sum(axis=0) / design.n_models_by_task
    regressor = np.where(design.is_observed, products - mean_products, 0.0)

    # Slope of the residuals on this product by least squares, from sums by task.
    cross_products = (regressor * model.residuals).sum(axis=0)
    squares = (regressor**2).sum(axis=0)
    n_tasks = len(squares)
    total_squares = squares.sum()
    is_on_one_task = (squares == total_squares).any()  # no slope remains without this task
    if n_tasks < FEW_TASKS or total_squares == 0 or is_on_one_task:
        return None
    slope = cross_products.sum() / total_squares

    # Its standard error by the jackknife: the changes of the slope without each task.
    changes_without_task = (cross_products - slope * squares) / (total_squares - squares)
    jackknife_factor = (n_tasks - 1) / n_tasks
    error = np.sqrt(jackknife_factor * (changes_without_task**2).sum())
    if error == 0:
        return None
    return float(slope / error)


def _curvature_note(board: TaskLeaderboard) -> Iterator[str]:
    if board.design.is_complete or board.options.task_scale == "rank":
        return
    t = curvature_t_statistic(board.model)
    if t is None or abs(t) <= CURVATURE:
        return
    if t > 0:
        comparison = "easy tasks separate the models more than hard tasks"
    else:
        comparison = "hard tasks separate the models more than easy tasks"
    yield (f"{comparison}, so missing scores do not follow the additive model; see task_scale=")


def _seed_note(board: TaskLeaderboard) -> Iterator[str]:
    noise = board.noise
    if noise.removable_error is None or board.options.tasks == "fixed":
        return
    yield f"more seeds could remove at most {_percent(noise.removable_error)} of the standard error"


def _percent(share: float) -> str:
    """Return a share in percent, with two digits."""
    return f"{float(f'{100 * share:.2g}'):g}%"
