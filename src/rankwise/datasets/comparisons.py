"""Comparisons of items, one a row: read from a file or a data frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets import words as usual
from rankwise.datasets.columns import column_numbers, distinct_cells, position_of
from rankwise.datasets.files import PathLike
from rankwise.datasets.pair_data import (
    PairColumns,
    PairData,
    Rankings,
    check_rankings,
    checked_columns,
    from_lists,
    read_as,
    read_places,
    recognized,
)
from rankwise.datasets.ranking import complete_rows
from rankwise.datasets.tables import FrameTable, Table, open_table
from rankwise.datasets.times import read_times
from rankwise.datasets.words import MISSING, distinct_labels, finite_number, is_gap, show
from rankwise.frames import frame_columns
from rankwise.inputs import as_real
from rankwise.text_tables import count, listed

_LARGEST = 10**8  # comparisons that win counts may stand for
_HINTS = {
    "winner": " Pass sides= and outcome= if it names two sides and who won.",
    "loser": " Pass sides= if the winner column says which of two sides won.",
}


def read_pairs(
    path: PathLike, *, delimiter: str | None = None, **columns: Unpack[PairColumns]
) -> PairData:
    """Read a table of comparisons, one a row; the first line of a text names the columns.

    All parameters but `path` and `delimiter` name columns (`**columns`), or say how to read them.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, Feather or JSON, plain or compressed; ``-`` is standard input.
    winner, loser : str or int, default="winner" and "loser"
        Names of the columns with the labels of the two items, or their positions counted from 0.
    sides : pair of str or int, optional
        The two columns with the labels of the items, for data in which another column says which
        side won; `loser` is not used then. Without it, columns "first" and "second", "left" and
        "right", "model_a" and "model_b", "player 1" and "player 2", "home" and "away" or "a" and
        "b" (and more of that kind) are the sides if there is no loser and exactly one of "outcome",
        "winner", "result", "better", "FTR", or the two columns "home_score" and "away_score" (or
        "goals", or "FTHG" and "FTAG"); `read_as` says so.
    outcome : str or int, optional
        With `sides`: the column that says who won, by default the one that `winner` names. It holds
        the name of a side's column, the label of one of the two items, or a word: "left", "first",
        "a", "model_a", "home", 1; "right", "second", "b", "model_b", "away", 2 (or 0, or −1);
        "tie", "draw", "equal", "both bad", "X", 0.5. Words that are not understood are listed.
    wins : two or three of str or int, optional
        With `sides`: columns that count how often the first side won, how often the second and,
        perhaps, how often neither. A row then stands for as many comparisons.
    scores : pair of str or int, optional
        With `sides`: the points, goals or ratings of the two sides; who has more, won.
    margin : bool
        Whether the difference of the scores, or the number in the column `outcome`, is by
        how much the first side won. By default only who won counts.
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
        Column with a label of the comparison, such as the year; by default the column "group" if
        there is one.
    judge, cluster : str or int, optional
        Columns that say who judged, and which comparisons are not independent of each other.
    covariates : list of str, int or pairs of them
        Columns with numbers or categories that may explain outcomes; a pair of columns, one for
        each side, is their difference.
    outcome_words : mapping from str to str, optional
        What words of the column `outcome` mean, such as ``{"A+": "first", "eh": "tie"}``; other
        words keep their meaning.
    ranking, item, place : str or int, optional
        For rankings of several items, one row for each item of a race or ballot: the column that
        tells the rankings apart, that of the items and that of their places, of which only the
        order counts. The same place twice is shared. Items without a place (nothing, DNF, DSQ, …)
        took part and are below all that have one.
    places : list of str or int, optional
        For rankings, one a row: the columns with the best item, the second best, and so on;
        nothing where the ranking has ended.
    unlisted : {"absent", "last"}
        Whether items that a ranking does not name took no part in it, or are below all others,
        as on a ballot.
    time : str or int, optional
        Column that says when the comparison was made: dates (2019-01-31 or 20190131) or numbers;
        "rows" is the order of the rows, if no column has this name.
    context : str, int or list of them
        Columns with circumstances that an item may be better or worse in, such as the surface.
    delimiter : str, optional
        Character between the columns of a text; by default the comma, tab, semicolon or bar that
        gives the header most columns.

    Returns
    -------
    PairData
        Comparisons as positions in the array of distinct labels. Rows with a gap in a column that
        is used, such as matches that were not played, are left out with a warning.

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
    >>> battles.items[battles.first], battles.items[battles.second], battles.outcome
    (array(['owl', 'owl'], dtype='<U5'), array(['crow', 'heron'], dtype='<U5'), array([-1.,  0.]))
    """
    return _Rows(open_table(os.fspath(path), delimiter), checked_columns(columns)).data()


def pairs_from_frame(frame: Any, **columns: Unpack[PairColumns]) -> PairData:
    """Comparisons from a data frame of pandas, polars or Arrow, or a dictionary of columns.

    Parameters
    ----------
    frame : data frame, dict from str to sequence, or list of lists
        One comparison a row; or rankings, each a list of items, the best one first, in which a
        tuple shares a place.
    **columns
        Which columns say what, as in `read_pairs`.

    Returns
    -------
    PairData
        Comparisons as positions in the array of distinct labels.

    Examples
    --------
    >>> battles = {"left": ["owl", "crow"], "right": ["crow", "jay"], "better": ["left", "jay"]}
    >>> data = pairs_from_frame(battles, sides=("left", "right"), outcome="better")
    >>> data.items, data.outcome
    (array(['crow', 'jay', 'owl'], dtype='<U4'), array([ 1., -1.]))
    """
    if isinstance(frame, (list, tuple)) and not set(columns) - {"unlisted"}:
        frame, columns = from_lists(frame), {**columns, "ranking": "ranking"}
    by_name = frame if isinstance(frame, Mapping) else frame_columns(frame)
    if by_name is None:
        raise TypeError(
            f"pairs is of type {type(frame).__name__}, expected a data frame, a dictionary of "
            "columns, a list of rankings, PairData (from rankwise.datasets.read_pairs) or a "
            "PairGraph."
        )
    return _Rows(FrameTable(by_name), checked_columns(columns)).data()


class _Cells(NamedTuple):
    """A column of labels: its distinct texts, and which of them each row has."""

    codes: Indices
    texts: list[str]

    def each(self, values: Any) -> NDArray[Any]:
        """The value of every row, from one for each distinct text."""
        return np.asarray(values)[self.codes]

    def is_in(self, words: Any) -> NDArray[np.bool_]:
        """Whether the text of a row, in small letters, is one of the words."""
        return self.each([text.lower() in words for text in self.texts])

    def take(self, rows: Indices) -> _Cells:
        """Some rows, and the texts that they have."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return _Cells(codes, [self.texts[k] for k in used])

    def quoted(self, is_meant: NDArray[np.bool_]) -> str:
        """The texts of some rows, for a message."""
        return listed((show(self.texts[k]) for k in np.unique(self.codes[is_meant])), 5)


