"""Scores of held-out items and pairs without training again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.errors import UndefinedMetricError
from rankwise.model_selection.folds import make_folds
from rankwise.model_selection.grid_search import by_row
from rankwise.model_selection.protocol import HeldOutPairs, hold_out_task
from rankwise.runtime.threads import single_threaded

BLOCK_ENTRIES = 2**21


@single_threaded
def leave_group_out_predict(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    alphas: ArrayLike | None = None,
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
        estimator, X, y, groups, alphas=alphas, sample_weight=sample_weight
    )


@single_threaded
def cross_val_predict_groups(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    cv: Any = None,
    alphas: ArrayLike | None = None,
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
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items in training.

    Returns
    -------
    ndarray of shape (n_items,), (n_items, n_outputs), or with alphas one more axis of n_alphas
        Held-out scores. Scores of different folds come from different models: compare them only
        inside a fold. Rows of X that have no score get nan.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.model_selection import cross_val_predict_groups
    >>> X, y, queries = make_ranking(n_queries=10, n_features=2, random_state=0)[:3]
    >>> cross_val_predict_groups(RankRLS(), X, y, queries, cv=5, alphas=[0.1, 1.0]).shape
    (200, 2)
    """
    task = hold_out_task(estimator, X, y, groups, sample_weight)
    if alphas is not None and "alpha" not in task.parameters:
        raise ValueError(f"{type(estimator).__name__} has no alpha; leave out alphas.")
    candidates = task.candidates() if alphas is None else task.candidates(alpha=alphas)
    scores = task.held_out(make_folds(cv, task.graph), candidates)
    scores = scores if task.rows is None else by_row(task, scores)
    shape = (len(scores), *task.output_shape, len(candidates))
    return scores.reshape(shape if alphas is not None else shape[:-1])


@dataclass(frozen=True)
class LeavePairOut:
    """Result of `leave_pair_out`.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Regularization of the models.
    disagreement : float, or ndarray of shape (n_alphas,), (n_outputs,) or (n_outputs, n_alphas)
        Share of the pairs with different scores that are ordered wrongly by the model trained
        without both items; a tied prediction counts one half.
    n_pairs : int or ndarray of shape (n_outputs,)
        Number of pairs with different scores.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.model_selection import leave_pair_out
    >>> result = leave_pair_out(RankRLS(), [[0.0], [1.0], [2.0], [4.0]], [0, 1, 0, 1])
    >>> result.n_pairs, result.auc
    (4, 0.5)
    """

    alphas: Array
    disagreement: Any
    n_pairs: Any
    _pairs: HeldOutPairs
    _shape: tuple[int, ...]

    @property
    def auc(self) -> Any:
        """1 − disagreement: for two levels the area under the ROC curve."""
        return 1.0 - self.disagreement

    @property
    def differences(self) -> Array:
        """``differences[i, j] = f_i − f_j`` by the model trained without i and j.

        Shape (m, m), with a further axis for several outputs. For one alpha only; see `blocks`.
        """
        if len(self.alphas) != 1:
            raise ValueError(
                f"there are {len(self.alphas)} alphas; blocks(alpha) gives the differences of one."
            )
        m = len(self._pairs.scores)
        out = np.empty((m, m, *self._shape))
        for rows, block in self.blocks(self.alphas[0]):
            out[rows] = block
        return out

    def blocks(self, alpha: float) -> Iterator[tuple[slice, Array]]:
        """Rows of `differences` in blocks, ``(rows, differences[rows])``, never all at once."""
        for rows, block in self._pairs.differences(float(alpha), BLOCK_ENTRIES):
            yield rows, block.reshape(*block.shape[:2], *self._shape)


@single_threaded
def leave_pair_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    alphas: ArrayLike | None = None,
) -> LeavePairOut:
    """Hold out every pair of items in turn, train on the rest, and see how the pair is ordered.

    Use it for the AUC of few items.

    The nearly unbiased estimate of AUC and disagreement for small data ([RankRLS09] sections 3.4
    and 4.1), exact and for all pairs at once: after one eigendecomposition each alpha costs one
    matrix product and arithmetic on single entries.

    Parameters
    ----------
    estimator : RankRLS
        With ``cost="magnitude", ties="include"``; fitted or not, it is left as it is.
    X, y
        Items and scores of one list, as in ``RankRLS.fit``.
    alphas : array-like of shape (n_alphas,), optional
        Several values of alpha; the estimator's own if not given.

    Returns
    -------
    LeavePairOut
        Disagreement and AUC over the pairs whose scores differ, and the differences of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> from rankwise.model_selection import leave_pair_out
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(float)
    >>> result = leave_pair_out(RankRLS(), X, y, alphas=[1e-3, 1e-1])
    >>> result.auc.round(3)
    array([0.944, 0.939])
    """
    task = hold_out_task(estimator, X, y, None)
    candidates = task.candidates() if alphas is None else task.candidates(alpha=alphas)
    checked = candidates.axes["alpha"]
    pairs = task.pairs()
    n_pairs = _count_pairs(pairs.scores)
    disagreement = pairs.disagreement(checked)
    shape = (*task.output_shape, *(() if alphas is None else (len(checked),)))
    return LeavePairOut(
        alphas=checked,
        disagreement=disagreement.reshape(shape) if shape else float(disagreement[0, 0]),
        n_pairs=n_pairs if task.output_shape else int(n_pairs[0]),
        _pairs=pairs,
        _shape=task.output_shape,
    )


def _count_pairs(scores: Array) -> NDArray[np.int64]:
    """Number of pairs with different scores, for each output."""
    m = len(scores)
    tied = [np.unique(column, return_counts=True)[1] for column in scores.T]
    counts = np.array([m * (m - 1) // 2 - int((c * (c - 1) // 2).sum()) for c in tied])
    if (counts == 0).any():
        raise UndefinedMetricError(
            "leave-pair-out is undefined: all scores are equal, so no pair has an order to predict."
        )
    return counts
