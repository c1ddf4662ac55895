"""Scores of held-out items without training again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.machine import calm
from rankwise.model_selection.curves import by_row
from rankwise.model_selection.folds import make_folds
from rankwise.model_selection.task import hold_out_task


@calm
def leave_group_out_predict(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    alphas: ArrayLike | None = None,
    progress: bool | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Scores of each group by a model that was trained on all other groups. Exact.

    [RankRLS09] section 3.3, for every cost, kernel and number of outputs. The scores are those that
    refitting the estimator without the group would give; see `cross_val_predict_groups` for which
    models have a shortcut.

    Parameters
    ----------
    estimator : RankRLS, RankSVM or another learner that has ``hold_out_task``
        Fitted or not; it is left as it is.
    X, y, groups
        As in ``RankRLS.fit``. The groups of a `PairGraph` are those that it was given, or else its
        connected components; edges that cross into a group leave with it.
    alphas : array-like of shape (n_alphas,), optional
        Several values of alpha from one decomposition; the estimator's own if not given.
    progress : bool, optional
        Whether to draw a bar while folds are trained again; by default only on a terminal.
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items in training.

    Returns
    -------
    ndarray of shape (n_items,), (n_items, n_outputs), or with alphas one more axis of n_alphas
        Held-out scores; compare them only inside a group.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.metrics import ndcg
    >>> from rankwise.model_selection import leave_group_out_predict
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> scores = leave_group_out_predict(RankRLS(), X, y, groups, alphas=[1e-3, 1.0, 1e3])
    >>> scores.shape
    (600, 3)
    >>> [round(ndcg(y, s, groups, k=10), 3) for s in scores.T]
    [0.938, 0.938, 0.935]
    """
    return cross_val_predict_groups(
        estimator, X, y, groups, alphas=alphas, progress=progress, sample_weight=sample_weight
    )


@calm
def cross_val_predict_groups(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    cv: Any = None,
    alphas: ArrayLike | None = None,
    progress: bool | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Scores of each fold by a model that was trained on all other folds. Exact.

    Folds that no pair leaves (whole groups, whole connected components of explicit preferences)
    and folds of items of a single list under ``cost="magnitude", ties="include"`` are computed
    from one decomposition; so are any folds of the items of a `PairGraph` for linear models and
    models on a basis, where edges that cross into a fold leave with it. All other folds,
    ``solver="iterative"``, and kernels with 0 < beta < 1 are trained again for each fold, and so
    is RankSVM, along a warm-started path. A basis (`n_basis`) is chosen once, from all items.

    Parameters
    ----------
    estimator : RankRLS, RankSVM or another learner that has ``hold_out_task``
        Fitted or not; it is left as it is.
    X, y, groups
        As in ``RankRLS.fit``.
    cv : int, splitter or iterable of (train, test), optional
        None leaves out one group at a time; a number makes as many folds of whole groups, or of
        items if there is one list only. Splitters of scikit-learn get the groups.
    alphas : array-like of shape (n_alphas,), optional
        Several values of alpha; the estimator's own if not given.
    progress : bool, optional
        Whether to draw a bar while folds are trained again; by default only on a terminal.
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items in training.

    Returns
    -------
    ndarray of shape (n_items,), (n_items, n_outputs), or with alphas one more axis of n_alphas
        Held-out scores. Scores of different folds come from different models: compare them only
        inside a fold. Rows of X that have no score get nan.
    """
    advice = "For others use sklearn.model_selection.cross_val_predict with GroupKFold."
    task = hold_out_task(estimator, X, y, groups, advice, sample_weight)
    if alphas is not None and "alpha" not in task.parameters:
        raise ValueError(f"{type(estimator).__name__} has no alpha; leave out alphas.")
    candidates = task.candidates() if alphas is None else task.candidates(alpha=alphas)
    scores = by_row(task, task.held_out(make_folds(cv, task.graph), candidates, progress))
    shape = (len(scores), *task.output_shape, len(candidates))
    return scores.reshape(shape if alphas is not None else shape[:-1])
