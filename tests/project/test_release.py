"""One version, one list of dependencies, in all files of a release."""

import re
import tomllib
from pathlib import Path

import pytest

import rankwise
from tests.oldest_versions import oldest_versions

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_in_every_file():
    recipe = re.search(r'version: "(.+)"', (ROOT / "conda/recipe.yaml").read_text())
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert PROJECT["dynamic"] == ["version"]
    assert recipe[1] == citation[1] == newest[1] == rankwise.__version__


def test_the_conda_recipe_has_the_dependencies_of_the_package_and_of_the_command():
    recipe = (ROOT / "conda/recipe.yaml").read_text()
    needed = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["cli"]
    listed = re.findall(r"^    - ([\w.-]+) >=(\S+)$", recipe[recipe.index("  run:") :], re.M)
    assert sorted(f"{name}>={version}" for name, version in listed if name != "python") == sorted(
        needed
    )


def test_every_compiled_part_is_built():
    parts = {path.stem for path in (ROOT / "src/rankwise/_compiled").glob("*.pyx")}
    listed = re.findall(r'"(\w+)"', re.search(r"else \((.+)\)", (ROOT / "setup.py").read_text())[1])
    assert set(listed) == parts


def test_the_conda_recipe_imports_every_compiled_part():
    parts = {path.stem for path in (ROOT / "src/rankwise/_compiled").glob("*.pyx")}
    recipe = (ROOT / "conda/recipe.yaml").read_text()
    assert set(re.findall(r"rankwise\._compiled\.(\w+)", recipe)) == parts


def test_workflows_call_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        called = re.findall(r"run: make PYTHON=python ([a-z-]+)$", workflow.read_text(), re.M)
        assert called
        assert set(called) <= targets


def test_workflows_may_only_read_the_repository():
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        assert "\npermissions:\n  contents: read\n" in workflow.read_text()


def test_the_oldest_versions_cover_every_dependency_and_extra():
    names = {constraint.split("==")[0] for constraint in oldest_versions()}
    for extra in ("cli", "plot", "dask", "onnx", "judge", "trees"):
        requirements = PROJECT["dependencies"] + PROJECT["optional-dependencies"][extra]
        assert {re.split(r"[\[>]", requirement)[0] for requirement in requirements} <= names


def test_the_sdist_has_all_that_its_tests_import(monkeypatch):
    """setuptools takes tests/test*.py only; oracles, conftest.py and data need MANIFEST.in."""
    egg_info = pytest.importorskip("setuptools.command.egg_info")
    monkeypatch.chdir(ROOT)
    files = egg_info.FileList()
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            files.process_template_line(line)
    packed = {Path(name).as_posix() for name in files.files}
    tests = {path.as_posix() for path in Path("tests").rglob("*.py")}
    messy = {path.as_posix() for path in Path("tests/datasets/messy").iterdir()}
    assert len(tests) > 150
    assert tests | messy <= packed


def test_actions_are_pinned_by_commit_or_by_a_full_release():
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        for used in re.findall(r"uses: *(\S+)", workflow.read_text()):
            assert re.search(r"@([0-9a-f]{40}|v\d+\.\d+\.\d+)$", used), f"{workflow}: {used}"
