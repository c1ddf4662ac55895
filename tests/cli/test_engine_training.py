"""``rankwise train --engine`` on Parquet files."""

import json

import numpy as np
import polars as pl
import pytest

import rankwise
from rankwise.persistence import load
from tests.cli.shell import fail, succeed

ROLES = ["--target", "y", "--group", "query"]


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    groups = np.repeat(np.arange(20), 10)
    y = X[:, 0] + rng.standard_normal(200)
    frame = pl.DataFrame({f"x{k}": X[:, k] for k in range(3)}).with_columns(y=y, query=groups)
    frame[:90].write_parquet(tmp_path / "a.parquet")
    frame[90:].write_parquet(tmp_path / "b.parquet")
    return tmp_path, X, y, groups


@pytest.mark.parametrize("engine", ["pyarrow", "duckdb", "polars", "dask"])
def test_train_writes_the_model_of_all_files(files, engine):
    folder, X, y, groups = files
    output = folder / "m.rw"
    pattern = f"{folder}/*.parquet"
    done = succeed("train", pattern, *ROLES, "--engine", engine, "-o", output, "--json")
    local = rankwise.RankRLSCV().fit(X, y, groups)
    summary = json.loads(done.stdout)
    assert summary["alpha"] == pytest.approx(local.alpha_)
    assert summary["held_out_score"] == pytest.approx(local.best_score_)
    np.testing.assert_allclose(load(output).coef_, local.coef_, rtol=1e-7)


def test_the_summary_for_people_has_alpha_and_score(files):
    folder = files[0]
    done = succeed("train", folder, *ROLES, "--engine", "polars", "-o", folder / "m.rw")
    assert "held-out score" in done.stdout
    assert "20 groups" in done.stdout


def test_options_without_effect_and_missing_roles_are_refused(files):
    folder = files[0]
    output = folder / "m.rw"
    engine = ["--engine", "polars", "-o", output]
    assert "--kernel" in fail("train", folder, *ROLES, *engine, "--kernel", "rbf")
    assert "--model" in fail("train", folder, *ROLES, *engine, "--model", "ranksvm")
    assert "--group" in fail("train", folder, "--target", "y", *engine)
    assert not output.exists()
