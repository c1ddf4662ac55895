"""One row of a file of comparisons: who won, who lost, by how much, and what is wrong with it."""

from __future__ import annotations

from typing import NamedTuple

from rankwise.datasets.battles import outcome
from rankwise.datasets.labels import MAX_LABEL, finite_number, show
from rankwise.errors import LetorFormatError

__all__ = ["Comparison", "PairColumns", "read_comparison"]

_TRUE = frozenset({"1", "1.0", "true", "yes", "y", "t", "tie", "draw"})
_FALSE = frozenset({"", "0", "0.0", "false", "no", "n", "f"})


class PairColumns(NamedTuple):
    """Header of the file, and where in it the columns are that are used.

    With `sides`, `winner` says which of the two sides won, and `loser` is not used.
    """

    path: str
    names: list[str]
    winner: int
    loser: int
    magnitude: int | None
    weight: int | None
    tie: int | None
    group: int | None
    sides: tuple[int, int] | None


class Comparison(NamedTuple):
    """What a row says."""

    winner: str
    loser: str
    magnitude: float
    weight: float
    group: str


def read_comparison(columns: PairColumns, row: list[str], line: int) -> Comparison:
    """Take a row apart.

    Raises
    ------
    LetorFormatError
        If a cell is not what it should be.
    """
    try:
        winner, loser, is_drawn = _ends(columns, row)
        return Comparison(
            winner,
            loser,
            _magnitude(columns, row, is_drawn),
            _weight(columns, row),
            _label("group", row[columns.group]) if columns.group is not None else "",
        )
    except _BadCell as bad:
        raise LetorFormatError(columns.path, line, str(bad)) from None


class _BadCell(Exception):
    """What is wrong with a cell, in words for the user."""


def _ends(columns: PairColumns, row: list[str]) -> tuple[str, str, bool]:
    """Winner, loser, and whether the column of winners says that it is a tie."""
    is_drawn = False
    if columns.sides is None:
        winner, loser = _label("winner", row[columns.winner]), _label("loser", row[columns.loser])
    else:
        first, second = columns.sides
        names = (columns.names[first], columns.names[second])
        labels = (_label(names[0], row[first]), _label(names[1], row[second]))
        _refuse_self(*labels)
        try:
            side, is_drawn = outcome(_label("winner", row[columns.winner]), names, labels)
        except ValueError as error:
            raise _BadCell(str(error)) from None
        winner, loser = labels[side], labels[1 - side]
    _refuse_self(winner, loser)
    return winner, loser, is_drawn


def _refuse_self(winner: str, loser: str) -> None:
    if winner == loser:
        raise _BadCell(f"{show(winner)} is compared with itself. Leave out the row.")


def _label(role: str, cell: str) -> str:
    label = cell.strip()
    if not label:
        raise _BadCell(f"the {role} is empty. Give it a label, or leave out the row.")
    if len(label) > MAX_LABEL:
        raise _BadCell(
            f"the {role} {show(label)} has {len(label)} characters, at most {MAX_LABEL}."
        )
    return label


def _magnitude(columns: PairColumns, row: list[str], is_drawn: bool) -> float:
    is_tie = is_drawn or (columns.tie is not None and _truth(row[columns.tie]))
    if columns.magnitude is None or (is_tie and not row[columns.magnitude].strip()):
        return 0.0 if is_tie else 1.0
    magnitude = _number("magnitude", row[columns.magnitude])
    if magnitude < 0:
        raise _BadCell(
            f"the magnitude is {magnitude:g}, expected 0 (a tie) or more. "
            "Swap winner and loser instead."
        )
    if is_tie and magnitude > 0:
        raise _BadCell(
            f"the row is a tie, but its magnitude is {magnitude:g}. "
            "Write the magnitude 0 or leave it empty, or correct the tie."
        )
    return magnitude


def _truth(cell: str) -> bool:
    word = cell.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise _BadCell(f"the tie is {show(cell)}, expected 1 or 0, true or false, yes or no.")


def _weight(columns: PairColumns, row: list[str]) -> float:
    if columns.weight is None:
        return 1.0
    weight = _number("weight", row[columns.weight])
    if weight <= 0:
        raise _BadCell(f"the weight is {weight:g}, expected more than 0. Leave out the row.")
    return weight


def _number(role: str, text: str) -> float:
    value = finite_number(text.strip())
    if value is None:
        raise _BadCell(f"the {role} is {show(text)}, expected a finite number such as 1 or 0.5.")
    return value
