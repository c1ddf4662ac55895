"""The list of docs/papers.md names tests and experiments that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def test_every_test_of_the_list_exists():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    defined = set(re.findall(r"^def (test_\w+)", "\n".join(sources), re.MULTILINE))
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 60
    assert named <= defined


def test_every_experiment_of_the_list_exists():
    named = set(re.findall(r"`((?:rankrls|treersvm|corankrls|pursuit)\d\d\.\w+)`", PAGE))
    assert len(named) > 20
    assert {name for name in named if not module_path(name).is_file()} == set()


def module_path(name):
    folder, module = name.split(".")
    return ROOT / "experiments" / folder / f"{module}.py"


def test_the_list_has_128_items():
    section = PAGE.partition("## Every method, equation and claim")[2]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    headers = [line for line in rows if line.startswith("| item ")]
    assert len(rows) - len(headers) == 128
