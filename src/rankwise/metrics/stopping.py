"""A reader who goes down the list and stops: what reciprocal rank and its expected form share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices


def stop_probability(stops_if_there: Array) -> Array:
    """Probability of stopping at each place: of getting there, times of stopping if there.

    Parameters
    ----------
    stops_if_there : ndarray of shape (n_lists, n_places)
        One list a row.

    Examples
    --------
    >>> stop_probability(np.array([[0.5, 0.5, 1.0]]))
    array([[0.5 , 0.25, 0.25]])
    """
    passed = np.cumprod(1.0 - stops_if_there, axis=1)
    arrives = np.hstack([np.ones((len(passed), 1)), passed[:, :-1]])
    return stops_if_there * arrives


def pad_in_buckets(
    lengths: Indices,
) -> Iterator[tuple[Indices, Indices, NDArray[np.bool_]]]:
    """Put lists of like length together, to work on them as matrices.

    Lists share a bucket if the same power of two is next above their length, so that padding at
    most doubles them. Yields ``which`` lists (b,), the ``offset`` of each place from the start of
    its list (b, width), 0 where the list has no such place, and which places are ``valid``.

    Examples
    --------
    >>> for which, offset, valid in pad_in_buckets(np.array([3, 1, 4])):
    ...     print(which, offset.tolist())
    [1] [[0]]
    [0 2] [[0, 1, 2, 0], [0, 1, 2, 3]]
    """
    _, bucket = np.frexp(lengths - 0.5)
    for exponent in np.unique(bucket):
        which = np.flatnonzero(bucket == exponent)
        place = np.arange(lengths[which].max())
        valid = place < lengths[which, None]
        yield which, np.where(valid, place, 0), valid
