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

    def multiply_laplacian(self, values: Array, tasks: Indices, weights: Array) -> Array:
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
        # A task contributes its weight times the deviations from the mean of its models.
        product = np.zeros_like(values)
        for task in tasks:
            has_score = self.is_observed[:, task]
            task_values = values[has_score]
            centered = task_values - task_values.mean(axis=0)
            product[has_score] += weights[task] * centered
        return product

    def laplacian(self, weights: Array, tasks: Indices | None = None) -> Array:
        """Return ``Σ_t w_t (diag o_t − o_t o_tᵀ/n_t)`` of some tasks, by default of all."""
        # Sum over tasks of w (diag(o) − o oᵀ / n), with o = 1 for the n models that have a score.
        observed = self.is_observed.astype(np.float64)
        n_models_by_task = self.n_models_by_task
        if tasks is not None:
            observed = observed[:, tasks]
            weights = weights[tasks]
            n_models_by_task = n_models_by_task[tasks]
        laplacian = -(observed * (weights / n_models_by_task)) @ observed.T
        laplacian[np.diag_indices_from(laplacian)] += observed @ weights
        return laplacian

    def components(self, is_selected_task: Mask | None = None) -> Indices:
        """Number the models such that models connected by common tasks share a number, from 0.

        Parameters
        ----------
        is_selected_task : ndarray of bool, shape (n_tasks,), optional
            The tasks that connect models; by default all.
        """
        is_observed = self.is_observed
        if is_selected_task is not None:
            is_observed = is_observed[:, is_selected_task]
        has_task_of_all_models = is_observed.all(axis=0).any()
        if has_task_of_all_models:
            return np.zeros(self.n_models, np.intp)

        # The graph of models and tasks, with an edge for each score; tasks follow the models.
        models, tasks = np.nonzero(is_observed)
        n_nodes = sum(is_observed.shape)
        ones = np.ones(len(models), np.int8)
        edges = csr_array((ones, (models, self.n_models + tasks)), shape=(n_nodes, n_nodes))
        _, node_labels = connected_components(edges, directed=False)
        model_labels = node_labels[: self.n_models]
        return np.unique(model_labels, return_inverse=True)[1].astype(np.intp)


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
    # A unit (task or family) is described by the set of models and the weight of each of its tasks.
    model_set_of_task = np.unique(design.is_observed, axis=1, return_inverse=True)[1].reshape(-1)
    units_by_kind: dict[tuple[tuple[int, float], ...], list[int]] = {}
    for unit, tasks in enumerate(design.tasks_by_unit):
        sets_and_weights = zip(
            model_set_of_task[tasks].tolist(), design.weights[tasks].tolist(), strict=True
        )
        kind = tuple(sorted(sets_and_weights))
        units_by_kind.setdefault(kind, []).append(unit)
    return [
        UnitKind(units=np.array(units, np.intp), tasks=design.tasks_by_unit[units[0]])
        for units in units_by_kind.values()
    ]


