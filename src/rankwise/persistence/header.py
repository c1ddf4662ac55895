"""What a model file says about itself, read without any of the packages that models need."""

from __future__ import annotations

import os
from typing import Any

from rankwise.datasets.files import PathLike
from rankwise.environment import describe_environment
from rankwise.persistence.container import HEADER, Container

FORMAT = "rankwise model"
FORMAT_VERSION = 1
"""Raised by every change that older versions of rankwise could not read."""

_HEADER: dict[str, type | tuple[type, ...]] = {
    "format": str,
    "version": int,
    "rankwise": str,
    "written_with": dict,
    "model": str,
    "ranker": str,
    "n_features": int,
    "notes": (dict, type(None)),
    "forgotten": list,
    "parameters": dict,
}


def read_header(path: PathLike) -> dict[str, Any]:
    """What a model file says about itself; its arrays are not read.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        "format", "version" (of the format), "rankwise" and "written_with" (versions that wrote
        it), "model" and "ranker" (names of the class and, of a Pipeline, of its last step),
        "n_features", "notes", "forgotten" (what was not kept) and "parameters" (of the ranker;
        arrays by their name in the file).

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model, or was written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise import RankRLS
    >>> from rankwise.persistence import read_header, save
    >>> path = Path(tempfile.mkdtemp()) / "model.rw"
    >>> model = RankRLS(alpha=0.5).fit([[1.0], [2.0], [3.0]], [10, 20, 30])
    >>> save(model, path, notes={"data": "three items"})
    >>> header = read_header(path)
    >>> header["model"], header["parameters"]["alpha"], header["notes"]
    ('RankRLS', 0.5, {'data': 'three items'})
    """
    with open(path, "rb") as stream:
        return checked_header(Container(os.fspath(path), stream))


def checked_header(container: Container) -> dict[str, Any]:
    """The header, if it is one that this version can read."""
    header = container.read_json(HEADER)
    number = header.get("version")
    if header.get("format") != FORMAT or type(number) is not int or number < 1:
        raise container.odd("this is not a rankwise model; its header does not say so")
    if number > FORMAT_VERSION:
        own = describe_environment()["versions"]["rankwise"]
        raise container.odd(
            f"written by rankwise {header.get('rankwise')!r:.40} (format {number}); this is "
            f"rankwise {own}, which reads formats up to {FORMAT_VERSION}: upgrade rankwise"
        )
    for key, kind in _HEADER.items():
        if key not in header or not isinstance(header[key], kind):
            raise container.odd(f"its header has no {key!r}, or an odd one")
    unknown = set(header) - set(_HEADER)
    if unknown:
        raise container.odd(f"its header has an unknown entry {min(unknown)!r:.60}")
    return header
