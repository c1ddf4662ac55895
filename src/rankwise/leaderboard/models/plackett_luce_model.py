"""Plackett-Luce ratings from rankings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.pair_data import Rankings
from rankwise.graphs import ScoreGraph
from rankwise.leaderboard.algebra.alpha_selection import select_alpha
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut, factor_covariance
from rankwise.leaderboard.algebra.newton import Point, newton
from rankwise.leaderboard.algebra.outcome_likelihood import OutcomeCurve, OutcomeLikelihood
from rankwise.leaderboard.algebra.rating_system import RatingSystem, component_projection
from rankwise.leaderboard.models.bradley_terry import (
    GRID_STEP,
    RatingOrigin,
    separation_note,
    working_least_squares,
)
from rankwise.losses import PlackettLuceLoss
from rankwise.runtime.memory import check_matrix_fits
from rankwise.uncertainty.jackknife_errors import CovarianceRoot

GAP = 1e-13  # relative to the objective


class RankingLikelihood:
    """``J = 1/W Σ ω [log Σ_{j not yet placed} e^{r_j} − r_i] + α ‖r‖²``, for `newton`.

    Parameters
    ----------
    model : PlackettLuce
        The rankings and alpha.
    """

    total = 1.0

    def __init__(self, model: PlackettLuce) -> None:
        self.model = model
        self.penalty = np.full(model.counts.n_items, 2 * model.alpha)

    def at(self, unknowns: Array) -> Point:
        """Value and gradient."""
        items = self.model.rankings.item
        loss = self.model.loss.at(unknowns[items])
        gradient = np.bincount(items, loss.gradient, len(unknowns)) + self.penalty * unknowns
        value = loss.value + 0.5 * float(self.penalty @ unknowns**2)
        return Point(unknowns, value, gradient)

    def step(self, point: Point, tol: float) -> Array:
        """Newton's step."""
        inverse = self.model.inverse_hessian(point.unknowns)
        return -self.model.loss.total_weight * (inverse @ point.gradient)


class _RankingChanges(NamedTuple):
    """Changes of the ratings without each of the rankings of one length.

    Attributes
    ----------
    rows : ndarray of shape (n_rankings, length)
        Rows of the rankings.
    forces : ndarray of shape (n_rankings, length)
        ``(I − K EᵀA⁻¹E)⁻¹ ρ``.
    inverse : ndarray of shape (n_rankings, length, length)
        EᵀA⁻¹E.
    """

    rows: Indices
    forces: Array
    inverse: Array


