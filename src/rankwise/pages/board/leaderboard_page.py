"""The page of a leaderboard: ratings, head-to-head results, effects and judges of each board."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Array, Indices
from rankwise.datasets.times import in_days
from rankwise.formatting import Json, JsonObject
from rankwise.leaderboard import Leaderboard, TaskLeaderboard
from rankwise.leaderboard.board_records import HeadToHead, RatingHistory
from rankwise.leaderboard.covariates import Effect
from rankwise.leaderboard.judges import Judge
from rankwise.leaderboard.render import explanations
from rankwise.pages.board.board_rows import DIGITS, as_sentences, describe_rows, isolated_name
from rankwise.pages.board.score_page import score_page_text
from rankwise.pages.page import Page, assemble
from rankwise.pages.page_values import as_text, short_numbers

MATRIX_ITEMS = 120  # the first items of a board, whose head-to-head results are on the page
MATRIX_ITEMS_OF_MANY_BOARDS = 40
MANY_BOARDS = 10
MAX_SURPRISES = 50
MIN_SURPRISE = 3.0  # typical deviations from the expected result
MAX_NAMES = 5  # of items in a sentence
MAX_SENTENCE = 1000  # characters of a note
MAX_SAFE_INTEGER = 2**53  # in JavaScript

STYLES = ("page.css", "board/board.css")
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
    board: Leaderboard | TaskLeaderboard | Mapping[Hashable, Leaderboard],
    *,
    title: str = "Leaderboard",
) -> Page:
    """Make a page that shows a leaderboard and its uncertainty.

    Use it to publish a leaderboard. The page shows ratings with intervals, possible ranks,
    observed and expected head-to-head results, effects and judges if the board has any, and
    explains how to read them. For scores over tasks it shows which tasks decide and which scores
    are missing.

    Parameters
    ----------
    board : Leaderboard, TaskLeaderboard, or dict from label to Leaderboard
        Result of `rankwise.leaderboard.rate`, of `rankwise.leaderboard.rate_scores`, or of
        `rankwise.leaderboard.rate_groups`; the reader of the page selects one of several boards.
    title : str, default="Leaderboard"
        Heading of the page.

    Returns
    -------
    Page
        ``page.save("board.html")`` writes the file. Equal boards give equal pages.

    Examples
    --------
    >>> from rankwise.leaderboard import rate
    >>> from rankwise.report import board_page
    >>> games = {"winner": ["Ann", "Ann", "Bob", "Ann"], "loser": ["Bob", "Cleo", "Cleo", "Bob"]}
    >>> page = board_page(rate(games, winner="winner", loser="loser"), title="Three players")
    >>> "Three players" in str(page)
    True
    """
    if isinstance(board, TaskLeaderboard):
        return Page(score_page_text(board, title))
    boards = _boards_by_label(board)
    n_matrix_items = MATRIX_ITEMS
    if len(boards) > MANY_BOARDS:
        n_matrix_items = MATRIX_ITEMS_OF_MANY_BOARDS
    described_boards = []
    for label, labeled_board in boards.items():
        described_boards.append(describe_board(labeled_board, label, n_matrix_items))
    return Page(assemble("board/board", STYLES, SCRIPTS, {"boards": described_boards}, title))


def _boards_by_label(
    board: Leaderboard | Mapping[Hashable, Leaderboard],
) -> Mapping[Hashable, Leaderboard]:
    """Boards by label; a single board has the empty label."""
    if isinstance(board, Mapping):
        boards = board
    else:
        boards = {"": board}  # one board has no label
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
    return boards


def describe_board(
    board: Leaderboard, label: Hashable, n_matrix_items: int = MATRIX_ITEMS
) -> JsonObject:
    """Describe a board for the page's JSON; items are numbered in the order of the board.

    Parameters
    ----------
    board : Leaderboard
        The board.
    label : hashable
        Name of its group.
    n_matrix_items : int
        Number of first items whose head-to-head results are listed.
    """
    return {
        "label": as_text(label),
        "headline": headline(board),
        "notes": [as_text(note, MAX_SENTENCE) for note in as_sentences(board.notes, board.items)],
        "facts": [as_text(fact, MAX_SENTENCE) for fact in as_sentences(explanations(board))],
        "scale": board.scale.name,
        "model": board.model,
        "confidence": board.confidence,
        "hasIntervals": board.intervals is not None,
        "nComponents": board.n_components,
        "nComparisons": board.n_comparisons,
        "nClusters": board.n_clusters,
        "rows": _describe_rows(board),
        **_describe_meetings(board, n_matrix_items),
        "effects": _describe_records(board.effects),
        "judges": _describe_records(board.judges),
        "hasSides": _has_sides(board),
        "paths": _describe_histories(board),
        "krippendorff": _to_json(board.krippendorff),
    }


def headline(board: Leaderboard) -> str:
    """Say in one sentence which items may be the best."""
    # component 1 is the largest
    ranked = [row for row in board.rows if row.component == 1 and row.rank is not None]
    if not ranked:
        return "No item has enough comparisons for a rank."
    of_component = ""
    if board.n_components > 1:
        of_component = " of the largest component"
    if board.intervals is None:
        first = isolated_name(ranked[0].item)
        return (
            f"{first} has the highest rating{of_component}. The board has no intervals, so the "
            "uncertainty is unknown."
        )

    # Items whose interval of ranks contains 1: by the intervals of single items, and by the wider
    # ones that hold for all items at once
    possible_best = [row.item for row in ranked if row.best_rank == 1]
    n_simultaneous = sum(row.best_of_all == 1 for row in ranked)
    confidence = f"{100 * board.confidence:g}%"
    if n_simultaneous == 1:
        return (
            f"{isolated_name(possible_best[0])} is significantly above all other items"
            f"{of_component} ({confidence} confidence)."
        )
    items = "ranked items"
    if board.n_components > 1 or len(ranked) == len(board):
        items = "items"
    sentence = (
        f"{len(possible_best):,} of {len(ranked):,} {items}{of_component} may be the best: "
        f"{_list_names(possible_best)}."
    )
    if n_simultaneous == len(possible_best):
        return f"{sentence} The confidence level is {confidence}."
    return (
        f"{sentence} This holds with {confidence} confidence for each item; for all items "
        f"simultaneously, {n_simultaneous:,} may be the best."
    )


def _list_names(names: Sequence[object]) -> str:
    listed = ", ".join(isolated_name(name) for name in names[:MAX_NAMES])
    n_more = len(names) - MAX_NAMES
    if n_more > 0:
        listed += f" and {n_more:,} more"
    return listed


def _describe_rows(board: Leaderboard) -> JsonObject:
    """The columns of the board, and the votes to flip."""
    columns = describe_rows(board)
    votes_to_flip = board.votes_to_flip_next
    columns["holds"] = None  # votes to flip the item and the next one
    columns["holdsText"] = None
    if votes_to_flip:
        votes_of_row = [votes_to_flip.get(row.item) for row in board.rows]
        columns["holds"] = [None if votes is None else votes.n for votes in votes_of_row]
        columns["holdsText"] = [None if votes is None else str(votes) for votes in votes_of_row]
    return columns


class _Meetings(NamedTuple):
    """Head-to-head results, with items numbered in the order of the board."""

    first: Indices
    second: Indices
    results: HeadToHead

    def describe(self, pairs: Indices) -> JsonObject:
        """Columns of some pairs."""
        return {
            "first": self.first[pairs].tolist(),
            "second": self.second[pairs].tolist(),
            "n": self.results.n[pairs].tolist(),
            "observed": short_numbers(self.results.observed[pairs], DIGITS),
            "expected": short_numbers(self.results.expected[pairs], DIGITS),
        }


def _describe_meetings(board: Leaderboard, n_matrix_items: int) -> JsonObject:
    """Head-to-head results of the first items, and the most surprising results of all items."""
    # Items have numbers in the results; on the page they are numbered by their row of the board.
    results = board.head_to_head
    row_of_label = {row.item: position for position, row in enumerate(board.rows)}
    row_of_item = np.array([row_of_label[label] for label in board.items.tolist()], dtype=np.intp)
    meetings = _Meetings(row_of_item[results.first], row_of_item[results.second], results)
    is_in_matrix = (meetings.first < n_matrix_items) & (meetings.second < n_matrix_items)

    # The pairs whose results deviate most from the expected ones
    surprise = _standardized_deviations(results)
    largest_first = np.argsort(-np.abs(surprise), kind="stable")
    is_surprising = np.abs(surprise[largest_first]) >= MIN_SURPRISE
    surprising_pairs = largest_first[is_surprising][:MAX_SURPRISES]
    surprises = meetings.describe(surprising_pairs)
    surprises["surprise"] = short_numbers(surprise[surprising_pairs], DIGITS)
    return {
        "areVerdicts": _are_wins_ties_and_losses(board),
        "nMatrix": min(n_matrix_items, len(board)),
        "nPairs": len(results.n),
        "minSurprise": MIN_SURPRISE,
        "meetings": meetings.describe(np.flatnonzero(is_in_matrix)),
        "surprises": surprises,
    }


def _standardized_deviations(results: HeadToHead) -> Array:
    """Deviations from the expected results, as multiples of a typical deviation.

    Deviations are multiplied by the square root of the number of comparisons, so that the results
    of few comparisons are not surprising.
    """
    # The standard error of a mean of n results is proportional to 1 / √n. A pair whose comparisons
    # all have weight 0 has the mean NaN.
    deviation = np.nan_to_num((results.observed - results.expected) * np.sqrt(results.n))
    if not deviation.any():
        return deviation
    root_mean_square = np.sqrt(np.mean(deviation**2))
    return np.asarray(deviation / root_mean_square)


def _describe_histories(board: Leaderboard) -> list[JsonObject]:
    """Ratings over time of the first items."""
    comparisons = board.comparisons
    is_dynamic = board.scales is not None
    if not is_dynamic or comparisons is None or comparisons.times is None:
        return []
    has_intervals = board.intervals is not None
    curves = []
    for item, history in board.paths().items():
        curves.append(_describe_history(item, history, has_intervals=has_intervals))
    return curves


def _in_years(times: AnyArray) -> Array:
    """Dates as years with the fraction of the year that has passed, such as 2019.5."""
    years = times.astype("datetime64[Y]")
    start, end = in_days(years), in_days(years + 1)
    return years.astype(np.int64) + 1970 + (in_days(times) - start) / (end - start)


def _describe_history(item: object, history: RatingHistory, *, has_intervals: bool) -> JsonObject:
    """One curve; dates are years with decimals."""
    is_date = history.times.dtype.kind == "M"
    x = history.times
    dates = None
    if is_date:
        x = _in_years(history.times)
        dates = [str(date) for date in history.times.astype("datetime64[D]")]
    curve: JsonObject = {
        "label": as_text(item),
        "isDate": is_date,
        "dates": dates,
        "x": short_numbers(x, DIGITS),
        "mean": short_numbers(history.rating, DIGITS),
    }
    if has_intervals:
        curve["low"] = short_numbers(history.low, DIGITS)
        curve["high"] = short_numbers(history.high, DIGITS)
    return curve


def _has_sides(board: Leaderboard) -> bool:
    """Whether the order of the sides has a meaning.

    If the first side never lost, it is the winner: a table of winners and losers has no sides, and
    a bias of its judges toward one of them cannot be estimated.
    """
    return board.comparisons is None or board.comparisons.has_sides


def _are_wins_ties_and_losses(board: Leaderboard) -> bool:
    """Whether outcomes are wins, ties and losses, which shares can describe."""
    if board.model == "bradley-terry":
        return True
    comparisons = board.comparisons
    if comparisons is None:
        return False
    is_loss_tie_or_win = np.isin(comparisons.outcome, (-1.0, 0.0, 1.0))
    return bool(is_loss_tie_or_win.all())


def _describe_records(records: Sequence[Effect] | Sequence[Judge]) -> list[JsonObject]:
    """Effects or judges with rounded numbers."""
    described_records = []
    for record in records:
        fields = {name: _to_json(value) for name, value in record._asdict().items()}
        described_records.append(fields)
    return described_records


def _to_json(value: object) -> Json:
    """A rounded number, or text."""
    if value is None:
        return None
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < MAX_SAFE_INTEGER):
        (number,) = short_numbers([value], DIGITS)
        return number
    return as_text(value)  # text, or an integer that JavaScript would round
