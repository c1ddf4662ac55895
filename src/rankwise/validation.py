"""Checks of what a user passes: options, numbers, scores, weights and items."""

from __future__ import annotations

import difflib
import functools
import numbers
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.frames import as_array, refuse_masked

P = ParamSpec("P")

T = TypeVar("T")


def restored_on_failure(fit: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method that fits: if it raises, the estimator is what it was before.

    A fitted estimator still predicts after a refit that was refused or interrupted, and one that
    was not fitted is still not fitted.
    """

    @functools.wraps(fit)
    def fit_or_restore(*args: P.args, **kwargs: P.kwargs) -> T:
        estimator: Any = args[0]
        before = vars(estimator).copy()
        try:
            return fit(*args, **kwargs)
        except BaseException:  # KeyboardInterrupt, too
            estimator.__dict__ = before
            raise

    return fit_or_restore


def check_option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise a ValueError that lists the choices unless the value is one of them."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(
            f"{name}={value!r} is unknown; {suggestion(value, allowed)}choose one of {choices}."
        )


def suggestion(value: object, allowed: Sequence[str]) -> str:
    """Return ``"did you mean 'x'? "`` if some allowed word looks like `value`, else nothing."""
    words = {word.lower(): word for word in reversed(allowed)}
    close = difflib.get_close_matches(str(value).lower(), words, n=1)
    return f"did you mean {words[close[0]]!r}? " if close else ""


def reject_dtype(name: str, X: Any) -> None:
    """Raise a ValueError if an array has masked entries, dates, or fields instead of columns."""
    if np.ma.isMaskedArray(X):
        refuse_masked(name, X)
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") in ("m", "M", "V"):
        raise ValueError(
            f"{name} has dtype {dtype}; features are real numbers, so turn these into numbers "
            "(days since a date, for example) or leave them out."
        )


def as_objects(name: str, items: Any) -> NDArray[Any] | None:
    """Items that are no numbers, one in each row of a matrix of objects; None if they are numbers.

    Such items are texts, graphs or anything else that a kernel function compares: a list, a
    column, or a matrix of them.
    """
    values = as_array(items, name)
    if hasattr(values, "tocsr"):  # a sparse matrix
        return None
    try:
        plain = np.asarray(values)
    except ValueError:  # lists of different lengths
        plain = np.empty(0, dtype=object)
    if plain.dtype.kind not in "OUT":
        return None
    if isinstance(values, np.ndarray) and values.ndim == 2:
        objects = values.astype(object)
    else:
        objects = np.empty((len(values), 1), dtype=object)
        for row, value in enumerate(values):
            objects[row, 0] = str(value) if isinstance(value, str) else value
    missing = [row for row, entries in enumerate(objects) if any(_is_missing(e) for e in entries)]
    if missing:
        raise ValueError(
            f"{name} has {len(missing)} missing items, the first in row {missing[0]}; leave them "
            "out, or give an empty text."
        )
    return objects


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


def check_float_array(name: str, values: Any, advice: str = "pass real numbers") -> Array:
    """Numbers as float64, of any shape; NaN and infinity are left to the caller.

    Refused are complex numbers, dates and durations, which NumPy would turn into numbers; masked
    entries; and whole numbers so large that different ones become equal. Missing entries (None,
    pandas.NA) are NaN. Columns and frames may be of pandas, polars or Arrow.
    """
    array = np.asarray(as_array(values, name))
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")
    if array.dtype == object:
        entries = [np.nan if _is_missing(value) else value for value in array.flat]
        array = np.array(entries, dtype=object).reshape(array.shape)
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


def refuse_column_name(name: str, values: Any) -> None:
    """Raise a ValueError if a column's name was passed instead of its values."""
    if isinstance(values, str):
        raise ValueError(
            f'{name}={values!r} is the name of a column; pass its values: {name}=frame["{values}"].'
        )


def check_int(name: str, value: Any, meaning: str = "", least: int = 0) -> int:
    """A whole number of at least `least`; a NumPy integer, too, but no bool, float or text."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not least <= value <= np.iinfo(np.intp).max:
        expected = f"a whole number from {least}{meaning and ', '}{meaning}"
        raise ValueError(f"{name}={value!r}; expected {expected}.")
    return int(value)


def check_sample_weight(sample_weight: ArrayLike, n_items: int) -> Array:
    """Weights of items as in `check_weights`; a ValueError if all are 0."""
    weights = check_weights(sample_weight, n_items)
    if not weights.any():
        raise ValueError(
            "all sample weights are zero, so that no row counts; give a positive weight to the "
            "rows that do, or leave out sample_weight."
        )
    return weights


def check_weights(sample_weight: ArrayLike, n_items: int) -> Array:
    """Weights of items as float64: finite numbers of at least 0, one for each item.

    Only ratios count, so weights whose products would overflow or vanish are divided by a power of
    two near the largest.
    """
    weights = check_float_array("sample_weight", sample_weight)
    if weights.shape != (n_items,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but there are {n_items} rows; "
            f"pass one weight per row, shape ({n_items},)."
        )
    bad = ~(weights >= 0) | np.isinf(weights)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight[{row}] is {weights[row]}; weights must be 0 or larger, and finite. "
            "Give 0 to a row that should not count."
        )
    return rescale_weights("sample_weight", weights)


def rescale_weights(name: str, weights: Array) -> Array:
    """Weights whose products neither overflow nor vanish: as they are, or times a power of two."""
    positive = weights[weights > 0]
    smallest, largest = positive.min(initial=np.inf), positive.max(initial=0.0)
    if smallest < largest / 1e150:
        raise ValueError(
            f"{name} has values from {smallest:g} to {largest:g}; weights must be within a factor "
            "of 1e150. Give 0 to a row that should not count."
        )
    if smallest > 1e-100 and largest < 1e100:
        return weights
    return np.asarray(np.ldexp(weights, -np.frexp(largest)[1]))


def check_y(y: Any, *, allow_nan: bool = False) -> Array:
    """Finite real scores as float64, shape (n_items,) or (n_items, n_outputs).

    With `allow_nan` a score may be NaN, "not scored", as the semi-supervised learners take it. An
    array of float64 is not copied: the result is a view of it that cannot be written.
    """
    if y is None:
        raise ValueError(
            "this ranker requires y to be passed, but the target y is None; give scores, "
            "a target of make_target, or a preference graph."
        )
    if type(y) is np.ndarray and y.dtype == np.float64:
        scores = y.view()
        scores.flags.writeable = False
    else:
        advice = "map the labels to numbers so that a larger number means a better item"
        values = as_array(y, "y")
        is_array_like = isinstance(values, (list, tuple)) or hasattr(values, "__array__")
        if not is_array_like and not np.isscalar(values) and np.ndim(values) == 0:
            raise ValueError(
                f"y is a {type(y).__name__}; expected scores, a target of make_target, or a "
                "PreferenceGraph."
            )
        scores = check_float_array("y", values, advice)
    if scores.ndim not in (1, 2) or 0 in scores.shape:
        raise ValueError(
            f"y has shape {scores.shape}; expected one score per item, shape (n_items,), "
            "or several outputs, shape (n_items, n_outputs), and at least one item."
        )
    from sklearn.utils import assert_all_finite

    try:
        assert_all_finite(scores, allow_nan=allow_nan, input_name="y")
    except ValueError as error:
        bad = np.isinf(scores) if allow_nan else ~np.isfinite(scores)
        row = int(np.argmax(bad.reshape(len(scores), -1).any(axis=1)))
        raise ValueError(
            f"{error} The first such row is {row}; give every item a finite score or drop the row "
            "(only the semi-supervised learners take NaN, as 'not scored')."
        ) from None
    return scores


def check_alphas(alphas: ArrayLike, name: str) -> Array:
    """Finite numbers as an array of one dimension: positive alphas, or nus from 0."""
    is_nu = name.startswith("nu")
    expected = (
        "a finite number from 0 (the views are trained independently) upwards (they agree more "
        "and more)"
        if is_nu
        else "a positive finite number. For almost no regularization use a small value such as 1e-9"
    )
    try:
        checked = check_float_array(name, alphas)
    except ValueError:
        raise ValueError(f"{name}: got {alphas!r}, expected {expected}.") from None
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"{name} has shape {checked.shape}; expected a flat list of numbers.")
    bad = ~(np.isfinite(checked) & (checked >= 0 if is_nu else checked > 0))
    if bad.any():
        raise ValueError(f"{name}: got {checked[bad][0]}, expected {expected}.")
    return checked
