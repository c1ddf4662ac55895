"""Models as ONNX graphs, for runtimes without Python: rankers, steps before them, columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.tree_features import TreeFeatures
from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import package_versions, require
from rankwise.kernels.feature_maps import ColumnFeatures
from rankwise.kernels.kernel import Kernel
from rankwise.persistence.linear_export import input_names, scaling
from rankwise.preprocessing.column_features import is_wide_column, n_category_features
from rankwise.preprocessing.column_types import NUMERIC, ColumnInfo
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.group_scaling import ROUNDING
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.preprocessing.table_vectorizer import MAX_CODES, TableVectorizer
from rankwise.rankers.linear_models import kernel_expansion, map_weights
from rankwise.rankers.pipelines import final_estimator, is_passthrough
from rankwise.uncertainty import CalibratedRanker

TEXTS = ("category", "order")  # kinds of columns that come as text
ROWS = np.array([1])
ZERO, ONE, NAN = np.array(0.0), np.array(1.0), np.array(np.nan)
ML = "ai.onnx.ml"
OPSETS = {"": 18, ML: 3}  # in place since 2022, so that older runtimes can read the file

IR_VERSION = 8
TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "int64": "INT64", "text": "STRING"}


def export_onnx(model: Any, path: PathLike, *, feature_names: Sequence[str] | None = None) -> None:
    """Write a ranker with its Pipeline as an ONNX graph, whole or not at all.

    Use it to run a model where there is no Python.

    The graph gives the scores of `predict` as its output "scores". It takes one input "X" of shape
    (n_items, n_features); all numbers are float64. If the model begins with `TableVectorizer`, or
    is an
    `AutoRanker` of a data frame, there is an input for each column instead, under the name of the
    column: numbers, with NaN for gaps (a vector in as many columns), or strings, with the empty
    string for gaps. If the model scales inside groups (`GroupScaler`), there is a further input
    "groups" with whole numbers, equal for the items of one group.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise with the kernel linear, rbf or poly, `LabelRanker` (one column
        of scores for each label), `AutoRanker` with its trees, `CalibratedRanker` (its scores), or
        a Pipeline that ends in one. Steps before it: `TableVectorizer` (all kinds but text and
        dates), `GroupScaler`, `HingeFeatures`, scikit-learn's four scalers and Nystroem.
    path : str or path-like
        The file; by custom it ends in ``.onnx``.
    feature_names : sequence of str, optional
        Names of the features for the notes in the file; by default those seen in `fit`.

    Raises
    ------
    ValueError
        If there is no graph for a part of the model. Nothing is written then.

    See Also
    --------
    export_linear : Weights as JSON, for search engines.

    Notes
    -----
    The graph is checked by ``onnx.checker``. The metadata of the file has the names of the
    features, the class of the ranker and the version of rankwise.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise import RankRLS
    >>> from rankwise.persistence import export_onnx
    >>> model = RankRLS(kernel="rbf").fit([[1.0], [2.0], [3.0]], [10, 20, 30])
    >>> path = Path(tempfile.mkdtemp()) / "model.onnx"
    >>> export_onnx(model, path)
    >>> path.stat().st_size > 0
    True
    """
    check_is_fitted(model)
    while isinstance(model, CalibratedRanker):
        model = model.estimator_
    first, graph = _first_step(model), Graph()
    columns = used_columns(first) if isinstance(first, TableVectorizer) else []
    if columns:
        feature_names = [column.name for column in columns]
    names = input_names(model, feature_names, len(columns) or first.n_features_in_)
    inputs: Any = graph.add_input("X", "float64", len(names)) if not columns else []
    for column in columns:
        kind = "text" if column.kind in TEXTS else "float64"
        width = len(column.medians) if column.kind == "vector" else 1
        inputs.append(graph.add_input(column.name, kind, width))
    scores, shape = add_ranker(graph, model, inputs)
    version, ranker = package_versions()["rankwise"], type(final_estimator(model)).__name__
    facts = {
        "about": f"Scores of items by {ranker}; larger is better, inside a group.",
        "ranker": ranker,
        "feature_names": json.dumps(names, ensure_ascii=False),
        "rankwise_version": version,
    }
    content = graph.model(scores, shape, facts, version).SerializeToString()
    with replace_file(path) as stream:
        stream.write(content)


def _first_step(model: Any) -> Any:
    """What the items come to first."""
    if isinstance(model, Pipeline):
        return _first_step(next(one for _, one in model.steps if not is_passthrough(one)))
    if isinstance(model, AutoRanker):
        return _first_step(model.estimators_[0]) if model.table_ is None else model.table_
    return model


# ---------------------------------------------------------------- a graph under construction


class Graph:
    """Operators, constants, inputs and at last the model; a tensor is known by its name."""

    def __init__(self) -> None:
        self._onnx = require("onnx", "export to ONNX")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._same_group = ""  # made with the input "groups"
        self._n_names = 0

    def add_input(self, name: str, kind: str, width: int) -> str:
        """An input of shape (n_items, width), of kind "float64" or "text"."""
        self._inputs.append(self._described(name, kind, [width]))
        return name

    def same_group(self) -> str:
        """A matrix of 0 and 1: whether two items have the same number in the input "groups"."""
        if not self._same_group:
            self._inputs.append(self._described("groups", "int64", []))
            rows, columns = (self.add("Unsqueeze", "groups", np.array([k])) for k in (1, 0))
            self._same_group = self.cast(self.add("Equal", rows, columns))
        return self._same_group

    def add(
        self, operator: str, *inputs: str | ArrayLike, domain: str = "", **settings: Any
    ) -> str:
        """Apply an operator; arrays among its inputs become constants. The name of the result."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        out = self._new_name(operator)
        make_node = self._onnx.helper.make_node
        self._nodes.append(make_node(operator, names, [out], out, domain=domain, **settings))
        return out

    def cast(self, tensor: str, kind: str = "float64") -> str:
        """Numbers or truth values as another kind of numbers."""
        return self.add("Cast", tensor, to=self._type(kind))

    def constant(self, values: ArrayLike) -> str:
        """What the graph itself holds: text, whole numbers as int64, all others as float64."""
        array: NDArray[Any] = np.asarray(values)
        kinds = {"i": np.int64, "u": np.int64, "O": object, "U": object}
        kept = array.astype(kinds.get(array.dtype.kind, np.float64))
        name = self._new_name("constant")
        self._constants.append(self.tensor(kept, name))
        return name

    def tensor(self, array: NDArray[Any], name: str = "") -> Any:
        """An array as ONNX keeps it."""
        return self._onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)

    def join(self, tensors: Sequence[str]) -> str:
        """The columns of all tensors as one matrix."""
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=1)

    def take(self, matrix: str, columns: Iterable[int]) -> str:
        """Some of the columns, in this order."""
        return self.add("Gather", matrix, np.array([*columns], dtype=int), axis=1)

    def model(self, scores: str, shape: Sequence[int], facts: dict[str, str], version: str) -> Any:
        """The whole model, checked: scores of shape (n_items, *shape), and facts for people."""
        helper = self._onnx.helper
        last = helper.make_node("Identity", [scores], ["scores"])
        graph = helper.make_graph(
            [*self._nodes, last],
            "ranker",
            self._inputs,
            [self._described("scores", "float64", shape)],
            self._constants,
            doc_string=facts["about"],
        )
        opsets = [helper.make_opsetid(domain, number) for domain, number in OPSETS.items()]
        model = helper.make_model(
            graph,
            producer_name="rankwise",
            producer_version=version,
            opset_imports=opsets,
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, facts)
        self._onnx.checker.check_model(model, full_check=True)
        return model

    def _described(self, name: str, kind: str, shape: Sequence[int]) -> Any:
        """An input or an output, with a row for each item."""
        make_info = self._onnx.helper.make_tensor_value_info
        return make_info(name, self._type(kind), ["n_items", *shape])

    def _type(self, kind: str) -> Any:
        return getattr(self._onnx.TensorProto, TYPES[kind])

    def _new_name(self, kind: str) -> str:
        self._n_names += 1
        return f"rankwise/{kind}_{self._n_names}"


