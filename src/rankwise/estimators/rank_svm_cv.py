"""RankSVMCV: RankSVM with alpha and kernel parameters chosen along warm-started paths."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import ArrayLike

from rankwise.estimators.base import RankerMixin
from rankwise.estimators.rank_svm import RankSVM
from rankwise.estimators.search import Search


@dataclass(eq=False, repr=False)
class RankSVMCV(RankerMixin, Search):
    """RankSVM that chooses alpha, and kernel parameters if lists are given, by cross-validation.

    Every fold is trained once along the whole list of alphas, from the largest to the smallest:
    weights and cutting planes of one alpha serve the next. The model is then trained on all data
    with the best parameters.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates. By default 15 values from 1e-7 to 1 times the mean squared distance between
        the items of a pair, which suits any scale of features and any amount of data. The grid
        starts lower where the columns of X are on different scales, and goes on by three decades
        at a time while the best is at its end, at most to 1e6 times that distance and down to its
        rounding; a choice there warns.
    cv : "auto", int, splitter, iterable or None
        "auto" makes up to five folds. A number makes as many folds of whole groups, of items if
        there is one list only, or of edges if y is a connected PairGraph. None leaves out one
        group at a time; anything else as in `rankwise.model_selection.cross_val_predict_groups`.
    scoring : str or Metric
        Any name of `rankwise.metrics`, such as "disagreement", "ndcg@10", "map" or "auc".
    gamma, degree, coef0
        Kernel parameters; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``.
    loss, kernel, kernel_params, group_weight, n_basis, basis, tol, max_iter, solver, verbose, \
random_state
        As in `RankSVM`.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel parameters.
    cv_results_ : dict
        "alphas", "params" (list of kernel parameters), "mean_score" of shape (n_params, n_alphas),
        "group_score" (list of arrays of shape (n_groups, n_alphas)), "groups" (their labels),
        "n_undefined", "cv" (which way was taken), "note" (if the choice is at the edge, or most
        alphas are as good; else empty), and "predictions" if asked for.
    best_estimator_ : RankSVM
        The model trained on all data; also gives `gap_` and `history_`.
    coef_, dual_coef_, X_fit_, basis_indices_, n_pairs_, solver_, n_iter_
        As in `RankSVM`.

    Examples
    --------
    >>> from rankwise import RankSVMCV
    >>> from rankwise.datasets import make_ranking
    >>> X, y, groups = make_ranking(n_queries=50, noise=0.5, random_state=0)[:3]
    >>> model = RankSVMCV(scoring="ndcg@10").fit(X, y, groups)
    >>> round(model.best_score_, 2), model.cv_results_["cv"]
    (0.93, 'folds of groups')
    """

    model_class = RankSVM

    alphas: ArrayLike | None = None
    _: KW_ONLY
    cv: Any = "auto"
    scoring: Any = "disagreement"
    loss: str = "hinge"
    group_weight: str = "pairs"
    n_basis: int | None = None
    basis: str | ArrayLike = "random"
    tol: float = 1e-3
    max_iter: int = 1000
    solver: str = "auto"
    verbose: int = 0
    random_state: Any = None
    store_predictions: bool = False
