"""Words of files of comparisons: names of columns, and who won."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rankwise.datasets.vocabulary import MISSING, finite_number

FIRST, SECOND, TIE = 1, -1, 0

#: Usual names of columns, in small letters and without blanks and underscores.
NOUNS = (
    *("model", "response", "answer", "assistant", "output", "option", "item", "player", "team"),
    *("side", "candidate", "system"),
)
SIDES = (
    *(("first", "second"), ("left", "right"), ("home", "away"), ("hometeam", "awayteam")),
    *((f"{noun}a", f"{noun}b") for noun in ("", *NOUNS)),
    *((f"{noun}1", f"{noun}2") for noun in NOUNS),
)
OUTCOMES = (("outcome",), ("winner",), ("result",), ("better",), ("ftr",))
SCORES = (("homescore", "awayscore"), ("homegoals", "awaygoals"), ("fthg", "ftag"))

#: Words, in small letters, for an item that took part and has no place: it is below all that have.
UNPLACED = MISSING | {
    *("dnf", "dsq", "dq", "ret", "nc", "unplaced", "r", "d", "-", "–"),
    *("did not finish", "disqualified", "retired", "not classified"),
}

#: Names of columns, without numbers, blanks and underscores, that say which person voted.
PEOPLE = frozenset(
    {"annotator", "assessor", "customer", "evaluator", "expert", "grader", "judge", "juror"}
    | {"labeler", "labeller", "member", "panelist", "participant", "person", "rater"}
    | {"respondent", "reviewer", "scorer", "student", "subject", "taster", "tester", "user"}
    | {"voter", "worker"}
)

IS_TIE = frozenset({"1", "1.0", "true", "yes", "y", "t", "tie", "draw"})
IS_NO_TIE = frozenset({"", "0", "0.0", "false", "no", "n", "f"})

#: Words that everybody understands, beside the names of the two columns and of the items.
WORDS = {
    FIRST: ("model_a", "left", "first", "a", "home", "home_team", "win", "wins", "won", "true",
            "1-0", "a>b", "a>>b", "b<a"),
    SECOND: ("model_b", "right", "second", "b", "away", "away_team", "loss", "loses", "lost",
             "lose", "false", "0-1", "b>a", "b>>a", "a<b"),
    TIE: ("tie", "tied", "draw", "drawn", "equal", "same", "both", "neither", "ties",
          "both bad", "both good", "both are bad", "tie both bad", "1/2-1/2", "½-½", "a=b",
          "[[c]]"),
}  # fmt: skip
EXAMPLES = WORDS[FIRST][1:4] + WORDS[SECOND][1:4] + WORDS[TIE][2:5:2]
_SIDES = {"a": FIRST, "1": FIRST, "b": SECOND, "2": SECOND}
_NUMBERED = re.compile(rf"({'|'.join(NOUNS)})([ab12])")
_LETTERS = (  # single letters mean something only together; the first set of each tells them
    (({"h"}, {"d", "a"}), {"h": FIRST, "d": TIE, "a": SECOND}),
    (({"w"},), {"w": FIRST, "d": TIE, "t": TIE, "l": SECOND}),
    (({"r"},), {"l": FIRST, "d": TIE, "t": TIE, "r": SECOND}),
    (({"x"},), {"x": TIE}),  # beside 1 and 2
)
_CODES = (  # how numbers are used; the first that holds all numbers of the column
    {1.0: FIRST, 0.0: SECOND, 0.5: TIE},
    {1.0: FIRST, -1.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.5: TIE},
    {1.0: FIRST, 2.0: SECOND, 1.5: TIE},
)


def is_person(name: str) -> bool:
    """Whether a column's name says that it holds people: judge, user_id, "Taster ID".

    Examples
    --------
    >>> is_person("user_id"), is_person("Taster"), is_person("course"), is_person("id")
    (True, True, False, False)
    """
    letters = re.sub(r"[^a-z]", "", name.lower())
    return letters in PEOPLE or letters.removesuffix("id") in PEOPLE


def _plain(word: str) -> str:
    """Small letters, without blanks, underscores and parentheses."""
    return re.sub(r"[\s_()]+", "", word.lower())


_MEANING = {_plain(word): side for side, words in WORDS.items() for word in words}


def _meaning(word: str) -> int | None:
    """Side that a word names: also in double brackets, and with "wins" behind it."""
    bare = re.sub(r"^\[\[(.+)\]\]$", r"\1", word).replace("-", "")
    side = re.sub(r"(?<=.)(wins?|won)$", "", bare)
    numbered = _NUMBERED.fullmatch(side)
    if numbered:
        return _SIDES[numbered[2]]
    return _MEANING.get(word, _MEANING.get(bare, _MEANING.get(side)))


def meanings(words: Sequence[str]) -> list[int | None]:
    """Side of each distinct word of a column, None where it is unknown.

    A number is read together with the others: 1, 0, 0.5 are points of the first side; in -1, 0, 1
    and in 0, 1, 2 the zero is a tie. A column of zeros alone says nothing. So are single letters:
    H, D, A; W, D, L; L, T, R; and 1, X, 2.

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
    numbers = [finite_number(word) for word in small]
    values = {value for value in numbers if value is not None}
    together: dict[str, int] = {}
    for telling, letter_meanings in _LETTERS:
        if any(some <= letters for some in telling) and letters <= set(letter_meanings):
            together = letter_meanings
            break
    code: dict[float, int] = {}
    if values - {0.0}:
        code = next((c for c in _CODES if values <= set(c)), {})
    return [
        together.get(word, _meaning(word)) if value is None else code.get(value)
        for word, value in zip(small, numbers, strict=True)
    ]
