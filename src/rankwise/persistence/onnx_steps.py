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
from rankwise.persistence.onnx_graph import AXIS_1, NAN, ONE, ZERO, OnnxGraph, Tensor
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
    add_operators = STEP_WRITERS.get(type(step))
    if add_operators is not None:
        return [add_operators(graph, step, graph.join(items))]
    raise ValueError(
        f"a step {type(step).__name__} cannot be written to ONNX. Train the model with "
        "TableVectorizer or without the step, or transform the items before they enter the graph."
    )


def add_kernel(graph: OnnxGraph, kernel: Kernel, items: Array, x: Tensor) -> Tensor:
    """``k(x, items)`` for ``exp(-gamma ‖x - y‖²)`` and ``(gamma x·y + coef0)^degree``."""
    if kernel.function not in ("rbf", "poly", "polynomial"):
        kernel_name = getattr(kernel.function, "__name__", kernel.function)
        raise ValueError(
            f"the kernel {kernel_name!r} cannot be written to ONNX; train with kernel='linear', "
            "'rbf' or 'poly'."
        )
    n_features = items.shape[1]
    gamma = 1.0 / n_features  # the default of these kernels
    if kernel.gamma is not None:
        gamma = float(kernel.gamma)
    if kernel.function == "rbf":
        squared_distances = _add_squared_distances(graph, items, x)
        return graph.add("Exp", graph.add("Mul", squared_distances, -gamma))
    # polynomial: (gamma x · z + coef0) ** degree
    products = graph.add("MatMul", x, gamma * items.T)
    shifted = graph.add("Add", products, float(kernel.coef0))
    return graph.add("Pow", shifted, float(kernel.degree))


def _add_squared_distances(graph: OnnxGraph, items: Array, x: Tensor) -> Tensor:
    # ‖x − z‖² = −2 x · z + ‖x‖² + ‖z‖², centered so that no digits are lost far from 0
    center = items.mean(axis=0)
    centered_x = graph.add("Sub", x, center)
    centered_items = items - center
    squared_norms_of_x = graph.add("ReduceSumSquare", centered_x, AXIS_1, keepdims=1)
    squared_norms_of_items = (centered_items**2).sum(axis=1)
    cross_terms = graph.add("MatMul", centered_x, -2.0 * centered_items.T)
    sum_of_two_terms = graph.add("Add", cross_terms, squared_norms_of_x)
    squared_distances = graph.add("Add", sum_of_two_terms, squared_norms_of_items)
    return graph.add("Max", squared_distances, ZERO)  # rounding may give negative numbers


def _add_scaler(graph: OnnxGraph, scaler: BaseEstimator, x: Tensor) -> Tensor:
    scale, shift = scaling(scaler, scaler.n_features_in_)
    return graph.add("Add", graph.add("Mul", x, scale), shift)


