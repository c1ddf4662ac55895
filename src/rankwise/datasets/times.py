"""Times of comparisons: dates or numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.datasets.vocabulary import as_text, finite_number, shown_value

_COMPACT_DATE = re.compile(r"(1[89]|20|21)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2}([ T][0-9:.]+)?)?(Z|[+]00:?00)?")
DAY = np.timedelta64(1, "D")


def read_times(texts: Sequence[str], error: Callable[[int, str], Exception]) -> NDArray[Any]:
    """Parse texts as dates (datetime64[s]) or as numbers.

    Dates have the form 2019-01-31, optionally with a time of day, or all have the form 20190131.
    Numbers have any unit, such as years or rounds. A column has one form.

    Parameters
    ----------
    texts : sequence of str
        The cells of a column.
    error : callable
        Returns the exception for the number of a text and a problem.
    """
    are_compact_dates = all(_COMPACT_DATE.fullmatch(text) for text in texts)
    if are_compact_dates:
        dates = [_parse_date(f"{text[:4]}-{text[4:6]}-{text[6:]}") for text in texts]
    else:
        dates = [_parse_date(text) for text in texts]
    if None not in dates:
        return np.array(dates, "datetime64[s]")
    numbers = [finite_number(text) for text in texts]
    if None not in numbers and not are_compact_dates:  # 20190231 is a wrong date, not a number
        return np.array(numbers, np.float64)

    has_dates = are_compact_dates or any(date is not None for date in dates)
    if has_dates:
        invalid = dates.index(None)
        expected = "a date such as 2019-01-31, as in other rows"
    else:
        invalid = numbers.index(None)
        expected = "a date or a number"
    raise error(
        invalid,
        f"the time is {shown_value(texts[invalid])}, expected {expected}. Write all dates as "
        "year-month-day; 01/02/2019 is ambiguous.",
    )


def _parse_date(text: str) -> np.datetime64 | None:
    """Parse a date; None if the text is not a date."""
    if not _DATE.fullmatch(text):
        return None
    without_time_zone = re.sub(r"(Z|[+]00:?00)$", "", text)
    try:
        return np.datetime64(without_time_zone.replace(" ", "T"), "s")
    except ValueError:
        return None


def as_times(values: Any, n_times: int, unit: str = "comparison") -> NDArray[Any]:
    """Return one time for each of some comparisons or rows, from dates, numbers or texts.

    Parameters
    ----------
    values : array-like of shape (n_times,)
        The times.
    n_times : int
        Number of comparisons or rows.
    unit : str, default="comparison"
        Name of the timed objects, for messages.
    """
    array = np.asarray(values)
    if array.shape != (n_times,):
        raise ValueError(
            f"time has shape {array.shape}, but there are {n_times} {unit}s; pass one for each."
        )
    if array.dtype.kind == "M" and not np.isnat(array).any():
        return array.astype("datetime64[s]")
    if array.dtype.kind in "iuf" and np.isfinite(array).all():
        return array.astype(np.float64)
    texts = [as_text(value) for value in array.tolist()]
    return read_times(texts, lambda k, problem: ValueError(f"{unit} {k}: {problem}"))


def in_days(times: NDArray[Any]) -> Array:
    """Return dates as days since 1970, and numbers unchanged."""
    if times.dtype.kind == "M":
        return np.asarray(times.astype("datetime64[s]").astype(np.int64) / 86400.0)
    return np.asarray(times, np.float64)
