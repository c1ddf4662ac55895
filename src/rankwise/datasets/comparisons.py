"""Comparisons of items, one a row: read from a file or a data frame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets import outcome_words as usual
from rankwise.datasets.columns import Column, column_numbers, distinct_cells, position_of
from rankwise.datasets.files import PathLike
from rankwise.datasets.labels import MISSING, distinct_labels, finite_number, is_gap, show
from rankwise.datasets.pair_data import PairColumns, PairData, read_as
from rankwise.datasets.ranking import complete_rows
from rankwise.datasets.rankings import Rankings, check_rankings, from_lists, read_places
from rankwise.datasets.tables import FrameTable, Table, open_table
from rankwise.datasets.times import read_times
from rankwise.frames import frame_columns
from rankwise.text_tables import count, listed

if TYPE_CHECKING:
    pass

_LARGEST = 10**8  # comparisons that win counts may stand for


def read_pairs(
    path: PathLike,
    *,
    winner: Column = "winner",
    loser: Column = "loser",
    sides: Sequence[Column] | None = None,
    outcome: Column | None = None,
    wins: Sequence[Column] | None = None,
    scores: Sequence[Column] | None = None,
    margin: bool = False,
    magnitude: Column | None = None,
    weight: Column | None = None,
    tie: Column | None = None,
    group: Column | None = None,
    judge: Column | None = None,
    cluster: Column | None = None,
    covariates: Sequence[Column | tuple[Column, Column]] = (),
    outcome_words: Mapping[str, str] | None = None,
    ranking: Column | None = None,
    item: Column = "item",
    place: Column = "place",
    places: Sequence[Column] | None = None,
    unlisted: str = "absent",
    time: Column | None = None,
    context: Column | Sequence[Column] = (),
    delimiter: str | None = None,
) -> PairData:
    """Read a table of comparisons, one a row; the first line of a text names the columns.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, Feather or JSON, plain or compressed; ``-`` is standard input.
    winner, loser : str or int, default="winner" and "loser"
        Names of the columns with the labels of the two items, or their positions counted from 0.
    sides : pair of str or int, optional
        The two columns with the labels of the items, for data in which another column says which
        side won; `loser` is not used then. Without it, columns "first" and "second", "left" and
        "right", "model_a" and "model_b", "home" and "away", "home_team" and "away_team" or "a" and
        "b" are the sides if there is no loser and exactly one of "outcome", "winner", "result",
        "better", "FTR", or the two columns "home_score" and "away_score" (or "goals", or "FTHG" and
        "FTAG"); `read_as` says so.
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
    columns = PairColumns(
        winner, loser, sides, outcome, wins, scores, margin, magnitude, weight, tie, group,
        judge, cluster, covariates, outcome_words or {}, ranking, item, place, places, unlisted,
        time, context,
    )  # fmt: skip
    return _Rows(open_table(os.fspath(path), delimiter), columns).data()


def pairs_from_frame(frame: Any, **columns: Any) -> PairData:
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
        return _ranked_data(*from_lists(frame), PairColumns(**columns))
    by_name = frame if isinstance(frame, Mapping) else frame_columns(frame)
    if by_name is None:
        raise TypeError(
            f"pairs is of type {type(frame).__name__}, expected a data frame, a dictionary of "
            "columns, a list of rankings, PairData (from rankwise.datasets.read_pairs) or a "
            "PairGraph."
        )
    return _Rows(FrameTable(by_name), PairColumns(**columns)).data()