# ---------------------------------------------------------------- rankers


def add_ranker(graph: Graph, ranker: Any, x: Any) -> tuple[str, tuple[int, ...]]:
    """The scores of the items in x: the name of their tensor, and the shape of one item's.

    x is the matrix of the items; for a model of a table it is a list of one tensor for each column.

    Raises
    ------
    ValueError
        If there are no operators for a part of the ranker.
    """
    if isinstance(ranker, Pipeline):
        for _, step in ranker.steps[:-1]:
            x = _step(graph, step, x)
        return add_ranker(graph, ranker.steps[-1][1], x)
    if isinstance(ranker, AutoRanker):
        return _combination(graph, ranker, x), ()
    if isinstance(ranker, BoostedTrees):
        return _trees(graph, ranker, x), ()
    return _kernel_ranker(graph, ranker, x)


def _kernel_ranker(graph: Graph, ranker: Any, x: str) -> tuple[str, tuple[int, ...]]:
    parts = kernel_expansion(ranker)
    n_features = ranker.n_features_in_
    linear = np.zeros((n_features, parts.coefficients[0].shape[1]))
    terms = []
    for one, coef in zip(parts.maps, parts.coefficients, strict=True):
        if isinstance(one, ColumnFeatures) or one.kernel.is_linear:
            linear += map_weights(one, coef, n_features) / len(parts.maps)
        elif len(coef):
            seen = x if one.columns is None else graph.take(x, one.columns)
            items = one.items.toarray() if hasattr(one.items, "toarray") else one.items
            K = _kernel_values(graph, one.kernel, np.asarray(items, dtype=np.float64), seen)
            terms.append(graph.add("MatMul", K, coef / len(parts.maps)))
    if linear.any() or not terms:
        terms.append(graph.add("MatMul", x, linear))
    if np.any(parts.intercept):
        terms.append(graph.constant(parts.intercept))
    scores = terms[0]
    for term in terms[1:]:
        scores = graph.add("Add", scores, term)
    if not parts.output_shape:
        scores = graph.add("Squeeze", scores, ROWS)
    return scores, parts.output_shape


