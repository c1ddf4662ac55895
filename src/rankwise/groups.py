"""Groups of items (queries, users, sentences): labels, codes, and arithmetic by group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankwise._compiled import add_rows, scale_rows
from rankwise.arrays import Array, Indices, Labels, Numbers
from rankwise.caching import cached_property
from rankwise.frames import as_array

RUN_LENGTH = 8  # rows of a run in `cumulate_rows`


@dataclass(frozen=True, eq=False)
class Groups:
    """Items in groups, with sums, means and ranks by group.

    Attributes
    ----------
    codes : ndarray of shape (n_items,), dtype intp
        Number of the group of each item; ``labels[codes]`` gives the labels back.
    labels : ndarray of shape (n_groups,)
        The distinct labels, sorted if they can be sorted, else in order of first appearance.

    Examples
    --------
    >>> groups = encode_groups(["b", "a", "b"], 3)
    >>> groups.sum(np.array([1.0, 2.0, 5.0]))
    array([2., 6.])
    >>> groups.center(np.array([1.0, 2.0, 5.0]))
    array([-2.,  0.,  2.])
    >>> groups.rank(np.array([1.0, 2.0, 5.0]))
    array([2, 1, 1])
    """

    codes: Indices
    labels: Labels

    @property
    def n_groups(self) -> int:
        """Number of distinct groups."""
        return len(self.labels)

    @cached_property
    def sizes(self) -> Indices:
        """Number of items in each group."""
        return np.bincount(self.codes, minlength=self.n_groups)

    @cached_property
    def order(self) -> Indices:
        """Items sorted by group; within a group in increasing order."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def starts(self) -> Indices:
        """Position in `order` of the first item of each group."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def item_labels(self) -> Labels:
        """Label of the group of each item."""
        return np.asarray(self.labels[self.codes])

    def sum(self, values: Array) -> Array:
        """Sum of the values in each group, shape (n_groups,) or (n_groups, n_columns)."""
        return group_sums(values, self.codes, self.n_groups)

    def mean(self, values: Array, weight: Array | None = None) -> Array:
        """Mean of the values in each group, weighted if `weight` is passed; 0 for no weight."""
        if weight is None:
            total: Array = self.sizes.astype(np.float64)
        else:
            total = self.sum(weight)
        return group_means(values, self.codes, total, weight)

    def center(self, values: Array, weight: Array | None = None) -> Array:
        """Subtract from each value the mean of its group."""
        return np.asarray(values - self.mean(values, weight)[self.codes])

    def take(self, rows: Indices) -> Groups:
        """Groups of the items at these positions; groups without such items are dropped."""
        codes = self.codes[rows]
        is_present = np.bincount(codes, minlength=self.n_groups) > 0
        new_code = np.cumsum(is_present) - 1
        return Groups(new_code[codes], self.labels[is_present])

    def rank(self, scores: Numbers, equal: float = 0.0) -> Indices:
        """Competition ranks (1, 2, 2, 4) of the scores in each group, the largest score first.

        Neighbors whose scores differ by at most `equal` share a rank.
        """
        order = np.lexsort((-scores, self.codes))
        sorted_codes = self.codes[order]
        sorted_scores = scores[order]
        position = np.arange(len(scores))
        starts_group = np.r_[True, sorted_codes[1:] != sorted_codes[:-1]]
        is_lower = np.r_[True, sorted_scores[:-1] - sorted_scores[1:] > equal]
        starts_rank = starts_group | is_lower
        first_of_group = np.maximum.accumulate(np.where(starts_group, position, 0))
        first_of_rank = np.maximum.accumulate(np.where(starts_rank, position, 0))
        ranks = np.empty(len(scores), dtype=np.intp)
        ranks[order] = first_of_rank - first_of_group + 1
        return ranks


def encode_groups(groups: ArrayLike | None, n_items: int, name: str = "groups") -> Groups:
    """Encode one label per row as integers ``0 .. n_groups - 1``.

    Parameters
    ----------
    groups : array-like of shape (n_items,) or None
        Any hashable labels in any order; None puts all items in one group.
    n_items : int
        Number of rows that the labels must match.
    name : str, default="groups"
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
    if not isinstance(labels, np.ndarray):
        labels = _array_of_labels(labels, name)
    if labels.ndim != 1 and labels.shape[1:] != (1,):
        raise ValueError(
            f"{name} has shape {labels.shape}; pass one label per row, shape (n_rows,)."
        )
    labels = labels.reshape(len(labels))
    _check_number_of_labels(labels, n_items, name)
    if labels.dtype == object:
        return _encode_objects(labels, name)
    _check_no_missing_label(labels, name)
    # np.unique sorts one label of each run of equal labels: fast if groups are contiguous
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]][:n_items])
    distinct, codes = np.unique(labels[starts], return_inverse=True)
    lengths = np.diff(np.r_[starts, n_items])
    return Groups(np.repeat(codes.astype(np.intp, copy=False), lengths), distinct)


