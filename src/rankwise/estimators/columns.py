"""Columns: features from the columns of a table, with gaps, categories and what is of no use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arrays import Array
from rankwise.frames import as_array, as_frame, frame_columns

#: More values make no category by themselves, and more than MOST_VALUES none at all.
FEW_VALUES, MOST_VALUES = 50, 1000
LONGEST_VALUE = 256  # characters
DENSE_FEATURES = 1000
SAMPLE = 1000  # cells that are looked at one by one
DOUBTFUL_ROWS = 50
ROWS_OF_A_CODE = 20  # a value of a column that ends in "id" with more rows than that is a category

LONG_NUMBER = 10**15
FEW_ROWS = 20  # too few to say that all are different by intent

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?|\d{4}[./-]\d{1,2}([./-]\d{1,2})?([ T].*)?"
    rf"|(\d{{1,2}}[ -])?{_MONTH}[ -](\d{{1,2}}, ?)?\d{{4}}( .*)?",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"(^|[_. -])(id|ID|Id)$|[a-z](ID|Id)$|^([Ii]tem|ITEM|docid|uuid|UUID|index|Unnamed: \d+)$"
)


class ColumnFacts(NamedTuple):
    """What is known of one column, and what becomes of it.

    Attributes
    ----------
    name : str
        Of the column.
    kind : {"number", "category", "left out"}
        What it becomes.
    n_gaps : int
        Number of cells without a value in the training data.
    why : str
        Why it is left out, or in doubt; else empty.
    median : float
        What fills the gaps of a number.
    mean, scale : float
        What is taken off a number, and what it is then divided by.
    categories : tuple of str
        The values of a category, in order.
    """

    name: str
    kind: Literal["number", "category", "left out"]
    n_gaps: int = 0
    why: str = ""
    median: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The kind in words, such as "number with 3 gaps" or "category of 4 values"."""
        gaps = f"{self.n_gaps:,} gap{'s' * (self.n_gaps != 1)}"
        if self.kind == "category":
            n_values = len(self.categories)
            values = f"category of {n_values:,} value{'s' * (n_values != 1)}"
            return f"{values}, {gaps}" if self.n_gaps else values
        return f"number with {gaps}" if self.kind == "number" and self.n_gaps else self.kind