def _kernel_values(graph: Graph, kernel: Kernel, items: Array, x: str) -> str:
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
        return graph.add("Pow", line, float(kernel.degree))
    center = items.mean(axis=0)  # no digits are lost where columns are far from 0
    x, items = graph.add("Sub", x, center), items - center
    norms = graph.add("ReduceSumSquare", x, ROWS, keepdims=1)
    product = graph.add("Add", graph.add("MatMul", x, -2.0 * items.T), norms)
    squares = graph.add("Add", product, (items**2).sum(axis=1))
    return graph.add("Exp", graph.add("Mul", graph.add("Max", squares, ZERO), -gamma))


def _combination(graph: Graph, ranker: AutoRanker, x: Any) -> str:
    """The weighted sum of the scores of the members, scaled to be comparable."""
    views = {name: [x] for name in ranker.views_}
    if ranker.table_ is not None:
        table, kept = _table(graph, ranker.table_, x), ranker.kept_values_
        chosen = [graph.take(graph.join(table.sparse), kept)] if len(kept) else []
        views = {"dense": table.dense, "wide": table.dense + chosen}
        views["trees"] = table.cells + table.sparse
    columns = []
    for member, name in zip(ranker.estimators_, ranker.views_, strict=True):
        scores = add_ranker(graph, member, graph.join(views[name]))[0]
        columns.append(graph.add("Unsqueeze", scores, ROWS))
    if len(columns) == 1:
        return graph.add("Squeeze", columns[0], ROWS)
    scaled = _step(graph, ranker.scaler_, graph.join(columns))
    return graph.add("Squeeze", graph.add("MatMul", scaled, ranker.weights_[:, None]), ROWS)


def _trees(graph: Graph, ranker: BoostedTrees, x: str) -> str:
    """Trees in the operator for them, which compares in float64 and gives the sum in float32.

    It compares with numbers only, so each set of codes that a tree asks for becomes a column.
    """
    nodes = np.arange(len(ranker.left_))
    is_leaf, is_set = ranker.left_ == nodes, ranker.set_ > 0
    feature, threshold = ranker.feature_.copy(), ranker.threshold_.copy()
    columns, n_columns = [x], ranker.n_features_in_
    for column in np.unique(feature[is_set]):
        at = np.flatnonzero(is_set & (ranker.feature_ == column))
        rows, place = np.unique(ranker.set_[at], return_inverse=True)
        feature[at], threshold[at] = n_columns + place, 0.5
        columns.append(_in_sets(graph, ranker.sets_[rows], graph.take(x, [column])))
        n_columns += len(rows)
    n_nodes = np.diff(ranker.roots_, append=len(nodes))
    tree = np.repeat(np.arange(len(n_nodes)), n_nodes)
    first = ranker.roots_[tree]
    modes = np.where(is_leaf, "LEAF", np.where(is_set, "BRANCH_GT", "BRANCH_LEQ"))
    scores = graph.add(
        "TreeEnsembleRegressor",
        graph.join(columns),
        domain=ML,
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=(nodes - first).tolist(),
        nodes_featureids=feature.tolist(),
        nodes_modes=modes.tolist(),
        nodes_truenodeids=np.where(is_leaf, 0, ranker.left_ - first).tolist(),
        nodes_falsenodeids=np.where(is_leaf, 0, ranker.right_ - first).tolist(),
        nodes_missing_value_tracks_true=ranker.gap_left_.tolist(),
        nodes_values_as_tensor=graph.tensor(threshold),
        target_treeids=tree[is_leaf].tolist(),
        target_nodeids=(nodes - first)[is_leaf].tolist(),
        target_ids=[0] * int(is_leaf.sum()),
        target_weights_as_tensor=graph.tensor(ranker.value_[is_leaf]),
    )
    return graph.add("Squeeze", graph.cast(scores), ROWS)


