"""Cells of data files as text: labels, missing values and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Longer group and item labels are refused: NumPy gives every string the width of the longest.
MAX_LABEL = 256

#: Cells, in small letters, that stand for a value that is not there.
MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})

#: Cells, in small letters, that stand for a gap among numbers, but may be a value among words.
GAPS = frozenset(
    {"-", "--", "---", "–", "—", "?", ".", "n.a.", "nil", "missing", "unknown", "\\n", "(null)"}
    | {"#n/a", "#na", "#null!", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "-nan"}
)

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def shown_value(token: str | bytes, limit: int = 40) -> str:
    r"""Quote a token for an error message: printable, and never longer than a line.

    Examples
    --------
    >>> shown_value(b"caf\xe9")
    "'caf\\xe9'"
    >>> shown_value("x" * 1000, limit=5)
    "'xxxxx...'"
    """
    cut = token[:limit]
    quoted = repr(cut)[2:-1] if isinstance(cut, bytes) else cut
    quoted = quoted if quoted.isprintable() else ascii(quoted)[1:-1]
    return f"'{quoted}...'" if len(token) > limit else f"'{quoted}'"


def finite_number(token: str | bytes) -> float | None:
    """The number that a token spells, or None if it spells none or not a finite one.

    Python also reads ``1_000`` as a number; no other program does, so this function does not.

    Examples
    --------
    >>> finite_number("2.5"), finite_number("NULL"), finite_number(b"inf"), finite_number("1_0")
    (2.5, None, None, None)
    """
    try:
        value = float(token)
    except ValueError:
        return None
    underscore = "_" in token if isinstance(token, str) else b"_" in token
    return None if underscore or not math.isfinite(value) else value


def distinct_labels(tokens: Sequence[str], *, canonical: bool = False) -> NDArray[Any]:
    """Labels as int64 if every one of them is a whole number of 64 bits, else as strings.

    Parameters
    ----------
    tokens : sequence of str
        The labels as they are spelled in the file.
    canonical : bool, default=False
        If True, a label such as ``007`` is no number, so that it stays distinct from ``7``.

    Examples
    --------
    >>> distinct_labels(["7", "9007199254740993"])
    array([               7, 9007199254740993])
    >>> distinct_labels(["7", "q8"])
    array(['7', 'q8'], dtype='<U2')
    """
    if all(_INTEGER.fullmatch(token) for token in tokens):
        values = [int(token) for token in tokens]
        fits = all(-(2**63) <= value < 2**63 for value in values)
        if fits and not (
            canonical and any(str(v) != t for v, t in zip(values, tokens, strict=True))
        ):
            return np.array(values, dtype=np.int64)
    return np.array(tokens, dtype=np.str_)


def as_text(value: Any) -> str:
    """A label as text: nothing for a gap, and a float that is whole without its point."""
    if is_gap(value):
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def is_gap(value: Any) -> bool:
    """Whether a value is None, NaN, or what pandas has for a gap."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
