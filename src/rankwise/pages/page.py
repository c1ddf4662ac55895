"""The HTML file of a page: text, data, style and script; nothing else can run in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import describe_environment
from rankwise.pages.page_values import as_text

MAX_TITLE = 200
"""Characters of the heading."""


class Page:
    """An HTML page in one file that needs no network: style, script and data are inside.

    Made by `report` and `board_page`. ``str(page)`` is its text; a notebook shows it.

    Parameters
    ----------
    text : str
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.leaderboard import rate
    >>> from rankwise.report import board_page
    >>> page = board_page(rate({"winner": list("ABAC"), "loser": list("BCCA")}))
    >>> page.save(Path(tempfile.mkdtemp()) / "board.html")
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def save(self, path: PathLike) -> None:
        """Write the file; it appears whole or not at all.

        Parameters
        ----------
        path : str or path
            Where; a file of that name is replaced.
        """
        with replace_file(path) as stream:
            stream.write(self.text.encode("utf-8"))

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """A frame, so that the style of the page stays inside."""
        return (
            '<iframe sandbox="allow-scripts" width="100%" height="800" '
            f'srcdoc="{escape(self.text)}"></iframe>'
        )


def assemble(
    name: str, styles: Sequence[str], scripts: Sequence[str], data: Any, title: str, **words: str
) -> str:
    """Fill a template with style, script and data, and that into the frame of all pages.

    Parameters
    ----------
    name : str
        Of the HTML file, without ending, in this folder as all of them.
    styles, scripts : sequence of str
        Names of the files that make its one style and its one script.
    data : dict
        What the script reads, as JSON.
    title : str
        Heading; escaped here.
    **words : str
        HTML that the template asks for, escaped where it is not ours.
    """
    style, script = _read(*styles), _read(*scripts)
    heading = escape(as_text(title, MAX_TITLE))
    body = Template(_read(f"{name}.html")).substitute(words, title=heading)
    return Template(_read("base.html")).substitute(
        body=body,
        title=heading,
        version=escape(describe_environment()["versions"]["rankwise"]),
        data=_as_json(data),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _read(*names: str) -> str:
    folder = files("rankwise.pages")
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
