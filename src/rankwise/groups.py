"""Group labels (queries, users, sentences): any hashable labels in, codes 0..G-1 out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Indices
from rankwise.frames import as_array


class Groups(NamedTuple):
    """Encoded group labels.

    Attributes
    ----------
    codes : ndarray of shape (n_items,), dtype intp
        ``labels[codes]`` gives the labels back.
    labels : ndarray of shape (n_groups,)
        The distinct labels: sorted where they can be sorted, else in order of first appearance.
    """

    codes: Indices
    labels: NDArray[Any]

    @property
    def n_groups(self) -> int:
        """Number of distinct groups."""
        return len(self.labels)

    @property
    def sizes(self) -> Indices:
        """Number of items in each group."""
        return np.bincount(self.codes, minlength=self.n_groups)


def encode_groups(groups: ArrayLike | None, n_items: int, name: str = "groups") -> Groups:
    """Encode one label per row as integers ``0 .. n_groups - 1``.

    Parameters
    ----------
    groups : array-like of shape (n_items,) or None
        Any hashable labels in any order; None puts all items in one group.
    n_items : int
        The number of rows that the labels must match.
    name : str
        Name of the argument in error messages.

    Returns
    -------
    Groups
        Codes and distinct labels.

    Examples
    --------
    >>> encode_groups(["b", "a", "b"], 3).codes
    array([1, 0, 1])
    """
    if isinstance(groups, str):
        raise ValueError(
            f'{name}={groups!r} is the name of a column; pass its values: {name}=frame["{groups}"].'
        )
    if groups is None:
        return Groups(np.zeros(n_items, dtype=np.intp), np.zeros(min(n_items, 1), dtype=np.intp))
    labels = as_array(groups, name)
    labels = labels if isinstance(labels, np.ndarray) else _array_of_labels(labels, name)
    if labels.ndim != 1 and labels.shape[1:] != (1,):
        raise ValueError(
            f"{name} has shape {labels.shape}; pass one label per row, shape (n_rows,)."
        )
    labels = labels.reshape(len(labels))
    if len(labels) != n_items:
        message = f"{name} has {len(labels)} entries but there are {n_items} rows"
        if labels.dtype.kind in "iu" and (labels >= 0).all() and labels.sum() == n_items:
            raise ValueError(
                f"{message}. They sum to {n_items}, so these look like group sizes: pass "
                "rankwise.datasets.groups_from_sizes(groups) to get one label per row."
            )
        raise ValueError(f"{message}; pass one label per row.")
    if labels.dtype == object:
        return _encode_objects(labels, name)
    if labels.dtype.kind in "fcmM":
        missing = np.isnat(labels) if labels.dtype.kind in "mM" else np.isnan(labels)
        if missing.any():
            _raise_missing(int(np.argmax(missing)), name)
    # sort only the first label of each run of equal ones: cheap where groups are contiguous
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]][:n_items])
    distinct, codes = np.unique(labels[starts], return_inverse=True)
    lengths = np.diff(np.r_[starts, n_items])
    return Groups(np.repeat(codes.astype(np.intp, copy=False), lengths), distinct)


def indices_by_group(codes: Indices) -> list[Indices]:
    """The rows of each group, in rising order; none for a number that no row has."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])


def groups_from_sizes(sizes: ArrayLike, n_items: int | None = None) -> Indices:
    """Turn group sizes, as LightGBM and XGBoost take them, into one label per row.

    Parameters
    ----------
    sizes : array-like of int
        Number of consecutive rows in each group.
    n_items : int, optional
        If given, the sizes must sum to it.

    Returns
    -------
    ndarray of shape (sum of sizes,)
        ``[0, 0, ..., 1, 1, ...]``.

    Examples
    --------
    >>> groups_from_sizes([2, 3])
    array([0, 0, 1, 1, 1])
    """
    array = np.asarray(as_array(sizes, "sizes"))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"sizes must be a flat list of whole numbers, got {array.dtype} of shape "
            f"{array.shape}; pass the number of rows of each group."
        )
    if (array < 0).any():
        where = int(np.argmax(array < 0))
        raise ValueError(
            f"sizes[{where}] is {array[where]}; a group cannot have fewer than 0 rows."
        )
    if n_items is not None and array.sum() != n_items:
        raise ValueError(
            f"the group sizes sum to {array.sum()} but there are {n_items} rows; "
            "each row must belong to exactly one group."
        )
    return np.repeat(np.arange(len(array), dtype=np.intp), array)


def _array_of_labels(groups: Any, name: str) -> NDArray[Any]:
    """The labels of a list, different ones kept apart."""
    is_list = isinstance(groups, (list, tuple))
    if is_list and any(isinstance(label, tuple) for label in groups):
        labels: NDArray[Any] = np.empty(len(groups), dtype=object)
        labels[:] = groups
        return labels
    if is_list and not _keeps_labels_apart(groups):
        return np.array(groups, dtype=object)
    try:
        return np.asarray(groups)
    except ValueError:
        raise ValueError(
            f"{name} has entries of different lengths; pass one label per row (tuples, "
            "not lists, for labels of several parts)."
        ) from None


def _keeps_labels_apart(groups: Sequence[Any]) -> bool:
    """Whether different labels of a list stay different in an array.

    NumPy turns mixed labels into text, whole numbers beyond 64 bits into floats, and drops the zero
    bytes at the end of a text.
    """
    if len({type(label) for label in groups}) > 1:
        return False
    if groups and isinstance(groups[0], int):
        return bool(min(groups) >= -(2**63) and max(groups) < 2**63)
    words = (label for label in groups if isinstance(label, (str, bytes)))
    return not any(word[-1:] in ("\0", b"\0") for word in words)


def _encode_objects(labels: NDArray[Any], name: str) -> Groups:
    code_of: dict[Any, int] = {}
    codes = np.empty(len(labels), dtype=np.intp)
    for row, label in enumerate(labels):
        if label is None or type(label).__name__ == "NAType" or label != label:
            _raise_missing(row, name)
        try:
            codes[row] = code_of.setdefault(label, len(code_of))
        except TypeError:
            raise ValueError(
                f"{name}[{row}] is a {type(label).__name__}, which is not hashable; "
                "use numbers, strings or tuples as labels."
            ) from None
    distinct = np.empty(len(code_of), dtype=object)
    distinct[:] = list(code_of)
    try:
        order = sorted(range(len(distinct)), key=lambda code: distinct[code])
    except TypeError:  # labels of mixed types keep their order of appearance
        return Groups(codes, distinct)
    position = np.empty(len(distinct), dtype=np.intp)
    position[order] = np.arange(len(distinct))
    return Groups(position[codes], distinct[order])


def _raise_missing(row: int, name: str) -> None:
    raise ValueError(
        f"{name} has no label in row {row} (None or NaN); give every row a label, "
        "or drop the rows that have none."
    )
