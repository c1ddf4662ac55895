"""Which classes a model file may hold, and by which names it calls them.

Names are those of public homes, so that files survive moves between private modules. This module is
the home of the parts of our models: a class that moves is imported here from its new place, and
keeps its name and the order of its fields.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from rankwise.estimators.boosted_trees import BoostedTrees
from rankwise.estimators.ranking_pursuit import PursuitFunction
from rankwise.features import FeatureMap, Kernel
from rankwise.metrics import Metric, get_metric

LONG = 100  # strings: so many and more are written as arrays
STEPS: dict[str, tuple[str, ...]] = {
    "sklearn.compose": ("ColumnTransformer", "make_column_selector"),
    "sklearn.decomposition": ("FactorAnalysis", "FastICA", "IncrementalPCA", "PCA", "TruncatedSVD"),
    "sklearn.feature_extraction.text": ("CountVectorizer", "TfidfTransformer", "TfidfVectorizer"),
    "sklearn.feature_selection": ("VarianceThreshold",),
    "sklearn.impute": ("KNNImputer", "MissingIndicator", "SimpleImputer"),
    "sklearn.kernel_approximation": ("AdditiveChi2Sampler", "Nystroem", "RBFSampler"),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        *("Binarizer", "FunctionTransformer", "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler"),
        *("Normalizer", "OneHotEncoder", "OrdinalEncoder", "PolynomialFeatures"),
        *("PowerTransformer", "QuantileTransformer", "RobustScaler", "SplineTransformer"),
        *("StandardScaler", "TargetEncoder"),
    ),
    "sklearn.random_projection": ("GaussianRandomProjection", "SparseRandomProjection"),
}
"""Steps whose `transform` was looked through: it runs no code of the file, opens nothing, and
answers wrong numbers with an error. Trees, for one, would read any memory."""


class Made(NamedTuple):
    """Stands in a file for what its own constructor makes and checks."""

    kind: str
    parts: Any

    def make(self) -> Any:
        """What it stands for."""
        if self.kind == "Kernel":
            return Kernel(*self.parts)
        if self.kind == "Metric":
            return get_metric(*self.parts)
        if self.kind == "BSpline":
            return _spline_class()(*self.parts)
        if self.kind == "texts":
            return np.array([*_split(*self.parts), None], dtype=object)[:-1].copy()
        if self.kind == "words":
            joined, lengths, numbers = self.parts
            return dict(zip(_split(joined, lengths), numbers.tolist(), strict=True))
        if self.kind not in ("csr_matrix", "csr_array", "csc_matrix", "csc_array"):
            raise ValueError(f"it has a {self.kind!r:.40}")
        shape, data, *where = self.parts
        if data.dtype.kind not in "fiub" or any(part.dtype.kind not in "iu" for part in where):
            raise ValueError("a sparse matrix has numbers of the wrong kind")
        if where[1].shape != (shape[self.kind.startswith("csc")] + 1,):
            raise ValueError("the parts of a sparse matrix do not fit together")
        matrix = getattr(sp, self.kind)((data, *where), shape=shape)
        matrix.check_format(full_check=True)
        return matrix


def made(value: Any) -> Made | None:
    """What stands for a value in a file; None if it is written as it is."""
    if isinstance(value, Kernel):
        return Made("Kernel", tuple(vars(value).values()))
    if isinstance(value, Metric):
        return Made("Metric", (str(value),))
    if sp.issparse(value):
        matrix = value if value.format in ("csr", "csc") else value.tocsr()
        parts = (tuple(map(int, matrix.shape)), matrix.data, matrix.indices, matrix.indptr)
        return Made(type(matrix).__name__, parts)
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        is_long = len(value) >= LONG and all(type(text) is str for text in value)
        return Made("texts", _joined(value)) if is_long else None
    if type(value) is dict and len(value) >= LONG:
        is_plain = all(type(a) is str and type(b) is int for a, b in value.items())
        numbers = np.array(list(value.values()) if is_plain else [])
        return Made("words", (*_joined(value), numbers)) if numbers.dtype == np.int64 else None
    if type(value).__name__ == "BSpline" and type(value) is _spline_class():
        names = ("t", "c", "k", "extrapolate", "axis")
        return Made("BSpline", tuple(getattr(value, name) for name in names))
    return None


def _joined(texts: Any) -> tuple[Any, Any]:
    """Many strings as two arrays: skops would make an object of each."""
    joined = "".join(texts).encode("utf-8", "surrogatepass")
    return np.frombuffer(joined, np.uint8), np.array([len(text) for text in texts])


def _split(joined: Any, lengths: Any) -> list[str]:
    text = joined.tobytes().decode("utf-8", "surrogatepass")
    ends = np.cumsum(lengths).tolist()
    if lengths.ndim != 1 or (lengths < 0).any() or ends[-1] != len(text):
        raise ValueError("strings and their lengths do not fit together")
    return [text[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _spline_class() -> Any:
    return import_module("scipy.interpolate").BSpline


_PARTS: dict[str, type] = {
    known.__name__: known for known in (BoostedTrees, FeatureMap, PursuitFunction, Made)
}


def find_home(short: str) -> str | None:
    """The public module that has a class of this name, or None if there is none."""
    if short in _PARTS:
        return __name__
    if short in import_module("rankwise").__all__:
        return "rankwise"
    return next((home for home, names in STEPS.items() if short in names), None)


def find_class(name: str) -> Any:
    """The class of this public name, or None if files may not hold it."""
    home, _, short = name.rpartition(".")
    if not home or home != find_home(short):
        return None
    found = _PARTS.get(short) or getattr(import_module(home), short)
    is_estimator = isinstance(found, type) and issubclass(found, BaseEstimator)
    return found if is_estimator or short in (*_PARTS, "make_column_selector") else None


def is_known(value: Any) -> bool:
    """Whether files may hold objects of this very class."""
    known = type(value)
    return find_class(f"{find_home(known.__name__)}.{known.__name__}") is known


def map_entries(value: Any, change: Any) -> Any:
    """The same list, tuple, dictionary or flat array of objects, each entry changed."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(change, value))
    if type(value) in (list, tuple):
        return type(value)(map(change, value))
    if type(value) is dict:
        return {key: change(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        out = np.empty(len(value), dtype=object)
        for k, entry in enumerate(value):
            out[k] = change(entry)
        return out
    return value
