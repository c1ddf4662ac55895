"""``--nuisance COLUMN`` of train and cv."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

from sklearn.preprocessing import StandardScaler

from rankwise import RankRLS
from rankwise.metrics import disagreement_error
from rankwise.persistence import load
from tests.cli.shell import fail, succeed


def test_positions_are_taken_out_of_clicks_and_are_no_features(tmp_path):
    rng = np.random.default_rng(0)
    place, query = np.tile(np.arange(1, 5), 15), np.repeat(np.arange(15), 4)
    X = rng.normal(size=(60, 2))
    y = np.round(X[:, 0] - 0.5 * place + rng.normal(size=60) + 4)
    path, model = tmp_path / "log.csv", tmp_path / "m.rw"
    rows = [
        f"q{q},{p},{a!r},{b!r},{s}"
        for q, p, (a, b), s in zip(query, place, X.tolist(), y, strict=True)
    ]
    path.write_text("\n".join(["query,place,size,price,clicks", *rows]) + "\n", encoding="utf-8")
    roles = ["--target", "clicks", "--group", "query", "--alpha", "0.1"]
    told = [*roles, "--nuisance", "place"]
    found = json.loads(succeed("train", path, *told, "-o", model, "--json").stdout)
    Z = StandardScaler().fit_transform(X)
    expected = RankRLS(0.1).fit(Z, y, query, nuisance=place.astype(str))
    np.testing.assert_allclose(load(model)[-1].coef_, expected.coef_)
    assert found["data"]["features"] == ["size", "price"]
    effects = [row["effect"] for row in found["chosen"]["nuisance"]]
    np.testing.assert_allclose(effects, expected.nuisance_coef_)
    assert "place=4" in succeed("train", path, *told, "-o", model).stdout
    slope = ["--numeric", "place"]
    one = json.loads(succeed("train", path, *told, *slope, "-o", model, "--json").stdout)
    assert [row["name"] for row in one["chosen"]["nuisance"]] == ["place"]
    assert "place" not in succeed("predict", model, path).stdout
    judged = json.loads(succeed("cv", path, *told, "--leave", "group", "--json").stdout)
    held_out = np.empty(60)
    for q in range(15):
        own = query == q
        refit = RankRLS(0.1).fit(Z[~own], y[~own], query[~own], nuisance=place[~own].astype(str))
        held_out[own] = refit.predict(Z[own])
    wrong = disagreement_error(y, held_out, query)
    assert judged["candidates"][0]["disagreement"] == pytest.approx(wrong)
    fail("train", path, *told, "--model", "ranksvm", "-o", model)
    fail("train", path, *told, "--calibrate", "-o", model)
