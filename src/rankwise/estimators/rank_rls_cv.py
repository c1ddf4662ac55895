"""RankRLSCV: RankRLS with alpha and kernel parameters chosen by exact cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import ArrayLike

from rankwise.estimators.base import RankerMixin
from rankwise.estimators.rank_rls import RankRLS
from rankwise.estimators.search import Search


@dataclass(eq=False, repr=False)
class RankRLSCV(RankerMixin, Search):
    """RankRLS that chooses alpha, and kernel parameters if lists are given, by exact hold-out.

    With groups every alpha is judged by leave-group-out, without by leave-pair-out: both
    without training again, and equal to training again for each fold ([RankRLS09] sections
    3.2 to 3.4). The model is then trained on all data with the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 31 values from 1e-8 to 1e2 times the mean squared distance between
        the items of a pair, which suits any scale of features and any amount of data. The grid
        starts lower where the columns of X are on different scales, and goes on by three decades
        at a time while the best is at its end, at most to 1e6 times that distance and down to its
        rounding; a choice there warns.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable
        "auto" leaves out one group at a time, or one connected component of explicit preferences
        without groups; a single list is judged by leave-pair-out up to 1,500 items where that
        applies, else by ten folds of items. Anything else as in
        `rankwise.model_selection.cross_val_predict_groups`.
    scoring : str or Metric
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    gamma, degree, coef0
        Kernel parameters; a list of values is searched.
    alpha_per_output : bool
        Choose an alpha for each output instead of one for all.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    kernel, kernel_params, cost, ties, group_weight, beta, n_basis, basis, solver, tol, max_iter, \
random_state
        As in `RankRLS`.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_outputs,)
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel parameters.
    cv_results_ : dict
        "alphas", "params" (list of kernel parameters), "mean_score" of shape (n_params, n_alphas)
        or (n_params, n_alphas, n_outputs), "group_score" (list of arrays of shape (n_groups,
        n_alphas)), "groups" (their labels), "n_undefined", "cv" (which way was taken),
        "note" (if the choice is at the edge, or most alphas are as good; else empty), and
        "predictions" if asked for.
    best_estimator_ : RankRLS
        The model trained on all data.
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, solver_
        As in `RankRLS`.

    Examples
    --------
    >>> from rankwise import RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = RankRLSCV(scoring="ndcg@10").fit(X, y, groups)
    >>> round(model.best_score_, 3), model.cv_results_["cv"]
    (0.932, 'leave-group-out')
    """

    model_class = RankRLS

    alphas: ArrayLike | None = None
    _: KW_ONLY
    cv: Any = "auto"
    scoring: Any = "disagreement"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    beta: float = 0.0
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None
    random_state: Any = None
    alpha_per_output: bool = False
    store_predictions: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
