"""Checks of comparisons: columns that leak the outcome, and items that are never compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.auto.comparison_reader import ReadComparisons
from rankwise.auto.item_cells import ItemCells
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.errors import warn_user
from rankwise.metrics import get_metric
from rankwise.metrics.registry import MetricName
from rankwise.preprocessing.column_features import n_category_features
from rankwise.preprocessing.column_types import NUMERIC
from rankwise.preprocessing.table_vectorizer import MAX_CODES, TableVectorizer

LEAST_DECISIVE = 20  # comparisons that a column must order without an error
DECISIVE_SHARE = 0.9  # of the comparisons with a winner


class CellNames(NamedTuple):
    """Names of the columns of `ItemCells`."""

    numbers: list[str]
    codes: list[str]


def check_comparison_arguments(
    groups: ArrayLike | None, scoring: MetricName | None, combine: str
) -> None:
    """Refuse arguments that have no meaning for comparisons."""
    if groups is not None:
        raise ValueError(
            "groups= is for scored items; pass the groups of compared items to PairGraph(groups=)."
        )
    if scoring is not None and get_metric(scoring).name != "disagreement":
        raise ValueError(
            f"scoring={scoring!r} needs scores, but y has explicit preferences; use "
            "scoring='disagreement' or None."
        )
    if combine != "stack":
        raise ValueError(
            f"combine={combine!r} is for scored items; members for comparisons are always stacked, "
            "so omit combine."
        )


class PairsOfRows(NamedTuple):
    """Row numbers of the items of pairs, and the shape of the arguments.

    Attributes
    ----------
    first, second : ndarray of int, shape (n_pairs,)
        Row numbers of X.
    shape : tuple of int
        Shape of the broadcast arguments; () for one pair.
    """

    first: Indices
    second: Indices
    shape: tuple[int, ...]

    @property
    def sides(self) -> tuple[Indices, Indices]:
        """Row numbers of both items."""
        return self.first, self.second

    def reshape(self, values: Array) -> float | Array:
        """One value per pair in the shape of the arguments."""
        if not self.shape:
            return float(values[0])
        return np.asarray(values.reshape(self.shape))


def read_pairs_of_rows(a: ArrayLike, b: ArrayLike, n_items: int) -> PairsOfRows:
    """Check and broadcast the row numbers of pairs."""
    first, second = np.broadcast_arrays(np.asarray(a), np.asarray(b))
    for name, rows in (("a", first), ("b", second)):
        is_integer = rows.dtype.kind in "iu"
        if not is_integer or (rows < 0).any() or (rows >= n_items).any():
            raise ValueError(
                f"{name} must contain row numbers of X, from 0 to {n_items - 1}; got {rows!r:.60}."
            )
    return PairsOfRows(
        first=first.ravel().astype(np.intp),
        second=second.ravel().astype(np.intp),
        shape=first.shape,
    )


def cell_names(vectorizer: TableVectorizer | None, cells: ItemCells) -> CellNames:
    """Names of the columns; positions in an array if they have none."""
    n_numbers = cells.numbers.shape[1]
    if vectorizer is None:
        return CellNames([f"column {k}" for k in range(n_numbers)], [])
    # numbers are the first features
    number_names = [str(name) for name in vectorizer.get_feature_names_out()[:n_numbers]]
    code_names = []
    for column in vectorizer.facts_:
        is_category = column.is_used and column.kind not in (*NUMERIC, "text")
        if is_category and n_category_features(column) <= MAX_CODES:
            code_names.append(column.name)
    return CellNames(number_names, code_names)


def comparison_notes(cells: ItemCells, names: CellNames, read: ReadComparisons) -> list[str]:
    """Remarks on columns and items; a column that decides every comparison is a warning."""
    comparisons = read.comparisons
    first = comparisons.first
    second = comparisons.second
    notes = []

    # numbers of the items as differences, then numbers of the comparisons
    differences = cells.numbers[first] - cells.numbers[second]
    number_names = read.covariates.number_names_
    covariates = comparisons.covariates[:, : len(number_names)]
    for name, values in zip(
        [*names.numbers, *number_names], [*differences.T, *covariates.T], strict=True
    ):
        if decides_everything(values, comparisons):
            warn_user(
                f"the column '{name}' alone orders all comparisons correctly. If it is computed "
                "from their outcomes, such as the number of wins, drop it: it cannot be known "
                "before a comparison."
            )
            notes.append(f"column {name} alone orders all comparisons correctly")
    for name, codes in zip(names.codes, cells.codes.T, strict=True):
        if never_meet(codes, comparisons):
            notes.append(
                f"no comparison is between items with different values of {name}: how such items "
                "compare is extrapolated from other columns"
            )
    n_compared = len(np.unique([first, second]))
    n_not_compared = comparisons.n_items - n_compared
    if n_not_compared:
        notes.append(f"{n_not_compared:,} of {comparisons.n_items:,} items have no comparison")
    return notes


def decides_everything(values: Array, comparisons: ItemComparisons) -> bool:
    """Whether the sign of a number of each comparison never contradicts the winner."""
    sign_of_winner = np.sign(comparisons.first_win_share - 0.5)
    agreement = np.sign(np.nan_to_num(values)) * sign_of_winner  # 1, −1, or 0 for no statement
    n_decided = int(np.count_nonzero(agreement))
    n_with_winner = int(np.count_nonzero(sign_of_winner))
    if n_decided < max(LEAST_DECISIVE, DECISIVE_SHARE * n_with_winner):
        return False
    always_agrees = (agreement >= 0).all()
    never_agrees = (agreement <= 0).all()
    return bool(always_agrees or never_agrees)


def never_meet(codes: Array, comparisons: ItemComparisons) -> bool:
    """Whether several categories occur, but items of different categories are never compared."""
    # −1: missing is a category, too
    first = np.nan_to_num(codes[comparisons.first], nan=-1.0)
    second = np.nan_to_num(codes[comparisons.second], nan=-1.0)
    n_categories = len(np.unique(first))
    return bool((first == second).all()) and n_categories > 1
