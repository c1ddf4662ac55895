"""Convert frames and columns of pandas, polars and Arrow to NumPy arrays.

Arrays, lists and sparse matrices are returned unchanged: narwhals is imported only if a frame is
passed. A missing value (null, None, NA) in a column of numbers becomes NaN.
"""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np

from rankwise.arrays import AnyArray, Indices, Matrix, MatrixLike, Numbers
from rankwise.formatting import join_words

if TYPE_CHECKING:
    import narwhals
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.typing import IntoDataFrame

    Frame = nw.DataFrame[Any]
    Column = narwhals.Series[Any]  # also the Series of the stable API

DataFrame: TypeAlias = "IntoDataFrame"  # a data frame of any library that narwhals supports

PACKAGES_WITHOUT_FRAMES = {"builtins", "numpy", "scipy", "rankwise"}
FLOATS = {np.dtype(np.float64), np.dtype(np.float32)}
MOST_SHOWN = 50  # columns that a message names one by one


def as_array(values: object, name: str = "values") -> Any:
    """Convert a column, or a frame of numbers, to an array; return other values unchanged.

    Numbers keep their type; numbers with missing values become floats. Text, categories and
    decimals become objects, with None for a missing value. Dates become dates of NumPy. A masked
    array with masked entries is refused, because NumPy would use the values under the mask.
    """
    if np.ma.isMaskedArray(values):
        refuse_masked(name, values)
    wrapped = _wrap(values)
    if wrapped is None:
        return values
    import narwhals.stable.v2 as nw

    if isinstance(wrapped, nw.Series):
        return _column_to_array(wrapped)
    if isinstance(wrapped, nw.DataFrame):
        return frame_matrix(name, values)
    return values


def with_names(frame: Frame) -> object:
    """An object from which scikit-learn reads the column names of a narwhals frame."""
    from sklearn import __version__

    major, minor = map(int, __version__.split(".")[:2])
    reads_all_frames = (major, minor) >= (1, 9)
    if reads_all_frames or frame.implementation.is_pandas_like():
        return frame.to_native()
    return ColumnNames(frame)


class ColumnNames:
    """Column names of a frame, for scikit-learn before 1.9, which cannot read polars frames."""

    def __init__(self, frame: Frame) -> None:
        self.shape = frame.shape
        self.names = frame.columns

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(self.names)


def frame_columns(X: object) -> dict[str, Any] | None:
    """Columns of a frame by name, for `as_array` and ``to_list``; None for other values."""
    frame = narwhals_frame(X)
    if frame is None:
        return None
    return {str(column.name): column for column in frame.iter_columns()}


def narwhals_frame(values: object) -> Frame | None:
    """The frame wrapped by narwhals; None for other values."""
    wrapped = _wrap(values)
    if wrapped is None:
        return None
    import narwhals.stable.v2 as nw

    if isinstance(wrapped, nw.DataFrame):
        return wrapped
    return None  # a single column


def _wrap(values: object) -> Frame | Column | None:
    """A frame or column wrapped by narwhals; None for values of packages without frames.

    Other values may be returned unchanged.
    """
    package = type(values).__module__.partition(".")[0]
    if package in PACKAGES_WITHOUT_FRAMES:
        return None
    if type(values).__name__ == "LazyFrame":
        raise TypeError("a LazyFrame was passed; pass frame.collect().")
    if package == "pyarrow":
        pyarrow = import_module("pyarrow")
        if isinstance(values, pyarrow.Array):
            values = pyarrow.chunked_array([values])
        elif isinstance(values, pyarrow.RecordBatch):
            values = pyarrow.Table.from_batches([values])
    import narwhals.stable.v2 as nw

    try:
        wrapped: Frame | Column = nw.from_native(
            values, eager_only=True, allow_series=True, pass_through=True
        )
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"the frame has columns of the same name: {error}.") from None
    return wrapped