class _Rows:
    """The rows of a table of comparisons that have no gap, column by column."""

    def __init__(self, table: Table, asked: PairColumns) -> None:
        self._table = table
        self._wanted = recognized(asked, table.names)
        self._read_as = "" if self._wanted is asked else read_as(self._wanted)
        self._at = self._positions()
        self._controls = self._covariate_columns()
        self._read()

    def _positions(self) -> dict[str, list[int]]:
        """Where the columns of each role are."""
        wanted, names = self._wanted, self._table.names
        optional = ["magnitude", "weight", "tie", "group", "judge", "cluster", "time", "context"]
        asked = {role: wanted.get(role) for role in optional}
        for role in optional[:4]:
            if asked[role] is None and names.count(role) == 1:
                asked[role] = role
        if asked["time"] == "rows" and "rows" not in names:
            asked["time"] = None
        outcome, sides = wanted.get("outcome"), wanted.get("sides")
        who_won = wanted["winner"] if outcome is None else outcome
        if wanted.get("places") is not None:
            items: dict[str, Any] = {"places": wanted["places"]}
        elif wanted.get("ranking") is not None:
            items = {"item": wanted["item"]}
            asked |= {"ranking": wanted["ranking"], "place": wanted["place"]}
        elif sides is None:
            items = {"winner": who_won, "loser": wanted["loser"]}
        else:
            items = {"sides": sides}
            asked |= {"wins": wanted.get("wins"), "scores": wanted.get("scores")}
            asked["outcome"] = who_won if asked["wins"] is asked["scores"] is None else None
        at = {}
        for role, columns in {**asked, **items}.items():
            several = [columns] if isinstance(columns, (str, int)) else columns or ()
            hint = _HINTS.get(role, "")
            at[role] = [position_of(self._table, column, role, hint) for column in several]
        at["items"] = [place for role in items for place in at.pop(role)]
        if sides is not None and len(set(at["items"])) < 2:
            raise ValueError(f"sides is {sides!r}; pass the names of two different columns.")
        return {role: places for role, places in at.items() if places}

    def _covariate_columns(self) -> dict[str, list[int]]:
        places = {}
        for column in self._wanted.get("covariates") or ():
            parts = list(column) if isinstance(column, (tuple, list)) else [column]
            if len(parts) > 2:
                raise ValueError(f"covariates has {column!r}; a pair is one column for each side.")
            at = [position_of(self._table, part, "covariates") for part in parts]
            places[" − ".join(self._table.names[k] for k in at)] = at
        return places

    def _read(self) -> None:
        """Read the columns as numbers or as texts, and leave out the rows that have gaps."""
        with_numbers = ["magnitude", "weight", "wins", "scores"]
        if self._wanted.get("margin"):
            with_numbers.append("outcome")
        numbers = [at for role in with_numbers for at in self._at.get(role, ())]
        numbers += [at for pair in self._controls.values() if len(pair) == 2 for at in pair]
        used = {at for places in (*self._at.values(), *self._controls.values()) for at in places}
        items = self._at["items"]
        texts = [*items, *sorted(used - {*numbers, *items})]
        self._columns = columns = self._table.read(texts, numbers)
        self._numbers = {at: self._as_numbers(at, columns[at]) for at in numbers}
        self._texts = {at: _Cells(*distinct_cells(columns[at])) for at in texts}
        self._translate()
        kept = complete_rows(self._table, self._gaps())
        self._rows = np.arange(len(columns[items[0]])) if kept is None else kept
        if kept is not None:
            self._numbers = {at: column[kept] for at, column in self._numbers.items()}
            self._texts = {at: cells.take(kept) for at, cells in self._texts.items()}

    def _translate(self) -> None:
        """Replace the outcomes by the words that they stand for."""
        known, cells = self._wanted.get("outcome_words"), self._cells("outcome")
        if not known or cells is None:
            return
        absent = [word for word in known if word not in cells.texts]
        if absent:
            there = listed(map(show, cells.texts), 20)
            shown = f"{listed(map(show, absent), 5)}; there are {there}"
            raise self._table.error(f"outcome_words has words that the column has not: {shown}.")
        translated = [known.get(text, text) for text in cells.texts]
        self._texts[self._at["outcome"][0]] = _Cells(cells.codes, translated)

    def _as_numbers(self, at: int, column: Any) -> Array:
        """A column as floats, NaN for a gap; infinite numbers and words are refused."""
        if not isinstance(column, list):
            return column_numbers(self._table, at, column, "number")
        name = f"the column {show(self._table.names[at])}"
        numbers = as_real(name, [None if is_gap(value) else value for value in column])
        if np.isinf(numbers).any():
            problem = f"{name} is infinite, expected a finite number."
            raise self._table.error(problem, int(np.isinf(numbers).argmax()))
        return numbers + 0.0  # minus zero is zero

    def _cells(self, role: str) -> _Cells | None:
        """The column of texts with a role, if there is one."""
        return self._texts.get(self._at[role][0]) if role in self._at else None

    def _gaps(self) -> dict[str, NDArray[np.bool_]]:
        """Which rows have a gap in each column that is used; a tie needs no magnitude."""
        names, outcome, tie = self._table.names, self._cells("outcome"), self._cells("tie")
        has_gap = {names[at]: np.isnan(column) for at, column in self._numbers.items()}
        optional = [*self._at.get("tie", ()), *self._at.get("place", ())]
        optional += self._at["items"] if self._wanted.get("places") else []
        for at, cells in self._texts.items():
            if at not in optional:
                has_gap[names[at]] = cells.is_in(MISSING if cells is outcome else {""})
        if "magnitude" in self._at:
            gap = has_gap[names[self._at["magnitude"][0]]]
            if tie is not None:
                gap &= ~tie.is_in(usual.IS_TIE)
            if outcome is not None:
                gap &= outcome.each([side != usual.TIE for side in usual.meanings(outcome.texts)])
        return has_gap

    def _refuse(self, is_bad: NDArray[np.bool_], problem: str, values: Array | None = None) -> None:
        """Raise an error about the first bad row, if there is one; {} stands for its value."""
        if is_bad.any():
            row = int(is_bad.argmax())
            text = problem if values is None else problem.format(f"{values[row]:g}")
            raise self._table.error(text, int(self._rows[row]))

    def data(self) -> PairData:
        """Check every row and make arrays of them."""
        if "ranking" in self._at or self._wanted.get("places") is not None:
            return self._ranked()
        first, second, labels = self._items()
        items, position = np.unique(self._as_labels(labels, "items"), return_inverse=True)
        data = PairData(
            position[first].astype(np.intp),
            position[second].astype(np.intp),
            self._outcomes(first, second, labels),
            self._weights(),
            items,
            covariates={name: self._covariate(at) for name, at in self._controls.items()},
            read_as=self._read_as,
            **self._known(),
        )
        return self._expanded(data) if "wins" in self._at else data

    def _known(self) -> dict[str, Any]:
        """What else is known of the rows."""
        known: dict[str, Any] = {"times": self._times()}
        for name, role in {"groups": "group", "judges": "judge", "clusters": "cluster"}.items():
            known[name] = self._labels(self._at[role][0]) if role in self._at else None
        names, contexts = self._table.names, self._at.get("context", ())
        return {**known, "contexts": {names[at]: self._labels(at) for at in contexts}}

    def _ranked(self) -> PairData:
        """Rankings, and what else is known of each from its first row."""
        codes, labels = self._joined_texts()
        weight = self._weights()
        if self._wanted.get("places") is not None:
            names, table = [f"row {row}" for row in self._rows.tolist()], np.stack(codes, axis=1)
            number, at = np.nonzero(np.array([text != "" for text in labels])[table])
            item, place = table[number, at], (at + 1).astype(np.float64)
            row = np.arange(len(weight))
        else:
            number, names = self._texts[self._at["ranking"][0]]
            cells, item = self._texts[self._at["place"][0]], codes[0]
            place = cells.each(read_places(cells.texts, self._error_of(cells)))
            _, row = np.unique(number, return_index=True)
            is_bad = weight != weight[row][number]
            self._refuse(is_bad, "the weight is {}, and another one in the same ranking.", weight)
        items, used = np.unique(item, return_inverse=True)
        items, position = np.unique(
            self._as_labels([labels[k] for k in items], "items"), return_inverse=True
        )
        rankings = Rankings(number, position[used].astype(np.intp), place, weight[row])
        check_rankings(rankings, lambda k: f"the ranking {names[k]}", items)
        return _ranked_data(rankings, items, self._wanted, row, self._known())

    def _error_of(self, cells: _Cells) -> Any:
        """What makes an error about one of the texts of a column, in the first row that has it."""
        return lambda k, problem: self._table.error(
            problem, int(self._rows[(cells.codes == k).argmax()])
        )

    def _times(self) -> NDArray[Any] | None:
        cells = self._cells("time")
        if cells is not None:
            return cells.each(read_times(cells.texts, self._error_of(cells)))
        return None if self._wanted.get("time") is None else self._rows.astype(np.float64)

    def _joined_texts(self) -> tuple[list[Indices], list[str]]:
        """The cells of the columns of items as positions in the distinct texts of all of them."""
        columns = [self._texts[at] for at in self._at["items"]]
        labels = list(dict.fromkeys(text for cells in columns for text in cells.texts))
        place = {label: k for k, label in enumerate(labels)}
        return [cells.each([place[text] for text in cells.texts]) for cells in columns], labels

    def _items(self) -> tuple[Indices, Indices, list[str]]:
        """The two items as positions in the distinct labels."""
        (first, second), labels = self._joined_texts()
        same = _Cells(first, labels).quoted(first == second)
        self._refuse(first == second, f"{same} is compared with itself. Leave out the row.")
        return first, second, labels

    def _as_labels(self, texts: list[str], role: str | int) -> NDArray[Any]:
        """Labels as they were in the columns of a role, or in one: whole numbers or strings."""
        places = [role] if isinstance(role, int) else self._at[role]
        firsts = [self._columns[at][0] for at in places]  # a text of a file is one of Arrow
        if any(isinstance(first, str) for first in firsts):
            return np.array(texts, dtype=np.str_)
        return distinct_labels(texts, canonical=True)

    def _labels(self, at: int) -> NDArray[Any]:
        cells = self._texts[at]
        return cells.each(self._as_labels(cells.texts, at))

    def _outcomes(self, first: Indices, second: Indices, labels: list[str]) -> Array:
        """By how much the first side won."""
        if "wins" in self._at:
            return np.ones(len(first))
        if "scores" in self._at:
            ours, theirs = (self._numbers[at] for at in self._at["scores"])
            return ours - theirs if self._wanted.get("margin") else np.sign(ours - theirs)
        if "outcome" not in self._at:
            sign = np.ones(len(first))
        elif self._wanted.get("margin"):
            return self._numbers[self._at["outcome"][0]]
        else:
            sign = self._verdicts(first, second, labels).astype(np.float64)
        is_tie = (sign == 0) | self._ties(len(first))
        return np.where(sign < 0, -1.0, 1.0) * self._magnitudes(is_tie) + 0.0

    def _verdicts(self, first: Indices, second: Indices, labels: list[str]) -> Indices:
        """1 if the first side won, −1 if the second did, 0 for a tie."""
        cells = self._texts[self._at["outcome"][0]]
        codes, words = cells
        names = [self._table.names[at] for at in self._at["items"]]
        place = {label: k for k, label in enumerate(labels)}
        item = cells.each([place.get(word, -1) for word in words])
        by_item = np.where(item == first, 1, np.where(item == second, -1, 2))
        counts = np.bincount(codes)
        is_item = np.bincount(codes, by_item != 2) == counts  # in all its rows
        side_of = {names[0].lower(): 1, names[1].lower(): -1}
        said: list[int | None] = []
        for word, meaning, is_always_item in zip(
            words, usual.meanings(words), is_item, strict=True
        ):
            side = side_of.get(word.lower())
            said.append(side if side is not None else None if is_always_item else meaning)
        unknown = [k for k, side in enumerate(said) if side is None and not is_item[k]]
        shown = listed((f"{show(words[k])} ({count(counts[k], 'row')})" for k in unknown), 20)
        self._refuse(
            np.isin(codes, unknown),
            f"the winner is {shown}, expected {', '.join(map(show, names))}, one of the two items "
            f"or 'tie'; also understood: {', '.join(usual.EXAMPLES)}, 1, 2, 0.5.",
        )
        meant = cells.each([2 if side is None else side for side in said])
        verdict = np.where(meant == 2, by_item, meant)
        is_unclear = (by_item != 2) & (by_item != verdict)
        self._refuse(
            is_unclear,
            f"the winner {cells.quoted(is_unclear)} can be understood in two ways: as an item, and "
            "as a word for a side or a tie. Rename the item or the column.",
        )
        return verdict

    def _ties(self, n_rows: int) -> NDArray[np.bool_]:
        cells = self._cells("tie")
        if cells is None:
            return np.zeros(n_rows, dtype=bool)
        is_bad = ~cells.is_in(usual.IS_TIE | usual.IS_NO_TIE)
        expected = "expected 1 or 0, true or false, yes or no."
        self._refuse(is_bad, f"the tie is {cells.quoted(is_bad)}, {expected}")
        return cells.is_in(usual.IS_TIE)

    def _magnitudes(self, is_tie: NDArray[np.bool_]) -> Array:
        if "magnitude" not in self._at:
            return np.where(is_tie, 0.0, 1.0)
        magnitude = self._numbers[self._at["magnitude"][0]]
        problem = "the magnitude is {}, expected 0 (a tie) or more. Swap winner and loser instead."
        self._refuse(magnitude < 0, problem, magnitude)
        problem = "the row is a tie, but its magnitude is {}. Write 0 or nothing, or no tie."
        self._refuse(is_tie & (magnitude > 0), problem, magnitude)
        return np.where(np.isnan(magnitude), 0.0, magnitude)

    def _weights(self) -> Array:
        if "weight" not in self._at:
            return np.ones(len(self._rows))
        weight = self._numbers[self._at["weight"][0]]
        problem = "the weight is {}, expected more than 0. Leave out the row."
        self._refuse(weight <= 0, problem, weight)
        return weight

    def _covariate(self, at: list[int]) -> NDArray[Any]:
        """Numbers if every cell is one, else labels of categories."""
        if len(at) == 2:
            difference: Array = self._numbers[at[0]] - self._numbers[at[1]]
            return difference
        cells = self._texts[at[0]]
        numbers = [finite_number(text) for text in cells.texts]
        is_category = any(number is None for number in numbers)
        return cells.each(cells.texts if is_category else np.array(numbers, np.float64))

    def _expanded(self, data: PairData) -> PairData:
        """As many comparisons as the counts of wins and ties say."""
        counts = np.column_stack([self._numbers[at] for at in self._at["wins"]])
        for column in counts.T:
            problem = "the number of wins is {}, expected a whole number from 0."
            self._refuse((column < 0) | (column != np.round(column)), problem, column)
        if counts.sum() > _LARGEST:
            raise ValueError(
                f"the wins count {counts.sum():.0f} comparisons, at most {_LARGEST} are read; "
                "divide the counts, or pass one row for each outcome with a weight."
            )
        n_kinds = counts.shape[1]
        each = np.repeat(np.arange(counts.size), counts.ravel().astype(np.intp))
        outcome = np.array([1.0, -1.0, 0.0])[each % n_kinds]
        return replace(data.take(each // n_kinds), outcome=outcome)


def _ranked_data(
    rankings: Rankings, items: NDArray[Any], wanted: PairColumns, rows: Any, known: dict[str, Any]
) -> PairData:
    """The pairs of rankings; `known` has values of rows, of which each ranking has one."""
    if wanted.get("unlisted") == "last":
        rankings = rankings.with_all(len(items))
    pairs = rankings.pairs
    at = rows[pairs.ranking]
    contexts = {name: labels[at] for name, labels in known.pop("contexts").items()}
    taken: dict[str, Any] = {name: None if of is None else of[at] for name, of in known.items()}
    if taken.get("clusters") is None and taken.get("judges") is None:
        taken["clusters"] = pairs.ranking
    return PairData(*pairs[:4], items, **taken, contexts=contexts, rankings=rankings)
