"""CoRankRLSCV: CoRankRLS with alpha and nu chosen by cross-validation over scored groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.errors import UndefinedMetricError
from rankwise.estimators.alpha_grid import (
    AlphaGrid,
    edges_of,
    flat_note,
    make_grid,
    median_share,
    warn_at_edge,
    warn_at_limit,
)
from rankwise.estimators.best_model import BestModel
from rankwise.estimators.checks import check_alphas, check_nus
from rankwise.estimators.co_problem import CoProblem
from rankwise.estimators.co_rank_rls import CoRankRLS
from rankwise.estimators.cross_validation import (
    check_scoring,
    mean_defined,
    score_groups,
    standard_error,
)
from rankwise.estimators.folds import Folds, make_folds
from rankwise.estimators.held_out import check_rest
from rankwise.estimators.lost_groups import warn_if_groups_were_lost
from rankwise.estimators.unscored import SemiSupervisedMixin
from rankwise.features import View
from rankwise.graphs import ScoreGraph
from rankwise.metrics import get_metric

__all__ = ["CoRankRLSCV"]

Array = NDArray[np.float64]
NUS = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)  # with few scores large ones may be best
AUTO_FOLDS = 5


@dataclass(eq=False, repr=False)
class CoRankRLSCV(SemiSupervisedMixin, BestModel):
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
        "alphas", "nus", "mean_score" of shape (n_nus, n_alphas), "group_score" of shape (n_groups,
        n_nus, n_alphas), "groups" (their labels), "n_undefined" and "note" (if most alphas are as
        good; else empty).
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

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        X, y, groups
            As in ``CoRankRLS.fit``.

        Returns
        -------
        CoRankRLSCV
            The fitted estimator.
        """
        warn_if_groups_were_lost(y, groups, "fit")
        metric = check_scoring(self.scoring)
        nus = check_nus(NUS if self.nus is None else self.nus, "nus")
        alphas = None if self.alphas is None else check_alphas(self.alphas, "alphas")
        model = self._model()
        problem = model._prepare(X, y, groups)
        graph = problem.loss.graph
        assert isinstance(graph, ScoreGraph)
        folds = make_folds(self._folds(graph), graph, np.empty((graph.n_items, 1)), graph.y)

        def judge(some: Array) -> tuple[Array, NDArray[Any]]:
            held = _held_out_scores(problem, folds, nus, some)
            scores, labels = score_groups(graph, held[:, None], folds, metric)
            return scores.reshape(len(scores), len(nus), len(some)), labels

        if alphas is None:
            i, j = self._choose_default(_default_grid(problem), judge, nus)
        else:
            i, j = self._choose(*judge(alphas), nus, alphas)
            warn_at_edge("alpha", alphas, self.cv_results_["mean_score"][i], j, stacklevel=3)
        if self.nus is not None and nus[i] > 0:  # there is nothing below 0
            warn_at_edge("nu", nus, self.cv_results_["mean_score"][:, j], i, stacklevel=3)
        model.set_params(**self.best_params_)
        self.best_estimator_ = model._fit_problem(problem)
        validate_data(self, X, skip_check_array=True)
        return self

    def predict_views(self, X: Any) -> NDArray[Any]:
        """Score items by each view; see ``CoRankRLS.predict_views``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_views(X))

    def view_disagreement(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """How differently the views order items; see ``CoRankRLS.view_disagreement``."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.view_disagreement(X, groups))

    def _model(self) -> CoRankRLS:
        shared = set(CoRankRLS().get_params(deep=False)) - {"alpha", "nu"}
        return CoRankRLS(**{name: getattr(self, name) for name in shared})

    def _folds(self, graph: ScoreGraph) -> Any:
        if not isinstance(self.cv, str):
            return self.cv
        if self.cv != "auto":
            raise ValueError(
                f"cv={self.cv!r} is unknown; use 'auto', None, a number of folds or a splitter."
            )
        return min(AUTO_FOLDS, graph.n_groups if graph.n_groups > 1 else graph.n_items)

    def _choose_default(
        self, grid: AlphaGrid, judge: Callable[[Array], tuple[Array, NDArray[Any]]], nus: Array
    ) -> tuple[int, int]:
        """The default grid, and wider ones while the choice is at an end of it."""
        alphas = grid.alphas
        scores, labels = judge(alphas)
        while True:
            i, j = self._choose(scores, labels, nus, alphas)
            edges = edges_of(alphas, self.cv_results_["mean_score"][i], j)
            wider = grid.wider(edges)
            if wider == grid:
                warn_at_limit(grid, edges, stacklevel=4)
                return i, j
            more = wider.beyond(grid)
            order = np.argsort(np.concatenate([alphas, more]))
            scores = np.concatenate([scores, judge(more)[0]], axis=2)[:, :, order]
            grid, alphas = wider, wider.alphas

    def _choose(
        self, group_score: Array, labels: NDArray[Any], nus: Array, alphas: Array
    ) -> tuple[int, int]:
        """The best score; of equal ones the largest alpha, then the largest nu."""
        metric = get_metric(self.scoring)
        mean = mean_defined(group_score)
        if np.isnan(mean).all():
            raise UndefinedMetricError(
                f"{metric} is undefined in every held-out fold; use larger folds, another cv or "
                "another scoring."
            )
        best = np.nanmax(mean) if metric.greater_is_better else np.nanmin(mean)
        ties = np.argwhere(mean == best)
        i, j = max(ties, key=lambda at: (alphas[at[1]], nus[at[0]]))
        self.alpha_, self.nu_ = float(alphas[j]), float(nus[i])
        self.best_score_ = float(best)
        self.best_params_ = {"alpha": self.alpha_, "nu": self.nu_}
        self.cv_results_: dict[str, Any] = {
            "alphas": alphas,
            "nus": nus,
            "mean_score": mean,
            "group_score": group_score,
            "groups": labels,
            "n_undefined": int(np.isnan(group_score).any(axis=(1, 2)).sum()),
            "note": flat_note("alpha", alphas, mean[i], standard_error(group_score[:, i]), int(j)),
        }
        return int(i), int(j)


def _default_grid(problem: CoProblem) -> AlphaGrid:
    """By the mean over the views of the squared distance between items of a pair."""
    norms = np.split(np.diag(problem.system.scored), problem.starts)
    shares = [
        median_share(part) if view.is_columns else 1.0
        for view, part in zip(problem.views, norms, strict=True)
    ]
    scale = float(np.trace(problem.system.scored)) / len(problem.views)
    return make_grid(scale, min(shares))


def _held_out_scores(problem: CoProblem, folds: Folds, nus: Array, alphas: Array) -> Array:
    """Scores of the scored rows by models trained without their fold, shape (n, nus × alphas)."""
    out = np.empty((len(problem.part.scored), len(nus) * len(alphas)))
    for U in folds:
        rest = problem.without(U)
        check_rest(rest.loss.graph.n_pairs > 0)
        coef, _ = rest.coefficients(nus, alphas)
        X = problem.X[problem.part.scored[U]]
        views = zip(problem.views, coef, strict=True)
        out[U] = np.mean([view.scores(X, c.reshape(len(c), -1)) for view, c in views], axis=0)
    return out
