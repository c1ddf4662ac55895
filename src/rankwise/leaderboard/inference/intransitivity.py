"""Intransitivity: whether the comparisons contradict every order of the items."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import f as fisher

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.leaderboard.algebra.outcome_likelihood import OutcomeCurve
from rankwise.leaderboard.algebra.rating_system import DENSE_LIMIT, RatingSystem
from rankwise.leaderboard.models.base import RatingModel

N_DRAWS = 200  # simulated boards
MOST_DRAWS = 2 * 10**6  # simulated outcomes of all boards together; more take over a second
LEAST_CIRCLES = 5  # independent circles needed to estimate the shape of the curve as well
TOLERANCE = 1e-7  # of conjugate gradients
ROUNDING = 1e-12  # relative to the sum of squares


class Intransitivity(NamedTuple):
    """Outcomes that the ratings do not explain.

    Attributes
    ----------
    unexplained : float
        Share of the sum of squared outcomes Σ ω δ² that the model does not predict: ties, chance,
        circles, and the bias of regularization (or of the features).
    cyclicity : float or None
        Share of the squared mean outcomes of the pairs that no ratings of the items can explain: 0
        if ratings explain all means, 1 if all of them are cyclic. With few comparisons per pair it
        is large by chance alone, so prefer `cycle_ratio`. None for teams.
    cycle_ratio : float or None
        Lack of fit of the means of the pairs over the variance of the comparisons of the same two
        items, each divided by its degrees of freedom: about 1 if the outcomes follow the model.
        None if no two items were compared twice, their comparisons all agree, or no circle is
        possible; for rankings, whose pairs are not independent; for boards with time or context;
        and for Bradley–Terry boards too large to be simulated.
    chance_low, chance_high : float or None
        For comparisons without circles, `cycle_ratio` is between these bounds in 95% of cases.
    """

    unexplained: float
    cyclicity: float | None
    cycle_ratio: float | None
    chance_low: float | None
    chance_high: float | None


class PairResiduals(NamedTuple):
    """Residuals of the model, for every two items that met and for all comparisons.

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
    """F test of the model of a board against a separate mean for each pair of items.

    With e = δ − E δ and v = Var δ of the model, and S = Σ ω v of each pair of items that met,

        B = min_r Σ_pairs S (Σ ω e / S − (r_i − r_j))²,    Q = Σ ω e² / v − Σ_pairs (Σ ω e)² / S,

    the ratio is ``B / n_circles`` over ``Q / n_repeats``. The minimum over r is one Newton
    step without regularization. With enough circles, two odd functions of the expected outcome are
    fitted as well, so that a curve of another shape than the logistic one (a result of ties) does
    not count as circles.

    Parameters
    ----------
    model : RatingModel
        The model of a board.
    """

    def __init__(self, model: RatingModel) -> None:
        self.model = model
        self.counts = model.counts
        counts = self.counts
        margins = model.margins()
        self.margins = margins
        self.expected = model.expected(margins)
        self.variances = np.maximum(model.variances(margins), ROUNDING)
        n_comparisons = int(counts.count.sum())
        n_edges = len(counts.edges)
        n_components = int(counts.components.max())
        self.n_circles = n_edges - (counts.n_items - n_components)
        self.n_repeats = n_comparisons - n_edges
        self.information = counts.sum_by_edge(counts.pair_weights * self.variances)
        shapes = self._shapes()
        self.n_circles -= shapes.shape[1]
        edges = replace(
            counts,
            first=counts.first[counts.edges],
            second=counts.second[counts.edges],
            covariates=shapes,
            cell=None,
        )
        self.system = RatingSystem(edges)

    def _shapes(self) -> Array:
        """Expected outcome of every two items, and its third power."""
        counts = self.counts
        if self.model.outcome_curve is None or self.n_circles < LEAST_CIRCLES:
            return np.empty((len(counts.edges), 0))
        weights = counts.pair_weights
        mean = counts.sum_by_edge(weights * self.expected) / counts.sum_by_edge(weights)
        return np.column_stack([mean, mean**3])

    def residuals(self) -> PairResiduals:
        """Residuals of the comparisons of the board."""
        counts = self.counts
        errors = counts.target - self.expected[counts.pair]
        weight = counts.outcome_weight
        sums = counts.sum_by_edge(counts.sum_by_pair(weight * errors))
        squares = np.sum(weight * errors**2 / self.variances[counts.pair])
        return PairResiduals(sums[None, :], np.array([squares]))

    def simulate(self, curve: OutcomeCurve, n_draws: int) -> PairResiduals:
        """Residuals of the same comparisons with outcomes drawn from the model."""
        counts = self.counts
        rng = np.random.default_rng(0)
        probabilities = curve.probabilities(self.margins)[counts.pair]
        expected = self.expected[counts.pair]
        errors = np.array([[1.0], [0.0], [-1.0]]) - expected
        squared_errors = counts.weight * errors**2 / self.variances[counts.pair]
        sums = []
        squares = []
        for _ in range(n_draws):
            drawn = rng.multinomial(counts.count, probabilities).T
            error = np.sum(drawn * errors, axis=0)
            sums.append(counts.sum_by_edge(counts.sum_by_pair(counts.weight * error)))
            squares.append(np.sum(drawn * squared_errors))
        return PairResiduals(np.array(sums), np.array(squares))

    def lack_of_fit(self, residuals: PairResiduals) -> Array:
        """Part of the mean residual Σ ω e / S of each pair that the ratings cannot explain."""
        solve = self.system.solver(self.information, 0.0, TOLERANCE)
        changes = solve(self.system.apply_transpose(residuals.sums.T))
        return np.asarray(residuals.sums / self.information - self.system.margins(changes).T)

    def ratio(self, residuals: PairResiduals) -> Array:
        """Lack of fit between pairs over the variance within them; NaN without variance."""
        between = np.sum(self.information * self.lack_of_fit(residuals) ** 2, axis=-1)
        within = residuals.squares - np.sum(residuals.sums**2 / self.information, axis=-1)
        is_zero = within <= ROUNDING * residuals.squares
        within = np.where(is_zero, np.nan, within)
        return np.asarray((between / self.n_circles) / (within / self.n_repeats))

    def chance_interval(self) -> Array:
        """Quantiles of the ratio without circles: of F for normal errors, else simulated."""
        levels = [(1 - DEFAULT_CONFIDENCE) / 2, (1 + DEFAULT_CONFIDENCE) / 2]
        curve = self.model.outcome_curve
        if curve is None:
            return np.asarray(fisher.ppf(levels, self.n_circles, self.n_repeats))
        ratios = self.ratio(self.simulate(curve, N_DRAWS))
        return np.asarray(np.nanquantile(ratios, levels))

    @property
    def is_possible(self) -> bool:
        """Whether there are circles, repeats, and a board small enough to be simulated."""
        if not self.n_circles or not self.n_repeats:
            return False
        if self.model.outcome_curve is None:
            return True
        n_outcomes = N_DRAWS * len(self.counts.target)
        return n_outcomes <= MOST_DRAWS and self.counts.n_items <= DENSE_LIMIT


