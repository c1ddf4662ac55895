"""What the words in a column of outcomes mean: the first side won, the second, or neither."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rankwise.datasets.labels import finite_number

FIRST, SECOND, TIE = 1, -1, 0

#: Words that everybody understands, beside the names of the two columns and of the items.
WORDS = {
    FIRST: ("model_a", "left", "first", "a", "home", "win", "wins", "won", "true", "1-0", "a>b",
            "a>>b", "b<a"),
    SECOND: ("model_b", "right", "second", "b", "away", "loss", "loses", "lost", "lose", "false",
             "0-1", "b>a", "b>>a", "a<b"),
    TIE: ("tie", "tied", "draw", "drawn", "equal", "same", "both", "neither", "ties",
          "both bad", "both good", "both are bad", "tie both bad", "1/2-1/2", "½-½", "a=b"),
}  # fmt: skip
_SIDES = {"a": FIRST, "1": FIRST, "b": SECOND, "2": SECOND}
_NUMBERED = re.compile(
    r"(model|response|answer|assistant|output|option|item|player|team|side|candidate|system)([ab12])"
)
_LETTERS = (  # single letters mean something only together
    ({"h", "a"}, {"h": FIRST, "d": TIE, "a": SECOND}),
    ({"w", "l"}, {"w": FIRST, "d": TIE, "t": TIE, "l": SECOND}),
    ({"l", "r"}, {"l": FIRST, "d": TIE, "t": TIE, "r": SECOND}),
)
_CODES = (  # how numbers are used; the first that holds all numbers of the column
    {1.0: FIRST, 0.0: SECOND, 0.5: TIE},
    {1.0: FIRST, -1.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.5: TIE},
)


def _plain(word: str) -> str:
    """Small letters, without blanks, underscores and parentheses."""
    return re.sub(r"[\s_()]+", "", word.lower())


_MEANING = {_plain(word): side for side, words in WORDS.items() for word in words}


def _meaning(word: str) -> int | None:
    numbered = _NUMBERED.fullmatch(word.replace("-", ""))
    return _SIDES[numbered[2]] if numbered else _MEANING.get(word)


def meanings(words: Sequence[str]) -> list[int | None]:
    """Side of each distinct word of a column, None where it is unknown.

    A number is read together with the others: 1, 0, 0.5 are points of the first side; in -1, 0, 1
    and in 0, 1, 2 the zero is a tie. A column of zeros alone says nothing. So are single letters:
    H, D, A; W, D, L; L, T, R.

    Examples
    --------
    >>> meanings(["Left", "right", "both bad", "maybe"])
    [1, -1, 0, None]
    >>> meanings(["1", "0"]), meanings(["1", "0", "2"]), meanings(["H", "D", "A"])
    ([1, -1], [1, 0, -1], [1, 0, -1])
    >>> meanings(["Model A", "model-b", "Tie (both bad)"]), meanings(["W", "L", "D"])
    ([1, -1, 0], [1, -1, 0])
    """
    small = [_plain(word) for word in words]
    letters = {word for word in small if len(word) == 1 and word.isalpha()}
    together = next((m for key, m in _LETTERS if key <= letters <= set(m)), {})
    numbers = [finite_number(word) for word in small]
    values = {value for value in numbers if value is not None}
    code: dict[float, int] = {}
    if values - {0.0}:
        code = next((c for c in _CODES if values <= set(c)), {})
    return [
        together.get(word, _meaning(word)) if value is None else code.get(value)
        for word, value in zip(small, numbers, strict=True)
    ]
