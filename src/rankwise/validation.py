"""Validation of arguments: options, numbers, scores, weights and items."""

from __future__ import annotations

import difflib
import functools
import numbers
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import AnyArray, Array, Mask
from rankwise.frames import as_array, refuse_masked

P = ParamSpec("P")

T = TypeVar("T")


def restored_on_failure(fit: Callable[P, T]) -> Callable[P, T]:
    """Decorate `fit`: if it raises, the attributes of the estimator are restored.

    A fitted estimator still predicts after a refit that failed or was interrupted, and an unfitted
    estimator remains unfitted.
    """

    @functools.wraps(fit)
    def fit_or_restore(*args: P.args, **kwargs: P.kwargs) -> T:
        estimator = args[0]
        attributes_before = vars(estimator).copy()
        try:
            return fit(*args, **kwargs)
        except BaseException:  # including KeyboardInterrupt
            vars(estimator).clear()
            vars(estimator).update(attributes_before)
            raise

    return fit_or_restore


def check_option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise a ValueError that lists the allowed values unless `value` is one of them."""
    if isinstance(value, str) and value in allowed:
        return
    choices = ", ".join(map(repr, allowed))
    raise ValueError(
        f"{name}={value!r} is unknown{suggestion(value, allowed)} Choose one of {choices}."
    )


def suggestion(value: object, allowed: Sequence[str]) -> str:
    """End a sentence with ``"; did you mean 'x'?"``, or with a point if no word is similar."""
    word_by_lowercase = {word.lower(): word for word in reversed(allowed)}
    closest = difflib.get_close_matches(str(value).lower(), word_by_lowercase, n=1)
    if not closest:
        return "."
    return f"; did you mean {word_by_lowercase[closest[0]]!r}?"


def reject_dtype(name: str, X: object) -> None:
    """Raise a ValueError if an array has masked entries, dates, or fields instead of columns."""
    if np.ma.isMaskedArray(X):
        refuse_masked(name, X)
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") in ("m", "M", "V"):
        raise ValueError(
            f"{name} has dtype {dtype}; features must be real numbers, so convert these to numbers "
            "(days since a date, for example) or drop them."
        )


def as_objects(name: str, items: object) -> AnyArray | None:
    """Items that are not numbers as a matrix of objects with one row per item; None for numbers.

    Such items are texts, graphs or other objects that a kernel function compares, in a list, a
    column or a matrix.
    """
    values = as_array(items, name)
    if hasattr(values, "tocsr"):  # a sparse matrix
        return None
    try:
        are_numbers = np.asarray(values).dtype.kind not in "OUT"  # objects and text
    except ValueError:  # lists of different lengths
        are_numbers = False
    if are_numbers:
        return None
    objects = _make_object_matrix(values)
    rows_with_missing = []
    for row, entries in enumerate(objects):
        if any(_is_missing(entry) for entry in entries):
            rows_with_missing.append(row)
    if rows_with_missing:
        raise ValueError(
            f"{name} has {len(rows_with_missing)} missing items, the first in row "
            f"{rows_with_missing[0]}; drop these rows, or replace missing items by an empty text."
        )
    return objects


def _make_object_matrix(items: AnyArray | Sequence[object]) -> AnyArray:
    """Items as a matrix of objects; a list becomes one column. Strings are strings of Python."""
    if isinstance(items, np.ndarray) and items.ndim == 2:
        return items.astype(object)
    objects = np.empty((len(items), 1), dtype=object)
    for row, item in enumerate(items):
        if isinstance(item, str):
            item = str(item)  # a string of NumPy becomes one of Python
        objects[row, 0] = item
    return objects


def _is_missing(value: object) -> bool:
    is_nan = isinstance(value, float) and value != value
    is_pandas_na = type(value).__name__ == "NAType"
    return value is None or is_nan or is_pandas_na


def check_float_array(name: str, values: object, advice: str = "pass real numbers") -> Array:
    """Convert numbers of any shape to float64; NaN and infinity are accepted.

    A ValueError is raised for complex numbers, for dates and durations, which NumPy would convert
    to numbers, for masked entries, and for integers so large that different integers become equal.
    Missing entries (None, pandas.NA) become NaN. Columns and frames of pandas, polars and Arrow are
    accepted.
    """
    array = np.asarray(as_array(values, name))
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must contain real numbers.")
    if array.dtype == object:
        entries = [np.nan if _is_missing(value) else value for value in array.flat]
        array = np.array(entries, dtype=object).reshape(array.shape)
    not_numbers = ValueError(f"{name} has dtype {array.dtype}, expected real numbers; {advice}.")
    if array.dtype.kind in "mMV":  # durations, dates and records
        raise not_numbers
    try:
        floats = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise not_numbers from None

    # Integers from 2**53 on are rounded; it matters only if different ones become equal.
    has_large_integers = array.dtype.kind in "iu" and np.abs(floats).max(initial=0.0) >= 2.0**53
    if has_large_integers and len(np.unique(floats)) < len(np.unique(array)):
        raise ValueError(
            f"{name} has integers beyond 2**53, and different integers become equal as float64; "
            "subtract a constant from all of them."
        )
    return floats


def refuse_column_name(name: str, values: object) -> None:
    """Raise a ValueError if a column's name was passed instead of its values."""
    if isinstance(values, str):
        raise ValueError(
            f'{name}={values!r} is the name of a column; pass its values: {name}=frame["{values}"].'
        )


