"""Columns: features from the columns of a table, whatever they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arrays import Array
from rankwise.formatting import join_words
from rankwise.frames import frame_columns, narwhals_frame, with_names
from rankwise.preprocessing.column_types import (
    FEW_VALUES,
    NAMED,
    ColumnInfo,
    cell_as_text,
    column_numbers,
    infer_column,
    read_cells,
)
from rankwise.preprocessing.group_columns import warn_of_group_names
from rankwise.validation import restored_on_failure

DENSE_FEATURES = 1000
MOST_WORDS = 2000  # of a text, the most frequent ones
MOST_CODES = 250  # values of a category that trees split by
NUMERIC = ("number", "order", "date", "vector")
NUMBERS, GAPS, NARROW, WIDE = range(4)  # the order of the features


class TableFeatures(NamedTuple):
    """The features of a table as different learners take them.

    Attributes
    ----------
    dense : ndarray of shape (n_items, n_dense)
        Numbers, dates and vectors with their gaps filled, where the gaps are, and one column for
        each value of categories of at most 50 values.
    sparse : csr_array of shape (n_items, n_sparse)
        One column for each value of categories of three values or more, and each word of texts.
    sizes : tuple of int
        How many of them each category and text has.
    is_wide : ndarray of bool, shape (n_sparse,)
        Those that are not among the dense ones.
    cells : ndarray of shape (n_items, n_cells)
        For trees: numbers with NaN for gaps, not scaled, and then the codes of categories.
    n_codes : int
        Number of columns of codes.
    """

    dense: Array
    sparse: Any
    sizes: tuple[int, ...]
    is_wide: NDArray[np.bool_]
    cells: Array
    n_codes: int


class TableVectorizer(TransformerMixin, BaseEstimator):
    """Make features of the columns of a table: the first step of a Pipeline for a data frame.

    Numbers: gaps are filled by the median, and a column 0/1 tells where training data have gaps.
    Words among numbers count as gaps. Categories, of any number of values: one column 0/1 for each
    value, and one for gaps. If there are more than 50 values, those that are there once share a
    column, which new values belong to as well; otherwise new values have 0 in all columns. Dates:
    year, month, weekday, days since 1970 and hour, as far as they vary. Text: weights of its 2,000
    most frequent words (TF-IDF); texts that repeat are a category, too. Vectors (lists of one
    length): their numbers. Words with an order (`order`): their place in it. Only identifiers, row
    counters, and columns without a value are left out. What became of each column, and why, stands
    in `facts_`.

    Parameters
    ----------
    categorical, numeric : iterables of str
        Columns that are to be categories or numbers, whatever they look like.
    wanted : iterable of str
        Columns that are not to be left out because they look like identifiers.
    order : mapping of str to list of str, optional
        Words of columns, from low to high, such as ``{"size": ["S", "M", "L"]}``.
    scale : bool
        Scale the numbers to mean 0 and standard deviation 1. Categories stay 0 and 1.

    Attributes
    ----------
    facts_ : list of ColumnInfo
        What each column of the training data is: name, kind, number of gaps, reason, categories or
        words, medians, means, scales.
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
    be gone), if it has whole numbers of 16 digits or more, or single words that hardly repeat. With
    such a name but more than 20 rows for each value it is a category. An array has numbers only,
    and all its columns are used.

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
    ...         "since": ["2024-05-01", "2023-07-09", "2024-02-03", "2022-02-03"],
    ...     }
    ... )
    >>> ranker = make_pipeline(TableVectorizer(scale=True), RankRLS()).fit(X, [1, 4, 2, 3])
    >>> for column in ranker[0].facts_:
    ...     print(column.name, "-", column.words, column.why)
    doc_id - left out an identifier: its name says so
    price - number with 1 gap
    color - category of 2 values
    since - date: year, month, weekday, days
    >>> list(ranker[0].get_feature_names_out()[[0, 4, 5, 6]])
    ['price', 'since days', 'price is missing', 'color=blue']
    >>> new = X[:2].with_columns(color=polars.lit("green"))
    >>> ranker.predict(new).argmax()
    np.int64(1)
    """

    def __init__(
        self,
        *,
        categorical: Iterable[str] = (),
        numeric: Iterable[str] = (),
        wanted: Iterable[str] = (),
        order: Mapping[str, Sequence[str]] | None = None,
        scale: bool = False,
    ) -> None:
        self.categorical = categorical
        self.numeric = numeric
        self.wanted = wanted
        self.order = order
        self.scale = scale

    @restored_on_failure
    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide what becomes of each column, and learn medians, categories, words and scales.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_items, n_columns)
            Items.
        y : ignored
            Only there for Pipelines, and to see whether there are groups.

        Returns
        -------
        Columns
            The fitted transformer.

        Raises
        ------
        ValueError
            If a column that was asked for cannot be used, or none can; all reasons are given.

        Warns
        -----
        UserWarning
            If a column has the name of groups, such as "qid", and y does not carry groups.
        """
        warn_of_group_names(X, y)
        return self.decide_columns(X)

    def decide_columns(self, X: Any) -> Self:
        """Do what `fit` does, without a warning of columns that are called as groups are."""
        columns, is_frame = self._read(X, reset=True)
        order = dict(self.order or {})
        categorical, numeric = set(self.categorical), set(self.numeric)
        asked = categorical | numeric | set(self.wanted) | set(order)
        for name in sorted(categorical & numeric | (categorical | numeric) & set(order)):
            raise ValueError(f"{name!r} is asked for in two ways; choose one.")
        missing = sorted(asked - set(columns))
        if missing:
            raise ValueError(f"X has no column {', '.join(map(repr, missing))}.")
        self.facts_ = []
        for name, cells in columns.items():
            forced = "category" if name in categorical else "number" if name in numeric else ""
            is_free = is_frame and name not in asked
            made = infer_column(name, cells, forced, order.get(name), is_free)
            self.facts_ += [self._learn(column, cells) for column in made]
        refused = [column for column in self._left_out() if column.name in asked]
        if refused or len(self._left_out()) == len(self.facts_):
            what = "these columns cannot" if refused else "no column can"
            reasons = [f"{column.name!r} ({column.why})" for column in refused or self.facts_]
            raise ValueError(f"{what} be learned from: {join_words(reasons, 20)}.")
        return self

    def _left_out(self) -> list[ColumnInfo]:
        return [column for column in self.facts_ if column.kind == "left out"]

    def _learn(self, column: ColumnInfo, cells: NDArray[Any]) -> ColumnInfo:
        """The same facts with medians, means and scales of numbers, and the words of a text."""
        if column.kind == "text":
            return _with_words(column, cell_as_text(cells))
        if column.kind not in NUMERIC:
            return column
        numbers = column_numbers(column, cells)
        medians = np.nanmedian(numbers, axis=0)
        means, scales = np.zeros(len(medians)), np.ones(len(medians))
        if self.scale:
            scaler = StandardScaler().fit(np.where(np.isnan(numbers), medians, numbers))
            means, scales = scaler.mean_, scaler.scale_
        learned = [tuple(x.tolist()) for x in (medians, means, scales)]
        return column._replace(medians=learned[0], means=learned[1], scales=learned[2])

    def transform(self, X: Any) -> Any:
        """The features.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_items, n_columns)
            Items. Columns of a frame may be in any order, and those left out may be missing.

        Returns
        -------
        ndarray or csr_array of shape (n_items, n_features)
            Numbers, gaps, categories, words. Sparse if there are more than 1,000 features, most of
            them 0.
        """
        views = self.views(X)
        dense, wide = views.dense, views.sparse[:, views.is_wide]
        n_features = dense.shape[1] + wide.shape[1]
        share = (np.count_nonzero(dense) + wide.nnz) / max(1, len(dense) * n_features)
        if n_features > DENSE_FEATURES and share < 0.3:
            return sp.csr_array(sp.hstack([sp.csr_array(dense), wide]))
        return np.hstack([dense, wide.toarray()]) if wide.shape[1] else dense

    def views(self, X: Any) -> TableFeatures:
        """The features as linear models, and as trees take them."""
        check_is_fitted(self)
        columns, _ = self._read(X, reset=False)
        used = {column.name: None for column in self.facts_ if column.kind != "left out"}
        missing = [name for name in used if name not in columns]
        if missing:
            raise ValueError(f"X lacks the columns {', '.join(map(repr, missing))}.")
        return self._views(columns)

    def probe(self) -> TableFeatures:
        """The views of two made-up rows of gaps; for checks of model files."""
        gaps = np.array([None, None], dtype=object)
        vectors = {c.name: c.medians for c in self.facts_ if c.kind == "vector"}
        cells = {column.name: gaps for column in self.facts_}
        nothing = {name: np.full((2, len(numbers)), np.nan) for name, numbers in vectors.items()}
        return self._views(cells | nothing)

    def _views(self, columns: dict[str, Any]) -> TableFeatures:
        empty = np.empty((len(next(iter(columns.values()))), 0))
        numbers, filled, gaps, codes, narrow = [empty], [empty], [empty], [empty], [empty]
        blocks: list[Any] = [sp.csr_array(empty)]
        is_wide = [False]
        for column in self.facts_:
            if column.kind == "left out":
                continue
            cells = columns[column.name]
            if column.kind in NUMERIC:
                numbers.append(column_numbers(column, cells))
                values = np.where(np.isnan(numbers[-1]), column.medians, numbers[-1])
                filled.append((values - np.array(column.means)) / np.array(column.scales))
                if column.n_gaps:
                    gaps.append(np.isnan(numbers[-1][:, :1]))
                continue
            if column.kind == "text":
                block = _word_weights(column, cell_as_text(cells))
            else:
                places = _places(column, cell_as_text(cells))
                rows = np.flatnonzero(places >= 0)
                entries = np.ones(len(rows)), (rows, places[rows])
                block = sp.csr_array(entries, shape=(len(places), n_places(column)))
                if block.shape[1] <= MOST_CODES:
                    codes.append(np.where(places < 0, np.nan, places)[:, None])
                if not is_wide_column(column):
                    narrow.append(block.toarray())
            if is_wide_column(column) or block.shape[1] > 2:
                blocks.append(block)
                is_wide.append(is_wide_column(column))
        sizes = [block.shape[1] for block in blocks]
        return TableFeatures(
            np.hstack(filled + gaps + narrow),
            sp.csr_array(sp.hstack(blocks, format="csr")),
            tuple(sizes[1:]),
            np.repeat(np.array(is_wide, dtype=bool), sizes),
            np.hstack(numbers + codes),
            len(codes) - 1,
        )

    def numbered(self, X: Any) -> dict[str, Array]:
        """The columns of numbers that were left out for their names, unless they count rows."""
        named = {c.name for c in self._left_out() if c.why == f"an identifier: {NAMED}"}
        cells = {
            name: read_cells(c) for name, c in (frame_columns(X) or {}).items() if name in named
        }
        return {
            name: numbers.astype(np.float64)
            for name, numbers in cells.items()
            if numbers.dtype.kind in "iu" and float(np.ptp(numbers)) >= 2 * len(numbers)
        }

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of columns, ``name is missing`` for gaps, ``name=value`` for categories."""
        check_is_fitted(self)
        return np.array([name for _, name in _features(self.facts_)], dtype=object)

    def _read(self, X: Any, *, reset: bool) -> tuple[dict[str, Any], bool]:
        """The columns by name, as arrays, and whether they are of a frame."""
        frame = narwhals_frame(X)
        if frame is None:
            checked = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
            matrix = validate_data(self, X, reset=reset, **checked)
            names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(matrix.shape[1])])
            return dict(zip(names, matrix.T, strict=True)), False
        if reset:
            validate_data(self, with_names(frame), reset=True, skip_check_array=True)
        found = frame_columns(X) or {}
        used = found if reset else {c.name for c in self.facts_ if c.kind != "left out"}
        return {name: read_cells(column) for name, column in found.items() if name in used}, True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def source_of_features(facts: Sequence[ColumnInfo]) -> list[int]:
    """Return the input column of each feature of a `TableVectorizer`."""
    return [k for k, _ in _features(facts)]


def _features(facts: Sequence[ColumnInfo]) -> list[tuple[int, str]]:
    """Number of the column, and name, of each feature."""
    features: list[tuple[int, int, str]] = []
    for k, column in enumerate(facts):
        name, parts = column.name, [""]
        if column.kind == "left out":
            continue
        if column.kind in NUMERIC:
            if column.kind == "date":
                parts = [f" {part}" for part in column.categories]
            elif column.kind == "vector":
                parts = [f" {j}" for j in range(len(column.medians))]
            features += [(NUMBERS, k, name + part) for part in parts]
            features += [(GAPS, k, f"{name} is missing")] * bool(column.n_gaps)
            continue
        names = [f"{name} has {word}" for word in column.categories]
        if column.kind == "category":
            names = [f"{name}={value}" for value in column.categories]
            names += [f"{name} is missing"] * bool(column.n_gaps)
            names += [f"{name} is rare"] * bool(column.n_rare)
        place = WIDE if is_wide_column(column) else NARROW
        features += [(place, k, each) for each in names]
    return [(k, name) for _, k, name in sorted(features, key=itemgetter(0))]


def is_wide_column(column: ColumnInfo) -> bool:
    """Whether its features are kept sparse."""
    return column.kind == "text" or len(column.categories) > FEW_VALUES


def n_places(column: ColumnInfo) -> int:
    """Number of features of a category: its values, gaps and rare values."""
    return len(column.categories) + bool(column.n_gaps) + bool(column.n_rare)


def _places(column: ColumnInfo, texts: list[str | None]) -> NDArray[np.intp]:
    """The place of the value of each row among the columns of a category; −1 if it has none."""
    place: dict[str | None, int] = {value: k for k, value in enumerate(column.categories)}
    if column.n_gaps:
        place[None] = len(place)
    place.setdefault(None, -1)
    other = n_places(column) - 1 if column.n_rare else -1
    return np.array([place.get(text, other) for text in texts], dtype=np.intp)


def _words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _with_words(column: ColumnInfo, texts: list[str | None]) -> ColumnInfo:
    """A text with its frequent words, or left out if no word is there twice."""
    known = [text for text in texts if text is not None]
    options = {"min_df": 2, "max_df": max(2, len(known) - 1), "max_features": MOST_WORDS}
    counter = TfidfVectorizer(analyzer=_words_of, binary=True, **options)
    try:
        counter.fit(known)
    except ValueError:  # no word is left
        return column._replace(kind="left out", why="texts whose words are in one or in all")
    words = tuple(str(word) for word in counter.get_feature_names_out())
    return column._replace(categories=words, weights=tuple(counter.idf_.tolist()))


def _word_weights(column: ColumnInfo, texts: list[str | None]) -> Any:
    """TF-IDF of the words, by scikit-learn's vectorizer built from the facts."""
    vocabulary = {word: k for k, word in enumerate(column.categories)}
    counter = TfidfVectorizer(analyzer=_words_of, binary=True, vocabulary=vocabulary)
    counter.idf_ = np.array(column.weights)
    return counter.transform([text or "" for text in texts])
