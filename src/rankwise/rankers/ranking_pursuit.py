"""RankingPursuit: sparse ranking functions by greedy selection from a dictionary."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices, Matrix, MatrixLike, Numbers, ParameterValue, RandomState
from rankwise.fitted_schema import Either, FittedSchema, Floats, Ints, ListOf, Record, Values
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import Preferences, TargetLike, TrainingTarget, read_y
from rankwise.kernels.feature_maps import ColumnFeatures
from rankwise.kernels.kernel import KernelName
from rankwise.kernels.views import View, check_views, view_columns
from rankwise.losses import SquaredLoss
from rankwise.metrics import disagreement_error
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.protocol import HoldOutTask
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import HoldOutMixin, RankerMixin
from rankwise.rankers.linear_models import KernelExpansion
from rankwise.rankers.pursuit_dictionary import (
    CandidateFunctions,
    Dictionary,
    choose_functions,
    choose_search,
    column_functions,
    deal_functions,
    function_values,
    kernel_functions,
)
from rankwise.rankers.pursuit_function import PursuitFunction, make_functions
from rankwise.rankers.ranking_problem import check_beta, one_output, ranking_loss
from rankwise.rankers.semi_supervised import PartialRelevance, split_unscored_of_one_output
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.pursuit import (
    AllCombinationsSearch,
    AllPairsSearch,
    PursuitProblem,
    SharedIndexSearch,
    Step,
    pursue,
)
from rankwise.validation import check_int, check_nus, check_option, restored_on_failure

SEARCHES: dict[str, type[SharedIndexSearch | AllPairsSearch | AllCombinationsSearch]] = {
    "single": SharedIndexSearch,
    "shared": SharedIndexSearch,
    "pairs": AllPairsSearch,
    "all": AllCombinationsSearch,
}


class RankingPursuit(HoldOutMixin, RankerMixin, BaseEstimator):
    """Sparse ranking by greedy selection of functions, with or without unscored items.

    Use it for a model of few features or few basis items.

    The model is ``f(x) = b + Σ_p a_p k_p(x)`` with few functions k_p of a dictionary ([Pursuit13]
    section 3). Each step adds the function, with its coefficient, that minimizes

        (1−β)/W Σ_k ω_k (δ_k − (f_i − f_j))² + β/m Σ_i (y_i − f_i)²

    With `views`, one such model is fitted for each view; the views are made to agree on the order
    of items without a score (NaN in y), and the mean of the views is predicted (section 3.1).

    Parameters
    ----------
    n_basis : int, default=50
        Maximum number of steps; each step adds one function to each view. The search stops earlier
        if no function lowers the error.
    kernel : str or callable, default="rbf"
        The functions of the dictionary are ``k(x_j, ·)``. As in `RankRLS`.
    gamma : float, default=None
        Parameter of the named kernels, as in scikit-learn.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    dictionary : {"items", "scored", "features"}, int or array of points, default="items"
        Candidate functions: kernel functions centered at all training items, at the scored items,
        at this number of random items (all if there are fewer), or at given points. "features": the
        columns of X (greedy feature selection), which requires ``kernel="linear"``.
    beta : float, default=0.0
        Mixture of ranking (0) and regression (1, kernel matching pursuit), [Pursuit13] equation 5.
    fit_intercept : bool, default=True
        Whether to fit the intercept b for beta > 0, so that predictions are on the scale of y. For
        beta = 0, b is 0.
    backfit : {"final", "every"} or None, default="final"
        When the coefficients are refitted by least squares on the selected functions: at the end,
        after each step (orthogonal matching pursuit, which selects each function once), or never.
        With "final" and None a later step may select a function again.
    views : int, list of View, or None, default=None
        None fits one model to the scored items only. A number splits the dictionary at random among
        this many views, as in the paper's experiments. A `View` with `n_basis` or `basis` has its
        own dictionary.
    nu : float, default=1.0
        Weight of the agreement between views, at least 0. The disagreement is the mean over the
        pairs of unscored items inside groups (of scored items, if all have a score), summed over
        all ordered pairs of views.
    search : {"auto", "pairs", "all", "shared"}, default="auto"
        How functions of several views are selected: "pairs" tries every pair of functions of two
        views, "all" every combination of functions of any number of views ([Pursuit13] figure 2),
        up to 2²⁰ combinations; "shared" selects the same item in all views, which requires equal
        dictionaries (footnote 4). "auto" is "pairs" for two views; for more views it is "shared" if
        the dictionaries are equal, else "all".
    cost, ties, group_weight
        As in `RankRLS`, with the same defaults.
    n_iter_no_change : int, optional
        Stop when this many consecutive steps do not lower the disagreement error on held-out scored
        groups ([Pursuit13] figures 1 and 2), and keep the model of the best step. None makes all
        steps.
    validation_fraction : float, default=0.1
        Share of the groups (of the items, if there is one group) held out for `n_iter_no_change`.
    random_state : int, RandomState or None, default=None
        Seed of random dictionaries, random views and the held-out groups.

    Attributes
    ----------
    basis_indices_ : ndarray of int, or list of one for each view
        Selected functions without duplicates, in the order of their first selection: rows of X,
        rows of the given points, or columns of X.
    dual_coef_ : ndarray, or list of one for each view
        Coefficients of the selected functions.
    coef_path_ : ndarray of shape (n_steps, n_functions), or list of one for each view
        Coefficients after each step.
    choice_path_ : ndarray of int, shape (n_steps,) or (n_steps, n_views)
        Function selected by each step; with ``backfit=None`` or "final" a function may be repeated.
    intercept_ : float
        Intercept b.
    train_error_ : ndarray of shape (n_steps,)
        Loss of the prediction for the scored items after each step.
    validation_score_ : ndarray
        Disagreement error on held-out rows after each step, including steps that the model does not
        contain (`n_iter_no_change`).
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
    RankingPursuitCV : Selects the number of steps by cross-validation.
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

    basis_indices_: Indices | list[Indices]
    dual_coef_: Array | list[Array]
    coef_path_: Array | list[Array]

    def __init__(
        self,
        n_basis: int = 50,
        *,
        kernel: KernelName = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
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
        random_state: RandomState = None,
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
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to items, some of which may have no score.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items; the square kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_items,), or a preference graph
            Scores, NaN for items without a score; a target of `make_target`; for a single view also
            a `ScoreGraph` or a `PairGraph`.
        groups : array-like of shape (n_items,), optional
            Group labels of all items: only items of one group are compared.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items, as in ``RankRLS.fit``; they also apply to the agreement of the
            views.

        Returns
        -------
        RankingPursuit
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, X=X, allow_nan=True)
        X = check_groups(self, X, y, groups, target)
        X = self._check_parameters(X)
        holds_out = self.n_iter_no_change is not None
        if isinstance(target, Preferences) and self.views is None and not holds_out:
            if target.graph.has_relevance:
                one_output("RankingPursuit", target.graph.y)  # raises an error for several outputs
            return self._fit_checked_target(X, target.graph)

        # several views and validation need the scores of items, which graphs of pairs do not have
        relevance = split_unscored_of_one_output("RankingPursuit", target, X.shape[0])
        validation_items = None
        if holds_out:
            validation_items = self._choose_validation_items(relevance)
        return self._fit_checked_target(X, relevance, validation_items)

    def _choose_validation_items(self, relevance: PartialRelevance) -> Indices:
        """Scored items of random groups, or of a single list, that decide when to stop."""
        group_of_item = relevance.groups.codes[relevance.scored]
        unit_of_item = group_of_item  # items of a unit are held out together
        fraction = self.validation_fraction
        has_one_group = group_of_item.min() == group_of_item.max()
        if has_one_group:  # hold out single items, at least two, which have an order
            n_items = len(group_of_item)
            unit_of_item = np.arange(n_items)
            fraction = max(fraction, 2 / n_items)
        splitter = GroupShuffleSplit(1, test_size=fraction, random_state=self.random_state)
        _, validation_items = next(splitter.split(unit_of_item, groups=unit_of_item))
        return np.asarray(validation_items)

    @single_threaded
    def predict(self, X: MatrixLike) -> Array:
        """Score items by the mean of the views.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items; kernel values to the training items if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores; larger is better. Their level is meaningful for beta > 0 only.
        """
        return np.asarray(self.predict_views(X).mean(axis=1))

    def predict_views(self, X: MatrixLike) -> Array:
        """Score items by each view.

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
        """Kernel expansion of the scores: the function of each view.

        Returns
        -------
        KernelExpansion
            Basis items and coefficients.
        """
        maps = [function.basis for function in self._functions]
        coefficients = [function.coef_path[-1, :, None] for function in self._functions]
        return KernelExpansion(maps, coefficients, self.intercept_)

    def staged_predict(self, X: MatrixLike) -> Iterator[Array]:
        """Scores after each step, equal to those of a model with that `n_basis`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.

        Yields
        ------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        X = validate_X(self, X, reset=False)
        scores_after_each_step = self._staged_scores(X)[:, 1:]
        yield from scores_after_each_step.T

    def _staged_scores(self, X: MatrixLike) -> Array:
        """Mean scores of the views before and after each step, shape (n_items, n_steps + 1)."""
        scores_of_views = [function.staged_scores(X) for function in self._functions]
        return np.asarray(np.mean(scores_of_views, axis=0))

    def _prepare(self, X: MatrixLike, target: TrainingTarget) -> PursuitTask:
        X = self._check_parameters(X)
        relevance = split_unscored_of_one_output("RankingPursuit", target, X.shape[0])
        return PursuitTask(self, X, relevance)

    def _check_parameters(self, X: MatrixLike) -> Matrix:
        """Check all parameters, then the items, which are returned."""
        check_beta(self.beta)
        check_int("n_basis", self.n_basis, least=1)
        if self.n_iter_no_change is not None:
            check_int("n_iter_no_change", self.n_iter_no_change, least=1)
        if self.backfit is not None:
            check_option("backfit", self.backfit, ("final", "every"))
        check_nus([self.nu], "nu")
        return validate_X(self, X)

    def _fit_checked_target(
        self,
        X: MatrixLike,
        target: PreferenceGraph | PartialRelevance,
        validation_items: Indices | None = None,
    ) -> Self:
        """Fit the model to checked data; held-out scored items determine when to stop."""
        train_target = target
        validation = None
        if validation_items is not None and isinstance(target, PartialRelevance):
            train_target = target.without(validation_items)
            validation = ValidationRows.of(X, target, validation_items)
        # mean_score: of the scored items, the intercept of the model; None without an intercept
        loss, mean_score = self._make_loss(X.shape[0], train_target)
        train_rows = np.arange(X.shape[0])  # of a graph all rows
        scored_rows = train_rows
        if isinstance(train_target, PartialRelevance):  # without the rows for validation
            scored_rows = train_target.scored
            train_rows = np.sort(np.concatenate([scored_rows, train_target.unscored]))

        # a dictionary for each view: the candidate functions
        dictionaries = self._make_dictionaries(X, train_rows, scored_rows)
        self.search_ = choose_search(self.search, dictionaries)
        agreement = None  # graph of the unscored rows, on whose order several views agree
        agreeing_rows = None
        if len(dictionaries) > 1 and isinstance(train_target, PartialRelevance):
            agreeing_rows, agreement = train_target.agreement(self.group_weight)
        problem = PursuitProblem(
            loss,
            # at beta=0 the loss depends on differences of scores only
            has_free_intercept=self.beta == 0 or mean_score is not None,
            scored=_values_of_views(dictionaries, X, scored_rows),
            agreeing=_values_of_views(dictionaries, X, agreeing_rows),
            agreement=agreement,
            nu=self.nu,
        )

        # each greedy step adds a function to every view; steps are computed lazily
        squared_norms = problem.squared_norms()  # of all functions; 0 if constant inside groups
        _check_not_constant(squared_norms)
        search = SEARCHES[self.search_](problem, squared_norms)
        all_steps = pursue(problem, search, int(self.n_basis), self.backfit)
        self.__dict__.pop("validation_score_", None)  # of an earlier fit
        if validation is None:
            steps = list(all_steps)
        else:
            steps = self._stop_at_best_step(all_steps, validation, dictionaries, mean_score)
        self.n_pairs_ = loss.graph.n_pairs
        self._store(steps, make_functions(dictionaries, steps, mean_score))
        return self

    def _stop_at_best_step(
        self,
        all_steps: Iterator[Step],
        validation: ValidationRows,
        dictionaries: list[Dictionary],
        mean_score: float | None,
    ) -> list[Step]:
        """Steps up to the one with the smallest validation error."""
        patience = int(self.n_iter_no_change or 1)  # it is not None if rows are held out
        steps: list[Step] = []
        errors: list[float] = []
        best_step = -1
        for step in all_steps:
            steps.append(step)
            # a step has the coefficients of all functions so far
            functions = make_functions(dictionaries, [step], mean_score)
            errors.append(validation.error(functions))
            best_step = int(np.argmin(errors))
            n_steps_without_gain = len(errors) - 1 - best_step
            if n_steps_without_gain >= patience:
                break
        self.validation_score_ = np.array(errors)
        return steps[: best_step + 1]

    def _make_loss(
        self, n_items: int, target: PreferenceGraph | PartialRelevance
    ) -> tuple[SquaredLoss, float | None]:
        """Loss of the scored rows, and their mean score if there is an intercept."""
        if isinstance(target, PartialRelevance):
            loss = target.loss(self.cost, self.ties, self.group_weight, self.beta)
        else:
            loss, _ = ranking_loss(
                n_items,
                Preferences(target),
                self.cost,
                self.ties,
                self.group_weight,
                self.beta,
            )
        with np.errstate(over="ignore", invalid="ignore"):
            mean_square = loss.at_zero  # the loss of a model whose scores are all 0
        if not 0 < mean_square < np.inf and loss.target.any():
            raise ValueError(
                f"the mean square of the scores or magnitudes is {mean_square:g}; multiply all of "
                "them by one factor that brings them nearer to 1."
            )

        # without the intercept, the loss of the centered scores
        has_intercept = self.beta > 0 and self.fit_intercept
        if loss.y is None or not has_intercept:
            return loss, None
        mean_score = float(np.average(loss.y, weights=loss.graph.item_weights))
        centered_loss = SquaredLoss(loss.graph, self.beta, loss.y - mean_score)
        return centered_loss, mean_score

    def _make_dictionaries(
        self, X: MatrixLike, train_rows: Indices, scored_rows: Indices
    ) -> list[Dictionary]:
        """The functions of each view, centered at rows of X or at points, or columns of X."""
        rng = check_random_state(self.random_state)
        n_features = X.shape[1]
        candidates = choose_functions(self.dictionary, train_rows, scored_rows, n_features, rng)
        views, functions_of_views = self._views_with_functions(candidates, scored_rows, rng)
        names = getattr(self, "feature_names_in_", None)
        dictionaries: list[Dictionary] = []
        for view, functions in zip(views, functions_of_views, strict=True):
            columns = view_columns(view, n_features, names)
            if candidates.are_columns:
                dictionary: Dictionary = column_functions(view, functions, columns)
            else:
                view_candidates = candidates._replace(functions=functions)
                dictionary = kernel_functions(view, view_candidates, X, train_rows, columns, rng)
            dictionaries.append(dictionary)
        return dictionaries

    def _views_with_functions(
        self, candidates: CandidateFunctions, scored_rows: Indices, rng: np.random.RandomState
    ) -> tuple[list[View], list[Indices]]:
        """The views, and the functions that each may choose from."""
        default_view = View(
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
        )
        if self.views is None:
            return [default_view], [candidates.functions]
        if not isinstance(self.views, int | np.integer):
            views = check_views(self.views)
            return views, [candidates.functions] * len(views)
        n_views = check_int("views", self.views, "or a list of View", least=1)
        is_scored = np.isin(candidates.functions, scored_rows) & candidates.are_rows
        functions_of_views = deal_functions(candidates.functions, is_scored, n_views, rng)
        return [default_view] * n_views, functions_of_views

    def _store(self, steps: list[Step], functions: list[PursuitFunction]) -> None:
        """Set the fitted attributes."""
        self._functions = functions
        self.n_basis_ = len(steps)
        self.train_error_ = np.array([step.error for step in steps])
        self.intercept_ = float(np.mean([function.intercept_path[-1] for function in functions]))
        self.basis_indices_ = [function.basis.indices for function in functions]
        self.dual_coef_ = [function.coef_path[-1] for function in functions]
        self.coef_path_ = [function.coef_path[1:] for function in functions]
        self.choice_path_ = np.stack([function.choices for function in functions], axis=1)
        self.__dict__.pop("coef_", None)  # of an earlier fit
        are_linear = isinstance(functions[0].basis, ColumnFeatures)
        if are_linear:  # the model is the mean of the views
            self.coef_ = np.zeros(self.n_features_in_)
            for function in functions:
                self.coef_[function.basis.indices] += function.coef_path[-1] / len(functions)
        if self.views is None:  # the attributes have no list or axis of views
            self.basis_indices_ = self.basis_indices_[0]
            self.dual_coef_ = self.dual_coef_[0]
            self.coef_path_ = self.coef_path_[0]
            self.choice_path_ = self.choice_path_[:, 0]


