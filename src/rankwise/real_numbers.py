"""Real numbers from any input; what NumPy would misread without a warning is refused."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.frames import as_array


def refuse_masked(name: str, values: Any) -> None:
    """Raise a ValueError if entries of a masked array are masked: NumPy would use what is below."""
    if not np.ma.isMaskedArray(values):
        return
    rows: NDArray[Any] = np.ma.getmaskarray(values)
    if rows.dtype.names is not None:  # a target of make_target
        fields = [rows[field].reshape(len(rows), -1) for field in rows.dtype.names]
        rows = np.concatenate(fields, axis=1)
    if rows.any():
        first = int(np.argwhere(rows)[0][0]) if rows.ndim else 0
        raise ValueError(
            f"{name} is a masked array, and entries are masked, the first in row {first}; leave "
            f"those rows out, or give values with {name}.filled(...) (np.nan where a learner takes "
            "gaps)."
        )


def check_items(name: str, X: Any) -> None:
    """Raise a ValueError if an array has masked entries, dates, or fields instead of columns."""
    refuse_masked(name, X)
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") in ("m", "M", "V"):
        raise ValueError(
            f"{name} has dtype {dtype}; features are real numbers, so turn these into numbers "
            "(days since a date, for example) or leave them out."
        )


def as_real(name: str, values: Any, advice: str = "pass real numbers") -> Array:
    """Numbers as float64, of any shape; NaN and infinity are left to the caller.

    Refused are complex numbers, dates and durations, which NumPy would turn into numbers; masked
    entries; and whole numbers so large that different ones become equal. Missing entries (None,
    pandas.NA) are NaN. Columns and frames may be of pandas, polars or Arrow.
    """
    refuse_masked(name, values)
    array = np.asarray(as_array(values))
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")
    if array.dtype == object:
        array = np.array([_number(value) for value in array.flat], object).reshape(array.shape)
    try:
        if array.dtype.kind in "mMV":
            raise TypeError
        real = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} has dtype {array.dtype}, expected real numbers; {advice}."
        ) from None
    is_large = array.dtype.kind in "iu" and np.abs(real).max(initial=0.0) >= 2.0**53
    if is_large and len(np.unique(real)) < len(np.unique(array)):
        raise ValueError(
            f"{name} has whole numbers beyond 2**53, of which different ones become equal as "
            "float64; subtract a constant from all of them."
        )
    return real


def as_whole(name: str, value: Any, meaning: str) -> int:
    """A whole number from 0, which may be a NumPy integer but no bool, float or text."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not 0 <= value <= np.iinfo(np.intp).max:
        raise ValueError(f"{name}={value!r}; expected a whole number from 0, {meaning}.")
    return int(value)


def _number(value: Any) -> Any:
    """The value; NaN for pandas.NA, which NumPy does not know."""
    return np.nan if type(value).__name__ == "NAType" else value
