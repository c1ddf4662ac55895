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
    columns_of_ranking_lists,
    infer_columns,
    validate_columns,
)
from rankwise.datasets.preflib import PreflibTable, is_preflib
from rankwise.datasets.table_files import FrameTable, TableFile
from rankwise.datasets.team_cells import Sides, join_teams
from rankwise.datasets.vocabulary import finite_number, shown_value
from rankwise.formatting import count, join_words
from rankwise.frames import frame_columns

MAX_COMPARISONS = 10**8  # limit of the sum of numbers of wins


def read_pairs(
    path: PathLike, *, delimiter: str | None = None, **columns: Unpack[PairColumns]
) -> PairData:
    """Read a table of comparisons with one comparison per row.

    Use it to load matches, votes or rankings for `rate` or as training data of a ranker.

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
        optionally, of ties. A row then represents that number of comparisons.
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

    Use it for comparisons that are in memory; `read_pairs` reads files.

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
    names_no_columns = set(columns) <= {"unlisted"}
    values_of_column: Mapping[str, Any] | None
    if isinstance(frame, (list, tuple)) and names_no_columns:
        values_of_column = columns_of_ranking_lists(frame)
        columns = {**columns, "ranking": "ranking"}  # the names of its columns are the defaults
    elif isinstance(frame, Mapping):
        values_of_column = frame
    else:
        values_of_column = frame_columns(frame)
    if values_of_column is None:
        raise TypeError(
            f"pairs is of type {type(frame).__name__}, expected a data frame, a dictionary of "
            "columns, a list of rankings, PairData (from rankwise.datasets.read_pairs) or a "
            "PairGraph."
        )
    return pairs_from_table(FrameTable(values_of_column), columns)


def open_comparisons(
    path: PathLike, delimiter: str | None = None, header: bool = True
) -> TableFile:
    """Open a file of comparisons or rankings.

    Parameters
    ----------
    path, delimiter
        As in `read_pairs`.
    header : bool, default=True
        Whether the first line of a text has the column names. If not, the columns are called 0, 1,
        and so on.
    """
    if is_preflib(path):
        return PreflibTable(os.fspath(path))
    return open_table(os.fspath(path), delimiter, header=header)


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
    table_columns = find_columns(table, options)
    outcome_words = options.get("outcome_words") or {}
    rows = read_rows(table, table_columns, outcome_words, options.get("team_separator"))
    time = options.get("time")
    rows_are_in_order_of_time = time is not None and is_row_order(table, time)
    times = rows.times(rows_are_in_order_of_time)
    if table_columns.has_places or table_columns.ranking is not None:
        return _pairs_of_rankings(rows, times, unlisted_are_last=options.get("unlisted") == "last")
    if table_columns.has_sides:
        data = _pairs_of_sides(rows, times, uses_margin=bool(options.get("margin")))
    else:
        data = _pairs_of_winners(rows, times)
    return replace(data, read_as=read_as)


def _pairs_of_winners(rows: ComparisonRows, times: NDArray[Any] | None) -> PairData:
    """Comparisons from a column of winners and a column of losers."""
    winning_side = np.ones(len(rows))  # 1: the first item, which is the winner
    return _pair_data(rows, times, _outcome_with_magnitude(rows, winning_side))


def _pairs_of_sides(
    rows: ComparisonRows, times: NDArray[Any] | None, uses_margin: bool
) -> PairData:
    """Comparisons from two columns of items, and further columns with the outcome."""
    columns = rows.columns
    if columns.wins:
        return _pairs_of_win_counts(rows, times)
    if columns.scores:
        first_column, second_column = columns.scores
        outcome = rows.values[first_column] - rows.values[second_column]
        if not uses_margin:
            outcome = np.sign(outcome)
    elif columns.margin is not None:
        outcome = rows.values[columns.margin]
    else:
        outcome = _outcome_with_magnitude(rows, _winning_side(rows))
    return _pair_data(rows, times, outcome)


def _pairs_of_rankings(
    rows: ComparisonRows, times: NDArray[Any] | None, unlisted_are_last: bool
) -> PairData:
    """Comparisons of all pairs of items of a ranking."""
    if rows.columns.has_places:
        table = _rankings_in_one_row_each(rows)
    else:
        table = _rankings_with_one_item_per_row(rows)
    _refuse_repeated_items(rows, table)

    labels, position_of_text = np.unique(table.item.distinct_labels(), return_inverse=True)
    rankings = Rankings(
        ranking=table.ranking,
        item=table.item.expand_to_rows(position_of_text).astype(np.intp),
        place=table.place,
        weight=rows.weight()[table.first_row],
    )
    if unlisted_are_last:  # without a place, they are below all items with a place
        rankings = rankings.with_all_items(len(labels))

    pairs = rankings.pairs
    row_of_pair = table.first_row[pairs.ranking]
    fields_of_pairs: dict[str, Any] = {}
    for name, values in _groups_judges_clusters_times(rows, times).items():
        fields_of_pairs[name] = None
        if values is not None:
            fields_of_pairs[name] = values[row_of_pair]
    if fields_of_pairs["clusters"] is None and fields_of_pairs["judges"] is None:
        fields_of_pairs["clusters"] = pairs.ranking  # pairs of one ranking are dependent
    return PairData(
        pairs.first,
        pairs.second,
        pairs.outcome,
        pairs.weight,
        labels,
        contexts={name: values[row_of_pair] for name, values in _contexts(rows).items()},
        rankings=rankings,
        **fields_of_pairs,
    )


def _pair_data(rows: ComparisonRows, times: NDArray[Any] | None, outcome: Array) -> PairData:
    """One comparison for each row: the outcome is positive if the first item won."""
    weight = rows.weight()
    if rows.teams:
        sides = _sides_with_teams(rows)
    else:
        sides = _sides_with_one_item(rows)
    return PairData(
        sides.first,
        sides.second,
        outcome,
        weight,
        sides.items,
        covariates=_covariates(rows),
        contexts=_contexts(rows),
        teams=sides.teams,
        **_groups_judges_clusters_times(rows, times),
    )


def _sides_with_one_item(rows: ComparisonRows) -> Sides:
    """The two items of each row."""
    first, second = rows.item_labels
    problem = "{} is compared with itself. Leave out the row."
    rows.refuse(first.codes == second.codes, problem, first)
    # The codes of both columns index the same list of texts, so `first` has the labels of both
    labels, item_of_text = np.unique(first.distinct_labels(), return_inverse=True)
    return Sides(
        first=first.expand_to_rows(item_of_text).astype(np.intp),
        second=second.expand_to_rows(item_of_text).astype(np.intp),
        items=labels,
        teams=None,
    )


def _sides_with_teams(rows: ComparisonRows) -> Sides:
    """The two teams of each row, without a common member."""
    first, second = rows.teams
    # Two teams that meet several times are checked in the first row only; a pair of teams has a
    # number in row-major order.
    code_of_pair = first.codes * len(second.teams) + second.codes
    first_row_of_pair = np.unique(code_of_pair, return_index=True)[1]
    for row in np.sort(first_row_of_pair).tolist():
        members = first.teams[first.codes[row]].members
        opponents = second.teams[second.codes[row]].members
        common_members = set(members).intersection(opponents)
        if common_members:
            name = shown_value(min(common_members))
            raise rows.table.error(
                f"{name} is on both sides. Correct the row, or leave it out.",
                int(rows.row_numbers[row]),
            )
    return join_teams(first, second)


def _groups_judges_clusters_times(
    rows: ComparisonRows, times: NDArray[Any] | None
) -> dict[str, Any]:
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
    names = rows.table.names
    return {names[position]: rows.labels[position].labels() for position in rows.columns.context}


def _covariates(rows: ComparisonRows) -> dict[str, NDArray[Any]]:
    """Covariates of the rows: numbers if every cell is one, else labels of categories."""
    covariates: dict[str, NDArray[Any]] = {}
    for position in rows.columns.covariates:
        cells = rows.labels[position]
        numbers = [finite_number(text) for text in cells.texts]
        value_of_text: Any = cells.texts
        if None not in numbers:
            value_of_text = np.array(numbers, np.float64)
        covariates[rows.table.names[position]] = cells.expand_to_rows(value_of_text)
    for first, second in rows.columns.differences:
        name = " − ".join(rows.names((first, second)))
        covariates[name] = rows.values[first] - rows.values[second]
    return covariates


def _outcome_with_magnitude(rows: ComparisonRows, winning_side: Array) -> Array:
    """The outcomes of rows: the margin of the first item, from ties and magnitudes.

    Parameters
    ----------
    rows : ComparisonRows
        The rows.
    winning_side : ndarray of shape (n_rows,)
        1 if the first item won, -1 if the second item won, 0 for a tie.
    """
    columns = rows.columns
    is_tie = winning_side == 0  # 1: the first side won, -1: the second side won
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
        problem = (
            "the row is a tie, but its magnitude is {}. Make the magnitude 0 or empty, or name a "
            "winner."
        )
        rows.refuse(is_tie & (magnitude > 0), problem, magnitude)
    sign = np.where(winning_side < 0, -1.0, 1.0)
    return sign * magnitude + 0.0  # minus zero becomes zero


def _winning_side(rows: ComparisonRows) -> Array:
    """1 if the first side won, -1 if the second side won, 0 for a tie.

    A word of the outcome is the name of a side's column, an item if it is one of the two items in
    all its rows, or a word of `rankwise.datasets.comparison_words`.
    """
    assert rows.columns.outcome is not None
    outcome = rows.labels[rows.columns.outcome]
    # 1: the first side won, -1: the second side won, 0: a tie, NaN: not understood
    known_sides = comparison_words.outcomes_of_words(outcome.texts)
    item_outcomes = _read_outcomes_as_items(rows, outcome, known_sides)
    side_of_word = _sides_of_words(rows, outcome.texts, known_sides, item_outcomes.is_item)
    is_unknown = np.isnan(side_of_word) & ~item_outcomes.is_item
    if is_unknown.any():
        _refuse_words(rows, outcome, np.flatnonzero(is_unknown))

    side_by_item = item_outcomes.winning_side
    side_by_word = outcome.expand_to_rows(side_of_word)
    winning_side = np.where(np.isnan(side_by_word), side_by_item, side_by_word)
    rows.refuse(
        ~np.isnan(side_by_item) & (side_by_item != winning_side),
        "the winner {} can be understood in two ways: as an item, and as a word for a side or a "
        "tie. Rename the item or the column.",
        outcome,
    )
    return winning_side


class _ItemOutcomes(NamedTuple):
    """Outcomes that are read as the name of the item that won.

    Attributes
    ----------
    winning_side : ndarray of shape (n_rows,)
        1 if the outcome is the first item of the row, -1 if it is the second item, else NaN.
    is_item : ndarray of bool, shape (n_words,)
        Whether a word of the outcome is one of the two items in all its rows.
    """

    winning_side: Array
    is_item: NDArray[np.bool_]


def _read_outcomes_as_items(
    rows: ComparisonRows, outcome: Labels, known_sides: list[int | None]
) -> _ItemOutcomes:
    """Compare each outcome with the labels of the two items of its row."""
    first, second = rows.item_labels  # with the same texts
    words = outcome.texts
    code_of_item = {label: code for code, label in enumerate(first.texts)}
    named_item = outcome.expand_to_rows([code_of_item.get(word, -1) for word in words])  # -1: none
    winning_side = np.full(len(rows), np.nan)  # 1: the first, -1: the second, NaN: neither
    winning_side[named_item == second.codes] = -1.0
    winning_side[named_item == first.codes] = 1.0

    # A word names items if it is one of the two items in each of its rows.
    n_rows_of_word = np.bincount(outcome.codes)
    n_rows_with_item = np.bincount(outcome.codes, weights=~np.isnan(winning_side))
    is_item = n_rows_with_item == n_rows_of_word
    # Numbers that are results determine the winner, even if some of them are also names of items.
    is_result = _is_number_for_result(words, known_sides, is_item)
    winning_side[outcome.expand_to_rows(is_result)] = np.nan
    return _ItemOutcomes(winning_side, is_item & ~is_result)


def _is_number_for_result(
    words: list[str], known_sides: list[int | None], is_item: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mask of the numbers among the words if they are results; all False if they name items.

    A column is read in one way: if one number is not an item, and all numbers have a meaning, then
    all of them are results, even if some are also names of items.
    """
    is_number = np.array([finite_number(word) is not None for word in words])
    sides_of_numbers = np.array(known_sides, dtype=object)[is_number]
    all_name_items = is_item[is_number].all()
    all_have_meaning = None not in sides_of_numbers
    # A column is read in one way: if one number is no item, all numbers are results.
    if all_name_items or not all_have_meaning:
        return np.zeros(len(words), dtype=bool)
    return is_number


