"""Numbers with a unit among a few words: "SR 1,395", "$12", "1.234,50 €", "No old price"."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

LEAST_SHARE = 0.8  # of the cells that spell a number with the unit of the column
MOST_WORDS = 3  # distinct texts without a number that count as missing

_CURRENCY = "[$€£¥₹₽₩₺]"
_PREFIX = rf"{_CURRENCY}|[A-Z]{{1,3}}{_CURRENCY}|[A-Z]{{2,3}}(?=\s)|Rs\.?(?=\s)"
_SUFFIX = rf"{_CURRENCY}|[A-Z]{{3}}|[a-zµ°][a-zA-Z²³/]{{0,3}}|%"
_BLANKS = "\\s\xa0\u202f'"
_DIGITS = rf"\d(?:[\d.,{_BLANKS}]*\d)?"
_QUANTITY = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<prefix>{_PREFIX})?\s?(?P<inner>[+-]?)(?P<digits>{_DIGITS})"
    rf"\s?(?P<suffix>{_SUFFIX})?"
)
_SPELLED = re.compile(r"(?P<prefix>\D*)1(?P<decimal>[.,])5(?P<suffix>\D*)")


class NumberFormat(NamedTuple):
    """How the numbers of a column are written.

    Attributes
    ----------
    prefix, suffix : str
        The unit, in front of the digits or behind them; one of them may be empty.
    decimal : {".", ","}
        The decimal separator; the other one separates thousands.
    """

    prefix: str
    decimal: str
    suffix: str

    def __str__(self) -> str:
        """The number 1.5 in this format, from which `read_format` restores it."""
        return f"{self.prefix}1{self.decimal}5{self.suffix}"


def read_format(text: str) -> NumberFormat:
    """Restore a format from its text.

    Examples
    --------
    >>> read_format("SR1.5")
    NumberFormat(prefix='SR', decimal='.', suffix='')
    """
    match = _SPELLED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number format; expected 1.5 or 1,5 with a unit.")
    return NumberFormat(match["prefix"], match["decimal"], match["suffix"])


def is_format(text: str) -> bool:
    """Whether a text is one of a format, or empty for numbers without a unit."""
    return text == "" or _SPELLED.fullmatch(text) is not None


def find_format(texts: Sequence[str]) -> NumberFormat | None:
    """Find the format of a column of numbers with one unit and at most three words.

    Parameters
    ----------
    texts : sequence of str
        The cells that are not missing.

    Returns
    -------
    NumberFormat or None
        None if fewer than 80% of the cells are numbers with the most frequent unit, if the other
        cells have more than three distinct texts, or if one of these texts has a digit.

    Examples
    --------
    >>> find_format(["SR 1,395", "SR 250", "SR 99.50", "SR 10", "No old price"])
    NumberFormat(prefix='SR', decimal='.', suffix='')
    >>> find_format(["1.234,50 €", "80 €"])
    NumberFormat(prefix='', decimal=',', suffix='€')
    """
    matches = [_QUANTITY.fullmatch(text.strip()) for text in texts]
    units = [(match["prefix"] or "", match["suffix"] or "") for match in matches if match]
    units = [unit for unit in units if any(unit)]
    if not units:
        return None
    unit = Counter(units).most_common(1)[0][0]
    numbers, others = [], set()
    for text, match in zip(texts, matches, strict=True):
        if match and (match["prefix"] or "", match["suffix"] or "") == unit:
            numbers.append(match)
        else:
            others.add(text.strip())
    has_digit = any(re.search(r"\d", text) for text in others)
    if len(numbers) < LEAST_SHARE * len(texts) or len(others) > MOST_WORDS or has_digit:
        return None
    decimal = _decimal([match["digits"] for match in numbers])
    found = NumberFormat(unit[0], decimal, unit[1])
    is_readable = all(not math.isnan(parse_quantity(match[0], found)) for match in numbers)
    return found if is_readable else None


def _decimal(digits: Sequence[str]) -> str:
    """The decimal separator of the numbers; a point if they do not show it."""
    for text in digits:
        last = max(text.rfind("."), text.rfind(","))
        if "." in text and "," in text:
            return text[last]
    has_decimal_comma = any(
        "," in text and not re.fullmatch(r"\d{1,3}(,\d{3})+", text) for text in digits
    )
    has_thousands_point = any(text.count(".") > 1 for text in digits)
    return "," if has_decimal_comma or has_thousands_point else "."


def parse_quantity(text: str, format: NumberFormat) -> float:
    """The number that a text spells in a format; NaN for a word, another unit or another form.

    Examples
    --------
    >>> dollars = NumberFormat("$", ".", "")
    >>> parse_quantity("-$1,200.50", dollars), parse_quantity("€ 3", dollars)
    (-1200.5, nan)
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return math.nan
    if (match["prefix"] or "", match["suffix"] or "") != (format.prefix, format.suffix):
        return math.nan
    thousands = "," if format.decimal == "." else "."
    point = re.escape(format.decimal)
    between = rf"[{_BLANKS}{thousands}]"
    number = rf"(?:\d+|\d{{1,3}}(?:{between}\d{{3}})+)(?:{point}\d+)?"
    if re.fullmatch(number, match["digits"]) is None:
        return math.nan
    plain = re.sub(between, "", match["digits"]).replace(format.decimal, ".")
    is_negative = "-" in (match["sign"], match["inner"])
    return -float(plain) if is_negative else float(plain)
