"""Models as facts: plain values and arrays, from which classes of a short list are built.

A fact is a number, a word, a list, a dictionary, an array of numbers or of text, or a model of the
list below with its parameters and what it learned. There is no way to write a function, an object
of another class or the name of a file, so `restore` needs no guards against them. What it checks
is whether the facts of a model fit together.
"""

from __future__ import annotations

import enum
import inspect
import math
import operator
import re
import types
import typing
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from rankwise.auto.boosted_trees import MAX_LEAVES, N_CODES
from rankwise.datasets.parse_numbers import is_format
from rankwise.kernels.feature_maps import FeatureMap
from rankwise.leaderboard import Leaderboard
from rankwise.metrics import Metric, get_metric
from rankwise.persistence.board_file import board_facts, board_from
from rankwise.persistence.saved_classes import ESTIMATORS, RECORDS, STEPS
from rankwise.preprocessing.cells import DATE_PARTS
from rankwise.preprocessing.column_types import ColumnInfo
from rankwise.rankers.base import RankerMixin

Array = np.ndarray[Any, Any]

# Kinds and shapes of the arrays that scores are computed from. In one model a letter is one number,
# and p is the number of features. Other facts are for people to read: numbers, words, arrays of one
# dimension, and lists and dictionaries of any arrays.
SHAPES = {
    "float p": "mean_ var_ scale_ min_ center_ max_abs_ data_min_ data_max_ data_range_",
    "float p|op": "coef_",
    "float n|no": "dual_coef_",
    "float np": "components_",
    "item np": "X_fit_",
    "float nn": "normalization_",
    "float o": "intercept_",
    "float m": "weights_",
    "float ih": "held_out_scores_",
    "float k": "knots_",
    "float ku": "root_",
    "float g": "gaps_",
    "float sn": "coef_path_",
    "float t": "threshold_ value_",
    "float c": "column_coef_",
    "float e": "value_coef_",
    "float r": "row_coef_",
    "float rc": "ConditionalRankRLS.coef_",
    "item rp": "rows_fit_",
    "any y|yx": "columns_fit_",
    "int n": "basis_indices_ component_indices_",
    "int s|sv": "choice_path_",
    "int k": "columns_",
    "int t": "left_ right_ feature_ gap_left_ set_",
    "int ac": "sets_",
    "int q": "roots_",
    "text p": "feature_names_in_",
}

ARRAYS = {name: declared for declared, names in SHAPES.items() for name in names.split()}

KINDS = {"float": "f", "int": "i", "text": "OU", "item": "fO", "any": "fiuOU"}

# The items that a kernel compares, and the parameter that names it: only "ngram" takes texts.
COMPARED = {"X_fit_": "kernel", "rows_fit_": "row_kernel", "columns_fit_": "column_kernel"}

# Attributes that only `fit` and `partial_fit` use.
FORGOTTEN = {"_sums", "_features", "_metadata_request", "_nuisance_names"}

# Parameters that only `fit` reads: an object of a class of its own becomes the default.
DEFAULTED = {"cv", "random_state", "scoring"}

# Parameters that always become the default: from the folder of `memory`, `fit` reads pickles.
NEVER_KEPT = {"memory", "n_jobs", "transform_input"}

PRIVATE = {"_functions", "_n_features_out", "_sklearn_output_config"}

MOST_WORDS = 10**6  # that are objects, which take more memory than in the file

_LEARNED = re.compile(r"[A-Za-z]\w*_")

_LARGEST = 2**64

MOST_PIECES = 2 * 10**7  # characters of n-grams, which a prediction keeps

LONGEST = 2**21  # columns of a sparse matrix, for each of which products with it take memory

LONGEST_FORM = 40  # of the way in which dates are written


