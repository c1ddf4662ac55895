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
            weight_of_group: Array = self.sizes.astype(np.float64)
        else:
            weight_of_group = self.sum(weight)
        return group_means(values, self.codes, weight_of_group, weight)

    def center(self, values: Array, weight: Array | None = None) -> Array:
        """Subtract from each value the mean of its group."""
        group_mean_of_item = self.mean(values, weight)[self.codes]
        return np.asarray(values - group_mean_of_item)

    def take(self, rows: Indices) -> Groups:
        """Groups of the items at these positions; groups without such items are dropped."""
        old_codes = self.codes[rows]
        is_present = np.bincount(old_codes, minlength=self.n_groups) > 0
        new_code_of_old = np.cumsum(is_present) - 1  # 0, 1, … for the groups that are present
        return Groups(new_code_of_old[old_codes], self.labels[is_present])

    def rank(self, scores: Numbers, equal: float = 0.0) -> Indices:
        """Competition ranks (1, 2, 2, 4) of the scores in each group, the largest score first.

        Neighbors whose scores differ by at most `equal` share a rank.
        """
        order = np.lexsort((-scores, self.codes))  # by group, then by descending score
        sorted_codes = self.codes[order]
        sorted_scores = scores[order]
        starts_group = np.ones(len(scores), dtype=bool)
        starts_group[1:] = sorted_codes[1:] != sorted_codes[:-1]
        starts_rank = starts_group.copy()  # else the score is equal to the one before
        starts_rank[1:] |= sorted_scores[:-1] - sorted_scores[1:] > equal

        # For each position, the position where its group starts, and where its rank starts
        position = np.arange(len(scores))
        group_start = np.maximum.accumulate(np.where(starts_group, position, 0))
        rank_start = np.maximum.accumulate(np.where(starts_rank, position, 0))
        ranks = np.empty(len(scores), dtype=np.intp)
        ranks[order] = rank_start - group_start + 1
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
        n_groups = min(n_items, 1)  # all items in one group
        return Groups(np.zeros(n_items, dtype=np.intp), np.zeros(n_groups, dtype=np.intp))
    labels = as_array(groups, name)
    if not isinstance(labels, np.ndarray):
        labels = _make_label_array(labels, name)
    if labels.ndim != 1 and labels.shape[1:] != (1,):
        raise ValueError(
            f"{name} has shape {labels.shape}; pass one label per row, shape (n_rows,)."
        )
    labels = labels.reshape(len(labels))
    _check_number_of_labels(labels, n_items, name)
    if labels.dtype == object:
        return _encode_objects(labels, name)
    _check_no_missing_label(labels, name)
    return _encode_runs(labels)


def _encode_runs(labels: Labels) -> Groups:
    """Codes and distinct labels of an array of numbers, dates or text."""
    # np.unique sorts one label of each run of equal labels: fast if groups are contiguous
    n_items = len(labels)
    starts_run = np.ones(n_items, dtype=bool)
    starts_run[1:] = labels[1:] != labels[:-1]
    run_starts = np.flatnonzero(starts_run)
    distinct_labels, code_of_run = np.unique(labels[run_starts], return_inverse=True)
    run_lengths = np.diff(run_starts, append=n_items)
    codes = np.repeat(code_of_run.astype(np.intp, copy=False), run_lengths)
    return Groups(codes, distinct_labels)


def indices_by_group(codes: Numbers) -> list[Indices]:
    """Rows of each group in increasing order; an empty array for a code without rows."""
    order = np.argsort(codes, kind="stable")
    group_ends = np.cumsum(np.bincount(codes))
    return np.split(order, group_ends[:-1])


def group_sums(values: Numbers | None, codes: Indices, n_groups: int) -> Array:
    """Sum of the values of each code in float64; number of items if `values` is None."""
    if values is None or values.ndim == 1:  # without values: the number of items
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
    n_groups = len(total_weight)
    divisor = np.where(total_weight > 0, total_weight, 1.0)  # the mean of no weight is 0
    if values.ndim > 1:
        return _column_sums(values, codes, n_groups, weight) / divisor[:, None]
    weighted_values = values
    if weight is not None:
        weighted_values = weight * values
    return group_sums(weighted_values, codes, n_groups) / divisor


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
    # `scale_rows` writes (values − means of the group) · scale of the group · weight to its fifth
    # argument; it takes matrices, also of one column, and reshaped arrays are views.
    n_items = len(values)
    n_groups = len(scale)
    value_matrix = np.ascontiguousarray(values.reshape(n_items, -1), dtype=np.float64)
    mean_matrix = means.reshape(n_groups, -1)
    out_matrix = out.reshape(n_items, -1)
    scale_rows(value_matrix, codes, mean_matrix, scale, out_matrix, weight)
    return out


