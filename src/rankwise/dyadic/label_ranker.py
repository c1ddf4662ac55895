"""LabelRanker: for each instance an order of the same labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.dyadic.cross_validation import OVERFLOW, DyadicTask
from rankwise.dyadic.solver import DyadicProblem, KernelSide, make_side
from rankwise.dyadic.table_fit import check_table, solve_table, table_loss
from rankwise.fitted_schema import FittedSchema, Floats, Values
from rankwise.formatting import join_words
from rankwise.frames import as_array, column_names
from rankwise.kernels.solver_input import SolverInput, make_solver_input
from rankwise.metrics import get_metric
from rankwise.model_selection.conformal import in_best_set
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import KernelModel, RankerMixin
from rankwise.rankers.search import Search
from rankwise.runtime.threads import single_threaded
from rankwise.validation import (
    check_float_array,
    check_int,
    check_option,
    restored_on_failure,
)


@dataclass(eq=False, repr=False, kw_only=True)
class LabelMixin(RankerMixin):
    """What a ranker of labels and its search share: parameters, orders and a score."""

    multi_output = True
    __metadata_request__fit = {"groups": UNUSED, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    values: str = "scores"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    fit_intercept: bool = True
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None
    random_state: Any = None

    def rank(self, X: Any) -> NDArray[np.intp]:  # type: ignore[override]
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
        scores = self.predict(X)  # type: ignore[attr-defined]
        return np.asarray(rankdata(-scores, method="min", axis=1), dtype=np.intp)

    def predict_order(self, X: Any, k: int | None = None) -> NDArray[Any]:
        """The labels in order, best first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances.
        k : int, optional
            Only the k best labels.

        Returns
        -------
        ndarray of shape (n_instances, n_labels) or (n_instances, k)
            Labels, of `labels_`.
        """
        k = None if k is None else check_int("k", k, least=1)
        order = np.argsort(-self.predict(X), axis=1, kind="stable")  # type: ignore[attr-defined]
        return np.asarray(self.labels_[order[:, :k]])  # type: ignore[attr-defined]

    def predict_set(self, X: Any, level: float = 0.9) -> list[NDArray[Any]]:
        """The labels that hold the best one with the asked probability: "try these three".

        Conformal prediction from exact leave-one-instance-out (`rankwise.model_selection
        .best_sets`): the labels whose score is not further below the top than the best label of a
        held-out instance was, but for a share of 1 − `level`. `LabelRankerCV` is ready for it;
        after `LabelRanker.fit` call `LabelRanker.calibrate`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances.
        level : float
            Share of new instances whose set holds the best label, or one of those that are tied for
            it. n training instances promise at most n/(n + 1): .9 needs 9, .95 needs 19.

        Returns
        -------
        list of ndarray
            For each instance labels of `labels_`, best first; never empty.

        Notes
        -----
        The level is an average over instances like those of the training. It does not hold for
        others (covariate shift).

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
        gaps = getattr(self, "gaps_", None)
        if gaps is None:
            raise ValueError(
                f"this {type(self).__name__} has no held-out instances to promise by; call "
                "calibrate(X, y) with the training data, or use LabelRankerCV."
            )
        scores = self.predict(X)  # type: ignore[attr-defined]
        lists = np.repeat(np.arange(len(scores)), scores.shape[1])
        sizes = in_best_set(scores.ravel(), lists, gaps, level).reshape(scores.shape).sum(axis=1)
        orders = self.predict_order(X)
        return [order[:size] for order, size in zip(orders, sizes, strict=True)]

    def score(self, X: Any, y: Any, metric: Any = "tau") -> float:  # type: ignore[override]
        """Mean over the instances of a ranking metric, by default Kendall's τ.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances.
        y : array-like of shape (n_instances, n_labels) or (n_instances,)
            What is known about their labels, as in `fit`.
        metric : str or Metric
            Any name of `rankwise.metrics`: "tau", "spearman", "hit@3" (the best label is among the
            first three), "ndcg@5", "concordance".

        Returns
        -------
        float
            The metric; unknown labels do not count, nor do instances where it is undefined.
        """
        check_is_fitted(self)
        scores = self.predict(X)  # type: ignore[attr-defined]
        target = read_labels(y, self.values, self.labels_)  # type: ignore[attr-defined]
        if len(target.Y) != len(scores):
            raise ValueError(f"Y has {len(target.Y)} rows but X has {len(scores)}.")
        known = ~np.isnan(target.Y)
        rows = np.nonzero(known)[0]
        return float(get_metric(metric)(target.Y[known], scores[known], rows))


