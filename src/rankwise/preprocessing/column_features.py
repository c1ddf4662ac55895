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
        rank_of_word = {word: float(rank) for rank, word in enumerate(column.categories)}
        ranks = [rank_of_word.get(str(text), np.nan) for text in cell_as_text(cells)]
        return np.array(ranks)[:, None]
    if column.kind == "date":
        return date_parts(as_dates(cells, column.form), column.categories)
    if column.kind == "vector":
        numbers = _vector_numbers(column, cells)
    else:
        numbers = _scalar_numbers(column, cells)[:, None]
    if np.isinf(numbers).any():
        raise ValueError(f"column {column.name!r} has infinite values; replace or drop them.")
    return numbers


def _vector_numbers(column: ColumnInfo, cells: AnyArray) -> Array:
    """Vectors of the length of the training data, as rows of a matrix."""
    trained_length = len(column.medians)  # 0 during training
    is_training = trained_length == 0
    is_matrix = cells.ndim == 2 and cells.dtype != object
    if not is_matrix or (not is_training and cells.shape[1] != trained_length):
        raise ValueError(
            f"column {column.name!r} has lists of another length than in training; expected "
            f"vectors of {trained_length} numbers in every row."
        )
    return cells.astype(np.float64)


def _scalar_numbers(column: ColumnInfo, cells: AnyArray) -> Array:
    if cells.dtype != object:
        return cells.astype(np.float64)
    if cells.ndim > 1:
        raise ValueError(f"column {column.name!r} has lists, expected numbers.")
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
    n_features = len(column.categories)
    if column.n_missing > 0:
        n_features += 1
    if column.n_rare > 0:
        n_features += 1
    return n_features


def category_codes(column: ColumnInfo, texts: list[str | None]) -> Indices:
    """Number of the feature of each row of a category; −1 if its value has no feature."""
    n_categories = len(column.categories)
    code_of_value: dict[str | None, int] = dict(
        zip(column.categories, range(n_categories), strict=True)
    )
    code_of_value[None] = -1
    if column.n_missing:
        code_of_value[None] = n_categories
    code_of_rare_value = -1
    if column.n_rare:
        code_of_rare_value = n_category_features(column) - 1  # the last feature
    codes = [code_of_value.get(text, code_of_rare_value) for text in texts]
    return np.array(codes, dtype=np.intp)


def one_hot(codes: Indices, n_features: int) -> Matrix:
    """One-hot encoding as a sparse matrix; rows with code −1 are zero."""
    rows = np.flatnonzero(codes >= 0)
    columns = codes[rows]
    ones = np.ones(len(rows))
    return sp.csr_array((ones, (rows, columns)), shape=(len(codes), n_features))


def fit_words(column: ColumnInfo, texts: list[str | None]) -> ColumnInfo:
    """Learn the frequent words of a text; it is dropped if no word occurs in two texts."""
    nonmissing_texts = [text for text in texts if text is not None]
    vectorizer = TfidfVectorizer(
        analyzer=_words_of,
        binary=True,
        min_df=2,
        max_df=max(2, len(nonmissing_texts) - 1),  # words of all texts are ignored
        max_features=MAX_WORDS,
    )
    try:
        vectorizer.fit(nonmissing_texts)
    except ValueError:  # no words remain
        return column.drop(Reason.NO_SHARED_WORDS)
    words = tuple(str(word) for word in vectorizer.get_feature_names_out())
    return column._replace(categories=words, weights=tuple(vectorizer.idf_.tolist()))


def word_weights(column: ColumnInfo, texts: list[str | None]) -> Matrix:
    """TF-IDF weights of the words of each text, as a sparse matrix."""
    vocabulary = {word: feature for feature, word in enumerate(column.categories)}
    vectorizer = TfidfVectorizer(analyzer=_words_of, binary=True, vocabulary=vocabulary)
    vectorizer.idf_ = np.array(column.weights)
    return vectorizer.transform([text or "" for text in texts])


def _words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
