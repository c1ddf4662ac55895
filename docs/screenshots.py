"""Take the pictures of the site and of README anew: ``make screenshots``.

Every page is made on the spot and photographed in Chromium, light and dark, without scroll bars.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rankwise.leaderboard import rate, rate_scores  # noqa: E402
from rankwise.report import board_page  # noqa: E402
from tests.browser import find, set_screen, start_browser, wait_for  # noqa: E402

STATIC = ROOT / "docs" / "_static"
SCHEMES = {"light": "", "dark": "-dark"}
HEIGHT = 880
CHEESES = """name,from,price
Brie,Meaux,9
Comté,Arbois,14
Roquefort,Roquefort-sur-Soulzon,17
Gruyère,Fribourg,13
Feta,Lesbos,8
Gouda,Gouda,7
Manchego,Toledo,15
Stilton,Derby,16
"""


def photograph(page, name: str, height: int = HEIGHT) -> None:
    """The top of the page as it stands."""
    area = {"x": 0, "y": 0, "width": 1200, "height": height, "scale": 1}
    shot = page.execute_cdp_cmd("Page.captureScreenshot", {"clip": area})
    (STATIC / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
    print(f"docs/_static/{name}.png")


def photograph_file(page, path: Path, name: str) -> None:
    """A page of its own, light and dark."""
    for scheme, ending in SCHEMES.items():
        set_screen(page, 1200, scheme)
        page.get(path.as_uri())
        photograph(page, name + ending)


def make_board(path: Path) -> None:
    """Votes on eight models, one of them new."""
    rng = np.random.default_rng(1)
    names = np.array(["Aquila", "Boreas", "Corvus", "Draco", "Equuleus", "Fornax", "Gemini", "Hydra"])
    strength = np.r_[np.linspace(1.1, -1.1, 7), 0.3]
    often = np.r_[np.ones(7), 0.1]
    left, right = (rng.choice(8, 900, p=often / often.sum()) for _ in range(2))
    left, right = left[left != right], right[left != right]
    won = rng.random(len(left)) < 1 / (1 + np.exp(strength[right] - strength[left]))
    votes = {
        "model_a": names[left],
        "model_b": names[right],
        "winner": np.where(won, "model_a", "model_b"),
        "judge": rng.integers(30, size=len(left)),
    }
    board = rate(
        votes, sides=("model_a", "model_b"), outcome="winner", judge="judge", scale="elo"
    )
    board_page(board, title="Eight models, 30 judges").save(path)


def make_score_board(path: Path) -> None:
    """The table of docs/scores_over_tasks.md, with missing scores."""
    rng = np.random.default_rng(7)
    kinds = ["retrieval"] * 6 + ["classify"] * 5 + ["similar"] * 5
    strength = np.array([0.80, 0.79, 0.78, 0.74, 0.72, 0.66])
    scores = strength[:, None] + rng.normal(0, 0.08, 16) + rng.normal(0, 0.02, (6, 16))
    scores[1, :5] = np.nan
    names = [f"{kind}-{k}" for k, kind in enumerate(kinds)]
    table = {"model": ["owl", "crow", "jay", "wren", "lark", "coot"]}
    table |= {name: column.round(3) for name, column in zip(names, scores.T, strict=True)}
    board = rate_scores(table, item="model", score=names)
    board_page(board, title="Six models on 16 tasks").save(path)


def photograph_judge(page, folder: Path) -> None:
    """The question, and the board after some answers."""
    items = folder / "cheese.csv"
    items.write_text(CHEESES, encoding="utf-8")
    command = [sys.executable, "-m", "rankwise", "judge", str(items), "--port", "0"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = next(line.split()[1] for line in program.stdout if line.startswith("Open "))
        set_screen(page, 1200, "light")
        page.get(url)
        find(page, "#name").send_keys("Ann\n")
        wait_for(page, lambda: find(page, "#first .content").text != "")
        order = [line.split(",")[0] for line in CHEESES.splitlines()[1:]]
        for _ in range(24):
            places = [
                next(k for k, name in enumerate(order) if name in find(page, f"#{side}").text)
                for side in ("first", "second")
            ]
            keys = "\ue012" if places[0] < places[1] else "\ue014"  # left, right
            find(page, "body").send_keys(keys)
            time.sleep(0.3)
        for scheme, ending in SCHEMES.items():
            set_screen(page, 1200, scheme)
            time.sleep(0.3)
            page.execute_script("window.scrollTo(0, 0)")
            photograph(page, "judge" + ending, 480)
    finally:
        program.terminate()
        program.wait()


def main() -> None:
    """All of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = start_browser(folder / "profile")
        page.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        try:
            demo = folder / "demo"
            subprocess.run([sys.executable, "-m", "rankwise", "demo", "-o", str(demo)], check=True)
            photograph_file(page, demo / "report.html", "report")
            make_board(folder / "board.html")
            photograph_file(page, folder / "board.html", "board")
            make_score_board(folder / "scores.html")
            photograph_file(page, folder / "scores.html", "scores")
            photograph_judge(page, folder)
        finally:
            page.quit()


if __name__ == "__main__":
    main()
