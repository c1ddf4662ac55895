"""Held-out scores of items and pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, CrossValidation, MatrixLike, Numbers
from rankwise.errors import UndefinedMetricError
from rankwise.graphs.supervision import TargetLike
from rankwise.model_selection.candidate_evaluation import by_row
from rankwise.model_selection.folds import make_folds
from rankwise.model_selection.protocol import HeldOutPairs, hold_out_task
from rankwise.runtime.threads import single_threaded

BLOCK_ENTRIES = 2**21  # differences of pairs in a block


@single_threaded
def leave_group_out_predict(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None = None,
    *,
    alphas: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Predict the scores of each group by a model trained on all other groups.

    Use it for held-out scores of all items, for example to compute a metric or as input of another
    model.

    Exact for every cost, kernel and number of outputs ([RankRLS09] section 3.3): the scores equal
    the scores of the estimator refitted without the group. `cross_val_predict_groups` lists the
    models that need no refits.

    Parameters
    ----------
    estimator : RankRLS, RankSVM or another learner with a method ``hold_out_task``
        Fitted or not; it is not modified.
    X, y, groups
        As in ``RankRLS.fit``. The groups of a `PairGraph` are its own, or else its connected
        components; a group is held out with all edges that touch it.
    alphas : array-like of shape (n_alphas,), default=None
        Values of alpha, all from one decomposition. By default the alpha of the estimator is used.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items in training.

    Returns
    -------
    ndarray of shape (n_items,) or (n_items, n_outputs); with alphas a last axis of n_alphas
        Held-out scores; only scores of one group are comparable.

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
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None = None,
    *,
    cv: CrossValidation = None,
    alphas: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Predict the scores of each fold by a model trained on all other folds.

    Use it for held-out scores with other folds than one group at a time.

    The scores equal the scores of refits. One decomposition is enough for folds that no pair
    crosses (whole groups, connected components of explicit preferences) and for folds of items of a
    single list with ``cost="magnitude", ties="include"``. The same holds for any folds of the items
    of a `PairGraph` with linear models and models on a basis; a fold is held out with all edges
    that touch it. All other folds, ``solver="iterative"`` and kernels with 0 < beta < 1 are
    refitted. RankSVM is refitted along a warm-started path. A basis (`n_basis`) is chosen once,
    from all items.

    Parameters
    ----------
    estimator : RankRLS, RankSVM or another learner with a method ``hold_out_task``
        Fitted or not; it is not modified.
    X, y, groups
        As in ``RankRLS.fit``.
    cv : int, splitter or iterable of (train, test), default=None
        None leaves out one group at a time. A number is a number of folds of whole groups, or of
        items if there is only one list. Splitters of scikit-learn receive the groups.
    alphas : array-like of shape (n_alphas,), default=None
        Values of alpha. By default the alpha of the estimator is used.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items in training.

    Returns
    -------
    ndarray of shape (n_items,) or (n_items, n_outputs); with alphas a last axis of n_alphas
        Held-out scores. Different folds have different models, so only scores of one fold are
        comparable. Rows of X without a score have nan.

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
        raise ValueError(f"{type(estimator).__name__} has no alpha; omit alphas.")
    candidates = task.candidate_alphas(alphas)
    folds = make_folds(cv, task.graph)
    scores_of_items = task.held_out(folds, candidates)  # (n_items, n_outputs, n_alphas)
    scores = by_row(task, scores_of_items)  # rows of X without a score are NaN
    scores = scores.reshape(len(scores), *task.output_shape, len(candidates))
    if alphas is None:
        return scores[..., 0]
    return scores


@dataclass(frozen=True)
class LeavePairOut:
    """Result of `leave_pair_out`.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Regularization of the models.
    disagreement : float, or ndarray of shape (n_alphas,), (n_outputs,) or (n_outputs, n_alphas)
        Share of the pairs with different scores that are misordered by the model trained without
        both items; a tied prediction counts one half.
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
    disagreement: Array | float
    n_pairs: Numbers | float
    _pairs: HeldOutPairs
    _shape: tuple[int, ...]

    @property
    def auc(self) -> Array | float:
        """1 − disagreement; with two distinct scores the area under the ROC curve."""
        return 1.0 - self.disagreement

    @property
    def differences(self) -> Array:
        """``differences[i, j] = f_i − f_j`` by the model trained without i and j.

        Shape (n_items, n_items), with a last axis for several outputs. For a single alpha; with
        several alphas use `blocks`.
        """
        alpha = self._only_alpha("blocks(alpha)")
        n_items = len(self._pairs.y)
        differences = np.empty((n_items, n_items, *self._shape))
        for rows, differences_of_rows in self.blocks(alpha):
            differences[rows] = differences_of_rows
        return differences

    def predictions(self, pairs: ArrayLike, alpha: float | None = None) -> Array:
        """Predicted scores of both items of held-out pairs.

        Each pair is predicted by the model that was trained without both of its items. Compare
        the two scores of a pair only: different pairs have different models.

        Parameters
        ----------
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers of the items of each pair.
        alpha : float, default=None
            Regularization. None uses the only one of `alphas`.

        Returns
        -------
        ndarray of shape (n_pairs, 2) or (n_pairs, 2, n_outputs)
            Scores; their difference is that of `differences`.

        Examples
        --------
        >>> from rankwise import RankRLS
        >>> from rankwise.model_selection import leave_pair_out
        >>> result = leave_pair_out(RankRLS(), [[0.0], [1.0], [2.0], [4.0]], [0, 1, 0, 1])
        >>> result.predictions([[0, 3]]).round(3).tolist()
        [[0.0, -3.996]]
        """
        if alpha is None:
            alpha = self._only_alpha("predictions(pairs, alpha)")
        row_numbers = np.asarray(pairs, dtype=np.intp)
        if row_numbers.ndim != 2 or row_numbers.shape[1] != 2:
            raise ValueError(
                f"pairs has shape {row_numbers.shape}; expected two row numbers for each pair."
            )
        is_same_item = row_numbers[:, 0] == row_numbers[:, 1]
        if is_same_item.any():
            raise ValueError("pairs contains an item twice; expected two different items.")
        predictions = self._pairs.predictions(float(alpha), row_numbers)
        return predictions.reshape(len(row_numbers), 2, *self._shape)

    def _only_alpha(self, alternative: str) -> float:
        """The alpha, if there is one."""
        if len(self.alphas) != 1:
            raise ValueError(
                f"there are {len(self.alphas)} alphas; use {alternative} for one of them."
            )
        return float(self.alphas[0])

    def blocks(self, alpha: float) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows of `differences`, as ``(rows, differences[rows])``.

        Parameters
        ----------
        alpha : float
            Regularization.

        Yields
        ------
        rows : slice
            Rows of the block.
        block : ndarray of shape (n_rows, n_items) or (n_rows, n_items, n_outputs)
            Differences of scores.
        """
        for rows, differences in self._pairs.differences(float(alpha), BLOCK_ENTRIES):
            n_rows, n_items = differences.shape[:2]
            yield rows, differences.reshape(n_rows, n_items, *self._shape)


@single_threaded
def leave_pair_out(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    *,
    alphas: ArrayLike | None = None,
) -> LeavePairOut:
    """Hold out every pair of items in turn and predict its order.

    Use it to estimate the AUC from few items.

    The estimate of AUC and disagreement is nearly unbiased for small data ([RankRLS09] sections 3.4
    and 4.1). It is exact and computed for all pairs at once: after one eigendecomposition each
    alpha costs one matrix product and elementwise arithmetic.

    Parameters
    ----------
    estimator : RankRLS
        With ``cost="magnitude", ties="include"``; fitted or not, it is not modified.
    X, y
        Items and scores of one list, as in ``RankRLS.fit``.
    alphas : array-like of shape (n_alphas,), default=None
        Values of alpha. By default the alpha of the estimator is used.

    Returns
    -------
    LeavePairOut
        Disagreement and AUC over the pairs with different scores, and the differences of the
        predicted scores of all pairs.

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
    candidates = task.candidate_alphas(alphas)
    checked_alphas = candidates.axes["alpha"]
    pairs = task.pairs()
    n_pairs = _count_pairs_with_different_y(pairs.y)
    disagreement = pairs.disagreement(checked_alphas)
    disagreement = disagreement.reshape(*task.output_shape, len(checked_alphas))
    if alphas is None:
        disagreement = disagreement[..., 0]
    return LeavePairOut(
        alphas=checked_alphas,
        disagreement=_number_if_scalar(disagreement),
        n_pairs=_number_if_scalar(n_pairs.reshape(task.output_shape)),
        _pairs=pairs,
        _shape=task.output_shape,
    )


def _number_if_scalar(values: Numbers) -> Numbers | float:
    """The values, or a Python number if the array has no axes."""
    is_scalar = values.ndim == 0
    if not is_scalar:
        return values
    number: float = values.item()
    return number


def _count_pairs_with_different_y(y: Array) -> NDArray[np.int64]:
    """Number of pairs with different scores, for each output."""
    n_items, n_outputs = y.shape
    n_all_pairs = n_items * (n_items - 1) // 2
    n_pairs = np.full(n_outputs, n_all_pairs, dtype=np.int64)
    for output in range(n_outputs):
        _, level_sizes = np.unique(y[:, output], return_counts=True)
        n_tied_pairs = (level_sizes * (level_sizes - 1) // 2).sum()
        n_pairs[output] -= n_tied_pairs
    if (n_pairs == 0).any():
        raise UndefinedMetricError(
            "leave-pair-out is undefined: all scores are equal, so no pair has an order to predict."
        )
    return n_pairs
