"""Old and new names of what the baseline uses, so that one script runs on both versions.

Problems name everything as version 0.4 does. Each table maps such a name to its spellings; the
first one that the installed package has is used. A name that is not in a table has one spelling.
When something is renamed, add its new spelling to `names.json` and nowhere else. The spellings are
not in a Python file, because programs that rename things in Python files would lose the old ones.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

MISSING = object()

TABLES = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))

# Public objects: "module:attribute". Without an entry: "rankwise:NAME".
SYMBOLS: dict[str, list[str]] = TABLES["symbols"]

# Attributes and methods of public objects.
ATTRIBUTES: dict[str, list[str]] = TABLES["attributes"]

# Keywords of public functions and methods.
KEYWORDS: dict[str, list[str]] = TABLES["keywords"]

# Keys of results that are dictionaries, named tuples or JSON: the name under which they are stored.
KEYS: dict[str, str] = TABLES["keys"]

# Options of the command: "command --option" to its spellings. Where the new spelling exists in an
# old version with another meaning, the old spelling comes first.
OPTIONS: dict[str, list[str]] = TABLES["options"]


@cache
def find(name: str) -> Any:
    """Return the public object of this name, under the first spelling that is installed."""
    spellings = SYMBOLS.get(name, [f"rankwise:{name}"])
    for spelling in spellings:
        module_name, _, attribute = spelling.partition(":")
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError:
            continue
        value = getattr(module, attribute, MISSING)
        if value is not MISSING and not inspect.ismodule(value):
            return value
    raise LookupError(f"{name} has none of its spellings {spellings}; add one to names.json.")


def get(owner: Any, name: str) -> Any:
    """Return an attribute of a public object, under the first spelling that it has."""
    spellings = ATTRIBUTES.get(name, [name])
    for spelling in spellings:
        value = getattr(owner, spelling, MISSING)
        if value is not MISSING:
            return value
    kind = type(owner).__name__
    raise LookupError(f"{kind}.{name} has none of its spellings {spellings}.")


def call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a function, with the keywords under the spelling of its signature."""
    parameters = inspect.signature(function).parameters
    spelled = {}
    for name, value in keywords.items():
        spellings = KEYWORDS.get(name, [name])
        accepted = [spelling for spelling in spellings if spelling in parameters]
        spelled[accepted[0] if accepted else name] = value
    return function(*arguments, **spelled)


def key_name(key: Any) -> str:
    """Return the name under which a key of a result is stored."""
    return KEYS.get(str(key), str(key))


def option(command: str, name: str, installed: frozenset[str]) -> str:
    """Return the spelling of an option of a command, given the options that it has."""
    spellings = OPTIONS.get(f"{command} {name}", [name])
    for spelling in spellings:
        if spelling in installed:
            return spelling
    raise LookupError(f"rankwise {command} has none of {spellings}; add one to names.json.")
