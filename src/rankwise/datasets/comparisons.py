"""Comparisons of items, one a row: read from a file or a data frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets import vocabulary
from rankwise.datasets.column_roles import position_of
from rankwise.datasets.column_values import complete_rows, distinct_cells
from rankwise.datasets.files import PathLike
from rankwise.datasets.numeric_columns import column_numbers
from rankwise.datasets.pair_data import (
    PairColumns,
    PairData,
    Rankings,
    checked_columns,
    from_lists,
    recognized,
)
from rankwise.datasets.table_files import FrameTable, TableFile, open_table
from rankwise.datasets.times import read_times
from rankwise.datasets.vocabulary import (
    MISSING,
    distinct_labels,
    finite_number,
    is_gap,
    shown_value,
)
from rankwise.formatting import count, join_words
from rankwise.frames import frame_columns
from rankwise.validation import check_float_array

TEAMS = (tuple, list, set, frozenset, dict, np.ndarray)  # cells that are not one item
_LARGEST = 10**8  # comparisons that win counts may stand for
_ITEMS = ("places", "item", "winner", "loser", "sides")  # roles of columns of items
_NUMBERS = ("magnitude", "weight", "wins", "scores", "margin", "differences")
_BY_NAME = ("magnitude", "weight", "tie", "group")  # read if a column is called so
_SAID = {"margin": "outcome", "differences": "covariates"}
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
    return pairs_from_table(open_table(os.fspath(path), delimiter), columns)


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
    return pairs_from_table(FrameTable(by_name), columns)


class _Cells(NamedTuple):
    """A column of labels: its distinct texts, which of them each row has, whether they are words.

    A text of a file may spell a whole number, a string of a frame is a word.
    """

    codes: Indices
    texts: list[str]
    are_words: bool

    def each(self, values: Any) -> NDArray[Any]:
        """The value of every row, from one for each distinct text."""
        return np.asarray(values)[self.codes]

    def is_in(self, words: Any) -> NDArray[np.bool_]:
        """Whether the text of a row, in small letters, is one of the words."""
        return self.each([text.lower() in words for text in self.texts])

    def distinct(self) -> NDArray[Any]:
        """The distinct labels as they were: whole numbers or strings."""
        if self.are_words:
            return np.array(self.texts, dtype=np.str_)
        return distinct_labels(self.texts, canonical=True)

    def labels(self) -> NDArray[Any]:
        """The label of every row."""
        return self.each(self.distinct())

    def take(self, rows: Indices) -> _Cells:
        """Some rows, and the texts that they have."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return _Cells(codes, [self.texts[k] for k in used], self.are_words)


class _Rows(NamedTuple):
    """The rows of a table that have no gap.

    Attributes
    ----------
    table : Table
        Where they are from.
    kept : ndarray of int
        Their numbers there.
    names : dict from str to list of str
        Names of the columns of each role.
    cells, numbers : dicts from str to lists of _Cells and of ndarray
        These columns.
    """

    table: TableFile
    kept: Indices
    names: dict[str, list[str]]
    cells: dict[str, list[_Cells]]
    numbers: dict[str, list[Array]]

    def refuse(self, is_bad: NDArray[np.bool_], problem: str, values: Any = None) -> None:
        """Raise an error about the first bad row, if there is one; {} stands for its value."""
        if is_bad.any():
            row = int(is_bad.argmax())
            if isinstance(values, _Cells):
                problem = problem.format(shown_value(values.texts[values.codes[row]]))
            elif values is not None:
                problem = problem.format(f"{values[row]:g}")
            raise self.table.error(problem, int(self.kept[row]))


