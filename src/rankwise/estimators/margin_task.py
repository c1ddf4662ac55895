"""Cross-validation of RankSVM: a warm-started path over alpha for every fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.estimators.alpha_grid import AlphaGrid, make_grid
from rankwise.estimators.folds import Folds
from rankwise.estimators.least_squares_task import pair_distance
from rankwise.estimators.margin_training import MarginTrainer
from rankwise.features import Design
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.losses import SquaredLoss
from rankwise.progress import track
from rankwise.rows import row_products

__all__ = ["MarginTask"]

Array = NDArray[np.float64]


class MarginTask:
    """RankSVM with its data, as `cross_validate_alphas` wants it.

    Held-out items stay in the kernel map or basis that all folds share; they are not trained on.

    Parameters
    ----------
    graph : ScoreGraph or PairGraph
        The preferences.
    design : Design
        Features of the items.
    trainer : MarginTrainer
        How to train.
    """

    output_shape: tuple[int, ...] = ()
    leave_pair_out = None

    def __init__(self, graph: Any, design: Design, trainer: MarginTrainer) -> None:
        self.graphs = [graph]
        self._R, self._design, self._trainer = design.matrix, design, trainer

    def default_grid(self) -> AlphaGrid:
        """15 values from 1e-7 to 1 times the mean squared distance between items of a pair.

        Further down where the columns are on different scales.
        """
        distance = pair_distance(SquaredLoss(self.graphs[0]), self._design)
        return make_grid(*distance, decades=(-7, 0), per_decade=2)

    def held_out(
        self, graph: int, folds: Folds, alphas: Array, progress: bool | None = None
    ) -> Array:
        """Train again without each fold."""
        whole = self.graphs[graph]
        out = np.empty((whole.n_items, 1, len(alphas)))
        every = np.arange(whole.n_items)
        for held in track(folds, "training again without a fold", progress):
            rest = np.setdiff1d(every, held)
            weights = self._train(self._R[rest], whole.subset(rest), alphas)
            out[held, 0] = row_products(self._R[held], weights.T)
        return out

    def from_edges(self, edges: PairGraph, alphas: Array) -> Array:
        """Train again."""
        weights = self._train(self._R, edges, alphas)
        return row_products(self._R, weights.T)

    def _train(self, R: Any, graph: PreferenceGraph, alphas: Array) -> Array:
        preferences = graph.strict()
        if not preferences.n_pairs:
            raise ValueError(
                "a fold leaves no preference to train on: they are all in one group (or fold). Use "
                "more or smaller folds."
            )
        solutions = self._trainer.train_path(preferences, R, alphas)
        self._trainer.warn_unfinished(solutions, alphas, stacklevel=6)
        return np.stack([solution.best.w for solution in solutions])
