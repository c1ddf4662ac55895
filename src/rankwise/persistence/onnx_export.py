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
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import package_versions, require
from rankwise.estimators.anatomy import is_idle, last_step, score_functions
from rankwise.estimators.auto_ranker import AutoRanker
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.boosted_trees import BoostedTrees
from rankwise.estimators.columns import Columns
from rankwise.inputs import check_option
from rankwise.model_selection.scoring import predict_items
from rankwise.persistence.linear_export import input_names
from rankwise.persistence.onnx_graph import Graph, Values, import_onnx
from rankwise.persistence.onnx_rankers import add_ranker
from rankwise.persistence.onnx_steps import is_gap, text_columns
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
    (n_items, n_features). If the model begins with `Columns` or a ColumnTransformer, there is an
    input of shape (n_items, 1) for each column instead, under the name of the column: numbers,
    with NaN for gaps, or strings, with the empty string for gaps. If the model scales inside
    groups (`GroupScaler`), there is a further input "groups" with whole numbers, equal for the
    items of one group.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise with the kernel linear, rbf or poly, `LabelRanker` (one column
        of scores for each label), `AutoRanker` with its trees, `CalibratedRanker` (its scores), or
        a Pipeline that ends in one. Steps before it: `Columns`, `GroupScaler`, `HingeFeatures`,
        scikit-learn's four scalers, Nystroem, SimpleImputer, MissingIndicator, OneHotEncoder,
        OrdinalEncoder, and ColumnTransformers and Pipelines of these.
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
        return _first_step(model.estimators_[0])
    return model


class _Table:
    """The columns that a model takes, as inputs of the graph and as items to try it on."""

    def __init__(self, model: Any, names: Sequence[str] | None, dtype: str) -> None:
        self.dtype, self.first = dtype, _first_step(model)
        if isinstance(self.first, Columns):
            names = [c.name for c in self.first.facts_ if c.kind != "left out"]
            self.names = input_names(model, names, len(names))
        else:
            self.names = input_names(model, names, self.first.n_features_in_)
        self.is_text = text_columns(self.first, len(self.names))
        is_table = isinstance(self.first, (ColumnTransformer, Columns))
        self.is_table = is_table or any(self.is_text)

    def add_inputs(self, graph: Graph) -> Values:
        if not self.is_table:
            return graph.add_input("X", self.dtype, len(self.names))
        out = Values([], [])
        for name, is_text in zip(self.names, self.is_text, strict=True):
            out += graph.add_input(name, "text" if is_text else self.dtype, 1)
        return out

    def feed(self, items: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The items as the runtime takes them."""
        if not self.is_table:
            return {"X": items.astype(np.float64).astype(self.dtype)}
        fed: dict[str, NDArray[Any]] = {}
        for j, (name, is_text) in enumerate(zip(self.names, self.is_text, strict=True)):
            column = items[:, [j]]
            if is_text:
                fed[name] = np.array([["" if is_gap(cell) else cell] for [cell] in column], object)
            else:
                fed[name] = column.astype(np.float64).astype(self.dtype)
        return fed

    def as_seen(self, items: NDArray[Any], dtype: str) -> Any:
        """The items as the model takes them, their numbers rounded to a type."""
        if not self.is_table:
            return items.astype(dtype).astype(np.float64)
        columns = {
            name: items[:, j] if is_text else items[:, j].astype(dtype).astype(np.float64)
            for j, (name, is_text) in enumerate(zip(self.names, self.is_text, strict=True))
        }
        if not hasattr(self.first, "feature_names_in_"):
            return np.column_stack([column.astype(object) for column in columns.values()])
        with suppress(ImportError):  # a Series keeps objects: None and NaN are two categories
            pandas = import_module("pandas")
            series = {k: pandas.Series(v, dtype=v.dtype) for k, v in columns.items()}
            return pandas.DataFrame(series)
        return require("pyarrow", "Export of a model of data frames").table(columns)


def _compare(model: Any, table: _Table, content: bytes, has_groups: bool) -> None:
    """Raise ValueError unless the graph scores as the model does; warn if float32 is too coarse."""
    rng = np.random.default_rng(0)
    items = _probe(table.first, len(table.names), rng)
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


def _probe(step: Any, n_columns: int, rng: np.random.Generator) -> NDArray[Any]:
    """Rows of any type that a step takes, with gaps and unknown categories where it takes them."""
    rows = rng.uniform(0.1, 2.0, (N_ROWS, n_columns)).astype(object)
    if isinstance(step, Pipeline):
        step = next((one for _, one in step.steps if not is_idle(one)), None)
    if isinstance(step, Columns):
        for k, column in enumerate(c for c in step.facts_ if c.kind != "left out"):
            if column.kind == "number":
                rows[:, k] = column.medians[0] + column.scales[0] * rng.normal(size=N_ROWS)
                rows[k % N_ROWS, k] = np.nan
            else:
                rows[:, k] = rng.choice([*column.categories, UNKNOWN], N_ROWS)
                rows[k % N_ROWS, k] = None
    elif isinstance(step, ColumnTransformer):
        for name, part, _ in step.transformers_:
            at = np.asarray(step._transformer_to_input_indices.get(name, []), dtype=np.intp)
            if len(at) and not isinstance(part, str):
                rows[:, at] = _probe(part, len(at), rng)
    elif hasattr(step, "categories_"):
        for k, kinds in enumerate(step.categories_):
            rows[:, k] = rng.choice(np.asarray(kinds, dtype=object), N_ROWS)
            if step.handle_unknown != "error":
                is_text = any(isinstance(kind, str) for kind in kinds)
                rows[k % N_ROWS, k] = UNKNOWN if is_text else -987654321
    elif isinstance(step, SimpleImputer):
        rows[:] = step.statistics_
        rows[np.arange(n_columns) % N_ROWS, np.arange(n_columns)] = step.missing_values
    elif hasattr(step, "inverse_transform"):  # a scaler
        rows[:] = step.inverse_transform(rows.astype(np.float64))
    elif isinstance(step, BoostedTrees):  # on both sides of where the trees cut
        for j in range(n_columns):
            cuts = step.threshold_[
                (step.feature_ == j) & (step.left_ != np.arange(len(step.left_)))
            ]
            if len(cuts):
                rows[:, j] = np.nextafter(
                    rng.choice(cuts, N_ROWS), rng.choice([-np.inf, np.inf], N_ROWS)
                )
    elif isinstance(step, RankerMixin):
        for one in score_functions(step).maps:
            if one.items is not None and one.columns is None and one.items.shape[0]:
                items = one.items[rng.choice(one.items.shape[0], N_ROWS)]
                rows[:] = items.toarray() if hasattr(items, "toarray") else items
    return rows


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
