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
        Contributions; positive if the column speaks for the first item. Their sum is `difference`.
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
        rows = []
        for row in list(self)[:MAX_ROWS]:
            contribution = f"{row.contribution:+.4g}" if row.contribution else "0"
            if self.standard_error.any():
                contribution += f" ± {row.standard_error:.2g}"
            rows.append([row.name, _cell(row.first), _cell(row.second), contribution])
        notes = []
        if len(self) > MAX_ROWS:
            notes.append(f"… and {len(self) - MAX_ROWS} more")
        rows.append(["sum", "", "", f"{self.difference:+.4g}"])
        return TextTable(["column", "first", "second", "contribution"], rows, notes=notes).text()


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

    The difference of the two scores is split among the columns in which the items differ. A
    column is evaluated by exchanging its values between the two items: if the model depends on
    the column, the difference of the scores changes. No other item changes, and each column of
    the group keeps its values, so models that scale features inside groups are explained as well.

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
    rows, group_labels, positions = _rows_of_the_group(X, groups, first, second)
    names = column_names(rows)
    if names is None:
        rows = as_matrix(rows)
        names = name_columns(input_columns(model, X), rows.shape[1])
    values_of_first = _row_values(rows, positions[0])
    values_of_second = _row_values(rows, positions[1])
    are_equal = map(_are_equal, values_of_first, values_of_second)
    differing = [j for j, is_equal in enumerate(are_equal) if not is_equal]

    exchange = np.arange(rows.shape[0])
    exchange[positions] = positions[::-1]

    def difference(own_columns: frozenset[int]) -> float:
        """Difference of the scores if the items exchange all other columns."""
        mixed = rows
        for j in differing:
            if j not in own_columns:
                mixed = with_permuted_column(mixed, j, exchange)
        scores = np.asarray(predict_items(model, mixed, group_labels), dtype=np.float64)
        if scores.reshape(len(exchange), -1).shape[1] != 1:
            raise ValueError(f"the model predicts shape {scores.shape}; expected one output.")
        by_item = scores.ravel()
        return float(by_item[positions[0]] - by_item[positions[1]])

    mean, error = _shapley_values(difference, differing, n_orders, random_state)
    values = np.zeros(len(names))
    standard_error = np.zeros(len(names))
    values[differing] = mean
    standard_error[differing] = error
    return PairContributions(
        names=names,
        first=values_of_first,
        second=values_of_second,
        values=values,
        standard_error=standard_error,
        difference=difference(frozenset(differing)),
    )


def _rows_of_the_group(
    X: MatrixLike, groups: ArrayLike | None, first: int, second: int
) -> tuple[MatrixLike, ArrayLike | None, Indices]:
    """Return the items of the group of both items, their labels, and the positions of the two."""
    n_items = X.shape[0] if hasattr(X, "shape") else len(X)
    first = check_int("first", first, least=0)
    second = check_int("second", second, least=0)
    for name, row in (("first", first), ("second", second)):
        if row >= n_items:
            raise ValueError(f"{name}={row}; expected a row number of X, from 0 to {n_items - 1}.")
    if first == second:
        raise ValueError(f"first and second are both row {first}; pass two different rows.")
    if groups is None:
        return X, None, np.array([first, second])
    codes = encode_groups(groups, n_items).codes
    if codes[first] != codes[second]:
        raise ValueError(
            f"rows {first} and {second} are in different groups, and scores of different groups "
            "cannot be compared; pass two rows of one group."
        )
    members = np.flatnonzero(codes == codes[first])
    positions = np.searchsorted(members, [first, second])
    return take_rows(X, members), codes[members], positions


def _row_values(X: MatrixLike, row: int) -> list[object]:
    """Return the values of one item."""
    frame = narwhals_frame(X)
    if frame is not None:
        return [None if column.is_null()[row] else column[row] for column in frame.iter_columns()]
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
    difference: Callable[[frozenset[int]], float],
    columns: list[int],
    n_orders: int,
    random_state: int | np.random.Generator,
) -> tuple[Array, Array]:
    """Mean contribution of each column over orders of the columns, and its standard error."""
    computed: dict[frozenset[int], float] = {}

    def half_difference(own_columns: frozenset[int]) -> float:
        if own_columns not in computed:
            computed[own_columns] = difference(own_columns) / 2
        return computed[own_columns]

    position = {j: k for k, j in enumerate(columns)}
    is_exact = len(columns) <= MAX_EXACT_COLUMNS
    if is_exact:
        orders = [list(order) for order in permutations(columns)]
    else:
        rng = np.random.default_rng(random_state)
        orders = [rng.permutation(columns).tolist() for _ in range(n_orders)]
    steps = np.zeros((len(orders), len(columns)))
    for k, order in enumerate(orders):
        before: frozenset[int] = frozenset()
        for j in order:
            after = before | {j}
            steps[k, position[j]] = half_difference(after) - half_difference(before)
            before = after
    error = np.zeros(len(columns))
    if not is_exact and n_orders > 1:
        error = steps.std(axis=0, ddof=1) / math.sqrt(n_orders)
    return steps.mean(axis=0), error


def _cell(value: object) -> str:
    """Text of one value in the table."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return one_line(value)
