"""Progress is drawn for a person and not for a file."""

from __future__ import annotations

import numpy as np

from rankwise import RankRLS, RankRLSCV
from rankwise.model_selection import cross_val_predict_groups
from rankwise.runtime.progress import track


def test_all_steps_are_passed_on_and_counted(capsys):
    assert list(track(["a", "b", "c"], "work", show=True)) == ["a", "b", "c"]
    drawn = capsys.readouterr().err
    assert [f"{done}/3" in drawn for done in range(4)] == [True] * 4
    assert drawn.endswith("\n")


def test_nothing_is_drawn_where_nobody_looks(capsys):
    assert list(track([1, 2], "work")) == [1, 2]
    assert list(track([], "work", show=True)) == []
    assert capsys.readouterr().err == ""


def test_folds_show_progress_unless_they_are_one_decomposition(capsys, monkeypatch):
    monkeypatch.setattr("rankwise.runtime.progress.Progress.DELAY", 0.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    cross_val_predict_groups(RankRLS(cost="sign"), X, y, cv=5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    cross_val_predict_groups(RankRLS(), X, y, cv=5)
    assert capsys.readouterr().err == ""
    cross_val_predict_groups(RankRLS(cost="sign"), X, y, cv=5)
    assert "5/5" in capsys.readouterr().err
    RankRLSCV().fit(X, y, np.arange(20) % 4)
    assert "holding out" in capsys.readouterr().err


def test_short_work_leaves_no_line_on_a_terminal_and_long_work_does(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(track([1, 2], "work")) == [1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("rankwise.runtime.progress.Progress.DELAY", 0.0)
    assert list(track([1, 2], "work")) == [1, 2]
    assert "2/2\n" in capsys.readouterr().err


def test_a_line_of_many_steps_is_drawn_a_few_times_and_filled(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("rankwise.runtime.progress.Progress.DELAY", 0.0)
    monkeypatch.setattr("rankwise.runtime.progress.Progress.PAUSE", 60.0)
    list(track(range(1000), "work"))
    assert capsys.readouterr().err.count("work") == 2
