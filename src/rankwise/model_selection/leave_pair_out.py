"""Leave-pair-out cross-validation: every pair of one list held out in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.errors import UndefinedMetricError
from rankwise.machine import calm
from rankwise.model_selection.task import HeldOutPairs, HoldOutTask
from rankwise.targets import with_weights

BLOCK_ENTRIES = 2**21


@dataclass(frozen=True)
class LeavePairOut:
    """Result of `leave_pair_out`.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Regularization of the models.
    disagreement : float, or ndarray of shape (n_alphas,), (n_outputs,) or (n_outputs, n_alphas)
        Share (by weight) of the pairs with different scores that are ordered wrongly by the model
        trained without both; a tied prediction counts one half.
    n_pairs : int or ndarray of shape (n_outputs,)
        Number of pairs with different scores.
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


@calm
def leave_pair_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    alphas: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> LeavePairOut:
    """Hold out every pair of items in turn, train on the rest, and see how the pair is ordered.

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
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items, in training and where pairs are judged: a pair weighs the product of
        its two. Items of weight 0 are left out of the result. Not for ``0 < beta < 1``.

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
    y, groups = with_weights(y, None, sample_weight, X)
    has_task = hasattr(estimator, "hold_out_task")
    task = estimator.hold_out_task(X, y, groups) if has_task else None
    if task is None or task.refits:
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; leave_pair_out is exact for RankRLS only. "
            "For other rankers hold out whole groups or folds of items."
        )
    candidates = task.candidates() if alphas is None else task.candidates(alpha=alphas)
    checked = candidates.axes["alpha"]
    pairs = _pairs_of_complete_list(task)
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


def _pairs_of_complete_list(task: HoldOutTask) -> HeldOutPairs:
    if task.graph.item_weights is not None:
        raise ValueError(
            "leave_pair_out takes no weights of items; hold out folds of items, "
            "cross_val_predict_groups(..., cv=10)."
        )
    pairs = task.pairs()
    if pairs is None:
        raise ValueError(
            "leave_pair_out needs scores of one list with cost='magnitude' and ties='include', so "
            "that all pairs are edges; for groups use leave_group_out_predict."
        )
    return pairs


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