def indices_by_group(codes: Indices) -> list[Indices]:
    """Rows of each group in increasing order; an empty array for a code without rows."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])


def group_sums(values: Numbers | None, codes: Indices, n_groups: int) -> Array:
    """Sum of the values of each code in float64; number of items if `values` is None."""
    if values is None or values.ndim == 1:
        sums = np.bincount(codes, weights=values, minlength=n_groups)
        return sums.astype(np.float64, copy=False)
    return _column_sums(values, codes, n_groups, None)


def group_means(
    values: Numbers, codes: Indices, total_weight: Array, weight: Array | None = None
) -> Array:
    """Sum of ``weight * values`` of each code divided by `total_weight`; 0 if that is 0.

    Parameters
    ----------
    values : ndarray of shape (n_items,) or (n_items, n_columns)
        Numbers.
    codes : ndarray of shape (n_items,)
        Number of the group of each item.
    total_weight : ndarray of shape (n_groups,)
        Divisor of each group: its number of items, or the sum of their weights.
    weight : ndarray of shape (n_items,), optional
        Weights of the items; 1 if not given.
    """
    divisor = np.where(total_weight > 0, total_weight, 1.0)
    if values.ndim == 1:
        weighted = values
        if weight is not None:
            weighted = weight * values
        return group_sums(weighted, codes, len(divisor)) / divisor
    return _column_sums(values, codes, len(divisor), weight) / divisor[:, None]


def group_center(
    values: Numbers,
    codes: Indices,
    means: Array,
    scale: Array,
    out: Array | None = None,
    weight: Array | None = None,
) -> Array:
    """``weight * scale * (values − mean)`` with the mean and scale of each item's group.

    The result is written to `out` if given, which may be `values`.
    """
    if out is None:
        out = np.empty(values.shape)
    rows = np.ascontiguousarray(values.reshape(len(values), -1), dtype=np.float64)
    columns_of_means = means.reshape(len(scale), -1)
    scale_rows(rows, codes, columns_of_means, scale, out.reshape(len(out), -1), weight)
    return out


def _column_sums(values: Numbers, codes: Indices, n_groups: int, weight: Array | None) -> Array:
    n_items, n_columns = values.shape
    sums: Array = np.zeros((n_groups, n_columns))
    rows = np.ascontiguousarray(values, dtype=np.float64)
    unused_moment = np.zeros(n_columns)
    add_rows(rows, codes, np.zeros(n_items), sums, unused_moment, weight)
    return sums


def cumulate_rows(rows: Array) -> None:
    """Replace rows by the sums of the rows up to each: ``numpy.cumsum(rows, axis=0, out=rows)``.

    For matrices this is several times faster than `numpy.cumsum`: runs of rows are added up side
    by side, and then the sums of the runs.
    """
    n_runs = len(rows) // RUN_LENGTH
    if rows.ndim == 1 or n_runs < 2:
        np.cumsum(rows, axis=0, out=rows)
        return
    end = n_runs * RUN_LENGTH
    runs = rows[:end].reshape(n_runs, RUN_LENGTH, *rows.shape[1:])
    for k in range(1, RUN_LENGTH):
        runs[:, k] += runs[:, k - 1]
    totals = runs[:-1, -1].copy()
    cumulate_rows(totals)
    runs[1:] += totals[:, None]
    if end < len(rows):
        rows[end] += rows[end - 1]
        np.cumsum(rows[end:], axis=0, out=rows[end:])


def groups_from_sizes(sizes: ArrayLike, n_items: int | None = None) -> Indices:
    """Convert group sizes, the format of LightGBM and XGBoost, to one label per row.

    Parameters
    ----------
    sizes : array-like of int
        Number of consecutive rows in each group.
    n_items : int, optional
        Expected sum of the sizes; not checked if None.

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
        position = int(np.argmax(array < 0))
        raise ValueError(
            f"sizes[{position}] is {array[position]}; a group cannot have fewer than 0 rows."
        )
    if n_items is not None and array.sum() != n_items:
        raise ValueError(
            f"the group sizes sum to {array.sum()} but there are {n_items} rows; "
            "each row must belong to exactly one group."
        )
    return np.repeat(np.arange(len(array), dtype=np.intp), array)


