"""Comparisons of teams: the items on each side, and the differences that are determined."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import PairData
from rankwise.datasets.teams import Teams

NULL_LIMIT = 2000  # items, up to which the null space of the comparisons is computed
NULL_EIGENVALUE = 1e-10  # relative to the largest eigenvalue
EQUAL_ENTRIES = 1e-7  # of two rows of the null space
N_PROBES = 3


class SignedMembers(NamedTuple):
    """Nonzero entries of the rows ``Σ members − Σ members``, in arrays of one width.

    Attributes
    ----------
    item : ndarray of int, shape (n_rows, width)
        Items on both sides; the last entries of a short row are item 0 with the weight 0.
    weight : ndarray of shape (n_rows, width)
        Share of the item, negative on the second side.
    """

    item: Indices
    weight: Array


class TeamRows:
    """Rows ``Σ members − Σ members`` of comparisons of teams.

    Parameters
    ----------
    teams : Teams
        The teams.
    first, second : ndarray of shape (n_rows,)
        Teams on the two sides.
    n_items : int
        Number of items.
    """

    def __init__(self, teams: Teams, first: Indices, second: Indices, n_items: int) -> None:
        # A row is the shares of the items on the first side minus those on the second side.
        matrix = team_matrix(teams, n_items)
        self.n_items = n_items
        self.first = matrix[first]
        self.second = matrix[second]
        self.matrix: sp.csr_array = self.first - self.second

    def select(self, rows: Indices) -> sp.csr_array:
        """Return the rows of some comparisons."""
        return self.matrix[rows]

    @cached_property
    def members(self) -> SignedMembers:
        """Nonzero entries of the rows."""
        # The entries of the sparse rows, in dense arrays as wide as the longest row.
        matrix = self.matrix
        row_sizes = np.diff(matrix.indptr)
        n_rows = len(row_sizes)
        row = np.repeat(np.arange(n_rows), row_sizes)
        position_in_row = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], row_sizes)

        shape = (n_rows, int(row_sizes.max(initial=1)))
        item = np.zeros(shape, np.intp)
        weight = np.zeros(shape)
        item[row, position_in_row] = matrix.indices
        weight[row, position_in_row] = matrix.data
        return SignedMembers(item, weight)

    @cached_property
    def null_space(self) -> Array:
        """Orthonormal basis of the changes of ratings that change no margin."""
        return null_space(self.matrix)

    @cached_property
    def components(self) -> Indices:
        """Number of the set of each item whose differences the comparisons determine.

        Sets are numbered from 1 in decreasing order of size. For more than 2,000 items they are the
        items that are connected by comparisons.
        """
        # The difference of two items is determined if no change of ratings that changes no margin
        # changes it: if their rows of the null space are equal.
        if self.n_items <= NULL_LIMIT:
            return number_by_size(equal_rows(self.null_space))
        return determined_sets(self.matrix)

    @cached_property
    def has_level(self) -> bool:
        """Whether a change of all ratings by the same number changes a margin."""
        # Changes of the margins if all ratings increase by 1.
        margin_changes = np.asarray(self.matrix.sum(axis=1))
        rounding = EQUAL_ENTRIES * np.abs(self.matrix.data).max()
        return bool(np.abs(margin_changes).max() > rounding)

    def sum_members(
        self, first_values: Array | NDArray[np.bool_], second_values: Array | NDArray[np.bool_]
    ) -> Array:
        """Sum a value of each row over the comparisons of each item, on either side."""
        # Each comparison adds its first value to all members of the first side, and so on.
        is_on_first = self.first != 0  # (n_rows, n_items)
        is_on_second = self.second != 0
        sums_on_first = is_on_first.T @ np.asarray(first_values, np.float64)
        sums_on_second = is_on_second.T @ np.asarray(second_values, np.float64)
        return np.asarray(sums_on_first + sums_on_second)

    def determines(self, contrasts: sp.csr_array) -> Array:
        """Whether the comparisons determine each of several sums of ratings."""
        if self.n_items > NULL_LIMIT:  # too many items to know; as if it were determined
            return np.ones(contrasts.shape[0], bool)
        # A sum is undetermined if it depends on changes of ratings that change no margin.
        largest_change = np.abs(contrasts @ self.null_space).max(axis=1, initial=0.0)
        rounding = EQUAL_ENTRIES * np.abs(contrasts).sum(axis=1)
        return np.asarray(largest_change <= rounding)


def side_rows(data: PairData) -> sp.csr_array:
    """Row of each comparison: 1 for the items on the first side, −1 on the second."""
    if data.teams is None:
        sides = sp.eye_array(data.n_items, format="csr")
    else:
        sides = team_matrix(data.teams, data.n_items)
    return sp.csr_array(sides[data.first] - sides[data.second])


def team_matrix(teams: Teams, n_items: int) -> sp.csr_array:
    """Share of each item in each team, of shape (n_teams, n_items)."""
    team_starts = np.concatenate([[0], np.cumsum(teams.sizes)])
    return sp.csr_array((teams.share, teams.item, team_starts), shape=(teams.n_teams, n_items))


def determined_sets(rows: sp.csr_array) -> Indices:
    """Number of the set of each item whose differences the rows determine, as in `TeamRows`."""
    n_rows, n_items = rows.shape
    if n_items <= NULL_LIMIT:
        # Items whose rows of the null space are equal have a determined difference.
        return number_by_size(equal_rows(null_space(rows)))

    # For many items the connected components of a graph of rows and items, with an edge for each
    # nonzero entry.
    adjacency = sp.block_array([[None, rows], [rows.T, None]])
    labels = connected_components(adjacency, directed=False)[1]
    item_labels = labels[n_rows:]
    return number_by_size(np.unique(item_labels, return_inverse=True)[1])


def null_space(rows: sp.csr_array) -> Array:
    """Return an orthonormal basis N of the vectors v with ``rows @ v = 0``.

    The columns are scaled to length 1 first, so that items with small shares are not lost.
    """
    # Eigenvectors of the Gram matrix with the eigenvalue 0, after scaling columns to length 1.
    n_items = rows.shape[1]
    column_norms = np.sqrt(np.asarray(rows.power(2).sum(axis=0)))
    column_norms[column_norms == 0] = 1.0
    scaled_rows = rows @ sp.diags_array(1 / column_norms)

    eigenvalues, eigenvectors = eigh((scaled_rows.T @ scaled_rows).toarray())
    is_null = eigenvalues <= NULL_EIGENVALUE * max(float(eigenvalues[-1]), 1.0)
    if not is_null.any():
        return np.empty((n_items, 0))
    null_vectors = eigenvectors[:, is_null] / column_norms[:, None]
    return np.asarray(np.linalg.qr(null_vectors)[0])


def equal_rows(basis: Array) -> Indices:
    """Number the classes of equal rows, by products with random vectors."""
    rng = np.random.default_rng(0)
    products = basis @ rng.standard_normal((basis.shape[1], N_PROBES))
    # Equal rows have equal products with every random vector, up to rounding. For each vector, rows
    # with equal products get the same class.
    classes = np.zeros((len(basis), N_PROBES), np.intp)
    for probe, values in enumerate(products.T):
        order = np.argsort(values)
        sorted_values = values[order]
        starts_class = np.diff(sorted_values, prepend=sorted_values[:1]) > EQUAL_ENTRIES
        classes[order, probe] = np.cumsum(starts_class)
    return np.asarray(np.unique(classes, axis=0, return_inverse=True)[1])


def number_by_size(labels: Indices) -> Indices:
    """Number sets of items from 1 in decreasing order of size; of two, the first item decides."""
    sizes = np.bincount(labels)
    first_item = np.unique(labels, return_index=True)[1]
    by_size = np.lexsort((first_item, -sizes))  # largest first; of equal ones by their first item
    number_of_label = np.empty(len(sizes), dtype=np.intp)
    number_of_label[by_size] = np.arange(1, len(sizes) + 1)
    return np.asarray(number_of_label[labels])
