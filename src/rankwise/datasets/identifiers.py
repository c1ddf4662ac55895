"""Columns that number or name the rows: no model should learn from them."""

from __future__ import annotations

import re
from typing import Any

from rankwise.datasets.files import import_arrow

__all__ = ["find_identifiers"]

_NAME = re.compile(r"(^|[_. -])(id|ID|Id)$|[a-z](ID|Id)$|^(docid|uuid|index|Unnamed: \d+)$")
_LARGE = 10**15
_NEARLY_ALL = 0.9
_FEW_ROWS = 20


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
    >>> find_identifiers(pyarrow.table({"doc_id": [3, 3, 5], "row": [7, 8, 9], "x": [1, 5, 2]}))
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
    if types.is_integer(column.type) and n_rows > 2:
        ends = compute.min_max(column).as_py()
        steps = compute.subtract(column[1:], column[:-1])
        if not column.null_count and compute.all(compute.equal(steps, 1)).as_py():
            return "it counts the rows"
        if max(-ends["min"], ends["max"]) >= _LARGE:
            return "its whole numbers have 16 digits or more"
    is_text = types.is_string(column.type) or types.is_large_string(column.type)
    if is_text and n_rows >= _FEW_ROWS:
        n_values = compute.count_distinct(column, mode="only_valid").as_py()
        if n_values > _NEARLY_ALL * n_rows:
            return f"{n_values} of its {n_rows} texts are different"
    return ""
