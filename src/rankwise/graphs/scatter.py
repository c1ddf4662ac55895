"""Weighted scatter matrices of nested groups in one pass over the rows, without a second copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Level", "nested_scatter", "plain_gram"]

Array = NDArray[np.float64]
BLOCK_BYTES = 2**22


def block_rows(n_columns: int) -> int:
    """Rows of a block that stays in the cache."""
    return max(64, BLOCK_BYTES // (8 * max(1, n_columns)))


class Level(NamedTuple):
    """One level of nesting: the parent of each child, and the weight of each parent's scatter."""

    parent: NDArray[np.intp]
    weight: Array


class _Batch(NamedTuple):
    """Means of families: row r stands for size[r] items and is number name[r] of its level."""

    rows: Array
    size: Array
    name: NDArray[np.intp]

    def part(self, rows: slice) -> _Batch:
        return _Batch(self.rows[rows], self.size[rows], self.name[rows])


def _join(batches: list[_Batch]) -> _Batch:
    return _Batch(
        np.concatenate([batch.rows for batch in batches]),
        np.concatenate([batch.size for batch in batches]),
        np.concatenate([batch.name for batch in batches]),
    )


def nested_scatter(R: Any, levels: list[Level]) -> Array:
    """Σ over levels of the weighted scatter of children around the mean of their parent.

        G = Σ_levels Σ_parents weight_p Σ_{children c of p} n_c (μ_c − μ_p)(μ_c − μ_p)ᵀ

    Children of the first level are the rows of R, children of the next its parents. Rows are
    read in blocks that fit the cache, centred by the mean of their family *inside the block* and
    accumulated by a rank-k update; families that straddle blocks are put right afterwards with
    the scatter of the block means around the family mean. Only squares are ever added: no
    cancellation, whatever the offset of the features.
    """
    gram = np.zeros((R.shape[1], R.shape[1]))
    levels = _without_only_children(levels)
    if not levels:
        return gram
    stages = [_Stage(gram, level) for level in levels]
    for pieces in _scatter_of_rows(gram, R, levels[0]):
        _pass_on(stages[0].close(pieces), stages[1:])
    for k, stage in enumerate(stages):
        _pass_on(stage.finish(), stages[k + 1 :])
    return gram


def plain_gram(R: Any) -> Array:
    """``Rᵀ R`` in float64; a block of rows at a time if R is dense."""
    if hasattr(R, "toarray"):
        return np.asarray((R.T @ R).toarray(), dtype=np.float64)
    gram = np.zeros((R.shape[1], R.shape[1]))
    size = block_rows(R.shape[1])
    for start in range(0, R.shape[0], size):
        rows = np.ascontiguousarray(R[start : start + size], dtype=np.float64)
        gram += rows.T @ rows
    return gram


class _Stage:
    """Takes children sorted by parent, batch after batch, and passes finished parents on."""

    def __init__(self, gram: Array, level: Level) -> None:
        self.gram = gram
        self.level = level
        self.open: list[_Batch] = []

    def push(self, batch: _Batch) -> _Batch | None:
        parent = self.level.parent[batch.name]
        means = _scatter(self.gram, batch.rows, parent, self.level.weight, batch.size)
        return self.close(means)

    def close(self, pieces: _Batch) -> _Batch | None:
        """Keep the last parent open, since the next batch may continue it."""
        done = []
        if self.open and self.open[0].name[0] != pieces.name[0]:
            done.append(self.finish())
        if len(pieces.name) > 1:
            self.open.append(pieces.part(slice(0, 1)))
            done.append(self.finish())
            done.append(pieces.part(slice(1, -1)))
        self.open.append(pieces.part(slice(-1, None)))
        finished = [batch for batch in done if batch is not None and len(batch.name)]
        return _join(finished) if finished else None

    def finish(self) -> _Batch | None:
        """Put the pieces of the open parent together."""
        if not self.open:
            return None
        rows, size, name = _join(self.open)
        self.open = []
        return _scatter(self.gram, rows, name, self.level.weight, size)


