"""Boards in files: the same board comes back, with forecasts, and a damaged file is refused."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise.leaderboard import Scales, rate
from rankwise.persistence import ModelFileError, load, read_header, save
from tests.leaderboard.test_context import COLUMNS, IN_CONTEXT, games
from tests.leaderboard.test_rankings import random_lists

KINDS = {
    "plain": lambda: rate(games(), side=True, scale="elo", anchor="b", alpha="auto", **COLUMNS),
    "in context": lambda: rate(games(), scales=Scales(1.0, 0.5, 2.0, 0.3), **IN_CONTEXT),
    "dates": lambda: rate(
        games(), time=np.repeat(["2001-01-01", "2002-01-01"], 60), half_life=99.0, **COLUMNS
    ),
    "rankings": lambda: rate(random_lists(), confidence=0.9),
    "features": lambda: rate(games(), features=np.eye(4)[:, :2] + 1, alpha=0.1, **COLUMNS),
    "bootstrap": lambda: rate(games(), intervals="bootstrap", n_resamples=20, **COLUMNS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_board_comes_back_as_it_was(tmp_path, kind):
    board, file = KINDS[kind](), tmp_path / "board.rw"
    save(board, file, notes={"of": kind})
    again = load(file)
    assert str(again) == str(board)
    np.testing.assert_allclose(again.ratings, board.ratings, atol=1e-9)
    np.testing.assert_allclose(again.predict("a", "b"), board.predict("a", "b"), atol=1e-6)
    assert read_header(file)["model"] == "Leaderboard"
    assert read_header(file)["notes"] == {"of": kind}


def test_a_board_with_a_prior_is_not_kept_and_a_damaged_one_refused(tmp_path):
    prior = {"a": 1.0, "b": 0.0, "c": 0.5, "d": 2.0}
    with pytest.raises(ValueError, match="prior"):
        save(rate(games(), prior=prior, **COLUMNS), tmp_path / "board.rw")
    file = tmp_path / "board.rw"
    save(rate(games(), **COLUMNS), file)
    content = file.read_bytes()
    file.write_bytes(content.replace(b'"confidence": 0.95', b'"confidence": 7.95'))
    with pytest.raises(ModelFileError):
        load(file)
