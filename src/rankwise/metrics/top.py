"""The items at the top of each list, which is what most people look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Indices
from rankwise.metrics.arguments import check_cutoff, check_data


def top_k(y_score: ArrayLike, groups: ArrayLike | None = None, *, k: int) -> Indices:
    """Rows of the k items with the highest scores of each group, best first.

    Parameters
    ----------
    y_score : array-like of shape (m,)
        Predicted scores.
    groups : array-like of shape (m,), optional
        Group label of each row, in any order; None puts all rows in one group.
    k : int
        Number of items; a group that has fewer gives all of them.

    Returns
    -------
    ndarray of int
        Numbers of rows, group after group in the order of the sorted labels. Rows with equal
        scores stay in their order.

    Examples
    --------
    >>> import numpy as np
    >>> names = np.array(["tea", "milk", "rye", "oats"])
    >>> names[top_k([0.1, 0.9, 0.3, 0.8], ["drink", "drink", "grain", "grain"], k=1)]
    array(['milk', 'oats'], dtype='<U4')
    """
    check_cutoff(k, required=True)
    _, score, codes = check_data(np.zeros(np.shape(y_score)[:1]), y_score, groups)
    if score.ndim != 1:
        raise ValueError(f"y_score has shape {score.shape}; pass one column, as in scores[:, 0].")
    rows = np.lexsort((-score.astype(np.float64), codes.codes))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(codes.sizes) - codes.sizes, codes.sizes)
    first: Indices = rows[place < k]
    return first
