"""Effective number of clusters behind each difference of ratings."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut


def effective_clusters(leave_one_out: LeaveOneOut, clusters: Indices) -> Array:
    """Effective number of clusters of each difference, ``(Σ_u g_u)² / Σ_u g_u²``.

    g_u is the variance that cluster u causes if each cluster has its own ratings, with errors of
    the same variance: with A = Dᵀ W D + Λ and L_u the part of Dᵀ W D of the cluster,
    ``g_u = ‖L_u A⁻¹ c‖²`` for the difference c. Clusters with the same comparisons count fully; a
    difference of items that few clusters compared has few effective clusters.

    Parameters
    ----------
    leave_one_out : LeaveOneOut
        The fitted system.
    clusters : ndarray of int, shape (n_comparisons,)
        Cluster of each comparison.

    Returns
    -------
    ndarray of shape (n_items, n_items)
        1 on the diagonal.
    """
    system = leave_one_out.system
    counts = leave_one_out.counts
    n_items = counts.n_items
    sum_of_variances = np.zeros((n_items, n_items))
    sum_of_squares = np.zeros((n_items, n_items))
    for comparisons in indices_by_group(clusters):
        outcomes = counts.outcome_of_comparison[comparisons]
        pair_weights = np.zeros(len(leave_one_out.margins))
        np.add.at(pair_weights, counts.pair_of_outcome[outcomes], counts.weight[outcomes])

        # How errors of the ratings of this cluster change the common ratings: A⁻¹ L_u, with the
        # regularized Gram matrix A of all comparisons and L_u of the cluster.
        influence = leave_one_out.inverse_gram @ system.dense_gram(pair_weights)
        rating_influence, _ = system.ratings_and_effects(influence)
        covariance = rating_influence @ rating_influence.T
        rating_variances = covariance.diagonal()
        variances = rating_variances[:, None] + rating_variances - 2 * covariance
        variances = np.maximum(variances, 0.0)  # of all differences, above rounding errors
        sum_of_variances += variances
        sum_of_squares += variances**2

    # (Σ variance)² / Σ variance² for each pair of items, 1 without any variance.
    effective_number = np.ones((n_items, n_items))
    has_variance = sum_of_squares > 0
    np.divide(sum_of_variances**2, sum_of_squares, out=effective_number, where=has_variance)
    return effective_number