def _in_sets(graph: Graph, sets: Any, column: str) -> str:
    """1 for the codes of each set, else 0, and NaN for gaps."""
    is_gap = graph.add("IsNaN", column)
    known = graph.add("Where", is_gap, ZERO, column)
    code = graph.add("Clip", known, ZERO, float(sets.shape[1] - 1))
    place = graph.cast(graph.add("Squeeze", code, ROWS), "int64")
    inside = graph.add("Gather", sets.T.astype(np.float64), place, axis=0)
    return graph.add("Where", is_gap, NAN, inside)


# ---------------------------------------------------------------- steps


def _step(graph: Graph, step: Any, x: Any) -> Any:
    """What a fitted step makes of the items."""
    if is_passthrough(step):
        return x
    if type(step) in _MAKERS:
        return _MAKERS[type(step)](graph, step, x)
    raise ValueError(
        f"a step {type(step).__name__} cannot be written to ONNX. Train the model with Columns or "
        "without it, or transform the items before they come to the graph."
    )


def _scaler(graph: Graph, step: Any, x: str) -> str:
    scale, shift = scaling(step, step.n_features_in_)
    return graph.add("Add", graph.add("Mul", x, scale), shift)


def _group_scaler(graph: Graph, step: GroupScaler, x: str) -> str:
    """``(x - mean) / sd`` inside the group, 0 where sd is no more than rounding."""
    if step.with_log:
        size = graph.add("Log", graph.add("Add", graph.add("Abs", x), ONE))
        x = graph.add("Mul", graph.add("Sign", x), size)
    standard = _scaler(graph, step.standard_, x) if hasattr(step, "standard_") else x
    inside = standard
    if step.needs_groups_:
        first = graph.add("ArgMax", graph.same_group(), axis=1, keepdims=0)
        z = graph.add("Sub", x, graph.add("Gather", x, first, axis=0))  # constant columns are 0
        inside = _scaled(graph, z, x, with_mean=step.with_mean)
    return graph.join([inside, standard]) if step.with_standard else inside


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
    least = graph.add("Mul", magnitude, ROUNDING * np.finfo(np.float64).eps)
    is_more = graph.add("Greater", deviation, least)
    factor = graph.add("Div", ONE, graph.add("Where", is_more, deviation, ONE))
    return graph.add("Where", is_more, graph.add("Mul", z if with_mean else x, factor), ZERO)


def _tree_features(graph: Graph, step: TreeFeatures, x: str) -> str:
    """Cells, numbers scaled in their group, and scores of categories and texts, in 32 bits."""
    n_columns = step.n_features_in_
    n_cells = n_columns - sum(step.sizes)
    columns = [graph.take(x, range(n_cells))]
    if step.needs_groups_ and n_cells > step.n_codes:
        numbers = graph.take(x, range(n_cells - step.n_codes))
        is_gap = graph.add("IsNaN", numbers)
        known = graph.cast(graph.add("Not", is_gap))
        filled = graph.add("Where", is_gap, ZERO, numbers)
        inside = _scaled(graph, filled, filled, known=known)
        columns.append(graph.add("Where", is_gap, NAN, inside))
    if step.sizes:
        block = np.repeat(np.arange(len(step.sizes)), step.sizes)
        coef = np.where(block[:, None] == np.arange(len(step.sizes)), step.value_coef_[:, None], 0)
        columns.append(graph.add("MatMul", graph.take(x, range(n_cells, n_columns)), coef))
    return graph.cast(graph.cast(graph.join(columns), "float32"))


