"""Read pairwise comparisons, one a line: who won, who lost, by how much."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.battles import outcome
from rankwise.datasets.files import PathLike
from rankwise.datasets.labels import distinct_labels, finite_number, show
from rankwise.datasets.table_files import OpenTable, open_table
from rankwise.datasets.table_values import column_labels, distinct_cells, group_labels
from rankwise.errors import TableFormatError

if TYPE_CHECKING:
    from rankwise.graphs import PairGraph

__all__ = ["PairData", "read_pairs"]

_TRUE = frozenset({"1", "1.0", "true", "yes", "y", "t", "tie", "draw"})
_FALSE = frozenset({"", "0", "0.0", "false", "no", "n", "f"})


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
    """Read a table of comparisons, one a row; the first line of a text names the columns.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, Feather or JSON lines, plain or compressed; ``-`` is standard input.
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
        Character between the columns of a text; by default the comma, tab, semicolon or bar that
        gives the header most columns.

    Returns
    -------
    PairData
        Comparisons as positions in the array of distinct labels.

    Raises
    ------
    TableFormatError
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
    source = open_table(os.fspath(path), delimiter)
    wanted = {"winner": winner, "loser": loser, "magnitude": magnitude, "weight": weight}
    wanted |= {"tie": tie, "group": group}
    if sides is not None:
        del wanted["loser"]
    at = {role: _position(source, role, column) for role, column in wanted.items()}
    ends = _sides(source, sides) if sides is not None else (at["winner"], at["loser"])
    return _Comparisons(source, at, ends, is_battle=sides is not None).data()


