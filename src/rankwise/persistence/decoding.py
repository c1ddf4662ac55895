"""From JSON and arrays back to a fitted model; only classes on the list are constructed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from rankwise.metrics.registry import get_metric
from rankwise.persistence.classes import (
    ATTRIBUTES,
    CLASSES,
    NEVER_KEPT,
    RECORDS,
    SPARSE,
    is_integers,
)
from rankwise.persistence.container import Container
from rankwise.persistence.encoding import SCALARS
from rankwise.persistence.odd import OddContent

__all__ = ["Decoder", "readable"]

MAX_DEPTH = 24
FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Decoder:
    """Turns the JSON of an `Encoder` into values; anything unknown raises `OddContent`."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._depth = 0
        self._tags: dict[str, Callable[[Any], Any]] = {
            "array": container.array,
            "dict": self._dict,
            "estimator": self._estimator,
            "float": self._float,
            "metric": self._metric,
            "objects": self._objects,
            "record": self._record,
            "scalar": self._scalar,
            "slice": self._slice,
            "sparse": self._sparse,
            "tuple": lambda body: tuple(self._list(body)),
        }

    def decode(self, node: Any) -> Any:
        """The value of one piece of JSON."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OddContent("its header is nested too deep")
        value = self._list(node) if isinstance(node, list) else self._tagged(node)
        self._depth -= 1
        return value

    def _tagged(self, node: dict[str, Any]) -> Any:
        tag, body = next(iter(node.items())) if len(node) == 1 else (None, None)
        if tag not in self._tags:
            raise OddContent(f"its header has an unknown entry {str(list(node))[:80]}")
        return self._tags[tag](body)

    def _list(self, body: Any) -> list[Any]:
        return [self.decode(entry) for entry in _expect(list, body)]

    def _dict(self, body: Any) -> dict[str, Any]:
        return {key: self.decode(value) for key, value in _expect(dict, body).items()}

    def _float(self, body: Any) -> float:
        if not isinstance(body, str) or body not in FLOATS:
            raise OddContent(f"its header has the number {body!r:.40}")
        return FLOATS[body]

    def _metric(self, body: Any) -> Any:
        return _made("metric", get_metric, body)

    def _objects(self, body: Any) -> Any:
        entries = self._list(body)
        out = np.empty(len(entries), dtype=object)
        for k, entry in enumerate(entries):
            out[k] = entry
        return out

    def _scalar(self, body: Any) -> Any:
        name, value = _expect(list, body) if len(_expect(list, body)) == 2 else (None, None)
        plain = self.decode(value)
        kinds = {"s": str, "b": bool, "f": float}.get(str(name)[0], int)
        if name not in SCALARS or type(plain) is not kinds:
            raise OddContent(f"its header has the scalar {body!r:.80}")
        return plain if name == "str" else _made("scalar", np.dtype(name).type, plain)

    def _slice(self, body: Any) -> slice:
        ends = _expect(list, body)
        if len(ends) != 3 or not all(end is None or type(end) is int for end in ends):
            raise OddContent(f"its header has the slice {body!r:.80}")
        return slice(*ends)

    def _sparse(self, body: Any) -> Any:
        parts = _expect(dict, body)
        if set(parts) != {"class", "shape", "data", "indices", "indptr"}:
            raise OddContent("a sparse matrix has too few parts or too many")
        made_by = SPARSE.get(parts["class"]) if isinstance(parts["class"], str) else None
        shape = _expect(list, parts["shape"])
        if made_by is None or len(shape) != 2 or not all(_is_size(n) for n in shape):
            raise OddContent(f"a sparse matrix is a {parts['class']!r:.40} of shape {shape!r:.40}")
        arrays = [self._container.array(parts[k]) for k in ("data", "indices", "indptr")]
        data, indices, indptr = arrays
        major = shape[0] if parts["class"].startswith("csr") else shape[1]
        if not (is_integers(indices) and is_integers(indptr) and data.dtype.kind in "fiub"):
            raise OddContent("a sparse matrix has numbers of the wrong kind")
        if any(a.ndim != 1 for a in arrays) or len(indptr) != major + 1:
            raise OddContent("the parts of a sparse matrix do not fit together")
        matrix = _made("sparse matrix", made_by, (data, indices, indptr), shape=tuple(shape))
        _made("sparse matrix", matrix.check_format, full_check=True)
        return matrix

    def _record(self, body: Any) -> Any:
        made_by, fields = self._class(body, RECORDS, "fields")
        return _made(made_by.__name__, made_by, **fields)

    def _estimator(self, body: Any) -> Any:
        made_by, parameters = self._class(body, CLASSES, "parameters", "state")
        kept = sorted(key for key in NEVER_KEPT if parameters.get(key) is not None)
        if kept:
            raise OddContent(f"{made_by.__name__} has {kept[0]!r}, which no model file has")
        model = _made(made_by.__name__, made_by, **parameters)
        kinds = ATTRIBUTES[made_by]
        for name, value in self._dict(body["state"]).items():
            if name not in kinds or not kinds[name](value):
                raise OddContent(f"{made_by.__name__} has an attribute {name!r:.40} of odd kind")
            vars(model)[name] = value
        return model

    def _class(
        self, body: Any, known: dict[str, type], values: str, *others: str
    ) -> tuple[type, dict[str, Any]]:
        """The class and the arguments of its constructor, all of them known."""
        parts = _expect(dict, body)
        name = parts.get("class")
        if set(parts) != {"class", values, *others} or not isinstance(name, str):
            raise OddContent("an entry of its header has too few parts or too many")
        if name not in known:
            raise OddContent(f"it holds a {name!r:.60}, which is not among {', '.join(known)}")
        given = self._dict(parts[values])
        unknown = set(given) - set(inspect.signature(known[name]).parameters)
        if unknown:
            raise OddContent(
                f"{name} has no {min(unknown)!r:.60}; if another version of rankwise or "
                "scikit-learn wrote the file, load it with that one"
            )
        return known[name], given


def readable(node: Any) -> Any:
    """The JSON of an `Encoder` without its tags, for people: arrays by name, models by class."""
    if isinstance(node, list):
        return [readable(entry) for entry in node]
    if not isinstance(node, dict) or len(node) != 1:
        return node
    ((tag, body),) = node.items()
    if tag == "dict" and isinstance(body, dict):
        return {key: readable(value) for key, value in body.items()}
    if tag in ("estimator", "record") and isinstance(body, dict):
        return body.get("class")
    if tag == "scalar" and isinstance(body, list):
        return readable(body[-1]) if body else None
    return readable(body) if tag in ("tuple", "objects", "metric", "float") else node


def _expect(kind: type, body: Any) -> Any:
    if not isinstance(body, kind):
        raise OddContent(f"its header has {body!r:.60} where a {kind.__name__} should be")
    return body


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**48


def _made(what: str, make: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """What the function returns; a complaint about its arguments is one about the file."""
    try:
        return cast("Any", make(*values, **named))
    except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError) as error:
        raise OddContent(f"it has an impossible {what}: {error}") from error
