"""Ratings by least squares of margins."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut, jackknife_covariance
from rankwise.leaderboard.algebra.rating_system import (
    RELATIVE,
    RatingSystem,
    alpha_of_prior,
    leave_one_out_errors,
    middle_alpha,
)
from rankwise.uncertainty.jackknife_errors import CovarianceRoot

EIGEN_LIMIT = 3000  # items or features, of which alpha is chosen


class LeastSquares:
    """``(1/W) Σ ω (δ − (r_i − r_j + zᵀγ))² + α ‖r‖²``; with features α ‖w‖² and r = X w.

    A model of the outcomes of a `ComparisonCounts` has these methods. The margin of a comparison is
    ``r_i − r_j + zᵀγ``. The rest of the board (ranks, tiers, scales, judges, head-to-head results)
    follows from what `solve` leaves behind.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items.
    B : ndarray of shape (n_items, n_free), optional
        A prior, as in `RatingSystem`.
    ties : {"half", "davidson"}
        Least squares take a tie as the margin 0, between a win and a loss.

    Attributes
    ----------
    logits : float or None
        Log odds in one unit of a rating; None if the ratings are not log odds.
    components : ndarray of shape (n_items,)
        Which items can be compared.
    alpha : float
        Regularization.
    unknowns : ndarray of shape (n_unknowns,)
        What the system was solved for.
    ratings : ndarray of shape (n_items,)
        Their mean is 0 in each component.
    effects : ndarray of shape (n_covariates,)
        γ of the columns of the tally.
    theta : float
        Log of the parameter of the ties, if the model has one.
    ties : float or None
        The parameter of the ties, if the model has one.
    note : str
        What a reader of the board must know, such as a separable record; empty if nothing.
    """

    is_linear = True
    can_leave_out = True  # single comparisons, in closed form or by a Newton step
    is_in_context = False
    every = 1  # so many alphas of the grid are one that is tried
    stiffness = 1.0  # of alpha beside the curvature of a comparison
    logits: float | None = None
    ties: float | None = None
    theta = 0.0
    note = ""

    def __init__(
        self,
        tally: ComparisonCounts,
        X: Array | None = None,
        B: Array | None = None,
        ties: str = "half",
    ) -> None:
        self.tally, self.system = tally, RatingSystem(tally, X, B)
        is_alone = X is None and B is None
        self.components = tally.components if is_alone else np.ones(tally.n_items, np.intp)

    def choose_alpha(self) -> float:
        """The alpha that foresees comparisons best that are left out one at a time."""
        if self.system.size > EIGEN_LIMIT:
            raise ValueError(
                f'alpha="auto" is for at most {EIGEN_LIMIT:,} items or features, but there are '
                f"{self.system.size:,}; pass a number."
            )
        middle = middle_alpha(self.system)
        alphas = middle * RELATIVE[:: self.every]
        losses = self.held_out_losses(alphas)
        if self.system.has_prior:
            likelihoods = -len(self.tally.outcome) * losses
            return alpha_of_prior(alphas, likelihoods, middle / self.stiffness)
        return float(alphas[losses == np.nanmin(losses)].max())  # the largest of several

    def held_out_losses(self, alphas: Array) -> Array:
        """Mean of minus the log likelihood of normal noise of comparisons left out, for each."""
        errors = leave_one_out_errors(self.system, alphas)
        return np.asarray(0.5 * np.log(np.maximum(errors, 1e-300)))

    def solve(self, alpha: float) -> Self:
        """Ratings and effects from all comparisons."""
        self.alpha = alpha
        self.fit()
        self.ratings, self.effects = self.system.ratings_and_effects(self.unknowns)
        return self

    def fit(self, start: Array | None = None) -> Any:
        """Find the unknowns, here by one linear system; `start` is for what is iterated."""
        weights, flows = self.tally.sums
        solve = self.system.solver(weights, self.alpha * self.tally.total_weight)
        self.unknowns = solve(self.system.right(flows))

    def left_out(self) -> LeaveOneOut:
        """What becomes of the solution without some comparisons."""
        return LeaveOneOut(self.system, self.unknowns, self.alpha * self.tally.total_weight)

    def spread(self, clusters: Indices | None, thin: NDArray[np.bool_]) -> CovarianceRoot:
        """Errors of ratings and effects, by leaving out every comparison or cluster."""
        return jackknife_covariance(self.left_out(), clusters, thin)

    def margins(self) -> Array:
        """Of each distinct pair."""
        return self.system.margins(self.unknowns)

    def expected(self, margins: Array) -> Array:
        """Expected outcome for the first item: the margin itself."""
        return margins

    def variances(self, margins: Array) -> Array:
        """Variance of an outcome, up to a factor that all outcomes share."""
        return np.ones_like(margins)