def _values_of_views(
    dictionaries: list[Dictionary], X: MatrixLike, rows: Indices | None
) -> list[Matrix]:
    """Values of the functions of each view at some rows; an empty list without rows."""
    if rows is None:
        return []
    return [function_values(dictionary, X, rows) for dictionary in dictionaries]


class PursuitTask(HoldOutTask):
    """RankingPursuit with its data: one pursuit for each fold serves all numbers of steps.

    Only scored rows are held out; unscored ones take part in every fold.

    Parameters
    ----------
    learner : RankingPursuit
        The learner, whose feature attributes are set.
    X : array or sparse matrix of shape (n_items, n_features)
        All items, checked.
    relevance : PartialRelevance
        Scores and groups of all rows.
    """

    parameters = ("n_basis",)

    def __init__(self, learner: RankingPursuit, X: MatrixLike, relevance: PartialRelevance) -> None:
        self._X = X
        self._relevance = relevance
        graph = relevance.graph(learner.cost, learner.ties, learner.group_weight)
        super().__init__(learner, graph, rows=relevance.scored, n_rows=X.shape[0])

    def default_values(self, _: str) -> Numbers:
        """All numbers of steps up to `n_basis`."""
        return np.arange(1, int(self.learner.n_basis) + 1)

    def scores_without(self, test_items: Indices, candidates: CandidateGrid) -> Array:
        """Held-out scores; steps after the end of a pursuit repeat its last scores."""
        candidate_steps = candidates.axes["n_basis"].astype(np.intp)
        train_relevance = self._relevance.without(test_items)
        model = self._fit_learner(int(candidate_steps.max()), train_relevance)
        test_rows = self._relevance.scored[test_items]
        staged_scores = model._staged_scores(self._X[test_rows])  # (n_test, 1 + n_steps)
        last_step = staged_scores.shape[1] - 1  # fewer than requested if no function is left
        return staged_scores[:, np.minimum(candidate_steps, last_step)]

    def train(self, **values: ParameterValue) -> RankingPursuit:
        """The learner trained on all data."""
        return self._fit_learner(int(values["n_basis"]), self._relevance)

    def _fit_learner(self, n_basis: int, relevance: PartialRelevance) -> RankingPursuit:
        model: RankingPursuit = copy.copy(self.learner)
        model.n_basis = n_basis
        return model._fit_checked_target(self._X, relevance)


