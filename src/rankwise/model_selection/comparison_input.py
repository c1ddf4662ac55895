"""Read the values passed to `compare`: mappings, and data frames in three layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets import TrecRun
from rankwise.errors import warn_user
from rankwise.formatting import join_words
from rankwise.frames import DataFrame, as_array, check_same_index, frame_columns
from rankwise.groups import encode_groups
from rankwise.metrics.shared_items import ComparedItems
from rankwise.validation import check_float_array

ARM_NAMES = ("model", "system", "ranker", "arm", "method", "algorithm", "run")
FEWEST_TO_JUDGE = 3  # rows and columns from which the layout of a frame is examined

ClusterInput: TypeAlias = "ArrayLike | Mapping[str, object]"
CompareInput: TypeAlias = "Mapping[str, ArrayLike] | DataFrame"


class Column(Protocol):
    """A column of a data frame."""

    def to_list(self) -> list[object]:
        """Return the cells."""


@dataclass(frozen=True)
class ComparisonColumns:
    """Columns of a long frame.

    Attributes
    ----------
    arm, group, score : str
        Columns of the compared rankers, of the groups and of the values.
    seed, cluster : str or None
        Columns of repetitions and of groups that belong together.
    """

    arm: str
    group: str
    score: str
    seed: str | None = None
    cluster: str | None = None


@dataclass(frozen=True)
class PairedValues:
    """Values of rankers in the same groups.

    Attributes
    ----------
    values : dict from name to ndarray of shape (n_seeds, n_groups)
        Values; a ranker without seeds has one row.
    labels : sequence of groups or None
        Names of the groups, if they are known.
    clusters : ndarray of int, shape (n_groups,), or None
        Cluster of each group.
    n_dropped : int
        Groups dropped because a ranker has no value.
    items : ComparedItems or None
        The two items of each group, if groups are comparisons.
    """

    values: dict[str, Array]
    labels: NDArray[np.object_] | None
    clusters: Indices | None
    n_dropped: int = 0
    items: ComparedItems | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(next(iter(self.values.values())).shape[1])

    @property
    def has_seeds(self) -> bool:
        """Whether a ranker has values for several seeds."""
        return any(len(array) > 1 for array in self.values.values())

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None without clusters."""
        if self.clusters is None:
            return None
        return int(self.clusters.max()) + 1

    @property
    def n_items(self) -> int | None:
        """Number of items that the groups compare; None if groups share no items."""
        if self.items is None:
            return None
        return self.items.n_items

    def with_clusters(self, clusters: ClusterInput | None) -> PairedValues:
        """Return the values with the cluster of each group, by position or by the group's name."""
        if clusters is None:
            return self
        n_groups = self.n_groups
        if self.labels is not None and hasattr(clusters, "iloc"):
            _check_order_of_index(clusters, list(self.labels))
        if isinstance(clusters, Mapping):
            if self.labels is None:
                raise ValueError(
                    "clusters is a mapping, but the groups have no names; pass a list."
                )
            missing = [str(label) for label in self.labels if label not in clusters]
            if missing:
                raise ValueError(f"clusters has no entry for {join_words(missing)}.")
            labels = [clusters[label] for label in self.labels]
        else:
            labels = np.atleast_1d(as_array(clusters)).tolist()
        if len(labels) != n_groups:
            raise ValueError(
                f"clusters has {len(labels)} labels; expected one for each of {n_groups} groups."
            )
        return replace(self, clusters=_encode_labels(labels))

    def with_items(self, items: ArrayLike | None) -> PairedValues:
        """Return the values with the two items that each group compares."""
        if items is None:
            return self
        if self.clusters is not None:
            raise ValueError(
                "items= and clusters= both define which groups are dependent; pass one of them."
            )
        items_of_group = np.asarray(as_array(items, "items"))
        if items_of_group.shape != (self.n_groups, 2):
            raise ValueError(
                f"items has shape {items_of_group.shape}; expected the two items of each of the "
                f"{self.n_groups} groups."
            )
        codes = np.unique(items_of_group.astype(str), return_inverse=True)[1].reshape(-1, 2)
        return replace(self, items=ComparedItems(codes[:, 0], codes[:, 1]))

    def complete(self) -> PairedValues:
        """Return the groups in which every ranker and seed has a value."""
        all_values = np.vstack(list(self.values.values()))
        is_defined: NDArray[np.bool_] = np.all(np.isfinite(all_values), axis=0)
        n_groups = is_defined.size
        if not is_defined.any():
            raise ValueError(
                f"no group can be compared: each of the {n_groups} groups has nan for a ranker."
            )
        labels = self.labels
        if labels is not None:
            labels = labels[is_defined]
        clusters = self.clusters
        if clusters is not None:
            clusters = np.unique(clusters[is_defined], return_inverse=True)[1]
        items = self.items
        if items is not None:
            items = items.take(np.flatnonzero(is_defined))
        return PairedValues(
            values={name: array[:, is_defined] for name, array in self.values.items()},
            labels=labels,
            clusters=clusters,
            n_dropped=n_groups - int(is_defined.sum()),
            items=items,
        )


