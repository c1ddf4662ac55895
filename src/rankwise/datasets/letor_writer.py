"""Write ranking data in the LETOR format; read and write files of group sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.datasets.files import PathLike, numbered_lines, replace_file
from rankwise.datasets.words import MAX_LABEL, distinct_labels, show
from rankwise.errors import LetorFormatError
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
    sort_groups: bool = False,
    number_groups: bool = False,
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
    sort_groups : bool, default=False
        Whether to write the rows of a group next to each other, groups in increasing order, as
        SVMrank and files of group sizes need it.  By default the rows stay in the given order.
    number_groups : bool, default=False
        Whether to write groups as 0, 1, 2, ... in the order of the sorted labels.  This admits
        labels of any type, and SVMrank reads no other qids than whole numbers.

    Raises
    ------
    ValueError
        If the lengths differ, or a number, label or id could not be read back as it is.

    See Also
    --------
    read_letor : Read such a file.
    write_group_sizes : Write the file of group sizes that LightGBM expects.

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
    qids = [""] if groups is None else _qids(names, number_groups)
    comments = [None] * n_rows if ids is None else list(ids)
    if len(comments) != n_rows:
        raise ValueError(
            f"ids has {len(comments)} entries but X has {n_rows} rows; pass one per row."
        )
    order = np.argsort(codes, kind="stable") if sort_groups else np.arange(n_rows)
    with replace_file(path) as stream:
        for row, features in zip(order, _feature_texts(X, order), strict=True):
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


def _qids(labels: NDArray[Any], number_groups: bool) -> list[str]:
    """For each group, `` qid:label``, with a blank in front."""
    if number_groups:
        return [f" qid:{code}" for code in range(len(labels))]
    words = [_qid_word(label) for label in labels.tolist()]
    if len(np.unique(distinct_labels(words))) < len(words):
        raise ValueError(
            "two different group labels would be read back as the same (such as '1' and '01', or "
            "1 and '1'); make them distinct, or pass number_groups=True."
        )
    return [f" qid:{word}" for word in words]


def _qid_word(label: Any) -> str:
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))  # True is 1, as everywhere in Python
    is_word = isinstance(label, str) and label.isprintable() and label.split() == [label]
    if not is_word or "#" in label or len(label) > MAX_LABEL:
        shown = show(label) if isinstance(label, str) else repr(label)
        raise ValueError(
            f"the group label {shown} cannot be written as one word. Use whole numbers or words "
            "without blanks and '#', or pass number_groups=True."
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


def _feature_texts(X: Any, order: NDArray[np.intp]) -> Iterator[str]:
    """For each row of `order`, `` 1:value 2:value``, with a blank in front."""
    if isinstance(X, np.ndarray):
        names = [f" {column}:" for column in range(1, X.shape[1] + 1)]
        for row in order:
            texts = map(_as_text, X[row].tolist())
            yield "".join([name + text for name, text in zip(names, texts, strict=True)])
        return
    X = X.copy()
    X.sum_duplicates()  # also sorts
    for position, row in enumerate(order):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = (X.indices[stored] + 1).tolist(), X.data[stored].tolist()
        if not position and X.shape[1] not in [0, *columns]:  # keeps the number of features
            columns, values = [*columns, X.shape[1]], [*values, 0.0]
        yield "".join([f" {c}:{_as_text(v)}" for c, v in zip(columns, values, strict=True)])


# Group sizes ------------------------------------------------------------------------------------


def read_group_sizes(path: PathLike) -> NDArray[np.intp]:
    """Read a file with one group size per line (LightGBM ``.query``, XGBoost ``.group``).

    Parameters
    ----------
    path : str or path
        Plain or compressed text; blank lines are skipped.

    Returns
    -------
    ndarray of shape (n_groups,)
        Number of consecutive rows of each group; `groups_from_sizes` makes one label per row of it.

    Raises
    ------
    LetorFormatError
        If a line is anything but one non-negative whole number, or there is no line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_group_sizes(f"{folder}/train.query", ["a", "a", "b"])
    ...     read_group_sizes(f"{folder}/train.query")
    array([2, 1])
    """
    name = os.fspath(path)
    sizes: list[int] = []
    for number, line in numbered_lines(name):
        token = line.strip()
        if token and not (token.isdigit() and len(token) < 16):
            raise LetorFormatError(
                name,
                number,
                f"got {show(token)}, expected the number of rows of one group: "
                "one whole number a line and nothing else.",
            )
        if token:
            sizes.append(int(token))
    if not sizes:
        raise LetorFormatError(name, None, "the file has no group sizes, expected one a line.")
    return np.array(sizes, dtype=np.intp)


def write_group_sizes(path: PathLike, groups: ArrayLike) -> None:
    """Write the group sizes of rows whose groups are contiguous, one size a line.

    The file is written whole or not at all.  LightGBM looks for it under the name of the data file
    with ``.query`` (or ``.group``) behind it.

    Parameters
    ----------
    path : str or path
        Where to write; the suffixes ``.gz``, ``.bz2`` and ``.xz`` compress.
    groups : array-like of shape (n_rows,)
        One group label per row.

    Raises
    ------
    ValueError
        If the rows of some group are not next to each other: sizes could not tell them apart.
    """
    n_rows = len(np.asarray(groups, dtype=object))
    codes, labels = encode_groups(groups, n_rows)
    if n_rows == 0:
        raise ValueError("groups is empty; there is no group size to write.")
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    distinct, first = np.unique(codes[starts], return_index=True)
    if len(distinct) < len(starts):
        again = int(np.setdiff1d(np.arange(len(starts)), first)[0])
        label = labels[codes[starts[again]]]
        raise ValueError(
            f"group {label!s} comes back in row {starts[again]}; a file of group sizes needs the "
            "rows of a group next to each other. Sort the rows by group first, for example by "
            "np.argsort(groups, kind='stable')."
        )
    with replace_file(path) as stream:
        for size in np.diff(np.r_[starts, n_rows]):
            stream.write(b"%d\n" % size)
