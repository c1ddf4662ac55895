"""Unscaled columns of items, for trees and for columns of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Array, Indices


@dataclass(frozen=True, eq=False)
class ItemCells:
    """Unscaled columns of the items, for trees and for columns of pairs.

    Attributes
    ----------
    numbers : ndarray of shape (n_items, n_numbers)
        Numbers, with NaN for missing values.
    codes : ndarray of shape (n_items, n_codes)
        Codes of categories from 0 on, with NaN for missing values.
    """

    numbers: Array
    codes: Array

    @classmethod
    def of_view(cls, view: Array, n_codes: int) -> ItemCells:
        """Split the view "cells"; its last columns are codes."""
        cells = np.asarray(view, dtype=np.float64)
        n_numbers = cells.shape[1] - n_codes
        return cls(cells[:, :n_numbers], cells[:, n_numbers:])

    @property
    def all(self) -> Array:
        """Numbers, followed by codes."""
        return np.hstack([self.numbers, self.codes])

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns of codes in `all`."""
        n_numbers = self.numbers.shape[1]
        return tuple(range(n_numbers, n_numbers + self.codes.shape[1]))

    def take(self, rows: Indices) -> ItemCells:
        """The cells of the selected items."""
        return ItemCells(self.numbers[rows], self.codes[rows])