class Columns(TransformerMixin, BaseEstimator):
    """Make features of the columns of a table: the first step of a Pipeline for a data frame.

    Numbers: gaps are filled by the median, and where training data have gaps a column 0/1 tells
    where they are. Text with few values, and truth values, are categories: one column 0/1 for each
    value, and one for gaps; values that were not there in training have 0 in all of them. Dates,
    lists, identifiers, text with many values and columns without any value are left out. What
    became of each column, and why, stands in `facts_`.

    Parameters
    ----------
    categorical, numeric : iterables of str
        Columns that are to be categories or numbers, whatever they look like.
    wanted : iterable of str
        Columns that are not to be left out because they look like identifiers.
    scale : bool
        Scale the numbers to mean 0 and standard deviation 1. Categories stay 0 and 1.

    Attributes
    ----------
    facts_ : list of ColumnFacts
        What each column of the training data is: name, kind, number of gaps, reason, median, mean,
        scale and categories.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    GroupScaler : Features relative to the other items of their group.

    Notes
    -----
    A column is an identifier if its name says so, if it counts the rows (of which up to half may
    be gone), or if it has whole numbers of 16 digits or more. With such a name but few values it
    is a category. An array has numbers only, and all its columns are used.


    Examples
    --------
    >>> import polars
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankwise import Columns, RankRLS
    >>> X = polars.DataFrame(
    ...     {
    ...         "doc_id": [11, 12, 13, 14],
    ...         "price": [9.5, None, 7.0, 8.0],
    ...         "color": ["red", "blue", "red", "blue"],
    ...     }
    ... )
    >>> ranker = make_pipeline(Columns(scale=True), RankRLS()).fit(X, [1, 4, 2, 3])
    >>> for column in ranker[0].facts_:
    ...     print(column.name, "-", column.words, column.why)
    doc_id - left out an identifier: its name says so
    price - number with 1 gap
    color - category of 2 values
    >>> list(ranker[0].get_feature_names_out())
    ['price', 'price is missing', 'color=blue', 'color=red']
    >>> new = polars.DataFrame({"color": ["green", "blue"], "price": [9.0, None]})
    >>> ranker.predict(new).argmax()
    np.int64(1)
    """

    def __init__(
        self,
        *,
        categorical: Iterable[str] = (),
        numeric: Iterable[str] = (),
        wanted: Iterable[str] = (),
        scale: bool = False,
    ) -> None:
        self.categorical = categorical
        self.numeric = numeric
        self.wanted = wanted
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what becomes of each column, and learn medians, categories and scales.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_items, n_columns)
            Items.
        y : ignored
            Only there for Pipelines.

        Returns
        -------
        Columns
            The fitted transformer.

        Raises
        ------
        ValueError
            If a column that was asked for cannot be used, or none can; all reasons are given.
        """
        columns, is_frame = self._read(X, reset=True)
        categorical, numeric = set(self.categorical), set(self.numeric)
        asked = categorical | numeric | set(self.wanted)
        for name in sorted(categorical & numeric):
            raise ValueError(f"{name!r} is asked for as a category and as a number; choose one.")
        missing = sorted(asked - set(columns))
        if missing:
            raise ValueError(f"X has no column {', '.join(map(repr, missing))}.")
        facts = []
        for name, column in columns.items():
            forced = "category" if name in categorical else "number" if name in numeric else ""
            is_free = is_frame and name not in asked
            if is_free and _is_code(name, column):
                forced = "category"
            found = _facts(name, column, forced)
            reason = _identifier(name, column) if is_free and not forced else ""
            if reason and found.kind != "left out":
                found = ColumnFacts(name, "left out", found.n_gaps, f"an identifier: {reason}")
            facts.append(found)
        _refuse(facts, asked)
        self.facts_ = _with_numbers(facts, columns, scale=self.scale)
        return self

    def transform(self, X: Any) -> Any:
        """The features.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_items, n_columns)
            Items. Columns of a frame may be in any order, and those left out may be missing.

        Returns
        -------
        ndarray or csr_array of shape (n_items, n_features)
            Numbers, gaps of numbers, categories. Sparse if there are more than 1,000 features, most
            of them 0.
        """
        check_is_fitted(self)
        columns, _ = self._read(X, reset=False)
        used = [column for column in self.facts_ if column.kind != "left out"]
        missing = [column.name for column in used if column.name not in columns]
        if missing:
            raise ValueError(f"X lacks the columns {', '.join(map(repr, missing))}.")
        numbers = [column for column in used if column.kind == "number"]
        categories = [column for column in used if column.kind == "category"]
        cells = _numbers(numbers, columns)
        gaps = np.isnan(cells[:, [column.n_gaps > 0 for column in numbers]])
        medians, means, scales = (
            np.array([getattr(column, name) for column in numbers])
            for name in ("median", "mean", "scale")
        )
        filled = (np.where(np.isnan(cells), medians, cells) - means) / scales
        dense = np.hstack([filled, gaps])
        n_rows, n_features = len(dense), len(self.get_feature_names_out())
        ones = [_one_hot(column, _texts(columns[column.name]), n_rows) for column in categories]
        share = (dense.shape[1] + len(categories)) / max(1, n_features)
        if n_features > DENSE_FEATURES and share < 0.3:
            return sp.csr_array(sp.hstack([sp.csr_array(dense), *ones]))
        return np.hstack([dense, *(one.toarray() for one in ones)])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of columns, ``name is missing`` for gaps, ``name=value`` for categories."""
        check_is_fitted(self)
        numbers = [column for column in self.facts_ if column.kind == "number"]
        names = [column.name for column in numbers]
        names += [f"{column.name} is missing" for column in numbers if column.n_gaps]
        for column in self.facts_:
            if column.kind == "category":
                names += [f"{column.name}={value}" for value in column.categories]
                names += [f"{column.name} is missing"] if column.n_gaps else []
        return np.array(names, dtype=object)

    def _read(self, X: Any, *, reset: bool) -> tuple[dict[str, Any], bool]:
        """The columns by name, as arrays, and whether they are of a frame."""
        frame = as_frame(X)
        if frame is None:
            checked = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
            matrix = validate_data(self, X, reset=reset, **checked)
            names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(matrix.shape[1])])
            return dict(zip(names, matrix.T, strict=True)), False
        if reset:
            validate_data(self, frame, reset=True, skip_check_array=True)
        found = frame_columns(X) or {}
        used = found if reset else {c.name for c in self.facts_ if c.kind != "left out"}
        return {name: _cells(column) for name, column in found.items() if name in used}, True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def source_of_features(facts: Sequence[ColumnFacts]) -> list[int]:
    """For each feature that `Columns` makes, the number of the column that it is made of."""
    numbers = [k for k, column in enumerate(facts) if column.kind == "number"]
    sources = numbers + [k for k in numbers if facts[k].n_gaps]
    for k, column in enumerate(facts):
        if column.kind == "category":
            sources += [k] * (len(column.categories) + bool(column.n_gaps))
    return sources


