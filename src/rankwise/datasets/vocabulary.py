"""Cells of data files as text: labels, missing values and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from rankwise.arrays import Labels

MAX_LABEL = 256  # longer labels are refused: NumPy gives every string the width of the longest

#: Cells, in lower case, that mark a missing value.
MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})

#: Cells, in lower case, that mark a missing value among numbers, but may be a value among words.
GAPS = frozenset(
    {"-", "--", "---", "–", "—", "?", ".", "n.a.", "nil", "missing", "unknown", "\\n", "(null)"}
    | {"#n/a", "#na", "#null!", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "-nan"}
)

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def shown_value(token: str | bytes, limit: int = 40) -> str:
    r"""Quote a token for an error message: printable, and at most one line long.

    Examples
    --------
    >>> shown_value(b"caf\xe9")
    "'caf\\xe9'"
    >>> shown_value("x" * 1000, limit=5)
    "'xxxxx...'"
    """
    start = token[:limit]
    if isinstance(start, bytes):
        text = repr(start)[2:-1]  # with escapes, without b''
    else:
        text = start
    if not text.isprintable():
        text = ascii(text)[1:-1]  # with escapes, without quotation marks
    if len(token) > limit:
        text += "..."
    return f"'{text}'"


def finite_number(token: str | bytes) -> float | None:
    """Return the number that a token spells, or None if it is not a finite number.

    Python accepts underscores in numbers, such as ``1_000``. Other programs do not, so this
    function does not accept them either.

    Examples
    --------
    >>> finite_number("2.5"), finite_number("NULL"), finite_number(b"inf"), finite_number("1_0")
    (2.5, None, None, None)
    """
    try:
        value = float(token)
    except ValueError:
        return None
    # Python reads 1_000 as a number, other programs do not.
    if isinstance(token, str):
        has_underscore = "_" in token
    else:
        has_underscore = b"_" in token
    if has_underscore or not math.isfinite(value):
        return None
    return value


def distinct_labels(tokens: Sequence[str], *, canonical: bool = False) -> Labels:
    """Return labels as int64 if all of them are integers of 64 bits, else as strings.

    Parameters
    ----------
    tokens : sequence of str
        The labels as they are spelled in the file.
    canonical : bool, default=False
        If True, a label such as ``007`` is not an integer, so that it stays distinct from ``7``.

    Examples
    --------
    >>> distinct_labels(["7", "9007199254740993"])
    array([               7, 9007199254740993])
    >>> distinct_labels(["7", "q8"])
    array(['7', 'q8'], dtype='<U2')
    """
    integers = _as_integers(tokens)
    if integers is None:
        return np.array(tokens, dtype=np.str_)
    are_canonical = [str(integer) for integer in integers] == list(tokens)  # "007" is not
    if canonical and not are_canonical:
        return np.array(tokens, dtype=np.str_)
    return np.array(integers, dtype=np.int64)


def _as_integers(tokens: Sequence[str]) -> list[int] | None:
    """Return the integers that the tokens spell; None if one is not an integer of 64 bits."""
    if not all(_INTEGER.fullmatch(token) for token in tokens):
        return None
    integers = [int(token) for token in tokens]
    if not all(-(2**63) <= integer < 2**63 for integer in integers):
        return None
    return integers


def as_text(value: object) -> str:
    """Return a label as text: empty if it is missing; a whole float has no decimal point."""
    if is_gap(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def is_gap(value: object) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas."""
    # Only NaN differs from itself.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
