"""Side files of group sizes, one a line, as LightGBM and XGBoost use them."""

from __future__ import annotations

import os
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.datasets.files import PACKED, PathLike, numbered_lines, replace_file
from rankwise.datasets.labels import show
from rankwise.errors import LetorFormatError
from rankwise.groups import encode_groups

_MOST_ROWS = 2**48


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
        if token and not token.isdigit():
            raise LetorFormatError(
                name,
                number,
                f"got {show(token)}, expected the number of rows of one group: "
                "one whole number a line and nothing else.",
            )
        if token:
            sizes.append(int(token[:20]))
        if sizes and sizes[-1] > _MOST_ROWS:
            raise LetorFormatError(name, number, f"no file has that many rows: {show(token)}.")
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


def find_group_sizes(path: str) -> str | None:
    """The file of group sizes next to a data file, or None.

    Looked for, in this order: the name of the data file, with and without its ``.gz`` (``.bz2``,
    ``.xz``), followed by ``.query`` or ``.group``, plain or compressed.
    """
    stem, suffix = os.path.splitext(path)
    names = [path, stem] if suffix.lower() in PACKED else [path]
    found = map("".join, product(names, (".query", ".group"), ("", *PACKED)))
    return next(filter(os.path.isfile, found), None)
