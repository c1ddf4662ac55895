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

MATRIX_ITEMS = 120  # the first of a board, whose meetings are on the page
SURPRISES = 50  # pairs that differ most from what was expected
NAMED = 5  # items that a sentence names
DIGITS = 8
MANY_BOARDS = 10  # above, each has a smaller matrix
SCRIPTS = (
    *(
        "charts.js",
        "tables.js",
        "theme.js",
        "board/ratings.js",
        "board/meetings.js",
        "board/over_time.js",
    ),
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
    wrong = [each for each in boards.values() if not isinstance(each, Leaderboard)]
    if wrong or not boards:
        came = f"a {type(wrong[0]).__name__}" if wrong else "no board"
        raise TypeError(f"{came} came; expected a Leaderboard of rate, or a dict of them.")
    n_matrix = MATRIX_ITEMS if len(boards) <= MANY_BOARDS else MATRIX_ITEMS // 3
    data = {"boards": [describe_board(each, label, n_matrix) for label, each in boards.items()]}
    return Page(assemble("board/board", ["page.css", "board/board.css"], SCRIPTS, data, title))


def describe_board(board: Leaderboard, label: Any, n_matrix: int = MATRIX_ITEMS) -> dict[str, Any]:
    """One board as JSON has it; items are numbered in the order of the board.

    Parameters
    ----------
    board : Leaderboard
        The board.
    label : object
        Name of its group.
    n_matrix : int
        The first items, whose meetings are listed.
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
    """Who may be the best, in one sentence; names are isolated, whatever their direction."""
    ranked = [row for row in board.rows if row.component == 1 and row.rank is not None]
    where = " of the largest part" if board.n_components > 1 else ""
    if not ranked:
        return "No item has enough comparisons for a rank."
    if board.intervals is None:
        return (
            f"{_isolated(ranked[0].item)} is first{where}; without intervals nothing says how "
            "sure that is."
        )
    able = [row.item for row in ranked if row.best_rank == 1]
    at_once = sum(row.best_of_all == 1 for row in ranked)
    sure = f"{100 * board.confidence:g}%"
    if at_once == 1:
        return f"{_isolated(able[0])} is above all other items{where}, {sure} sure."
    names = ", ".join(map(_isolated, able[:NAMED]))
    more = f" and {len(able) - NAMED:,} more" if len(able) > NAMED else ""
    items = "items" if len(ranked) == len(board) or where else "ranked items"
    said = f"{len(able):,} of {len(ranked):,} {items}{where} may be the best: {names}{more}."
    if at_once == len(able):
        return said
    return f"{said} That is {sure} sure for each item; for all of them at once {at_once:,} may be."


def _isolated(name: Any) -> str:
    inside = as_text(name, 60).replace("\u2069", "")  # would end the isolation
    return f"\u2068{inside}\u2069"


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
    first, second = at[met.first], at[met.second]
    deviation = np.nan_to_num((met.observed - met.expected) * np.sqrt(met.n))
    typical = float(np.sqrt(np.mean(deviation**2))) if len(deviation) else 0.0
    surprise = deviation / (typical or 1.0)
    shown = np.flatnonzero((first < n_matrix) & (second < n_matrix))
    most = np.argsort(-np.abs(surprise), kind="stable")[:SURPRISES]

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
        x = 1970 + in_days(path.times) / 365.2425 if is_date else path.times
        bounds = {"low": path.low, "high": path.high} if board.intervals else {}
        columns = {"x": x, "mean": path.rating, **bounds}
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
    """Effects or judges with short numbers."""
    return [{name: _plain(value) for name, value in row._asdict().items()} for row in rows]


def _plain(value: Any) -> Any:
    is_number = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**53)
    if value is None:
        return None
    return short_numbers([value], DIGITS)[0] if is_number else as_text(value)
