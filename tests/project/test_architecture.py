"""Imports go one way, files stay small, and importing rankwise is cheap."""

from __future__ import annotations

import ast
import collections
import functools
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "rankwise"
# In order of dependency: a package imports only what is above it.
LAYERS = [
    *["arrays", "caching", "defaults", "formatting", "_compiled", "frames", "errors"],
    *["runtime", "environment", "fitted_schema", "groups", "validation"],
    *["graphs", "datasets", "kernels", "losses", "metrics", "solvers"],
    *["model_selection", "preprocessing", "rankers", "dyadic", "auto"],
    *["uncertainty", "leaderboard", "inspection", "plot", "persistence", "distributed"],
    *["pages", "report", "judge", "cli", "__main__"],
]
LEVEL = {name: level for level, name in enumerate(LAYERS)}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def package_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_packages(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "rankwise":
                yield name.split(".")[1] if "." in name else "__init__"


def test_imports_point_down_the_layers():
    for path in MODULES:
        own = package_of(path)
        assert own in LEVEL, f"{own} has no layer: add it to LAYERS on purpose"
        for other in imported_packages(path):
            assert other != "__init__", f"{path} imports the top level"
            assert other == own or LEVEL[other] < LEVEL[own], f"{path} imports {other}"


CODE_LINES_OF_A_FILE = 400


@functools.cache
def code_lines(path):
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    docstrings = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings |= set(range(first.lineno, first.end_lineno + 1))
    return sum(
        1
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if number not in docstrings and line.strip() and not line.strip().startswith("#")
    )


def test_no_module_is_a_collection_of_helpers_or_too_long():
    for path in MODULES:
        assert path.stem not in {"utils", "misc", "helpers", "common", "tools"}
        assert code_lines(path) <= CODE_LINES_OF_A_FILE, path


def test_no_two_modules_share_a_basename():
    count = collections.Counter(path.stem for path in MODULES if path.stem != "__init__")
    del count["base"]
    assert not {name: n for name, n in count.items() if n > 1}


def test_no_module_has_the_name_of_a_public_function():
    import rankwise

    functions = set()
    for package in (rankwise, *(getattr(rankwise, name) for name in rankwise.__all__)):
        for name in getattr(package, "__all__", []):
            if inspect.isfunction(getattr(package, name)):
                functions.add(name)
    functions.remove("report")  # the module rankwise.report is named after its function
    assert not functions & {path.stem for path in MODULES}


def test_all_that_rankwise_exports_loads_nothing_beyond_scikit_learn():
    code = (
        "import sys, sklearn.linear_model; before = set(sys.modules); import rankwise;"
        "[getattr(rankwise, name) for name in rankwise.__all__];"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {"rankwise", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "lazy_loader"}
    foreign = set(loaded) - ours - set(sys.stdlib_module_names)
    assert "rankwise" in loaded
    assert not foreign


def test_the_command_starts_without_importing_the_heavy_packages():
    code = "import sys, rankwise.cli; print('numpy' in sys.modules, 'sklearn' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["False", "False"]


def test_the_stub_lists_the_public_names():
    import rankwise

    for name in rankwise.__all__:
        assert hasattr(rankwise, name)
        assert name in dir(rankwise)
    with pytest.raises(AttributeError, match="RankForest"):
        _ = rankwise.RankForest


REPOSITORY = Path(__file__).parents[2]
ARCHITECTURE = REPOSITORY / "docs" / "architecture.md"
PAGE_ROOTS = (SOURCE, REPOSITORY)


def test_every_path_on_the_architecture_page_exists():
    paths = re.findall(r"`([\w./]+(?:/|\.pyx?|\.md))`", ARCHITECTURE.read_text(encoding="utf-8"))
    assert len(paths) > 50
    missing = {path for path in paths if not any((root / path).exists() for root in PAGE_ROOTS)}
    assert not missing


def test_the_architecture_page_lists_the_packages_in_order_of_import():
    listing = ARCHITECTURE.read_text(encoding="utf-8").split("```text")[1].split("```")[0]
    rows = [re.split(r"\s{3,}", row.strip())[0] for row in listing.strip().splitlines()]
    names = [name for row in rows for name in re.findall(r"\w+", row)]
    assert names == [name for name in LAYERS if name != "__main__"]


def private_names_of_other_packages(path):
    """Private names that a module imports from another package."""
    for node in ast.walk(tree_of(path)):
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if module.startswith("rankwise.") and module.split(".")[1] != package_of(path):
            yield from (alias.name for alias in node.names if re.match(r"_[a-z]", alias.name))


def test_no_private_name_crosses_packages():
    crossing = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in MODULES
        for name in private_names_of_other_packages(path)
        if name != "_compiled"
    }
    assert not crossing


def test_only_packages_list_public_names():
    listing = [
        path
        for path in MODULES
        if path.stem not in ("__init__", "report") and "\n__all__" in path.read_text("utf-8")
    ]
    assert not listing


def test_no_test_imports_another_test():
    importing = set()
    for path in sorted((REPOSITORY / "tests").rglob("*.py")):
        for node in ast.walk(tree_of(path)):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if any(name.split(".")[-1].startswith("test_") for name in names):
                importing.add(str(path.relative_to(REPOSITORY)))
    assert not importing


def test_folders_of_tests_are_packages():
    other = {"base", "baseline", "experiments", "project"}  # base: modules outside packages
    folders = {path.parent for path in (REPOSITORY / "tests").rglob("test_*.py")}
    names = {path.name for path in folders if path.name != "tests"}
    assert names - other <= set(LAYERS)
