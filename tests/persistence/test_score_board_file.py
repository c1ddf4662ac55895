"""Boards of scores in files: the same board comes back, and a damaged file is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from rankwise.errors import ModelFileError
from rankwise.leaderboard import rate_scores
from rankwise.persistence import load, read_header, save
from tests.persistence.mutations import change_document, try_files
from tests.persistence.saved_boards import SCORE_BOARDS, SCORES, score_rows


def board_of(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rate_scores(score_rows(), **SCORES, **SCORE_BOARDS[kind])


@pytest.mark.parametrize("kind", SCORE_BOARDS)
def test_board_comes_back_as_it_was(tmp_path, kind):
    board, file = board_of(kind), tmp_path / "board.rw"
    save(board, file, notes={"of": kind})
    again = load(file)
    assert str(again) == str(board)
    np.testing.assert_array_equal(again.ratings, board.ratings)
    assert again.difference("m0", "m1") == board.difference("m0", "m1")
    assert read_header(file)["model"] == "TaskLeaderboard"


def test_damaged_board_is_refused(tmp_path):
    file = tmp_path / "board.rw"
    save(board_of("plain"), file)
    change_document(file, b'"confidence": 0.95', b'"confidence": 7.95')
    with pytest.raises(ModelFileError, match="confidence"):
        load(file)


@pytest.mark.filterwarnings("ignore")
def test_changed_boards_load_with_finite_ratings_or_are_refused(tmp_path):
    boards = {kind: (board_of(kind), None) for kind in SCORE_BOARDS}
    with np.errstate(all="ignore"):
        n_loaded, _ = try_files(boards, 60, tmp_path / "board.rw", np.random.default_rng(0))
    assert n_loaded < 45
