"""Convert models to JSON and arrays, and back.

A value in JSON is a number, a string, a list, or a dictionary with one key that names its kind:
"array" (the number of an array in the file), "tuple", "dict", "is" (one of the classes of
`saved_classes`), and so on. Functions, objects of other classes and file names cannot be written,
so reading them needs no protection. What `from_json` checks is whether the values of a model
match the declarations of its class.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankwise.arrays import AnyArray
from rankwise.fitted_schema import ChecksFitted, check_values
from rankwise.formatting import Json
from rankwise.leaderboard import Leaderboard, TaskLeaderboard
from rankwise.metrics import Metric, get_metric
from rankwise.persistence.board_file import board_facts, restore_board
from rankwise.persistence.json_nodes import json_int, json_list, json_object, json_text
from rankwise.persistence.saved_classes import ESTIMATORS, RECORDS, STEPS, schema_of
from rankwise.persistence.score_board_file import restore_score_board, score_board_facts
from rankwise.rankers.base import RankerMixin

#: Arrays of a file that no value has used yet, by their number.
Arrays: TypeAlias = dict[int, AnyArray]

# Parameters of `fit` only. They are saved if they are plain values; any other value is replaced
# by the default.
FIT_PARAMETERS = {"cv", "random_state", "scoring"}

# Parameters that are never saved: from the folder of `memory`, `fit` reads pickles.
UNSAVED_PARAMETERS = {"memory", "n_jobs", "transform_input"}

COLLECTIONS = (list, range, tuple, dict)  # but not named tuples, which are records

MAX_STRINGS = 10**6  # as Python objects, which take more memory than in the file
MAX_INTEGER = 2**64
MAX_SPARSE_COLUMNS = 2**21  # products with a sparse matrix take memory for each column


def to_json(value: object, arrays: list[AnyArray], path: str) -> Json:
    """Convert a value to JSON.

    Parameters
    ----------
    value : object
        The value.
    arrays : list of ndarray
        Arrays of the value are appended, and named by their position.
    path : str
        Where the value is in the model, for messages.

    Raises
    ------
    ValueError
        If a model file cannot contain the value.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":  # a number or text of NumPy
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _float_to_json(value)
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, Metric):
        return {"metric": str(value)}
    if isinstance(value, COLLECTIONS) and type(value) in COLLECTIONS:  # named tuples are records
        return _collection_to_json(value, arrays, path)
    return _object_to_json(value, arrays, path)


def _float_to_json(number: float) -> Json:
    if math.isfinite(number):
        return number
    return {"float": str(number)}


def _collection_to_json(
    values: list[object] | range | tuple[object, ...] | dict[str, object],
    arrays: list[AnyArray],
    path: str,
) -> Json:
    if isinstance(values, dict):
        if not all(type(key) is str for key in values):
            raise ValueError(_explain_refusal(values, path))
        return {"dict": _dict_to_json(values, arrays, path)}
    if isinstance(values, tuple):
        return {"tuple": _list_to_json(values, arrays, path)}
    return _list_to_json(values, arrays, path)


def _object_to_json(value: object, arrays: list[AnyArray], path: str) -> Json:
    """Convert an array, a board, an estimator or a part of one."""
    class_name = type(value).__name__
    if isinstance(value, Leaderboard):
        return {"is": "Leaderboard", "facts": to_json(board_facts(value), arrays, path)}
    if isinstance(value, TaskLeaderboard):
        facts = to_json(score_board_facts(value), arrays, path)
        return {"is": "TaskLeaderboard", "facts": facts}
    is_record = RECORDS.get(class_name) is type(value)
    is_estimator = ESTIMATORS.get(class_name) is type(value)
    if is_record:
        return _record_to_json(value, arrays, f"{path} ({class_name})")
    if is_estimator:
        return _estimator_to_json(value, arrays, f"{path}.{class_name}".removeprefix("."))
    if sp.issparse(value):
        return _sparse_to_json(sp.csr_array(value), arrays, path)
    if hasattr(value, "__array__") and not isinstance(value, np.ma.MaskedArray):
        return _array_to_json(np.asarray(value), arrays, path)
    raise ValueError(_explain_refusal(value, path))


def _list_to_json(
    values: list[object] | tuple[object, ...] | range, arrays: list[AnyArray], path: str
) -> list[Json]:
    return [to_json(entry, arrays, f"{path}[{position}]") for position, entry in enumerate(values)]


def _dict_to_json(
    values: Mapping[str, object], arrays: list[AnyArray], path: str
) -> dict[str, Json]:
    return {key: to_json(value, arrays, f"{path}.{key}") for key, value in values.items()}


def _sparse_to_json(matrix: sp.csr_array, arrays: list[AnyArray], path: str) -> dict[str, Json]:
    return {
        "sparse": _list_to_json([matrix.data, matrix.indices, matrix.indptr], arrays, path),
        "shape": _list_to_json(matrix.shape, arrays, path),
    }


