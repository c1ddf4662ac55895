"""Checks of what the user passed to a metric; the other modules of this folder trust them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.frames import as_array, check_same_index
from rankwise.groups import Groups, encode_groups
from rankwise.real_numbers import refuse_masked
from rankwise.targets import as_weights, split_target, split_weighted


def check_data(
    y_true: ArrayLike, y_score: ArrayLike, groups: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], Groups]:
    """Return relevance and scores as finite numeric arrays of fitting shapes, and the groups."""
    y_true, groups = split_target(y_true, groups)  # refuses weights
    return check_weighted_data(y_true, y_score, groups, None)[:3]


def check_weighted_data(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[NDArray[Any], NDArray[Any], Groups, Array | None]:
    """Return what `check_data` does and the weights of the items, None without weights."""
    y_true, groups, weights = split_weighted(y_true, groups, sample_weight)
    check_same_index(y_true=y_true, y_score=y_score, groups=groups, sample_weight=weights)
    y = _as_numbers("y_true", y_true)
    score = _as_numbers("y_score", y_score)
    if len(y) != len(score):
        raise ValueError(
            f"y_true has {len(y)} rows but y_score has {len(score)}; "
            "pass one relevance and one score per item, in the same order."
        )
    if y.shape != score.shape and y.ndim == 2:
        raise ValueError(
            f"y_true has shape {y.shape} but y_score has shape {score.shape}; pass as many "
            "score columns as y_true has, or flatten a single column with .ravel()."
        )
    checked = None if weights is None else as_weights(weights, len(y))
    return y, score, encode_groups(groups, len(y)), checked


def check_cutoff(k: object, *, required: bool = False) -> int | None:
    """Return the cut-off as an int; None means no cut-off, unless one is required."""
    if k is None and not required:
        return None
    if not isinstance(k, numbers.Integral) or isinstance(k, bool) or k <= 0:
        expected = "a whole number of at least 1" + ("" if required else ", or None for no cut-off")
        raise ValueError(f"k={k!r} is not a cut-off; pass {expected}.")
    return int(k)


def _as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    refuse_masked(name, values)
    array = np.asarray(as_array(values))
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} has entries that are not numbers ({error}).") from None
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}; pass real numbers.")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {array.shape}; pass shape (n_items,), or (n_items, n_outputs)."
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); there is nothing to evaluate.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} is {array[where]} in row {where[0]}; metrics need finite numbers, "
            "so leave out the rows that have none, e.g. by mask = np.isfinite(y_true)."
        )
    return array
