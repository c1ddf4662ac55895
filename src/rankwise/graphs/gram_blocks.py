"""Gram matrices added up over blocks of rows: plain, or of rows around the means of families.

Features may be an array, or anything that has a shape and gives dense rows when it is indexed, such
as kernel values that are computed a block of rows at a time and never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise._compiled import add_rows, scale_rows
from rankwise.arrays import Array

BLOCK_BYTES = 2**23
FAR = 0.999  # rows are centered if the means hold this share of the squares of some column
LONG_FAMILY = 8  # rows; with shorter families the means of all of them would take much room
EVERY = slice(None)
SAMPLE = 64  # rows of one family that tell whether columns are far from zero


def block_rows(n_columns: int) -> int:
    """Rows of a block that stays in the cache, or that is no larger than the Gram matrix."""
    return max(64, n_columns, BLOCK_BYTES // (8 * max(1, n_columns)))


class Nesting(NamedTuple):
    """One step of nesting: the parent of each child, and the weight of each parent's scatter."""

    parent: NDArray[np.intp]
    weight: Array


class Means(NamedTuple):
    """Means of families: row r stands for size[r] items and is number name[r] of its nesting.

    The size is the weight of these items, if they have weights; it may be zero.
    """

    rows: Array
    size: Array
    name: NDArray[np.intp]

    def part(self, rows: slice) -> Means:
        """Some of them."""
        return Means(self.rows[rows], self.size[rows], self.name[rows])


def nested_scatter(
    R: Any, nestings: list[Nesting], target: Array, mass: Array | None = None
) -> tuple[Array, Array]:
    """Σ of the weighted scatter of children around the mean of their parent; ``Rᵀ t``.

        G = Σ_nestings Σ_parents weight_p Σ_{children c of p} n_c (μ_c − μ_p)(μ_c − μ_p)ᵀ

    Children of the first nesting are the rows of R, children of the next its parents. A row counts
    n_c = 1, or its mass if that is given, and the means are weighted in the same way. A block of
    rows is read from memory once and is in the cache for the product, the means and ``Rᵀ t``.

    Examples
    --------
    Rows 0 and 4 are one family, 5 and 7 another, which weighs three times as much:

    >>> R, target = np.array([[0.0], [4.0], [5.0], [7.0]]), np.ones(4)
    >>> nesting = Nesting(np.array([0, 0, 1, 1]), np.array([1.0, 3.0]))
    >>> nested_scatter(R, [nesting], target)  # 1 · (2² + 2²) + 3 · (1² + 1²)
    (array([[14.]]), array([16.]))

    Both are children of a parent of weight 5 and mean 4:

    >>> parent = Nesting(np.array([0, 0]), np.array([5.0]))
    >>> nested_scatter(R, [nesting, parent], target)[0]  # 14 + 5 · (2 · 2² + 2 · 2²)
    array([[94.]])
    """
    columns = target.reshape(R.shape[0], -1)
    gram, moment = _empty_system(R, columns)
    nestings = _without_only_children(nestings)
    if not nestings:
        moment = plain_system(R, columns)[1]
    else:
        _add_scatter(gram, moment, R, nestings, columns, mass)
    return gram, moment.reshape(R.shape[1], *target.shape[1:])


def plain_system(R: Any, target: Array, mass: Array | None = None) -> tuple[Array, Array]:
    """``Rᵀ D R`` and ``Rᵀ t`` in float64, D the mass of the rows, 1 if not given.

    A block of rows at a time unless R is sparse.
    """
    if sp.issparse(R):
        heavy = R if mass is None else R.multiply(mass[:, None]).tocsr()
        return np.asarray((R.T @ heavy).toarray(), dtype=np.float64), np.asarray(R.T @ target)
    gram, moment = _empty_system(R, target)
    for block in _blocks(R):
        rows = np.ascontiguousarray(R[block], dtype=np.float64)
        moment += rows.T @ target[block]
        if mass is not None:
            rows = rows * np.sqrt(mass[block])[:, None]
        gram += rows.T @ rows
    return gram, moment


def plain_gram(R: Any, mass: Array | None = None) -> Array:
    """``Rᵀ D R`` in float64."""
    return plain_system(R, np.empty((R.shape[0], 0)), mass)[0]


def _empty_system(R: Any, target: Array) -> tuple[Array, Array]:
    n_columns = R.shape[1]
    return np.zeros((n_columns, n_columns)), np.zeros((n_columns, *target.shape[1:]))


