"""Export of models as ONNX graphs, for runtimes without Python."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.auto.auto_ranker import AutoRanker
from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import package_versions
from rankwise.persistence.linear_export import input_names
from rankwise.persistence.onnx_columns import add_column_inputs, used_columns
from rankwise.persistence.onnx_graph import OnnxGraph
from rankwise.persistence.onnx_rankers import add_ranker
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import final_estimator, is_passthrough
from rankwise.uncertainty import CalibratedRanker


def export_onnx(
    model: BaseEstimator, path: PathLike, *, feature_names: Sequence[str] | None = None
) -> None:
    """Write a ranker, with its Pipeline, to a file as an ONNX graph, completely or not at all.

    Use it to predict where Python is not available.

    The output "scores" of the graph contains the scores of `predict`. The graph has one input "X"
    of shape (n_items, n_features); all numbers are float64. If the model begins with
    `TableVectorizer`, or is an `AutoRanker` trained on a data frame, the graph has one input for
    each column instead, with the name of the column: numbers, with NaN for missing values (a
    vector in as many columns), or strings, with the empty string for missing values. If the model
    scales in groups (`GroupScaler`), the graph has an additional input "groups" of integers, equal
    for items of one group.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise with the kernel linear, rbf or poly, `LabelRanker` (one column
        of scores for each label), `AutoRanker` with its trees, `CalibratedRanker` (its scores), or
        a Pipeline that ends in such a ranker. Supported steps: `TableVectorizer` (all kinds of
        columns except text and dates), `GroupScaler`, `HingeFeatures`, scikit-learn's four scalers
        and Nystroem.
    path : str or path-like
        The file; the customary suffix is ``.onnx``.
    feature_names : sequence of str, optional
        Names of the features for the metadata of the file; by default the names seen in `fit`.

    Raises
    ------
    ValueError
        If a part of the model has no ONNX operators. Nothing is written then.

    See Also
    --------
    export_linear : Weights as JSON, for search engines.

    Notes
    -----
    ``onnx.checker`` checks the graph. The metadata of the file contains the names of the features,
    the class of the ranker and the version of rankwise.

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
    while isinstance(model, CalibratedRanker):  # the scores are computed by its ranker
        model = model.estimator_
    graph = OnnxGraph()
    first_step = _first_step(model)
    if isinstance(first_step, TableVectorizer):  # one input for each column
        columns = used_columns(first_step)
        column_names = [column.name for column in columns]
        names = input_names(model, column_names, len(columns))
        inputs = add_column_inputs(graph, columns)
    else:  # one input, a matrix of features
        names = input_names(model, feature_names, first_step.n_features_in_)
        inputs = [graph.add_input("X", "float64", len(names))]
    scores = add_ranker(graph, model, inputs)
    version = package_versions()["rankwise"]
    ranker_name = type(final_estimator(model)).__name__
    metadata = {
        "about": f"Scores of items by {ranker_name}; larger is better, within a group.",
        "ranker": ranker_name,
        "feature_names": json.dumps(names, ensure_ascii=False),
        "rankwise_version": version,
    }
    onnx_model = graph.make_model(scores.tensor, scores.shape, metadata, version)
    with replace_file(path) as stream:
        stream.write(onnx_model.SerializeToString())


def _first_step(model: BaseEstimator) -> BaseEstimator:
    """The estimator that takes the items: a step of a Pipeline, the table of an AutoRanker."""
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if not is_passthrough(step)]
        return _first_step(steps[0])
    if isinstance(model, AutoRanker):
        if model.table_ is not None:
            return model.table_
        return _first_step(model.estimators_[0])
    return model
