"""Write ranking data in the LETOR format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.datasets.files import PathLike, replace_file
from rankwise.datasets.vocabulary import MAX_LABEL, distinct_labels, shown_value
from rankwise.frames import as_array
from rankwise.groups import encode_groups
from rankwise.validation import reject_dtype


def write_letor(
    path: PathLike,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    ids: Sequence[Any] | NDArray[Any] | None = None,
) -> None:
    """Write rows ``label qid:group 1:value 2:value … # id``.

    The file is written whole or not at all: a failure leaves an older file of that name untouched.

    Parameters
    ----------
    path : str or path
        Where to write; the suffixes ``.gz``, ``.bz2`` and ``.xz`` compress.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Finite numbers.  All entries of a dense `X` are written, zeros too, and the stored entries
        of a sparse one; its first row also gets the last feature, so that the number of features
        survives.
    y : array-like of shape (n_rows,)
        Finite relevance labels.
    groups : array-like of shape (n_rows,), optional
        Group labels: whole numbers, or words without blanks and ``#``.  None writes no qid.
        Words that spell numbers ("7") are read back as numbers if all labels do.
    ids : sequence of length n_rows, optional
        Comment of each row; None or "" for a row without.

    Raises
    ------
    ValueError
        If the lengths differ, or a number, label or id could not be read back as it is.

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
    X, labels = _check_numbers(X, y)
    n_rows = X.shape[0]
    encoded = encode_groups(groups, n_rows)
    codes = encoded.codes
    qids = [""] if groups is None else _qids(encoded.labels)
    comments = [None] * n_rows if ids is None else list(ids)
    if len(comments) != n_rows:
        raise ValueError(
            f"ids has {len(comments)} entries but X has {n_rows} rows; pass one per row."
        )
    with replace_file(path) as stream:
        for row, features in enumerate(_feature_texts(X)):
            head = _shortest(float(labels[row])) + qids[codes[row]]
            stream.write(f"{head}{features}{_comment_text(comments[row], row)}\n".encode())


def _check_numbers(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
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


def _qids(labels: NDArray[Any]) -> list[str]:
    """Return `` qid:label`` for each group, with a leading space."""
    words = [_qid_word(label) for label in labels.tolist()]
    if len(np.unique(distinct_labels(words))) < len(words):
        raise ValueError(
            "two different group labels would be read back as equal (such as '1' and '01', or 1 "
            "and '1'); make them distinct."
        )
    return [f" qid:{word}" for word in words]


def _qid_word(label: Any) -> str:
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))  # True is 1, as everywhere in Python
    if isinstance(label, str):
        is_one_word = label.isprintable() and label.split() == [label]
        if is_one_word and "#" not in label and len(label) <= MAX_LABEL:
            return label
        label = shown_value(label)
    raise ValueError(
        f"the group label {label} cannot be written as one word. Use words without spaces and "
        "'#', or whole numbers, such as np.unique(groups, return_inverse=True)[1]."
    )


def _comment_text(comment: Any, row: int) -> str:
    text = "" if comment is None else str(comment).strip()
    if any(mark in text for mark in "\n\r\0"):
        raise ValueError(
            f"ids[{row}] is {shown_value(text)}; remove the line breaks and zero bytes, because a "
            "comment is part of one line."
        )
    return f" # {text}" if text else ""


def _shortest(value: float) -> str:
    """Return the shortest text that is read back as the same number."""
    return repr(value).removesuffix(".0")


def _feature_texts(X: Any) -> Iterator[str]:
    """Yield `` 1:value 2:value`` for each row, with a leading space."""
    if isinstance(X, np.ndarray):
        names = [f" {column}:" for column in range(1, X.shape[1] + 1)]
        for row in X:
            texts = map(_shortest, row.tolist())
            yield "".join([name + text for name, text in zip(names, texts, strict=True)])
        return
    X = X.copy()
    X.sum_duplicates()  # also sorts
    n_columns = X.shape[1]
    for row in range(X.shape[0]):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        entries = dict(zip((X.indices[stored] + 1).tolist(), X.data[stored].tolist(), strict=True))
        if row == 0 and n_columns:
            entries.setdefault(n_columns, 0.0)  # keeps the number of features
        yield "".join([f" {column}:{_shortest(value)}" for column, value in entries.items()])