def _hinges(graph: Graph, step: HingeFeatures, x: str) -> str:
    above = graph.add("Sub", graph.take(x, step.columns_), step.knots_)
    return graph.join([x, graph.add("Max", above, ZERO)])


def _nystroem(graph: Graph, step: Nystroem, x: str) -> str:
    degree = 3 if step.degree is None else step.degree
    coef0 = 1 if step.coef0 is None else step.coef0
    kernel = Kernel(step.kernel, step.gamma, degree, coef0)
    values = _kernel_values(graph, kernel, step.components_, x)
    return graph.add("MatMul", values, step.normalization_.T)


# ---------------------------------------------------------------- columns of tables


class TableViews(NamedTuple):
    """The features of a table for different learners; see `rankwise.TableVectorizer.views`.

    Lists of tensors, which side by side are the columns; `is_wide` is of the sparse ones.
    """

    dense: list[str]
    sparse: list[str]
    is_wide: Array
    cells: list[str]


def used_columns(step: TableVectorizer) -> list[ColumnInfo]:
    """The columns that a graph takes, each one an input.

    Raises
    ------
    ValueError
        If there are no operators for the kind of one of them.
    """
    used = [column for column in step.facts_ if column.is_used]
    for column in used:
        if column.kind in ("text", "date"):
            raise ValueError(
                f"the column {column.name!r} is of the kind {column.kind}, for which ONNX has no "
                "operators. Train the model without it, or make numbers of it first."
            )
        if "" in column.categories and column.n_missing:
            raise ValueError(
                f"the column {column.name!r} has gaps beside empty texts, which are the same in "
                "ONNX."
            )
    return used


def _columns(graph: Graph, step: TableVectorizer, inputs: list[str]) -> str:
    """The features that `TableVectorizer` makes: those that are dense, then the wide ones."""
    views = _table(graph, step, inputs)
    wide = np.flatnonzero(views.is_wide)
    chosen = [graph.take(graph.join(views.sparse), wide)] if len(wide) else []
    return graph.join(views.dense + chosen)


def _table(graph: Graph, step: TableVectorizer, inputs: list[str]) -> TableViews:
    """The views of the columns, whose cells are the inputs."""
    numbers: list[str] = []
    filled: list[str] = []
    gaps: list[str] = []
    codes: list[str] = []
    narrow: list[str] = []
    blocks: list[str] = []
    wide = [np.zeros(0, dtype=bool)]
    for column, cells in zip(used_columns(step), inputs, strict=True):
        if column.kind in NUMERIC:
            x = _numbers(graph, column, cells)
            is_gap = graph.add("IsNaN", x)
            known = graph.add("Where", is_gap, [column.medians], x)
            shifted = graph.add("Sub", known, [column.means])
            numbers.append(x)
            filled.append(graph.add("Div", shifted, [column.scales]))
            if column.n_missing:
                gaps.append(graph.take(graph.cast(is_gap), [0]))
            continue
        places, size = _places(graph, column, cells), n_category_features(column)
        is_wide = is_wide_column(column)
        block = graph.cast(graph.add("Equal", places, np.arange(size)))
        if size <= MAX_CODES:
            codes.append(_known(graph, places))
        if not is_wide:
            narrow.append(block)
        if is_wide or size > 2:
            blocks.append(block)
            wide.append(np.full(size, is_wide))
    return TableViews(filled + gaps + narrow, blocks, np.concatenate(wide), numbers + codes)


def _places(graph: Graph, column: ColumnInfo, cells: str) -> str:
    """The place of each cell among the features of a category, −1 for none."""
    place = {value: k for k, value in enumerate(column.categories)}
    place.setdefault("", len(place) if column.n_missing else -1)
    other = n_category_features(column) - 1 if column.n_rare else -1
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
    return graph.add("Where", graph.add("Less", places, np.array(0)), NAN, graph.cast(places))


def _numbers(graph: Graph, column: ColumnInfo, cells: str) -> str:
    """A column as numbers, NaN for gaps."""
    if column.kind != "order":
        return cells
    return _known(graph, _places(graph, column._replace(n_missing=0, n_rare=0), cells))


_MAKERS: dict[type, Callable[[Graph, Any, Any], str]] = {
    **dict.fromkeys((StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler), _scaler),
    TableVectorizer: _columns,
    GroupScaler: _group_scaler,
    HingeFeatures: _hinges,
    Nystroem: _nystroem,
    TreeFeatures: _tree_features,
}
