"""The tree of a model as skops writes it: names made public on the way out, checked on the way in.

skops builds what its tree says from classes that it trusts. Models need a part of that, and no more
is built: no function but those of NumPy from number to number, no methods, partials, reduced or
cached objects, sets, generators or bytes. Each loader builds its own classes only.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from rankwise.persistence.parts import STEPS, find_class, find_home

OLDEST_PROTOCOL = 2  # of skops: it reads older ones in other ways
SCALARS = {f"numpy.{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)}
SCALARS |= {"numpy.bool", "numpy.float16", "numpy.float32", "numpy.float64"}
KEYS = {"builtins.str", "builtins.int"}

_VALUE = re.compile(
    r'null|true|false|NaN|-?Infinity|".*"|-?\d{1,20}(\.\d{1,25})?([eE][+-]?\d{1,3})?', re.DOTALL
)


def _is_function(name: str) -> bool:
    found = getattr(np, name.removeprefix("numpy."), None) if name.startswith("numpy.") else None
    return isinstance(found, np.ufunc) and (found.nin, found.nout) == (1, 1)


def _is_type(name: str) -> bool:
    found = getattr(np, name.removeprefix("numpy."), None) if name.startswith("numpy.") else None
    is_scalar = isinstance(found, type) and issubclass(found, np.generic)
    return is_scalar or name in {*KEYS, "builtins.float", "builtins.bool", "builtins.object"}


def _is_tuple(name: str) -> bool:
    return name == "builtins.tuple" or issubclass(find_class(name) or object, tuple)


LOADERS: dict[str, Callable[[str], bool]] = {
    "DTypeNode": {"numpy.dtype"}.__contains__,
    "DictNode": {"builtins.dict"}.__contains__,
    "FunctionNode": _is_function,
    "JsonNode": {"builtins.str"}.__contains__,
    "ListNode": {"builtins.list"}.__contains__,
    "NdArrayNode": {"numpy.ndarray", *SCALARS}.__contains__,
    "ObjectNode": lambda name: bool(find_class(name)) and not _is_tuple(name),
    "SliceNode": {"builtins.slice"}.__contains__,
    "TupleNode": _is_tuple,
    "TypeNode": _is_type,
}
CODE = {"FunctionNode", "MethodNode", "PartialNode", "OperatorFuncNode"}


def publish(tree: Any) -> dict[str, str]:
    """Give the nodes of skops the names of the file, in place; return new names of arrays by old.

    Addresses in memory go, so that the same model gives the same bytes.
    """
    files: dict[str, str] = {}
    for node, _ in _nodes(tree, ""):
        node.pop("__id__", None)
        if node["__loader__"] in ("ObjectNode", "TupleNode"):
            node["__module__"] = find_home(node["__class__"]) or node["__module__"]
        if node["__loader__"] == "FunctionNode" and node["__module__"].startswith("numpy."):
            node["__module__"] = "numpy"
        if "file" in node:
            node["file"] = files.setdefault(node["file"], f"a{len(files)}.npy")
            node["__id__"] = int(node["file"][1:-4]) + 1  # one array in two places stays one
    return files


def _nodes(tree: Any, where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Every node, with a name for messages."""
    if isinstance(tree, list):
        for k, entry in enumerate(tree):
            yield from _nodes(entry, f"{where}[{k}]")
    if isinstance(tree, dict):
        if "__loader__" in tree:
            yield tree, where
        for key, entry in tree.items():
            if isinstance(entry, (dict, list)):
                yield from _nodes(entry, where if key == "content" else f"{where}.{key}")


def check_tree(tree: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Raise ValueError unless the tree has only what models have; return the names of its classes.

    Parameters
    ----------
    tree : dict
        The JSON.
    shapes : mapping
        Shapes of the arrays of the file, by member.
    """
    if type(tree.get("protocol")) is not int or tree["protocol"] < OLDEST_PROTOCOL:
        raise ValueError(f"its tree says protocol {tree.get('protocol')!r:.40}")
    names, used = set(), set()
    for node, where in _nodes(tree, str(tree.get("__class__"))[:40]):
        loader, name = node["__loader__"], f"{node.get('__module__')}.{node.get('__class__')}"
        if loader not in LOADERS or not LOADERS[loader](name):
            raise ValueError(_why_not(loader, name, where))
        if (".key_types" in where and loader == "TypeNode") and name not in KEYS:
            raise ValueError(f"{where} has keys of {name!r:.60}; expected strings or whole numbers")
        if loader == "ObjectNode":
            _check_attributes(find_class(name), node)
        if loader == "JsonNode":
            _check_value(node, where)
        if "file" in node:
            _check_file(node, name, where, shapes)
            used.add(node["file"])
        elif "__id__" in node:
            raise ValueError(f"{where} is in the tree twice")
        names.add(name)
    if set(shapes) - used:
        raise ValueError(f"{min(set(shapes) - used)!r} belongs to nothing in the model")
    return sorted(names)


def _check_attributes(known: type, node: dict[str, Any]) -> None:
    """Whether each attribute is a parameter or, by its name and place, something learned."""
    content, parameters = node["content"]["content"], inspect.signature(known).parameters
    if not isinstance(content, dict):
        raise ValueError(f"{known.__name__} has no attributes")
    for key in content:
        is_learned = (key[-1:] == "_" or key[:1] == "_") and "__" not in key
        default = inspect.getattr_static(known, key, None)  # of our rankers, some have one
        is_free = default is None or isinstance(default, (bool, int, float, str, tuple))
        if key not in parameters and not (is_learned and is_free):
            raise ValueError(
                f"{known.__name__} has an attribute {key!r:.60} that model files do not know; "
                "delete it from the model, or give it to save as one of the notes. Load files of "
                "another version of rankwise or scikit-learn with that one"
            )


def _check_value(node: dict[str, Any], where: str) -> None:
    if not _VALUE.fullmatch(node["content"]):
        raise ValueError(f"{where} is {node['content']!r:.60}, which a model file cannot keep")
    json.loads(node["content"])


def _check_file(
    node: dict[str, Any], name: str, where: str, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    file = node["file"]
    if file not in shapes:
        raise ValueError(f"the array {file!r:.60} is missing")
    is_one = node.get("__id__") == int(file[1:-4]) + 1 and node["__loader__"] == "NdArrayNode"
    if not is_one or (name in SCALARS and shapes[file] != ()):
        raise ValueError(f"{where} is no {name}")


def _why_not(loader: str, name: str, where: str) -> str:
    if loader in CODE:
        return (
            f"{where} is the function {name!r:.80}: a model file holds no code. Use a kernel by "
            "name, or compute the kernel matrix and train with kernel='precomputed'; of functions, "
            "those of NumPy with one argument are kept, such as np.log1p"
        )
    steps = ", ".join(sorted(short for names in STEPS.values() for short in names))
    return (
        f"{where} is a {name!r:.80}, which a model file cannot keep; expected numbers, strings, "
        "arrays, lists, tuples and dictionaries of these, rankers of rankwise, and of scikit-learn "
        f"{steps}"
    )
