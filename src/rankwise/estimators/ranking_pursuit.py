"""RankingPursuit, sparse ranking functions by greedy choice from a dictionary, and its search."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices
from rankwise.estimators.anatomy import ScoreFunctions
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.pursuit_problem import (
    choose_search,
    function_values,
    list_views,
    make_dictionaries,
    make_loss,
    make_search,
)
from rankwise.estimators.search import Search
from rankwise.estimators.training_data import (
    PartlyScored,
    check_beta,
    check_graph,
    check_rows,
    split_unscored,
)
from rankwise.features.feature_map import FeatureMap
from rankwise.features.kernel import KernelParameters
from rankwise.features.view import View
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.inputs import as_whole, check_option, read_target
from rankwise.machine import calm
from rankwise.metrics import disagreement_error
from rankwise.model_selection.task import Candidates, HoldOutTask
from rankwise.solvers.pursuit import PursuitProblem, Step, pursue


class PursuitFunction(NamedTuple):
    """The function of one view after each step.

    Attributes
    ----------
    basis : FeatureMap
        The chosen functions.
    choices : ndarray of int, shape (n_steps,)
        The number of the function that each step chose.
    coef_path : ndarray of shape (n_steps, n_functions)
        Their coefficients after each step.
    intercept_path : ndarray of shape (n_steps,)
        The intercept after each step.
    mean_score : float
        The intercept without any function.
    """

    basis: FeatureMap
    choices: Indices
    coef_path: Array
    intercept_path: Array
    mean_score: float

    @property
    def coef(self) -> Array:
        """Coefficients after the last step."""
        return self.coef_path[-1] if len(self.coef_path) else np.empty(0)

    @property
    def intercept(self) -> float:
        """Intercept after the last step."""
        return float(self.intercept_path[-1]) if len(self.coef_path) else self.mean_score

    def staged_scores(self, X: Any) -> Array:
        """Scores after each step, shape (n_items, n_steps)."""
        if not len(self.coef_path):
            return np.zeros((X.shape[0], 0))
        return np.asarray(self.basis.scores(X, self.coef_path.T) + self.intercept_path)

    def scores(self, X: Any) -> Array:
        """Scores after the last step; the intercept if there was none."""
        if not len(self.coef):
            return np.full(X.shape[0], self.intercept)
        return np.asarray(self.basis.scores(X, self.coef) + self.intercept)


def make_functions(
    dictionaries: list[FeatureMap], steps: list[Step], mean_score: float | None
) -> list[PursuitFunction]:
    """Gather the coefficients of all steps; with `mean_score` there is an intercept."""
    functions = []
    for view, dictionary in enumerate(dictionaries):
        chosen = steps[-1].basis[view] if steps else []
        path = np.zeros((len(steps), len(chosen)))
        for p, step in enumerate(steps):
            path[p, : len(step.coef[view])] = step.coef[view]
        intercepts = np.zeros(len(steps))
        if mean_score is not None:
            intercepts = np.array([mean_score - step.means[view] for step in steps])
        basis = dictionary.take(np.array(chosen, dtype=np.intp))
        choices = dictionary.indices[np.array([s.chosen[view] for s in steps], dtype=np.intp)]
        functions.append(PursuitFunction(basis, choices, path, intercepts, mean_score or 0.0))
    return functions


@dataclass(eq=False, repr=False, kw_only=True)
class PursuitParameters(KernelParameters):
    """Parameters of RankingPursuit and its search, each declared once."""

    kernel: str | Callable[..., float] = "rbf"
    dictionary: str | int | ArrayLike = "items"
    beta: float = 0.0
    fit_intercept: bool = True
    backfit: str | None = "final"
    views: int | Sequence[View] | None = None
    nu: Any = 1.0
    search: str = "auto"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    random_state: Any = None


@dataclass(eq=False, repr=False)
class RankingPursuit(RankerMixin, PursuitParameters):
    """Sparse ranking by greedy choice of functions, with or without unscored items.

    Use it if a few features, or a few items, should carry the model.

    Learns ``f(x) = b + Σ_p a_p k_p(x)`` with few functions k_p of a dictionary ([Pursuit13]
    section 3). Each step takes the function, and its coefficient, that lowers

        (1−β)/W Σ_k ω_k (δ_k − (f_i − f_j))² + β/m Σ_i (y_i − f_i)²

    most. With `views` it learns one such function for each view, which are to agree on the order
    of items without score (NaN in y), and predicts their mean (section 3.1).

    Parameters
    ----------
    n_basis : int
        Largest number of steps, each of which adds one function (to each view). Fewer are made if
        nothing lowers the error any more.
    kernel : str or callable
        The functions of the dictionary are ``k(x_j, ·)``. As in `RankRLS`.
    gamma, degree, coef0
        Parameters of the named kernels, as in scikit-learn.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    dictionary : {"items", "scored", "features"}, int or array of shape (n_points, n_features)
        What to choose from: functions centered at all training items, at the scored ones, at so
        many random ones, or at given points. "features" are the columns of X as they are: greedy
        feature selection; it goes with ``kernel="linear"``.
    beta : float
        Between ranking (0) and regression (1, kernel matching pursuit), [Pursuit13] equation 5.
    fit_intercept : bool
        Whether for beta > 0 the intercept b is free, so that predictions are on the scale of y. For
        beta = 0 there is none, and b = 0.
    backfit : {"final", "every"} or None
        Whether the coefficients are those of a least-squares fit on the chosen functions: at the
        end, after each step (orthogonal matching pursuit, each function is chosen once), or not at
        all, in which case a later step may choose a function again.
    views : int, list of View, or None
        None is one function, from the scored items only. A number deals the dictionary out at
        random to one or two views, as the paper's experiments do. The `n_basis` or `basis` of a
        View is a dictionary of its own.
    nu : float
        Weight of the agreement between views, 0 or more; the agreement is a mean over the pairs of
        unscored items inside groups (of scored items, if none is unscored) and summed over all
        ordered pairs of views.
    search : {"auto", "pairs", "shared"}
        How several views choose: "pairs" tries every pair of functions of two views; "shared"
        takes the same item in all views, which need the same dictionary. "auto" is "pairs" for two
        views, "shared" for more.
    cost, ties, group_weight
        As in `RankRLS`.
    n_iter_no_change : int, optional
        Hold out some of the scored groups and stop when so many steps in a row have not lowered
        the disagreement error on them ([Pursuit13] figures 1 and 2); the model is that of the best
        step. None makes all steps.
    validation_fraction : float
        Share of the groups (of the items, if there is one group) held out for `n_iter_no_change`.
    random_state : int, RandomState or None
        Seed of random dictionaries, random views and the held-out groups.

    Attributes
    ----------
    basis_indices_ : ndarray of int, or list of one for each view
        Chosen functions, each once, in the order of their first choice: rows of X, rows of the
        given points, or columns of X.
    dual_coef_ : ndarray, or list of one for each view
        Their coefficients.
    coef_path_ : ndarray of shape (n_steps, n_functions), or list of one for each view
        Coefficients after each step.
    choice_path_ : ndarray of int, shape (n_steps,) or (n_steps, n_views)
        The function that each step chose; with ``backfit=None`` or "final" it may be one of before.
    intercept_ : float
        b.
    train_error_ : ndarray of shape (n_steps,)
        Loss of the prediction for the scored items after each step.
    validation_score_ : ndarray
        Disagreement error on held-out rows after each step, those given up included
        (`n_iter_no_change`).
    coef_ : ndarray of shape (n_features,)
        Weights of all features, most of them 0 (``dictionary="features"``).
    n_basis_ : int
        Number of steps of the model.
    n_pairs_ : int
        Number of pairs of scored items trained on.
    search_ : str
        The search in use; "single" for one view.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    RankingPursuitCV : Number of steps chosen by cross-validation.
    RankRLS : Every item is a basis function, with a regularizer.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankingPursuit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = 3 * X[:, 7] - 2 * X[:, 2]
    >>> model = RankingPursuit(2, kernel="linear", dictionary="features").fit(X, y)
    >>> model.basis_indices_, model.dual_coef_.round(6)
    (array([7, 2]), array([ 3., -2.]))
    """

    allows_unscored = True

    n_basis: int = 50
    _: KW_ONLY
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1

    @calm
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from items, some of which may have no score.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_items,), or a preference graph
            Scores, NaN for an item that has none; a target of `make_target`; for a single view
            also a `ScoreGraph` or a `PairGraph`.
        groups : array-like of shape (n_items,), optional
            Group labels of all items: only items of one group are compared.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, as in ``RankRLS.fit``; the rows on which views agree have theirs.

        Returns
        -------
        RankingPursuit
            The fitted estimator.
        """
        X, target = self._check_training_data(X, y, groups, sample_weight)
        rng = check_random_state(self.random_state)
        if self.n_iter_no_change is None:
            return self._fit_rows(X, target, rng)
        held = validation_rows(scores_of(target), self.validation_fraction, rng)
        return self._fit_rows(X, target, rng, held)

    def hold_out_task(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> PursuitTask:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        Its candidates are numbers of steps. The data are those of `fit` but no graph, or y is a
        `Target` that was read already; the estimator is left as it is.
        """
        model: RankingPursuit = clone(self)
        items, target = model._check_training_data(X, y, groups, sample_weight)
        return PursuitTask(model, items, scores_of(target))

    @calm
    def predict(self, X: Any) -> Array:
        """Score items by the mean of the views.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items; kernel values to the training items if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores; larger is better. Their level has a meaning for beta > 0 only.
        """
        return np.asarray(self.predict_views(X).mean(axis=1))

    def predict_views(self, X: Any) -> Array:
        """Scores by each view: several sparse solutions, each nearly as good as the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items, n_views)
            Scores.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return np.stack([function.scores(X) for function in self._functions], axis=1)

    def score_functions(self) -> ScoreFunctions:
        """What the scores are made of: the function of each view."""
        maps = [function.basis for function in self._functions]
        coefficients = [function.coef[:, None] for function in self._functions]
        return ScoreFunctions(maps, coefficients, self.intercept_)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Scores after each step, as a model of that `n_basis` predicts them; X as in `predict`.

        Yields
        ------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        yield from self._staged(X).T

    def _staged(self, X: Any) -> Array:
        """Mean scores of the views after each step, shape (n_items, n_steps)."""
        staged = [function.staged_scores(X) for function in self._functions]
        return np.asarray(np.mean(staged, axis=0))

    def _check_training_data(
        self, X: Any, y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Any, PreferenceGraph | PartlyScored]:
        check_beta(self.beta)
        as_whole("n_basis", self.n_basis, least=1)
        if self.n_iter_no_change is not None:
            as_whole("n_iter_no_change", self.n_iter_no_change, least=1)
        if self.backfit is not None:
            check_option("backfit", self.backfit, ("final", "every"))
        if not isinstance(self.nu, numbers.Real) or not 0 <= float(self.nu) < np.inf:
            raise ValueError(f"nu={self.nu!r}; expected a finite number of at least 0.")
        target = read_target(y, groups, sample_weight, X=X, allow_nan=True)
        X = check_rows(self, X)
        if self.views is not None or not isinstance(target.y, PreferenceGraph):
            return X, split_unscored(target, X.shape[0])
        return X, check_graph(target.y, X.shape[0], {})

    def _fit_rows(
        self,
        X: Any,
        target: PreferenceGraph | PartlyScored,
        rng: Any,
        held: Indices | None = None,
    ) -> Self:
        """Fit to checked data. Scored rows that are held out say when to stop."""
        known = target if held is None else scores_of(target).without(held)
        if isinstance(known, PartlyScored):
            rows, scored = np.sort(np.r_[known.scored, known.unscored]), known.scored
        else:
            rows = scored = np.arange(X.shape[0])
        graph_options = (self.cost, self.ties, self.group_weight)
        loss, mean_score = make_loss(known, graph_options, self.beta, self.fit_intercept)
        views = list_views(self.views, View(**self.kernel_arguments()))
        names = getattr(self, "feature_names_in_", None)
        are_split = isinstance(self.views, numbers.Integral)
        dictionaries = make_dictionaries(
            X, rows, scored, self.dictionary, views, names, rng, are_split=are_split
        )
        self.search_ = choose_search(self.search, dictionaries)
        values = self._values(X, known, scored, dictionaries)
        has_free_intercept = self.beta == 0 or mean_score is not None
        problem = PursuitProblem(loss, has_free_intercept, *values, self.nu)
        search = make_search(problem, self.search_)
        steps: list[Step] = []
        errors: list[float] = []
        for step in pursue(problem, search, int(self.n_basis), self.backfit):
            steps.append(step)
            if held is None:
                continue
            functions = make_functions(dictionaries, [step], mean_score)
            errors.append(_held_out_error(functions, X, scores_of(target), held))
            if len(errors) - 1 - int(np.argmin(errors)) >= int(self.n_iter_no_change or 1):
                break
        self.__dict__.pop("validation_score_", None)
        if held is not None:
            self.validation_score_ = np.array(errors)
            steps = steps[: int(np.argmin(errors)) + 1] if errors else steps
        self.n_pairs_ = problem.loss.graph.n_pairs
        self._store(steps, make_functions(dictionaries, steps, mean_score))
        return self

    def _values(
        self,
        X: Any,
        known: PreferenceGraph | PartlyScored,
        scored: Indices,
        dictionaries: list[FeatureMap],
    ) -> tuple[list[Any], list[Any], ScoreGraph | None]:
        """The functions at the scored rows and where views are to agree, and the pairs there."""
        items = X if len(scored) == X.shape[0] else X[scored]
        at_scored = [function_values(functions, items) for functions in dictionaries]
        if len(dictionaries) == 1 or not isinstance(known, PartlyScored):
            return at_scored, [], None
        rows, agreement = known.agreement(self.group_weight)
        if np.array_equal(rows, scored):
            return at_scored, at_scored, agreement
        at_agreeing = [function_values(functions, X[rows]) for functions in dictionaries]
        return at_scored, at_agreeing, agreement

    def _store(self, steps: list[Step], functions: list[PursuitFunction]) -> None:
        self._functions = functions
        self.n_basis_ = len(steps)
        self.train_error_ = np.array([step.error for step in steps])
        self.intercept_ = float(np.mean([f.intercept for f in functions]))
        self.basis_indices_ = [f.basis.indices for f in functions]
        self.dual_coef_ = [f.coef for f in functions]
        self.coef_path_ = [f.coef_path for f in functions]
        self.choice_path_ = np.stack([f.choices for f in functions], axis=1)
        self.__dict__.pop("coef_", None)
        if functions[0].basis.is_columns:
            self.coef_ = np.zeros(self.n_features_in_)
            for f in functions:
                self.coef_[f.basis.indices] += f.coef / len(functions)
        if self.views is None:
            for name in ("basis_indices_", "dual_coef_", "coef_path_"):
                setattr(self, name, getattr(self, name)[0])
            self.choice_path_ = self.choice_path_[:, 0]


