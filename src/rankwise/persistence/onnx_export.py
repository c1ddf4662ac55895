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
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import describe_environment
from rankwise.estimators.pipelines import last_step
from rankwise.estimators.step_columns import is_idle
from rankwise.model_selection.group_routing import predict_items
from rankwise.options import check_option
from rankwise.persistence.linear_export import input_names
from rankwise.persistence.onnx_graph import Graph, Values, import_onnx
from rankwise.persistence.onnx_probe import N_ROWS, probe_items
from rankwise.persistence.onnx_rankers import add_ranker
from rankwise.persistence.onnx_steps import add_step, is_gap, text_columns

TOLERANCE = 1e-5
GROUPS = np.arange(N_ROWS) % 4  # of the items to compare on


def export_onnx(
    model: Any,
    path: PathLike,
    *,
    dtype: str = "float64",
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write a ranker with its Pipeline as an ONNX graph, whole or not at all.

    The graph gives the scores of `predict` as its output "scores". It takes one input "X" of shape
    (n_items, n_features). If the model begins with a ColumnTransformer or takes text, there is an
    input of shape (n_items, 1) for each column instead, under the name of the column: numbers,
    with NaN for gaps, or strings, with the empty string for gaps. If the model scales inside
    groups (`GroupScaler`), there is a further input "groups" with whole numbers, equal for the
    items of one group.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise with weights or a kernel by name, or a Pipeline that ends in
        one.
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
    import_onnx()
    first = _first_step(model)
    n_columns = getattr(first, "n_features_in_", 1)  # a vectorizer of text takes one
    names = input_names(model, feature_names, n_columns)
    columns = _Columns(first, names, dtype)
    graph = Graph()
    values = columns.add_inputs(graph)
    for _, step in model.steps[:-1] if isinstance(model, Pipeline) else []:
        values = add_step(graph, step, values)
    scores, shape = add_ranker(graph, last_step(model), values)
    graph.add_output("scores", scores, shape, dtype)
    content = graph.model("ranker", _facts(model, names), _version()).SerializeToString()
    _compare(model, columns, content, graph.has_groups)
    with replace_file(path) as stream:
        stream.write(content)


def _first_step(model: Any) -> Any:
    """What takes the columns as they come: a transformer, or the ranker itself."""
    while isinstance(model, Pipeline):
        model = next(one for _, one in model.steps if not is_idle(one))
    return model


def _facts(model: Any, names: list[str]) -> dict[str, str]:
    ranker = type(last_step(model)).__name__
    return {
        "about": f"Scores of items by {ranker}; larger is better, inside a group.",
        "ranker": ranker,
        "feature_names": json.dumps(names, ensure_ascii=False),
        "rankwise_version": _version(),
    }


def _version() -> str:
    return str(describe_environment()["versions"]["rankwise"])


class _Columns:
    """The columns that a model takes, as inputs of the graph."""

    def __init__(self, first: Any, names: list[str], dtype: str) -> None:
        self.names, self.dtype = names, dtype
        self.has_names = hasattr(first, "feature_names_in_")
        self.is_text = text_columns(first, len(names))
        self.is_table = isinstance(first, ColumnTransformer) or bool(self.is_text.any())

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
        columns = [items[:, [j]] for j in range(len(self.names))]
        parts = [
            np.array([["" if is_gap(cell) else cell] for [cell] in column], dtype=object)
            if is_text
            else column.astype(np.float64).astype(self.dtype)
            for column, is_text in zip(columns, self.is_text, strict=True)
        ]
        return dict(zip(self.names, parts, strict=True))

    def as_seen(self, items: NDArray[Any]) -> Any:
        """The items as the model takes them: with names if it was trained with names."""
        if not self.is_table:
            return items.astype(np.float64)
        if not self.has_names:
            return items
        cells = [items[:, j] for j in range(len(self.names))]
        columns = [
            column if is_text else column.astype(np.float64)
            for column, is_text in zip(cells, self.is_text, strict=True)
        ]
        return _frame(dict(zip(self.names, columns, strict=True)))

    def rounded(self, items: NDArray[Any]) -> NDArray[Any]:
        """The items with numbers that `dtype` can hold."""
        numbers = items[:, ~self.is_text].astype(np.float64).astype(self.dtype)
        near = items.copy()
        near[:, ~self.is_text] = numbers.astype(np.float64)
        return near


def _frame(columns: dict[str, NDArray[Any]]) -> Any:
    """A data frame that keeps the objects: to an encoder, None and NaN are two categories."""
    with suppress(ImportError):
        pandas = import_module("pandas")
        return pandas.DataFrame({k: pandas.Series(v, dtype=v.dtype) for k, v in columns.items()})
    with suppress(ImportError):
        return import_module("pyarrow").table(columns)
    raise ModuleNotFoundError(
        "a model of data frames is tried before it is written, and that needs pandas or pyarrow; "
        "install one of them."
    )


def _compare(model: Any, columns: _Columns, content: bytes, has_groups: bool) -> None:
    """Raise ValueError unless the graph scores as the model does; warn if float32 is too coarse."""
    items, exact = _scored_items(model, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = predict_items(model, columns.as_seen(columns.rounded(items)), GROUPS)
    try:
        found = _run(content, columns.feed(items) | ({"groups": GROUPS} if has_groups else {}))
    except Exception as error:  # either runtime raises what it likes
        reason = " ".join(str(error).split())
        raise ValueError(f"the ONNX graph of this model does not run: {reason:.300}") from error
    spread = float(np.std(exact)) or float(np.abs(exact).max()) or 1.0
    rounding = 4 * np.finfo(columns.dtype).eps * float(np.abs(exact).max())
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


def _scored_items(model: Any, columns: _Columns) -> tuple[NDArray[Any], Array]:
    """Items that the model takes, and their scores."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            items = probe_items(model, len(columns.names), unusual=True)
            return items, predict_items(model, columns.as_seen(items), GROUPS)
        except ValueError:  # it takes no gaps or no unknown categories
            items = probe_items(model, len(columns.names), unusual=False)
            return items, predict_items(model, columns.as_seen(items), GROUPS)


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
