"""The wheel contains the files that the pages are made of."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]

WRITE_PAGES = """
import sys
from pathlib import Path

import rankwise
from rankwise import RankRLS
from rankwise.datasets import make_ranking
from rankwise.leaderboard import rate
from rankwise.report import board_page, report

folder = Path(sys.argv[1])
X, y, groups = make_ranking(n_queries=6, random_state=0)[:3]
report(RankRLS().fit(X, y, groups), X, y, groups).save(folder / "report.html")
board_page(rate({"winner": list("ABAC"), "loser": list("BCCA")})).save(folder / "board.html")
print(rankwise.__file__)
"""


@pytest.mark.slow
def test_an_installed_wheel_writes_both_pages(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info")
    )
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    built = subprocess.run(
        [*PIP, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(source)],
        capture_output=True,
        text=True,
        env={**os.environ, "RANKWISE_PURE": "1"},
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    environment = tmp_path / "venv"
    venv.create(environment, system_site_packages=False, with_pip=False)
    (packages,) = environment.glob("lib/python*/site-packages")
    install = [*PIP, "install", "--no-deps", "--target", str(packages), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # NumPy, SciPy and the other dependencies come from here; the wheel comes first.
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(dependencies), encoding="utf-8")
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-c", WRITE_PAGES, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(packages)
    for name in ("report", "board"):
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert "</html>" in page
