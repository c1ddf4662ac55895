"""Reader of comparisons of items, from a file or a data frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets import comparison_words
from rankwise.datasets.comparison_columns import find_columns, is_row_order
from rankwise.datasets.comparison_rows import ComparisonRows, Labels, read_rows
from rankwise.datasets.files import PathLike
from rankwise.datasets.open_tables import open_table
from rankwise.datasets.pair_data import (
    PairColumns,
    PairData,
    Rankings,
    from_lists,
    infer_columns,
    validate_columns,
)
from rankwise.datasets.preflib import PreflibTable, is_preflib
from rankwise.datasets.table_files import FrameTable, TableFile
from rankwise.datasets.team_cells import JoinedTeams, join_teams
from rankwise.datasets.vocabulary import finite_number, shown_value
from rankwise.formatting import count, join_words
from rankwise.frames import frame_columns

MAX_COMPARISONS = 10**8  # that numbers of wins may stand for


def read_pairs(
    path: PathLike, *, delimiter: str | None = None, **columns: Unpack[PairColumns]
) -> PairData:
    """Read a table of comparisons with one comparison per row.

    The first line of a text file contains the names of the columns. Names of columns match
    regardless of case.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, Feather or JSON, plain or compressed; ``-`` is standard input. Or a
        PrefLib file of rankings (.soc, .soi, .toc, .toi), in which each voter is a ranking.
    delimiter : str, optional
        Character between the columns of a text file; by default the comma, tab, semicolon or bar
        that splits the first line into most columns.
    winner, loser : str or int, default="winner" and "loser"
        Columns with the labels of the two items: names, or positions counted from 0.
    sides : pair of str or int, optional
        The two columns with the labels of the items, if another column has the outcome. By default
        usual pairs of names are recognized, such as "first" and "second", "left" and "right",
        "model_a" and "model_b", "player 1" and "player 2", or "home" and "away", if there is no
        column "loser" and exactly one column "outcome", "winner", "result", "better" or "FTR", or
        the two columns "home_score" and "away_score" (or "goals", or "FTHG" and "FTAG"). `read_as`
        of the result lists the recognized columns.
    outcome : str or int, optional
        With `sides`: column with the outcome, by default the one that `winner` names. It contains
        the name of a side's column, the label of one of the two items, or a word: "left", "first",
        "a", "model_a", "home", 1; "right", "second", "b", "model_b", "away", 2 (or 0, or −1);
        "tie", "draw", "equal", "both bad", "X", 0.5. An error lists all unknown words.
    wins : two or three of str or int, optional
        With `sides`: columns with the number of wins of the first side, of the second side and,
        optionally, of ties. A row stands for that number of comparisons.
    scores : pair of str or int, optional
        With `sides`: columns with the points, goals or grades of the two sides; more is better.
    margin : bool, default=False
        Whether the difference of the scores, or the number in the column `outcome`, is the margin
        of the first side. By default only the winner counts.
    magnitude : str or int, optional
        Column with the margin of the winner, 0 for a tie; by default the column "magnitude" if it
        exists, otherwise every magnitude is 1.
    weight : str or int, optional
        Column with the weight of each comparison; by default the column "weight" if it exists,
        otherwise every weight is 1.
    tie : str or int, optional
        Column that marks ties (1, true, yes, y, t, tie or draw; 0, false, no, n, f or an empty cell
        for others); by default the column "tie" if it exists. A tie has the magnitude 0; another
        magnitude is an error.
    group : str or int, optional
        Column with the group of each comparison, such as the year; by default the column "group" if
        it exists.
    judge, cluster : str or int, optional
        Columns with the judge of each comparison, and with the label that dependent comparisons
        share.
    covariates : list of str, int or pairs of them, optional
        Columns with numbers or categories that may explain outcomes; a pair of columns, one for
        each side, is their difference.
    outcome_words : mapping from str to str, optional
        Meaning of other words of the column `outcome`, such as ``{"A+": "first", "eh": "tie"}``.
    ranking, item, place : str or int, optional
        For rankings of several items with one row per item: columns with the ranking (race,
        ballot), the item and its place. Only the order of places counts; equal places are shared.
        Items without a place (an empty cell, DNF, DSQ, …) are below all items with a place.
    places : list of str or int, optional
        For rankings with one row each: columns with the best item, the second best, and so on;
        cells after the end of a ranking are empty.
    unlisted : {"absent", "last"}, default="absent"
        Whether items that a ranking does not contain took no part in it, or are below all others.
    time : str or int, optional
        Column with dates (2019-01-31 or 20190131) or numbers; "rows" is the order of the rows, if
        no column has this name.
    context : str, int or list of them, optional
        Columns with conditions under which strength may differ, such as the court surface.
    team_separator : str, optional
        Text between the members of a team, such as "+", if a side may have several items. Cells of
        a frame may be tuples, lists or sets of items, or dictionaries from item to weight.
    team_weights : pair of str or int, optional
        Columns with the weights of the members of each side, in the order of the members: the
        share of the time that each of them played. By default every member has the weight 1.

    Returns
    -------
    PairData
        Comparisons as positions in the array of distinct labels. Rows with a missing value in a
        column with a role, such as matches that were not played, are dropped with a warning.

    Raises
    ------
    TableFormatError
        If a column does not exist or a line cannot be read; the message contains the file, the line
        and how to correct it.

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

    Battles of language models have two sides and a winner:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "battles.csv"
    ...     _ = file.write_text('''model_a,model_b,winner
    ... owl,crow,model_b
    ... owl,heron,tie''')
    ...     battles = read_pairs(file, sides=("model_a", "model_b"))
    >>> battles.items[battles.first], battles.items[battles.second], battles.outcome
    (array(['owl', 'owl'], dtype='<U5'), array(['crow', 'heron'], dtype='<U5'), array([-1.,  0.]))
    """
    return pairs_from_table(open_comparisons(path, delimiter), columns)


def pairs_from_frame(frame: Any, **columns: Unpack[PairColumns]) -> PairData:
    """Read comparisons from a data frame of pandas, polars or Arrow, or a dictionary of columns.

    Parameters
    ----------
    frame : data frame, dict from str to sequence, or list of lists
        One comparison per row; or rankings, each a list of items, the best one first, in which the
        items of a tuple share a place.
    **columns
        Roles of the columns, as in `read_pairs`.

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