def _sides_of_words(
    rows: ComparisonRows,
    words: list[str],
    known_sides: list[int | None],
    is_item: NDArray[np.bool_],
) -> Array:
    """The side that each word of the outcome denotes: 1, -1, 0 for a tie, NaN if none."""
    first_column, second_column = rows.names(rows.columns.items)
    side_of_column = {first_column.lower(): 1.0, second_column.lower(): -1.0}
    side_of_word = np.full(len(words), np.nan)  # NaN: no side, unless it is changed below
    for code, (word, known_side) in enumerate(zip(words, known_sides, strict=True)):
        if word.lower() in side_of_column:
            side_of_word[code] = side_of_column[word.lower()]
        elif known_side is not None and not is_item[code]:
            side_of_word[code] = known_side
    return side_of_word


def _refuse_words(rows: ComparisonRows, outcome: Labels, unknown_codes: Indices) -> None:
    """Refuse words of the outcome that are neither items nor known words."""
    n_rows_of_word = np.bincount(outcome.codes)
    words = []
    for code in unknown_codes:
        n_rows = count(n_rows_of_word[code], "row")
        words.append(f"{shown_value(outcome.texts[code])} ({n_rows})")
    side_names = ", ".join(map(shown_value, rows.names(rows.columns.items)))
    rows.refuse(
        np.isin(outcome.codes, unknown_codes),
        f"the winner is {join_words(words, 20)}, expected {side_names}, one of the two items or "
        f"'tie'; also understood: {', '.join(comparison_words.EXAMPLES)}, 1, 2, 0.5.",
    )


