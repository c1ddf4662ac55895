"""Rankers as ONNX operators: columns or kernel values, coefficients, a level."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators.linear_function import map_weights
from rankwise.estimators.score_functions import score_functions
from rankwise.features import FeatureMap, Kernel
from rankwise.persistence.onnx_graph import Graph, Values

LAST, ROWS = np.array([-1]), np.array([1])


def add_ranker(graph: Graph, ranker: Any, values: Values) -> tuple[str, tuple[int, ...]]:
    """The scores of the items in `values`: the name of their tensor, and the shape of one item's.

    Raises
    ------
    ValueError
        If the ranker is not made of columns and named kernels.
    """
    parts = score_functions(ranker)
    for one in parts.maps:
        _check_kernel(one.kernel)
    n_features = ranker.n_features_in_
    linear = np.zeros((n_features, parts.coefficients[0].shape[1]))
    scores = None
    for one, coef in zip(parts.maps, parts.coefficients, strict=True):
        if one.kernel.is_linear:
            linear += map_weights(one, coef, n_features) / len(parts.maps)
        elif len(coef):
            added = _kernel_scores(graph, one, coef / len(parts.maps), values)
            scores = added if scores is None else graph.add("Add", scores, added)
    if scores is None or linear.any():
        added = graph.add("MatMul", graph.matrix(values), linear)
        scores = added if scores is None else graph.add("Add", scores, added)
    if parts.level:
        scores = graph.add("Add", scores, np.array(parts.level))
    if not parts.output_shape:
        scores = graph.add("Squeeze", scores, ROWS)
    return scores, parts.output_shape


def _check_kernel(kernel: Kernel) -> None:
    if callable(kernel.function):
        raise ValueError(
            f"the kernel {getattr(kernel.function, '__name__', kernel.function)!r} is a function "
            "of Python, which ONNX cannot hold. Train the model with a kernel by name."
        )
    if kernel.is_precomputed:
        raise ValueError(
            "kernel='precomputed' has no items to compute kernel values with. Train the model with "
            "a kernel by name."
        )


def _kernel_scores(graph: Graph, one: FeatureMap, coef: Array, values: Values) -> str:
    """``k(x, items) coef``."""
    seen = values if one.columns is None else graph.take(values, one.columns)
    items = one.items.toarray() if hasattr(one.items, "toarray") else one.items
    items = np.asarray(items, dtype=np.float64)
    K = _KERNELS[str(one.kernel.function)](graph, graph.matrix(seen), items, one.kernel)
    return graph.add("MatMul", K, coef)


def _gamma(kernel: Kernel, items: Array) -> float:
    return 1.0 / items.shape[1] if kernel.gamma is None else float(kernel.gamma)


def _rbf(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    """``exp(-gamma ‖x - y‖²)``, the squared norm as ``x·x - 2 x·y + y·y``.

    Both are centered at the mean of the items: no digits are lost where columns are far from 0.
    """
    center = items.mean(axis=0)
    x, items = graph.add("Sub", x, center), items - center
    product = graph.add("MatMul", x, -2.0 * items.T)
    norms = graph.add("ReduceSumSquare", x, ROWS, keepdims=1)
    squares = graph.add("Add", graph.add("Add", product, norms), (items**2).sum(axis=1))
    positive = graph.add("Max", squares, np.array(0.0))
    return graph.add("Exp", graph.add("Mul", positive, np.array(-_gamma(kernel, items))))


def _affine(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    """``gamma x·y + coef0``."""
    product = graph.add("MatMul", x, _gamma(kernel, items) * items.T)
    return graph.add("Add", product, np.array(float(kernel.coef0)))


def _polynomial(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    return graph.add("Pow", _affine(graph, x, items, kernel), np.array(float(kernel.degree)))


def _sigmoid(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    return graph.add("Tanh", _affine(graph, x, items, kernel))


def _cosine(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    norms = np.sqrt((items**2).sum(axis=1, keepdims=True))
    length = graph.add("Sqrt", graph.add("ReduceSumSquare", x, ROWS, keepdims=1))
    is_zero = graph.add("Equal", length, np.array(0.0))
    length = graph.add("Where", is_zero, np.array(1.0), length)
    unit = items / np.where(norms == 0.0, 1.0, norms)
    return graph.add("MatMul", graph.add("Div", x, length), unit.T)


def _laplacian(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    """``exp(-gamma Σ |x_j - y_j|)``."""
    distance = graph.add("Abs", graph.add("Sub", graph.add("Unsqueeze", x, ROWS), items))
    return _exp_of_sum(graph, distance, -_gamma(kernel, items))


def _chi2(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    """``exp(-gamma Σ (x_j - y_j)² / (x_j + y_j))``; the default of gamma is 1 here."""
    gamma = 1.0 if kernel.gamma is None else float(kernel.gamma)
    return _exp_of_sum(graph, _chi2_terms(graph, x, items), -gamma)


def _additive_chi2(graph: Graph, x: str, items: Array, kernel: Kernel) -> str:
    return graph.add("Neg", graph.add("ReduceSum", _chi2_terms(graph, x, items), LAST, keepdims=0))


def _exp_of_sum(graph: Graph, terms: str, factor: float) -> str:
    total = graph.add("ReduceSum", terms, LAST, keepdims=0)
    return graph.add("Exp", graph.add("Mul", total, np.array(factor)))


def _chi2_terms(graph: Graph, x: str, items: Array) -> str:
    """``(x_j - y_j)² / (x_j + y_j)`` of shape (n_items, n_basis, n_features), 0 for 0 / 0."""
    x = graph.add("Unsqueeze", x, ROWS)
    difference, total = graph.add("Sub", x, items), graph.add("Add", x, items)
    is_zero = graph.add("Equal", total, np.array(0.0))
    squares = graph.add("Mul", difference, difference)
    total = graph.add("Where", is_zero, np.array(1.0), total)
    return graph.add("Where", is_zero, np.array(0.0), graph.add("Div", squares, total))


_KERNELS = {
    "rbf": _rbf,
    "poly": _polynomial,
    "polynomial": _polynomial,
    "sigmoid": _sigmoid,
    "cosine": _cosine,
    "laplacian": _laplacian,
    "chi2": _chi2,
    "additive_chi2": _additive_chi2,
}