def open_comparisons(path: PathLike, delimiter: str | None = None) -> TableFile:
    """Open a file of comparisons or rankings; see `read_pairs` for the parameters."""
    if is_preflib(path):
        return PreflibTable(os.fspath(path))
    return open_table(os.fspath(path), delimiter)


def pairs_from_table(table: TableFile, columns: PairColumns) -> PairData:
    """Read comparisons from an opened table.

    Parameters
    ----------
    table : TableFile
        One comparison, one ranking, or one item of a ranking per row.
    columns : PairColumns
        The arguments of `read_pairs`.
    """
    if isinstance(table, PreflibTable):
        columns = {**columns, "ranking": "ranking"}
    options, read_as = infer_columns(validate_columns(columns), table.names)
    roles = find_columns(table, options)
    outcome_words = options.get("outcome_words") or {}
    rows = read_rows(table, roles, outcome_words, options.get("team_separator"))
    time = options.get("time")
    times = rows.times(time is not None and is_row_order(table, time))
    if roles.has_places or roles.ranking is not None:
        return _from_rankings(rows, times, unlisted_are_last=options.get("unlisted") == "last")
    if roles.has_sides:
        data = _from_sides(rows, times, is_margin=bool(options.get("margin")))
    else:
        data = _from_winners(rows, times)
    return replace(data, read_as=read_as)


def _from_winners(rows: ComparisonRows, times: NDArray[Any] | None) -> PairData:
    """Comparisons from a column of winners and a column of losers."""
    return _pairs(rows, times, _signed_magnitudes(rows, np.ones(len(rows))))


def _from_sides(rows: ComparisonRows, times: NDArray[Any] | None, is_margin: bool) -> PairData:
    """Comparisons from two columns of items, and further columns that say who won."""
    columns = rows.columns
    if columns.scores:
        first_score, second_score = (rows.values[at] for at in columns.scores)
        difference = first_score - second_score
        if not is_margin:
            difference = np.sign(difference)
        return _pairs(rows, times, difference)
    if columns.margin is not None:
        return _pairs(rows, times, rows.values[columns.margin])
    if columns.wins:
        data = _pairs(rows, times, _signed_magnitudes(rows, np.ones(len(rows))))
        return _repeated_by_wins(rows, data)
    return _pairs(rows, times, _signed_magnitudes(rows, _winning_sides(rows)))


