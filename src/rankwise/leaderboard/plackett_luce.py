"""Plackett and Luce's model: rankings of several items, the best one chosen first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices
from rankwise.datasets.rankings import Rankings
from rankwise.errors import warn_user
from rankwise.graphs import ScoreGraph
from rankwise.leaderboard.bradley_terry import EVERY, BradleyTerry
from rankwise.leaderboard.jackknife import root_of
from rankwise.leaderboard.least_squares import alpha_grid, best_alpha
from rankwise.leaderboard.solving import Solution
from rankwise.leaderboard.tally import Tally
from rankwise.losses import PlackettLuceLoss
from rankwise.machine import check_matrix_fits
from rankwise.uncertainty.jackknife import Spread

GAP = 1e-13  # relative to the objective
FAST = 0.1  # of the last gap
MAX_ITERATIONS = 200


class _Point(NamedTuple):
    value: float
    slope: Array


class PlackettLuce(BradleyTerry):
    """``1/W Σ ω [log Σ_{j not yet placed} e^{r_j} − r_i] + α ‖r‖²`` over the W choices of items i.

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
        """Newton's method, which keeps its Hessian as long as the gap falls fast.

        ``J − min J ≤ ‖∇J‖²/(4α)``, since J is strongly convex.
        """
        w, gap, inverse = np.zeros(self.tally.n_items), np.inf, np.empty(0)
        now = self._at(w, alpha)
        for _ in range(MAX_ITERATIONS):
            last, gap = gap, float(now.slope @ now.slope) / (4 * alpha * now.value)
            if gap <= GAP:
                break
            if gap > FAST * last or not inverse.size:
                inverse = self._inverse(w, alpha)
            step = -self.loss.total_weight * (inverse @ now.slope)
            size = 1.0
            trial = self._at(w + step, alpha)
            while trial.value > now.value + 1e-4 * size * (now.slope @ step) and size > 1e-6:
                size /= 2
                trial = self._at(w + size * step, alpha)
            if trial.value > now.value:
                break
            w, now = w + size * step, trial
        if gap > 1e5 * GAP:
            warn_user(
                f"the Plackett–Luce ratings have a relative gap of {gap:.1e}; a larger alpha makes "
                "them exact.",
                ConvergenceWarning,
            )
        ratings, effects = self.tally.centered(w), np.empty(0)
        return Solution(ratings, effects, note=self._note(ratings, effects))

    def _at(self, w: Array, alpha: float) -> _Point:
        loss = self.loss.at(w[self.rankings.item])
        slope = np.bincount(self.rankings.item, loss.gradient, len(w)) + 2 * alpha * w
        return _Point(loss.value + alpha * float(w @ w), slope)

    def choose_alpha(self, rng: np.random.Generator) -> float:
        """The alpha of least log loss on rankings left out one at a time, by a Newton step."""
        alphas = alpha_grid(self.system)[::EVERY]
        losses = [self._held_out_loss(float(alpha)) for alpha in alphas]
        return best_alpha(alphas, np.array(losses))

    def _held_out_loss(self, alpha: float) -> float:
        ratings = self.solve(alpha).ratings
        inverse = self._inverse(ratings, alpha)
        f = ratings[self.rankings.item]
        moved = f.copy()
        for rows, changes in self._changes(ratings, inverse):
            items = self.rankings.item[rows]
            within = inverse[items[:, :, None], items[:, None, :]]
            moved[rows] -= (within @ changes[:, :, None])[:, :, 0]
        return self.loss.losses_of(moved)

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
        inverse = self._inverse(ratings, alpha)
        unit = np.arange(rankings.n_rankings)
        if clusters is not None:
            unit = np.zeros_like(unit)
            unit[rankings.pairs.ranking] = clusters
        sums = np.zeros(len(rankings.item))
        for rows, changes in self._changes(ratings, inverse):
            sums[rows] = changes
        at = unit[rankings.ranking], rankings.item
        by_unit = sp.coo_matrix((sums, at), shape=(unit.max() + 1, n)).tocsr()
        middle = (by_unit.T @ by_unit).toarray() + self._bends(ratings, thin)
        n_units = len(np.unique(unit))
        V = inverse @ middle @ inverse * (max(1, n_units - 1) / n_units)
        return Spread(root_of(V), max(1, n_units - 1), np.empty((0, 1)))

    def _changes(self, ratings: Array, inverse: Array) -> Any:
        """``(I − K EᵀA⁻¹E)⁻¹ ρ`` of each ranking, those of one length together."""
        for table, slope, bend in self.loss.by_ranking(ratings[self.rankings.item]):
            rows = table.rows.T
            items = self.rankings.item[rows]
            within = inverse[items[:, :, None], items[:, None, :]]
            rest = np.eye(rows.shape[1]) - bend @ within
            yield rows, np.linalg.solve(rest, -slope[:, :, None])[:, :, 0]

    def _inverse(self, ratings: Array, alpha: float) -> Array:
        """A⁻¹ with the Hessian A of all; grounded, since only differences count."""
        n, members = self.tally.n_items, self.tally.components
        check_matrix_fits(4 * n, n, "the covariance", "use n_resamples=0 (no intervals)")
        matrix = self._bends(ratings, np.ones(n, bool))
        together = members[:, None] == members
        matrix += together * (matrix.trace() / n / np.bincount(members)[members])
        isolated = np.flatnonzero(matrix.diagonal() == 0)
        matrix[isolated, isolated] += 1.0
        matrix[np.arange(n), np.arange(n)] += 2 * alpha * self.loss.total_weight
        return np.asarray(np.linalg.inv(matrix), np.float64)

    def _bends(self, ratings: Array, chosen: NDArray[np.bool_]) -> Array:
        """Σ K over the rankings, of the pairs of which one item is chosen."""
        n = self.tally.n_items
        total = np.zeros(n * n)
        if not chosen.any():
            return total.reshape(n, n)
        for table, _, bend in self.loss.by_ranking(ratings[self.rankings.item]):
            items = self.rankings.item[table.rows.T]
            bend *= chosen[items][:, :, None] | chosen[items][:, None, :]
            at = np.arange(items.shape[1])
            bend[:, at, at] = 0.0
            bend[:, at, at] = -bend.sum(axis=2)
            codes = items[:, :, None] * n + items[:, None, :]
            total += np.bincount(codes.ravel(), bend.ravel(), n * n)
        return total.reshape(n, n)

    def resample(self, *arguments: Any) -> Solution:
        """Not for rankings."""
        raise ValueError(
            "intervals='bootstrap' is for comparisons; rankings have intervals='jackknife'."
        )
