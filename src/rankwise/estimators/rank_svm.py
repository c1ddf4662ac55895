"""RankSVM: the ranking support vector machine, trained to a certified gap."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from rankwise.arrays import Array
from rankwise.estimators.callbacks import CallbackSupportMixin, FitTask, with_callbacks
from rankwise.estimators.kernel_model import KernelModel, ModelPath
from rankwise.estimators.lost_groups import warn_if_groups_were_lost
from rankwise.estimators.margin_training import MarginTrainer, report_solution
from rankwise.estimators.problem import strict_graph, why_no_pairs
from rankwise.features import Design, make_features
from rankwise.frames import check_same_index
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.strict import StrictPreferences
from rankwise.model_selection.candidates import check_alphas
from rankwise.model_selection.refit_task import MarginTask
from rankwise.solvers.margin_loss import MarginSolution

__all__ = ["RankSVM", "RankSVMPath"]


@dataclass(eq=False, repr=False)
class RankSVM(CallbackSupportMixin, KernelModel):
    """Ranking support vector machine.

    Learns a function f from scores, scores in groups or pairwise preferences by minimizing

        J(f) = 1/W Σ_k ω_k max(0, 1 − (f_i − f_j)) + α ‖f‖²

    (or the square of the maximum) over the pairs k = (i → j) in which i is strictly preferred to
    j, with weights ω and W = Σ ω ([TreeRSVM11] equations 2 and 4). The pairs of scored items are
    never formed: loss and subgradient cost O(m s + m log m) for m items with s non-zero features,
    whatever the scores ([TreeRSVM11] algorithm 2). Training ends when a lower bound proves that
    the objective is within `tol` of its minimum.

    Parameters
    ----------
    alpha : float
        Regularization, positive; relative to the mean over pairs, so it does not depend on the
        amount of data: the λ of [TreeRSVM11]. An SVM that charges C for every pair has
        ``C = 1/(2 alpha W)``.
    loss : {"hinge", "squared_hinge"}
        What a pair costs: ``max(0, 1 − g)`` or its square, for the difference of scores g.
    kernel : str or callable
        "linear", any other name known to `sklearn.metrics.pairwise.pairwise_kernels`, a function
        of two rows, or "precomputed" (X is then the kernel matrix between items and training
        items). Kernels work by the empirical kernel map ([RankRLS09] sections 4.2 and 4.4).
    gamma, degree, coef0
        Parameters of the named kernels, as in scikit-learn.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    group_weight : {"pairs", "groups"}
        Whether every pair or every group counts alike ([TreeRSVM11] end of section 4).
    n_basis : int, optional
        Train a kernel model on this many basis items only.
    basis : {"random", "kmeans++"}, array of int, or array of shape (n_basis, n_features)
        How the basis is chosen, the row numbers of the basis items (for example `basis_indices_`
        of a `RankingPursuit`), or points of any kind; duplicates among points do no harm.
    tol : float
        Stop when ``(J − lower bound)/J`` is at most this.
    max_iter : int
        Limit of iterations.
    solver : {"auto", "lbfgs", "newton-cg", "bmrm"}
        "lbfgs": quasi-Newton steps with a bundle of planes that certifies them; "newton-cg":
        truncated Newton, for the squared hinge; "bmrm": the cutting planes of [TreeRSVM11]
        algorithm 1, slower and kept as the reference. "auto" takes "lbfgs" for the hinge,
        "newton-cg" for the squared hinge.
    warm_start : bool
        Start from the solution of the last `fit`.
    verbose : int
        1 shows a line of progress on standard error, 2 one line for each iteration.
    random_state : int, RandomState or None
        Seed of the choice of basis items.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features (linear kernel).
    dual_coef_ : ndarray of shape (n_basis,)
        Weights of the training or basis items (other kernels).
    X_fit_ : ndarray or sparse matrix
        Those items (not for precomputed kernels).
    basis_indices_ : ndarray of int
        Row numbers of the basis items (if a basis of rows was used).
    objective_ : float
        J of the model.
    lower_bound_ : float
        No model has a smaller J than this. What rounding may have added is taken off: about
        ``ε √(n_items + n_features)`` times the sum over columns of ``max |x| · |w|``, ε = 2⁻⁵²; the
        exact allowance is in the docstring of `rankwise.solvers.bundle`.
    gap_ : float
        ``(objective_ − lower_bound_)/objective_``; negative, with a warning, only if the bound
        contradicts the objective by more than rounding.
    n_iter_ : int
        Iterations on all items; large data start from the solution on a sample of them.
    history_ : dict of ndarray of shape (n_iterations,)
        "objective", "lower_bound" and "gap" after each iteration.
    n_pairs_ : int
        Number of pairs trained on.
    solver_ : str
        The solver in use.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    RankSVMCV : Chooses alpha by cross-validation along a warm-started path.
    RankRLS : Squared loss; exact cross-validation, several outputs, magnitudes of preferences.

    Notes
    -----
    Ctrl-C during `fit` ends the search; the model is the best one found so far, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVM
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> y = [1, 2, 3, 0, 1, 2]
    >>> model = RankSVM(alpha=0.01).fit(X, y, groups=[1, 1, 1, 2, 2, 2])
    >>> model.rank(X, groups=[1, 1, 1, 2, 2, 2])
    array([3, 2, 1, 3, 2, 1])
    >>> model.coef_.round(2), model.gap_ <= 1e-3
    (array([1.]), True)
    """

    alpha: float = 1e-3
    _: KW_ONLY
    loss: str = "hinge"
    group_weight: str = "pairs"
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    tol: float = 1e-3
    max_iter: int = 1000
    solver: str = "auto"
    warm_start: bool = False
    verbose: int = 0
    random_state: Any = None

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
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

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        warn_if_groups_were_lost(y, groups, "fit")
        alpha = float(check_alphas([self.alpha], "alpha")[0])
        trainer = self._make_trainer()
        _, preferences, design = self._prepare(X, y, groups)
        task = FitTask(self, self.max_iter, X=X, y=y, metadata={"groups": groups})
        start = self._last_weights(design)
        self._store_features(design.features)
        self.solver_ = trainer.method
        solution = trainer.train(
            preferences,
            design.matrix,
            alpha,
            start=start,
            report=lambda w: task.iteration(lambda: self._attributes(design, w)),
        )
        report_solution(self, solution)
        self._store(design.coefficients(solution.best.w[:, None]))
        task.end()
        trainer.warn_unfinished([solution], [alpha])
        return self

    def path(
        self, X: Any, y: Any, groups: ArrayLike | None = None, *, alphas: ArrayLike
    ) -> RankSVMPath:
        """The solutions of a list of alphas, each started from the one before.

        Weights and planes of the larger alpha serve the smaller: the whole path is much cheaper
        than separate fits. `alpha` of the estimator is ignored, and the estimator itself is left
        as it is.

        Parameters
        ----------
        X, y, groups
            As in `fit`.
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.

        Returns
        -------
        RankSVMPath
            The models of all alphas.

        Examples
        --------
        >>> from rankwise import RankSVM
        >>> path = RankSVM(tol=1e-6).path([[0.0], [1.0], [3.0]], [0, 1, 2], alphas=[0.01, 1.0])
        >>> path.predict([[1.0]]).round(2)
        array([[1. , 0.5]])
        """
        checked = check_alphas(alphas, "alphas")
        model: RankSVM = clone(self)
        trainer = model._make_trainer()
        _, preferences, design = model._prepare(X, y, groups)
        return model._follow(trainer, preferences, design, checked)

    def _follow(
        self,
        trainer: MarginTrainer,
        preferences: StrictPreferences,
        design: Design,
        alphas: Array,
    ) -> RankSVMPath:
        self._store_features(design.features)
        self.solver_ = trainer.method
        solutions = trainer.train_path(preferences, design.matrix, alphas)
        trainer.warn_unfinished(solutions, alphas, stacklevel=4)
        W = np.stack([solution.best.w for solution in solutions], axis=1)
        return RankSVMPath(self, alphas, design.coefficients(W).T[:, :, None], solutions)

    def hold_out_task(self, X: Any, y: Any, groups: ArrayLike | None = None) -> MarginTask:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        Its candidates are alphas. X, y and groups as in `fit`; the estimator is left as it is.
        """
        model: RankSVM = clone(self)
        trainer = model._make_trainer()
        graph, preferences, design = model._prepare(X, y, groups)

        def weights(R: Any, strict: StrictPreferences, alphas: Array) -> Array:
            solutions = trainer.train_path(strict, R, alphas)
            trainer.warn_unfinished(solutions, alphas, stacklevel=9)
            return np.stack([solution.best.w for solution in solutions])

        def trained(alpha: float) -> RankSVM:
            return model._follow(trainer, preferences, design, np.array([alpha])).model(0)

        return MarginTask(graph, design, self.alpha, weights, trained)

    def _prepare(
        self, X: Any, y: Any, groups: ArrayLike | None
    ) -> tuple[PreferenceGraph, StrictPreferences, Design]:
        """Check everything, and say what is to be learned from which features."""
        check_same_index(X=X, y=y, groups=groups)
        kernel = self.make_kernel()
        X = self._check_items(X, accept_sparse=False if kernel.is_precomputed else "csr")
        graph = strict_graph(X.shape[0], y, groups, self.group_weight)
        preferences = graph.strict()
        if not preferences.n_pairs:
            raise ValueError(f"there is nothing to rank: {why_no_pairs(graph)}.")
        if graph.scores is None and preferences.n_pairs < graph.n_pairs:
            warnings.warn(
                f"{graph.n_pairs - preferences.n_pairs} of {graph.n_pairs} edges have magnitude 0: "
                "they state ties, which RankSVM cannot use and leaves out (RankRLS uses them).",
                stacklevel=4,
            )
        self.n_pairs_ = preferences.n_pairs
        design = make_features(
            kernel, X, n_basis=self.n_basis, basis=self.basis, random_state=self.random_state
        )
        if not design.is_definite:
            warnings.warn(
                f"the kernel {self.kernel!r} is not positive semidefinite on these data; its "
                "negative part is left out.",
                stacklevel=4,
            )
        return graph, preferences, design

    def _make_trainer(self) -> MarginTrainer:
        return MarginTrainer(self.loss, self.solver, self.tol, self.max_iter, self.verbose)

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


class RankSVMPath(ModelPath[RankSVM]):
    """Models along a list of alphas, as `RankSVM.path` returns them.

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
    """

    def __init__(
        self,
        template: RankSVM,
        alphas: Array,
        coefficients: Array,
        solutions: list[MarginSolution],
    ) -> None:
        super().__init__(template, alphas, coefficients)
        self._solutions = solutions
        self.gaps = np.array([solution.best.gap for solution in solutions])
        self.n_iters = np.array([len(solution.history) for solution in solutions])

    def model(self, index: int | NDArray[np.intp]) -> RankSVM:
        """The fitted estimator of ``alphas[index]``."""
        model = super().model(index)
        report_solution(model, self._solutions[int(np.ravel(index)[0])])
        return model
