"""Read pairwise comparisons, one a line: who won, who lost, by how much."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import PathLike, numbered_lines
from rankwise.datasets.tokens import MAX_LABEL, distinct_labels, finite_number, show
from rankwise.errors import LetorFormatError

if TYPE_CHECKING:
    from rankwise.graphs import PairGraph

__all__ = ["PairData", "read_pairs"]

_DELIMITERS = (",", "\t", ";", "|")


@dataclass(frozen=True, eq=False)
class PairData:
    """Comparisons of items: ``items[winner[k]]`` beat ``items[loser[k]]``.

    Attributes
    ----------
    winner, loser : ndarray of shape (n_pairs,)
        Positions in `items`.
    magnitude : ndarray of shape (n_pairs,)
        By how much the winner won; 0 is a tie, 1 if the file does not say.
    weight : ndarray of shape (n_pairs,)
        How much the comparison counts; 1 if the file does not say.
    items : ndarray of shape (n_items,)
        The distinct labels in increasing order: int64 if all are whole numbers, else strings.
    """

    winner: NDArray[np.intp]
    loser: NDArray[np.intp]
    magnitude: NDArray[np.float64]
    weight: NDArray[np.float64]
    items: NDArray[Any]

    @property
    def n_items(self) -> int:
        """Number of distinct items."""
        return len(self.items)

    @property
    def n_pairs(self) -> int:
        """Number of comparisons."""
        return len(self.winner)

    def graph(self) -> PairGraph:
        """The comparisons as a preference graph, which a ranker takes as its `y`."""
        from rankwise.graphs import PairGraph

        return PairGraph(
            self.winner,
            self.loser,
            magnitude=self.magnitude,
            weight=self.weight,
            n_items=self.n_items,
        )


class _Columns(NamedTuple):
    """Header of the file, and where in it the columns are that are used."""

    path: str
    names: list[str]
    winner: int
    loser: int
    magnitude: int | None
    weight: int | None


def read_pairs(
    path: PathLike,
    *,
    winner: str | int = "winner",
    loser: str | int = "loser",
    magnitude: str | int | None = None,
    weight: str | int | None = None,
    delimiter: str | None = None,
) -> PairData:
    """Read a CSV or TSV file of comparisons; its first line names the columns.

    Parameters
    ----------
    path : str or path
        Text in UTF-8, plain or compressed.
    winner, loser : str or int, default="winner" and "loser"
        Names of the columns with the labels of the two items, or their positions counted from 0.
    magnitude : str or int, optional
        Column that says by how much the winner won, 0 for a tie; by default the column "magnitude"
        if there is one, else every magnitude is 1.
    weight : str or int, optional
        Column that says how much the comparison counts; by default the column "weight" if there is
        one, else every weight is 1.
    delimiter : str, optional
        Character between the columns; by default the comma, tab, semicolon or bar that makes the
        header contain the columns asked for.

    Returns
    -------
    PairData
        Comparisons as positions in the array of distinct labels.

    Raises
    ------
    LetorFormatError
        If a column is not there or a line cannot be read; the message names file, line and remedy.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "games.csv"
    ...     _ = file.write_text('''winner,loser,magnitude
    ... Ann,Bob,2
    ... Cleo,Ann,1''')
    ...     games = read_pairs(file)
    >>> games.items
    array(['Ann', 'Bob', 'Cleo'], dtype='<U4')
    >>> games.winner, games.loser, games.magnitude
    (array([0, 2]), array([1, 0]), array([2., 1.]))
    """
    name = os.fspath(path)
    wanted = {"winner": winner, "loser": loser, "magnitude": magnitude, "weight": weight}
    lines = _text_lines(name)
    header_line, header = next(((n, text) for n, text in lines if text.strip()), (0, ""))
    if not header:
        raise LetorFormatError(name, None, "the file is empty, expected a line of column names.")
    columns, delimiter = _find_columns(name, header_line, header, wanted, delimiter)
    codes: dict[str, int] = {}
    ends: list[tuple[int, int]] = []
    numbers: list[tuple[float, float]] = []
    for number, row in _records(name, lines, header_line, delimiter):
        first, second = _labels(columns, row, number)
        ends.append((codes.setdefault(first, len(codes)), codes.setdefault(second, len(codes))))
        numbers.append(_magnitude_and_weight(columns, row, number))
    if not ends:
        raise LetorFormatError(name, None, "the file has column names but no comparisons.")
    labels = distinct_labels(list(codes), canonical=True)
    items, position = np.unique(labels, return_inverse=True)
    won, lost = position.astype(np.intp)[np.array(ends)].T.copy()
    sizes, weights = np.array(numbers).T.copy()
    return PairData(won, lost, sizes, weights, items)


def _text_lines(path: str) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(path):
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError:
            raise LetorFormatError(
                path,
                number,
                f"{show(line.strip())} is not text in UTF-8. Save the file in that encoding.",
            ) from None


def _find_columns(
    path: str,
    line: int,
    header: str,
    wanted: dict[str, str | int | None],
    delimiter: str | None,
) -> tuple[_Columns, str]:
    """Try the delimiters in turn; if none makes the header fit, complain about the best guess."""
    candidates = _DELIMITERS if delimiter is None else (delimiter,)
    split = {mark: _split_header(path, line, header, mark) for mark in candidates}
    errors = {}
    for mark, names in split.items():
        try:
            found = {role: _position(names, role, column) for role, column in wanted.items()}
        except ValueError as error:
            errors[mark] = error
            continue
        return _Columns(path, names, **found), mark  # type: ignore[arg-type]
    best = max(candidates, key=lambda mark: len(split[mark]))
    raise LetorFormatError(path, line, str(errors[best]))


def _split_header(path: str, line: int, header: str, delimiter: str) -> list[str]:
    try:
        names = next(csv.reader([header], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise LetorFormatError(path, line, f"cannot read the column names: {error}.") from None
    except TypeError:
        raise ValueError(f"delimiter is {delimiter!r}; pass a single character.") from None
    return [name.strip() for name in names]


def _position(names: list[str], role: str, column: str | int | None) -> int | None:
    if column is None:
        return names.index(role) if names.count(role) == 1 else None
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    if not isinstance(column, str) and 0 <= column < len(names):
        return int(column)
    listed = ", ".join(show(name) for name in names[:30])
    if isinstance(column, str) and column in names:
        raise ValueError(f"the column {column!r} is there twice. The columns are {listed}.")
    raise ValueError(
        f"there is no column {column!r} for the {role}. The columns are {listed}; "
        f"pass {role}= with the right one, or delimiter= if these are not the columns."
    )


def _records(
    path: str, lines: Iterator[tuple[int, str]], header_line: int, delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the number of the line on which each starts."""
    reader = csv.reader((text for _, text in lines), delimiter=delimiter, strict=True)
    while True:
        start = header_line + reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise LetorFormatError(
                path, start, f"{error}. Check the quotation marks and line ends of this row."
            ) from None
        if row and not (len(row) == 1 and not row[0].strip()):
            yield start, row


