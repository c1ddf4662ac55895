"""Small files as people have them, in `messy/`, and the frames that they must give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rankwise.datasets import read_pairs, read_ranking
from rankwise.errors import DataFileError

pytest.importorskip("pyarrow")

FOLDER = Path(__file__).parent / "messy"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def plain(values):
    """Values that JSON can hold; NaN is None, as is a gap."""
    if values is None or isinstance(values, (str, bool, int)):
        return values
    if isinstance(values, float):
        return None if np.isnan(values) else values
    if hasattr(values, "to_pydict"):
        return plain(values.to_pydict())
    if isinstance(values, dict):
        return {name: plain(column) for name, column in values.items()}
    if hasattr(values, "toarray"):
        values = values.toarray()
    if hasattr(values, "tolist"):
        values = values.tolist()
    return [plain(value) for value in values] if isinstance(values, list) else str(values)


def content_of(path, read, options):
    """What is read, by name; of a refused file its line."""
    try:
        if read == "pairs":
            data = read_pairs(path, **options)
            names = ("first", "second", "outcome", "weight", "items", "groups")
        elif read == "array":
            data = read_ranking(path, **options)
            names = ("X", "y", "groups", "ids", "feature_names")
        else:
            data = read_ranking(path, as_frame=True, **options)
            names = ("X", "y", "groups", "ids", "weight")
    except DataFileError as error:
        return {"refused in line": error.line, "file": Path(error.path).name}
    return {name: plain(getattr(data, name)) for name in names}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_messy_file_gives_its_frame(name):
    case = EXPECTED[name]
    assert content_of(FOLDER / name, case["read"], case["options"]) == case["gives"]


def test_every_file_of_the_folder_is_read():
    names = {path.name for path in FOLDER.iterdir()}
    assert names == {*EXPECTED, "expected.json"}
