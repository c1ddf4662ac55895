"""Whether the parts of a model fit together, so that `predict` cannot stumble over them."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from rankwise.estimators import CoRankRLS, RankingPursuit
from rankwise.estimators.kernel_model import KernelModel
from rankwise.estimators.search import Search
from rankwise.features import Kernel
from rankwise.persistence.classes import (
    ATTRIBUTES,
    RANKERS,
    SCALERS,
    is_integers,
    is_number,
    is_whole,
)
from rankwise.persistence.odd import OddContent

__all__ = ["check_loaded", "check_model"]

MAX_FEATURES = 2**40
MAX_PROBE = 10**6


def check_model(model: Any) -> None:
    """Raise `OddContent` unless this is a ranker, or scalers and a ranker, of matching parts."""
    if not isinstance(model, Pipeline):
        _check_ranker(model)
        return
    steps = model.steps
    if not isinstance(steps, list) or not steps or not all(_is_step(step) for step in steps):
        raise OddContent("the steps of the Pipeline are not a list of pairs (name, step)")
    *scalers, (_, ranker) = steps
    _check_ranker(ranker)
    for _, scaler in scalers:
        if scaler is None or (isinstance(scaler, str) and scaler == "passthrough"):
            continue
        _require(
            type(scaler) in SCALERS,
            f"the Pipeline has a step {type(scaler).__name__}; before the ranker it may have "
            f"{', '.join(known.__name__ for known in SCALERS)} and 'passthrough'",
        )
        _check_scaler(scaler, ranker.n_features_in_)


def check_loaded(model: Any) -> None:
    """Check a model that comes from a file, which may hold anything, and let it score an item.

    Scoring is the last net, for what the checks of the parts have not thought of.
    """
    try:
        check_model(model)
        _score_an_item(model)
    except OddContent:
        raise
    except Exception as error:
        raise OddContent(f"its model cannot score items: {error}") from error


def _score_an_item(model: Any) -> None:
    ranker = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if ranker.n_features_in_ > MAX_PROBE:
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with suppress(ValueError, ImportError):  # ones may be no legal item; pandas may be missing
            model.predict(np.ones((1, ranker.n_features_in_)))


def _is_step(step: Any) -> bool:
    return isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str)


def _check_ranker(model: Any) -> None:
    _require(type(model) in RANKERS, f"{type(model).__name__} is not a ranker of rankwise")
    _check_attributes(model)
    _check_features(model)
    _require(isinstance(model.kernel, str), "kernel is not a name")
    if isinstance(model, Search):
        best = _attribute(model, "best_estimator_")
        _check_ranker(best)
        _require(best.n_features_in_ == model.n_features_in_, "n_features_in_ is not the best's")
    elif isinstance(model, KernelModel):
        _check_kernel_model(model)
    elif isinstance(model, CoRankRLS):
        _check_views(model)
    elif isinstance(model, RankingPursuit):
        _check_pursuit(model)


def _check_attributes(model: Any) -> None:
    for name, kind in ATTRIBUTES[type(model)].items():
        if name in vars(model):
            _require(kind(vars(model)[name]), f"{type(model).__name__}.{name} is of an odd kind")


def _check_features(model: Any) -> None:
    n_features = _attribute(model, "n_features_in_")
    _require(1 <= n_features <= MAX_FEATURES, f"n_features_in_ is {n_features}")
    if hasattr(model, "feature_names_in_"):
        names = model.feature_names_in_
        _require(
            names.shape == (n_features,) and all(isinstance(name, str) for name in names),
            f"feature_names_in_ are not {n_features} names",
        )


def _check_kernel_model(model: Any) -> None:
    params = {} if model.kernel_params is None else model.kernel_params
    kernel = _make_kernel(model.kernel, model.gamma, model.degree, model.coef0, params)
    shape = model.output_shape_
    _require(
        isinstance(shape, tuple) and len(shape) < 2 and all(is_whole(n) and n > 0 for n in shape),
        f"the outputs have shape {shape!r}",
    )
    n_features = model.n_features_in_
    _require(hasattr(model, "coef_") == kernel.is_linear, "coefficients and kernel do not match")
    if kernel.is_linear:
        _check_array("coef_", model.coef_, (*shape, n_features))
        return
    dual = _attribute(model, "dual_coef_")
    n_items = dual.shape[0] if dual.ndim else 0
    _require(n_items > 0, "dual_coef_ is empty")
    _check_array("dual_coef_", dual, (n_items, *shape))
    if not kernel.is_precomputed:
        _check_array("X_fit_", _attribute(model, "X_fit_"), (n_items, n_features))
    elif hasattr(model, "basis_indices_"):
        _check_numbers("basis_indices_", model.basis_indices_, (n_items,), n_features)
    else:
        _require(n_items == n_features, f"{n_items} dual_coef_ but {n_features} features")


def _check_views(model: Any) -> None:
    views, coefs = _attribute(model, "views_"), _attribute(model, "view_coef_")
    _require(len(views) > 0 and len(views) == len(coefs), "views_ and view_coef_ do not match")
    for view, coef in zip(views, coefs, strict=True):
        kernel = _check_kernel(view.kernel)
        n_columns = _count_columns(view.columns, model.n_features_in_)
        _require(is_whole(view.n_features), "a view has an odd number of features")
        if view.root is None:
            _require(kernel.is_linear, "a view has a kernel but no basis")
            _require(view.n_features == n_columns, "a view has an odd number of features")
            _check_array("view_coef_", coef, (n_columns,))
            continue
        _require(isinstance(view.root, np.ndarray) and view.root.ndim == 2, "a view has no root")
        _check_array("the root of a view", view.root, (len(view.root), view.n_features))
        _check_array("view_coef_", coef, (len(view.root),))
        _check_basis(kernel, view.basis, view.items, len(view.root), n_columns)


def _check_pursuit(model: Any) -> None:
    functions = _attribute(model, "_functions")
    _require(len(functions) > 0, "the pursuit has no functions")
    n_steps = _attribute(model, "n_basis_")
    for function in functions:
        basis, path = function.basis, function.coef_path
        n_functions = basis.n_features
        _require(is_whole(n_functions), "a dictionary has an odd number of functions")
        _check_array("coef_path_", path, (n_steps, n_functions))
        _check_array("the levels of a pursuit", function.intercept_path, (n_steps,))
        known = is_number(function.level) and bool(np.isfinite(function.level))
        _require(known, "the level of a pursuit is no number")
        _check_numbers("choice_path_", function.choices, (n_steps,), None)
        kernel = _check_kernel(basis.kernel)
        if basis.is_columns:
            _require(kernel.is_linear, "functions that are features have a kernel")
            _check_numbers("columns", basis.columns, (n_functions,), model.n_features_in_)
            continue
        _require(basis.root is None, "functions of a pursuit have a root")
        n_columns = _count_columns(basis.columns, model.n_features_in_)
        _check_numbers("indices", basis.basis, (n_functions,), None)
        _check_basis(kernel, basis.basis, basis.items, n_functions, n_columns)
    if hasattr(model, "coef_"):
        _check_array("coef_", model.coef_, (model.n_features_in_,))


def _check_basis(kernel: Kernel, rows: Any, items: Any, n_items: int, n_columns: int) -> None:
    if kernel.is_precomputed:
        _require(items is None, "precomputed kernel values have no items")
        _check_numbers("the basis", rows, (n_items,), n_columns)
    else:
        _check_array("the basis items", items, (n_items, n_columns))


def _count_columns(columns: Any, n_features: int) -> int:
    if columns is None:
        return n_features
    _require(is_integers(columns) and columns.size > 0, "a view has no columns")
    _check_numbers("columns", columns, (columns.size,), n_features)
    return len(columns)


def _check_kernel(kernel: Any) -> Kernel:
    _require(isinstance(kernel, Kernel), "a view has no kernel")
    return _make_kernel(*(getattr(kernel, name) for name in vars(kernel)))


def _make_kernel(function: Any, gamma: Any, degree: Any, coef0: Any, params: Any) -> Kernel:
    known = isinstance(function, str) and isinstance(params, dict)
    known = known and is_number(degree) and is_number(coef0)
    _require(known and (gamma is None or is_number(gamma)), "the kernel has odd parameters")
    try:
        return Kernel(function, gamma, degree, coef0, params)
    except (TypeError, ValueError) as error:
        raise OddContent(str(error).rstrip(".")) from error


def _check_scaler(scaler: Any, n_features: int) -> None:
    _check_attributes(scaler)
    _check_features(scaler)
    _require(
        scaler.n_features_in_ == n_features,
        f"{type(scaler).__name__} is for {scaler.n_features_in_} features, the ranker for "
        f"{n_features}",
    )
    for name, is_needed in _shapes_of_scaler(scaler).items():
        value = _attribute(scaler, name)
        if value is not None or is_needed:
            _check_array(name, value, (n_features,))
    config = getattr(scaler, "_sklearn_output_config", {})
    _require(
        set(config) <= {"transform"}
        and all(
            v in ("default", "pandas", "polars", None) for v in map(_hashable, config.values())
        ),
        "set_output of a scaler is odd",
    )
    if isinstance(scaler, QuantileTransformer):
        n_quantiles = _attribute(scaler, "n_quantiles_")
        _require(n_quantiles > 0, "a scaler has no quantiles")
        _check_array("references_", _attribute(scaler, "references_"), (n_quantiles,))
        _check_array("quantiles_", _attribute(scaler, "quantiles_"), (n_quantiles, n_features))
    if isinstance(scaler, PowerTransformer) and _flag(scaler, "standardize"):
        _check_scaler(_attribute(scaler, "_scaler"), n_features)


def _shapes_of_scaler(scaler: Any) -> dict[str, bool]:
    """Attributes with one number for each feature, and whether they may not be None."""
    if isinstance(scaler, StandardScaler):
        return {"mean_": _flag(scaler, "with_mean"), "scale_": _flag(scaler, "with_std")}
    if isinstance(scaler, RobustScaler):
        centred, scaled = _flag(scaler, "with_centering"), _flag(scaler, "with_scaling")
        return {"center_": centred, "scale_": scaled}
    names = {MinMaxScaler: ("min_", "scale_"), MaxAbsScaler: ("scale_",)}
    names[PowerTransformer] = ("lambdas_",)
    return dict.fromkeys(names.get(type(scaler), ()), True)


def _flag(scaler: Any, name: str) -> bool:
    value = getattr(scaler, name)
    _require(isinstance(value, (bool, np.bool)), f"{name} is neither true nor false")
    return bool(value)


def _hashable(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else "odd"


def _attribute(model: Any, name: str) -> Any:
    _require(name in vars(model), f"{type(model).__name__} has no {name}")
    return vars(model)[name]


def _check_array(name: str, array: Any, shape: tuple[Any, ...]) -> None:
    """Finite floating point numbers of this shape; a matrix may be sparse."""
    is_matrix = sp.issparse(array)
    _require(is_matrix or isinstance(array, np.ndarray), f"{name} is no array")
    _require(array.shape == shape, f"{name} has shape {array.shape}, expected {shape}")
    values = array.data if is_matrix else array
    _require(
        values.dtype in (np.float64, np.float32) and bool(np.isfinite(values).all()),
        f"{name} has entries that are not finite numbers",
    )


def _check_numbers(name: str, array: Any, shape: tuple[int, ...], below: int | None) -> None:
    """Whole numbers from 0 of this shape, below a limit if there is one."""
    _require(is_integers(array) and array.shape == shape, f"{name} are not whole numbers")
    if array.size:
        top = array.max()
        _require(array.min() >= 0, f"{name} has the number {array.min()}")
        _require(below is None or top < below, f"{name} has the number {top} of only {below}")


def _require(is_so: bool, problem: str) -> None:
    if not is_so:
        raise OddContent(problem)
