"""Weighted scatter matrices of nested groups in one pass over the rows, without a second copy.

Features may be an array, or anything that has a shape and gives dense rows when it is indexed, such
as kernel values that are computed a block of rows at a time and never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["Level", "block_rows", "nested_scatter", "plain_gram", "plain_system"]

Array = NDArray[np.float64]
BLOCK_BYTES = 2**23
FAR = 0.999  # rows are centred if the means hold this share of the squares of some column
LONG_FAMILY = 8  # rows; shorter families are centred row by row in any case


def block_rows(n_columns: int) -> int:
    """Rows of a block that stays in the cache, or that is no larger than the Gram matrix."""
    return max(64, n_columns, BLOCK_BYTES // (8 * max(1, n_columns)))


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


def nested_scatter(R: Any, levels: list[Level], target: Array) -> tuple[Array, Array]:
    """Σ over levels of the weighted scatter of children around the mean of their parent; ``Rᵀ t``.

        G = Σ_levels Σ_parents weight_p Σ_{children c of p} n_c (μ_c − μ_p)(μ_c − μ_p)ᵀ

    Children of the first level are the rows of R, children of the next its parents. Rows are read
    once, in blocks that fit the cache, and each block adds the scatter of its rows around the mean
    of their family *inside the block* (`_RowScatter`); families that straddle blocks are put right
    afterwards with the scatter of the block means around the family mean.
    """
    gram, moment = _empty_system(R, target)
    levels = _without_only_children(levels)
    if not levels:
        return gram, plain_system(R, target)[1]
    stages = [_Stage(gram, level) for level in levels]
    for pieces in _scatter_of_rows(gram, moment, R, levels[0], target):
        _pass_on(stages[0].close(pieces), stages[1:])
    for k, stage in enumerate(stages):
        _pass_on(stage.finish(), stages[k + 1 :])
    return gram, moment


def plain_system(R: Any, target: Array) -> tuple[Array, Array]:
    """``Rᵀ R`` and ``Rᵀ t`` in float64; a block of rows at a time unless R is sparse."""
    if sp.issparse(R):
        return np.asarray((R.T @ R).toarray(), dtype=np.float64), np.asarray(R.T @ target)
    gram, moment = _empty_system(R, target)
    size = block_rows(R.shape[1])
    for start in range(0, R.shape[0], size):
        rows = np.ascontiguousarray(R[start : start + size], dtype=np.float64)
        gram += rows.T @ rows
        moment += rows.T @ target[start : start + size]
    return gram, moment


def plain_gram(R: Any) -> Array:
    """``Rᵀ R`` in float64."""
    return plain_system(R, np.empty((R.shape[0], 0)))[0]


def _empty_system(R: Any, target: Array) -> tuple[Array, Array]:
    n_columns = R.shape[1]
    return np.zeros((n_columns, n_columns)), np.zeros((n_columns, *target.shape[1:]))


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
        if len(self.open) < 2:
            return self.open.pop() if self.open else None
        rows, size, name = _join(self.open)
        self.open = []
        return _scatter(self.gram, rows, name, self.level.weight, size)


def _pass_on(batch: _Batch | None, stages: list[_Stage]) -> None:
    for stage in stages:
        if batch is not None:
            batch = stage.push(batch)


def _scatter_of_rows(
    gram: Array, moment: Array, R: Any, level: Level, target: Array
) -> Iterator[_Batch]:
    """Add the scatter of the rows around the mean of their family in each block; those means."""
    n_rows, n_columns = R.shape
    height = min(block_rows(n_columns), n_rows)
    scatter = _RowScatter(gram, moment, level.weight, height)
    parent = level.parent
    is_sorted = (parent[1:] >= parent[:-1]).all()
    if not is_sorted and _is_plain(R) and LONG_FAMILY * (parent.max() + 1) <= n_rows:
        yield scatter.add_unsorted(R, parent, target)
        return
    order = None if is_sorted else _sorting(parent)
    parent = parent if order is None else parent[order]
    for block in _blocks_of_families(parent, height):
        rows = block if order is None else order[block]
        X = np.ascontiguousarray(R[rows], dtype=np.float64)
        yield scatter.add(X, parent[block], target[rows])


class _RowScatter:
    """Adds ``Σ w (x − μ)(x − μ)ᵀ`` over the rows of a block, μ the means of its families; ``Xᵀ t``.

    Columns that are near zero, seen from their deviations, are not centred row by row: the sums of
    squares lose the squares of the means afterwards, ``Σ w x xᵀ − Σ w n μ μᵀ``, which saves a pass
    over the block and costs at most the three digits of `FAR`. A column that would lose more (a
    large offset, or the same value in a whole family) is found from the two sums, and rows are
    centred from then on; only squares of deviations are added then, and nothing cancels.

    The product comes first, the means and ``Xᵀ t`` after it where possible: BLAS hides the way of
    the rows from memory to the cache, a sum over them does not.
    """

    def __init__(self, gram: Array, moment: Array, weight: Array, height: int) -> None:
        self._gram, self._moment, self._weight = gram, moment, weight
        self._height = height
        self._is_far = False

    @cached_property
    def _room(self) -> Array:
        """Room for the rows of a block."""
        return np.empty((self._height, len(self._gram)))

    def add(self, X: Array, parent: NDArray[np.intp], t: Array) -> _Batch:
        """Take a block whose rows are sorted by parent; the means of its families."""
        starts = _starts(parent)
        size = np.diff(starts, append=len(parent))
        weight = self._weight[parent[starts]]
        family = np.repeat(np.arange(len(starts)), size)
        if LONG_FAMILY * len(starts) > len(X):
            self._is_far = True
        means = cache(lambda: _run_means(X, starts, np.ones(len(X)), size))
        self._add(lambda: self._squares(X, means, family, weight), means, weight * size)
        self._moment += X.T @ t
        return _Batch(means(), size.astype(np.float64), parent[starts])

    def add_unsorted(self, R: Array, parent: NDArray[np.intp], t: Array) -> _Batch:
        """Take all rows as they stand, without gathering families; the means of all of them.

        Means first, in a pass of their own, so that rows can be centred in any order. The first
        block tells whether they need to be, most of the time.
        """
        size = np.bincount(parent)
        weight = self._weight[: len(size)]
        indicator = (np.ones(len(R)), parent, np.arange(len(R) + 1))
        means = np.asarray(sp.csc_array(indicator, shape=(len(size), len(R))) @ R)
        means /= np.maximum(size, 1)[:, None]
        first = R[: self._height]
        self._is_far = bool((size @ means**2 > FAR * len(R) * (first**2).mean(axis=0)).any())

        def squares() -> Array:
            total = np.zeros_like(self._gram)
            self._moment[:] = 0.0
            for block in _blocks(len(R), self._height):
                total += self._squares(R[block], lambda: means, parent[block], weight)
                self._moment += R[block].T @ t[block]
            return total

        self._add(squares, lambda: means, weight * size)
        return _Batch(means, size.astype(np.float64), np.arange(len(size)))

    def _add(
        self, squares_of: Callable[[], Array], means_of: Callable[[], Array], weight: Array
    ) -> None:
        """Add squares less those of the means, so weighted, or squares of centred rows."""
        squares = squares_of()
        if not self._is_far:
            root = means_of() * np.sqrt(weight)[:, None]
            lost = root.T @ root
            self._is_far = bool((np.diagonal(lost) > FAR * np.diagonal(squares)).any())
            squares = squares_of() if self._is_far else squares - lost
        self._gram += squares

    def _squares(
        self,
        X: Array,
        means_of: Callable[[], Array],
        family: NDArray[np.intp],
        weight: Array,
    ) -> Array:
        """``Σ w z zᵀ``, z the rows, centred if they are far from zero."""
        Z = X
        if self._is_far:
            Z = np.take(means_of(), family, axis=0, out=self._room[: len(X)], mode="clip")
            np.subtract(X, Z, out=Z)
        if (weight == weight[0]).all():
            return np.asarray(weight[0] * (Z.T @ Z))
        Z = np.multiply(Z, np.sqrt(weight)[family, None], out=self._room[: len(X)])
        return np.asarray(Z.T @ Z)


def _scatter(
    gram: Array, rows: Array, parent: NDArray[np.intp], weight: Array, size: Array
) -> _Batch:
    """Add the scatter of the rows around the means of runs of equal parents; the means.

    Row r stands for size[r] items.
    """
    starts = _starts(parent)
    total = np.add.reduceat(size, starts)
    means = _run_means(rows, starts, size, total)
    centred = rows - np.repeat(means, np.diff(starts, append=len(rows)), axis=0)
    centred *= np.sqrt(weight[parent] * size)[:, None]
    gram += centred.T @ centred
    return _Batch(means, total, parent[starts])


def _starts(parent: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where runs of equal parents begin."""
    return np.flatnonzero(np.concatenate(([True], parent[1:] != parent[:-1])))


