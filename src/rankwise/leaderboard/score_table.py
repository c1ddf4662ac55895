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
            numbers, families = np.unique(families[tasks], return_inverse=True)
            family_labels = family_labels[numbers]
        return replace(
            self,
            tasks=self.tasks[tasks],
            scores=self.scores[:, tasks],
            repetitions=self._repetitions_of_tasks(tasks),
            families=families,
            family_labels=family_labels,
            weights=self.task_weights[tasks],
        )

    def _repetitions_of_tasks(self, tasks: Indices) -> Repetitions | None:
        rows = self.repetitions
        if rows is None:
            return None
        position = np.full(len(self.tasks), -1)
        position[tasks] = np.arange(len(tasks))
        is_taken = position[rows.task] >= 0
        taken = Repetitions._make(column[is_taken] for column in rows)
        return taken._replace(task=position[taken.task])

    def take_models(self, models: Indices) -> ScoreTable:
        """Return the table of some models."""
        rows = self.repetitions
        if rows is not None:
            position = np.full(len(self.models), -1)
            position[models] = np.arange(len(models))
            is_taken = position[rows.model] >= 0
            taken = Repetitions._make(column[is_taken] for column in rows)
            rows = taken._replace(model=position[taken.model])
        return replace(
            self, models=self.models[models], scores=self.scores[models], repetitions=rows
        )

    def comparable(self) -> ScoreTable:
        """Drop tasks with scores of fewer than two models, and models without a score on the rest.

        Warns
        -----
        UserWarning
            That names the dropped tasks and models.
        """
        n_models = self.is_observed.sum(axis=0)
        is_lonely = n_models < 2
        if is_lonely.all():
            raise ValueError(
                "a leaderboard compares at least two models on common tasks; the table has "
                f"{count(len(self.models), 'model')} and {count(len(self.tasks), 'task')}, and no "
                "task has scores of two models."
            )
        table = self
        if is_lonely.any():
            names = join_words(self.tasks[is_lonely])
            warn_user(
                f"dropped {count(int(is_lonely.sum()), 'task')} with scores of fewer than two "
                f"models, which cannot compare models: {names}."
            )
            table = self.take_tasks(np.flatnonzero(~is_lonely))
        is_empty = ~table.is_observed.any(axis=1)
        if is_empty.any():
            reason = "without scores"
            if is_lonely.any():
                reason = "without a score on the other tasks"
            warn_user(
                f"dropped {count(int(is_empty.sum()), 'model')} {reason}: "
                f"{join_words(table.models[is_empty])}."
            )
            table = table.take_models(np.flatnonzero(~is_empty))
        return table
