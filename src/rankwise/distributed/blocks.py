"""Dask collections as blocks of whole groups: rows of X with their scores and labels, on a worker.

The group sizes of each block are computed from y and groups only. A group with rows in several
blocks is then moved to the block that has most of its rows; no other data move between workers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from rankwise.arrays import Array, Labels, Matrix, MatrixLike
from rankwise.groups import encode_groups
from rankwise.validation import check_y, reject_dtype

if TYPE_CHECKING:
    from dask.delayed import Delayed

#: A Dask array, data frame or series.
Collection: TypeAlias = "da.Array | dd.DataFrame | dd.Series"

#: Number of rows of each label in a block.
GroupSizes: TypeAlias = dict[Hashable, int]

#: The block that the rows of each label move to.
Moves: TypeAlias = dict[Hashable, int]


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

    X: Matrix
    y: Array
    groups: Labels


def whole_rows(X: Collection) -> Collection:
    """Return a collection with all columns of a row in one block."""
    if isinstance(X, da.Array) and X.ndim == 2:
        return X.rechunk({1: -1})
    return X


def align(
    X: Collection, y: Collection | ArrayLike, groups: Collection | ArrayLike | None
) -> tuple[list[Delayed], list[Delayed]]:
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
    blocks_of_groups: list[Delayed | None] = [None] * len(lengths)
    if groups is not None:
        blocks_of_groups = _blocks_like("groups", groups, lengths)
    make_block = dask.delayed(_make_block)
    count_groups = dask.delayed(_count_groups)
    blocks = list(map(make_block, blocks_of_X, blocks_of_y, blocks_of_groups))
    group_sizes = list(map(count_groups, blocks_of_y, blocks_of_groups))
    return blocks, group_sizes


def _blocks_like(
    name: str, values: Collection | ArrayLike, lengths: tuple[float, ...]
) -> list[Delayed]:
    """Return the blocks of values, aligned with those of X where the lengths are known."""
    collection = _as_collection(name, values, lengths)
    is_array = isinstance(collection, da.Array)
    if is_array and not np.isnan((*lengths, *collection.chunks[0])).any():
        if collection.shape[0] != sum(lengths):
            raise ValueError(
                f"{name} has {collection.shape[0]} entries but X has {sum(lengths)} rows; pass one "
                "for each row."
            )
        collection = collection.rechunk({0: lengths})
    blocks = _delayed(collection)
    if len(blocks) != len(lengths):
        raise ValueError(
            f"{name} has {len(blocks)} blocks but X has {len(lengths)}, and some of their "
            "lengths are not known; call compute_chunk_sizes() on the arrays, or take X, y and "
            "groups from the same data frame."
        )
    return blocks


def _as_collection(
    name: str, values: Collection | ArrayLike, lengths: tuple[float, ...]
) -> Collection:
    """A Dask collection unchanged; values in memory as a Dask array."""
    if dask.is_dask_collection(values):
        return values
    if np.isnan(lengths).any():
        raise ValueError(
            f"{name} is in memory but the blocks of X have unknown lengths; pass {name} as a "
            "dask collection with the same blocks, or call X.compute_chunk_sizes() on a dask "
            "array."
        )
    return da.from_array(np.asarray(values))


def _delayed(values: Collection) -> list[Delayed]:
    """Return the blocks of a collection.

    Frames are not optimized, because that would merge small files and change the number of blocks.
    """
    if isinstance(values, da.Array):
        return list(np.ravel(whole_rows(values).to_delayed()))
    return list(values.simplify().to_delayed(optimize_graph=False))


class GatheredBlocks(NamedTuple):
    """Blocks of whole groups.

    Attributes
    ----------
    blocks : list of delayed RowBlock
        The blocks.
    n_split : int
        Number of groups that had rows in several blocks.
    """

    blocks: list[Delayed]
    n_split: int


def gather_groups(blocks: list[Delayed], group_sizes: list[GroupSizes]) -> GatheredBlocks:
    """Move the rows of groups that are in several blocks, lazily.

    A group moves to the block that has most of its rows; among several, to the smallest block.

    Parameters
    ----------
    blocks : list of delayed RowBlock
        The blocks.
    group_sizes : list of dict
        Number of rows of each label in each block.
    """
    rows_by_block = _split_groups(group_sizes)
    moves_of_block = _plan_moves(rows_by_block, group_sizes)
    pieces_of_block = [[block] for block in blocks]
    split = dask.delayed(_split)
    join = dask.delayed(_join)
    for block, moves in enumerate(moves_of_block):
        if moves:
            pieces = split(blocks[block], moves, block)
            pieces_of_block[block][0] = pieces[block]
            for target in sorted(set(moves.values())):
                pieces_of_block[target].append(pieces[target])
    gathered = [join(pieces) if len(pieces) > 1 else pieces[0] for pieces in pieces_of_block]
    return GatheredBlocks(gathered, len(rows_by_block))


def _split_groups(group_sizes: list[GroupSizes]) -> dict[Hashable, dict[int, int]]:
    """Number of rows by block of each group with rows in several blocks."""
    rows_by_block: dict[Hashable, dict[int, int]] = {}
    for block, sizes in enumerate(group_sizes):
        for label, size in sizes.items():
            rows_by_block.setdefault(label, {})[block] = size
    return {label: rows for label, rows in rows_by_block.items() if len(rows) > 1}


def _plan_moves(
    rows_by_block: dict[Hashable, dict[int, int]], group_sizes: list[GroupSizes]
) -> list[Moves]:
    """The labels that leave each block, and the blocks that they move to."""
    n_rows = [sum(sizes.values()) for sizes in group_sizes]
    moves: list[Moves] = [{} for _ in group_sizes]
    for label, rows in rows_by_block.items():
        target = max(rows, key=lambda block: (rows[block], -n_rows[block]))
        for block, n_moved in rows.items():
            n_rows[block] -= n_moved
            n_rows[target] += n_moved
            if block != target:
                moves[block][label] = target
    return moves


def _make_block(X: MatrixLike, y: ArrayLike, groups: ArrayLike | None) -> RowBlock:
    """On a worker: validate the arrays. Without groups all rows have the label 0."""
    _check_same_rows(X, "y", y)
    labels: Labels = np.zeros(X.shape[0], dtype=np.intp)
    if groups is not None:
        _check_same_rows(X, "groups", groups)
        labels = np.asarray(groups)
    if X.shape[0] == 0:
        n_outputs = np.shape(y)[1] if np.ndim(y) == 2 else 1
        return RowBlock(np.zeros(X.shape), np.zeros((0, n_outputs)), labels)
    reject_dtype("X", X)
    items = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    scores = check_y(y)
    return RowBlock(items, scores.reshape(len(scores), -1), labels)


def _check_same_rows(X: MatrixLike, name: str, values: MatrixLike) -> None:
    """Raise ValueError if a block has other rows than the block of X."""
    if len(values) != X.shape[0]:
        raise ValueError(
            f"a block of X has {X.shape[0]} rows but that of {name} has {len(values)}; the "
            "blocks must contain the same rows."
        )
    if hasattr(X, "index") and hasattr(values, "index") and not X.index.equals(values.index):
        raise ValueError(
            f"a partition of X and that of {name} have different indices; take them from the "
            "same data frame, without sorting or filtering one of them alone."
        )


def _count_groups(y: MatrixLike, groups: ArrayLike | None) -> GroupSizes:
    """On a worker: return the number of rows of each label."""
    labels = None if groups is None else np.asarray(groups)
    encoded = encode_groups(labels, len(y))
    return dict(zip(encoded.labels.tolist(), encoded.sizes.tolist(), strict=True))


def _split(block: RowBlock, moves: Moves, home: int) -> dict[int, RowBlock]:
    """On a worker: return the rows by the block that they move to; `home` for the others."""
    target_of_row = np.array([moves.get(label, home) for label in block.groups.tolist()])
    pieces = {}
    for target in {home, *moves.values()}:
        rows = target_of_row == target
        pieces[target] = RowBlock(block.X[rows], block.y[rows], block.groups[rows])
    return pieces


def _join(pieces: list[RowBlock]) -> RowBlock:
    """On a worker: concatenate rows."""
    items = [piece.X for piece in pieces]
    if any(sp.issparse(X) for X in items):
        joined = sp.vstack(items, "csr")
    else:
        joined = np.vstack(items)
    return RowBlock(
        joined,
        np.concatenate([piece.y for piece in pieces]),
        np.concatenate([piece.groups for piece in pieces]),
    )
