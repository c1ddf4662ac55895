"""TableVectorizer: features from the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arrays import AnyArray, Array, Indices, Matrix, MatrixLike
from rankwise.fitted_schema import FittedSchema, ListOf, Record
from rankwise.formatting import join_words
from rankwise.frames import frame_columns, narwhals_frame, with_names
from rankwise.graphs.supervision import TargetLike
from rankwise.preprocessing.cells import cell_as_text, read_cells
from rankwise.preprocessing.column_features import (
    category_codes,
    column_numbers,
    fit_words,
    is_wide_column,
    n_category_features,
    one_hot,
    word_weights,
)
from rankwise.preprocessing.column_types import (
    NUMERIC,
    ColumnInfo,
    ColumnRequest,
    Reason,
    infer_column,
)
from rankwise.preprocessing.group_columns import warn_of_group_names
from rankwise.validation import restored_on_failure

DENSE_FEATURES = 1000
"""A matrix with more features is returned sparse if most of them are 0."""
MAX_DENSITY = 0.3
MAX_CODES = 250
"""Categories with more values have no column of codes for trees."""


class TableFeatures(NamedTuple):
    """The features of a table in the forms that different learners use.

    Attributes
    ----------
    dense : ndarray of shape (n_items, n_dense)
        Numbers, dates and vectors with imputed missing values, indicators of missing values, and
        one column for each value of categories with at most 50 values.
    sparse : csr_array of shape (n_items, n_sparse)
        One column for each value of categories with at least three values, and for each word of
        texts.
    sizes : tuple of int
        Number of sparse columns of each category and text.
    is_wide : ndarray of bool, shape (n_sparse,)
        Sparse columns that `dense` does not contain.
    cells : ndarray of shape (n_items, n_cells)
        For trees: unscaled numbers with NaN for missing values, followed by category codes.
    n_codes : int
        Number of columns of category codes.
    """

    dense: Array
    sparse: Any
    sizes: tuple[int, ...]
    is_wide: NDArray[np.bool_]
    cells: Array
    n_codes: int


class TableVectorizer(TransformerMixin, BaseEstimator):
    """Turn the columns of a table into features: the first step of a Pipeline for a data frame.

    Use it before a linear or kernel ranker if X is a data frame with text, dates or missing values.

    Missing numbers are replaced by the median, and a 0/1 indicator column marks missing values;
    words among numbers count as missing. Categories become one 0/1 column for each value, and one
    for missing values. In categories of more than 50 values, the values that occur once share one
    column, which is also used for new values; in other categories new values are 0 in all columns.
    Dates become year, month, weekday, days since 1970 and hour; constant parts are dropped. Texts
    become the TF-IDF weights of their 2,000 most frequent words; texts that repeat are also a
    category. Vectors (lists of one length) become their numbers, and words with an order (`order`)
    their rank. Identifiers, row counters, and columns without values are dropped. `facts_` records
    the use of each column and the reason.

    Parameters
    ----------
    categorical, numeric : iterables of str, default=()
        Columns that are used as categories or as numbers, regardless of their content.
    keep : iterable of str, default=()
        Columns that are used even if they look like identifiers.
    order : mapping of str to list of str, default=None
        Words of columns from low to high, such as ``{"size": ["S", "M", "L"]}``.
    scale : bool, default=False
        Whether to scale the numbers to mean 0 and standard deviation 1. Categories stay 0 and 1.

    Attributes
    ----------
    facts_ : list of ColumnInfo
        Use of each column of the training data: name, kind, number of missing values, reason,
        categories or words, medians, means, scales.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    GroupScaler : Features relative to the other items of their group.

    Notes
    -----
    A column is an identifier if it has the name of one, if it counts the rows, if it has whole
    numbers of 16 digits or more, or single words that hardly repeat. A column with the name of an
    identifier but more than 20 rows for each value is a category. A column counts the rows if its
    numbers rise from row to row and at least every second number of its range occurs; if rows were
    removed from the table, pass `row_numbers` to `fit`. All columns of an array are used as
    numbers.

    Examples
    --------
    >>> import polars
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankwise import RankRLS, TableVectorizer
    >>> X = polars.DataFrame(
    ...     {
    ...         "doc_id": [11, 12, 13, 14],
    ...         "price": [9.5, None, 7.0, 8.0],
    ...         "color": ["red", "blue", "red", "blue"],
    ...         "since": ["2024-05-01", "2023-07-09", "2024-02-03", "2022-02-03"],
    ...     }
    ... )
    >>> ranker = make_pipeline(TableVectorizer(scale=True), RankRLS()).fit(X, [1, 4, 2, 3])
    >>> for column in ranker[0].facts_:
    ...     print(column.name, "-", column.words, column.why)
    doc_id - dropped an identifier: its name says so
    price - number with 1 missing value
    color - category of 2 values
    since - date: year, month, weekday, days
    >>> list(ranker[0].get_feature_names_out()[[0, 4, 5, 6]])
    ['price', 'since days', 'price is missing', 'color=blue']
    >>> new = X[:2].with_columns(color=polars.lit("green"))
    >>> ranker.predict(new).argmax()
    np.int64(1)
    """

    _fitted: ClassVar[FittedSchema] = {
        "facts_": ListOf(Record(ColumnInfo)),
    }

    def __init__(
        self,
        *,
        categorical: Iterable[str] = (),
        numeric: Iterable[str] = (),
        keep: Iterable[str] = (),
        order: Mapping[str, Sequence[str]] | None = None,
        scale: bool = False,
    ) -> None:
        self.categorical = categorical
        self.numeric = numeric
        self.keep = keep
        self.order = order
        self.scale = scale

    @restored_on_failure
    def fit(
        self, X: MatrixLike, y: TargetLike | None = None, *, row_numbers: ArrayLike | None = None
    ) -> Self:
        """Infer the use of each column, and learn medians, categories, words and scales.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_items, n_columns)
            Items.
        y : ignored
            Accepted for Pipelines, and read only to see whether there are groups.
        row_numbers : array-like of int, shape (n_items,), default=None
            Row numbers of the items in the table from which they were selected, so that a column
            that counts the rows of that table is recognized. None means that X is the table.

        Returns
        -------
        TableVectorizer
            The fitted transformer.

        Raises
        ------
        ValueError
            If a requested column cannot be used, or if no column can; the message has all reasons.

        Warns
        -----
        UserWarning
            If a column has the name of groups, such as "qid", and y does not carry groups.
        """
        warn_of_group_names(X, y)
        return self.fit_without_warning(X, row_numbers=row_numbers)

    def fit_without_warning(self, X: MatrixLike, *, row_numbers: ArrayLike | None = None) -> Self:
        """Fit without a warning about columns that have the name of groups.

        Parameters
        ----------
        X : data frame or array-like
            The table, as in `fit`.
        row_numbers : array-like of int, optional
            Numbers of the rows in the whole table.

        Returns
        -------
        TableVectorizer
            This object.
        """
        columns, is_frame = self._read(X, reset=True)
        requests = self._requests(list(columns), is_frame)
        n_rows = len(next(iter(columns.values()), ()))
        rows = _check_row_numbers(row_numbers, n_rows)
        self.facts_: list[ColumnInfo] = []
        for name, cells in columns.items():
            for column in infer_column(name, cells, requests[name], rows):
                self.facts_.append(self._learn(column, cells))
        self._check_usable()
        return self

    def _requested_names(self) -> set[str]:
        """Columns that the parameters name."""
        return {*self.categorical, *self.numeric, *self.keep, *(self.order or {})}

    def _requests(self, names: list[str], is_frame: bool) -> dict[str, ColumnRequest]:
        """What the parameters request for each column; validates the parameters."""
        order = dict(self.order or {})
        categorical = set(self.categorical)
        numeric = set(self.numeric)
        requested = self._requested_names()
        ordered = set(order)
        conflicts = (categorical & numeric) | (categorical & ordered) | (numeric & ordered)
        if conflicts:
            raise ValueError(
                f"the column {min(conflicts)!r} is in two of categorical=, numeric= and order=; "
                "pass it in one of them."
            )
        unknown = sorted(requested - set(names))
        if unknown:
            raise ValueError(f"X has no column {', '.join(map(repr, unknown))}.")
        requests = {}
        for name in names:
            request = ColumnRequest(
                order=order.get(name), may_drop=is_frame and name not in requested
            )
            if name in categorical:
                request = request._replace(kind="category")
            elif name in numeric:
                request = request._replace(kind="number")
            requests[name] = request
        return requests

    def _check_usable(self) -> None:
        """Raise a ValueError if a requested column is dropped, or if all columns are."""
        # columns that the user requested must be usable, and at least one of all columns
        dropped = [column for column in self.facts_ if not column.is_used]
        requested = self._requested_names()
        refused = [column for column in dropped if column.name in requested]
        if refused:
            raise ValueError(f"these columns cannot be learned from: {_list_reasons(refused)}.")
        if not self.facts_:
            raise ValueError("X has no columns of features; pass at least one.")
        if len(dropped) == len(self.facts_):
            raise ValueError(f"no column can be learned from: {_list_reasons(dropped)}.")

    def _used(self) -> list[ColumnInfo]:
        return [column for column in self.facts_ if column.is_used]

    def _learn(self, column: ColumnInfo, cells: AnyArray) -> ColumnInfo:
        """Add the medians, means and scales of numbers, or the words of a text."""
        if column.kind == "text":
            return fit_words(column, cell_as_text(cells))
        if column.kind not in NUMERIC:
            return column
        numbers = column_numbers(column, cells)
        medians = np.nanmedian(numbers, axis=0)
        means = np.zeros(len(medians))
        scales = np.ones(len(medians))
        if self.scale:
            imputed = np.where(np.isnan(numbers), medians, numbers)
            scaler = StandardScaler().fit(imputed)
            means = scaler.mean_
            scales = scaler.scale_
        return column._replace(
            medians=tuple(medians.tolist()),
            means=tuple(means.tolist()),
            scales=tuple(scales.tolist()),
        )

    def transform(self, X: MatrixLike) -> Matrix:
        """Compute the features.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_items, n_columns)
            Items. Columns of a frame may be in any order, and unused columns may be missing.

        Returns
        -------
        ndarray or csr_array of shape (n_items, n_features)
            Numbers, indicators of missing values, categories, words. Sparse if there are more than
            1,000 features and most of them are 0.
        """
        views = self.views(X)
        dense = views.dense
        wide = views.sparse[:, views.is_wide]  # indicators of columns with many categories
        n_items, n_dense = dense.shape
        n_wide = wide.shape[1]
        n_features = n_dense + n_wide
        n_nonzero = np.count_nonzero(dense) + wide.nnz
        density = n_nonzero / max(1, n_items * n_features)
        if n_features > DENSE_FEATURES and density < MAX_DENSITY:
            return sp.csr_array(sp.hstack([sp.csr_array(dense), wide]))
        if n_wide == 0:
            return dense
        return np.hstack([dense, wide.toarray()])

    def views(self, X: MatrixLike) -> TableFeatures:
        """Compute the features for linear models and for trees.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_items, n_columns)
            Items.

        Returns
        -------
        TableFeatures
            Dense and sparse features, and cells for trees.
        """
        check_is_fitted(self)
        columns, _ = self._read(X, reset=False)
        used_names = dict.fromkeys(column.name for column in self._used())
        missing = [name for name in used_names if name not in columns]
        if missing:
            raise ValueError(f"X lacks the columns {', '.join(map(repr, missing))}.")
        return self._compute_views(columns)

    def probe(self) -> TableFeatures:
        """Compute the features of two rows of missing values, to check a model file.

        Returns
        -------
        TableFeatures
            Features of the two rows.
        """
        # the features of two rows whose cells are all missing
        cells: dict[str, AnyArray] = {}
        for column in self.facts_:
            if column.kind == "vector":
                cells[column.name] = np.full((2, len(column.medians)), np.nan)
            else:
                cells[column.name] = np.array([None, None], dtype=object)
        return self._compute_views(cells)

    def _compute_views(self, columns: dict[str, AnyArray]) -> TableFeatures:
        n_rows = len(next(iter(columns.values())))
        blocks = _FeatureBlocks(n_rows)
        for column in self._used():
            cells = columns[column.name]
            if column.kind in NUMERIC:
                blocks.add_numbers(column, column_numbers(column, cells))
            elif column.kind == "text":
                blocks.add_words(word_weights(column, cell_as_text(cells)))
            else:
                blocks.add_category(column, category_codes(column, cell_as_text(cells)))
        return blocks.join()

    def numbered(self, X: MatrixLike) -> dict[str, Array]:
        """Columns of whole numbers that are dropped for their names, unless they count rows.

        Parameters
        ----------
        X : data frame or array-like
            The table, as in `transform`.

        Returns
        -------
        dict from str to ndarray
            Values of each such column.
        """
        # whole numbers that are no features because of the name of their column
        id_names = {column.name for column in self.facts_ if column.reason is Reason.ID_NAME}
        columns = frame_columns(X) or {}
        numbers_by_name = {}
        for name, column in columns.items():
            if name not in id_names:
                continue
            numbers = read_cells(column)
            if numbers.dtype.kind not in "iu":
                continue
            may_count_rows = float(np.ptp(numbers)) < 2 * len(numbers)  # such as 1, 2, 4, …
            if not may_count_rows:
                numbers_by_name[name] = numbers.astype(np.float64)
        return numbers_by_name

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> AnyArray:
        """Return the names of the features.

        Parameters
        ----------
        input_features : ignored
            Accepted for compatibility with scikit-learn.

        Returns
        -------
        ndarray of str
            Names of columns, ``name is missing`` for missing values, ``name=value`` for categories.
        """
        check_is_fitted(self)
        return np.array([feature.name for feature in _features(self.facts_)], dtype=object)

    def _read(self, X: MatrixLike, *, reset: bool) -> tuple[dict[str, AnyArray], bool]:
        """Return the cells of the columns by name, and whether X is a data frame."""
        frame = narwhals_frame(X)
        if frame is None:
            return self._read_array(X, reset=reset), False
        if reset:
            validate_data(self, with_names(frame), reset=True, skip_check_array=True)
        columns = frame_columns(X) or {}
        if not reset:
            used_names = {column.name for column in self._used()}
            columns = {name: column for name, column in columns.items() if name in used_names}
        cells_by_name = {name: read_cells(column) for name, column in columns.items()}
        return cells_by_name, True

    def _read_array(self, X: MatrixLike, *, reset: bool) -> dict[str, AnyArray]:
        matrix = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
        )
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{k}" for k in range(matrix.shape[1])]
        return dict(zip(names, matrix.T, strict=True))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class _FeatureBlocks:
    """Collects the features of the columns; see `TableFeatures`."""

    def __init__(self, n_rows: int) -> None:
        # lists of blocks of columns, each begun with an empty one so that they can be joined
        empty = np.empty((n_rows, 0))
        self.raw_numbers = [empty]
        self.scaled_numbers = [empty]
        self.missing_indicators = [empty]
        self.codes = [empty]  # number of the category
        self.narrow_categories = [empty]
        self.sparse_blocks: list[Matrix] = [sp.csr_array(empty)]
        self.is_wide_block = [False]

    def add_numbers(self, column: ColumnInfo, numbers: Array) -> None:
        """Add the numbers of a column, imputed and scaled, and its indicator."""
        is_missing = np.isnan(numbers)
        imputed = np.where(is_missing, column.medians, numbers)
        scaled = (imputed - np.array(column.means)) / np.array(column.scales)
        self.raw_numbers.append(numbers)
        self.scaled_numbers.append(scaled)
        if column.n_missing:  # one indicator: all numbers of a date or a vector are missing
            self.missing_indicators.append(is_missing[:, :1])

    def add_words(self, weights: Matrix) -> None:
        """Add the weights of the words of a text."""
        self._add_sparse(weights, is_wide=True)

    def add_category(self, column: ColumnInfo, codes: Indices) -> None:
        """Add the one-hot encoding of a category, and its codes for trees."""
        # indicators are dense for few categories, and sparse for many ("wide"); indicators of three
        # or more categories are also available as sparse columns
        n_features = n_category_features(column)
        if n_features <= MAX_CODES:  # codes for trees
            codes_or_nan = np.where(codes < 0, np.nan, codes)
            self.codes.append(codes_or_nan[:, None])
        indicators = one_hot(codes, n_features)
        is_wide = is_wide_column(column)
        if not is_wide:
            self.narrow_categories.append(indicators.toarray())
        if is_wide or n_features > 2:
            self._add_sparse(indicators, is_wide=is_wide)

    def _add_sparse(self, block: Matrix, *, is_wide: bool) -> None:
        self.sparse_blocks.append(block)
        self.is_wide_block.append(is_wide)

    def join(self) -> TableFeatures:
        """Return the features of all columns."""
        dense_blocks = [*self.scaled_numbers, *self.missing_indicators, *self.narrow_categories]
        n_columns_of_blocks = [block.shape[1] for block in self.sparse_blocks]
        is_wide_block = np.array(self.is_wide_block, dtype=bool)
        return TableFeatures(
            dense=np.hstack(dense_blocks),
            sparse=sp.csr_array(sp.hstack(self.sparse_blocks, format="csr")),
            sizes=tuple(n_columns_of_blocks[1:]),  # the first block is empty
            is_wide=np.repeat(is_wide_block, n_columns_of_blocks),
            cells=np.hstack([*self.raw_numbers, *self.codes]),
            n_codes=len(self.codes) - 1,  # the first block is empty
        )


def source_of_features(facts: Sequence[ColumnInfo]) -> list[int]:
    """Return the input column of each feature of a `TableVectorizer`."""
    return [feature.column for feature in _features(facts)]


class _Feature(NamedTuple):
    """A feature: number of its column in `facts_`, and its name."""

    column: int
    name: str


def _features(facts: Sequence[ColumnInfo]) -> list[_Feature]:
    """Features in the order of `TableVectorizer.transform`."""
    # in the order of the columns of `transform`
    numbers: list[_Feature] = []
    missing_indicators: list[_Feature] = []
    narrow_categories: list[_Feature] = []
    wide_categories: list[_Feature] = []
    for number, column in enumerate(facts):
        if not column.is_used:
            continue
        if column.kind in NUMERIC:
            for suffix in _number_suffixes(column):
                numbers.append(_Feature(number, column.name + suffix))
            if column.n_missing:
                missing_indicators.append(_Feature(number, f"{column.name} is missing"))
            continue
        features = [_Feature(number, name) for name in _category_names(column)]
        if is_wide_column(column):
            wide_categories += features
        else:
            narrow_categories += features
    return numbers + missing_indicators + narrow_categories + wide_categories


def _number_suffixes(column: ColumnInfo) -> list[str]:
    """Suffixes of the names of the numbers of a column."""
    if column.kind == "date":
        return [f" {date_part}" for date_part in column.categories]
    if column.kind == "vector":
        return [f" {j}" for j in range(len(column.medians))]
    return [""]


def _category_names(column: ColumnInfo) -> list[str]:
    """Names of the features of a category or a text."""
    if column.kind == "text":
        return [f"{column.name} has {word}" for word in column.categories]
    names = [f"{column.name}={value}" for value in column.categories]
    if column.n_missing:
        names.append(f"{column.name} is missing")
    if column.n_rare:
        names.append(f"{column.name} is rare")
    return names


def _check_row_numbers(row_numbers: ArrayLike | None, n_rows: int) -> Indices:
    """Return the row numbers, by default 0, 1, …"""
    if row_numbers is None:
        return np.arange(n_rows)
    numbers = np.asarray(row_numbers)
    if numbers.shape != (n_rows,) or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"row_numbers has shape {numbers.shape} and dtype {numbers.dtype}; expected one whole "
            f"number for each of the {n_rows} rows."
        )
    return numbers.astype(np.intp)


def _list_reasons(columns: Sequence[ColumnInfo]) -> str:
    return join_words([f"{column.name!r} ({column.why})" for column in columns], 20)
