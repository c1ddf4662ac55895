"""``--weight COLUMN`` of train, cv and evaluate."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

from sklearn.preprocessing import StandardScaler

from rankwise import RankRLS
from rankwise.metrics import ndcg
from rankwise.model_selection import cross_validate_candidates
from rankwise.persistence import load
from tests.cli.shell import fail, succeed

ROLES = ["--target", "stars", "--group", "town"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=60) + 2), 0, 4)
    return X, y, np.repeat(np.arange(6), 10), rng.integers(0, 4, 60).astype(float)


@pytest.fixture
def hotels(tmp_path, data):
    """A table with a column of weights, written without loss."""
    X, y, town, weight = data
    rows = ["town,size,price,trust,stars"]
    rows += [
        f"{t},{a!r},{b!r},{w},{s}"
        for t, (a, b), w, s in zip(town, X.tolist(), weight, y, strict=True)
    ]
    path = tmp_path / "hotels.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_model_is_trained_and_judged_with_the_weights(tmp_path, hotels, data):
    X, y, town, weight = data
    model = tmp_path / "m.rw"
    told = ["--weight", "trust", *ROLES]
    out = succeed("train", hotels, *told, "--alpha", "0.1", "-o", model).stdout
    assert "weights" in out
    fitted = load(model)
    Z = StandardScaler().fit_transform(X)
    expected = RankRLS(0.1).fit(Z, y, town, weight)
    np.testing.assert_allclose(fitted[-1].coef_, expected.coef_)
    found = json.loads(succeed("evaluate", model, hotels, "--weight", "trust", "--json").stdout)
    value = next(row["mean"] for row in found["metrics"] if row["metric"] == "ndcg@10")
    assert value == pytest.approx(ndcg(y, expected.predict(Z), town, k=10, sample_weight=weight))
    alone = succeed("evaluate", model, hotels)  # the column is known, and no feature
    assert "does not know" not in alone.stderr


def test_cross_validation_weighs_training_and_judging(hotels, data):
    X, y, town, weight = data
    told = ["--weight", "trust", *ROLES, "--alpha", "0.1,1", "--json", "--metric", "tau"]
    found = json.loads(succeed("cv", hotels, *told).stdout)
    curves = cross_validate_candidates(
        RankRLS(),
        StandardScaler().fit_transform(X),
        y,
        town,
        scoring="tau",
        candidates={"alpha": [0.1, 1.0]},
        sample_weight=weight,
    )
    expected = np.nanmean(curves.by_group["tau"][:, :, 0], axis=0)
    np.testing.assert_allclose([row["tau"] for row in found["candidates"]], expected)
    assert found["data"]["weight"] == "trust"


def test_bad_weights_are_told_in_one_line(tmp_path, hotels, letor):
    out = ["-o", tmp_path / "m.rw"]
    assert "leave out --weight" in fail("train", letor, "--weight", "w", *out)
    rows = hotels.read_text(encoding="utf-8").splitlines()
    empty = [
        rows[0],
        *(",".join([*row.split(",")[:3], "0", row.split(",")[4]]) for row in rows[1:]),
    ]
    hotels.write_text("\n".join(empty) + "\n", encoding="utf-8")
    assert "all sample weights are zero" in fail("train", hotels, *ROLES, "--weight", "trust", *out)
