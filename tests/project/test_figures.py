"""Measured figures of README and of the documentation are those of the recorded files."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_figures():
    spec = importlib.util.spec_from_file_location("figures", ROOT / "docs" / "figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


figures = load_figures()


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_the_figures_of_a_page_are_those_of_the_recorded_files(page):
    text = page.read_text(encoding="utf-8")
    assert figures.filled(text) == text, "run: make figures"


def test_every_figure_is_on_a_page_and_every_comment_names_a_figure():
    text = "".join(page.read_text(encoding="utf-8") for page in figures.PAGES)
    names = re.findall(r"<!-- figure: ([^ ]+) -->", text)
    assert set(names) == set(figures.FIGURES)
    assert text.count("<!-- end -->") == len(names)


def test_readme_has_its_measured_figures_between_comments():
    assert len(figures.FIGURE.findall((ROOT / "README.md").read_text(encoding="utf-8"))) >= 6
