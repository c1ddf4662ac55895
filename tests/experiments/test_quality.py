"""The experiments on AutoRanker run."""

import json

import numpy as np
import pytest

from experiments import auto_estimate
from rankwise.metrics import disagreement_error


def test_auto_estimate_prints_both_estimates(capsys):
    auto_estimate.main(["--problems", "2", "--new", "20"])
    printed = capsys.readouterr().out
    assert "second level" in printed
    assert "out of bag" in printed


@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
def test_quality_compares_all_learners_in_the_same_groups(monkeypatch, tmp_path, capsys):
    from experiments import quality, quality_peers
    from rankwise.datasets import make_ranking

    X, y, groups = make_ranking(n_queries=16, n_documents=8, n_features=4, random_state=0)[:3]
    y, new = np.minimum(y, 3), groups >= 10
    split = quality.Split(X[~new], y[~new], groups[~new], X[new], y[new], groups[new])
    monkeypatch.setattr(quality_peers, "N_TREES", 5)
    monkeypatch.setattr(quality, "SETS", {"mq2008": lambda data: iter([split])})
    quality.main(["--output", str(tmp_path), "--only", "mq2008"])
    shown = capsys.readouterr().out
    for learner in quality.LEARNERS:  # regressions are for one list
        assert (learner in shown) == (learner not in quality_peers.LIST_PEERS)
    kept = quality.run(quality_options(tmp_path, quality))  # nothing is measured again
    assert capsys.readouterr().out == ""
    held_out = quality.values_of(kept, "mq2008", "RankRLSCV", "error")
    model = quality.RankRLSCV().fit(*split[:3])
    truth = disagreement_error(y[new], model.predict(X[new]), groups[new], per_group=True)
    np.testing.assert_allclose(held_out, truth)


def quality_options(folder, quality):
    from argparse import Namespace

    learners = list(quality.LEARNERS)
    return Namespace(output=folder, only=["mq2008"], learners=learners, again=False, data=None)


def test_tables_are_compared_with_catboost_on_the_same_lists(monkeypatch, tmp_path, capsys):
    pytest.importorskip("catboost")
    pd = pytest.importorskip("pandas")
    from experiments import quality_tables

    rng = np.random.default_rng(0)
    town = rng.integers(0, 60, 900)
    X = pd.DataFrame(
        {
            "town": [f"t{k}" for k in town],
            "text": [f"{w} wine {k}" for k, w in enumerate(rng.choice(["red", "white"], 900))],
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, 900), "D"),
            "size": np.where(town % 9 == 0, np.nan, town / 60),
        }
    )
    y = town % 7 + rng.normal(size=900)
    monkeypatch.setattr(quality_tables, "N_TREES", 5)
    monkeypatch.setattr(quality_tables, "N_TEST", 400)
    monkeypatch.setattr(quality_tables, "fetch", lambda folder: None)
    monkeypatch.setattr(quality_tables, "read_table", lambda folder, name: (X, y, None))
    options = ["--data", str(tmp_path), "--output", str(tmp_path), "--only", "hotel"]
    quality_tables.main([*options, "--splits", "1"])
    kept = json.loads((tmp_path / "quality_tables.json").read_text())
    assert {key: len(one["errors"]) for key, one in kept.items()} == {
        "hotel/0/AutoRanker": 3,
        "hotel/0/CatBoost": 3,
    }
    assert "CatBoost minus AutoRanker" in capsys.readouterr().out
