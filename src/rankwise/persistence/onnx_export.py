"""Models as ONNX graphs, for runtimes without Python."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import package_versions, require
from rankwise.estimators.anatomy import is_idle, last_step, score_functions
from rankwise.estimators.auto_ranker import AutoRanker
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.boosted_trees import BoostedTrees
from rankwise.estimators.column_kinds import ColumnFacts
from rankwise.estimators.columns import Columns
from rankwise.inputs import check_option
from rankwise.model_selection.scoring import predict_items
from rankwise.persistence.linear_export import input_names
from rankwise.persistence.onnx_graph import Graph, import_onnx
from rankwise.persistence.onnx_operators import TEXTS, add_ranker, used_columns
from rankwise.uncertainty import CalibratedRanker

TOLERANCE = 1e-5
N_ROWS = 32  # of the items to compare on
GROUPS = np.arange(N_ROWS) % 4
UNKNOWN = "\x01 not seen in training"
Items = dict[str, NDArray[Any]]  # the cells of each input


def export_onnx(
    model: Any,
    path: PathLike,
    *,
    dtype: str = "float64",
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write a ranker with its Pipeline as an ONNX graph, whole or not at all.

    Use it to run a model where there is no Python.

    The graph gives the scores of `predict` as its output "scores". It takes one input "X" of shape
    (n_items, n_features). If the model begins with `Columns`, or is an `AutoRanker` of a data
    frame, there is an input for each column instead, under the name of the column: numbers, with
    NaN for gaps (a vector in as many columns), or strings, with the empty string for gaps. If the
    model scales inside groups (`GroupScaler`), there is a further input "groups" with whole
    numbers, equal for the items of one group.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise with the kernel linear, rbf or poly, `LabelRanker` (one column
        of scores for each label), `AutoRanker` with its trees, `CalibratedRanker` (its scores), or
        a Pipeline that ends in one. Steps before it: `Columns` (all kinds but text and dates),
        `GroupScaler`, `HingeFeatures`, scikit-learn's four scalers and Nystroem.
    path : str or path-like
        The file; by custom it ends in ``.onnx``.
    dtype : {"float64", "float32"}
        Of the numbers that come in and go out. Inside, the graph computes in float64. Columns
        that are large and far from 0 lose digits in float32.
    feature_names : sequence of str, optional
        Names of the features for the notes in the file; by default those seen in `fit`.

    Raises
    ------
    ValueError
        If there is no graph for a part of the model, or its scores differ from those of `predict`
        by more than 1e-5 of their spread. Nothing is written then.

    See Also
    --------
    export_linear : Weights as JSON, for search engines.

    Notes
    -----
    The graph is checked by ``onnx.checker``. Then it scores some items, made up from what the model
    knows of its columns, and the scores are compared with those of `predict`: by onnxruntime if
    that is installed, else by the reference implementation of ONNX. The metadata of the file has
    the names of the features, the class of the ranker and the version of rankwise.

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
    check_option("dtype", dtype, ("float64", "float32"))
    check_is_fitted(model)
    while isinstance(model, CalibratedRanker):
        model = model.estimator_
    first = _first_step(model)
    columns = used_columns(first) if isinstance(first, Columns) else []
    if columns:
        feature_names = [column.name for column in columns]
    names = input_names(model, feature_names, len(columns) or first.n_features_in_)
    rng, graph = np.random.default_rng(0), Graph()
    items = {column.name: _cells(column, rng) for column in columns}
    items = items or {"X": _probe(first, len(names), rng)}
    inputs = []
    for name, cells in items.items():
        kind = "text" if cells.dtype == object else dtype
        inputs.append(graph.add_input(name, kind, cells.shape[1]))
        items[name] = cells if kind == "text" else cells.astype(dtype)
    scores, shape = add_ranker(graph, model, inputs if columns else inputs[0])
    version, ranker = package_versions()["rankwise"], type(last_step(model)).__name__
    facts = {
        "about": f"Scores of items by {ranker}; larger is better, inside a group.",
        "ranker": ranker,
        "feature_names": json.dumps(names, ensure_ascii=False),
        "rankwise_version": version,
    }
    content = graph.model(scores, shape, dtype, facts, version).SerializeToString()
    seen = _as_table(first, columns, items) if columns else items["X"].astype(np.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = np.asarray(predict_items(model, seen, GROUPS))
    _compare(content, items | ({"groups": GROUPS} if graph.takes_groups else {}), expected)
    with replace_file(path) as stream:
        stream.write(content)


def _first_step(model: Any) -> Any:
    """What the items come to first."""
    if isinstance(model, Pipeline):
        return _first_step(next(one for _, one in model.steps if not is_idle(one)))
    if isinstance(model, AutoRanker):
        return _first_step(model.estimators_[0]) if model.table_ is None else model.table_
    return model


def _compare(content: bytes, feed: Items, expected: Array) -> None:
    """Raise ValueError unless the graph scores as the model does."""
    try:
        scores = _run(content, feed)
    except Exception as error:  # either runtime raises what it likes
        reason = " ".join(str(error).split())
        raise ValueError(f"the ONNX graph of this model does not run: {reason:.300}") from error
    largest = float(np.abs(expected).max())
    spread = float(np.std(expected)) or largest or 1.0
    apart = float(np.abs(scores - expected).max())
    if not apart <= TOLERANCE * spread + 4 * np.finfo(scores.dtype).eps * largest:
        raise ValueError(
            f"the ONNX graph scores items differently from the model, by {apart / spread:.1g} of "
            "the spread of scores. If columns are large and far from 0, scale them first "
            "(StandardScaler); else this model cannot be exported."
        )


def _run(content: bytes, feed: Items) -> NDArray[Any]:
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        evaluator = import_onnx("onnx.reference").ReferenceEvaluator(content)
        return np.asarray(evaluator.run(None, feed)[0])
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0])


def _as_table(first: Columns, columns: list[ColumnFacts], items: Items) -> Any:
    """The items as the model takes them."""
    table: dict[str, Any] = {}
    for column in columns:
        cells: Any = items[column.name]
        if column.kind in TEXTS:
            cells = np.where(cells == "", None, cells)
        else:
            cells = cells.astype(np.float64)
        table[column.name] = list(cells) if column.kind == "vector" else cells[:, 0]
    if not hasattr(first, "feature_names_in_"):
        return np.column_stack(list(table.values()))
    with suppress(ImportError):
        return import_module("pandas").DataFrame(table)
    return require("pyarrow", "Export of a model of data frames").table(table)


def _cells(column: ColumnFacts, rng: np.random.Generator) -> NDArray[Any]:
    """Cells of a column, a gap and a value that was not seen in training among them."""
    cells: NDArray[Any]
    if column.kind in TEXTS:
        cells = rng.choice(np.array([*column.categories, UNKNOWN], dtype=object), (N_ROWS, 1))
    else:
        spread = np.where(np.array(column.scales) == 1, np.abs(column.medians) + 1, column.scales)
        cells = column.medians + spread * rng.normal(size=(N_ROWS, len(spread)))
    cells[rng.integers(N_ROWS)] = "" if column.kind in TEXTS else np.nan  # a gap
    return cells


def _probe(step: Any, n_columns: int, rng: np.random.Generator) -> Array:
    """Rows that a step takes, near what it learned."""
    rows = rng.uniform(0.1, 2.0, (N_ROWS, n_columns))
    if hasattr(step, "inverse_transform"):  # a scaler
        return np.asarray(step.inverse_transform(rows))
    if isinstance(step, RankerMixin) and not isinstance(step, BoostedTrees):
        for one in score_functions(step).maps:
            if one.items is not None and one.columns is None and one.items.shape[0]:
                items = one.items[rng.choice(one.items.shape[0], N_ROWS)]
                rows = np.asarray(items.toarray() if hasattr(items, "toarray") else items)
    return rows.astype(np.float64)
