"""Read pairwise comparisons, one a line: who won, who lost, by how much."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.file_kinds import kind_of
from rankwise.datasets.files import PathLike, numbered_lines
from rankwise.datasets.group_labels import GroupLabels
from rankwise.datasets.pair_rows import PairColumns, read_comparison
from rankwise.datasets.parquet import parquet_records
from rankwise.datasets.table_records import (
    DELIMITERS,
    first_line,
    is_blank,
    raw_records,
    split_header,
    split_record,
)
from rankwise.datasets.labels import distinct_labels, show
from rankwise.errors import LetorFormatError

if TYPE_CHECKING:
    from rankwise.graphs import PairGraph

__all__ = ["PairData", "read_pairs"]


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
    groups : ndarray of shape (n_pairs,) or None
        A label of each comparison, such as who judged; None if the file has none.
    """

    winner: NDArray[np.intp]
    loser: NDArray[np.intp]
    magnitude: NDArray[np.float64]
    weight: NDArray[np.float64]
    items: NDArray[Any]
    groups: NDArray[Any] | None = None

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


def read_pairs(
    path: PathLike,
    *,
    winner: str | int = "winner",
    loser: str | int = "loser",
    magnitude: str | int | None = None,
    weight: str | int | None = None,
    tie: str | int | None = None,
    group: str | int | None = None,
    sides: Sequence[str | int] | None = None,
    delimiter: str | None = None,
) -> PairData:
    """Read a CSV, TSV or Parquet file of comparisons; the first line of a text names the columns.

    Parameters
    ----------
    path : str or path
        Text in UTF-8, plain or compressed, or a Parquet file, for which pyarrow has to be
        installed.
    winner, loser : str or int, default="winner" and "loser"
        Names of the columns with the labels of the two items, or their positions counted from 0.
    magnitude : str or int, optional
        Column that says by how much the winner won, 0 for a tie; by default the column "magnitude"
        if there is one, else every magnitude is 1.
    weight : str or int, optional
        Column that says how much the comparison counts; by default the column "weight" if there is
        one, else every weight is 1.
    tie : str or int, optional
        Column that says whether the comparison is a tie (1, true, yes, y, t, tie or draw; else 0,
        false, no, n, f or nothing), which means the magnitude 0; by default the column "tie" if
        there is one.  A tie with another magnitude is an error.
    group : str or int, optional
        Column with a label of the comparison, such as who judged; by default the column "group" if
        there is one.
    sides : pair of str or int, optional
        The two columns with the labels of the items, for files in which `winner` says which side
        won: it then holds the name of one of these columns, the label of one of the two items, or a
        word for a tie ("tie", "draw", "both bad", "tie (bothbad)").  `loser` is not used.
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

    Battles of language models name the two sides and then the winner:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "battles.csv"
    ...     _ = file.write_text('''model_a,model_b,winner
    ... owl,crow,model_b
    ... owl,heron,tie''')
    ...     battles = read_pairs(file, sides=("model_a", "model_b"))
    >>> battles.items[battles.winner], battles.items[battles.loser], battles.magnitude
    (array(['crow', 'owl'], dtype='<U5'), array(['owl', 'heron'], dtype='<U5'), array([1., 0.]))
    """
    name = os.fspath(path)
    wanted = {"winner": winner, "loser": loser, "magnitude": magnitude, "weight": weight}
    wanted |= {"tie": tie, "group": group}
    if os.path.isfile(name) and kind_of(name) == "parquet":
        columns, rows = _parquet_rows(name, wanted, sides)
    else:
        columns, rows = _text_rows(name, wanted, sides, delimiter)
    return _as_data(columns, rows)


