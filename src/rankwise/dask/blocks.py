"""Dask collections as blocks of whole groups: rows of X with their scores and labels, on a worker.

A survey looks at y and groups only. Groups that have rows in several blocks are then moved, each to
the block that has most of its rows; nothing else goes from worker to worker.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from rankwise.arrays import Array, Indices
from rankwise.groups import encode_groups
from rankwise.inputs import as_scores, check_items


class RowBlock(NamedTuple):
    """Rows in the memory of one worker: items, scores of shape (n_rows, n_outputs), labels."""

    X: Any
    y: Array
    groups: NDArray[Any]

    def rows(self, rows: Indices) -> RowBlock:
        """A block of the chosen rows."""
        return RowBlock(self.X[rows], self.y[rows], self.groups[rows])


def align(X: Any, y: Any, groups: Any) -> tuple[list[Any], list[Any]]:
    """Pair the blocks of X, y and groups; nothing is computed.

    Blocks of unknown length are paired in order and compared on the workers.

    Returns
    -------
    blocks : list of delayed RowBlock
        The rows.
    surveys : list of delayed
        Number of rows, labels, and number of rows of each label.
    """
    if not isinstance(X, (da.Array, dd.DataFrame)) or X.ndim != 2:
        raise TypeError(
            f"X is a {type(X).__name__}; expected a dask array of two dimensions or a dask data "
            "frame. Use the estimator of `rankwise` for data in memory, or "
            "dask.array.from_array(X, chunks=(100_000, -1))."
        )
    X = whole_rows(X)
    lengths = X.chunks[0] if isinstance(X, da.Array) else (np.nan,) * X.npartitions
    delayed = [_delayed(X)]
    for name, values in (("y", y), ("groups", groups)):
        if values is None:
            delayed.append([None] * len(lengths))
            continue
        blocks = _delayed(_with_blocks(values, lengths, name))
        if len(blocks) != len(lengths):
            raise ValueError(
                f"{name} has {len(blocks)} blocks but X has {len(lengths)}, and some of their "
                "lengths are not known; call compute_chunk_sizes() on the arrays, or take X, y and "
                "groups from the same data frame."
            )
        delayed.append(blocks)
    make, look = dask.delayed(_make_block), dask.delayed(_count_groups)
    surveys = [look(*columns) for columns in zip(delayed[1], delayed[2], strict=True)]
    return [make(*columns) for columns in zip(*delayed, strict=True)], surveys


def _delayed(values: Any) -> list[Any]:
    """The blocks of a collection, as many as it says.

    Optimizing a frame would join small files, and more of them the fewer columns are read.
    """
    if isinstance(values, da.Array):
        return list(np.ravel(values.to_delayed()))
    return list(values.simplify().to_delayed(optimize_graph=False))


def whole_rows(X: Any) -> Any:
    """The same array with all columns in one block."""
    return X.rechunk({1: -1}) if isinstance(X, da.Array) and X.numblocks[1] > 1 else X


def find_split_groups(surveys: list[Any]) -> tuple[Indices, dict[Hashable, dict[int, int]]]:
    """Number of rows of each block, and for each label in several blocks how many rows in which."""
    counted = dask.compute(*surveys)
    n_rows = np.array([n for n, _, _ in counted], dtype=np.intp)
    if not n_rows.any():
        raise ValueError("X has no rows, expected at least two items of one group.")
    homes: dict[Hashable, dict[int, int]] = {}
    for block, (_, labels, sizes) in enumerate(counted):
        for label, size in zip(labels, sizes, strict=True):
            homes.setdefault(label, {})[block] = size
    return n_rows, {label: where for label, where in homes.items() if len(where) > 1}


def gather_groups(
    blocks: list[Any], n_rows: Indices, split: dict[Hashable, dict[int, int]]
) -> list[Any]:
    """Blocks with whole groups, lazily.

    Of several blocks that have most rows of a group it is moved to the one with the fewest rows.
    """
    load = n_rows.astype(np.int64)
    leaving: list[dict[Hashable, int]] = [{} for _ in blocks]
    for label, where in split.items():
        home = max(where, key=lambda block: (where[block], -load[block]))
        for block, count in where.items():
            load[block] -= count
            load[home] += count
            if block != home:
                leaving[block][label] = home
    gathered = [[block] for block in blocks]
    split_block = dask.delayed(_split)
    for k, moves in enumerate(leaving):
        if moves:
            pieces = split_block(blocks[k], moves, k)
            gathered[k][0] = pieces[k]
            for home in sorted(set(moves.values())):
                gathered[home].append(pieces[home])
    join = dask.delayed(_join)
    return [join(pieces) if len(pieces) > 1 else pieces[0] for pieces in gathered]


def _with_blocks(values: Any, lengths: tuple[float, ...], name: str) -> Any:
    """The values as a collection with the blocks of X, as far as their lengths are known."""
    is_known = not np.isnan(lengths).any()
    if not dask.is_dask_collection(values):
        if not is_known:
            raise ValueError(
                f"{name} is in memory but the blocks of X have unknown lengths; pass {name} as a "
                "dask collection with the same blocks, or call X.compute_chunk_sizes() on a dask "
                "array."
            )
        values = da.from_array(np.asarray(values))
    if not isinstance(values, da.Array):
        return values
    values = whole_rows(values) if values.ndim == 2 else values
    if not is_known or np.isnan(values.chunks[0]).any():
        return values
    if values.shape[0] != sum(lengths):
        raise ValueError(
            f"{name} has {values.shape[0]} entries but X has {sum(lengths)} rows; pass one for "
            "each row."
        )
    return values.rechunk({0: lengths})


def _make_block(X: Any, y: Any, groups: Any) -> RowBlock:
    """On a worker: arrays, checked. Without groups all rows have the label 0."""
    for name, other in (("y", y), ("groups", groups)):
        if other is not None and len(other) != X.shape[0]:
            raise ValueError(
                f"a block of X has {X.shape[0]} rows but that of {name} has {len(other)}; the "
                "blocks must hold the same rows."
            )
        if hasattr(X, "index") and hasattr(other, "index") and not X.index.equals(other.index):
            raise ValueError(
                f"a partition of X and that of {name} have different indices; take them from the "
                "same data frame, without sorting or filtering one of them alone."
            )
    labels = np.zeros(X.shape[0], dtype=np.intp) if groups is None else np.asarray(groups)
    if X.shape[0] == 0:
        n_outputs = y.shape[1] if y.ndim == 2 else 1
        return RowBlock(np.zeros(X.shape), np.zeros((0, n_outputs)), labels)
    check_items("X", X)
    items = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    scores = as_scores(y)
    return RowBlock(items, scores.reshape(len(scores), -1), labels)


def _count_groups(y: Any, groups: Any) -> tuple[int, list[Hashable], list[int]]:
    """On a worker: number of rows, the labels there are, and how many rows each has."""
    if groups is None:
        return len(y), [0] if len(y) else [], [len(y)] if len(y) else []
    encoded = encode_groups(np.asarray(groups), len(y))
    return len(y), encoded.labels.tolist(), encoded.sizes.tolist()


def _split(block: RowBlock, moves: dict[Hashable, int], home: int) -> dict[int, RowBlock]:
    """Rows by the number of the block that they go to, which is `home` for those that stay."""
    to = np.array([moves.get(label, home) for label in block.groups.tolist()])
    return {k: block.rows(np.flatnonzero(to == k)) for k in {home, *moves.values()}}


def _join(pieces: list[RowBlock]) -> RowBlock:
    X = [piece.X for piece in pieces]
    return RowBlock(
        sp.vstack(X, "csr") if any(map(sp.issparse, X)) else np.vstack(X),
        np.concatenate([piece.y for piece in pieces]),
        np.concatenate([piece.groups for piece in pieces]),
    )
