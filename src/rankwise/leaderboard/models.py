"""Models of the outcomes: least squares, Bradley and Terry's, Plackett and Luce's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices
from rankwise.datasets.pair_data import Rankings
from rankwise.errors import warn_user
from rankwise.estimators.margin import RankLogistic
from rankwise.estimators.rank_rls import RankRLS
from rankwise.graphs import ScoreGraph
from rankwise.leaderboard.covariates import Covariates
from rankwise.leaderboard.jackknife import LeaveOut, jackknife, root_of
from rankwise.leaderboard.likelihood import (
    TOLERANCE,
    Fit,
    PairLikelihood,
    Point,
    Verdicts,
    newton,
)
from rankwise.leaderboard.solving import (
    RatingSystem,
    Solution,
    alpha_grid,
    best_alpha,
    ground,
    leave_one_out_errors,
    tenfold_errors,
    trusted_alpha,
)
from rankwise.leaderboard.tally import Tally
from rankwise.losses import PlackettLuceLoss
from rankwise.machine import check_matrix_fits, track
from rankwise.uncertainty.jackknife import Spread

EIGEN_LIMIT = 3000  # items or features; with more, ten folds of comparisons are held out
EVERY = 2  # so many of the alphas of the grid are left out: each needs a fit
DRAWS_A_BINOMIAL = 20  # one binomial number costs as much as so many draws
GAP = 1e-13  # of rankings, relative to the objective


class Solved(NamedTuple):
    """A model of the outcomes that has been solved; a board keeps it for what is asked later.

    Attributes
    ----------
    control : Covariates
        What the columns of covariates mean.
    tally : Tally
        The comparisons.
    model : LeastSquares
        That, or a class made from it.
    alpha : float
        Regularization.
    solution : Solution
        Ratings and effects.
    components : ndarray of shape (n_items,)
        Which items can be compared.
    """

    control: Covariates
    tally: Tally
    model: Any
    alpha: float
    solution: Solution
    components: Indices

    def left_out(self) -> LeaveOut:
        """What becomes of the solution without some comparisons."""
        exact: LeaveOut = self.model.left_out(self.solution, self.alpha)
        return exact

    def expected(self) -> Array:
        """The outcome that ratings and effects let expect, of each distinct pair."""
        margins = self.model.margins(self.solution)
        return np.asarray(self.model.expected(margins, self.solution.theta))


class LeastSquares:
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
    B : ndarray of shape (n_items, n_free), optional
        A prior, as in `RatingSystem`.
    ties : {"half", "davidson"}
        Least squares take a tie as the margin 0, between a win and a loss.

    Attributes
    ----------
    logits : float or None
        Logits in one unit of a rating; None if the outcomes are not wins, ties and losses.
    """

    is_linear = True
    can_leave_out = True  # single comparisons, in closed form or by a Newton step

    def __init__(
        self, tally: Tally, X: Array | None = None, B: Array | None = None, ties: str = "half"
    ) -> None:
        self.tally, self.B, self.system = tally, B, RatingSystem(tally, X, B)
        is_verdict = bool(np.isin(tally.target, [-1.0, 0.0, 1.0]).all())
        self.logits: float | None = 2.0 if is_verdict else None  # 2σ(x) − 1 is x/2 near 0

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
        """Ratings and effects from all comparisons."""
        unknowns = self.fit(alpha).unknowns
        return Solution(unknowns, *self.system.ratings_and_effects(unknowns))

    def fit(self, alpha: float, *, count: Indices | None = None, start: Fit | None = None) -> Fit:
        """Solve one linear system, for other counts of the outcomes if they are given."""
        weights, flows = self.tally.sums if count is None else self.tally.pair_sums(count)
        solve = self.system.solver(weights, alpha * float(weights.sum()))
        return Fit(solve(self.system.right(flows)), 0.0, 0.0, 0.0, 0)

    def local(self, solution: Solution | Fit, alpha: float) -> tuple[RatingSystem, float]:
        """The least squares that have this solution and curvature, and their alpha: these."""
        return self.system, alpha

    def left_out(self, solution: Solution | Fit, alpha: float) -> LeaveOut:
        """What becomes of the solution without some comparisons."""
        system, alpha = self.local(solution, alpha)
        return LeaveOut(system, solution.unknowns, alpha * system.tally.total_weight)

    def spread(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        rng: np.random.Generator,
        thin: NDArray[np.bool_],
    ) -> Spread:
        """Errors of ratings and effects, by leaving out every comparison or cluster."""
        system, alpha = self.local(solution, alpha)
        return jackknife(system, solution.unknowns, alpha, clusters, rng, thin)

    def resample(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        n_resamples: int,
        rng: np.random.Generator,
    ) -> tuple[Array, Array]:
        """Ratings and effects of bootstrap resamples: each is a weighting of the same pairs.

        Comparisons determine ratings up to a constant, which makes their mean 0. If weak items are
        missing in a resample, the others have mean 0 there, but a higher mean on the board. So the
        items in the resample are shifted to the mean that they have on the board, and the missing
        ones get 0.
        """
        tally, members = self.tally, self.tally.components
        sizes = tally.count if clusters is None else np.ones(clusters.max() + 1, np.intp)
        ratings = np.empty((n_resamples, tally.n_items))
        effects = np.empty((n_resamples, tally.n_covariates))
        start = self.fit(alpha)
        for k in track(range(n_resamples), "bootstrap"):
            count = draw_units(sizes, rng)
            if clusters is not None:
                count = np.bincount(tally.outcome, count[clusters], len(tally.count))
            drawn = self.fit(alpha, count=count, start=start)
            ratings[k], effects[k] = self.system.ratings_and_effects(drawn.unknowns)
            if self.system.X is None:
                at, there = tally.pair[count > 0], np.zeros(tally.n_items, bool)
                there[tally.first[at]] = there[tally.second[at]] = True
                missing = np.bincount(members, there * (solution.ratings - ratings[k]))
                shift = missing / np.maximum(1, np.bincount(members, there))
                ratings[k] = np.where(there, ratings[k] + shift[members], 0.0)
        return ratings, effects

    def margins(self, solution: Solution | Fit) -> Array:
        """Of each distinct pair."""
        return self.system.margins(solution.unknowns)

    def expected(self, margins: Array, theta: float) -> Array:
        """Expected outcome for the first item: the margin itself."""
        return margins

    def margin_effects(self, solution: Solution, alpha: float) -> Array:
        """The effects in the unit of the outcomes."""
        return solution.effects

    def learner(self, features: Any, solution: Solution, alpha: float) -> Any:
        """A fitted RankRLS that rates other items by their features.

        The effects of covariates are taken from the outcomes.
        """
        return RankRLS(alpha).fit(features, self.tally.comparisons(solution.effects).graph())


