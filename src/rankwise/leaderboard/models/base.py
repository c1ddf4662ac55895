"""Interface of rating models."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.comparison_design import ComparisonDesign
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut
from rankwise.leaderboard.algebra.outcome_likelihood import OutcomeCurve
from rankwise.uncertainty.possible_ranks import CovarianceRoot


class RatingModel(Protocol):
    """A model of the outcomes of comparisons, with a rating for each item.

    The margin of a comparison is ``r_i − r_j + zᵀγ``. Ranks, tiers, scales, judges and head-to-head
    results of a board follow from the methods and attributes below. A new model implements them and
    is chosen in `rankwise.leaderboard.model_choice`.
    """

    @property
    def counts(self) -> ComparisonCounts:
        """The comparisons."""

    @property
    def components(self) -> Indices:
        """Items with the same number can be compared."""

    @property
    def alpha(self) -> float:
        """Regularization."""

    @property
    def unknowns(self) -> Array:
        """Solution of the system."""

    @property
    def ratings(self) -> Array:
        """Rating of each item; the mean of the reference items of each component is 0."""

    @property
    def effects(self) -> Array:
        """γ of the covariates."""

    @property
    def ties(self) -> float | None:
        """Parameter of the ties, if the model has one."""

    @property
    def note(self) -> str:
        """Remark for readers of the board, such as separable data; empty if there is none."""

    @property
    def system(self) -> ComparisonDesign:
        """Design matrix and unknowns."""

    @property
    def outcome_curve(self) -> OutcomeCurve | None:
        """Probabilities of win, tie and loss; None if ratings are not log odds."""

    def fit(self, alpha: float) -> Self:
        """Estimate ratings and effects from all comparisons."""

    def margins(self) -> Array:
        """Margin of each distinct pair."""

    def weights_of_unknowns(self, item_weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i, for unknowns u."""

    def expected(self, margins: Array) -> Array:
        """Expected outcome for the first item."""

    def variances(self, margins: Array) -> Array:
        """Variance of an outcome, up to a factor that is the same for all outcomes."""

    def leave_one_out(self) -> LeaveOneOut | None:
        """Least squares from which comparisons can be removed; None if there is none."""

    def covariance(
        self, clusters: Indices | None, has_few_data: NDArray[np.bool_]
    ) -> CovarianceRoot:
        """Covariance of ratings and effects.

        Parameters
        ----------
        clusters : ndarray of shape (n_comparisons,) or None
            Cluster of each comparison; None if comparisons are independent.
        has_few_data : ndarray of bool, shape (n_items,)
            Items with few comparisons, whose noise is at least the mean noise.
        """


class RemovableVotes(RatingModel, Protocol):
    """A rating model that can be refitted without some of its comparisons."""

    def leave_one_out(self) -> LeaveOneOut:
        """Least squares from which comparisons can be removed."""

    def refit(self, counts: ComparisonCounts) -> Self:
        """Return the model of other counts of the same comparisons, for the same λ."""


def comparable_components(
    counts: ComparisonCounts, X: Array | None, prior_ratings: Array | None
) -> Indices:
    """Component of each item; one component if features or priors rate all items."""
    # Features and priors make all items comparable.
    if X is None and prior_ratings is None:
        return counts.components
    return np.ones(counts.n_items, np.intp)
