"""The HTML file of a page: text, data, style and script. No other script can run in it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from rankwise.datasets.files import PathLike, replace_file
from rankwise.environment import package_versions
from rankwise.formatting import Json
from rankwise.pages.page_values import as_text

MAX_TITLE = 200
"""Characters of the heading."""


class Page:
    """An HTML page in one file, with style, script and data; it needs no network.

    `report` and `board_page` return it. ``str(page)`` is its text; a notebook displays it.

    Parameters
    ----------
    text : str
        Content of the file.

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
        """Write the file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            The file; an existing file is replaced.
        """
        with replace_file(path) as stream:
            stream.write(self.text.encode("utf-8"))

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """An inline frame, which keeps the style of the page apart from that of the notebook."""
        return (
            '<iframe sandbox="allow-scripts" width="100%" height="800" '
            f'srcdoc="{escape(self.text)}"></iframe>'
        )


def assemble(
    name: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Json,
    title: str,
    **html_fields: str,
) -> str:
    """Insert texts, style, script and data into the template of a page.

    Parameters
    ----------
    name : str
        Path of the HTML template in this package, without its suffix.
    styles, scripts : sequence of str
        Paths of the files that are joined to one style and one script.
    data : Json
        The data that the script reads.
    title : str
        Heading, which is escaped here.
    **html_fields : str
        HTML for the other fields of the template, in which all text from users is escaped.
    """
    style = _read_files(styles)
    script = _read_files(scripts)
    heading = escape(as_text(title, MAX_TITLE))
    body_template = Template(_read_files([f"{name}.html"]))
    body = body_template.substitute(html_fields, title=heading)
    page_template = Template(_read_files(["base.html"]))
    return page_template.substitute(
        body=body,
        title=heading,
        version=escape(package_versions()["rankwise"]),
        data=_json_for_script(data),
        style=style,
        script=script,
        style_hash=_policy_hash(style),
        script_hash=_policy_hash(script),
    )


def _read_files(paths: Sequence[str]) -> str:
    folder = files("rankwise.pages")
    return "\n".join(folder.joinpath(path).read_text(encoding="utf-8") for path in paths)


def _json_for_script(data: Json) -> str:
    """JSON that cannot end the script element that contains it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        escape_sequence = f"\\u{ord(character):04x}"
        text = text.replace(character, escape_sequence)
    return text


def _policy_hash(text: str) -> str:
    """Hash of a script or style, in the form of a content security policy."""
    # The security policy of the page admits only the style and the script with this hash.
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
