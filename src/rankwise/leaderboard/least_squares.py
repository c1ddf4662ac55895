"""The least-squares model: ratings whose differences are the margins to expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import eigh

from rankwise.arrays import Array, Indices
from rankwise.estimators.rank_rls import RankRLS
from rankwise.leaderboard.jackknife import LocalSpread
from rankwise.leaderboard.resampling import KeptMeans, Units, resample
from rankwise.leaderboard.solving import RatingSystem, Solution
from rankwise.leaderboard.tally import Tally

EIGEN_LIMIT = 3000  # items or features; with more, ten folds of comparisons are held out
RELATIVE = np.logspace(-5, 3, 33)  # alphas, from almost no regularization to a very strong one
LEAST_TRUST = 3e-3  # of a prior; below, its variance would be any number
BLOCK = 2**22  # numbers


class LeastSquares(LocalSpread):
    """``(1/W) Σ ω (δ − (r_i − r_j + zᵀγ))² + α ‖r‖²``; with features α ‖w‖² and r = X w.

    A model of the outcomes of a `Tally` has these methods. The margin of a comparison is
    ``r_i − r_j + zᵀγ``. The rest of the board (ranks, tiers, scales, judges, head-to-head results)
    follows from what they return.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items.
    ties : str
        Must be "half": a tie is the margin 0, between a win and a loss.
    n_free : int
        As in `RatingSystem`.

    Attributes
    ----------
    logits : float or None
        Logits in one unit of a rating; None if the outcomes are not wins, ties and losses.
    """

    can_leave_out = True  # single comparisons, in closed form

    def __init__(
        self, tally: Tally, X: Array | None = None, ties: str = "half", n_free: int = 0
    ) -> None:
        if ties != "half":
            raise ValueError(
                f"ties={ties!r} is for model='bradley-terry'; least squares takes a tie as half a "
                "win (ties='half')."
            )
        self.tally = tally
        self.system = RatingSystem(tally, X, n_free)
        is_verdict = bool(np.isin(tally.target, [-1.0, 0.0, 1.0]).all())
        self.logits = 2.0 if is_verdict else None  # 2σ(x) − 1 is x/2 near 0

    def choose_alpha(self, rng: np.random.Generator) -> float:
        """The alpha of least squared error on comparisons left out one at a time, or in folds."""
        alphas = alpha_grid(self.system)
        if self.system.size > EIGEN_LIMIT:
            return best_alpha(alphas, tenfold_errors(self.system, alphas, rng))
        errors = leave_one_out_errors(self.system, alphas)
        if self.system.has_prior:
            return trusted_alpha(alphas, -len(self.tally.outcome) / 2 * np.log(errors))
        return best_alpha(alphas, errors)

    def solve(self, alpha: float) -> Solution:
        """Ratings and effects from all comparisons: one linear system."""
        weights, flows = self.tally.sums
        (ratings,), (effects,) = self.system.solve(weights[None], flows[None], alpha)
        if self.system.X is None:  # the mean is 0 but for rounding, which a tiny alpha makes large
            ratings = self.tally.centered(ratings)
        return Solution(ratings, effects)

    def local(self, solution: Solution, alpha: float) -> tuple[RatingSystem, float]:
        """The least squares that have this solution, and their alpha: these themselves."""
        return self.system, alpha

    def resample(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        n_resamples: int,
        rng: np.random.Generator,
    ) -> Solution:
        """Ratings and effects of bootstrap resamples: each is a weighting of the same pairs."""
        has_features = self.system.X is not None
        means = None if has_features else KeptMeans(solution.ratings, self.tally.components)
        return resample(self.system, Units(self.tally, clusters), alpha, n_resamples, rng, means)

    def margin_effects(self, solution: Solution, alpha: float) -> Array:
        """The effects in the unit of the outcomes."""
        return solution.effects

    def learner(self, features: Any, solution: Solution, alpha: float) -> RankRLS:
        """A fitted RankRLS that rates other items by their features.

        The effects of covariates are taken from the outcomes.
        """
        return RankRLS(alpha).fit(features, self.tally.controlled(solution.effects).graph())

    def margins(self, solution: Solution) -> Array:
        """Of each distinct pair."""
        return self.tally.margins(solution.ratings, solution.effects)

    def expected(self, margins: Array) -> Array:
        """Expected outcome for the first item: the margin itself."""
        return margins


def best_alpha(alphas: Array, errors: Array) -> float:
    """The alpha of least error; the largest if several have it."""
    return float(alphas[errors == np.nanmin(errors)].max())


def trusted_alpha(alphas: Array, log_likelihoods: Array) -> float:
    """The alpha by which a prior is trusted, from how well each foresees votes left out.

    u has the variance s² ∝ 1/α, and its mean is taken over the likelihoods with a density of s that
    rises with s (Chung and others, A nondegenerate penalized likelihood estimator, 2013). The alpha
    of the best likelihood would often be infinite for few votes: the prior would be taken for the
    truth, and the intervals would miss it.
    """
    weights = log_likelihoods - np.log(alphas)
    weights = np.exp(weights - weights.max())
    return float(weights.sum() / (weights @ (1 / alphas)))


def alpha_grid(system: RatingSystem) -> Array:
    """λ from 1e-5 to 1e3 times the mean eigenvalue of ``Xᵀ L X``."""
    tally, X = system.tally, system.X
    weights, _ = tally.sums
    relative = RELATIVE
    if X is None:
        mean = 2 * weights.sum() / tally.n_items
    elif system.has_prior:
        mean = 2 * weights.sum() / tally.n_items
        relative = RELATIVE[RELATIVE > LEAST_TRUST]
    else:
        mean = float(weights @ (tally.differences(X) ** 2).sum(axis=1)) / system.n_features
    return np.asarray(relative * mean / tally.total_weight)


def leave_one_out_errors(system: RatingSystem, alphas: Array) -> Array:
    """Weighted mean square of δ − (r_i − r_j), r trained without that comparison; exact.

    With x = x_i − x_j and A = Xᵀ L X + λI the residual of a comparison that is left out is
    ``e / (1 − ω xᵀ A⁻¹ x)``. The λ of that fold is α (W − ω), as in a rating
    that is trained on the rest. One eigendecomposition serves all comparisons. Covariates are
    taken out first, by a Schur complement: their part of the leverage does not depend on λ.
    """
    tally, p = system.tally, system.n_regularized
    weights, flows = tally.sums
    gram, right = system.gram(weights[None])[0], system.right(flows[None])[0]
    inner = gram[p:, p:] + np.diag(system.penalty(0.0)[p:])
    onto = np.linalg.solve(inner, np.column_stack([gram[p:, :p], right[p:]]))  # covariates' share
    values, vectors = eigh(gram[:p, :p] - gram[:p, p:] @ onto[:, :-1])
    values = np.maximum(values, 0.0)
    Y = vectors if system.X is None else system.X[:, :p] @ vectors
    right = vectors.T @ (right[:p] - gram[:p, p:] @ onto[:, -1])
    onto = np.column_stack([onto[:, :-1] @ vectors, onto[:, -1]])
    sums = np.zeros(len(alphas))
    for outcomes in _outcomes_of_one_weight(tally, len(values)):
        omega, z = tally.weight[outcomes[0]], system.free_rows(tally.pair[outcomes])
        scale = 1 / (values[:, None] + alphas * (tally.total_weight - omega))
        pairs = tally.pair[outcomes]
        x = Y[tally.first[pairs]] - Y[tally.second[pairs]] - z @ onto[:, :-1]
        residual = (tally.target[outcomes] - z @ onto[:, -1])[:, None] - x @ (
            scale * right[:, None]
        )
        own = np.einsum("ij,ij->i", z, np.linalg.solve(inner, z.T).T)[:, None]
        held_out = residual / (1 - omega * (own + x**2 @ scale))
        sums += omega * (tally.count[outcomes] @ held_out**2)
    return np.asarray(sums / tally.total_weight)


def _outcomes_of_one_weight(tally: Tally, n_columns: int) -> Iterator[Indices]:
    """All outcomes in blocks that fit the cache and have the same weight."""
    order = np.argsort(tally.weight, kind="stable")
    changes = 1 + np.flatnonzero(np.diff(tally.weight[order]))
    size = max(1, BLOCK // n_columns)
    for same in np.split(order, changes):
        for start in range(0, len(same), size):
            yield same[start : start + size]


def tenfold_errors(
    system: RatingSystem, alphas: Array, rng: np.random.Generator, n_folds: int = 10
) -> Array:
    """The same by ten folds of the comparisons, for more items than can be decomposed."""
    tally = system.tally
    fold = rng.permutation(len(tally.outcome)) % n_folds
    sums = np.zeros(len(alphas))
    for k in range(n_folds):
        held_out = np.bincount(tally.outcome[fold == k], minlength=len(tally.count))
        weights, flows = tally.pair_sums(tally.count - held_out)
        outcomes = np.flatnonzero(held_out)
        pairs = tally.pair[outcomes]
        for at, alpha in enumerate(alphas):
            (ratings,), (effects,) = system.solve(weights[None], flows[None], float(alpha))
            margin = tally.margins(ratings, effects)[pairs]
            square = (tally.target[outcomes] - margin) ** 2
            sums[at] += (held_out * tally.weight)[outcomes] @ square
    return np.asarray(sums / tally.total_weight)