def state(value: Any, arrays: list[Array], where: str) -> Any:
    """A value as JSON; its arrays are appended to `arrays` and named by their number.

    Raises
    ------
    ValueError
        If it is none of the things that a model file can hold; `where` says what it is.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) in (list, range):
        return [state(entry, arrays, f"{where}[{k}]") for k, entry in enumerate(value)]
    if type(value) is tuple:
        return {"tuple": state(list(value), arrays, where)}
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {k: state(entry, arrays, f"{where}.{k}") for k, entry in value.items()}}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, Metric):
        return {"metric": str(value)}
    if sp.issparse(value):
        rows = sp.csr_array(value)
        entries = state([rows.data, rows.indices, rows.indptr], arrays, where)
        return {"sparse": entries, "shape": state(list(rows.shape), arrays, where)}
    if isinstance(value, Leaderboard):
        return {"is": "Leaderboard", "facts": state(board_facts(value), arrays, where)}
    name = type(value).__name__
    if RECORDS.get(name) is type(value):
        fields = {key: getattr(value, key) for key in typing.get_type_hints(type(value))}
        return {"is": name, "fields": state(fields, arrays, f"{where} ({name})")["dict"]}
    if ESTIMATORS.get(name) is type(value):
        return _state_estimator(value, arrays, f"{where}.{name}".removeprefix("."))
    if hasattr(value, "__array__") and not isinstance(value, np.ma.MaskedArray):
        return _state_array(np.asarray(value), arrays, where)
    raise ValueError(_why_not(value, where))


def _state_array(array: Array, arrays: list[Any], where: str) -> Any:
    if array.dtype == object:
        words = array.astype(str) if all(type(entry) is str for entry in array.flat) else None
        if words is None or not (words == array).all():  # a word that ends in a zero character
            return {"objects": state(array.tolist(), arrays, where)}
        arrays.append(words)
        return {"words" if words.size <= MOST_WORDS else "array": len(arrays) - 1}
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    arrays.append(little if little.flags.forc else little.copy(order="K"))
    return {"array": len(arrays) - 1}


def _state_estimator(model: Any, arrays: list[Any], where: str) -> Any:
    names = inspect.signature(type(model)).parameters
    parameters, fitted = {}, {}
    for key, value in vars(model).items():
        if key in FORGOTTEN | NEVER_KEPT or (key in DEFAULTED and not _is_plain(value)):
            continue
        if key in names:
            parameters[key] = state(value, arrays, f"{where}.{key}")
        elif key in PRIVATE or _LEARNED.fullmatch(key):
            fitted[key] = state(value, arrays, f"{where}.{key}")
        else:
            raise ValueError(f"{where} has an attribute {key!r} that model files do not know")
    return {"is": type(model).__name__, "parameters": parameters, "fitted": fitted}


def _is_plain(value: Any) -> bool:
    if isinstance(value, Metric):
        return not value.is_custom
    return value is None or isinstance(value, (str, int, np.integer, list, tuple, np.ndarray))


def _why_not(value: Any, where: str) -> str:
    kind = "function" if callable(value) else type(value).__name__
    return (
        f"{where} is a {kind}, and a model file holds no code and no objects, but numbers, words, "
        f"rankers, and Pipelines of {', '.join(STEPS)} and a ranker. Use a kernel by name, or "
        "train with kernel='precomputed'; keep any other Pipeline with skops or joblib"
    )


def restore(node: Any, arrays: dict[int, Array]) -> Any:
    """The value that `state` wrote; arrays are taken out of `arrays`, so that each is used once.

    Raises ValueError, TypeError, KeyError or the like if facts do not fit.
    """
    if isinstance(node, list):
        return [restore(entry, arrays) for entry in node]
    if type(node) is int and abs(node) >= _LARGEST:
        raise ValueError("a whole number has more than 64 bits")
    if not isinstance(node, dict):
        return node
    kind, content = next(iter(node.items()))
    if kind == "is" and content == "Leaderboard":
        return board_from(restore(node["facts"], arrays))
    if kind == "is":
        build = _restore_record if content in RECORDS else _restore_estimator
        return build(node, arrays)
    if kind == "sparse":
        return _restore_sparse(node, arrays)
    if len(node) > 1:
        raise ValueError(f"there is an unknown kind of fact, {kind!r:.40}")
    if kind == "array":
        return _take(content, arrays)
    if kind == "words":
        return _words(_take(content, arrays))
    if kind == "dict":
        return {key: restore(entry, arrays) for key, entry in content.items()}
    if kind == "tuple":
        return tuple(restore(entry, arrays) for entry in content)
    if kind == "objects":
        return _labels(restore(list(content), arrays))
    if kind == "slice":
        return slice(*(None if end is None else operator.index(end) for end in content))
    if kind == "float":
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
    if kind == "metric":
        return get_metric(content)
    raise ValueError(f"there is an unknown kind of fact, {kind!r:.40}")


def _take(number: Any, arrays: dict[int, Array]) -> Array:
    if type(number) is not int or number not in arrays:
        raise ValueError(f"array {number!r:.40} is missing, or used twice")
    return arrays.pop(number)


def _words(array: Array) -> Array:
    if array.dtype.kind != "U" or array.size > MOST_WORDS:
        raise ValueError("an array of words has numbers, or too many words")
    return array.astype(object)


def _labels(entries: list[Any]) -> Array:
    """An array of objects that are plain: labels of groups of several types."""
    if not all(entry is None or isinstance(entry, (bool, int, float, str)) for entry in entries):
        raise ValueError("an array of labels has something else")
    out = np.empty(len(entries), dtype=object)
    out[:] = entries
    return out


def _restore_sparse(node: Any, arrays: dict[int, Array]) -> Any:
    """A sparse matrix; SciPy computes with its numbers without a look, so all are checked."""
    entries = restore(list(node["sparse"]), arrays)
    _, n_columns = shape = tuple(map(int, node["shape"]))
    if [array.dtype.kind for array in entries] != ["f", "i", "i"] or n_columns > LONGEST:
        raise ValueError(
            f"a sparse matrix has {n_columns!r:.40} columns, of which files hold {LONGEST:,}, or "
            "arrays of other kinds"
        )
    starts = entries[2]
    if (starts[1:] < starts[:-1]).any():  # SciPy does not look if the last one is 0
        raise ValueError("a sparse matrix has rows that end before they begin")
    matrix = sp.csr_array(tuple(entries), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def _restore_record(node: Any, arrays: dict[int, Array]) -> Any:
    record = RECORDS[node["is"]]
    fields = {key: restore(entry, arrays) for key, entry in node["fields"].items()}
    hints = typing.get_type_hints(record)
    for key, hint in hints.items():
        if key in fields and isinstance(hint, enum.EnumType):
            fields[key] = hint(fields[key])
    for key, value in fields.items():
        if key not in hints or not _is_of(value, hints[key]):
            raise ValueError(f"{key!r:.40} of {record.__name__} is unknown, or of the wrong type")
    if record is FeatureMap:
        _check_compared(fields.get("items"), fields["kernel"].function, fields["kernel"].params)
    return record(**fields)


def _check_compared(items: Any, kernel: Any, params: Any) -> None:
    """Texts go with the kernel of texts, if they are not too long; numbers with the others."""
    if getattr(items, "ndim", 0) != 2:
        return
    if (items.dtype == object) != (kernel == "ngram"):
        raise ValueError(f"the kernel {kernel!r:.40} does not compare such items")
    if kernel == "ngram":
        shortest, longest = (params or {}).get("ngram_range", (1, 3))
        n_a_place = (longest - shortest + 1) * (longest + shortest) // 2
        if sum(map(len, items.flat)) * n_a_place > MOST_PIECES:
            raise ValueError(f"the n-grams of the texts have more than {MOST_PIECES:,} characters")


def _restore_estimator(node: Any, arrays: dict[int, Array]) -> Any:
    known = ESTIMATORS.get(node["is"])
    if known is None or set(node) != {"is", "parameters", "fitted"}:
        raise ValueError(f"{node['is']!r:.60} is no model that files may hold")
    parameters = {key: restore(entry, arrays) for key, entry in node["parameters"].items()}
    unknown = set(parameters) - (set(inspect.signature(known).parameters) - NEVER_KEPT)
    fitted = {key: restore(entry, arrays) for key, entry in node["fitted"].items()}
    unknown |= {key for key in fitted if not _may_learn(known, key)}
    if unknown:
        raise ValueError(f"{known.__name__} has no {min(unknown)!r:.60}")
    _check_fitted(known.__name__, fitted)
    for key in COMPARED.keys() & fitted.keys():
        kernel = COMPARED[key]
        _check_compared(fitted[key], parameters.get(kernel), parameters.get(f"{kernel}_params"))
    if known is Pipeline:
        _check_steps(parameters["steps"])
    model = known(**parameters)
    vars(model).update(fitted)
    return model


def _is_of(value: Any, hint: Any) -> bool:
    """Whether the value of a field is of its declared type; Any stands for items, or none."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of(value, one) for one in inner)
    if hint is Any:
        is_matrix = isinstance(value, np.ndarray) and value.ndim == 2
        is_known = is_matrix and (value.dtype.kind == "f" or _is_text(value))
        return value is None or is_known or sp.issparse(value)
    if origin is np.ndarray:
        kind = np.dtype(typing.get_args(inner[1])[0]).kind
        is_array = isinstance(value, np.ndarray) and value.dtype.kind == kind and value.ndim <= 2
        return is_array and bool(np.isfinite(value).all())
    if origin is tuple:
        return type(value) is tuple and all(type(entry) is inner[0] for entry in value)
    if origin is typing.Literal:
        return value in inner
    if origin is dict:
        return type(value) is dict  # the parameters of a kernel, which checks them
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)
    return isinstance(hint, type) and type(value) is hint


