"""A first guess at the curvature of a margin objective, so that features may be on any scale.

The Hessian of a margin loss is the mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs near the
margin (hinge) or below it (squared hinge). The mean over all pairs shows its directions:
quasi-Newton steps and conjugate gradients start from there instead of from the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from rankwise.arrays import Array
from rankwise.graphs.gram import block_rows
from rankwise.graphs.strict import StrictPreferences
from rankwise.solvers.margin_objective import MarginObjective

MAX_FEATURES = 500  # with more features only the diagonal is used
NEAR_MARGIN = 0.15  # about this share of the pairs makes the curvature
WIDTH = 0.25  # pairs are near the margin if their scores differ by one, more or less this
ENOUGH = 10  # times the number of features: the pairs that a curvature needs
RARE = (
    0.1  # of the variance: the least second moment of a feature, since a sample may miss rare ones
)


def second_moment(objective: MarginObjective) -> Array:
    """Second moment of the differences of pairs: a matrix, or its diagonal for many features."""
    R = objective.R
    variance = _variance(R)
    if R.shape[1] > MAX_FEATURES:
        return 2 * variance
    M = objective.loss.preferences.second_moment(R)
    diagonal = np.maximum(M.diagonal(), RARE * variance)
    M[np.diag_indices_from(M)] = diagonal
    return M


def usual_curvature(moment: Array) -> Array:
    """The Hessian if the pairs near the margin are like all pairs."""
    return NEAR_MARGIN * moment


def curvature_near_margin(objective: MarginObjective, f: Array, moment: Array) -> Array:
    """The Hessian at scores f from some of the pairs that are near the margin there.

    All curvature of the hinge is at the margin. A sample of the pairs near the margin measures it:
    ``Σ ω_k (r_i − r_j)(r_i − r_j)ᵀ/(2 WIDTH W)``. The smaller the sample, the more of the usual
    curvature is added.
    """
    usual = usual_curvature(moment)
    if moment.ndim == 1:
        return usual
    near = cast(StrictPreferences, objective.loss.preferences).near_margin(f, WIDTH)
    n = len(moment)
    if len(near.weight) < ENOUGH * n:
        return usual
    return near.moment(objective.R) / (2 * WIDTH) + usual * (n / len(near.weight))


def inverse_curvature(curvature: Array, alpha: float) -> Callable[[Array], Array]:
    """The product of ``(curvature + 2 α I)⁻¹`` with a vector.

    This uses NumPy only. The BLAS libraries of NumPy and SciPy have separate threads, which would
    compete for the cores, because products with the features alternate with these.
    """
    diagonal = curvature if curvature.ndim == 1 else curvature.diagonal()
    scale = 1 / np.sqrt(diagonal + 2 * alpha)
    if curvature.ndim == 1:
        return lambda v: np.asarray(scale**2 * v)
    H = curvature * scale[:, None] * scale
    H[np.diag_indices_from(H)] = 1 + 1e-13 * len(H)
    try:
        root = np.linalg.inv(np.linalg.cholesky(H)) * scale
    except np.linalg.LinAlgError:  # of infinite features, or by rounding
        return lambda v: np.asarray(scale**2 * v)
    return lambda v: np.asarray((root @ v) @ root)


def _variance(R: Any) -> Array:
    """Of the columns, in one pass over blocks of rows and without a copy of R."""
    if sp.issparse(R):
        return np.asarray(mean_variance_axis(R.tocsr(), axis=0)[1], dtype=np.float64)
    total, squares = np.zeros((2, R.shape[1]))
    height = block_rows(R.shape[1])
    for start in range(0, R.shape[0], height):
        shifted = R[start : start + height] - R[0].astype(np.float64)
        total += shifted.sum(axis=0)
        squares += np.einsum("ij,ij->j", shifted, shifted)
    variance = squares / R.shape[0] - (total / R.shape[0]) ** 2
    return np.asarray(np.maximum(variance, 0.0))