def _add_group_scaler(graph: OnnxGraph, step: GroupScaler, x: Tensor) -> Tensor:
    """``(x - mean) / sd`` inside the group, 0 where sd is no more than rounding."""
    if step.method != "standard":
        raise ValueError(
            f"GroupScaler(method={step.method!r}) has no ONNX graph; use method='standard'."
        )
    if step.with_log:  # sign(x) log(|x| + 1)
        magnitude_plus_one = graph.add("Add", graph.add("Abs", x), ONE)
        x = graph.add("Mul", graph.add("Sign", x), graph.add("Log", magnitude_plus_one))
    scaled_over_all_items = x
    if hasattr(step, "standard_"):
        scaled_over_all_items = _add_scaler(graph, step.standard_, x)
    scaled_in_groups = scaled_over_all_items  # without groups all items are one list
    if step.needs_groups_:
        # ArgMax is the position of the first 1 in each row: the first item of the group.
        # Subtract the first row of each group: the difference is exactly 0 in constant columns.
        first_row_of_group = graph.add("ArgMax", graph.same_group(), axis=1, keepdims=0)
        first_values = graph.add("Gather", x, first_row_of_group, axis=0)
        shifted = graph.add("Sub", x, first_values)
        scaled_in_groups = _scale_in_groups(graph, shifted, x, with_mean=step.with_mean)
    if step.with_standard:
        return graph.join([scaled_in_groups, scaled_over_all_items])
    return scaled_in_groups


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
        Features of the items; their magnitude determines the rounding tolerance.
    with_mean : bool, default=True
        Whether the mean of the group is subtracted.
    is_present : str, optional
        1 for values and 0 for missing values, which must be 0 in the other tensors.
    """
    # Means over groups are products with a matrix (n_items, n_items): 1 for two items of one group.
    # `shifted` is x minus any constant of the group; the constant cancels in `centered`. With the
    # first value of the group as the constant, constant columns give exactly 0.
    same_group = graph.same_group()
    if is_present is None:
        n_values = graph.add("ReduceSum", same_group, AXIS_1, keepdims=1)
    else:
        n_present = graph.add("MatMul", same_group, is_present)
        n_values = graph.add("Max", n_present, ONE)  # no division by 0 if all are missing

    def group_mean(values: Tensor) -> Tensor:
        return graph.add("Div", graph.add("MatMul", same_group, values), n_values)

    centered = graph.add("Sub", shifted, group_mean(shifted))
    if is_present is not None:
        centered = graph.add("Mul", centered, is_present)
    standard_deviation = graph.add("Sqrt", group_mean(graph.add("Mul", centered, centered)))
    root_mean_square = graph.add("Sqrt", group_mean(graph.add("Mul", x, x)))
    # A standard deviation below the rounding error counts as 0.
    relative_rounding = ROUNDING_EPSILONS * np.finfo(np.float64).eps
    rounding_error = graph.add("Mul", root_mean_square, relative_rounding)
    varies = graph.add("Greater", standard_deviation, rounding_error)
    divisor = graph.add("Where", varies, standard_deviation, ONE)
    factor = graph.add("Div", ONE, divisor)
    if with_mean:
        scaled = graph.add("Mul", centered, factor)
    else:
        scaled = graph.add("Mul", x, factor)
    return graph.add("Where", varies, scaled, ZERO)  # 0 in columns that are constant in a group


def _add_tree_features(graph: OnnxGraph, step: TreeFeatures, x: Tensor) -> Tensor:
    """Cells, numbers scaled in their group, and scores of categories and texts, as float32."""
    # The columns of x: numbers, then codes of categories (these two are the cells of the table),
    # then one-hot features of wide columns.
    n_columns = step.n_features_in_
    n_one_hot = sum(step.sizes)  # sizes: number of values of each wide column
    n_cells = n_columns - n_one_hot
    n_numbers = n_cells - step.n_codes
    features = [graph.take(x, range(n_cells))]
    if step.needs_groups_ and n_numbers > 0:
        numbers = graph.take(x, range(n_numbers))
        is_missing = graph.add("IsNaN", numbers)
        is_present = graph.cast(graph.add("Not", is_missing))
        filled = graph.add("Where", is_missing, ZERO, numbers)
        scaled = _scale_in_groups(graph, filled, filled, is_present=is_present)
        features.append(graph.add("Where", is_missing, NAN, scaled))
    if step.sizes:  # each wide column becomes one number, the coefficient of its value
        one_hot = graph.take(x, range(n_cells, n_columns))
        features.append(graph.add("MatMul", one_hot, _coefficients_by_column(step)))
    rounded_to_single = graph.cast(graph.join(features), "float32")  # as trees are trained
    return graph.cast(rounded_to_single)


def _coefficients_by_column(step: TreeFeatures) -> Array:
    """Matrix (n_values, n_columns) whose column k has the coefficients of the k-th category."""
    n_columns = len(step.sizes)  # of categories with many values
    column_of_value = np.repeat(np.arange(n_columns), step.sizes)
    is_in_column = column_of_value[:, None] == np.arange(n_columns)  # (n_values, n_columns)
    return np.where(is_in_column, step.value_coef_[:, None], 0.0)


def _add_hinges(graph: OnnxGraph, step: HingeFeatures, x: Tensor) -> Tensor:
    # Hinges max(0, x − knot) in addition to the features
    above_knots = graph.add("Sub", graph.take(x, step.columns_), step.knots_)
    hinges = graph.add("Max", above_knots, ZERO)
    return graph.join([x, hinges])


def _add_nystroem(graph: OnnxGraph, step: Nystroem, x: Tensor) -> Tensor:
    # The defaults are those of scikit-learn's polynomial kernel.
    degree = 3 if step.degree is None else step.degree
    coef0 = 1 if step.coef0 is None else step.coef0
    kernel = Kernel(step.kernel, step.gamma, degree, coef0)
    kernel_values = add_kernel(graph, kernel, step.components_, x)
    return graph.add("MatMul", kernel_values, step.normalization_.T)


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
