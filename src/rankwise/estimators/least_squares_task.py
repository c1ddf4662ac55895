"""Cross-validation of RankRLS: what its shortcuts and refits give for held-out items and edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankwise.estimators.alpha_grid import AlphaGrid, make_grid, median_share
from rankwise.estimators.folds import Folds
from rankwise.estimators.held_out import Refit, held_out_scores, is_complete_list, item_spectrum
from rankwise.features import Design
from rankwise.graphs import PairGraph
from rankwise.losses import SquaredLoss
from rankwise.rows import row_products
from rankwise.solvers import minimize
from rankwise.solvers.hold_out_items import Spectrum, pair_disagreement

__all__ = ["LeastSquaresTask", "pair_distance"]

Array = NDArray[np.float64]
COLUMNS = 64  # columns of a kernel matrix that are looked at together


class LeastSquaresTask:
    """RankRLS with its data, as `cross_validate_alphas` wants it, for one cross-validation.

    Parameters
    ----------
    losses : list of SquaredLoss
        One, or one per output.
    make_design : callable
        Gives the features or the kernel matrix; again after a shortcut has spent a kernel matrix.
    output_shape : tuple
        () or (n_outputs,).
    tol, max_iter
        Limits of the iterative solver.
    """

    def __init__(
        self,
        losses: list[SquaredLoss],
        make_design: Callable[[], Design],
        output_shape: tuple[int, ...],
        tol: float,
        max_iter: int | None,
    ) -> None:
        self.losses, self._make_design = losses, make_design
        self._design: Design | None = None
        self.output_shape = output_shape
        self._tol, self._max_iter = tol, max_iter
        self.graphs = [loss.graph for loss in losses]

    def default_grid(self) -> AlphaGrid:
        """31 values from 1e-8 to 1e2 times the mean squared distance between items of a pair.

        The grid runs from no regularization to nothing else, whatever the scale of features and
        the amount of data; further down where the columns are on different scales.
        """
        return make_grid(*pair_distance(self.losses[0], self.design))

    def held_out(
        self, graph: int, folds: Folds, alphas: Array, progress: bool | None = None
    ) -> Array:
        """By shortcut where there is one; the last graph spends the kernel matrix."""
        refit = Refit(self._tol, self._max_iter, progress)
        design = self.design
        if design.method == "dual":
            is_last = graph == len(self.losses) - 1
            self._design = None if is_last else design._replace(matrix=design.matrix.copy())
        return held_out_scores(self.losses[graph], design, folds, alphas, refit)

    @property
    def design(self) -> Design:
        """Features or kernel matrix."""
        if self._design is None:
            self._design = self._make_design()
        return self._design

    def from_edges(self, edges: PairGraph, alphas: Array) -> Array:
        """By training again."""
        method, matrix = self.design.method, self.design.matrix
        coef = minimize(
            method,
            SquaredLoss(edges, self.losses[0].beta),
            matrix.copy() if method == "dual" else matrix,
            alphas,
            tol=self._tol,
            max_iter=self._max_iter,
        ).coef
        return row_products(matrix, coef[:, :, 0].T)

    @cached_property
    def _spectrum(self) -> Spectrum:
        return item_spectrum(self.design, centered=self.losses[0].beta == 0)

    @property
    def leave_pair_out(self) -> Callable[[Array], Array] | None:
        """For one list in which every two items are a pair."""
        return self._leave_pair_out if is_complete_list(self.graphs[0]) else None

    def _leave_pair_out(self, alphas: Array) -> Array:
        """[RankRLS09] section 3.4."""
        y = self.graphs[0].y  # type: ignore[attr-defined]
        return pair_disagreement(
            self._spectrum, y.reshape(len(y), -1), alphas, self.losses[0].beta
        ).T


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
        return float(sum(np.trace(loss.product(K[:, i : i + size])[i:]) for i in starts)), 1.0
    return float(loss.norms(design.matrix).sum()), 1.0
