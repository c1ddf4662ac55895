"""RankingPursuit: sparse ranking functions by greedy choice from a dictionary."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices
from rankwise.estimators.checks import check_beta, check_rows
from rankwise.estimators.pursuit_path import (
    PursuitFunction,
    Validation,
    make_functions,
    stop_early,
)
from rankwise.estimators.pursuit_problem import (
    TargetOptions,
    TrainingItems,
    choose_search,
    dictionary_norms,
    list_views,
    make_dictionaries,
    make_problem,
    read_target,
)
from rankwise.estimators.pursuit_task import (
    PursuitTask,
    measure_of,
    scores_of,
    validation_rows,
    without_rows,
)
from rankwise.estimators.unscored import PartlyScored, SemiSupervisedMixin, split_unscored
from rankwise.features import KernelParameters, View
from rankwise.frames import check_same_index
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.model_selection.measures import Measure
from rankwise.options import check_option
from rankwise.solvers.pursuit import Step, make_search, pursue
from rankwise.targets import with_weights


@dataclass(eq=False, repr=False)
class RankingPursuit(SemiSupervisedMixin, KernelParameters):
    """Sparse ranking by greedy choice of functions, with or without unscored items.

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
        Whether for beta > 0 the level b is free, so that predictions are on the scale of y. For
        beta = 0 there is no level, and b = 0.
    backfit : {"final", "every"} or None
        Whether the coefficients are those of a least-squares fit on the chosen functions: at the
        end, after each step (orthogonal matching pursuit, each function is chosen once), or not at
        all, in which case a later step may choose a function again.
    views : int, list of View, or None
        None is one function, from the scored items only. A number deals the dictionary out at
        random to so many views, as the paper's experiments do. The `n_basis` or `basis` of a View
        is a dictionary of its own.
    nu : float
        Weight of the agreement between views, 0 or more; the agreement is a mean over the pairs of
        unscored items inside groups (of scored items, if none is unscored) and summed over all
        ordered pairs of views.
    search : {"auto", "pairs", "shared", "cyclic"}
        How several views choose: "pairs" tries every pair of functions of two views; "shared"
        takes the same item in all views; "cyclic" improves one view after the other. "auto" is
        "pairs" for two views, "shared" for more with the same dictionary, else "cyclic"; also
        "cyclic" where pairs of functions times rows of the agreement exceed 10¹².
    cost, ties, group_weight
        As in `RankRLS`.
    n_iter_no_change : int, optional
        Hold out a part of the scored groups and stop when so many steps in a row have not improved
        on it; the model is that of the best step. None makes all steps.
    validation_fraction : float
        Share of the groups (of the items, if there is one group) held out for `n_iter_no_change`.
    scoring : str or Metric
        How held-out rows are judged: a ranking metric such as "disagreement" or "ndcg@10", or
        "loss" for the loss above.
    tol : float
        An improvement for `n_iter_no_change` is more than this.
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
        Score on held-out rows after each step, those given up included (`n_iter_no_change`).
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

    n_basis: int = 50
    _: KW_ONLY
    kernel: str | Callable[..., float] = "rbf"
    dictionary: str | int | ArrayLike = "items"
    beta: float = 0.0
    fit_intercept: bool = True
    backfit: str | None = "final"
    views: int | Sequence[View] | None = None
    nu: float = 1.0
    search: str = "auto"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    n_iter_no_change: int | None = None
    validation_fraction: float = 0.1
    scoring: Any = "disagreement"
    tol: float = 0.0
    random_state: Any = None

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
        y, groups = with_weights(y, groups, sample_weight, X)
        X, target = self._check_training_data(X, y, groups)
        rng = check_random_state(self.random_state)
        if self.n_iter_no_change is None:
            return self._fit_rows(X, target, None, rng)
        measure = measure_of(self.scoring, self.beta)
        held = validation_rows(scores_of(target), self.validation_fraction, rng)
        return self._fit_rows(X, target, held, rng, measure)

    def hold_out_task(self, X: Any, y: Any, groups: ArrayLike | None = None) -> PursuitTask:
        """The model and its data as a `rankwise.model_selection.HoldOutTask`.

        Its candidates are numbers of steps. X, y and groups as in `fit`, but no graph; the
        estimator is left as it is.
        """
        model: RankingPursuit = clone(self)
        items, target = model._check_training_data(X, y, groups)
        part = scores_of(target)

        def staged(held: Indices, n_steps: int) -> Array:
            model.set_params(n_basis=n_steps)
            model._fit_rows(items, part, held, check_random_state(self.random_state))
            return model._staged(items[held])

        def trained(n_basis: int) -> RankingPursuit:
            fresh: RankingPursuit = clone(self).set_params(n_basis=n_basis)
            return fresh.fit(X, y, groups)

        graph = model._graph_of(part, np.arange(len(part.scored)))
        return PursuitTask(part, graph, self.n_basis, staged, trained)

    def _graph_of(self, part: PartlyScored, rows: Indices) -> ScoreGraph:
        """The pairs of some of the scored rows, counted among the scored."""
        options = {"cost": self.cost, "ties": self.ties, "group_weight": self.group_weight}
        weights = part.weights_of(part.scored[rows])
        return ScoreGraph(part.y[rows], part.scored_labels[rows], **options, sample_weight=weights)

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
        X = self._check_items(X, reset=False)
        return np.stack([function.scores(X) for function in self._functions], axis=1)

    @property
    def functions_(self) -> list[PursuitFunction]:
        """The function of each view: its basis, and its coefficients after each step."""
        return self._functions

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Scores after each step, as a model of that `n_basis` predicts them; X as in `predict`.

        Yields
        ------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        X = self._check_items(X, reset=False)
        yield from self._staged(X).T

    def _staged(self, X: Any) -> Array:
        """Mean scores of the views after each step, shape (n_items, n_steps)."""
        staged = [function.staged_scores(X) for function in self._functions]
        return np.asarray(np.mean(staged, axis=0))

    def _check_training_data(
        self, X: Any, y: Any, groups: ArrayLike | None
    ) -> tuple[Any, PreferenceGraph | PartlyScored]:
        self._check_parameters()
        check_same_index(X=X, y=y, groups=groups)
        X = self._check_items(X)
        if self.views is not None or not isinstance(y, PreferenceGraph):
            return X, split_unscored(y, groups, X.shape[0])
        if groups is not None or y.n_items != X.shape[0]:
            raise ValueError(
                f"y is a preference graph of {y.n_items} items for the {X.shape[0]} rows of X, "
                f"groups={'None' if groups is None else 'given'}; expected a graph of all rows, "
                "built with its groups, and groups=None."
            )
        return X, y

    def _check_items(self, X: Any, *, reset: bool = True) -> Any:
        sparse = False if self.kernel == "precomputed" else "csr"
        return check_rows(self, X, accept_sparse=sparse, reset=reset)

    def _check_parameters(self) -> None:
        check_beta(self.beta)
        for name in ("n_basis", "n_iter_no_change"):
            value = getattr(self, name)
            if name == "n_iter_no_change" and value is None:
                continue
            if not isinstance(value, numbers.Integral) or value < 1:
                raise ValueError(f"{name}={value!r}; expected a whole number of at least 1.")
        if self.backfit is not None:
            check_option("backfit", self.backfit, ("final", "every"))
        for name in ("nu", "tol"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
                raise ValueError(f"{name}={value!r}; expected a finite number of at least 0.")

    def _options(self) -> TargetOptions:
        return TargetOptions(
            self.cost, self.ties, self.group_weight, self.beta, bool(self.fit_intercept)
        )

    def _fit_rows(
        self,
        X: Any,
        target: PreferenceGraph | PartlyScored,
        held: Indices | None,
        rng: Any,
        measure: Measure | None = None,
    ) -> Self:
        """Fit to checked data less the held-out rows; a measure watches over the steps by them."""
        every = np.arange(X.shape[0])
        kept, available = target, every
        if held is not None:
            kept, available = without_rows(target, held), np.delete(every, held)
        views = list_views(self.views, View(**self.kernel_arguments()))
        known = read_target(kept, self._options(), len(views))
        items = TrainingItems(X, available, known.scored, getattr(self, "feature_names_in_", None))
        is_dealt = isinstance(self.views, numbers.Integral)
        dictionaries = make_dictionaries(items, self.dictionary, views, rng, is_dealt=is_dealt)
        self.search_ = choose_search(self.search, dictionaries, len(known.agreeing))
        problem = make_problem(X, known, dictionaries, self.nu)
        search = make_search(problem, dictionary_norms(problem), self.search_)
        stepping = pursue(problem, search, int(self.n_basis), self.backfit)
        self.__dict__.pop("validation_score_", None)
        if measure is None or held is None or self.n_iter_no_change is None:
            steps = list(stepping)
        else:
            part = scores_of(target)
            graph = self._graph_of(part, np.searchsorted(part.scored, held))
            watch = Validation(measure, graph, X[held], dictionaries)
            steps, self.validation_score_ = stop_early(
                stepping, watch, known.level, int(self.n_iter_no_change), self.tol
            )
        self.n_pairs_ = known.loss.graph.n_pairs
        self._store(steps, make_functions(dictionaries, steps, known.level))
        return self

    def _store(self, steps: list[Step], functions: list[PursuitFunction]) -> None:
        self._functions = functions
        self.n_basis_ = len(steps)
        self.train_error_ = np.array([step.error for step in steps])
        self.intercept_ = float(np.mean([f.intercept for f in functions]))
        indices = [f.basis.indices for f in functions]
        paths = [f.coef_path for f in functions]
        coef = [f.coef for f in functions]
        is_single = self.views is None
        self.basis_indices_ = indices[0] if is_single else indices
        self.coef_path_ = paths[0] if is_single else paths
        choices = np.stack([f.choices for f in functions], axis=1)
        self.choice_path_ = choices[:, 0] if is_single else choices
        self.dual_coef_ = coef[0] if is_single else coef
        self.__dict__.pop("coef_", None)
        if functions[0].basis.is_columns:
            self.coef_ = np.zeros(self.n_features_in_)
            for part, weights in zip(indices, coef, strict=True):
                self.coef_[part] += weights / len(functions)
