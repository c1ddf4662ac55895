"""Models of the outcomes: least squares, Bradley and Terry's, Plackett and Luce's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices
from rankwise.datasets.pair_data import Rankings
from rankwise.errors import warn_user
from rankwise.graphs import ScoreGraph
from rankwise.leaderboard.border import are_verdicts
from rankwise.leaderboard.jackknife import LeaveOut, jackknife, root_of
from rankwise.leaderboard.solving import (
    RELATIVE,
    TINY,
    RatingSystem,
    Tally,
    ground,
    leave_one_out_errors,
    middle_alpha,
    trusted_alpha,
)
from rankwise.losses import PlackettLuceLoss
from rankwise.machine import check_matrix_fits
from rankwise.uncertainty.jackknife import Spread

TOLERANCE = 1e-14  # of the gap, relative to the objective
MAX_ITERATIONS = 200
LEAST_STEP = 1e-10
SHORT = 1e-5  # length of a last step, relative to the unknowns
ROUGH, EXACT = 0.03, 1e-7  # tolerance of conjugate gradients, far from the minimum and at it
EIGEN_LIMIT = 3000  # items or features, of which alpha is chosen
GAP = 1e-13  # of rankings, relative to the objective


class Derivatives(NamedTuple):
    """Minus the log likelihood of each verdict, and its derivatives in m and in θ.

    Attributes
    ----------
    value, m, mm : ndarray
        The loss, its slope and its curvature in the margin.
    t, mt, tt : ndarray
        Derivatives that have the parameter θ of the ties; 0 if there is none.
    """

    value: Array
    m: Array
    mm: Array
    t: Array
    mt: Array
    tt: Array


class Verdicts:
    """Win, tie and loss are as ``e^(m/2) : ν : e^(−m/2)`` with ν = e^θ (Davidson 1970).

    Without the parameter ν is 0, P(win) = σ(m), and a tie is half a win and half a loss (Bradley
    and Terry 1952).

    Parameters
    ----------
    has_parameter : bool
        Whether ties have a probability of their own.
    """

    def __init__(self, has_parameter: bool) -> None:
        self.has_parameter = has_parameter

    def at(self, margin: Array, said: Array, theta: Array | float) -> Derivatives:
        """Convex in m and θ: the log of a sum of exponentials less a linear function."""
        (win, tie, loss), top = self._shares(margin, theta)
        others = np.where(tie == 1, win + loss, tie + np.minimum(win, loss))  # the largest is 1
        of_tie, total = theta if self.has_parameter else 0.0, 1 + others
        value = (top - np.where(said == 0, of_tie, 0.5 * said * margin)) + np.log1p(others)
        win, tie, loss = win / total, tie / total, loss / total
        slope = np.where(said > 0, -(loss + 0.5 * tie), 0.5 * (win - loss))
        slope = np.where(said < 0, win + 0.5 * tie, slope)
        bend = 0.25 * (win * (loss + tie) + loss * (win + tie) + 2 * win * loss)
        along = np.where(said == 0, -(win + loss), tie) * self.has_parameter
        return Derivatives(value, slope, bend, along, -0.5 * tie * (win - loss), tie * (win + loss))

    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """Of win, tie and loss; a tie is likeliest between equals."""
        shares = np.stack(self._shares(margin, theta)[0], axis=-1)
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def _shares(self, margin: Array, theta: Array | float) -> tuple[tuple[Array, ...], Array]:
        theta = theta if self.has_parameter else -np.inf
        top = np.maximum(0.5 * np.abs(margin), theta)
        return tuple(np.exp(power - top) for power in (0.5 * margin, theta, -0.5 * margin)), top


class Point(NamedTuple):
    """The objective J at some unknowns, W times its slope, and derivatives by outcome.

    Where `newton` ends, (J − min J)/J is at most the gap, after n_iter steps.
    """

    unknowns: Array
    value: float
    slope: Array
    derivatives: Any = None
    gap: float = np.inf
    n_iter: int = 0


class PairLikelihood:
    """``J(u, θ) = 1/W Σ ω ℓ(m, θ) + ½ [u, θ]ᵀ Λ [u, θ] / W`` with the margins m = D u.

    Λ is 2αW for ratings, and next to nothing for effects and for θ. The gap is
    ``J − min J ≤ ½ gᵀ Λ⁻¹ g/W``, since J is strongly convex: ‖∇J‖²/(4α) for ratings.

    Parameters
    ----------
    system : RatingSystem
        The comparisons, and features of the items if there are any; α ‖w‖² with r = X w then.
    verdicts : Verdicts
        ℓ, minus the log likelihood.
    alpha : float
        Regularization.
    """

    def __init__(self, system: RatingSystem, verdicts: Verdicts, alpha: float) -> None:
        self.system, self.verdicts = system, verdicts
        self.weight = system.tally.count * system.tally.weight
        self.total = float(self.weight.sum())
        self.shift = 2 * alpha * self.total
        self.penalty = np.r_[system.penalty(self.shift), TINY * self.total]

    def start(self) -> Array:
        """Zero, and the θ that the share of ties says."""
        start = np.zeros(self.system.size + 1)
        if self.verdicts.has_parameter:  # equals tie in the share ν/(2 + ν)
            tied = min(0.99, float(self.weight @ (self.system.tally.target == 0)) / self.total)
            start[-1] = np.log(2 * tied / (1 - tied))
        return start

    def at(self, unknowns: Array) -> Point:
        """Of u and θ."""
        tally = self.system.tally
        margins = self.system.margins(unknowns[:-1])[tally.pair]
        derivatives = self.verdicts.at(margins, tally.target, unknowns[-1])
        value = float(self.weight @ derivatives.value + 0.5 * self.penalty @ unknowns**2)
        slope = np.append(self.pull_back(derivatives.m), self.weight @ derivatives.t)
        slope += self.penalty * unknowns
        return Point(unknowns, value / self.total, slope, derivatives)

    def pull_back(self, values: Array) -> Array:
        """``Dᵀ (ω v)`` of a value for each outcome."""
        return self.system.right(self.system.tally.by_pair(self.weight * values))

    def step(self, point: Point, tol: float) -> Array:
        """Newton's step; θ by its Schur complement."""
        derivatives, slope = point.derivatives, point.slope
        curvatures = self.system.tally.by_pair(self.weight * derivatives.mm)
        solve = self.system.solver(curvatures, self.shift, tol)
        step: Array = -solve(slope[:-1])
        if not self.verdicts.has_parameter:
            return np.append(step, 0.0)
        cross = self.pull_back(derivatives.mt)
        carried = solve(cross)
        own = float(self.weight @ derivatives.tt) + TINY * self.total - float(cross @ carried)
        change = (-slope[-1] - float(cross @ step)) / max(own, 1e-300)
        return np.asarray(np.append(step - change * carried, change))


