"""Gram matrices of features weighted by a graph, accumulated over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise._compiled import add_rows, scale_rows
from rankwise.arrays import Array, Indices
from rankwise.graphs.levels import Partition, group_means, group_sums
from rankwise.runtime.threads import map_in_threads

BLOCK_BYTES = 2**23

FAR = 0.999  # rows are centered if the means hold this share of the squares of some column

SAMPLE = 64  # rows that tell whether columns are far from zero


def block_rows(n_columns: int) -> int:
    """Rows of a block that stays in the cache, or that is no larger than the Gram matrix."""
    return max(64, n_columns, BLOCK_BYTES // (8 * max(1, n_columns)))


def nested_scatter(
    R: Any, nestings: list[Partition], target: Array, mass: Array | None = None
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
    (family, weight), *outer = nestings
    size = group_sums(mass, family, len(weight))
    gram, moment, means = _scatter_of_rows(R, family, weight, size, target, mass)
    for parent, weight in outer:
        size_of_parent = group_sums(size, parent, len(weight))
        parent_means = group_means(means, parent, size_of_parent, size)
        for block in _blocks(means):
            centered = means[block] - parent_means[parent[block]]
            centered *= np.sqrt(weight[parent[block]] * size[block])[:, None]
            gram += centered.T @ centered
        means, size = parent_means, size_of_parent
    return gram, moment


def _scatter_of_rows(
    R: Any, family: Indices, weight: Array, size: Array, target: Array, mass: Array | None
) -> tuple[Array, Array, Array]:
    """Scatter of the rows around the means of their families; ``Rᵀ t``; and the means.

    Means are known at the end only. So the squares lose those of the means then, ``Σ w x xᵀ −
    Σ w n μ μᵀ``, which costs at most the three digits of `FAR`. Columns far from zero are shifted
    first, by the mean of some rows; the means that are returned are then shifted, too. A column
    that would still lose more (one value for a whole family) asks for a second pass, over centered
    rows, where nothing cancels.
    """
    n_rows, n_columns = R.shape
    columns = target.reshape(n_rows, -1)
    few = np.arange(0, n_rows, max(1, n_rows // SAMPLE))[:SAMPLE]
    sample = R[few].astype(np.float64)
    center = sample.mean(axis=0)
    if not (center**2 > FAR * (sample**2).mean(axis=0)).any():
        center = np.zeros(n_columns)
    is_far = bool(center.any())
    is_even = mass is None and bool((weight == weight[0]).all())
    root = np.ones_like(weight) if is_even else np.sqrt(weight)

    def add_up(blocks: list[slice], means: Array | None = None) -> tuple[Array, Array, Array]:
        """Squares (around the means if given), ``Rᵀ t`` and sums by family of these rows."""
        squares, moment = np.zeros((n_columns, n_columns)), np.zeros((n_columns, columns.shape[1]))
        sums = np.zeros((len(weight), n_columns))
        for block in blocks:
            mass_here = None if mass is None else mass[block]
            rows = R[block] - center if is_far else R[block]
            X = Z = np.ascontiguousarray(rows, dtype=np.float64)
            if means is not None or not is_even:
                factor = None if mass_here is None else np.sqrt(mass_here)
                Z = np.empty(X.shape)
                scale_rows(X, family[block], means, root, Z, factor)
            squares += Z.T @ Z
            if columns.shape[1] == 1:
                t = np.ascontiguousarray(columns[block, 0])
                add_rows(X, family[block], t, sums, moment.reshape(-1), mass_here)
            else:
                add_rows(X, family[block], np.zeros(len(X)), sums, np.zeros(n_columns), mass_here)
                moment += X.T @ columns[block]
        return squares, moment, sums

    blocks, n_multiplications = list(_blocks(R)), n_rows * n_columns**2
    (squares, moment, sums), *others = map_in_threads(add_up, blocks, n_multiplications)
    for more_squares, more_moment, more_sums in others:
        squares += more_squares
        moment += more_moment
        sums += more_sums
    if is_far:
        moment += np.outer(center, columns.sum(axis=0))
    means = sums / np.where(size > 0, size, 1.0)[:, None]
    roots = means * (root * np.sqrt(size))[:, None]
    lost = roots.T @ roots
    if (np.diagonal(lost) > FAR * np.diagonal(squares)).any():
        again = map_in_threads(partial(add_up, means=means), blocks, n_multiplications)
        squares = sum((more_squares for more_squares, *_ in again), start=np.zeros(1))
    else:
        squares -= lost
    squares *= weight[0] if is_even else 1.0
    return squares, moment.reshape(n_columns, *target.shape[1:]), means


def plain_system(R: Any, target: Array, mass: Array | None = None) -> tuple[Array, Array]:
    """``Rᵀ D R`` and ``Rᵀ t`` in float64, D the mass of the rows, 1 if not given.

    A block of rows at a time unless R is sparse.
    """
    if sp.issparse(R):
        heavy = R if mass is None else R.multiply(mass[:, None]).tocsr()
        return np.asarray((R.T @ heavy).toarray(), dtype=np.float64), np.asarray(R.T @ target)
    n_columns = R.shape[1]
    gram, moment = np.zeros((n_columns, n_columns)), np.zeros((n_columns, *target.shape[1:]))
    for block in _blocks(R):
        rows = np.ascontiguousarray(R[block], dtype=np.float64)
        moment += rows.T @ target[block]
        if mass is not None:
            rows = rows * np.sqrt(mass[block])[:, None]
        gram += rows.T @ rows
    return gram, moment


def sums_of_squares(S: Any, weight: Array | None = None) -> Array:
    """``Σ_i w_i s_i²`` for every column s of sparse S; the weights are 1 if not given."""
    weight = np.ones(S.shape[0]) if weight is None else weight
    return np.asarray(S.multiply(S).T @ weight)


def _blocks(R: Any) -> Iterator[slice]:
    height = block_rows(R.shape[1])
    for start in range(0, R.shape[0], height):
        yield slice(start, start + height)