def read_values(
    values: CompareInput,
    columns: ComparisonColumns | None,
    arm: str | None,
    clusters: ClusterInput | None,
) -> PairedValues:
    """Read the values of `compare` in one of its layouts.

    Parameters
    ----------
    values : mapping or data frame
        The argument `values` of `compare`.
    columns : ComparisonColumns or None
        Columns of a long frame.
    arm : str or None
        Column with the names of rankers of a frame with one row per ranker.
    clusters : array-like, mapping or None
        Cluster of each group.
    """
    if columns is not None:
        paired = _read_long(_columns_of(values), columns)
    elif isinstance(values, Mapping):
        named_inputs = {str(name): entries for name, entries in values.items()}
        check_same_index(**{**named_inputs, "clusters": clusters})
        paired = PairedValues(_read_arrays(values), None, None)
    else:
        paired = _read_wide(values, arm)
    return paired.with_clusters(clusters)


def _columns_of(values: CompareInput) -> dict[str, Column]:
    columns = None
    if not isinstance(values, Mapping):
        columns = frame_columns(values)
    if columns is None:
        raise ValueError(
            "compare needs a mapping with at least two rankers, {name: values by group}, or a data "
            "frame."
        )
    return columns


def _check_order_of_index(clusters: Any, group_names: list[Any]) -> None:
    """Raise a ValueError if the index of a Series names the groups in another order."""
    index = clusters.index.tolist()
    if index != group_names and sorted(map(str, index)) == sorted(map(str, group_names)):
        raise ValueError(
            "the index of clusters has the names of the groups, but in another order. Clusters are "
            "matched by position, not by the index: pass clusters.to_dict() to match them by name."
        )


