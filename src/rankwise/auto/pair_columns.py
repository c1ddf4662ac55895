"""Columns of pairs of items: clipped gaps of numbers, and pairs of categories."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.auto.item_cells import ItemCells

GAP_LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75)  # quantiles of the absolute gaps, where they are clipped
MAX_INTERACTIONS = 2000  # pairs of categories


class GapLimits(NamedTuple):
    """Limits at which the gaps of columns are clipped.

    Attributes
    ----------
    column : ndarray of int, shape (n_limits,)
        Column of the numbers.
    max_gap : ndarray of shape (n_limits,)
        Largest absolute gap.
    """

    column: Indices
    max_gap: Array


def choose_gap_limits(numbers: Array, first: Indices, second: Indices) -> GapLimits:
    """Quantiles of the absolute gaps of each column, over the comparisons."""
    # gap: the difference of a number between the two items of a comparison
    columns: list[Indices] = [np.zeros(0, dtype=np.intp)]  # concatenate needs one array
    limits: list[Array] = [np.zeros(0)]
    for column, values in enumerate(numbers.T):
        absolute_gaps = np.abs(values[first] - values[second])
        positive_gaps = absolute_gaps[absolute_gaps > 0]  # without missing ones, NaN
        if len(positive_gaps):
            quantiles = np.quantile(positive_gaps, GAP_LEVELS, method="inverted_cdf")
            limits_of_column = np.unique(quantiles)
            columns.append(np.full(len(limits_of_column), column))
            limits.append(limits_of_column)
    return GapLimits(np.concatenate(columns), np.concatenate(limits))


def clipped_gaps(numbers: Array, first: Indices, second: Indices, limits: GapLimits) -> Array:
    """Gaps between −1 and 1, as shares of the limits; 0 if a number is missing."""
    # gap: the difference of a number between the two items; a number may have several limits
    values = numbers[:, limits.column]  # (n_items, n_limits)
    gaps = np.nan_to_num(values[first] - values[second])  # 0 if a number is missing
    return np.clip(gaps, -limits.max_gap, limits.max_gap) / limits.max_gap


class InteractionTable(NamedTuple):
    """Effects of pairs of categories, one of each item, minus the effect of the reversed pair.

    Attributes
    ----------
    left, right : int
        Columns of the codes.
    n_left, n_right : int
        Numbers of their categories, with one for missing values.
    """

    left: int
    right: int
    n_left: int
    n_right: int

    @property
    def n_entries(self) -> int:
        """Number of pairs of categories."""
        return self.n_left * self.n_right


def choose_interactions(codes: Array) -> list[InteractionTable]:
    """Each column with itself, then columns with each other, while the tables are small."""
    n_columns = codes.shape[1]
    n_categories = [_n_categories(column) for column in codes.T]
    same_column = [(column, column) for column in range(n_columns)]
    two_columns = list(itertools.combinations(range(n_columns), 2))
    tables = []
    n_entries = 0
    for left, right in same_column + two_columns:
        table = InteractionTable(left, right, n_categories[left], n_categories[right])
        if n_entries + table.n_entries <= MAX_INTERACTIONS:  # else too large: skip this table
            n_entries += table.n_entries
            tables.append(table)
    return tables


def categories_of(codes: Array, n_categories: int) -> Indices:
    """Codes as positions in a table; the last one is for missing and new values."""
    missing_or_new = n_categories - 1  # the last category
    categories = np.where(np.isnan(codes), missing_or_new, codes)
    return np.minimum(categories, missing_or_new).astype(np.intp)  # new codes are larger


class InteractionIndicators(NamedTuple):
    """Indicators of the pairs of categories that occur.

    Attributes
    ----------
    columns : csr_array of shape (n_comparisons, n_occurring)
        1 for a pair of categories, −1 for its reverse.
    entry : ndarray of int, shape (n_occurring,)
        Position of each column in the concatenated entries of all tables.
    """

    columns: sp.csr_array
    entry: Indices


def interaction_indicators(
    codes: Array, first: Indices, second: Indices, tables: list[InteractionTable]
) -> InteractionIndicators:
    """Indicators of pairs of categories in the comparisons.

    The table of a column with itself has entries above the diagonal only: those below are their
    opposites.
    """
    # The columns of all tables side by side, one for each pair of categories, with entries 1, −1
    # and 0; only columns with a nonzero entry are kept.
    n_comparisons = len(first)
    blocks = [sp.csr_array((n_comparisons, 0))]  # hstack needs a block if there are no tables
    blocks += [_indicators_of_table(table, codes, first, second) for table in tables]
    all_columns = sp.csc_array(sp.hstack(blocks))
    n_nonzero_of_column = np.diff(all_columns.indptr)
    occurring = np.flatnonzero(n_nonzero_of_column)
    return InteractionIndicators(sp.csr_array(all_columns[:, occurring]), occurring)


def _indicators_of_table(
    table: InteractionTable, codes: Array, first: Indices, second: Indices
) -> sp.csr_array:
    """One column for each entry of the table, shape (n_comparisons, n_entries)."""
    left = categories_of(codes[:, table.left], table.n_left)
    right = categories_of(codes[:, table.right], table.n_right)

    # A table has an entry for each pair of a left and a right category. A comparison is 1 at
    # (left of first item, right of second item) and −1 at (left of second, right of first).
    n_comparisons = len(first)
    rows = np.tile(np.arange(n_comparisons), 2)
    left_category = np.concatenate([left[first], left[second]])
    right_category = np.concatenate([right[second], right[first]])
    signs = np.repeat([1.0, -1.0], n_comparisons)
    if table.left == table.right:  # only above the diagonal: an entry below is the opposite
        signs = np.where(left_category < right_category, signs, 0.0)

    entries = left_category * table.n_right + right_category
    indicators = sp.csr_array((signs, (rows, entries)), shape=(n_comparisons, table.n_entries))
    indicators.eliminate_zeros()
    return indicators


def pair_rows(
    cells: ItemCells, first: Indices, second: Indices, encoded_covariates: EncodedCovariates
) -> Array:
    """Rows for trees: numbers of both items, their gaps, covariates, and codes of both items."""
    numbers = cells.numbers
    codes = cells.codes
    return np.hstack(
        [
            numbers[first],
            numbers[second],
            numbers[first] - numbers[second],
            encoded_covariates.numbers,
            codes[first],
            codes[second],
            encoded_covariates.codes,
        ]
    )


class EncodedCovariates(NamedTuple):
    """Covariates of comparisons: numbers from the first item's point of view, and codes."""

    numbers: Array
    codes: Array

    def swapped(self) -> EncodedCovariates:
        """The same from the point of view of the second item."""
        return EncodedCovariates(-self.numbers, self.codes)

    def take(self, rows: Indices) -> EncodedCovariates:
        """The covariates of the selected comparisons."""
        return EncodedCovariates(self.numbers[rows], self.codes[rows])


def _n_categories(codes: Array) -> int:
    largest_code = int(np.nanmax(codes, initial=-1.0))  # −1 if all are missing
    n_observed = largest_code + 1
    return n_observed + 1  # one for missing values
