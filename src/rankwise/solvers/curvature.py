"""A first guess at the curvature of a margin objective, so that features may be on any scale.

The Hessian of a margin loss is the mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs near the
margin (hinge) or below it (squared hinge). The mean over all pairs tells its directions:
quasi-Newton steps and conjugate gradients start from there instead of from the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

from rankwise.graphs.gram_blocks import block_rows
from rankwise.solvers.margin_objective import MarginObjective

__all__ = ["inverse_curvature", "second_moment"]

Array = NDArray[np.float64]
MAX_FEATURES = 500  # beyond it the diagonal must do
NEAR_MARGIN = 0.15  # share of the pairs that make the curvature, about
RARE = 0.1  # a sample may miss features that rarely differ: at least so much of their variance


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


def inverse_curvature(moment: Array, alpha: float) -> Callable[[Array], Array]:
    """The product of ``(moment · share of pairs + 2 α I)⁻¹`` with a vector."""
    if moment.ndim == 1:
        scale = 1 / (NEAR_MARGIN * moment + 2 * alpha)
        return lambda v: np.asarray(scale * v)
    H = NEAR_MARGIN * moment
    H[np.diag_indices_from(H)] += 2 * alpha + 1e-14 * np.trace(H)
    factor = scipy.linalg.cho_factor(H)
    return lambda v: np.asarray(scipy.linalg.cho_solve(factor, v))


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