@dataclass(eq=False, repr=False)
class RankingPursuitCV(RankerMixin, PursuitParameters, Search):
    """RankingPursuit that chooses its number of steps, and parameters given as lists, by folds.

    Use it in place of `RankingPursuit` if the number of steps is not known.

    One pursuit for each fold serves all numbers of steps up to `n_basis`. The model is then trained
    on all data with the best one; of equally good ones it is the smallest. Only scored items are
    held out: unscored ones take part in every fold.

    Parameters
    ----------
    n_basis : int
        Largest number of steps to try.
    cv : "auto", None, int, splitter or iterable
        "auto" makes five folds of whole groups, or of items if there is one group; None leaves out
        one group at a time; anything else as in `RankRLSCV`.
    scoring : str, Metric or function
        A ranking metric such as "disagreement" or "ndcg@10", averaged over the held-out groups.
    gamma, degree, coef0, nu
        As in `RankingPursuit`; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    kernel, kernel_params, dictionary, beta, fit_intercept, backfit, views, search, cost, ties, \
group_weight, random_state
        As in `RankingPursuit`.

    Attributes
    ----------
    n_basis_ : int
        Chosen number of steps.
    best_score_ : float
        Its score, in the units of `scoring`.
    best_params_ : dict
        "n_basis" and the chosen ones of the parameters given as lists.
    cv_results_ : dict
        "n_basis" (numbers of steps), "params" (list of dict), "mean_score" of shape (n_params,
        n_basis), "group_score", a list of arrays of shape (n_groups, n_basis), nan where a group
        has no score, "groups" (their labels), "n_undefined", "cv" (which way was taken), and
        "predictions" if asked for, nan in rows without a score.
    best_estimator_ : RankingPursuit
        The model trained on all data.
    basis_indices_, choice_path_, coef_, coef_path_, dual_coef_, intercept_, n_pairs_, search_, \
train_error_
        As in `RankingPursuit`.

    Examples
    --------
    >>> from rankwise import RankingPursuitCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=20, noise=0.5, random_state=0)[:3]
    >>> model = RankingPursuitCV(30, gamma=[0.001, 0.01]).fit(X, y, groups)
    >>> model.n_basis_ <= 30, model.best_params_["gamma"] in (0.001, 0.01)
    (True, True)
    """

    allows_unscored = True
    model_class = RankingPursuit
    axes = {"n_basis": None}  # noqa: RUF012
    lists = ("gamma", "degree", "coef0", "nu")

    n_basis: int = 50

    def predict_views(self, X: Any) -> Array:
        """Scores by each view; see ``RankingPursuit.predict_views``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Scores after each step; see ``RankingPursuit.staged_predict``."""
        check_is_fitted(self)
        yield from self.best_estimator_.staged_predict(X)


