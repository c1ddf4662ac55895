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
    design = model.design
    counts = cell_counts(design.is_observed.shape, rows)
    n_seeds = counts[rows.model, rows.task]  # of the cell of each row
    # The mean of a cell has the variance Σ deviation² / (n (n − 1)).
    scaled_deviation = rows.deviation * (1 / np.sqrt(n_seeds * np.maximum(n_seeds - 1, 1)))

    n = design.n_models + 1  # the last row and column is the reference
    total_variance = np.zeros((n, n))  # of the difference of every two models
    sum_for_freedom = np.zeros((n, n))  # Σ variance² / degrees of freedom
    for task in range(len(design.weights)):
        is_task = rows.task == task
        if not is_task.any():
            continue
        seeds, seed_column = np.unique(rows.seed[is_task], return_inverse=True)
        deviations = np.zeros((design.n_models, len(seeds)))
        deviations[rows.model[is_task], seed_column] = scaled_deviation[is_task]

        # Changes of the ratings by each seed (A⁻¹ times the centered, weighted deviations), and
        # the variances of their differences.
        centered = design.multiply_laplacian(deviations, np.array([task]), design.weights)
        changes = model.inverse_laplacian @ centered
        changes = np.vstack([changes, reference @ changes])
        variances = difference_variances(changes @ changes.T)
        total_variance += variances
        sum_for_freedom += variances**2 / max(1, len(seeds) - 1)

    # Welch–Satterthwaite degrees of freedom: (Σ variance)² / Σ (variance² / degrees of freedom)
    freedom = np.ones((n, n))
    np.divide(total_variance**2, sum_for_freedom, out=freedom, where=sum_for_freedom > 0)

    n_cells = int(np.count_nonzero(counts))
    n_degrees_of_freedom = max(1, len(rows.deviation) - n_cells)
    variance_of_score = float((rows.deviation**2).sum()) / n_degrees_of_freedom
    return SeedNoise(student_errors(total_variance, freedom), variance_of_score)