class PlackettLuce:
    """Rankings of several items: the best one is chosen first, then the best of the others.

    A `RatingModel`. Item i is placed above j with the probability σ(r_i − r_j), whichever other
    items are ranked, so statements about pairs are those of the Bradley–Terry model.

    Parameters
    ----------
    counts : ComparisonCounts
        The pairs of the rankings.
    rankings : Rankings
        The rankings.
    """

    ties: float | None = None

    def __init__(self, counts: ComparisonCounts, rankings: Rankings) -> None:
        self.counts = counts
        self.system = RatingSystem(counts)
        self.components = counts.components
        self.rankings = rankings
        is_placed = np.isfinite(rankings.place)
        scores = -np.where(is_placed, rankings.place, 0.0)
        graph = ScoreGraph(scores, rankings.ranking, cost="sign", ties="exclude")
        self.loss = PlackettLuceLoss(graph, is_placed, rankings.weight)

    @property
    def outcome_curve(self) -> OutcomeCurve:
        """Probabilities of win and loss of a pair."""
        return OutcomeCurve(OutcomeLikelihood(has_parameter=False))

    @property
    def note(self) -> str:
        """Which ratings only alpha keeps finite."""
        return separation_note(self)

    def select_alpha(self) -> float:
        """Return the alpha that predicts best the rankings left out one at a time."""
        return select_alpha(self.system, self.held_out_losses, grid_step=GRID_STEP)

    def fit(self, alpha: float) -> Self:
        """Estimate ratings by Newton's method."""
        self.alpha = alpha
        point = newton(RankingLikelihood(self), np.zeros(self.counts.n_items), GAP)
        self.unknowns = self.counts.center(point.unknowns)
        ratings, self.effects = self.system.ratings_and_effects(self.unknowns)
        self.ratings = RatingOrigin.of(self.counts, self.system).center(ratings)
        return self

    def held_out_losses(self, alphas: Array) -> Array:
        """Mean log loss of the rankings, each by a Newton step without it, for each alpha."""
        losses = []
        for alpha in alphas.tolist():
            ratings = self.fit(alpha).unknowns
            held_out = ratings[self.rankings.item]
            inverse = self.inverse_hessian(ratings)
            for changes in self._changes_by_length(ratings, inverse):
                steps = changes.inverse @ changes.forces[:, :, None]
                held_out[changes.rows] -= steps[:, :, 0]
            losses.append(self.loss.at(held_out).value * self.loss.total_weight)
        return np.array(losses)

    def margins(self) -> Array:
        """Difference of the ratings of each distinct pair."""
        return self.system.margins(self.unknowns)

    def contrast(self, weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i."""
        return self.system.contrast(weights)

    def expected(self, margins: Array) -> Array:
        """Probability that the first item is above minus the probability that it is below."""
        return self.outcome_curve.expected(margins)

    def variances(self, margins: Array) -> Array:
        """Variance of the outcomes 1, 0 and −1."""
        return self.outcome_curve.variances(margins)

    def leave_out(self) -> LeaveOneOut:
        """Least squares of the pairs with the same ratings, from which pairs can be removed."""
        return working_least_squares(self)

    def covariance(self, clusters: Indices | None, thin: NDArray[np.bool_]) -> CovarianceRoot:
        """Covariance by the jackknife over rankings, or clusters of them, by one Newton step.

        Without ranking g, of gradient ρ and Hessian K in its items, the ratings change by
        ``A⁻¹ E (I − K EᵀA⁻¹E)⁻¹ ρ``, with E the columns of its items. The rankings of a cluster
        are corrected by their own K only. The noise that thin items lack is that of the model, K.
        """
        rankings = self.rankings
        unit = np.arange(rankings.n_rankings)
        if clusters is not None:
            unit = np.zeros_like(unit)
            unit[rankings.pairs.ranking] = clusters
        inverse = self.inverse_hessian(self.ratings)
        forces = np.zeros(len(rankings.item))
        for changes in self._changes_by_length(self.ratings, inverse):
            forces[changes.rows] = changes.forces
        positions = (unit[rankings.ranking], rankings.item)
        shape = (unit.max() + 1, self.counts.n_items)
        unit_forces = sp.coo_matrix((forces, positions), shape=shape).tocsr()
        middle = (unit_forces.T @ unit_forces).toarray() + self._hessian(self.ratings, thin)
        n_units = len(np.unique(unit))
        V = inverse @ middle @ inverse * (max(1, n_units - 1) / n_units)
        root = RatingOrigin.of(self.counts, self.system).center(factor_covariance(V))
        return CovarianceRoot(root, max(1, n_units - 1), np.empty((0, 1)))

    def _changes_by_length(self, ratings: Array, inverse: Array) -> Iterator[_RankingChanges]:
        """Yield the changes without each ranking, those of one length together."""
        for table, gradient, hessian in self.loss.by_ranking(ratings[self.rankings.item]):
            rows = table.rows.T
            items = self.rankings.item[rows]
            block = inverse[items[:, :, None], items[:, None, :]]
            slack = np.eye(rows.shape[1]) - hessian @ block
            forces = np.linalg.solve(slack, -gradient[:, :, None])[:, :, 0]
            yield _RankingChanges(rows, np.asarray(forces, np.float64), block)

    def inverse_hessian(self, ratings: Array) -> Array:
        """Return A⁻¹ with A the Hessian of all rankings, made invertible in each component."""
        n = self.counts.n_items
        check_matrix_fits(4 * n, n, "the covariance", "use intervals=False")
        all_items = np.ones(n, bool)
        hessian = self._hessian(ratings, all_items)
        matrix = hessian + hessian.trace() / n * component_projection(self.counts.components)
        matrix[np.arange(n), np.arange(n)] += 2 * self.alpha * self.loss.total_weight
        return np.asarray(np.linalg.inv(matrix), np.float64)

    def _hessian(self, ratings: Array, selected: NDArray[np.bool_]) -> Array:
        """Sum K over the rankings, for the pairs of which at least one item is selected."""
        n = self.counts.n_items
        total = np.zeros(n * n)
        for table, _, hessian in self.loss.by_ranking(ratings[self.rankings.item]):
            items = self.rankings.item[table.rows.T]
            hessian *= selected[items][:, :, None] | selected[items][:, None, :]
            diagonal = np.arange(items.shape[1])
            hessian[:, diagonal, diagonal] = 0.0
            hessian[:, diagonal, diagonal] = -hessian.sum(axis=2)
            codes = items[:, :, None] * n + items[:, None, :]
            total += np.bincount(codes.ravel(), hessian.ravel(), n * n)
        return total.reshape(n, n)
