"""What RankSVM and RankLogistic share: a certified minimum of a loss of score differences."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin, with_callbacks

from rankwise.arrays import Array
from rankwise.estimators.callbacks import FitTask
from rankwise.estimators.kernel_model import KernelModel, ModelPath
from rankwise.estimators.margin_training import MarginTrainer, report_solution
from rankwise.estimators.problem import why_no_pairs
from rankwise.features import Design, make_features
from rankwise.frames import check_same_index
from rankwise.graphs import PreferenceGraph
from rankwise.losses import MarginLoss
from rankwise.model_selection.candidates import check_alphas
from rankwise.model_selection.refit_task import MarginTask
from rankwise.solvers.margin_loss import MarginSolution
from rankwise.targets import with_weights


class MarginPath(ModelPath[Any]):
    """Models along a list of alphas, each with the gap that was certified.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefficients : ndarray of shape (n_alphas, n, 1)
        Weights of the features (linear kernel) or of the training or basis items.
    gaps : ndarray of shape (n_alphas,)
        Certified relative gap of each.
    n_iters : ndarray of shape (n_alphas,)
        Iterations that each took.
    solutions : list of MarginSolution
        What the solver found.
    """

    def __init__(
        self,
        template: MarginRanker,
        alphas: Array,
        coefficients: Array,
        solutions: list[MarginSolution],
    ) -> None:
        super().__init__(template, alphas, coefficients)
        self.solutions = solutions
        self.gaps = np.array([solution.best.gap for solution in solutions])
        self.n_iters = np.array([len(solution.history) for solution in solutions])

    def model(self, index: int | NDArray[np.intp]) -> Any:
        """The fitted estimator of ``alphas[index]``."""
        model = super().model(index)
        report_solution(model, self.solutions[int(np.ravel(index)[0])])
        return model


class MarginRanker(CallbackSupportMixin, KernelModel):
    """A ranker that minimizes ``loss(f) + α ‖f‖²`` until a lower bound proves it near the minimum.

    A subclass declares the parameters, which graph it learns from and how it is trained.
    """

    path_class: ClassVar[type[MarginPath]] = MarginPath

    n_basis: int | None
    basis: Any
    max_iter: int
    warm_start: bool
    random_state: Any

    @abstractmethod
    def _make_trainer(self) -> MarginTrainer:
        """The options that say how it is trained, checked."""

    @abstractmethod
    def _make_graph(self, n_items: int, y: Any, groups: ArrayLike | None) -> PreferenceGraph:
        """What is known about the items; a graph is checked and taken as it is."""

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from items and what is known about their order.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_items,), or a preference graph
            Scores (larger is better; only their order counts), a target of `make_target`, a
            `ScoreGraph` or a `PairGraph`. Pairs of equal score and edges of magnitude zero are no
            preferences and are left out.
        groups : array-like of shape (n_items,), optional
            Group labels, any hashable ones in any order: only items of one group are compared.
            None compares all items.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, as in ``RankRLS.fit``.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        given = {"groups": groups, "sample_weight": sample_weight}
        y, groups = with_weights(y, groups, sample_weight, X)
        alpha = float(check_alphas([self.alpha], "alpha")[0])
        trainer = self._make_trainer()
        graph, loss, design = self._prepare(X, y, groups, trainer)
        task = FitTask(self, self.max_iter, X=X, y=y, metadata=given)
        start = self._last_weights(design)
        self._store_features(design.features)
        self.solver_ = trainer.method
        solution = trainer.train(
            loss,
            design.matrix,
            alpha,
            start=start,
            report=lambda w: task.iteration(lambda: self._attributes(design, w)),
        )
        report_solution(self, solution)
        self._store(design.coefficients(solution.best.w[:, None]))
        task.end()
        self._describe(graph, design.matrix, solution)
        trainer.warn_unfinished([solution], [alpha])
        return self

    def path(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        alphas: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """The solutions of a list of alphas, each started from the one before.

        Weights and planes of the larger alpha serve the smaller: the whole path is much cheaper
        than separate fits. `alpha` of the estimator is ignored, and the estimator itself is left
        as it is.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`.
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.

        Returns
        -------
        RankSVMPath or RankLogisticPath
            The models of all alphas.

        Examples
        --------
        >>> from rankwise import RankSVM
        >>> path = RankSVM(tol=1e-6).path([[0.0], [1.0], [3.0]], [0, 1, 2], alphas=[0.01, 1.0])
        >>> path.predict([[1.0]]).round(2)
        array([[1. , 0.5]])
        """
        checked = check_alphas(alphas, "alphas")
        y, groups = with_weights(y, groups, sample_weight, X)
        model: Self = clone(self)
        trainer = model._make_trainer()
        _, loss, design = model._prepare(X, y, groups, trainer)
        return model._follow(trainer, loss, design, checked)

    def _follow(
        self,
        trainer: MarginTrainer,
        loss: MarginLoss,
        design: Design,
        alphas: Array,
    ) -> Any:
        self._store_features(design.features)
        self.solver_ = trainer.method
        solutions = trainer.train_path(loss, design.matrix, alphas)
        trainer.warn_unfinished(solutions, alphas, stacklevel=4)
        W = np.stack([solution.best.w for solution in solutions], axis=1)
        return self.path_class(self, alphas, design.coefficients(W).T[:, :, None], solutions)

    def hold_out_task(self, X: Any, y: Any, groups: ArrayLike | None = None) -> MarginTask:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        Its candidates are alphas. X, y and groups as in `fit`; the estimator is left as it is.
        """
        model: Self = clone(self)
        trainer = model._make_trainer()
        graph, loss, design = model._prepare(X, y, groups, trainer)

        def weights(R: Any, loss: MarginLoss, alphas: Array) -> Array:
            solutions = trainer.train_path(loss, R, alphas)
            trainer.warn_unfinished(solutions, alphas, stacklevel=9)
            return np.stack([solution.best.w for solution in solutions])

        def trained(alpha: float) -> MarginRanker:
            path = model._follow(trainer, loss, design, np.array([alpha]))
            found: MarginRanker = path.model(0)
            found._describe(graph, design.matrix, path.solutions[0])
            return found

        return MarginTask(graph, design, self.alpha, trainer.loss, weights, trained)

    def _prepare(
        self, X: Any, y: Any, groups: ArrayLike | None, trainer: MarginTrainer
    ) -> tuple[PreferenceGraph, MarginLoss, Design]:
        """Check everything, and say what is to be learned from which features."""
        kernel = self.make_kernel()
        check_same_index(X=X, y=y, groups=groups)
        X = self._check_items(X, accept_sparse=False if kernel.is_precomputed else "csr")
        graph = self._make_graph(X.shape[0], y, groups)
        if not graph.strict().n_pairs:
            raise ValueError(f"there is nothing to rank: {why_no_pairs(graph)}.")
        loss = trainer.loss(graph)
        self.n_pairs_ = loss.preferences.n_pairs
        design = make_features(
            kernel, X, n_basis=self.n_basis, basis=self.basis, random_state=self.random_state
        )
        if not design.is_definite:
            warnings.warn(
                f"the kernel {self.kernel!r} is not positive semidefinite on these data; its "
                "negative part is left out.",
                stacklevel=4,
            )
        return graph, loss, design

    def _describe(self, graph: PreferenceGraph, R: Any, solution: MarginSolution) -> None:
        """Keep what else the model says about its pairs; nothing by default."""

    def _attributes(self, design: Design, w: Array) -> dict[str, Any]:
        """What a model with these weights would have; for callbacks that want to predict."""
        name = "coef_" if self.make_kernel().is_linear else "dual_coef_"
        kept = ("X_fit_", "basis_indices_", "n_features_in_")
        shared = {key: getattr(self, key) for key in kept if hasattr(self, key)}
        return {name: design.coefficients(w[:, None])[:, 0], **shared}

    def _last_weights(self, design: Design) -> Array | None:
        """Weights of the last fit, for a warm start, if they belong to as many features."""
        n = design.matrix.shape[1]
        if not self.warm_start:
            return None
        if hasattr(self, "coef_") and self.make_kernel().is_linear and len(self.coef_) == n:
            return np.array(self.coef_)
        before = getattr(self, "dual_coef_", None)
        if (
            before is None
            or design.features.basis is not None
            or len(before) != design.matrix.shape[0]
        ):
            return None
        return np.asarray(design.matrix.T @ before)
