"""Bradley and Terry's model: ratings are log odds of winning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices
from rankwise.errors import warn_user
from rankwise.estimators.rank_logistic import RankLogistic
from rankwise.inputs import check_option
from rankwise.leaderboard.jackknife import LeaveOut, LocalSpread
from rankwise.leaderboard.least_squares import LeastSquares, alpha_grid, best_alpha, trusted_alpha
from rankwise.leaderboard.likelihood import (
    VERDICTS,
    Fit,
    HalfWins,
    Verdicts,
    maximize_likelihood,
)
from rankwise.leaderboard.resampling import KeptMeans, Units
from rankwise.leaderboard.solving import RatingSystem, Solution
from rankwise.leaderboard.tally import Tally
from rankwise.machine import Progress
from rankwise.uncertainty.jackknife import COVARIANCE_LIMIT

EVERY = 2  # so many of the alphas of the grid are left out: each needs a fit


class BradleyTerry(LocalSpread):
    """``(1/W) Σ ω ℓ(r_i − r_j + zᵀγ) + α ‖r‖²``, ℓ being minus the log likelihood of a verdict.

    Item i beats j with the probability σ(r_i − r_j + zᵀγ) (Bradley and Terry, Rank analysis of
    incomplete block designs, 1952). Only who won counts, not by how much.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items; α ‖w‖² with r = X w then.
    ties : {"half", "davidson"}
        A tie is half a win each, or has a probability of its own with one more parameter: ν of
        Davidson 1970.
    n_free : int
        As in `RatingSystem`.
    """

    logits: float | None = 1.0
    can_leave_out = True  # single comparisons, by a Newton step

    def __init__(
        self, tally: Tally, X: Array | None = None, ties: str = "half", n_free: int = 0
    ) -> None:
        check_option("ties", ties, list(VERDICTS))
        if not np.isin(tally.target, (-1.0, 0.0, 1.0)).all():
            raise ValueError(
                "model='bradley-terry' takes wins, ties and losses, but the outcomes are margins; "
                "do without margin and magnitude, or use model='least-squares'."
            )
        self.tally = tally
        self.system = RatingSystem(tally, X, n_free)
        is_tie = tally.target == 0
        is_mixed = bool(is_tie.any() and not is_tie.all())  # else the parameter is at its limit
        self.verdicts: Verdicts = VERDICTS[ties]() if is_mixed else HalfWins()
        self._without_ties = None if ties == "half" or is_tie.all() else 0.0
        self.theta = 0.0

    def solve(self, alpha: float) -> Solution:
        """Newton's method."""
        fit = self.fit(alpha)
        self.theta = fit.theta
        (ratings,), (effects,) = self.system.unpacked(fit.unknowns[None])
        ties = float(np.exp(fit.theta)) if self.verdicts.has_parameter else self._without_ties
        return Solution(ratings, effects, ties, self._note(ratings, effects))

    def fit(self, alpha: float, **options: object) -> Fit:
        """What the solver found; a warning if it is not as exact as it should be."""
        best = maximize_likelihood(self.system, self.verdicts, alpha, **options)  # type: ignore[arg-type]
        if not best.is_done and "tol" not in options:
            warn_user(
                f"the Bradley–Terry ratings stopped after {best.n_iter} steps at a relative gap "
                f"of {best.gap:.1e}; a larger alpha makes them exact.",
                ConvergenceWarning,
            )
        return best

    def choose_alpha(self, rng: np.random.Generator) -> float:
        """The alpha of least log loss on comparisons left out one at a time, by a Newton step.

        Above 2,000 items a tenth of the comparisons is held out once.
        """
        alphas = alpha_grid(self.system)[::EVERY][::-1]
        is_large = self.system.X is None and self.system.size > COVARIANCE_LIMIT
        counts = self.tally.count
        if is_large:
            n = len(self.tally.outcome)
            chosen = rng.choice(n, n // 10, replace=False)
            out = np.bincount(self.tally.outcome[chosen], minlength=len(counts))
        losses, start = np.empty(len(alphas)), None
        for k, alpha in enumerate(alphas):
            kept = counts - out if is_large else counts
            start = fit = self.fit(float(alpha), start=start, count=kept)
            self.theta = fit.theta
            (ratings,), (effects,) = self.system.unpacked(fit.unknowns[None])
            if is_large:
                margins = self.tally.margins(ratings, effects)[self.tally.pair]
                losses[k] = self._log_loss(margins, fit.theta, out)
            else:
                solution = Solution(ratings, effects)
                losses[k] = self.held_out_log_loss(solution, float(alpha))
        if self.system.has_prior:
            return trusted_alpha(alphas, -len(self.tally.outcome) * losses)
        return best_alpha(alphas, losses)

    def local(self, solution: Solution, alpha: float) -> tuple[RatingSystem, float]:
        """Least squares with the same solution and the same curvature there, and their alpha.

        The weights are ω ℓ''(m), the targets m − ℓ'(m)/ℓ''(m). What they say without a comparison
        or a cluster is one Newton step, with θ as it is.
        """
        tally = self.tally
        margins = tally.margins(solution.ratings, solution.effects)[tally.pair]
        derivatives = self.verdicts.at(margins, tally.target, self.theta)
        bend = np.maximum(derivatives.mm, 1e-300)
        working = replace(tally, weight=tally.weight * bend, target=margins - derivatives.m / bend)
        shift = 2 * alpha * tally.total_weight / working.total_weight
        return self.system.of(working), shift

    def resample(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        n_resamples: int,
        rng: np.random.Generator,
    ) -> Solution:
        """A fit for each resample, started from the solution of all comparisons."""
        tally, units = self.tally, Units(self.tally, clusters)
        to_outcomes = sp.identity(len(tally.count), format="csr")
        if clusters is not None:
            ones = np.ones(len(clusters))
            to_outcomes = sp.coo_matrix((ones, (clusters, tally.outcome))).tocsr()
        start = self.fit(alpha)
        means = None if self.system.X is not None else KeptMeans(solution.ratings, tally.components)
        ratings = np.empty((n_resamples, tally.n_items))
        effects = np.empty((n_resamples, tally.n_covariates))
        meter = Progress("bootstrap", n_resamples)
        for k in range(n_resamples):
            count = to_outcomes.T @ units.draw(1, rng)[0]
            fit = self.fit(alpha, start=start, count=count)
            (sample,), (effects[k],) = self.system.unpacked(fit.unknowns[None])
            if means is not None:
                present = tally.degrees(tally.by_pair(count.astype(np.float64))) > 0
                sample = means.keep(sample[None], present[None])[0]
            ratings[k] = sample
            meter.update(k + 1)
        meter.close()
        return Solution(ratings, effects)

    def margins(self, solution: Solution) -> Array:
        """Of each distinct pair."""
        return self.tally.margins(solution.ratings, solution.effects)

    def expected(self, margins: Array) -> Array:
        """Probability that the first item wins less that it loses."""
        chances = self.verdicts.probabilities(margins, self.theta)
        return np.asarray(chances[..., 0] - chances[..., 2])

    def margin_effects(self, solution: Solution, alpha: float) -> Array:
        """The effects in the unit of the outcomes, as least squares has them."""
        if not self.tally.n_covariates:
            return solution.effects
        return LeastSquares(self.tally, self.system.X).solve(alpha).effects

    def learner(self, features: Any, solution: Solution, alpha: float) -> RankLogistic:
        """RankLogistic on the features; with covariates it has the weights of the board."""
        tally = self.tally
        model: RankLogistic = RankLogistic(alpha).fit(features, tally.graph())
        if tally.n_covariates:
            X = np.asarray(features, dtype=np.float64)
            model.coef_ = np.linalg.lstsq(X - X.mean(axis=0), solution.ratings, rcond=None)[0]
        return model

    def held_out_log_loss(self, solution: Solution, alpha: float) -> float:
        """Mean log loss of the comparisons, each by a Newton step without it."""
        return self._log_loss(*self._without_each(solution, alpha), self.tally.count)

    def _without_each(self, solution: Solution, alpha: float) -> tuple[Array, Array]:
        """Margin and θ for each outcome without one comparison of it, by a Newton step.

        With 𝒜 the Hessian in all unknowns and θ, E the columns [x, 0] and [0, 1], and g and M the
        slope and the curvature of the comparison in (m, θ), it moves (m, θ) by ``(I − R M)⁻¹ R g``,
        with ``R = Eᵀ 𝒜⁻¹ E``.
        """
        system, shift = self.local(solution, alpha)
        tally = system.tally
        exact = LeaveOut(system, solution, shift * tally.total_weight)
        m, own = exact.margins[tally.pair], self.tally.weight
        derivatives = self.verdicts.at(m, self.tally.target, self.theta)
        R = np.zeros((len(m), 2, 2))
        R[:, 0, 0] = exact.resistances[tally.pair]
        if self.verdicts.has_parameter:
            weight = self.tally.count * own
            cross = system.right(tally.by_pair(weight * derivatives.mt)[None])[0]
            carried = exact.inverse @ cross
            left = float(weight @ derivatives.tt - cross @ carried)
            (ratings,), (effects,) = system.unpacked(carried[None])
            along = tally.margins(ratings, effects)[tally.pair]
            R[:, 0, 0] += along**2 / left
            R[:, 0, 1] = R[:, 1, 0] = -along / left
            R[:, 1, 1] = 1 / left
        slope = own[:, None] * np.stack([derivatives.m, derivatives.t], axis=1)
        bend = own * np.array([[derivatives.mm, derivatives.mt], [derivatives.mt, derivatives.tt]])
        inner = np.eye(2) - R @ bend.transpose(2, 0, 1)
        moved = np.linalg.solve(inner, R @ slope[:, :, None])[:, :, 0]
        return m + moved[:, 0], self.theta + moved[:, 1]

    def _log_loss(self, margins: Array, theta: Array | float, count: Array | Indices) -> float:
        weight = count * self.tally.weight
        derivatives = self.verdicts.at(margins, self.tally.target, theta)
        return float(weight @ derivatives.value / weight.sum())

    def _note(self, ratings: Array, effects: Array) -> str:
        """Which ratings only alpha keeps finite (Ford, Solution of a ranking problem, 1957)."""
        tally = self.tally
        margins = tally.margins(ratings, effects)[tally.pair]
        if (margins * tally.target > 0).all():
            return (
                "the ratings explain every comparison, so that their size depends on alpha alone; "
                "the order holds, probabilities do not"
            )
        if self.system.X is not None:
            return ""
        n_apart = self._n_apart()
        if not n_apart:
            return ""
        return (
            f"{n_apart} of {tally.n_items} items only won or only lost against the others, as "
            "far as comparisons lead: only alpha keeps their ratings finite"
        )

    def _n_apart(self) -> int:
        """Items outside the largest set in which everybody has beaten everybody, by way of others.

        A tie is half a win of both. Of every component of the comparisons the largest set counts.
        """
        tally, n = self.tally, self.tally.n_items
        first, second = tally.first[tally.pair], tally.second[tally.pair]
        won, lost = tally.target >= 0, tally.target <= 0
        source, target = np.r_[first[won], second[lost]], np.r_[second[won], first[lost]]
        beaten = sp.coo_matrix((np.ones(len(source)), (source, target)), shape=(n, n)).tocsr()
        strong = connected_components(beaten, connection="strong")[1]
        sizes, component = np.bincount(strong), np.zeros(strong.max() + 1, np.intp)
        component[strong] = tally.components - 1
        largest = np.zeros(component.max() + 1, np.intp)
        np.maximum.at(largest, component, sizes)
        return int(n - largest.sum())
