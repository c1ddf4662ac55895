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
        return X.rechunk({1: -1})  # all columns in one chunk
    return X


def align_blocks(
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
        block_lengths = X.chunks[0]
    else:  # partitions of a data frame have unknown lengths
        block_lengths = (np.nan,) * X.npartitions
    blocks_of_X = _delayed_blocks(X)
    blocks_of_y = _split_into_blocks("y", y, block_lengths)
    blocks_of_groups: list[Delayed | None] = [None] * len(block_lengths)
    if groups is not None:
        blocks_of_groups = _split_into_blocks("groups", groups, block_lengths)
    make_block = dask.delayed(_make_block)
    count_groups = dask.delayed(_count_groups)
    blocks = list(map(make_block, blocks_of_X, blocks_of_y, blocks_of_groups))
    group_sizes = list(map(count_groups, blocks_of_y, blocks_of_groups))
    return blocks, group_sizes


def _split_into_blocks(
    name: str, values: Collection | ArrayLike, block_lengths: tuple[float, ...]
) -> list[Delayed]:
    """Return the blocks of values, aligned with the blocks of X if the lengths are known."""
    collection = _as_collection(name, values, block_lengths)
    are_lengths_known = False
    if isinstance(collection, da.Array):
        all_lengths = (*block_lengths, *collection.chunks[0])
        are_lengths_known = not np.isnan(all_lengths).any()
    if are_lengths_known:
        n_rows = sum(block_lengths)
        if collection.shape[0] != n_rows:
            raise ValueError(
                f"{name} has {collection.shape[0]} entries but X has {n_rows} rows; pass one for "
                "each row."
            )
        collection = collection.rechunk({0: block_lengths})
    blocks = _delayed_blocks(collection)
    if len(blocks) != len(block_lengths):
        raise ValueError(
            f"{name} has {len(blocks)} blocks but X has {len(block_lengths)}, and some of their "
            "lengths are not known; call compute_chunk_sizes() on the arrays, or take X, y and "
            "groups from the same data frame."
        )
    return blocks


def _as_collection(
    name: str, values: Collection | ArrayLike, block_lengths: tuple[float, ...]
) -> Collection:
    """A Dask collection unchanged; values in memory as a Dask array."""
    if dask.is_dask_collection(values):
        return values
    if np.isnan(block_lengths).any():
        raise ValueError(
            f"{name} is in memory but the blocks of X have unknown lengths; pass {name} as a "
            "dask collection with the same blocks, or call X.compute_chunk_sizes() on a dask "
            "array."
        )
    return da.from_array(np.asarray(values))


def _delayed_blocks(collection: Collection) -> list[Delayed]:
    """Return the blocks of a collection.

    Frames are not optimized, because that would merge small files and change the number of blocks.
    """
    if isinstance(collection, da.Array):
        return list(np.ravel(whole_rows(collection).to_delayed()))
    # optimized, small files would be merged, and the number of blocks would change
    return list(collection.simplify().to_delayed(optimize_graph=False))


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
    split_groups = _find_split_groups(group_sizes)
    moves_of_block = _plan_moves(split_groups, group_sizes)
    split_by_target = dask.delayed(_split_by_target)
    join_pieces = dask.delayed(_join_pieces)

    # A piece: the rows that remain in a block, or that move to it from another block
    pieces_of_block = [[block] for block in blocks]
    for block_number, moves in enumerate(moves_of_block):
        if not moves:
            continue
        piece_by_target = split_by_target(blocks[block_number], moves, block_number)
        pieces_of_block[block_number][0] = piece_by_target[block_number]
        for target_number in sorted(set(moves.values())):
            pieces_of_block[target_number].append(piece_by_target[target_number])

    gathered_blocks = []
    for pieces in pieces_of_block:
        is_unchanged = len(pieces) == 1
        gathered_blocks.append(pieces[0] if is_unchanged else join_pieces(pieces))
    return GatheredBlocks(gathered_blocks, n_split=len(split_groups))


def _find_split_groups(group_sizes: list[GroupSizes]) -> dict[Hashable, dict[int, int]]:
    """Number of rows by block of each group with rows in several blocks."""
    rows_by_block: dict[Hashable, dict[int, int]] = {}
    for block_number, sizes in enumerate(group_sizes):
        for label, n_rows in sizes.items():
            rows_of_group = rows_by_block.setdefault(label, {})
            rows_of_group[block_number] = n_rows
    return {label: rows for label, rows in rows_by_block.items() if len(rows) > 1}


def _plan_moves(
    split_groups: dict[Hashable, dict[int, int]], group_sizes: list[GroupSizes]
) -> list[Moves]:
    """The labels that leave each block, and the blocks that they move to."""
    block_sizes = [sum(sizes.values()) for sizes in group_sizes]
    moves_of_block: list[Moves] = [{} for _ in group_sizes]
    for label, rows_by_block in split_groups.items():
        target = _choose_target(rows_by_block, block_sizes)
        for block_number, n_rows in rows_by_block.items():
            block_sizes[block_number] -= n_rows
            block_sizes[target] += n_rows
            if block_number != target:
                moves_of_block[block_number][label] = target
    return moves_of_block


def _choose_target(rows_by_block: dict[int, int], block_sizes: list[int]) -> int:
    """The block with most rows of a group; of several such blocks the smallest one."""
    most_rows = max(rows_by_block.values())
    candidates = [block for block, n_rows in rows_by_block.items() if n_rows == most_rows]
    return min(candidates, key=lambda block: block_sizes[block])


def _make_block(X: MatrixLike, y: ArrayLike, groups: ArrayLike | None) -> RowBlock:
    """On a worker: validate the arrays. Without groups all rows have the label 0."""
    _check_same_rows(X, "y", y)
    n_rows = X.shape[0]
    labels: Labels = np.zeros(n_rows, dtype=np.intp)
    if groups is not None:
        _check_same_rows(X, "groups", groups)
        labels = np.asarray(groups)
    if n_rows == 0:  # which the checks below refuse
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
    have_index = hasattr(X, "index") and hasattr(values, "index")
    if have_index and not X.index.equals(values.index):
        raise ValueError(
            f"a partition of X and that of {name} have different indices; take them from the "
            "same data frame, without sorting or filtering one of them alone."
        )


def _count_groups(y: MatrixLike, groups: ArrayLike | None) -> GroupSizes:
    """On a worker: return the number of rows of each label."""
    if groups is not None:
        groups = np.asarray(groups)
    encoded = encode_groups(groups, len(y))
    return dict(zip(encoded.labels.tolist(), encoded.sizes.tolist(), strict=True))


def _split_by_target(block: RowBlock, moves: Moves, own_number: int) -> dict[int, RowBlock]:
    """On a worker: return the rows by the block that they move to; `home` for the others."""
    target_of_row = np.array([moves.get(label, own_number) for label in block.groups.tolist()])
    piece_by_target = {}
    for target in {own_number, *moves.values()}:
        moves_to_target = target_of_row == target
        piece_by_target[target] = RowBlock(
            block.X[moves_to_target], block.y[moves_to_target], block.groups[moves_to_target]
        )
    return piece_by_target


def _join_pieces(pieces: list[RowBlock]) -> RowBlock:
    """On a worker: concatenate rows."""
    matrices = [piece.X for piece in pieces]
    if any(sp.issparse(matrix) for matrix in matrices):
        joined_X = sp.vstack(matrices, "csr")
    else:
        joined_X = np.vstack(matrices)
    return RowBlock(
        joined_X,
        np.concatenate([piece.y for piece in pieces]),
        np.concatenate([piece.groups for piece in pieces]),
    )
