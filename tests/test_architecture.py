"""Imports go one way, and importing rankwise is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "rankwise"
LAYERS = [
    {"arrays", "real_numbers"},
    {"errors", "options", "memory", "threads", "groups", "progress", "rows", "_compiled"},
    {"targets", "environment"},
    {"graphs"},
    {"features", "losses", "metrics", "datasets", "sums"},
    {"solvers"},
    {"estimators"},
    {"model_selection", "dask", "persistence", "leaderboard"},
    {"plot", "report"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def part_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_parts(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_no_module_is_a_dumping_ground_or_a_monster():
    for path in MODULES:
        assert path.stem not in {"utils", "misc", "helpers", "common", "tools"}
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path


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
    with pytest.raises(AttributeError, match="no attribute 'RankForest'"):
        _ = rankwise.RankForest
