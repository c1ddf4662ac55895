"""One file from a template, style, script and data; nothing else may run in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any


def assemble(
    template: str, styles: Sequence[str], scripts: Sequence[str], data: Any, **words: str
) -> str:
    """The page as text.

    Parameters
    ----------
    template : str
        Name of the HTML file, in this folder as all of them.
    styles, scripts : sequence of str
        Names of the files that make its one style and its one script.
    data : dict
        What the script reads, as JSON.
    **words : str
        HTML that the template asks for, escaped where it is not ours.
    """
    style, script = _read(*styles), _read(*scripts)
    return Template(_read(template)).substitute(
        words,
        data=_as_json(data),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _read(*names: str) -> str:
    folder = files("rankwise.report")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def _as_json(data: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    """As a content security policy names the one script or style that it allows."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
