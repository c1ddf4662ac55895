"""Named arrays: what a problem stores of its results."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.baseline.names import key_name

ABOUT = "about"  # name of the description of a problem
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of a function
SKIPPED_KEYS = frozenset({"seconds", "time", "path", "version", "created", "notes", "note"})


class Record:
    """Collects the results of one problem as arrays named "problem/name"."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.arrays: dict[str, np.ndarray] = {}
        self._about: list[str] = []

    def describe(self, *parts: Any) -> None:
        """Add to the description of the problem, which is shown beside its differences.

        Descriptions are not compared: estimators print otherwise if a parameter is renamed.
        """
        for part in parts:
            text = ADDRESS.sub("", str(part))
            self._about.append(" ".join(text.split()))
        self.arrays[f"{self.problem}/{ABOUT}"] = np.array("; ".join(self._about))

    def add(self, name: str, value: Any) -> None:
        """Store a result: a number, text, array, or a dict, list or tuple of results.

        Containers are stored item by item, unless all items are numbers. None is stored as nan,
        so that a result that becomes None is a difference.
        """
        value = as_plain(value)
        if isinstance(value, dict):
            for key, item in value.items():
                if str(key) not in SKIPPED_KEYS:
                    self.add(f"{name}.{key_name(key)}", item)
            return
        if isinstance(value, list):
            array = as_numbers(value)
            if array is None:
                for position, item in enumerate(value):
                    self.add(f"{name}[{position}]", item)
                return
        else:
            array = np.asarray(value)
        self._store(name, array)

    def _store(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind == "O":
            array = array.astype(str)
        if array.dtype.kind not in "biufUSMm":
            raise TypeError(f"{name} is an array of {array.dtype}, which cannot be stored.")
        full_name = f"{self.problem}/{name}"
        if full_name in self.arrays:
            raise ValueError(f"{full_name} is stored twice.")
        self.arrays[full_name] = np.array(array)


def as_plain(value: Any) -> Any:
    """Replace named tuples and dataclasses by dicts, tuples by lists, None by nan."""
    if value is None:
        return np.nan
    if sp.issparse(value):
        return value.toarray()
    if hasattr(value, "_asdict"):
        return value._asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if isinstance(value, (tuple, list)):
        return [as_plain(item) for item in value]
    return value


def as_numbers(values: list[Any]) -> np.ndarray | None:
    """Return the list as one array if it holds numbers only and has a shape, else None."""
    if not values:
        return np.zeros(0)
    if any(isinstance(item, (dict, str)) for item in values):
        return None
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    return array if array.dtype.kind in "biuf" else None