def _read_arrays(values: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Values by name, shape (n_seeds, n_groups); the groups of all rankers are the same."""
    if len(values) < 2:
        raise ValueError(
            "compare needs a mapping with at least two rankers, {name: values by group}."
        )
    arrays: dict[str, Array] = {}
    for name, entries in values.items():
        if isinstance(entries, (Mapping, TrecRun, str, PathLike)):
            raise ValueError(
                f"{str(name)!r} is a {type(entries).__name__}, like a retrieval run; pass the "
                "relevance judgments as qrels= to compare runs, or an array of values by group."
            )
        array = check_float_array(str(name), entries)
        if np.isinf(array).any():
            raise ValueError(
                f"the values of {str(name)!r} contain infinity; expected finite numbers, or nan "
                "where a group has no value."
            )
        if array.ndim not in (1, 2) or 0 in array.shape[:-1]:
            raise ValueError(
                f"the values of {str(name)!r} have shape {array.shape}; expected (n_groups,) or "
                "(n_seeds, n_groups), such as the result of metric(..., per_group=True)."
            )
        arrays[str(name)] = np.atleast_2d(array)
    sizes = {name: array.shape[1] for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the rankers have different numbers of groups: {sizes}.")
    return arrays


def _read_wide(frame: CompareInput, arm: str | None) -> PairedValues:
    """Read a frame with one column per ranker, or with one row per ranker."""
    columns = _columns_of(frame)
    row_names = _index_names(frame)
    rows_are_rankers = _lowercase_name_of_index(frame) in ARM_NAMES
    if arm is None:
        arm = _column_of_ranker_names(columns)
    if arm is not None:
        if arm not in columns:
            raise ValueError(f"arm={arm!r} is not a column of the frame: {join_words(columns)}.")
        row_names = [str(cell) for cell in columns.pop(arm).to_list()]
        rows_are_rankers = True
    _refuse_text(columns)
    if rows_are_rankers and row_names is not None:
        return _read_one_row_per_ranker(row_names, columns)
    arrays = _read_arrays({name: as_array(column) for name, column in columns.items()})
    labels = None
    if row_names is not None:
        _warn_if_columns_look_like_groups(arrays)
        labels = np.array(row_names, dtype=object)
    return PairedValues(arrays, labels, None)


def _column_of_ranker_names(columns: Mapping[str, Column]) -> str | None:
    """The first column of text with a title such as "model"; None if there is none."""
    for name, column in columns.items():
        if name.lower() in ARM_NAMES and _is_text(column):
            return name
    return None


def _read_one_row_per_ranker(names: list[str], columns: Mapping[str, Column]) -> PairedValues:
    """Values of a frame with one row per ranker and one column per group."""
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(
            f"the ranker {sorted(repeated)[0]!r} has several rows; for a frame with one row per "
            "ranker and group pass arm=, group= and score=."
        )
    by_group = np.array([check_float_array(name, as_array(columns[name])) for name in columns])
    values = dict(zip(names, by_group.T, strict=True))
    group_names = np.array(list(columns), dtype=object)
    return PairedValues(_read_arrays(values), group_names, None)


def _refuse_text(columns: Mapping[str, Column]) -> None:
    text_columns = [name for name, column in columns.items() if _is_text(column)]
    if text_columns:
        raise ValueError(
            f"the columns {join_words(text_columns)} contain text. For a frame with one row per "
            "ranker and group pass arm=, group= and score=; for one row per ranker pass arm=, the "
            "column of their names."
        )


def _is_text(column: Column) -> bool:
    cells = [cell for cell in column.to_list() if cell is not None]
    return any(isinstance(cell, str) for cell in cells)


def _index_names(frame: CompareInput) -> list[str] | None:
    """Names in the index of a pandas frame; None if the index has numbers."""
    index = getattr(frame, "index", None)
    if index is None or callable(index):
        return None
    names = list(index)
    if not all(isinstance(name, str) for name in names):
        return None
    return names


def _lowercase_name_of_index(frame: CompareInput) -> str:
    """Name of the index of a pandas frame in lower case."""
    index = getattr(frame, "index", None)
    return str(getattr(index, "name", "")).lower()


def _warn_if_columns_look_like_groups(arrays: dict[str, Array]) -> None:
    """Warn if columns differ more than named rows, which suggests that the columns are tasks."""
    values = np.vstack(list(arrays.values()))  # (n_columns, n_rows)
    n_columns, n_rows = values.shape
    is_too_small = min(n_columns, n_rows) < FEWEST_TO_JUDGE
    is_missing = np.isnan(values)
    if is_too_small or is_missing.all(axis=0).any() or is_missing.all(axis=1).any():
        return
    spread_of_columns = np.nanmean(values, axis=1).std()
    spread_of_rows = np.nanmean(values, axis=0).std()
    if spread_of_columns > spread_of_rows:
        warn_user(
            f"the {n_columns} columns of the frame are compared, over {n_rows} rows, "
            "but the columns differ more than the rows do, as tasks would. If the rows are the "
            "rankers, pass frame.T, or name the index 'model'."
        )


def _read_long(columns: Mapping[str, Column], names: ComparisonColumns) -> PairedValues:
    """Read a frame with one row per ranker and group, or per ranker, group and seed."""
    for argument, name in vars(names).items():
        if name is not None and name not in columns:
            raise ValueError(
                f"{argument}={name!r} is not a column of the frame: {join_words(columns)}."
            )
    scores = check_float_array(names.score, as_array(columns[names.score]))
    n_rows = len(scores)
    arms = encode_groups(as_array(columns[names.arm]), n_rows, names.arm)
    groups = encode_groups(as_array(columns[names.group]), n_rows, names.group)
    seed_codes = np.zeros(n_rows, dtype=np.intp)
    if names.seed is not None:
        seed_codes = encode_groups(as_array(columns[names.seed]), n_rows, names.seed).codes
    if len(arms.labels) < 2:
        raise ValueError(f"the column {names.arm!r} names one ranker only; compare needs two.")

    values = {}
    for code, label in enumerate(arms.labels):
        arm = str(label)  # NumPy cannot convert tuples, and cuts a final NUL from a text
        rows = np.flatnonzero(arms.codes == code)
        cells = LongCells(scores[rows], seed_codes[rows], groups.codes[rows])
        values[arm] = _values_by_seed(cells, arm, groups.labels, has_seeds=names.seed is not None)

    clusters = None
    if names.cluster is not None:
        cluster_of_row = columns[names.cluster].to_list()
        clusters = _clusters_of_groups(cluster_of_row, groups.codes, names.cluster)
    return PairedValues(values, np.array(groups.labels, dtype=object), clusters)


class LongCells(NamedTuple):
    """Rows of one ranker in a long frame: scores, and numbers of their seeds and groups."""

    scores: Array
    seed: Indices
    group: Indices


def _values_by_seed(
    cells: LongCells, arm: str, group_labels: NDArray[np.generic], *, has_seeds: bool
) -> Array:
    """Scores of one ranker by its seeds and all groups; NaN where it has none."""
    n_groups = len(group_labels)
    seeds, seed_of_row = np.unique(cells.seed, return_inverse=True)
    cell_of_row = seed_of_row * n_groups + cells.group
    _refuse_repeated_cells(cell_of_row, arm, group_labels, has_seeds=has_seeds)
    values = np.full(len(seeds) * n_groups, np.nan)
    values[cell_of_row] = cells.scores
    return values.reshape(len(seeds), n_groups)


def _refuse_repeated_cells(
    cell_of_row: Indices, arm: str, groups: NDArray[np.generic], *, has_seeds: bool
) -> None:
    """Raise a ValueError if a ranker has several values in a group and seed."""
    # A cell is a seed and a group: its number is seed · n_groups + group
    cells, n_values = np.unique(cell_of_row, return_counts=True)
    repeated = np.flatnonzero(n_values > 1)
    if not len(repeated):
        return
    first_repeated = repeated[0]
    group = groups[cells[first_repeated] % len(groups)]
    remedy = "name the column that distinguishes them (seed='fold'), or average them"
    if has_seeds:
        remedy = "the column of seed= must distinguish them"
    raise ValueError(
        f"ranker {arm!r} has {n_values[first_repeated]} values in the group {str(group)!r}; "
        f"{remedy}."
    )


def _clusters_of_groups(
    cluster_of_row: list[object], group_of_row: Indices, column: str
) -> Indices:
    """Cluster of each group; a ValueError if a group is in two."""
    cluster_of_group: dict[int, object] = {}
    for group, cluster in zip(group_of_row.tolist(), cluster_of_row, strict=True):
        first_cluster = cluster_of_group.setdefault(group, cluster)
        if first_cluster != cluster:
            raise ValueError(
                f"cluster={column!r}: a group is in the clusters {first_cluster!r} and {cluster!r}."
            )
    labels = [cluster_of_group[group] for group in sorted(cluster_of_group)]
    return _encode_labels(labels)


def _encode_labels(labels: Iterable[object]) -> Indices:
    """Codes 0, 1, … of labels in the order of their first appearance."""
    code_of_label: dict[object, int] = {}
    codes = []
    for label in labels:
        next_code = len(code_of_label)
        codes.append(code_of_label.setdefault(label, next_code))
    return np.array(codes, dtype=np.intp)