def pairs_from_table(table: TableFile, columns: PairColumns) -> PairData:
    """Find the columns, read the rows that have no gap, check them and make arrays of them."""
    wanted, read_as = recognized(checked_columns(columns), table.names)
    rows = _rows(table, wanted, _positions(table, wanted))
    known: dict[str, Any] = {"times": _times(rows, wanted.get("time"))}
    for name, role in {"groups": "group", "judges": "judge", "clusters": "cluster"}.items():
        for cells in rows.cells.get(role, ()):
            known[name] = cells.labels()
    known["contexts"] = {}
    for k, cells in enumerate(rows.cells.get("context", ())):
        known["contexts"][rows.names["context"][k]] = cells.labels()
    (weight,) = rows.numbers.get("weight", [np.ones(len(rows.kept))])
    rows.refuse(weight <= 0, "the weight is {}, expected more than 0. Leave out the row.", weight)
    items = _joined(rows.cells["items"])
    if "ranking" in rows.cells or wanted.get("places") is not None:
        return _ranked(rows, items, wanted.get("unlisted") == "last", weight, known)
    first, second = items
    problem = "{} is compared with itself. Leave out the row."
    rows.refuse(first.codes == second.codes, problem, first)
    labels, position = np.unique(first.distinct(), return_inverse=True)
    data = PairData(
        first.each(position).astype(np.intp),
        second.each(position).astype(np.intp),
        _outcomes(rows, bool(wanted.get("margin")), first, second),
        weight,
        labels,
        covariates=_covariates(rows),
        read_as=read_as,
        **known,
    )
    return _expanded(rows, data) if "wins" in rows.numbers else data


def _positions(table: TableFile, wanted: PairColumns) -> dict[str, list[int]]:
    """Where the columns of each role are."""
    sides, outcome = wanted.get("sides"), wanted.get("outcome")
    who_won = wanted["winner"] if outcome is None else outcome
    asked: dict[str, Any] = {"winner": who_won, "loser": wanted["loser"]}
    if wanted.get("places") is not None:
        asked = {"places": wanted["places"]}
    elif wanted.get("ranking") is not None:
        asked = {role: wanted.get(role) for role in ("item", "ranking", "place")}
    elif sides is not None:
        asked = {role: wanted.get(role) for role in ("sides", "wins", "scores")}
        if asked["wins"] is asked["scores"] is None:
            asked["margin" if wanted.get("margin") else "outcome"] = who_won
    for role in (*_BY_NAME, "judge", "cluster", "time", "context"):
        asked[role] = wanted.get(role)
        if asked[role] is None and role in _BY_NAME and table.names.count(role) == 1:
            asked[role] = role
    if str(asked["time"]) == "rows" and "rows" not in table.names:
        asked["time"] = None
    for column in wanted.get("covariates") or ():
        pair = [column] if isinstance(column, (str, int)) else list(column)
        if len(pair) > 2:
            raise ValueError(f"covariates has {column!r}; a pair is one column for each side.")
        role = "covariates" if len(pair) == 1 else "differences"
        asked[role] = [*asked.get(role, ()), *pair]
    at: dict[str, list[int]] = {}
    for role, columns in asked.items():
        for column in [columns] if isinstance(columns, (str, int)) else columns or ():
            said = _SAID.get(role, role)
            place = position_of(table, column, said, _HINTS.get(role, ""))
            at.setdefault("items" if role in _ITEMS else role, []).append(place)
    if sides is not None and len(set(at["items"])) < 2:
        raise ValueError(f"sides is {sides!r}; pass the names of two different columns.")
    return at


