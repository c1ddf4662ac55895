"""CoRankRLSCV: Co-RankRLS with its parameters selected on held-out groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, CrossValidation, MatrixLike, ParameterValue, RandomState
from rankwise.fitted_schema import FittedSchema, Values
from rankwise.graphs.supervision import TargetLike, read_y
from rankwise.kernels.kernel import KernelName
from rankwise.kernels.views import View
from rankwise.metrics.registry import MetricName, get_metric
from rankwise.model_selection.candidate_evaluation import evaluate_task
from rankwise.model_selection.folds import read_splits
from rankwise.model_selection.grid_search import grid_search
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.rankers.co_rank_rls import CoRankRLS, CoTask
from rankwise.rankers.ranking_problem import no_nuisance
from rankwise.rankers.search import Search
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_option, restored_on_failure


def _margins_over_chance(
    task: CoTask, candidate: Mapping[str, ParameterValue], cv: CrossValidation
) -> Array:
    """1/2 minus the held-out error of each view, at least 0; equal weights if all are 0."""
    disagreement = get_metric("disagreement")
    grid_of_candidate = {name: np.atleast_1d(value) for name, value in candidate.items()}
    n_views = len(task.views)
    error_of_view = np.empty(n_views)
    for view in range(n_views):
        # only this view predicts
        view_weights = np.zeros(n_views)
        view_weights[view] = 1.0
        task.learner.set_params(view_weights=view_weights)
        result = evaluate_task(task, grid_of_candidate, cv, [disagreement])
        error_of_view[view] = result.overall(disagreement)[0]  # of the only candidate

    # a random order has an error of 1/2; a view that is worse than it gets weight 0
    margin_over_chance = np.maximum(0.5 - error_of_view, 0.0)
    if not margin_over_chance.any():
        return np.ones(n_views)
    return margin_over_chance


class CoRankRLSCV(Search):
    """CoRankRLS with alpha and nu selected on held-out scored groups.

    Use it in place of `CoRankRLS` if alpha and nu are not known.

    For each fold and each nu one reduction of the stacked system serves all alphas
    ([CoRankRLS10] section 5); the contribution of the unscored rows is computed once for all folds.
    Held-out rows are also excluded from the agreement of the views, so each fold is evaluated like
    new groups. The bases are chosen once, from all rows. The model is then trained on all data with
    the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 40 values, two per decade, up to 1e4 times the mean squared distance
        between the items of a scored pair, averaged over the views.
    nus : array-like of shape (n_nus,), optional
        Candidates; by default 0 and powers of ten from 0.1 to 10,000.
    cv : "auto", None, int, splitter or iterable, default="auto"
        "auto" makes up to five folds of whole groups of the scored rows, or of the scored rows if
        they are one list; None holds out one group at a time. Splitters see the scored rows only,
        and an iterable counts them from 0.
    scoring : str, Metric or function, default="disagreement"
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    store_predictions : bool, default=False
        Whether to store the held-out scores in ``cv_results_["predictions"]``.
    view_weights : array-like of shape (n_views,), "held_out" or None, default=None
        As in `CoRankRLS`. With "held_out" the weight of a view is one half, the error of a random
        order, minus its held-out disagreement error with the selected alpha and nu, which are
        selected for the unweighted mean of the views.
    views, n_basis, kernel, gamma, degree, coef0, kernel_params, cost, ties, group_weight, \
