"""Columns of the rows of a board for its page, and names in its sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankwise.arrays import AnyArray
from rankwise.formatting import Json, JsonObject
from rankwise.leaderboard.board_records import RANK_COLUMNS
from rankwise.leaderboard.ranked_board import RankedBoard
from rankwise.pages.page_values import as_text, short_numbers

MAX_NAME = 60  # characters of an item in a sentence
DIGITS = 8


def isolated_name(name: object) -> str:
    """A name in Unicode isolates, so that its writing direction does not change the sentence."""
    text = as_text(name, MAX_NAME).replace("\u2069", "")  # would end the isolation
    return f"\u2068{text}\u2069"


def describe_rows(board: RankedBoard) -> JsonObject:
    """Return the columns of a board for the page's JSON."""
    columns: JsonObject = {}
    for name, column in board.columns.items():
        columns[name] = None
        if column is not None:
            columns[name] = _describe_column(name, column)
    return columns


def _describe_column(name: str, column: AnyArray) -> Sequence[Json]:
    if name == "item":
        return [as_text(label) for label in column.tolist()]
    if name == "thin":
        positions: list[int] = np.flatnonzero(column).tolist()
        return positions
    values = short_numbers(column, DIGITS)
    if name in RANK_COLUMNS:
        return [value or None for value in values]  # 0 stands for no rank
    return values
