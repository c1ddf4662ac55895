"""Save and load fitted models and leaderboards."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray
from rankwise.datasets.files import PathLike
from rankwise.environment import package_versions
from rankwise.formatting import Json, JsonObject
from rankwise.leaderboard import Leaderboard, TaskLeaderboard
from rankwise.persistence.json_nodes import json_list, json_object, json_text
from rankwise.persistence.model_archive import (
    FORMAT,
    FORMAT_VERSION,
    check_dtype_and_shape,
    open_archive,
    read_arrays,
    read_document,
    write_archive,
)
from rankwise.persistence.saved_classes import ESTIMATORS
from rankwise.persistence.serialize import from_json, to_json
from rankwise.persistence.trial_prediction import check_predictions
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.pipelines import final_estimator

COMPRESSED = (".gz", ".bz2", ".xz")  # suffixes

#: Names of the classes of leaderboards.
BOARDS = ("Leaderboard", "TaskLeaderboard")

#: JSON of an estimator: "is" (its class), "parameters" and "fitted".
EstimatorNode: TypeAlias = Mapping[str, Json]


def save(
    model: BaseEstimator | Leaderboard | TaskLeaderboard,
    path: PathLike,
    *,
    notes: Mapping[str, Json] | None = None,
) -> None:
    """Write a fitted ranker or a leaderboard to one file, completely or not at all.

    Use it to keep a model, or to move it to another machine.

    The file contains numbers and text only. `load` returns a model with the same parameters and
    fitted attributes and, on the same machine, the same predictions to the last bit. Equal models
    give equal bytes.

    Parameters
    ----------
    model : estimator, Leaderboard or TaskLeaderboard
        A fitted ranker of rankwise, or a Pipeline that ends in one, whose other steps are
        `TableVectorizer`, `GroupScaler`, `HingeFeatures`, or scikit-learn's StandardScaler,
        MinMaxScaler, MaxAbsScaler and RobustScaler. Kernels must be strings or precomputed. Of a
        leaderboard, the comparisons or scores and the arguments of `rate` or `rate_scores` are
        saved, and `load` computes the ratings again.
    path : str or path-like
        The file; the customary suffix is ``.rw``.
    notes : mapping, optional
        Anything that JSON can represent, for example the source of the data; `read_header` returns
        it.

    Raises
    ------
    ValueError
        If the model is not fitted (`sklearn.exceptions.NotFittedError`) or cannot be saved.
    OSError
        If the file cannot be written; an existing file is unchanged.

    Notes
    -----
    Not saved: the sums of `partial_fit` (after `load` it starts again), a `random_state` that is a
    generator, a `cv` that is a splitter or an iterator, a `scoring` that is a function, `memory`
    of a Pipeline, and metadata requests.

    Limits protect `load` against small files that take much memory or time, and hold for `save`,
    too: at most 2,097,152 columns of sparse items, and at most 20 million characters in the
    n-grams of texts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise import RankRLS
    >>> from rankwise.persistence import load, save
    >>> path = Path(tempfile.mkdtemp()) / "model.rw"
    >>> save(RankRLS().fit([[1.0], [2.0], [3.0]], [10, 20, 30]), path)
    >>> load(path).rank([[0.0], [5.0]])
    array([2, 1])
    """
    name = os.fspath(path)
    if name.lower().endswith(COMPRESSED):
        raise ValueError(f"{name}: model files are not compressed; choose a name such as model.rw.")
    if not isinstance(model, (Leaderboard, TaskLeaderboard)):
        _check_kind(model)
        check_is_fitted(model)
    arrays: list[AnyArray] = []
    document = _make_document_header(notes)
    try:
        document["model"] = to_json(model, arrays, "")
        for array in arrays:
            check_dtype_and_shape(array.dtype, array.shape)
        _build_model(document, arrays)  # raises an error if the file could not be loaded
        write_archive(path, document, arrays)
    except OSError:  # the file cannot be written
        raise
    except Exception as error:  # a model that was changed by hand may raise anything
        raise ValueError(f"the model cannot be saved: {str(error).rstrip('.')}.") from error


def _make_document_header(notes: Mapping[str, Json] | None) -> JsonObject:
    """The document of a file without its model."""
    versions = package_versions()
    rankwise_version = versions.pop("rankwise")
    if notes is not None:
        notes = dict(notes)
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "rankwise": rankwise_version,
        "written_with": versions,
        "notes": notes,
    }


def load(path: PathLike) -> Any:
    """Read a model that `save` has written.

    Use it to predict with a saved model. Loading a file from a stranger is safe: the file contains
    no code and no names of other files. Only estimators of rankwise and the transformers listed in
    `save` are built, by their constructors. Before that, the sizes of the arrays are compared with
    the size of the file, and their types and shapes with the declarations of the class. Finally,
    the model must predict finite scores for a few items. These checks do not cover the quality of
    the model.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator or Leaderboard
        The fitted model.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model, or was written by a newer version.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise import RankRLS
    >>> from rankwise.persistence import load, save
    >>> path = Path(tempfile.mkdtemp()) / "model.rw"
    >>> save(RankRLS().fit([[1.0], [2.0], [3.0]], [10, 20, 30]), path)
    >>> load(path)
    RankRLS()
    """
    model, _ = load_with_notes(path)
    return model


def load_with_notes(path: PathLike) -> tuple[Any, Mapping[str, Json] | None]:
    """Read the model and the notes of a file."""
    with open_archive(path) as archive:
        document = read_document(archive)
        model = _build_model(document, read_arrays(archive))
    notes = document["notes"]
    if notes is None:
        return model, None
    return model, json_object(notes)


def read_header(path: PathLike) -> JsonObject:
    """Read the description of a model from its file, without the arrays.

    Use it to see what a file contains before loading it.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        "format", "version" (of the format), "rankwise" and "written_with" (versions that wrote
        the file), "model" and "ranker" (names of the class and, of a Pipeline, of its last step),
        "n_features", "notes", "parameters" (of the ranker; arrays by their number in the file) and
        "columns" (kinds of the columns of a table by name; None if the model takes no table). Of a
        leaderboard, "model" is its class, and the entries from "ranker" on are missing, except
        "notes".

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model, or was written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise import RankRLS
    >>> from rankwise.persistence import read_header, save
    >>> path = Path(tempfile.mkdtemp()) / "model.rw"
    >>> model = RankRLS(alpha=0.5).fit([[1.0], [2.0], [3.0]], [10, 20, 30])
    >>> save(model, path, notes={"data": "three items"})
    >>> header = read_header(path)
    >>> header["model"], header["parameters"]["alpha"], header["notes"]
    ('RankRLS', 0.5, {'data': 'three items'})
    """
    with open_archive(path) as archive:
        document = read_document(archive)
        model_node = json_object(document.pop("model"))
        if model_node["is"] in BOARDS:
            return {**document, "model": model_node["is"]}
        return {**document, **_describe_model(model_node)}


def _describe_model(model: EstimatorNode) -> JsonObject:
    """Names, parameters and columns of a model, for `read_header`."""
    steps = _step_nodes(model)
    first_step = steps[0]
    ranker = steps[-1]
    ranker_attributes = json_object(ranker["fitted"])
    # A ranker that chose its parameters, such as RankRLSCV, has its features in best_estimator_.
    best_estimator = json_object(ranker_attributes.get("best_estimator_", ranker))
    fitted_attributes = json_object(best_estimator["fitted"])
    return {
        "model": model["is"],
        "ranker": ranker["is"],
        "n_features": fitted_attributes.get("n_features_in_"),
        "parameters": ranker["parameters"],
        "columns": _kinds_of_columns(first_step),
    }


def _step_nodes(model: EstimatorNode) -> Sequence[EstimatorNode]:
    """The steps of a Pipeline; a list of the model itself if it is not a Pipeline."""
    if model["is"] != "Pipeline":
        return [model]
    parameters = json_object(model["parameters"])
    steps = []
    for tuple_node in json_list(parameters["steps"]):
        _, step = json_list(json_object(tuple_node)["tuple"])  # name, estimator
        if isinstance(step, dict):  # not "passthrough"
            steps.append(step)
    return steps


def _kinds_of_columns(first_step: EstimatorNode) -> JsonObject | None:
    """Kinds of the columns of a table by name, without dropped columns; None if there is none."""
    vectorizer: Json = first_step
    if first_step["is"] != "TableVectorizer":  # an AutoRanker has its own vectorizer
        vectorizer = json_object(first_step["fitted"]).get("table_")
    if vectorizer is None:
        return None
    vectorizer_attributes = json_object(json_object(vectorizer)["fitted"])
    kind_of_column: JsonObject = {}
    for record in json_list(vectorizer_attributes["facts_"]):
        fields = json_object(json_object(record)["fields"])
        if fields["kind"] != "dropped":
            kind_of_column[json_text(fields["name"])] = fields["kind"]
    return kind_of_column


def _build_model(
    document: JsonObject, arrays: Sequence[AnyArray]
) -> BaseEstimator | Pipeline | Leaderboard:
    """Build the model of a document, and check that it predicts scores."""
    n_bytes = sum(array.nbytes for array in arrays)
    unused_arrays = dict(enumerate(arrays))
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        joblib.parallel_config(backend="sequential"),
    ):
        warnings.simplefilter("ignore")
        model = from_json(document["model"], unused_arrays)  # removes the arrays that it uses
        if unused_arrays:
            raise ValueError("some arrays belong to no model")
        if isinstance(model, (Leaderboard, TaskLeaderboard)):
            return model
        _check_kind(model)
        check_is_fitted(model)
        check_predictions(model, n_bytes)
    return model


def _check_kind(model: object) -> None:
    """Raise ValueError unless the model is a ranker, or a Pipeline that ends in one."""
    is_saved_class = type(model) in ESTIMATORS.values()
    if is_saved_class and isinstance(final_estimator(model), RankerMixin):
        return
    name = f"a {type(model).__name__}"
    if isinstance(model, type):  # a class was passed, not an object
        name = model.__name__
    raise ValueError(
        f"{name} cannot be saved as a model. Model files contain fitted rankers of rankwise, and "
        "Pipelines that end in such a ranker. Of a search of scikit-learn save its "
        "best_estimator_, of a model of rankwise.distributed its to_local()."
    )
