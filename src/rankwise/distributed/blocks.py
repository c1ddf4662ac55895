"""Dask collections as blocks of whole groups: rows of X with their scores and labels, on a worker.

The group sizes of each block are computed from y and groups only. A group with rows in several
blocks is then moved to the block that has most of its rows; no other data move between workers.
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

from rankwise.arrays import Array
from rankwise.groups import encode_groups
from rankwise.validation import check_y, reject_dtype


class RowBlock(NamedTuple):
    """Rows in the memory of one worker.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Items.
    y : ndarray of shape (n_rows, n_outputs)
        Scores.
    groups : ndarray of shape (n_rows,)
        Group labels.
    """

    X: Any
    y: Array
    groups: NDArray[Any]


def whole_rows(X: Any) -> Any:
    """Return a collection with all columns of a row in one block."""
    if isinstance(X, da.Array) and X.ndim == 2:
        return X.rechunk({1: -1})
    return X


def align(X: Any, y: Any, groups: Any) -> tuple[list[Any], list[Any]]:
    """Pair the blocks of X, y and groups; nothing is computed.

    Blocks of unknown length are paired in order and compared on the workers.

    Returns
    -------
    blocks : list of delayed RowBlock
        The rows.
    group_sizes : list of delayed dict
        Number of rows of each label in each block.
    """
    if not isinstance(X, (da.Array, dd.DataFrame)) or X.ndim != 2:
        raise TypeError(
            f"X is a {type(X).__name__}; expected a dask array of two dimensions or a dask data "
            "frame. Use the estimator of `rankwise` for data in memory, or "
            "dask.array.from_array(X, chunks=(100_000, -1))."
        )
    if isinstance(X, da.Array):
        lengths = X.chunks[0]
    else:
        lengths = (np.nan,) * X.npartitions
    blocks_of_X = _delayed(X)
    blocks_of_y = _blocks_like("y", y, lengths)
    blocks_of_groups: list[Any] = [None] * len(lengths)
    if groups is not None:
        blocks_of_groups = _blocks_like("groups", groups, lengths)
    make_block = dask.delayed(_make_block)
    count_groups = dask.delayed(_count_groups)
    blocks = list(map(make_block, blocks_of_X, blocks_of_y, blocks_of_groups))
    group_sizes = list(map(count_groups, blocks_of_y, blocks_of_groups))
    return blocks, group_sizes


def _blocks_like(name: str, values: Any, lengths: tuple[float, ...]) -> list[Any]:
    """Return the blocks of values, aligned with those of X where the lengths are known."""
    if not dask.is_dask_collection(values):
        if np.isnan(lengths).any():
            raise ValueError(
                f"{name} is in memory but the blocks of X have unknown lengths; pass {name} as a "
                "dask collection with the same blocks, or call X.compute_chunk_sizes() on a dask "
                "array."
            )
        values = da.from_array(np.asarray(values))
    is_array = isinstance(values, da.Array)
    if is_array and not np.isnan((*lengths, *values.chunks[0])).any():
        if values.shape[0] != sum(lengths):
            raise ValueError(
                f"{name} has {values.shape[0]} entries but X has {sum(lengths)} rows; pass one for "
                "each row."
            )
        values = values.rechunk({0: lengths})
    blocks = _delayed(values)
    if len(blocks) != len(lengths):
        raise ValueError(
            f"{name} has {len(blocks)} blocks but X has {len(lengths)}, and some of their "
            "lengths are not known; call compute_chunk_sizes() on the arrays, or take X, y and "
            "groups from the same data frame."
        )
    return blocks


def _delayed(values: Any) -> list[Any]:
    """Return the blocks of a collection.

    Frames are not optimized, because that would merge small files and change the number of blocks.
    """
    if isinstance(values, da.Array):
        return list(np.ravel(whole_rows(values).to_delayed()))
    return list(values.simplify().to_delayed(optimize_graph=False))


def gather_groups(
    blocks: list[Any], group_sizes: list[dict[Hashable, int]]
) -> tuple[list[Any], int]:
    """Move the rows of groups that are in several blocks, lazily.

    A group moves to the block that has most of its rows; among several, to the smallest block.

    Returns
    -------
    blocks : list of delayed RowBlock
        Blocks of whole groups.
    n_split : int
        Number of groups that had rows in several blocks.
    """
    n_rows = [sum(sizes.values()) for sizes in group_sizes]
    rows_by_block: dict[Hashable, dict[int, int]] = {}
    for block, sizes in enumerate(group_sizes):
        for label, size in sizes.items():
            rows_by_block.setdefault(label, {})[block] = size
    split_groups = {label: rows for label, rows in rows_by_block.items() if len(rows) > 1}

    moves: list[dict[Hashable, int]] = [{} for _ in blocks]
    for label, rows in split_groups.items():
        target = max(rows, key=lambda block: (rows[block], -n_rows[block]))
        for block, count in rows.items():
            n_rows[block] -= count
            n_rows[target] += count
            if block != target:
                moves[block][label] = target

    pieces_of_block = [[block] for block in blocks]
    split = dask.delayed(_split)
    join = dask.delayed(_join)
    for block, target_of_label in enumerate(moves):
        if target_of_label:
            pieces = split(blocks[block], target_of_label, block)
            pieces_of_block[block][0] = pieces[block]
            for target in sorted(set(target_of_label.values())):
                pieces_of_block[target].append(pieces[target])
    gathered = [join(pieces) if len(pieces) > 1 else pieces[0] for pieces in pieces_of_block]
    return gathered, len(split_groups)


def _make_block(X: Any, y: Any, groups: Any) -> RowBlock:
    """On a worker: validate the arrays. Without groups all rows have the label 0."""
    for name, other in (("y", y), ("groups", groups)):
        if other is not None and len(other) != X.shape[0]:
            raise ValueError(
                f"a block of X has {X.shape[0]} rows but that of {name} has {len(other)}; the "
                "blocks must contain the same rows."
            )
        if hasattr(X, "index") and hasattr(other, "index") and not X.index.equals(other.index):
            raise ValueError(
                f"a partition of X and that of {name} have different indices; take them from the "
                "same data frame, without sorting or filtering one of them alone."
            )
    if groups is None:
        labels = np.zeros(X.shape[0], dtype=np.intp)
    else:
        labels = np.asarray(groups)
    if X.shape[0] == 0:
        n_outputs = y.shape[1] if y.ndim == 2 else 1
        return RowBlock(np.zeros(X.shape), np.zeros((0, n_outputs)), labels)
    reject_dtype("X", X)
    items = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    scores = check_y(y)
    return RowBlock(items, scores.reshape(len(scores), -1), labels)


def _count_groups(y: Any, groups: Any) -> dict[Hashable, int]:
    """On a worker: return the number of rows of each label."""
    labels = None if groups is None else np.asarray(groups)
    encoded = encode_groups(labels, len(y))
    return dict(zip(encoded.labels.tolist(), encoded.sizes.tolist(), strict=True))


def _split(block: RowBlock, moves: dict[Hashable, int], home: int) -> dict[int, RowBlock]:
    """On a worker: return the rows by the block that they move to; `home` for the others."""
    target_of_row = np.array([moves.get(label, home) for label in block.groups.tolist()])
    pieces = {}
    for target in {home, *moves.values()}:
        moves_there = target_of_row == target
        pieces[target] = RowBlock(
            block.X[moves_there], block.y[moves_there], block.groups[moves_there]
        )
    return pieces


def _join(pieces: list[RowBlock]) -> RowBlock:
    """On a worker: concatenate rows."""
    items = [piece.X for piece in pieces]
    is_sparse = any(sp.issparse(X) for X in items)
    return RowBlock(
        sp.vstack(items, "csr") if is_sparse else np.vstack(items),
        np.concatenate([piece.y for piece in pieces]),
        np.concatenate([piece.groups for piece in pieces]),
    )
