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
from rankwise.uncertainty.possible_ranks import CovarianceRoot

GAP = 1e-13  # relative to the objective


class RankingLikelihood:
    """``J = 1/W Σ ω [log Σ_{j not yet placed} e^{r_j} − r_i] + α ‖r‖²``, for `newton`.

    Parameters
    ----------
    model : PlackettLuce
        The rankings and alpha.
    """

    total_weight = 1.0  # the loss is a mean already

    def __init__(self, model: PlackettLuce) -> None:
        self.model = model
        self.penalties = np.full(model.counts.n_items, 2 * model.alpha)

    def evaluate(self, ratings: Array) -> Point:
        """Value and gradient."""
        items = self.model.rankings.item  # of each row of the rankings
        loss = self.model.loss.at(ratings[items])
        loss_gradient = np.bincount(items, loss.gradient, len(ratings))
        gradient = loss_gradient + self.penalties * ratings
        value = loss.value + 0.5 * float(self.penalties @ ratings**2)
        return Point(ratings, value, gradient)

    def newton_step(self, point: Point, tol: float) -> Array:
        """Newton's step."""
        # The objective is divided by the total weight, the Hessian is not.
        inverse_hessian = self.model.inverse_hessian(point.unknowns)
        return -self.model.loss.total_weight * (inverse_hessian @ point.gradient)