def _is_text(array: Array) -> bool:
    return array.dtype == object and all(isinstance(word, str) for word in array.flat)


def _may_learn(known: type, key: str) -> bool:
    if key in PRIVATE:
        return True
    usual = inspect.getattr_static(known, key, None)
    is_free = usual is None or isinstance(usual, (bool, int, float, str, tuple))
    return _LEARNED.fullmatch(key) is not None and "__" not in key and is_free


def _check_fitted(name: str, fitted: dict[str, Any]) -> None:
    """Whether the arrays of a model have the kinds and shapes that it needs."""
    n_features = fitted.get("n_features_in_", 0)
    if type(n_features) is not int or n_features < 0:
        raise ValueError(f"n_features_in_ of {name} is {n_features!r:.40}")
    sizes = {"p": n_features}
    for key, value in fitted.items():
        declared = ARRAYS.get(f"{name}.{key}") or ARRAYS.get(key)
        if declared is None:
            if getattr(value, "ndim", 1) > 1:
                raise ValueError(f"{name} has an array {key!r:.60} that model files do not know")
        elif isinstance(value, list):  # one for each view
            for entry in value:
                _check_array(f"{key} of {name}", entry, declared, {"p": n_features})
        else:
            _check_array(f"{key} of {name}", value, declared, sizes)
    if fitted.get("_n_features_out", sizes.get("n")) != sizes.get("n"):
        raise ValueError(f"{name} does not make as many features as it says")
    if name == "BoostedTrees" and fitted:
        _check_trees(fitted)
    if name == "TableVectorizer" and fitted:
        _check_columns(fitted["facts_"])