def _add_scatter(
    gram: Array,
    moment: Array,
    R: Any,
    nestings: list[Nesting],
    target: Array,
    mass: Array | None,
) -> None:
    """A chain of generators: rows, their families, the parents of those, ..."""
    first, *others = nestings
    has_long_families = LONG_FAMILY * (first.parent.max() + 1) <= R.shape[0]
    scatter = (
        _scatter_of_long_families
        if isinstance(R, np.ndarray) and has_long_families
        else _scatter_of_sorted_rows
    )
    means = scatter(gram, moment, R, first, target, mass)
    means = _joined(gram, means, first.weight)
    for nesting in others:
        means = _joined(gram, _scatters(gram, means, nesting), nesting.weight)
    for _ in means:
        pass


def _scatter_of_long_families(
    gram: Array,
    moment: Array,
    R: NDArray[Any],
    nesting: Nesting,
    target: Array,
    mass: Array | None,
) -> Iterator[Means]:
    """Take the rows as they stand; the means of all families are in memory.

    Means are known at the end only. So the squares lose those of the means then, ``Σ w x xᵀ −
    Σ w n μ μᵀ``, which costs at most the three digits of `FAR`. A column that would lose more (a
    large offset, or one value for a whole family) asks for a second pass, over centered rows, where
    nothing cancels. Some rows of one family tell beforehand, most of the time.

    The product comes first: BLAS hides the way of the rows from memory to the cache.
    """
    count = np.bincount(nesting.parent)
    size = count if mass is None else np.bincount(nesting.parent, weights=mass)
    weight = nesting.weight[: len(size)]
    product = _Product(R, weight, mass)
    sums = np.zeros((len(size), R.shape[1]))
    is_far = _has_far_columns(R[np.flatnonzero(nesting.parent == np.argmax(count))[:SAMPLE]])
    squares = np.zeros_like(gram)
    for block in _blocks(R):
        X, family = np.ascontiguousarray(R[block]), nesting.parent[block]
        if not is_far:
            squares += product.of(X, family, None, block)
        _add_rows(X, family, target[block], sums, moment, _some(mass, block))
    means = _means(sums, size)
    root = means * np.sqrt(weight * size)[:, None]
    lost = root.T @ root
    if is_far or (np.diagonal(lost) > FAR * np.diagonal(squares)).any():
        squares[:] = 0.0
        for block in _blocks(R):
            X, family = np.ascontiguousarray(R[block]), nesting.parent[block]
            squares += product.of(X, family, means, block)
    else:
        squares -= lost
    gram += squares
    yield Means(means, size.astype(np.float64), np.arange(len(size)))


def _scatter_of_sorted_rows(
    gram: Array, moment: Array, R: Any, nesting: Nesting, target: Array, mass: Array | None
) -> Iterator[Means]:
    """Bring families together; rows are centered around the mean of their family in the block."""
    parent, order = nesting.parent, None
    if (parent[1:] < parent[:-1]).any():
        order = _sorting(parent)
        parent = parent[order]
    product = _Product(R, nesting.weight, mass)
    for block in _blocks_of_families(parent, min(block_rows(R.shape[1]), len(parent))):
        rows = block if order is None else order[block]
        X = _as_floats(R[rows])
        starts = _starts(parent[block])
        name, size = parent[block][starts], np.diff(starts, append=len(X))
        family = np.repeat(np.arange(len(starts)), size)
        if mass is not None:
            size = np.add.reduceat(mass[rows], starts)
        sums = np.zeros((len(starts), R.shape[1]))
        _add_rows(X, family, target[rows], sums, moment, _some(mass, rows))
        means = _means(sums, size)
        gram += product.of(X, family, means, rows, name)
        yield Means(means, size.astype(np.float64), name)


class _Product:
    """``Σ w n (x − μ)(x − μ)ᵀ`` over the rows of a block, w and μ by family, n the mass."""

    def __init__(self, R: Any, weight: Array, mass: Array | None) -> None:
        n_columns = R.shape[1]
        self._is_even = bool((weight == weight[0]).all())
        self._common = weight[0] if self._is_even else 1.0
        self._root = np.ones_like(weight) if self._is_even else np.sqrt(weight)
        self._room = np.empty((min(block_rows(n_columns), R.shape[0]), n_columns))
        self._root_mass = None if mass is None else np.sqrt(mass)

    def of(
        self,
        X: NDArray[Any],
        family: NDArray[np.intp],
        means: Array | None,
        rows: NDArray[np.intp] | slice,
        name: NDArray[np.intp] | slice = EVERY,
    ) -> Array:
        """No means leave the rows where they are; `name` says which families are numbered here."""
        factor = _some(self._root_mass, rows)
        if means is None and self._is_even and factor is None and X.dtype == np.float64:
            return np.asarray(self._common * (X.T @ X))
        Z = self._room[: len(X)]
        scale_rows(X, family, means, self._root[name], Z, factor)
        return np.asarray(self._common * (Z.T @ Z))