def _cells(column: Any) -> NDArray[Any]:
    """A column of a frame: numbers, dates, or texts with None for gaps; (n, 0) if none of these."""
    cells: NDArray[Any] = np.asarray(as_array(column))
    if str(column.dtype).startswith(("Categorical", "Enum")):
        cells = np.array(_texts(cells), dtype=object)
    if cells.dtype.kind == "U":
        cells = cells.astype(object)
    if cells.dtype != object or cells.ndim > 1:
        return cells
    kinds = {type(cell) for cell in cells}
    if any(hasattr(kind, "isoformat") for kind in kinds):
        return np.zeros(len(cells), "M8[s]")  # dates or times: which ones is of no interest
    if str in kinds:
        is_gap = [cell is None or (isinstance(cell, float) and cell != cell) for cell in cells]
        cells = cells.copy()
        cells[is_gap] = None
        return cells if {type(cell) for cell in cells} <= {str, type(None)} else cells[:, None]
    try:
        return cells.astype(np.float64)  # decimals, or nothing at all
    except (TypeError, ValueError):
        return cells[:, None]


def _is_gap(cells: NDArray[Any]) -> NDArray[np.bool_]:
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    return np.isnan(cells) if cells.dtype.kind in "fmM" else np.zeros(len(cells), dtype=bool)


def _numbers(columns: Sequence[ColumnFacts], cells: dict[str, Any]) -> Array:
    """The columns of numbers, with NaN for gaps."""
    n_rows = len(next(iter(cells.values()), ()))
    out = np.empty((n_rows, len(columns)))
    for k, column in enumerate(columns):
        out[:, k] = _floats(column.name, cells[column.name])
    return out


def _floats(name: str, cells: NDArray[Any]) -> Array:
    try:
        floats = cells.astype(np.float64)
    except (TypeError, ValueError):
        words = [cell for cell in cells if isinstance(cell, str) and not _is_number(cell)]
        raise ValueError(
            f"column {name!r} has words, such as {_shown(words)}, expected numbers."
        ) from None
    if cells.dtype.kind in "iu" and (floats.astype(cells.dtype) != cells).any():
        raise ValueError(
            f"column {name!r} has whole numbers that a float would round. If it is an identifier, "
            "leave it out, or take it as a category."
        )
    if np.isinf(floats).any():
        raise ValueError(f"column {name!r} has infinite numbers.")
    return floats


def _texts(cells: NDArray[Any]) -> list[str | None]:
    """Cells as text: 7, 7.0 and "7" are one category, as are true and "True"."""
    spelled: dict[Any, str | None] = {}
    texts = []
    for cell in cells.tolist():
        if cell not in spelled:
            spelled[cell] = _text(cell)
        texts.append(spelled[cell])
    return texts


def _text(cell: Any) -> str | None:
    if cell is None or cell != cell:
        return None
    text = str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)
    return text.lower() if text.lower() in ("true", "false") else text


def _one_hot(column: ColumnFacts, texts: list[str | None], n_rows: int) -> Any:
    """One column for each value, and one for gaps if there were some."""
    place: dict[str | None, int] = {value: k for k, value in enumerate(column.categories)}
    if column.n_gaps:
        place[None] = len(place)
    places = np.array([place.get(text, -1) for text in texts], dtype=np.intp)
    rows = np.flatnonzero(places >= 0)
    return sp.csr_array((np.ones(len(rows)), (rows, places[rows])), shape=(n_rows, len(place)))


def _facts(name: str, cells: NDArray[Any], forced: str) -> ColumnFacts:
    """What becomes of a column, by what is in it."""
    n_gaps = int(_is_gap(cells).sum()) if cells.ndim == 1 else 0
    left_out = ColumnFacts(name, "left out", n_gaps)
    if n_gaps == len(cells):
        return left_out._replace(why="it has no values")
    if cells.ndim > 1:
        return left_out._replace(why="it has lists or other objects")
    is_text = cells.dtype == object
    sample = [str(_text(cell)) for cell in cells[~_is_gap(cells)][:SAMPLE].tolist()]
    is_date = cells.dtype.kind in "mM" or (is_text and all(map(_DATE.fullmatch, sample)))
    if forced == "number" and (is_text or is_date):
        words = "dates" if is_date else f"words, such as {_shown(sample)}"
        return left_out._replace(why=f"it has {words}, expected numbers")
    if is_date and not forced:
        return left_out._replace(why="dates or times")
    if forced == "category" or is_text or cells.dtype.kind == "b":
        limit = FEW_VALUES if is_text and not forced else MOST_VALUES
        return _category(left_out, cells, sample, limit)
    return ColumnFacts(name, "number", n_gaps, _doubt(cells))


