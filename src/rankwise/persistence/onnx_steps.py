"""Kernels and the transformers of a Pipeline as ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise.arrays import Array
from rankwise.auto.tree_features import TreeFeatures
from rankwise.kernels.kernel import Kernel
from rankwise.persistence.linear_export import scaling
from rankwise.persistence.onnx_columns import add_table_features
from rankwise.persistence.onnx_graph import NAN, ONE, ROWS, ZERO, OnnxGraph, Tensor
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.group_scaling import ROUNDING_EPSILONS
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import is_passthrough

#: The items, as tensors whose columns are features; of a table, one for each of its columns.
Items: TypeAlias = Sequence[Tensor]


def add_step(graph: OnnxGraph, step: BaseEstimator | str | None, items: Items) -> Items:
    """Transform the items by a fitted step of a Pipeline.

    Raises
    ------
    ValueError
        If there are no operators for the step.
    """
    if is_passthrough(step):
        return items
    if isinstance(step, TableVectorizer):
        return add_table_features(graph, step, items)
    if type(step) in STEP_WRITERS:
        return [STEP_WRITERS[type(step)](graph, step, graph.join(items))]
    raise ValueError(
        f"a step {type(step).__name__} cannot be written to ONNX. Train the model with "
        "TableVectorizer or without the step, or transform the items before they enter the graph."
    )


def add_kernel(graph: OnnxGraph, kernel: Kernel, items: Array, x: Tensor) -> Tensor:
    """``k(x, items)`` for ``exp(-gamma ‖x - y‖²)`` and ``(gamma x·y + coef0)^degree``."""
    name = kernel.function
    if name not in ("rbf", "poly", "polynomial"):
        function_name = getattr(name, "__name__", name)
        raise ValueError(
            f"the kernel {function_name!r} cannot be written to ONNX; train with kernel='linear', "
            "'rbf' or 'poly'."
        )
    gamma = 1.0 / items.shape[1]
    if kernel.gamma is not None:
        gamma = float(kernel.gamma)
    if name == "rbf":
        squared_distances = _add_squared_distances(graph, items, x)
        return graph.add("Exp", graph.add("Mul", squared_distances, -gamma))
    products = graph.add("MatMul", x, gamma * items.T)
    shifted = graph.add("Add", products, float(kernel.coef0))
    return graph.add("Pow", shifted, float(kernel.degree))


def _add_squared_distances(graph: OnnxGraph, items: Array, x: Tensor) -> Tensor:
    center = items.mean(axis=0)  # no digits are lost in columns far from 0
    x = graph.add("Sub", x, center)
    items = items - center
    norms = graph.add("ReduceSumSquare", x, ROWS, keepdims=1)
    cross_terms = graph.add("MatMul", x, -2.0 * items.T)
    without_item_norms = graph.add("Add", cross_terms, norms)
    squares = graph.add("Add", without_item_norms, (items**2).sum(axis=1))
    return graph.add("Max", squares, ZERO)


def _add_scaler(graph: OnnxGraph, scaler: BaseEstimator, x: Tensor) -> Tensor:
    scale, shift = scaling(scaler, scaler.n_features_in_)
    return graph.add("Add", graph.add("Mul", x, scale), shift)


def _add_group_scaler(graph: OnnxGraph, step: GroupScaler, x: Tensor) -> Tensor:
    """``(x - mean) / sd`` inside the group, 0 where sd is no more than rounding."""
    if step.method != "standard":
        raise ValueError(
            f"GroupScaler(method={step.method!r}) has no ONNX graph; use method='standard'."
        )
    if step.with_log:
        logarithm = graph.add("Log", graph.add("Add", graph.add("Abs", x), ONE))
        x = graph.add("Mul", graph.add("Sign", x), logarithm)
    standard = x
    if hasattr(step, "standard_"):
        standard = _add_scaler(graph, step.standard_, x)
    inside = standard
    if step.needs_groups_:
        first_of_group = graph.add("ArgMax", graph.same_group(), axis=1, keepdims=0)
        reference = graph.add("Gather", x, first_of_group, axis=0)
        shifted = graph.add("Sub", x, reference)  # exactly 0 in constant columns
        inside = _scale_in_groups(graph, shifted, x, with_mean=step.with_mean)
    if step.with_standard:
        return graph.join([inside, standard])
    return inside


def _scale_in_groups(
    graph: OnnxGraph,
    shifted: Tensor,
    x: Tensor,
    *,
    with_mean: bool = True,
    is_present: Tensor | None = None,
) -> Tensor:
    """Scale columns to standard deviation 1 in each group.

    Parameters
    ----------
    graph : OnnxGraph
        Operators are added to it.
    shifted : str
        x minus a constant of each group and column.
    x : str
        Features of the items; its magnitude decides what counts as rounding.
    with_mean : bool, default=True
        Whether the mean of the group is subtracted.
    is_present : str, optional
        1 for values and 0 for missing values, which must be 0 in the other tensors.
    """
    same_group = graph.same_group()
    if is_present is None:
        n_values = graph.add("ReduceSum", same_group, ROWS, keepdims=1)
    else:
        n_values = graph.add("Max", graph.add("MatMul", same_group, is_present), ONE)

    def group_mean(values: Tensor) -> Tensor:
        return graph.add("Div", graph.add("MatMul", same_group, values), n_values)

    centered = graph.add("Sub", shifted, group_mean(shifted))
    if is_present is not None:
        centered = graph.add("Mul", centered, is_present)
    deviation = graph.add("Sqrt", group_mean(graph.add("Mul", centered, centered)))
    magnitude = graph.add("Sqrt", group_mean(graph.add("Mul", x, x)))
    rounding_error = graph.add("Mul", magnitude, ROUNDING_EPSILONS * np.finfo(np.float64).eps)
    varies = graph.add("Greater", deviation, rounding_error)
    factor = graph.add("Div", ONE, graph.add("Where", varies, deviation, ONE))
    numerator = centered if with_mean else x
    return graph.add("Where", varies, graph.add("Mul", numerator, factor), ZERO)


def _add_tree_features(graph: OnnxGraph, step: TreeFeatures, x: Tensor) -> Tensor:
    """Cells, numbers scaled in their group, and scores of categories and texts, as float32."""
    n_columns = step.n_features_in_
    n_cells = n_columns - sum(step.sizes)
    n_numbers = n_cells - step.n_codes
    features = [graph.take(x, range(n_cells))]
    if step.needs_groups_ and n_numbers > 0:
        numbers = graph.take(x, range(n_numbers))
        is_missing = graph.add("IsNaN", numbers)
        is_present = graph.cast(graph.add("Not", is_missing))
        filled = graph.add("Where", is_missing, ZERO, numbers)
        scaled = _scale_in_groups(graph, filled, filled, is_present=is_present)
        features.append(graph.add("Where", is_missing, NAN, scaled))
    if step.sizes:
        values = graph.take(x, range(n_cells, n_columns))
        features.append(graph.add("MatMul", values, _coefficients_by_column(step)))
    return graph.cast(graph.cast(graph.join(features), "float32"))


def _coefficients_by_column(step: TreeFeatures) -> Array:
    """Matrix (n_values, n_columns) whose column k has the coefficients of the k-th category."""
    n_columns = len(step.sizes)
    column_of_value = np.repeat(np.arange(n_columns), step.sizes)
    is_in_column = column_of_value[:, None] == np.arange(n_columns)
    return np.where(is_in_column, step.value_coef_[:, None], 0.0)


def _add_hinges(graph: OnnxGraph, step: HingeFeatures, x: Tensor) -> Tensor:
    above_knots = graph.add("Sub", graph.take(x, step.columns_), step.knots_)
    return graph.join([x, graph.add("Max", above_knots, ZERO)])


def _add_nystroem(graph: OnnxGraph, step: Nystroem, x: Tensor) -> Tensor:
    degree = 3 if step.degree is None else step.degree
    coef0 = 1 if step.coef0 is None else step.coef0
    kernel = Kernel(step.kernel, step.gamma, degree, coef0)
    values = add_kernel(graph, kernel, step.components_, x)
    return graph.add("MatMul", values, step.normalization_.T)


#: By the class of a step: the function that adds its operators for a matrix of items.
STEP_WRITERS: dict[type, Callable[[OnnxGraph, BaseEstimator, Tensor], Tensor]] = {
    StandardScaler: _add_scaler,
    RobustScaler: _add_scaler,
    MinMaxScaler: _add_scaler,
    MaxAbsScaler: _add_scaler,
    GroupScaler: _add_group_scaler,
    HingeFeatures: _add_hinges,
    Nystroem: _add_nystroem,
    TreeFeatures: _add_tree_features,
}
