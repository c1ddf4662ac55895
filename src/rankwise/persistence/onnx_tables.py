"""The columns of a table as ONNX operators, as `Columns` makes features of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators.column_kinds import ColumnFacts
from rankwise.estimators.columns import MOST_CODES, NUMERIC, Columns, is_wide_column, n_places
from rankwise.persistence.onnx_graph import ML, Graph, Values

TEXTS = ("category", "order")  # kinds of columns that come as text


class TableViews(NamedTuple):
    """The features of a table as different learners take them; see `rankwise.Columns.views`."""

    dense: Values
    sparse: Values
    is_wide: Array
    cells: Values


def used_columns(step: Columns) -> list[ColumnFacts]:
    """The columns that a graph takes, each one an input.

    Raises
    ------
    ValueError
        If there are no operators for the kind of one of them.
    """
    used = [column for column in step.facts_ if column.kind != "left out"]
    for column in used:
        if column.kind == "text":
            raise ValueError(
                f"the column {column.name!r} is of the kind text, and ONNX has no operators that "
                "cut text into words. Train the model without it, or make numbers of it first."
            )
        if "" in column.categories and column.n_gaps:
            raise ValueError(
                f"the column {column.name!r} has gaps beside empty texts, which are the same in "
                "ONNX."
            )
    return used


def add_columns(graph: Graph, step: Columns, values: Values) -> Values:
    """The features that `Columns` makes: those that are dense, then the wide ones."""
    views = add_table(graph, step, values)
    wide = np.flatnonzero(views.is_wide)
    return views.dense + graph.take(views.sparse, wide) if len(wide) else views.dense


def add_table(graph: Graph, step: Columns, values: Values) -> TableViews:
    """The views of the columns, which are the tensors of `values`."""
    nothing = Values([], [])
    numbers, filled, gaps, codes, narrow, blocks = (nothing,) * 6
    wide = [np.zeros(0, dtype=bool)]
    for column, cells in zip(used_columns(step), values.tensors, strict=True):
        if column.kind in NUMERIC:
            width = len(column.medians)
            x = _numbers(graph, column, cells)
            missing = graph.add("IsNaN", x)
            known = graph.add("Where", missing, np.array([column.medians]), x)
            shifted = graph.add("Sub", known, np.array([column.means]))
            scaled = graph.add("Div", shifted, np.array([column.scales]))
            numbers += Values([x], [width])
            filled += Values([scaled], [width])
            if column.n_gaps:
                gaps += graph.take(Values([graph.floats(missing)], [width]), [0])
            continue
        places = _places(graph, column, cells)
        size = n_places(column)
        block = Values([graph.floats(graph.add("Equal", places, np.arange(size)))], [size])
        if size <= MOST_CODES:
            codes += Values([_known(graph, places)], [1])
        if not is_wide_column(column):
            narrow += block
        if is_wide_column(column) or size > 2:
            blocks += block
            wide.append(np.full(size, is_wide_column(column)))
    return TableViews(filled + gaps + narrow, blocks, np.concatenate(wide), numbers + codes)


def _places(graph: Graph, column: ColumnFacts, cells: str) -> str:
    """The place of each cell among the features of a category, −1 for none."""
    place = {value: k for k, value in enumerate(column.categories)}
    place.setdefault("", len(place) if column.n_gaps else -1)
    other = n_places(column) - 1 if column.n_rare else -1
    return graph.add(
        "LabelEncoder",
        cells,
        domain=ML,
        keys_strings=list(place),
        values_int64s=list(place.values()),
        default_int64=other,
    )


def _known(graph: Graph, places: str) -> str:
    """Places as numbers, NaN for −1."""
    is_unknown = graph.add("Less", places, np.array(0))
    return graph.add("Where", is_unknown, np.array(np.nan), graph.floats(places))


def _numbers(graph: Graph, column: ColumnFacts, cells: str) -> str:
    """A column as numbers, NaN for gaps."""
    if column.kind == "order":
        return _known(graph, _places(graph, column._replace(n_gaps=0, n_rare=0), cells))
    if column.kind != "date":
        return cells
    parts = _date_parts(graph, cells)
    return graph.matrix(Values([parts[part] for part in column.categories], [1] * len(parts)))


def _date_parts(graph: Graph, moments: str) -> dict[str, str]:
    """Year, month, weekday, days and hour of days since 1970, by the rules of the calendar.

    Years begin in March, so that a leap day is the last day of one; 400 years have 146,097 days.
    """

    def add(operator: str, a: Any, b: Any) -> str:
        return graph.add(operator, a, np.array(float(b)) if isinstance(b, (int, float)) else b)

    def whole(a: str, b: float) -> str:
        return graph.add("Floor", add("Div", a, b))

    days = graph.add("Floor", moments)
    since = add("Add", days, 719468)  # of the first of March of the year 0
    era = whole(since, 146097)
    day = add("Sub", since, add("Mul", era, 146097))
    leaps = add("Sub", add("Add", whole(day, 1460), whole(day, 146096)), whole(day, 36524))
    year = whole(add("Sub", day, leaps), 365)
    leap_days = add("Sub", whole(year, 4), whole(year, 100))
    of_year = add("Sub", day, add("Add", add("Mul", year, 365), leap_days))
    month = whole(add("Add", add("Mul", of_year, 5), 2), 153)
    is_next = graph.floats(graph.add("GreaterOrEqual", month, np.array(10.0)))
    weekday = add("Add", days, 3)
    return {
        "year": add("Add", add("Add", year, add("Mul", era, 400)), is_next),
        "month": add("Sub", add("Add", month, 3), add("Mul", is_next, 12)),
        "weekday": add("Sub", weekday, add("Mul", whole(weekday, 7), 7)),
        "days": days,
        "hour": add("Mul", add("Sub", moments, days), 24),
    }
