"""The simulation of how many answers `rankwise judge` needs."""

import numpy as np

from experiments.boards import answers_needed


def test_a_consistent_person_settles_the_best_items():
    session = answers_needed.judge_until_settled(6, np.inf, np.random.default_rng(0))
    assert session.is_settled
    assert session.is_correct
    assert 6 < session.n_answers < 60


def test_a_run_ends_at_the_limit_of_answers(monkeypatch):
    monkeypatch.setattr(answers_needed, "MAX_ANSWERS_PER_ITEM", 2)
    session = answers_needed.judge_until_settled(6, 0.01, np.random.default_rng(0))
    assert session.n_answers == 12
    assert not session.is_settled


def test_every_question_is_answered_by_the_strengths():
    rng = np.random.default_rng(0)
    strengths = np.array([0.0, 2.0])
    assert answers_needed.is_first_better(1, 0, strengths, True, rng)
    assert not answers_needed.is_first_better(0, 1, strengths, True, rng)
    wins = [answers_needed.is_first_better(1, 0, strengths, False, rng) for _ in range(2000)]
    assert abs(np.mean(wins) - 1 / (1 + np.exp(-2))) < 0.03


def test_the_table_has_a_row_for_each_size_and_person(monkeypatch, capsys):
    monkeypatch.setattr(answers_needed, "SIZES", (5,))
    monkeypatch.setattr(answers_needed, "PERSONS", {"consistent": np.inf})
    answers_needed.main(["--runs", "2"])
    assert "consistent" in capsys.readouterr().out
