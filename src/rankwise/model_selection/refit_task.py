"""Hold-out tasks of learners that are trained again without each fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.features import Design
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.losses import MarginLoss, SquaredLoss
from rankwise.machine import track
from rankwise.model_selection.alpha_grid import make_grid
from rankwise.model_selection.candidates import Candidates
from rankwise.model_selection.folds import Folds
from rankwise.model_selection.least_squares_task import alpha_candidates, pair_distance
from rankwise.rows import row_products

SVM_DECADES = (-7, 0)
SVM_PER_DECADE = 2


class RefitTask(ABC):
    """A `HoldOutTask` of one output that says how it is trained without some items.

    Parameters
    ----------
    graph : PreferenceGraph
        What is known about the items.
    n_rows : int
        Number of rows of X.
    model : callable
        From values of the parameters to the learner trained on all data.
    rows : ndarray of int, optional
        Rows of X that are the items of the graph; all if not given.
    """

    parameters: tuple[str, ...] = ("alpha",)
    output_shape: tuple[int, ...] = ()
    refits, has_pairs = True, False

    def __init__(
        self,
        graph: PreferenceGraph,
        n_rows: int,
        model: Callable[..., Any],
        rows: Indices | None = None,
    ) -> None:
        self.graphs, self.n_rows, self.rows = [graph], n_rows, rows
        self._model = model

    @abstractmethod
    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """Combinations of the values of parameters; None stands for default values."""

    @abstractmethod
    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """Scores of some items by models trained on the others, (n_held, n_candidates)."""

    def train(self, **values: Any) -> Any:
        """The learner trained on all data, with these values of its parameters."""
        return self._model(**values)

    def held_out(
        self, graph: int, folds: Folds, candidates: Candidates, progress: bool | None = None
    ) -> Array:
        """Train again without each fold."""
        out = np.empty((self.graphs[graph].n_items, 1, len(candidates)))
        for held in track(folds, "training again without a fold", progress):
            out[held, 0] = self.scores_without(held, candidates)
        return out

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """Learners that take scores only refuse explicit preferences before they get here."""
        raise TypeError(
            f"{type(self).__name__} learns from scores, which have no edges to hold out; hold out "
            "groups or items."
        )

    def pairs(self) -> None:
        """There is no shortcut."""
        return


class MarginTask(RefitTask):
    """RankSVM or RankLogistic with its data: a warm-started path over alpha for every fold.

    Held-out items stay in the kernel map or basis that all folds share; they are not trained on.

    Parameters
    ----------
    graph : PreferenceGraph
        The preferences.
    design : Design
        Features of the items.
    alpha : float
        The value that the learner has.
    loss : callable
        From a graph to the loss of its pairs.
    weights : callable
        From features, a loss and alphas to weights, shape (n_alphas, n_features).
    model : callable
        From an alpha to the learner trained on all data.
    """

    def __init__(
        self,
        graph: PreferenceGraph,
        design: Design,
        alpha: float,
        loss: Callable[[PreferenceGraph], MarginLoss],
        weights: Callable[..., Array],
        model: Callable[..., Any],
    ) -> None:
        super().__init__(graph, graph.n_items, model)
        self._design, self._alpha, self._loss, self._weights = design, alpha, loss, weights

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default 15 alphas from 1e-7 to 1 times the mean squared distance in a pair.

        Further down where the columns are on different scales.
        """
        return alpha_candidates(values, self._alpha, self._default_grid)

    def _default_grid(self) -> Any:
        distance = pair_distance(SquaredLoss(self.graphs[0]), self._design)
        return make_grid(*distance, decades=SVM_DECADES, per_decade=SVM_PER_DECADE)

    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """Train on the features of the others."""
        graph, R = self.graphs[0], self._design.matrix
        rest = np.setdiff1d(np.arange(graph.n_items), held)
        return self._scores(R[rest], graph.subset(rest), candidates, R[held])

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """Train on the features of all items."""
        R = self._design.matrix
        return self._scores(R, edges, candidates, R)

    def _scores(self, R: Any, graph: PreferenceGraph, candidates: Candidates, new: Any) -> Array:
        loss = self._loss(graph)
        if not loss.graph.n_pairs:
            raise ValueError(
                "a fold leaves no preference to train on: they are all in one group (or fold). Use "
                "more or smaller folds."
            )
        return row_products(new, self._weights(R, loss, candidates.axes["alpha"]).T)
