"""Arguments of `rate` that a board is made of."""

from __future__ import annotations

from dataclasses import dataclass

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.board_types import Label
from rankwise.leaderboard.covariates import Covariates
from rankwise.leaderboard.models.rating_terms import PriorScales
from rankwise.leaderboard.prior import Priors
from rankwise.leaderboard.rating_scale import RatingScale


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """Arguments of `rate` that determine the ratings, in addition to the comparisons.

    Attributes
    ----------
    model : str
        Name of the model.
    covariates : Covariates
        Columns of the covariates, including the advantage of the first side.
    side : bool
        Whether the first side may have an advantage.
    ties : {"half", "davidson"}
        Model of the ties.
    alpha : float, "auto" or None
        Regularization.
    scales : PriorScales or None
        Standard deviations of the terms of a rating that depends on time or context.
    half_life : float or None
        Half-life of rating changes.
    features : ndarray of shape (n_items, n_features) or None
        Features of the items.
    clusters : ndarray of shape (n_comparisons,) or None
        Cluster of each comparison, from the arguments or the data.
    has_cluster_argument : bool
        Whether the clusters were passed to `rate`.
    priors : Priors or None
        Prior ratings.
    """

    model: str
    covariates: Covariates
    side: bool
    ties: str
    alpha: float | str | None
    scales: PriorScales | None
    half_life: float | None
    features: Array | None
    clusters: Indices | None
    has_cluster_argument: bool
    priors: Priors | None


@dataclass(frozen=True, eq=False)
class Presentation:
    """Arguments of `rate` that determine what a board shows.

    Attributes
    ----------
    scale : RatingScale
        Unit of the ratings, and the anchor.
    anchor : str, int or None
        Label of the anchor.
    order : {"rating", "lower"}
        Sort by the rating, or by the lower end of its interval.
    min_comparisons : int
        Items with fewer comparisons have no rank.
    confidence : float
        Confidence of the intervals.
    has_intervals : bool
        Whether ratings have intervals.
    """

    scale: RatingScale
    anchor: Label | None
    order: str
    min_comparisons: int
    confidence: float
    has_intervals: bool
