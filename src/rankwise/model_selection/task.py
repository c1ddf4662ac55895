"""What a learner offers so that it can be cross-validated: a hold-out task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.features.feature_map import Features
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.losses import SquaredLoss
from rankwise.machine import track
from rankwise.model_selection.candidates import (
    DECADES,
    Candidates,
    asked_alphas,
    default_alphas,
)
from rankwise.model_selection.folds import FEWEST_FOR_PAIRS, Folds
from rankwise.model_selection.hold_out import (
    Refit,
    Units,
    coefficients_without,
    dense_rows,
    held_out_scores,
    item_spectrum,
    shortcut_for,
    whitened_terms,
)
from rankwise.rows import row_products
from rankwise.solvers import minimize
from rankwise.solvers.hold_out import WhitenedTerm
from rankwise.solvers.hold_out_list import Spectrum, pair_differences, pair_disagreement
from rankwise.solvers.least_squares import KRYLOV_STEPS

ITERATIVE_DECADES = (-7.5, 1.0)  # where alphas start and end that iterations can tell apart
JUDGED_TOL = 1e-4  # of the residuals of models that are judged and not kept
COLUMNS = 64  # columns of a kernel matrix that are looked at together


class HeldOutPairs(NamedTuple):
    """Every pair of one list held out in turn: [RankRLS09] section 3.4.

    Attributes
    ----------
    spectrum : Spectrum
        Eigenvalues and vectors of the kernel matrix.
    scores : ndarray of shape (n_items, n_outputs)
        Scores of the items.
    beta : float
        Between ranking (0) and regression (1).
    """

    spectrum: Spectrum
    scores: Array
    beta: float

    def disagreement(self, alphas: Array, scores: Array | None = None) -> Array:
        """Share of wrongly ordered pairs, (n_outputs, n_alphas); also for other scores."""
        y = self.scores if scores is None else scores
        return pair_disagreement(self.spectrum, y, alphas, self.beta)

    def differences(self, alpha: float, n_entries: int) -> Iterator[tuple[slice, Array]]:
        """``f_i − f_j`` for all i and j, in blocks of rows, shape (n_rows, n_items, n_outputs)."""
        return pair_differences(self.spectrum, self.scores, alpha, self.beta, n_entries)


class HoldOutTask(ABC):
    """A learner with its data: gives the scores of held-out items, for many candidates at once.

    Learners make it by ``hold_out_task(X, y, groups)``. `held_out_curves`, the searches and all
    functions of `rankwise.model_selection` ask for nothing else. A learner that takes weights of
    items has a fourth argument, ``sample_weight``; they are then those of the graph.

    Attributes
    ----------
    graph : PreferenceGraph
        What is known about the items, in all outputs.
    output_shape : tuple
        () for one output, (n_outputs,) for y of two dimensions.
    rows : ndarray of int or None
        Rows of X that are the items of the graph; None if all rows are. Rows without a score are
        never held out.
    n_rows : int
        Number of rows of X.
    parameters : tuple of str
        What candidates may differ in.
    refits : bool
        Whether every fold is trained again. If not, "auto" may choose ways of many folds.
    has_pairs : bool
        Whether `pairs` gives something: the items are one list and there is a shortcut.
    """

    graph: PreferenceGraph
    output_shape: tuple[int, ...] = ()
    rows: Indices | None = None
    n_rows: int
    parameters: tuple[str, ...] = ("alpha",)
    refits: bool = True

    @property
    def has_pairs(self) -> bool:
        """Whether `pairs` gives something."""
        return False

    @abstractmethod
    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """Combinations of the values of parameters.

        None stands for default values; a parameter that is not named keeps the value that the
        learner has.
        """

    @abstractmethod
    def held_out(self, folds: Folds, candidates: Candidates, progress: bool | None = None) -> Array:
        """Scores of every item by models without its fold, (n_items, n_outputs, n_candidates).

        Parameters
        ----------
        folds : list of ndarray of int
            Items that are held out together; each item is in one of them.
        candidates : Candidates
            What `candidates` gave, or more of the kind.
        progress : bool, optional
            Whether to draw a bar; by default only on a terminal.
        """

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """Scores of all items, (n_items, n_candidates), by models of a part of the edges."""
        raise TypeError(
            f"{type(self).__name__} learns from scores, which have no edges to hold out; hold out "
            "groups or items."
        )

    def pairs(self) -> HeldOutPairs | None:
        """Every pair held out, if there is a shortcut; may spend a kernel matrix."""
        return None

    @abstractmethod
    def train(self, **values: Any) -> Any:
        """The learner trained on all data, with these values of its parameters."""


def hold_out_task(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    advice: str,
    sample_weight: ArrayLike | None = None,
) -> HoldOutTask:
    """The task of an estimator; a TypeError if it offers none."""
    if not hasattr(estimator, "hold_out_task"):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; expected RankRLS, RankSVM, "
            f"RankLogistic or another learner that has hold_out_task. {advice}"
        )
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    task: HoldOutTask = estimator.hold_out_task(X, y, groups, **weights)
    return task


def pair_distance(loss: SquaredLoss, features: Features) -> float:
    """Mean squared distance ``tr(L K)/W`` between the items of a pair, in feature space.

    The sum of the eigenvalues of the system that RankRLS solves.
    """
    if features.columns is not None:
        return float(np.maximum(loss.norms(features.columns), 0.0).sum())
    if features.method == "dual":
        K, size = features.matrix, COLUMNS
        starts = range(0, len(K), size)
        return float(sum(np.trace(loss.times_A(K[:, i : i + size])[i:]) for i in starts))
    return float(loss.norms(features.matrix).sum())


class RefitTask(HoldOutTask):
    """A task of one output that says how it is trained without some items.

    Parameters
    ----------
    graph : PreferenceGraph
        What is known about the items.
    n_rows : int
        Number of rows of X.
    rows : ndarray of int, optional
        Rows of X that are the items of the graph; all if not given.
    """

    def __init__(self, graph: PreferenceGraph, n_rows: int, rows: Indices | None = None) -> None:
        self.graph, self.n_rows, self.rows = graph, n_rows, rows

    @abstractmethod
    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """Scores of some items by models trained on the others, (n_held, n_candidates)."""

    def held_out(self, folds: Folds, candidates: Candidates, progress: bool | None = None) -> Array:
        """Train again without each fold."""
        out = np.empty((self.graph.n_items, 1, len(candidates)))
        for held in track(folds, "training again without a fold", progress):
            out[held, 0] = self.scores_without(held, candidates)
        return out


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
        self._features: Features | None = None

    @abstractmethod
    def make_features(self) -> Features:
        """The features or the kernel matrix; again after a shortcut has spent a kernel matrix."""

    @property
    def features(self) -> Features:
        """Features or kernel matrix."""
        if self._features is None:
            self._features = self.make_features()
        return self._features

    def spend_features(self) -> Features:
        """The same for a use that overwrites a kernel matrix."""
        features = self.features
        if features.method == "dual":
            self._features = None
        return features

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default 40 alphas from rounding to 1e4 times the mean squared distance in a pair.

        They run from no regularization to nothing else, whatever the scale of features and the
        amount of data.
        """
        alphas = asked_alphas(values, self._alpha)
        if alphas is not None:
            return Candidates({"alpha": alphas})
        scale = 0.0
        for term in self._white or []:
            scale += term.share / term.amount.sum() * float(np.vdot(term.white, term.white))
        if self._white is None:
            scale = pair_distance(self.loss, self.features)
        decades = ITERATIVE_DECADES if self.refits else DECADES
        return Candidates({"alpha": default_alphas(scale, decades)})

    @cached_property
    def _white(self) -> list[WhitenedTerm] | None:
        """The features as the shortcut for whole groups needs them, if that is the way."""
        graph, features = self.graph, self.features
        if features.method != "primal" or features.columns is None or sp.issparse(features.matrix):
            return None
        if graph.n_units < 2 or not graph.n_pairs or self.loss.nuisance is not None:
            return None
        return whitened_terms(self.loss, dense_rows(features.matrix))

    def held_out(self, folds: Folds, candidates: Candidates, progress: bool | None = None) -> Array:
        """By shortcut where there is one; spends the kernel matrix."""
        features, refit = self.spend_features(), self._refit._replace(progress=progress)
        if self.refits and len(candidates) > 1:
            refit = refit._replace(tol=max(refit.tol, JUDGED_TOL), max_iter=KRYLOV_STEPS)
        white = self._white if features.method == "primal" else None  # else no matrix is made again
        alphas = candidates.axes["alpha"]
        return held_out_scores(self.loss, features, folds, alphas, refit, white)

    def from_edges(self, edges: PairGraph, candidates: Candidates) -> Array:
        """By training again."""
        method, matrix = self.features.method, self.features.matrix
        coef = minimize(
            method,
            self.loss.of_items(np.arange(self.n_rows), edges),
            matrix.copy() if method == "dual" else matrix,
            candidates.axes["alpha"],
            tol=self._refit.tol,
            max_iter=self._refit.max_iter,
        ).coef
        return row_products(matrix, coef[:, :, 0].T)

    def shortcut_for(self, units: Units) -> str:
        """How `coefficients_without` leaves out the units: by a shortcut, or by "refit"."""
        return shortcut_for(self.loss, self.features, units)

    def coefficients_without(self, units: Units, candidates: Candidates) -> Array:
        """Coefficients of the models without each unit, and last of the model of all data.

        Shape (n_coefficients, n_units + 1, n_outputs, n_candidates); `KernelModel.regressors` says
        what they are coefficients of. By shortcut where there is one; spends the kernel matrix.
        """
        alphas = candidates.axes["alpha"]
        return coefficients_without(self.loss, self.spend_features(), units, alphas, self._refit)

    @property
    def has_pairs(self) -> bool:
        """Whether all is one list in which every two are a pair, without weights or nuisance."""
        is_plain = self.graph.item_weights is None and self.loss.nuisance is None
        return self.graph.is_complete and is_plain

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
        spectrum = item_spectrum(self.spend_features(), centered=beta == 0, overwrite=True)
        return HeldOutPairs(spectrum, scores.reshape(len(scores), -1), beta)