def take_rows(X: MatrixLike, rows: Indices) -> MatrixLike:
    """Select rows of a frame, an array, a sparse matrix or a list."""
    frame = narwhals_frame(X)
    if frame is not None:
        return frame[rows.tolist()].to_native()
    if hasattr(X, "tocsr"):  # a sparse matrix
        return X.tocsr()[rows]
    from sklearn.utils import _safe_indexing

    if not hasattr(X, "__getitem__"):
        X = np.asarray(X)
    return _safe_indexing(X, rows)


def column_names(X: object) -> list[str] | None:
    """Names of the columns of a frame; None for other values."""
    columns = frame_columns(X)
    if columns is None:
        return None
    return list(columns)


def frame_matrix(name: str, X: object, *, allow_missing: bool = True) -> Matrix:
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
    allow_missing : bool, default=True
        Whether a column may have missing values.

    Raises
    ------
    ValueError
        If a column contains text, categories or dates, or missing values although `allow_missing`
        is False. The message names all such columns.
    """
    frame = narwhals_frame(X)
    assert frame is not None
    native = frame.to_native()
    if getattr(native, "sparse", None) is not None:  # pandas, and all columns are sparse
        return native.sparse.to_coo().tocsr()
    columns = _read_number_columns(name, frame, allow_missing=allow_missing)
    shared_matrix = _shared_matrix(frame, columns)
    if shared_matrix is not None:
        return shared_matrix  # the memory of the frame, not a copy
    dtype: type[np.float32 | np.float64] = np.float64
    if columns and np.result_type(*columns) == np.float32:
        dtype = np.float32
    columns_as_rows = np.array(columns, dtype).reshape(len(columns), len(frame))
    return columns_as_rows.T  # stored by columns


def _read_number_columns(name: str, frame: Frame, *, allow_missing: bool) -> list[Numbers]:
    """The columns as numbers; a ValueError names all columns that are not numbers."""
    columns_of_numbers = []
    problem_of_column = {}
    for column in frame.iter_columns():
        content = _read_column(column)
        if content.numbers is None:
            problem_of_column[str(column.name)] = content.kind
        elif not allow_missing and np.isnan(content.numbers).any():
            problem_of_column[str(column.name)] = "missing values"
        else:
            columns_of_numbers.append(content.numbers)
    if not problem_of_column:
        return columns_of_numbers

    if set(problem_of_column.values()) == {"missing values"}:
        problem = f"contains NaN, in the columns {join_words(problem_of_column, MOST_SHOWN)}"
    else:
        columns = [f"{column} ({kind})" for column, kind in problem_of_column.items()]
        problem = f"has columns that are not numbers: {join_words(columns, MOST_SHOWN)}"
    raise ValueError(
        f"Input {name} {problem}. Put rankwise.TableVectorizer() in front of the ranker in a "
        "Pipeline: it imputes missing values and encodes text."
    )


def _shared_matrix(frame: Frame, columns: list[Numbers]) -> Numbers | None:
    """The matrix of floats as which pandas or polars stores a frame, not copied; else None."""
    library = frame.implementation
    may_store_matrix = library.is_pandas_like() or library.is_polars()
    if not may_store_matrix:
        return None
    has_one_type = len({column.dtype for column in columns}) == 1
    if not has_one_type:
        return None
    # in the frame: the array of a column of integers has floats if values are missing
    has_only_floats = all(column.dtype.is_float() for column in frame.iter_columns())
    if not has_only_floats:
        return None
    matrix = np.asarray(frame.to_numpy())
    if matrix.dtype not in FLOATS:
        return None
    return matrix


def check_same_index(**inputs: object) -> None:
    """Raise a ValueError if two pandas objects have the same index in different orders.

    Rows are matched by position, as in scikit-learn. Indices in different orders mean that the rows
    of one of the objects were sorted or sampled.
    """
    pandas_names = [name for name, values in inputs.items() if hasattr(values, "iloc")]
    for name, other_name in itertools.combinations(pandas_names, 2):
        if _has_reordered_index(inputs[name], inputs[other_name]):
            raise ValueError(
                f"{name} and {other_name} have the same pandas index, but in different orders. "
                "Rows are matched by position, not by the index: pass "
                f"{other_name}.loc[{name}.index] if the index is right, "
                f"{other_name}.to_numpy() if the order is."
            )


def _has_reordered_index(values: Any, other_values: Any) -> bool:
    """Whether two objects of pandas have the same index in different orders."""
    index = values.index
    other_index = other_values.index
    if len(index) != len(other_index) or index.equals(other_index):
        return False
    return set(index) == set(other_index)


def refuse_masked(name: str, values: Any) -> None:
    """Raise a ValueError if entries of a masked array are masked."""
    is_masked: AnyArray = np.ma.getmaskarray(values)
    field_names = is_masked.dtype.names
    if field_names is not None:  # a target of make_target
        n_rows = len(is_masked)
        masks_of_fields = [is_masked[field].reshape(n_rows, -1) for field in field_names]
        is_masked = np.concatenate(masks_of_fields, axis=1)
    if is_masked.any():
        first_row = 0
        if is_masked.ndim:
            masked_positions = np.argwhere(is_masked)
            first_row = int(masked_positions[0, 0])
        raise ValueError(
            f"{name} is a masked array with masked entries, the first in row {first_row}; drop "
            f"these rows, or pass {name}.filled(...) (np.nan if the learner accepts missing "
            "values)."
        )


def _column_to_array(column: Column) -> AnyArray:
    """Convert a column and keep its type; integers and bools with missing values become floats."""
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if dtype in (nw.Int128, nw.UInt128):
        column = column.cast(nw.Float64)
    array: AnyArray
    has_nulls = not dtype.is_float() and column.null_count() > 0  # floats have NaN
    if has_nulls and (dtype.is_integer() or dtype == nw.Boolean):
        fill_value = 0 if dtype.is_integer() else False
        filled = column.fill_null(fill_value).to_numpy()
        is_null = column.is_null().to_numpy()
        return np.where(is_null, np.nan, filled.astype(np.float64))
    array = column.to_numpy()
    if has_nulls and array.dtype == object:  # None instead of the NA of pandas
        array = array.copy()
        array[column.is_null().to_numpy()] = None
    return array


class _ColumnContent(NamedTuple):
    """Content of a column of features.

    Attributes
    ----------
    kind : str
        "number", or a noun for the content of a column that is not numbers.
    numbers : ndarray of shape (n_rows,) or None
        Numbers of the column; None for other kinds.
    """

    kind: str
    numbers: Numbers | None = None


def _read_column(column: Column) -> _ColumnContent:
    kind_without_numbers = _kind_by_dtype(column)
    if kind_without_numbers:
        return _ColumnContent(kind_without_numbers)
    array = _column_to_array(column)
    if array.ndim > 1:
        return _ColumnContent("lists")
    if array.dtype == object:
        return _read_objects(array)
    if array.dtype.kind in "biuf":
        return _ColumnContent("number", array)
    return _ColumnContent(str(array.dtype))


def _kind_by_dtype(column: Column) -> str:
    """Kind of a column whose type is not numeric; else empty."""
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if dtype == nw.Duration:
        return "durations"
    if dtype.is_temporal():
        return "dates"
    if dtype in (nw.Categorical, nw.Enum):
        return "category"
    if not dtype.is_numeric():  # the nulls of numbers are not counted, which would take time
        is_all_null = len(column) > 0 and column.null_count() == len(column)
        if is_all_null:
            return "no values"
    if dtype == nw.String:
        return "text"
    return ""


def _read_objects(array: AnyArray) -> _ColumnContent:
    """Decimals and numbers in a column of objects."""
    if any(isinstance(value, str) for value in array):
        return _ColumnContent("text")
    try:  # Python rounds a decimal to the nearest float, which the cast of Arrow does not
        return _ColumnContent("number", array.astype(np.float64))
    except (TypeError, ValueError, OverflowError):
        return _ColumnContent("objects")
