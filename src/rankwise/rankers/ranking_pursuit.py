"""RankingPursuit, sparse ranking functions by greedy choice from a dictionary, and its search."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices
from rankwise.fitted_schema import (
    Either,
    FittedSchema,
    Floats,
    Ints,
    ListOf,
    Record,
    Values,
    saved_fields,
)
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import Relevance, read_y
from rankwise.kernels.basis import choose_basis, read_points
from rankwise.kernels.feature_maps import FeatureMap, take_columns
from rankwise.kernels.kernel import KernelParameters
from rankwise.kernels.views import View, check_views, view_columns
from rankwise.losses import SquaredLoss
from rankwise.metrics import disagreement_error
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.grid_search import grid_search
from rankwise.model_selection.protocol import HoldOutTask
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import TaskModel
from rankwise.rankers.linear_models import KernelExpansion
from rankwise.rankers.ranking_problem import check_beta, no_nuisance, one_output, ranking_loss
from rankwise.rankers.search import Search
from rankwise.rankers.semi_supervised import PartialRelevance, split_unscored
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.pursuit import AllPairs, PursuitProblem, SharedIndices, Step, pursue
from rankwise.validation import (
    check_alphas,
    check_int,
    check_option,
    restored_on_failure,
)

DICTIONARIES = ("items", "scored", "features")


@saved_fields(
    {
        "basis": Record(FeatureMap),
        "choices": Ints("steps"),
        "coef_path": Floats("states functions"),
        "intercept_path": Floats("states"),
    }
)
class PursuitFunction(NamedTuple):
    """The function of one view before the first step and after each.

    Attributes
    ----------
    basis : FeatureMap
        The chosen functions.
    choices : ndarray of int, shape (n_steps,)
        The number of the function that each step chose.
    coef_path : ndarray of shape (n_steps + 1, n_functions)
        Their coefficients.
    intercept_path : ndarray of shape (n_steps + 1,)
        The intercept.
    """

    basis: FeatureMap
    choices: Indices
    coef_path: Array
    intercept_path: Array

    def scores(self, X: Any, steps: Any = -1) -> Array:
        """Scores after some of the steps, by default the last."""
        coef, intercept = self.coef_path[steps].T, self.intercept_path[steps]
        if not len(coef):
            return np.broadcast_to(intercept, (X.shape[0], *np.shape(intercept)))
        return np.asarray(self.basis.scores(X, coef) + intercept)


def make_functions(
    dictionaries: list[FeatureMap], steps: list[Step], mean_score: float | None
) -> list[PursuitFunction]:
    """Gather the coefficients of all steps; with `mean_score` there is an intercept."""
    functions = []
    for view, dictionary in enumerate(dictionaries):
        chosen = steps[-1].basis[view] if steps else []
        path = np.zeros((len(steps) + 1, len(chosen)))
        intercepts = np.full(len(steps) + 1, mean_score or 0.0)
        for p, step in enumerate(steps, 1):
            path[p, : len(step.coef[view])] = step.coef[view]
            intercepts[p] -= 0.0 if mean_score is None else step.means[view]
        basis = dictionary.take(np.array(chosen, dtype=np.intp))
        choices = dictionary.indices[np.array([s.chosen[view] for s in steps], dtype=np.intp)]
        functions.append(PursuitFunction(basis, choices, path, intercepts))
    return functions


class RankingPursuit(TaskModel, KernelParameters):
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
        many random ones (all if there are fewer), or at given points. "features" are the columns
        of X as they are: greedy feature selection; it goes with ``kernel="linear"``.
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
    max_group_size_ : int or None
        Number of items in the longest group; None without groups, or if y is a graph.
    group_columns_ : list of str
        Columns of a data frame that contain the groups and are therefore dropped.
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

    _fitted: ClassVar[FittedSchema] = {
        "_functions": ListOf(Record(PursuitFunction)),
        "basis_indices_": Either((Ints("functions"), ListOf(Ints("functions")))),
        "dual_coef_": Either((Floats("functions"), ListOf(Floats("functions")))),
        "coef_path_": Either((Floats("steps functions"), ListOf(Floats("steps functions")))),
        "choice_path_": Ints("steps", "steps views"),
        "coef_": Floats("features"),
        "intercept_": Floats(""),
        "n_basis_": Values(),
        "n_pairs_": Values(),
        "search_": Values(),
        "train_error_": Values(),
        "validation_score_": Values(),
    }

    allows_unscored = True

    def __init__(
        self,
        n_basis: int = 50,
        *,
        kernel: str | Callable[..., float] = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        dictionary: str | int | ArrayLike = "items",
        beta: float = 0.0,
        fit_intercept: bool = True,
        backfit: str | None = "final",
        views: int | Sequence[View] | None = None,
        nu: float = 1.0,
        search: str = "auto",
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.dictionary = dictionary
        self.beta = beta
        self.fit_intercept = fit_intercept
        self.backfit = backfit
        self.views = views
        self.nu = nu
        self.search = search
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @refuse_other_keywords
    @single_threaded
    @restored_on_failure
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
        target = read_y(y, groups, sample_weight, X=X, allow_nan=True)
        X = check_groups(self, X, y, groups)
        X, holds_out = self._check(X), self.n_iter_no_change is not None
        if self.views is None and isinstance(target.y, PreferenceGraph) and not holds_out:
            one_output("RankingPursuit", target.y.scores)
            return self._fit_rows(X, target.y)
        scores, held = split_unscored(target, X.shape[0]), None
        if holds_out:
            codes = scores.groups.codes[scores.scored]
            share = self.validation_fraction
            if not np.ptp(codes):  # one list, of which two items have an order
                codes, share = np.arange(len(codes)), max(share, 2 / len(codes))
            split = GroupShuffleSplit(1, test_size=share, random_state=self.random_state)
            _, held = next(split.split(codes, groups=codes))
        return self._fit_rows(X, scores, held)

    @single_threaded
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
        X = validate_X(self, X, reset=False)
        return np.stack([function.scores(X) for function in self._functions], axis=1)

    def kernel_expansion(self) -> KernelExpansion:
        """What the scores are made of: the function of each view."""
        maps = [function.basis for function in self._functions]
        coefficients = [function.coef_path[-1][:, None] for function in self._functions]
        return KernelExpansion(maps, coefficients, self.intercept_)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Scores after each step, as a model of that `n_basis` predicts them; X as in `predict`.

        Yields
        ------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        yield from self._staged(validate_X(self, X, reset=False))[:, 1:].T

    def _staged(self, X: Any) -> Array:
        """Mean scores of the views before and after each step, shape (n_items, n_steps + 1)."""
        staged = [function.scores(X, slice(None)) for function in self._functions]
        return np.asarray(np.mean(staged, axis=0))

    def _prepare(self, X: Any, target: Relevance) -> PursuitTask:
        X = self._check(X)
        return PursuitTask(self, X, split_unscored(target, X.shape[0]))

    def _check(self, X: Any) -> Any:
        """The items, after all parameters."""
        check_beta(self.beta)
        check_int("n_basis", self.n_basis, least=1)
        if self.n_iter_no_change is not None:
            check_int("n_iter_no_change", self.n_iter_no_change, least=1)
        if self.backfit is not None:
            check_option("backfit", self.backfit, ("final", "every"))
        check_alphas([self.nu], "nu")
        return validate_X(self, X)

    def _fit_rows(
        self, X: Any, target: PreferenceGraph | PartialRelevance, held: Indices | None = None
    ) -> Self:
        """Fit to checked data. Scored rows that are held out say when to stop."""
        known = target
        if held is not None and isinstance(target, PartialRelevance):
            known, tested = target.without(held), target.scored[held]
            truth, weight = target.y[held], target.weights_of(tested)
            labels = target.groups.codes[tested]
        loss, mean_score = self._loss(X.shape[0], known)
        rows = scored = np.arange(X.shape[0])
        if isinstance(known, PartialRelevance):
            rows, scored = np.sort(np.r_[known.scored, known.unscored]), known.scored
        dictionaries = self._dictionaries(X, rows, scored)
        self.search_ = choose_search(self.search, dictionaries)
        at_scored = [function_values(functions, X, scored) for functions in dictionaries]
        at_agreeing, agreement = [], None
        if len(dictionaries) > 1 and isinstance(known, PartialRelevance):
            agreeing, agreement = known.agreement(self.group_weight)
            at_agreeing = [function_values(functions, X, agreeing) for functions in dictionaries]
        has_free_intercept = self.beta == 0 or mean_score is not None
        problem = PursuitProblem(
            loss, has_free_intercept, at_scored, at_agreeing, agreement, self.nu
        )
        norms = problem.norms()
        for view, values in enumerate(norms):
            if not values.any():
                raise ValueError(
                    f"no function of the dictionary (view {view}) tells the scored items of any "
                    "pair apart: all are constant inside groups. Give features (or columns of the "
                    "view) that vary inside a group, another kernel, or more functions."
                )
        search = (AllPairs if self.search_ == "pairs" else SharedIndices)(problem, norms)
        steps: list[Step] = []
        errors: list[float] = []
        for step in pursue(problem, search, int(self.n_basis), self.backfit):
            steps.append(step)
            if held is None:
                continue
            functions = make_functions(dictionaries, [step], mean_score)
            predicted = np.mean([function.scores(X[tested]) for function in functions], axis=0)
            errors.append(float(disagreement_error(truth, predicted, labels, sample_weight=weight)))
            if len(errors) - 1 - int(np.argmin(errors)) >= int(self.n_iter_no_change or 1):
                break
        self.__dict__.pop("validation_score_", None)
        if held is not None:
            self.validation_score_ = np.array(errors)
            steps = steps[: int(np.argmin(errors)) + 1] if errors else steps
        self.n_pairs_ = problem.loss.graph.n_pairs
        self._store(steps, make_functions(dictionaries, steps, mean_score))
        return self

    def _loss(
        self, n_items: int, known: PreferenceGraph | PartialRelevance
    ) -> tuple[SquaredLoss, float | None]:
        """The loss of the scored rows, and their mean score if there is an intercept."""
        options, beta = (self.cost, self.ties, self.group_weight), self.beta
        if isinstance(known, PartialRelevance):
            loss = known.loss(*options, beta=beta)
        else:
            loss, _ = ranking_loss(n_items, Relevance(known), *options, beta)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = loss.at_zero
        if not 0 < squares < np.inf and loss.target.any():
            raise ValueError(
                f"the mean square of the scores or magnitudes is {squares:g}; multiply all of them "
                "by one factor that brings them nearer to 1."
            )
        if loss.y is None or beta == 0 or not self.fit_intercept:
            return loss, None
        mean_score = float(np.average(loss.y, weights=loss.graph.item_weights))
        return SquaredLoss(loss.graph, beta, loss.y - mean_score), mean_score

    def _dictionaries(self, X: Any, rows: Indices, scored: Indices) -> list[FeatureMap]:
        """The functions of each view, from these rows of X, some of which have a score."""
        rng = check_random_state(self.random_state)
        chosen, points = _choose_functions(self.dictionary, rows, scored, X.shape[1], rng)
        is_features = isinstance(self.dictionary, str) and self.dictionary == "features"
        views, parts = [View(**self.kernel_arguments())], [chosen]
        if isinstance(self.views, numbers.Integral):
            views = views * check_int("views", self.views, "or a list of View", least=1)
            is_scored = np.isin(chosen, scored) & (points is None) & (not is_features)
            parts = _deal(chosen, is_scored, len(views), rng)
        elif self.views is not None:
            views = check_views(self.views)
            parts = parts * len(views)
        names, maps = getattr(self, "feature_names_in_", None), []
        for view, functions in zip(views, parts, strict=True):
            kernel, columns = view.make_kernel(), view_columns(view, X.shape[1], names)
            if is_features:
                if not kernel.is_linear or view.n_basis is not None:
                    raise ValueError(
                        "dictionary='features' takes the columns of X as they are, but "
                        f"kernel={view.kernel!r} and n_basis={view.n_basis!r} were given; use "
                        "kernel='linear' without n_basis, or dictionary='items'."
                    )
                own = functions if columns is None else columns
                maps.append(FeatureMap(kernel, own, len(own)))
                continue
            items = take_columns(X, columns)
            source = items if points is None else take_columns(points, columns)
            if kernel.is_precomputed and (points is not None or items.shape[0] != items.shape[1]):
                raise ValueError(
                    f"kernel='precomputed' needs the square matrix of kernel values between all "
                    f"training items, and no points as dictionary; X has shape {items.shape}."
                )
            if not isinstance(view.basis, str):  # a basis of the view comes first
                functions, source = choose_basis(items, view.n_basis, view.basis, rng), items
            elif view.n_basis is not None:
                basis = choose_basis(items[rows], view.n_basis, view.basis, rng)
                functions, source = rows[basis], items
            centers = None if kernel.is_precomputed else source[functions]
            maps.append(FeatureMap(kernel, columns, len(functions), functions, centers))
        return maps

    def _store(self, steps: list[Step], functions: list[PursuitFunction]) -> None:
        self._functions = functions
        self.n_basis_ = len(steps)
        self.train_error_ = np.array([step.error for step in steps])
        self.intercept_ = float(np.mean([f.intercept_path[-1] for f in functions]))
        self.basis_indices_ = [f.basis.indices for f in functions]
        self.dual_coef_ = [f.coef_path[-1] for f in functions]
        self.coef_path_ = [f.coef_path[1:] for f in functions]
        self.choice_path_ = np.stack([f.choices for f in functions], axis=1)
        self.__dict__.pop("coef_", None)
        if functions[0].basis.is_columns:
            self.coef_ = np.zeros(self.n_features_in_)
            for f in functions:
                self.coef_[f.basis.indices] += f.coef_path[-1] / len(functions)
        if self.views is None:
            for name in ("basis_indices_", "dual_coef_", "coef_path_"):
                setattr(self, name, getattr(self, name)[0])
            self.choice_path_ = self.choice_path_[:, 0]


class RankingPursuitCV(Search):
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

    _fitted: ClassVar[FittedSchema] = {
        "n_basis_": Values(),
    }

    allows_unscored = True

    def __init__(
        self,
        n_basis: int = 50,
        *,
        cv: Any = "auto",
        scoring: Any = "disagreement",
        store_predictions: bool = False,
        kernel: str | Callable[..., float] = "rbf",
        gamma: float | Sequence[float] | None = None,
        degree: float | Sequence[float] = 3,
        coef0: float | Sequence[float] = 1,
        kernel_params: dict[str, Any] | None = None,
        dictionary: str | int | ArrayLike = "items",
        beta: float = 0.0,
        fit_intercept: bool = True,
        backfit: str | None = "final",
        views: int | Sequence[View] | None = None,
        nu: float | Sequence[float] = 1.0,
        search: str = "auto",
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.cv = cv
        self.scoring = scoring
        self.store_predictions = store_predictions
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.dictionary = dictionary
        self.beta = beta
        self.fit_intercept = fit_intercept
        self.backfit = backfit
        self.views = views
        self.nu = nu
        self.search = search
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.random_state = random_state

    @refuse_other_keywords
    @single_threaded
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
        """Select the parameters on held-out data, and train on all data.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``RankingPursuit.fit``. The weights also apply to the evaluation of held-out
            items.
        time : array-like of shape (n_items,), default=None
            Time of each item, as dates or numbers. Groups are then evaluated by models of earlier
            groups only, in five blocks.
        nuisance : None
            Not supported by RankingPursuit; a value raises a ValueError.

        Returns
        -------
        RankingPursuitCV
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, nuisance, X=X, allow_nan=True)
        no_nuisance(type(self).__name__, target)
        X = check_groups(self, X, y, groups)
        learner = RankingPursuit(
            self.n_basis,
            kernel=self.kernel,
            kernel_params=self.kernel_params,
            dictionary=self.dictionary,
            beta=self.beta,
            fit_intercept=self.fit_intercept,
            backfit=self.backfit,
            views=self.views,
            search=self.search,
            cost=self.cost,
            ties=self.ties,
            group_weight=self.group_weight,
            random_state=self.random_state,
        )
        result = grid_search(
            learner,
            (X, target),
            candidates={"n_basis": None},
            parameter_lists={
                "gamma": self.gamma,
                "degree": self.degree,
                "coef0": self.coef0,
                "nu": self.nu,
            },
            cv=self.cv,
            scoring=self.scoring,
            time=time,
            store_predictions=self.store_predictions,
        )
        return self._store_search(result)

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
    scores : PartialRelevance
        Scores and groups of all rows.
    """

    parameters = ("n_basis",)

    def __init__(self, learner: RankingPursuit, X: Any, scores: PartialRelevance) -> None:
        self._X, self._scores = X, scores
        graph = scores.graph(learner.cost, learner.ties, learner.group_weight)
        super().__init__(learner, graph, scores.scored, X.shape[0])

    def default_values(self, _: str) -> NDArray[Any]:
        """All numbers of steps up to `n_basis`."""
        return np.arange(1, int(self.learner.n_basis) + 1)

    def scores_without(self, held: Indices, candidates: CandidateGrid) -> Array:
        """A pursuit that ended early stays as it is for the steps that are left."""
        steps = candidates.axes["n_basis"].astype(np.intp)
        model = self._trained(int(steps.max()), self._scores.without(held))
        staged = model._staged(self._X[self._scores.scored[held]])
        return staged[:, np.minimum(steps, staged.shape[1] - 1)]

    def train(self, **values: Any) -> RankingPursuit:
        """The learner trained on all data."""
        return self._trained(values["n_basis"], self._scores)

    def _trained(self, n_basis: int, scores: PartialRelevance) -> RankingPursuit:
        model: RankingPursuit = copy.copy(self.learner)
        model.n_basis = n_basis
        return model._fit_rows(self._X, scores)


def _choose_functions(
    dictionary: str | int | ArrayLike, rows: Indices, scored: Indices, n_features: int, rng: Any
) -> tuple[Indices, Any]:
    """Numbers of the functions of a dictionary, and the points if these are given."""
    if isinstance(dictionary, str):
        check_option("dictionary", dictionary, DICTIONARIES)
        named = {"items": rows, "scored": scored, "features": np.arange(n_features)}
        return named[dictionary], None
    if isinstance(dictionary, numbers.Integral):
        count = min(check_int("dictionary", dictionary, least=1), len(rows))
        return np.sort(rng.choice(rows, size=count, replace=False)), None
    points = read_points("dictionary", dictionary, n_features)
    if points is None:
        raise ValueError(
            f"dictionary={dictionary!r}; expected one of {', '.join(map(repr, DICTIONARIES))}, a "
            "number of items, or an array of points."
        )
    return np.arange(points.shape[0]), points


def function_values(functions: FeatureMap, X: Any, rows: Indices) -> Any:
    """The functions at some rows of X: a float64 array, or a sparse matrix stored by columns."""
    if not functions.is_columns:
        advice = "choose from fewer functions, for example dictionary=2000"
        check_matrix_fits(len(rows), functions.n_features, "the values of a dictionary", advice)
    values = functions.features(X if len(rows) == X.shape[0] else X[rows])
    if sp.issparse(values):
        return values.tocsc().astype(np.float64, copy=False)
    return np.asarray(values, dtype=np.float64)


def _deal(chosen: Indices, is_scored: Any, n_views: int, rng: Any) -> list[Indices]:
    """Random disjoint parts, each with its share of the scored and of the unscored items."""
    if len(chosen) < n_views:
        raise ValueError(f"views={n_views}, but the dictionary has {len(chosen)} functions only.")
    shuffled = np.concatenate(
        [rng.permutation(chosen[is_scored]), rng.permutation(chosen[~is_scored])]
    )
    return [np.sort(shuffled[v::n_views]) for v in range(n_views)]


def choose_search(search: str, dictionaries: list[FeatureMap]) -> str:
    """How to search several views: "pairs" or "shared", checked; "single" for one view."""
    check_option("search", search, ("auto", "pairs", "shared"))
    n_views, first = len(dictionaries), dictionaries[0]
    if n_views == 1:
        return "single"
    if search == "auto":
        search = "pairs" if n_views == 2 else "shared"
    if search == "pairs" and n_views != 2:
        raise ValueError(
            f"search='pairs' is for two views, and there are {n_views}; use 'shared' (one item for "
            "all views)."
        )
    if search == "pairs":
        what = "a matrix of all pairs of functions"
        advice = "use search='shared', or a random part of the items (for example dictionary=2000)"
        check_matrix_fits(len(first.indices), len(dictionaries[1].indices), what, advice)
    elif not all(np.array_equal(d.indices, first.indices) for d in dictionaries):
        raise ValueError(
            f"{n_views} views that take the same item need the same dictionary, and theirs differ "
            "(a number of views, n_basis of a View or columns as functions make them differ); use "
            "two views and search='pairs', or a list of View with one dictionary."
        )
    return search
