"""Leave-pair-out cross-validation: every pair of one list held out in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from rankwise.errors import UndefinedMetricError
from rankwise.estimators.checks import check_alphas
from rankwise.estimators.held_out import is_complete_list, item_spectrum
from rankwise.estimators.rank_rls import RankRLS
from rankwise.losses import SquaredLoss
from rankwise.solvers.hold_out_items import Spectrum, pair_differences, pair_disagreement

__all__ = ["LeavePairOut", "leave_pair_out"]

Array = NDArray[np.float64]
BLOCK_ENTRIES = 2**21


@dataclass(frozen=True)
class LeavePairOut:
    """Result of `leave_pair_out`.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Regularisation of the models.
    disagreement : float, or ndarray of shape (n_alphas,), (n_outputs,) or (n_outputs, n_alphas)
        Share of the pairs with different scores that are ordered wrongly by the model trained
        without both; a tied prediction counts one half.
    n_pairs : int or ndarray of shape (n_outputs,)
        Number of pairs with different scores.
    """

    alphas: Array
    disagreement: Any
    n_pairs: Any
    _spectrum: Spectrum
    _y: Array
    _beta: float
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
        m = len(self._y)
        out = np.empty((m, m, *self._shape))
        for rows, block in self.blocks(self.alphas[0]):
            out[rows] = block
        return out

    def blocks(self, alpha: float) -> Iterator[tuple[slice, Array]]:
        """Rows of `differences` in blocks, ``(rows, differences[rows])``, never all at once."""
        for rows, block in pair_differences(
            self._spectrum, self._y, float(alpha), self._beta, BLOCK_ENTRIES
        ):
            yield rows, block.reshape(*block.shape[:2], *self._shape)


def leave_pair_out(
    estimator: RankRLS, X: Any, y: Any, *, alphas: ArrayLike | None = None
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
    if not isinstance(estimator, RankRLS):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; leave_pair_out is exact for RankRLS only. "
            "For other rankers hold out whole groups or folds of items."
        )
    checked = check_alphas([estimator.alpha] if alphas is None else alphas, "alphas")
    model = clone(estimator)
    losses, design = model._prepare(X, y, None, to_fit=False)
    loss = losses[0]
    scores = _scores_of_complete_list(loss, len(losses))
    basis = item_spectrum(design, centered=loss.beta == 0, overwrite=True)
    del design
    n_pairs = _count_pairs(scores)
    disagreement = pair_disagreement(basis, scores, checked, loss.beta)
    shape = (*model.output_shape_, *(() if alphas is None else (len(checked),)))
    return LeavePairOut(
        alphas=checked,
        disagreement=disagreement.reshape(shape) if shape else float(disagreement[0, 0]),
        n_pairs=n_pairs if model.output_shape_ else int(n_pairs[0]),
        _spectrum=basis,
        _y=scores,
        _beta=loss.beta,
        _shape=model.output_shape_,
    )


def _scores_of_complete_list(loss: SquaredLoss, n_losses: int) -> Array:
    graph = loss.graph
    if n_losses > 1 or not is_complete_list(graph):
        raise ValueError(
            "leave_pair_out needs scores of one list with cost='magnitude' and ties='include', so "
            "that all pairs are edges; for groups use leave_group_out_predict."
        )
    if graph.n_items < 4:
        raise ValueError(
            f"leave_pair_out needs at least 4 items, got {graph.n_items}: without two of them at "
            "least one pair must be left to train on."
        )
    y = graph.y  # type: ignore[attr-defined]
    return np.asarray(y.reshape(len(y), -1))


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