class PursuitTask(HoldOutTask):
    """RankingPursuit with its data: one pursuit for each fold serves all numbers of steps.

    Only scored rows are held out; unscored ones take part in every fold.

    Parameters
    ----------
    learner : RankingPursuit
        Its parameters; it has seen X.
    X : array or sparse matrix of shape (n_items, n_features)
        All items, checked.
    scores : PartlyScored
        Scores and groups of all rows.
    """

    parameters = ("n_basis",)

    def __init__(self, learner: RankingPursuit, X: Any, scores: PartlyScored) -> None:
        _units(scores)  # refuses a single row
        self._X, self._scores = X, scores
        graph = scores.graph(learner.cost, learner.ties, learner.group_weight)
        super().__init__(learner, graph, scores.scored, X.shape[0])

    def default_values(self, _: str) -> Array:
        """All numbers of steps up to `n_basis`."""
        return np.arange(1.0, int(self.learner.n_basis) + 1)

    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """A pursuit that ended early stays as it is for the steps that are left."""
        steps = candidates.axes["n_basis"].astype(np.intp)
        model = self._trained(int(steps.max()), self._scores.without(held))
        staged = model._staged(self._X[self._scores.scored[held]])
        if not staged.shape[1]:
            return np.zeros((len(held), len(steps)))
        return staged[:, np.minimum(steps, staged.shape[1]) - 1]

    def train(self, **values: Any) -> RankingPursuit:
        """The learner trained on all data."""
        return self._trained(values["n_basis"], self._scores)

    def _trained(self, n_basis: int, scores: PartlyScored) -> RankingPursuit:
        model: RankingPursuit = copy.copy(self.learner)
        model.n_basis = n_basis
        rng = check_random_state(model.random_state)
        return model._fit_rows(self._X, scores, rng)


