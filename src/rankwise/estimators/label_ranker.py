"""LabelRanker: for each instance an order of the same labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.checks import check_finite, warn_of_solutions
from rankwise.estimators.kernel_model import KernelModel
from rankwise.estimators.label_targets import LabelTarget, read_labels
from rankwise.features import Design, make_design
from rankwise.features.design import FITTING, HOLDING_OUT
from rankwise.graphs import ScoreGraph
from rankwise.losses import SquaredLoss, TableLoss
from rankwise.machine import Progress, calm
from rankwise.metrics import get_metric
from rankwise.metrics.averaging import check_cutoff
from rankwise.model_selection.candidates import check_alphas
from rankwise.model_selection.table_task import OVERFLOW, TableTask
from rankwise.solvers import Solutions, minimize
from rankwise.solvers.table_problem import TableProblem
from rankwise.solvers.table_sides import Side


class LabelMixin(RankerMixin):
    """What a fitted ranker of labels does beside `predict`."""

    __metadata_request__fit = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    labels_: NDArray[Any]
    values: str

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
        check_cutoff(k)
        order = np.argsort(-self.predict(X), axis=1, kind="stable")  # type: ignore[attr-defined]
        return np.asarray(self.labels_[order[:, :k]])

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
        target = read_labels(y, self.values, self.labels_)
        if len(target.Y) != len(scores):
            raise ValueError(f"Y has {len(target.Y)} rows but X has {len(scores)}.")
        known = ~np.isnan(target.Y)
        rows = np.nonzero(known)[0]
        return float(get_metric(metric)(target.Y[known], scores[known], rows))


@dataclass(eq=False, repr=False)
class LabelRanker(LabelMixin, KernelModel):
    """Ranks the same labels for each instance: topics of a text, classes, treatments.

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
    intercept : bool
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

    alpha: float = 1e-3
    _: KW_ONLY
    values: str = "scores"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    intercept: bool = True
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None
    random_state: Any = None

    @calm
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from instances and what is known about the order of their labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_instances, n_features)
            Instances; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like or data frame of shape (n_instances, n_labels), or (n_instances,)
            Scores or ranks of the labels, NaN where unknown; 0 and 1 for sets of labels; or one
            class for each instance.

        Returns
        -------
        LabelRanker
            The fitted estimator.
        """
        alphas = check_alphas([self.alpha], "alpha")
        X, target, loss = self._check_data(X, y)
        design = self._make_design(X, FITTING)
        found, constant = self._solve(loss, design, alphas)
        self._describe(target, loss, design, found)
        self._keep(design, found.coef[0], constant)
        return self

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

    def leave_out(
        self, X: Any, y: Any, *, alphas: ArrayLike | None = None, cv: Any = "auto"
    ) -> Array:
        """Scores of each instance by a model that was trained without it. Exact.

        [RankRLS09] section 3.3. If all scores are known, every alpha costs two products with one
        decomposition of the kernel matrix.

        Parameters
        ----------
        X, y
            As in `fit`; the estimator is left as it is.
        alphas : array-like of shape (n_alphas,), optional
            Several values of alpha; the estimator's own if not given.
        cv : "auto", None, int, splitter or iterable
            None leaves out one instance at a time, as "auto" does where that needs no training
            (all scores are known, or the data are small); else "auto" makes five folds.

        Returns
        -------
        ndarray of shape (n_instances, n_labels) or (n_instances, n_labels, n_alphas)
            Held-out scores; nan for unknown labels if only the known ones were scored.
        """
        task = self.hold_out_task(X, y)
        checked = check_alphas([self.alpha] if alphas is None else alphas, "alphas")
        held = task.held_out(checked, cv).scores
        return held if alphas is not None else np.asarray(held[:, :, 0])

    def hold_out_task(self, X: Any, y: Any, groups: None = None) -> TableTask:
        """The model and its data, ready to be cross-validated; see `rankwise.model_selection`."""
        if groups is not None:
            raise ValueError("each instance is a group of its labels; leave out groups.")
        model = clone(self)
        items, _, loss = model._check_data(X, y)
        design = model._make_design(items, HOLDING_OUT)
        problem, _ = model._problem(loss, design)

        def train(alpha: float) -> LabelRanker:
            trained: LabelRanker = clone(self).set_params(alpha=alpha).fit(X, y)
            return trained

        return TableTask(problem, "rows", self.alpha, train)

    def _check_data(self, X: Any, y: Any) -> tuple[Any, LabelTarget, TableLoss]:
        kernel = self.make_kernel()
        sparse = False if kernel.is_precomputed else "csr"
        X = self._check_items(X, accept_sparse=sparse, ensure_all_finite=False)
        check_finite(X, self)
        target = read_labels(y, self.values)
        if len(target.Y) != X.shape[0]:
            raise ValueError(
                f"Y has {len(target.Y)} rows but X has {X.shape[0]}; give each instance one row."
            )
        loss = TableLoss(
            target.Y,
            cost=self.cost,
            ties="exclude" if target.is_class else self.ties,
            group_weight=self.group_weight,
        )
        if not loss.n_pairs:
            raise ValueError(
                "there is nothing to rank: no instance has two labels to compare (two known "
                "scores, which must differ if ties are left out)."
            )
        return X, target, loss

    def _make_design(self, X: Any, n_matrices: float) -> Design:
        return make_design(
            self.make_kernel(),
            X,
            self.solver,
            n_basis=self.n_basis,
            basis=self.basis,
            random_state=self.random_state,
            n_matrices=n_matrices,
        ).stored()

    def _problem(self, loss: TableLoss, design: Design) -> tuple[TableProblem, float]:
        """The table of instances and labels, and the constant that was added."""
        matrix, is_kernel, constant = design.matrix, design.method == "dual", 0.0
        if self.intercept and is_kernel:
            constant = float(np.diagonal(matrix).mean()) or 1.0
            matrix = matrix + constant
        elif self.intercept:
            is_sparse = sp.issparse(matrix)
            squares = (
                matrix.multiply(matrix).sum()
                if is_sparse
                else np.einsum("ij,ij->", matrix, matrix, dtype=np.float64)
            )
            constant = float(squares) / matrix.shape[0] or 1.0
            columns = [matrix, np.full((matrix.shape[0], 1), np.sqrt(constant))]
            matrix = sp.hstack(columns, format="csr") if is_sparse else np.hstack(columns)
        rows = Side(matrix, is_kernel)
        return TableProblem(loss, rows, Side(None, False), self.tol, self.max_iter), constant

    def _solve(self, loss: TableLoss, design: Design, alphas: Array) -> tuple[Solutions, float]:
        """B of all features (or items) and labels; the constant feature is the last of them."""
        problem, constant = self._problem(loss, design)
        with Progress("LabelRanker") as line:
            if not loss.is_complete:
                return problem.solve(alphas, watch=line.iteration), constant
            Y = loss.Y - loss.Y.mean(axis=1, keepdims=True)
            plain = SquaredLoss(ScoreGraph(np.zeros(len(Y))), 1.0, Y)
            shifts = alphas * (Y.shape[1] - 1) / 2  # the loss is the mean over pairs, not items
            found = minimize(
                design.method,
                plain,
                problem.rows.matrix,
                shifts,
                tol=self.tol,
                max_iter=self.max_iter,
                watch=line.iteration,
            )
        unfinished = tuple(shift * 2 / (Y.shape[1] - 1) for shift in found.unfinished)
        return found._replace(unfinished=unfinished), constant

    def _describe(
        self, target: LabelTarget, loss: TableLoss, design: Design, found: Solutions
    ) -> None:
        self.labels_ = target.labels
        self.output_shape_ = (len(target.labels),)
        self.n_pairs_, self.solver_, self.n_iter_ = loss.n_pairs, design.method, found.n_iter
        self._store_features(design.features)
        if not np.isfinite(found.coef).all():
            raise ValueError(OVERFLOW)
        warn_of_solutions([found], self.kernel, self.tol)

    def _keep(self, design: Design, B: Array, constant: float) -> None:
        self.intercept_ = np.zeros(B.shape[1])
        if design.method == "dual":
            self.intercept_ += constant * B.sum(axis=0)
        elif self.intercept:
            self.intercept_ += np.sqrt(constant) * B[-1]
            B = B[:-1]
        self._store(design.coefficients(B))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
