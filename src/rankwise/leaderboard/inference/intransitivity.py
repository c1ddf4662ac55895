"""Circles: whether the comparisons contradict every single order of the items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import f as fisher

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.rating_system import DENSE_LIMIT, RatingSystem

N_DRAWS = 200  # simulated boards
MANY_DRAWS = 2 * 10**6  # simulated outcomes of all boards together; more take over a second
LEAST_CIRCLES = 5  # independent circles that allow to estimate the shape of the curve as well
TOLERANCE = 1e-7  # of conjugate gradients
NOTHING = 1e-12  # of the sum of squares; less is rounding


class Intransitivity(NamedTuple):
    """What the ratings do not explain.

    Attributes
    ----------
    unexplained : float
        Share of the sum of squared outcomes Σ ω δ² that the model does not expect: ties, chance,
        circles, and what regularization (or the features) cannot follow.
    cyclicity : float
        Share of the squared mean outcomes of the pairs that no ratings of the items can follow: 0
        if ratings explain all means, 1 if all of them go in circles. With few comparisons of each
        pair chance alone makes it large, so read `cycle_ratio`.
    cycle_ratio : float or None
        Lack of fit of the means of the pairs over the variance of the comparisons of the same two
        items, each by its degrees of freedom: about 1 if the outcomes follow the model. None if no
        two items were compared twice, their comparisons all agree, or no circle is possible; for
        rankings, whose pairs are not independent; for boards with time or context; and for
        Bradley–Terry boards too large to be simulated.
    chance_low, chance_high : float or None
        95% of boards of the same comparisons without circles have a `cycle_ratio` between these.
    """

    unexplained: float
    cyclicity: float
    cycle_ratio: float | None
    chance_low: float | None
    chance_high: float | None


class PairResiduals(NamedTuple):
    """Residuals of the model, for each two items that met and for all comparisons.

    Attributes
    ----------
    sums : ndarray of shape (n_boards, n_edges)
        Σ ω (δ − E δ).
    squares : ndarray of shape (n_boards,)
        Σ ω (δ − E δ)² / Var δ over all comparisons.
    """

    sums: Array
    squares: Array


class CircleTest:
    """The F test of the model of a board against a mean of its own for each pair of items.

    With e = δ − E δ and v = Var δ of the model, and S = Σ ω v of each pair of items that met,

        B = min_r Σ_pairs S (Σ ω e / S − (r_i − r_j))²,    Q = Σ ω e² / v − Σ_pairs (Σ ω e)² / S,

    the ratio is ``B / n_circles`` over ``Q / n_repeats``. The minimum over r is one Newton
    step without regularization. With enough circles the residuals may also follow two odd
    functions of the expected outcome, so that a curve of another shape than the logistic one (as
    ties make it) is not taken for circles.

    Parameters
    ----------
    model : LeastSquares
        The model of a board.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tally: ComparisonCounts = model.tally
        tally = self.tally
        margins = model.margins()
        self.margins = margins
        self.expected = model.expected(margins)
        self.variances = np.maximum(model.variances(margins), NOTHING)
        n_comparisons = int(tally.count.sum())
        n_edges = len(tally.edges)
        n_components = int(tally.components.max())
        self.n_circles = n_edges - (tally.n_items - n_components)
        self.n_repeats = n_comparisons - n_edges
        weights, _ = tally.sums
        self.information = tally.by_edge(weights * self.variances)
        shapes = self._shapes()
        self.n_circles -= shapes.shape[1]
        edges = replace(
            tally, first=tally.first[tally.edges], second=tally.second[tally.edges],
            covariates=shapes, cell=None,
        )  # fmt: skip
        self.system = RatingSystem(edges)

    def _shapes(self) -> Array:
        """The expected outcome of each two items, and its third power."""
        tally = self.tally
        if self.model.is_linear or self.n_circles < LEAST_CIRCLES:
            return np.empty((len(tally.edges), 0))
        weights = tally.sums[0]
        mean = tally.by_edge(weights * self.expected) / tally.by_edge(weights)
        return np.column_stack([mean, mean**3])

    def residuals(self) -> PairResiduals:
        """Of the comparisons of the board."""
        tally = self.tally
        errors = tally.target - self.expected[tally.pair]
        sums = tally.by_edge(tally.by_pair(tally.count * tally.weight * errors))
        squares = np.sum(tally.count * tally.weight * errors**2 / self.variances[tally.pair])
        return PairResiduals(sums[None, :], np.array([squares]))

    def simulated(self, n_draws: int) -> PairResiduals:
        """Of comparisons of the same items whose outcomes are drawn from the model."""
        tally, model = self.tally, self.model
        rng = np.random.default_rng(0)
        chances = model.verdicts.probabilities(self.margins, model.theta)[tally.pair]
        expected = self.expected[tally.pair]
        errors = np.array([[1.0], [0.0], [-1.0]]) - expected
        squared_errors = tally.weight * errors**2 / self.variances[tally.pair]
        sums, squares = [], []
        for _ in range(n_draws):
            counts = rng.multinomial(tally.count, chances).T
            error = np.sum(counts * errors, axis=0)
            sums.append(tally.by_edge(tally.by_pair(tally.weight * error)))
            squares.append(np.sum(counts * squared_errors))
        return PairResiduals(np.array(sums), np.array(squares))

    def lack_of_fit(self, residuals: PairResiduals) -> Array:
        """Mean residual Σ ω e / S of each pair of items that the ratings cannot follow."""
        solve = self.system.solver(self.information, 0.0, TOLERANCE)
        changes = solve(self.system.right(residuals.sums.T))
        return np.asarray(residuals.sums / self.information - self.system.margins(changes).T)

    def ratio(self, residuals: PairResiduals) -> Array:
        """Lack of fit between pairs over the variance within them; NaN without variance."""
        between = np.sum(self.information * self.lack_of_fit(residuals) ** 2, axis=-1)
        within = residuals.squares - np.sum(residuals.sums**2 / self.information, axis=-1)
        is_zero = within <= NOTHING * residuals.squares
        within = np.where(is_zero, np.nan, within)
        return np.asarray((between / self.n_circles) / (within / self.n_repeats))

    def chance_interval(self) -> Array:
        """Quantiles of the ratio without circles: of F for normal errors, else simulated."""
        levels = [(1 - DEFAULT_CONFIDENCE) / 2, (1 + DEFAULT_CONFIDENCE) / 2]
        if self.model.is_linear:
            return np.asarray(fisher.ppf(levels, self.n_circles, self.n_repeats))
        ratios = self.ratio(self.simulated(N_DRAWS))
        return np.asarray(np.nanquantile(ratios, levels))

    @property
    def is_possible(self) -> bool:
        """Whether there are circles, repeats, and a board small enough to be simulated."""
        if not self.n_circles or not self.n_repeats:
            return False
        tally = self.tally
        is_small = N_DRAWS * len(tally.target) <= MANY_DRAWS and tally.n_items <= DENSE_LIMIT
        return self.model.is_linear or is_small


def intransitivity_of(model: Any, *, has_rankings: bool) -> Intransitivity:
    """How much of the outcomes a model leaves unexplained, and whether that is more than chance."""
    test = CircleTest(model)
    tally = model.tally
    residuals = test.residuals()
    errors = tally.target - test.expected[tally.pair]
    error_squares = float((tally.count * tally.weight) @ errors**2)
    unexplained = error_squares / tally.squared_target if tally.squared_target > 0 else 0.0
    weights, flows = tally.sums
    edge_weights = tally.by_edge(weights)
    mean_squares = float(np.sum(tally.by_edge(flows) ** 2 / edge_weights))
    cyclicity = 0.0
    if mean_squares > 0:
        missed = test.information / edge_weights * test.lack_of_fit(residuals)[0]
        cyclicity = min(1.0, float(edge_weights @ missed**2) / mean_squares)
    unknown = Intransitivity(unexplained, cyclicity, None, None, None)
    if has_rankings or model.is_in_context or not test.is_possible:
        return unknown
    ratio = float(test.ratio(residuals)[0])
    if np.isnan(ratio):
        return unknown
    low, high = test.chance_interval().tolist()
    return Intransitivity(unexplained, cyclicity, ratio, low, high)
