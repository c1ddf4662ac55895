"""LabelRanker: rank the same labels for each instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, CrossValidation, Labels, MatrixLike, ParameterValue, RandomState
from rankwise.dyadic.cross_validation import DyadicTask
from rankwise.dyadic.fitting import make_table_loss, solve_with_progress
from rankwise.dyadic.frame_encoding import encode_items, fit_vectorizer
from rankwise.dyadic.label_target import read_labels
from rankwise.dyadic.sides import (
    OVERFLOW,
    FeatureSide,
    KernelSide,
    LabelSide,
    feature_side,
    kernel_side,
)
from rankwise.dyadic.solver import DyadicProblem
from rankwise.fitted_schema import FittedSchema, Floats, Model, Values
from rankwise.frames import check_same_index
from rankwise.kernels.kernel import KernelName
from rankwise.kernels.solver_input import SolverInput, has_basis, make_solver_input
from rankwise.metrics import get_metric
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.conformal import in_best_set
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import KernelModel
from rankwise.rankers.search import Search
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.methods import choose_method
from rankwise.validation import check_int, restored_on_failure


class LabelRanker(KernelModel):
    """Ranks the same labels for each instance: topics of a text, classes, treatments.

    Use it if every instance has an order, a set or a class of the same labels.

    Fits a function f of instance and label by RankRLS over pairs of labels of one instance,

        J(f) = 1/W Σ_i Σ_jk ω (y_ij − y_ik − (f(x_i, j) − f(x_i, k)))² + α ‖f‖²

    with the kernel k(x, x′) for equal labels and zero for others: label ranking as [RankRLS09]
    section 2.2 and [CoRankRLS10] section 2 define it. Labels of different instances are not
    compared. If all scores are known, this is ridge regression on the centered scores of each
    instance, for all labels at once; otherwise the solver uses conjugate gradients.

    Parameters
    ----------
    alpha : float, default=0.001
        Regularization, positive; relative to the mean over pairs.
    values : {"scores", "ranks"}, default="scores"
        Contents of y: scores, larger is better, or ranks, 1 is best.
    cost, ties, group_weight : str, default="magnitude", "include" and "pairs"
        As in `RankRLS`; the groups are the instances. ``ties="exclude"`` drops pairs of labels
        with equal scores: for sets of labels (multi-label), the pairs of two relevant labels and of
        two other labels. If y contains classes, these pairs are always dropped.
    fit_intercept : bool, default=True
        Whether labels have offsets, which model an order that most instances share. Adds a constant
        feature of the root mean squared length of the instances.
    kernel, gamma, degree, coef0, kernel_params
        Kernel of the instances, as in `RankRLS`, with the same defaults.
    n_basis, basis, random_state
        Basis of a kernel model, as in `RankRLS`, with the same defaults.
    solver : {"auto", "primal", "dual", "iterative"}, default="auto"
        As in `RankRLS`.
    tol : float, default=1e-8
        Conjugate gradients stop when the preconditioned norm of the residual is at most this times
        that of the right-hand side.
    max_iter : int, optional
        Largest number of iterations; by default ten times the number of unknowns.

    Attributes
    ----------
    vectorizer_ : TableVectorizer or None
        Encoding of a data frame with text, dates or missing values; None for other instances.
    labels_ : ndarray of shape (n_labels,)
        Names of the labels: the columns of a data frame, the classes, or 0, 1, ….
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features (linear kernel).
    dual_coef_ : ndarray of shape (n_basis, n_labels)
        Weights of the training or basis items (other kernels).
    intercept_ : ndarray of shape (n_labels,)
        Offsets of the labels.
    X_fit_, basis_indices_, solver_, n_iter_, n_features_in_, feature_names_in_
        As in `RankRLS`.
    n_pairs_ : int
        Number of pairs of labels in the training data.
    gaps_ : ndarray
        Distances from the top score to the best label in held-out instances, for `predict_set`;
        after `calibrate` only.

    See Also
    --------
    LabelRankerCV : Selects alpha by exact leave-one-instance-out.
    ConditionalRankRLS : Ranks labels that have features.

    Examples
    --------
    >>> from rankwise import LabelRanker
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> Y = [[1, 2, 3], [1, 2, 3], [2, 1, 3], [3, 1, 2]]
    >>> model = LabelRanker(alpha=0.01, values="ranks").fit(X, Y)
    >>> model.predict_order([[0.0], [3.0]])
    array([[0, 1, 2],
           [1, 2, 0]])
    >>> model.rank([[0.0]])
    array([[1, 2, 3]])
    """

    _fitted: ClassVar[FittedSchema] = {
        "vectorizer_": Model(optional=True),
        "labels_": Values(),
        "gaps_": Floats("gaps"),
    }

    __metadata_request__fit = {"groups": UNUSED, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    multi_output = True
    optional_attributes = (*KernelModel.optional_attributes, "gaps_")
    gaps_: Array  # set by `calibrate`

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        values: str = "scores",
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        fit_intercept: bool = True,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.values = values
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_basis = n_basis
        self.basis = basis
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @single_threaded
    @restored_on_failure
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to instances and the order of their labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_instances, n_features)
            Instances; the square kernel matrix if ``kernel="precomputed"``. A data frame with text,
            dates or missing values is encoded by a `TableVectorizer`.
        y : array-like or data frame of shape (n_instances, n_labels), or (n_instances,)
            Scores or ranks of the labels, NaN where unknown; 0 and 1 for sets of labels; or the
            class of each instance.
        sample_weight : array-like of shape (n_instances,), optional
            Weights: an instance of weight 2 is equivalent to two equal ones. Not for
            ``group_weight="groups"``.

        Returns
        -------
        LabelRanker
            The fitted estimator.
        """
        return self._fit_to_task(self._make_task(X, y, sample_weight))

    def predict(self, X: MatrixLike) -> Array:
        """Predict scores of all labels; only differences within an instance have a meaning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances; kernel values to the training items if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_instances, n_labels)
            Scores, larger is better; columns in the order of `labels_`.
        """
        check_is_fitted(self)
        scores_without_offsets = super().predict(encode_items(self.vectorizer_, X))
        label_offsets = self.intercept_.astype(scores_without_offsets.dtype)
        return np.asarray(scores_without_offsets + label_offsets)

    def rank(self, X: MatrixLike) -> NDArray[np.intp]:  # type: ignore[override]
        """Rank of every label for each instance, 1 is best.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n_instances, n_labels)
            Ranks; labels with equal scores share the smallest of their ranks.
        """
        scores = self.predict(X)
        ranks = rankdata(-scores, method="min", axis=1)
        return np.asarray(ranks, dtype=np.intp)

    def predict_order(self, X: MatrixLike, k: int | None = None) -> NDArray[Any]:
        """The labels in order, best first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances.
        k : int, optional
            Number of best labels to return; by default all.

        Returns
        -------
        ndarray of shape (n_instances, n_labels) or (n_instances, k)
            Labels, of `labels_`.
        """
        if k is not None:
            k = check_int("k", k, least=1)
        scores = self.predict(X)
        label_numbers_best_first = np.argsort(-scores, axis=1, kind="stable")
        k_best = label_numbers_best_first[:, :k]  # None: all
        return np.asarray(self.labels_[k_best])

    def predict_set(self, X: MatrixLike, level: float = 0.9) -> list[NDArray[Any]]:
        """A set of labels that contains the best one with the requested probability.

        Conformal prediction from exact leave-one-instance-out (`rankwise.model_selection
        .best_sets`). A set contains the labels whose score is at most a threshold below the top
        score: the quantile `level` of the distance between top and best label in held-out
        instances. `LabelRankerCV` is calibrated by `fit`; after `LabelRanker.fit` call
        `LabelRanker.calibrate`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances.
        level : float, default=0.9
            Share of new instances whose set contains the best label, or one of those that are tied
            for it. It is at most n/(n + 1) for n training instances: 0.9 requires 9, 0.95 requires
            19.

        Returns
        -------
        list of ndarray
            For each instance labels of `labels_`, best first; never empty.

        Notes
        -----
        The level is an average over instances from the distribution of the training data. It does
        not hold under covariate shift.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import LabelRankerCV
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((60, 2))
        >>> Y = X @ [[1, -1, 0], [0, 1, -1]] + rng.standard_normal((60, 3))
        >>> sets = LabelRankerCV().fit(X, Y).predict_set(X, level=0.9)
        >>> [len(labels) for labels in sets[:5]]
        [3, 1, 1, 1, 2]
        """
        check_is_fitted(self)
        if "gaps_" not in vars(self):
            raise ValueError(
                f"this {type(self).__name__} is not calibrated; call calibrate(X, y) with the "
                "training data, or use LabelRankerCV."
            )
        scores = self.predict(X)
        n_instances, n_labels = scores.shape
        instance_of_score = np.repeat(np.arange(n_instances), n_labels)
        # gaps_: in held-out data, how far the best label was below the top score
        is_in_set = in_best_set(scores.ravel(), instance_of_score, self.gaps_, level)
        set_sizes = is_in_set.reshape(scores.shape).sum(axis=1)
        # A set contains the labels with the highest scores, so its size determines it.
        labels_best_first = self.predict_order(X)
        return [labels[:size] for labels, size in zip(labels_best_first, set_sizes, strict=True)]

    def score(self, X: MatrixLike, y: ArrayLike, metric: MetricName = "tau") -> float:  # type: ignore[override]
        """Mean of a ranking metric over the instances, by default Kendall's τ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances.
        y : array-like of shape (n_instances, n_labels) or (n_instances,)
            Their labels, as in `fit`.
        metric : str or Metric, default="tau"
            Any name of `rankwise.metrics`: "tau", "spearman", "hit@3" (the best label is among the
            first three), "ndcg@5", "concordance".

        Returns
        -------
        float
            The metric over the known labels; instances where it is undefined are dropped.
        """
        check_is_fitted(self)
        scores = self.predict(X)
        check_same_index(X=X, y=y)
        Y = read_labels(y, self.values, self.labels_).Y
        if len(Y) != len(scores):
            raise ValueError(f"Y has {len(Y)} rows but X has {len(scores)}.")
        is_observed = ~np.isnan(Y)
        instance_of_score, _ = np.nonzero(is_observed)
        mean_of_metric = get_metric(metric)(Y[is_observed], scores[is_observed], instance_of_score)
        return float(mean_of_metric)

    @single_threaded
    def leave_out(
        self,
        X: MatrixLike,
        y: ArrayLike,
        *,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = "auto",
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Exact scores of each instance by a model that was trained without it.

        [RankRLS09] section 3.3. If all scores are known, every alpha takes two products with one
        decomposition of the kernel matrix.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; the estimator does not change.
        alphas : array-like of shape (n_alphas,), optional
            Several values of alpha; by default that of the estimator.
        cv : "auto", None, int, splitter or iterable, default="auto"
            None leaves out one instance at a time, as "auto" does if that requires no refits (all
            scores are known and of equal weight, or the data are small); else "auto" makes five
            folds.

        Returns
        -------
        ndarray of shape (n_instances, n_labels) or (n_instances, n_labels, n_alphas)
            Held-out scores; NaN for unknown labels if only the known ones were scored.
        """
        task = self.hold_out_task(X, y, sample_weight=sample_weight)
        return task.leave_out(alphas, cv)

    @single_threaded
    def calibrate(self, X: MatrixLike, y: ArrayLike, *, cv: CrossValidation = "auto") -> Self:
        """Compute the held-out gaps of a fitted model, which `predict_set` requires.

        `LabelRankerCV` does so in `fit`.

        Parameters
        ----------
        X, y
            The data of `fit`.
        cv : "auto", None, int, splitter or iterable, default="auto"
            As in `leave_out`.

        Returns
        -------
        LabelRanker
            The estimator, with `gaps_`.
        """
        check_is_fitted(self)
        self.gaps_ = self.hold_out_task(X, y).gaps_to_best_column(self.alpha, cv)
        return self

    def hold_out_task(
        self,
        X: MatrixLike,
        y: ArrayLike,
        groups: None = None,
        sample_weight: ArrayLike | None = None,
    ) -> LabelTask:
        """The model and its data, ready to be cross-validated; see `rankwise.model_selection`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        groups : None
            Not used: each instance is a group of its labels.

        Returns
        -------
        LabelTask
            Task with a copy of the estimator.
        """
        if groups is not None:
            raise ValueError("each instance is a group of its labels; do not pass groups.")
        model: LabelRanker = clone(self)
        return model._make_task(X, y, sample_weight)

    def _make_task(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> LabelTask:
        """Check the parameters and the data, and set up the problem."""
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        kernel = self.make_kernel()
        self.vectorizer_ = fit_vectorizer(X, kernel)
        X = validate_X(self, encode_items(self.vectorizer_, X))
        target = read_labels(y, self.values)
        if len(target.Y) != X.shape[0]:
            raise ValueError(f"Y has {len(target.Y)} rows but X has {X.shape[0]}.")
        ties = self.ties
        if target.is_class:  # all other labels are tied, and their order is unknown
            ties = "exclude"
        loss = make_table_loss(
            target.Y,
            cost=self.cost,
            ties=ties,
            group_weight=self.group_weight,
            sample_weight=sample_weight,
        )
        solver_method = choose_method(
            kernel, X, self.solver, has_basis=has_basis(self.n_basis, self.basis)
        )
        solver_input = make_solver_input(
            kernel,
            X,
            solver_method,
            n_basis=self.n_basis,
            basis=self.basis,
            random_state=self.random_state,
        ).stored()
        instances = self._make_instance_side(solver_input, loss.weight)
        problem = DyadicProblem(loss, instances, LabelSide(), self.tol, self.max_iter)
        return LabelTask(self, problem, target.labels, solver_input)

    def _make_instance_side(
        self, solver_input: SolverInput, weight: Array | None
    ) -> FeatureSide | KernelSide:
        """The instances for the solver."""
        if solver_input.method == "dual":  # a kernel matrix
            return kernel_side(solver_input.matrix, has_constant=self.fit_intercept, weight=weight)
        return feature_side(
            solver_input.matrix,
            has_constant=self.fit_intercept,
            weight=weight,
            is_decomposed=solver_input.method != "iterative",  # else: too many features
        )

    def _fit_to_task(self, task: LabelTask) -> Self:
        """Solve the problem of the task, and set the fitted attributes."""
        problem = task.problem
        solution = solve_with_progress(problem, self.alpha, type(self).__name__, self.kernel)
        coef = solution.coef[0]  # of the only alpha
        if not np.isfinite(coef).all():
            raise ValueError(OVERFLOW)
        feature_weights, self.intercept_ = problem.rows.split_constant(coef)
        self.labels_ = task.labels
        self.output_shape_ = (len(task.labels),)
        self.n_pairs_ = problem.loss.n_pairs
        self.solver_ = task.solver_input.method
        self.n_iter_ = solution.n_iter
        self._store_features(task.solver_input.map)
        self._store_coefficients(task.solver_input.coefficients(feature_weights))
        return self


class LabelTask(DyadicTask):
    """LabelRanker with its data, for cross-validation; instances are held out.

    Parameters
    ----------
    learner : LabelRanker
        Learner with its alpha.
    problem : DyadicProblem
        The table, with an instance in each row.
    labels : ndarray of shape (n_labels,)
        Names of the labels.
    solver_input : SolverInput
        Features of the instances, or kernel values.
    """

    def __init__(
        self,
        learner: LabelRanker,
        problem: DyadicProblem,
        labels: Labels,
        solver_input: SolverInput,
    ) -> None:
        super().__init__(learner, problem)
        self.labels = labels
        self.solver_input = solver_input

    def train(self, **values: ParameterValue) -> LabelRanker:
        """LabelRanker fitted to all data with this alpha, and calibrated."""
        model: LabelRanker = self.learner.set_params(**values)
        model._fit_to_task(self)
        model.gaps_ = self.gaps_to_best_column(model.alpha)  # calibrates `predict_set`
        return model


class LabelRankerCV(Search):
    """LabelRanker that selects alpha, and kernel parameters if lists are given.

    Use it in place of `LabelRanker` if alpha is not known.

    Every alpha is evaluated by exact leave-one-instance-out, without refits, if all scores are
    known or the data are small ([RankRLS09] section 3.3); otherwise by five folds of instances.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default 40 values, two per decade, as in `RankRLSCV`.
    cv : "auto", None, int, splitter or iterable, default="auto"
        As in `LabelRanker.leave_out`; splitters split the instances.
    scoring : str, Metric or function, default="tau"
        Any name of `rankwise.metrics`, such as "tau", "spearman", "hit@1" or "ndcg@5".
    gamma : float or list of float, default=None
        Parameter of the named kernels, as in scikit-learn; a list of values is searched.
    degree : float or list of float, default=3
        Degree of the polynomial kernel; a list of values is searched.
    coef0 : float or list of float, default=1
        Constant of the polynomial and sigmoid kernels; a list of values is searched.
    store_predictions : bool, default=False
        Whether to store the held-out scores in ``cv_results_["predictions"]``: a list of arrays of
        shape (n_instances · n_labels, n_alphas).
    values, cost, ties, group_weight, fit_intercept, kernel, kernel_params, n_basis, basis, \
solver, tol, max_iter, random_state
        As in `LabelRanker`, with the same defaults.

    Attributes
    ----------
    alpha_ : float
        Selected alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        The selected alpha and kernel parameters.
    cv_results_ : dict
        As in `RankRLSCV`; each instance is a group.
    best_estimator_ : LabelRanker
        Model fitted to all data; the search has its fitted attributes, too.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import LabelRankerCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 3))
    >>> Y = X @ rng.standard_normal((3, 4)) + 0.1 * rng.standard_normal((60, 4))
    >>> model = LabelRankerCV().fit(X, Y)
    >>> model.cv_results_["cv"], round(model.best_score_, 2)
    ('leave-row-out', 0.96)
    """

    __metadata_request__fit = {"groups": UNUSED, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    multi_output = True
    model_class = LabelRanker

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        scoring: MetricName = "tau",
        cv: CrossValidation = "auto",
        store_predictions: bool = False,
        values: str = "scores",
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        fit_intercept: bool = True,
        kernel: KernelName = "linear",
        gamma: float | Sequence[float] | None = None,
        degree: float | Sequence[float] = 3,
        coef0: float | Sequence[float] = 1,
        kernel_params: dict[str, object] | None = None,
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alphas = alphas
        self.scoring = scoring
        self.cv = cv
        self.store_predictions = store_predictions
        self.values = values
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_basis = n_basis
        self.basis = basis
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @single_threaded
    @restored_on_failure
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Select the parameters by cross-validation, then fit to all data.

        Held-out instances have equal weights.

        Parameters
        ----------
        X, y, sample_weight
            As in `LabelRanker.fit`.

        Returns
        -------
        LabelRankerCV
            The fitted estimator.
        """
        groups = None  # each instance is a group of its labels
        self._search(X, y, groups, sample_weight)
        return self

    def rank(self, X: MatrixLike) -> NDArray[np.intp]:  # type: ignore[override]
        """Ranks of the labels by the best model; see `LabelRanker.rank`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_instances, n_features)
            Instances.

        Returns
        -------
        ndarray of int, shape (n_instances, n_labels)
            Ranks; 1 is the best.
        """
        check_is_fitted(self)
        ranks: NDArray[np.intp] = self.best_estimator_.rank(X)
        return ranks

    def predict_order(self, X: MatrixLike, k: int | None = None) -> NDArray[Any]:
        """The labels in order by the best model; see `LabelRanker.predict_order`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_instances, n_features)
            Instances.
        k : int, optional
            Number of labels; all by default.

        Returns
        -------
        ndarray of shape (n_instances, k)
            Labels, the best one first.
        """
        check_is_fitted(self)
        labels: Labels = self.best_estimator_.predict_order(X, k)
        return labels

    def predict_set(self, X: MatrixLike, level: float = 0.9) -> list[NDArray[Any]]:
        """Sets that contain the best label, by the best model; see `LabelRanker.predict_set`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_instances, n_features)
            Instances.
        level : float, default=0.9
            Probability that the set contains the best label.

        Returns
        -------
        list of ndarray
            Labels of the set of each instance, the best one first.
        """
        check_is_fitted(self)
        sets: list[NDArray[Any]] = self.best_estimator_.predict_set(X, level)
        return sets

    def score(self, X: MatrixLike, y: ArrayLike, metric: MetricName = "tau") -> float:  # type: ignore[override]
        """Metric of the best model; see `LabelRanker.score`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_instances, n_features)
            Instances.
        y : array-like
            True scores, ranks or classes, as in `fit`.
        metric : str, Metric or function, default="tau"
            The metric.

        Returns
        -------
        float
            Mean of the metric over the instances.
        """
        check_is_fitted(self)
        value: float = self.best_estimator_.score(X, y, metric)
        return value
