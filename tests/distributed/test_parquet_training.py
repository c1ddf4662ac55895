"""Every engine gives the model of RankRLSCV in memory."""

import importlib.util
import shutil
import sys

import numpy as np
import pytest

import rankwise
from rankwise.datasets.parquet_batches import find_parquet_files
from rankwise.distributed import train_parquet
from rankwise.rankers.group_sample import GroupSample, sample_labels

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

ENGINES = ["pyarrow", "duckdb", "polars", "dask"]


def make_files(folder, *, is_sorted, n_files=3):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 30, 500)
    if is_sorted:
        groups = np.sort(groups)
    X = rng.standard_normal((500, 4)).astype(np.float32)
    y = np.round(X @ rng.standard_normal(4) + rng.standard_normal(500))
    columns = {f"x{k}": X[:, k] for k in range(4)}
    table = pa.table({**columns, "grade": y, "query": [f"q{group}" for group in groups]})
    size = -(-500 // n_files)
    for k in range(n_files):
        pq.write_table(table.slice(k * size, size), folder / f"{k}.parquet", row_group_size=60)
    return X.astype(np.float64), y, groups


def expected_model(X, y, groups):
    return rankwise.RankRLSCV().fit(X, y, groups)


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_give_the_model_of_one_machine(tmp_path, engine, is_sorted):
    pytest.importorskip(engine)
    X, y, groups = make_files(tmp_path, is_sorted=is_sorted)
    pattern = f"{tmp_path}/*.parquet"
    selection = train_parquet(pattern, target="grade", group="query", engine=engine)
    local = expected_model(X, y, groups)
    assert selection.alpha == pytest.approx(local.alpha_)
    np.testing.assert_allclose(selection.model.coef_, local.coef_, rtol=1e-7)
    np.testing.assert_allclose(
        selection.mean_score, local.cv_results_["mean_score"][0], rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_draw_the_same_groups_and_hold_them_out_from_all_other_rows(tmp_path, engine):
    pytest.importorskip(engine)
    X, y, groups = make_files(tmp_path, is_sorted=True)
    labels = np.array([f"q{group}" for group in groups])
    selection = train_parquet(
        str(tmp_path), target="grade", group="query", engine=engine, alphas=[0.1], n_held_out=6
    )
    assert sorted(selection.groups) == sorted(sample_labels(labels.tolist(), 6))
    for label, error in zip(selection.groups, selection.group_score[:, 0], strict=True):
        is_held_out = labels == label
        refit = rankwise.RankRLS(0.1).fit(X[~is_held_out], y[~is_held_out], groups[~is_held_out])
        scores = refit.predict(X[is_held_out])
        expected = rankwise.metrics.disagreement_error(y[is_held_out], scores)
        assert error == pytest.approx(expected, abs=1e-9)


def test_samples_of_workers_have_the_rows_of_the_drawn_groups_only():
    X = np.arange(60.0).reshape(60, 1)
    groups = np.repeat(np.arange(12), 5)
    drawn = frozenset({3, 11})
    halves = [GroupSample(2, drawn).add(X[rows], X[rows, 0], groups[rows])
              for rows in (slice(0, 17), slice(17, 60))]  # fmt: skip
    assert [half.n_rows for half in halves] == [2, 8]
    merged = GroupSample(2, drawn).merge(halves[0]).merge(halves[1])
    rows, _, labels = merged.rows()
    np.testing.assert_array_equal(np.sort(rows[:, 0]), X[np.isin(groups, [3, 11]), 0])
    assert sorted(labels.tolist()) == [3] * 5 + [11] * 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_sorted", [True, False])
def test_spark_gives_the_model_of_one_machine(tmp_path, monkeypatch, is_sorted):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("pyspark or Java is missing")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "3")
    session = builder.getOrCreate()
    try:
        X, y, groups = make_files(tmp_path, is_sorted=is_sorted)
        selection = train_parquet(str(tmp_path), target="grade", group="query", engine="spark")
    finally:
        session.stop()
    local = expected_model(X, y, groups)
    assert selection.alpha == pytest.approx(local.alpha_)
    np.testing.assert_allclose(selection.model.coef_, local.coef_, rtol=1e-7)


def test_features_may_be_listed(tmp_path):
    X, y, groups = make_files(tmp_path, is_sorted=True)
    columns = ["x2", "x0"]
    selection = train_parquet(
        str(tmp_path / "*.parquet"), target="grade", group="query", features=columns, alphas=[0.1]
    )
    local = rankwise.RankRLS(0.1).fit(X[:, [2, 0]], y, groups)
    np.testing.assert_allclose(selection.model.coef_, local.coef_, rtol=1e-7)


def test_wrong_columns_engines_and_paths_are_refused(tmp_path):
    make_files(tmp_path, is_sorted=True)
    roles = {"target": "grade", "group": "query"}
    with pytest.raises(ValueError, match="target='score'"):
        train_parquet(str(tmp_path), target="score", group="query")
    with pytest.raises(ValueError, match="x9"):
        train_parquet(str(tmp_path), **roles, features=["x1", "x9"])
    with pytest.raises(ValueError, match="query"):
        train_parquet(str(tmp_path), target="grade", group="x1")
    with pytest.raises(ValueError, match="engine"):
        train_parquet(str(tmp_path), **roles, engine="pandas")
    with pytest.raises(FileNotFoundError):
        train_parquet(str(tmp_path / "*.csv"), **roles)


def test_a_path_may_be_a_file_a_folder_or_a_pattern(tmp_path, monkeypatch):
    make_files(tmp_path, is_sorted=True)
    files = [str(tmp_path / f"{k}.parquet") for k in range(3)]
    assert find_parquet_files(files[1]) == [files[1]]
    assert find_parquet_files(str(tmp_path)) == files
    assert find_parquet_files(str(tmp_path / "[01].parquet")) == files[:2]
    monkeypatch.chdir(tmp_path)
    assert find_parquet_files("*.parquet") == ["0.parquet", "1.parquet", "2.parquet"]
