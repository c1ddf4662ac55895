"""Cross-validation of RankRLS: what its shortcuts and refits give for held-out items and edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.features import Design
from rankwise.graphs import PairGraph
from rankwise.losses import SquaredLoss
from rankwise.model_selection.alpha_grid import AlphaGrid, make_grid, median_share
from rankwise.model_selection.candidates import Candidates, check_alphas
from rankwise.model_selection.exact_hold_out import (
    Refit,
    dense_rows,
    held_out_scores,
    item_spectrum,
    whitened_parts,
)
from rankwise.model_selection.folds import Folds
from rankwise.model_selection.leave_out import Units, coefficients_without, way_without
from rankwise.model_selection.task import HeldOutPairs
from rankwise.model_selection.ways import FEWEST_FOR_PAIRS
from rankwise.rows import row_products
from rankwise.solvers import minimize
from rankwise.solvers.hold_out import Part

COLUMNS = 64  # columns of a kernel matrix that are looked at together


class LeastSquaresTask:
    """RankRLS with its data: a `HoldOutTask` without training again, where there is a shortcut.

    Parameters
    ----------
    losses : list of SquaredLoss
        One, or one per output.
    make_design : callable
        Gives the features or the kernel matrix; again after a shortcut has spent a kernel matrix.
    output_shape : tuple
        () or (n_outputs,).
    alpha : float
        The value that the learner has.
    refit : Refit
        Limits of the iterative solver.
    model : callable
        From an alpha, or one for each output, to the learner trained on all data.
    """

    parameters = ("alpha",)
    refits = False
    rows = None

    def __init__(
        self,
        losses: list[SquaredLoss],
        make_design: Callable[[], Design],
        output_shape: tuple[int, ...],
        alpha: float,
        refit: Refit,
        model: Callable[..., Any],
    ) -> None:
        self._losses, self._make_design, self._model = losses, make_design, model
        self._design: Design | None = None
        self._alpha, self._refit = alpha, refit
        self.output_shape = output_shape
        self.graphs = [loss.graph for loss in losses]
        self.n_rows = self.graphs[0].n_items

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default 31 alphas from 1e-8 to 1e2 times the mean squared distance in a pair.

        The grid runs from no regularization to nothing else, whatever the scale of features and
        the amount of data; further down where the columns are on different scales.
        """
        return alpha_candidates(values, self._alpha, self._default_grid)

    def _default_grid(self) -> AlphaGrid:
        if self._white is None:
            return make_grid(*pair_distance(self._losses[0], self.design))
        norms = sum(
            part.share / part.amount.sum() * np.einsum("ij,ij->j", part.white, part.white)
            for part in self._white
        )
        return make_grid(float(norms.sum()), median_share(norms))

    @cached_property
    def _white(self) -> list[Part] | None:
        """The features as the shortcut for whole groups needs them, if that is the way."""
        graph, design = self.graphs[0], self.design
        if len(self.graphs) > 1 or design.method != "primal" or design.columns is None:
            return None
        if sp.issparse(design.matrix) or graph.n_units < 2 or not graph.n_pairs:
            return None
        return whitened_parts(self._losses[0], dense_rows(design.matrix))

    def held_out(
        self, graph: int, folds: Folds, candidates: Candidates, progress: bool | None = None
    ) -> Array:
        """By shortcut where there is one; the last graph spends the kernel matrix."""
        design = self.design
        if design.method == "dual":
            is_last = graph == len(self._losses) - 1
            self._design = None if is_last else design._replace(matrix=design.matrix.copy())
        refit = self._refit._replace(progress=progress)
        loss, alphas = self._losses[graph], candidates.axes["alpha"]
        white = self._white if design.method == "primal" else None  # else no matrix is made again
        return held_out_scores(loss, design, folds, alphas, refit, white)

    @property
    def design(self) -> Design:
        """Features or kernel matrix."""
        if self._design is None:
            self._design = self._make_design()
        return self._design

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """By training again."""
        method, matrix = self.design.method, self.design.matrix
        coef = minimize(
            method,
            SquaredLoss(edges, self._losses[0].beta),
            matrix.copy() if method == "dual" else matrix,
            candidates.axes["alpha"],
            tol=self._refit.tol,
            max_iter=self._refit.max_iter,
        ).coef
        return row_products(matrix, coef[:, :, 0].T)

    def way_without(self, units: Units) -> str:
        """How `coefficients_without` leaves out the units: by a shortcut, or by "refit"."""
        ways = {way_without(loss, self.design, units) for loss in self._losses}
        return "refit" if "refit" in ways else ways.pop()

    def coefficients_without(self, units: Units, candidates: Candidates) -> Array:
        """Coefficients of the models without each unit, and last of the model of all data.

        Shape (n_coefficients, n_units + 1, n_outputs, n_candidates); `KernelModel.regressors` says
        what they are coefficients of. By shortcut where there is one; spends the kernel matrix.
        """
        alphas, found = candidates.axes["alpha"], []
        for k, loss in enumerate(self._losses):
            design = self.design
            if design.method == "dual":
                is_last = k == len(self._losses) - 1
                self._design = None if is_last else design._replace(matrix=design.matrix.copy())
            found.append(coefficients_without(loss, design, units, alphas, self._refit))
        return np.concatenate(found, axis=2)

    @property
    def has_pairs(self) -> bool:
        """Whether all is one list in which every two items (of positive weight) are a pair."""
        if len(self.graphs) > 1:
            return False
        weight = self.graphs[0].item_weights
        if weight is None:
            return self.graphs[0].is_complete
        has_one_kappa = self._losses[0].beta in (0, 1)
        return has_one_kappa and self.graphs[0].subset(np.flatnonzero(weight)).is_complete

    def pairs(self) -> HeldOutPairs | None:
        """For one list in which every two items are a pair; spends the kernel matrix."""
        return self._pairs if self.has_pairs else None

    @cached_property
    def _pairs(self) -> HeldOutPairs:
        beta, scores = self._losses[0].beta, np.asarray(self.graphs[0].scores)
        scores, items = scores.reshape(len(scores), -1), None
        design, self._design = self.design, None
        weight = self.graphs[0].item_weights
        if weight is not None and not weight.all():  # such items are as good as absent
            items = np.flatnonzero(weight)
            at = np.ix_(items, items) if design.method == "dual" else items
            scores, weight = scores[items], weight[items]
            design = design._replace(matrix=design.matrix[at])
        if len(scores) < FEWEST_FOR_PAIRS:
            raise ValueError(
                f"leave-pair-out needs at least {FEWEST_FOR_PAIRS} items, got {len(scores)}: "
                "without two of them at least one pair must be left to train on."
            )
        spectrum = item_spectrum(design, centered=beta == 0, overwrite=True, weight=weight)
        if weight is not None and spectrum.values.min() < 0:
            raise ValueError(
                "the kernel is not positive semidefinite on these data; leave-pair-out with "
                "weights needs one that is, so hold out folds of items."
            )
        return HeldOutPairs(spectrum, scores, beta, items)

    def train(self, **values: Any) -> Any:
        """RankRLS of one alpha, or of one for each output."""
        self._design = None
        return self._model(**values)


