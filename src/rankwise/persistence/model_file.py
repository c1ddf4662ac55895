"""Model files: a zip of one JSON document and NumPy arrays, without objects and compression."""

from __future__ import annotations

import json
import os
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import package_versions
from rankwise.errors import ModelFileError
from rankwise.leaderboard import Leaderboard
from rankwise.model_selection.scorer import group_metadata, predict_items
from rankwise.persistence.saved_classes import ESTIMATORS
from rankwise.persistence.serialize import MAX_SPARSE_COLUMNS, from_json, to_json
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.pipelines import final_estimator, transform_step

FORMAT = "rankwise model"
FORMAT_VERSION = 3  # raised by every change that older versions of rankwise could not read

DOCUMENT = "model.json"
MAX_DOCUMENT_BYTES = 2**22
MAX_DOCUMENT_VALUES = 500_000  # each takes some hundred bytes of memory
MAX_DIRECTORY_BYTES = 2**21  # enough for forty thousand arrays
MAX_EMPTY_LENGTH = 10**4  # of an axis of an array without entries
MAX_DENSE_FEATURES = 10**5  # of the items of the trial prediction; with more they are sparse


def save(model: Any, path: PathLike, *, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted ranker to one file, whole or not at all.

    Use it to keep a model or a board.

    The file holds numbers and words only. `load` gives back a model with the same parameters and
    fitted attributes and, on the same machine, the same predictions to the last bit. The same model
    gives the same bytes.

    Parameters
    ----------
    model : estimator
        A fitted ranker of rankwise, or a Pipeline of `TableVectorizer`, `GroupScaler`,
        `HingeFeatures`,
        scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, and such a ranker.
        Kernels must be given by name or precomputed. Or a `Leaderboard`: its comparisons, alpha and
        scales are kept, and `load` rates them again.
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
    generator, a `cv` that is a splitter or an iterator, a `scoring` that is a function, `memory`
    of a Pipeline and metadata requests.

    What would let a small file take much memory or time is bounded, and refused here, too: sparse
    items of more than 2,097,152 columns, and texts whose n-grams have more than 20 million
    characters.

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
    if not isinstance(model, Leaderboard):
        _check_kind(model)
        check_is_fitted(model)
    arrays: list[Any] = []
    versions = package_versions()
    document = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "rankwise": versions.pop("rankwise"),
        "written_with": versions,
        "notes": None if notes is None else dict(notes),
    }
    try:
        document["model"] = to_json(model, arrays, "")
        for array in arrays:
            _check_type(array.dtype, array.shape)
        _build(document, arrays)
        text = json.dumps(document, allow_nan=False).encode()
    except Exception as error:  # a model that was changed by hand may raise anything
        raise ValueError(f"the model cannot be saved: {str(error).rstrip('.')}.") from error
    if len(text) > MAX_DOCUMENT_BYTES or _has_too_many_values(text):
        raise ValueError(f"the notes and words of the model take {len(text):,} bytes, too many.")
    with replace_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo(DOCUMENT), text)  # of 1980: equal models, equal bytes
        for k, array in enumerate(arrays):
            is_large = array.nbytes >= 2**30
            with archive.open(zipfile.ZipInfo(f"{k}.npy"), "w", force_zip64=is_large) as entry:
                npy.write_array(entry, array, version=(1, 0), allow_pickle=False)


def load(path: PathLike) -> Any:
    """Read a model that `save` has written.

    A model file holds numbers and words only, so there is no code in it to run, and no name of a
    file to open. Rankwise's estimators and scikit-learn's scalers are built from it by their
    constructors, and nothing else is. Before that, the sizes of the arrays are compared with that
    of the file, and their kinds and shapes with what each model needs. Last, the model must score
    some items. So a file from a stranger loads and predicts numbers, or is refused; whether the
    numbers are any good, no check can say.

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
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise import RankRLS
    >>> from rankwise.persistence import load, save
    >>> path = Path(tempfile.mkdtemp()) / "model.rw"
    >>> save(RankRLS().fit([[1.0], [2.0], [3.0]], [10, 20, 30]), path)
    >>> load(path)
    RankRLS()
    """
    return load_with_notes(path)[0]


def load_with_notes(path: PathLike) -> tuple[Any, dict[str, Any] | None]:
    """Read the model and the notes of a file."""
    with _opened(path) as (archive, document):
        numbers = range(len(archive.namelist()) - 1)
        arrays = [_read_array(archive, f"{k}.npy") for k in numbers]
        return _build(document, arrays), document["notes"]


