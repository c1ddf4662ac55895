"""RankingPursuit, sparse ranking functions by greedy choice from a dictionary, and its search."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices, Matrix, MatrixLike, Numbers, ParameterValue, RandomState
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
from rankwise.graphs.supervision import Preferences, TargetLike, TrainingTarget, read_y
from rankwise.kernels.feature_maps import ColumnFeatures, KernelFeatures
from rankwise.kernels.kernel import KernelName, KernelParameters
from rankwise.kernels.views import View, check_views, view_columns
from rankwise.losses import SquaredLoss
from rankwise.metrics import disagreement_error
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.protocol import HoldOutTask
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import TaskModel
from rankwise.rankers.linear_models import KernelExpansion
from rankwise.rankers.pursuit_dictionary import (
    Dictionary,
    choose_functions,
    choose_search,
    column_functions,
    deal_functions,
    function_values,
    kernel_functions,
)
from rankwise.rankers.ranking_problem import check_beta, one_output, ranking_loss
from rankwise.rankers.semi_supervised import PartialRelevance, split_unscored_of_one_output
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.pursuit import (
    AllCombinations,
    AllPairs,
    PursuitProblem,
    SharedIndices,
    Step,
    pursue,
)
from rankwise.validation import check_int, check_nus, check_option, restored_on_failure

SEARCHES: dict[str, type[SharedIndices | AllPairs | AllCombinations]] = {
    "single": SharedIndices,
    "shared": SharedIndices,
    "pairs": AllPairs,
    "all": AllCombinations,
}


@saved_fields(
    {
        "basis": Record(ColumnFeatures, KernelFeatures),
        "choices": Ints("steps"),
        "coef_path": Floats("states functions"),
        "intercept_path": Floats("states"),
    }
)
class PursuitFunction(NamedTuple):
    """The function of one view before the first step and after each.

    Attributes
    ----------
    basis : ColumnFeatures or KernelFeatures
        The chosen functions.
    choices : ndarray of int, shape (n_steps,)
        The number of the function that each step chose.
    coef_path : ndarray of shape (n_steps + 1, n_functions)
        Their coefficients.
    intercept_path : ndarray of shape (n_steps + 1,)
        The intercept.
    """

    basis: ColumnFeatures | KernelFeatures
    choices: Indices
    coef_path: Array
    intercept_path: Array

    def scores(self, X: MatrixLike, steps: int | slice = -1) -> Array:
        """Scores after one or more of the steps, by default the last one."""
        coef = self.coef_path[steps].T
        intercept = self.intercept_path[steps]
        if not len(coef):
            return np.broadcast_to(intercept, (X.shape[0], *np.shape(intercept)))
        return np.asarray(self.basis.scores(X, coef) + intercept)


def make_functions(
    dictionaries: list[Dictionary], steps: list[Step], mean_score: float | None
) -> list[PursuitFunction]:
    """Gather the coefficients of all steps; with `mean_score` there is an intercept."""
    functions = []
    for view, dictionary in enumerate(dictionaries):
        basis_numbers = steps[-1].basis[view] if steps else []
        choice_numbers = [step.chosen[view] for step in steps]
        coef_path = np.zeros((len(steps) + 1, len(basis_numbers)))
        intercept_path = np.full(len(steps) + 1, mean_score or 0.0)
        for n_steps, step in enumerate(steps, 1):
            coef = step.coef[view]
            coef_path[n_steps, : len(coef)] = coef
            if mean_score is not None:
                intercept_path[n_steps] -= step.means[view]
        basis = dictionary.take(np.array(basis_numbers, dtype=np.intp))
        choices = dictionary.indices[np.array(choice_numbers, dtype=np.intp)]
        functions.append(PursuitFunction(basis, choices, coef_path, intercept_path))
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
        random to the views, as the paper's experiments do. The `n_basis` or `basis` of a
        View is a dictionary of its own.
    nu : float
        Weight of the agreement between views, 0 or more; the agreement is a mean over the pairs of
        unscored items inside groups (of scored items, if none is unscored) and summed over all
        ordered pairs of views.
    search : {"auto", "pairs", "all", "shared"}
        How several views choose: "pairs" tries every pair of functions of two views, "all" every
        combination of functions of any number of views ([Pursuit13] figure 2), up to 2²⁰ of them;
        "shared" takes the same item in all views, which need the same dictionary (footnote 4).
        "auto" is "pairs" for two views; for more it is "shared" if the dictionaries are equal, else
        "all".
    cost, ties, group_weight
        As in `RankRLS`.
    n_iter_no_change : int, optional
        Hold out some of the scored groups and stop when this many consecutive steps do not lower
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
        X = check_groups(self, X, y, groups, target)
        X = self._check(X)
        holds_out = self.n_iter_no_change is not None
        if self.views is None and isinstance(target, Preferences) and not holds_out:
            if target.graph.has_relevance:
                one_output("RankingPursuit", target.graph.y)
            return self._fit_rows(X, target.graph)
        scores = split_unscored_of_one_output("RankingPursuit", target, X.shape[0])
        if not holds_out:
            return self._fit_rows(X, scores)
        return self._fit_rows(X, scores, self._validation_rows(scores))

    def _validation_rows(self, scores: PartialRelevance) -> Indices:
        """Scored rows of random groups, or of a single list, that decide when to stop."""
        codes = scores.groups.codes[scores.scored]
        fraction = self.validation_fraction
        has_one_group = not np.ptp(codes)
        if has_one_group:  # hold out at least two items, which have an order
            codes = np.arange(len(codes))
            fraction = max(fraction, 2 / len(codes))
        splitter = GroupShuffleSplit(1, test_size=fraction, random_state=self.random_state)
        _, validation_rows = next(splitter.split(codes, groups=codes))
        return np.asarray(validation_rows)

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
            Scores; larger is better. Their level has a meaning for beta > 0 only.
        """
        return np.asarray(self.predict_views(X).mean(axis=1))

    def predict_views(self, X: MatrixLike) -> Array:
        """Scores by each view: several sparse solutions of similar quality.

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
        coefficients = [function.coef_path[-1][:, None] for function in self._functions]
        return KernelExpansion(maps, coefficients, self.intercept_)

    def staged_predict(self, X: MatrixLike) -> Iterator[Array]:
        """Scores after each step: those of a model with that `n_basis`.

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
        yield from self._staged(validate_X(self, X, reset=False))[:, 1:].T

    def _staged(self, X: MatrixLike) -> Array:
        """Mean scores of the views before and after each step, shape (n_items, n_steps + 1)."""
        staged = [function.scores(X, slice(None)) for function in self._functions]
        return np.asarray(np.mean(staged, axis=0))

    def _prepare(self, X: MatrixLike, target: TrainingTarget) -> PursuitTask:
        X = self._check(X)
        scores = split_unscored_of_one_output("RankingPursuit", target, X.shape[0])
        return PursuitTask(self, X, scores)

    def _check(self, X: MatrixLike) -> Matrix:
        """The items, after all parameters."""
        check_beta(self.beta)
        check_int("n_basis", self.n_basis, least=1)
        if self.n_iter_no_change is not None:
            check_int("n_iter_no_change", self.n_iter_no_change, least=1)
        if self.backfit is not None:
            check_option("backfit", self.backfit, ("final", "every"))
        check_nus([self.nu], "nu")
        return validate_X(self, X)

    def _fit_rows(
        self,
        X: MatrixLike,
        target: PreferenceGraph | PartialRelevance,
        validation_rows: Indices | None = None,
    ) -> Self:
        """Fit to checked data; held-out scored rows decide when to stop."""
        train = target
        validation = None
        if validation_rows is not None and isinstance(target, PartialRelevance):
            train = target.without(validation_rows)
            validation = ValidationRows.of(X, target, validation_rows)
        loss, mean_score = self._loss(X.shape[0], train)
        rows = scored = np.arange(X.shape[0])
        if isinstance(train, PartialRelevance):
            scored = train.scored
            rows = np.sort(np.concatenate([scored, train.unscored]))
        dictionaries = self._dictionaries(X, rows, scored)
        self.search_ = choose_search(self.search, dictionaries)
        problem = self._problem(X, train, scored, dictionaries, loss, mean_score)
        norms = problem.norms()
        _check_not_constant(norms)
        search = SEARCHES[self.search_](problem, norms)
        all_steps = pursue(problem, search, int(self.n_basis), self.backfit)
        self.__dict__.pop("validation_score_", None)
        if validation is None:
            steps = list(all_steps)
        else:
            steps = self._best_steps(all_steps, validation, dictionaries, mean_score)
        self.n_pairs_ = problem.loss.graph.n_pairs
        self._store(steps, make_functions(dictionaries, steps, mean_score))
        return self

    def _problem(
        self,
        X: MatrixLike,
        train: PreferenceGraph | PartialRelevance,
        scored: Indices,
        dictionaries: list[Dictionary],
        loss: SquaredLoss,
        mean_score: float | None,
    ) -> PursuitProblem:
        """Loss, and the values of all functions at the items."""
        at_scored = [function_values(functions, X, scored) for functions in dictionaries]
        at_agreeing: list[Matrix] = []
        agreement = None
        if len(dictionaries) > 1 and isinstance(train, PartialRelevance):
            agreeing_rows, agreement = train.agreement(self.group_weight)
            at_agreeing = [
                function_values(functions, X, agreeing_rows) for functions in dictionaries
            ]
        has_free_intercept = self.beta == 0 or mean_score is not None
        return PursuitProblem(loss, has_free_intercept, at_scored, at_agreeing, agreement, self.nu)

    def _best_steps(
        self,
        all_steps: Iterator[Step],
        validation: ValidationRows,
        dictionaries: list[Dictionary],
        mean_score: float | None,
    ) -> list[Step]:
        """Steps up to the one with the smallest validation error."""
        patience = int(self.n_iter_no_change or 1)
        steps: list[Step] = []
        errors: list[float] = []
        for step in all_steps:
            steps.append(step)
            functions = make_functions(dictionaries, [step], mean_score)
            errors.append(validation.error(functions))
            best = int(np.argmin(errors))
            n_steps_without_gain = len(errors) - 1 - best
            if n_steps_without_gain >= patience:
                break
        self.validation_score_ = np.array(errors)
        if errors:
            return steps[: int(np.argmin(errors)) + 1]
        return steps

    def _loss(
        self, n_items: int, train: PreferenceGraph | PartialRelevance
    ) -> tuple[SquaredLoss, float | None]:
        """Loss of the scored rows, and their mean score if there is an intercept."""
        options = self.cost, self.ties, self.group_weight
        if isinstance(train, PartialRelevance):
            loss = train.loss(*options, beta=self.beta)
        else:
            loss, _ = ranking_loss(n_items, Preferences(train), *options, self.beta)
        with np.errstate(over="ignore", invalid="ignore"):
            mean_square = loss.at_zero
        if not 0 < mean_square < np.inf and loss.target.any():
            raise ValueError(
                f"the mean square of the scores or magnitudes is {mean_square:g}; multiply all of "
                "them by one factor that brings them nearer to 1."
            )
        if loss.y is None or self.beta == 0 or not self.fit_intercept:
            return loss, None
        mean_score = float(np.average(loss.y, weights=loss.graph.item_weights))
        return SquaredLoss(loss.graph, self.beta, loss.y - mean_score), mean_score

    def _dictionaries(self, X: MatrixLike, rows: Indices, scored: Indices) -> list[Dictionary]:
        """The functions of each view, centered at the given rows of X or at points."""
        rng = check_random_state(self.random_state)
        candidates = choose_functions(self.dictionary, rows, scored, X.shape[1], rng)
        views = [View(**self.kernel_arguments())]
        functions_of_views = [candidates.functions]
        if isinstance(self.views, int | np.integer):
            views = views * check_int("views", self.views, "or a list of View", least=1)
            is_scored = np.isin(candidates.functions, scored) & candidates.are_rows
            functions_of_views = deal_functions(candidates.functions, is_scored, len(views), rng)
        elif self.views is not None:
            views = check_views(self.views)
            functions_of_views = functions_of_views * len(views)
        names = getattr(self, "feature_names_in_", None)
        dictionaries: list[Dictionary] = []
        for view, functions in zip(views, functions_of_views, strict=True):
            columns = view_columns(view, X.shape[1], names)
            if candidates.are_columns:
                dictionaries.append(column_functions(view, functions, columns))
            else:
                view_candidates = candidates._replace(functions=functions)
                dictionaries.append(kernel_functions(view, view_candidates, X, rows, columns, rng))
        return dictionaries

    def _store(self, steps: list[Step], functions: list[PursuitFunction]) -> None:
        """Set the fitted attributes."""
        self._functions = functions
        self.n_basis_ = len(steps)
        self.train_error_ = np.array([step.error for step in steps])
        self.intercept_ = float(np.mean([f.intercept_path[-1] for f in functions]))
        self.basis_indices_ = [f.basis.indices for f in functions]
        self.dual_coef_ = [f.coef_path[-1] for f in functions]
        self.coef_path_ = [f.coef_path[1:] for f in functions]
        self.choice_path_ = np.stack([f.choices for f in functions], axis=1)
        self.__dict__.pop("coef_", None)
        if isinstance(functions[0].basis, ColumnFeatures):
            self.coef_ = np.zeros(self.n_features_in_)
            for f in functions:
                self.coef_[f.basis.indices] += f.coef_path[-1] / len(functions)
        if self.views is None:
            for name in ("basis_indices_", "dual_coef_", "coef_path_"):
                setattr(self, name, getattr(self, name)[0])
            self.choice_path_ = self.choice_path_[:, 0]


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

    def __init__(self, learner: RankingPursuit, X: MatrixLike, scores: PartialRelevance) -> None:
        self._X = X
        self._scores = scores
        graph = scores.graph(learner.cost, learner.ties, learner.group_weight)
        super().__init__(learner, graph, scores.scored, X.shape[0])

    def default_values(self, _: str) -> Numbers:
        """All numbers of steps up to `n_basis`."""
        return np.arange(1, int(self.learner.n_basis) + 1)

    def scores_without(self, test_items: Indices, candidates: CandidateGrid) -> Array:
        """A pursuit that ended early stays as it is for the steps that are left."""
        steps = candidates.axes["n_basis"].astype(np.intp)
        model = self._trained(int(steps.max()), self._scores.without(test_items))
        staged = model._staged(self._X[self._scores.scored[test_items]])
        return staged[:, np.minimum(steps, staged.shape[1] - 1)]

    def train(self, **values: ParameterValue) -> RankingPursuit:
        """The learner trained on all data."""
        return self._trained(int(values["n_basis"]), self._scores)

    def _trained(self, n_basis: int, scores: PartialRelevance) -> RankingPursuit:
        model: RankingPursuit = copy.copy(self.learner)
        model.n_basis = n_basis
        return model._fit_rows(self._X, scores)


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
        cls, X: MatrixLike, target: PartialRelevance, validation_rows: Indices
    ) -> ValidationRows:
        """Take these of the scored rows."""
        rows = target.scored[validation_rows]
        y = target.y[validation_rows]
        return cls(X[rows], y, target.groups.codes[rows], target.weights_of(rows))

    def error(self, functions: list[PursuitFunction]) -> float:
        """Disagreement error of the mean of the views."""
        scores = np.mean([function.scores(self.X) for function in functions], axis=0)
        error = disagreement_error(self.y, scores, self.groups, sample_weight=self.weight)
        return float(error)


def _check_not_constant(norms: list[Array]) -> None:
    """Raise an error if all functions of a view are constant inside groups."""
    for view, values in enumerate(norms):
        if not values.any():
            raise ValueError(
                f"all functions of the dictionary (view {view}) are constant inside groups, so "
                "none of them can order the scored items. Pass features (or columns of the view) "
                "that vary inside a group, another kernel, or more functions."
            )
