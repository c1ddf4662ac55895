"""Interface between learners and cross-validation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, Indices, MatrixLike, ParameterValue
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.graphs.supervision import TargetLike
from rankwise.kernels.solver_input import SolverInput
from rankwise.losses import SquaredLoss
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.folds import Folds
from rankwise.runtime.progress import track
from rankwise.solvers.leave_items_out import (
    Spectrum,
    hold_out_pairs,
    pair_differences,
    pair_disagreement,
)
from rankwise.validation import check_alphas, check_nus

SPARSE_COLUMNS = 64  # columns of a kernel matrix in a block


class HeldOutPairs(NamedTuple):
    """Every pair of one list held out in turn: [RankRLS09] section 3.4.

    Attributes
    ----------
    spectrum : Spectrum
        Eigenvalues and vectors of the kernel matrix.
    y : ndarray of shape (n_items, n_outputs)
        True scores of the items.
    beta : float
        Between ranking (0) and regression (1).
    compute_uncentered_spectrum : callable
        Computes the spectrum of features that are not centered, from which the level of the
        predictions follows.
    """

    spectrum: Spectrum
    y: Array
    beta: float
    compute_uncentered_spectrum: Callable[[], Spectrum]

    def disagreement(self, alphas: Array, y: Array | None = None) -> Array:
        """Share of wrongly ordered pairs, (n_outputs, n_alphas); also for other scores."""
        if y is None:
            y = self.y
        return pair_disagreement(self.spectrum, y, alphas, self.beta)

    def differences(self, alpha: float, n_entries: int) -> Iterator[tuple[slice, Array]]:
        """``f_i − f_j`` for all i and j, in blocks of rows, shape (n_rows, n_items, n_outputs)."""
        return pair_differences(self.spectrum, self.y, alpha, self.beta, n_entries)

    def predictions(self, alpha: float, pairs: Indices) -> Array:
        """Scores of both items of these pairs, shape (n_pairs, 2, n_outputs)."""
        # Unlike differences, the predictions themselves depend on the level of the features
        spectrum = self.compute_uncentered_spectrum()
        return hold_out_pairs(spectrum, self.y, pairs, alpha, self.beta)


class CandidateTask(ABC):
    """A learner with its data, which can be fitted with candidate values of its parameters.

    Attributes
    ----------
    learner : estimator
        Learner with the values of its parameters.
    parameters : tuple of str
        Parameters in which candidates may differ.
    """

    learner: BaseEstimator
    parameters: tuple[str, ...] = ("alpha",)

    @abstractmethod
    def train(self, **values: ParameterValue) -> BaseEstimator:
        """Train the learner with these values of its parameters on all data.

        Parameters
        ----------
        **values
            Values of the parameters.

        Returns
        -------
        estimator
            The fitted estimator.
        """

    @abstractmethod
    def default_values(self, name: str) -> Array:
        """Candidate values of a parameter for which the user passed none.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        ndarray
            Values.
        """

    def candidates(self, **values: ArrayLike | None) -> CandidateGrid:
        """All combinations of the values of the parameters.

        None selects default values; a parameter that is not passed has the value of the learner.

        Parameters
        ----------
        **values : array-like or None
            Candidate values of each parameter.

        Returns
        -------
        CandidateGrid
            The grid.
        """
        axes = {}
        for name in self.parameters:
            # Values of the user, default values for None, otherwise the value of the learner
            requested = values.get(name, [getattr(self.learner, name)])
            if requested is None:
                axes[name] = self.default_values(name)
            elif name == "n_basis":
                axes[name] = np.asarray(requested, dtype=np.intp)
            elif name == "nu":
                axes[name] = check_nus(requested, "nus")
            else:
                axes[name] = check_alphas(requested, f"{name}s")
        return CandidateGrid(axes)

    def candidate_alphas(self, alphas: ArrayLike | None) -> CandidateGrid:
        """Grid of these alphas; None uses the alpha of the learner.

        Parameters
        ----------
        alphas : array-like or None
            Candidates.

        Returns
        -------
        CandidateGrid
            The grid.
        """
        if alphas is None:
            return self.candidates()
        return self.candidates(alpha=alphas)


class HoldOutTask(CandidateTask):
    """A learner with its data, which predicts held-out items for many candidates at once.

    The method ``hold_out_task(X, y, groups)`` of a learner returns it. It is all that
    `grid_search`, `cross_validate_candidates` and the other functions of
    `rankwise.model_selection` need. A learner that supports weights of items has a fourth
    argument, ``sample_weight``; the graph then contains the weights.

    Parameters
    ----------
    learner : estimator
        Its parameters are the values that candidates do not change.
    graph : PreferenceGraph
        True preferences of the items, in all outputs.
    rows : ndarray of int, default=None
        Rows of X that are the items of the graph; None for all rows. Rows without a score are never
        held out.
    n_rows : int, default=None
        Number of rows of X; None if all rows are items.

    Attributes
    ----------
    output_shape : tuple
        () for one output, (n_outputs,) for y of two dimensions.
    parameters : tuple of str
        Parameters of the candidates.
    refits : bool
        Whether every fold is refitted. If not, cv="auto" may use many folds.
    """

    output_shape: tuple[int, ...] = ()
    refits: bool = True

    def __init__(
        self,
        learner: BaseEstimator,
        graph: PreferenceGraph,
        rows: Indices | None = None,
        n_rows: int | None = None,
    ) -> None:
        if n_rows is None:
            n_rows = graph.n_items
        self.learner = learner
        self.graph = graph
        self.rows = rows
        self.n_rows = n_rows

    def refits_folds(self, n_folds: int) -> bool:
        """Whether each fold is refitted, by default as `refits` says.

        Parameters
        ----------
        n_folds : int
            Number of folds.

        Returns
        -------
        bool
            False if a shortcut is used, which may depend on the number of folds.
        """
        return self.refits  # for any number of folds, unless a subclass has a shortcut for many

    def held_out(self, folds: Folds, candidates: CandidateGrid) -> Array:
        """Predict every item by models that were trained without its fold.

        Parameters
        ----------
        folds : list of ndarray of int
            Items that are held out together; each item is in one of them.
        candidates : CandidateGrid
            Candidate values of `parameters`.

        Returns
        -------
        ndarray of shape (n_items, n_outputs, n_candidates)
            Held-out scores.
        """
        n_outputs = math.prod(self.output_shape)
        n_candidates = len(candidates)
        scores = np.empty((self.graph.n_items, n_outputs, n_candidates))
        for fold in track(folds, "refitting without a fold"):
            scores_of_fold = self.scores_without(fold, candidates)
            scores[fold] = scores_of_fold.reshape(len(fold), n_outputs, n_candidates)
        return scores

    def scores_without(self, test_items: Indices, candidates: CandidateGrid) -> Array:
        """Predict items by models trained on the other items.

        Shape (n_held, n_candidates), or (n_held, n_outputs, n_candidates) for several outputs.

        Parameters
        ----------
        test_items : ndarray of int
            Row numbers of the held-out items.
        candidates : CandidateGrid
            Candidates.

        Returns
        -------
        ndarray
            Scores of the held-out items.
        """
        raise NotImplementedError

    def from_edges(self, edges: PairGraph, candidates: CandidateGrid) -> Array:
        """Predict all items by models trained on these edges, (n_items, n_candidates).

        Parameters
        ----------
        edges : PairGraph
            Training edges.
        candidates : CandidateGrid
            Candidates.

        Returns
        -------
        ndarray of shape (n_items, n_candidates)
            Scores.
        """
        raise NotImplementedError

    @property
    def has_pairs(self) -> bool:
        """Whether leave-pair-out has a shortcut."""
        return False

    def pairs(self) -> HeldOutPairs:
        """Hold out every pair of one list.

        Returns
        -------
        HeldOutPairs
            Held-out scores of both items of each pair.
        """
        # Learners with a shortcut override this method
        raise ValueError(
            f"leave-pair-out has no shortcut for this problem: {self._why_no_pairs()}; hold out "
            "groups or folds of items."
        )

    def _why_no_pairs(self) -> str:
        """The first requirement of leave-pair-out that does not hold."""
        graph = self.graph
        if graph.n_groups > 1:
            return f"it needs one list, and there are {graph.n_groups} groups"
        if graph.item_weights is not None:
            return "the items have weights, and pairs are held out only without sample_weight"
        if not graph.is_complete:
            return (
                "all pairs must be edges (cost='magnitude', ties='include'), but y is a "
                f"{type(graph).__name__} with cost={graph.cost!r} and ties={graph.ties!r}"
            )
        return "it is for RankRLS without nuisance"


def hold_out_task(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
) -> HoldOutTask:
    """Hold-out task of an estimator; a TypeError if it has no method ``hold_out_task``."""
    if not hasattr(estimator, "hold_out_task"):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; expected RankRLS, RankSVM, "
            "RankLogistic or another learner with a method hold_out_task. For other estimators use "
            "cross_validate or cross_val_predict of scikit-learn."
        )
    task: HoldOutTask
    if sample_weight is None:  # a learner that does not support weights has no such argument
        task = estimator.hold_out_task(X, y, groups)
    else:
        task = estimator.hold_out_task(X, y, groups, sample_weight=sample_weight)
    return task


def pair_distance(loss: SquaredLoss, features: SolverInput) -> float:
    """Mean squared distance ``tr(L K)/W`` between the items of a pair, in feature space.

    The sum of the eigenvalues of the system that RankRLS solves.
    """
    # Trace of A K, where K = R Rᵀ is the kernel matrix of the features R, and fᵀ A f the quadratic
    # part of the loss of scores f
    if features.linear_features is not None:
        # trace of Rᵀ A R: sum of rᵀ A r over the columns r
        # where negative terms are rounding errors
        column_terms = np.maximum(loss.norms(features.linear_features), 0.0)
        return float(column_terms.sum())
    if features.method == "dual":
        # trace of A K with the kernel matrix K, in blocks of columns
        K = features.matrix
        trace = 0.0
        for start in range(0, len(K), SPARSE_COLUMNS):
            product_columns = loss.times_A(K[:, start : start + SPARSE_COLUMNS])
            trace += np.trace(product_columns[start:])  # its part of the diagonal
        return float(trace)
    return float(loss.norms(features.matrix).sum())
