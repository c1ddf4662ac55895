"""What each column of a table is good for, and the transformer that makes features of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rankwise.datasets.columns import is_number, is_text
from rankwise.datasets.files import import_arrow
from rankwise.datasets.labels import MAX_LABEL, as_text, finite_number, show
from rankwise.datasets.tables import plain_types
from rankwise.text_tables import count, listed

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer

#: More values make no category by themselves, and more than MOST_VALUES none at all.
FEW_VALUES, MOST_VALUES = 50, 1000
DENSE_FEATURES = 1000
SAMPLE = 1000  # cells that are looked at one by one
DOUBTFUL_ROWS = 50

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?|\d{4}[./-]\d{1,2}([./-]\d{1,2})?([ T].*)?"
    rf"|(\d{{1,2}}[ -])?{_MONTH}[ -](\d{{1,2}}, ?)?\d{{4}}( .*)?",
    re.IGNORECASE,
)


class ColumnKind(NamedTuple):
    """What becomes of one column.

    Attributes
    ----------
    name : str
        Of the column.
    use : {"number", "category", "left out"}
        What it becomes.
    n_gaps : int
        Number of cells without a value.
    n_values : int or None
        Number of different values of a category or a text.
    why : str
        Why it is left out, or in doubt; else empty.
    """

    name: str
    use: Literal["number", "category", "left out"]
    n_gaps: int = 0
    n_values: int | None = None
    why: str = ""

    @property
    def words(self) -> str:
        """The use in words, such as "number with 3 gaps" or "category of 4 values"."""
        gaps = count(self.n_gaps, "gap") if self.n_gaps else ""
        if self.use == "category":
            values = f"category of {count(self.n_values or 0, 'value')}"
            return f"{values}, {gaps}" if gaps else values
        return f"number with {gaps}" if gaps and self.use == "number" else self.use


def column_kinds(
    X: Any,
    *,
    categorical: Iterable[str] = (),
    numeric: Iterable[str] = (),
    wanted: Iterable[str] = (),
    identifiers: Mapping[str, str] | None = None,
) -> list[ColumnKind]:
    """Decide what to do with each column of a table of features.

    Numbers stay numbers. Text with few values, and truth values, are categories. Dates, lists,
    identifiers (see `find_identifiers`), text with many values and columns without any value are
    left out.

    Parameters
    ----------
    X : pyarrow.Table or data frame
        Features, as `read_ranking(as_frame=True)` gives them, or a frame of pandas or polars.
    categorical, numeric : iterables of str
        Columns that are to be categories or numbers, whatever they look like.
    wanted : iterable of str
        Columns that are not to be left out because they look like identifiers.
    identifiers : mapping from str to str, optional
        Reasons by name, as `find_identifiers` gives them for all rows of a file, if X has only
        some of them.

    Returns
    -------
    list of ColumnKind
        In the order of the columns.

    Raises
    ------
    ValueError
        If a column that was asked for cannot be used, or none can; all reasons are given.

    See Also
    --------
    column_transformer : Make features of the columns.

    Examples
    --------
    >>> import pyarrow
    >>> X = pyarrow.table(
    ...     {
    ...         "doc_id": [11, 12, 13, 14],
    ...         "price": [9.5, None, 7.0, 8.0],
    ...         "color": ["red", "blue", "red", None],
    ...     }
    ... )
    >>> for kind in column_kinds(X):
    ...     print(kind.name, "-", kind.words, kind.why)
    doc_id - left out an identifier: its name says so
    price - number with 1 gap
    color - category of 2 values, 1 gap
    """
    X = _as_arrow(X)
    categorical, numeric = set(categorical), set(numeric)
    asked = categorical | numeric | set(wanted)
    _check_asked(X, categorical, numeric, asked)
    identifiers = find_identifiers(X) if identifiers is None else identifiers
    kinds = []
    for name in X.column_names:
        is_code = bool(_NAME.search(name)) and name not in identifiers
        forced = "category" if name in categorical or is_code else ""
        kind = _kind(name, X[name], "number" if name in numeric else forced)
        if kind.use != "left out" and name in identifiers and name not in asked:
            kind = kind._replace(use="left out", why=f"an identifier: {identifiers[name]}")
        kinds.append(kind)
    refused = [k for k in kinds if k.use == "left out" and (k.name in asked)]
    if refused or all(kind.use == "left out" for kind in kinds):
        shown = listed((f"{show(k.name)} ({k.why})" for k in refused or kinds), 20)
        what = "these columns cannot" if refused else "no column can"
        raise ValueError(f"{what} be learned from: {shown}.")
    return kinds


def column_transformer(kinds: Sequence[ColumnKind], *, scaler: Any = None) -> ColumnTransformer:
    """Make the transformer of scikit-learn that turns the columns into features.

    Numbers: gaps are filled by the median, the result is scaled, and a column 0/1 tells where gaps
    were. Categories: one column 0/1 for each value, gaps included; values that were not there in
    training have 0 in all of them.

    Parameters
    ----------
    kinds : list of ColumnKind
        As `column_kinds` gives them; columns left out do not occur.
    scaler : transformer, optional
        For the numbers; not fitted.

    Returns
    -------
    sklearn.compose.ColumnTransformer
        Not fitted. It takes Arrow tables and data frames, their columns by name in any order.

    Examples
    --------
    One Pipeline from a table to a ranker:

    >>> import pyarrow
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankwise import RankRLS
    >>> X = pyarrow.table(
    ...     {"price": [9.5, None, 7.0, 8.0], "color": ["red", "blue", "red", "blue"]}
    ... )
    >>> features = column_transformer(column_kinds(X), scaler=StandardScaler())
    >>> ranker = make_pipeline(features, RankRLS()).fit(X, [1, 4, 2, 3])
    >>> list(ranker[0].get_feature_names_out())
    ['price', 'missingindicator_price', 'color_blue', 'color_red']
    >>> new = pyarrow.table({"color": ["green", "blue"], "price": [9.0, None]})
    >>> ranker.predict(new).argmax()
    np.int64(1)
    """
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    numbers = [kind.name for kind in kinds if kind.use == "number"]
    gaps = [kind.name for kind in kinds if kind.use == "number" and kind.n_gaps]
    categories = [kind.name for kind in kinds if kind.use == "category"]
    fill = SimpleImputer(strategy="median")
    filled = fill if scaler is None else make_pipeline(fill, clone(scaler))
    parts = [
        ("numbers", filled, numbers),
        ("gaps", MissingIndicator(features="all"), gaps),
        ("categories", OneHotEncoder(handle_unknown="ignore"), categories),
    ]
    n_values = sum(kind.n_values or 0 for kind in kinds if kind.use == "category")
    n_features = len(numbers) + len(gaps) + n_values
    return ColumnTransformer(
        [part for part in parts if part[2]],
        sparse_threshold=0.3 if n_features > DENSE_FEATURES else 0.0,
        verbose_feature_names_out=False,
    )


def cast_columns(X: Any, categories: Iterable[str]) -> Any:
    """An Arrow table with strings in the columns of categories and floats in all others.

    So the same value is the same whatever the file makes of it: 7, 7.0 and the text 7 are one
    category, as are true and True.
    """
    arrow = import_arrow()
    texts = set(categories)
    columns = []
    X = plain_types(X)
    for name, column in zip(X.column_names, X.columns, strict=True):
        columns.append(_texts(column) if name in texts else _floats(name, column))
    return arrow.table(columns, names=X.column_names)


def _floats(name: str, column: Any) -> Any:
    arrow = import_arrow()
    try:
        return column.cast(arrow.float64())
    except arrow.ArrowInvalid:
        raise ValueError(
            f"column {show(name)} has whole numbers that a float would round. If it is an "
            "identifier, leave it out, or take it as a category."
        ) from None


def _texts(column: Any) -> Any:
    """A column as text; truth values are true and false, however they are spelled."""
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    if is_text(column):
        column = column.cast(arrow.string())
    else:
        cells = [None if v is None or v != v else as_text(v) for v in column.to_pylist()]
        column = arrow.chunked_array([arrow.array(cells, arrow.string())])
    lower = compute.utf8_lower(column)
    return compute.if_else(compute.is_in(lower, arrow.array(["true", "false"])), lower, column)


def used_columns(X: Any, kinds: Sequence[ColumnKind]) -> Any:
    """An Arrow table of the columns that are not left out, as `cast_columns` makes them."""
    used = [kind for kind in kinds if kind.use != "left out"]
    categories = [kind.name for kind in used if kind.use == "category"]
    return cast_columns(X.select([kind.name for kind in used]), categories)


def _as_arrow(X: Any) -> Any:
    arrow = import_arrow()
    if isinstance(X, arrow.Table):
        return plain_types(X)
    if not hasattr(X, "__arrow_c_stream__"):
        raise ValueError(
            f"X is a {type(X).__name__}; expected an Arrow table or a data frame, whose columns "
            "have names and types."
        )
    return plain_types(arrow.table(X))


def _check_asked(X: Any, categorical: set[str], numeric: set[str], asked: set[str]) -> None:
    both = sorted(categorical & numeric)
    if both:
        raise ValueError(f"{show(both[0])} is asked for as a category and as a number; choose one.")
    missing = sorted(asked - set(X.column_names))
    if missing:
        raise ValueError(f"X has no column {', '.join(map(show, missing))}.")


def _kind(name: str, column: Any, forced: str) -> ColumnKind:
    """The kind of a column by what is in it; identifiers are found elsewhere."""
    types = import_arrow().types
    n_gaps = _n_gaps(column)
    if n_gaps == len(column):
        return ColumnKind(name, "left out", n_gaps, None, "it has no values")
    if types.is_nested(column.type) or types.is_binary(column.type):
        return ColumnKind(name, "left out", n_gaps, None, f"its type is {column.type}")
    if forced == "category" or types.is_boolean(column.type):
        return _category(name, column, n_gaps, MOST_VALUES)
    if is_number(column.type):
        return ColumnKind(name, "number", n_gaps, None, _number_problem(column, types))
    sample = _sample(column)
    is_date = types.is_temporal(column.type) or all(_DATE.fullmatch(cell) for cell in sample)
    if forced == "number":
        what = "dates" if is_date else f"words, such as {show(_first_word(sample))}"
        return ColumnKind(name, "left out", n_gaps, None, f"it has {what}, expected numbers")
    if is_date:
        return ColumnKind(name, "left out", n_gaps, None, "dates or times")
    return _category(name, column, n_gaps, FEW_VALUES)


def _category(name: str, column: Any, n_gaps: int, most: int) -> ColumnKind:
    """A category, if it has no more than so many values and most values are there more than once.

    Columns that the user asks for (`most` is MOST_VALUES) may have values that are there once.
    """
    compute = import_arrow("pyarrow.compute")
    n_values = compute.count_distinct(column, mode="only_valid").as_py()
    sample = _sample(column)
    why = ""
    if n_values > most:
        why = f"{n_values:,} different values, such as {show(sample[0])}"
        why += f"; at most {most:,} make a category"
    elif most == FEW_VALUES and n_values > max(5, (len(column) - n_gaps) / 2):
        why = f"{n_values:,} values in {len(column) - n_gaps:,} rows, such as {show(sample[0])}"
    elif max(map(len, sample)) > MAX_LABEL:
        why = "long texts"
    if why and _mostly_numbers(sample):
        why = f"numbers, but also words, such as {show(_first_word(sample))}"
    return ColumnKind(name, "left out" if why else "category", n_gaps, n_values, why)


def _number_problem(column: Any, types: Any) -> str:
    """What is odd about a column of numbers: whole and different in every one of many rows."""
    compute = import_arrow("pyarrow.compute")
    if not types.is_integer(column.type) or len(column) < DOUBTFUL_ROWS:
        return ""
    for part in (column[:SAMPLE], column):
        if compute.count_distinct(part, mode="all").as_py() < len(part):
            return ""
    return "whole numbers that are all different"


def _n_gaps(column: Any) -> int:
    """Number of nulls and NaN."""
    compute = import_arrow("pyarrow.compute")
    return int(compute.sum(compute.is_null(column, nan_is_null=True)).as_py() or 0)


def _sample(column: Any) -> list[str]:
    """Some cells as text, long texts first cut; never empty if the column has a value."""
    compute = import_arrow("pyarrow.compute")
    return [as_text(cell) for cell in compute.drop_null(column)[:SAMPLE].to_pylist()]


def _mostly_numbers(sample: list[str]) -> bool:
    n_numbers = sum(map(_spells_number, sample))
    return 0.8 * len(sample) < n_numbers < len(sample)


def _first_word(sample: list[str]) -> str:
    return next((cell for cell in sample if not _spells_number(cell)), sample[0])


def _spells_number(cell: str) -> bool:
    """Whether a text spells a number, with a decimal point or comma."""
    return finite_number(cell.replace(",", ".", 1)) is not None


# Identifiers ------------------------------------------------------------------------------------

_NAME = re.compile(
    r"(^|[_. -])(id|ID|Id)$|[a-z](ID|Id)$|^([Ii]tem|ITEM|docid|uuid|UUID|index|Unnamed: \d+)$"
)
_LARGE = 10**15
_LONG = "its whole numbers have 16 digits or more"
_NEARLY_ALL = 0.9  # texts that are different in more rows than this name the rows
_FEW_ROWS = 20  # too few to say that all are different by intent
_ROWS_OF_A_CODE = 20  # rows for each value of a column that is called an id, but is a code


def find_identifiers(X: Any) -> dict[str, str]:
    """Say which columns number or name the rows: no model should learn from them.

    Parameters
    ----------
    X : pyarrow.Table
        Features of all rows of a file, as `read_ranking` gives them. A row counter is found even
        if up to half of the rows are not there.

    Returns
    -------
    dict of str to str
        Reason by name of the column: its name says so (and its values are not codes that come back
        in 20 rows each), it counts the rows, it holds whole numbers of 16 digits or more, or it
        holds texts that are nearly all different.

    Examples
    --------
    >>> import pyarrow
    >>> X = pyarrow.table({"doc_id": [3, 5] * 15, "row": range(30), "x": [1, 5, 2, 5, 4] * 6})
    >>> find_identifiers(X)
    {'doc_id': 'its name says so', 'row': 'it counts the rows'}
    """
    reasons = {name: _identifier_reason(name, X[name]) for name in X.column_names}
    return {name: reason for name, reason in reasons.items() if reason}


def _identifier_reason(name: str, column: Any) -> str:
    types, compute = import_arrow().types, import_arrow("pyarrow.compute")
    n_rows = len(column) - column.null_count
    if not n_rows or types.is_nested(column.type):
        return ""
    n_values = compute.count_distinct(column, mode="only_valid").as_py()
    if _NAME.search(name) and (n_values > FEW_VALUES or n_rows < _ROWS_OF_A_CODE * n_values):
        return "its name says so"
    if types.is_integer(column.type):
        if n_rows >= _FEW_ROWS and not column.null_count and _counts_rows(column):
            return "it counts the rows"
        ends = compute.min_max(column).as_py()
        if max(-ends["min"], ends["max"]) >= _LARGE:
            return _LONG
    if types.is_floating(column.type) and _are_long(column):
        return _LONG
    if is_text(column) and n_rows >= _FEW_ROWS and n_values > _NEARLY_ALL * n_rows:
        return f"{n_values} of its {n_rows} texts are different"
    return ""


def _are_long(column: Any) -> bool:
    """Whether floats are whole, and all of the same length: an identifier beyond 64 bits."""
    compute = import_arrow("pyarrow.compute")
    ends = compute.min_max(column).as_py()
    low, high = ends["min"], ends["max"]
    is_long = low == low and _LARGE <= low <= high < 10 * low and high < 1e40
    return is_long and bool(compute.all(compute.equal(compute.floor(column), column)).as_py())


def _counts_rows(column: Any) -> bool:
    """Whether the values go up from row to row, and at least every second one is there."""
    compute = import_arrow("pyarrow.compute")
    is_rising = bool(compute.all(compute.greater(column[1:], column[:-1])).as_py())
    return is_rising and bool(column[-1].as_py() - column[0].as_py() < 2 * len(column))