def read_header(path: PathLike) -> dict[str, Any]:
    """What a model file says about itself; its arrays are not read.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        "format", "version" (of the format), "rankwise" and "written_with" (versions that wrote
        it), "model" and "ranker" (names of the class and, of a Pipeline, of its last step),
        "n_features", "notes", "parameters" (of the ranker; arrays by their number in the file) and
        "columns" (kinds of the columns of a table by name; None if it takes no table).

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
    with _opened(path) as (_, document):
        model = first = ranker = document.pop("model")
        if model["is"] == "Leaderboard":
            return {**document, "model": "Leaderboard"}
        if model["is"] == "Pipeline":
            steps = [step["tuple"][1] for step in model["parameters"]["steps"]]
            first, ranker = steps[0], steps[-1]
        columns = None
        table = first if first["is"] == "TableVectorizer" else first["fitted"].get("table_")
        if table is not None:
            facts = [column["fields"] for column in table["fitted"]["facts_"]]
            columns = {c["name"]: c["kind"] for c in facts if c["kind"] != "dropped"}
        trained = ranker["fitted"].get("best_estimator_", ranker)
        return {
            **document,
            "model": model["is"],
            "ranker": ranker["is"],
            "n_features": trained["fitted"].get("n_features_in_"),
            "parameters": ranker["parameters"],
            "columns": columns,
        }


@contextmanager
def _opened(path: PathLike) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """Open the zip and read its document; errors name the file."""
    name = os.fspath(path)
    with open(path, "rb") as stream:
        try:
            archive = _read_zip(stream)
            yield archive, _read_document(archive)
        except MemoryError:
            raise ModelFileError(name, "there is not enough memory for this model.") from None
        except Exception as error:  # the file of a stranger may raise anything
            problem = (" ".join(str(error).split()) or type(error).__name__).rstrip(".")
            raise ModelFileError(name, f"this model cannot be read: {problem:.300}.") from error


def _read_zip(stream: IO[bytes]) -> zipfile.ZipFile:
    """Open the zip and check that its entries are uncompressed and not larger than the file."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - 42))
    end = stream.read().rjust(42)
    if not end[-22:].startswith(b"PK\x05\x06") or not end.endswith(b"\0\0"):
        raise ValueError("it is not a rankwise model, or its end is missing")
    n_bytes = int.from_bytes(end[-10:-6], "little")  # of the list of entries
    if n_bytes > MAX_DIRECTORY_BYTES or (end.startswith(b"PK\x06\x07") and size < 2**31):
        raise ValueError("the list of its entries is too long")
    archive = zipfile.ZipFile(stream)
    entries = archive.infolist()
    names = {entry.filename for entry in entries}
    if DOCUMENT not in names:
        raise ValueError(f"it is not a rankwise model, it has no {DOCUMENT}")
    if names != {DOCUMENT, *(f"{k}.npy" for k in range(len(entries) - 1))}:
        raise ValueError("it has entries that are no arrays of it")
    is_packed = any(entry.compress_type or entry.flag_bits & 1 for entry in entries)
    if is_packed or sum(max(entry.file_size, entry.compress_size) for entry in entries) > size:
        raise ValueError("its entries are packed, or larger than it")
    return archive


def _read_document(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Read the JSON document and check its version."""
    if archive.getinfo(DOCUMENT).file_size > MAX_DOCUMENT_BYTES:
        raise ValueError(f"{DOCUMENT} is too large")
    text = archive.read(DOCUMENT)
    if _has_too_many_values(text):
        raise ValueError(f"{DOCUMENT} has too many values")
    document: dict[str, Any] = json.loads(text)
    _check_version(document)
    if set(document) != {"format", "version", "rankwise", "written_with", "notes", "model"}:
        raise ValueError(f"it is not a rankwise model, its {DOCUMENT} has other entries")
    if not isinstance(document["notes"], (dict, type(None))):
        raise ValueError("its notes are not a dictionary")
    return document


def _check_version(document: dict[str, Any]) -> None:
    version = document["version"]
    if document["format"] != FORMAT or type(version) is not int or version < 1:
        raise ValueError(f"it is not a rankwise model, its {DOCUMENT} has another format")
    if version < FORMAT_VERSION:
        raise ValueError("it was written by rankwise 0.3; train again")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"it was written by rankwise {document.get('rankwise')!r:.40} in format {version}; "
            f"this version reads format {FORMAT_VERSION}: upgrade rankwise"
        )


def _has_too_many_values(text: bytes) -> bool:
    return sum(map(text.count, (b",", b"[", b"{"))) > MAX_DOCUMENT_VALUES


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    """Read an array and check that its size is that of its entry in the zip."""
    n_bytes = archive.getinfo(name).file_size
    with archive.open(name) as entry:
        if npy.read_magic(entry) != (1, 0):
            raise ValueError(f"{name} is not an array in NumPy's format 1.0")
        shape, by_columns, dtype = npy.read_array_header_1_0(entry)
        _check_type(dtype, shape)
        n_entries = int(np.prod(shape, dtype=object))
        if n_entries * dtype.itemsize != n_bytes - entry.tell():
            raise ValueError(f"{name} has shape {shape}, which is not the size of its data")
        array = np.frombuffer(bytearray(entry.read()), dtype)
    if dtype.kind == "U" and array.view(np.uint32).max(initial=0) > sys.maxunicode:
        raise ValueError(f"{name} has invalid Unicode")
    return array.reshape(shape, order="F" if by_columns else "C")


def _check_type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    is_plain = dtype.names is None and dtype.subdtype is None and dtype.kind in "biufUSMm"
    is_plain &= dtype.itemsize > 0 and dtype.newbyteorder("<") == dtype
    if not is_plain or (dtype.kind == "f" and dtype.itemsize > 8):
        raise ValueError(
            f"an array has the type {dtype!s:.40}; expected plain numbers or text, little-endian"
        )
    if any(size < 0 for size in shape) or (0 in shape and max(shape) > MAX_EMPTY_LENGTH):
        raise ValueError(f"an array has the shape {shape!s:.60}")


def _build(document: dict[str, Any], arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Build the model of a document, and check that it scores items."""
    n_bytes = sum(array.nbytes for array in arrays)
    unused = dict(enumerate(arrays))
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        joblib.parallel_config(backend="sequential"),
    ):
        warnings.simplefilter("ignore")
        model = from_json(document["model"], unused)
        if unused:
            raise ValueError("some arrays belong to no model")
        if isinstance(model, Leaderboard):
            return model
        _check_kind(model)
        check_is_fitted(model)
        _check_predictions(model, n_bytes)
    return model


