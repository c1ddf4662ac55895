"""What the words in a column of outcomes mean: the first side won, the second, or neither."""

from __future__ import annotations

from collections.abc import Sequence

from rankwise.datasets.labels import finite_number

__all__ = ["FIRST", "SECOND", "TIE", "WORDS", "meanings"]

FIRST, SECOND, TIE = 1, -1, 0

#: Words that everybody understands, beside the names of the two columns and of the items.
WORDS = {
    FIRST: ("model_a", "left", "first", "a", "home", "win", "won", "true"),
    SECOND: ("model_b", "right", "second", "b", "away", "loss", "lost", "lose", "false"),
    TIE: ("tie", "tied", "draw", "drawn", "equal", "same", "both", "neither", "bothbad",
          "both bad", "both_bad", "tie (bothbad)", "tie (both bad)", "both good"),
}  # fmt: skip
_MEANING = {word: side for side, words in WORDS.items() for word in words}
_FOOTBALL = {"h": FIRST, "d": TIE, "a": SECOND}
_CODES = (  # how numbers are used; the first that holds all numbers of the column
    {1.0: FIRST, 0.0: SECOND, 0.5: TIE},
    {1.0: FIRST, -1.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.5: TIE},
)


def meanings(words: Sequence[str]) -> list[int | None]:
    """Side of each distinct word of a column, None where it is unknown.

    A number is read together with the others: 1, 0, 0.5 are points of the first side; in -1, 0, 1
    and in 0, 1, 2 the zero is a tie. A column of zeros alone says nothing.

    Examples
    --------
    >>> meanings(["Left", "right", "both bad", "maybe"])
    [1, -1, 0, None]
    >>> meanings(["1", "0"]), meanings(["1", "0", "2"]), meanings(["H", "D", "A"])
    ([1, -1], [1, 0, -1], [1, 0, -1])
    """
    small = [word.strip().lower() for word in words]
    known = _MEANING | (_FOOTBALL if "h" in small and "b" not in small else {})
    numbers = [finite_number(word) for word in small]
    values = {value for value in numbers if value is not None}
    code: dict[float, int] = {}
    if values - {0.0}:
        code = next((c for c in _CODES if values <= set(c)), {})
    return [
        known.get(word) if value is None else code.get(value)
        for word, value in zip(small, numbers, strict=True)
    ]
