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

from rankwise.arrays import Array
from rankwise.groups import encode_groups
from rankwise.validation import check_y, reject_dtype


class RowBlock(NamedTuple):
    """Rows in the memory of one worker: items, scores of shape (n_rows, n_outputs), labels."""

    X: Any
    y: Array
    groups: NDArray[Any]


def whole_rows(X: Any) -> Any:
    """The same array with all columns in one block."""
    return X.rechunk({1: -1}) if isinstance(X, da.Array) and X.ndim == 2 else X


def align(X: Any, y: Any, groups: Any) -> tuple[list[Any], list[Any]]:
    """Pair the blocks of X, y and groups; nothing is computed.

    Blocks of unknown length are paired in order and compared on the workers.

    Returns
    -------
    blocks : list of delayed RowBlock
        The rows.
    surveys : list of delayed
        Number of rows of each label.
    """
    if not isinstance(X, (da.Array, dd.DataFrame)) or X.ndim != 2:
        raise TypeError(
            f"X is a {type(X).__name__}; expected a dask array of two dimensions or a dask data "
            "frame. Use the estimator of `rankwise` for data in memory, or "
            "dask.array.from_array(X, chunks=(100_000, -1))."
        )
    lengths = X.chunks[0] if isinstance(X, da.Array) else (np.nan,) * X.npartitions
    of_X = _delayed(X)
    of_y = _blocks_like("y", y, lengths)
    of_groups = [None] * len(lengths) if groups is None else _blocks_like("groups", groups, lengths)
    make, look = dask.delayed(_make_block), dask.delayed(_count_groups)
    return list(map(make, of_X, of_y, of_groups)), list(map(look, of_y, of_groups))


def _blocks_like(name: str, values: Any, lengths: tuple[float, ...]) -> list[Any]:
    """The blocks of values, cut as those of X as far as their lengths are known."""
    if not dask.is_dask_collection(values):
        if np.isnan(lengths).any():
            raise ValueError(
                f"{name} is in memory but the blocks of X have unknown lengths; pass {name} as a "
                "dask collection with the same blocks, or call X.compute_chunk_sizes() on a dask "
                "array."
            )
        values = da.from_array(np.asarray(values))
    if isinstance(values, da.Array) and not np.isnan((*lengths, *values.chunks[0])).any():
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
    """The blocks of a collection, as many as it says.

    Optimizing a frame would join small files, and more of them the fewer columns are read.
    """
    if isinstance(values, da.Array):
        return list(np.ravel(whole_rows(values).to_delayed()))
    return list(values.simplify().to_delayed(optimize_graph=False))


def gather_groups(blocks: list[Any], surveys: list[dict[Hashable, int]]) -> tuple[list[Any], int]:
    """Blocks with whole groups, lazily, and how many groups had rows in several.

    A group goes to the block that has most of its rows, of several to that with the fewest rows.
    """
    load = [sum(sizes.values()) for sizes in surveys]
    homes: dict[Hashable, dict[int, int]] = {}
    for block, sizes in enumerate(surveys):
        for label, size in sizes.items():
            homes.setdefault(label, {})[block] = size
    split = {label: where for label, where in homes.items() if len(where) > 1}
    leaving: list[dict[Hashable, int]] = [{} for _ in blocks]
    for label, where in split.items():
        home = max(where, key=lambda block: (where[block], -load[block]))
        for block, count in where.items():
            load[block] -= count
            load[home] += count
            if block != home:
                leaving[block][label] = home
    gathered = [[block] for block in blocks]
    split_block, join = dask.delayed(_split), dask.delayed(_join)
    for k, moves in enumerate(leaving):
        if moves:
            pieces = split_block(blocks[k], moves, k)
            gathered[k][0] = pieces[k]
            for home in sorted(set(moves.values())):
                gathered[home].append(pieces[home])
    return [join(pieces) if len(pieces) > 1 else pieces[0] for pieces in gathered], len(split)


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
    reject_dtype("X", X)
    items = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    scores = check_y(y)
    return RowBlock(items, scores.reshape(len(scores), -1), labels)


def _count_groups(y: Any, groups: Any) -> dict[Hashable, int]:
    """On a worker: how many rows each label has."""
    encoded = encode_groups(None if groups is None else np.asarray(groups), len(y))
    return dict(zip(encoded.labels.tolist(), encoded.sizes.tolist(), strict=True))


def _split(block: RowBlock, moves: dict[Hashable, int], home: int) -> dict[int, RowBlock]:
    """Rows by the number of the block that they go to, which is `home` for those that stay."""
    to = np.array([moves.get(label, home) for label in block.groups.tolist()])
    return {k: RowBlock(*(values[to == k] for values in block)) for k in {home, *moves.values()}}


def _join(pieces: list[RowBlock]) -> RowBlock:
    X = [piece.X for piece in pieces]
    return RowBlock(
        sp.vstack(X, "csr") if any(map(sp.issparse, X)) else np.vstack(X),
        np.concatenate([piece.y for piece in pieces]),
        np.concatenate([piece.groups for piece in pieces]),
    )
