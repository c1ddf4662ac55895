"""Frames and columns of pandas, polars and Arrow as NumPy arrays; nothing else imports narwhals.

Arrays, lists and sparse matrices are let through at once: narwhals is imported when the first frame
comes. A gap (null, None, NA) of a column of numbers is NaN.
"""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise.formatting import join_words

PLAIN = {"builtins", "numpy", "scipy", "rankwise"}  # packages that have no frames
FLOATS = {np.dtype(np.float64), np.dtype(np.float32)}
MOST_SHOWN = 50  # columns that a message names one by one


def as_array(values: Any, name: str = "values") -> Any:
    """A column, or a frame of numbers, as an array; anything else as it is.

    Numbers keep their type, but with gaps they become floats. Text, categories and decimals become
    objects, with None for a gap; dates are those of NumPy. A masked array is refused if entries are
    masked: NumPy would use what is below.
    """
    if np.ma.isMaskedArray(values):
        refuse_masked(name, values)
    frame = narwhals_frame(values, allow_series=True)
    if frame is None:
        return values
    return frame_matrix(name, values) if hasattr(frame, "columns") else _array(frame)


def with_names(frame: Any) -> Any:
    """What tells scikit-learn the names of the columns of a frame of narwhals."""
    from sklearn import __version__

    knows_all = tuple(map(int, __version__.split(".")[:2])) >= (1, 9)
    is_known = knows_all or frame.implementation.is_pandas_like()
    return frame.to_native() if is_known else ColumnNames(frame)


class ColumnNames:
    """The names of a frame, for scikit-learn before 1.9, which asks polars for them in vain."""

    def __init__(self, frame: Any) -> None:
        self.shape = frame.shape
        self.names = frame.columns

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(self.names)


def frame_columns(X: Any) -> dict[str, Any] | None:
    """The columns of a frame by name, for `as_array` and ``to_list``; None for anything else."""
    frame = narwhals_frame(X)
    if frame is None:
        return None
    return {str(column.name): column for column in frame.iter_columns()}


def narwhals_frame(values: Any, *, allow_series: bool = False) -> Any:
    """The frame (or series) as narwhals has it, for work on any kind; None for anything else."""
    package = type(values).__module__.partition(".")[0]
    if package in PLAIN:
        return None
    if type(values).__name__ == "LazyFrame":
        raise TypeError("the frame is a lazy LazyFrame; pass frame.collect().")
    if package == "pyarrow":
        pyarrow = import_module("pyarrow")
        if isinstance(values, pyarrow.Array):
            values = pyarrow.chunked_array([values])
        elif isinstance(values, pyarrow.RecordBatch):
            values = pyarrow.Table.from_batches([values])
    import narwhals.stable.v2 as nw

    try:
        known = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"the frame has columns of the same name: {error}.") from None
    is_known = isinstance(known, nw.DataFrame) or (allow_series and isinstance(known, nw.Series))
    return known if is_known else None


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of items of any kind: a frame, an array, a sparse matrix or a list."""
    frame = narwhals_frame(X)
    if frame is not None:
        return frame[rows.tolist()].to_native()
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X if hasattr(X, "__getitem__") else np.asarray(X), rows)


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a frame; None for anything else."""
    columns = frame_columns(X)
    return None if columns is None else list(columns)


