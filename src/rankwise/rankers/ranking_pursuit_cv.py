"""RankingPursuitCV: RankingPursuit with parameters selected by folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, CrossValidation, MatrixLike, RandomState
from rankwise.fitted_schema import FittedSchema, Values
from rankwise.graphs.supervision import TargetLike, read_y
from rankwise.kernels.kernel import KernelName
from rankwise.kernels.views import View
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.grid_search import grid_search
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.rankers.ranking_problem import no_nuisance
from rankwise.rankers.ranking_pursuit import RankingPursuit
from rankwise.rankers.search import Search
from rankwise.runtime.threads import single_threaded
from rankwise.validation import restored_on_failure


class RankingPursuitCV(Search):
    """RankingPursuit with the number of steps selected by cross-validation.

    Use it in place of `RankingPursuit` if the number of steps is not known.

    One pursuit for each fold serves all numbers of steps up to `n_basis`. The model is then trained
    on all data with the best number of steps, the smallest if several are equal. Only scored items
    are held out; unscored items are part of every training fold.

    Parameters
    ----------
    n_basis : int, default=50
        Largest number of steps to try.
    cv : "auto", None, int, splitter or iterable, default="auto"
        "auto" makes five folds of whole groups, or of items if there is one group; None leaves out
        one group at a time; anything else as in `RankRLSCV`.
    scoring : str, Metric or function, default="disagreement"
        A ranking metric such as "disagreement" or "ndcg@10", averaged over the held-out groups.
    gamma : float or list of float, default=None
        Parameter of the named kernels, as in scikit-learn; a list of values is searched.
    degree : float or list of float, default=3
        Degree of the polynomial kernel; a list of values is searched.
    coef0 : float or list of float, default=1
        Constant of the polynomial and sigmoid kernels; a list of values is searched.
    nu : float or list of float, default=1.0
        Weight of the agreement between views; a list of values is searched.
    store_predictions : bool, default=False
        Whether to store the held-out scores in ``cv_results_["predictions"]``.
    kernel, kernel_params, dictionary, beta, fit_intercept, backfit, views, search, cost, ties, \
group_weight, random_state
        As in `RankingPursuit`, with the same defaults.

    Attributes
    ----------
    n_basis_ : int
        Selected number of steps.
    best_score_ : float
        Its score, in the units of `scoring`.
    best_params_ : dict
        "n_basis" and the selected values of the parameters given as lists.
    cv_results_ : dict
        "n_basis" (numbers of steps), "params" (list of dict), "mean_score" of shape (n_params,
        n_basis), "group_score", a list of arrays of shape (n_groups, n_basis), nan where a group
        has no score, "groups" (their labels), "n_undefined", "cv" (the cross-validation scheme),
        and "predictions" if they are stored, nan in rows without a score.
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
        cv: CrossValidation = "auto",
        scoring: MetricName = "disagreement",
        store_predictions: bool = False,
        kernel: KernelName = "rbf",
        gamma: float | Sequence[float] | None = None,
        degree: float | Sequence[float] = 3,
        coef0: float | Sequence[float] = 1,
        kernel_params: dict[str, object] | None = None,
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
        random_state: RandomState = None,
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
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        time: ArrayLike | None = None,
        nuisance: ArrayLike | None = None,
    ) -> Self:
        """Select the parameters on held-out data, and train on all data.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``RankingPursuit.fit``. The weights also apply to the evaluation of held-out
            items.
        time : array-like of shape (n_items,), default=None
            Time of each item, as dates or numbers. Groups are then evaluated by models of earlier
            groups only, in five blocks; `cv` must then keep its default.
        nuisance : None
            Not supported by RankingPursuit; a value raises a ValueError.

        Returns
        -------
        RankingPursuitCV
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, nuisance, X=X, allow_nan=True)
        no_nuisance(type(self).__name__, target)
        X = check_groups(self, X, y, groups, target)
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

    def predict_views(self, X: MatrixLike) -> Array:
        """Scores by each view; see ``RankingPursuit.predict_views``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray
            Scores by each view, as `RankingPursuit.predict_views` returns them.
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def staged_predict(self, X: MatrixLike) -> Iterator[Array]:
        """Scores after each step; see ``RankingPursuit.staged_predict``.

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
        yield from self.best_estimator_.staged_predict(X)
