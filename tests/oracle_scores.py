"""Reference implementation of boards of scores: refits with dummy variables without each unit.

The estimates are linear in the scores, so they are matrices over the observed cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Refit:
    """Estimates as matrices over the observed cells: ``effects @ y`` are the model effects."""

    models: np.ndarray
    tasks: np.ndarray
    weights: np.ndarray
    n_models: int
    n_tasks: int

    def __post_init__(self):
        dummies = np.zeros((len(self.models), self.n_models + self.n_tasks))
        dummies[np.arange(len(self.models)), self.models] = 1
        dummies[np.arange(len(self.models)), self.n_models + self.tasks] = 1
        root = np.sqrt(self.weights[self.tasks])
        solution = np.linalg.pinv(root[:, None] * dummies, rcond=1e-10) * root
        self.solution = solution
        self.effects = solution[: self.n_models] - solution[: self.n_models].mean(axis=0)

    def ratings(self, y):
        """Weighted mean of the fitted scores on all tasks."""
        effects = self.solution @ y
        task_effects = effects[self.n_models :]
        return effects[: self.n_models] + np.average(task_effects, weights=self.weights)


@dataclass
class ScoreOracle:
    """Ratings, covariance of the jackknife and effective units of a table with NaN for gaps."""

    scores: np.ndarray
    weights: np.ndarray
    units: np.ndarray

    def __post_init__(self):
        models, tasks = np.nonzero(~np.isnan(self.scores))
        y = self.scores[models, tasks]
        shape = self.scores.shape
        full = Refit(models, tasks, self.weights, *shape)
        self.ratings = full.ratings(y)
        self.changes = []
        variances = []
        for unit in range(self.units.max() + 1):
            rows = self.units[tasks] != unit
            without = np.zeros((shape[0], len(y)))
            without[:, rows] = Refit(models[rows], tasks[rows], self.weights, *shape).effects
            matrix = full.effects - without
            self.changes.append(matrix @ y)
            # errors of variance 1 in every cell
            differences = matrix[:, None] - matrix
            variances.append((differences**2).sum(axis=2))
        self.changes = np.array(self.changes)
        n_units = len(self.changes)
        differences = self.changes[:, :, None] - self.changes[:, None]
        self.variances = (n_units - 1) / n_units * (differences**2).sum(axis=0)
        variances = np.array(variances)
        squares = (variances**2).sum(axis=0)
        squares[squares == 0] = np.nan
        self.effective = variances.sum(axis=0) ** 2 / squares
