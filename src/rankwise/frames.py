"""Convert frames and columns of pandas, polars and Arrow to NumPy arrays.

Arrays, lists and sparse matrices are returned unchanged: narwhals is imported only if a frame is
passed. A missing value (null, None, NA) in a column of numbers becomes NaN.
"""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise.formatting import join_words

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoDataFrame

DataFrame: TypeAlias = "IntoDataFrame"  # a data frame of any library that narwhals supports

PLAIN = {"builtins", "numpy", "scipy", "rankwise"}  # packages that have no frames
FLOATS = {np.dtype(np.float64), np.dtype(np.float32)}
MOST_SHOWN = 50  # columns that a message names one by one


def as_array(values: Any, name: str = "values") -> Any:
    """Convert a column, or a frame of numbers, to an array; return other values unchanged.

    Numbers keep their type; numbers with missing values become floats. Text, categories and
    decimals become objects, with None for a missing value. Dates become dates of NumPy. A masked
    array with masked entries is refused, because NumPy would use the values under the mask.
    """
    if np.ma.isMaskedArray(values):
        refuse_masked(name, values)
    frame = narwhals_frame(values, allow_series=True)
    if frame is None:
        return values
    if hasattr(frame, "columns"):
        return frame_matrix(name, values)
    return _array(frame)


def with_names(frame: Any) -> Any:
    """An object from which scikit-learn reads the column names of a narwhals frame."""
    from sklearn import __version__

    reads_all_frames = tuple(map(int, __version__.split(".")[:2])) >= (1, 9)
    if reads_all_frames or frame.implementation.is_pandas_like():
        return frame.to_native()
    return ColumnNames(frame)


class ColumnNames:
    """Column names of a frame, for scikit-learn before 1.9, which cannot read those of polars."""

    def __init__(self, frame: Any) -> None:
        self.shape = frame.shape
        self.names = frame.columns

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(self.names)


def frame_columns(X: Any) -> dict[str, Any] | None:
    """Columns of a frame by name, for `as_array` and ``to_list``; None for other values."""
    frame = narwhals_frame(X)
    if frame is None:
        return None
    return {str(column.name): column for column in frame.iter_columns()}


def narwhals_frame(values: Any, *, allow_series: bool = False) -> Any:
    """The frame (or series) wrapped by narwhals; None for other values."""
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
        wrapped = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"the frame has columns of the same name: {error}.") from None
    if isinstance(wrapped, nw.DataFrame) or (allow_series and isinstance(wrapped, nw.Series)):
        return wrapped
    return None


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Select rows of a frame, an array, a sparse matrix or a list."""
    frame = narwhals_frame(X)
    if frame is not None:
        return frame[rows.tolist()].to_native()
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X if hasattr(X, "__getitem__") else np.asarray(X), rows)


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a frame; None for other values."""
    columns = frame_columns(X)
    return None if columns is None else list(columns)


def frame_matrix(name: str, X: Any, *, gaps: bool = True) -> Any:
    """Convert the columns of a frame to one matrix, stored by columns.

    The type is float32 if it can represent all columns, otherwise float64. A frame of pandas or
    polars that is stored as one matrix is not copied. If all columns are sparse (pandas), the
    matrix is sparse.

    Parameters
    ----------
    name : str
        Name of the frame in messages.
    X : data frame or Arrow table
        Numbers, bools and decimals.
    gaps : bool, default=True
        Whether a column may have missing values.

    Raises
    ------
    ValueError
        If a column contains text, categories or dates, or missing values although `gaps` is False.
        The message names all such columns.
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
    dtypes = {array.dtype for array in arrays}
    is_float = all(column.dtype.is_float() for column in frame.iter_columns())
    library = frame.implementation
    if is_float and len(dtypes) == 1 and (library.is_pandas_like() or library.is_polars()):
        matrix = np.asarray(frame.to_numpy())  # no copy if the frame is stored as one matrix
        if matrix.dtype in FLOATS:
            return matrix
    fits_float32 = bool(dtypes) and np.result_type(*dtypes) == np.float32
    dtype = np.float32 if fits_float32 else np.float64
    return np.array(arrays, dtype).reshape(len(arrays), len(frame)).T


def check_same_index(**inputs: Any) -> None:
    """Raise a ValueError if two pandas objects have the same index in different orders.

    Rows are matched by position, as in scikit-learn. Indices in different orders mean that the rows
    of one of the objects were sorted or sampled.
    """
    indices: list[tuple[str, Any]] = []
    for name, values in inputs.items():
        if hasattr(values, "iloc"):
            indices.append((name, values.index))
    for (first, index), (second, other) in itertools.combinations(indices, 2):
        if len(index) == len(other) and not index.equals(other) and set(index) == set(other):
            raise ValueError(
                f"{first} and {second} have the same pandas index, but in different orders. Rows "
                f"are matched by position, not by the index: pass {second}.loc[{first}.index] "
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
            f"{name} is a masked array with masked entries, the first in row {first}; drop these "
            f"rows, or pass {name}.filled(...) (np.nan if the learner accepts missing values)."
        )


def _array(column: Any) -> NDArray[Any]:
    """Convert a column and keep its type; integers and bools with missing values become floats."""
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
    """Kind of a column of features, and its numbers if the kind is "number"."""
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
