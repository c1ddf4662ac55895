"""Steps before a ranker as ONNX operators in float64.

skl2onnx has converters for some of them, but fills gaps and normalizes in float32, takes a gap for
the text "None", and knows no MissingIndicator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from rankwise.arrays import Array
from rankwise.estimators.anatomy import is_idle
from rankwise.estimators.boosted_trees import TreeFeatures
from rankwise.estimators.columns import Columns
from rankwise.estimators.group_scaler import GroupScaler
from rankwise.estimators.hinge_features import HingeFeatures
from rankwise.features.group_scaling import ROUNDING
from rankwise.features.kernel import Kernel
from rankwise.persistence.linear_export import scaling
from rankwise.persistence.onnx_graph import ML, Graph, Values

ROWS = np.array([1])


def add_step(graph: Graph, step: Any, values: Values) -> Values:
    """What a fitted step makes of the columns.

    Raises
    ------
    ValueError
        If there are no operators for it.
    """
    if is_idle(step) or getattr(step, "func", step) is None:  # "passthrough" of columns
        return values
    if type(step) in _MAKERS:
        return _MAKERS[type(step)](graph, step, values)
    raise ValueError(
        f"a step {type(step).__name__} cannot be written to ONNX. Train the model without it, or "
        "transform the items before they come to the graph."
    )


def text_columns(step: Any, n_columns: int) -> list[bool]:
    """Which of the columns that a fitted step takes hold text."""
    if isinstance(step, Pipeline):
        step = next((one for _, one in step.steps if not is_idle(one)), None)
    if isinstance(step, Columns):
        return [c.kind == "category" for c in step.facts_ if c.kind != "left out"]
    if isinstance(step, ColumnTransformer):
        found = [False] * n_columns
        for name, part, _ in step.transformers_:
            at = step._transformer_to_input_indices.get(name, [])
            for k, is_text in zip(at, text_columns(part, len(at)), strict=True):
                found[k] |= is_text
        return found
    if hasattr(step, "categories_"):
        return [np.asarray(kinds).dtype.kind not in "fiub" for kinds in step.categories_]
    if isinstance(step, SimpleImputer):
        return [isinstance(value, str) for value in step.statistics_]
    return [False] * n_columns


def is_gap(value: Any) -> bool:
    """Whether a category stands for a missing value."""
    return value is None or value != value


def _pipeline(graph: Graph, step: Pipeline, values: Values) -> Values:
    for _, one in step.steps:
        values = add_step(graph, one, values)
    return values


def _column_transformer(graph: Graph, step: ColumnTransformer, values: Values) -> Values:
    if step.transformer_weights:
        raise _refused(step, "it has transformer_weights")
    out = Values([], [])
    for name, part, _ in step.transformers_:
        columns = step._transformer_to_input_indices.get(name, [])
        if len(columns) and not (isinstance(part, str) and part == "drop"):
            out += add_step(graph, part, graph.take(values, columns))
    return out


def _columns(graph: Graph, step: Columns, values: Values) -> Values:
    """Numbers filled and scaled, gaps of numbers, one column for each category."""
    used = [column for column in step.facts_ if column.kind != "left out"]
    odd = [f"{c.name} ({c.kind})" for c in used if c.kind not in ("number", "category")]
    if odd or any(column.n_rare for column in used):
        odd += [f"{c.name} (rare values)" for c in used if c.n_rare]
        raise _refused(step, f"ONNX graphs of tables take numbers and categories, not {odd[0]}")
    numbers = [k for k, column in enumerate(used) if column.kind == "number"]
    out = Values([], [])
    if numbers:
        cells = graph.matrix(graph.take(values, numbers))
        medians, means, scales = (
            np.array([getattr(used[k], name)[0] for k in numbers])
            for name in ("medians", "means", "scales")
        )
        filled = graph.add("Where", graph.add("IsNaN", cells), medians, cells)
        scaled = graph.add("Div", graph.add("Sub", filled, means), scales)
        out += Values([scaled], [len(numbers)])
    gaps = [k for k in numbers if used[k].n_gaps]
    if gaps:
        is_nan = graph.add("IsNaN", graph.matrix(graph.take(values, gaps)))
        out += Values([graph.floats(is_nan)], [len(gaps)])
    for k, column in enumerate(used):
        if column.kind == "category":
            texts = [*column.categories, *([""] if column.n_gaps else [])]
            cells = graph.matrix(graph.take(values, [k]))
            out += Values([_text_indicators(graph, step, cells, texts)], [len(texts)])
    return out


def _scaler(graph: Graph, step: Any, values: Values) -> Values:
    scale, shift = scaling(step, values.n_columns)
    moved = graph.add("Add", graph.add("Mul", graph.matrix(values), scale), shift)
    if getattr(step, "clip", False):
        low, high = getattr(step, "feature_range", (-1, 1))
        moved = graph.add("Clip", moved, np.array(float(low)), np.array(float(high)))
    return Values([moved], [values.n_columns])


def _imputer(graph: Graph, step: SimpleImputer, values: Values) -> Values:
    if not is_gap(step.missing_values):
        raise _refused(step, f"missing_values={step.missing_values!r}")
    is_empty = [is_gap(value) for value in step.statistics_]
    kept = [k for k, empty in enumerate(is_empty) if step.keep_empty_features or not empty]
    cells, fill = graph.matrix(graph.take(values, kept)), step.statistics_[kept]
    if isinstance(fill[0], str):
        missing = graph.floats(_text_codes(graph, cells, [""]))
        is_missing = graph.add("Equal", missing, np.array(0.0))
    else:
        is_missing, fill = graph.add("IsNaN", cells), fill.astype(float)
    out = Values([graph.add("Where", is_missing, fill, cells)], [len(kept)])
    return out + _gaps(graph, step.indicator_, values) if step.add_indicator else out


def _gaps(graph: Graph, step: MissingIndicator, values: Values) -> Values:
    if not is_gap(step.missing_values):
        raise _refused(step, f"missing_values={step.missing_values!r}")
    is_nan = graph.add("IsNaN", graph.matrix(graph.take(values, step.features_)))
    return Values([graph.floats(is_nan)], [len(step.features_)])


def _encoder(graph: Graph, step: Any, values: Values) -> Values:
    """One column 0/1 for each category, or its number; NaN where scikit-learn raises an error."""
    if getattr(step, "drop", None) is not None or step.min_frequency or step.max_categories:
        raise _refused(step, "it drops or joins categories")
    unknown = 0.0 if isinstance(step, OneHotEncoder) else getattr(step, "unknown_value", None)
    if step.handle_unknown == "error" or unknown is None:
        unknown = np.nan
    out = Values([], [])
    for k, kinds in enumerate(step.categories_):
        made = _indicators(graph, step, graph.matrix(graph.take(values, [k])), kinds)
        n_known = graph.add("ReduceSum", made, ROWS, keepdims=1)
        if isinstance(step, OrdinalEncoder):
            if any(map(is_gap, kinds)):
                raise _refused(step, "it has gaps")
            made = graph.add("MatMul", made, np.arange(len(kinds), dtype=float)[:, None])
        if unknown != 0:
            is_unknown = graph.add("Equal", n_known, np.array(0.0))
            made = graph.add("Where", is_unknown, np.array(float(unknown)), made)
        out += Values([made], [len(kinds) if isinstance(step, OneHotEncoder) else 1])
    return out


def _indicators(graph: Graph, step: Any, cells: str, kinds: Any) -> str:
    """0 or 1 for each category, of shape (n_items, n_categories)."""
    if np.asarray(kinds).dtype.kind not in "fiub":
        return _text_indicators(
            graph, step, cells, ["" if is_gap(kind) else kind for kind in kinds]
        )
    numbers = np.array([[np.inf if is_gap(kind) else kind for kind in kinds]], float)
    equal = graph.add("Equal", cells, numbers)
    if np.isinf(numbers).any():
        is_nan = graph.add("And", graph.add("IsNaN", cells), graph.add("IsInf", numbers))
        equal = graph.add("Or", equal, is_nan)
    return graph.floats(equal)


def _text_indicators(graph: Graph, step: Any, cells: str, texts: Sequence[str]) -> str:
    if len(set(texts)) < len(texts):
        raise _refused(step, "gaps beside empty texts, which are the same in ONNX")
    if not all(isinstance(text, str) for text in texts):
        raise _refused(step, "categories of mixed types")
    return graph.floats(graph.add("Equal", _text_codes(graph, cells, texts), np.arange(len(texts))))


def _text_codes(graph: Graph, cells: str, texts: Sequence[str]) -> str:
    """The place of each cell among the texts, -1 for none."""
    places = {"values_int64s": list(range(len(texts))), "default_int64": -1}
    return graph.add("LabelEncoder", cells, domain=ML, keys_strings=list(texts), **places)


def _group_scaler(graph: Graph, step: GroupScaler, values: Values) -> Values:
    """``(x - mean) / sd`` inside the group, 0 where sd is no more than rounding."""
    x, width = graph.matrix(values), values.n_columns
    if step.with_log:
        size = graph.add("Log", graph.add("Add", graph.add("Abs", x), np.array(1.0)))
        x = graph.add("Mul", graph.add("Sign", x), size)
    standard = Values([x], [width])
    if hasattr(step, "standard_"):
        standard = _scaler(graph, step.standard_, standard)
    if not step.needs_groups_:
        return standard + standard if step.with_standard else standard
    inside = _in_group(graph, x, width, with_mean=step.with_mean)
    return inside + standard if step.with_standard else inside


def _in_group(graph: Graph, x: str, width: int, *, with_mean: bool) -> Values:
    same = graph.same_group()
    sizes = graph.add("ReduceSum", same, ROWS, keepdims=1)
    first = graph.add("Gather", x, graph.add("ArgMax", same, axis=1, keepdims=0), axis=0)
    z = graph.add("Sub", x, first)  # constant columns are 0 exactly
    z = graph.add("Sub", z, graph.add("Div", graph.add("MatMul", same, z), sizes))
    deviation, magnitude = (
        graph.add("Sqrt", graph.add("Div", graph.add("MatMul", same, square), sizes))
        for square in (graph.add("Mul", z, z), graph.add("Mul", x, x))
    )
    least = graph.add("Mul", magnitude, np.array(ROUNDING * np.finfo(np.float64).eps))
    is_more = graph.add("Greater", deviation, least)
    factor = graph.add("Div", np.array(1.0), graph.add("Where", is_more, deviation, np.array(1.0)))
    scaled = graph.add("Mul", z if with_mean else x, factor)
    return Values([graph.add("Where", is_more, scaled, np.array(0.0))], [width])


def _tree_features(graph: Graph, step: TreeFeatures, values: Values) -> Values:
    """Numbers and, in groups, the scaled ones beside them, rounded as trees see them."""
    if step.sizes or step.n_codes:
        raise _refused(step, "trees in ONNX take numbers only, no categories and texts")
    width = values.n_columns
    if step.needs_groups_:
        values = values + _in_group(graph, graph.matrix(values), width, with_mean=True)
    return Values([graph.floats(graph.rounded(graph.matrix(values)))], [values.n_columns])


def _hinges(graph: Graph, step: HingeFeatures, values: Values) -> Values:
    chosen = graph.matrix(graph.take(values, step.columns_))
    above = graph.add("Max", graph.add("Sub", chosen, step.knots_), np.array(0.0))
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
    **dict.fromkeys((OneHotEncoder, OrdinalEncoder), _encoder),
    Columns: _columns,
    ColumnTransformer: _column_transformer,
    GroupScaler: _group_scaler,
    HingeFeatures: _hinges,
    MissingIndicator: _gaps,
    Nystroem: _nystroem,
    Pipeline: _pipeline,
    SimpleImputer: _imputer,
    TreeFeatures: _tree_features,
}


def _refused(step: Any, what: str) -> ValueError:
    return ValueError(f"{type(step).__name__} cannot be written to ONNX as it is: {what}.")
