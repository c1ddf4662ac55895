"""Ratings by least squares of margins."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.algebra.alpha_selection import leave_one_out_errors, select_alpha
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut, jackknife_covariance
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.leaderboard.models.base import comparable_components
from rankwise.uncertainty.possible_ranks import CovarianceRoot


class LeastSquares:
    """``(1/W) Σ ω (δ − (r_i − r_j + zᵀγ))² + α ‖r‖²``; with features α ‖w‖² and r = X w.

    A `RatingModel`. A tie is the margin 0, between a win and a loss.

    Parameters
    ----------
    counts : ComparisonCounts
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items.
    prior_ratings : ndarray of shape (n_items, n_priors), optional
        Prior ratings, as in `RatingSystem`.
    """

    ties: float | None = None
    note = ""
    outcome_curve = None  # ratings are margins, not log odds

    def __init__(
        self, counts: ComparisonCounts, X: Array | None = None, prior_ratings: Array | None = None
    ) -> None:
        self.counts = counts
        self.system = RatingSystem(counts, X, prior_ratings)
        self.components = comparable_components(counts, X, prior_ratings)

    def select_alpha(self) -> float:
        """Return the alpha that predicts best the comparisons left out one at a time."""
        return select_alpha(self.system, self.held_out_losses)

    def held_out_losses(self, alphas: Array) -> Array:
        """Mean loss of left-out comparisons under normal noise, for each alpha."""
        # Negative log likelihood of normal errors with the left-out variance, up to a constant.
        noise_variances = leave_one_out_errors(self.system, alphas)
        return np.asarray(0.5 * np.log(np.maximum(noise_variances, 1e-300)))

    def fit(self, alpha: float) -> Self:
        """Solve the linear system."""
        self.alpha = alpha
        # Normal equations (Dᵀ W D + Λ) u = Dᵀ W δ
        solve = self.system.solver(self.counts.pair_weights, self._ridge)
        self.unknowns = solve(self.system.apply_transpose(self.counts.pair_target_sums))
        self.ratings, self.effects = self.system.ratings_and_effects(self.unknowns)
        return self

    def refit(self, counts: ComparisonCounts) -> Self:
        """Return the model of other counts of the same comparisons, for the same λ."""
        model = copy(self)
        model.counts = counts
        model.system = self.system.with_counts(counts)
        # The penalty is α times the total weight; it stays the same.
        alpha_of_same_penalty = self.alpha * self.counts.total_weight / counts.total_weight
        return model.fit(alpha_of_same_penalty)

    @property
    def _ridge(self) -> float:
        """λ."""
        return self.alpha * self.counts.total_weight  # the squared errors are a mean over W

    def leave_one_out(self) -> LeaveOneOut:
        """The solution, from which comparisons can be removed exactly."""
        return LeaveOneOut(self.system, self.unknowns, self._ridge)

    def covariance(
        self, clusters: Indices | None, has_few_data: NDArray[np.bool_]
    ) -> CovarianceRoot:
        """Covariance by the jackknife: every comparison or cluster is left out."""
        return jackknife_covariance(self.leave_one_out(), clusters, has_few_data)

    def margins(self) -> Array:
        """Margin of each distinct pair."""
        return self.system.margins(self.unknowns)

    def weights_of_unknowns(self, item_weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i."""
        return self.system.contrast(item_weights)

    def expected(self, margins: Array) -> Array:
        """Expected outcome for the first item: the margin itself."""
        return margins

    def variances(self, margins: Array) -> Array:
        """Variance of an outcome, up to a factor that is the same for all outcomes."""
        return np.ones_like(margins)