def _rows(table: TableFile, wanted: PairColumns, at: dict[str, list[int]]) -> _Rows:
    """Read the columns as numbers or as texts, and leave out the rows that have gaps."""
    every = [(role, place) for role, places in at.items() for place in places]
    spelled = [place for role, place in every if role not in _NUMBERS]
    columns = table.read(spelled, [place for role, place in every if role in _NUMBERS])
    names: dict[str, list[str]] = {}
    cells: dict[str, list[_Cells]] = {}
    numbers: dict[str, list[Array]] = {}
    has_gap, is_tie = {}, np.zeros(1, bool)
    for role, place in every:
        name, column = table.names[place], columns[place]
        names.setdefault(role, []).append(name)
        if role in _NUMBERS:
            values = _as_numbers(table, place, column)
            numbers.setdefault(role, []).append(values)
            has_gap[name] = np.isnan(values)
            continue
        if role == "items":
            _refuse_teams(table, name, column)
        one = _Cells(*distinct_cells(column), isinstance(column[0], str))
        if role == "outcome":
            if wanted.get("outcome_words"):
                one = _translated(table, one, wanted["outcome_words"])
            sides = vocabulary.meanings(one.texts)
            is_tie = is_tie | one.each([side == vocabulary.TIE for side in sides])
            has_gap[name] = one.is_in(MISSING)
        elif role == "tie":
            is_tie = is_tie | one.is_in(vocabulary.IS_TIE)
        elif role != "place" and not (role == "items" and wanted.get("places")):
            has_gap[name] = one.is_in({""})
        cells.setdefault(role, []).append(one)
    for magnitude in numbers.get("magnitude", ()):
        magnitude[np.isnan(magnitude) & is_tie] = 0.0  # a tie needs none
        has_gap[names["magnitude"][0]] = np.isnan(magnitude)
    kept = complete_rows(table, has_gap)
    if kept is not None:
        numbers = {role: [column[kept] for column in numbers[role]] for role in numbers}
        cells = {role: [one.take(kept) for one in cells[role]] for role in cells}
    rows = np.arange(len(columns[spelled[0]])) if kept is None else kept
    return _Rows(table, rows, names, cells, numbers)


def _refuse_teams(table: TableFile, name: str, column: Any) -> None:
    """Refuse cells that hold several items: each tuple would be an item of its own."""
    if not isinstance(column, list):
        return
    for row, cell in enumerate(column):
        if isinstance(cell, TEAMS):
            raise table.error(
                f"the column {shown_value(name)} has the {type(cell).__name__} {cell!r}, expected "
                "one item. Comparisons of teams are not supported; write one label for each side.",
                row,
            )


def _translated(table: TableFile, cells: _Cells, words: Mapping[str, str]) -> _Cells:
    """The outcomes with the words that they stand for."""
    absent = [word for word in words if word not in cells.texts]
    if absent:
        there = join_words(map(shown_value, cells.texts), 20)
        shown = f"{join_words(map(shown_value, absent), 5)}; there are {there}"
        raise table.error(f"outcome_words has words that the column has not: {shown}.")
    return cells._replace(texts=[words.get(text, text) for text in cells.texts])


def _as_numbers(table: TableFile, at: int, column: Any) -> Array:
    """A column as floats, NaN for a gap; infinite numbers and words are refused."""
    if not isinstance(column, list):
        return column_numbers(table, at, column, "number")
    name = f"the column {shown_value(table.names[at])}"
    numbers = check_float_array(name, [None if is_gap(value) else value for value in column])
    if np.isinf(numbers).any():
        problem = f"{name} is infinite, expected a finite number."
        raise table.error(problem, int(np.isinf(numbers).argmax()))
    return numbers + 0.0  # minus zero is zero


def _joined(columns: list[_Cells]) -> list[_Cells]:
    """The same columns, whose texts are those of all of them."""
    place: dict[str, int] = {}
    codes = [
        cells.each([place.setdefault(text, len(place)) for text in cells.texts])
        for cells in columns
    ]
    are_words = any(cells.are_words for cells in columns)
    return [_Cells(each, list(place), are_words) for each in codes]


def _times(rows: _Rows, asked: Any) -> NDArray[Any] | None:
    for cells in rows.cells.get("time", ()):

        def error(k: int, problem: str, codes: Indices = cells.codes) -> Exception:
            return rows.table.error(problem, int(rows.kept[(codes == k).argmax()]))

        return cells.each(read_times(cells.texts, error))
    return None if asked is None else rows.kept.astype(np.float64)


