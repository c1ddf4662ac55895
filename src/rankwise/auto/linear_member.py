"""Linear RankRLS of given features: held-out scores of many alphas, and the model of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.kernels.kernel import Kernel
from rankwise.kernels.solver_input import make_solver_input
from rankwise.losses import SquaredLoss
from rankwise.model_selection.candidate_grid import default_alphas
from rankwise.model_selection.folds import Folds
from rankwise.model_selection.protocol import pair_distance
from rankwise.model_selection.shortcuts import cross_val_scores
from rankwise.rankers.rank_rls import RankRLS
from rankwise.rankers.ranking_problem import warn_about_solutions
from rankwise.solvers.least_squares import IterationLimits, minimize
from rankwise.solvers.methods import choose_method

LINEAR = Kernel("linear")


class LinearMember:
    """A linear RankRLS with its features and its loss.

    Losses are shared by members and the features are finite, so the input is not validated again.

    Parameters
    ----------
    ranker : RankRLS
        The unfitted ranker.
    R : ndarray or sparse array of shape (n_items, n_features)
        Features.
    loss : SquaredLoss
        Loss of the scores of the items.
    """

    def __init__(self, ranker: RankRLS, R: Any, loss: SquaredLoss) -> None:
        method = choose_method(LINEAR, R, ranker.solver)
        self._ranker = ranker
        self._loss = loss
        self._solver_input = make_solver_input(LINEAR, R, method, keeps_matrix=True)
        self._limits: IterationLimits = {"tol": ranker.tol, "max_iter": ranker.max_iter}
        self._n_features = R.shape[1]

    def default_alphas(self) -> Array:
        """Two alphas per decade, in ascending order."""
        return default_alphas(pair_distance(self._loss, self._solver_input))

    def held_out_scores(self, folds: Folds, alphas: Array) -> Array:
        """Scores of each item by models trained without its fold, shape (n_items, n_alphas)."""
        scores = cross_val_scores(self._loss, self._solver_input, folds, alphas, self._limits)
        return scores[:, 0]  # of the only output

    def fit(self, alpha: float) -> RankRLS:
        """The ranker, trained on all items."""
        solver_input = self._solver_input
        solutions = minimize(
            solver_input.method,
            self._loss,
            solver_input.matrix,
            np.array([alpha]),
            **self._limits,
        )
        warn_about_solutions(solutions, "linear", self._ranker.tol)

        # the fitted attributes of RankRLS
        ranker = self._ranker
        ranker.alpha = alpha
        ranker.coef_ = solver_input.coefficients(solutions.coef[0])[:, 0].copy()
        ranker.n_features_in_ = self._n_features
        ranker.n_pairs_ = self._loss.graph.n_pairs
        ranker.solver_ = solver_input.method
        ranker.n_iter_ = solutions.n_iter
        return ranker
