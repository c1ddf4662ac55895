"""The page of a leaderboard: words, boards, style and script in one file."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import describe_environment
from rankwise.leaderboard import Leaderboard
from rankwise.report.assembling import assemble
from rankwise.report.board_data import MATRIX_ITEMS, describe_board
from rankwise.report.scored_items import as_text

LONGEST_TITLE = 200
MANY_BOARDS = 10  # above, each has a smaller matrix
SCRIPTS = ("charts.js", "tables.js", "theme.js", "ratings.js", "meetings.js", "board.js")


def write_board(
    path: PathLike, board: Leaderboard | Mapping[Any, Leaderboard], *, title: str | None = None
) -> None:
    """Write one HTML page that shows a leaderboard and how sure it is.

    The page needs no network: style, script and data are inside. It shows ratings with intervals,
    the ranks that are possible, head-to-head results beside what was expected, effects and judges
    if there are any, and how to read all that.

    Parameters
    ----------
    path : str or path
        The file to write; it appears whole or not at all.
    board : Leaderboard, or dict from label to Leaderboard
        Result of `rankwise.leaderboard.rate` or of `rankwise.leaderboard.rate_groups`, of which
        the page lets you choose one.
    title : str, optional
        Heading of the page.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankwise.leaderboard import rate
    >>> from rankwise.report import write_board
    >>> games = {"winner": ["Ann", "Ann", "Bob", "Ann"], "loser": ["Bob", "Cleo", "Cleo", "Bob"]}
    >>> board = rate(games, winner="winner", loser="loser")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "board.html")
    ...     write_board(path, board, title="Three players")
    ...     os.path.getsize(path) > 10_000
    True
    """
    page = make_board(board, title=title)
    with replace_file(path) as stream:
        stream.write(page.encode("utf-8"))


def make_board(board: Leaderboard | Mapping[Any, Leaderboard], *, title: str | None = None) -> str:
    """The page of `write_board` as text.

    Parameters
    ----------
    board, title
        As in `write_board`.

    Returns
    -------
    str
        HTML; the same input gives the same text.

    Examples
    --------
    >>> from rankwise.leaderboard import rate
    >>> from rankwise.report import make_board
    >>> game = {"winner": ["Ann"], "loser": ["Bob"]}
    >>> page = make_board(rate(game, winner="winner", loser="loser"))
    >>> "2 of 2 items may be the best" in page
    True
    """
    boards = dict(board) if isinstance(board, Mapping) else {"": board}
    wrong = [each for each in boards.values() if not isinstance(each, Leaderboard)]
    if wrong or not boards:
        came = f"a {type(wrong[0]).__name__}" if wrong else "no board"
        raise TypeError(f"{came} came; expected a Leaderboard of rate, or a dict of them.")
    n_matrix = MATRIX_ITEMS if len(boards) <= MANY_BOARDS else MATRIX_ITEMS // 3
    data = {"boards": [describe_board(each, label, n_matrix) for label, each in boards.items()]}
    return assemble(
        "board.html",
        ["report.css", "board.css"],
        SCRIPTS,
        data,
        title=escape(as_text("Leaderboard" if title is None else title, LONGEST_TITLE)),
        version=escape(describe_environment()["versions"]["rankwise"]),
    )