def _some(mass: Array | None, rows: NDArray[np.intp] | slice) -> Array | None:
    return None if mass is None else mass[rows]


def _means(sums: Array, size: NDArray[Any]) -> Array:
    """Quotients; zero for a family without items or weight."""
    return np.asarray(sums / np.where(size > 0, size, 1)[:, None])


def _add_rows(
    X: NDArray[Any],
    family: NDArray[np.intp],
    t: Array,
    sums: Array,
    moment: Array,
    mass: Array | None,
) -> None:
    """Sums of families and ``Xᵀ t``: in one go for one output, by BLAS for several."""
    if t.shape[1] == 1:
        add_rows(X, family, np.ascontiguousarray(t[:, 0]), sums, moment.reshape(-1), mass)
        return
    add_rows(X, family, np.zeros(len(X)), sums, np.zeros(X.shape[1]), mass)
    if t.shape[1]:
        moment += X.T @ t


def _has_far_columns(rows: NDArray[Any]) -> bool:
    """Whether some column is nearly the same in all of these rows."""
    rows = rows.astype(np.float64)
    return bool((rows.mean(axis=0) ** 2 > FAR * (rows**2).mean(axis=0)).any())


def _joined(gram: Array, batches: Iterable[Means], weight: Array) -> Iterator[Means]:
    """Join families that go on from batch to batch; adds the scatter of their parts."""
    last: Means | None = None
    for batch in batches:
        if last is not None and last.name[0] == batch.name[0]:
            both = _join(last, batch.part(slice(0, 1)))
            last, batch = _scatter(gram, both, both.name, weight), batch.part(slice(1, None))
        if len(batch.name):
            if last is not None:
                batch = _join(last, batch)
            yield batch.part(slice(0, -1))
            last = batch.part(slice(-1, None))
    if last is not None:
        yield last


def _scatters(gram: Array, batches: Iterable[Means], nesting: Nesting) -> Iterator[Means]:
    for batch in batches:
        if len(batch.name):
            yield _scatter(gram, batch, nesting.parent[batch.name], nesting.weight)


def _scatter(gram: Array, children: Means, parent: NDArray[np.intp], weight: Array) -> Means:
    """Add the scatter of children around the means of runs of equal parents; those means."""
    starts = _starts(parent)
    size = np.add.reduceat(children.size, starts)
    indicator = (children.size, np.arange(len(parent)), np.append(starts, len(parent)))
    sums = sp.csr_array(indicator, (len(starts), len(parent))) @ children.rows
    means = _means(sums, size)
    centered = children.rows - np.repeat(means, np.diff(starts, append=len(parent)), axis=0)
    centered *= np.sqrt(weight[parent] * children.size)[:, None]
    gram += centered.T @ centered
    return Means(means, size, parent[starts])


def _join(one: Means, other: Means) -> Means:
    return Means(*(np.concatenate(parts) for parts in zip(one, other, strict=True)))


def _starts(parent: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where runs of equal parents begin."""
    return np.flatnonzero(np.concatenate(([True], parent[1:] != parent[:-1])))


def _as_floats(X: Any) -> NDArray[Any]:
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    return np.ascontiguousarray(X, dtype=dtype)


def _blocks(R: Any) -> Iterator[slice]:
    height = block_rows(R.shape[1])
    for start in range(0, R.shape[0], height):
        yield slice(start, start + height)


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


def _without_only_children(nestings: list[Nesting]) -> list[Nesting]:
    """Leave out nestings where no parent has two children: they have no scatter."""
    kept: list[Nesting] = []
    above: NDArray[np.intp] | None = None  # from the children of this nesting to those dropped
    for nesting in nestings:
        parent = nesting.parent if above is None else nesting.parent[above]
        if np.bincount(parent).max(initial=0) > 1:
            kept.append(Nesting(parent, nesting.weight))
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
