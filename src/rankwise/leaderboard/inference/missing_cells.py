"""Missing cells of a table of scores: which to run next, and which values reverse an order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.leaderboard.models.task_scores import AdditiveModel


class CellChoice(NamedTuple):
    """A missing cell, and the variance of the contrasts once it has a score.

    Attributes
    ----------
    model, task : int
        Position of the cell.
    variance : float
        Sum of the variances of the contrasts relative to now.
    """

    model: int
    task: int
    variance: float


def choose_cells(model: AdditiveModel, contrasts: Array, n_cells: int) -> list[CellChoice]:
    """Choose cells one at a time, each for the largest decrease of the variance of contrasts.

    A score of model m on task t, which n_t models have, adds a v vᵀ to L, with
    v = e_m − (mean of e over these models) and a = w_t n_t / (n_t + 1). The variance of cᵀr
    falls by σ² a (cᵀPv)² / (1 + a vᵀPv).

    Parameters
    ----------
    model : AdditiveModel
        The fitted model.
    contrasts : ndarray of shape (n_contrasts, n_models)
        Differences c of models.
    n_cells : int
        Number of cells; fewer are returned if fewer are missing.
    """
    design = model.design
    is_missing = ~design.is_observed
    is_missing &= model.components[:, None] == model.task_components  # comparable tasks only
    observed = design.is_observed.astype(np.float64)
    inverse = model.inverse_laplacian.copy()  # of the Laplacian A
    variance_now = _total_variance(contrasts, inverse)
    choices: list[CellChoice] = []
    while len(choices) < n_cells and is_missing.any():
        decreases = _variance_decreases(observed, design.weights, inverse, contrasts)
        decreases[~is_missing] = -np.inf
        model_index, task_index = np.unravel_index(np.argmax(decreases), decreases.shape)

        # The score adds scale · x xᵀ to A, with x = e_model − (mean over the models of the task).
        has_task = observed[:, task_index]
        n_models = has_task.sum()
        scale = design.weights[task_index] * n_models / (n_models + 1)
        x = -has_task / n_models
        x[model_index] += 1.0
        # Sherman–Morrison: the inverse of A + scale · x xᵀ
        solved = inverse @ x
        inverse -= scale / (1 + scale * (x @ solved)) * np.outer(solved, solved)

        observed[model_index, task_index] = 1.0
        is_missing[model_index, task_index] = False
        variance_ratio = _total_variance(contrasts, inverse) / variance_now
        choices.append(CellChoice(int(model_index), int(task_index), float(variance_ratio)))
    return choices


def _variance_decreases(
    observed: Array, task_weights: Array, inverse: Array, contrasts: Array
) -> Array:
    """Decrease of the total variance of the contrasts by one more score, for each cell.

    A score of model m on task t adds scale_t x xᵀ to the Laplacian A, with x = e_m minus the mean
    over the n_t models that have the task.
    """
    # A new score adds scale · x xᵀ to A, with x = e_model − (mean over the models of the task). By
    # Sherman–Morrison cᵀ A⁻¹ c decreases by (cᵀ A⁻¹ x)² · scale / (1 + scale · xᵀ A⁻¹ x).
    n_models = observed.sum(axis=0)
    task_averages = observed / n_models  # (n_models, n_tasks)
    scale = task_weights * n_models / (n_models + 1)

    # xᵀ A⁻¹ x = [A⁻¹]_mm − 2 [A⁻¹ o]_m + oᵀ A⁻¹ o for all cells, with the average o of a task
    inverse_averages = inverse @ task_averages
    quadratic = inverse.diagonal()[:, None] - 2 * inverse_averages
    quadratic = quadratic + np.einsum("mt,mt->t", task_averages, inverse_averages)

    # Σ (cᵀ A⁻¹ x)² over the contrasts, with cᵀ A⁻¹ x = [cᵀ A⁻¹]_m − cᵀ A⁻¹ o
    squared_projections = np.zeros_like(observed)
    for contrast in contrasts:
        projected = contrast @ inverse
        squared_projections += (projected[:, None] - projected @ task_averages) ** 2
    decreases: Array = squared_projections * (scale / (1 + scale * quadratic))
    return decreases


def _total_variance(contrasts: Array, inverse: Array) -> np.float64:
    """``Σ cᵀ A⁻¹ c`` over the contrasts, which are rows."""
    # Σ cᵀ A⁻¹ c over the contrasts c, which are rows
    variance: np.float64 = np.einsum("ki,ij,kj->", contrasts, inverse, contrasts)
    return variance


class MissingExcess(NamedTuple):
    """How far the missing cells of a model must be from their prediction to change its rating.

    Attributes
    ----------
    n_missing : int
        Number of missing cells.
    excess : float or None
        Difference of each of them to its prediction; None without missing cells.
    excess_in_sd : float or None
        The same in standard deviations of the residuals of the model.
    """

    n_missing: int
    excess: float | None
    excess_in_sd: float | None


def missing_excess(model: AdditiveModel, row: int, difference: float) -> MissingExcess:
    """Return the excess of the missing cells that changes the rating of a model by `difference`.

    If all missing cells of the table had their predicted scores, no rating would change. If those
    of one model are δ better than predicted, its rating rises by δ times the share of the weights
    of these tasks.
    """
    design = model.design
    is_observed = design.is_observed[row]
    is_comparable_task = model.task_components == model.components[row]
    is_missing = ~is_observed & is_comparable_task
    if not is_missing.any():
        return MissingExcess(n_missing=0, excess=None, excess_in_sd=None)

    # Missing cells that are better than predicted by the excess raise the rating of the model by
    # the excess times their share of the weights.
    total_weight = design.weights[is_comparable_task].sum()
    missing_share = design.weights[is_missing].sum() / total_weight
    excess = float(difference / missing_share)

    # The same in standard deviations of the residuals of the model
    residuals = model.residuals[row, is_observed]
    n_degrees_of_freedom = max(1, len(residuals) - 1)
    deviation = float(np.sqrt((residuals**2).sum() / n_degrees_of_freedom))
    excess_in_sd = float("inf")
    if deviation > 0:
        excess_in_sd = excess / deviation
    return MissingExcess(int(is_missing.sum()), excess, excess_in_sd)
