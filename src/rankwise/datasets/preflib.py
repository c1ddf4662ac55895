"""Files of rankings of PrefLib (preflib.org): .soc, .soi, .toc and .toi."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rankwise.datasets.files import PathLike, numbered_lines
from rankwise.datasets.table_files import FrameTable
from rankwise.datasets.vocabulary import shown_value
from rankwise.errors import TableFormatError

SUFFIXES = (".soc", ".soi", ".toc", ".toi")  # strict or tied, complete or incomplete orders
MAX_ROWS = 10**8  # items of all ballots

_NAME = re.compile(r"#\s*ALTERNATIVE NAME (\d+):(.*)")
_ORDER = re.compile(r"(?P<voters>\d+)\s*:(?P<order>.+)")
_PLACE = re.compile(r"\{[^{}]*\}|[^,{}]+")


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
        lines = list(_lines_with_text(path))
        label_of_number = _labels_of_alternatives(lines)
        columns: dict[str, list[object]] = {"ranking": [], "item": [], "place": []}
        n_rankings = 0
        for line_number, line in lines:
            if line.startswith("#"):
                continue
            n_voters, places = _read_order(path, line_number, line)
            if len(columns["item"]) + n_voters * len(places) > MAX_ROWS:
                problem = f"the ballots have more than {MAX_ROWS} items"
                raise TableFormatError(path, line_number, problem)
            for _ in range(n_voters):
                for alternative, place in places:
                    columns["ranking"].append(n_rankings)
                    columns["item"].append(label_of_number.get(alternative, alternative))
                    columns["place"].append(place)
                n_rankings += 1
        if n_rankings == 0:
            raise TableFormatError(path, None, "the file has no orders, expected '3: 1,{2,4},5'.")
        super().__init__(columns)
        self.path = path


def _lines_with_text(path: str) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the lines that are not blank."""
    for number, line in numbered_lines(path, error=TableFormatError):
        text = line.decode("utf-8", "replace").strip()
        if text:
            yield number, text


def _labels_of_alternatives(lines: Sequence[tuple[int, str]]) -> dict[str, str]:
    """Labels of the alternatives by number: their names, with the number if names are equal."""
    name_of_number = {}
    for _, line in lines:
        number_and_name = _NAME.fullmatch(line)
        if number_and_name:
            name_of_number[number_and_name[1]] = number_and_name[2].strip()
    n_occurrences = Counter(name_of_number.values())
    labels = {}
    for number, name in name_of_number.items():
        is_unique = n_occurrences[name] == 1 and name != ""
        if is_unique:
            labels[number] = name
        else:
            labels[number] = f"{name} ({number})".strip()
    return labels


def _read_order(path: str, number: int, line: str) -> tuple[int, list[tuple[str, int]]]:
    """Read a line such as ``3: 1,{2,4},5``.

    Returns
    -------
    n_voters : int
        Number of voters with this order.
    places : list of (str, int)
        Alternatives and their places.
    """
    voters_and_order = _ORDER.fullmatch(line)
    unread_text = ""
    if voters_and_order is not None:
        unread_text = _PLACE.sub("", voters_and_order["order"])
    if voters_and_order is None or unread_text.strip(", "):
        raise TableFormatError(
            path,
            number,
            f"got {shown_value(line)}, expected a number of voters and an order, "
            "such as '3: 1,{2,4},5'.",
        )
    places = []
    place = 1
    for place_text in _PLACE.findall(voters_and_order["order"]):  # such as "1" and "{2,4}"
        alternatives = _split_alternatives(place_text.strip("{}"))
        places += [(alternative, place) for alternative in alternatives]
        place += len(alternatives)
    return int(voters_and_order["voters"]), places


def _split_alternatives(text: str) -> list[str]:
    """The numbers of alternatives, which commas separate."""
    words = [word.strip() for word in text.split(",")]
    return [word for word in words if word]
