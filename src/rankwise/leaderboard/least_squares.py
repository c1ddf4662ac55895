"""The least-squares model: ratings whose differences are the margins to expect."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.estimators import RankRLS
from rankwise.leaderboard.choosing_alpha import (
    EIGEN_LIMIT,
    alpha_grid,
    leave_one_out_errors,
    tenfold_errors,
)
from rankwise.leaderboard.jackknife import LeaveOut, jackknife
from rankwise.leaderboard.model import Solution
from rankwise.leaderboard.resampling import KeptMeans, resample
from rankwise.leaderboard.solving import RatingSystem, Solutions
from rankwise.leaderboard.tally import Tally
from rankwise.leaderboard.units import Units
from rankwise.uncertainty.jackknife import COVARIANCE_LIMIT, Spread


class LeastSquares:
    """``(1/W) Σ ω (δ − (r_i − r_j + zᵀγ))² + α ‖r‖²``; with features α ‖w‖² and r = X w.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items.
    ties : str
        Must be "half": a tie is the margin 0, between a win and a loss.
    """

    def __init__(self, tally: Tally, X: Array | None = None, ties: str = "half") -> None:
        if ties != "half":
            raise ValueError(
                f"ties={ties!r} is for model='bradley-terry'; least squares takes a tie as half a "
                "win (ties='half')."
            )
        self.tally = tally
        self.system = RatingSystem(tally, X)
        is_verdict = bool(np.isin(tally.target, [-1.0, 0.0, 1.0]).all())
        self.logits = 2.0 if is_verdict else None  # 2σ(x) − 1 is x/2 near 0

    def choose_alpha(self, rng: np.random.Generator) -> float:
        """The alpha of least squared error on comparisons left out one at a time, or in folds."""
        alphas = alpha_grid(self.system)
        if self.system.size > EIGEN_LIMIT:
            return tenfold_errors(self.system, alphas, rng).best
        return leave_one_out_errors(self.system, alphas).best

    def solve(self, alpha: float) -> Solution:
        """One linear system."""
        weights, flows = self.tally.sums
        found = self.system.solve(weights[None], flows[None], alpha)
        (ratings,), (effects,) = found
        if self.system.X is None:  # the mean is 0 but for rounding, which a tiny alpha makes large
            ratings = self.tally.centered(ratings)
        return Solution(ratings, effects)

    def jackknife(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        thin: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> Spread:
        """Exact up to 2,000 items or with features, else estimated from draws."""
        at = Solutions(solution.ratings, solution.effects)
        return jackknife(self.system, at, alpha, clusters, rng, thin)

    def resample(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        n_resamples: int,
        rng: np.random.Generator,
    ) -> Solutions:
        """Each resample is a weighting of the same pairs."""
        has_features = self.system.X is not None
        means = None if has_features else KeptMeans(solution.ratings, self.tally.components)
        return resample(self.system, Units(self.tally, clusters), alpha, n_resamples, rng, means)

    def held_out_margins(
        self, solution: Solution, alpha: float, clusters: Indices
    ) -> tuple[Array, str]:
        """By Woodbury's formula; above 2,000 items with the cluster in, as the note says."""
        tally, system = self.tally, self.system
        margins = tally.margins(solution.ratings, solution.effects)
        of = tally.pair[tally.outcome]
        if system.X is None and system.size > COVARIANCE_LIMIT:
            return margins[of], "judges are compared with ratings with their own votes in"
        at = Solutions(solution.ratings, solution.effects)
        exact = LeaveOut(system, at, alpha * tally.total_weight)
        units, found = Units(tally, clusters), margins[of]
        order = np.argsort(clusters, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(clusters))[:-1]):
            change = exact.change(*units.of(int(clusters[rows[0]])))
            (ratings,), (effects,) = system.unpacked(change[None])
            pairs = of[rows]
            found[rows] -= ratings[tally.first[pairs]] - ratings[tally.second[pairs]]
            found[rows] -= tally.covariates[pairs] @ effects
        return found, ""

    def in_margins(self, solution: Solution, alpha: float) -> tuple[Array, Array]:
        """Margins of the distinct pairs, and the effects, as they are."""
        return self.tally.margins(solution.ratings, solution.effects), solution.effects

    def learner(self, features: Any, solution: Solution, alpha: float) -> RankRLS:
        """RankRLS on the features; the effects of covariates are taken from the outcomes."""
        return RankRLS(alpha).fit(features, self.tally.controlled(solution.effects).graph())

    def expected(self, margins: Array) -> Array:
        """The margin itself."""
        return margins