def laplacian_inverse(laplacian: Array, components: Indices) -> Array:
    """Pseudo-inverse of the Laplacian of a graph with these components."""
    mean_diagonal = float(np.trace(laplacian)) / len(laplacian)
    if mean_diagonal == 0:
        return np.zeros_like(laplacian)

    # Pseudo-inverse: a multiple of the projection onto the null space (vectors that are constant in
    # each component) makes the matrix invertible, and is subtracted again.
    component_sizes = np.bincount(components)[components]
    is_same_component = components[:, None] == components
    null_projection = is_same_component / component_sizes
    inverse = np.linalg.inv(laplacian + mean_diagonal * null_projection)
    return np.asarray(inverse - null_projection / mean_diagonal)


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
    def _scores_or_zero(self) -> Array:
        """Scores, 0 where there is none."""
        return np.where(self.design.is_observed, self.scores, 0.0)

    @cached_property
    def _task_means(self) -> Array:
        return np.asarray(self._scores_or_zero.sum(axis=0) / self.design.n_models_by_task)

    @cached_property
    def inverse_laplacian(self) -> Array:
        """Pseudo-inverse P of L."""
        return laplacian_inverse(self.design.laplacian(self.design.weights), self.components)

    @cached_property
    def effects(self) -> Array:
        """Effect r of each model; the mean over a component is 0."""
        # Normal equations: Laplacian @ effects = weighted sums of scores minus task means.
        design = self.design
        centered = np.where(design.is_observed, self._scores_or_zero - self._task_means, 0.0)
        return np.asarray(self.inverse_laplacian @ (centered @ design.weights))

    @cached_property
    def task_effects(self) -> Array:
        """Effect b of each task: its mean score, less the mean effect of its models."""
        design = self.design
        # Mean score of the task, less the mean effect of the models that have a score on it.
        mean_effects = self.effects @ design.is_observed / design.n_models_by_task
        return np.asarray(self._task_means - mean_effects)

    @cached_property
    def fitted_scores(self) -> Array:
        """Fitted score r_m + b_t of every cell; NaN if model and task are not connected."""
        fitted = self.effects[:, None] + self.task_effects
        is_connected = self.components[:, None] == self.task_components
        return np.where(is_connected, fitted, np.nan)

    @cached_property
    def task_components(self) -> Indices:
        """Component of each task."""
        # All models with a score on a task are in the same component; the first one decides.
        first_model = self.design.is_observed.argmax(axis=0)
        return np.asarray(self.components[first_model])

    @cached_property
    def residuals(self) -> Array:
        """Scores less fitted scores, 0 where there is no score."""
        fitted = self.effects[:, None] + self.task_effects
        return np.where(self.design.is_observed, self._scores_or_zero - fitted, 0.0)

    @cached_property
    def ratings(self) -> Array:
        """Completed mean of each model: the weighted mean of its fitted scores on all tasks."""
        # Effect of the model plus the mean effect of the tasks of its component.
        ratings = self.effects.copy()
        for component in range(int(self.components.max()) + 1):
            is_task = self.task_components == component
            is_model = self.components == component
            weights = self.design.weights[is_task]
            ratings[is_model] += np.average(self.task_effects[is_task], weights=weights)
        return ratings

    @property
    def residual_variance(self) -> float:
        """Variance of the residuals, by their degrees of freedom; NaN if there are none."""
        design = self.design
        n_scores = int(design.is_observed.sum())
        n_models, n_tasks = design.is_observed.shape
        n_components = int(self.components.max()) + 1
        n_effects = n_models + n_tasks - n_components
        if n_scores <= n_effects:
            return float("nan")
        return float((self.residuals**2).sum() / (n_scores - n_effects))