def measure_intransitivity(model: RatingModel, *, is_testable: bool) -> Intransitivity:
    """Return the share of the outcomes that a model does not explain, and a test of circles.

    Parameters
    ----------
    model : RatingModel
        The model of a board.
    is_testable : bool
        Whether comparisons are independent and ratings constant; otherwise `cycle_ratio` is None.
    """
    counts = model.counts
    expected = model.expected(model.margins())
    errors = counts.target - expected[counts.pair]
    unexplained = 0.0
    if counts.squared_target > 0:
        unexplained = float(counts.outcome_weight @ errors**2) / counts.squared_target
    if counts.teams is not None:
        return Intransitivity(unexplained, None, None, None, None)
    test = CircleTest(model)
    residuals = test.residuals()
    edge_weights = counts.sum_by_edge(counts.pair_weights)
    mean_squares = float(np.sum(counts.sum_by_edge(counts.pair_target_sums) ** 2 / edge_weights))
    cyclicity = 0.0
    if mean_squares > 0:
        cyclic_means = test.information / edge_weights * test.lack_of_fit(residuals)[0]
        cyclicity = min(1.0, float(edge_weights @ cyclic_means**2) / mean_squares)
    untested = Intransitivity(unexplained, cyclicity, None, None, None)
    if not is_testable or not test.is_possible:
        return untested
    ratio = float(test.ratio(residuals)[0])
    if np.isnan(ratio):
        return untested
    low, high = test.chance_interval().tolist()
    return Intransitivity(unexplained, cyclicity, ratio, low, high)