def _pairs_of_win_counts(rows: ComparisonRows, times: NDArray[Any] | None) -> PairData:
    """As many comparisons for each row as its numbers of wins and ties."""
    # This checks the columns of ties and magnitudes; the outcomes are replaced at the end.
    first_side_wins = _outcome_with_magnitude(rows, winning_side=np.ones(len(rows)))
    one_pair_per_row = _pair_data(rows, times, first_side_wins)
    # (n_rows, n_outcomes): wins of the first side, wins of the second side, ties
    counts = np.column_stack([rows.values[position] for position in rows.columns.wins])
    for column in counts.T:
        problem = "the number of wins is {}, expected a whole number from 0."
        rows.refuse((column < 0) | (column != np.round(column)), problem, column)
    if counts.sum() > MAX_COMPARISONS:
        raise ValueError(
            f"the wins count {counts.sum():.0f} comparisons, at most {MAX_COMPARISONS} are read; "
            "divide the counts, or pass one row for each outcome with a weight."
        )
    # Repeat the number of each cell, in row-major order, as often as its count.
    n_outcomes = counts.shape[1]
    cell_of_pair = np.repeat(np.arange(counts.size), counts.ravel().astype(np.intp))
    row_of_pair = cell_of_pair // n_outcomes
    outcome_of_column = np.array([1.0, -1.0, 0.0])
    outcome_of_pair = outcome_of_column[cell_of_pair % n_outcomes]
    return replace(one_pair_per_row.take(row_of_pair), outcome=outcome_of_pair)


