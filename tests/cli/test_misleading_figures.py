"""Figures that would mislead without a word."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("click")

from tests.cli.shell import run


@pytest.fixture
def table(tmp_path):
    """Ratings from 1 to 5 in two groups, and a copy of them among the columns."""
    rng = np.random.default_rng(0)
    path = tmp_path / "ratings.csv"
    ratings, noise = rng.integers(1, 6, 60), rng.normal(size=(60, 2))
    rows = [
        f"{k // 30},{y},{7 + 2 * y},{a:.3f},{y + 3 * b:.3f}"
        for k, (y, (a, b)) in enumerate(zip(ratings, noise, strict=True))
    ]
    path.write_text("\n".join(["user,rating,copy,a,b", *rows]))
    return path


def test_a_perfect_score_is_questioned(table, tmp_path):
    model = tmp_path / "m.rw"
    options = [table, "--target", "rating", "--group", "user"]
    said = run("train", *options, "-o", model)
    assert "perfect score" in said.stderr
    assert "perfect score" in run("evaluate", model, table).stderr
    said = run("train", *options, "--ignore", "copy", "-o", model)
    assert "perfect score" not in said.stderr


def test_two_groups_and_ratings_without_a_zero(table, tmp_path):
    model = tmp_path / "m.rw"
    run("train", table, "--target", "rating", "--group", "user", "--ignore", "copy", "-o", model)
    said = run("evaluate", model, table).stdout
    assert "an interval from 2 groups is a rough guess" in said
    assert "map" not in said
    assert "ndcg@10" in said
