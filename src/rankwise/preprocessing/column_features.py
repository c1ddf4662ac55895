"""Features of one column of a table: numbers, one-hot codes of categories, weights of words."""

from __future__ import annotations

import math
import re

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from rankwise.arrays import AnyArray, Array, Indices, Matrix
from rankwise.datasets.parse_numbers import parse_quantity, read_format
from rankwise.preprocessing.cells import as_dates, cell_as_text, date_parts, parse_number
from rankwise.preprocessing.column_types import FEW_VALUES, ColumnInfo, Reason

MAX_WORDS = 2000
"""Number of words of a text that have a feature; the most frequent ones."""


def column_numbers(column: ColumnInfo, cells: AnyArray) -> Array:
    """Cells of a numeric column as numbers, shape (n_rows, n_numbers); NaN for missing values."""
    if column.kind == "order":
        rank_of_word = {word: float(k) for k, word in enumerate(column.categories)}
        ranks = [rank_of_word.get(str(text), np.nan) for text in cell_as_text(cells)]
        return np.array(ranks)[:, None]
    if column.kind == "date":
        return date_parts(as_dates(cells, column.form), column.categories)
    if column.kind == "vector":
        numbers = _vectors(column, cells)
    else:
        numbers = _scalars(column, cells)[:, None]
    if np.isinf(numbers).any():
        raise ValueError(f"column {column.name!r} has infinite numbers.")
    return numbers


def _vectors(column: ColumnInfo, cells: AnyArray) -> Array:
    is_matrix = cells.ndim == 2 and cells.dtype != object
    n_trained = len(column.medians)  # 0 during training
    has_trained_length = n_trained == 0 or (is_matrix and cells.shape[1] == n_trained)
    if not is_matrix or not has_trained_length:
        raise ValueError(
            f"column {column.name!r} has lists of other lengths than in training; expected "
            f"vectors of {n_trained} numbers in every row."
        )
    return cells.astype(np.float64)


def _scalars(column: ColumnInfo, cells: AnyArray) -> Array:
    if cells.dtype != object:
        return cells.astype(np.float64)
    if cells.ndim > 1:
        raise ValueError(f"column {column.name!r} has words, such as 'lists', expected numbers.")
    texts = cell_as_text(cells)
    numbers = np.array([_parse_cell(text, column.form) for text in texts])
    if column.reason is not Reason.WORDS_AS_MISSING:
        for text, number in zip(texts, numbers, strict=True):
            if text is not None and np.isnan(number):
                raise ValueError(
                    f"column {column.name!r} has words, such as {text!r:.40}, expected numbers."
                )
    return numbers


def _parse_cell(text: str | None, number_format: str) -> float:
    """The number in a text, in the format of the column if it has a unit."""
    if text is None:
        return math.nan
    if number_format:
        return parse_quantity(text, read_format(number_format))
    return parse_number(text)


def is_wide_column(column: ColumnInfo) -> bool:
    """Whether the features of the column are stored sparse."""
    return column.kind == "text" or len(column.categories) > FEW_VALUES


def n_category_features(column: ColumnInfo) -> int:
    """Number of features of a category: one per value, for missing and for rare values."""
    return len(column.categories) + int(column.n_missing > 0) + int(column.n_rare > 0)


def category_codes(column: ColumnInfo, texts: list[str | None]) -> Indices:
    """Number of the feature of each row of a category; −1 if its value has no feature."""
    code_of_value: dict[str | None, int] = {
        value: code for code, value in enumerate(column.categories)
    }
    if column.n_missing:
        code_of_value[None] = len(column.categories)
    else:
        code_of_value[None] = -1
    code_of_other_values = -1
    if column.n_rare:
        code_of_other_values = n_category_features(column) - 1
    codes = [code_of_value.get(text, code_of_other_values) for text in texts]
    return np.array(codes, dtype=np.intp)


def one_hot(codes: Indices, n_features: int) -> Matrix:
    """One-hot encoding as a sparse matrix; rows with code −1 are zero."""
    rows = np.flatnonzero(codes >= 0)
    return sp.csr_array((np.ones(len(rows)), (rows, codes[rows])), shape=(len(codes), n_features))


def fit_words(column: ColumnInfo, texts: list[str | None]) -> ColumnInfo:
    """Learn the frequent words of a text; it is dropped if no word occurs in two texts."""
    present = [text for text in texts if text is not None]
    vectorizer = TfidfVectorizer(
        analyzer=_words_of,
        binary=True,
        min_df=2,
        max_df=max(2, len(present) - 1),
        max_features=MAX_WORDS,
    )
    try:
        vectorizer.fit(present)
    except ValueError:  # no words remain
        return column.drop(Reason.NO_SHARED_WORDS)
    words = tuple(str(word) for word in vectorizer.get_feature_names_out())
    return column._replace(categories=words, weights=tuple(vectorizer.idf_.tolist()))


def word_weights(column: ColumnInfo, texts: list[str | None]) -> Matrix:
    """TF-IDF weights of the words of each text, as a sparse matrix."""
    vocabulary = {word: k for k, word in enumerate(column.categories)}
    vectorizer = TfidfVectorizer(analyzer=_words_of, binary=True, vocabulary=vocabulary)
    vectorizer.idf_ = np.array(column.weights)
    return vectorizer.transform([text or "" for text in texts])


def _words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
