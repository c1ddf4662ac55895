"""The README and the page about the command line are true: their commands run, in order."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click")

from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command_line.md"
WRITTEN = {
    "command_line.md": [
        "demo/report.html",
        "report.html",
        "with_scores.csv",
        "board.csv",
        "board.html",
        "model.onnx",
        "solr.json",
    ],
    "README.md": ["hotels.rw", "board.html"],
}


def commands(page):
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield command, shown


def first_word(row):
    return row.split()[0] if row.split() else ""


def write_tables(folder):
    """The small files that the page takes for granted."""
    rng = np.random.default_rng(0)
    tables = {
        "houses": ["house_id,size,address,sold,rooms,heating,district,price"],
        "new_houses": [
            "rooms,size,color,heating,district,sold",
            "3,80,red,gas,north,2025-01-31",
            ",100,blue,,north,",
            "1,20,red,peat,south,2025-02-01",
        ],
        "hotels": ["search,price,stars,km,grade"],
        "games": ["winner,loser,judge"],
        "battles": ["left,right,winner"],
        "benchmark": ["model,task,kind,score"],
        "players": ["name,age,hand,team", "Ann,20,L,0", "Bob,23,R,0", "Cleo,26,L,1", "Dan,29,R,1"],
    }
    for k in range(40):
        size, rooms = rng.integers(20, 200), rng.integers(1, 7)
        heating = "" if k % 8 == 3 else ["gas", "oil", "wood"][k % 3]
        district = "north" if k % 2 else "south"
        sold, known = f"2024-{1 + k % 12:02d}-01", "" if k % 10 == 7 else rooms
        tables["houses"].append(
            f"{700 + 3 * k},{size},{k} Main Street,{sold},{known},{heating},{district},"
            f"{3 * size + 20 * rooms + rng.integers(50)}"
        )
    for k in range(120):
        price, stars = rng.integers(40, 300), rng.integers(1, 6)
        grade = int(np.clip(stars - price / 60 + rng.normal(), 0, 3))
        tables["hotels"].append(f"{k // 6},{price},{stars},{k % 7},{grade}")
    for k in range(60):
        model, task = f"m{k % 6}", k // 6
        score = 0.5 - k % 6 / 50 + task / 40 + rng.normal() / 30
        tables["benchmark"].append(f"{model},t{task},{'abcde'[task % 5]},{score:.3f}")
    for k in range(60):
        a, b = rng.choice(["Ann", "Bob", "Cleo", "Dan"], 2, replace=False)
        winner, loser = (max(a, b), min(a, b)) if k % 5 else (a, b)
        tables["games"].append(f"{winner},{loser},{k % 7}")
        tables["battles"].append(f"{a},{b},{['left', 'right', 'tie'][k % 3]}")
    tables["new"] = [tables["hotels"][0], *tables["hotels"][100:]]
    tables["new_games"], tables["new_players"] = tables["games"][:3], tables["players"]
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(rows))


@pytest.mark.parametrize("page", [PAGE, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_command_of_the_page_succeeds_in_order(page, tmp_path, monkeypatch):
    from rankwise.cli.app import app

    write_tables(tmp_path)
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)
    for line, shown in commands(page):
        words = shlex.split(line)
        assert words[0] == "rankwise", line
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception!r}"
        printed = [first_word(row) for row in done.stdout.splitlines()]
        assert [first_word(row) for row in shown if row != "…"] == printed[: len(shown)]
    for name in WRITTEN[page.name]:
        assert (tmp_path / name).stat().st_size > 0, name


def test_the_refusal_that_the_page_shows_is_what_the_command_says(tmp_path):
    from rankwise.cli.app import app

    text = PAGE.read_text(encoding="utf-8")
    shown = re.search(r"^    \$ rankwise (.*)\n    (rankwise: .*)$", text, flags=re.MULTILINE)
    arguments = shlex.split(shown[1])
    done = CliRunner().invoke(app, [*arguments[:-1], str(tmp_path / "model.rw")])
    assert done.exit_code == 1
    assert done.stderr.startswith(shown[2].removesuffix("…"))


PAGES = {ROOT / "README.md", *PAGE.parent.glob("*.md")} - {PAGE.parent / "measured.md"}


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.stem)
def test_options_that_a_page_names_are_there(page):
    from rankwise.cli.app import app

    commands = [app, *app.commands.values()]
    known = {option for one in commands for parameter in one.params for option in parameter.opts}
    text = re.sub(r"`python -m [^`]*`|pip install.*", "", page.read_text(encoding="utf-8"))
    named = set(re.findall(r"`(?:[^`\n]* )?(--[a-z][a-z0-9-]+)", text))
    assert named <= known | {"--help"}
