"""Imports go one way, rooms stay small, and importing rankwise is cheap."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "rankwise"
LAYERS = [
    {"arrays", "text_tables"},
    {"frames"},
    {"errors", "machine", "groups", "rows", "_compiled"},
    {"inputs", "environment"},
    {"graphs"},
    {"features", "losses", "metrics", "datasets"},
    {"solvers"},
    {"model_selection"},
    {"estimators"},
    {"uncertainty"},
    {"leaderboard"},
    {"dask", "persistence", "inspection"},
    {"plot", "report", "judge"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def part_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_parts(path):
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
        own = part_of(path)
        assert own in LEVEL, f"{own} has no layer: add it to LAYERS on purpose"
        for other in imported_parts(path):
            assert other != "__init__", f"{path} imports the front door"
            assert other == own or LEVEL[other] < LEVEL[own], f"{path} imports {other}"


# Code lines of each room, without docstrings, comments and blank lines. A change may lower one;
# it raises it only with a line in docs/decisions.md that says what it buys.
BUDGET = {
    ".": 1069,
    "_compiled": 227,
    "cli": 2139,
    "dask": 338,
    "datasets": 2394,
    "estimators": 4626,
    "features": 503,
    "graphs": 1040,
    "inspection": 312,
    "judge": 830,
    "leaderboard": 2697,
    "losses": 544,
    "metrics": 1000,
    "model_selection": 1474,
    "persistence": 1125,
    "plot": 331,
    "report": 1119,
    "solvers": 1576,
    "uncertainty": 850,
}
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


def test_no_module_is_a_dumping_ground_or_a_monster():
    for path in MODULES:
        assert path.stem not in {"utils", "misc", "helpers", "common", "tools"}
        assert code_lines(path) <= CODE_LINES_OF_A_FILE, path


def test_no_room_grows():
    sizes = dict.fromkeys(BUDGET, 0)
    for path in SOURCE.rglob("*.py"):
        room = path.parent.name if path.parent != SOURCE else "."
        assert room in BUDGET, f"{room} has no budget: give it one on purpose"
        sizes[room] += code_lines(path)
    grown = {room: (sizes[room], most) for room, most in BUDGET.items() if sizes[room] > most}
    assert not grown, "code lines, and the budget: say in docs/decisions.md what a raise buys"


def test_all_that_rankwise_exports_loads_nothing_beyond_scikit_learn():
    code = (
        "import sys, sklearn.linear_model; before = set(sys.modules); import rankwise;"
        "[getattr(rankwise, name) for name in rankwise.__all__];"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {"rankwise", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}
    foreign = set(loaded) - ours - set(sys.stdlib_module_names)
    assert "rankwise" in loaded
    assert not foreign


def test_the_front_door_opens_without_waiting_for_the_heavy_packages():
    code = "import sys, rankwise.cli; print('numpy' in sys.modules, 'sklearn' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["False", "False"]


def test_front_door_lists_what_it_exports():
    import rankwise

    for name in rankwise.__all__:
        assert hasattr(rankwise, name)
        assert name in dir(rankwise)
    stub = (SOURCE / "__init__.pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r"import \w+ as (\w+)$", stub, re.M)) == rankwise.__all__
    with pytest.raises(AttributeError, match="no attribute 'RankForest'"):
        _ = rankwise.RankForest


REPOSITORY = Path(__file__).parents[2]
MAP = REPOSITORY / "docs" / "architecture.md"
MAP_ROOTS = (SOURCE, REPOSITORY)


def test_every_path_on_the_map_exists():
    paths = re.findall(r"`([\w./]+(?:/|\.pyx?|\.md))`", MAP.read_text(encoding="utf-8"))
    assert len(paths) > 50
    missing = {path for path in paths if not any((root / path).exists() for root in MAP_ROOTS)}
    assert not missing


def test_every_room_is_on_the_map_and_above_all_that_it_imports():
    picture = MAP.read_text(encoding="utf-8").split("```text")[1].split("```")[0]
    rows = [re.findall(r"(\w+)/", row) for row in picture.splitlines()]
    layers = [{LEVEL[room] for room in row} for row in rows if row]
    assert all(len(layer) == 1 for layer in layers)
    heights = [layer.pop() for layer in layers]
    assert heights == sorted(set(heights), reverse=True)
    rooms = {path.parent.name for path in MODULES if path.parent != SOURCE}
    assert {room for row in rows for room in row} == rooms
    single = {path.stem for path in MODULES if path.parent == SOURCE} - {"__main__"}
    assert single <= set(re.findall(r"\w+", picture))


def private_names_of_other_rooms(path):
    """Private names that a module imports from another room."""
    for node in ast.walk(tree_of(path)):
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if module.startswith("rankwise.") and module.split(".")[1] != part_of(path):
            yield from (alias.name for alias in node.names if re.match(r"_[a-z]", alias.name))


def test_no_private_name_crosses_rooms():
    crossing = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in MODULES
        for name in private_names_of_other_rooms(path)
        if name != "_compiled"
    }
    assert not crossing


def test_only_front_doors_list_their_names():
    listing = [
        path
        for path in MODULES
        if path.stem != "__init__" and "\n__all__" in path.read_text("utf-8")
    ]
    assert not listing
