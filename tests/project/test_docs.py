"""The documentation site: every page is reachable, every public name is on the API page, and what
a page says a block prints is what it prints. ``make docs`` builds the site itself."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shutil
import warnings
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
MODULES = [
    "rankwise",
    "rankwise.distributed",
    "rankwise.datasets",
    "rankwise.graphs",
    "rankwise.inspection",
    "rankwise.judge",
    "rankwise.leaderboard",
    "rankwise.losses",
    "rankwise.metrics",
    "rankwise.model_selection",
    "rankwise.persistence",
    "rankwise.plot",
    "rankwise.preprocessing",
    "rankwise.report",
    "rankwise.uncertainty",
]
LISTED_AT_THE_TOP = ("rankwise.graphs", "rankwise.preprocessing", "rankwise.uncertainty")
FENCES = r"^(`{3,}|:{3,})[^\n]*\n.*?^\1$"
SHOWN = r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?"


def text_of(page):
    return page.read_text(encoding="utf-8")


def listed_pages(*sections):
    """Pages in the tables of contents of these pages."""
    text = "".join(text_of(DOCS / f"{section}.md") for section in sections)
    trees = re.findall(r"^```\{toctree\}\n(.*?)```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for tree in trees for line in tree.splitlines() if line and line[0] != ":"]
    return [DOCS / (re.sub(r".*<(.*)>", r"\1", line) + ".md") for line in lines]


def documented_names():
    """Full names on the API page, ``currentmodule`` and the lists under it put together."""
    module, names = "", set()
    for line in text_of(DOCS / "api.md").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif re.match(r"   [A-Za-z_.]+$", line):
            names.add(f"{module}.{line.strip()}")
    return names


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_the_api_page(module):
    if module == "rankwise.distributed":
        pytest.importorskip("dask")
    names = documented_names()
    for name in getattr(import_module(module), "__all__", []):
        full_name = f"{module}.{name}"
        if full_name in MODULES:
            has_section = f"\n## {full_name}\n" in text_of(DOCS / "api.md")
            assert has_section or full_name in LISTED_AT_THE_TOP
            continue
        places = {full_name}
        if module in LISTED_AT_THE_TOP:
            places.add(f"rankwise.{name}")
        if module == "rankwise":
            places.add(f"rankwise.leaderboard.{name}")
        assert places & names, full_name


def test_the_api_page_names_nothing_that_is_not_there():
    for full_name in documented_names():
        module, name = full_name.rsplit(".", 1)
        if module == "rankwise.distributed":
            pytest.importorskip("dask")
        assert hasattr(import_module(module), name), full_name


def needs_an_example(value):
    """Whether people call it: records come out of a call, and abstract classes are for builders."""
    if inspect.isclass(value):
        is_record = issubclass(value, tuple) or dataclasses.is_dataclass(value)
        return not (is_record or inspect.isabstract(value))
    return inspect.isfunction(value)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_that_is_called_has_an_example(module):
    if module == "rankwise.distributed":
        pytest.importorskip("dask")
    room = import_module(module)
    public = [(name, getattr(room, name)) for name in getattr(room, "__all__", [])]
    called = [(name, value) for name, value in public if needs_an_example(value)]
    assert [name for name, value in called if ">>> " not in (value.__doc__ or "")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_has_one_title(page):
    text = text_of(page)
    included = re.match(r"```\{include\} (\S+)\n```\n", text)
    text = text_of(DOCS / included[1]) if included else text
    prose = re.sub(FENCES, "", text, flags=re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"^# \S", prose, flags=re.MULTILINE)) == 1


def test_every_page_is_in_one_table_of_contents():
    listed = listed_pages(*(page.stem for page in PAGES))
    pages = set(PAGES) - {DOCS / "index.md"}
    assert len(listed) == len(set(listed))
    assert set(listed) - {DOCS / "auto_examples/index.md"} == pages


def blocks_of(page):
    """Code of each block, and what the page says it prints, if it says so."""
    return re.findall(SHOWN, text_of(page), flags=re.DOTALL)


PAGES_WITH_CODE = [page for page in (ROOT / "CONTRIBUTING.md", *PAGES) if blocks_of(page)]


SPARK = {  # it starts in half of the time
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
}


def is_there(package):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        try:
            return bool(import_module(package))
        except ImportError:
            return False


def test_pages_show_what_their_blocks_print():
    silent = [
        (page.stem, code)
        for page in PAGES
        for code, shown in blocks_of(page)
        if re.search(r"^ *print\(", code, re.M) and not shown
    ]
    assert silent == []


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=lambda page: page.stem)
def test_blocks_run_in_order_and_print_what_the_page_shows(page, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    for name, options in SPARK.items():
        monkeypatch.setenv(name, options)
    namespace: dict[str, object] = {}
    missing: set[str] = set()
    for code, shown in blocks_of(page):
        wanted = re.findall(r"^(?:import|from) (shap|duckdb|polars|pyspark|dask)\b", code, re.M)
        if not all(map(is_there, wanted)) or ("pyspark" in wanted and not shutil.which("java")):
            missing.update(wanted)
            continue
        with warnings.catch_warnings():
            if wanted:
                warnings.simplefilter("ignore")  # of their own
            exec(compile(code, page.name, "exec"), namespace)
        printed = capsys.readouterr().out
        assert printed.split() == shown.split()
    if missing:
        pytest.skip(f"blocks that need {', '.join(sorted(missing))} did not run; the others did")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_keys_of_papers_are_links(page):
    text = re.sub(r"```.*?```|\\tag\{.*?\}", "", text_of(page), flags=re.DOTALL)
    papers = re.findall(r"^## (\w+\d\d)$", text_of(DOCS / "references.md"), flags=re.MULTILINE)
    assert len(papers) == 5
    for key in papers:
        if f"[{key}]" in text:
            assert f"\n[{key}]: references.md#{key.lower()}\n" in text


@pytest.mark.parametrize("page", listed_pages("how_to"), ids=lambda page: page.stem)
def test_how_to_pages_have_code_before_mathematics_a_picture_and_lines_that_fit(page):
    text = text_of(page)
    first = re.search(r"```|<svg", text).start()
    assert "$$" not in text[:first]
    assert first < 2000
    assert re.search(r"\{image\}|!\[|<svg", text)
    for block in re.findall(r"```(?:python|console|sh)\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            assert len(line) <= 78, line