def _category(
    left_out: ColumnFacts, cells: NDArray[Any], sample: list[str], limit: int
) -> ColumnFacts:
    """A category, if it has no more than so many values and most values are there more than once.

    Columns that the user asks for (the limit is MOST_VALUES) may have values that are there once.
    """
    n_rows = len(cells) - left_out.n_gaps
    values = sorted({text for text in _texts(cells) if text is not None})
    why = ""
    if len(values) > limit:
        why = f"{len(values):,} different values, such as {sample[0]!r:.40}"
        why += f"; at most {limit:,} make a category"
    elif limit == FEW_VALUES and len(values) > max(5, n_rows / 2):
        why = f"{len(values):,} values in {n_rows:,} rows, such as {sample[0]!r:.40}"
    elif max(map(len, values)) > LONGEST_VALUE:
        why = "long texts"
    n_numbers = sum(map(_is_number, sample))
    if why and 0.8 * len(sample) < n_numbers < len(sample):
        why = f"numbers, but also words, such as {_shown(sample)}"
    if why:
        return left_out._replace(why=why)
    return left_out._replace(kind="category", categories=tuple(values))


def _identifier(name: str, cells: NDArray[Any]) -> str:
    """Why a column looks like an identifier; nothing if it does not."""
    if _IDENTIFIER.search(name):
        return "its name says so"
    known = cells[~_is_gap(cells)] if cells.dtype.kind in "iuf" else np.empty(0)
    if not len(known) or (known != np.floor(known)).any():
        return ""
    if len(known) >= FEW_ROWS and len(known) == len(cells) and _counts(known):
        return "it counts the rows"
    return "its whole numbers have 16 digits or more" if _is_long(known) else ""


def _is_code(name: str, cells: NDArray[Any]) -> bool:
    """Whether a column has the name of an identifier, but few values, each in many rows."""
    if cells.dtype.kind not in "iuO" or cells.ndim > 1 or not _IDENTIFIER.search(name):
        return False
    known = cells[~_is_gap(cells)]
    n_values = len(set(known.tolist()))
    return n_values <= FEW_VALUES and len(known) > ROWS_OF_A_CODE * n_values


def _counts(numbers: NDArray[Any]) -> bool:
    """Whether the values go up from row to row, and at least every second one is there."""
    span = float(numbers[-1]) - float(numbers[0])
    return bool((numbers[1:] > numbers[:-1]).all()) and span < 2 * len(numbers)


def _is_long(numbers: NDArray[Any]) -> bool:
    """Whether whole numbers are long; floats only if all are, and of the same length."""
    low, high = float(numbers.min()), float(numbers.max())
    if numbers.dtype.kind in "iu":
        return max(-low, high) >= LONG_NUMBER
    return LONG_NUMBER <= low <= high < min(10 * low, 1e40)


def _doubt(cells: NDArray[Any]) -> str:
    """What is odd about a column of numbers: whole and different in every one of many rows."""
    if cells.dtype.kind not in "iu" or len(cells) < DOUBTFUL_ROWS:
        return ""
    for numbers in (cells[:SAMPLE], cells):
        if len(np.unique(numbers)) < len(numbers):
            return ""
    return "whole numbers that are all different"


def _refuse(facts: list[ColumnFacts], asked: set[str]) -> None:
    """Raise a ValueError with all reasons if a column that was asked for is left out, or all."""
    refused = [column for column in facts if column.kind == "left out" and column.name in asked]
    if refused or all(column.kind == "left out" for column in facts):
        listed = refused or facts
        shown = "; ".join(f"{column.name!r} ({column.why})" for column in listed[:20])
        more = f" and {len(listed) - 20} more" if len(listed) > 20 else ""
        what = "these columns" if refused else "no column"
        raise ValueError(f"{what} can{'not' if refused else ''} be learned from: {shown}{more}.")


def _with_numbers(
    facts: list[ColumnFacts], cells: dict[str, Any], *, scale: bool
) -> list[ColumnFacts]:
    """The same with medians, and with mean and scale of the numbers after their gaps are filled."""
    numbers = [k for k, column in enumerate(facts) if column.kind == "number"]
    X = _numbers([facts[k] for k in numbers], cells)
    medians = np.nanmedian(X, axis=0)
    means, scales = np.zeros(len(numbers)), np.ones(len(numbers))
    if scale and numbers:
        scaler = StandardScaler().fit(np.where(np.isnan(X), medians, X))
        means, scales = scaler.mean_, scaler.scale_
    out = facts.copy()
    learned = zip(numbers, medians.tolist(), means.tolist(), scales.tolist(), strict=True)
    for k, median, mean, size in learned:
        out[k] = facts[k]._replace(median=median, mean=mean, scale=size)
    return out


def _is_number(cell: str) -> bool:
    """Whether a text spells a number, with a decimal point or comma."""
    try:
        return math.isfinite(float(cell.replace(",", ".", 1))) and "_" not in cell
    except ValueError:
        return False


def _shown(sample: list[str]) -> str:
    word = next((cell for cell in sample if not _is_number(cell)), sample[0] if sample else "")
    return f"{word!r:.40}"