@dataclass(frozen=True, eq=False)
class TaskJackknife:
    """The additive model without each unit, in closed form.

    A model that a unit connects with most of the other models has no rating without the unit; it is
    not part of `remains_connected`.

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
        # Units (tasks or families) of one kind have the same models, so one of them is enough.
        components = []
        for kind in self.kinds:
            is_remaining_task = np.ones(len(design.weights), bool)
            is_remaining_task[kind.tasks] = False
            components.append(design.components(is_remaining_task))
        return components

    @cached_property
    def remains_connected(self) -> Mask:
        """Models that remain connected with most models of their component without any unit."""
        # False for models that are cut off from most of their component if some unit is left out.
        remains_connected = np.ones(self.model.design.n_models, bool)
        components = self.model.components
        for components_without_unit in self._components_without:
            for component in range(int(components.max()) + 1):
                # Without the unit the component may fall into parts; the largest one stays.
                models = np.flatnonzero(components == component)
                part_of_model = components_without_unit[models]
                part_sizes = np.bincount(part_of_model)
                remains_connected[models] &= part_of_model == part_sizes.argmax()
                falls_apart = len(models) > 1 and part_sizes.max() == 1  # no two models are left
                if falls_apart:
                    remains_connected[models] = False
        return remains_connected

    def _inverses_without_units(self) -> Iterator[tuple[UnitKind, Array]]:
        """Yield ``(L − L_u)⁺`` for a unit u of each kind."""
        # Pseudo-inverse of the normal matrix L − L_u without a unit u of each kind.
        design = self.model.design
        laplacian = design.laplacian(design.weights)
        for kind, components in zip(self.kinds, self._components_without, strict=True):
            laplacian_without_unit = laplacian - design.laplacian(design.weights, kind.tasks)
            yield kind, laplacian_inverse(laplacian_without_unit, components)

    def leave_out_each_unit(self, reference: Array) -> LeaveTaskOut:
        """Compute the changes of all effects, and how much each unit adds to their variances.

        Parameters
        ----------
        reference : ndarray of shape (n_models,)
            Weights of a mean of the models, which becomes the last row.
        """
        # Leaving out unit u changes the effects by (L − L_u)⁺ g_u, with g_u the weighted residuals
        # of its tasks: the gradient of its part of the squared errors.
        model = self.model
        design = model.design
        weighted_residuals = model.residuals * design.weights
        gradients = np.zeros((design.n_models, design.n_units))
        for unit, tasks in enumerate(design.tasks_by_unit):
            gradients[:, unit] = weighted_residuals[:, tasks].sum(axis=1)

        # Covariance of the effects if the errors of all cells have the variance 1.
        noise_laplacian = design.laplacian(design.weights**2)
        effect_covariance = model.inverse_laplacian @ noise_laplacian @ model.inverse_laplacian

        n_rows = design.n_models + 1  # the models, then the reference, a weighted mean of them
        changes = np.empty((n_rows, design.n_units))
        total_variances = np.zeros((n_rows, n_rows))
        total_squares = np.zeros((n_rows, n_rows))
        unit_shares = np.empty(design.n_units)
        for kind, inverse in self._inverses_without_units():
            effect_changes = inverse @ gradients[:, kind.units]
            changes[:, kind.units] = _append_reference(effect_changes, reference)

            # Covariance of these changes, inverse @ gradient covariance @ inverse, with a row and a
            # column for the reference. It is the same for all units of a kind.
            gradient_covariance = self._gradient_covariance(kind, effect_covariance)
            covariance = _append_reference(inverse @ gradient_covariance, reference)
            covariance = _append_reference((covariance @ inverse).T, reference)
            variances = difference_variances(covariance)
            unit_shares[kind.units] = variances[:-1, :-1].sum()  # without the reference
            n_units = len(kind.units)
            total_variances += n_units * variances
            total_squares += n_units * variances**2
        return LeaveTaskOut(
            changes=changes,
            variances=total_variances,
            squared_variances=total_squares,
            unit_shares=unit_shares,
        )

    def _gradient_covariance(self, kind: UnitKind, effect_covariance: Array) -> Array:
        """Covariance of ``d_u − L_u r`` if the errors of all cells have variance 1.

        It is N_u − N_u P L_u − L_u P N_u + L_u P N P L_u, with N the Laplacian of squared weights.
        """
        # N_u − N_u P L_u − L_u P N_u + L_u P N P L_u, with the Laplacian L_u of the unit, N_u of
        # its squared weights, the pseudo-inverse P, and the covariance P N P of the effects.
        design = self.model.design
        weights = design.weights

        def multiply_unit_laplacian(values: Array) -> Array:
            return design.multiply_laplacian(values, kind.tasks, weights)

        unit_noise = design.laplacian(weights**2, kind.tasks)  # N_u
        cross_term = multiply_unit_laplacian(self.model.inverse_laplacian @ unit_noise)  # L_u P N_u
        effect_term = multiply_unit_laplacian(multiply_unit_laplacian(effect_covariance).T)
        return unit_noise - cross_term - cross_term.T + effect_term


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
        # (Σ variance)² / Σ variance² over the units, for each difference; 1 without any variance.
        effective_number = np.ones_like(self.squared_variances)
        has_variance = self.squared_variances > 0
        np.divide(
            self.variances**2, self.squared_variances, out=effective_number, where=has_variance
        )
        return effective_number

    @property
    def root(self) -> Array:
        """Root F of the covariance V = F Fᵀ."""
        # Root F of the jackknife covariance F Fᵀ
        n_units = self.changes.shape[1]
        jackknife_factor = (n_units - 1) / n_units
        return np.asarray(np.sqrt(jackknife_factor) * self.changes)


def _append_reference(values: Array, reference: Array) -> Array:
    """Append the weighted mean of the rows."""
    return np.vstack([values, reference @ values])


def difference_variances(covariance: Array) -> Array:
    """Variances of all differences of variables with this covariance."""
    # var(a − b) = var(a) + var(b) − 2 cov(a, b)
    variances = covariance.diagonal()
    variances_of_differences = variances[:, None] + variances - covariance - covariance.T
    return np.maximum(variances_of_differences, 0.0)