class _Comparisons:
    """The columns of a table of comparisons; each cell that occurs is looked at once."""

    def __init__(
        self,
        source: OpenTable,
        at: dict[str, int | None],
        ends: tuple[int | None, int | None],
        *,
        is_battle: bool,
    ) -> None:
        self._source, self._at, self._ends, self._is_battle = source, at, ends, is_battle
        used = {k for k in (*at.values(), *ends) if k is not None}
        try:
            self._table = source.read(sorted(used), [])
        except TableFormatError as error:
            if "no rows" not in str(error):
                raise
            problem = "the file has column names but no comparisons."
            raise TableFormatError(source.path, None, problem) from None

    def data(self) -> PairData:
        """Check every row and make arrays of them."""
        winner, loser, is_drawn, texts = self._items()
        is_tie = is_drawn | self._ties(len(winner))
        items, position = np.unique(distinct_labels(texts, canonical=True), return_inverse=True)
        magnitude, weight = self._magnitudes(is_tie), self._weights(len(winner))
        groups = None
        if self._at["group"] is not None:
            groups = group_labels(
                self._source, self._at["group"], self._table[str(self._at["group"])]
            )
        ends = position.astype(np.intp)
        return PairData(ends[winner], ends[loser], magnitude, weight, items, groups)

    def _labels(self, role: str, at: int | None) -> tuple[NDArray[np.intp], list[str]]:
        return column_labels(self._source, at or 0, self._table[str(at)], role)

    def _refuse(self, is_bad: NDArray[np.bool_], problem: Callable[[int], str]) -> None:
        """Raise an error about the first bad row, if there is one."""
        if is_bad.any():
            row = int(is_bad.argmax())
            raise TableFormatError(self._source.path, self._source.place(row), problem(row))

    def _items(
        self,
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_], list[str]]:
        """Winner and loser as positions in the distinct labels, and whether no side won."""
        names = [self._source.names[k or 0] for k in self._ends]
        roles = names if self._is_battle else ["winner", "loser"]
        columns = [self._labels(role, at) for role, at in zip(roles, self._ends, strict=True)]
        texts = list(dict.fromkeys(text for _, labels in columns for text in labels))
        place = {text: k for k, text in enumerate(texts)}
        one, two = (np.array([place[t] for t in labels])[codes] for codes, labels in columns)
        self._refuse(
            one == two,
            lambda row: f"{show(texts[one[row]])} is compared with itself. Leave out the row.",
        )
        if not self._is_battle:
            return one, two, np.zeros(len(one), dtype=bool), texts
        side, is_drawn = self._verdicts(one, two, texts, (names[0], names[1]))
        return np.where(side == 0, one, two), np.where(side == 0, two, one), is_drawn, texts

    def _verdicts(
        self, one: NDArray[np.intp], two: NDArray[np.intp], texts: list[str], names: tuple[str, str]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Which side won, 0 or 1, and whether it is a tie; every different row is judged once."""
        codes, words = self._labels("winner", self._at["winner"])
        key = (codes * len(texts) + one) * len(texts) + two
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        found = np.full((len(first), 2), -1)
        problem: dict[int, str] = {}
        for k, row in enumerate(first.tolist()):
            try:
                found[k] = outcome(words[codes[row]], names, (texts[one[row]], texts[two[row]]))
            except ValueError as error:
                problem[row] = str(error)
        side, is_drawn = found[inverse].T
        self._refuse(side < 0, problem.__getitem__)
        return side, is_drawn == 1

    def _ties(self, n_rows: int) -> NDArray[np.bool_]:
        at = self._at["tie"]
        if at is None:
            return np.zeros(n_rows, dtype=bool)
        codes, texts = distinct_cells(self._source, at, self._table[str(at)], "tie")
        words = [text.lower() for text in texts]
        self._refuse(
            np.array([word not in _TRUE | _FALSE for word in words])[codes],
            lambda row: (
                f"the tie is {show(texts[codes[row]])}, expected 1 or 0, true or false, yes or no."
            ),
        )
        is_tie: NDArray[np.bool_] = np.array([word in _TRUE for word in words])[codes]
        return is_tie

    def _numbers(self, role: str, is_gap_fine: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The numbers of a column, NaN for an empty cell where that is fine."""
        at = self._at[role]
        codes, texts = distinct_cells(self._source, at or 0, self._table[str(at)], role)
        if getattr(self._source, "decimal", ".") == ",":
            texts = [text.replace(",", ".") for text in texts]
        found = [finite_number(text) for text in texts]
        is_bad = np.array([value is None for value in found])[codes]
        is_empty = np.array([not text for text in texts])[codes]
        self._refuse(
            is_bad & ~(is_empty & is_gap_fine),
            lambda row: (
                f"the {role} is {show(texts[codes[row]])}, expected a finite number such "
                "as 1 or 0.5."
            ),
        )
        return np.array([np.nan if value is None else value for value in found])[codes]

    def _magnitudes(self, is_tie: NDArray[np.bool_]) -> NDArray[np.float64]:
        if self._at["magnitude"] is None:
            return np.where(is_tie, 0.0, 1.0)
        found = self._numbers("magnitude", is_tie)
        self._refuse(
            found < 0,
            lambda row: (
                f"the magnitude is {found[row]:g}, expected 0 (a tie) or more. "
                "Swap winner and loser instead."
            ),
        )
        self._refuse(
            is_tie & (found > 0),
            lambda row: (
                f"the row is a tie, but its magnitude is {found[row]:g}. "
                "Write the magnitude 0 or leave it empty, or correct the tie."
            ),
        )
        return np.nan_to_num(found)

    def _weights(self, n_rows: int) -> NDArray[np.float64]:
        if self._at["weight"] is None:
            return np.ones(n_rows)
        found = self._numbers("weight", np.zeros(n_rows, dtype=bool))
        self._refuse(
            found <= 0,
            lambda row: f"the weight is {found[row]:g}, expected more than 0. Leave out the row.",
        )
        return found


def _sides(source: OpenTable, sides: Sequence[str | int]) -> tuple[int | None, int | None]:
    if isinstance(sides, str) or len(sides) != 2:
        raise ValueError(f"sides is {sides!r}; pass the names of two columns.")
    first, second = (_position(source, "sides", side) for side in sides)
    if first == second:
        raise ValueError(f"sides is {sides!r}; pass the names of two different columns.")
    return first, second


def _position(source: OpenTable, role: str, column: str | int | None) -> int | None:
    names = source.names
    if column is None:
        return names.index(role) if names.count(role) == 1 else None
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    if not isinstance(column, str) and 0 <= column < len(names):
        return int(column)
    listed = ", ".join(show(name) for name in names[:30])
    problem = f"the column {column!r} is there twice. The columns are {listed}."
    if column not in names:
        remedy = f"pass {role}= with the right one, or delimiter= if these are not the columns"
        if role == "loser" and "winner" in names:
            remedy += "; if the winner column says which of two sides won, pass sides="
        problem = (
            f"there is no column {column!r} for the {role}. The columns are {listed}; {remedy}."
        )
    raise TableFormatError(source.path, source.line, problem)