def _run_means(rows: Array, starts: NDArray[np.intp], size: Array, total: Any) -> Array:
    """Means of runs of rows; row r stands for size[r] items, a run for so many in total."""
    if len(starts) == 1:
        mean: Array = size @ rows / total[0]
        return mean[None]
    indicator = (size, np.arange(len(rows)), np.append(starts, len(rows)))
    return np.asarray(sp.csr_array(indicator, (len(starts), len(rows))) @ rows / total[:, None])


def _blocks(n_rows: int, height: int) -> Iterator[slice]:
    for start in range(0, n_rows, height):
        yield slice(start, min(start + height, n_rows))


def _blocks_of_families(parent: NDArray[np.intp], height: int) -> Iterator[slice]:
    """Blocks of sorted rows that end where a family ends, unless it is longer than a block."""
    start = 0
    while start < len(parent):
        stop = min(start + height, len(parent))
        if stop < len(parent):
            whole = int(np.searchsorted(parent, parent[stop]))
            stop = whole if whole > start else stop
        yield slice(start, stop)
        start = stop


def _is_plain(R: Any) -> bool:
    """Whether blocks of rows need no copy."""
    return isinstance(R, np.ndarray) and R.dtype == np.float64 and R.flags.c_contiguous


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


def _sorting(parent: NDArray[np.intp]) -> NDArray[np.intp]:
    """Row order that makes every family contiguous."""
    n_rows = len(parent)
    ones = np.ones(n_rows, dtype=np.int8)
    indicator = sp.csr_array((ones, parent, np.arange(n_rows + 1)), (n_rows, parent.max() + 1))
    order: NDArray[np.intp] = indicator.tocsc().indices  # counting sort: 7 × argsort
    return order
