"""Figures that would mislead without a word."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("click")

from rankwise.cli.item_scores import are_ranks
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


def test_ranks_that_are_evaluated_as_scores_are_noticed(table, tmp_path):
    model = tmp_path / "m.rw"
    run("train", table, "--target", "rating", "--group", "user", "--ignore", "copy", "-o", model)
    run("predict", model, table, "-o", tmp_path / "scores.csv")
    run("predict", model, table, "--rank", "-o", tmp_path / "ranks.csv")
    options = [table, "--target", "rating", "--group", "user"]
    for name, is_noticed in (("scores", False), ("ranks", True)):
        with_column = (tmp_path / f"{name}.csv").read_text().splitlines()[1:]
        alone = tmp_path / f"{name}.txt"
        alone.write_text("\n".join(line.split(",")[-1] for line in with_column))
        notes = run("evaluate", alone, *options).stderr
        assert ("--rank" in notes) == is_noticed


def test_equal_ranks_are_ranks_and_ratings_are_not():
    groups = np.array([0, 1, 0, 1, 0, 1])
    assert are_ranks(np.array([1.0, 2, 2, 2, 2, 1]), groups)
    assert not are_ranks(np.array([1.0, 1, 2, 2, 3, 3]), np.array([0, 0, 0, 1, 1, 1]))
    assert not are_ranks(np.ones(6), groups)
    assert are_ranks(np.arange(6.0)[::-1] + 1, None)