def alpha_candidates(
    values: Mapping[str, ArrayLike | None], own: float, default: Callable[[], AlphaGrid]
) -> Candidates:
    """Candidates of a learner whose only path is over alpha.

    Parameters
    ----------
    values : mapping
        What was asked for: {"alpha": ...} or nothing.
    own : float
        The alpha of the learner, if nothing is asked for.
    default : callable
        Gives the grid that stands for None.
    """
    alphas = values.get("alpha", [own])
    if alphas is not None:
        return Candidates({"alpha": check_alphas(alphas, "alphas")})
    grid = default()
    return Candidates({"alpha": grid.alphas}, grid)


def pair_distance(loss: SquaredLoss, design: Design) -> tuple[float, float]:
    """Mean squared distance ``tr(L K)/W`` between the items of a pair, in feature space.

    The sum of the eigenvalues of the system that RankRLS solves. With it, for the columns of a
    linear model, `median_share`; 1 for kernels.
    """
    if design.columns is not None:
        norms = np.maximum(loss.norms(design.columns), 0.0)
        return float(norms.sum()), median_share(norms)
    if design.method == "dual":
        K, size = design.matrix, COLUMNS
        starts = range(0, len(K), size)
        return float(sum(np.trace(loss.times_A(K[:, i : i + size])[i:]) for i in starts)), 1.0
    return float(loss.norms(design.matrix).sum()), 1.0
