"""Steps before a ranker as ONNX operators in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise.arrays import Array
from rankwise.estimators.anatomy import is_idle
from rankwise.estimators.boosted_trees import TreeFeatures
from rankwise.estimators.columns import Columns
from rankwise.estimators.group_scaler import GroupScaler
from rankwise.estimators.hinge_features import HingeFeatures
from rankwise.features.group_scaling import ROUNDING
from rankwise.features.kernel import Kernel
from rankwise.persistence.linear_export import scaling
from rankwise.persistence.onnx_graph import Graph, Values
from rankwise.persistence.onnx_tables import add_columns

ROWS = np.array([1])
ZERO, ONE = np.array(0.0), np.array(1.0)


def add_step(graph: Graph, step: Any, values: Values) -> Values:
    """What a fitted step makes of the columns.

    Raises
    ------
    ValueError
        If there are no operators for it.
    """
    if is_idle(step):
        return values
    if type(step) in _MAKERS:
        return _MAKERS[type(step)](graph, step, values)
    raise ValueError(
        f"a step {type(step).__name__} cannot be written to ONNX. Train the model with Columns or "
        "without it, or transform the items before they come to the graph."
    )


def _scaler(graph: Graph, step: Any, values: Values) -> Values:
    scale, shift = scaling(step, values.n_columns)
    moved = graph.add("Add", graph.add("Mul", graph.matrix(values), scale), shift)
    if getattr(step, "clip", False):
        low, high = getattr(step, "feature_range", (-1, 1))
        moved = graph.add("Clip", moved, np.array(float(low)), np.array(float(high)))
    return Values([moved], [values.n_columns])


def _group_scaler(graph: Graph, step: GroupScaler, values: Values) -> Values:
    """``(x - mean) / sd`` inside the group, 0 where sd is no more than rounding."""
    x, width = graph.matrix(values), values.n_columns
    if step.with_log:
        size = graph.add("Log", graph.add("Add", graph.add("Abs", x), ONE))
        x = graph.add("Mul", graph.add("Sign", x), size)
    standard = Values([x], [width])
    if hasattr(step, "standard_"):
        standard = _scaler(graph, step.standard_, standard)
    if not step.needs_groups_:
        return standard + standard if step.with_standard else standard
    first = graph.add("ArgMax", graph.same_group(), axis=1, keepdims=0)
    z = graph.add("Sub", x, graph.add("Gather", x, first, axis=0))  # constant columns are 0
    inside = Values([_scaled(graph, z, x, with_mean=step.with_mean)], [width])
    return inside + standard if step.with_standard else inside


def _scaled(graph: Graph, z: str, x: str, *, with_mean: bool = True, known: Any = None) -> str:
    """z, which is x up to a shift in each group, scaled there; `known` has 1 for known values."""
    same = graph.same_group()
    sizes = graph.add("ReduceSum", same, ROWS, keepdims=1)
    if known is not None:
        sizes = graph.add("Max", graph.add("MatMul", same, known), ONE)
    z = graph.add("Sub", z, graph.add("Div", graph.add("MatMul", same, z), sizes))
    z = z if known is None else graph.add("Mul", z, known)
    deviation, magnitude = (
        graph.add("Sqrt", graph.add("Div", graph.add("MatMul", same, square), sizes))
        for square in (graph.add("Mul", z, z), graph.add("Mul", x, x))
    )
    least = graph.add("Mul", magnitude, np.array(ROUNDING * np.finfo(np.float64).eps))
    is_more = graph.add("Greater", deviation, least)
    factor = graph.add("Div", ONE, graph.add("Where", is_more, deviation, ONE))
    return graph.add("Where", is_more, graph.add("Mul", z if with_mean else x, factor), ZERO)


def _tree_features(graph: Graph, step: TreeFeatures, values: Values) -> Values:
    """Cells, numbers scaled in their group, and scores of categories and texts, in 32 bits."""
    n_cells = values.n_columns - sum(step.sizes)
    cells = graph.take(values, range(n_cells))
    out = cells
    if step.needs_groups_ and n_cells > step.n_codes:
        numbers = graph.matrix(graph.take(cells, range(n_cells - step.n_codes)))
        is_gap = graph.add("IsNaN", numbers)
        known = graph.floats(graph.add("Not", is_gap))
        x = graph.add("Where", is_gap, ZERO, numbers)
        inside = graph.add("Where", is_gap, np.array(np.nan), _scaled(graph, x, x, known=known))
        out += Values([inside], [n_cells - step.n_codes])
    if step.sizes:
        block = np.repeat(np.arange(len(step.sizes)), step.sizes)
        coef = np.where(block[:, None] == np.arange(len(step.sizes)), step.value_coef_[:, None], 0)
        words = graph.matrix(graph.take(values, range(n_cells, values.n_columns)))
        out += Values([graph.add("MatMul", words, coef)], [len(step.sizes)])
    return Values([graph.rounded(graph.matrix(out))], [out.n_columns])


def _hinges(graph: Graph, step: HingeFeatures, values: Values) -> Values:
    chosen = graph.matrix(graph.take(values, step.columns_))
    above = graph.add("Max", graph.add("Sub", chosen, step.knots_), ZERO)
    return values + Values([above], [len(step.knots_)])


def _nystroem(graph: Graph, step: Nystroem, values: Values) -> Values:
    degree, coef0 = (
        usual if value is None else value for value, usual in ((step.degree, 3), (step.coef0, 1))
    )
    kernel = Kernel(step.kernel, step.gamma, degree, coef0)
    items = kernel_values(graph, kernel, step.components_, graph.matrix(values))
    made = graph.add("MatMul", items, step.normalization_.T)
    return Values([made], [len(step.components_)])


def kernel_values(graph: Graph, kernel: Kernel, items: Array, x: str) -> str:
    """``k(x, items)`` for ``exp(-gamma ‖x - y‖²)`` and ``(gamma x·y + coef0)^degree``."""
    name = kernel.function
    if name not in ("rbf", "poly", "polynomial"):
        shown = getattr(name, "__name__", name)
        raise ValueError(
            f"the kernel {shown!r} cannot be written to ONNX; train with kernel='linear', "
            "'rbf' or 'poly'."
        )
    gamma = 1.0 / items.shape[1] if kernel.gamma is None else float(kernel.gamma)
    if name != "rbf":
        line = graph.add("Add", graph.add("MatMul", x, gamma * items.T), float(kernel.coef0))
        return graph.add("Pow", line, np.array(float(kernel.degree)))
    center = items.mean(axis=0)  # no digits are lost where columns are far from 0
    x, items = graph.add("Sub", x, center), items - center
    norms = graph.add("ReduceSumSquare", x, ROWS, keepdims=1)
    product = graph.add("Add", graph.add("MatMul", x, -2.0 * items.T), norms)
    squares = graph.add("Add", product, (items**2).sum(axis=1))
    positive = graph.add("Max", squares, np.array(0.0))
    return graph.add("Exp", graph.add("Mul", positive, np.array(-gamma)))


_MAKERS: dict[type, Callable[[Graph, Any, Values], Values]] = {
    **dict.fromkeys((StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler), _scaler),
    Columns: add_columns,
    GroupScaler: _group_scaler,
    HingeFeatures: _hinges,
    Nystroem: _nystroem,
    TreeFeatures: _tree_features,
}