def check_int(name: str, value: object, meaning: str = "", least: int = 0) -> int:
    """Check an integer of at least `least`; NumPy integers are accepted, bool and float are not."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
        if least <= number <= np.iinfo(np.intp).max:
            return number
    expected = f"a whole number from {least}"
    if meaning:
        expected += f", {meaning}"
    raise ValueError(f"{name}={value!r}; expected {expected}.")


def check_sample_weight(sample_weight: ArrayLike, n_items: int) -> Array:
    """Check weights of items as `check_weights` does; raise a ValueError if all are 0."""
    weights = check_weights(sample_weight, n_items)
    if not weights.any():
        raise ValueError(
            "all sample weights are zero, so no row counts; pass positive weights for the rows "
            "that should count, or no sample_weight."
        )
    return weights


def check_weights(sample_weight: ArrayLike, n_items: int) -> Array:
    """Check weights of items: finite numbers of at least 0, one for each item.

    Only ratios of weights matter. Weights whose products would overflow or underflow are divided
    by a power of two near the largest weight.
    """
    weights = check_float_array("sample_weight", sample_weight)
    if weights.shape != (n_items,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but there are {n_items} rows; "
            f"pass one weight per row, shape ({n_items},)."
        )
    is_invalid = ~(weights >= 0) | np.isinf(weights)  # NaN is not >= 0
    if is_invalid.any():
        row = int(np.argmax(is_invalid))
        raise ValueError(
            f"sample_weight[{row}] is {weights[row]}; weights must be 0 or larger, and finite. "
            "Set the weight of a row that should not count to 0."
        )
    return rescale_weights("sample_weight", weights)


def rescale_weights(name: str, weights: Array) -> Array:
    """Weights whose products neither overflow nor underflow: unchanged, or times a power of two."""
    positive = weights[weights > 0]
    smallest = positive.min(initial=np.inf)
    largest = positive.max(initial=0.0)
    if smallest < largest / 1e150:
        raise ValueError(
            f"{name} has values from {smallest:g} to {largest:g}; weights must be within a factor "
            "of 1e150. Set the weight of a row that should not count to 0."
        )
    is_safe_from_overflow = smallest > 1e-100 and largest < 1e100
    if is_safe_from_overflow:
        return weights
    # Divide by a power of two, which does not round, so that the largest weight is about 1.
    _, exponent = np.frexp(largest)
    return np.asarray(np.ldexp(weights, -exponent))


def check_y(y: object, *, allow_nan: bool = False) -> Array:
    """Check scores: finite real numbers of shape (n_items,) or (n_items, n_outputs).

    With `allow_nan` a score may be NaN, "not scored", for the semi-supervised learners. An array of
    float64 is not copied: the result is a read-only view of it.
    """
    if y is None:
        raise ValueError(
            "this ranker requires y to be passed, but the target y is None; pass scores, "
            "a target of make_target, or a preference graph."
        )
    scores = _read_scores(y)
    if scores.ndim not in (1, 2) or 0 in scores.shape:
        raise ValueError(
            f"y has shape {scores.shape}; expected one score per item, shape (n_items,), "
            "or several outputs, shape (n_items, n_outputs), and at least one item."
        )
    _check_finite_scores(scores, allow_nan)
    return scores


def _read_scores(y: object) -> Array:
    """Convert scores to float64; a float64 array is returned as a read-only view."""
    if type(y) is np.ndarray and y.dtype == np.float64:  # no copy
        scores = y.view()
        scores.flags.writeable = False
        return scores
    values = as_array(y, "y")
    is_array_like = isinstance(values, (list, tuple)) or hasattr(values, "__array__")
    is_other_object = not is_array_like and not np.isscalar(values) and np.ndim(values) == 0
    if is_other_object:
        raise ValueError(
            f"y is a {type(y).__name__}; expected scores, a target of make_target, or a "
            "PreferenceGraph."
        )
    advice = "map the labels to numbers so that a larger number means a better item"
    return check_float_array("y", values, advice)


def _check_finite_scores(scores: Array, allow_nan: bool) -> None:
    """Raise scikit-learn's ValueError, with the first row, if a score is not finite."""
    from sklearn.utils import assert_all_finite

    try:
        assert_all_finite(scores, allow_nan=allow_nan, input_name="y")
    except ValueError as error:
        is_invalid = np.isinf(scores)
        if not allow_nan:
            is_invalid |= np.isnan(scores)
        is_invalid_row = is_invalid.reshape(len(scores), -1).any(axis=1)
        first_row = int(np.argmax(is_invalid_row))
        raise ValueError(
            f"{error} The first such row is {first_row}; pass a finite score for every item or "
            "drop the row (only the semi-supervised learners accept NaN, as 'not scored')."
        ) from None


