"""Columns of tables as ONNX operators, equivalent to `rankwise.TableVectorizer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rankwise.arrays import Indices, Mask
from rankwise.persistence.onnx_graph import ML_DOMAIN, NAN, OnnxGraph, Tensor
from rankwise.preprocessing.column_features import is_wide_column, n_category_features
from rankwise.preprocessing.column_types import NUMERIC, ColumnInfo
from rankwise.preprocessing.table_vectorizer import MAX_CODES, TableVectorizer

TEXT_KINDS = ("category", "order")  # kinds of columns whose cells are text
NO_CODE = -1  # of missing and unknown values


@dataclass(frozen=True)
class TableTensors:
    """The features of a table for several learners; see `rankwise.TableVectorizer.views`.

    All attributes except `is_wide_one_hot` are lists of tensors, whose columns are features.

    Attributes
    ----------
    scaled_numbers : list of str
        Scaled numbers without missing values.
    missing_indicators : list of str
        Indicators of missing numbers.
    narrow_one_hot : list of str
        One-hot codes of categories with few values.
    one_hot : list of str
        One-hot codes for trees and of wide categories.
    is_wide_one_hot : list of ndarray of bool
        Whether each column of `one_hot` belongs to a category with many values.
    numbers : list of str
        Numbers with NaN for missing values.
    codes : list of str
        Codes of categories.
    """

    scaled_numbers: list[Tensor] = field(default_factory=list)
    missing_indicators: list[Tensor] = field(default_factory=list)
    narrow_one_hot: list[Tensor] = field(default_factory=list)
    one_hot: list[Tensor] = field(default_factory=list)
    is_wide_one_hot: list[Mask] = field(default_factory=list)
    numbers: list[Tensor] = field(default_factory=list)
    codes: list[Tensor] = field(default_factory=list)

    @property
    def dense(self) -> list[Tensor]:
        """Features of linear models, without categories of many values."""
        return self.scaled_numbers + self.missing_indicators + self.narrow_one_hot

    @property
    def cells(self) -> list[Tensor]:
        """Features of trees, without one-hot codes."""
        return self.numbers + self.codes

    @property
    def wide_columns(self) -> Indices:
        """Columns of `one_hot` that belong to a category with many values."""
        if not self.is_wide_one_hot:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(np.concatenate(self.is_wide_one_hot))


def used_columns(vectorizer: TableVectorizer) -> list[ColumnInfo]:
    """The columns that a graph takes, each as an input.

    Raises
    ------
    ValueError
        If there are no operators for the kind of a column.
    """
    columns = [column for column in vectorizer.facts_ if column.is_used]
    for column in columns:
        if column.kind in ("text", "date"):
            raise ValueError(
                f"the column {column.name!r} is of the kind {column.kind}, for which ONNX has no "
                "operators. Train the model without this column, or convert it to numbers first."
            )
        if "" in column.categories and column.n_missing:
            raise ValueError(
                f"the column {column.name!r} has both missing values and empty strings, which are "
                "the same in ONNX. Replace the empty strings before training."
            )
    return columns


def add_column_inputs(graph: OnnxGraph, columns: Sequence[ColumnInfo]) -> list[Tensor]:
    """Add an input for each column, under its name."""
    inputs = []
    for column in columns:
        tensor_type = "text" if column.kind in TEXT_KINDS else "float64"
        n_values_per_cell = 1
        if column.kind == "vector":
            n_values_per_cell = len(column.medians)
        inputs.append(graph.add_input(column.name, tensor_type, n_values_per_cell))
    return inputs


def add_table_features(
    graph: OnnxGraph, vectorizer: TableVectorizer, cells: Sequence[Tensor]
) -> list[Tensor]:
    """The features of `TableVectorizer.transform`: dense ones, then wide categories."""
    table = add_table(graph, vectorizer, cells)
    return table.dense + take_one_hot(graph, table, table.wide_columns)


def take_one_hot(graph: OnnxGraph, table: TableTensors, columns: Indices) -> list[Tensor]:
    """Selected one-hot codes; an empty list if none are selected."""
    if not len(columns):
        return []
    all_one_hot = graph.join(table.one_hot)
    return [graph.take(all_one_hot, columns)]


def add_table(
    graph: OnnxGraph, vectorizer: TableVectorizer, cells: Sequence[Tensor]
) -> TableTensors:
    """The features of the columns, whose cells are the inputs."""
    table = TableTensors()
    for column, column_cells in zip(used_columns(vectorizer), cells, strict=True):
        if column.kind in NUMERIC:
            _add_numeric_column(graph, table, column, column_cells)
        else:
            _add_category_column(graph, table, column, column_cells)
    return table


def _add_numeric_column(
    graph: OnnxGraph, table: TableTensors, column: ColumnInfo, cells: Tensor
) -> None:
    numbers = cells
    if column.kind == "order":  # ordered words are numbers 0, 1, …; all other cells are missing
        codes = _add_category_codes(graph, column, cells, has_further_codes=False)
        numbers = _codes_as_numbers(graph, codes)
    is_missing = graph.add("IsNaN", numbers)
    imputed = graph.add("Where", is_missing, [column.medians], numbers)
    centered = graph.add("Sub", imputed, [column.means])
    table.numbers.append(numbers)
    table.scaled_numbers.append(graph.add("Div", centered, [column.scales]))
    if column.n_missing:
        # One indicator for each column: of a vector, all numbers are missing or none
        first_value_only = graph.take(graph.cast(is_missing), [0])
        table.missing_indicators.append(first_value_only)


def _add_category_column(
    graph: OnnxGraph, table: TableTensors, column: ColumnInfo, cells: Tensor
) -> None:
    codes = _add_category_codes(graph, column, cells)
    n_features = n_category_features(column)
    one_hot = graph.cast(graph.add("Equal", codes, np.arange(n_features)))
    is_wide = is_wide_column(column)
    # Trees split on the codes if there are few of them. Linear models take the one-hot codes of
    # narrow columns; `one_hot` contains the codes for trees and for wide columns.
    if n_features <= MAX_CODES:
        table.codes.append(_codes_as_numbers(graph, codes))
    if not is_wide:
        table.narrow_one_hot.append(one_hot)
    if is_wide or n_features > 2:  # two categories need no more than their code
        table.one_hot.append(one_hot)
        table.is_wide_one_hot.append(np.full(n_features, is_wide))


def _add_category_codes(
    graph: OnnxGraph, column: ColumnInfo, cells: Tensor, *, has_further_codes: bool = True
) -> Tensor:
    """Number of the feature of each cell's value, `NO_CODE` for none.

    With further codes, missing values and rare values have codes after the codes of the categories.
    """
    code_of_value = {value: code for code, value in enumerate(column.categories)}
    code_of_missing = NO_CODE
    code_of_rare = NO_CODE
    if has_further_codes and column.n_missing:
        code_of_missing = len(column.categories)
    if has_further_codes and column.n_rare:
        code_of_rare = n_category_features(column) - 1  # the last feature
    code_of_value.setdefault("", code_of_missing)  # a missing value is an empty string
    return graph.add(
        "LabelEncoder",
        cells,
        domain=ML_DOMAIN,
        keys_strings=list(code_of_value),
        values_int64s=list(code_of_value.values()),
        default_int64=code_of_rare,
    )


def _codes_as_numbers(graph: OnnxGraph, codes: Tensor) -> Tensor:
    """Codes as floats, NaN for `NO_CODE`."""
    is_missing = graph.add("Less", codes, np.array(0))  # NO_CODE is negative
    return graph.add("Where", is_missing, NAN, graph.cast(codes))
