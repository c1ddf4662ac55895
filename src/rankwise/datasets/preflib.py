"""Files of rankings of PrefLib (preflib.org): .soc, .soi, .toc and .toi."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

from rankwise.datasets.files import PathLike, numbered_lines
from rankwise.datasets.table_files import FrameTable
from rankwise.datasets.vocabulary import shown_value
from rankwise.errors import TableFormatError

SUFFIXES = (".soc", ".soi", ".toc", ".toi")  # strict or tied, complete or incomplete orders
MAX_ROWS = 10**8  # items of all ballots

_NAME = re.compile(r"#\s*ALTERNATIVE NAME (\d+):(.*)")
_ORDER = re.compile(r"(\d+)\s*:(.+)")
_PLACE = re.compile(r"\{([^{}]*)\}|([^,{}]+)")


def is_preflib(path: PathLike) -> bool:
    """Whether the suffix of a file is one of PrefLib."""
    return os.path.splitext(os.fspath(path).lower())[1] in SUFFIXES


class PreflibTable(FrameTable):
    """The ballots of a PrefLib file as a table with the columns ranking, item and place.

    Each voter is a ranking; alternatives in braces share a place.

    Parameters
    ----------
    path : str
        The file.

    Raises
    ------
    TableFormatError
        If a line cannot be read.
    """

    def __init__(self, path: str) -> None:
        columns: dict[str, list[object]] = {"ranking": [], "item": [], "place": []}
        names: dict[str, str] = {}
        labels: dict[str, str] = {}
        n_rankings = 0
        for number, line in _text_lines(path):
            name = _NAME.fullmatch(line)
            if name:
                names[name[1]] = name[2].strip()
            if line.startswith("#"):
                continue
            n_voters, order = _read_order(path, number, line)
            if not n_rankings:  # the names precede the first order
                labels = _labels(names)
            if len(columns["item"]) + n_voters * len(order) > MAX_ROWS:
                raise TableFormatError(path, number, f"the ballots have more than {MAX_ROWS} items")
            for _ in range(n_voters):
                for alternative, place in order:
                    columns["ranking"].append(n_rankings)
                    columns["item"].append(labels.get(alternative, alternative))
                    columns["place"].append(place)
                n_rankings += 1
        if not n_rankings:
            raise TableFormatError(path, None, "the file has no orders, expected '3: 1,{2,4},5'.")
        super().__init__(columns)
        self.path = path


def _text_lines(path: str) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the lines that are not blank."""
    for number, line in numbered_lines(path, error=TableFormatError):
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield number, text


def _labels(names: dict[str, str]) -> dict[str, str]:
    """Labels of the alternatives by number: their names, with the number if names are equal."""
    n_names = Counter(names.values())
    labels = {}
    for number, name in names.items():
        is_unique = n_names[name] == 1 and name
        labels[number] = name if is_unique else f"{name} ({number})".strip()
    return labels


def _read_order(path: str, number: int, line: str) -> tuple[int, list[tuple[str, int]]]:
    """Read a line such as ``3: 1,{2,4},5``.

    Returns
    -------
    n_voters : int
        Number of voters with this order.
    order : list of (str, int)
        Alternatives and their places.
    """
    parts = _ORDER.fullmatch(line)
    rest = "" if parts is None else _PLACE.sub("", parts[2])
    if parts is None or rest.strip(", "):
        raise TableFormatError(
            path,
            number,
            f"got {shown_value(line)}, expected a number of voters and an order, "
            "such as '3: 1,{2,4},5'.",
        )
    order = []
    place = 1
    for tied, single in _PLACE.findall(parts[2]):
        alternatives = _alternatives(tied or single)
        order += [(alternative, place) for alternative in alternatives]
        place += len(alternatives)
    return int(parts[1]), order


def _alternatives(text: str) -> list[str]:
    """The numbers of alternatives, which commas separate."""
    words = [word.strip() for word in text.split(",")]
    return [word for word in words if word]
