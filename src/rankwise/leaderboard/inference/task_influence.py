"""Contribution of each task, or each family of tasks, to a board of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array, Indices, Labels, Mask
from rankwise.caching import cached_property
from rankwise.leaderboard.models.task_scores import AdditiveModel, LeaveTaskOut
from rankwise.leaderboard.score_records import TaskInfluence

LEAST_MODELS = 4  # with fewer models a rank correlation is not informative


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
    def _ranked_models(self) -> Indices:
        return np.flatnonzero(self.is_ranked)

    def shares(self) -> Array:
        """Share of each unit in the squared changes of all differences of ranked models."""
        # Squared changes of all differences are proportional to the squares of centered changes.
        changes = self.left_out.changes[self._ranked_models]  # (n_ranked, n_units)
        centered = changes - changes.mean(axis=0)
        squared_changes = (centered**2).sum(axis=0)
        return shares_of(squared_changes)

    def expected_shares(self) -> Array:
        """Shares if the errors of all cells had the same variance."""
        return shares_of(self.left_out.unit_shares)

    @cached_property
    def n_models_by_unit(self) -> Indices:
        """Number of ranked models with a score in each unit."""
        design = self.model.design
        is_observed = design.is_observed[self._ranked_models]
        has_score_in_unit = [is_observed[:, tasks].any(axis=1) for tasks in design.tasks_by_unit]
        return np.asarray(np.sum(has_score_in_unit, axis=1))

    @cached_property
    def correlations(self) -> list[float | None]:
        """Rank correlation of the scores of each unit with the effects without the unit."""
        design = self.model.design
        effects = self.model.effects
        # Scores less the effects of their tasks: the residual plus the effect of the model, which
        # is its rating; 0 where there is no score.
        scores = np.where(design.is_observed, self.model.residuals + effects[:, None], 0.0)
        effect_changes = self.left_out.changes[:-1]  # without the row of the reference
        correlations = []
        for unit, tasks in enumerate(design.tasks_by_unit):
            n_tasks = design.is_observed[:, tasks].sum(axis=1)
            models = np.flatnonzero((n_tasks > 0) & self.is_ranked)
            # Mean score of each model on the unit, against its effect by the other units
            unit_scores = scores[:, tasks].sum(axis=1)[models] / n_tasks[models]
            effects_without_unit = effects - effect_changes[:, unit]
            correlations.append(_rank_correlation(unit_scores, effects_without_unit[models]))
        return correlations

    def rows(self, models: Labels, labels: Labels) -> tuple[TaskInfluence, ...]:
        """Return one row for each unit, the largest share first."""
        design = self.model.design
        shares = self.shares()
        expected_shares = self.expected_shares()
        correlations = self.correlations
        scores = np.where(design.is_observed, self.model.scores, np.nan)
        spread_of_task = np.nanstd(scores, axis=0, ddof=1)

        ranked = self._ranked_models
        effects = self.model.effects[ranked]
        is_above = effects[:, None] > effects  # of every two ranked models
        model_names = models.tolist()
        unit_names = labels.tolist()
        rows = []
        for unit in np.argsort(-shares, kind="stable").tolist():
            tasks = design.tasks_by_unit[unit]
            has_score = design.is_observed[:, tasks].any(axis=1)
            effects_without_unit = effects - self.left_out.changes[ranked, unit]
            is_reversed = is_above & (effects_without_unit[:, None] < effects_without_unit)
            first_without_unit = ranked[np.argmax(effects_without_unit)]
            row = TaskInfluence(
                task=unit_names[unit],
                n_tasks=len(tasks),
                n_models=int(has_score.sum()),
                weight=float(design.weights[tasks].sum() / design.weights.sum()),
                spread=float(spread_of_task[tasks].mean()),
                share=float(shares[unit]),
                expected_share=float(expected_shares[unit]),
                correlation=correlations[unit],
                first_without=model_names[first_without_unit],
                n_reversed=int(is_reversed.sum()),
            )
            rows.append(row)
        return tuple(rows)


def shares_of(values: Array) -> Array:
    """Divide non-negative values by their sum; equal shares if all are 0."""
    total = values.sum()
    if total == 0:
        return np.full(len(values), 1 / len(values))
    return np.asarray(values / total)


def _rank_correlation(values: Array, effects: Array) -> float | None:
    """Spearman's rank correlation; None for few models or constant values."""
    if len(values) < LEAST_MODELS:  # possibly none at all
        return None
    is_constant = np.ptp(values) == 0 or np.ptp(effects) == 0
    if is_constant:
        return None
    correlation_matrix = np.corrcoef(_average_ranks(values), _average_ranks(effects))
    return float(correlation_matrix[0, 1])


def _average_ranks(values: Array) -> Array:
    """Ranks from 0; equal values have the mean of their ranks."""
    ordered = np.sort(values)
    first_rank = np.searchsorted(ordered, values, side="left")
    last_rank = np.searchsorted(ordered, values, side="right") - 1
    return np.asarray((first_rank + last_rank) / 2)
