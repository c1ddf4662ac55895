"""The page of a board of scores: its numbers are those of the board, nothing in it can run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rankwise.leaderboard import rate_scores
from rankwise.pages.board.score_page import score_headline
from rankwise.report import board_page
from tests.pages.data import HOSTILE, assert_nothing_foreign_runs, data_of


def make_board(n_models=8, seed=0, **options):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_models, 10)) - 2.0 * np.arange(n_models)[:, None]
    scores[2, :4] = np.nan
    scores[5, 7:] = np.nan
    frame = pd.DataFrame(scores, columns=[f"t{k}" for k in range(10)])
    frame.index = [f"m{k}" for k in range(n_models)]
    return rate_scores(frame, **options), scores


def test_rows_tasks_and_missing_cells_are_those_of_the_board():
    board, scores = make_board()
    (page,) = data_of(str(board_page(board)))["boards"]
    assert page["rows"]["item"] == [row.item for row in board]
    assert page["rows"]["best_rank"] == [row.best_rank for row in board]
    np.testing.assert_allclose(page["rows"]["rating"], [row.rating for row in board], rtol=1e-6)
    assert [task["task"] for task in page["tasks"]] == [task.task for task in board.tasks]
    assert page["nMissing"] == 7
    for name, cells in zip(page["rows"]["item"], page["missing"], strict=True):
        columns = [int(task[1:]) for task in page["missingTasks"]]
        expected = np.isnan(scores[int(name[1:]), columns])
        assert cells == "".join(str(int(cell)) for cell in expected)


def test_complete_board_has_no_map():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4, 6)), index=list("abcd"), columns=list("uvwxyz"))
    (page,) = data_of(str(board_page(rate_scores(frame))))["boards"]
    assert page["missing"] == []
    assert page["missingShare"] == 0


def test_headline_names_the_models_that_may_be_the_best():
    board, _ = make_board()
    tied = [row.item for row in board if row.best_rank == 1]
    sentence = score_headline(board)
    for name in tied:
        assert name in sentence
    assert ("may be the best" in sentence) == (len(tied) > 1)


def test_headline_of_a_single_ranked_model_compares_it_with_nobody():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4, 10))
    scores[1, 0] = scores[2, 1] = scores[3, 2] = np.nan
    frame = pd.DataFrame(scores, index=list("abcd"), columns=[f"t{k}" for k in range(10)])
    board = rate_scores(frame, min_tasks=1.0)
    assert score_headline(board).endswith("has enough tasks for a rank.")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hostile_names_stay_text():
    _, scores = make_board()
    names = [f"{HOSTILE} {k}" for k in range(8)]
    tasks = [f"{HOSTILE} {k}" for k in range(10)]
    frame = pd.DataFrame(scores, index=names, columns=tasks)
    page = board_page(rate_scores(frame), title=HOSTILE)
    assert_nothing_foreign_runs(str(page))