def _covariates(rows: _Rows) -> dict[str, NDArray[Any]]:
    """Numbers if every cell is one, else labels of categories; of a pair the difference."""
    columns: dict[str, NDArray[Any]] = {}
    for k, cells in enumerate(rows.cells.get("covariates", ())):
        values = [finite_number(text) for text in cells.texts]
        known = cells.texts if None in values else np.array(values, np.float64)
        columns[rows.names["covariates"][k]] = cells.each(known)
    names, numbers = rows.names.get("differences", []), rows.numbers.get("differences", [])
    for k in range(0, len(names), 2):
        columns[f"{names[k]} − {names[k + 1]}"] = numbers[k] - numbers[k + 1]
    return columns


def _outcomes(rows: _Rows, is_margin: bool, first: _Cells, second: _Cells) -> Array:
    """By how much the first side won."""
    if "scores" in rows.numbers:
        ours, theirs = rows.numbers["scores"]
        return ours - theirs if is_margin else np.sign(ours - theirs)
    if "margin" in rows.numbers:
        return rows.numbers["margin"][0]
    sign = np.ones(len(rows.kept))
    for outcome in rows.cells.get("outcome", ()):
        sign = _verdicts(rows, outcome, first, second)
    is_tie = sign == 0
    for tie in rows.cells.get("tie", ()):
        problem = "the tie is {}, expected 1 or 0, true or false, yes or no."
        rows.refuse(~tie.is_in(vocabulary.IS_TIE | vocabulary.IS_NO_TIE), problem, tie)
        is_tie = is_tie | tie.is_in(vocabulary.IS_TIE)
    magnitude = np.where(is_tie, 0.0, 1.0)
    for magnitude in rows.numbers.get("magnitude", ()):
        problem = "the magnitude is {}, expected 0 (a tie) or more. Swap winner and loser instead."
        rows.refuse(magnitude < 0, problem, magnitude)
        problem = "the row is a tie, but its magnitude is {}. Write 0 or nothing, or no tie."
        rows.refuse(is_tie & (magnitude > 0), problem, magnitude)
    return np.where(sign < 0, -1.0, 1.0) * magnitude + 0.0


def _verdicts(rows: _Rows, outcome: _Cells, first: _Cells, second: _Cells) -> Array:
    """1 if the first side won, −1 if the second did, 0 for a tie.

    A word is the name of a side's column, an item if it is one of the two in all its rows, or one
    that is usually understood.
    """
    words = outcome.texts
    names = rows.names["items"]
    place = {label: k for k, label in enumerate(first.texts)}
    item = outcome.each([place.get(word, -1) for word in words])
    by_item = np.where(item == first.codes, 1.0, np.where(item == second.codes, -1.0, np.nan))
    n_rows = np.bincount(outcome.codes)
    is_item = np.bincount(outcome.codes, ~np.isnan(by_item)) == n_rows
    is_number = np.array([finite_number(word) is not None for word in words])
    sides = vocabulary.meanings(words)
    if not is_item[is_number].all() and None not in np.array(sides, object)[is_number]:
        # One column is read in one way: these numbers are results, although some are items, too.
        is_item &= ~is_number
        by_item = np.where(outcome.each(is_number), np.nan, by_item)
    side_of = {names[0].lower(): 1.0, names[1].lower(): -1.0}
    meant = [
        side_of.get(word.lower(), np.nan if is_item[k] or side is None else side)
        for k, (word, side) in enumerate(zip(words, sides, strict=True))
    ]
    unknown = np.flatnonzero(np.isnan(meant) & ~is_item)
    if len(unknown):
        shown = join_words(
            (f"{shown_value(words[k])} ({count(n_rows[k], 'row')})" for k in unknown), 20
        )
        rows.refuse(
            np.isin(outcome.codes, unknown),
            f"the winner is {shown}, expected {', '.join(map(shown_value, names))}, one of the two "
            f"items or 'tie'; also understood: {', '.join(vocabulary.EXAMPLES)}, 1, 2, 0.5.",
        )
    verdict = outcome.each(meant)
    verdict = np.where(np.isnan(verdict), by_item, verdict)
    rows.refuse(
        ~np.isnan(by_item) & (by_item != verdict),
        "the winner {} can be understood in two ways: as an item, and as a word for a side or a "
        "tie. Rename the item or the column.",
        outcome,
    )
    return verdict