def _labels(columns: _Columns, row: list[str], line: int) -> tuple[str, str]:
    if len(row) != len(columns.names):
        raise LetorFormatError(
            columns.path,
            line,
            f"the row has {len(row)} columns, the header has {len(columns.names)}. "
            "Quote the fields that contain the delimiter.",
        )
    winner, loser = row[columns.winner].strip(), row[columns.loser].strip()
    for role, label in (("winner", winner), ("loser", loser)):
        if not label:
            problem = f"the {role} is empty. Give it a label, or leave out the row."
            raise LetorFormatError(columns.path, line, problem)
        if len(label) > MAX_LABEL:
            problem = f"the {role} {show(label)} has {len(label)} characters, at most {MAX_LABEL}."
            raise LetorFormatError(columns.path, line, problem)
    if winner == loser:
        raise LetorFormatError(
            columns.path, line, f"{show(winner)} is compared with itself. Leave out the row."
        )
    return winner, loser


def _magnitude_and_weight(columns: _Columns, row: list[str], line: int) -> tuple[float, float]:
    magnitude = weight = 1.0
    if columns.magnitude is not None:
        magnitude = _number(columns.path, line, "magnitude", row[columns.magnitude])
        if magnitude < 0:
            raise LetorFormatError(
                columns.path,
                line,
                f"the magnitude is {magnitude:g}, expected 0 (a tie) or more. "
                "Swap winner and loser instead.",
            )
    if columns.weight is not None:
        weight = _number(columns.path, line, "weight", row[columns.weight])
        if weight <= 0:
            raise LetorFormatError(
                columns.path,
                line,
                f"the weight is {weight:g}, expected more than 0. Leave out the row.",
            )
    return magnitude, weight


def _number(path: str, line: int, role: str, text: str) -> float:
    value = finite_number(text.strip())
    if value is None:
        raise LetorFormatError(
            path, line, f"the {role} is {show(text)}, expected a finite number such as 1 or 0.5."
        )
    return value