def scores_of(target: PreferenceGraph | PartlyScored) -> PartlyScored:
    """Scores and groups, from which rows can be held out; graphs are refused."""
    if isinstance(target, PartlyScored):
        return target
    raise ValueError(
        f"y is a {type(target).__name__}, from which no rows are held out to choose the number of "
        "steps; pass scores and groups, or a fixed n_basis and n_iter_no_change=None to "
        "RankingPursuit."
    )


def _held_out_error(
    functions: list[PursuitFunction], X: Any, scores: PartlyScored, held: Indices
) -> float:
    """Disagreement error of the mean of the views on some of the scored rows."""
    rows = scores.scored[held]
    predicted = np.mean([function.scores(X[rows]) for function in functions], axis=0)
    labels, weights = scores.scored_labels[held], scores.weights_of(rows)
    return float(disagreement_error(scores.y[held], predicted, labels, sample_weight=weights))


def validation_rows(scores: PartlyScored, fraction: float, rng: Any) -> Indices:
    """A random share of the groups, or of the items if there is one group; numbers of scored rows.

    Items of one list are taken evenly over the order of their scores (at least two of them), so
    that those held out have an order of their own.
    """
    if not isinstance(fraction, numbers.Real) or not 0 < fraction < 1:
        raise ValueError(f"validation_fraction={fraction!r}; expected a number between 0 and 1.")
    unit = _units(scores)
    n_units = int(unit.max()) + 1
    n_held = min(max(1, round(fraction * n_units)), n_units - 1)
    if n_units < len(unit):
        return np.flatnonzero(np.isin(unit, rng.permutation(n_units)[:n_held]))
    n_held = min(max(2, n_held), max(1, n_units - 2))
    order = np.lexsort((rng.permutation(n_units), scores.y))
    places = ((np.arange(n_held) + rng.uniform()) * (n_units / n_held)).astype(np.intp)
    return np.sort(order[places])


def _units(scores: PartlyScored) -> Indices:
    """What is held out together: the group of each scored row, or the row if there is one group."""
    codes = scores.groups.codes[scores.scored]
    if len(codes) < 2:
        raise ValueError(
            "found 1 sample with a score (n_samples = 1), of which none can be held out; score at "
            "least two items, or fix n_basis."
        )
    if (codes == codes[0]).all():
        return np.arange(len(codes))
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)