class ValidationRows(NamedTuple):
    """Held-out rows that decide when a pursuit stops.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Items.
    y : ndarray of shape (n_rows,)
        True scores.
    groups : ndarray of shape (n_rows,)
        Group codes.
    weight : ndarray of shape (n_rows,) or None
        Weights.
    """

    X: MatrixLike
    y: Array
    groups: Indices
    weight: Array | None

    @classmethod
    def of(
        cls, X: MatrixLike, relevance: PartialRelevance, validation_items: Indices
    ) -> ValidationRows:
        """Take the scored rows of these positions."""
        rows = relevance.scored[validation_items]
        return cls(
            X[rows],
            relevance.y[validation_items],
            relevance.groups.codes[rows],
            relevance.weights_of(rows),
        )

    def error(self, functions: list[PursuitFunction]) -> float:
        """Disagreement error of the mean of the views."""
        scores = np.mean([function.scores(self.X) for function in functions], axis=0)
        error = disagreement_error(self.y, scores, self.groups, sample_weight=self.weight)
        return float(error)


def _check_not_constant(squared_norms: list[Array]) -> None:
    """Raise an error if all functions of a view are constant inside groups."""
    for view, norms_of_view in enumerate(squared_norms):
        if not norms_of_view.any():
            raise ValueError(
                f"all functions of the dictionary (view {view}) are constant inside groups, so "
                "none of them can order the scored items. Pass features (or columns of the view) "
                "that vary inside a group, another kernel, or more functions."
            )
