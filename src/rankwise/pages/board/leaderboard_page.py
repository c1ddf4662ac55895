"""The page of a leaderboard: rows, meetings, effects, judges and words of each board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwise.datasets.times import in_days
from rankwise.leaderboard import Leaderboard
from rankwise.leaderboard.board_records import RANK_COLUMNS
from rankwise.leaderboard.render import footnotes
from rankwise.pages.page import Page, assemble
from rankwise.pages.page_values import as_text, short_numbers

MATRIX_ITEMS = 120  # the first items of a board, whose head-to-head results are on the page
N_SURPRISES = 50  # pairs whose results differ most from the expected ones
MAX_NAMES = 5  # of items in a sentence
DIGITS = 8
MANY_BOARDS = 10  # with more boards each one has a smaller matrix
SCRIPTS = (
    "charts.js",
    "tables.js",
    "theme.js",
    "board/ratings.js",
    "board/meetings.js",
    "board/over_time.js",
    "board/board.js",
)


def board_page(
    board: Leaderboard | Mapping[Any, Leaderboard], *, title: str = "Leaderboard"
) -> Page:
    """Make a page that shows a leaderboard and how sure it is.

    It shows ratings with intervals, the ranks that are possible, head-to-head results beside what
    was expected, effects and judges if there are any, and how to read all that.

    Parameters
    ----------
    board : Leaderboard, or dict from label to Leaderboard
        Result of `rankwise.leaderboard.rate` or of `rankwise.leaderboard.rate_groups`, of which
        the page lets you choose one.
    title : str
        Heading of the page.

    Returns
    -------
    Page
        ``page.save("board.html")`` writes it. The same board gives the same page.

    Examples
    --------
    >>> from rankwise.leaderboard import rate
    >>> from rankwise.report import board_page
    >>> games = {"winner": ["Ann", "Ann", "Bob", "Ann"], "loser": ["Bob", "Cleo", "Cleo", "Bob"]}
    >>> page = board_page(rate(games, winner="winner", loser="loser"), title="Three players")
    >>> "Three players" in str(page)
    True
    """
    boards = dict(board) if isinstance(board, Mapping) else {"": board}
    if not boards:
        raise TypeError(
            "board is an empty dict; expected a Leaderboard of rate, or a dict of them."
        )
    for value in boards.values():
        if not isinstance(value, Leaderboard):
            raise TypeError(
                f"board is or contains a {type(value).__name__}; expected a Leaderboard of rate, "
                "or a dict of them."
            )
    n_matrix = MATRIX_ITEMS
    if len(boards) > MANY_BOARDS:
        n_matrix = MATRIX_ITEMS // 3
    described = [describe_board(value, label, n_matrix) for label, value in boards.items()]
    data = {"boards": described}
    return Page(assemble("board/board", ["page.css", "board/board.css"], SCRIPTS, data, title))


def describe_board(board: Leaderboard, label: Any, n_matrix: int = MATRIX_ITEMS) -> dict[str, Any]:
    """Describe a board for the page's JSON; items are numbered in the order of the board.

    Parameters
    ----------
    board : Leaderboard
        The board.
    label : object
        Name of its group.
    n_matrix : int
        Number of first items whose head-to-head results are listed.
    """
    return {
        "label": as_text(label),
        "headline": headline(board),
        "notes": [as_text(note, 1000) for note in board.notes],
        "facts": [as_text(line, 1000) for line in footnotes(board)[len(board.notes) :]],
        "scale": board.scale.name,
        "model": board.model,
        "confidence": board.confidence,
        "hasIntervals": board.intervals is not None,
        "nComponents": board.n_components,
        "nComparisons": board.n_comparisons,
        "nClusters": board.n_clusters,
        "rows": _rows(board),
        **_meetings(board, n_matrix),
        "effects": _fields(board.effects),
        "judges": _fields(board.judges),
        "paths": _paths(board),
        "krippendorff": _plain(board.krippendorff),
    }


def headline(board: Leaderboard) -> str:
    """Say in one sentence which items may be the best; names of any direction are isolated."""
    ranked = [row for row in board.rows if row.component == 1 and row.rank is not None]
    where = ""
    if board.n_components > 1:
        where = " of the largest part"
    if not ranked:
        return "No item has enough comparisons for a rank."
    if board.intervals is None:
        return (
            f"{_isolated(ranked[0].item)} is first{where}; without intervals the uncertainty is "
            "unknown."
        )
    candidates = [row.item for row in ranked if row.best_rank == 1]
    n_at_once = sum(row.best_of_all == 1 for row in ranked)
    confidence = f"{100 * board.confidence:g}%"
    if n_at_once == 1:
        return f"{_isolated(candidates[0])} is above all other items{where}, {confidence} sure."
    names = ", ".join(_isolated(name) for name in candidates[:MAX_NAMES])
    if len(candidates) > MAX_NAMES:
        names += f" and {len(candidates) - MAX_NAMES:,} more"
    items = "ranked items"
    if where or len(ranked) == len(board):
        items = "items"
    sentence = f"{len(candidates):,} of {len(ranked):,} {items}{where} may be the best: {names}."
    if n_at_once == len(candidates):
        return sentence
    return (
        f"{sentence} That is {confidence} sure for each item; for all of them at once "
        f"{n_at_once:,} may be."
    )


def _isolated(name: Any) -> str:
    text = as_text(name, 60).replace("\u2069", "")  # would end the isolation
    return f"\u2068{text}\u2069"


def _rows(board: Leaderboard) -> dict[str, list[Any] | None]:
    """The columns of the board."""
    rows: dict[str, list[Any] | None] = {}
    for name, column in board.columns.items():
        if column is None:
            rows[name] = None
        elif name == "item":
            rows[name] = [as_text(label) for label in column.tolist()]
        elif name == "thin":
            rows[name] = np.flatnonzero(column).tolist()
        else:
            values = short_numbers(column, DIGITS)
            rows[name] = [value or None for value in values] if name in RANK_COLUMNS else values
    found = (
        [board.votes_to_flip_next.get(row.item) for row in board.rows]
        if board.votes_to_flip_next
        else []
    )
    rows["holds"] = [None if hold is None else hold.n for hold in found] or None
    rows["holdsText"] = [None if hold is None else str(hold) for hold in found] or None
    return rows


def _meetings(board: Leaderboard, n_matrix: int) -> dict[str, Any]:
    """Head-to-head results of the first items, and the most surprising ones of all."""
    met = board.head_to_head
    place = {label: k for k, label in enumerate(np.asarray(board.columns["item"]).tolist())}
    at = np.array([place[label] for label in board.items.tolist()], np.intp)
    first = at[met.first]
    second = at[met.second]
    deviation = np.nan_to_num((met.observed - met.expected) * np.sqrt(met.n))
    typical = float(np.sqrt(np.mean(deviation**2))) if len(deviation) else 0.0
    surprise = deviation / (typical or 1.0)
    shown = np.flatnonzero((first < n_matrix) & (second < n_matrix))
    most = np.argsort(-np.abs(surprise), kind="stable")[:N_SURPRISES]

    def columns(chosen: Any) -> dict[str, list[Any]]:
        return {
            "first": first[chosen].tolist(),
            "second": second[chosen].tolist(),
            "n": met.n[chosen].tolist(),
            "observed": short_numbers(met.observed[chosen], DIGITS),
            "expected": short_numbers(met.expected[chosen], DIGITS),
        }

    return {
        "areVerdicts": _are_verdicts(board),
        "nMatrix": min(n_matrix, len(board)),
        "nPairs": len(met.n),
        "meetings": columns(shown),
        "surprises": {**columns(most), "surprise": short_numbers(surprise[most], DIGITS)},
    }


def _paths(board: Leaderboard) -> list[dict[str, Any]]:
    """Ratings over time of the first items; dates are years with decimals."""
    data = board.comparisons
    if board.scales is None or data is None or data.times is None:
        return []
    curves = []
    for item, path in board.paths().items():
        is_date = path.times.dtype.kind == "M"
        x = path.times
        if is_date:
            x = 1970 + in_days(path.times) / 365.2425
        columns = {"x": x, "mean": path.rating}
        if board.intervals:
            columns["low"] = path.low
            columns["high"] = path.high
        short = {name: short_numbers(column, DIGITS) for name, column in columns.items()}
        curves.append({"label": as_text(item), "isDate": is_date, **short})
    return curves


def _are_verdicts(board: Leaderboard) -> bool:
    """Whether outcomes are wins, ties and losses, which shares can describe."""
    if board.model == "bradley-terry":
        return True
    data = board.comparisons
    return data is not None and bool(np.isin(data.outcome, (-1.0, 0.0, 1.0)).all())


def _fields(rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Effects or judges with rounded numbers."""
    return [{name: _plain(value) for name, value in row._asdict().items()} for row in rows]


def _plain(value: Any) -> Any:
    if value is None:
        return None
    is_number = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**53)
    if is_number:
        return short_numbers([value], DIGITS)[0]
    return as_text(value)
