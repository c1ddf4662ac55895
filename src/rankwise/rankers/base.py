"""Base classes of rankers: ranks inside groups, a score, kernel models."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Labels, Matrix, MatrixLike, take_weights
from rankwise.fitted_schema import (
    FittedSchema,
    Floats,
    Integer,
    Ints,
    Items,
    NotSaved,
    TupleOf,
    Values,
    check_kernel_items,
)
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import Preferences, TargetLike, TrainingTarget, read_y
from rankwise.groups import encode_groups
from rankwise.kernels.feature_maps import ColumnFeatures, FeatureMap, KernelFeatures
from rankwise.kernels.kernel import Kernel, KernelName
from rankwise.metrics import disagreement_error
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.preprocessing.group_columns import warn_of_long_list
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.linear_models import KernelExpansion
from rankwise.rankers.summary import NuisanceEffect, Summary
from rankwise.runtime.threads import single_threaded

SUMMARIZED = ("alpha", "nu")  # parameters in the summary of a ranker that selects none


class RankerMixin:
    """Mixin with `rank` and `score`, for rankers, whose score is not the R² of a regressor.

    The class-level metadata requests let ``groups`` and ``sample_weight`` reach `fit` and `score`
    through GridSearchCV, Pipeline and similar classes if scikit-learn's metadata routing is
    enabled.
    """

    _fitted: ClassVar[FittedSchema] = {
        "group_columns_": Values(),
        "max_group_size_": Integer(optional=True),
    }

    allows_unscored = False  # whether a score may be NaN, "not scored"

    takes_nuisance = False  # whether `fit` takes out the effects of nuisance columns

    multi_output = False  # whether y may have several columns

    __metadata_request__fit = {"groups": True, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "sample_weight": True}  # noqa: RUF012

    def rank(self, X: MatrixLike, groups: ArrayLike | None = None) -> NDArray[np.intp]:
        """Rank the items inside their groups, 1 is best.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels. None ranks all items in one list; a warning is issued if the list is
            longer than three times the longest training group.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_outputs)
            Ranks; items with equal predicted scores share the smallest of their ranks.
        """
        scores = predict_items(self, X, groups)
        if groups is None and not needs_groups(self):  # else `predict` warns
            warn_of_long_list(self, len(scores))
        return ranks_in_groups(scores, groups)

    def score(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean over groups of the fraction of correctly ordered pairs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like, target of `make_target`, or preference graph
            True scores or preferences. Pairs with equal scores are ignored, as are rows with NaN if
            `fit` accepts NaN. For a graph without scores the fraction is weighted and taken over
            all edges.
        groups : array-like of shape (n_items,), optional
            Group labels.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items; the weight of a pair is the product of the weights of its items.
            The weights of a graph that is passed as y apply as well.

        Returns
        -------
        float
            1 minus the disagreement error, averaged over the outputs; a tied prediction counts as
            one half.
        """
        check_is_fitted(self)
        target = read_y(y, groups, sample_weight, X=X, allow_nan=self.allows_unscored)
        if isinstance(target, Preferences):
            graph = target.graph
            predicted = predict_items(self, X, graph.groups)
            if not graph.has_relevance:  # pairs only, without scores of the items
                return _pooled_accuracy(graph, predicted)
            relevance = graph.y
            labels: Labels = graph.groups
            weight = graph.item_weights
        else:
            relevance = target.y
            labels = target.item_labels
            weight = target.weight
            predicted = predict_items(self, X, labels)
        is_missing = np.isnan(relevance.reshape(len(relevance), -1))
        scored_rows = np.flatnonzero(~is_missing.any(axis=1))
        if not len(scored_rows):
            raise ValueError("score needs rows with a score, but y is all NaN.")
        error = disagreement_error(
            relevance[scored_rows],
            predicted[scored_rows],
            labels[scored_rows],
            sample_weight=take_weights(weight, scored_rows),
        )
        return float(1.0 - np.mean(error))  # the mean over the outputs

    def summary(self) -> Summary:
        """Summarize the fitted ranker: its parameters, and how they were selected.

        Returns
        -------
        Summary
            A record; ``print`` shows it as text.
        """
        check_is_fitted(self)
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        return Summary(
            model=type(self).__name__,
            parameters={name: parameters[name] for name in SUMMARIZED if name in parameters},
            nuisance=list_nuisance_effects(self),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        tags.target_tags.multi_output = self.multi_output
        kernel = getattr(self, "kernel", None)  # of rankers with a kernel
        is_precomputed = isinstance(kernel, str) and kernel == "precomputed"
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.sparse = kernel is not None and not is_precomputed
        return tags


def list_nuisance_effects(ranker: RankerMixin) -> list[NuisanceEffect]:
    """Effects of the nuisance columns that were passed to the fit of a ranker."""
    names = getattr(ranker, "nuisance_names_", None)  # of some rankers
    if names is None:
        return []
    coefs = ranker.nuisance_coef_  # type: ignore[attr-defined]
    standard_errors = ranker.nuisance_se_  # type: ignore[attr-defined]
    return [
        NuisanceEffect(name, float(coef), float(standard_error))
        for name, coef, standard_error in zip(names, coefs, standard_errors, strict=True)
    ]


def _pooled_accuracy(graph: PreferenceGraph, predicted: Array) -> float:
    """Share of the strict preferences of a graph that the predictions order correctly."""
    error = graph.disagreement(predicted, pooled=True)  # one share over the edges of all groups
    if np.isnan(error).any():
        raise ValueError("score is undefined: the graph has no edge of positive magnitude.")
    return float(1.0 - np.mean(error))  # the mean over the outputs


def ranks_in_groups(scores: Array, groups: ArrayLike | None) -> NDArray[np.intp]:
    """As `Groups.rank`, for labels of any kind; scores may have several columns."""
    encoded_groups = encode_groups(groups, len(scores))
    if scores.ndim == 1:
        return encoded_groups.rank(scores)
    ranks_of_outputs = [encoded_groups.rank(output_scores) for output_scores in scores.T]
    return np.stack(ranks_of_outputs, axis=1)


class KernelModel(RankerMixin, BaseEstimator):
    """A ranker whose scores are ``X coef_`` or ``k(X, X_fit_) dual_coef_``."""

    _fitted: ClassVar[FittedSchema] = {
        "X_fit_": Items("samples features"),
        "coef_": Floats("features", "outputs features"),
        "dual_coef_": Floats("samples", "samples outputs"),
        "basis_indices_": Ints("samples"),
        "intercept_": Floats("", "outputs"),
        "output_shape_": TupleOf(int),
        "n_iter_": Values(),
        "n_pairs_": Values(),
        "solver_": Values(),
        "nuisance_coef_": Values(),
        "nuisance_se_": Values(),
        "nuisance_names_": Values(),
        "_nuisance_names": NotSaved(),
    }

    optional_attributes: ClassVar[tuple[str, ...]] = (
        *("coef_", "dual_coef_", "X_fit_", "basis_indices_"),
        *("nuisance_coef_", "nuisance_se_", "nuisance_names_"),
    )
    """Attributes that not every fit sets, so that a fit must forget those of an earlier one."""

    alpha: float
    kernel: KernelName
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, object] | None
    _nuisance_names: list[str] = []  # noqa: RUF012
    output_shape_: tuple[int, ...] = ()
    intercept_: Any = 0.0  # as of linear models of scikit-learn without one

    def make_kernel(self) -> Kernel:
        """The kernel, checked.

        Returns
        -------
        Kernel
            The kernel function with its parameters.
        """
        return Kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params or {})

    @single_threaded
    def predict(self, X: MatrixLike) -> Array:
        """Score items; larger is better, and only differences (inside a group) have a meaning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items; kernel values to the training items if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_outputs)
            Scores.
        """
        check_is_fitted(self)
        scores = self.predict_by(X, self._coefficient_columns)
        return scores.reshape((len(scores), *self.output_shape_))

    @single_threaded
    def predict_by(self, X: MatrixLike, coefficients: Array) -> Array:
        """Score items by given coefficients instead of the fitted ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        coefficients : ndarray of shape (n_coefficients, k)
            Coefficients of the columns of `regressors`; each column is one model.

        Returns
        -------
        ndarray of shape (n_items, k)
            Scores; equal items have bitwise equal scores.
        """
        check_is_fitted(self)
        X = validate_X(self, X, accept_sparse="csr", reset=False)
        return self._feature_map(len(coefficients)).scores(X, coefficients)

    @single_threaded
    def regressors(self, X: MatrixLike) -> Matrix:
        """Regressors of the items: scores are ``regressors(X) @ coefficients``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        array or sparse matrix of shape (n_items, n_coefficients)
            The columns of X for a linear model (`coef_`), else kernel values to the training or
            basis items (`dual_coef_`).
        """
        check_is_fitted(self)
        X = validate_X(self, X, accept_sparse="csr", reset=False)
        return self._feature_map(len(self._coefficient_columns)).transform(X)

    def kernel_expansion(self) -> KernelExpansion:
        """Kernel expansion of the scores.

        Returns
        -------
        KernelExpansion
            Basis items and coefficients.
        """
        coefficients = np.asarray(self._coefficient_columns, dtype=np.float64)
        features = self._feature_map(len(coefficients))
        return KernelExpansion([features], [coefficients], self.intercept_, self.output_shape_)

    def _store_features(self, features: FeatureMap) -> None:
        """Forget the attributes of an earlier fit, and store the items of this one."""
        for name in self.optional_attributes:
            self.__dict__.pop(name, None)
        if isinstance(features, ColumnFeatures):
            return
        if features.items is not None:
            self.X_fit_ = features.items
        if features.basis is not None:
            self.basis_indices_ = features.basis

    def _store_effects(self, effects: tuple[Array, Array]) -> None:
        self.nuisance_coef_, self.nuisance_se_ = effects  # and standard errors
        self.nuisance_names_ = list(self._nuisance_names)

    def _store_coefficients(self, columns: Array) -> None:
        """Store coefficients of shape (n, n_outputs) under their public names."""
        is_linear = self.kernel == "linear"
        has_one_output = not self.output_shape_
        if has_one_output:
            coefficients = columns[:, 0].copy()
        elif is_linear:  # coef_ has a row for each output, as in scikit-learn
            coefficients = np.ascontiguousarray(columns.T)
        else:
            coefficients = np.ascontiguousarray(columns)
        if is_linear:
            self.coef_ = coefficients
        else:
            self.dual_coef_ = coefficients

    @property
    def _coefficient_columns(self) -> Array:
        """The coefficients with shape (n, n_outputs)."""
        if hasattr(self, "coef_"):  # (n,) or (n_outputs, n)
            return np.asarray(np.atleast_2d(self.coef_).T)
        return self.dual_coef_.reshape(len(self.dual_coef_), -1)  # (n,) or (n, n_outputs)

    def _feature_map(self, n_coefficients: int) -> FeatureMap:
        kernel = self.make_kernel()
        if kernel.is_linear:
            return ColumnFeatures(None, n_coefficients)
        basis = getattr(self, "basis_indices_", None)
        items = getattr(self, "X_fit_", None)
        return KernelFeatures(kernel, None, n_coefficients, basis, items)

    def _check_fitted(self) -> None:
        check_kernel_items(vars(self).get("X_fit_"), self.kernel, self.kernel_params)


class HoldOutMixin:
    """Mixin of rankers that can be cross-validated by their hold-out task."""

    allows_unscored: bool

    def hold_out_task(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        The arguments are those of `fit`; y may also be a `TrainingTarget`. The estimator is not
        modified. Candidates are alphas; for CoRankRLS also nus, for RankingPursuit numbers of
        steps.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`.

        Returns
        -------
        HoldOutTask
            The task, which evaluates candidates on held-out data.
        """
        target = read_y(y, groups, sample_weight, X=X, allow_nan=self.allows_unscored)
        learner = clone(self)
        return learner._prepare(X, target)

    @abstractmethod
    def _prepare(self, X: MatrixLike, target: TrainingTarget) -> Any:
        """Validate the input and return the hold-out task."""
