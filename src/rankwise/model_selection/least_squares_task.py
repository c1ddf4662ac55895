"""Cross-validation of RankRLS: what its shortcuts and refits give for held-out items and edges."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.features import Design
from rankwise.graphs import PairGraph
from rankwise.losses import SquaredLoss
from rankwise.model_selection.candidates import Candidates, asked_alphas, default_alphas
from rankwise.model_selection.exact_hold_out import (
    Refit,
    dense_rows,
    held_out_scores,
    item_spectrum,
    whitened_parts,
)
from rankwise.model_selection.folds import FEWEST_FOR_PAIRS, Folds
from rankwise.model_selection.leave_out import Units, coefficients_without, way_without
from rankwise.model_selection.task import HeldOutPairs, HoldOutTask, pair_distance
from rankwise.rows import row_products
from rankwise.solvers import minimize
from rankwise.solvers.hold_out import Part


class LeastSquaresTask(HoldOutTask):
    """RankRLS with its data: no training again where there is a shortcut.

    Parameters
    ----------
    loss : SquaredLoss
        What is minimized.
    output_shape : tuple
        () or (n_outputs,).
    alpha : float
        The value that the learner has.
    refit : Refit
        Limits of the iterative solver.
    """

    refits = False

    def __init__(
        self, loss: SquaredLoss, output_shape: tuple[int, ...], alpha: float, refit: Refit
    ) -> None:
        self.loss, self.graph, self.n_rows = loss, loss.graph, loss.graph.n_items
        self.output_shape = output_shape
        self._alpha, self._refit = alpha, refit
        self._design: Design | None = None

    @abstractmethod
    def make_design(self) -> Design:
        """The features or the kernel matrix; again after a shortcut has spent a kernel matrix."""

    @property
    def design(self) -> Design:
        """Features or kernel matrix."""
        if self._design is None:
            self._design = self.make_design()
        return self._design

    def spend_design(self) -> Design:
        """The same for a use that overwrites a kernel matrix."""
        design = self.design
        if design.method == "dual":
            self._design = None
        return design

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default 40 alphas from rounding to 1e4 times the mean squared distance in a pair.

        They run from no regularization to nothing else, whatever the scale of features and the
        amount of data.
        """
        alphas = asked_alphas(values, self._alpha)
        if alphas is not None:
            return Candidates({"alpha": alphas})
        scale = 0.0
        for part in self._white or []:
            scale += part.share / part.amount.sum() * float(np.vdot(part.white, part.white))
        if self._white is None:
            scale = pair_distance(self.loss, self.design)
        return Candidates({"alpha": default_alphas(scale)})

    @cached_property
    def _white(self) -> list[Part] | None:
        """The features as the shortcut for whole groups needs them, if that is the way."""
        graph, design = self.graph, self.design
        if design.method != "primal" or design.columns is None or sp.issparse(design.matrix):
            return None
        if graph.n_units < 2 or not graph.n_pairs:
            return None
        return whitened_parts(self.loss, dense_rows(design.matrix))

    def held_out(self, folds: Folds, candidates: Candidates, progress: bool | None = None) -> Array:
        """By shortcut where there is one; spends the kernel matrix."""
        design, refit = self.spend_design(), self._refit._replace(progress=progress)
        white = self._white if design.method == "primal" else None  # else no matrix is made again
        alphas = candidates.axes["alpha"]
        return held_out_scores(self.loss, design, folds, alphas, refit, white)

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """By training again."""
        method, matrix = self.design.method, self.design.matrix
        coef = minimize(
            method,
            SquaredLoss(edges, self.loss.beta),
            matrix.copy() if method == "dual" else matrix,
            candidates.axes["alpha"],
            tol=self._refit.tol,
            max_iter=self._refit.max_iter,
        ).coef
        return row_products(matrix, coef[:, :, 0].T)

    def way_without(self, units: Units) -> str:
        """How `coefficients_without` leaves out the units: by a shortcut, or by "refit"."""
        return way_without(self.loss, self.design, units)

    def coefficients_without(self, units: Units, candidates: Candidates) -> Array:
        """Coefficients of the models without each unit, and last of the model of all data.

        Shape (n_coefficients, n_units + 1, n_outputs, n_candidates); `KernelModel.regressors` says
        what they are coefficients of. By shortcut where there is one; spends the kernel matrix.
        """
        alphas = candidates.axes["alpha"]
        return coefficients_without(self.loss, self.spend_design(), units, alphas, self._refit)

    @property
    def has_pairs(self) -> bool:
        """Whether all is one list of items without weights in which every two are a pair."""
        return self.graph.is_complete and self.graph.item_weights is None

    def pairs(self) -> HeldOutPairs | None:
        """For one list in which every two items are a pair; spends the kernel matrix."""
        return self._pairs if self.has_pairs else None

    @cached_property
    def _pairs(self) -> HeldOutPairs:
        beta, scores = self.loss.beta, np.asarray(self.graph.scores)
        if len(scores) < FEWEST_FOR_PAIRS:
            raise ValueError(
                f"leave-pair-out needs at least {FEWEST_FOR_PAIRS} items, got {len(scores)}: "
                "without two of them at least one pair must be left to train on."
            )
        spectrum = item_spectrum(self.spend_design(), centered=beta == 0, overwrite=True)
        return HeldOutPairs(spectrum, scores.reshape(len(scores), -1), beta)