def _as_data(columns: PairColumns, rows: Iterator[tuple[int, list[str]]]) -> PairData:
    codes: dict[str, int] = {}
    ends: list[tuple[int, int]] = []
    numbers: list[tuple[float, float]] = []
    groups = GroupLabels()
    for line, row in rows:
        found = read_comparison(columns, row, line)
        first = codes.setdefault(found.winner, len(codes))
        ends.append((first, codes.setdefault(found.loser, len(codes))))
        numbers.append((found.magnitude, found.weight))
        if columns.group is not None:
            groups.extend(columns.path, [line], [found.group])
    if not ends:
        raise LetorFormatError(columns.path, None, "the file has column names but no comparisons.")
    labels = distinct_labels(list(codes), canonical=True)
    items, position = np.unique(labels, return_inverse=True)
    won, lost = position.astype(np.intp)[np.array(ends)].T.copy()
    sizes, weights = np.array(numbers).T.copy()
    group_labels = groups.labels() if columns.group is not None else None
    return PairData(won, lost, sizes, weights, items, group_labels)


def _text_rows(
    path: str,
    wanted: dict[str, str | int | None],
    sides: Sequence[str | int] | None,
    delimiter: str | None,
) -> tuple[PairColumns, Iterator[tuple[int, list[str]]]]:
    """Try the delimiters in turn; if none makes the header fit, complain about the best guess."""
    lines = numbered_lines(path)
    line, header = first_line(path, lines)
    candidates = DELIMITERS if delimiter is None else (delimiter,)
    split = {mark: split_header(path, line, header, mark) for mark in candidates}
    errors = {}
    for mark, names in split.items():
        try:
            columns = _find_columns(path, names, wanted, sides)
        except _NotThere as error:
            errors[mark] = error
            continue
        return columns, _split_rows(path, lines, mark, len(names))
    best = max(candidates, key=lambda mark: len(split[mark]))
    raise LetorFormatError(path, line, str(errors[best]))


def _split_rows(
    path: str, lines: Iterator[tuple[int, bytes]], delimiter: str, n_columns: int
) -> Iterator[tuple[int, list[str]]]:
    mark = delimiter.encode()
    for line, raw in raw_records(path, lines, delimiter):
        if not is_blank(raw, mark):
            yield line, split_record(path, line, raw, delimiter, n_columns)


def _parquet_rows(
    path: str, wanted: dict[str, str | int | None], sides: Sequence[str | int] | None
) -> tuple[PairColumns, Iterator[tuple[int, list[str]]]]:
    """The rows of a Parquet file; what stands for the line is the number of the row."""
    records = parquet_records(path)
    try:
        columns = _find_columns(path, next(records), wanted, sides)
    except _NotThere as error:
        raise LetorFormatError(path, None, str(error)) from None
    return columns, enumerate(records, start=1)


class _NotThere(Exception):
    """Which column is missing, in words for the user."""


def _find_columns(
    path: str,
    names: list[str],
    wanted: dict[str, str | int | None],
    sides: Sequence[str | int] | None,
) -> PairColumns:
    roles = dict(wanted)
    pair = None
    if sides is not None:
        del roles["loser"]
        pair = _sides(names, sides)
    found: dict[str, Any] = {role: _position(names, role, roles[role]) for role in roles}
    return PairColumns(path, names, **{"loser": -1, **found, "sides": pair})


def _sides(names: list[str], sides: Sequence[str | int]) -> tuple[int, int]:
    if isinstance(sides, str) or len(sides) != 2:
        raise ValueError(f"sides is {sides!r}; pass the names of two columns.")
    first, second = (_position(names, "sides", side) for side in sides)
    if first is None or second is None or first == second:
        raise ValueError(f"sides is {sides!r}; pass the names of two different columns.")
    return first, second


def _position(names: list[str], role: str, column: str | int | None) -> int | None:
    if column is None:
        return names.index(role) if names.count(role) == 1 else None
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    if not isinstance(column, str) and 0 <= column < len(names):
        return int(column)
    listed = ", ".join(show(name) for name in names[:30])
    if isinstance(column, str) and column in names:
        raise _NotThere(f"the column {column!r} is there twice. The columns are {listed}.")
    remedy = f"pass {role}= with the right one, or delimiter= if these are not the columns"
    if role == "loser" and "winner" in names:
        remedy += "; if the winner column says which of two sides won, pass sides="
    raise _NotThere(
        f"there is no column {column!r} for the {role}. The columns are {listed}; {remedy}."
    )
