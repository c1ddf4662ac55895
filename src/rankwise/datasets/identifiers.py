"""Columns that number or name the rows: no model should learn from them."""

from __future__ import annotations

import re
from typing import Any

from rankwise.datasets.files import import_arrow
from rankwise.datasets.number_text import is_text

_NAME = re.compile(
    r"(^|[_. -])(id|ID|Id)$|[a-z](ID|Id)$|^([Ii]tem|ITEM|docid|uuid|UUID|index|Unnamed: \d+)$"
)
_LARGE = 10**15
_LONG = "its whole numbers have 16 digits or more"
_NEARLY_ALL = 0.9
_FEW_ROWS = 20  # too few to say that all are different by intent


def find_identifiers(X: Any) -> dict[str, str]:
    """Say which columns look like identifiers, and why.

    Parameters
    ----------
    X : pyarrow.Table
        Features, as `read_frame` gives them.

    Returns
    -------
    dict of str to str
        Reason by name of the column: its name says so, it counts the rows, it holds whole numbers
        of 16 digits or more, or it holds texts that are nearly all different.

    Examples
    --------
    >>> import pyarrow
    >>> X = pyarrow.table({"doc_id": [3] * 25, "row": range(25), "x": [1, 5, 2, 5, 4] * 5})
    >>> find_identifiers(X)
    {'doc_id': 'its name says so', 'row': 'it counts the rows'}
    """
    reasons = {name: _reason(name, X[name]) for name in X.column_names}
    return {name: reason for name, reason in reasons.items() if reason}


def _reason(name: str, column: Any) -> str:
    types = import_arrow().types
    compute = import_arrow("pyarrow.compute")
    if _NAME.search(name):
        return "its name says so"
    n_rows = len(column) - column.null_count
    if types.is_integer(column.type) and n_rows:
        ends = compute.min_max(column).as_py()
        if n_rows >= _FEW_ROWS and not column.null_count and _counts(column):
            return "it counts the rows"
        if max(-ends["min"], ends["max"]) >= _LARGE:
            return _LONG
    if types.is_floating(column.type) and n_rows and _are_long(column):
        return _LONG
    if is_text(column) and n_rows >= _FEW_ROWS:
        n_values = compute.count_distinct(column, mode="only_valid").as_py()
        if n_values > _NEARLY_ALL * n_rows:
            return f"{n_values} of its {n_rows} texts are different"
    return ""


def _are_long(column: Any) -> bool:
    """Whether floats are whole, and all of the same length: an identifier beyond 64 bits."""
    compute = import_arrow("pyarrow.compute")
    ends = compute.min_max(column).as_py()
    low, high = ends["min"], ends["max"]
    is_long = low == low and _LARGE <= low <= high < 10 * low and high < 1e40
    return is_long and bool(compute.all(compute.equal(compute.floor(column), column)).as_py())


def _counts(column: Any) -> bool:
    """Whether the values go up by one from row to row."""
    compute = import_arrow("pyarrow.compute")
    steps = (compute.subtract(part[1:], part[:-1]) for part in (column[:9], column))
    return all(compute.all(compute.equal(step, 1)).as_py() for step in steps)
