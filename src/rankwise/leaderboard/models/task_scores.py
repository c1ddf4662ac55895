"""Additive model of scores over tasks, by least squares, and the same model without each task.

The score of model m on task t is Y_mt = r_m + b_t + e. With o_t the indicator of the n_t models
that have a score on task t, and w_t the weight of the task,

    L = Σ_t w_t (diag o_t − o_t o_tᵀ/n_t),    d = Σ_t w_t o_t (Y_t − mean of Y_t),    r = L⁺ d.

Tasks are left out one at a time, or as families: unit u has L_u and d_u, and

    r − r^(−u) = (L − L_u)⁺ (d_u − L_u r),    V = (U − 1)/U Σ_u (r − r^(−u)) (r − r^(−u))ᵀ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices, Mask
from rankwise.caching import cached_property
from rankwise.groups import indices_by_group


@dataclass(frozen=True, eq=False)
class TaskDesign:
    """Which model has a score on which task, the weights of the tasks, and their units.

    Attributes
    ----------
    is_observed : ndarray of bool, shape (n_models, n_tasks)
        Cells with a score.
    weights : ndarray of shape (n_tasks,)
        Weights of the tasks.
    units : ndarray of int, shape (n_tasks,)
        Number of the unit of each task, from 0; a unit (a task or a family) is left out as a whole.
    """

    is_observed: Mask
    weights: Array
    units: Indices

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.is_observed)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.units.max()) + 1

    @cached_property
    def tasks_by_unit(self) -> list[Indices]:
        """Tasks of each unit."""
        return indices_by_group(self.units)

    @property
    def is_complete(self) -> bool:
        """Whether every model has a score on every task."""
        return bool(self.is_observed.all())

    @cached_property
    def n_models_by_task(self) -> Array:
        """Number of models that have a score on each task."""
        return np.asarray(self.is_observed.sum(axis=0), np.float64)

    def center(self, values: Array, tasks: Indices, weights: Array) -> Array:
        """Multiply values of the models by ``Σ_t w_t (diag o_t − o_t o_tᵀ/n_t)`` of some tasks.

        Parameters
        ----------
        values : ndarray of shape (n_models, n_columns)
            Values.
        tasks : ndarray of int
            The tasks t of the sum.
        weights : ndarray of shape (n_tasks,)
            Weights w_t of all tasks.
        """
        product = np.zeros_like(values)
        for task in tasks:
            models = self.is_observed[:, task]
            task_values = values[models]
            product[models] += weights[task] * (task_values - task_values.mean(axis=0))
        return product

    def laplacian(self, weights: Array, tasks: Indices | None = None) -> Array:
        """Return ``Σ_t w_t (diag o_t − o_t o_tᵀ/n_t)`` of some tasks, by default of all."""
        observed = self.is_observed.astype(np.float64)
        n_models_by_task = self.n_models_by_task
        if tasks is not None:
            observed = observed[:, tasks]
            weights = weights[tasks]
            n_models_by_task = n_models_by_task[tasks]
        matrix = -(observed * (weights / n_models_by_task)) @ observed.T
        matrix[np.diag_indices_from(matrix)] += observed @ weights
        return matrix

    def components(self, tasks: Mask | None = None) -> Indices:
        """Number the models such that models connected by common tasks share a number, from 0.

        Parameters
        ----------
        tasks : ndarray of bool, shape (n_tasks,), optional
            The tasks that connect models; by default all.
        """
        observed = self.is_observed
        if tasks is not None:
            observed = observed[:, tasks]
        if observed.all(axis=0).any():
            return np.zeros(self.n_models, np.intp)
        models, columns = np.nonzero(observed)
        n_nodes = sum(observed.shape)
        ones = np.ones(len(models), np.int8)
        edges = csr_array((ones, (models, columns + self.n_models)), shape=(n_nodes, n_nodes))
        labels = connected_components(edges, directed=False)[1][: self.n_models]
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)


class UnitKind(NamedTuple):
    """Units with the same models and weights, whose algebra is the same.

    Attributes
    ----------
    units : ndarray of int
        The units.
    tasks : ndarray of int
        Tasks of the first of them.
    """

    units: Indices
    tasks: Indices


def unit_kinds(design: TaskDesign) -> list[UnitKind]:
    """Return units with the same models and weights together; one kind for a complete table."""
    patterns = np.unique(design.is_observed, axis=1, return_inverse=True)[1].reshape(-1)
    units_by_key: dict[tuple[tuple[int, float], ...], list[int]] = {}
    for unit, tasks in enumerate(design.tasks_by_unit):
        key = sorted(zip(patterns[tasks].tolist(), design.weights[tasks].tolist(), strict=True))
        units_by_key.setdefault(tuple(key), []).append(unit)
    return [
        UnitKind(np.array(units, np.intp), design.tasks_by_unit[units[0]])
        for units in units_by_key.values()
    ]


def laplacian_inverse(laplacian: Array, components: Indices) -> Array:
    """Pseudo-inverse of the Laplacian of a graph with these components."""
    scale = float(np.trace(laplacian)) / len(laplacian)
    if scale == 0:
        return np.zeros_like(laplacian)
    sizes = np.bincount(components)
    is_same = components[:, None] == components
    projection = is_same / sizes[components]  # onto the null space
    inverse = np.linalg.inv(laplacian + scale * projection)
    return np.asarray(inverse - projection / scale)


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Least-squares fit of model effects and task effects.

    Attributes
    ----------
    design : TaskDesign
        Observed cells, weights and units.
    scores : ndarray of shape (n_models, n_tasks)
        Scores; values of cells without a score are not used.
    """

    design: TaskDesign
    scores: Array

    @cached_property
    def components(self) -> Indices:
        """Component of each model, from 0; models of different components share no tasks."""
        return self.design.components()

    @cached_property
    def _cells(self) -> Array:
        """Scores, 0 where there is none."""
        return np.where(self.design.is_observed, self.scores, 0.0)

    @cached_property
    def _task_means(self) -> Array:
        return np.asarray(self._cells.sum(axis=0) / self.design.n_models_by_task)

    @cached_property
    def inverse(self) -> Array:
        """Pseudo-inverse P of L."""
        return laplacian_inverse(self.design.laplacian(self.design.weights), self.components)

    @cached_property
    def effects(self) -> Array:
        """Effect r of each model; the mean over a component is 0."""
        centered = np.where(self.design.is_observed, self._cells - self._task_means, 0.0)
        return np.asarray(self.inverse @ (centered @ self.design.weights))

    @cached_property
    def task_effects(self) -> Array:
        """Effect b of each task: its mean score, less the mean effect of its models."""
        effect_sums = self.effects @ self.design.is_observed
        return np.asarray(self._task_means - effect_sums / self.design.n_models_by_task)

    @cached_property
    def fitted_scores(self) -> Array:
        """Fitted score r_m + b_t of every cell; NaN if model and task are not connected."""
        fitted = self.effects[:, None] + self.task_effects
        is_connected = self.components[:, None] == self.task_components
        return np.where(is_connected, fitted, np.nan)

    @cached_property
    def task_components(self) -> Indices:
        """Component of each task."""
        first_model = self.design.is_observed.argmax(axis=0)
        return np.asarray(self.components[first_model])

    @cached_property
    def residuals(self) -> Array:
        """Scores less fitted scores, 0 where there is no score."""
        fitted = self.effects[:, None] + self.task_effects
        return np.where(self.design.is_observed, self._cells - fitted, 0.0)

    @cached_property
    def ratings(self) -> Array:
        """Completed mean of each model: the weighted mean of its fitted scores on all tasks."""
        ratings = self.effects.copy()
        for component in range(int(self.components.max()) + 1):
            tasks = self.task_components == component
            mean_effect = np.average(self.task_effects[tasks], weights=self.design.weights[tasks])
            ratings[self.components == component] += mean_effect
        return ratings

    @property
    def residual_variance(self) -> float:
        """Variance of the residuals, by their degrees of freedom; NaN if there are none."""
        design = self.design
        n_cells = int(design.is_observed.sum())
        n_effects = sum(design.is_observed.shape) - int(self.components.max()) - 1
        if n_cells <= n_effects:
            return float("nan")
        return float((self.residuals**2).sum() / (n_cells - n_effects))