def draw_units(sizes: Indices, rng: np.random.Generator) -> Indices:
    """How often each unit is drawn if as many are drawn as there are; `sizes` are like ones."""
    n_units, n_draws = len(sizes), int(sizes.sum())
    if DRAWS_A_BINOMIAL * n_units < n_draws:
        return np.asarray(rng.multinomial(n_draws, sizes / n_draws))
    unit = np.repeat(np.arange(n_units), sizes)
    return np.bincount(unit[rng.integers(n_draws, size=n_draws)], minlength=n_units)


class BradleyTerry(LeastSquares):
    """``(1/W) Σ ω ℓ(r_i − r_j + zᵀγ) + α ‖r‖²``, ℓ being minus the log likelihood of a verdict.

    Item i beats j with the probability σ(r_i − r_j + zᵀγ) (Bradley and Terry, Rank analysis of
    incomplete block designs, 1952). Only who won counts, not by how much. A tie is half a win each,
    or has a probability of its own with one more parameter: ν of Davidson 1970. Parameters as in
    `LeastSquares`.
    """

    is_linear = False

    def __init__(
        self, tally: Tally, X: Array | None = None, B: Array | None = None, ties: str = "half"
    ) -> None:
        super().__init__(tally, X, B)
        if self.logits is None:
            raise ValueError(
                "model='bradley-terry' takes wins, ties and losses, but the outcomes are margins; "
                "do without margin and magnitude, or use model='least-squares'."
            )
        self.logits = 1.0
        is_tie = tally.target == 0
        is_mixed = bool(is_tie.any() and not is_tie.all())  # else the parameter is at its limit
        self.verdicts = Verdicts(ties == "davidson" and is_mixed)
        self._without_ties = None if ties == "half" or is_tie.all() else 0.0

    def solve(self, alpha: float) -> Solution:
        """Newton's method."""
        fit = self.fit(alpha)
        ratings, effects = self.system.ratings_and_effects(fit.unknowns)
        note = self._note(fit.unknowns)
        return Solution(fit.unknowns, ratings, effects, fit.theta, self.ties_of(fit), note)

    def ties_of(self, fit: Fit) -> float | None:
        """The parameter of the ties."""
        return float(np.exp(fit.theta)) if self.verdicts.has_parameter else self._without_ties

    def fit(
        self,
        alpha: float,
        *,
        count: Indices | None = None,
        start: Fit | None = None,
        tol: float = TOLERANCE,
    ) -> Fit:
        """What Newton's method found; a warning if it is not as exact as it should be.

        Parameters
        ----------
        alpha : float
            Regularization.
        count : ndarray of shape (n_outcomes,), optional
            How often each outcome was there, instead of the counts of the tally.
        start : Fit, optional
            Where to begin; zero, and what the share of ties says, if not given.
        tol : float
            Of the gap, relative to the objective.
        """
        problem = PairLikelihood(self.system, self.verdicts, alpha, count)
        first = problem.start() if start is None else np.r_[start.unknowns, start.theta]
        point, gap, n_iter = newton(problem, first, tol)
        if gap > 1e5 * max(tol, TOLERANCE):
            warn_user(
                f"the Bradley–Terry ratings stopped after {n_iter} steps at a relative gap "
                f"of {gap:.1e}; a larger alpha makes them exact.",
                ConvergenceWarning,
            )
        return Fit(point.unknowns[:-1], float(point.unknowns[-1]), point.value, gap, n_iter)

    def choose_alpha(self, rng: np.random.Generator) -> float:
        """The alpha of least log loss on comparisons left out one at a time, by a Newton step.

        Above 2,000 items a tenth of the comparisons is held out once.
        """
        alphas = alpha_grid(self.system)[::EVERY][::-1]
        counts, out = self.tally.count, np.zeros_like(self.tally.count)
        if self.system.is_huge:
            n = len(self.tally.outcome)
            chosen = rng.choice(n, n // 10, replace=False)
            out = np.bincount(self.tally.outcome[chosen], minlength=len(counts))
        losses, start = np.empty(len(alphas)), None
        for k, alpha in enumerate(alphas):
            start = fit = self.fit(float(alpha), start=start, count=counts - out)
            if self.system.is_huge:
                margins = self.system.margins(fit.unknowns)[self.tally.pair]
                losses[k] = self._log_loss(margins, fit.theta, out)
            else:
                losses[k] = self.held_out_log_loss(fit, float(alpha))
        if self.system.has_prior:
            return trusted_alpha(alphas, -len(self.tally.outcome) * losses)
        return best_alpha(alphas, losses)

    def local(self, solution: Solution | Fit, alpha: float) -> tuple[RatingSystem, float]:
        """Least squares with the same solution and the same curvature there, and their alpha.

        The weights are ω ℓ''(m), the targets m − ℓ'(m)/ℓ''(m). What they say without a comparison
        or a cluster is one Newton step, with θ as it is.
        """
        tally, margins = self.tally, self.margins(solution)[self.tally.pair]
        derivatives = self.verdicts.at(margins, tally.target, solution.theta)
        bend = np.maximum(derivatives.mm, 1e-300)
        working = replace(tally, weight=tally.weight * bend, target=margins - derivatives.m / bend)
        shift = 2 * alpha * tally.total_weight / working.total_weight
        return self.system.of(working), shift

    def expected(self, margins: Array, theta: float) -> Array:
        """Probability that the first item wins less that it loses."""
        chances = self.verdicts.probabilities(margins, theta)
        return np.asarray(chances[..., 0] - chances[..., 2])

    def margin_effects(self, solution: Solution, alpha: float) -> Array:
        """The effects in the unit of the outcomes, as least squares has them."""
        if not self.tally.n_covariates:
            return solution.effects
        return LeastSquares(self.tally, self.system.X, self.B).solve(alpha).effects

    def learner(self, features: Any, solution: Solution, alpha: float) -> Any:
        """RankLogistic on the features; with covariates it has the weights of the board."""
        games = self.tally.comparisons(np.zeros(self.tally.n_covariates))
        model: RankLogistic = RankLogistic(alpha).fit(features, games.graph())
        if self.tally.n_covariates:
            X = np.asarray(features, dtype=np.float64)
            model.coef_ = np.linalg.lstsq(X - X.mean(axis=0), solution.ratings, rcond=None)[0]
        return model

    def held_out_log_loss(self, solution: Solution | Fit, alpha: float) -> float:
        """Mean log loss of the comparisons, each by a Newton step without it.

        With 𝒜 the Hessian in all unknowns and θ, E the columns [x, 0] and [0, 1], and g and M the
        slope and the curvature of the comparison in (m, θ), it moves (m, θ) by ``(I − R M)⁻¹ R g``,
        with ``R = Eᵀ 𝒜⁻¹ E``.
        """
        exact, tally, theta = self.left_out(solution, alpha), self.tally, solution.theta
        m = exact.margins[tally.pair]
        at = self.verdicts.at(m, tally.target, theta)
        R = np.zeros((len(m), 2, 2))
        R[:, 0, 0] = exact.resistances[tally.pair]
        if self.verdicts.has_parameter:
            weight = tally.count * tally.weight
            cross = self.system.right(tally.by_pair(weight * at.mt))
            carried = exact.inverse @ cross
            left = float(weight @ at.tt - cross @ carried)
            along = self.system.margins(carried)[tally.pair]
            R[:, 0, 0] += along**2 / left
            R[:, 0, 1] = R[:, 1, 0] = -along / left
            R[:, 1, 1] = 1 / left
        slope = tally.weight[:, None] * np.stack([at.m, at.t], axis=1)
        bend = tally.weight * np.array([[at.mm, at.mt], [at.mt, at.tt]])
        inner = np.eye(2) - R @ bend.transpose(2, 0, 1)
        moved = np.linalg.solve(inner, R @ slope[:, :, None])[:, :, 0]
        return self._log_loss(m + moved[:, 0], theta + moved[:, 1], tally.count)

    def _log_loss(self, margins: Array, theta: Array | float, count: Array | Indices) -> float:
        weight = count * self.tally.weight
        derivatives = self.verdicts.at(margins, self.tally.target, theta)
        return float(weight @ derivatives.value / weight.sum())

    def _note(self, unknowns: Array) -> str:
        """Which ratings only alpha keeps finite (Ford, Solution of a ranking problem, 1957).

        Items outside the largest set in which everybody has beaten everybody, by way of others. A
        tie is half a win of both. Of every component of the comparisons the largest set counts.
        """
        tally, n = self.tally, self.tally.n_items
        margins = self.system.margins(unknowns)[tally.pair]
        if (margins * tally.target > 0).all():
            return (
                "the ratings explain every comparison, so that their size depends on alpha alone; "
                "the order holds, probabilities do not"
            )
        if self.system.X is not None or self.system.has_prior:
            return ""
        first, second = tally.first[tally.pair], tally.second[tally.pair]
        won, lost = tally.target >= 0, tally.target <= 0
        source, target = np.r_[first[won], second[lost]], np.r_[second[won], first[lost]]
        beaten = sp.coo_matrix((np.ones(len(source)), (source, target)), shape=(n, n)).tocsr()
        strong = connected_components(beaten, connection="strong")[1]
        sizes, largest = np.bincount(strong), np.zeros(tally.components.max() + 1, np.intp)
        np.maximum.at(largest, tally.components, sizes[strong])
        n_apart = int(n - largest.sum())
        said = (
            f"{n_apart} of {n} items only won or only lost against the others, as "
            "far as comparisons lead: only alpha keeps their ratings finite"
        )
        return said if n_apart else ""


class RankingLikelihood:
    """``J = 1/W Σ ω [log Σ_{j not yet placed} e^{r_j} − r_i] + α ‖r‖²``, as `newton` takes it.

    Parameters
    ----------
    model : PlackettLuce
        The rankings.
    alpha : float
        Regularization.
    """

    total = 1.0

    def __init__(self, model: PlackettLuce, alpha: float) -> None:
        self.model, self.alpha = model, alpha
        self.penalty = np.full(model.tally.n_items, 2 * alpha)

    def at(self, ratings: Array) -> Point:
        """Value and slope."""
        items = self.model.rankings.item
        loss = self.model.loss.at(ratings[items])
        slope = np.bincount(items, loss.gradient, len(ratings)) + self.penalty * ratings
        return Point(ratings, loss.value + self.alpha * float(ratings @ ratings), slope)

    def step(self, point: Point, tol: float) -> Array:
        """Newton's step."""
        inverse = self.model.inverse(point.unknowns, self.alpha)
        return -self.model.loss.total_weight * (inverse @ point.slope)


class PlackettLuce(BradleyTerry):
    """Rankings of several items: the best one is chosen first, then the best of the others.

    Item i is placed above j with the probability σ(r_i − r_j), whoever else takes part, so that
    what a board says of pairs is as in Bradley and Terry's model.

    Parameters
    ----------
    tally : Tally
        The pairs of the rankings.
    rankings : Rankings
        The rankings.
    """

    can_leave_out = False

    def __init__(self, tally: Tally, rankings: Rankings) -> None:
        super().__init__(tally)
        self.rankings = rankings
        placed = np.isfinite(rankings.place)
        scores = -np.where(placed, rankings.place, 0.0)
        graph = ScoreGraph(scores, rankings.ranking, cost="sign", ties="exclude")
        self.loss = PlackettLuceLoss(graph, placed, rankings.weight)

    def solve(self, alpha: float) -> Solution:
        """Newton's method."""
        problem = RankingLikelihood(self, alpha)
        point, gap, _ = newton(problem, np.zeros(self.tally.n_items), GAP)
        if gap > 1e5 * GAP:
            warn_user(
                f"the Plackett–Luce ratings have a relative gap of {gap:.1e}; a larger alpha makes "
                "them exact.",
                ConvergenceWarning,
            )
        ratings = self.tally.centered(point.unknowns)
        return Solution(ratings, ratings, np.empty(0), note=self._note(ratings))

    def choose_alpha(self, rng: np.random.Generator) -> float:
        """The alpha of least log loss on rankings left out one at a time, by a Newton step."""
        alphas = alpha_grid(self.system)[::EVERY]
        losses = []
        for alpha in alphas.tolist():
            ratings = self.solve(alpha).ratings
            moved = ratings[self.rankings.item]
            for rows, changes, within in self._changes(ratings, self.inverse(ratings, alpha)):
                moved[rows] -= (within @ changes[:, :, None])[:, :, 0]
            losses.append(self.loss.losses_of(moved))
        return best_alpha(alphas, np.array(losses))

    def spread(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        rng: np.random.Generator,
        thin: NDArray[np.bool_],
    ) -> Spread:
        """The jackknife over rankings, or clusters of them, by one Newton step.

        Without ranking g, of gradient ρ and Hessian K in its items, the ratings change by
        ``A⁻¹ E (I − K EᵀA⁻¹E)⁻¹ ρ``, E being the columns of its items. The rankings of a cluster
        are corrected by their own K only. What thin items lack is added as the model has it, K.
        """
        ratings, rankings, n = solution.ratings, self.rankings, self.tally.n_items
        inverse = self.inverse(ratings, alpha)
        unit = np.arange(rankings.n_rankings)
        if clusters is not None:
            unit = np.zeros_like(unit)
            unit[rankings.pairs.ranking] = clusters
        sums = np.zeros(len(rankings.item))
        for rows, changes, _ in self._changes(ratings, inverse):
            sums[rows] = changes
        at = unit[rankings.ranking], rankings.item
        by_unit = sp.coo_matrix((sums, at), shape=(unit.max() + 1, n)).tocsr()
        middle = (by_unit.T @ by_unit).toarray() + self._bends(ratings, thin)
        n_units = len(np.unique(unit))
        V = inverse @ middle @ inverse * (max(1, n_units - 1) / n_units)
        return Spread(root_of(V), max(1, n_units - 1), np.empty((0, 1)))

    def _changes(self, ratings: Array, inverse: Array) -> Iterator[Any]:
        """``(I − K EᵀA⁻¹E)⁻¹ ρ`` and EᵀA⁻¹E of each ranking, those of one length together."""
        for table, slope, bend in self.loss.by_ranking(ratings[self.rankings.item]):
            rows = table.rows.T
            items = self.rankings.item[rows]
            within = inverse[items[:, :, None], items[:, None, :]]
            rest = np.eye(rows.shape[1]) - bend @ within
            yield rows, np.linalg.solve(rest, -slope[:, :, None])[:, :, 0], within

    def inverse(self, ratings: Array, alpha: float) -> Array:
        """A⁻¹ with the Hessian A of all; grounded, since only differences count."""
        n = self.tally.n_items
        check_matrix_fits(4 * n, n, "the covariance", "use n_resamples=0 (no intervals)")
        matrix = ground(self._bends(ratings, np.ones(n, bool)), self.tally.components)
        matrix[np.arange(n), np.arange(n)] += 2 * alpha * self.loss.total_weight
        return np.asarray(np.linalg.inv(matrix), np.float64)

    def _bends(self, ratings: Array, chosen: NDArray[np.bool_]) -> Array:
        """Σ K over the rankings, of the pairs of which one item is chosen."""
        n = self.tally.n_items
        total = np.zeros(n * n)
        for table, _, bend in self.loss.by_ranking(ratings[self.rankings.item]):
            items = self.rankings.item[table.rows.T]
            bend *= chosen[items][:, :, None] | chosen[items][:, None, :]
            at = np.arange(items.shape[1])
            bend[:, at, at] = 0.0
            bend[:, at, at] = -bend.sum(axis=2)
            codes = items[:, :, None] * n + items[:, None, :]
            total += np.bincount(codes.ravel(), bend.ravel(), n * n)
        return total.reshape(n, n)
