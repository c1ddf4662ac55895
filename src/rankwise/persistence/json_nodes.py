"""Checks of the JSON of a model file, which may be untrusted."""

from __future__ import annotations

from collections.abc import Mapping

from rankwise.formatting import Json


def json_object(node: Json) -> Mapping[str, Json]:
    """Return the node; raise ValueError if it is not an object of JSON."""
    if not isinstance(node, dict):
        raise ValueError(f"a value is {node!r:.40}; expected a dictionary")
    return node


def json_list(node: Json) -> list[Json]:
    """Return the node; raise ValueError if it is not a list."""
    if not isinstance(node, list):
        raise ValueError(f"a value is {node!r:.40}; expected a list")
    return node


def json_text(node: Json) -> str:
    """Return the node; raise ValueError if it is not a string."""
    if not isinstance(node, str):
        raise ValueError(f"a value is {node!r:.40}; expected a string")
    return node


def json_int(node: Json) -> int:
    """Return the node; raise ValueError if it is not an integer."""
    if type(node) is not int:
        raise ValueError(f"a value is {node!r:.40}; expected an integer")
    return node
