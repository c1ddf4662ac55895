"""CoRankRLSCV: CoRankRLS with alpha and nu chosen by cross-validation over scored groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.co_rank_rls import CoRankRLS
from rankwise.estimators.search import Search
from rankwise.estimators.unscored import SemiSupervisedMixin
from rankwise.features import View
from rankwise.model_selection.curves import HeldOutCurves
from rankwise.model_selection.measures import Measure


@dataclass(eq=False, repr=False)
class CoRankRLSCV(SemiSupervisedMixin, Search):
    """CoRankRLS that chooses alpha and nu by holding out scored groups.

    For each fold and each nu one reduction of the stacked system serves all alphas
    ([CoRankRLS10] section 5); what the unscored rows contribute is computed once for all folds.
    Rows held out are left out altogether, also of what the views agree on, so each fold is judged
    as new groups would be. The bases are chosen once, from all rows. The model is then trained on
    all data with the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 31 values from 1e-8 to 1e2 times the mean squared distance between
        the items of a scored pair, averaged over the views; widened as in `RankRLSCV`.
    nus : array-like of shape (n_nus,), optional
        Candidates; by default 0 and powers of ten from 0.1 to 10,000.
    cv : "auto", None, int, splitter or iterable
        "auto" makes up to five folds of whole groups of the scored rows, or of the scored rows if
        they are one list; None holds out one group at a time. Splitters see the scored rows only,
        and an iterable counts them from 0.
    scoring : str or Metric
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    views, n_basis, kernel, gamma, degree, coef0, kernel_params, cost, ties, group_weight, \
random_state
        As in `CoRankRLS`.

    Attributes
    ----------
    alpha_, nu_ : float
        Chosen parameters.
    best_score_ : float
        Their score, in the units of the metric.
    best_params_ : dict
        Both.
    cv_results_ : dict
        "alphas", "nus", "params" (a list with one dict for each nu), "mean_score" of shape (n_nus,
        n_alphas), "group_score" of shape (n_groups, n_nus, n_alphas), "groups" (their labels),
        "n_undefined", "cv" (which way was taken), "note" (if the choice is at the edge, or most
        alphas are as good; else empty), and "predictions" of shape (n_items, n_nus, n_alphas) if
        asked for, nan in rows without a score.
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
    (7, 31)
    >>> model.n_unscored_
    600
    """

    model_class = CoRankRLS
    axes = {"alpha": "alphas", "nu": "nus"}  # noqa: RUF012
    lists = ()
    shown = (
        "views_",
        "view_coef_",
        "basis_indices_",
        "n_scored_",
        "n_unscored_",
        "n_pairs_",
    )

    alphas: ArrayLike | None = None
    _: KW_ONLY
    nus: ArrayLike | None = None
    cv: Any = "auto"
    scoring: Any = "disagreement"
    views: int | Sequence[View] = 2
    n_basis: int = 100
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    random_state: Any = None
    store_predictions: bool = False

    def predict_views(self, X: Any) -> NDArray[Any]:
        """Score items by each view; see ``CoRankRLS.predict_views``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def view_disagreement(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """How differently the views order items; see ``CoRankRLS.view_disagreement``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.view_disagreement(X, groups))

    def _tables(
        self, runs: list[HeldOutCurves], points: list[dict[str, Any]], metric: Measure
    ) -> dict[str, Any]:
        """Scores for `cv_results_`: a row for each nu, a column for each alpha."""
        (run,) = runs
        axes, shape = run.candidates.axes, run.candidates.shape
        tables = {
            "alphas": axes["alpha"],
            "nus": axes["nu"],
            "params": [{"nu": float(nu)} for nu in axes["nu"]],
            "mean_score": run.overall(metric).reshape(shape),
            "group_score": run.by_group[metric.name].reshape(-1, *shape),
        }
        if self.store_predictions:
            tables["predictions"] = np.asarray(run.predictions).reshape(-1, *shape)
        return tables