def _from_rankings(
    rows: ComparisonRows, times: NDArray[Any] | None, unlisted_are_last: bool
) -> PairData:
    """Comparisons of all pairs of items of a ranking."""
    table = _one_row_rankings(rows) if rows.columns.has_places else _long_rankings(rows)
    item = table.item
    labels, position = np.unique(item.distinct(), return_inverse=True)
    _refuse_repeated_items(rows, table)
    weight = rows.weight()[table.first_row]
    rankings = Rankings(table.ranking, item.per_row(position).astype(np.intp), table.place, weight)
    if unlisted_are_last:
        rankings = rankings.with_all(len(labels))
    pairs = rankings.pairs
    row_of_pair = table.first_row[pairs.ranking]
    facts: dict[str, Any] = {
        name: None if values is None else values[row_of_pair]
        for name, values in _comparison_facts(rows, times).items()
    }
    if facts["clusters"] is None and facts["judges"] is None:
        facts["clusters"] = pairs.ranking
    return PairData(
        pairs.first,
        pairs.second,
        pairs.outcome,
        pairs.weight,
        labels,
        contexts={name: values[row_of_pair] for name, values in _contexts(rows).items()},
        rankings=rankings,
        **facts,
    )


def _pairs(rows: ComparisonRows, times: NDArray[Any] | None, outcome: Array) -> PairData:
    """One comparison for each row: the outcome is positive if the first item won."""
    weight = rows.weight()
    sides = _team_sides(rows) if rows.teams else _single_sides(rows)
    return PairData(
        sides.first,
        sides.second,
        outcome,
        weight,
        sides.items,
        covariates=_covariates(rows),
        contexts=_contexts(rows),
        teams=sides.teams,
        **_comparison_facts(rows, times),
    )


def _single_sides(rows: ComparisonRows) -> JoinedTeams:
    """The two items of each row."""
    first, second = rows.items()
    problem = "{} is compared with itself. Leave out the row."
    rows.refuse(first.codes == second.codes, problem, first)
    labels, position = np.unique(first.distinct(), return_inverse=True)
    return JoinedTeams(
        first.per_row(position).astype(np.intp),
        second.per_row(position).astype(np.intp),
        labels,
        None,
    )


def _team_sides(rows: ComparisonRows) -> JoinedTeams:
    """The two teams of each row, without a common member."""
    first, second = rows.teams
    codes = first.codes * len(second.teams) + second.codes
    for row in np.sort(np.unique(codes, return_index=True)[1]).tolist():
        members = first.teams[first.codes[row]].members
        opponents = second.teams[second.codes[row]].members
        common = set(members).intersection(opponents)
        if common:
            raise rows.table.error(
                f"{shown_value(min(common))} is on both sides. Correct the row, or leave it out.",
                int(rows.numbers[row]),
            )
    return join_teams(first, second)


def _comparison_facts(rows: ComparisonRows, times: NDArray[Any] | None) -> dict[str, Any]:
    """Groups, judges, clusters and times of the rows, as fields of PairData."""
    columns = rows.columns
    return {
        "groups": rows.labels_of(columns.group),
        "judges": rows.labels_of(columns.judge),
        "clusters": rows.labels_of(columns.cluster),
        "times": times,
    }


def _contexts(rows: ComparisonRows) -> dict[str, NDArray[Any]]:
    """Labels of the conditions of the rows, by name of the column."""
    return {rows.table.names[at]: rows.labels[at].labels() for at in rows.columns.context}


def _covariates(rows: ComparisonRows) -> dict[str, NDArray[Any]]:
    """Covariates of the rows: numbers if every cell is one, else labels of categories."""
    covariates: dict[str, NDArray[Any]] = {}
    for at in rows.columns.covariates:
        cells = rows.labels[at]
        numbers = [finite_number(text) for text in cells.texts]
        values: Any = cells.texts if None in numbers else np.array(numbers, np.float64)
        covariates[rows.table.names[at]] = cells.per_row(values)
    for first, second in rows.columns.differences:
        name = " − ".join(rows.names((first, second)))
        covariates[name] = rows.values[first] - rows.values[second]
    return covariates


