"""Records of a leaderboard from scores over tasks."""

from __future__ import annotations

import math
from typing import NamedTuple


class ScoreDifference(NamedTuple):
    """Difference of the ratings of two models.

    Attributes
    ----------
    value : float
        Rating of the first model less that of the second.
    low, high : float or None
        Interval; None if a model has no interval.
    p_value : float or None
        Two-sided p-value of the hypothesis that the models are equal; below 1 − confidence exactly
        if the interval excludes 0.
    freedom : float or None
        Degrees of freedom: the effective number of tasks minus 1.
    """

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    freedom: float | None


class TasksNeeded(NamedTuple):
    """Number of tasks until the difference of two models is detected with 80% power.

    Attributes
    ----------
    n : int or None
        For the observed difference; None if it is 0.
    at_least, at_most : int or None
        For the two ends of the interval of the difference; `at_most` is None if the interval
        contains 0, since no number of tasks detects a difference of 0.
    difference : float
        The observed difference, or the one that was passed.
    detectable : float
        Smallest difference that the tasks of the table detect with 80% power.
    """

    n: int | None
    at_least: int | None
    at_most: int | None
    difference: float
    detectable: float


class SuggestedCell(NamedTuple):
    """A missing cell to run next.

    Attributes
    ----------
    item : str or int
        Model to run.
    task : str or int
        Task to run it on.
    error_ratio : float
        Expected standard error of the differences after this and the cells before it, relative to
        now.
    """

    item: object
    task: object
    error_ratio: float


class CellsToFlip(NamedTuple):
    """Values of the missing cells that would reverse the order of two models.

    Attributes
    ----------
    above, below : str or int
        The model with the higher and with the lower rating.
    difference : float
        Difference of their ratings.
    n_missing_above, n_missing_below : int
        Number of missing cells of each model.
    excess : float or None
        How much better than predicted the missing cells of `below` would have to be, each; None
        without missing cells.
    excess_in_sd : float or None
        The same in standard deviations of the residuals of `below`.
    shortfall : float or None
        How much worse than predicted the missing cells of `above` would have to be, each.
    shortfall_in_sd : float or None
        The same in standard deviations of the residuals of `above`.
    """

    above: object
    below: object
    difference: float
    n_missing_above: int
    n_missing_below: int
    excess: float | None
    excess_in_sd: float | None
    shortfall: float | None
    shortfall_in_sd: float | None

    def __str__(self) -> str:
        sentences = []
        if self.excess is not None:
            sentences.append(
                f"{self.below} overtakes {self.above} if its {self.n_missing_below} missing scores "
                f"are {self.excess:.3g} better than predicted "
                f"({self.excess_in_sd:.2g} standard deviations of its residuals)"
            )
        if self.shortfall is not None:
            sentences.append(
                f"{self.above} falls below {self.below} if its {self.n_missing_above} missing "
                f"scores are {self.shortfall:.3g} worse than predicted "
                f"({self.shortfall_in_sd:.2g} standard deviations of its residuals)"
            )
        if not sentences:
            return f"{self.above} and {self.below} have no missing scores"
        return "; ".join(sentences)


class TaskInfluence(NamedTuple):
    """Contribution of a task, or a family of tasks, to a board.

    Attributes
    ----------
    task : str or int
        Label of the task, or of the family if families are left out.
    n_tasks : int
        Number of tasks; 1 unless it is a family.
    n_models : int
        Number of models with a score on it.
    weight : float
        Share of the weights of all tasks.
    spread : float
        Standard deviation of the scores; the mean over the tasks of a family.
    share : float
        Share of the squared errors of all differences that is due to leaving out the task.
    expected_share : float
        The same if the errors of all cells had the same variance. It depends on weights and missing
        cells only.
    correlation : float or None
        Rank correlation of the scores with the ratings without the task; None if undefined.
    first_without : str or int
        The first model without the task.
    n_reversed : int
        Pairs of ranked models whose order reverses without the task.
    """

    task: object
    n_tasks: int
    n_models: int
    weight: float
    spread: float
    share: float
    expected_share: float
    correlation: float | None
    first_without: object
    n_reversed: int


class ScoreNoise(NamedTuple):
    """Sources of the errors of a board.

    Attributes
    ----------
    cell : float
        Standard deviation of a score around the additive model, seeds averaged.
    seed : float or None
        Standard deviation of one repetition around the mean of its cell; None without `seed`.
    seed_share : float or None
        Share of the variance of the differences that is due to seeds. More seeds can remove at most
        this share.
    """

    cell: float
    seed: float | None
    seed_share: float | None

    @property
    def removable_error(self) -> float | None:
        """Share of the standard error that more seeds could remove at most."""
        if self.seed_share is None:
            return None
        return 1 - math.sqrt(1 - min(1.0, self.seed_share))
