"""Every example of the gallery runs and draws something."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path

import matplotlib
import pytest
from threadpoolctl import threadpool_limits

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))


@pytest.fixture(autouse=True)
def no_windows_and_one_thread(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    with threadpool_limits(1):  # small matrices: threads only get into each other's way
        yield


def test_every_example_has_a_place_in_the_gallery():
    path = FOLDER.parent / "docs" / "_extensions" / "gallery_order.py"
    spec = importlib.util.spec_from_file_location("gallery_order", path)
    gallery_order = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery_order)
    assert sorted(gallery_order.STORY) == [example.name for example in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(path):
    open_before = plt.get_fignums()
    runpy.run_path(str(path), run_name="__main__")
    new_numbers = [number for number in plt.get_fignums() if number not in open_before]
    drawn = [plt.figure(number) for number in new_numbers]
    assert drawn
    for figure in drawn:
        assert any(ax.has_data() for ax in figure.axes)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_opens_with_a_title_and_fetches_nothing(path):
    text = path.read_text(encoding="utf-8")
    opening, title, underline, blank = text.splitlines()[:4]
    assert opening == 'r"""'
    assert underline == "=" * len(title)
    assert blank == ""
    assert "fetch_" not in text
    assert "plt.show()" in text


def test_the_data_of_readme_are_made_by_their_script():
    made = runpy.run_path(str(FOLDER / "data" / "make_data.py"), run_name="make_data")
    assert made["TABLES"]
    for name, make in made["TABLES"].items():
        expected = make().to_csv(index=False, lineterminator="\n")
        assert (FOLDER / "data" / name).read_text(encoding="utf-8") == expected
