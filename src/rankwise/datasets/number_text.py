"""Numbers as people write them: with gaps, a percent sign or currency, separators of thousands."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rankwise.datasets.files import import_arrow
from rankwise.datasets.labels import GAPS, MISSING

_MARK = "[%$€£¥₹]|[A-Z]{3}"
_HEAD = 1000  # rows that are tried first


def is_text(column: Any) -> bool:
    """Whether a column of Arrow has texts."""
    types = import_arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def with_gaps(column: Any, words: frozenset[str] = MISSING) -> Any:
    """A column of texts; those that are blank, NA and the like are nulls."""
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    small = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    gaps = compute.is_in(small, arrow.array(sorted(words), column.type))
    return compute.if_else(gaps, None, column)


def spelled_numbers(column: Any, decimal: str = ".", thousands: str = "") -> Any:
    r"""The numbers that a column of texts spells, nulls for gaps; None if it spells others, too.

    A mark (%, a currency) has to be the same in all cells; percents are divided by 100. An
    apostrophe or a blank between thousands is always understood, `thousands` is one more.

    Examples
    --------
    >>> import pyarrow
    >>> spelled_numbers(pyarrow.chunked_array([["$1,200", "-", "$9.50"]]), ".", ",").to_pylist()
    [1200.0, None, 9.5]
    >>> spelled_numbers(pyarrow.chunked_array([["12 %", "0.5"]])) is None
    True
    """
    if len(column) > _HEAD and spelled_numbers(column[:_HEAD], decimal, thousands) is None:
        return None
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    cells = compute.utf8_trim_whitespace(with_gaps(column, MISSING | GAPS))
    plain = cells
    if decimal == ",":  # a point is none then
        plain = compute.replace_substring(compute.replace_substring(cells, ".", "_"), ",", ".")
    for kind in (arrow.int64(), arrow.float64()):
        with suppress(arrow.ArrowInvalid):
            return plain.cast(kind)
    between = f"['\\s\xa0\u202f{thousands}]"
    point = rf"(?:\{decimal}[0-9]*)?"
    number = rf"[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+{point}|[0-9]+{point}(?:[eE][+-]?[0-9]+)?"
    form = rf"^(?P<sign>[+-]?)(?P<front>{_MARK})?\s?(?P<number>{number})\s?(?P<back>{_MARK})?$"
    found = compute.extract_regex(cells, form)
    if found.null_count > cells.null_count:
        return None
    part = {name: compute.struct_field(found, name) for name in ("sign", "front", "number", "back")}
    marks = compute.unique(compute.binary_join_element_wise(part["front"], part["back"], ""))
    if len(marks.drop_null()) > 1:
        return None
    digits = compute.replace_substring_regex(part["number"], between, "")
    digits = compute.replace_substring(digits, decimal, ".").cast(arrow.float64())
    signed = compute.if_else(compute.equal(part["sign"], "-"), compute.negate(digits), digits)
    return compute.divide(signed, 100.0 if "%" in marks.to_pylist() else 1.0)
