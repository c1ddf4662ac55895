"""Saving and loading of fitted rankers."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from importlib.metadata import version
from typing import IO, Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import describe_environment
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.pipelines import last_step
from rankwise.persistence.container import TREE, Container, write_container
from rankwise.persistence.header import FORMAT, FORMAT_VERSION, checked_header
from rankwise.persistence.keeping import Keeper, readable, restore
from rankwise.persistence.parts import is_known
from rankwise.persistence.tree import check_tree, publish
from rankwise.persistence.trial import check_model, try_model


def save(model: Any, path: PathLike, *, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted ranker to one file, whole or not at all.

    The file holds JSON and arrays, no code. `load` gives back a model with the same parameters and
    fitted attributes and, on the same machine, the same predictions to the last bit.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise, or a Pipeline of scikit-learn's scalers and such a ranker.
        Kernels must be given by name or precomputed.
    path : str or path-like
        The file; by custom it ends in ``.rw``.
    notes : mapping, optional
        Anything that JSON can hold, such as where the data came from; `read_header` shows it.

    Raises
    ------
    ValueError
        If the model is not fitted (`sklearn.exceptions.NotFittedError`) or cannot be kept.
    OSError
        If the file cannot be written; what was there before is as it was.

    Notes
    -----
    Not kept: the sums of `partial_fit` (after `load` it begins anew), a `random_state` that is a
    generator, a `cv` that is a splitter or an iterator, `memory` of a Pipeline, callbacks and
    metadata requests. The header lists them as "forgotten".

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
    if name.lower().endswith((".gz", ".bz2", ".xz")):
        raise ValueError(f"{name}: model files are not compressed; choose a name such as model.rw.")
    skops = _skops()
    _check_kind(model)
    check_is_fitted(model)
    keeper = Keeper()
    kept = keeper.keep(model)
    versions = describe_environment()["versions"] | {"skops": version("skops")}
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "rankwise": versions.pop("rankwise"),
        "written_with": versions,
        **_describe(kept),
        "notes": None if notes is None else _checked_notes(notes),
        "forgotten": keeper.forgotten,
    }
    try:
        with zipfile.ZipFile(io.BytesIO(skops.dumps(kept))) as source:
            tree = json.loads(source.read(TREE))
            del tree["_skops_version"]
            content = write_container(header, tree, source, publish(tree))
        _load(name, content)
    except Exception as error:  # skops raises what it likes
        problem = str(error).removeprefix(f"{name}: ").rstrip(".")
        raise ValueError(f"the model cannot be saved: {problem}.") from error
    with replace_file(path) as stream:
        stream.write(content.getbuffer())


def load(path: PathLike) -> Any:
    """Read a model that `save` has written.

    No code of the file is run: only rankwise's estimators and the steps of scikit-learn that
    `save` knows are built, every name of a class is looked at before that, and the model must score
    items before it is returned. Arrays take twice their bytes in the file while it is read; names
    and numbers outside of arrays up to 16 times as much.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator
        Fitted.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model, or was written by a newer version.
    OSError
        If it cannot be opened.

    Examples
    --------
    See `save`.
    """
    return load_with_notes(path)[0]


def load_with_notes(path: PathLike) -> tuple[Any, dict[str, Any] | None]:
    """The model and the notes of one and the same file."""
    with open(path, "rb") as stream:
        return _load(os.fspath(path), stream)


def _load(path: str, stream: IO[bytes]) -> tuple[Any, dict[str, Any] | None]:
    skops = _skops()
    container = Container(path, stream)
    header = checked_header(container)
    tree = container.read_json(TREE)
    with container.reading("the file is damaged", plainly=True):
        trusted = check_tree(tree, container.shapes())
    with container.reading("the file is damaged"):
        model = restore(skops.load(stream, trusted=trusted))
    with container.reading("its model is odd", plainly=True):
        check_model(model)
    with container.reading("its model cannot score items"):
        check_is_fitted(model)
        try_model(model, container.size)
    if any(header[key] != value for key, value in _describe(model).items()):
        raise container.odd("its header is of another model")
    return model, header["notes"]


def _skops() -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "model files need skops; install it with: pip install skops"
        ) from error
    return skops.io


def _describe(model: Any) -> dict[str, Any]:
    """What the header says of a model."""
    ranker = last_step(model)
    parameters = ranker.get_params(deep=False)
    return {
        "model": type(model).__name__,
        "ranker": type(ranker).__name__,
        "n_features": int(getattr(model, "n_features_in_", ranker.n_features_in_)),
        "parameters": {key: readable(parameters[key]) for key in sorted(parameters)},
    }


def _check_kind(model: Any) -> None:
    if isinstance(model, type):
        raise ValueError(f"{model.__name__} is a class; save a fitted model of it.")
    advice = "Model files hold rankers of rankwise, and Pipelines with one of them at the end."
    if is_known(model):
        if isinstance(model, (RankerMixin, Pipeline)):
            return
        advice = "It belongs in a Pipeline with a ranker."
    elif hasattr(model, "to_local"):
        advice = "Save model.to_local()."
    elif hasattr(model, "best_estimator_"):
        advice = "Save its best_estimator_."
    raise ValueError(f"a {type(model).__name__} cannot be saved as a model. {advice}")


def _checked_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if not isinstance(notes, Mapping) or not all(isinstance(key, str) for key in notes):
            raise TypeError("not a mapping with strings as keys")
        read = json.loads(json.dumps(dict(notes), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"notes cannot be written as JSON ({error}); expected a dictionary of strings, finite "
            "numbers, lists and dictionaries."
        ) from error
    return dict(read)
