"""Write ranking data in the LETOR format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Labels, Numbers
from rankwise.datasets.files import PathLike, replace_file
from rankwise.datasets.vocabulary import MAX_LABEL, distinct_labels, shown_value
from rankwise.frames import as_array
from rankwise.groups import encode_groups
from rankwise.validation import reject_dtype

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix, sparray, spmatrix


def write_letor(
    path: PathLike,
    X: ArrayLike | spmatrix | sparray,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    ids: Sequence[object] | Labels | None = None,
) -> None:
    """Write rows ``label qid:group 1:value 2:value … # id``.

    The file is written completely or not at all: after an error an older file is unchanged.

    Parameters
    ----------
    path : str or path
        File to write; the suffixes ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Finite numbers. All entries of a dense `X` are written, including zeros. The stored entries
        of a sparse `X` are written, and the last feature in the first row, so that a reader knows
        the number of features.
    y : array-like of shape (n_rows,)
        Finite relevance labels.
    groups : array-like of shape (n_rows,), optional
        Group labels: integers, or words without spaces and ``#``. None writes no qid. Words that
        spell integers ("7") are read back as integers if all labels do.
    ids : sequence of length n_rows, optional
        Comment of each row; None or "" for a row without.

    Raises
    ------
    ValueError
        If the lengths differ, or a number, label or id would not be read back unchanged.

    See Also
    --------
    read_letor : Read such a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "toy.txt"
    ...     write_letor(file, [[0.5, 1], [0.1, 0]], [2, 0], groups=[7, 7], ids=["a", "b"])
    ...     print(file.read_text())
    2 qid:7 1:0.5 2:1 # a
    0 qid:7 1:0.1 2:0 # b
    """
    X, labels = _check_finite(X, y)
    n_rows = X.shape[0]
    encoded_groups = encode_groups(groups, n_rows)
    text_of_group = [""]  # one group of all rows, without qid
    if groups is not None:
        text_of_group = _qid_texts(encoded_groups.labels)
    comments: list[object] = [None] * n_rows
    if ids is not None:
        comments = list(ids)
    if len(comments) != n_rows:
        raise ValueError(
            f"ids has {len(comments)} entries but X has {n_rows} rows; pass one per row."
        )
    with replace_file(path) as stream:
        for row, features_text in enumerate(_feature_texts(X)):
            label_text = _shortest_text(float(labels[row]))
            group_text = text_of_group[encoded_groups.codes[row]]
            comment_text = _comment_text(comments[row], row)
            stream.write(f"{label_text}{group_text}{features_text}{comment_text}\n".encode())


def _check_finite(
    X: ArrayLike | spmatrix | sparray, y: ArrayLike
) -> tuple[Numbers | csr_matrix, Array]:
    """Return X as a finite array or CSR matrix and y as a finite vector of the same length."""
    from sklearn.utils import check_array, check_consistent_length

    reject_dtype("X", X)
    features = check_array(
        as_array(X, "X"),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_min_features=0,
        input_name="X",
    )
    labels = check_array(as_array(y, "y"), ensure_2d=False, dtype=np.float64, input_name="y")
    labels = labels.ravel()
    check_consistent_length(features, labels)
    return features, labels


def _qid_texts(labels: Labels) -> list[str]:
    """Return `` qid:label`` for each group, with a leading space."""
    words = [_qid_word(label) for label in labels.tolist()]
    labels_read_back = distinct_labels(words)
    if len(np.unique(labels_read_back)) < len(words):
        raise ValueError(
            "two different group labels would be read back as equal (such as '1' and '01', or 1 "
            "and '1'); make them distinct."
        )
    return [f" qid:{word}" for word in words]


def _qid_word(label: object) -> str:
    """Return a group label as one word; refuse a label that is none."""
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))  # True is 1, as everywhere in Python
    if isinstance(label, str):
        is_one_word = label.isprintable() and label.split() == [label]
        if is_one_word and "#" not in label and len(label) <= MAX_LABEL:
            return label
        label = shown_value(label)
    raise ValueError(
        f"the group label {label} cannot be written as one word. Use words without spaces and "
        "'#', or integers, such as np.unique(groups, return_inverse=True)[1]."
    )


def _comment_text(comment: object, row: int) -> str:
    """Return `` # comment``; empty without a comment."""
    text = ""
    if comment is not None:
        text = str(comment).strip()
    if any(mark in text for mark in "\n\r\0"):
        raise ValueError(
            f"ids[{row}] is {shown_value(text)}; remove the line breaks and zero bytes, because a "
            "comment is part of one line."
        )
    if not text:
        return ""
    return f" # {text}"


def _shortest_text(value: float) -> str:
    """Return the shortest text that is read back as the same number."""
    return repr(value).removesuffix(".0")


def _feature_texts(X: Numbers | csr_matrix) -> Iterator[str]:
    """Yield `` 1:value 2:value`` for each row, with a leading space."""
    if isinstance(X, np.ndarray):
        yield from _dense_texts(X)
    else:
        yield from _sparse_texts(X)


def _dense_texts(X: Numbers) -> Iterator[str]:
    feature_ids = [f" {feature}:" for feature in range(1, X.shape[1] + 1)]
    for row in X:
        value_texts = [_shortest_text(value) for value in row.tolist()]
        pairs = zip(feature_ids, value_texts, strict=True)
        yield "".join([feature_id + text for feature_id, text in pairs])


def _sparse_texts(X: csr_matrix) -> Iterator[str]:
    X = X.copy()
    X.sum_duplicates()  # also sorts
    n_rows, n_features = X.shape
    for row in range(n_rows):
        entries_of_row = slice(X.indptr[row], X.indptr[row + 1])
        feature_ids = (X.indices[entries_of_row] + 1).tolist()
        values = X.data[entries_of_row].tolist()
        value_of_feature = dict(zip(feature_ids, values, strict=True))
        if row == 0 and n_features:
            value_of_feature.setdefault(n_features, 0.0)  # keeps the number of features
        yield "".join(
            [f" {feature}:{_shortest_text(value)}" for feature, value in value_of_feature.items()]
        )