def _check_array(name: str, array: Any, declared: str, sizes: dict[str, int]) -> None:
    if array is None or (isinstance(array, (int, float)) and math.isfinite(array)):
        return
    kind, shapes = declared.split()
    is_array = isinstance(array, np.ndarray) or (kind == "item" and sp.issparse(array))
    if not is_array or array.dtype.kind not in KINDS[kind]:
        raise ValueError(f"{name} is not an array of the kind {kind}")
    letters = next((shape for shape in shapes.split("|") if len(shape) == array.ndim), None)
    if letters is None:
        raise ValueError(f"{name} has {array.ndim} dimensions")
    for letter, size in zip(letters, array.shape, strict=True):
        if sizes.setdefault(letter, size) != size:
            raise ValueError(f"{name} has shape {array.shape}, which does not fit the model")
    values = array.data if sp.issparse(array) else array
    if array.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{name} has numbers that are not finite")
    if kind == "int" and (array < 0).any():
        raise ValueError(f"{name} has a negative number")
    if array.dtype == object and not _is_text(array):
        raise ValueError(f"{name} has a name that is no word")


def _check_trees(fitted: dict[str, Any]) -> None:
    """Whether each node leads on to later ones of its small tree, down to a leaf."""
    left, right, roots = fitted["left_"], fitted["right_"], fitted["roots_"]
    nodes, sizes = np.arange(len(left)), np.diff(roots, append=len(left))
    if roots[0] != 0 or sizes.min() < 1 or sizes.max() >= 2 * MAX_LEAVES:
        raise ValueError("the trees have other roots than trees have")
    end = np.repeat(roots + sizes, sizes)
    for side in (left, right):
        if ((side < nodes) | (side >= end)).any():
            raise ValueError("the trees have a loop, or a branch that leads nowhere")
    if ((left == nodes) != (right == nodes)).any():
        raise ValueError("the trees have a node that is half a leaf")
    n_sets, n_codes = fitted["sets_"].shape
    if (fitted["set_"] >= n_sets).any() or n_codes != N_CODES:
        raise ValueError("the trees ask for sets of codes that there are not")
    if (fitted["feature_"] >= fitted["n_features_in_"]).any():
        raise ValueError("the trees ask for features that there are not")


def _check_columns(facts: Any) -> None:
    """Whether all columns have facts that fit together, and have each category once."""
    for column in facts:
        if type(column) is not ColumnInfo or len({*column.categories}) < len(column.categories):
            raise ValueError("the columns of a table are not described by their facts")
        numbers = [*column.medians, *column.means, *column.scales, *column.weights]
        sizes = {"number": 1, "order": 1, "date": len(column.categories), "text": 0, "category": 0}
        n_numbers = sizes.get(column.kind, len(column.medians))
        is_right = len(column.medians) == len(column.means) == len(column.scales) == n_numbers
        is_right &= all(map(math.isfinite, numbers)) and all(size > 0 for size in column.scales)
        is_right &= len(column.weights) == len(column.categories) * (column.kind == "text")
        is_right &= column.kind != "date" or {*column.categories} <= {*DATE_PARTS}
        is_right &= len(column.form) <= LONGEST_FORM
        is_right &= column.kind != "number" or is_format(column.form)
        if not is_right or min(column.n_gaps, column.n_rare) < 0:
            raise ValueError(f"the facts of the column {column.name!r:.60} do not fit together")


def _check_steps(steps: list[tuple[str, Any]]) -> None:
    for name, step in steps:
        is_passthrough = step is None or (isinstance(step, str) and step == "passthrough")
        if not isinstance(name, str) or not (is_passthrough or type(step) in ESTIMATORS.values()):
            raise ValueError("the steps of a Pipeline are no pairs of a name and a step")
    if any(isinstance(step, RankerMixin) for _, step in steps[:-1]):
        raise ValueError("a step of a Pipeline before its end is a ranker")
