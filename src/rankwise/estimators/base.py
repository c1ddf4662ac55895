"""What rankers have in common: ranks inside groups, a score, kernel models, paths, searches."""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.estimators.anatomy import ScoreFunctions
from rankwise.estimators.training_data import check_rows, no_nuisance, restored_on_failure
from rankwise.features.feature_map import FeatureMap
from rankwise.features.kernel import BaseEstimator, KernelParameters
from rankwise.graphs import PreferenceGraph
from rankwise.groups import encode_groups
from rankwise.inputs import Target, check_alphas, read_target
from rankwise.machine import calm
from rankwise.metrics import Metric, disagreement_error
from rankwise.model_selection.curves import (
    HeldOutCurves,
    check_scoring,
    label_rows,
    later_curves,
    mean_defined,
    score_candidates,
)
from rankwise.model_selection.scoring import predict_items
from rankwise.model_selection.task import Candidates, read_splits


class RankerMixin:
    """Mixin with `rank` and `score`; not a regressor, whose score would be R².

    The class-level metadata requests let ``groups`` and ``sample_weight`` reach `fit` and `score`
    through GridSearchCV, Pipelines and the rest when scikit-learn's metadata routing is on.
    """

    allows_unscored = False  # whether a score may be NaN, "not scored"

    takes_nuisance = False  # whether `fit` takes out the effects of nuisance columns

    multi_output = False  # whether y may have several columns

    __metadata_request__fit = {"groups": True, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "sample_weight": True}  # noqa: RUF012

    def rank(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.intp]:
        """Rank the items inside their groups, 1 is best.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels; None ranks all items in one list.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_outputs)
            Ranks; items with equal predicted scores share the smallest of their ranks.
        """
        return ranks_in_groups(predict_items(self, X, groups), groups)

    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean over groups of the fraction of pairs that are ordered rightly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like, target of `make_target`, or preference graph
            True scores or preferences. Pairs of equal score do not count, nor do rows with NaN if
            `fit` takes these. For a graph without scores the fraction is taken over all edges, by
            weight.
        groups : array-like of shape (n_items,), optional
            Group labels.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items; a pair weighs the product of its two. A graph may have some of
            its own, which count as well.

        Returns
        -------
        float
            1 minus the disagreement error, averaged over the outputs; tied predictions count one
            half.
        """
        check_is_fitted(self)
        target = read_target(y, groups, sample_weight, X=X, allow_nan=self.allows_unscored)
        labels: Any = label_rows(target)
        y, weight = target.y, target.weight
        if isinstance(y, PreferenceGraph):
            y, labels, weight = y.scores, y.groups, y.item_weights
        predicted = predict_items(self, X, labels)
        if y is None:
            wrong = target.y.disagreement(predicted, pooled=True)
            if np.isnan(wrong).any():
                raise ValueError("score is undefined: the graph has no edge of positive magnitude.")
            return float(1.0 - np.mean(wrong))
        scored = ~np.isnan(y.reshape(len(y), -1)).any(axis=1)
        if not scored.any():
            raise ValueError("score needs rows with a score, but y is all NaN.")
        weight = None if weight is None else weight[scored]
        error = disagreement_error(
            y[scored], predicted[scored], labels[scored], sample_weight=weight
        )
        return float(1.0 - np.mean(error))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required, tags.target_tags.multi_output = True, self.multi_output
        kernel = getattr(self, "kernel", None)
        tags.input_tags.pairwise = isinstance(kernel, str) and kernel == "precomputed"
        tags.input_tags.sparse = kernel is not None and not tags.input_tags.pairwise
        return tags


def ranks_in_groups(
    scores: NDArray[np.floating[Any]], groups: ArrayLike | None, equal: float = 0.0
) -> NDArray[np.intp]:
    """As `ranks_of`, for labels of any kind; scores may have several columns."""
    if scores.ndim == 2:
        return np.stack([ranks_in_groups(column, groups, equal) for column in scores.T], axis=1)
    return ranks_of(scores, encode_groups(groups, len(scores)).codes, equal)


def ranks_of(
    scores: NDArray[np.floating[Any]], codes: NDArray[np.intp], equal: float
) -> NDArray[np.intp]:
    """Competition ranks (1, 2, 2, 4) of the scores inside each group, largest first.

    Neighbors whose scores differ by no more than `equal` share a rank.
    """
    order = np.lexsort((-scores, codes))
    g, s = codes[order], scores[order]
    position = np.arange(len(scores))
    new_group = np.r_[True, g[1:] != g[:-1]]
    new_rank = new_group | np.r_[True, s[:-1] - s[1:] > equal]
    first_of_group = np.maximum.accumulate(np.where(new_group, position, 0))
    first_of_tie = np.maximum.accumulate(np.where(new_rank, position, 0))
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[order] = first_of_tie - first_of_group + 1
    return ranks


class KernelModel(RankerMixin, KernelParameters):
    """A ranker whose scores are ``X coef_`` or ``k(X, X_fit_) dual_coef_``."""

    learned: ClassVar[tuple[str, ...]] = (
        *("coef_", "dual_coef_", "X_fit_", "basis_indices_"),
        *("nuisance_coef_", "nuisance_se_", "nuisance_names_"),
    )
    """Attributes that not every fit sets, so that a fit must forget those of an earlier one."""

    alpha: Any
    _nuisance_names: list[str] = []  # noqa: RUF012
    output_shape_: tuple[int, ...] = ()
    intercept_: Any = 0.0  # as of linear models of scikit-learn without one

    @calm
    def predict(self, X: Any) -> NDArray[Any]:
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
        scores = self.predict_by(X, self._columns)
        return scores.reshape((len(scores), *self.output_shape_))

    @calm
    def predict_by(self, X: Any, coefficients: Array) -> NDArray[Any]:
        """Score items by other coefficients than those of the fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        coefficients : ndarray of shape (n_coefficients, k)
            Weights of what `regressors` gives, one model in each column.

        Returns
        -------
        ndarray of shape (n_items, k)
            Scores; equal items have equal ones, to the last bit.
        """
        check_is_fitted(self)
        X = check_rows(self, X, accept_sparse="csr", reset=False)
        return self._feature_map(len(coefficients)).scores(X, coefficients)

    @calm
    def regressors(self, X: Any) -> Any:
        """What the coefficients are coefficients of: scores are ``regressors(X) @ coefficients``.

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
        X = check_rows(self, X, accept_sparse="csr", reset=False)
        return self._feature_map(len(self._columns)).features(X)

    def score_functions(self) -> ScoreFunctions:
        """What the scores are made of."""
        columns = np.asarray(self._columns, dtype=np.float64)
        features = self._feature_map(len(columns))
        return ScoreFunctions([features], [columns], self.intercept_, self.output_shape_)

    def _store_features(self, features: FeatureMap) -> None:
        """Forget an earlier fit with other parameters, keep the items of this one."""
        for name in self.learned:
            self.__dict__.pop(name, None)
        if features.items is not None:
            self.X_fit_ = features.items
        if features.basis is not None:
            self.basis_indices_ = features.basis

    def _keep_effects(self, effects: tuple[Array, Array]) -> None:
        self.nuisance_coef_, self.nuisance_se_ = effects
        self.nuisance_names_ = list(self._nuisance_names)

    def _store(self, columns: Array) -> None:
        """Keep coefficients of shape (n, n_outputs) under their public names."""
        single = not self.output_shape_
        if self.kernel == "linear":
            self.coef_ = columns[:, 0].copy() if single else np.ascontiguousarray(columns.T)
        else:
            self.dual_coef_ = columns[:, 0].copy() if single else np.ascontiguousarray(columns)

    @property
    def _columns(self) -> Array:
        if hasattr(self, "coef_"):
            return np.asarray(np.atleast_2d(self.coef_).T)
        return self.dual_coef_.reshape(len(self.dual_coef_), -1)

    def _feature_map(self, n_coefficients: int) -> FeatureMap:
        basis, items = getattr(self, "basis_indices_", None), getattr(self, "X_fit_", None)
        return FeatureMap(self.make_kernel(), None, n_coefficients, basis, items)


