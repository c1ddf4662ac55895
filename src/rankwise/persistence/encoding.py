"""From a fitted model to JSON and a list of arrays.

JSON objects are tags: each has one key that says what its value stands for. Everything else is as
JSON has it.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankwise.features import Kernel
from rankwise.metrics.registry import Metric, get_metric
from rankwise.persistence.classes import (
    ATTRIBUTES,
    FORGOTTEN_ATTRIBUTES,
    FORGOTTEN_PARAMETERS,
    NEVER_KEPT,
    RECORDS,
    SCALERS,
    SPARSE,
)

__all__ = ["Encoder"]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SCALARS = ("bool", *INTEGERS, "float16", "float32", "float64", "str")
ARRAY_KINDS = "biufUSmM"


class Encoder:
    """Turns values into JSON and gathers the arrays that they refer to.

    Attributes
    ----------
    arrays : list of ndarray
        The member ``a3.npy`` of the file is ``arrays[3]``.
    forgotten : list of str
        What is not kept, in words.
    """

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self.forgotten: list[str] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # a number in _numbers is an address: nothing may be freed

    def encode(self, value: Any, where: str) -> Any:
        """JSON of one value; `where` names it in messages."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int and -(2**63) <= value < 2**64:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if type(value) in ATTRIBUTES:
            return {"estimator": self._estimator(value)}
        if type(value) in RECORDS.values():
            return {"record": self._record(value, where)}
        if type(value) in (list, tuple):
            entries = [self.encode(entry, f"{where}[{k}]") for k, entry in enumerate(value)]
            return entries if type(value) is list else {"tuple": entries}
        if type(value) is dict and all(type(key) is str for key in value):
            return {"dict": {k: self.encode(v, f"{where}[{k!r}]") for k, v in value.items()}}
        return self._special(value, where)

    def _special(self, value: Any, where: str) -> Any:
        if isinstance(value, slice):
            ends = (value.start, value.stop, value.step)
            return {"slice": [self.encode(end, where) for end in ends]}
        if isinstance(value, range):
            return list(value)
        if isinstance(value, Metric) and get_metric(str(value)) == value:
            return {"metric": str(value)}
        if sp.issparse(value):
            return {"sparse": self._sparse(value, where)}
        if isinstance(value, np.ma.MaskedArray) or not hasattr(value, "__array__"):
            raise ValueError(_why_not(value, where))
        array = np.asarray(value)
        if array.dtype == object:
            return {"objects": self._objects(array, where)}
        if array.dtype.kind not in ARRAY_KINDS or array.dtype.itemsize == 0:
            raise ValueError(
                f"{where} is an array of {array.dtype}, which a model file cannot keep; expected "
                "numbers or strings."
            )
        return {"array": self._array(array)}

    def _array(self, array: NDArray[Any]) -> str:
        """Name of the array in the file; one that comes again is written once."""
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self._alive.append(array)
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            has_gaps = not (little.flags.c_contiguous or little.flags.f_contiguous)
            self.arrays.append(little.copy(order="K") if has_gaps else little)
        return f"a{self._numbers[id(array)]}"

    def _sparse(self, matrix: Any, where: str) -> dict[str, Any]:
        if type(matrix) not in SPARSE.values():
            matrix = matrix.tocsr()
        return {
            "class": type(matrix).__name__,
            "shape": list(map(int, matrix.shape)),
            **{k: self._array(getattr(matrix, k)) for k in ("data", "indices", "indptr")},
        }

    def _objects(self, array: NDArray[Any], where: str) -> list[Any]:
        if array.ndim != 1:
            raise ValueError(f"{where} is an array of objects of shape {array.shape}, not flat.")
        return [self.encode(entry, f"{where}[{k}]") for k, entry in enumerate(array)]

    def _scalar(self, value: np.generic, where: str) -> dict[str, Any]:
        name = "str" if isinstance(value, np.str_) else value.dtype.name
        if name not in SCALARS:
            raise ValueError(_why_not(value, where))
        return {"scalar": [name, self.encode(value.item(), where)]}

    def _record(self, value: Any, where: str) -> dict[str, Any]:
        fields = vars(value) if isinstance(value, Kernel) else value._asdict()
        return {
            "class": type(value).__name__,
            "fields": {name: self.encode(fields[name], f"{where}.{name}") for name in fields},
        }

    def _estimator(self, model: Any) -> dict[str, Any]:
        """Parameters and fitted attributes; what is known to be of no use later is left out."""
        name = type(model).__name__
        parameters = model.get_params(deep=False)
        encoded = {key: self._parameter(model, key, parameters[key]) for key in parameters}
        state = {}
        for key, value in vars(model).items():
            if key in parameters:
                continue
            if key in FORGOTTEN_ATTRIBUTES:
                self._forget(FORGOTTEN_ATTRIBUTES[key])
            elif key in ATTRIBUTES[type(model)]:
                state[key] = self.encode(value, f"{name}.{key}")
            else:
                raise ValueError(
                    f"{name} has an attribute {key!r} that model files do not know; delete it "
                    "from the model, or give it to save as one of the notes."
                )
        return {"class": name, "parameters": encoded, "state": state}

    def _parameter(self, model: Any, key: str, value: Any) -> Any:
        where = f"{type(model).__name__}({key}=…)"
        arrays = len(self.arrays)
        default = inspect.signature(type(model)).parameters[key].default
        try:
            if value is default or key not in NEVER_KEPT:
                return self.encode(value, where)
        except ValueError:
            if key not in FORGOTTEN_PARAMETERS:
                raise
        del self.arrays[arrays:]
        self._numbers = {at: n for at, n in self._numbers.items() if n < arrays}
        self._forget(f"{key} ({type(value).__name__})")
        return default

    def _forget(self, what: str | None) -> None:
        if what is not None and what not in self.forgotten:
            self.forgotten.append(what)


def _why_not(value: Any, where: str) -> str:
    kind = type(value).__name__
    if "(kernel=" in where or where.endswith(("kernel.function", "Kernel.function")):
        return (
            f"{where} is {kind} {value!r:.100}: a model file holds no code, so it cannot keep a "
            "kernel of your own. Use a kernel by name, or compute the kernel matrix and train "
            "with kernel='precomputed'."
        )
    if isinstance(value, BaseEstimator):
        steps = ", ".join(known.__name__ for known in SCALERS)
        return (
            f"{where} is a {kind}, which model files cannot hold; a Pipeline may have {steps} and "
            "'passthrough', and a ranker of rankwise at the end."
        )
    return (
        f"{where} is {kind} {value!r:.100}, which a model file cannot keep; expected numbers, "
        "strings, arrays, or lists, tuples and dictionaries of these."
    )
