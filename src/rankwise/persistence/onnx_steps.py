"""Steps of scikit-learn as ONNX operators in float64.

skl2onnx has converters for them, but fills gaps and normalizes in float32, takes a gap for the text
"None", and knows no MissingIndicator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FactorAnalysis, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from rankwise.arrays import Array, Indices
from rankwise.estimators.group_scaler import GroupScaler
from rankwise.estimators.step_columns import is_idle, one_hot_columns
from rankwise.features.group_scaling import ROUNDING
from rankwise.persistence.linear_export import scaling
from rankwise.persistence.onnx_graph import ML, Graph, Values, import_onnx

FUNCTIONS = {np.log: "Log", np.exp: "Exp", np.sqrt: "Sqrt", np.abs: "Abs", np.tanh: "Tanh"}


def add_step(graph: Graph, step: Any, values: Values) -> Values:
    """What a fitted step makes of the columns.

    Raises
    ------
    ValueError
        If there are no operators for it.
    """
    if is_idle(step):
        return values
    kind = type(step)
    if kind is Pipeline:
        for _, one in step.steps:
            values = add_step(graph, one, values)
        return values
    if kind is FeatureUnion:
        parts = [(name, one, range(values.n_columns)) for name, one in step.transformer_list]
        return _side_by_side(graph, step, parts, values)
    if kind in _MAKERS:
        return _MAKERS[kind](graph, step, values)
    if hasattr(step, "get_support"):
        return graph.take(values, step.get_support(indices=True))
    raise ValueError(
        f"a step {kind.__name__} cannot be written to ONNX. Train the model without it, or "
        "transform the items before they come to the graph."
    )


def text_columns(step: Any, n_columns: int) -> NDArray[np.bool_]:
    """Which of the columns that a fitted step takes hold text."""
    found = np.zeros(n_columns, dtype=bool)
    if isinstance(step, Pipeline):
        first = [one for _, one in step.steps if not is_idle(one)][:1]
        return text_columns(first[0], n_columns) if first else found
    if isinstance(step, ColumnTransformer):
        for name, part, _ in step.transformers_:
            at = np.asarray(step._transformer_to_input_indices.get(name, []), dtype=np.intp)
            found[at] |= text_columns(part, len(at))
        return found
    if isinstance(step, FeatureUnion):
        parts = [text_columns(part, n_columns) for _, part in step.transformer_list]
        return np.asarray(np.any(parts, axis=0))
    if hasattr(step, "categories_"):
        return np.array([not _is_numeric(kinds) for kinds in step.categories_])
    if isinstance(step, SimpleImputer):
        return np.array([isinstance(value, str) for value in step.statistics_])
    return found | hasattr(step, "vocabulary_")


def is_gap(value: Any) -> bool:
    """Whether a category stands for a missing value."""
    return value is None or value != value or str(value) == "<NA>"


def _columns(graph: Graph, step: ColumnTransformer, values: Values) -> Values:
    where = step._transformer_to_input_indices
    parts = [(name, part, where.get(name, [])) for name, part, _ in step.transformers_]
    return _side_by_side(graph, step, parts, values)


def _side_by_side(
    graph: Graph, step: Any, parts: Sequence[tuple[str, Any, Sequence[int]]], values: Values
) -> Values:
    out = Values([], [])
    for name, part, columns in parts:
        if not len(columns) or (isinstance(part, str) and part == "drop"):
            continue
        made = add_step(graph, part, graph.take(values, columns))
        weight = (step.transformer_weights or {}).get(name)
        if weight is not None:
            scaled = graph.add("Mul", graph.matrix(made), np.array(float(weight)))
            made = Values([scaled], [made.n_columns])
        out += made
    return out


def _scaler(graph: Graph, step: Any, values: Values) -> Values:
    scale, shift = scaling(step, values.n_columns)
    moved = graph.add("Add", graph.add("Mul", graph.matrix(values), scale), shift)
    if getattr(step, "clip", False):
        low, high = getattr(step, "feature_range", (-1, 1))
        moved = graph.add("Clip", moved, np.array(float(low)), np.array(float(high)))
    return Values([moved], [values.n_columns])


def _imputer(graph: Graph, step: SimpleImputer, values: Values) -> Values:
    is_empty = np.array([is_gap(value) for value in step.statistics_])
    kept = np.arange(len(is_empty)) if step.keep_empty_features else np.flatnonzero(~is_empty)
    seen, fill = graph.take(values, kept), step.statistics_[kept]
    if len(fill) and all(isinstance(value, str) for value in fill):
        if not is_gap(step.missing_values) and step.missing_values != "":
            raise _refused(step, f"missing_values={step.missing_values!r} in text")
        cells = graph.matrix(seen)
        filled = graph.add("Where", _codes(graph, cells, [""], bool), fill, cells)
    else:
        cells = graph.matrix(seen)
        filled = graph.add("Where", _missing(graph, step, cells), fill.astype(float), cells)
    out = Values([filled], [len(kept)])
    return out + _gaps(graph, step.indicator_, values) if step.add_indicator else out


def _gaps(graph: Graph, step: MissingIndicator, values: Values) -> Values:
    seen = graph.matrix(graph.take(values, step.features_))
    return Values([_as_floats(graph, _missing(graph, step, seen))], [len(step.features_)])


def _missing(graph: Graph, step: Any, cells: str) -> str:
    if is_gap(step.missing_values):
        return graph.add("IsNaN", cells)
    if isinstance(step.missing_values, str):
        raise _refused(step, f"missing_values={step.missing_values!r}")
    return graph.add("Equal", cells, np.array(float(step.missing_values)))


def _encoder(graph: Graph, step: Any, values: Values) -> Values:
    """One column of 0 and 1 for each category, times what the encoder makes of the category."""
    out = Values([], [])
    for k, (table, unknown) in enumerate(_tables(step)):
        known = _indicators(graph, step, graph.matrix(graph.take(values, [k])), k)
        if unknown is None or unknown.any():
            none = graph.add("Sub", np.array(1.0), graph.add("ReduceSum", known, np.array([1])))
        if unknown is None:  # the runtime refuses row 1 of a single row, as scikit-learn does
            row = graph.add("Cast", none, to=import_onnx().TensorProto.INT64)
            known = graph.add("Mul", known, graph.add("Gather", np.ones(1), row))
        made = known if _is_identity(table) else graph.add("MatMul", known, table)
        if unknown is not None and unknown.any():
            made = graph.add("Add", made, graph.add("MatMul", none, unknown[None, :]))
        out += Values([made], [table.shape[1]])
    return out


def _tables(step: Any) -> list[tuple[Array, Array | None]]:
    """For each column the features of its categories, and of unknown ones (None: an error)."""
    if isinstance(step, TargetEncoder):
        if step.target_type_ == "multiclass":
            raise _refused(step, "target_type='multiclass'")
        mean = np.atleast_1d(step.target_mean_)
        return [(np.asarray(values)[:, None], mean) for values in step.encodings_]
    places = one_hot_columns(step)
    rare = getattr(step, "infrequent_categories_", None) or [None] * len(places)
    if isinstance(step, OneHotEncoder):
        return [_one_hot(step, *pair) for pair in zip(places, step.categories_, rare, strict=True)]
    value = step.unknown_value if step.handle_unknown == "use_encoded_value" else None
    unknown = None if value is None else np.array([float(value)])
    tables = []
    for numbers, kinds in zip(places, step.categories_, strict=True):
        gaps = np.array([is_gap(kind) for kind in kinds])
        table = np.where(gaps, step.encoded_missing_value, numbers.astype(float))
        if np.isnan(np.r_[table, [] if unknown is None else unknown]).any():
            raise _refused(step, "it makes NaN of gaps or of unknown categories")
        tables.append((table[:, None], unknown))
    return tables


def _one_hot(step: Any, places: Indices, kinds: Any, rare: Any) -> tuple[Array, Array | None]:
    table = (places[:, None] == np.arange(places.max() + 1)).astype(float)
    if step.handle_unknown == "error":
        return table, None
    unknown = np.zeros(table.shape[1])
    if step.handle_unknown != "ignore" and rare is not None:
        unknown = table[np.isin(kinds, rare)][0]
    return table, unknown


def _indicators(graph: Graph, step: Any, cells: str, k: int) -> str:
    """0 or 1 for each category of column k, of shape (n_items, n_categories)."""
    kinds = step.categories_[k]
    if not _is_numeric(kinds):
        texts = ["" if is_gap(kind) else kind for kind in kinds]
        if len(set(texts)) < len(texts):
            raise _refused(step, "gaps beside empty texts, which are the same in ONNX")
        if not all(isinstance(text, str) for text in texts):
            raise _refused(step, "categories of mixed types")
        return _as_floats(
            graph, graph.add("Equal", _codes(graph, cells, texts), np.arange(len(texts)))
        )
    equal = graph.add(
        "Equal", cells, np.array([[np.inf if is_gap(v) else v for v in kinds]], float)
    )
    gaps = np.array([[is_gap(value) for value in kinds]], dtype=int)
    if gaps.any():
        is_nan = graph.add(
            "And", graph.add("IsNaN", cells), graph.add("Greater", gaps, np.array([0]))
        )
        equal = graph.add("Or", equal, is_nan)
    return _as_floats(graph, equal)


def _codes(graph: Graph, cells: str, texts: Sequence[str], kind: type = int) -> str:
    """The place of each cell among the texts, -1 for none; as truth values, whether it is there."""
    values = [1] * len(texts) if kind is bool else list(range(len(texts)))
    other = 0 if kind is bool else -1
    settings = {"keys_strings": list(texts), "values_int64s": values, "default_int64": other}
    codes = graph.add("LabelEncoder", cells, domain=ML, **settings)
    return graph.add("Cast", codes, to=import_onnx().TensorProto.BOOL) if kind is bool else codes


def _function(graph: Graph, step: FunctionTransformer, values: Values) -> Values:
    if step.func is None:
        return values
    x = graph.matrix(values)
    if step.func is np.log1p:
        return Values([graph.add("Log", graph.add("Add", x, np.array(1.0)))], [values.n_columns])
    if step.func not in FUNCTIONS or step.kw_args:
        known = ", ".join(f"np.{function.__name__}" for function in (np.log1p, *FUNCTIONS))
        raise _refused(step, f"the function {step.func!r}; those that can be are {known}")
    return Values([graph.add(FUNCTIONS[step.func], x)], [values.n_columns])


def _normalizer(graph: Graph, step: Normalizer, values: Values) -> Values:
    x = graph.matrix(values)
    operator = {"l1": "ReduceL1", "l2": "ReduceL2", "max": "ReduceMax"}[step.norm]
    size = graph.add(operator, graph.add("Abs", x), np.array([1]), keepdims=1)
    is_zero = graph.add("Equal", size, np.array(0.0))
    unit = graph.add("Div", x, graph.add("Where", is_zero, np.array(1.0), size))
    return Values([unit], [values.n_columns])


def _polynomial(graph: Graph, step: PolynomialFeatures, values: Values) -> Values:
    """Each feature is a product of columns; a column of ones fills up the shorter products."""
    x = graph.matrix(values)
    ones = graph.add("Add", graph.add("Mul", graph.add("Gather", x, [0], axis=1), [0.0]), [1.0])
    columns = graph.add("Concat", x, ones, axis=1)
    n_ones, n_factors = values.n_columns, int(step.powers_.sum(axis=1).max(initial=0))
    factors = [np.repeat(np.arange(n_ones), powers) for powers in step.powers_]
    full = np.array([np.r_[f, [n_ones] * (n_factors - len(f))] for f in factors], dtype=np.int64)
    product = graph.add("Gather", columns, full[:, 0], axis=1)
    for places in full.T[1:]:
        product = graph.add("Mul", product, graph.add("Gather", columns, places, axis=1))
    return Values([product], [len(factors)])


def _bins(graph: Graph, step: KBinsDiscretizer, values: Values) -> Values:
    """The number of inner edges that are not above the value."""
    out = Values([], [])
    for k, edges in enumerate(step.bin_edges_):
        x = graph.matrix(graph.take(values, [k]))
        above = _as_floats(graph, graph.add("GreaterOrEqual", x, edges[1:-1][None, :]))
        number = graph.add("ReduceSum", above, np.array([1]), keepdims=1)
        if step.encode == "ordinal":
            out += Values([number], [1])
            continue
        n_bins = int(step.n_bins_[k])
        is_in = graph.add("Equal", number, np.arange(n_bins, dtype=np.float64)[None, :])
        out += Values([_as_floats(graph, is_in)], [n_bins])
    return out


def _affine(graph: Graph, step: Any, values: Values) -> Values:
    """``(x - c) A + b``, found by the rows c and c + e_j; c is the center of the step."""
    center = np.asarray(getattr(step, "mean_", np.zeros(values.n_columns)), dtype=np.float64)
    made = step.transform(np.vstack([center, center + np.eye(values.n_columns)]))
    rows = np.asarray(made.toarray() if hasattr(made, "toarray") else made)
    turned = graph.add("MatMul", graph.add("Sub", graph.matrix(values), center), rows[1:] - rows[0])
    return Values([graph.add("Add", turned, rows[0])], [rows.shape[1]])


def _binarizer(graph: Graph, step: Binarizer, values: Values) -> Values:
    above = graph.add("Greater", graph.matrix(values), np.array(float(step.threshold)))
    return Values([_as_floats(graph, above)], [values.n_columns])


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
    same = graph.same_group()
    sizes = graph.add("ReduceSum", same, np.array([1]), keepdims=1)
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
    scaled = graph.add("Mul", z if step.with_mean else x, factor)
    inside = Values([graph.add("Where", is_more, scaled, np.array(0.0))], [width])
    return inside + standard if step.with_standard else inside


def _as_floats(graph: Graph, truth: str) -> str:
    return graph.add("Cast", truth, to=import_onnx().TensorProto.DOUBLE)


def _is_numeric(kinds: Any) -> bool:
    return np.asarray(kinds).dtype.kind in "fiub"


def _is_identity(table: Array) -> bool:
    return table.shape[0] == table.shape[1] and np.array_equal(table, np.eye(len(table)))


_MAKERS: dict[type, Callable[[Graph, Any, Values], Values]] = {
    **dict.fromkeys((StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler), _scaler),
    **dict.fromkeys((OneHotEncoder, OrdinalEncoder, TargetEncoder), _encoder),
    **dict.fromkeys((PCA, IncrementalPCA, TruncatedSVD, FastICA, FactorAnalysis), _affine),
    **dict.fromkeys((GaussianRandomProjection, SparseRandomProjection), _affine),
    Binarizer: _binarizer,
    GroupScaler: _group_scaler,
    ColumnTransformer: _columns,
    SimpleImputer: _imputer,
    MissingIndicator: _gaps,
    FunctionTransformer: _function,
    Normalizer: _normalizer,
    PolynomialFeatures: _polynomial,
    KBinsDiscretizer: _bins,
}


def _refused(step: Any, what: str) -> ValueError:
    return ValueError(f"{type(step).__name__} cannot be written to ONNX as it is: {what}.")
