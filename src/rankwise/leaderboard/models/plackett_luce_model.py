"""Plackett-Luce ratings from rankings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.pair_data import Rankings
from rankwise.graphs import ScoreGraph
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import root_of
from rankwise.leaderboard.algebra.rating_system import regularize_components
from rankwise.leaderboard.models.base import GAP, Point, newton
from rankwise.leaderboard.models.bradley_terry import BradleyTerry
from rankwise.losses import PlackettLuceLoss
from rankwise.runtime.memory import check_matrix_fits
from rankwise.uncertainty.jackknife_errors import CovarianceRoot


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

    def __init__(self, tally: ComparisonCounts, rankings: Rankings) -> None:
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

    def spread(self, clusters: Indices | None, thin: NDArray[np.bool_]) -> CovarianceRoot:
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
        return CovarianceRoot(root_of(V), max(1, n_units - 1), np.empty((0, 1)))

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
        matrix = regularize_components(
            self._bends(ratings, np.ones(n, bool)), self.tally.components
        )
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
