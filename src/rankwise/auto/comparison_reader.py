"""Read a PairGraph or a PairData as comparisons of the rows of a table of items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.auto.comparison_covariates import SIDE, ComparisonCovariates
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.datasets import PairData
from rankwise.datasets.times import as_times, in_days
from rankwise.frames import as_array, frame_columns
from rankwise.graphs import PairGraph
from rankwise.groups import encode_groups
from rankwise.preprocessing.group_columns import without_columns
from rankwise.validation import check_weights

SHOWN_ITEMS = 5


@dataclass(frozen=True, eq=False)
class NamedItems:
    """Items, and their names if they have any.

    Attributes
    ----------
    X : data frame, array or sparse matrix
        Items without the column of names.
    names : ndarray of str, shape (n_items,), or None
        Names of the items.
    names_are_lasting : bool
        Whether the names identify items in other tables, too. Row numbers do not.
    """

    X: Any
    names: NDArray[np.str_] | None
    names_are_lasting: bool


@dataclass(frozen=True, eq=False)
class ReadComparisons:
    """Comparisons of the rows of X.

    Attributes
    ----------
    comparisons : ItemComparisons
        The comparisons.
    covariates : ComparisonCovariates
        The encoder of their covariates.
    labels : ndarray of str, shape (n_items,)
        Names of the items, or row numbers, for examples.
    """

    comparisons: ItemComparisons
    covariates: ComparisonCovariates
    labels: NDArray[np.str_]


def split_names(X: Any, item_id: str | None) -> NamedItems:
    """Take the column of names from a data frame; pandas has names in its index.

    Parameters
    ----------
    X : data frame, array or sparse matrix
        Items.
    item_id : str or None
        The column; None is the index of a pandas frame.
    """
    if item_id is None:
        is_pandas = hasattr(X, "iloc")
        if is_pandas:
            index = np.asarray(X.index)
            are_row_numbers = index.dtype.kind in "iu"
            # unlike row numbers, names identify the same items in other tables
            return NamedItems(X, index.astype(str), names_are_lasting=not are_row_numbers)
        return NamedItems(X, None, names_are_lasting=False)
    columns = frame_columns(X)
    if columns is None or item_id not in columns:
        available = "X is not a data frame"
        if columns is not None:
            available = f"X has {', '.join(columns)}"
        raise ValueError(f"item_id={item_id!r} is not a column of X: {available}.")
    names = np.asarray(as_array(columns[item_id])).astype(str)
    return NamedItems(without_columns(X, [item_id]), names, names_are_lasting=True)


def read_items_to_predict(X: Any, item_id: str | None) -> NamedItems:
    """Items to predict: without names if they do not have the column."""
    if item_id is None:
        return split_names(X, None)
    columns = frame_columns(X)
    if columns is None or item_id not in columns:  # items to predict may be without names
        return NamedItems(X, None, names_are_lasting=False)
    return split_names(X, item_id)


def read_item_comparisons(
    y: PairGraph | PairData,
    items: NamedItems,
    n_items: int,
    sample_weight: ArrayLike | None,
    time: ArrayLike | None,
) -> ReadComparisons:
    """Read comparisons, and check that they fit the items.

    Parameters
    ----------
    y : PairGraph or PairData
        The comparisons.
    items : NamedItems
        The items.
    n_items : int
        Number of rows of the items.
    sample_weight : array-like of shape (n_comparisons,) or None
        Factors of the weights of the comparisons.
    time : array-like of shape (n_comparisons,) or None
        Time of each comparison; None uses the times of a PairData.
    """
    if isinstance(y, PairGraph):
        _check_n_items(y.n_items, n_items)
        read = _read_graph(y, items)
    else:
        read = _read_pair_data(y, items, n_items)
        if time is None:
            time = y.times
    return _with_weight_and_time(read, sample_weight, time)


def _read_graph(graph: PairGraph, items: NamedItems) -> ReadComparisons:
    """Comparisons of a graph, which has winners but no first side.

    Rows of one group, or of one name in the column `item_id`, are held out together.
    """
    covariates = ComparisonCovariates().fit({}, has_side=False)
    encoded_covariates = covariates.transform({}, graph.n_pairs)
    # items of one group, or of one name, are held out together
    if graph.item_groups is not None:
        unit_of_item = graph.item_groups.codes
    elif items.names_are_lasting and items.names is not None:
        unit_of_item = encode_groups(items.names, graph.n_items).codes
    else:
        unit_of_item = np.arange(graph.n_items)
    comparisons = ItemComparisons(
        first=graph.winner,
        second=graph.loser,
        first_win_share=_win_shares(graph.magnitude),
        weight=graph.preference_weight,
        covariates=encoded_covariates.numbers,
        covariate_codes=encoded_covariates.codes,
        unit_of_item=unit_of_item,
    )
    return ReadComparisons(comparisons, covariates, _names_of_items(items, graph.items))


def _read_pair_data(pairs: PairData, items: NamedItems, n_items: int) -> ReadComparisons:
    """Match the items by their names; the sides matter if either side may win."""
    row_of_item = _rows_of_items(pairs, items, n_items)
    first = row_of_item[pairs.first]
    second = row_of_item[pairs.second]
    is_with_itself = first == second
    if is_with_itself.any():
        k = int(np.argmax(is_with_itself))
        raise ValueError(
            f"comparison {k} compares {pairs.items[pairs.first[k]]} with itself; drop it."
        )
    first_wins = pairs.outcome > 0
    second_wins = pairs.outcome < 0
    # if the first item always wins, it was put first because it won
    has_side = bool(first_wins.any() and second_wins.any())
    covariates = ComparisonCovariates().fit(pairs.covariates, has_side)
    used_covariates: dict[str, ArrayLike] = {
        name: column for name, column in pairs.covariates.items() if name in covariates.names
    }
    if covariates.has_side_:
        used_covariates[SIDE] = 1.0  # every comparison names its first item first
    encoded_covariates = covariates.transform(used_covariates, pairs.n_pairs)
    comparisons = ItemComparisons(
        first=first,
        second=second,
        first_win_share=_win_shares(pairs.outcome),
        weight=pairs.weight,
        covariates=encoded_covariates.numbers,
        covariate_codes=encoded_covariates.codes,
        unit_of_item=np.arange(n_items),
    )
    return ReadComparisons(comparisons, covariates, _names_of_items(items, pairs.items))


def _names_of_items(items: NamedItems, labels: NDArray[Any]) -> NDArray[np.str_]:
    """Names of the items; if X has none, the names in the comparisons."""
    if items.names is not None:
        labels = items.names
    return labels.astype(str)


def _rows_of_items(pairs: PairData, items: NamedItems, n_items: int) -> Indices:
    """The row of X of each item of the comparisons."""
    if items.names is None:
        if frame_columns(items.X) is not None:
            raise ValueError(
                "X is a data frame without an index, so its rows cannot be matched with the items "
                "of the comparisons; name the column of their names with item_id=."
            )
        _check_n_items(pairs.n_items, n_items)
        return np.arange(n_items)
    row_of_name = {name: row for row, name in enumerate(items.names.tolist())}
    if len(row_of_name) < n_items:
        names, counts = np.unique(items.names, return_counts=True)
        repeated_names = names[counts > 1]
        raise ValueError(
            f"the item {repeated_names[0]!r} has several rows in X; pass one row for each item, "
            "or row numbers in a PairGraph, with the names of the items as its groups."
        )
    labels = pairs.items.astype(str).tolist()
    unknown = [label for label in labels if label not in row_of_name]
    if unknown:
        examples = ", ".join(map(repr, unknown[:SHOWN_ITEMS]))
        raise ValueError(
            f"{len(unknown)} of {len(labels)} compared items are not in X, such as {examples}. "
            "Drop their comparisons or add their rows; names are matched with the column item_id=, "
            "or with the index of X."
        )
    return np.array([row_of_name[label] for label in labels], dtype=np.intp)


def _check_n_items(n_compared: int, n_items: int) -> None:
    if n_compared != n_items:
        raise ValueError(
            f"X has {n_items} rows, but the comparisons have {n_compared} items; pass one row for "
            "each item (n_items= of a PairGraph counts items that were never compared, too), or "
            "match them by name with item_id=."
        )


def _win_shares(outcome: Array) -> Array:
    """1 if the first item won, 0 if the second one did, and 1/2 for a tie."""
    return 0.5 + 0.5 * np.sign(outcome)


def _with_weight_and_time(
    read: ReadComparisons, sample_weight: ArrayLike | None, time: ArrayLike | None
) -> ReadComparisons:
    """The comparisons of positive weight, with the weights and times that were passed to `fit`."""
    comparisons = read.comparisons
    n_comparisons = comparisons.n_comparisons
    weight = comparisons.weight
    if sample_weight is not None:
        weight = weight * check_weights(sample_weight, n_comparisons)
    days = None
    if time is not None:
        times = as_times(as_array(time, "time"), n_comparisons, "comparison")
        days = in_days(times)
    rows_with_weight = np.flatnonzero(weight > 0)
    comparisons = replace(comparisons, weight=weight, days=days).take(rows_with_weight)
    is_tie = comparisons.first_win_share == 0.5
    if is_tie.all():  # or there is no comparison
        raise ValueError(
            "there is nothing to learn: no comparison of positive weight has a winner."
        )
    return replace(read, comparisons=comparisons)
