"""Why one item is ranked above another: the score difference, split among the columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, Indices, MatrixLike, as_matrix
from rankwise.formatting import TextTable, one_line
from rankwise.frames import column_names, narwhals_frame, take_rows
from rankwise.groups import encode_groups
from rankwise.inspection.importance import with_permuted_column
from rankwise.inspection.model_parts import input_columns, name_columns
from rankwise.model_selection.scorer import predict_items
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int

MAX_EXACT_COLUMNS = 5  # 120 orders of the columns
MAX_ROWS = 20  # of the printed table


class PairContributionRow(NamedTuple):
    """One column: the values of both items, its contribution and the standard error."""

    name: str
    first: object
    second: object
    contribution: float
    standard_error: float


@dataclass(frozen=True, repr=False, eq=False)
class PairContributions:
    """Result of `pair_contributions`: a table, the largest contribution first.

    Attributes
    ----------
    names : list of str
        Names of the columns, in the order of X; all lists and arrays have this order.
    first, second : list
        Values of the two items.
    values : ndarray of shape (n_columns,)
        Contributions; positive if the column favors the first item. Their sum is `difference`.
    standard_error : ndarray of shape (n_columns,)
        Error of the sampled orders of the columns; 0 if all orders were evaluated.
    difference : float
        Score of the first item minus the score of the second item.
    """

    names: list[str]
    first: list[object]
    second: list[object]
    values: Array
    standard_error: Array
    difference: float

    def __iter__(self) -> Iterator[PairContributionRow]:
        for j in np.argsort(-np.abs(self.values), kind="stable"):
            yield PairContributionRow(
                name=self.names[j],
                first=self.first[j],
                second=self.second[j],
                contribution=float(self.values[j]),
                standard_error=float(self.standard_error[j]),
            )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        cells = []
        for row in list(self)[:MAX_ROWS]:
            contribution = "0"
            if row.contribution:
                contribution = f"{row.contribution:+.4g}"
            if self.standard_error.any():
                contribution += f" ± {row.standard_error:.2g}"
            cells.append(
                [row.name, _format_cell(row.first), _format_cell(row.second), contribution]
            )
        cells.append(["sum", "", "", f"{self.difference:+.4g}"])
        notes = []
        if len(self) > MAX_ROWS:
            notes.append(f"… and {len(self) - MAX_ROWS} more")
        return TextTable(["column", "first", "second", "contribution"], cells, notes=notes).text()


class _GroupOfPair(NamedTuple):
    """The group of two items: its rows, their group labels, and the positions of the two."""

    X: MatrixLike
    groups: ArrayLike | None
    positions: Indices


@single_threaded
def pair_contributions(
    model: BaseEstimator,
    X: MatrixLike,
    first: int,
    second: int,
    groups: ArrayLike | None = None,
    *,
    n_orders: int = 20,
    random_state: int | np.random.Generator = 0,
) -> PairContributions:
    """Explain why any model ranks one item above another, column by column.

    Use it to see why a model ranks one item above another. The difference of the two scores is
    split among the columns where the items differ. A column is evaluated by exchanging its values
    between the two items: if the model depends on the column, the difference of the scores changes.
    No other item changes, and each column of the group keeps its values, so models that scale
    features inside groups are explained as well.

    Parameters
    ----------
    model : estimator
        Any fitted model with a method `predict` and one output: rankers such as `AutoRanker`,
        Pipelines, models of other libraries.
    X : array-like, sparse matrix or data frame of shape (n_items, n_columns)
        Items as `predict` takes them.
    first, second : int
        Row numbers of the two items, in the same group.
    groups : array-like of shape (n_items,), optional
        Group labels; None means one list.
    n_orders : int, default=20
        Number of random orders of the columns if the items differ in more than 5 columns. With at
        most 5 columns all orders are evaluated, and the result is exact.
    random_state : int or Generator, default=0
        Seed of the orders.

    Returns
    -------
    PairContributions
        A table of the columns, the largest contribution first. The contributions sum to the
        difference of the scores.

    See Also
    --------
    contributions : Contributions of a linear model to the scores of all items.
    permutation_importance : Importance of the columns for all items.

    Notes
    -----
    These are Shapley values of the game ``v(S) = d(S) / 2``, where ``d(S)`` is the score of the
    first item minus the score of the second item if the columns outside of S are exchanged. For a
    linear model with weights w, column j contributes ``w_j (x_ij − x_kj)``. The items of one group
    are predicted at most 32 times if all orders are evaluated, else at most `n_orders` times the
    number of columns in which the items differ.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankwise import RankRLS
    >>> from rankwise.inspection import pair_contributions
    >>> X = pd.DataFrame({"stars": [1.0, 5.0, 3.0, 4.0], "price": [50.0, 90.0, 70.0, 40.0]})
    >>> model = RankRLS(1e-9).fit(X, 10 * X["stars"] - X["price"] / 10)
    >>> pair_contributions(model, X, 1, 3)
    column  first  second  contribution
    stars       5       4           +10
    price      90      40            -5
    sum                              +5
    """
    n_orders = check_int("n_orders", n_orders, least=1)
    group = _select_group_of_pair(X, groups, first, second)
    rows = group.X
    names = column_names(rows)
    if names is None:
        rows = as_matrix(rows)
        names = name_columns(input_columns(model, X), rows.shape[1])
    position_of_first, position_of_second = group.positions
    values_of_first = _values_of_row(rows, position_of_first)
    values_of_second = _values_of_row(rows, position_of_second)
    differing_columns = [
        j for j in range(len(names)) if not _are_equal(values_of_first[j], values_of_second[j])
    ]
    order_with_exchanged_pair = np.arange(rows.shape[0])
    order_with_exchanged_pair[group.positions] = group.positions[::-1]

    def difference_of_scores(own_columns: frozenset[int]) -> float:
        # Score of the first minus that of the second item, if both keep their values in these
        # columns and exchange them in all others
        mixed_rows = rows
        for j in differing_columns:
            if j not in own_columns:
                mixed_rows = with_permuted_column(mixed_rows, j, order_with_exchanged_pair)
        scores = np.asarray(predict_items(model, mixed_rows, group.groups), dtype=np.float64)
        if scores.size != len(order_with_exchanged_pair):
            raise ValueError(f"the model predicts shape {scores.shape}; expected one output.")
        score_of_item = scores.ravel()
        return float(score_of_item[position_of_first] - score_of_item[position_of_second])

    shapley = _shapley_values(difference_of_scores, differing_columns, n_orders, random_state)
    contributions = np.zeros(len(names))
    standard_error = np.zeros(len(names))
    contributions[differing_columns] = shapley.mean
    standard_error[differing_columns] = shapley.standard_error
    return PairContributions(
        names=names,
        first=values_of_first,
        second=values_of_second,
        values=contributions,
        standard_error=standard_error,
        difference=difference_of_scores(frozenset(differing_columns)),
    )


def _select_group_of_pair(
    X: MatrixLike, groups: ArrayLike | None, first: int, second: int
) -> _GroupOfPair:
    """Return the items of the group of both items, their labels, and the positions of the two."""
    if hasattr(X, "shape"):
        n_items = X.shape[0]
    else:
        n_items = len(X)
    first = check_int("first", first, least=0)
    second = check_int("second", second, least=0)
    for name, row in (("first", first), ("second", second)):
        if row >= n_items:
            raise ValueError(f"{name}={row}; expected a row number of X, from 0 to {n_items - 1}.")
    if first == second:
        raise ValueError(f"first and second are both row {first}; pass two different rows.")
    if groups is None:
        return _GroupOfPair(X, None, np.array([first, second]))
    codes = encode_groups(groups, n_items).codes
    if codes[first] != codes[second]:
        raise ValueError(
            f"rows {first} and {second} are in different groups, and scores of different groups "
            "cannot be compared; pass two rows of one group."
        )
    # Scores may depend on the whole group, so keep all of its rows
    rows_of_group = np.flatnonzero(codes == codes[first])
    positions = np.searchsorted(rows_of_group, [first, second])
    return _GroupOfPair(take_rows(X, rows_of_group), codes[rows_of_group], positions)


class _ShapleyValues(NamedTuple):
    """Shapley value of each column, and the standard error of its estimate."""

    mean: Array
    standard_error: Array


def _values_of_row(X: MatrixLike, row: int) -> list[object]:
    """Return the values of one item."""
    frame = narwhals_frame(X)
    if frame is not None:
        values: list[object] = []
        for column in frame.iter_columns():
            is_missing = column.is_null()[row]
            values.append(None if is_missing else column[row])
        return values
    if sp.issparse(X):
        return list(X[[row]].toarray().ravel())
    return list(X[row])


def _are_equal(first: object, second: object) -> bool:
    """Whether two cells are equal; missing values are equal to each other."""
    if first is None or second is None:
        return first is second
    cell_of_first = np.asarray(first)
    cell_of_second = np.asarray(second)
    are_floats = cell_of_first.dtype.kind == "f" and cell_of_second.dtype.kind == "f"
    return np.array_equal(cell_of_first, cell_of_second, equal_nan=are_floats)


def _shapley_values(
    value_of_coalition: Callable[[frozenset[int]], float],
    columns: list[int],
    n_orders: int,
    random_state: int | np.random.Generator,
) -> _ShapleyValues:
    """Mean contribution of each column over orders of the columns, and its standard error."""
    computed: dict[frozenset[int], float] = {}

    def half_value(coalition: frozenset[int]) -> float:
        # All columns have the value d, the difference to explain, and no columns have −d. With
        # halves of the values the contributions sum to d
        if coalition not in computed:
            computed[coalition] = value_of_coalition(coalition) / 2
        return computed[coalition]

    is_exact = len(columns) <= MAX_EXACT_COLUMNS
    if is_exact:
        orders = [list(order) for order in permutations(columns)]
    else:
        rng = np.random.default_rng(random_state)
        orders = [rng.permutation(columns).tolist() for _ in range(n_orders)]

    # Change of the value when each column joins the columns before it in an order
    index_of_column = {column: index for index, column in enumerate(columns)}
    marginal_contributions = np.zeros((len(orders), len(columns)))
    for order_number, order in enumerate(orders):
        coalition: frozenset[int] = frozenset()
        for column in order:
            with_column = coalition | {column}
            change = half_value(with_column) - half_value(coalition)
            marginal_contributions[order_number, index_of_column[column]] = change
            coalition = with_column

    standard_error = np.zeros(len(columns))
    if not is_exact and n_orders > 1:
        standard_deviation = marginal_contributions.std(axis=0, ddof=1)
        standard_error = standard_deviation / math.sqrt(n_orders)
    return _ShapleyValues(marginal_contributions.mean(axis=0), standard_error)


def _format_cell(value: object) -> str:
    """Text of one value in the table."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return one_line(value)
