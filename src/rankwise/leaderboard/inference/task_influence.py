"""What each task, or each family of tasks, contributes to a board of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array, Indices, Labels, Mask
from rankwise.caching import cached_property
from rankwise.leaderboard.models.task_scores import AdditiveModel, LeaveTaskOut
from rankwise.leaderboard.score_records import TaskInfluence

LEAST_MODELS = 4  # with fewer a rank correlation says nothing


@dataclass(frozen=True, eq=False)
class UnitInfluence:
    """The additive model without each unit, for the ranked models.

    Attributes
    ----------
    model : AdditiveModel
        The fitted model.
    left_out : LeaveTaskOut
        The model without each unit.
    is_ranked : ndarray of bool, shape (n_models,)
        Ranked models.
    """

    model: AdditiveModel
    left_out: LeaveTaskOut
    is_ranked: Mask

    @property
    def _ranked(self) -> Indices:
        return np.flatnonzero(self.is_ranked)

    def shares(self) -> Array:
        """Share of each unit in the squared changes of all differences of ranked models."""
        changes = self.left_out.changes[self._ranked]
        centered = changes - changes.mean(axis=0)
        squares = (centered**2).sum(axis=0)
        return shares_of(squares)

    def expected_shares(self) -> Array:
        """Shares if the errors of all cells had the same variance."""
        return shares_of(self.left_out.unit_shares)

    @cached_property
    def n_models(self) -> Indices:
        """Number of ranked models with a score in each unit."""
        observed = self.model.design.is_observed[self._ranked]
        by_unit = [observed[:, tasks].any(axis=1) for tasks in self.model.design.tasks_by_unit]
        return np.asarray(np.sum(by_unit, axis=1))

    @cached_property
    def correlations(self) -> list[float | None]:
        """Rank correlation of the scores of each unit with the effects without the unit."""
        design = self.model.design
        deviations = self.model.residuals + self.model.effects[:, None]
        changes = self.left_out.changes[:-1]
        correlations = []
        for unit, tasks in enumerate(design.tasks_by_unit):
            n_tasks = design.is_observed[:, tasks].sum(axis=1)
            models = np.flatnonzero((n_tasks > 0) & self.is_ranked)
            sums = np.where(design.is_observed, deviations, 0.0)[:, tasks].sum(axis=1)
            effects = self.model.effects - changes[:, unit]
            correlations.append(_correlation(sums[models] / n_tasks[models], effects[models]))
        return correlations

    def rows(self, models: Labels, labels: Labels) -> tuple[TaskInfluence, ...]:
        """Return one row for each unit, the largest share first."""
        design = self.model.design
        shares = self.shares()
        expected_shares = self.expected_shares()
        correlations = self.correlations
        deviations = np.nanstd(
            np.where(design.is_observed, self.model.scores, np.nan), axis=0, ddof=1
        )
        ranked = self._ranked
        effects = self.model.effects[ranked]
        is_pair_above = effects[:, None] > effects
        model_names = models.tolist()
        unit_names = labels.tolist()
        rows = []
        for unit in np.argsort(-shares, kind="stable").tolist():
            tasks = design.tasks_by_unit[unit]
            without = effects - self.left_out.changes[ranked, unit]
            is_reversed = is_pair_above & (without[:, None] < without)
            rows.append(
                TaskInfluence(
                    task=unit_names[unit],
                    n_tasks=len(tasks),
                    n_models=int(design.is_observed[:, tasks].any(axis=1).sum()),
                    weight=float(design.weights[tasks].sum() / design.weights.sum()),
                    spread=float(deviations[tasks].mean()),
                    share=float(shares[unit]),
                    expected_share=float(expected_shares[unit]),
                    correlation=correlations[unit],
                    first_without=model_names[ranked[np.argmax(without)]],
                    n_reversed=int(is_reversed.sum()),
                )
            )
        return tuple(rows)


def shares_of(values: Array) -> Array:
    """Divide non-negative values by their sum; equal shares if all are 0."""
    total = values.sum()
    if total == 0:
        return np.full(len(values), 1 / len(values))
    return np.asarray(values / total)


def _correlation(values: Array, effects: Array) -> float | None:
    """Spearman's rank correlation; None for few models or constant values."""
    if len(values) < LEAST_MODELS or np.ptp(values) == 0 or np.ptp(effects) == 0:
        return None
    return float(np.corrcoef(_average_ranks(values), _average_ranks(effects))[0, 1])


def _average_ranks(values: Array) -> Array:
    """Ranks from 0; equal values have the mean of their ranks."""
    ordered = np.sort(values)
    n_below = np.searchsorted(ordered, values, side="left")
    n_up_to = np.searchsorted(ordered, values, side="right")
    return np.asarray((n_below + n_up_to - 1) / 2)