def _signed_magnitudes(rows: ComparisonRows, sign: Array) -> Array:
    """The outcomes of rows from the side that won, ties and magnitudes.

    Parameters
    ----------
    rows : ComparisonRows
        The rows.
    sign : ndarray of shape (n_rows,)
        1 if the first item won, -1 if the second item won, 0 for a tie.
    """
    columns = rows.columns
    is_tie = sign == 0
    if columns.tie is not None:
        tie = rows.labels[columns.tie]
        problem = "the tie is {}, expected 1 or 0, true or false, yes or no."
        rows.refuse(~tie.is_in(comparison_words.IS_TIE | comparison_words.IS_NO_TIE), problem, tie)
        is_tie = is_tie | tie.is_in(comparison_words.IS_TIE)
    magnitude = np.where(is_tie, 0.0, 1.0)
    if columns.magnitude is not None:
        magnitude = rows.values[columns.magnitude]
        problem = "the magnitude is {}, expected 0 (a tie) or more. Swap winner and loser instead."
        rows.refuse(magnitude < 0, problem, magnitude)
        problem = "the row is a tie, but its magnitude is {}. Write 0 or nothing, or no tie."
        rows.refuse(is_tie & (magnitude > 0), problem, magnitude)
    direction = np.where(sign < 0, -1.0, 1.0)
    return direction * magnitude + 0.0  # minus zero becomes zero


def _winning_sides(rows: ComparisonRows) -> Array:
    """1 if the first side won, -1 if the second side won, 0 for a tie.

    A word of the outcome is the name of a side's column, an item if it is one of the two items in
    all its rows, or a word of `rankwise.datasets.comparison_words`.
    """
    assert rows.columns.outcome is not None
    outcome = rows.labels[rows.columns.outcome]
    words = outcome.texts
    sign_by_item, is_item = _winners_by_item(rows, outcome)
    side_of_known_word = comparison_words.meanings(words)
    names = rows.names(rows.columns.items)
    side_of_column = {names[0].lower(): 1.0, names[1].lower(): -1.0}
    side_of_word = np.full(len(words), np.nan)
    for k, (word, side) in enumerate(zip(words, side_of_known_word, strict=True)):
        if word.lower() in side_of_column:
            side_of_word[k] = side_of_column[word.lower()]
        elif not is_item[k] and side is not None:
            side_of_word[k] = side
    unknown = np.flatnonzero(np.isnan(side_of_word) & ~is_item)
    if len(unknown):
        _refuse_words(rows, outcome, unknown, names)
    sign_by_word = outcome.per_row(side_of_word)
    sign = np.where(np.isnan(sign_by_word), sign_by_item, sign_by_word)
    rows.refuse(
        ~np.isnan(sign_by_item) & (sign_by_item != sign),
        "the winner {} can be understood in two ways: as an item, and as a word for a side or a "
        "tie. Rename the item or the column.",
        outcome,
    )
    return sign


def _winners_by_item(rows: ComparisonRows, outcome: Labels) -> tuple[Array, NDArray[np.bool_]]:
    """Read the outcomes as labels of items.

    Returns
    -------
    by_item : ndarray of shape (n_rows,)
        1 if the outcome is the first item, -1 if it is the second item, else NaN.
    is_item : ndarray of bool, shape (n_words,)
        Whether a word of the outcome is one of the two items in all its rows.
    """
    first, second = rows.items()
    words = outcome.texts
    code_of_item = {label: code for code, label in enumerate(first.texts)}
    item = outcome.per_row([code_of_item.get(word, -1) for word in words])
    by_item = np.full(len(rows), np.nan)
    by_item[item == second.codes] = -1.0
    by_item[item == first.codes] = 1.0
    n_rows = np.bincount(outcome.codes)
    is_item = np.bincount(outcome.codes, ~np.isnan(by_item)) == n_rows
    is_number = np.array([finite_number(word) is not None for word in words])
    sides = np.array(comparison_words.meanings(words), dtype=object)
    if not is_item[is_number].all() and None not in sides[is_number]:
        # a column is read in one way: these numbers are results, although some are items, too
        is_item &= ~is_number
        by_item[outcome.per_row(is_number)] = np.nan
    return by_item, is_item


def _refuse_words(
    rows: ComparisonRows, outcome: Labels, unknown: Indices, side_names: list[str]
) -> None:
    """Refuse words of the outcome that are neither items nor known words."""
    n_rows = np.bincount(outcome.codes)
    words = [
        f"{shown_value(outcome.texts[code])} ({count(n_rows[code], 'row')})" for code in unknown
    ]
    rows.refuse(
        np.isin(outcome.codes, unknown),
        f"the winner is {join_words(words, 20)}, expected "
        f"{', '.join(map(shown_value, side_names))}, one of the two items or 'tie'; also "
        f"understood: {', '.join(comparison_words.EXAMPLES)}, 1, 2, 0.5.",
    )


