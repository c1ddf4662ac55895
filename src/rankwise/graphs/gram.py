"""Gram matrices of features weighted by a graph, accumulated over blocks of rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise._compiled import add_rows, scale_rows
from rankwise.arrays import Array, Indices, take_weights
from rankwise.caching import cached_property
from rankwise.graphs.levels import Partition
from rankwise.groups import group_means
from rankwise.runtime.threads import LARGE_STEP, map_in_threads

BLOCK_BYTES = 2**23

#: Largest share of a column's sum of squares that may be subtracted as the squares of its means.
MAX_MEAN_SHARE = 0.999

SAMPLE_ROWS = 64  # rows from which the shift of the columns is computed

MAX_PARTIAL_SUMS = 8  # partial sums that are added up at the end, each by one thread


def block_rows(n_columns: int) -> int:
    """Rows of a block that fits into the cache, or is no larger than the Gram matrix."""
    return max(64, n_columns, BLOCK_BYTES // (8 * max(1, n_columns)))


def nested_scatter(
    R: Any, partitions: list[Partition], target: Array, row_weight: Array | None = None
) -> tuple[Array, Array]:
    """Weighted scatter of children around the means of their parents; ``Rᵀ t``.

        G = Σ_partitions Σ_parents weight_p Σ_{children c of p} n_c (μ_c − μ_p)(μ_c − μ_p)ᵀ

    Children of the first partition are the rows of R, children of the next partition are the
    parents of the one before. A row has n_c = 1, or its `row_weight`, and means are weighted in
    the same way. Each block of rows is read from memory once; the product, the means and ``Rᵀ t``
    are computed while the block is in the cache.

    Examples
    --------
    Rows 0 and 1 have one parent, rows 2 and 3 another, whose weight is 3:

    >>> R = np.array([[0.0], [4.0], [5.0], [7.0]])
    >>> target = np.ones(4)
    >>> rows = Partition(np.array([0, 0, 1, 1]), np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    >>> nested_scatter(R, [rows], target)  # 1 · (2² + 2²) + 3 · (1² + 1²)
    (array([[14.]]), array([16.]))

    Both are children of a parent of weight 5 and mean 4:

    >>> parents = Partition(np.array([0, 0]), np.array([5.0]), np.array([4.0]))
    >>> nested_scatter(R, [rows, parents], target)[0]  # 14 + 5 · (2 · 2² + 2 · 2²)
    array([[94.]])
    """
    # weighted scatter of the rows around the means of their parents, of the parents around the
    # means of their parents, and so on; and the moment Rᵀ target
    innermost_partition, *outer_partitions = partitions
    rows = _WeightedRows(R, innermost_partition, target, row_weight)
    gram, moment, means = _scatter_of_rows(rows)
    sizes = innermost_partition.size
    for partition in outer_partitions:  # whose children have these means and sizes
        parent = partition.parent
        parent_means = group_means(means, parent, partition.size, sizes)
        for children in _row_blocks(means):
            parent_of_child = parent[children]
            deviation = means[children] - parent_means[parent_of_child]
            child_weight = partition.weight[parent_of_child] * sizes[children]
            deviation *= np.sqrt(child_weight)[:, None]
            gram += deviation.T @ deviation
        means = parent_means
        sizes = partition.size
    return gram, moment


@dataclass(frozen=True)
class _WeightedRows:
    """Rows of features with their parents, targets and weights."""

    R: Any
    partition: Partition
    target: Array
    row_weight: Array | None

    @property
    def columns_of_target(self) -> Array:
        """Targets of shape (n_rows, n_outputs)."""
        return self.target.reshape(self.R.shape[0], -1)

    @cached_property
    def has_equal_weights(self) -> bool:
        """Whether the scatter of each row has the same weight."""
        weight = self.partition.weight
        return self.row_weight is None and bool((weight == weight[0]).all())


def shift_of_columns(R: Any) -> Array | None:
    """Mean of a sample of rows, to be subtracted from all rows; None if all are near zero."""
    n_rows = R.shape[0]
    sampled_rows = np.arange(0, n_rows, max(1, n_rows // SAMPLE_ROWS))[:SAMPLE_ROWS]
    sample = R[sampled_rows].astype(np.float64)
    mean = sample.mean(axis=0)
    mean_square = (sample**2).mean(axis=0)
    is_far_from_zero = mean**2 > MAX_MEAN_SHARE * mean_square  # compared to its variation
    if not is_far_from_zero.any():  # a shift would not reduce rounding errors
        return None
    return np.asarray(mean)


class BlockedGram:
    """Sums over blocks of rows: ``Rᵀ R``, ``Rᵀ t`` and the sum of the rows of each parent.

    Parameters
    ----------
    rows : _WeightedRows
        All rows; `add` selects a block of them.
    shift : ndarray of shape (n_columns,) or None
        Subtracted from each row.
    centers : ndarray of shape (n_parents, n_columns), optional
        Means of the parents: the Gram matrix is then that of the deviations from them.
    """

    def __init__(
        self, rows: _WeightedRows, shift: Array | None, centers: Array | None = None
    ) -> None:
        # sums over rows less `shift`, and less the center of their parent in the Gram matrix
        n_columns = rows.R.shape[1]
        n_parents = len(rows.partition.weight)
        self._rows = rows
        self._shift = shift
        self._centers = centers
        self._targets = rows.columns_of_target
        # a weight that all rows share is a factor of the result: see `_scatter_of_rows`
        has_equal_weights = rows.has_equal_weights
        if has_equal_weights:
            self._scale_of_parent = np.ones(n_parents)
        else:
            self._scale_of_parent = np.sqrt(rows.partition.weight)
        self._must_scale_rows = centers is not None or not has_equal_weights
        self.gram = np.zeros((n_columns, n_columns))
        self.moment = np.zeros((n_columns, self._targets.shape[1]))
        self.sum_of_parent = np.zeros((n_parents, n_columns))

    def add(self, block: slice) -> None:
        """Add a block of rows."""
        features = self._rows.R[block]
        if self._shift is not None:
            features = features - self._shift
        X = np.ascontiguousarray(features, dtype=np.float64)
        parent = self._rows.partition.parent[block]
        row_weight = take_weights(self._rows.row_weight, block)
        scaled_X = X
        if self._must_scale_rows:
            scaled_X = self._scale_rows(X, parent, row_weight)
        self.gram += scaled_X.T @ scaled_X
        self._add_to_sums(X, parent, row_weight, self._targets[block])

    def merge(self, partial_sum: BlockedGram) -> None:
        """Add the sums over other blocks."""
        self.gram += partial_sum.gram
        self.moment += partial_sum.moment
        self.sum_of_parent += partial_sum.sum_of_parent

    @cached_property
    def means(self) -> Array:
        """Mean of the shifted rows of each parent, after the last block; zero without rows."""
        sizes = self._rows.partition.size
        return self.sum_of_parent / np.where(sizes > 0, sizes, 1.0)[:, None]

    def gram_of_means(self) -> Array:
        """Gram matrix minus the scatter around the means of the parents."""
        # Σ w n μ μᵀ over the parents with weights w, sizes n and means μ
        root_of_weight = self._scale_of_parent * np.sqrt(self._rows.partition.size)
        weighted_means = self.means * root_of_weight[:, None]
        return np.asarray(weighted_means.T @ weighted_means)

    def _scale_rows(self, X: Array, parent: Indices, row_weight: Array | None) -> Array:
        """Deviations from the centers, times the square roots of the weights."""
        root_of_row_weight = None
        if row_weight is not None:
            root_of_row_weight = np.sqrt(row_weight)
        scaled_X = np.empty(X.shape)
        scale_rows(X, parent, self._centers, self._scale_of_parent, scaled_X, root_of_row_weight)
        return scaled_X

    def _add_to_sums(
        self, X: Array, parent: Indices, row_weight: Array | None, targets: Array
    ) -> None:
        """Add the rows to the sums of their parents, and ``Xᵀ t`` to the moment."""
        # `add_rows` adds rows to `sums`, by parent, and Xᵀ factor of one column to `products`
        sums = self.sum_of_parent
        if targets.shape[1] == 1:  # both in one pass
            target = np.ascontiguousarray(targets[:, 0])
            products = self.moment.reshape(-1)  # a view, to which Xᵀ t is added
            add_rows(X, parent, target, sums, products, row_weight)
        else:
            n_rows, n_columns = X.shape
            unused_factor = np.zeros(n_rows)
            unused_products = np.zeros(n_columns)
            add_rows(X, parent, unused_factor, sums, unused_products, row_weight)
            self.moment += X.T @ targets


def _scatter_of_rows(rows: _WeightedRows) -> tuple[Array, Array, Array]:
    """Scatter of the rows around the means of their parents; ``Rᵀ t``; the means.

    The means are known after the last block only, so the squares of the means are subtracted at the
    end, ``Σ w x xᵀ − Σ w n μ μᵀ``, which costs at most the three digits of `MAX_MEAN_SHARE`.
    Columns far from zero are shifted first, by the mean of a sample of rows; the means that are
    returned are shifted, too. If a column would lose more digits (it has one value for all rows of
    a parent), a second pass adds up the squares of centered rows, which do not cancel.
    """
    # shift columns far from zero to their mean: their squares would lose digits
    shift = shift_of_columns(rows.R)
    sums = _add_all_rows(rows, shift)
    moment = sums.moment
    if shift is not None:  # Rᵀ t of the rows before the shift
        moment += np.outer(shift, rows.columns_of_target.sum(axis=0))

    # scatter around the means of the parents: Σ w x xᵀ − Σ w n μ μᵀ
    means = sums.means
    gram_of_means = sums.gram_of_means()
    would_cancel = np.diagonal(gram_of_means) > MAX_MEAN_SHARE * np.diagonal(sums.gram)
    if would_cancel.any():
        scatter = _add_all_rows(rows, shift, centers=means).gram
    else:
        scatter = sums.gram - gram_of_means
    if rows.has_equal_weights:
        scatter *= rows.partition.weight[0]
    return scatter, moment.reshape(len(scatter), *rows.target.shape[1:]), means


def _add_all_rows(
    rows: _WeightedRows, shift: Array | None, centers: Array | None = None
) -> BlockedGram:
    """Sums over all rows.

    The partial sums, and the order in which they are added up, depend only on the shape of the
    data: the result is the same to the last bit for any number of idle cores.
    """

    # the blocks are split into runs, which have a sum each; threads add up runs in parallel
    def sum_over_blocks(blocks: list[slice]) -> BlockedGram:
        partial_sum = BlockedGram(rows, shift, centers)
        for block in blocks:
            partial_sum.add(block)
        return partial_sum

    def sums_of_thread(block_runs: list[list[slice]]) -> list[BlockedGram]:
        return [sum_over_blocks(blocks) for blocks in block_runs]

    n_rows, n_columns = rows.R.shape
    n_multiplications = n_rows * n_columns**2
    n_parents = len(rows.partition.weight)
    block_runs = _split_blocks(list(_row_blocks(rows.R)), n_multiplications, n_parents)
    sums_by_thread = map_in_threads(sums_of_thread, block_runs, n_multiplications)
    total, *further_sums = itertools.chain.from_iterable(sums_by_thread)
    for partial_sum in further_sums:
        total.merge(partial_sum)
    return total


def _split_blocks(
    blocks: list[slice], n_multiplications: float, n_parents: int
) -> list[list[slice]]:
    """Consecutive blocks of each partial sum.

    A small step has one partial sum. The sums by parent of all partial sums together have at most
    one eighth of the size of the data.
    """
    if n_multiplications < LARGE_STEP:
        return [blocks]
    n_rows = blocks[-1].stop
    n_sums_in_memory = max(1, n_rows // (8 * n_parents))
    n_sums = min(MAX_PARTIAL_SUMS, len(blocks), n_sums_in_memory)
    bounds = [len(blocks) * k // n_sums for k in range(n_sums + 1)]
    return [blocks[start:stop] for start, stop in itertools.pairwise(bounds)]


def plain_system(R: Any, target: Array, row_weight: Array | None = None) -> tuple[Array, Array]:
    """``Rᵀ D R`` and ``Rᵀ t`` in float64 with D = diag(row_weight), 1 if not given.

    Dense R is read a block of rows at a time.
    """
    # Rᵀ D R and Rᵀ t with the weights D of the rows
    if sp.issparse(R):
        weighted_R = R
        if row_weight is not None:
            weighted_R = R.multiply(row_weight[:, None]).tocsr()
        gram = np.asarray((R.T @ weighted_R).toarray(), dtype=np.float64)
        return gram, np.asarray(R.T @ target)
    n_columns = R.shape[1]
    gram = np.zeros((n_columns, n_columns))
    moment = np.zeros((n_columns, *target.shape[1:]))
    for block in _row_blocks(R):
        X = np.ascontiguousarray(R[block], dtype=np.float64)
        moment += X.T @ target[block]
        if row_weight is not None:
            X = X * np.sqrt(row_weight[block])[:, None]
        gram += X.T @ X
    return gram, moment


def sums_of_squares(S: Any, weight: NDArray[Any] | None = None) -> Array:
    """``Σ_i w_i s_i²`` for each column s of sparse S; the weights are 1 if not given."""
    if weight is None:
        weight = np.ones(S.shape[0])
    return np.asarray(S.multiply(S).T @ weight)


def _row_blocks(R: Any) -> Iterator[slice]:
    n_rows, n_columns = R.shape
    n_rows_of_block = block_rows(n_columns)
    for start in range(0, n_rows, n_rows_of_block):
        yield slice(start, min(start + n_rows_of_block, n_rows))
