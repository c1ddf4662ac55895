"""Weighted scatter matrices of nested groups in one pass over the rows, without a second copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

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
    n_columns = R.shape[1]
    gram = np.zeros((n_columns, n_columns), order="F")
    stages = [_Stage(gram, level) for level in levels]
    rows_in_order = _sorting(levels)
    for rows, names in _blocks(R, rows_in_order):
        batch: _Batch | None = _Batch(rows, np.ones(len(rows)), names)
        for stage in stages:
            if batch is not None:
                batch = stage.push(batch)
    for k, stage in enumerate(stages):
        batch = stage.finish()
        for later in stages[k + 1 :]:
            if batch is not None:
                batch = later.push(batch)
    return _fill_upper(gram)


def plain_gram(R: Any) -> Array:
    """``Rᵀ R`` in float64; a block of rows at a time if R is dense."""
    if hasattr(R, "toarray"):
        return np.asarray((R.T @ R).toarray(), dtype=np.float64)
    gram = np.zeros((R.shape[1], R.shape[1]), order="F")
    for rows, _ in _blocks(R, None):
        gram = _accumulate(gram, rows)
    return _fill_upper(gram)


class _Stage:
    """Takes children sorted by parent, batch after batch, and passes finished parents on."""

    def __init__(self, gram: Array, level: Level) -> None:
        self.gram = gram
        self.level = level
        self.open: list[_Batch] = []

    def push(self, batch: _Batch) -> _Batch | None:
        parent = self.level.parent[batch.name]
        starts = np.flatnonzero(np.r_[True, parent[1:] != parent[:-1]])
        means, size = _family_means(batch, starts)
        family = np.diff(np.r_[starts, len(parent)])
        rows = batch.rows
        if len(starts) == 1:
            rows -= means
        else:
            rows -= np.repeat(means, family, axis=0)
        self._add(rows, self.level.weight[parent] * batch.size)
        return self._close(_Batch(means, size, parent[starts]))

    def finish(self) -> _Batch | None:
        return self._merge_open()

    def _close(self, pieces: _Batch) -> _Batch | None:
        """Keep the last parent open, since the next batch may continue it."""
        done = []
        if self.open and self.open[0].name[0] != pieces.name[0]:
            done.append(self._merge_open())
        if len(pieces.name) > 1:
            self.open.append(pieces.part(slice(0, 1)))
            done.append(self._merge_open())
            done.append(pieces.part(slice(1, -1)))
        self.open.append(pieces.part(slice(-1, None)))
        finished = [batch for batch in done if batch is not None and len(batch.name)]
        return _join(finished) if finished else None

    def _merge_open(self) -> _Batch | None:
        if not self.open:
            return None
        rows, size, name = _join(self.open)
        self.open = []
        total = size.sum()
        mean = (size @ rows / total)[None, :]
        if len(rows) > 1:
            self._add(rows - mean, self.level.weight[name] * size)
        return _Batch(mean, np.array([total]), name[:1])

    def _add(self, rows: Array, weight: Array) -> None:
        rows *= np.sqrt(weight)[:, None]
        self.gram = _accumulate(self.gram, rows)


def _family_means(batch: _Batch, starts: NDArray[np.intp]) -> tuple[Array, Array]:
    size = np.add.reduceat(batch.size, starts)
    if len(starts) == 1:
        return (batch.size @ batch.rows)[None, :] / size, size
    weighted = batch.rows
    if (batch.size != 1).any():
        weighted = batch.rows * batch.size[:, None]
    return np.add.reduceat(weighted, starts, axis=0) / size[:, None], size


def _sorting(levels: list[Level]) -> NDArray[np.intp] | None:
    """Row order that makes every family contiguous; None if the rows are so already."""
    parent = levels[0].parent
    if (parent[1:] >= parent[:-1]).all():
        return None
    return np.argsort(parent, kind="stable")


def _blocks(R: Any, order: NDArray[np.intp] | None) -> Iterator[tuple[Array, NDArray[np.intp]]]:
    n_rows, n_columns = R.shape
    size = block_rows(n_columns)
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        names = np.arange(start, stop) if order is None else order[start:stop]
        rows = R[start:stop] if order is None else R[names]
        yield np.array(rows, dtype=np.float64, order="C", copy=order is None or None), names


def _accumulate(gram: Array, rows: Array) -> Array:
    out: Array = dsyrk(1.0, rows.T, beta=1.0, c=gram, lower=1, overwrite_c=1)
    return out


def _fill_upper(gram: Array) -> Array:
    upper = np.triu_indices(len(gram), k=1)
    gram[upper] = gram.T[upper]
    return gram
