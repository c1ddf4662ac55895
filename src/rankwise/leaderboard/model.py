"""What a model of comparisons must do to make a board."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.solving import Solutions
from rankwise.leaderboard.tally import Tally
from rankwise.uncertainty.jackknife import Spread


class Solution(NamedTuple):
    """Ratings and effects of the covariates in the natural scale of a model.

    Attributes
    ----------
    ratings : ndarray of shape (n_items,)
        Their mean is 0 in each component.
    effects : ndarray of shape (n_covariates,)
        γ of the columns of the tally.
    ties : float or None
        The parameter of the ties, if the model has one.
    note : str
        What a reader of the board must know, such as a separable record; empty if nothing.
    """

    ratings: Array
    effects: Array
    ties: float | None = None
    note: str = ""


class RatingModel(Protocol):
    """A model of the outcomes of a `Tally`, made from it and from the features of the items.

    The margin of a comparison is ``r_i − r_j + zᵀγ``. The rest of the board (ranks, tiers, scales,
    judges, head-to-head results) follows from what the methods return.

    Attributes
    ----------
    tally : Tally
        The comparisons, as the model looks at them.
    logits : float or None
        Logits in one unit of a rating; None if the outcomes are not wins, ties and losses.
    """

    tally: Tally
    logits: float | None

    def choose_alpha(self, rng: np.random.Generator) -> float:
        """The alpha with the least loss on comparisons left out one at a time."""

    def solve(self, alpha: float) -> Solution:
        """Ratings and effects from all comparisons."""

    def jackknife(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        thin: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> Spread:
        """Their covariance from leaving out each comparison, or each cluster.

        Few comparisons that happen to agree must not look exact: those of the `thin` items are at
        least as noisy as the average.
        """

    def resample(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        n_resamples: int,
        rng: np.random.Generator,
    ) -> Solutions:
        """Ratings and effects of bootstrap resamples."""

    def held_out_margins(
        self, solution: Solution, alpha: float, clusters: Indices
    ) -> tuple[Array, str]:
        """Margin of every comparison without its own cluster, and a note if that is not so."""

    def in_margins(self, solution: Solution, alpha: float) -> tuple[Array, Array]:
        """Expected outcome of each distinct pair, and the effects in the unit of the outcomes."""

    def learner(self, features: Any, solution: Solution, alpha: float) -> Any:
        """A fitted estimator that rates other items by their features."""

    def expected(self, margins: Array) -> Array:
        """Expected outcome for the first item: wins less losses, or the margin itself."""
