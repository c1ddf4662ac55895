"""Labels and numbers in the form in which pages contain them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

MAX_TEXT = 80
"""Characters of a label."""
MAX_EXACT_INTEGER = 1e15


def as_text(value: object, max_characters: int = MAX_TEXT) -> str:
    """Convert a label to text that UTF-8 can encode, with at most `max_characters`."""
    if isinstance(value, np.generic):
        value = value.item()
    # "backslashreplace": UTF-8 cannot encode single surrogates.
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) > max_characters:
        return text[: max_characters - 1] + "…"
    return text


def short_numbers(values: ArrayLike, digits: int = 5) -> list[float | int | None]:
    """Round numbers to significant digits; integers where possible, None for NaN and infinity."""
    floats = np.asarray(values, dtype=np.float64).ravel().tolist()
    return [_short_number(value, digits) for value in floats]


def _short_number(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) < MAX_EXACT_INTEGER and rounded.is_integer():
        return int(rounded)
    return rounded
