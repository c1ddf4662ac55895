"""The objective ``loss(R w) + α ‖w‖²`` for a pairwise loss, its gradient, and its pair covariance.

A pairwise loss depends on differences of scores only, which do not change if a constant is added to
a column. Large constants cost precision: columns far from zero are shifted, and constant columns
are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Matrix
from rankwise.losses import LossValue, PairwiseLoss

SHIFT_RATIO = 1e3  # columns further from zero than this many times half their range are shifted
MAX_COVARIANCE_FEATURES = 500  # with more features only the diagonal of the covariance is used
MAX_COVARIANCE_ITEMS = 20_000  # the covariance of the pairs is estimated from this many items
MIN_VARIANCE_SHARE = 0.1  # lower bound of a sampled variance, as a share of that of all items


class Iterate(NamedTuple):
    """The objective at one w.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        Weights.
    scores : ndarray of shape (n_items,)
        R w, up to a constant.
    loss : LossValue
        The loss at these scores.
    value : float
        The objective, loss + α ‖w‖².
    loss_gradient : ndarray of shape (n_features,)
        Subgradient of the loss with respect to w.
    gradient : ndarray of shape (n_features,)
        Subgradient of the objective, loss_gradient + 2 α w.
    n_score_updates : int
        Number of line-search steps added to the scores since they were computed as R w.
    """

    w: Array
    scores: Array
    loss: LossValue
    value: float
    loss_gradient: Array
    gradient: Array
    n_score_updates: int = 0


@dataclass(frozen=True)
class Objective:
    """``J(w) = loss(R w) + α ‖w‖²``, in float64.

    Attributes
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items, in float64 and near zero, as `make_objective` prepares them.
    loss : PairwiseLoss
        A function of the scores R w that does not change if a constant is added to all scores.
    alpha : float
        Regularization.
    largest_feature_values : ndarray of shape (n_features,)
        Largest absolute value of each column; 0 for constant columns.
    n_items : int
        Number of terms of a sum over items.
    """

    R: Matrix
    loss: PairwiseLoss
    alpha: float
    largest_feature_values: Array
    n_items: int

    def scores(self, w: Array) -> Array:
        """``R w``, up to a constant."""
        # a constant column changes no difference of scores
        is_varying = self.largest_feature_values > 0
        return np.asarray(self.R @ np.where(is_varying, w, 0.0))

    def derivative_in_weights(self, derivative_in_scores: Array) -> Array:
        """``Rᵀ u`` for a u that sums to zero: derivatives in scores to derivatives in weights."""
        is_varying = self.largest_feature_values > 0
        return np.where(is_varying, self.R.T @ derivative_in_scores, 0.0)

    def at(self, w: Array) -> Iterate:
        """The objective and its gradient: two products with R and one evaluation of the loss."""
        scores = self.scores(w)
        return self.make_iterate(w, scores, self.loss.at(scores))

    def make_iterate(
        self, w: Array, scores: Array, loss: LossValue, n_score_updates: int = 0
    ) -> Iterate:
        """The objective at weights with these scores and this loss: one product with Rᵀ."""
        loss_gradient = self.derivative_in_weights(loss.gradient)
        penalty = self.alpha * float(w @ w)
        return Iterate(
            w,
            scores,
            loss,
            value=loss.value + penalty,
            loss_gradient=loss_gradient,
            gradient=loss_gradient + 2 * self.alpha * w,
            n_score_updates=n_score_updates,
        )


def make_objective(R: Matrix, loss: PairwiseLoss, alpha: float) -> Objective:
    """The objective for features of any type; copies features that must be shifted or converted.

    Parameters
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items. Sparse features are not shifted.
    loss : PairwiseLoss
        Over the pairs of these items.
    alpha : float
        Regularization.

    Returns
    -------
    Objective
        With features in float64.
    """
    column_min, column_max = _column_ranges(R)
    largest_values = np.maximum(np.abs(column_min), np.abs(column_max))
    if sp.issparse(R):
        R = R.astype(np.float64, copy=False)
    else:
        middle = 0.5 * column_min + 0.5 * column_max
        half_range = np.maximum(column_max - middle, middle - column_min)
        is_far_from_zero = (half_range > 0) & (largest_values > SHIFT_RATIO * half_range)
        if R.dtype != np.float64 or is_far_from_zero.any():
            R = R - middle  # differences of scores, and so the loss, stay the same
            largest_values = half_range
    is_constant = column_min == column_max
    largest_values = np.where(is_constant, 0.0, largest_values)  # 0 marks constant columns
    return Objective(R, loss, alpha, largest_values, n_items=R.shape[0])


def _column_ranges(R: Matrix) -> tuple[Array, Array]:
    """Smallest and largest value of each column."""
    column_min = R.min(axis=0)
    column_max = R.max(axis=0)
    if sp.issparse(R):
        column_min = column_min.toarray().ravel()
        column_max = column_max.toarray().ravel()
    return column_min.astype(np.float64), column_max.astype(np.float64)


def estimate_pair_covariance(objective: Objective) -> Array:
    """Mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs, or its diagonal for many features.

    Estimated from a sample if there are many items.
    """
    # mean of (r_i − r_j)(r_i − r_j)ᵀ over the pairs, or only its diagonal for many features
    R = objective.R
    graph = objective.loss.graph
    variance = _column_variances(R)
    n_items, n_features = R.shape
    if n_features > MAX_COVARIANCE_FEATURES:
        return np.asarray(2 * np.maximum(variance, 0.0))  # of differences of independent items

    sampling_step = n_items // MAX_COVARIANCE_ITEMS
    if sampling_step > 1:
        sample = objective.loss.sample(sampling_step)
        if sample is not None:
            sampled_rows, sample_loss = sample
            R = R[sampled_rows]
            graph = sample_loss.graph
    covariance = graph.gram(R) / graph.total_weight

    # a sample may contain no nonzero value of a rare feature
    diagonal = np.maximum(covariance.diagonal(), MIN_VARIANCE_SHARE * variance)
    covariance[np.diag_indices_from(covariance)] = diagonal
    return np.asarray(covariance)


def _column_variances(R: Matrix) -> Array:
    """Variance of each column; rounding may make it slightly negative."""
    if sp.issparse(R):
        sums_of_squares = R.multiply(R).sum(axis=0)
    else:
        sums_of_squares = np.einsum("ij,ij->j", R, R)
    return np.asarray(np.ravel(sums_of_squares) / R.shape[0] - np.ravel(R.mean(axis=0)) ** 2)