class _Rows:
    """The rows of a table of comparisons that have no gap, column by column."""

    def __init__(self, table: Table, asked: PairColumns) -> None:
        self._table = table
        self._wanted = asked.recognized(table.names)
        self._read_as = "" if self._wanted is asked else read_as(self._wanted)
        self._at: dict[str, int] = {}
        for role in ("magnitude", "weight", "tie", "group", "judge", "cluster"):
            column = getattr(self._wanted, role)
            if column is not None:
                self._at[role] = position_of(table, column, role)
            elif role not in ("judge", "cluster") and table.names.count(role) == 1:
                self._at[role] = table.names.index(role)
        self._counts, self._scores = self._positions("wins"), self._positions("scores")
        context, time = self._wanted.context, self._wanted.time
        context = [context] if isinstance(context, (str, int)) else context
        self._contexts = {str(c): position_of(table, c, "context") for c in context}
        if time is not None and (time != "rows" or "rows" in table.names):
            self._at["time"] = position_of(table, time, "time")
        self._find_items()
        self._controls = self._covariate_columns()
        self._read()

    def _positions(self, role: str) -> list[int]:
        return [position_of(self._table, c, role) for c in getattr(self._wanted, role) or ()]

    def _find_items(self) -> None:
        """Columns of the two items and, if these are sides, of the outcome."""
        wanted, names = self._wanted, self._table.names
        if wanted.is_ranked:
            if wanted.places is not None:
                self._ends = self._positions("places")
                return
            for role in ("ranking", "place"):
                self._at[role] = position_of(self._table, getattr(wanted, role), role)
            self._ends = [position_of(self._table, wanted.item, "item")]
            return
        said = wanted.winner if wanted.outcome is None else wanted.outcome
        if wanted.sides is None:
            hint = " Pass sides= and outcome= if it names two sides and who won."
            winner = position_of(self._table, said, "winner", hint)
            hint = " Pass sides= if the winner column says which of two sides won."
            loser = position_of(self._table, wanted.loser, "loser", hint * ("winner" in names))
            self._ends = [winner, loser]
            return
        self._ends = self._positions("sides")
        if self._ends[0] == self._ends[1]:
            raise ValueError(f"sides is {wanted.sides!r}; pass the names of two different columns.")
        if not self._counts and not self._scores:
            self._at["outcome"] = position_of(self._table, said, "outcome")

    def _covariate_columns(self) -> dict[str, list[int]]:
        places = {}
        for column in self._wanted.covariates:
            parts = list(column) if isinstance(column, (tuple, list)) else [column]
            if len(parts) > 2:
                raise ValueError(f"covariates has {column!r}; a pair is one column for each side.")
            at = [position_of(self._table, part, "covariates") for part in parts]
            places[" − ".join(self._table.names[k] for k in at)] = at
        return places

    def _read(self) -> None:
        """Read the columns as numbers or as texts, and leave out the rows that have gaps."""
        numbers = [self._at[role] for role in ("magnitude", "weight") if role in self._at]
        numbers += self._counts + self._scores
        numbers += [at for pair in self._controls.values() if len(pair) == 2 for at in pair]
        if self._wanted.margin and "outcome" in self._at:
            numbers.append(self._at["outcome"])
        used = {
            *self._at.values(),
            *self._contexts.values(),
            *(at for pair in self._controls.values() for at in pair),
        }
        texts = [*self._ends, *sorted(used - {*numbers, *self._ends})]
        self._columns = columns = self._table.read(texts, numbers)
        self._numbers = {at: self._as_numbers(at, columns[at]) for at in numbers}
        self._texts = {at: distinct_cells(columns[at]) for at in texts}
        if "outcome" in self._at and self._wanted.outcome_words:
            self._translate(self._at["outcome"])
        kept = complete_rows(self._table, self._gaps())
        n_rows = len(columns[texts[0]])
        self._rows = np.arange(n_rows) if kept is None else kept
        if kept is not None:
            self._numbers = {at: column[kept] for at, column in self._numbers.items()}
            self._texts = {at: _used(codes[kept], t) for at, (codes, t) in self._texts.items()}

    def _translate(self, at: int) -> None:
        """Replace the outcomes by the words that they stand for."""
        known, (codes, texts) = self._wanted.outcome_words, self._texts[at]
        absent = [word for word in known if word not in texts]
        if absent:
            shown = f"{listed(map(show, absent), 5)}; there are {listed(map(show, texts), 20)}"
            raise self._table.error(f"outcome_words has words that the column has not: {shown}.")
        self._texts[at] = codes, [known.get(text, text) for text in texts]

    def _as_numbers(self, at: int, column: Any) -> Array:
        """A column as floats, NaN for a gap; infinite numbers and words are refused."""
        if not isinstance(column, list):
            return column_numbers(self._table, at, column, "number")
        numbers = np.empty(len(column))
        for row, value in enumerate(column):
            try:
                numbers[row] = np.nan if is_gap(value) else float(value)
            except (TypeError, ValueError):
                numbers[row] = np.inf
            if np.isinf(numbers[row]):
                name = show(self._table.names[at])
                problem = f"the number, column {name}, is {value!r}, expected a finite number."
                raise self._table.error(problem, row)
        return numbers + 0.0  # minus zero is zero

    def _gaps(self) -> dict[str, NDArray[np.bool_]]:
        """Which rows have a gap in each column that is used; a tie needs no magnitude."""
        outcome, tie, magnitude = (self._at.get(r) for r in ("outcome", "tie", "magnitude"))
        has_gap = {self._table.names[at]: np.isnan(column) for at, column in self._numbers.items()}
        optional = {tie, self._at.get("place"), *(self._ends if self._wanted.places else ())}
        for at, (codes, texts) in self._texts.items():
            words = MISSING if at == outcome else {""}
            if at not in optional:
                is_missing = np.array([text.lower() in words for text in texts])
                has_gap[self._table.names[at]] = is_missing[codes]
        if magnitude is not None:
            is_tie = np.zeros(len(self._numbers[magnitude]), dtype=bool)
            if tie is not None:
                codes, texts = self._texts[tie]
                is_tie |= np.array([text.lower() in usual.IS_TIE for text in texts])[codes]
            if outcome in self._texts:
                codes, texts = self._texts[outcome]
                is_tie |= np.array([side == usual.TIE for side in usual.meanings(texts)])[codes]
            has_gap[self._table.names[magnitude]] &= ~is_tie
        return has_gap

    def _refuse(self, is_bad: NDArray[np.bool_], problem: str, values: Array | None = None) -> None:
        """Raise an error about the first bad row, if there is one; {} stands for its value."""
        if is_bad.any():
            row = int(is_bad.argmax())
            text = problem if values is None else problem.format(f"{values[row]:g}")
            raise self._table.error(text, int(self._rows[row]))

    def data(self) -> PairData:
        """Check every row and make arrays of them."""
        if self._wanted.is_ranked:
            return self._ranked()
        first, second, labels = self._items()
        items, position = np.unique(self._as_labels(labels, self._ends), return_inverse=True)
        data = PairData(
            position[first].astype(np.intp),
            position[second].astype(np.intp),
            self._outcomes(first, second, labels),
            self._weights(),
            items,
            groups=self._labels("group"),
            judges=self._labels("judge"),
            clusters=self._labels("cluster"),
            covariates={name: self._covariate(at) for name, at in self._controls.items()},
            read_as=self._read_as,
            times=self._times(),
            contexts={name: self._labels_at(at) for name, at in self._contexts.items()},
        )
        return self._expanded(data) if self._counts else data

    def _ranked(self) -> PairData:
        """Rankings, and what else is known of each from its first row."""
        codes, labels = self._joined_texts(self._ends)
        if self._wanted.places is not None:
            names, table = [f"row {row}" for row in self._rows.tolist()], np.stack(codes, axis=1)
            number, at = np.nonzero(np.array([text != "" for text in labels])[table])
            item, place = table[number, at], (at + 1).astype(np.float64)
        else:
            number, names = self._texts[self._at["ranking"]]
            item, (place_codes, texts) = codes[0], self._texts[self._at["place"]]
            place = read_places(texts, lambda k, p: self._error_at(place_codes == k, p))[
                place_codes
            ]
        items, used = np.unique(item, return_inverse=True)
        items, position = np.unique(
            self._as_labels([labels[k] for k in items], self._ends), return_inverse=True
        )
        _, row = np.unique(number, return_index=True)
        weight, is_wide = self._weights(), self._wanted.places is not None
        row = np.arange(len(weight)) if is_wide else row
        if not is_wide:
            is_bad = weight != weight[row][number]
            self._refuse(is_bad, "the weight is {}, and another one in the same ranking.", weight)
        rankings = Rankings(number, position[used].astype(np.intp), place, weight[row])
        labels_of = {"groups": "group", "judges": "judge", "clusters": "cluster"}
        known: dict[str, Any] = {name: self._labels(role) for name, role in labels_of.items()}
        known = {name: None if of is None else of[row] for name, of in known.items()}
        times = self._times()
        known["times"] = None if times is None else times[row]
        known["contexts"] = {c: self._labels_at(at)[row] for c, at in self._contexts.items()}
        check_rankings(rankings, lambda k: f"the ranking {names[k]}", items)
        return _ranked_data(rankings, items, self._wanted, **known)

    def _error_at(self, is_bad: NDArray[np.bool_], problem: str) -> Exception:
        return self._table.error(problem, int(self._rows[is_bad.argmax()]))

    def _times(self) -> NDArray[Any] | None:
        if self._wanted.time is None:
            return None
        if "time" not in self._at:
            return self._rows.astype(np.float64)
        codes, texts = self._texts[self._at["time"]]
        times = read_times(texts, lambda k, problem: self._error_at(codes == k, problem))
        return np.asarray(times[codes])

    def _joined_texts(self, columns: list[int]) -> tuple[list[Indices], list[str]]:
        """The cells of several columns as positions in the distinct texts of all of them."""
        labels = list(dict.fromkeys(text for at in columns for text in self._texts[at][1]))
        place = {label: k for k, label in enumerate(labels)}
        return [
            np.array([place[text] for text in self._texts[at][1]], np.intp)[self._texts[at][0]]
            for at in columns
        ], labels

    def _items(self) -> tuple[Indices, Indices, list[str]]:
        """The two items as positions in the distinct labels."""
        (first, second), labels = self._joined_texts(self._ends)
        same = listed((show(labels[k]) for k in np.unique(first[first == second])), 5)
        self._refuse(first == second, f"{same} is compared with itself. Leave out the row.")
        return first, second, labels

    def _as_labels(self, texts: list[str], columns: list[int]) -> NDArray[Any]:
        """Labels as they were in these columns: whole numbers or strings."""
        firsts = [self._columns[at][0] for at in columns]  # a text of a file is one of Arrow
        if any(isinstance(first, str) for first in firsts):
            return np.array(texts, dtype=np.str_)
        return distinct_labels(texts, canonical=True)

    def _labels(self, role: str) -> NDArray[Any] | None:
        return self._labels_at(self._at[role]) if role in self._at else None

    def _labels_at(self, at: int) -> NDArray[Any]:
        codes, texts = self._texts[at]
        return self._as_labels(texts, [at])[codes]

    def _outcomes(self, first: Indices, second: Indices, labels: list[str]) -> Array:
        """By how much the first side won."""
        if self._counts:
            return np.ones(len(first))
        if self._scores:
            difference = self._numbers[self._scores[0]] - self._numbers[self._scores[1]]
            return difference if self._wanted.margin else np.sign(difference)
        if "outcome" not in self._at:
            sign = np.ones(len(first))
        elif self._wanted.margin:
            return self._numbers[self._at["outcome"]]
        else:
            sign = self._verdicts(first, second, labels).astype(np.float64)
        is_tie = (sign == 0) | self._ties(len(first))
        return np.where(sign < 0, -1.0, 1.0) * self._magnitudes(is_tie) + 0.0

    def _verdicts(self, first: Indices, second: Indices, labels: list[str]) -> Indices:
        """1 if the first side won, −1 if the second did, 0 for a tie."""
        codes, words = self._texts[self._at["outcome"]]
        names = [self._table.names[end].lower() for end in self._ends]
        place = {label: k for k, label in enumerate(labels)}
        item = np.array([place.get(word, -1) for word in words])[codes]
        is_first, is_second = item == first, item == second
        counts = np.bincount(codes)
        is_item = np.bincount(codes, is_first | is_second) == counts  # in all its rows
        said: list[int | None] = []
        for word, meaning, is_always_item in zip(
            words, usual.meanings(words), is_item, strict=True
        ):
            side = {names[0]: 1, names[1]: -1}.get(word.lower())
            said.append(side if side is not None else None if is_always_item else meaning)
        unknown = [k for k, side in enumerate(said) if side is None and not is_item[k]]
        shown = listed((f"{show(words[k])} ({count(counts[k], 'row')})" for k in unknown), 20)
        sides = ", ".join(show(self._table.names[end]) for end in self._ends)
        others = ", ".join(usual.EXAMPLES)
        self._refuse(
            np.isin(codes, unknown),
            f"the winner is {shown}, expected {sides}, one of the two items or 'tie'; also "
            f"understood: {others}, 1, 2, 0.5.",
        )
        by_item = np.where(is_first, 1, np.where(is_second, -1, 2))
        meant = np.array([2 if side is None else side for side in said])[codes]
        verdict = np.where(meant == 2, by_item, meant)
        is_unclear = (by_item != 2) & (by_item != verdict)
        shown = listed((show(words[k]) for k in np.unique(codes[is_unclear])), 5)
        self._refuse(
            is_unclear,
            f"the winner {shown} can be understood in two ways: as an item, and as a word for a "
            "side or a tie. Rename the item or the column.",
        )
        return verdict

    def _ties(self, n_rows: int) -> NDArray[np.bool_]:
        if "tie" not in self._at:
            return np.zeros(n_rows, dtype=bool)
        codes, texts = self._texts[self._at["tie"]]
        is_bad = np.array([text.lower() not in usual.IS_TIE | usual.IS_NO_TIE for text in texts])
        shown = listed((show(texts[k]) for k in np.flatnonzero(is_bad)), 5)
        self._refuse(
            is_bad[codes], f"the tie is {shown}, expected 1 or 0, true or false, yes or no."
        )
        is_tie: NDArray[np.bool_] = np.array([text.lower() in usual.IS_TIE for text in texts])[
            codes
        ]
        return is_tie

    def _magnitudes(self, is_tie: NDArray[np.bool_]) -> Array:
        if "magnitude" not in self._at:
            return np.where(is_tie, 0.0, 1.0)
        magnitude = self._numbers[self._at["magnitude"]]
        problem = "the magnitude is {}, expected 0 (a tie) or more. Swap winner and loser instead."
        self._refuse(magnitude < 0, problem, magnitude)
        problem = "the row is a tie, but its magnitude is {}. Write 0 or nothing, or no tie."
        self._refuse(is_tie & (magnitude > 0), problem, magnitude)
        return np.where(np.isnan(magnitude), 0.0, magnitude)

    def _weights(self) -> Array:
        if "weight" not in self._at:
            return np.ones(len(self._rows))
        weight = self._numbers[self._at["weight"]]
        problem = "the weight is {}, expected more than 0. Leave out the row."
        self._refuse(weight <= 0, problem, weight)
        return weight

    def _covariate(self, at: list[int]) -> NDArray[Any]:
        """Numbers if every cell is one, else labels of categories."""
        if len(at) == 2:
            difference: Array = self._numbers[at[0]] - self._numbers[at[1]]
            return difference
        codes, texts = self._texts[at[0]]
        numbers = [finite_number(text) for text in texts]
        if any(number is None for number in numbers):
            return np.array(texts, dtype=np.str_)[codes]
        return np.array(numbers, dtype=np.float64)[codes]

    def _expanded(self, data: PairData) -> PairData:
        """As many comparisons as the counts of wins and ties say."""
        counts = np.column_stack([self._numbers[at] for at in self._counts])
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
    rankings: Rankings, items: NDArray[Any], wanted: PairColumns, **known: Any
) -> PairData:
    """The pairs of rankings; `known` has values of the rankings."""
    if wanted.unlisted == "last":
        rankings = rankings.with_all(len(items))
    pairs = rankings.pairs
    at = pairs.ranking
    contexts = {name: labels[at] for name, labels in known.pop("contexts", {}).items()}
    taken: dict[str, Any] = {name: None if of is None else of[at] for name, of in known.items()}
    if taken.get("clusters") is None and taken.get("judges") is None:
        taken["clusters"] = at
    return PairData(*pairs[:4], items, **taken, contexts=contexts, rankings=rankings)


def _used(codes: Indices, texts: list[str]) -> tuple[Indices, list[str]]:
    """The same rows without the texts that none of them has."""
    used, codes = np.unique(codes, return_inverse=True)
    return codes, [texts[k] for k in used]