def _array_to_json(array: AnyArray, arrays: list[AnyArray], path: str) -> dict[str, Json]:
    if array.dtype == object:
        return _objects_to_json(array, arrays, path)
    little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not little_endian.flags.forc:  # neither rows nor columns are contiguous
        little_endian = little_endian.copy(order="K")
    return {"array": _append_array(little_endian, arrays)}


def _append_array(array: AnyArray, arrays: list[AnyArray]) -> int:
    """Append an array to the arrays of the file, and return its number."""
    arrays.append(array)
    return len(arrays) - 1


def _objects_to_json(array: AnyArray, arrays: list[AnyArray], path: str) -> dict[str, Json]:
    """Write strings as an array of NumPy's strings, other objects as a list."""
    if all(type(entry) is str for entry in array.flat):
        strings = array.astype(str)
        is_unchanged = (strings == array).all()  # NumPy drops zero characters at the end
        if is_unchanged and strings.size <= MAX_STRINGS:  # read back as Python's strings
            return {"words": _append_array(strings, arrays)}
        if is_unchanged:  # read back as NumPy's strings, which take less memory
            return {"array": _append_array(strings, arrays)}
    return {"objects": to_json(array.tolist(), arrays, path)}


def _record_to_json(record: object, arrays: list[AnyArray], path: str) -> dict[str, Json]:
    record_class = type(record)
    values = {name: getattr(record, name) for name in schema_of(record_class)}
    return {"is": record_class.__name__, "fields": _dict_to_json(values, arrays, path)}


def _estimator_to_json(model: BaseEstimator, arrays: list[AnyArray], path: str) -> dict[str, Json]:
    parameter_names = inspect.signature(type(model)).parameters
    schema = schema_of(type(model))
    parameters = {}
    fitted_attributes = {}
    for name, value in vars(model).items():
        if name in parameter_names:
            if _is_saved_parameter(name, value):
                parameters[name] = to_json(value, arrays, f"{path}.{name}")
        elif name not in schema:
            raise ValueError(f"{path} has an attribute {name!r} that its class does not declare")
        elif schema[name].is_saved:
            fitted_attributes[name] = to_json(value, arrays, f"{path}.{name}")
    return {"is": type(model).__name__, "parameters": parameters, "fitted": fitted_attributes}


def _is_saved_parameter(name: str, value: object) -> bool:
    if name in UNSAVED_PARAMETERS:
        return False
    if name not in FIT_PARAMETERS:
        return True
    # A parameter of `fit` is saved if it is a plain value.
    if isinstance(value, Metric):
        return not value.is_custom
    is_plain_value = isinstance(value, (str, int, np.integer, list, tuple, np.ndarray))
    return value is None or is_plain_value


def _explain_refusal(value: object, path: str) -> str:
    kind = type(value).__name__
    if callable(value):
        kind = "function"
    return (
        f"{path} is a {kind}, and a model file holds no code and no objects, but numbers, strings, "
        f"rankers, and Pipelines of {', '.join(STEPS)} and a ranker. Use a kernel and a loss by "
        "name, or train with kernel='precomputed'; keep any other model with skops or joblib"
    )


def from_json(node: Json, arrays: Arrays) -> object:
    """Convert JSON that `to_json` has written back to the value.

    Arrays are removed from `arrays`, so that each one is used once. ValueError, TypeError, KeyError
    and similar errors are raised if the JSON does not describe a valid model.
    """
    if isinstance(node, list):
        return _list_from_json(node, arrays)
    if type(node) is int and abs(node) >= MAX_INTEGER:
        raise ValueError("an integer has more than 64 bits")
    if not isinstance(node, dict):
        return node
    kind, content = next(iter(node.items()))  # the first key is the kind of the value
    if kind == "is":
        return _object_from_json(json_text(content), node, arrays)
    if kind == "sparse":
        return _sparse_from_json(node, arrays)
    if len(node) > 1 or kind not in _READERS:
        raise ValueError(f"a value has the unknown kind {kind!r:.40}")
    return _READERS[kind](content, arrays)


def _list_from_json(content: Json, arrays: Arrays) -> list[object]:
    return [from_json(entry, arrays) for entry in json_list(content)]


def _dict_from_json(content: Json, arrays: Arrays) -> dict[str, object]:
    return {key: from_json(value, arrays) for key, value in json_object(content).items()}


def _tuple_from_json(content: Json, arrays: Arrays) -> tuple[object, ...]:
    return tuple(_list_from_json(content, arrays))


def _array_from_json(position: Json, arrays: Arrays) -> AnyArray:
    if type(position) is not int or position not in arrays:
        raise ValueError(f"array {position!r:.40} is missing, or used twice")
    return arrays.pop(position)


def _strings_from_json(position: Json, arrays: Arrays) -> AnyArray:
    strings = _array_from_json(position, arrays)
    if strings.dtype.kind != "U" or strings.size > MAX_STRINGS:
        raise ValueError("an array of strings contains numbers, or too many strings")
    return strings.astype(object)


