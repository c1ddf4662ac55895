"""Effective number of clusters behind each difference of ratings."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut


def effective_clusters(exact: LeaveOneOut, clusters: Indices) -> Array:
    """Effective number of clusters of each difference, ``(Σ_u g_u)² / Σ_u g_u²``.

    g_u is the variance that cluster u causes if each cluster has ratings of its own, with errors of
    the same variance: with A = Dᵀ W D + Λ and L_u the part of Dᵀ W D of the cluster,
    ``g_u = ‖L_u A⁻¹ c‖²`` for the difference c. Clusters with the same comparisons count fully; a
    difference of items that few clusters compared has few effective clusters.

    Parameters
    ----------
    exact : LeaveOneOut
        The fitted system.
    clusters : ndarray of int, shape (n_comparisons,)
        Cluster of each comparison.

    Returns
    -------
    ndarray of shape (n_items, n_items)
        1 on the diagonal.
    """
    system = exact.system
    counts = exact.counts
    n_items = counts.n_items
    total = np.zeros((n_items, n_items))
    total_of_squares = np.zeros((n_items, n_items))
    for rows in indices_by_group(clusters):
        outcomes = counts.outcome[rows]
        pair_weights = np.zeros(len(exact.margins))
        np.add.at(pair_weights, counts.pair[outcomes], counts.weight[outcomes])
        influence = exact.inverse @ system.dense_gram(pair_weights)
        ratings, _ = system.ratings_and_effects(influence)
        products = ratings @ ratings.T
        squares = products.diagonal()
        variances = np.maximum(squares[:, None] + squares - 2 * products, 0.0)
        total += variances
        total_of_squares += variances**2
    effective = np.ones((n_items, n_items))
    np.divide(total**2, total_of_squares, out=effective, where=total_of_squares > 0)
    return effective
