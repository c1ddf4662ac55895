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
    unexplained : float or None
        Share of the sum of squared outcomes Σ ω δ² that the model does not predict: ties, chance,
        circles, and the bias of regularization (or of the features). None if all are ties.
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

    unexplained: float | None
    cyclicity: float | None = None
    cycle_ratio: float | None = None
    chance_low: float | None = None
    chance_high: float | None = None


class PairResiduals(NamedTuple):
    """Residuals of the model, for every two items that met and for all comparisons.

    Attributes
    ----------
    edge_sums : ndarray of shape (n_boards, n_edges)
        Σ ω (δ − E δ).
    total_squares : ndarray of shape (n_boards,)
        Σ ω (δ − E δ)² / Var δ over all comparisons.
    """

    edge_sums: Array
    total_squares: Array


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
        counts = model.counts
        self.model = model
        self.counts = counts
        self.margins = model.margins()
        self.expected = model.expected(self.margins)
        self.variances = np.maximum(model.variances(self.margins), ROUNDING)
        # An edge is every two items that met. Its Fisher information S is Σ ω Var δ.
        self.edge_information = counts.sum_by_edge(counts.pair_weights * self.variances)

        # Degrees of freedom: an edge more than a spanning forest closes one independent circle.
        n_edges = len(counts.edges)
        n_components = int(counts.components.max())  # numbered from 1
        self.n_circles = n_edges - (counts.n_items - n_components)
        n_comparisons = int(counts.count.sum())
        self.n_repeats = n_comparisons - n_edges
        # Two columns for a curve of another shape, if there are many circles; each takes a degree.
        curve_columns = self._curve_columns()
        self.n_circles -= curve_columns.shape[1]

        # Least squares with one row for each edge
        edge_counts = replace(
            counts,
            first=counts.first[counts.edges],
            second=counts.second[counts.edges],
            covariates=curve_columns,
            cell_of_pair=None,
        )
        self.edge_system = RatingSystem(edge_counts)

    def _curve_columns(self) -> Array:
        """Expected outcome of every two items, and its third power, for a curve of another shape.

        No columns for models without a curve, or with few circles.
        """
        counts = self.counts
        if self.model.outcome_curve is None or self.n_circles < LEAST_CIRCLES:
            return np.empty((len(counts.edges), 0))
        weights = counts.pair_weights
        expected_sums = counts.sum_by_edge(weights * self.expected)
        expected = expected_sums / counts.sum_by_edge(weights)
        # Odd functions of the expected outcome: their sum is a curve of another shape.
        return np.column_stack([expected, expected**3])

    def residuals(self) -> PairResiduals:
        """Residuals of the comparisons of the board."""
        counts = self.counts
        weight = counts.outcome_weight  # of all equal comparisons together
        residuals = counts.target - self.expected[counts.pair_of_outcome]
        edge_sums = counts.sum_by_edge(counts.sum_by_pair(weight * residuals))
        total_squares = np.sum(weight * residuals**2 / self.variances[counts.pair_of_outcome])
        # One board: (1, n_edges) and (1,)
        return PairResiduals(edge_sums[None, :], np.array([total_squares]))

    def simulate_residuals(self, curve: OutcomeCurve, n_draws: int) -> PairResiduals:
        """Residuals of the same comparisons with outcomes drawn from the model."""
        counts = self.counts
        rng = np.random.default_rng(0)
        # Of win, tie and loss: (n_outcomes, 3)
        probabilities = curve.probabilities(self.margins)[counts.pair_of_outcome]
        outcomes = np.array([[1.0], [0.0], [-1.0]])
        residuals = outcomes - self.expected[counts.pair_of_outcome]  # (3, n_outcomes)
        # Of one comparison; n_drawn says how many of them have each outcome
        weighted_squares = counts.weight * residuals**2 / self.variances[counts.pair_of_outcome]
        sums_by_board = []  # (n_boards, n_edges)
        squares_by_board = []  # (n_boards,)
        for _ in range(n_draws):
            n_drawn = rng.multinomial(counts.count, probabilities).T  # (3, n_outcomes)
            residual_sums = counts.weight * np.sum(n_drawn * residuals, axis=0)
            sums_by_board.append(counts.sum_by_edge(counts.sum_by_pair(residual_sums)))
            squares_by_board.append(np.sum(n_drawn * weighted_squares))
        return PairResiduals(np.array(sums_by_board), np.array(squares_by_board))

    def lack_of_fit(self, residuals: PairResiduals) -> Array:
        """What no ratings explain of the mean of every two items, shape (n_boards, n_edges)."""
        # One Newton step without regularization, for all boards at once: the ratings that explain
        # the residuals best
        system = self.edge_system
        solve = system.solver(self.edge_information, ridge=0.0, tol=TOLERANCE)
        rating_changes = solve(system.apply_transpose(residuals.edge_sums.T))
        mean_residuals = residuals.edge_sums / self.edge_information
        explained_residuals = system.margins(rating_changes).T
        return np.asarray(mean_residuals - explained_residuals)

    def ratio(self, residuals: PairResiduals) -> Array:
        """Lack of fit between pairs over the variance within them; NaN without variance."""
        # Sums of squares between the edges (B) and within them (Q)
        between = np.sum(self.edge_information * self.lack_of_fit(residuals) ** 2, axis=-1)
        edge_squares = np.sum(residuals.edge_sums**2 / self.edge_information, axis=-1)
        within = residuals.total_squares - edge_squares
        is_rounding = within <= ROUNDING * residuals.total_squares
        within = np.where(is_rounding, np.nan, within)  # no variance: no ratio
        # Each over its degrees of freedom
        mean_between = between / self.n_circles
        mean_within = within / self.n_repeats
        return np.asarray(mean_between / mean_within)

    def chance_interval(self) -> Array:
        """Interval that contains the ratio of 95% of the boards without circles."""
        levels = [(1 - DEFAULT_CONFIDENCE) / 2, (1 + DEFAULT_CONFIDENCE) / 2]
        curve = self.model.outcome_curve
        if curve is None:  # normal errors: the F distribution
            return np.asarray(fisher.ppf(levels, self.n_circles, self.n_repeats))
        ratios = self.ratio(self.simulate_residuals(curve, N_DRAWS))
        return np.asarray(np.nanquantile(ratios, levels))

    @property
    def is_feasible(self) -> bool:
        """Whether there are circles, repeats, and a board small enough to be simulated."""
        if not self.n_circles or not self.n_repeats:
            return False
        if self.model.outcome_curve is None:  # the F distribution, without simulated boards
            return True
        n_simulated_outcomes = N_DRAWS * len(self.counts.target)
        return n_simulated_outcomes <= MOST_DRAWS and self.counts.n_items <= DENSE_LIMIT


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
    residuals_of_outcomes = counts.target - expected[counts.pair_of_outcome]
    # Share of the sum of squared outcomes that the model does not predict
    unexplained = None
    if counts.squared_target > 0:
        residual_squares = float(counts.outcome_weight @ residuals_of_outcomes**2)
        unexplained = residual_squares / counts.squared_target
    if counts.teams is not None:  # circles are of single items
        return Intransitivity(unexplained)
    test = CircleTest(model)
    residuals = test.residuals()  # of one board: arrays with one row

    # Share of the squared mean outcomes of every two items (an edge) that no ratings explain.
    edge_weights = counts.sum_by_edge(counts.pair_weights)
    target_sums = counts.sum_by_edge(counts.pair_target_sums)
    squared_means = float(np.sum(target_sums**2 / edge_weights))
    cyclicity = 0.0
    if squared_means > 0:
        # From margins to mean outcomes: information / weight is the mean slope of the curve
        mean_slopes = test.edge_information / edge_weights
        cyclic_means = mean_slopes * test.lack_of_fit(residuals)[0]
        cyclicity = min(1.0, float(edge_weights @ cyclic_means**2) / squared_means)

    untested = Intransitivity(unexplained, cyclicity)
    if not is_testable or not test.is_feasible:
        return untested
    ratio = float(test.ratio(residuals)[0])
    if np.isnan(ratio):
        return untested
    low, high = test.chance_interval().tolist()
    return untested._replace(cycle_ratio=ratio, chance_low=low, chance_high=high)
