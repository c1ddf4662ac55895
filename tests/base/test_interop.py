"""The whole path with what other people use; each test is skipped where the package is missing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from rankwise import AutoRanker, RankRLSCV
from rankwise.datasets import make_ranking
from rankwise.metrics import evaluate
from rankwise.model_selection import compare
from rankwise.persistence import load, save
from rankwise.report import report


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_ranking(n_queries=24, n_documents=8, n_features=4, noise=1, random_state=0)[
        :3
    ]
    old = groups < 16
    return (X[old], y[old], groups[old]), (X[~old], y[~old], groups[~old])


def boosted_trees(name, X, y, groups):
    """A ranker of another library, trained in its own way."""
    sizes = np.unique(groups, return_counts=True)[1]
    if name == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        model = lightgbm.LGBMRanker(n_estimators=8, min_child_samples=2, verbose=-1, n_jobs=1)
        return model.fit(X, y, group=sizes)
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBRanker(n_estimators=8, n_jobs=1).fit(X, y, group=sizes)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_other_peoples_rankers_are_compared_and_reported(data, name):
    train, (X, y, groups) = data
    trees = boosted_trees(name, *train)
    linear = RankRLSCV().fit(*train)
    values = {
        label: evaluate(y, model.predict(X), groups, "ndcg@5").per_group["ndcg@5"]
        for label, model in (("trees", trees), ("linear", linear))
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "fewer than 10 groups differ")  # 8 groups in all
        row = compare(values, greater_is_better=True).rows[0]
    assert row.mean_b == pytest.approx(np.nanmean(values["linear"]))
    page = str(report(trees, X, y, groups, previous=linear, metrics="ndcg@5"))
    assert f"{type(trees).__name__} on {len(y)} items in 8 groups" in page
    assert f"<b>{np.nanmean(values['linear']):.3f}</b>" in page
    assert "best single feature:" in page


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_frames_through_the_whole_path(data, name, tmp_path):
    library = pytest.importorskip(name)
    columns = ["price", "age", "size", "rank"]
    frames = []
    for X, y, groups in data:
        items = library.DataFrame(dict(zip(columns, X.T, strict=True)))
        target = library.DataFrame({"y": y, "query": [f"q{g:02}" for g in groups]})
        frames.append((items, target["y"], target["query"]))
    (X, y, queries), (new, truth, new_queries) = frames
    for model, bare in (
        (RankRLSCV().fit(X, y, queries), RankRLSCV().fit(*data[0])),
        (AutoRanker().fit(X, y, queries), AutoRanker().fit(*data[0])),
    ):
        options = {} if isinstance(model, RankRLSCV) else {"groups": new_queries}
        plain = {} if isinstance(model, RankRLSCV) else {"groups": data[1][2]}
        scores = model.predict(new, **options)
        np.testing.assert_allclose(scores, bare.predict(data[1][0], **plain), rtol=1e-9)
        save(model, tmp_path / "model.rw")
        again = load(tmp_path / "model.rw")
        np.testing.assert_array_equal(again.predict(new, **options), scores)
        found = evaluate(truth, scores, new_queries, "ndcg@5")
        page = str(report(again, new, truth, new_queries, metrics="ndcg@5"))
        assert f'<p class="value">{found["ndcg@5"]:.3f}</p>' in page
        assert any(f"<bdi>{column}" in page for column in columns)
