"""Rows of a table of comparisons without missing values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import comparison_words
from rankwise.datasets.column_values import complete_rows, distinct_cells
from rankwise.datasets.comparison_columns import ComparisonColumns
from rankwise.datasets.numeric_columns import column_numbers
from rankwise.datasets.table_files import FrameTable, TableFile
from rankwise.datasets.team_cells import TeamColumn, has_teams, list_if_nested, read_teams
from rankwise.datasets.times import read_times
from rankwise.datasets.vocabulary import MISSING, distinct_labels, is_gap, shown_value
from rankwise.formatting import join_words
from rankwise.validation import check_float_array


class Labels(NamedTuple):
    """A column of labels.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows,)
        Position of the text of each row in `texts`.
    texts : list of str
        The distinct texts.
    are_words : bool
        Whether the labels are strings of a frame; texts of a file may spell whole numbers.
    """

    codes: Indices
    texts: list[str]
    are_words: bool

    def expand_to_rows(self, values: Any) -> NDArray[Any]:
        """The value of each row, from one value for each distinct text."""
        return np.asarray(values)[self.codes]

    def is_in(self, words: Collection[str]) -> NDArray[np.bool_]:
        """Mask of the rows whose text, in lower case, is one of the words."""
        return self.expand_to_rows([text.lower() in words for text in self.texts])

    def distinct_labels(self) -> NDArray[Any]:
        """The distinct labels: whole numbers or strings."""
        if self.are_words:
            return np.array(self.texts, dtype=np.str_)
        return distinct_labels(self.texts, canonical=True)

    def labels(self) -> NDArray[Any]:
        """The label of each row."""
        return self.expand_to_rows(self.distinct_labels())

    def take(self, rows: Indices) -> Labels:
        """The labels of these rows, without texts that do not occur."""
        old_codes, new_codes = np.unique(self.codes[rows], return_inverse=True)
        texts = [self.texts[code] for code in old_codes]
        return Labels(new_codes, texts, self.are_words)


@dataclass(frozen=True)
class ComparisonRows:
    """The rows of a table that have no missing value in the columns with a role.

    Attributes
    ----------
    table : TableFile
        The table.
    columns : ComparisonColumns
        Its columns with a role.
    row_numbers : ndarray of int, shape (n_rows,)
        Row numbers in the table.
    labels : dict from int to Labels
        Columns of labels by position.
    values : dict from int to ndarray
        Columns of numbers by position.
    teams : tuple of TeamColumn
        The two columns of items, if a side may have several items; else empty.
    """

    table: TableFile
    columns: ComparisonColumns
    row_numbers: Indices
    labels: dict[int, Labels]
    values: dict[int, Array]
    teams: tuple[TeamColumn, ...] = ()

    def __len__(self) -> int:
        return len(self.row_numbers)

    def names(self, positions: Collection[int]) -> list[str]:
        """Names of columns."""
        return [self.table.names[position] for position in positions]

    def labels_of(self, position: int | None) -> NDArray[Any] | None:
        """The label of each row, or None if no column has the role."""
        if position is None:
            return None
        return self.labels[position].labels()

    @cached_property
    def item_labels(self) -> list[Labels]:
        """The columns of items with one common list of texts."""
        return _with_common_texts([self.labels[position] for position in self.columns.items])

    def weight(self) -> Array:
        """Weights of the comparisons, by default 1."""
        if self.columns.weight is None:
            return np.ones(len(self))
        weight = self.values[self.columns.weight]
        problem = "the weight is {}, expected more than 0. Leave out the row."
        self.refuse(weight <= 0, problem, weight)
        return weight

    def times(self, is_row_order: bool) -> NDArray[Any] | None:
        """Dates or numbers; row numbers if the rows are in order of time."""
        if is_row_order and self.columns.time is None:
            return self.row_numbers.astype(np.float64)
        if self.columns.time is None:
            return None
        time = self.labels[self.columns.time]

        def error_at_first_row(code: int, problem: str) -> Exception:
            first_row = int((time.codes == code).argmax())
            return self.table.error(problem, int(self.row_numbers[first_row]))

        return time.expand_to_rows(read_times(time.texts, error_at_first_row))

    def refuse(self, is_bad: NDArray[np.bool_], problem: str, values: Any = None) -> None:
        """Raise an error about the first bad row, if any; {} is replaced by its value."""
        if not is_bad.any():
            return
        row = int(is_bad.argmax())
        if isinstance(values, Labels):
            text = values.texts[values.codes[row]]
            problem = problem.format(shown_value(text))
        elif values is not None:
            problem = problem.format(f"{values[row]:g}")
        raise self.table.error(problem, int(self.row_numbers[row]))

    def take(self, rows: Indices) -> ComparisonRows:
        """Some of the rows, by their positions."""
        return replace(
            self,
            row_numbers=self.row_numbers[rows],
            labels={position: column.take(rows) for position, column in self.labels.items()},
            values={position: column[rows] for position, column in self.values.items()},
            teams=tuple(column.take(rows) for column in self.teams),
        )


def read_rows(
    table: TableFile,
    columns: ComparisonColumns,
    outcome_words: Mapping[str, str],
    team_separator: str | None = None,
) -> ComparisonRows:
    """Read the columns with a role, and drop rows with missing values.

    Parameters
    ----------
    table : TableFile
        The table.
    columns : ComparisonColumns
        The columns.
    outcome_words : mapping from str to str
        Words of the outcome and their meanings.
    team_separator : str, optional
        Text between the members of a team.
    """
    # Cells, labels and values are dictionaries by the position of the column.
    cells = table.read([*columns.text, *columns.team_weights], columns.numeric)
    n_rows = len(next(iter(cells.values())))
    values = {
        position: _as_numbers(table, position, cells[position]) for position in columns.numeric
    }
    teams = _read_teams(table, columns, cells, team_separator)
    if teams:
        _replace_teams_by_labels(table, columns, cells, teams, team_separator)
    labels = _read_labels(table, columns, cells)
    if columns.outcome is not None and outcome_words:
        labels[columns.outcome] = _replace_words(table, labels[columns.outcome], outcome_words)
    if columns.magnitude is not None:
        magnitude = values[columns.magnitude]
        is_tie = _is_tie(columns, labels)
        magnitude[np.isnan(magnitude) & is_tie] = 0.0  # a tie needs no magnitude

    all_rows = ComparisonRows(table, columns, np.arange(n_rows), labels, values, teams)
    is_missing = _missing_cells(table, columns, labels, values)
    rows_without_missing_values = complete_rows(table, is_missing)
    if rows_without_missing_values is None:
        return all_rows
    return all_rows.take(rows_without_missing_values)


def _read_labels(
    table: TableFile, columns: ComparisonColumns, cells: Mapping[int, Any]
) -> dict[int, Labels]:
    """Encode the cells of the columns that are read as labels."""
    labels = {}
    for position in columns.text:
        codes, texts = distinct_cells(cells[position])
        labels[position] = Labels(codes, texts, _are_words(table, cells[position]))
    return labels


def _are_words(table: TableFile, column: Any) -> bool:
    """Whether a column has strings of a frame; texts of a file may spell whole numbers."""
    if isinstance(column, list):
        return isinstance(column[0], str)
    return isinstance(table, FrameTable)  # Arrow columns of a frame are strings


def _read_teams(
    table: TableFile,
    columns: ComparisonColumns,
    cells: dict[int, Any],
    separator: str | None,
) -> tuple[TeamColumn, ...]:
    """Read the columns of items as teams, if a cell may have several items."""
    sides = [list_if_nested(cells[position]) for position in columns.items]
    if separator is None and not any(has_teams(side) for side in sides):
        if columns.team_weights:
            raise table.error(
                "team_weights= are the weights of the members of teams, but each side is one item; "
                "name the text between the members with team_separator=, or leave out "
                "team_weights=."
            )
        return ()
    if columns.ranking is not None or columns.has_places:
        raise table.error(
            "rankings of teams are not supported; write one label for each team, or split the "
            "rankings into comparisons of two sides."
        )
    weights_of_sides: list[Any] = [None, None]
    if columns.team_weights:
        weights_of_sides = [list_if_nested(cells[position]) for position in columns.team_weights]
    return tuple(
        read_teams(table, side, separator, weights)
        for side, weights in zip(sides, weights_of_sides, strict=True)
    )


def _replace_teams_by_labels(
    table: TableFile,
    columns: ComparisonColumns,
    cells: dict[int, Any],
    teams: Sequence[TeamColumn],
    separator: str | None,
) -> None:
    """Write the labels of the teams into the cells of the sides, and of a winning team."""
    for position, team_column in zip(columns.items, teams, strict=True):
        cells[position] = team_column.labels()
    if columns.outcome is None:
        return
    outcome = list_if_nested(cells[columns.outcome])
    if separator is not None or has_teams(outcome):
        cells[columns.outcome] = read_teams(table, outcome, separator).labels()


def _is_tie(columns: ComparisonColumns, labels: Mapping[int, Labels]) -> NDArray[np.bool_]:
    """Mask of the rows that are ties; one element if no column marks ties."""
    is_tie = np.zeros(1, bool)  # for all rows, if no column marks ties
    if columns.outcome is not None:
        outcome = labels[columns.outcome]
        sides = comparison_words.outcomes_of_words(outcome.texts)
        is_tie = is_tie | outcome.expand_to_rows([side == comparison_words.TIE for side in sides])
    if columns.tie is not None:
        is_tie = is_tie | labels[columns.tie].is_in(comparison_words.IS_TIE)
    return is_tie


def _missing_cells(
    table: TableFile,
    columns: ComparisonColumns,
    labels: Mapping[int, Labels],
    values: Mapping[int, Array],
) -> dict[str, NDArray[np.bool_]]:
    """Masks of the missing cells, by name of the column."""
    can_be_empty = {columns.tie, columns.place}  # no tie; an item without a place
    if columns.has_places:  # a ranking may be shorter than others
        can_be_empty.update(columns.items)
    is_missing = {}
    for position, column in labels.items():
        name = table.names[position]
        if position == columns.outcome:
            is_missing[name] = column.is_in(MISSING)
        elif position not in can_be_empty:  # a word such as "None" may be the name of an item
            is_missing[name] = column.is_in({""})
    for position, numbers in values.items():
        is_missing[table.names[position]] = np.isnan(numbers)
    return is_missing


def _replace_words(table: TableFile, outcome: Labels, outcome_words: Mapping[str, str]) -> Labels:
    """Replace the texts of the outcome that `outcome_words` translates."""
    unknown = [word for word in outcome_words if word not in outcome.texts]
    if unknown:
        raise table.error(
            f"outcome_words= has {join_words(map(shown_value, unknown), 5)}, which the column does "
            f"not have; it has {join_words(map(shown_value, outcome.texts), 20)}."
        )
    return outcome._replace(texts=[outcome_words.get(text, text) for text in outcome.texts])


def _as_numbers(table: TableFile, position: int, column: Any) -> Array:
    """A column as floats, NaN for missing values; infinite numbers and words are refused."""
    if not isinstance(column, list):
        return column_numbers(table, position, column, "number")
    name = f"the column {shown_value(table.names[position])}"
    numbers = check_float_array(name, [None if is_gap(value) else value for value in column])
    if np.isinf(numbers).any():
        problem = f"{name} is infinite, expected a finite number."
        raise table.error(problem, int(np.isinf(numbers).argmax()))
    return numbers + 0.0  # minus zero becomes zero


def _with_common_texts(columns: list[Labels]) -> list[Labels]:
    """The same columns with one list of texts, that of all columns."""
    code_of_text: dict[str, int] = {}
    codes_of_columns = []
    for column in columns:
        new_codes = [code_of_text.setdefault(text, len(code_of_text)) for text in column.texts]
        codes_of_columns.append(column.expand_to_rows(new_codes))
    common_texts = list(code_of_text)
    are_words = any(column.are_words for column in columns)
    return [Labels(codes, common_texts, are_words) for codes in codes_of_columns]
