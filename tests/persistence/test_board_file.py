"""Boards in files: the same board comes back, with forecasts, and a damaged file is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rankwise.datasets import pairs_from_frame
from rankwise.errors import ModelFileError
from rankwise.leaderboard import rate
from rankwise.persistence import load, read_header, save
from rankwise.persistence.board_file import board_facts, restore_board
from tests.leaderboard.data import COLUMNS, games, random_lists
from tests.persistence.mutations import change_document, try_files
from tests.persistence.saved_boards import BOARDS


@pytest.mark.parametrize("kind", BOARDS)
def test_a_board_comes_back_as_it_was(tmp_path, kind):
    board, file = BOARDS[kind](), tmp_path / "board.rw"
    save(board, file, notes={"of": kind})
    again = load(file)
    assert str(again) == str(board)
    np.testing.assert_allclose(again.ratings, board.ratings, atol=1e-9)
    np.testing.assert_allclose(again.predict("a", "b"), board.predict("a", "b"), atol=1e-6)
    assert read_header(file)["model"] == "Leaderboard"
    assert read_header(file)["notes"] == {"of": kind}


def test_a_damaged_board_is_refused(tmp_path):
    file = tmp_path / "board.rw"
    save(rate(games(), **COLUMNS), file)
    change_document(file, b'"confidence": 0.95', b'"confidence": 7.95')
    with pytest.raises(ModelFileError, match="confidence"):
        load(file)


def test_changed_boards_load_and_have_finite_ratings_or_are_refused(tmp_path):
    boards = {kind: (make(), None) for kind, make in BOARDS.items()}
    with np.errstate(all="ignore"):
        n_loaded, _ = try_files(boards, 60, tmp_path / "board.rw", np.random.default_rng(0))
    assert 1 < n_loaded < 30


@pytest.mark.parametrize("ranking", [np.array([10**8]), np.array([-1]), np.zeros(5000)])
def test_rankings_with_other_numbers_or_far_more_pairs_are_refused(ranking):
    board = rate(random_lists())
    lists = board.comparisons.rankings
    if len(ranking) == 1:
        changed = replace(lists, ranking=np.r_[ranking, lists.ranking[1:]])
    else:
        numbers = ranking.astype(int)
        changed = replace(lists, ranking=numbers, item=numbers, place=numbers + 1.0)
    facts = board_facts(replace(board, comparisons=replace(board.comparisons, rankings=changed)))
    with pytest.raises(ValueError, match="ranking"):
        restore_board(facts)


@pytest.mark.parametrize("field", ["covariates", "contexts"])
@pytest.mark.parametrize("values", [None, 0, "", []])
def test_covariates_and_contexts_of_a_board_that_are_no_dictionary_are_refused(field, values):
    facts = board_facts(rate(games(), **COLUMNS))
    comparisons = {**facts["comparisons"], field: values}
    with pytest.raises(ValueError, match="covariates or contexts of a board"):
        restore_board({**facts, "comparisons": comparisons})


def test_a_board_of_short_ballots_over_many_items_comes_back(tmp_path):
    ballots = [[f"item {k}", f"item {(k + 1) % 150}"] for k in range(150)]
    board = rate(pairs_from_frame(ballots, unlisted="last"), intervals=False)
    file = tmp_path / "board.rw"
    save(board, file)  # nearly all pairs of items have no place, and are not pairs of the board
    np.testing.assert_allclose(load(file).ratings, board.ratings, atol=1e-9)
