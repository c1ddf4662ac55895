"""Read pairwise comparisons, one a row, from a file or a data frame."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rankwise.datasets.files import PathLike
from rankwise.datasets.pair_data import Column, PairColumns, PairData
from rankwise.datasets.pair_rows import PairRows
from rankwise.datasets.pair_tables import FileTable, frame_table
from rankwise.datasets.table_files import open_table


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
    delimiter: str | None = None,
) -> PairData:
    """Read a table of comparisons, one a row; the first line of a text names the columns.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, Feather or JSON lines, plain or compressed; ``-`` is standard input.
    winner, loser : str or int, default="winner" and "loser"
        Names of the columns with the labels of the two items, or their positions counted from 0.
    sides : pair of str or int, optional
        The two columns with the labels of the items, for data in which another column says which
        side won; `loser` is not used then. Without it, columns "first" and "second", "left" and
        "right", "model_a" and "model_b", "home" and "away" or "a" and "b" are the sides if there is
        no loser and exactly one of "outcome", "winner", "result", "better"; `read_as` says so.
    outcome : str or int, optional
        With `sides`: the column that says who won, by default the one that `winner` names. It holds
        the name of a side's column, the label of one of the two items, or a word: "left", "first",
        "a", "model_a", "home", 1; "right", "second", "b", "model_b", "away", 2 (or 0, or −1);
        "tie", "draw", "equal", "both bad", 0.5. Words that are not understood are listed.
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
    >>> battles.items[battles.first], battles.items[battles.second], battles.outcome
    (array(['owl', 'owl'], dtype='<U5'), array(['crow', 'heron'], dtype='<U5'), array([-1.,  0.]))
    """
    columns = PairColumns(
        winner, loser, sides, outcome, wins, scores, margin, magnitude, weight, tie, group,
        judge, cluster, covariates,
    )  # fmt: skip
    return PairRows(FileTable(open_table(os.fspath(path), delimiter)), columns).data()


def pairs_from_frame(frame: Any, **columns: Any) -> PairData:
    """Comparisons from a data frame of pandas, polars or Arrow, or a dictionary of columns.

    Parameters
    ----------
    frame : data frame, or dict from str to sequence
        One comparison a row.
    **columns
        Which columns say what, as in `read_pairs`.

    Returns
    -------
    PairData
        Comparisons as positions in the array of distinct labels.

    Examples
    --------
    >>> battles = {"left": ["owl", "crow"], "right": ["crow", "jay"], "better": ["left", "jay"]}
    >>> found = pairs_from_frame(battles, sides=("left", "right"), outcome="better")
    >>> found.items, found.outcome
    (array(['crow', 'jay', 'owl'], dtype='<U4'), array([ 1., -1.]))
    """
    table = frame_table(frame)
    if table is None:
        raise TypeError(
            f"pairs is of type {type(frame).__name__}, expected a data frame, a dictionary of "
            "columns, PairData (from rankwise.datasets.read_pairs) or a PairGraph."
        )
    return PairRows(table, PairColumns(**columns)).data()