@dataclass(frozen=True, eq=False)
class TaskJackknife:
    """The additive model without each unit, in closed form.

    A model that a unit connects with most of the other models has no rating without the unit; it is
    not part of `is_connected`.

    Attributes
    ----------
    model : AdditiveModel
        The model of all tasks.
    kinds : list of UnitKind
        Units with the same algebra.
    """

    model: AdditiveModel
    kinds: list[UnitKind]

    @cached_property
    def _components_without(self) -> list[Indices]:
        """Components of the models without a unit of each kind."""
        design = self.model.design
        components = []
        for kind in self.kinds:
            is_left = np.ones(len(design.weights), bool)
            is_left[kind.tasks] = False
            components.append(design.components(is_left))
        return components

    @cached_property
    def is_connected(self) -> Mask:
        """Models that remain connected with most models of their component without any unit."""
        is_connected = np.ones(self.model.design.n_models, bool)
        whole = self.model.components
        for components in self._components_without:
            for component in range(int(whole.max()) + 1):
                models = np.flatnonzero(whole == component)
                sizes = np.bincount(components[models])
                is_connected[models] &= components[models] == sizes.argmax()
                if len(models) > 1 and sizes.max() == 1:
                    is_connected[models] = False
        return is_connected

    def _inverses(self) -> Iterator[tuple[UnitKind, Array]]:
        """Yield ``(L − L_u)⁺`` for a unit u of each kind."""
        design = self.model.design
        laplacian = design.laplacian(design.weights)
        for kind, components in zip(self.kinds, self._components_without, strict=True):
            without = laplacian - design.laplacian(design.weights, kind.tasks)
            yield kind, laplacian_inverse(without, components)

    def leave_out(self, reference: Array) -> LeaveTaskOut:
        """Compute the changes of all effects, and how much each unit adds to their variances.

        Parameters
        ----------
        reference : ndarray of shape (n_models,)
            Weights of a mean of the models, which becomes the last row.
        """
        model = self.model
        design = model.design
        weighted = model.residuals * design.weights
        gradients = np.zeros((design.n_models, design.n_units))
        for unit, tasks in enumerate(design.tasks_by_unit):
            gradients[:, unit] = weighted[:, tasks].sum(axis=1)
        noise = model.inverse @ design.laplacian(design.weights**2) @ model.inverse
        n_rows = design.n_models + 1
        changes = np.empty((n_rows, design.n_units))
        total = np.zeros((n_rows, n_rows))
        total_of_squares = np.zeros((n_rows, n_rows))
        unit_shares = np.empty(design.n_units)
        for kind, inverse in self._inverses():
            models_change = inverse @ gradients[:, kind.units]
            changes[:, kind.units] = _append_row(models_change, reference)
            covariance = _append_row(inverse @ self._noise_of(kind, noise), reference)
            covariance = _append_row((covariance @ inverse).T, reference)
            variances = difference_variances(covariance)
            unit_shares[kind.units] = variances[:-1, :-1].sum()
            total += len(kind.units) * variances
            total_of_squares += len(kind.units) * variances**2
        return LeaveTaskOut(changes, total, total_of_squares, unit_shares)

    def _noise_of(self, kind: UnitKind, noise: Array) -> Array:
        """Covariance of ``d_u − L_u r`` if the errors of all cells have variance 1.

        It is N_u − N_u P L_u − L_u P N_u + L_u P N P L_u, with N the Laplacian of squared weights.
        """
        design = self.model.design
        weights = design.weights
        unit_noise = design.laplacian(weights**2, kind.tasks)
        crossed = design.center(self.model.inverse @ unit_noise, kind.tasks, weights)
        shared = design.center(design.center(noise, kind.tasks, weights).T, kind.tasks, weights)
        return unit_noise - crossed - crossed.T + shared


