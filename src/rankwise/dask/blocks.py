"""Dask collections as aligned blocks: rows of X with their scores and groups, on a worker."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from rankwise.arrays import Array, Indices
from rankwise.groups import encode_groups
from rankwise.real_numbers import check_items
from rankwise.targets import as_scores


class RowBlock(NamedTuple):
    """Rows in the memory of one worker.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Items.
    y : ndarray of shape (n_rows, n_outputs)
        Scores.
    groups : ndarray of shape (n_rows,) or None
        Group labels.
    """

    X: Any
    y: Array
    groups: NDArray[Any] | None

    def rows(self, rows: NDArray[Any]) -> RowBlock:
        """A block of the chosen rows."""
        groups = None if self.groups is None else self.groups[rows]
        return RowBlock(self.X[rows], self.y[rows], groups)


class AlignedBlocks(NamedTuple):
    """Blocks of y, of groups, and of all three collections side by side, not yet computed."""

    y: list[Any]
    groups: list[Any]
    blocks: list[Any]


class Survey(NamedTuple):
    """What the client needs to know of the rows.

    Attributes
    ----------
    n_rows : ndarray of shape (n_blocks,)
        Rows of each block.
    split : dict of label to dict of int to int
        The groups with rows in several blocks: how many in which.
    """

    n_rows: Indices
    split: dict[Hashable, dict[int, int]]

    def split_by_block(self) -> list[set[Hashable]]:
        """The split groups of each block."""
        labels: list[set[Hashable]] = [set() for _ in self.n_rows]
        for label, where in self.split.items():
            for block in where:
                labels[block].add(label)
        return labels


def is_lazy(X: Any) -> bool:
    """Whether this is a collection of Dask."""
    return bool(dask.is_dask_collection(X))


def align(X: Any, y: Any, groups: Any) -> AlignedBlocks:
    """Pair the blocks of X, y and groups; nothing is computed.

    Blocks of unknown length are paired in order and compared on the workers.
    """
    if not isinstance(X, (da.Array, dd.DataFrame)) or X.ndim != 2:
        raise TypeError(
            f"X is a {type(X).__name__}; expected a dask array of two dimensions or a dask data "
            "frame. Use the estimator of `rankwise` for data in memory, or "
            "dask.array.from_array(X, chunks=(100_000, -1))."
        )
    X = whole_rows(X)
    lengths = _lengths(X)
    delayed = {"X": _blocks(X), "y": _blocks(_like(y, lengths, "y"))}
    if groups is not None:
        delayed["groups"] = _blocks(_like(groups, lengths, "groups"))
    for name, some in delayed.items():
        if len(some) != len(lengths):
            raise ValueError(
                f"{name} has {len(some)} blocks but X has {len(lengths)}, and some of their "
                "lengths are not known; call compute_chunk_sizes() on the arrays, or take X, y and "
                "groups from the same data frame."
            )
    no_groups = [None] * len(lengths)
    make = dask.delayed(_make_block)
    paired = zip(delayed["X"], delayed["y"], delayed.get("groups", no_groups), strict=True)
    blocks = [make(*rows) for rows in paired]
    return AlignedBlocks(delayed["y"], delayed.get("groups", no_groups), blocks)


def whole_rows(X: Any) -> Any:
    """The same array with all columns in one block."""
    return X.rechunk({1: -1}) if isinstance(X, da.Array) and X.numblocks[1] > 1 else X


def survey(aligned: AlignedBlocks) -> Survey:
    """Count rows, and find the groups that are in several blocks; looks at y and groups only."""
    look = dask.delayed(_count_groups)
    counted = dask.compute(
        *(look(y, groups) for y, groups in zip(aligned.y, aligned.groups, strict=True))
    )
    n_rows = np.array([n for n, _, _ in counted], dtype=np.intp)
    full = [block for block, n in enumerate(n_rows) if n]
    if not full:
        raise ValueError("X has no rows, expected at least two items of one group.")
    if counted[0][1] is None:
        return Survey(n_rows, {})
    labels = _joined([counted[block][1] for block in full])
    counts = np.concatenate([counted[block][2] for block in full])
    of_block = np.repeat(full, [len(counted[block][1]) for block in full])
    codes, distinct = encode_groups(labels, len(labels))
    n_homes = np.bincount(codes, minlength=len(distinct))
    split: dict[Hashable, dict[int, int]] = {}
    names = distinct.tolist()
    for k in np.flatnonzero(n_homes[codes] > 1):
        split.setdefault(names[codes[k]], {})[int(of_block[k])] = int(counts[k])
    return Survey(n_rows, split)


def _joined(labels: list[NDArray[Any]]) -> NDArray[Any]:
    """All labels, each as it was: NumPy would make strings of numbers beside strings."""
    if len({some.dtype.kind for some in labels}) > 1:
        labels = [some.astype(object) for some in labels]
    return np.concatenate(labels)


def take_rows(aligned: AlignedBlocks, n_rows: Indices, rows: Indices) -> Any:
    """Rows of X by their numbers over all blocks, in this order, in the memory of the client."""
    ends = np.cumsum(n_rows)
    of_block = np.searchsorted(ends, rows, side="right")
    take = dask.delayed(lambda block, inside: block.X[inside])
    used = np.unique(of_block)
    inside = [rows[of_block == k] - (ends[k] - n_rows[k]) for k in used]
    found = dask.compute(
        *(take(aligned.blocks[k], some) for k, some in zip(used, inside, strict=True))
    )
    order = np.argsort(np.argsort(of_block, kind="stable"))
    if hasattr(found[0], "toarray"):
        from scipy.sparse import vstack

        return vstack(found, format="csr")[order]
    return np.vstack(found)[order]


def _lengths(X: Any) -> tuple[float, ...]:
    return tuple(X.chunks[0]) if isinstance(X, da.Array) else (np.nan,) * X.npartitions


def _like(values: Any, lengths: tuple[float, ...], name: str) -> Any:
    """The values as a collection with the blocks of X, as far as their lengths are known."""
    known = not np.isnan(lengths).any()
    n_rows = int(np.sum(lengths)) if known else None
    if not is_lazy(values):
        if not known:
            raise ValueError(
                f"{name} is in memory but the blocks of X have unknown lengths; pass {name} as a "
                "dask collection with the same blocks, or call X.compute_chunk_sizes() on a dask "
                "array."
            )
        array = np.asarray(values)
        _check_length(name, len(array), n_rows)
        return da.from_array(array, chunks=(lengths, *array.shape[1:]))
    if not isinstance(values, da.Array):
        return values
    values = whole_rows(values) if values.ndim == 2 else values
    own = values.chunks[0]
    if own == lengths or not known or np.isnan(own).any():
        return values
    _check_length(name, int(np.sum(own)), n_rows)
    return values.rechunk({0: lengths})


def _check_length(name: str, length: int, n_rows: int | None) -> None:
    if length != n_rows:
        raise ValueError(
            f"{name} has {length} entries but X has {n_rows} rows; pass one for each row."
        )


def _blocks(collection: Any) -> list[Any]:
    return list(np.ravel(collection.to_delayed()))


def _make_block(X: Any, y: Any, groups: Any) -> RowBlock:
    """On a worker: arrays, checked."""
    for name, other in (("y", y), ("groups", groups)):
        if other is None:
            continue
        if len(other) != X.shape[0]:
            raise ValueError(
                f"a block of X has {X.shape[0]} rows but that of {name} has {len(other)}; the "
                "blocks must hold the same rows."
            )
        if hasattr(X, "index") and hasattr(other, "index") and not X.index.equals(other.index):
            raise ValueError(
                f"a partition of X and that of {name} have different indices; take them from the "
                "same data frame, without sorting or filtering one of them alone."
            )
    if X.shape[0] == 0:
        n_outputs = y.shape[1] if y.ndim == 2 else 1
        nobody = None if groups is None else np.zeros(0, dtype=np.intp)
        return RowBlock(np.zeros(X.shape), np.zeros((0, n_outputs)), nobody)
    check_items("X", X)
    items = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    scores = as_scores(y)
    labels = None if groups is None else np.asarray(groups)
    return RowBlock(items, scores.reshape(len(scores), -1), labels)


def _count_groups(y: Any, groups: Any) -> tuple[int, NDArray[Any] | None, Indices | None]:
    """On a worker: number of rows, the labels there are, and how many rows each has."""
    if groups is None:
        return len(y), None, None
    encoded = encode_groups(np.asarray(groups), len(y))
    return len(y), encoded.labels, encoded.sizes