def _objects_from_json(content: Json, arrays: Arrays) -> AnyArray:
    """Read an array of plain objects, for example labels of groups of several types."""
    entries = _list_from_json(content, arrays)
    for entry in entries:
        if entry is not None and not isinstance(entry, (bool, int, float, str)):
            raise ValueError("an array of labels has an entry that is not a number or a string")
    labels = np.empty(len(entries), dtype=object)
    labels[:] = entries
    return labels


def _slice_from_json(content: Json, _: Arrays) -> slice:
    bounds: list[int | None] = []
    for bound in json_list(content):
        bounds.append(None if bound is None else json_int(bound))
    start, stop, step = bounds
    return slice(start, stop, step)


def _float_from_json(content: Json, _: Arrays) -> float:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[json_text(content)]


def _metric_from_json(content: Json, _: Arrays) -> Metric:
    return get_metric(json_text(content))


_READERS: dict[str, Callable[[Json, Arrays], object]] = {
    "array": _array_from_json,
    "words": _strings_from_json,
    "objects": _objects_from_json,
    "dict": _dict_from_json,
    "tuple": _tuple_from_json,
    "slice": _slice_from_json,
    "float": _float_from_json,
    "metric": _metric_from_json,
}


def _sparse_from_json(node: Mapping[str, Json], arrays: Arrays) -> sp.csr_array:
    """Read a sparse matrix. SciPy does not check its arrays, so they are all checked here."""
    array_nodes = [json_object(entry) for entry in json_list(node["sparse"])]
    data, column_numbers, row_starts = [
        _array_from_json(array_node["array"], arrays) for array_node in array_nodes
    ]
    n_rows, n_columns = [json_int(length) for length in json_list(node["shape"])]
    have_integers = column_numbers.dtype.kind == "i" and row_starts.dtype.kind == "i"
    if data.dtype.kind != "f" or not have_integers:
        raise ValueError("a sparse matrix has arrays of wrong types")
    if n_columns > MAX_SPARSE_COLUMNS:
        raise ValueError(
            f"a sparse matrix has {n_columns!r:.40} columns; the limit is {MAX_SPARSE_COLUMNS:,}"
        )
    row_ends = row_starts[1:]
    if (row_ends < row_starts[:-1]).any():  # check_format does not look if the last one is 0
        raise ValueError("a sparse matrix has rows that end before they begin")
    matrix = sp.csr_array((data, column_numbers, row_starts), shape=(n_rows, n_columns))
    matrix.check_format(full_check=True)
    return matrix


def _object_from_json(class_name: str, node: Mapping[str, Json], arrays: Arrays) -> object:
    if class_name == "Leaderboard":
        return restore_board(from_json(node["facts"], arrays))
    if class_name == "TaskLeaderboard":
        return restore_score_board(from_json(node["facts"], arrays))
    if class_name in RECORDS:
        return _record_from_json(RECORDS[class_name], node["fields"], arrays)
    if class_name in ESTIMATORS and set(node) == {"is", "parameters", "fitted"}:
        return _estimator_from_json(ESTIMATORS[class_name], node, arrays)
    raise ValueError(f"{class_name!r:.60} is not a class that model files may contain")


def _record_from_json(record_class: type, fields: Json, arrays: Arrays) -> object:
    schema = schema_of(record_class)
    values = {}
    for name, content in json_object(fields).items():
        value = from_json(content, arrays)
        if name in schema:
            value = schema[name].restore(value)  # the member of an enumeration from its string
        values[name] = value
    check_values(record_class.__name__, schema, values)
    record = record_class(**values)
    if isinstance(record, ChecksFitted):
        record._check_fitted()
    return record


def _estimator_from_json(
    model_class: type, node: Mapping[str, Json], arrays: Arrays
) -> BaseEstimator:
    parameters = _dict_from_json(node["parameters"], arrays)
    fitted_attributes = _dict_from_json(node["fitted"], arrays)
    saved_names = set(inspect.signature(model_class).parameters) - UNSAVED_PARAMETERS
    unknown_names = set(parameters) - saved_names
    if unknown_names:
        raise ValueError(f"{model_class.__name__} has no {min(unknown_names)!r:.60}")
    check_values(model_class.__name__, schema_of(model_class), fitted_attributes)
    if model_class is Pipeline:
        _check_pipeline_steps(parameters["steps"])
    model = model_class(**parameters)
    vars(model).update(fitted_attributes)
    if fitted_attributes and isinstance(model, ChecksFitted):
        model._check_fitted()
    return model


def _check_pipeline_steps(steps: object) -> None:
    """Raise ValueError unless the steps are transformers and, at the end, a ranker."""
    if not isinstance(steps, list):
        raise ValueError("the steps of a Pipeline are not a list")
    for position, (name, step) in enumerate(steps):
        is_passthrough = step is None or (isinstance(step, str) and step == "passthrough")
        is_saved_class = type(step) in ESTIMATORS.values()
        if not isinstance(name, str) or not (is_passthrough or is_saved_class):
            raise ValueError("the steps of a Pipeline are not pairs of a name and a step")
        is_last = position == len(steps) - 1
        if isinstance(step, RankerMixin) and not is_last:
            raise ValueError("a step of a Pipeline before its end is a ranker")
