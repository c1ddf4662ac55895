"""ScoreTable: scores of models on tasks, averaged over repetitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices, Labels, Mask
from rankwise.errors import warn_user
from rankwise.formatting import count, join_words


class Repetitions(NamedTuple):
    """Deviations of the scores of a cell from their mean: seeds, folds, draws.

    Attributes
    ----------
    model, task, seed : ndarray of int, shape (n_rows,)
        Model, task and seed of each row.
    deviation : ndarray of shape (n_rows,)
        Score less the mean of the cell.
    """

    model: Indices
    task: Indices
    seed: Indices
    deviation: Array

    def take_tasks(self, tasks: Indices, n_tasks: int) -> Repetitions:
        """Return the rows of some of the tasks, which are renumbered."""
        new_task = _new_positions(tasks, n_tasks)[self.task]
        is_taken = new_task >= 0
        return Repetitions(
            model=self.model[is_taken],
            task=new_task[is_taken],
            seed=self.seed[is_taken],
            deviation=self.deviation[is_taken],
        )

    def take_models(self, models: Indices, n_models: int) -> Repetitions:
        """Return the rows of some of the models, which are renumbered."""
        new_model = _new_positions(models, n_models)[self.model]
        is_taken = new_model >= 0
        return Repetitions(
            model=new_model[is_taken],
            task=self.task[is_taken],
            seed=self.seed[is_taken],
            deviation=self.deviation[is_taken],
        )


def _new_positions(taken: Indices, n: int) -> Indices:
    """Position of each of n numbers among the taken ones; −1 for the others."""
    # New position of each of n elements among those that are taken; −1 for the others.
    position = np.full(n, -1)
    position[taken] = np.arange(len(taken))
    return position


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of models on tasks.

    Attributes
    ----------
    models : ndarray of shape (n_models,)
        Labels of the models.
    tasks : ndarray of shape (n_tasks,)
        Labels of the tasks.
    scores : ndarray of shape (n_models, n_tasks)
        Mean score of each cell; NaN where a model was not run.
    repetitions : Repetitions or None
        Rows of the cells, if a column of seeds was named.
    families : ndarray of int, shape (n_tasks,) or None
        Family of each task.
    family_labels : ndarray of shape (n_families,) or None
        Labels of the families.
    weights : ndarray of shape (n_tasks,)
        Weights of the tasks.
    n_nan : int
        Number of rows of a long table whose score is NaN.
    """

    models: Labels
    tasks: Labels
    scores: Array
    repetitions: Repetitions | None = None
    families: Indices | None = None
    family_labels: Labels | None = None
    weights: Array | None = None
    n_nan: int = 0

    @property
    def is_observed(self) -> Mask:
        """Cells with a score."""
        return ~np.isnan(self.scores)

    @property
    def task_weights(self) -> Array:
        """Weights of the tasks, 1 by default."""
        if self.weights is None:
            return np.ones(len(self.tasks))
        return self.weights

    def take_tasks(self, tasks: Indices) -> ScoreTable:
        """Return the table of some tasks."""
        families = self.families
        family_labels = self.family_labels
        if families is not None and family_labels is not None:
            remaining_families, families = np.unique(families[tasks], return_inverse=True)
            family_labels = family_labels[remaining_families]
        repetitions = None
        if self.repetitions is not None:
            repetitions = self.repetitions.take_tasks(tasks, n_tasks=len(self.tasks))
        return replace(
            self,
            tasks=self.tasks[tasks],
            scores=self.scores[:, tasks],
            repetitions=repetitions,
            families=families,
            family_labels=family_labels,
            weights=self.task_weights[tasks],
        )

    def take_models(self, models: Indices) -> ScoreTable:
        """Return the table of some models."""
        repetitions = None
        if self.repetitions is not None:
            repetitions = self.repetitions.take_models(models, n_models=len(self.models))
        return replace(
            self,
            models=self.models[models],
            scores=self.scores[models],
            repetitions=repetitions,
        )

    def comparable(self) -> ScoreTable:
        """Drop tasks with scores of fewer than two models, and models without a score on the rest.

        Warns
        -----
        UserWarning
            That names the dropped tasks and models.
        """
        n_models_by_task = self.is_observed.sum(axis=0)
        is_single = n_models_by_task < 2  # tasks with one model cannot compare models
        if is_single.all():
            raise ValueError(
                "a leaderboard compares at least two models on common tasks; the table has "
                f"{count(len(self.models), 'model')} and {count(len(self.tasks), 'task')}, and no "
                "task has scores of two models."
            )
        table = self
        if is_single.any():
            names = join_words(self.tasks[is_single])
            warn_user(
                f"dropped {count(int(is_single.sum()), 'task')} with scores of fewer than two "
                f"models, which cannot compare models: {names}."
            )
            table = self.take_tasks(np.flatnonzero(~is_single))
        is_empty = ~table.is_observed.any(axis=1)
        if is_empty.any():
            reason = "without scores"
            if is_single.any():
                reason = "without a score on the other tasks"
            warn_user(
                f"dropped {count(int(is_empty.sum()), 'model')} {reason}: "
                f"{join_words(table.models[is_empty])}."
            )
            table = table.take_models(np.flatnonzero(~is_empty))
        return table
