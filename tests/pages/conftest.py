"""Pages that the browser opens: reports and boards of all kinds, made once."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import PairGraph, RankRLS, RankRLSCV
from rankwise.datasets import make_ranking
from rankwise.leaderboard import PriorScales, rate, rate_groups, rate_scores
from rankwise.report import board_page, report
from tests.browser import set_screen
from tests.pages.data import HOSTILE_TITLE, ODD_NAMES, board_of, columns_of, make_battles


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Folder of pages by name."""
    folder = tmp_path_factory.mktemp("pages")
    write_reports(folder)
    write_boards(folder)
    write_score_boards(folder)
    return folder


@pytest.fixture
def open_page(browser, pages):
    browser.get_log("browser")

    def open_it(name, width=1200, scheme="light", address=""):
        set_screen(browser, width, scheme)
        browser.get("about:blank")
        browser.get((pages / f"{name}.html").as_uri() + address)
        return browser

    yield open_it
    assert browser.get_log("browser") == []


def write_reports(folder):
    """Grouped with a search, one list, odd names, no difference, ties, any size, many groups."""
    X, y, groups = make_ranking(n_queries=24, n_documents=(3, 12), n_features=6, random_state=0)[:3]
    old = groups < 12
    model = RankRLSCV().fit(X[old], y[old], groups[old])
    report(model, X[~old], y[~old], groups[~old], title="Grouped").save(folder / "grouped.html")
    X, y, _ = make_ranking(n_queries=1, n_documents=400, n_levels=None, random_state=0)[:3]
    report(RankRLS(kernel="rbf").fit(X, y), X, y, metrics=("tau", "disagreement")).save(
        folder / "list.html"
    )
    rng = np.random.default_rng(0)
    features, truth = rng.normal(size=(60, 6)), rng.integers(0, 4, 60)
    report(
        *(RankRLS().fit(features, truth), features, truth),
        [ODD_NAMES[i % 6] for i in range(60)],
        ids=[ODD_NAMES[(i // 6) % 6] for i in range(60)],
        feature_names=ODD_NAMES,
        title=HOSTILE_TITLE,
    ).save(folder / "odd.html")
    flat, truth = np.zeros((12, 3)), np.arange(12) % 3
    model = RankRLS().fit(flat, truth)
    report(model, flat, truth).save(folder / "flat.html")
    tied = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, *range(10)]
    truth = [*np.arange(10) % 3, *range(10)]
    report(tied, None, truth, [0] * 10 + [1] * 10, metrics="tau").save(folder / "tied.html")
    features, truth = rng.normal(size=(40, 4)), rng.integers(0, 3, 40)
    labels = np.repeat(["a rather long name of the group number 1", f"{'and another ' * 4}2"], 20)
    for name, size in (("huge", 1e200), ("tiny", 1e-200)):
        model = RankRLS().fit(features, truth, labels)
        model.coef_ = model.coef_ * size
        report(model, features, truth, labels, metrics="tau").save(folder / f"{name}.html")
    ids = [f"a long name that differs from the others at its very end only, {k}" for k in range(40)]
    report(
        *(RankRLS().fit(features, truth, labels), features, truth, labels),
        ids=ids,
        feature_names=ids[:4],
    ).save(folder / "long.html")
    scores, truth = rng.normal(size=1200), rng.integers(0, 3, 1200)
    report(scores, None, truth, np.repeat(np.arange(300), 4)).save(folder / "many.html")


def write_score_boards(folder):
    """Models with missing scores, with usual and with odd names."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6, 12)) - np.arange(6)[:, None]
    scores[2, :5] = np.nan
    scores[4, 8:] = np.nan
    frames = {
        "scores": ([f"model {k}" for k in range(6)], [f"task {k}" for k in range(12)]),
        "odd_scores": (ODD_NAMES[:6], [f"{ODD_NAMES[k % 6]} {k}" for k in range(12)]),
    }
    for name, (models, tasks) in frames.items():
        table = {"model": models, **dict(zip(tasks, scores.T, strict=True))}
        board = rate_scores(table, item="model", score=tasks)
        board_page(board, title=HOSTILE_TITLE).save(folder / f"{name}.html")


def moving_board():
    """Three players, two of whom change places over the years."""
    years = np.repeat(np.arange(2001, 2011), 12)
    rng = np.random.default_rng(0)
    names = np.array(["Rise", "Fall", "Calm"])
    first = np.tile([0, 1, 2], 40)
    second = np.tile([1, 2, 0], 40)
    strength = np.stack([years - 2005.5, 2005.5 - years, 0 * years]) / 2
    rows = np.arange(120)
    chance = 1 / (1 + np.exp(strength[second, rows] - strength[first, rows]))
    won = rng.random(120) < chance
    games = {
        "winner": names[np.where(won, first, second)],
        "loser": names[np.where(won, second, first)],
        "date": [f"{year}-06-01" for year in years],
    }
    return rate(games, time="date", scales=PriorScales(0.5, 1.5, 2000.0))


def write_boards(folder):
    """All parts, several boards, odd names, many items, no intervals."""
    board_page(moving_board(), title="Over time").save(folder / "moving.html")
    names = ["Ann", "Bob", "Cleo", "Dan", "Eve", "a player with a rather long name"]
    rows = [*make_battles(names=names), ("Zoe", "Ann", "left", "j1", 0.0)]
    full = board_of(rows, judge="judge", side=True, covariates=["length"], scale="elo")
    board_page(full, title="Full").save(folder / "full.html")
    rows = make_battles(names=ODD_NAMES)
    odd = board_of(rows, judge="judge")
    board_page({HOSTILE_TITLE: odd, "second": odd}, title=HOSTILE_TITLE).save(
        folder / "odd_board.html"
    )
    boards = rate_groups(
        columns_of(make_battles()),
        ["old" if k < 90 else "new" for k in range(300)],
        sides=("left", "right"),
        outcome="better",
    )
    board_page(boards).save(folder / "several.html")
    rng = np.random.default_rng(0)
    first = rng.integers(2000, size=12_000)
    second = (first + 1 + rng.integers(1999, size=12_000)) % 2000
    won = rng.random(12_000) < 1 / (1 + np.exp((first - second) / 700))
    labels = [f"item {k}" for k in range(2000)]
    games = PairGraph(np.where(won, first, second), np.where(won, second, first), items=labels)
    board_page(rate(games, intervals=False, alpha=1e-3)).save(folder / "many_items.html")
    scores = {"home": ["a", "b", "c", "a"], "away": ["b", "c", "a", "c"], "x": [3, 2, 1, 5]}
    scores["y"] = [0, 1, 2, 1]
    board = rate(scores, sides=("home", "away"), scores=("x", "y"), margin=True)
    board_page(board).save(folder / "margins.html")
