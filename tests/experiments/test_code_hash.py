"""The hash of an experiment's code changes with what its results depend on, and only then."""

import pytest

from experiments.shared import code_hash as hashing

MODULES = {
    "experiments/table.py": "from rankwise import fit\n\n\nprint(fit(2))\n",
    "src/rankwise/__init__.py": "import lazy_loader\n",
    "src/rankwise/__init__.pyi": (
        "from .rankers import fit as fit\nfrom .plots import draw as draw\n"
    ),
    "src/rankwise/rankers/__init__.py": "from rankwise.rankers.linear import fit\n",
    "src/rankwise/rankers/linear.py": (
        '"""Fit."""\n\n\ndef fit(x):\n    if x < 0:\n        raise ValueError(f"got {x}")\n'
        "    from rankwise import solvers\n\n    return solvers.solve(x)\n"
    ),
    "src/rankwise/solvers.py": "def solve(x):\n    return 3 * x\n",
    "src/rankwise/plots.py": "def draw(x):\n    return x\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(hashing, "ROOT", tmp_path)
    monkeypatch.setattr(
        hashing,
        "FOLDERS",
        {"rankwise": tmp_path / "src" / "rankwise", "experiments": tmp_path / "experiments"},
    )
    forget_files()
    yield tmp_path
    forget_files()


def forget_files():
    for function in (hashing._tree, hashing._imported_modules, hashing._syntax):
        function.cache_clear()


def hash_after(folder, name, old, new):
    """The hash after a replacement in a file."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    forget_files()
    return hashing.code_hash("experiments.table")


def test_modules_are_found_through_packages_and_imports_inside_functions(folder):
    files = hashing.module_files("experiments.table")
    assert [path.name for path in files] == ["table.py", "linear.py", "solvers.py"]


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("experiments/table.py", "fit(2)", "fit(4)"),
        ("src/rankwise/rankers/linear.py", "x < 0", "x < 1"),
        ("src/rankwise/solvers.py", "3 * x", "4 * x"),
    ],
)
def test_code_changes_the_hash(folder, name, old, new):
    before = hashing.code_hash("experiments.table")
    assert hash_after(folder, name, old, new) != before
    assert hash_after(folder, name, new, old) == before


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("src/rankwise/rankers/linear.py", '"""Fit."""', '"""Fit a line."""'),
        ("src/rankwise/rankers/linear.py", "got {x}", "x must not be negative, got {x}"),
        ("src/rankwise/solvers.py", "return 3", "# three times\n    return 3"),
        ("src/rankwise/plots.py", "return x", "return 2 * x"),
    ],
)
def test_prose_and_modules_that_are_not_imported_do_not_change_the_hash(folder, name, old, new):
    before = hashing.code_hash("experiments.table")
    assert hash_after(folder, name, old, new) == before