def _check_predictions(model: Any, n_bytes: int) -> None:
    """Raise ValueError unless the model scores zeros and other items in finite numbers."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    steps = [step for step in steps if hasattr(step, "n_features_in_")]
    if getattr(steps[-1], "table_", None) is not None:  # it takes a table of words and numbers
        _check_finite(steps[-1].smoke_test())
        return
    n_features = steps[0].n_features_in_
    if isinstance(steps[0], TableVectorizer):  # its facts are all there is to it
        n_features = len(steps.pop(0).get_feature_names_out())
    if n_features > max(MAX_SPARSE_COLUMNS, n_bytes // 8):
        raise ValueError(f"a model has {n_features:,} features, and the file less of them")
    *transformers, ranker = steps
    items: Any = sp.csr_array((4, n_features))
    if n_features <= max(MAX_DENSE_FEATURES, n_bytes // 8):
        items = np.random.default_rng(0).uniform(size=(4, n_features))
        items[:2] = [[0.0], [1.0]]
        if _compares_texts(steps[0]):
            items = np.array([[""], ["a"], ["ab"], ["abc"]], dtype=object).repeat(n_features, 1)
    for step in transformers:
        items = transform_step(step, items, [0] * 4)
    columns = getattr(getattr(ranker, "best_estimator_", ranker), "columns_fit_", None)
    if columns is None:
        scores = predict_items(ranker, items, [0] * 4)
        score = predict_items(ranker, items[:1], [0])
    else:  # a table of scores: two of its columns are enough
        scores = ranker.predict(items, columns[:2])
        score = ranker.predict(items[:1], columns[:2])
    if scores.shape[0] != 4 or score.shape != (1, *scores.shape[1:]) or scores.dtype.kind != "f":
        raise ValueError(f"scores of 1 and 4 items have the shapes {score.shape}, {scores.shape}")
    _check_finite(scores)
    if hasattr(ranker, "predict_above"):
        groups = group_metadata(ranker, "predict", [0] * 4)
        _check_finite(ranker.predict_above(items, 0, 1, **groups))


def _check_finite(numbers: Any) -> None:
    if not np.isfinite(numbers).all():
        raise ValueError("scores or probabilities of the model are not finite")


def _compares_texts(ranker: Any) -> bool:
    """Whether the kernel of a ranker, or of one of its views, takes texts."""
    ranker = getattr(ranker, "estimator", ranker)
    views = getattr(ranker, "views", None)
    users = [ranker, *(views if isinstance(views, list) else [])]
    kernels = [getattr(user, name, None) for user in users for name in ("kernel", "row_kernel")]
    return any(isinstance(kernel, str) and kernel == "ngram" for kernel in kernels)


def _check_kind(model: Any) -> None:
    is_known = type(model) in ESTIMATORS.values() and isinstance(
        final_estimator(model), RankerMixin
    )
    if not is_known:
        name = model.__name__ if isinstance(model, type) else f"a {type(model).__name__}"
        raise ValueError(
            f"{name} cannot be saved as a model. Model files hold fitted rankers of rankwise, and "
            "Pipelines with such a ranker at their end: of a search of scikit-learn its "
            "best_estimator_, of a model of rankwise.distributed its to_local()."
        )