def _column_sums(values: Numbers, codes: Indices, n_groups: int, weight: Array | None) -> Array:
    n_items, n_columns = values.shape
    sums: Array = np.zeros((n_groups, n_columns))
    rows = np.ascontiguousarray(values, dtype=np.float64)
    # `add_rows` adds the rows to the sums of their groups; it also adds their products with one
    # more vector, which is zero here.
    unused_factor = np.zeros(n_items)
    unused_products = np.zeros(n_columns)
    add_rows(rows, codes, unused_factor, sums, unused_products, weight)
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

    # Cumulative sums within each run of RUN_LENGTH rows, for all runs side by side
    n_rows_in_runs = n_runs * RUN_LENGTH
    runs = rows[:n_rows_in_runs].reshape(n_runs, RUN_LENGTH, *rows.shape[1:])  # a view
    for position in range(1, RUN_LENGTH):
        runs[:, position] += runs[:, position - 1]

    # Add the sum of all earlier runs to each run.
    sums_of_earlier_runs = runs[:-1, -1].copy()
    cumulate_rows(sums_of_earlier_runs)
    runs[1:] += sums_of_earlier_runs[:, None]

    # The rows after the last whole run
    if n_rows_in_runs < len(rows):
        rows[n_rows_in_runs] += rows[n_rows_in_runs - 1]
        last_rows = rows[n_rows_in_runs:]
        np.cumsum(last_rows, axis=0, out=last_rows)


def _check_number_of_labels(labels: Labels, n_items: int, name: str) -> None:
    if len(labels) == n_items:
        return
    message = f"{name} has {len(labels)} entries but there are {n_items} rows"
    are_counts = labels.dtype.kind in "iu" and (labels >= 0).all()
    if are_counts and labels.sum() == n_items:
        raise ValueError(
            f"{message}. They sum to {n_items}, so these look like group sizes: pass "
            "rankwise.datasets.groups_from_sizes(groups) to get one label per row."
        )
    raise ValueError(f"{message}; pass one label per row.")


def _check_no_missing_label(labels: Labels, name: str) -> None:
    kind = labels.dtype.kind
    if kind in "mM":  # dates and durations
        is_missing = np.isnat(labels)
    elif kind in "fc":  # real and complex numbers
        is_missing = np.isnan(labels)
    else:
        return
    if is_missing.any():
        first_row = int(np.argmax(is_missing))
        _raise_missing_label(first_row, name)


def _make_label_array(groups: ArrayLike, name: str) -> Labels:
    """Labels of a list as an array that keeps different labels different."""
    if isinstance(groups, (list, tuple)):
        if any(isinstance(label, tuple) for label in groups):
            # NumPy would make a matrix of tuples; keep each of them as one label.
            labels = np.empty(len(groups), dtype=object)
            labels[:] = groups
            return labels
        if not _stay_different_in_numpy(groups):
            return np.array(groups, dtype=object)
    try:
        return np.asarray(groups)
    except ValueError:
        raise ValueError(
            f"{name} has entries of different lengths; pass one label per row (tuples, "
            "not lists, for labels of several parts)."
        ) from None


def _stay_different_in_numpy(labels: Sequence[object]) -> bool:
    """Whether different labels of a list stay different in a NumPy array."""
    has_mixed_types = len({type(label) for label in labels}) > 1
    if has_mixed_types:  # NumPy converts 1 and "1" to the same text
        return False
    integers = [label for label in labels if isinstance(label, int)]
    if integers:  # NumPy converts integers beyond 64 bits to floats
        return min(integers) >= -(2**63) and max(integers) < 2**63
    # NumPy drops zero bytes at the end of text.
    texts = (label for label in labels if isinstance(label, (str, bytes)))
    return not any(text[-1:] in ("\0", b"\0") for text in texts)


def _encode_objects(labels: Labels, name: str) -> Groups:
    # Codes in the order of first appearance
    code_of_label: dict[Hashable, int] = {}
    codes = np.empty(len(labels), dtype=np.intp)
    for row, label in enumerate(labels):
        is_nan = label != label
        if label is None or type(label).__name__ == "NAType" or is_nan:
            _raise_missing_label(row, name)
        try:
            codes[row] = code_of_label.setdefault(label, len(code_of_label))
        except TypeError:
            raise ValueError(
                f"{name}[{row}] is a {type(label).__name__}, which is not hashable; "
                "use numbers, strings or tuples as labels."
            ) from None
    n_groups = len(code_of_label)
    distinct_labels = np.empty(n_groups, dtype=object)
    distinct_labels[:] = list(code_of_label)

    # Codes in the order of the labels, as `numpy.unique` returns them
    try:
        codes_by_label = sorted(range(n_groups), key=lambda code: distinct_labels[code])
    except TypeError:  # labels of mixed types keep their order of first appearance
        return Groups(codes, distinct_labels)
    new_code = np.empty(n_groups, dtype=np.intp)
    new_code[codes_by_label] = np.arange(n_groups)
    return Groups(new_code[codes], distinct_labels[codes_by_label])


def _raise_missing_label(row: int, name: str) -> None:
    raise ValueError(
        f"{name} has no label in row {row} (None or NaN); give every row a label, "
        "or drop the rows that have none."
    )
