"""Read pairwise comparisons, one a line: who won, who lost, by how much."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import PathLike
from rankwise.datasets.labels import distinct_labels, show
from rankwise.datasets.table_columns import position_of
from rankwise.datasets.table_files import OpenTable, open_table
from rankwise.datasets.table_values import (
    column_labels,
    column_numbers,
    distinct_cells,
    group_labels,
    refuse_first,
)
from rankwise.errors import TableFormatError

if TYPE_CHECKING:
    from rankwise.graphs import PairGraph

__all__ = ["PairData", "read_pairs"]

_TRUE = frozenset({"1", "1.0", "true", "yes", "y", "t", "tie", "draw"})
_FALSE = frozenset({"", "0", "0.0", "false", "no", "n", "f"})
_TIES = frozenset({"tie", "draw", "both", "tie (bothbad)", "bothbad", "both bad", "both_bad"})


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
        if isinstance(sides, str) or len(sides) != 2:
            raise ValueError(f"sides is {sides!r}; pass the names of two columns.")
    at = {role: _position(source, role, column) for role, column in wanted.items()}
    ends = [at["winner"], at.get("loser")]
    if sides is not None:
        ends = [position_of(source, side, "sides") for side in sides]
        if ends[0] == ends[1]:
            raise ValueError(f"sides is {sides!r}; pass the names of two different columns.")
    known = {role: place for role, place in at.items() if place is not None}
    return _Comparisons(
        source, known, [end or 0 for end in ends], is_battle=sides is not None
    ).data()


def _position(source: OpenTable, role: str, column: str | int | None) -> int | None:
    """The column of a role; by default the one of its name, if there is exactly one."""
    if column is None:
        return source.names.index(role) if source.names.count(role) == 1 else None
    is_battle = role == "loser" and "winner" in source.names
    hint = " Pass sides= if the winner column says which of two sides won." if is_battle else ""
    return position_of(source, column, role, hint)


class _Comparisons:
    """The columns of a table of comparisons, by their roles; `ends` are those of the items."""

    def __init__(
        self, source: OpenTable, at: dict[str, int], ends: list[int], *, is_battle: bool
    ) -> None:
        self._source, self._at, self._ends, self._is_battle = source, at, ends, is_battle
        numbers = [at[role] for role in ("magnitude", "weight") if role in at]
        self._table = source.read([*ends, *(set(at.values()) - {*numbers, *ends})], numbers)

    def data(self) -> PairData:
        """Check every row and make arrays of them."""
        winner, loser, is_drawn, texts = self._items()
        magnitude, weight = self._magnitudes(is_drawn | self._ties(len(winner))), self._weights()
        items, position = np.unique(distinct_labels(texts, canonical=True), return_inverse=True)
        groups = None
        if "group" in self._at:
            role = "group of the comparison"
            groups = group_labels(self._source, self._at["group"], self._column("group"), role)
        ends = position.astype(np.intp)
        return PairData(ends[winner], ends[loser], magnitude, weight, items, groups)

    def _column(self, role: str) -> Any:
        return self._table[str(self._at[role])]

    def _refuse(self, is_bad: NDArray[np.bool_], problem: Callable[[int], str]) -> None:
        """Raise an error about the first bad row, if there is one."""
        if is_bad.any():
            row = int(is_bad.argmax())
            raise TableFormatError(self._source.path, self._source.place(row), problem(row))

    def _items(
        self,
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_], list[str]]:
        """Winner and loser as positions in the distinct labels, and whether no side won."""
        names = [self._source.names[end] for end in self._ends]
        roles = names if self._is_battle else ["winner", "loser"]
        columns = [
            column_labels(self._source, end, self._table[str(end)], role)
            for end, role in zip(self._ends, roles, strict=True)
        ]
        texts = list(dict.fromkeys(text for _, labels in columns for text in labels))
        place = {text: k for k, text in enumerate(texts)}
        one, two = (np.array([place[t] for t in labels])[codes] for codes, labels in columns)
        self._refuse(
            one == two,
            lambda row: f"{show(texts[one[row]])} is compared with itself. Leave out the row.",
        )
        if not self._is_battle:
            return one, two, np.zeros(len(one), dtype=bool), texts
        is_second, is_drawn = self._verdicts(one, two, texts)
        return np.where(is_second, two, one), np.where(is_second, one, two), is_drawn, texts

    def _verdicts(
        self, one: NDArray[np.intp], two: NDArray[np.intp], texts: list[str]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether the second side won, and whether it is a tie."""
        at = self._at["winner"]
        codes, words = column_labels(self._source, at, self._column("winner"), "winner")
        names = [self._source.names[end] for end in self._ends]
        place = {text: k for k, text in enumerate(texts)}
        item = np.array([place.get(word, -1) for word in words])[codes]
        said = [np.array([word.lower() in _TIES for word in words])[codes]]
        for name, side in zip(names, (one, two), strict=True):
            is_name = np.array([word.lower() == name.lower() for word in words])[codes]
            said.append(is_name | (item == side))

        def problem(row: int) -> str:
            verdict = show(words[codes[row]])
            sides = [*names, texts[one[row]], texts[two[row]]]
            expected = f"expected {', '.join(map(show, sides))} or 'tie'"
            if not np.any([meaning[row] for meaning in said]):
                return f"the winner is {verdict}, {expected}."
            return (
                f"the winner {verdict} can be understood in two ways: {expected}, with different "
                "meanings. Rename the item or the column."
            )

        self._refuse(np.sum(said, axis=0) != 1, problem)
        return said[2], said[0]

    def _ties(self, n_rows: int) -> NDArray[np.bool_]:
        if "tie" not in self._at:
            return np.zeros(n_rows, dtype=bool)
        codes, texts = distinct_cells(self._source, self._at["tie"], self._column("tie"), "tie")
        words = [text.lower() for text in texts]
        self._refuse(
            np.array([word not in _TRUE | _FALSE for word in words])[codes],
            lambda row: (
                f"the tie is {show(texts[codes[row]])}, expected 1 or 0, true or false, yes or no."
            ),
        )
        is_tie: NDArray[np.bool_] = np.array([word in _TRUE for word in words])[codes]
        return is_tie

    def _magnitudes(self, is_tie: NDArray[np.bool_]) -> NDArray[np.float64]:
        if "magnitude" not in self._at:
            return np.where(is_tie, 0.0, 1.0)
        at = self._at["magnitude"]
        found = column_numbers(self._source, at, self._table, "magnitude")
        is_gap = np.isnan(found)
        refuse_first(self._source, at, np.isinf(found) | (is_gap & ~is_tie), "magnitude")
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
        return np.where(is_gap, 0.0, found)

    def _weights(self) -> NDArray[np.float64]:
        if "weight" not in self._at:
            return np.ones(self._table.num_rows)
        at = self._at["weight"]
        found = column_numbers(self._source, at, self._table, "weight")
        refuse_first(self._source, at, ~np.isfinite(found), "weight")
        self._refuse(
            found <= 0,
            lambda row: f"the weight is {found[row]:g}, expected more than 0. Leave out the row.",
        )
        return found