def _expanded(rows: _Rows, data: PairData) -> PairData:
    """As many comparisons as the counts of wins and ties say."""
    counts = np.column_stack(rows.numbers["wins"])
    for column in counts.T:
        problem = "the number of wins is {}, expected a whole number from 0."
        rows.refuse((column < 0) | (column != np.round(column)), problem, column)
    if counts.sum() > _LARGEST:
        raise ValueError(
            f"the wins count {counts.sum():.0f} comparisons, at most {_LARGEST} are read; "
            "divide the counts, or pass one row for each outcome with a weight."
        )
    n_kinds = counts.shape[1]
    each = np.repeat(np.arange(counts.size), counts.ravel().astype(np.intp))
    outcome = np.array([1.0, -1.0, 0.0])[each % n_kinds]
    return replace(data.take(each // n_kinds), outcome=outcome)


def _ranked(
    rows: _Rows, items: list[_Cells], is_last: bool, weight: Array, known: dict[str, Any]
) -> PairData:
    """The pairs of rankings, and what else is known of each from its first row.

    Items that a ranking does not name are below the others if `is_last`.
    """
    names: Any = rows.kept
    if "ranking" in rows.cells:
        (ranking,), (places,), (item,) = rows.cells["ranking"], rows.cells["place"], items
        number, names, row = ranking.codes, ranking.texts, np.arange(len(weight))
        place, start = _places(rows, places), np.unique(number, return_index=True)[1]
        problem = "the weight is {}, and another one in the same ranking."
        rows.refuse(weight != weight[start][number], problem, weight)
    else:
        table = np.stack([cells.codes for cells in items], axis=1)
        number, at = np.nonzero(np.array([text != "" for text in items[0].texts])[table])
        item, place = items[0]._replace(codes=table[number, at]), (at + 1).astype(np.float64)
        row, start = number, np.arange(len(weight))
    item = item.take(np.arange(len(number)))
    labels, position = np.unique(item.distinct(), return_inverse=True)
    codes = number * len(labels) + item.codes
    order = np.argsort(codes, kind="stable")
    for k in order[1:][np.diff(codes[order]) == 0]:
        problem = (
            f"{shown_value(item.texts[item.codes[k]])} is in the ranking {names[number[k]]} twice"
        )
        raise rows.table.error(f"{problem}; an item has one place in it.", int(rows.kept[row[k]]))
    rankings = Rankings(number, item.each(position).astype(np.intp), place, weight[start])
    if is_last:
        rankings = rankings.with_all(len(labels))
    pairs = rankings.pairs
    at = start[pairs.ranking]
    contexts = {name: column[at] for name, column in known.pop("contexts").items()}
    taken: dict[str, Any] = {
        name: None if column is None else column[at] for name, column in known.items()
    }
    if taken.get("clusters") is None and taken.get("judges") is None:
        taken["clusters"] = pairs.ranking
    return PairData(*pairs[:4], labels, contexts=contexts, rankings=rankings, **taken)


def _places(rows: _Rows, cells: _Cells) -> Array:
    """Places as numbers, inf for none."""
    places = [
        np.inf if text.lower() in vocabulary.UNPLACED else finite_number(text)
        for text in cells.texts
    ]
    rows.refuse(
        cells.each([place is None or place <= 0 for place in places]),
        "the place is {}, expected a number from 1, or nothing, DNF, DSQ, … for an item that took "
        "part and has no place.",
        cells,
    )
    return cells.each(np.array(places, np.float64))
