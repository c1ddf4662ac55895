"""The linear system of ratings."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag, svd

from rankwise.arrays import Array, Indices, Matrix
from rankwise.caching import cached_property
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.comparison_design import (
    ComparisonDesign,
    fixed_width_csr,
    iterative_solver,
)
from rankwise.uncertainty.possible_ranks import COVARIANCE_LIMIT

DENSE_LIMIT = 300  # items; above, conjugate gradients are faster than a dense solve
TOLERANCE = 1e-11
RANK_TOLERANCE = 1e-12  # relative to the largest singular value of the features


class RatingSystem(ComparisonDesign):
    """``Dᵀ W D u + Λu = Dᵀ W δ`` with a row of D for each distinct pair.

    A row is ``[x_i − x_j, b_i − b_j, z]``, with sums over the members of teams. The unknowns u are
    the weights w of the features X, those β of a prior B, so that r = X w + B β, and the effects γ
    of the covariates. Only w is regularized; the others have a `TINY_PENALTY`, which matters only
    where the data leave them undetermined.

    Parameters
    ----------
    counts : ComparisonCounts
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items; the identity by default. They are replaced by as many columns as
        their rank, with the same inner products of differences, so that r is the same. Columns that
        are linearly dependent (an imputed column and its missing indicator) therefore do not make
        the system singular.
    prior_ratings : ndarray of shape (n_items, n_priors), optional
        B, whose weights are not regularized.

    Attributes
    ----------
    has_prior : bool
        Whether there are prior ratings.
    unregularized_columns : ndarray of shape (n_distinct, n_free + n_covariates)
        Columns of D that are not regularized.
    exceeds_dense_limit : bool
        Whether the system is solved by conjugate gradients.
    exceeds_covariance_limit : bool
        Whether the inverse is too large to compute.
    """

    def __init__(
        self, counts: ComparisonCounts, X: Array | None = None, prior_ratings: Array | None = None
    ) -> None:
        if prior_ratings is None:
            prior_ratings = np.empty((counts.n_items, 0))
        self.prior_ratings = prior_ratings
        self.has_prior = prior_ratings.shape[1] > 0

        # A row of the design has ±1 for the items of a pair, then the columns without
        # regularization: differences of the prior ratings, and covariates.
        # Axes: k pairs, m members of a pair, b prior ratings.
        items, signs = counts.members  # (n_pairs, n_members)
        prior_differences = np.einsum("km,kmb->kb", signs, prior_ratings[items])
        self.unregularized_columns = np.hstack([prior_differences, counts.covariates])
        incidence = fixed_width_csr(items, signs, self.unregularized_columns, counts.n_items)

        # Without features the unknowns are the ratings; with features the coefficients.
        self.X: Array | None = None
        self.max_n_eigenvalues = counts.n_items  # that can differ from 0
        n_regularized = counts.n_items
        parameter_basis = None
        if X is not None:
            self.X = _full_rank_features(counts, X)
            self.max_n_eigenvalues = min(X.shape)
            n_regularized = self.X.shape[1]
            parameter_basis = block_diag(self.X, np.eye(self.unregularized_columns.shape[1]))
        super().__init__(counts, incidence, parameter_basis, n_regularized)
        self.exceeds_dense_limit = X is None and counts.n_items > DENSE_LIMIT
        self.exceeds_covariance_limit = X is None and self.n_unknowns > COVARIANCE_LIMIT

    def with_counts(self, counts: ComparisonCounts) -> RatingSystem:
        """Return the same system for other weights, targets or counts of the same pairs."""
        system = copy(self)
        system.counts = counts
        return system

    def difference_contrast(self, a: int, b: int) -> Array:
        """Return d with dᵀ u = r_a − r_b."""
        item_weights = np.zeros(self.counts.n_items)
        item_weights[a] = 1.0
        item_weights[b] = -1.0
        return self.contrast(item_weights)

    def contrast(self, item_weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i."""
        n_items = self.counts.n_items
        n_priors = self.prior_ratings.shape[1]
        # Parameters are ratings, weights of priors and effects of covariates; an effect counts 0.
        parameter_weights = np.zeros(self.n_parameters)
        parameter_weights[:n_items] = item_weights
        parameter_weights[n_items : n_items + n_priors] = item_weights @ self.prior_ratings
        if self.parameter_basis is None:
            return parameter_weights
        return np.asarray(self._transposed_parameter_basis @ parameter_weights)

    def gram(self, weights: Array) -> Matrix:
        """``Dᵀ W D``; the Laplacian of the items if nothing else is unknown."""
        counts = self.counts
        n_items = counts.n_items
        has_other_entries = counts.teams is not None or self.n_parameters > n_items
        if has_other_entries:  # than 1 and −1 of two items in each row
            return super().gram(weights)

        # Dᵀ W D is the graph Laplacian: weighted degrees on the diagonal, minus the edge weights.
        weights_on_first = np.bincount(counts.first, weights, n_items)
        degrees = weights_on_first + np.bincount(counts.second, weights, n_items)
        values = np.concatenate([degrees, -counts.sum_by_edge(weights)])
        laplacian = copy(self._laplacian_positions)  # its entries are positions in `values`
        laplacian.data = values[laplacian.data]
        if self.parameter_basis is None:
            return laplacian
        return self._transposed_parameter_basis @ (laplacian @ self.parameter_basis)

    @cached_property
    def _laplacian_positions(self) -> sp.csr_matrix:
        """For each entry of the Laplacian the item (diagonal), or n plus the number of the edge."""
        counts = self.counts
        n_items = counts.n_items
        first = counts.first[counts.edges]
        second = counts.second[counts.edges]
        # The values of a Laplacian are its degrees, one for each item, and then the edge weights.
        item = np.arange(n_items)
        degree_position = np.arange(n_items)
        edge_position = n_items + np.arange(len(first))

        # Three parts: below, on and above the diagonal.
        rows = np.concatenate([second, item, first])
        columns = np.concatenate([first, item, second])
        positions = np.concatenate([edge_position, degree_position, edge_position])
        return sp.csr_matrix((positions, (rows, columns)), (n_items, n_items))

    def regularized_gram(self, weights: Array, ridge: float) -> Array:
        """``Dᵀ W D + Λ``, dense; without features and prior it is invertible also for λ = 0."""
        gram = self.dense_gram(weights)
        ratings_are_unknowns = self.parameter_basis is None
        if ratings_are_unknowns and not self.has_prior:
            # The block of the ratings is singular: some changes of ratings change no margin. Adding
            # the projection on them changes no solution, and makes the block invertible.
            n_items = self.counts.n_items
            mean_diagonal = gram[:n_items, :n_items].trace() / n_items
            gram[:n_items, :n_items] += mean_diagonal * self._null_projection
        diagonal = np.arange(len(gram))
        gram[diagonal, diagonal] += self.penalties(ridge)
        return gram

    @cached_property
    def _null_projection(self) -> Array:
        """Projection on the changes of ratings that change no margin.

        Right-hand sides ``Dᵀ f`` and their solutions are orthogonal to it. A multiple of it may
        therefore be added to the Gram matrix of the items: no rating changes, and the condition of
        the matrix does not depend on λ.
        """
        # Changes of ratings that change no margin; without teams these are the same change of all
        # ratings of a component.
        teams = self.counts.teams
        if teams is None:
            return component_projection(self.counts.components)
        return np.asarray(teams.null_space @ teams.null_space.T)

    def solver(
        self,
        weights: Array,
        ridge: float,
        tol: float = TOLERANCE,
        dtype: type[np.floating] = np.float64,
    ) -> Callable[[Array], Array]:
        """Return a function that solves with ``Dᵀ W D + Λ`` for a vector or for columns.

        With many items, solve for one vector at a time: a vector of 1e5 items fits into the cache,
        a block of vectors does not. Single precision is twice as fast and sufficient for
        tolerances down to about 1e-4.
        """
        # Solves (Dᵀ W D + Λ) x = b: directly for few items, by conjugate gradients for many.
        if not self.exceeds_dense_limit:
            return partial(np.linalg.solve, self.regularized_gram(weights, ridge))

        gram = self.gram(weights).astype(dtype, copy=False)
        penalties = self.penalties(ridge).astype(dtype, copy=False)

        def multiply_system(vectors: Array) -> Array:
            return np.asarray(gram @ vectors + penalties[:, None] * vectors)

        return iterative_solver(multiply_system, gram.diagonal() + penalties, tol)

    def ratings_and_effects(self, unknowns: Array) -> tuple[Array, Array]:
        """Ratings with mean 0 (in each component if there are no features), and effects."""
        n_items = self.counts.n_items
        n_priors = self.prior_ratings.shape[1]
        # Parameters: ratings of the items, weights of the priors, effects of the covariates.
        parameters = self.parameters(unknowns)
        ratings = parameters[:n_items]
        prior_weights = parameters[n_items : n_items + n_priors]
        effects = parameters[n_items + n_priors :]

        if self.X is None and not self.has_prior:
            return self.counts.center(ratings), effects
        ratings = ratings + self.prior_ratings @ prior_weights
        return ratings - ratings.mean(axis=0), effects


def _full_rank_features(counts: ComparisonCounts, X: Array) -> Array:
    """Return centered features with linearly independent columns and the same inner products."""
    if np.array_equal(X[counts.first], X[counts.second]):
        raise ValueError(
            "the features of the two items are equal in every comparison, so their weights cannot "
            "be estimated; pass other features, or none."
        )
    # Principal components with a positive variance among items that can be compared.
    _, singular_values, directions = svd(counts.center(X), full_matrices=False)
    is_independent = singular_values > RANK_TOLERANCE * singular_values[0]
    return np.asarray((X - X.mean(axis=0)) @ directions[is_independent].T)


def component_projection(components: Indices) -> Array:
    """Return the projection on vectors that are constant in each component."""
    # The projection replaces values by their means in each component.
    is_same_component = components[:, None] == components
    component_sizes = np.bincount(components)[components]
    return np.asarray(is_same_component / component_sizes)