def frame_matrix(name: str, X: Any, *, gaps: bool = True) -> Any:
    """The columns of a frame as one matrix, stored by columns as they are.

    Float32 if all columns fit into it, else float64. A frame of pandas or polars that is one matrix
    already is not copied. If all columns are sparse (pandas), so is the matrix.

    Parameters
    ----------
    name : str
        What messages call the frame.
    X : data frame or Arrow table
        Numbers, truth values and decimals.
    gaps : bool
        Whether a column may have gaps.

    Raises
    ------
    ValueError
        If columns are of text, categories or dates, or have gaps they may not have: the message
        names them all.
    """
    frame = narwhals_frame(X)
    native = frame.to_native()
    if getattr(native, "sparse", None) is not None:  # pandas, and all columns are sparse
        return native.sparse.to_coo().tocsr()
    arrays, wrong = [], {}
    for column in frame.iter_columns():
        kind, array = _read(column)
        if kind == "number" and not gaps and np.isnan(array).any():
            kind = "gaps"
        if kind != "number":
            wrong[column.name] = kind
        arrays.append(array)
    if wrong:
        is_gaps = set(wrong.values()) == {"gaps"}
        problem = "contains NaN, in the columns" if is_gaps else "has columns that are not numbers:"
        shown = [str(key) if is_gaps else f"{key} ({kind})" for key, kind in wrong.items()]
        raise ValueError(
            f"Input {name} {problem} {join_words(shown, MOST_SHOWN)}. Put "
            "rankwise.TableVectorizer() in front of the ranker in a Pipeline: it imputes missing "
            "values and encodes text."
        )
    kinds, own = {array.dtype for array in arrays}, frame.implementation
    is_float = all(column.dtype.is_float() for column in frame.iter_columns())
    if is_float and len(kinds) == 1 and (own.is_pandas_like() or own.is_polars()):
        matrix = np.asarray(frame.to_numpy())  # its own, if it has one
        if matrix.dtype in FLOATS:
            return matrix
    dtype = np.float32 if kinds and np.result_type(*kinds) == np.float32 else np.float64
    return np.array(arrays, dtype).reshape(len(arrays), len(frame)).T


def check_same_index(**inputs: Any) -> None:
    """Raise a ValueError if two objects of pandas have one index in different orders.

    Rows belong together by their place, as everywhere in scikit-learn. An index that says otherwise
    is no accident: rows were sorted or drawn in one of the objects only.
    """
    known: list[tuple[str, Any]] = []
    for name, values in inputs.items():
        if hasattr(values, "iloc"):
            known.append((name, values.index))
    for (first, one), (second, other) in itertools.combinations(known, 2):
        if len(one) == len(other) and not one.equals(other) and set(one) == set(other):
            raise ValueError(
                f"{first} and {second} have the same pandas index, but in different orders. Rows "
                f"are matched by their place, not by the index: pass {second}.loc[{first}.index] "
                f"if the index is right, {second}.to_numpy() if the order is."
            )


def refuse_masked(name: str, values: Any) -> None:
    """Raise a ValueError if entries of a masked array are masked."""
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


def _array(column: Any) -> NDArray[Any]:
    """A column with its type; floats if whole numbers or truth values have gaps."""
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if dtype in (nw.Int128, nw.UInt128):
        column = column.cast(nw.Float64)
    array: NDArray[Any]
    has_gaps = not dtype.is_float() and column.null_count() > 0
    if has_gaps and (dtype.is_integer() or dtype == nw.Boolean):
        filled = column.fill_null(0 if dtype.is_integer() else False).to_numpy()
        return np.where(column.is_null().to_numpy(), np.nan, filled.astype(np.float64))
    array = column.to_numpy()
    if has_gaps and array.dtype == object:  # not the NA of pandas, which equals nothing
        array = array.copy()
        array[column.is_null().to_numpy()] = None
    return array


def _read(column: Any) -> tuple[str, Any]:
    """What a column of features is, and its numbers if it is a "number"."""
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if dtype.is_temporal():
        return "durations" if dtype == nw.Duration else "dates", None
    if dtype in (nw.Categorical, nw.Enum):
        return "category", None
    if len(column) and not dtype.is_numeric() and column.null_count() == len(column):
        return "no values", None
    if dtype == nw.String:
        return "text", None
    array = _array(column)
    if array.ndim > 1:
        return "lists", None
    if array.dtype == object:
        if any(isinstance(value, str) for value in array):
            return "text", None
        try:  # Python rounds a decimal to the nearest float, which the cast of Arrow does not
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return "objects", None
    return ("number", array) if array.dtype.kind in "biuf" else (str(array.dtype), None)
