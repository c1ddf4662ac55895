"""What of a model goes into a file: a copy without what only `fit` uses; and the way back."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.persistence.parts import Made, is_known, made, map_entries

SHOWN_ENTRIES = 32
FORGOTTEN_ATTRIBUTES = {
    "_chunks": "the sums from which partial_fit goes on",
    "_features": None,
    "_metadata_request": "set_fit_request and set_score_request",
    "_skl_callbacks": "callbacks",
}
"""What is left out, and how the header names it; None if that has been said already."""

FORGOTTEN_PARAMETERS = {"random_state", "cv"}
"""Parameters that only `fit` reads: what is no number, name or list becomes the default."""

NEVER_KEPT = {"memory"}
"""Parameters that always become the default: from the folder of `memory`, `fit` reads pickles."""


class Keeper:
    """Copies a model for the file.

    Attributes
    ----------
    forgotten : list of str
        What is not kept, in words.
    """

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self._arrays: dict[int, tuple[Any, Any]] = {}  # by address, and kept alive for that

    def keep(self, value: Any) -> Any:
        """The copy."""
        if hasattr(value, "__dict__") and is_known(value):
            return self._object(value)
        if isinstance(value, np.str_):
            return str(value)
        value = list(value) if isinstance(value, range) else made(value) or value
        is_plain = isinstance(value, (np.generic, np.ma.MaskedArray, type))
        if hasattr(value, "__array__") and not is_plain and np.asarray(value).dtype != object:
            return self._array(value)
        return map_entries(np.asarray(value) if hasattr(value, "iloc") else value, self.keep)

    def _array(self, value: Any) -> Any:
        """The array without gaps, which gives the same bits, and in the order of bytes of files."""
        if id(value) not in self._arrays:
            array = np.asarray(value)
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            self._arrays[id(value)] = value, little if little.flags.forc else little.copy(order="K")
        return self._arrays[id(value)][1]

    def _object(self, model: Any) -> Any:
        parameters = inspect.signature(type(model)).parameters
        copy = object.__new__(type(model))
        for key, value in vars(model).items():
            if key in FORGOTTEN_ATTRIBUTES:
                self._forget(FORGOTTEN_ATTRIBUTES[key])
            elif (
                key in parameters and value is not parameters[key].default and _is_idle(key, value)
            ):
                self._forget(f"{key} ({type(value).__name__})")
                vars(copy)[key] = parameters[key].default
            else:
                vars(copy)[key] = self.keep(value)
        return copy

    def _forget(self, what: str | None) -> None:
        if what is not None and what not in self.forgotten:
            self.forgotten.append(what)


def _is_idle(key: str, value: Any) -> bool:
    is_kept = isinstance(value, (str, int, np.integer, list, tuple, np.ndarray))
    return key in NEVER_KEPT or (key in FORGOTTEN_PARAMETERS and not is_kept)


def restore(value: Any) -> Any:
    """What `Keeper.keep` was given, from what came back."""
    if hasattr(value, "__dict__") and is_known(value):
        vars(value).update({key: restore(part) for key, part in vars(value).items()})
        return value
    value = map_entries(value, restore)
    return value.make() if isinstance(value, Made) else value


def readable(value: Any) -> Any:
    """A parameter as JSON for people: models by class, large arrays by shape."""
    value = value.make() if isinstance(value, Made) else value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        is_short = value.ndim == 1 and value.size <= SHOWN_ENTRIES
        return readable(value.tolist()) if is_short else f"array of shape {value.shape}"
    if isinstance(value, (list, tuple)):
        return [readable(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): readable(entry) for key, entry in value.items()}
    if isinstance(value, BaseEstimator):
        return type(value).__name__
    is_json = value is None or isinstance(value, (bool, int, str))
    return value if is_json or (isinstance(value, float) and math.isfinite(value)) else str(value)
