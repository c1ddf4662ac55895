"""Tables of comparisons, in a file or as a data frame: names, labels, numbers and complaints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.labels import as_text, distinct_labels, show
from rankwise.datasets.table_columns import position_of
from rankwise.datasets.table_files import OpenTable
from rankwise.datasets.table_values import (
    column_labels,
    column_numbers,
    distinct_cells,
    refuse_first,
)
from rankwise.errors import TableFormatError
from rankwise.frames import frame_columns
from rankwise.options import suggestion

Mask = NDArray[np.bool_]
Column = str | int


class PairTable(Protocol):
    """What a table of comparisons can be asked for; columns are given by their positions."""

    names: list[str]

    def position(self, column: Column, role: str, hint: str = "") -> int:
        """Position of a column, given by name or position."""

    def read(self, texts: list[int], numbers: list[int]) -> None:
        """Get ready for these columns."""

    def cells(self, at: int, role: str) -> tuple[Indices, list[str]]:
        """Which distinct cell each row has, and these as text; a gap is the empty text."""

    def labels(self, at: int, role: str) -> tuple[Indices, list[str]]:
        """The same, with an error where a cell is empty."""

    def named(self, texts: list[str], columns: list[int]) -> NDArray[Any]:
        """Labels as they were in these columns: whole numbers or strings."""

    def numbers(self, at: int, role: str) -> Array:
        """A column as floats, NaN for a gap."""

    def refuse_number(self, is_bad: Mask, at: int, role: str) -> None:
        """Raise an error about the first bad number, if there is one."""

    def refuse(self, is_bad: Mask, problem: Callable[[int], str]) -> None:
        """Raise an error about the first bad row, if there is one."""


class FileTable:
    """The columns of a file; errors name the line."""

    def __init__(self, source: OpenTable) -> None:
        self.source, self.names = source, source.names

    def position(self, column: Column, role: str, hint: str = "") -> int:
        """As in `PairTable`."""
        return position_of(self.source, column, role, hint)

    def read(self, texts: list[int], numbers: list[int]) -> None:
        """As in `PairTable`."""
        self._table = self.source.read(texts, numbers)

    def cells(self, at: int, role: str) -> tuple[Indices, list[str]]:
        """As in `PairTable`."""
        return distinct_cells(self.source, at, self._table[str(at)], role)

    def labels(self, at: int, role: str) -> tuple[Indices, list[str]]:
        """As in `PairTable`."""
        return column_labels(self.source, at, self._table[str(at)], role)

    def named(self, texts: list[str], columns: list[int]) -> NDArray[Any]:
        """As in `PairTable`."""
        return distinct_labels(texts, canonical=True)

    def numbers(self, at: int, role: str) -> Array:
        """As in `PairTable`."""
        return column_numbers(self.source, at, self._table, role)

    def refuse_number(self, is_bad: Mask, at: int, role: str) -> None:
        """As in `PairTable`."""
        refuse_first(self.source, at, is_bad, role)

    def refuse(self, is_bad: Mask, problem: Callable[[int], str]) -> None:
        """As in `PairTable`."""
        if is_bad.any():
            row = int(is_bad.argmax())
            raise TableFormatError(self.source.path, self.source.place(row), problem(row))


class FrameTable:
    """The columns of a data frame, each as a list; errors name the row, counted from 0."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.names = [str(name) for name in columns]
        self._columns = list(columns.values())
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"the columns have different lengths: {sizes}.")
        if not sizes or not next(iter(sizes.values())):
            raise ValueError("the frame has no rows; a rating needs at least one comparison.")

    def position(self, column: Column, role: str, hint: str = "") -> int:
        """As in `PairTable`."""
        if isinstance(column, str) and self.names.count(column) == 1:
            return self.names.index(column)
        is_number = not isinstance(column, (str, bool))
        if is_number and 0 <= column < len(self.names):  # type: ignore[operator]
            return int(column)
        guess = suggestion(column, self.names)
        listed = ", ".join(map(show, self.names[:30])) + (", …" if len(self.names) > 30 else "")
        raise ValueError(
            f"the frame has no column {column!r} for the {role}; {guess}its columns are {listed}. "
            f"Pass {role}= with the right one.{hint}"
        )

    def read(self, texts: list[int], numbers: list[int]) -> None:
        """Nothing to do: a frame is in memory."""

    def cells(self, at: int, role: str) -> tuple[Indices, list[str]]:
        """As in `PairTable`."""
        place: dict[Any, int] = {}
        codes = [place.setdefault(value, len(place)) for value in self._values(at)]
        spelled = [as_text(value) if _is_there(value) else "" for value in place]
        number = {text: k for k, text in enumerate(dict.fromkeys(spelled))}
        of_value = np.array([number[text] for text in spelled], dtype=np.intp)
        return of_value[np.array(codes, dtype=np.intp)], list(number)

    def labels(self, at: int, role: str) -> tuple[Indices, list[str]]:
        """As in `PairTable`."""
        codes, texts = self.cells(at, role)
        if "" in texts:
            empty = "is empty. Give it a label, or leave out the row."
            self.refuse(codes == texts.index(""), lambda row: f"the {role} {empty}")
        return codes, texts

    def named(self, texts: list[str], columns: list[int]) -> NDArray[Any]:
        """As in `PairTable`."""
        if any(isinstance(value, str) for at in columns for value in self._values(at)[:1]):
            return np.array(texts, dtype=np.str_)
        return distinct_labels(texts, canonical=True)

    def numbers(self, at: int, role: str) -> Array:
        """As in `PairTable`."""
        values = self._values(at)
        try:
            found = [float(value) if _is_there(value) else np.nan for value in values]
        except (TypeError, ValueError):
            self.refuse_number(np.array([not _is_number(v) for v in values]), at, role)
            raise
        return np.array(found) + 0.0  # minus zero is zero

    def refuse_number(self, is_bad: Mask, at: int, role: str) -> None:
        """As in `PairTable`."""
        self.refuse(
            is_bad,
            lambda row: (
                f"the {role}, column {show(self.names[at])}, is {self._values(at)[row]!r}, "
                "expected a finite number."
            ),
        )

    def refuse(self, is_bad: Mask, problem: Callable[[int], str]) -> None:
        """As in `PairTable`."""
        if is_bad.any():
            row = int(is_bad.argmax())
            raise ValueError(f"row {row} of the frame: {problem(row)}")

    def _values(self, at: int) -> list[Any]:
        column = self._columns[at]
        if not isinstance(column, list):
            to_list = getattr(column, "to_list", None) or getattr(column, "tolist", None)
            self._columns[at] = to_list() if to_list else list(column)
        values: list[Any] = self._columns[at]
        return values


def _is_there(value: Any) -> bool:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return False
    return bool(value == value)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return not _is_there(value)
    return True


def frame_table(frame: Any) -> FrameTable | None:
    """The columns of a data frame that narwhals knows, or of a dictionary; None for others."""
    if isinstance(frame, Mapping):
        return FrameTable(frame)
    columns = frame_columns(frame)
    return None if columns is None else FrameTable(columns)
