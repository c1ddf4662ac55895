"""Comparisons of items as arrays that do not depend on the order of sides and rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.auto.capped_link import Outcomes
from rankwise.auto.pair_columns import EncodedCovariates


@dataclass(frozen=True, eq=False)
class ItemComparisons:
    """Comparisons of rows of a table of items.

    Attributes
    ----------
    first, second : ndarray of int, shape (n_comparisons,)
        Row numbers of the two items.
    first_win_share : ndarray of shape (n_comparisons,)
        1 if the first item won, 0 if the second one did, and 1/2 for a tie.
    weight : ndarray of shape (n_comparisons,)
        Weights of the comparisons.
    covariates : ndarray of shape (n_comparisons, n_numbers)
        Covariates from the point of view of the first item; they change sign with the sides.
    covariate_codes : ndarray of shape (n_comparisons, n_codes)
        Categories of the circumstances, the same for both items; NaN if unknown.
    unit_of_item : ndarray of int, shape (n_items,)
        Items with the same number are held out together.
    days : ndarray of shape (n_comparisons,) or None
        Times of the comparisons: dates as days since 1970, or numbers.
    """

    first: Indices
    second: Indices
    first_win_share: Array
    weight: Array
    covariates: Array
    covariate_codes: Array
    unit_of_item: Indices
    days: Array | None = None

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons."""
        return len(self.first)

    @property
    def n_items(self) -> int:
        """Number of rows of the table of items."""
        return len(self.unit_of_item)

    @property
    def outcomes(self) -> Outcomes:
        """Results and weights."""
        return Outcomes(self.first_win_share, self.weight)

    @property
    def encoded_covariates(self) -> EncodedCovariates:
        """Covariates."""
        return EncodedCovariates(self.covariates, self.covariate_codes)

    def take(self, rows: Indices) -> ItemComparisons:
        """The selected comparisons."""
        days = None
        if self.days is not None:
            days = self.days[rows]
        return replace(
            self,
            first=self.first[rows],
            second=self.second[rows],
            first_win_share=self.first_win_share[rows],
            weight=self.weight[rows],
            covariates=self.covariates[rows],
            covariate_codes=self.covariate_codes[rows],
            days=days,
        )

    def in_canonical_order(self, item_order: Indices) -> ItemComparisons:
        """The same comparisons with items renumbered, sides and rows sorted.

        Parameters
        ----------
        item_order : ndarray of int, shape (n_items,)
            Item ``item_order[k]`` becomes item k.
        """
        new_number = np.empty(self.n_items, dtype=np.intp)
        new_number[item_order] = np.arange(self.n_items)
        first = new_number[self.first]
        second = new_number[self.second]

        # the item with the smaller number becomes the first one
        is_swapped = first > second
        sign = np.where(is_swapped, -1.0, 1.0)  # covariates are from the first item's point of view
        swapped = replace(
            self,
            first=np.where(is_swapped, second, first),
            second=np.where(is_swapped, first, second),
            first_win_share=np.where(is_swapped, 1 - self.first_win_share, self.first_win_share),
            covariates=self.covariates * sign[:, None],
            unit_of_item=number_by_first_occurrence(self.unit_of_item[item_order]),
        )
        sort_keys: list[Array | Indices] = [*swapped.covariate_codes.T, *swapped.covariates.T]
        sort_keys += [swapped.weight, swapped.first_win_share]
        if swapped.days is not None:
            sort_keys.append(swapped.days)
        sort_keys += [swapped.second, swapped.first]
        return swapped.take(np.lexsort(sort_keys))  # the last key is the most important one


def number_by_first_occurrence(labels: Any) -> Indices:
    """Numbers of the labels in the order of their first occurrence."""
    _, first_row_of_label, label_of_row = np.unique(labels, return_index=True, return_inverse=True)
    n_labels = len(first_row_of_label)
    labels_by_occurrence = np.argsort(first_row_of_label)
    number_of_label = np.empty(n_labels, dtype=np.intp)
    number_of_label[labels_by_occurrence] = np.arange(n_labels)
    return number_of_label[label_of_row]


def canonical_item_order(cells: Array) -> Indices:
    """Rows sorted by their cells, missing values last."""
    if cells.shape[1] == 0:
        return np.arange(len(cells))
    without_missing = np.where(np.isnan(cells), np.inf, cells)
    last_column_first = without_missing.T[::-1]  # the last key of lexsort is the most important one
    return np.lexsort(last_column_first)