def newton(problem: Any, start: Array, tol: float) -> Point:
    """Minimize until the relative gap is at most `tol` and the last step is short.

    After a step of length δ the distance to the minimum is about δ², so the last step bounds the
    error of the unknowns. The gap alone does not: with a tiny alpha J hardly depends on ratings
    that only alpha keeps finite. A warning is issued if the search ends at a much larger gap.

    A problem has `penalty`, `total`, `at` and `step`, as `PairLikelihood` has them.
    """
    first_size, n_iter, is_short = None, 0, True
    point: Point = problem.at(start)
    while True:
        gap = float(0.5 * point.slope**2 @ (1 / problem.penalty) / problem.total) / point.value
        if (gap <= tol and is_short) or n_iter == MAX_ITERATIONS:
            break
        size = float(np.linalg.norm(point.slope))
        first_size = first_size or size
        step = problem.step(point, min(ROUGH, max(EXACT, size / first_size)))
        lower = _search(problem, point, step)
        if lower is None:
            break
        change = np.abs(lower.unknowns - point.unknowns).max()
        is_short = bool(change <= SHORT * (1 + np.abs(lower.unknowns).max()))
        point = lower
        n_iter += 1
    if gap > 1e5 * tol:
        warn_user(
            f"the ratings stopped after {n_iter} steps at a relative gap of {gap:.1e}; "
            "a larger alpha makes them exact.",
            ConvergenceWarning,
        )
    return point._replace(gap=gap, n_iter=n_iter)