class _RankingChanges(NamedTuple):
    """Changes of the ratings without each of the rankings of one length.

    Attributes
    ----------
    rows : ndarray of shape (n_rankings, length)
        Rows of the rankings.
    corrected_gradients : ndarray of shape (n_rankings, length)
        ``(I − K EᵀA⁻¹E)⁻¹ ρ``.
    inverse_hessians : ndarray of shape (n_rankings, length, length)
        EᵀA⁻¹E.
    """

    rows: Indices
    corrected_gradients: Array
    inverse_hessians: Array


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
        # The best place has the highest score; items without a place come after those with one.
        is_placed = np.isfinite(rankings.place)
        scores = -np.where(is_placed, rankings.place, 0.0)
        graph = ScoreGraph(scores, rankings.ranking, cost="sign", ties="exclude")
        self.loss = PlackettLuceLoss(graph, is_placed, rankings.weight)

    @property
    def outcome_curve(self) -> OutcomeCurve:
        """Probabilities of win and loss of a pair."""
        return OutcomeCurve(OutcomeLikelihood(has_tie_parameter=False))

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
        self.unknowns = self.counts.center(point.unknowns)  # mean 0 in each component
        ratings, self.effects = self.system.ratings_and_effects(self.unknowns)
        self.ratings = RatingOrigin.of(self.counts, self.system).center(ratings)
        return self

    def held_out_losses(self, alphas: Array) -> Array:
        """Log loss of all rankings, each by a Newton step without it, for each alpha."""
        losses = []
        for alpha in alphas.tolist():
            ratings = self.fit(alpha).unknowns
            held_out_ratings = ratings[self.rankings.item]  # of each row of the rankings
            inverse_hessian = self.inverse_hessian(ratings)
            # A Newton step to the ratings without each ranking, for its own items.
            for changes in self._changes_by_length(ratings, inverse_hessian):
                steps = changes.inverse_hessians @ changes.corrected_gradients[:, :, None]
                held_out_ratings[changes.rows] -= steps[:, :, 0]
            mean_loss = self.loss.at(held_out_ratings).value
            losses.append(mean_loss * self.loss.total_weight)  # the sum over all rankings
        return np.array(losses)

    def margins(self) -> Array:
        """Difference of the ratings of each distinct pair."""
        return self.system.margins(self.unknowns)

    def weights_of_unknowns(self, item_weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i."""
        return self.system.contrast(item_weights)

    def expected(self, margins: Array) -> Array:
        """Probability that the first item is above minus the probability that it is below."""
        return self.outcome_curve.expected(margins)

    def variances(self, margins: Array) -> Array:
        """Variance of the outcomes 1, 0 and −1."""
        return self.outcome_curve.variances(margins)

    def leave_one_out(self) -> LeaveOneOut:
        """Least squares of the pairs with the same ratings, from which pairs can be removed."""
        return working_least_squares(self)

    def covariance(
        self, clusters: Indices | None, has_few_data: NDArray[np.bool_]
    ) -> CovarianceRoot:
        """Covariance by the jackknife over rankings, or clusters of them, by one Newton step.

        Without ranking g, of gradient ρ and Hessian K in its items, the ratings change by
        ``A⁻¹ E (I − K EᵀA⁻¹E)⁻¹ ρ``, with E the columns of its items. The rankings of a cluster
        are corrected by their own K only. Items with few data additionally have the noise of the
        model, K.
        """
        rankings = self.rankings
        # Units that are left out: rankings, or clusters of them.
        unit_of_ranking = np.arange(rankings.n_rankings)
        if clusters is not None:
            unit_of_ranking = np.zeros_like(unit_of_ranking)
            unit_of_ranking[rankings.pairs.ranking] = clusters  # the same for all pairs of one

        # The gradients of the rankings, corrected for their own leverage, summed by unit and item.
        inverse_hessian = self.inverse_hessian(self.ratings)  # A⁻¹
        gradients = np.zeros(len(rankings.item))
        for changes in self._changes_by_length(self.ratings, inverse_hessian):
            gradients[changes.rows] = changes.corrected_gradients
        positions = (unit_of_ranking[rankings.ranking], rankings.item)
        shape = (unit_of_ranking.max() + 1, self.counts.n_items)
        unit_gradients = sp.coo_matrix((gradients, positions), shape=shape).tocsr()

        # The sandwich covariance A⁻¹ M A⁻¹ with the factor of the jackknife. Items with few data
        # also have the noise of the model, which is their Hessian.
        jackknife_middle = (unit_gradients.T @ unit_gradients).toarray()
        middle = jackknife_middle + self._hessian(self.ratings, has_few_data)
        n_units = len(np.unique(unit_of_ranking))
        jackknife_factor = max(1, n_units - 1) / n_units
        covariance = inverse_hessian @ middle @ inverse_hessian * jackknife_factor
        origin = RatingOrigin.of(self.counts, self.system)
        root = origin.center(factor_covariance(covariance))
        return CovarianceRoot(root, max(1, n_units - 1), effects_root=np.empty((0, 1)))

    def _changes_by_length(
        self, ratings: Array, inverse_hessian: Array
    ) -> Iterator[_RankingChanges]:
        """Yield the changes without each ranking, those of one length together."""
        # Rankings of the same length at once. The gradient ρ of the log likelihood of a ranking,
        # minus that of its loss, is corrected for its influence on the ratings: (I − K A⁻¹)⁻¹ ρ
        # with the Hessian K of its loss, for its items.
        row_ratings = ratings[self.rankings.item]
        for table, gradients, hessians in self.loss.derivatives_by_ranking(row_ratings):
            rows = table.rows.T  # (n_rankings, length)
            items = self.rankings.item[rows]
            inverse_blocks = inverse_hessian[items[:, :, None], items[:, None, :]]
            one_minus_leverage = np.eye(rows.shape[1]) - hessians @ inverse_blocks  # I − K A⁻¹
            corrected = np.linalg.solve(one_minus_leverage, -gradients[:, :, None])[:, :, 0]
            yield _RankingChanges(rows, np.asarray(corrected, np.float64), inverse_blocks)

    def inverse_hessian(self, ratings: Array) -> Array:
        """Return A⁻¹ with A the Hessian of all rankings, made invertible in each component."""
        n_items = self.counts.n_items
        check_matrix_fits(4 * n_items, n_items, "the covariance", "use intervals=False")
        all_items = np.ones(n_items, bool)
        hessian = self._hessian(ratings, all_items)

        # The projection makes it invertible, and changes no difference within a component.
        mean_diagonal = hessian.trace() / n_items
        matrix = hessian + mean_diagonal * component_projection(self.counts.components)
        diagonal = np.arange(n_items)
        matrix[diagonal, diagonal] += 2 * self.alpha * self.loss.total_weight
        return np.asarray(np.linalg.inv(matrix), np.float64)

    def _hessian(self, ratings: Array, is_selected: NDArray[np.bool_]) -> Array:
        """Sum K over the rankings, for the pairs of which at least one item is selected."""
        n_items = self.counts.n_items
        row_ratings = ratings[self.rankings.item]
        # Sum of the Hessians of all rankings; entries count if one of their items is selected.
        total = np.zeros(n_items * n_items)  # flattened
        for table, _, hessians in self.loss.derivatives_by_ranking(row_ratings):
            items = self.rankings.item[table.rows.T]  # (n_rankings, length)
            hessians *= is_selected[items][:, :, None] | is_selected[items][:, None, :]

            # Rows of a Hessian add up to 0, since the loss depends on differences only.
            diagonal = np.arange(items.shape[1])
            hessians[:, diagonal, diagonal] = 0.0
            hessians[:, diagonal, diagonal] = -hessians.sum(axis=2)

            entry_codes = items[:, :, None] * n_items + items[:, None, :]
            total += np.bincount(entry_codes.ravel(), hessians.ravel(), n_items * n_items)
        return total.reshape(n_items, n_items)