def _repeated_by_wins(rows: ComparisonRows, data: PairData) -> PairData:
    """As many comparisons as the numbers of wins and ties."""
    counts = np.column_stack([rows.values[at] for at in rows.columns.wins])
    for column in counts.T:
        problem = "the number of wins is {}, expected a whole number from 0."
        rows.refuse((column < 0) | (column != np.round(column)), problem, column)
    if counts.sum() > MAX_COMPARISONS:
        raise ValueError(
            f"the wins count {counts.sum():.0f} comparisons, at most {MAX_COMPARISONS} are read; "
            "divide the counts, or pass one row for each outcome with a weight."
        )
    n_outcomes = counts.shape[1]
    cells = np.repeat(np.arange(counts.size), counts.ravel().astype(np.intp))
    outcome = np.array([1.0, -1.0, 0.0])[cells % n_outcomes]
    return replace(data.take(cells // n_outcomes), outcome=outcome)


class _RankingTable(NamedTuple):
    """Items of rankings, one a row.

    Attributes
    ----------
    ranking : ndarray of int, shape (n_items,)
        Number of the ranking.
    item : Labels
        The items.
    place : ndarray of shape (n_items,)
        Places; inf is no place.
    row : ndarray of int, shape (n_items,)
        Row of the file that has the item.
    first_row : ndarray of int, shape (n_rankings,)
        First row of each ranking.
    names : list
        Names of the rankings.
    """

    ranking: Indices
    item: Labels
    place: Array
    row: Indices
    first_row: Indices
    names: list[Any]


def _long_rankings(rows: ComparisonRows) -> _RankingTable:
    """Rankings with one item a row."""
    columns = rows.columns
    assert columns.ranking is not None
    assert columns.place is not None
    ranking = rows.labels[columns.ranking]
    first_row = np.unique(ranking.codes, return_index=True)[1]
    weight = rows.weight()
    problem = "the weight is {}, and another one in the same ranking."
    rows.refuse(weight != weight[first_row][ranking.codes], problem, weight)
    (item,) = rows.items()
    place = _places(rows, rows.labels[columns.place])
    row = np.arange(len(rows))
    return _RankingTable(ranking.codes, item, place, row, first_row, ranking.texts)


def _one_row_rankings(rows: ComparisonRows) -> _RankingTable:
    """Rankings with one ranking a row: the best item, the second best, …"""
    columns = rows.items()
    codes = np.stack([column.codes for column in columns], axis=1)
    has_item = np.array([text != "" for text in columns[0].texts])[codes]
    ranking, column = np.nonzero(has_item)
    item = columns[0]._replace(codes=codes[ranking, column]).take(np.arange(len(ranking)))
    place = (column + 1).astype(np.float64)
    row = np.arange(len(rows))
    return _RankingTable(ranking, item, place, ranking, row, rows.numbers.tolist())


def _refuse_repeated_items(rows: ComparisonRows, table: _RankingTable) -> None:
    """Refuse an item that is in a ranking twice."""
    codes = table.ranking * len(table.item.texts) + table.item.codes
    order = np.argsort(codes, kind="stable")
    repeated = order[1:][np.diff(codes[order]) == 0]
    if not len(repeated):
        return
    at = repeated[0]
    item = shown_value(table.item.texts[table.item.codes[at]])
    ranking = table.names[table.ranking[at]]
    raise rows.table.error(
        f"{item} is in the ranking {ranking} twice; an item has one place in it.",
        int(rows.numbers[table.row[at]]),
    )


def _places(rows: ComparisonRows, cells: Labels) -> Array:
    """Places as numbers, inf for items without a place."""
    places = [
        np.inf if text.lower() in comparison_words.UNPLACED else finite_number(text)
        for text in cells.texts
    ]
    rows.refuse(
        cells.per_row([place is None or place <= 0 for place in places]),
        "the place is {}, expected a number from 1, or nothing, DNF, DSQ, … for an item that took "
        "part and has no place.",
        cells,
    )
    return cells.per_row(np.array(places, np.float64))