def _pass_on(batch: _Batch | None, stages: list[_Stage]) -> None:
    for stage in stages:
        if batch is not None:
            batch = stage.push(batch)


def _scatter_of_rows(gram: Array, R: Any, level: Level) -> Iterator[_Batch]:
    """Add the scatter of the rows around the mean of their family in each block; those means."""
    n_rows, n_columns = R.shape
    height = min(block_rows(n_columns), n_rows)
    order = _sorting(level.parent)
    copy, out = np.empty((2, height, n_columns))
    ones = np.ones(height)
    for start in range(0, n_rows, height):
        block = slice(start, min(start + height, n_rows))
        rows = block if order is None else order[block]
        X = _rows(R, rows, copy)
        n = len(X)
        yield _scatter(gram, X, level.parent[rows], level.weight, ones[:n], out[:n])


def _scatter(
    gram: Array,
    X: Array,
    parent: NDArray[np.intp],
    weight: Array,
    size: Array,
    out: Array | None = None,
) -> _Batch:
    """Add the scatter of the rows of X around the means of runs of equal parents; the means.

    Row r stands for size[r] items; `out` is room for the centred rows.
    """
    starts = np.flatnonzero(np.r_[True, parent[1:] != parent[:-1]])
    if len(starts) == 1 and (size == size[0]).all():  # one long family: nothing to gather
        mean = X.sum(axis=0, keepdims=True) / len(X)
        centred = np.subtract(X, mean, out=out)
        gram += weight[parent[0]] * size[0] * (centred.T @ centred)
        return _Batch(mean, np.array([size.sum()]), parent[:1])
    ends = np.r_[starts, len(parent)]
    total = np.add.reduceat(size, starts)
    means = sp.csr_array((size, np.arange(len(X)), ends), shape=(len(starts), len(X))) @ X
    means /= total[:, None]
    family = np.repeat(np.arange(len(starts)), np.diff(ends))
    centred = np.take(means, family, axis=0, out=out, mode="clip")
    np.subtract(X, centred, out=centred)
    centred *= np.sqrt(weight[parent] * size)[:, None]
    gram += centred.T @ centred
    return _Batch(means, total, parent[starts])


def _rows(R: Any, rows: slice | NDArray[np.intp], copy: Array) -> Array:
    """Rows of R as a float64 array in C order; a view if possible, else in place of `copy`."""
    plain = isinstance(R, np.ndarray) and R.dtype == np.float64 and R.flags.c_contiguous
    if isinstance(rows, slice):
        if plain:
            view: Array = R[rows]
            return view
        copy = copy[: rows.stop - rows.start]
        copy[:] = R[rows]
        return copy
    copy = copy[: len(rows)]
    if plain:
        return np.take(R, rows, axis=0, out=copy, mode="clip")
    copy[:] = R[rows]
    return copy


def _without_only_children(levels: list[Level]) -> list[Level]:
    """Leave out levels where no parent has two children: they have no scatter."""
    kept: list[Level] = []
    above: NDArray[np.intp] | None = None  # from the children of this level to those dropped
    for level in levels:
        parent = level.parent if above is None else level.parent[above]
        if np.bincount(parent).max(initial=0) > 1:
            kept.append(Level(parent, level.weight))
            above = None
        else:
            above = parent
    return kept


def _sorting(parent: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Row order that makes every family contiguous; None if the rows are so already."""
    if (parent[1:] >= parent[:-1]).all():
        return None
    n_rows = len(parent)
    ones = np.ones(n_rows, dtype=np.int8)
    indicator = sp.csr_array((ones, parent, np.arange(n_rows + 1)), (n_rows, parent.max() + 1))
    order: NDArray[np.intp] = indicator.tocsc().indices  # counting sort: 7 × argsort
    return order
