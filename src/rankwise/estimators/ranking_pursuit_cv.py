"""RankingPursuitCV: the number of steps of a pursuit chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.pursuit_task import measure_of
from rankwise.estimators.ranking_pursuit import RankingPursuit
from rankwise.estimators.search import Search
from rankwise.estimators.unscored import SemiSupervisedMixin
from rankwise.features import View
from rankwise.model_selection.measures import Measure


@dataclass(eq=False, repr=False)
class RankingPursuitCV(SemiSupervisedMixin, Search):
    """RankingPursuit that chooses its number of steps, and parameters given as lists, by folds.

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
    scoring : str or Metric
        A ranking metric such as "disagreement" or "ndcg@10", averaged over the held-out groups, or
        "loss", averaged over the folds.
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
        has no score, "groups" (their labels), "n_undefined", "cv" (which way was taken), "note"
        (if the choice is the largest number, or most are as good; else empty), and "predictions"
        if asked for, nan in rows without a score.
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

    model_class = RankingPursuit
    axes = {"n_basis": None}  # noqa: RUF012
    lists = ("gamma", "degree", "coef0", "nu")
    shown = (
        "basis_indices_",
        "choice_path_",
        "coef_",
        "coef_path_",
        "dual_coef_",
        "intercept_",
        "n_pairs_",
        "search_",
        "train_error_",
    )

    n_basis: int = 50
    _: KW_ONLY
    cv: Any = "auto"
    scoring: Any = "disagreement"
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
    store_predictions: bool = False

    def predict_views(self, X: Any) -> Array:
        """Scores by each view; see ``RankingPursuit.predict_views``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Scores after each step; see ``RankingPursuit.staged_predict``."""
        check_is_fitted(self)
        yield from self.best_estimator_.staged_predict(X)

    def _measure(self) -> Measure:
        return measure_of(self.scoring, self.beta)
