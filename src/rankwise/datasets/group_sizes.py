"""Group sizes instead of group labels: files of sizes, and conversion to labels."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Indices
from rankwise.datasets.files import PACKED, PathLike, numbered_lines
from rankwise.datasets.vocabulary import shown_value
from rankwise.errors import LetorFormatError
from rankwise.frames import as_array

MAX_SIZE_DIGITS = 15  # of the size of a group


class SizeFile(NamedTuple):
    """The group sizes of a data file: the path, and the row after the last one of each group."""

    path: str
    end_of_group: Indices

    @property
    def n_rows(self) -> int:
        """Sum of the sizes."""
        return int(self.end_of_group[-1])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.end_of_group)

    def group_of_rows(self, data_path: str, start: int, end: int) -> Indices:
        """Return the number of the group of each row from start to end of the data file."""
        if end > self.n_rows:
            raise self._error(data_path, "more")
        # A row belongs to the first group that ends after it.
        return np.searchsorted(self.end_of_group, np.arange(start, end), side="right")

    def refuse_fewer_rows(self, data_path: str, n_rows: int) -> None:
        """Raise an error if the data file has fewer rows than the groups."""
        if n_rows < self.n_rows:
            raise self._error(data_path, str(n_rows))

    def _error(self, data_path: str, n_rows: str) -> LetorFormatError:
        """Return the error about a data file with another number of rows."""
        return LetorFormatError(
            self.path,
            None,
            f"the group sizes sum to {self.n_rows} but {data_path} has {n_rows} rows; each row "
            "must belong to exactly one group. If this file belongs to other data, pass "
            "group_sizes=None.",
        )


def size_file_next_to(path: str) -> str | None:
    """Return the file of group sizes next to a data file, or None.

    The candidates, in this order, are the name of the data file, with and without its ``.gz``
    (``.bz2``, ``.xz``), followed by ``.query`` or ``.group``, plain or compressed.
    """
    path_without_suffix, suffix = os.path.splitext(path)
    names = [path]
    if suffix.lower() in PACKED:
        names.append(path_without_suffix)
    for name in names:
        for size_suffix in (".query", ".group"):
            for packed_suffix in ("", *PACKED):
                candidate = name + size_suffix + packed_suffix
                if os.path.isfile(candidate):
                    return candidate
    return None


def read_group_sizes(path: PathLike) -> NDArray[np.intp]:
    r"""Read a file with one group size per line (LightGBM ``.query``, XGBoost ``.group``).

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
        If a line is not one non-negative integer, or there is no line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "train.query"
    ...     _ = file.write_text("2\n1\n")
    ...     read_group_sizes(file)
    array([2, 1])
    """
    name = os.fspath(path)
    sizes: list[int] = []
    for line_number, line in numbered_lines(name):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or len(text) > MAX_SIZE_DIGITS:
            raise LetorFormatError(
                name,
                line_number,
                f"got {shown_value(text)}, expected the number of rows of one group: one integer "
                "per line and nothing else.",
            )
        sizes.append(int(text))
    if not sizes:
        raise LetorFormatError(name, None, "the file has no group sizes, expected one per line.")
    return np.array(sizes, dtype=np.intp)


def groups_from_sizes(sizes: ArrayLike, n_items: int | None = None) -> Indices:
    """Convert group sizes, the format of LightGBM and XGBoost, to one label per row.

    Use it to convert the `group` argument of LightGBM or XGBoost.

    Parameters
    ----------
    sizes : array-like of int
        Number of consecutive rows in each group.
    n_items : int, optional
        Expected sum of the sizes; not checked if None.

    Returns
    -------
    ndarray of shape (sum of sizes,)
        ``[0, 0, ..., 1, 1, ...]``.

    Examples
    --------
    >>> from rankwise.datasets import groups_from_sizes
    >>> groups_from_sizes([2, 3])
    array([0, 0, 1, 1, 1])
    """
    group_sizes = np.asarray(as_array(sizes, "sizes"))
    are_integers = group_sizes.dtype.kind in "iu" or not group_sizes.size
    if group_sizes.ndim != 1 or not are_integers:
        raise ValueError(
            f"sizes must be a flat list of whole numbers, got {group_sizes.dtype} of shape "
            f"{group_sizes.shape}; pass the number of rows of each group."
        )
    if (group_sizes < 0).any():
        position = int(np.argmax(group_sizes < 0))
        raise ValueError(
            f"sizes[{position}] is {group_sizes[position]}; a group cannot have fewer than 0 rows."
        )
    if n_items is not None and group_sizes.sum() != n_items:
        raise ValueError(
            f"the group sizes sum to {group_sizes.sum()} but there are {n_items} rows; "
            "each row must belong to exactly one group."
        )
    group_numbers = np.arange(len(group_sizes), dtype=np.intp)
    return np.repeat(group_numbers, group_sizes)