class _RankingTable(NamedTuple):
    """Items of rankings, one a row.

    Attributes
    ----------
    ranking : ndarray of int, shape (n_entries,)
        Number of the ranking of each entry, which is an item in a ranking.
    item : Labels
        The items.
    place : ndarray of shape (n_entries,)
        Places; inf is no place.
    row : ndarray of int, shape (n_entries,)
        Row of the file that has the entry.
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


def _rankings_with_one_item_per_row(rows: ComparisonRows) -> _RankingTable:
    """Rankings of which each row has one item and its place."""
    columns = rows.columns
    assert columns.ranking is not None
    assert columns.place is not None
    ranking = rows.labels[columns.ranking]
    first_row_of_ranking = np.unique(ranking.codes, return_index=True)[1]
    weight = rows.weight()
    weight_in_first_row = weight[first_row_of_ranking][ranking.codes]
    problem = "the weight is {}, and another one in the same ranking."
    rows.refuse(weight != weight_in_first_row, problem, weight)
    (item,) = rows.item_labels
    return _RankingTable(
        ranking=ranking.codes,
        item=item,
        place=_places(rows, rows.labels[columns.place]),
        row=np.arange(len(rows)),
        first_row=first_row_of_ranking,
        names=ranking.texts,
    )


def _rankings_in_one_row_each(rows: ComparisonRows) -> _RankingTable:
    """Rankings of which each is a row: the best item, the second best, …"""
    columns_of_places = rows.item_labels  # all with the same texts
    texts = columns_of_places[0].texts
    # (n_rows, n_places): code of the item on each place; cells after the last item are empty
    item_codes = np.stack([column.codes for column in columns_of_places], axis=1)
    is_empty_text = np.array([text == "" for text in texts])
    row, place_number = np.nonzero(~is_empty_text[item_codes])
    item = Labels(item_codes[row, place_number], texts, columns_of_places[0].are_words)
    all_entries = np.arange(len(row))
    return _RankingTable(
        ranking=row,
        item=item.take(all_entries),  # without the empty text
        place=(place_number + 1).astype(np.float64),
        row=row,
        first_row=np.arange(len(rows)),
        names=rows.row_numbers.tolist(),
    )


def _refuse_repeated_items(rows: ComparisonRows, table: _RankingTable) -> None:
    """Refuse an item that is in a ranking twice."""
    code_of_entry = (
        table.ranking * len(table.item.texts) + table.item.codes
    )  # of a pair (ranking, item)
    order = np.argsort(code_of_entry, kind="stable")
    equals_previous = np.diff(code_of_entry[order]) == 0
    repeated_entries = order[1:][equals_previous]
    if not len(repeated_entries):
        return
    entry = repeated_entries[0]
    item = shown_value(table.item.texts[table.item.codes[entry]])
    ranking = table.names[table.ranking[entry]]
    raise rows.table.error(
        f"{item} is in the ranking {ranking} twice; an item has one place in it.",
        int(rows.row_numbers[table.row[entry]]),
    )


def _places(rows: ComparisonRows, cells: Labels) -> Array:
    """Places as numbers, inf for items without a place."""
    place_of_text: list[float | None] = []
    for text in cells.texts:
        if text.lower() in comparison_words.UNPLACED:
            place_of_text.append(np.inf)
        else:
            place_of_text.append(finite_number(text))
    rows.refuse(
        cells.expand_to_rows([place is None or place <= 0 for place in place_of_text]),
        "the place is {}, expected a number from 1, or nothing, DNF, DSQ, … for an item that took "
        "part and has no place.",
        cells,
    )
    return cells.expand_to_rows(np.array(place_of_text, np.float64))