random_state
        As in `CoRankRLS`, with the same defaults.

    Attributes
    ----------
    alpha_, nu_ : float
        Selected parameters.
    best_score_ : float
        Their score, in the units of the metric.
    best_params_ : dict
        Selected alpha and nu.
    cv_results_ : dict
        "alphas", "params" (a list with one dict for each nu), "mean_score" of shape (n_nus,
        n_alphas), "group_score" (a list with one array of shape (n_groups, n_alphas) for each nu),
        "groups" (their labels), "n_undefined", "cv" (the cross-validation scheme), and
        "predictions" if they are stored, of shape (n_items, n_alphas) for each nu, nan in rows
        without a score.
    best_estimator_ : CoRankRLS
        The model trained on all data.
    views_, view_coef_, basis_indices_, n_scored_, n_unscored_, n_pairs_
        As in `CoRankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import CoRankRLSCV, View
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=40, noise=0.5, random_state=0)[:3]
    >>> y = np.where(groups < 10, y, np.nan)
    >>> views = [View(slice(0, 5)), View(slice(5, None))]
    >>> model = CoRankRLSCV(views=views).fit(X, y, groups)
    >>> model.cv_results_["mean_score"].shape
    (7, 40)
    >>> model.n_unscored_
    600
    """

    _fitted: ClassVar[FittedSchema] = {
        "nu_": Values(),
    }

    allows_unscored = True
    multi_output = True
    gamma: float | None
    degree: float
    coef0: float

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        nus: ArrayLike | None = None,
        cv: CrossValidation = "auto",
        scoring: MetricName = "disagreement",
        store_predictions: bool = False,
        views: int | Sequence[View] = 2,
        view_weights: ArrayLike | str | None = None,
        n_basis: int = 100,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        random_state: RandomState = None,
    ) -> None:
        self.alphas = alphas
        self.nus = nus
        self.cv = cv
        self.scoring = scoring
        self.store_predictions = store_predictions
        self.views = views
        self.view_weights = view_weights
        self.n_basis = n_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
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
            As in ``CoRankRLS.fit``. The weights also apply to the evaluation of held-out items.
        time : array-like of shape (n_items,), default=None
            Time of each item, as dates or numbers. Groups are then evaluated by models of earlier
            groups only, in five blocks; `cv` must then keep its default.
        nuisance : None
            Not supported by CoRankRLS; a value raises a ValueError.

        Returns
        -------
        CoRankRLSCV
            The fitted estimator.
        """
        target = read_y(y, groups, sample_weight, nuisance, X=X, allow_nan=True)
        no_nuisance(type(self).__name__, target)
        X = check_groups(self, X, y, groups, target)
        cv = read_splits(self.cv)
        view_weights = self.view_weights
        random_state = self.random_state
        weighs_by_error = isinstance(view_weights, str)
        if weighs_by_error:
            check_option("view_weights", view_weights, ["held_out"])
            if time is not None:
                raise ValueError(
                    "view_weights='held_out' evaluates the views on folds, but time holds out "
                    "later groups; pass an array of weights, or omit time."
                )
            view_weights = None  # alpha and nu are selected for the mean of the views
            if not isinstance(random_state, int | np.integer):  # both fits draw the same views
                random_state = int(check_random_state(random_state).randint(2**31 - 1))
        learner = CoRankRLS(
            views=self.views,
            view_weights=view_weights,
            n_basis=self.n_basis,
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            cost=self.cost,
            ties=self.ties,
            group_weight=self.group_weight,
            random_state=random_state,
        )
        result = grid_search(
            learner,
            (X, target),
            candidates={"alpha": self.alphas, "nu": self.nus},
            cv=cv,
            scoring=self.scoring,
            time=time,
            store_predictions=self.store_predictions,
        )
        if weighs_by_error:  # weight of a view: how far its held-out error is below that of chance
            task = learner.hold_out_task(X, target)
            weights = _margins_over_chance(task, result.best_candidate, cv)
            result.best_estimator.set_params(view_weights=weights)
        return self._store_search(result)

    def predict_views(self, X: MatrixLike) -> Array:
        """Score items by each view; see ``CoRankRLS.predict_views``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray
            Scores by each view, as `CoRankRLS.predict_views` returns them.
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def view_disagreement(self, X: MatrixLike, groups: ArrayLike | None = None) -> Array:
        """Share of pairs that two views order differently; see ``CoRankRLS.view_disagreement``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels; None means one list.

        Returns
        -------
        ndarray of shape (n_views, n_views)
            Share of the pairs that two views order differently.
        """
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.view_disagreement(X, groups))
