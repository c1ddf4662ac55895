"""Counting inversions inside groups: the kernel of every pairwise metric.

This is the readable NumPy version; a compiled one may take its place with the same signature.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_inversions"]


def count_inversions(
    values: NDArray[Any], starts: NDArray[np.intp], weights: NDArray[np.float64] | None = None
) -> NDArray[Any]:
    """Count, in each group, the pairs ``p < q`` with ``values[p] > values[q]``.

    No pair is ever formed. The bits of the values are looked at from the highest to the lowest.
    Two values that first differ in a certain bit share a *block* (same group, same higher bits)
    when that bit is reached, and they are inverted if the one comes before the zero there; one
    cumulative sum counts these for all blocks at once. Then the zeros are put before the ones,
    each in their old order, which leaves every smaller block contiguous (the layout of a wavelet
    matrix). Time O(m log r) and memory O(m) for m values below r.

    Parameters
    ----------
    values : ndarray of shape (m,), unsigned integers
        The sequences of all groups, one after the other.
    starts : ndarray of shape (n_groups,)
        Where each group starts; increasing, first entry 0, no group empty.
    weights : ndarray of shape (m,), optional
        Then the pair (p, q) counts ``weights[p] * weights[q]`` instead of 1. Sums run over all
        groups: weights should be of like size in all of them.

    Returns
    -------
    ndarray of shape (n_groups,)
        int64, exact; float64 if there are weights.

    Examples
    --------
    >>> count_inversions(np.array([2, 0, 1, 1, 0], dtype=np.uint8), np.array([0, 3]))
    array([2, 1])
    """
    counts = np.zeros(len(starts), dtype=np.int64 if weights is None else np.float64)
    owner = np.arange(len(starts))  # the group of each block
    for bit in reversed(range(int(values.max()).bit_length())):
        one = ((values >> bit) & 1).astype(bool)
        ones_seen = np.cumsum(one)
        if ones_seen[-1] in (0, len(values)):
            continue
        sizes = np.diff(starts, append=len(values))
        ones_before = ones_seen[starts] - one[starts]
        n_ones = np.diff(ones_before, append=ones_seen[-1])
        n_zeros = sizes - n_ones
        zero = ~one
        has_zero, has_one = n_zeros > 0, n_ones > 0
        zero_starts = (np.cumsum(n_zeros) - n_zeros)[has_zero]
        if weights is None:
            found = np.add.reduceat(ones_seen[zero], zero_starts)
            found -= (n_zeros * ones_before)[has_zero]
        else:
            found = _weigh(weights, one, starts, n_zeros, zero_starts)
            weights = np.concatenate([weights[zero], weights[one]])
        np.add.at(counts, owner[has_zero], found)
        values = np.concatenate([values[zero], values[one]])
        one_starts = n_zeros.sum() + (np.cumsum(n_ones) - n_ones)[has_one]
        starts = np.concatenate([zero_starts, one_starts])
        owner = np.concatenate([owner[has_zero], owner[has_one]])
    return counts


def _weigh(
    weights: NDArray[np.float64],
    one: NDArray[np.bool_],
    starts: NDArray[np.intp],
    n_zeros: NDArray[np.intp],
    zero_starts: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Sum over the zeros of each block: own weight times the weight of the ones before."""
    seen = np.concatenate([[0.0], np.cumsum(np.where(one, weights, 0.0))])
    # subtract before multiplying: exactly 0 where no one comes before
    before = seen[1:][~one] - np.repeat(seen[starts], n_zeros)
    sums: NDArray[np.float64] = np.add.reduceat(before * weights[~one], zero_starts)
    return sums
