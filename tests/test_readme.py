"""The README is true: its code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
for folder in ("docs", "experiments", "benchmarks"):
    PAGES += sorted((ROOT / folder).glob("*.md"))


def blocks(language, page=ROOT / "README.md"):
    return re.findall(
        rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL
    )


def test_every_python_block_runs_in_order(capsys):
    namespace: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "ndcg@10" in printed
    assert "(1000, 4)" in printed
    assert "rankrls__alpha" in printed
    assert re.search(r"^\[\d \d \d \d\]$", printed, flags=re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if blocks("python", page)], ids=str)
def test_every_python_block_of_the_docs_runs_in_order(page):
    namespace: dict[str, object] = {}
    for block in blocks("python", page):
        exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize(
    "command", [line for block in blocks("console") for line in block.splitlines()]
)
def test_every_command_is_one_that_make_knows(command):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    if command.startswith("make "):
        target = command.split()[1]
        plan = subprocess.run(
            ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert plan.returncode == 0, plan.stderr
    else:  # `make test-install` runs it for real
        assert re.search(rf"{command.replace('pip install', 'pip install( --quiet)?')}\n", makefile)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link
