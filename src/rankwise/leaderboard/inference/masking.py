"""Masking test: how much a model's missing cells may change its rating.

The jackknife of an additive model is too narrow if a model has scores on one kind of task only:
errors of the model are not independent between the tasks of a kind. With several complete models
this can be measured. Mask, in a complete model m, the cells that model i lacks; with S_i the tasks
that model i has, the rating of m changes by the mean of its residuals over S_i, and

    e(S_i)² = Σ_m (mean residual of m over S_i)² / (n_complete − 1)

is the variance of the rating of model i that its missing cells cause.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Mask
from rankwise.leaderboard.inference.pair_errors import StudentErrors, student_errors
from rankwise.leaderboard.models.task_scores import AdditiveModel

LEAST_COMPLETE = 5  # complete models that the masking test needs


class MaskingTest(NamedTuple):
    """Result of the masking test.

    Attributes
    ----------
    n_complete : int
        Number of complete models.
    missing_cell_errors : ndarray of shape (n_models,)
        Standard deviation e(S_i) of the changes of the complete models; 0 for complete models.
    errors : StudentErrors
        Errors of the differences that involve a model with missing cells; 0 for other differences.
        The last row is the reference, a mean of the models.
    """

    n_complete: int
    missing_cell_errors: Array
    errors: StudentErrors


def masking_test(
    model: AdditiveModel, is_rated: Mask, jackknife_variances: Array
) -> MaskingTest | None:
    """Mask cells of the complete models; None without missing cells or with few complete models.

    Parameters
    ----------
    model : AdditiveModel
        The fitted model.
    is_rated : ndarray of bool, shape (n_models,)
        Models with an interval.
    jackknife_variances : ndarray of shape (n_models + 1, n_models + 1)
        Variances of the differences by the jackknife; the last row is the reference.
    """
    has_all_scores = model.design.is_observed.all(axis=1)
    is_complete = has_all_scores & is_rated
    n_complete = int(is_complete.sum())
    if model.design.is_complete or n_complete < LEAST_COMPLETE:
        return None
    # For each model: change of the effect of a complete model without the scores that the model
    # lacks
    missing_cell_errors = errors_of_missing_cells(model, is_complete)
    missing_cell_variances = np.append(missing_cell_errors**2, 0.0)  # the last: the reference, 0

    # Two models: the variances of both, and the usual variance between two complete models
    complete = np.flatnonzero(is_complete)
    first, second = np.triu_indices(n_complete, k=1)
    pair_variance = float(np.median(jackknife_variances[complete[first], complete[second]]))
    variance = missing_cell_variances[:, None] + missing_cell_variances + pair_variance

    # A model and the reference: its variance, and the usual variance of a complete model
    reference_variance = float(np.median(jackknife_variances[-1, complete]))
    variance[-1] = missing_cell_variances + reference_variance
    variance[:, -1] = missing_cell_variances + reference_variance

    # 0 for pairs of complete models: the errors by the jackknife are used for them
    lacks_scores = missing_cell_variances > 0
    is_affected = lacks_scores[:, None] | lacks_scores
    variance[~is_affected] = 0.0
    degrees_of_freedom = np.full_like(variance, n_complete - 1.0)  # from n_complete changes
    errors = student_errors(variance, degrees_of_freedom)
    return MaskingTest(n_complete, missing_cell_errors, errors)


def errors_of_missing_cells(model: AdditiveModel, is_complete: Mask) -> Array:
    """Standard deviation of the changes of complete models that have the cells of each model."""
    design = model.design
    observed = design.is_observed.astype(np.float64)

    # Mean residual of each complete model over the tasks of each model: (n_complete, n_models).
    weighted_residuals = model.residuals[is_complete] * design.weights
    mean_residuals = weighted_residuals @ observed.T / (observed @ design.weights)

    n_complete = is_complete.sum()
    variances = (mean_residuals**2).sum(axis=0) / (n_complete - 1)
    has_all_tasks = design.is_observed.all(axis=1)
    variances[has_all_tasks] = 0.0  # nothing is missing
    return np.asarray(np.sqrt(variances))
