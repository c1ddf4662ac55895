"""Numbers with a unit among a few words: "SR 1,395", "$12", "1.234,50 €", "No old price"."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MIN_SHARE = 0.8  # of cells that are numbers with the unit of the column
MAX_WORDS = 3  # distinct texts without a number that are treated as missing

_CURRENCY = "[$€£¥₹₽₩₺]"
_PREFIX = rf"{_CURRENCY}|[A-Z]{{1,3}}{_CURRENCY}|[A-Z]{{2,3}}(?=\s)|Rs\.?(?=\s)"
_SUFFIX = rf"{_CURRENCY}|[A-Z]{{3}}|[a-zµ°][a-zA-Z²³/]{{0,3}}|%"
_BLANKS = "\\s\xa0\u202f'"
_DIGITS = rf"\d(?:[\d.,{_BLANKS}]*\d)?"
_QUANTITY = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<prefix>{_PREFIX})?\s?(?P<sign_after_unit>[+-]?)(?P<digits>{_DIGITS})"
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
        """Return the number 1.5 in this format; `read_format` restores the format from it."""
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
    """Whether a text represents a format; the empty text means numbers without a unit."""
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
    stripped_texts = [text.strip() for text in texts]
    unit = _most_frequent_unit(stripped_texts)
    if unit is None:
        return None
    quantities = []  # matches of numbers with the unit
    words = set()
    for text in stripped_texts:
        match = _QUANTITY.fullmatch(text)
        if match and _unit(match) == unit:
            quantities.append(match)
        else:
            words.add(text)
    if len(quantities) < MIN_SHARE * len(texts) or len(words) > MAX_WORDS:
        return None
    if any(re.search(r"\d", word) for word in words):
        return None

    prefix, suffix = unit
    decimal = _decimal_separator([match["digits"] for match in quantities])
    number_format = NumberFormat(prefix, decimal, suffix)
    values = [parse_quantity(match[0], number_format) for match in quantities]
    if any(math.isnan(value) for value in values):
        return None
    return number_format


def _most_frequent_unit(texts: Sequence[str]) -> tuple[str, str] | None:
    """Return the most frequent text around numbers; None if no number has a unit."""
    n_numbers_of_unit: Counter[tuple[str, str]] = Counter()
    for text in texts:
        match = _QUANTITY.fullmatch(text)
        if match and _unit(match) != ("", ""):
            n_numbers_of_unit[_unit(match)] += 1
    if not n_numbers_of_unit:
        return None
    most_frequent, _ = n_numbers_of_unit.most_common(1)[0]
    return most_frequent


def _unit(match: re.Match[str]) -> tuple[str, str]:
    """Return the text before and after the digits."""
    return match["prefix"] or "", match["suffix"] or ""


def _decimal_separator(digits: Sequence[str]) -> str:
    """Return the decimal separator of numbers; a point if the numbers are ambiguous."""
    for text in digits:
        if "." in text and "," in text:  # 1,234.5 or 1.234,5
            last_mark = max(text.rfind("."), text.rfind(","))
            return text[last_mark]
    for text in digits:
        commas_separate_thousands = re.fullmatch(r"\d{1,3}(,\d{3})+", text) is not None
        has_decimal_comma = "," in text and not commas_separate_thousands
        points_separate_thousands = text.count(".") > 1  # 1.234.567
        if has_decimal_comma or points_separate_thousands:
            return ","
    return "."


def parse_quantity(text: str, format: NumberFormat) -> float:
    """Parse a number in a format; NaN for words, other units and other formats.

    Examples
    --------
    >>> dollars = NumberFormat("$", ".", "")
    >>> parse_quantity("-$1,200.50", dollars), parse_quantity("€ 3", dollars)
    (-1200.5, nan)
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return math.nan
    if _unit(match) != (format.prefix, format.suffix):
        return math.nan
    thousands_mark = "."
    if format.decimal == ".":
        thousands_mark = ","
    thousands_separator = rf"[{_BLANKS}{thousands_mark}]"
    whole_part = rf"(?:\d+|\d{{1,3}}(?:{thousands_separator}\d{{3}})+)"
    fraction = rf"(?:{re.escape(format.decimal)}\d+)?"
    digits = match["digits"]
    if re.fullmatch(whole_part + fraction, digits) is None:
        return math.nan
    without_separators = re.sub(thousands_separator, "", digits)
    value = float(without_separators.replace(format.decimal, "."))
    is_negative = "-" in (match["sign"], match["sign_after_unit"])
    if is_negative:
        return -value
    return value
