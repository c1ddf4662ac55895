"""Cross-validation of RankRLS: what its shortcuts and refits give for held-out items and edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankwise.estimators.cross_validation import alpha_grid
from rankwise.estimators.folds import Folds
from rankwise.estimators.held_out import Refit, held_out_scores, is_complete_list, item_spectrum
from rankwise.features import Design
from rankwise.graphs import PairGraph
from rankwise.losses import SquaredLoss
from rankwise.solvers import minimise
from rankwise.solvers.hold_out_items import pair_disagreement

__all__ = ["LeastSquaresTask", "pair_distance"]

Array = NDArray[np.float64]
COLUMNS = 64  # columns of a kernel matrix that are looked at together


class LeastSquaresTask:
    """RankRLS with its data, as `cross_validate_alphas` wants it, for one cross-validation.

    Parameters
    ----------
    losses : list of SquaredLoss
        One, or one per output.
    design : Design
        Features or kernel matrix.
    output_shape : tuple
        () or (n_outputs,).
    tol, max_iter
        Limits of the iterative solver.
    """

    def __init__(
        self,
        losses: list[SquaredLoss],
        design: Design,
        output_shape: tuple[int, ...],
        tol: float,
        max_iter: int | None,
    ) -> None:
        self.losses, self.design = losses, design
        self.output_shape = output_shape
        self._tol, self._max_iter = tol, max_iter
        self.graphs = [loss.graph for loss in losses]

    def default_alphas(self) -> Array:
        """31 values from 1e-8 to 1e2 times the mean squared distance between items of a pair.

        The grid runs from no regularisation to nothing else, whatever the scale of features and
        the amount of data.
        """
        return alpha_grid(pair_distance(self.losses[0], self.design))

    def held_out(
        self, graph: int, folds: Folds, alphas: Array, progress: bool | None = None
    ) -> Array:
        """By shortcut where there is one; the last graph spends the kernel matrix."""
        refit = Refit(self._tol, self._max_iter, progress)
        design = self.design
        if design.method == "dual":
            is_last = graph == len(self.losses) - 1
            kept = None if is_last else design.matrix.copy()
            self.design = design._replace(matrix=kept)
        return held_out_scores(self.losses[graph], design, folds, alphas, refit)

    def from_edges(self, edges: PairGraph, alphas: Array) -> Array:
        """By training again."""
        method, matrix = self.design.method, self.design.matrix
        coef = minimise(
            method,
            SquaredLoss(edges, self.losses[0].beta),
            matrix.copy() if method == "dual" else matrix,
            alphas,
            tol=self._tol,
            max_iter=self._max_iter,
        ).coef
        return np.asarray(matrix @ coef[:, :, 0].T)

    @property
    def leave_pair_out(self) -> Callable[[Array], Array] | None:
        """For one list in which every two items are a pair."""
        return self._leave_pair_out if is_complete_list(self.graphs[0]) else None

    def _leave_pair_out(self, alphas: Array) -> Array:
        """[RankRLS09] section 3.4."""
        y = self.graphs[0].y  # type: ignore[attr-defined]
        spectrum = item_spectrum(self.design)
        return pair_disagreement(spectrum, y.reshape(len(y), -1), alphas, self.losses[0].beta).T


def pair_distance(loss: SquaredLoss, design: Design) -> float:
    """Mean squared distance ``tr(L K)/W`` between the items of a pair, in feature space.

    The sum of the eigenvalues of the system that RankRLS solves.
    """
    if design.method == "dual":
        K, size = design.matrix, COLUMNS
        starts = range(0, len(K), size)
        return float(sum(np.trace(loss.product(K[:, i : i + size])[i:]) for i in starts))
    return float(loss.norms(design.matrix).sum())