def _check_number_of_labels(labels: Labels, n_items: int, name: str) -> None:
    if len(labels) == n_items:
        return
    message = f"{name} has {len(labels)} entries but there are {n_items} rows"
    if labels.dtype.kind in "iu" and (labels >= 0).all() and labels.sum() == n_items:
        raise ValueError(
            f"{message}. They sum to {n_items}, so these look like group sizes: pass "
            "rankwise.datasets.groups_from_sizes(groups) to get one label per row."
        )
    raise ValueError(f"{message}; pass one label per row.")


def _check_no_missing_label(labels: Labels, name: str) -> None:
    kind = labels.dtype.kind
    if kind in "mM":
        missing = np.isnat(labels)
    elif kind in "fc":
        missing = np.isnan(labels)
    else:
        return
    if missing.any():
        _raise_missing(int(np.argmax(missing)), name)


def _array_of_labels(groups: ArrayLike, name: str) -> Labels:
    """Labels of a list as an array in which different labels stay different."""
    if isinstance(groups, (list, tuple)):
        if any(isinstance(label, tuple) for label in groups):
            labels = np.empty(len(groups), dtype=object)
            labels[:] = groups
            return labels
        if not _keeps_labels_apart(groups):
            return np.array(groups, dtype=object)
    try:
        return np.asarray(groups)
    except ValueError:
        raise ValueError(
            f"{name} has entries of different lengths; pass one label per row (tuples, "
            "not lists, for labels of several parts)."
        ) from None


def _keeps_labels_apart(groups: Sequence[object]) -> bool:
    """Whether different labels of a list stay different in a NumPy array.

    NumPy converts mixed labels to text and integers beyond 64 bits to floats, and drops trailing
    zero bytes of text.
    """
    if len({type(label) for label in groups}) > 1:
        return False
    integers = [label for label in groups if isinstance(label, int)]
    if integers:
        return min(integers) >= -(2**63) and max(integers) < 2**63
    words = (label for label in groups if isinstance(label, (str, bytes)))
    return not any(word[-1:] in ("\0", b"\0") for word in words)


def _encode_objects(labels: Labels, name: str) -> Groups:
    code_of: dict[Hashable, int] = {}
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
    except TypeError:  # labels of mixed types keep their order of first appearance
        return Groups(codes, distinct)
    sorted_code = np.empty(len(distinct), dtype=np.intp)
    sorted_code[order] = np.arange(len(distinct))
    return Groups(sorted_code[codes], distinct[order])


def _raise_missing(row: int, name: str) -> None:
    raise ValueError(
        f"{name} has no label in row {row} (None or NaN); give every row a label, "
        "or drop the rows that have none."
    )