class LeaveTaskOut(NamedTuple):
    """Effects without each unit. The last row is the reference, a mean of the models.

    Attributes
    ----------
    changes : ndarray of shape (n_models + 1, n_units)
        Effects of all tasks less effects without the unit.
    variances : ndarray of shape (n_models + 1, n_models + 1)
        Sum over units of the expected squared changes of each difference, for errors of variance 1.
    squared_variances : ndarray of shape (n_models + 1, n_models + 1)
        Sum over units of the squares of these.
    unit_shares : ndarray of shape (n_units,)
        Expected squared changes of all differences, by unit.
    """

    changes: Array
    variances: Array
    squared_variances: Array
    unit_shares: Array

    @property
    def effective_units(self) -> Array:
        """Effective number of units of each difference, ``(Σ G_uu)² / Σ G_uu²``."""
        squares = self.squared_variances
        ones = np.ones_like(squares)
        return np.divide(self.variances**2, squares, out=ones, where=squares > 0)

    @property
    def root(self) -> Array:
        """Root F of the covariance V = F Fᵀ."""
        n_units = self.changes.shape[1]
        return np.asarray(np.sqrt((n_units - 1) / n_units) * self.changes)


def _append_row(values: Array, reference: Array) -> Array:
    """Append the weighted mean of the rows."""
    return np.vstack([values, reference @ values])


def difference_variances(covariance: Array) -> Array:
    """Variances of all differences of variables with this covariance."""
    variances = covariance.diagonal()
    differences = variances[:, None] + variances - covariance - covariance.T
    return np.maximum(differences, 0.0)