@dataclass(eq=False, repr=False)
class LabelRanker(LabelMixin, KernelModel):
    """Ranks the same labels for each instance: topics of a text, classes, treatments.

    Use it if every instance has an order, a set or a class of the same labels.

    Learns a function f of instance and label by RankRLS over pairs of labels of one instance,

        J(f) = 1/W Σ_i Σ_jk ω (y_ij − y_ik − (f(x_i, j) − f(x_i, k)))² + α ‖f‖²

    with the kernel k(x, x′) for equal labels and zero for others: label ranking as [RankRLS09]
    section 2.2 and [CoRankRLS10] section 2 have it. Labels of different instances are never
    compared. If all scores are known, this is ridge regression on the scores of each instance less
    their mean, for all labels at once; else conjugate gradients find the minimum.

    Parameters
    ----------
    alpha : float
        Regularization, positive; relative to the mean over pairs.
    values : {"scores", "ranks"}
        What y holds: scores, larger is better, or ranks, 1 is best.
    cost, ties, group_weight : str
        As in `RankRLS`; the groups are the instances. ``ties="exclude"`` leaves out pairs of labels
        with equal scores: for sets of labels (multi-label), the pairs of two relevant or of two
        other labels, which say nothing. If y has one class for each instance, they are always left
        out.
    fit_intercept : bool
        Whether labels have offsets, so that some are preferred by most instances: a constant
        feature, as long as the root mean square of the others, is added.
    kernel, gamma, degree, coef0, kernel_params
        The kernel of the instances, as in `RankRLS`.
    n_basis, basis, random_state
        A kernel model on basis items, as in `RankRLS`.
    solver : {"auto", "primal", "dual", "iterative"}
        As in `RankRLS`.
    tol, max_iter
        Limits of the conjugate gradients.

    Attributes
    ----------
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
        Number of pairs of labels trained on.
    gaps_ : ndarray
        Held-out gaps behind `predict_set`; after `calibrate`, and for `LabelRankerCV`.

    See Also
    --------
    LabelRankerCV : Chooses alpha by exact leave-one-instance-out.
    ConditionalRankRLS : Labels that have features, too.

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
        "labels_": Values(),
        "gaps_": Floats("gaps"),
    }

    learned = (*KernelModel.learned, "gaps_")

    alpha: float = 1e-3

    @single_threaded
    @restored_on_failure
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from instances and what is known about the order of their labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_instances, n_features)
            Instances; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like or data frame of shape (n_instances, n_labels), or (n_instances,)
            Scores or ranks of the labels, NaN where unknown; 0 and 1 for sets of labels; or one
            class for each instance.
        sample_weight : array-like of shape (n_instances,), optional
            Weights: an instance of weight 2 counts as two equal ones. Not for
            ``group_weight="groups"``.

        Returns
        -------
        LabelRanker
            The fitted estimator.
        """
        return self._fit_task(self._prepare(X, y, sample_weight))

    def predict(self, X: Any) -> NDArray[Any]:
        """Scores of all labels; only their differences for one instance have a meaning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Instances; kernel values to the training items if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_instances, n_labels)
            Scores, larger is better; columns in the order of `labels_`.
        """
        scores = super().predict(X)
        return np.asarray(scores + self.intercept_.astype(scores.dtype))

    @single_threaded
    def leave_out(
        self,
        X: Any,
        y: Any,
        *,
        alphas: ArrayLike | None = None,
        cv: Any = "auto",
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Scores of each instance by a model that was trained without it. Exact.

        [RankRLS09] section 3.3. If all scores are known, every alpha costs two products with one
        decomposition of the kernel matrix.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; the estimator is left as it is.
        alphas : array-like of shape (n_alphas,), optional
            Several values of alpha; the estimator's own if not given.
        cv : "auto", None, int, splitter or iterable
            None leaves out one instance at a time, as "auto" does where that needs no training
            (all scores are known and weigh alike, or the data are small); else it makes five folds.

        Returns
        -------
        ndarray of shape (n_instances, n_labels) or (n_instances, n_labels, n_alphas)
            Held-out scores; nan for unknown labels if only the known ones were scored.
        """
        return self.hold_out_task(X, y, None, sample_weight).leave_out(alphas, cv)

    @single_threaded
    def calibrate(self, X: Any, y: Any, *, cv: Any = "auto") -> Self:
        """Make a fitted model ready for `predict_set`; X and y are those of `fit`, cv as above.

        Keeps `gaps_`, from the top of each held-out instance to its best label. `LabelRankerCV`
        does so by itself.
        """
        check_is_fitted(self)
        self.gaps_ = self.hold_out_task(X, y).gaps(self.alpha, cv)
        return self

    def hold_out_task(
        self, X: Any, y: Any, groups: None = None, sample_weight: ArrayLike | None = None
    ) -> LabelTask:
        """The model and its data, ready to be cross-validated; see `rankwise.model_selection`."""
        if groups is not None:
            raise ValueError("each instance is a group of its labels; leave out groups.")
        task: LabelTask = clone(self)._prepare(X, y, sample_weight)
        return task

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> LabelTask:
        """Check everything, and say what is to be minimized."""
        kernel = self.make_kernel()
        X = validate_X(self, X)
        target = read_labels(y, self.values)
        if len(target.Y) != X.shape[0]:
            raise ValueError(f"Y has {len(target.Y)} rows but X has {X.shape[0]}.")
        ties = "exclude" if target.is_class else self.ties
        loss = table_loss(self, target.Y, ties, sample_weight)
        features = make_solver_input(
            kernel,
            X,
            self.solver,
            n_basis=self.n_basis,
            basis=self.basis,
            random_state=self.random_state,
        ).stored()
        rows = make_side(
            features.matrix,
            is_kernel=features.method == "dual",
            constant=self.fit_intercept,
            weight=loss.weight,
            is_decomposed=features.method != "iterative",
        )
        task = LabelTask(
            self, DyadicProblem(loss, rows, KernelSide(None, False), self.tol, self.max_iter)
        )
        task.labels, task.features = target.labels, features
        return task

    def _fit_task(self, task: LabelTask) -> Self:
        features, solution = task.features, solve_table(self, task.table, self.kernel)
        B = solution.coef[0]
        if not np.isfinite(B).all():
            raise ValueError(OVERFLOW)
        self.labels_ = task.labels
        self.output_shape_ = (len(task.labels),)
        self.n_pairs_ = task.table.loss.n_pairs
        self.solver_, self.n_iter_ = features.method, solution.n_iter
        B, self.intercept_ = task.table.rows.split(B)
        self._store_features(features.map)
        self._store(features.coefficients(B))
        return self


class LabelTask(DyadicTask):
    """LabelRanker with its data, and the names of the labels; instances are held out."""

    labels: NDArray[Any]
    features: SolverInput

    def train(self, **values: Any) -> LabelRanker:
        """LabelRanker of one alpha."""
        model: LabelRanker = self.learner.set_params(**values)
        model._fit_task(self).gaps_ = self.gaps(model.alpha)
        return model


@dataclass(eq=False, repr=False)
class LabelRankerCV(LabelMixin, Search):
    """LabelRanker that chooses alpha, and kernel parameters if lists are given.

    Use it in place of `LabelRanker` if alpha is not known.

    Every alpha is judged by leave-one-instance-out: exact, and without training again if all scores
    are known or the data are small ([RankRLS09] section 3.3); else by five folds of instances.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default 40 values, two a decade, as in `RankRLSCV`.
    cv : "auto", None, int, splitter or iterable
        As in `LabelRanker.leave_out`; splitters get the instances.
    scoring : str, Metric or function
        Any name of `rankwise.metrics`, such as "tau", "spearman", "hit@1" or "ndcg@5".
    gamma, degree, coef0
        Kernel parameters; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``: a list of arrays of shape
        (n_instances · n_labels, n_alphas).
    values, cost, ties, group_weight, fit_intercept, kernel, kernel_params, n_basis, basis, \
solver, tol, max_iter, random_state
        As in `LabelRanker`.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel parameters.
    cv_results_ : dict
        As in `RankRLSCV`; each instance is a group.
    best_estimator_ : LabelRanker
        The model trained on all data; its attributes are those of the search, too.

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

    model_class = LabelRanker

    alphas: ArrayLike | None = None
    _: KW_ONLY
    scoring: Any = "tau"

    @single_threaded
    @restored_on_failure
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the parameters, then learn from all data. Each instance is judged alike.

        Parameters
        ----------
        X, y, sample_weight
            As in `LabelRanker.fit`.

        Returns
        -------
        LabelRankerCV
            The fitted estimator.
        """
        self._search(X, y, None, sample_weight)
        return self


class LabelTarget(NamedTuple):
    """Scores of the labels.

    Attributes
    ----------
    Y : ndarray of shape (n_instances, n_labels)
        Larger is better, nan where unknown.
    labels : ndarray of shape (n_labels,)
        Names of the columns.
    is_class : bool
        Whether each instance has one class, which is preferred to all others.
    """

    Y: Array
    labels: NDArray[Any]
    is_class: bool


def read_labels(Y: Any, values: str, known: NDArray[Any] | None = None) -> LabelTarget:
    """Scores of the labels from whatever the user has; `known` are the labels of a fitted model.

    A flat Y holds one class for each instance. Columns of a data frame are brought into the order
    of the known labels.
    """
    check_option("values", values, ("scores", "ranks"))
    if Y is None:
        raise ValueError(
            "this ranker requires y to be passed, but the target y is None; give scores or ranks "
            "of the labels, one row for each instance."
        )
    if sp.issparse(Y):
        Y = Y.toarray()
    names = column_names(Y)
    if isinstance(Y, list | tuple):
        type_of_target(Y)  # refuses a list of labels for each instance
    Y = as_array(Y, "Y")
    array = np.asarray(Y)
    if array.ndim == 1 and names is None:
        return _classes(array, known)
    labels = np.arange(array.shape[1]) if names is None else _names(names)
    scores = check_float_array(
        "Y", Y, "map what is said of a label to numbers, larger ones for better labels"
    )
    if values == "ranks":
        scores = _from_ranks(scores)
    target = LabelTarget(check_table(scores, "instance", "label"), labels, False)
    return target if known is None else _in_order(target, known)


def _classes(y: NDArray[Any], known: NDArray[Any] | None) -> LabelTarget:
    """One class for each instance: 1 for it, 0 for all others."""
    check_classification_targets(y)
    labels = _names(np.unique(y).tolist()) if known is None else known
    if len(labels) < 2:
        raise ValueError(
            f"all instances are of one class, {labels.tolist()[0]!r}; expected at least two "
            "classes, or scores of all labels."
        )
    is_class = (y if labels.dtype.kind in "iu" else y.astype(str))[:, None] == labels
    unknown = y[~is_class.any(axis=1)].tolist()
    if unknown:
        raise ValueError(
            f"the class {unknown[0]!r} is unknown to the model, which knows "
            f"{join_words(map(repr, labels.tolist()), 5)}."
        )
    return LabelTarget(is_class.astype(np.float64), labels, True)


def _from_ranks(ranks: Array) -> Array:
    """Scores, minus the ranks; ranks of a row are 1, 2, … without gap or duplicate."""
    order = np.sort(ranks, axis=1)  # nan is last
    wanted = np.arange(1.0, ranks.shape[1] + 1)
    wrong = ((order != wanted) & ~np.isnan(order)).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"the ranks of row {row} have gaps or duplicates: "
            f"{join_words((f'{rank:g}' for rank in order[row]), 12)}; expected 1 (best), 2, … up "
            "to the number of ranked labels, each once. For ties and gaps pass -ranks with "
            "values='scores'."
        )
    return -ranks


def _in_order(target: LabelTarget, known: NDArray[Any]) -> LabelTarget:
    place = {label: k for k, label in enumerate(target.labels.tolist())}
    if place.keys() != set(known.tolist()):
        if list(place) == list(range(len(known))):  # an array, its columns as in fit
            return target._replace(labels=known)
        names = [join_words(map(repr, labels.tolist()), 5) for labels in (target.labels, known)]
        raise ValueError(
            f"Y has the labels {names[0]}, but the model was trained with {names[1]}; give a "
            "column for each of these."
        )
    order = [place[label] for label in known.tolist()]
    return target._replace(Y=target.Y[:, order], labels=known)


def _names(names: list[Any]) -> NDArray[Any]:
    if len(set(names)) < len(names):
        raise ValueError("two columns of Y have the same name; give each label one column.")
    is_whole = np.array(names).dtype.kind in "iu"
    return np.array(names if is_whole else [str(name) for name in names])
