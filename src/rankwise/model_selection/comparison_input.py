"""Read the values that `compare` gets: mappings, and data frames in three layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets import TrecRun
from rankwise.errors import warn_user
from rankwise.formatting import join_words
from rankwise.frames import DataFrame, as_array, frame_columns
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
        return replace(self, clusters=_encode(labels))

    def with_items(self, items: ArrayLike | None) -> PairedValues:
        """Return the values with the two items that each group compares."""
        if items is None:
            return self
        if self.clusters is not None:
            raise ValueError("items= and clusters= both say which groups depend; pass one of them.")
        sides = np.asarray(as_array(items, "items"))
        if sides.shape != (self.n_groups, 2):
            raise ValueError(
                f"items has shape {sides.shape}; expected the two items of each of the "
                f"{self.n_groups} groups."
            )
        codes = np.unique(sides.astype(str), return_inverse=True)[1].reshape(-1, 2)
        return replace(self, items=ComparedItems(codes[:, 0], codes[:, 1]))

    def complete(self) -> PairedValues:
        """Return the groups in which every ranker and seed has a value."""
        arrays = list(self.values.values())
        is_defined: NDArray[np.bool_] = np.all(np.isfinite(np.vstack(arrays)), axis=0)
        n_groups = is_defined.size
        if not is_defined.any():
            raise ValueError(
                f"no group can be compared: in each of the {n_groups} groups a ranker has nan."
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
            {name: array[:, is_defined] for name, array in self.values.items()},
            labels,
            clusters,
            n_groups - int(is_defined.sum()),
            items,
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
        What `compare` got.
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
    index_is_of_arms = _index_title(frame) in ARM_NAMES
    if arm is None:
        titles = [name for name in columns if name.lower() in ARM_NAMES and _is_text(columns[name])]
        if titles:
            arm = titles[0]
    if arm is not None:
        if arm not in columns:
            raise ValueError(f"arm={arm!r} is not a column of the frame: {join_words(columns)}.")
        row_names = [str(cell) for cell in columns.pop(arm).to_list()]
        index_is_of_arms = True
    _refuse_text(columns)
    if index_is_of_arms and row_names is not None:
        return _rows_are_rankers(row_names, columns)
    arrays = _read_arrays({name: as_array(column) for name, column in columns.items()})
    if row_names is not None:
        _warn_if_columns_look_like_groups(arrays)
    labels = None
    if row_names is not None:
        labels = np.array(row_names, dtype=object)
    return PairedValues(arrays, labels, None)


def _rows_are_rankers(names: list[str], columns: Mapping[str, Column]) -> PairedValues:
    """Values of a frame with one row per ranker and one column per group."""
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(
            f"the ranker {sorted(repeated)[0]!r} has several rows; for a frame with one row per "
            "ranker and group pass arm=, group= and score=."
        )
    matrix = np.array([check_float_array(name, as_array(columns[name])) for name in columns])
    values = dict(zip(names, matrix.T, strict=True))
    return PairedValues(_read_arrays(values), np.array(list(columns), dtype=object), None)


def _refuse_text(columns: Mapping[str, Column]) -> None:
    words = [name for name, column in columns.items() if _is_text(column)]
    if words:
        raise ValueError(
            f"the columns {join_words(words)} contain words. For a frame with one row per ranker "
            "and group pass arm=, group= and score=; for one row per ranker pass arm=, the column "
            "of their names."
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


def _index_title(frame: CompareInput) -> str:
    """Name of the index of a pandas frame in lower case."""
    index = getattr(frame, "index", None)
    return str(getattr(index, "name", "")).lower()


def _warn_if_columns_look_like_groups(arrays: dict[str, Array]) -> None:
    """Warn if columns differ more than named rows, as tasks do and rankers rarely."""
    matrix = np.vstack(list(arrays.values()))
    if min(matrix.shape) < FEWEST_TO_JUDGE or np.isnan(matrix).all(axis=0).any():
        return
    if np.isnan(matrix).all(axis=1).any():
        return
    of_columns = np.nanmean(matrix, axis=1).std()
    of_rows = np.nanmean(matrix, axis=0).std()
    if of_columns > of_rows:
        warn_user(
            f"the {len(matrix)} columns of the frame are compared, over {matrix.shape[1]} rows, "
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
    arms = encode_groups(as_array(columns[names.arm]), len(scores), names.arm)
    groups = encode_groups(as_array(columns[names.group]), len(scores), names.group)
    seeds = np.zeros(len(scores), dtype=np.intp)
    if names.seed is not None:
        seeds = encode_groups(as_array(columns[names.seed]), len(scores), names.seed).codes
    if len(arms.labels) < 2:
        raise ValueError(f"the column {names.arm!r} names one ranker only; compare needs two.")
    values = {}
    for code, label in enumerate(arms.labels):
        rows = np.flatnonzero(arms.codes == code)
        arm_seeds, seed_codes = np.unique(seeds[rows], return_inverse=True)
        cells = seed_codes * len(groups.labels) + groups.codes[rows]
        _refuse_repeated_cells(cells, str(label), groups.labels, has_seeds=names.seed is not None)
        table = np.full(len(arm_seeds) * len(groups.labels), np.nan)
        table[cells] = scores[rows]
        values[str(label)] = table.reshape(len(arm_seeds), len(groups.labels))
    clusters = None
    if names.cluster is not None:
        clusters = _clusters_of_groups(
            columns[names.cluster].to_list(), groups.codes, names.cluster
        )
    return PairedValues(values, np.array(groups.labels, dtype=object), clusters)


def _refuse_repeated_cells(
    cells: Indices, arm: str, groups: NDArray[np.generic], *, has_seeds: bool
) -> None:
    """Raise a ValueError if a ranker has several values in a group and seed."""
    unique, counts = np.unique(cells, return_counts=True)
    repeated = np.flatnonzero(counts > 1)
    if not len(repeated):
        return
    group = groups[unique[repeated[0]] % len(groups)]
    remedy = "name the column that distinguishes them (seed='fold'), or average them"
    if has_seeds:
        remedy = "the column of seed= must distinguish them"
    raise ValueError(
        f"ranker {arm!r} has {counts[repeated[0]]} values in the group {str(group)!r}; {remedy}."
    )


def _clusters_of_groups(cells: list[object], codes: Indices, name: str) -> Indices:
    """Cluster of each group; a ValueError if a group is in two."""
    cluster_of: dict[int, object] = {}
    for code, cell in zip(codes.tolist(), cells, strict=True):
        if cluster_of.setdefault(code, cell) != cell:
            raise ValueError(
                f"cluster={name!r}: a group is in the clusters {cluster_of[code]!r} and {cell!r}."
            )
    labels = [cluster_of[code] for code in sorted(cluster_of)]
    return _encode(labels)


def _encode(labels: Iterable[object]) -> Indices:
    """Codes 0, 1, … of labels in the order of their first appearance."""
    codes: dict[object, int] = {}
    return np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.intp)