class TaskModel(RankerMixin):
    """A ranker that can be cross-validated by its hold-out task."""

    def hold_out_task(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        The data are those of `fit`, or y is a `Target` that was read already; the estimator is left
        as it is. Candidates are alphas, of CoRankRLS nus, too, of RankingPursuit numbers of steps.
        """
        target = read_target(y, groups, sample_weight, X=X, allow_nan=self.allows_unscored)
        return clone(self)._prepare(X, target)

    @abstractmethod
    def _prepare(self, X: Any, target: Target) -> Any:
        """Check everything, and say what is to be learned: a `HoldOutTask`."""


class PathModel(TaskModel, KernelModel):
    """A kernel model of items in groups, with paths over alpha and a hold-out task."""

    @calm
    def path(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        alphas: ArrayLike,
        sample_weight: ArrayLike | None = None,
        nuisance: Any = None,
    ) -> Any:
        """The solutions of a whole list of alphas.

        They cost little more than one fit: RankRLS has them from one reduction of the matrix
        ([RankRLS09] section 3.2), RankSVM and RankLogistic start each from the one before. `alpha`
        of the estimator is ignored, and the estimator itself is left as it is.

        Parameters
        ----------
        X, y, groups, sample_weight, nuisance
            As in `fit`; the models of a path do not tell the effects of the nuisance.
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.

        Returns
        -------
        RankRLSPath or MarginPath
            The models of all alphas.

        Examples
        --------
        >>> from rankwise import RankRLS, RankSVM
        >>> path = RankRLS().path([[0.0], [1.0], [3.0]], [0, 1, 2], alphas=[0.1, 1.0, 10.0])
        >>> path.predict([[1.0]]).round(3)
        array([[0.629, 0.529, 0.205]])
        >>> path = RankSVM(tol=1e-6).path([[0.0], [1.0], [3.0]], [0, 1, 2], alphas=[0.01, 1.0])
        >>> path.predict([[1.0]]).round(2)
        array([[1. , 0.5]])
        """
        checked = check_alphas(alphas, "alphas")
        target = read_target(y, groups, sample_weight, nuisance, X=X)
        return clone(self)._prepare(X, target).path(checked)


class ModelPath:
    """Models along a list of alphas.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefficients : ndarray of shape (n_alphas, n, n_outputs)
        Weights of the features (linear kernel) or of the training or basis items.
    """

    def __init__(self, template: Any, alphas: Array, coefficients: Array) -> None:
        self._template = template
        self.alphas = alphas
        self.coefficients = coefficients

    def __len__(self) -> int:
        return len(self.alphas)

    @calm
    def predict(self, X: Any) -> NDArray[Any]:
        """Scores of all models, shape (n_items, n_alphas) or (n_items, n_outputs, n_alphas)."""
        model = self._template
        n_alphas, n, _ = self.coefficients.shape
        columns = self.coefficients.transpose(1, 2, 0).reshape(n, -1)
        scores: Array = model.predict_by(X, columns)
        return scores.reshape((len(scores), *model.output_shape_, n_alphas))

    def model(self, index: int) -> Any:
        """The fitted estimator of ``alphas[index]``."""
        model = copy.copy(self._template)
        model.alpha = float(self.alphas[index])
        model._store(self.coefficients[index])
        return model


@dataclass(eq=False, repr=False, kw_only=True)
class BaseSearch(BaseEstimator):
    """A ranker that chooses its parameters by held-out data and stands for the best model.

    A subclass declares which learner is trained and what is searched. `Search` is the one for
    learners of items with one kernel.
    """

    model_class: ClassVar[Any]
    """The learner; parameters that it shares with the search are handed on."""

    axes: ClassVar[dict[str, str | None]] = {"alpha": "alphas"}
    """Parameters whose candidates one task judges at once; where the user gives their values."""

    lists: ClassVar[tuple[str, ...]] = ()
    """Other parameters that may be lists of values; each combination is a task of its own."""

    cv: Any = "auto"
    scoring: Any = "disagreement"
    store_predictions: bool = False

    def _search(self, *data: Any, time: Any = None) -> None:
        """Choose the parameters, then learn from all data, which go to `hold_out_task`.

        If times are given, later groups are held out.
        """
        is_default = self.cv is None or (isinstance(self.cv, str) and self.cv == "auto")
        if time is not None and not is_default:
            raise ValueError(f"cv={self.cv!r} and time both say what is held out; give one.")
        metric, points, cv = check_scoring(self.scoring), self._points(), read_splits(self.cv)
        values = {name: getattr(self, asked or "", None) for name, asked in self.axes.items()}
        runs, scores = [], []
        for point in points:  # one at a time: a task may hold a kernel matrix
            model = self._model(**point)
            task = model.hold_out_task(*data)
            if time is None:
                run = score_candidates(task, values, cv, [metric])
            else:
                X, target = data
                run = later_curves(model, X, target, time, values, [metric])
            runs.append(run)
            scores.append(run.overall(metric)[run.best(metric)])
        best = int((np.argmax if metric.greater_is_better else np.argmin)(scores))
        chosen = self._report(runs, points, best, metric)
        if len(points) > 1:
            task = self._model(**points[best]).hold_out_task(*data)
        self.best_estimator_ = task.train(**chosen)

    def __getattr__(self, name: str) -> Any:
        """What `fit` of the learner sets is that of the best model."""
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _model(self, **point: Any) -> Any:
        own, theirs = self.get_params(deep=False), self.model_class().get_params(deep=False)
        shared = set(own) & set(theirs) - {"scoring", *point}
        return self.model_class(**point, **{name: own[name] for name in shared})

    def _points(self) -> list[dict[str, Any]]:
        """Every combination of the parameters that may be lists."""
        values = []
        for name in self.lists:
            value = getattr(self, name)
            values.append(list(value) if np.ndim(value) else [value])
            if not values[-1]:
                raise ValueError(f"{name} is an empty list; give at least one value to try.")
        return [dict(zip(self.lists, point, strict=True)) for point in itertools.product(*values)]

    def _report(
        self,
        runs: list[HeldOutCurves],
        points: list[dict[str, Any]],
        best: int,
        metric: Metric,
    ) -> dict[str, Any]:
        """Set the attributes that tell of the search; the chosen candidate."""
        run, at = runs[best], runs[best].best(metric)
        scores, chosen = run.overall(metric), run.candidates[at]
        for name, value in chosen.items():
            setattr(self, f"{name}_", value)
            is_asked = getattr(self, self.axes[name] or "", None) is not None
            if value > 0 and (is_asked or name == "alpha"):  # there is no nu below 0
                warn_at_edge(name, run.candidates, scores, at)
        self.best_score_ = float(scores[at])
        self.best_params_ = dict(chosen)
        for name in self.lists:
            if np.ndim(getattr(self, name)):
                self.best_params_[name] = points[best][name]
        # a row for each point and nu, a column for each value of the first parameter
        first = next(iter(self.axes))
        single = run.by_group[metric.name].shape[2] == 1
        output = 0 if single else slice(None)
        values, params, means, by_group, predictions = [], [], [], [], []
        for run, point in zip(runs, points, strict=True):
            grid = run.candidates.axes[first]
            for start in range(0, len(run.candidates), len(grid)):
                line, fixed = slice(start, start + len(grid)), run.candidates[start]
                del fixed[first]
                values.append(grid)
                params.append({**point, **fixed})
                means.append(mean_defined(run.by_group[metric.name])[line, output])
                by_group.append(run.by_group[metric.name][:, line, output])
                held = run.predictions
                predictions.append(None if held is None else held[:, output, line])
        self.cv_results_: dict[str, Any] = {
            (self.axes[first] or first): values if first == "alpha" else values[0],
            "params": params,
            "mean_score": np.stack(means),
            "group_score": by_group,
            "groups": runs[0].groups,
            "n_undefined": int(np.isnan(runs[best].by_group[metric.name]).any(axis=(1, 2)).sum()),
            "cv": runs[0].way,
        }
        if self.store_predictions:
            self.cv_results_["predictions"] = predictions
        return chosen


def warn_at_edge(name: str, candidates: Candidates, scores: Array, at: int) -> None:
    """Warn if the grid of a parameter ends at the choice `at` and no other value is as good."""
    grid, line = candidates.axes[name], candidates.line(at, name)
    others = np.delete(scores[line], np.flatnonzero(line == at))
    value = candidates[at][name]
    if len(others) and (others != scores[at]).all() and value in (grid.min(), grid.max()):
        warn_user(
            f"the best {name} {value:g} is at the edge of the grid from {grid.min():g} to "
            f"{grid.max():g}; extend the grid, or scale the features."
        )


class Search(BaseSearch, KernelParameters):
    """A search for a learner of items in groups, with one kernel; see `RankRLSCV`."""

    lists: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0")
    allows_unscored: bool  # of the mixin of the learner

    @calm
    @restored_on_failure
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        time: ArrayLike | None = None,
        nuisance: Any = None,
    ) -> Self:
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``fit`` of the model. Held-out items are judged with their weights, too.
        time : array-like of shape (n_items,), optional
            When each item was seen: dates or numbers. Groups are then judged by models of earlier
            groups only, in five blocks, as a model that is used tomorrow will be.
        nuisance : array-like or data frame, optional
            As in ``fit`` of RankRLS and RankLogistic; other models refuse it. Held-out items are
            judged by f(x) without it.

        Returns
        -------
        Search
            The fitted estimator.
        """
        allow_nan = self.allows_unscored
        target = read_target(y, groups, sample_weight, nuisance, X=X, allow_nan=allow_nan)
        if not self.model_class.takes_nuisance:
            no_nuisance(type(self).__name__, target)
        self._search(X, target, time=time)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Score items by the model of the best parameters; see ``predict`` of the model."""
        check_is_fitted(self)
        scores: NDArray[Any] = self.best_estimator_.predict(X)
        return scores

    def score_functions(self) -> ScoreFunctions:
        """What the scores of the best model are made of."""
        parts: ScoreFunctions = self.best_estimator_.score_functions()
        return parts
