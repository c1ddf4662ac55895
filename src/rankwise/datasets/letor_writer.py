"""Write ranking data in the LETOR format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.datasets.files import PathLike, replace_file
from rankwise.datasets.words import MAX_LABEL, distinct_labels, show
from rankwise.frames import as_array, refuse_masked
from rankwise.groups import encode_groups
from rankwise.inputs import check_items


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
    codes, names = encode_groups(groups, n_rows)
    qids = [""] if groups is None else _qids(names)
    comments = [None] * n_rows if ids is None else list(ids)
    if len(comments) != n_rows:
        raise ValueError(
            f"ids has {len(comments)} entries but X has {n_rows} rows; pass one per row."
        )
    with replace_file(path) as stream:
        for row, features in enumerate(_feature_texts(X)):
            head = _as_text(float(labels[row])) + qids[codes[row]]
            stream.write(f"{head}{features}{_comment_text(comments[row], row)}\n".encode())


def _check_numbers(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """X as a finite array or CSR matrix and y as a finite vector, of one length."""
    from sklearn.utils import check_array, check_consistent_length

    check_items("X", X)
    refuse_masked("y", y)
    floats = [np.float64, np.float32]
    rows = as_array(X, "X")
    X = check_array(rows, accept_sparse="csr", dtype=floats, ensure_min_features=0, input_name="X")
    labels = check_array(as_array(y), ensure_2d=False, dtype=np.float64, input_name="y").ravel()
    check_consistent_length(X, labels)
    return X, labels


def _qids(labels: NDArray[Any]) -> list[str]:
    """For each group, `` qid:label``, with a blank in front."""
    words = [_qid_word(label) for label in labels.tolist()]
    if len(np.unique(distinct_labels(words))) < len(words):
        raise ValueError(
            "two different group labels would be read back as the same (such as '1' and '01', or "
            "1 and '1'); make them distinct."
        )
    return [f" qid:{word}" for word in words]


def _qid_word(label: Any) -> str:
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))  # True is 1, as everywhere in Python
    is_word = isinstance(label, str) and label.isprintable() and label.split() == [label]
    if not is_word or "#" in label or len(label) > MAX_LABEL:
        shown = show(label) if isinstance(label, str) else repr(label)
        raise ValueError(
            f"the group label {shown} cannot be written as one word. Use words without blanks and "
            "'#', or whole numbers, such as np.unique(groups, return_inverse=True)[1]."
        )
    return str(label)


def _comment_text(comment: Any, row: int) -> str:
    text = "" if comment is None else str(comment).strip()
    if any(mark in text for mark in "\n\r\0"):
        raise ValueError(
            f"ids[{row}] is {show(text)}: a comment ends with its line. "
            "Take the line breaks and zero bytes out."
        )
    return f" # {text}" if text else ""


def _as_text(value: float) -> str:
    """Shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def _feature_texts(X: Any) -> Iterator[str]:
    """For each row, `` 1:value 2:value``, with a blank in front."""
    if isinstance(X, np.ndarray):
        names = [f" {column}:" for column in range(1, X.shape[1] + 1)]
        for row in X:
            texts = map(_as_text, row.tolist())
            yield "".join([name + text for name, text in zip(names, texts, strict=True)])
        return
    X = X.copy()
    X.sum_duplicates()  # also sorts
    for row in range(X.shape[0]):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = (X.indices[stored] + 1).tolist(), X.data[stored].tolist()
        if not row and X.shape[1] not in [0, *columns]:  # keeps the number of features
            columns, values = [*columns, X.shape[1]], [*values, 0.0]
        yield "".join([f" {c}:{_as_text(v)}" for c, v in zip(columns, values, strict=True)])
