"""RankRLSCV on Dask: the same alpha and coefficients as on one machine."""

import importlib.util

import numpy as np
import pytest

import rankwise

pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
import dask  # noqa: E402
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

from rankwise.distributed import RankRLSCV  # noqa: E402
from rankwise.distributed.workers import check_workers  # noqa: E402


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def make_problem(*, is_sorted=True, n_groups=25):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, 400)
    if is_sorted:
        groups = np.sort(groups)
    X = rng.standard_normal((400, 5)) + 3
    y = np.round(X @ rng.standard_normal(5) + rng.standard_normal(400))
    return X, y, groups


def lazily(*arrays, chunks=71):
    return [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in arrays]


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("scoring", ["disagreement", "tau"])
def test_all_groups_held_out_equal_rank_rls_cv(is_sorted, scoring):
    X, y, groups = make_problem(is_sorted=is_sorted)
    model = RankRLSCV(scoring=scoring).fit(*lazily(X, y, groups))
    local = rankwise.RankRLSCV(scoring=scoring).fit(X, y, groups)
    assert model.alpha_ == pytest.approx(local.alpha_)
    expected = local.cv_results_["mean_score"][0]
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.best_estimator_.coef_, local.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.to_local().predict(X), local.predict(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict(da.from_array(X)).compute(), local.predict(X))


@pytest.mark.parametrize("cost", ["sign", "magnitude"])
def test_a_sample_of_groups_is_held_out_from_all_other_rows(cost):
    X, y, groups = make_problem()
    lazy = lazily(X, y, groups)
    model = RankRLSCV([0.01, 1.0], n_held_out=6, cost=cost, ties="exclude").fit(*lazy)
    labels = model.cv_results_["groups"]
    assert len(labels) == 6
    for label, values in zip(labels, model.cv_results_["group_score"], strict=True):
        rest = groups != label
        for alpha, value in zip([0.01, 1.0], values, strict=True):
            refit = rankwise.RankRLS(alpha, cost=cost, ties="exclude")
            refit.fit(X[rest], y[rest], groups[rest])
            scores = refit.predict(X[~rest])
            error = rankwise.metrics.disagreement_error(y[~rest], scores)
            assert value == pytest.approx(error, abs=1e-9)


def test_data_frames_and_kernels_with_a_basis():
    X, y, groups = make_problem()
    pandas = pd.DataFrame(X, columns=list("abcde")).assign(y=y, g=groups)
    frame = dd.from_pandas(pandas, npartitions=3)
    basis = X[:20]
    model = RankRLSCV(kernel="rbf", gamma=0.1, basis=basis, n_held_out=100)
    model.fit(frame[list("abcde")], frame["y"], frame["g"])
    local = rankwise.RankRLSCV(kernel="rbf", gamma=0.1, basis=basis).fit(X, y, groups)
    assert model.alpha_ == pytest.approx(local.alpha_)
    scores = model.predict(pandas[list("abcde")])
    np.testing.assert_allclose(scores, local.predict(X), rtol=1e-6, atol=1e-8)


def test_groups_are_needed_and_a_number_of_them():
    X, y, groups = lazily(*make_problem())
    with pytest.raises(ValueError, match="group labels"):
        RankRLSCV().fit(X, y, None)
    with pytest.raises(ValueError, match="n_held_out"):
        RankRLSCV(n_held_out=0).fit(X, y, groups)


def test_three_worker_processes_give_the_result_of_one_machine():
    X, y, groups = make_problem(is_sorted=False)
    lazy = lazily(X, y, groups, chunks=(71, 71, 0, 100, 158))
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
    ):
        model = RankRLSCV().fit(*lazy)
    local = rankwise.RankRLSCV().fit(X, y, groups)
    assert model.alpha_ == pytest.approx(local.alpha_)
    np.testing.assert_allclose(model.best_estimator_.coef_, local.coef_, rtol=1e-9)


def test_workers_without_the_package_are_named(monkeypatch):
    class Client:
        def run(self, function, *args):
            assert function is importlib.util.find_spec
            return {"tcp://a:1": function(*args), "tcp://b:2": None}

    monkeypatch.setattr(distributed, "get_client", Client)
    with pytest.raises(RuntimeError, match="tcp://b:2"):
        check_workers()
