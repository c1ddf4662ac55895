"""Words of files of comparisons: names of columns, and who won."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rankwise.datasets.vocabulary import MISSING, finite_number

FIRST = 1
SECOND = -1
TIE = 0

# Usual names of columns, in lower case and without spaces and underscores.
NOUNS = (
    "model",
    "response",
    "answer",
    "assistant",
    "output",
    "option",
    "item",
    "player",
    "team",
    "side",
    "candidate",
    "system",
)
SIDES = (
    ("first", "second"),
    ("left", "right"),
    ("home", "away"),
    ("hometeam", "awayteam"),
    *((f"{noun}a", f"{noun}b") for noun in ("", *NOUNS)),
    *((f"{noun}1", f"{noun}2") for noun in NOUNS),
)
OUTCOMES = (("outcome",), ("winner",), ("result",), ("better",), ("ftr",))
SCORES = (("homescore", "awayscore"), ("homegoals", "awaygoals"), ("fthg", "ftag"))

# Words, in lower case, for an item that took part and has no place: it is below all places.
UNPLACED = MISSING | {
    "dnf",
    "dsq",
    "dq",
    "ret",
    "nc",
    "unplaced",
    "r",
    "d",
    "-",
    "–",
    "did not finish",
    "disqualified",
    "retired",
    "not classified",
}

# Names of columns, without digits, spaces and underscores, that contain the person who voted.
PEOPLE = frozenset(
    {
        "annotator",
        "assessor",
        "customer",
        "evaluator",
        "expert",
        "grader",
        "judge",
        "juror",
        "labeler",
        "labeller",
        "member",
        "panelist",
        "participant",
        "person",
        "rater",
        "respondent",
        "reviewer",
        "scorer",
        "student",
        "subject",
        "taster",
        "tester",
        "user",
        "voter",
        "worker",
    }
)

IS_TIE = frozenset({"1", "1.0", "true", "yes", "y", "t", "tie", "draw"})
IS_NO_TIE = frozenset({"", "0", "0.0", "false", "no", "n", "f"})

# Words for the outcome, in addition to the names of the two columns and of the items.
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
_SIDE_OF_MARK = {"a": FIRST, "1": FIRST, "b": SECOND, "2": SECOND}
_NUMBERED_SIDE = re.compile(rf"({'|'.join(NOUNS)})([ab12])")


class LetterCode(NamedTuple):
    """Single letters for outcomes, which have a meaning only together.

    Attributes
    ----------
    required : tuple of set of str
        The code is in use if all letters of one of these sets occur.
    meaning : dict from str to int
        Outcome of each letter; no other letters may occur.
    """

    required: tuple[set[str], ...]
    meaning: dict[str, int]


_LETTER_CODES = (  # the first code that applies is used
    LetterCode(({"h"}, {"d", "a"}), {"h": FIRST, "d": TIE, "a": SECOND}),
    LetterCode(({"w"},), {"w": FIRST, "d": TIE, "t": TIE, "l": SECOND}),
    LetterCode(({"r"},), {"l": FIRST, "d": TIE, "t": TIE, "r": SECOND}),
    LetterCode(({"x"},), {"x": TIE}),  # together with 1 and 2
)
_NUMBER_CODES = (  # the first code that has all numbers of the column is used
    {1.0: FIRST, 0.0: SECOND, 0.5: TIE},
    {1.0: FIRST, -1.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.0: TIE},
    {1.0: FIRST, 2.0: SECOND, 0.5: TIE},
    {1.0: FIRST, 2.0: SECOND, 1.5: TIE},
)


def is_person(name: str) -> bool:
    """Whether the name of a column suggests that it contains people: judge, user_id, "Taster ID".

    Examples
    --------
    >>> is_person("user_id"), is_person("Taster"), is_person("course"), is_person("id")
    (True, True, False, False)
    """
    letters_of_name = re.sub(r"[^a-z]", "", name.lower())
    return letters_of_name in PEOPLE or letters_of_name.removesuffix("id") in PEOPLE


def _plain_word(word: str) -> str:
    """Return a word in lower case, without spaces, underscores and parentheses."""
    return re.sub(r"[\s_()]+", "", word.lower())


_OUTCOME_OF_WORD = {
    _plain_word(word): outcome for outcome, words in WORDS.items() for word in words
}


def outcomes_of_words(words: Sequence[str]) -> list[int | None]:
    """Return the outcome that each distinct word of a column denotes, None if unknown.

    The meaning of a number depends on the other numbers: 1, 0, 0.5 are points of the first side; in
    -1, 0, 1 and in 0, 1, 2 the zero is a tie. A column of zeros alone has no meaning. The meaning
    of single letters depends on the other letters: H, D, A; W, D, L; L, T, R; and 1, X, 2.

    Examples
    --------
    >>> outcomes_of_words(["Left", "right", "both bad", "maybe"])
    [1, -1, 0, None]
    >>> outcomes_of_words(["1", "0"]), outcomes_of_words(["1", "0", "2"])
    ([1, -1], [1, 0, -1])
    >>> outcomes_of_words(["H", "D", "A"]), outcomes_of_words(["W", "L", "D"])
    ([1, 0, -1], [1, -1, 0])
    >>> outcomes_of_words(["Model A", "model-b", "Tie (both bad)"])
    [1, -1, 0]
    """
    # The meaning of a number or a letter depends on the column: 0 together with 1 is the second
    # side, together with 1 and 2 a tie.
    plain_words = [_plain_word(word) for word in words]
    numbers = [finite_number(word) for word in plain_words]
    outcome_of_number = _outcomes_of_numbers({n for n in numbers if n is not None})
    outcome_of_letter = _outcomes_of_letters(plain_words)
    outcomes = []
    for word, number in zip(plain_words, numbers, strict=True):
        if number is not None:
            outcomes.append(outcome_of_number.get(number))
        elif word in outcome_of_letter:
            outcomes.append(outcome_of_letter[word])
        else:
            outcomes.append(_outcome_of_word(word))
    return outcomes


def _outcomes_of_letters(words: Sequence[str]) -> dict[str, int]:
    """Return the meaning of the single letters among the words; empty if they have none."""
    letters = {word for word in words if len(word) == 1 and word.isalpha()}
    if not letters:
        return {}
    for code in _LETTER_CODES:
        has_required_letters = any(required <= letters for required in code.required)
        has_other_letters = bool(letters - code.meaning.keys())
        if has_required_letters and not has_other_letters:
            return code.meaning
    return {}


def _outcomes_of_numbers(numbers: set[float]) -> dict[float, int]:
    """Return the meaning of the numbers of a column; empty if they have none."""
    has_only_zeros = numbers <= {0.0}  # a lost game or a tie
    if has_only_zeros:
        return {}
    for outcome_of_number in _NUMBER_CODES:
        if numbers <= outcome_of_number.keys():
            return outcome_of_number
    return {}


def _outcome_of_word(word: str) -> int | None:
    """Return the outcome of one word, also if it is written as ``[[A]]`` or followed by "wins"."""
    without_brackets = re.sub(r"^\[\[(.+)\]\]$", r"\1", word)
    without_hyphens = without_brackets.replace("-", "")  # "model-a"
    without_verb = re.sub(r"(?<=.)(wins?|won)$", "", without_hyphens)  # "model_a wins"
    noun_and_mark = _NUMBERED_SIDE.fullmatch(without_verb)  # such as "model" and "a"
    if noun_and_mark:
        return _SIDE_OF_MARK[noun_and_mark[2]]
    for spelling in (word, without_hyphens, without_verb):
        if spelling in _OUTCOME_OF_WORD:
            return _OUTCOME_OF_WORD[spelling]
    return None