def check_survival(time: ArrayLike, event: ArrayLike) -> tuple[Array, Mask]:
    """Times and events of right-censored data; NaN is the time of an item without follow-up.

    A ValueError is raised for negative times, events other than 0 and 1, and events without a time.
    """
    times = check_float_array("time", time)
    if times.ndim != 1 or not len(times):
        raise ValueError(f"time has shape {times.shape}; expected one time for each item.")
    event_indicator = check_float_array("event", event)
    if event_indicator.shape != times.shape:
        raise ValueError(
            f"event has shape {event_indicator.shape} but time has shape {times.shape}; pass one "
            "event indicator for each time."
        )
    is_invalid_event = (event_indicator != 0) & (event_indicator != 1)
    if is_invalid_event.any():
        row = int(np.argmax(is_invalid_event))
        raise ValueError(
            f"event[{row}] is {event_indicator[row]:g}; expected 1 (or True) for an observed event "
            "and 0 (or False) for a censored time. For competing risks choose one of the events."
        )
    has_event = event_indicator == 1
    is_invalid_time = (times < 0) | np.isinf(times) | (np.isnan(times) & has_event)
    if is_invalid_time.any():
        row = int(np.argmax(is_invalid_time))
        raise ValueError(
            f"time[{row}] is {times[row]:g}, with event {int(has_event[row])}; expected a finite "
            "time of at least 0. Only an item without an event may have no time (NaN)."
        )
    return times, has_event


def check_alphas(alphas: ArrayLike, name: str, *, allow_zero: bool = False) -> Array:
    """Check a flat list of regularization parameters: above 0, or at least 0 on request."""
    expected = "a finite number of at least 0; 0 is the limit for small alphas"
    if not allow_zero:
        expected = (
            "a positive finite number. For almost no regularization use a small value such as 1e-9"
        )
    return _check_parameters(alphas, name, expected, allow_zero=allow_zero)


def check_nus(nus: ArrayLike, name: str) -> Array:
    """Check a flat list of weights of the agreement of views: at least 0."""
    expected = "a finite number of at least 0; 0 trains the views independently"
    return _check_parameters(nus, name, expected, allow_zero=True)


def _check_parameters(values: ArrayLike, name: str, expected: str, *, allow_zero: bool) -> Array:
    """Check a flat list of finite numbers, above 0 or at least 0."""
    try:
        checked = check_float_array(name, values)
    except ValueError:
        raise ValueError(f"{name}: got {values!r}, expected {expected}.") from None
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"{name} has shape {checked.shape}; expected a flat list of numbers.")
    is_in_range = checked > 0
    if allow_zero:
        is_in_range = checked >= 0
    is_invalid = ~(np.isfinite(checked) & is_in_range)
    if is_invalid.any():
        raise ValueError(f"{name}: got {checked[is_invalid][0]}, expected {expected}.")
    return checked