def _search(problem: Any, point: Point, step: Array) -> Point | None:
    """The longest of the steps 1, ½, ¼, … that goes down as it should; None if none does."""
    expected = float(point.slope @ step) / problem.total
    t = 1.0
    while expected < 0 and t > LEAST_STEP:
        with np.errstate(over="ignore", invalid="ignore"):
            trial: Point = problem.at(point.unknowns + t * step)
        if trial.value <= point.value + 1e-4 * t * expected + 1e-15 * point.value:
            return trial
        t *= 0.5
    return None


class LeastSquares:
    """``(1/W) Σ ω (δ − (r_i − r_j + zᵀγ))² + α ‖r‖²``; with features α ‖w‖² and r = X w.

    A model of the outcomes of a `Tally` has these methods. The margin of a comparison is
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
        self, tally: Tally, X: Array | None = None, B: Array | None = None, ties: str = "half"
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
            return trusted_alpha(alphas, likelihoods, middle / self.stiffness)
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

    def left_out(self) -> LeaveOut:
        """What becomes of the solution without some comparisons."""
        return LeaveOut(self.system, self.unknowns, self.alpha * self.tally.total_weight)

    def spread(self, clusters: Indices | None, thin: NDArray[np.bool_]) -> Spread:
        """Errors of ratings and effects, by leaving out every comparison or cluster."""
        return jackknife(self.left_out(), clusters, thin)

    def margins(self) -> Array:
        """Of each distinct pair."""
        return self.system.margins(self.unknowns)

    def expected(self, margins: Array) -> Array:
        """Expected outcome for the first item: the margin itself."""
        return margins

    def variances(self, margins: Array) -> Array:
        """Variance of an outcome, up to a factor that all outcomes share."""
        return np.ones_like(margins)


class BradleyTerry(LeastSquares):
    """``(1/W) Σ ω ℓ(r_i − r_j + zᵀγ) + α ‖r‖²``, ℓ being minus the log likelihood of a verdict.

    Item i beats j with the probability σ(r_i − r_j + zᵀγ) (Bradley and Terry, Rank analysis of
    incomplete block designs, 1952). Only who won counts, not by how much. A tie is half a win each,
    or has a probability of its own with one more parameter: ν of Davidson 1970. Parameters as in
    `LeastSquares`.
    """

    is_linear = False
    every = 2  # each needs a fit
    stiffness = 16.0  # 2α beside ⅛, the curvature of a verdict of 85 to 15
    logits = 1.0
    tol = TOLERANCE  # of the gap, relative to the objective

    def __init__(
        self, tally: Tally, X: Array | None = None, B: Array | None = None, ties: str = "half"
    ) -> None:
        super().__init__(tally, X, B)
        if not are_verdicts(tally.target):
            raise ValueError(
                "model='bradley-terry' takes wins, ties and losses, but the outcomes are margins; "
                "do without margin and magnitude, or use model='least-squares'."
            )
        is_tie = tally.target == 0
        is_mixed = bool(is_tie.any() and not is_tie.all())  # else the parameter is at its limit
        self.verdicts = Verdicts(ties == "davidson" and is_mixed)
        self.ties = None if ties == "half" or is_tie.all() else 0.0

    def solve(self, alpha: float) -> Self:
        """Newton's method."""
        super().solve(alpha)
        if self.verdicts.has_parameter:
            self.ties = float(np.exp(self.theta))
        self.note = self._note()
        return self

    def fit(self, start: Array | None = None) -> Point:
        """Newton's method; from zero, and what the share of ties says, if there is no start."""
        problem = PairLikelihood(self.system, self.verdicts, self.alpha)
        point = newton(problem, problem.start() if start is None else start, self.tol)
        self.unknowns, self.theta = point.unknowns[:-1], float(point.unknowns[-1])
        return point

    def held_out_losses(self, alphas: Array) -> Array:
        """Mean log loss of the comparisons, each by a Newton step without it."""
        losses, start = np.empty(len(alphas)), None
        for k in reversed(range(len(alphas))):
            self.alpha = float(alphas[k])
            start = self.fit(start).unknowns
            losses[k] = self.held_out_log_loss()
        return losses

    def left_out(self) -> LeaveOut:
        """Least squares with the same solution and the same curvature there.

        The weights are ω ℓ''(m), the targets m − ℓ'(m)/ℓ''(m). What they say without a comparison
        or a cluster is one Newton step, with θ as it is.
        """
        tally, margins = self.tally, self.margins()[self.tally.pair]
        derivatives = self.verdicts.at(margins, tally.target, self.theta)
        bend = np.maximum(derivatives.mm, 1e-300)
        working = replace(tally, weight=tally.weight * bend, target=margins - derivatives.m / bend)
        return LeaveOut(self.system.of(working), self.unknowns, 2 * self.alpha * tally.total_weight)

    def expected(self, margins: Array) -> Array:
        """Probability that the first item wins less that it loses."""
        chances = self.verdicts.probabilities(margins, self.theta)
        return np.asarray(chances[..., 0] - chances[..., 2])

    def variances(self, margins: Array) -> Array:
        """Variance of a verdict of 1, 0 or −1."""
        win, tie, loss = np.moveaxis(self.verdicts.probabilities(margins, self.theta), -1, 0)
        return np.asarray(win * (tie + loss) + loss * (tie + win) + 2 * win * loss)

    def held_out_log_loss(self) -> float:
        """Mean log loss of the comparisons, each by a Newton step without it; θ stays."""
        exact = self.left_out()
        tally, margins = exact.system.tally, exact.margins[self.tally.pair]
        leverages = tally.weight * exact.resistances[tally.pair]
        margins = margins + (margins - tally.target) * leverages / (1 - leverages)
        derivatives = self.verdicts.at(margins, self.tally.target, self.theta)
        weight = self.tally.count * self.tally.weight
        return float(weight @ derivatives.value / weight.sum())

    def _note(self) -> str:
        """Which ratings only alpha keeps finite (Ford, Solution of a ranking problem, 1957).

        Items outside the largest set in which everybody has beaten everybody, by way of others. A
        tie is half a win of both. Of every component of the comparisons the largest set counts.
        """
        tally, n = self.tally, self.tally.n_items
        margins = self.margins()[tally.pair]
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
        The rankings, and alpha.
    """

    total = 1.0

    def __init__(self, model: PlackettLuce) -> None:
        self.model = model
        self.penalty = np.full(model.tally.n_items, 2 * model.alpha)

    def at(self, ratings: Array) -> Point:
        """Value and slope."""
        items = self.model.rankings.item
        loss = self.model.loss.at(ratings[items])
        slope = np.bincount(items, loss.gradient, len(ratings)) + self.penalty * ratings
        value = loss.value + 0.5 * float(self.penalty @ ratings**2)
        return Point(ratings, value, slope)

    def step(self, point: Point, tol: float) -> Array:
        """Newton's step."""
        inverse = self.model.inverse(point.unknowns)
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

    def fit(self, start: Array | None = None) -> Point:
        """Newton's method."""
        point = newton(RankingLikelihood(self), np.zeros(self.tally.n_items), GAP)
        self.unknowns = self.tally.centered(point.unknowns)
        return point

    def held_out_losses(self, alphas: Array) -> Array:
        """Mean log loss of the rankings, each by a Newton step without it."""
        losses = []
        for self.alpha in alphas.tolist():
            self.fit()
            ratings = self.unknowns
            moved = ratings[self.rankings.item]
            for rows, changes, within in self._changes(ratings, self.inverse(ratings)):
                moved[rows] -= (within @ changes[:, :, None])[:, :, 0]
            losses.append(self.loss.at(moved).value * self.loss.total_weight)
        return np.array(losses)

    def spread(self, clusters: Indices | None, thin: NDArray[np.bool_]) -> Spread:
        """The jackknife over rankings, or clusters of them, by one Newton step.

        Without ranking g, of gradient ρ and Hessian K in its items, the ratings change by
        ``A⁻¹ E (I − K EᵀA⁻¹E)⁻¹ ρ``, E being the columns of its items. The rankings of a cluster
        are corrected by their own K only. What thin items lack is added as the model has it, K.
        """
        ratings, rankings, n = self.ratings, self.rankings, self.tally.n_items
        inverse = self.inverse(ratings)
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

    def inverse(self, ratings: Array) -> Array:
        """A⁻¹ with the Hessian A of all; grounded, since only differences count."""
        n = self.tally.n_items
        check_matrix_fits(4 * n, n, "the covariance", "use intervals=False")
        matrix = ground(self._bends(ratings, np.ones(n, bool)), self.tally.components)
        matrix[np.arange(n), np.arange(n)] += 2 * self.alpha * self.loss.total_weight
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
