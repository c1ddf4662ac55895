"""Errors of ratings that come from seeds (folds, draws) alone, for fixed tasks.

Row s of the cell of model m on task t deviates by ε_mts from the mean of its n_mt rows. With C_t
the centering matrix of the models of a task and P the pseudo-inverse of the additive model,

    V = Σ_t Σ_s z_ts z_tsᵀ,    z_ts = P w_t C_t [ε_mts / √(n_mt (n_mt − 1))]_m

is the covariance of the ratings. Rows of the same task and seed belong together, so errors that
all models share, such as those of a fold, cancel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.inference.pair_errors import StudentErrors, student_errors
from rankwise.leaderboard.models.task_scores import AdditiveModel, difference_variances
from rankwise.leaderboard.score_table import Repetitions


class SeedNoise(NamedTuple):
    """Covariance of the ratings by seeds.

    Attributes
    ----------
    errors : StudentErrors
        Errors of all differences; the last row is the reference.
    variance : float
        Variance of one row around the mean of its cell, pooled over cells.
    """

    errors: StudentErrors
    variance: float


def cell_counts(shape: tuple[int, int], rows: Repetitions) -> Indices:
    """Number of rows of each cell."""
    counts = np.zeros(shape, np.intp)
    np.add.at(counts, (rows.model, rows.task), 1)
    return counts


def seed_noise(model: AdditiveModel, rows: Repetitions, reference: Array) -> SeedNoise:
    """Return the errors by seeds; cells with one row have none.

    Parameters
    ----------
    model : AdditiveModel
        The fitted model.
    rows : Repetitions
        Deviations of the rows from the mean of their cell.
    reference : ndarray of shape (n_models,)
        Weights of a mean of the models, which becomes the last row.
    """
    counts = cell_counts(model.design.is_observed.shape, rows)
    n_rows_of_cell = counts[rows.model, rows.task]  # one number for each row
    # The mean of a cell of n rows has the variance Σ deviation² / (n (n − 1)).
    divisor_of_variance = n_rows_of_cell * np.maximum(n_rows_of_cell - 1, 1)
    scaled_deviation = rows.deviation * (1 / np.sqrt(divisor_of_variance))

    n_with_reference = model.design.n_models + 1  # the last row and column is the reference
    shape = (n_with_reference, n_with_reference)
    total_variance = np.zeros(shape)  # of the difference of every two models
    sum_for_freedom = np.zeros(shape)  # Σ variance² / degrees of freedom
    for task in np.unique(rows.task).tolist():
        variances, n_seeds = _variances_by_seeds(model, rows, scaled_deviation, task, reference)
        total_variance += variances
        sum_for_freedom += variances**2 / max(1, n_seeds - 1)

    # Welch–Satterthwaite degrees of freedom: (Σ variance)² / Σ (variance² / degrees of freedom)
    freedom = np.ones(shape)
    np.divide(total_variance**2, sum_for_freedom, out=freedom, where=sum_for_freedom > 0)

    # Deviations are from the mean of their cell, so each cell takes a degree of freedom.
    n_cells = int(np.count_nonzero(counts))
    n_degrees_of_freedom = max(1, len(rows.deviation) - n_cells)
    variance_of_score = float((rows.deviation**2).sum()) / n_degrees_of_freedom
    return SeedNoise(student_errors(total_variance, freedom), variance_of_score)


def _variances_by_seeds(
    model: AdditiveModel, rows: Repetitions, scaled_deviation: Array, task: int, reference: Array
) -> tuple[Array, int]:
    """Variances of all differences of ratings by the seeds of one task, and their number."""
    design = model.design
    is_task = rows.task == task
    # One column per seed: errors that all models share in a seed cancel
    seeds, seed_column = np.unique(rows.seed[is_task], return_inverse=True)
    deviations = np.zeros((design.n_models, len(seeds)))  # 0 without a score by the seed
    deviations[rows.model[is_task], seed_column] = scaled_deviation[is_task]

    # Changes of the ratings by seed s: z_ts = P w_t C_t [scaled deviations of the models], with the
    # inverse Laplacian P and the centering matrix C_t of the models that have the task
    centered = design.multiply_laplacian(deviations, np.array([task]), design.weights)
    changes_of_models = model.inverse_laplacian @ centered
    changes = np.vstack([changes_of_models, reference @ changes_of_models])
    covariance = changes @ changes.T  # Σ_s z_ts z_tsᵀ
    return difference_variances(covariance), len(seeds)
