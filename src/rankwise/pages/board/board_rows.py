"""Columns of the rows of a board for its page, and names in its sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    # Between these characters a name from right to left does not reorder the sentence around it.
    start_of_isolation = "\u2068"
    end_of_isolation = "\u2069"
    text = as_text(name, MAX_NAME).replace(end_of_isolation, "")
    return f"{start_of_isolation}{text}{end_of_isolation}"


def as_sentences(lines: Iterable[str], names: Iterable[object] = ()) -> list[str]:
    """Footnotes of a terminal as sentences: a capital at the start, a period at the end.

    Parameters
    ----------
    lines : iterable of str
        The footnotes.
    names : iterable, default=()
        Names of users, which keep their first letter.
    """
    starts = tuple(f"{name} " for name in names)
    sentences = []
    for line in lines:
        sentence = line
        if not line.startswith(starts):
            sentence = line[:1].upper() + line[1:]
        if not sentence.endswith((".", "=")):
            sentence += "."
        sentences.append(sentence)
    return sentences


def describe_rows(board: RankedBoard) -> JsonObject:
    """Return the columns of a board for the page's JSON."""
    columns: JsonObject = {}
    for name, values in board.columns.items():
        if values is None:
            columns[name] = None
        else:
            columns[name] = _column_to_json(name, values)
    return columns


def _column_to_json(name: str, values: AnyArray) -> Sequence[Json]:
    if name == "item":
        return [as_text(label) for label in values.tolist()]
    if name == "thin":  # few rows have thin data: their positions are shorter than the column
        positions: list[int] = np.flatnonzero(values).tolist()
        return positions
    numbers = short_numbers(values, DIGITS)
    if name in RANK_COLUMNS:
        return [None if number == 0 else number for number in numbers]  # 0 stands for no rank
    return numbers
