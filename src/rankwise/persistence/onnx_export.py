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
from rankwise.persistence.onnx_graph import Graph, Values, import_onnx
from rankwise.persistence.onnx_rankers import add_ranker
from rankwise.persistence.onnx_tables import TEXTS, used_columns
from rankwise.uncertainty import CalibratedRanker

TOLERANCE = 1e-5
N_ROWS = 32  # of the items to compare on
GROUPS = np.arange(N_ROWS) % 4
UNKNOWN = "\x01 not seen in training"


def export_onnx(
    model: Any,
    path: PathLike,
    *,
    dtype: str = "float64",
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write a ranker with its Pipeline as an ONNX graph, whole or not at all.

    The graph gives the scores of `predict` as its output "scores". It takes one input "X" of shape
    (n_items, n_features). If the model begins with `Columns`, or is an `AutoRanker` of a data
    frame, there is an input for each column instead, under the name of the column: numbers, with
    NaN for gaps (a date as days since 1970, with a fraction for the time of day; a vector in as
    many columns), or strings, with the empty string for gaps. If the model scales inside groups
    (`GroupScaler`), there is a further input "groups" with whole numbers, equal for the items of
    one group.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise with the kernel linear, rbf or poly, `LabelRanker` (one column
        of scores for each label), `AutoRanker` with its trees, `CalibratedRanker` (its scores), or
        a Pipeline that ends in one. Steps before it: `Columns` (all kinds but text),
        `GroupScaler`, `HingeFeatures`, scikit-learn's four scalers and Nystroem.
    path : str or path-like
        The file; by custom it ends in ``.onnx``.
    dtype : {"float64", "float32"}
        Of the numbers that come in and go out. Inside, the graph computes in float64. With
        "float32", a warning tells if the rounding of what comes in changes the scores.
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
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise ValueError(
            f"model is {model!r}; expected a fitted ranker of rankwise, or a Pipeline."
        )
    check_is_fitted(model)
    while isinstance(model, CalibratedRanker):
        model = model.estimator_
    import_onnx()
    table = _Table(model, feature_names, dtype)
    graph = Graph()
    values = table.add_inputs(graph)
    scores, shape = add_ranker(graph, model, values)
    ranker = last_step(model)
    graph.add_output("scores", scores, shape, dtype)
    version = package_versions()["rankwise"]
    facts = {
        "about": f"Scores of items by {type(ranker).__name__}; larger is better, inside a group.",
        "ranker": type(ranker).__name__,
        "feature_names": json.dumps(table.names, ensure_ascii=False),
        "rankwise_version": version,
    }
    content = graph.model("ranker", facts, version).SerializeToString()
    _compare(model, table, content, graph.has_groups)
    with replace_file(path) as stream:
        stream.write(content)


def _first_step(model: Any) -> Any:
    """What the items come to first."""
    if isinstance(model, Pipeline):
        return _first_step(next(one for _, one in model.steps if not is_idle(one)))
    if isinstance(model, AutoRanker):
        return _first_step(model.estimators_[0]) if model.table_ is None else model.table_
    return model


class _Table:
    """The columns that a model takes, as inputs of the graph and as items to try it on."""

    def __init__(self, model: Any, names: Sequence[str] | None, dtype: str) -> None:
        self.dtype, self.first = dtype, _first_step(model)
        self.columns = used_columns(self.first) if isinstance(self.first, Columns) else []
        if self.columns:
            names = [column.name for column in self.columns]
        self.names = input_names(model, names, len(self.columns) or self.first.n_features_in_)

    def add_inputs(self, graph: Graph) -> Values:
        if not self.columns:
            return graph.add_input("X", self.dtype, len(self.names))
        out = Values([], [])
        for column in self.columns:
            kind = "text" if column.kind in TEXTS else self.dtype
            width = len(column.medians) if column.kind == "vector" else 1
            out += graph.add_input(column.name, kind, width)
        return out

    def probe(self, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Made-up items: the cells of each column, or one matrix."""
        if not self.columns:
            return [_probe(self.first, len(self.names), rng)]
        return [_cells(column, rng) for column in self.columns]

    def feed(self, items: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The items as the runtime takes them."""
        if not self.columns:
            return {"X": items[0].astype(self.dtype)}
        fed: dict[str, NDArray[Any]] = {}
        for column, cells in zip(self.columns, items, strict=True):
            if column.kind in TEXTS:
                texts = ["" if cell is None else cell for cell in cells]
                fed[column.name] = np.array(texts, dtype=object)[:, None]
            else:
                fed[column.name] = cells.astype(self.dtype)
        return fed

    def as_seen(self, items: list[NDArray[Any]], dtype: str) -> Any:
        """The items as the model takes them, their numbers rounded to a type."""
        if not self.columns:
            return items[0].astype(dtype).astype(np.float64)
        columns: dict[str, Any] = {}
        for column, cells in zip(self.columns, items, strict=True):
            seen: Any = cells
            if column.kind not in TEXTS:
                seen = cells.astype(dtype).astype(np.float64)
                seen = list(seen) if column.kind == "vector" else seen[:, 0]
            if column.kind == "date":
                seconds = np.where(np.isnan(seen), 0, np.rint(86400 * np.nan_to_num(seen)))
                seen = np.where(np.isnan(seen), np.datetime64("NaT"), seconds.astype("M8[s]"))
            columns[column.name] = seen
        if not hasattr(self.first, "feature_names_in_"):
            return np.column_stack(list(columns.values()))
        with suppress(ImportError):
            return import_module("pandas").DataFrame(columns)
        return require("pyarrow", "Export of a model of data frames").table(columns)


def _compare(model: Any, table: _Table, content: bytes, has_groups: bool) -> None:
    """Raise ValueError unless the graph scores as the model does; warn if float32 is too coarse."""
    items = table.probe(np.random.default_rng(0))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        exact = predict_items(model, table.as_seen(items, "float64"), GROUPS)
        expected = predict_items(model, table.as_seen(items, table.dtype), GROUPS)
    try:
        found = _run(content, table.feed(items) | ({"groups": GROUPS} if has_groups else {}))
    except Exception as error:  # either runtime raises what it likes
        reason = " ".join(str(error).split())
        raise ValueError(f"the ONNX graph of this model does not run: {reason:.300}") from error
    spread = float(np.std(exact)) or float(np.abs(exact).max()) or 1.0
    rounding = 4 * np.finfo(table.dtype).eps * float(np.abs(exact).max())
    apart = float(np.abs(found - expected).max())
    if not apart <= TOLERANCE * spread + rounding:
        raise ValueError(
            f"the ONNX graph scores items differently from the model, by {apart / spread:.1g} of "
            "the spread of scores. If columns are large and far from 0, scale them first "
            "(StandardScaler); else this model cannot be exported."
        )
    apart = float(np.abs(found - exact).max())
    if not apart <= TOLERANCE * spread:  # in float32 only
        warnings.warn(
            f"32-bit numbers are too coarse for this model: scores change by {apart / spread:.1g} "
            "of their spread. Export it with dtype='float64'.",
            stacklevel=3,
        )


def _cells(column: ColumnFacts, rng: np.random.Generator) -> NDArray[Any]:
    """Cells of a column, a gap and a value that was not seen in training among them."""
    cells: NDArray[Any]
    if column.kind in TEXTS:
        cells = rng.choice(np.array([*column.categories, UNKNOWN], dtype=object), N_ROWS)
    elif column.kind == "date":
        middle = dict(zip(column.categories, column.medians, strict=True)).get("days", 15000.0)
        cells = middle + rng.integers(-4000, 4000, (N_ROWS, 1))
        if "hour" in column.categories:
            cells = cells + rng.integers(0, 24, (N_ROWS, 1)) / 24
    else:
        spread = np.where(np.array(column.scales) == 1, np.abs(column.medians) + 1, column.scales)
        cells = column.medians + spread * rng.normal(size=(N_ROWS, len(spread)))
    cells[rng.integers(N_ROWS)] = None if column.kind in TEXTS else np.nan
    return cells


def _probe(step: Any, n_columns: int, rng: np.random.Generator) -> Array:
    """Rows that a step takes, near what it learned."""
    rows = rng.uniform(0.1, 2.0, (N_ROWS, n_columns))
    if hasattr(step, "inverse_transform"):  # a scaler
        return np.asarray(step.inverse_transform(rows))
    if isinstance(step, BoostedTrees):  # on both sides of where the trees cut, and gaps
        for j in range(n_columns):
            is_cut = (step.feature_ == j) & (step.left_ != np.arange(len(step.left_)))
            if is_cut.any():
                cuts = rng.choice(step.threshold_[is_cut], N_ROWS)
                rows[:, j] = np.nextafter(cuts, rng.choice([-np.inf, np.inf], N_ROWS))
            rows[rng.integers(N_ROWS), j] = np.nan
    elif isinstance(step, RankerMixin):
        for one in score_functions(step).maps:
            if one.items is not None and one.columns is None and one.items.shape[0]:
                items = one.items[rng.choice(one.items.shape[0], N_ROWS)]
                rows = np.asarray(items.toarray() if hasattr(items, "toarray") else items)
    return rows.astype(np.float64)


def _run(content: bytes, feed: dict[str, NDArray[Any]]) -> Array:
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        evaluator = import_onnx("onnx.reference").ReferenceEvaluator(content)
        return np.asarray(evaluator.run(None, feed)[0], dtype=np.float64)
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0], dtype=np.float64)
