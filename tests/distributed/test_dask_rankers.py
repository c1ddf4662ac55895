"""rankwise.distributed: the coefficients of one machine, from collections spread over a cluster."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import rankwise

pytest.importorskip("dask.dataframe")
import dask

distributed = pytest.importorskip("distributed")
if "forkserver" in multiprocessing.get_all_start_methods():  # workers start with all imports done
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    preload = ["distributed", "pandas", "dask.dataframe", "rankwise.distributed", "pytest"]
    distributed.utils.get_mp_context().set_forkserver_preload(preload)

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

from rankwise.distributed import RankRLS, RankRLSCV, RankSVM  # noqa: E402
from rankwise.distributed.blocks import RowBlock, _count_groups, gather_groups  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::UserWarning:distributed"
)
COSTS = [("magnitude", "include"), ("magnitude", "exclude"), ("sign", "exclude")]


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each a process of its own; a dead one is replaced."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=50,
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def problem(sorted_groups=True, n_rows=600, n_groups=23, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5)) + 2
    groups = rng.integers(0, n_groups, n_rows)
    groups = np.sort(groups) if sorted_groups else groups
    y = np.round(X @ rng.standard_normal(5) + rng.standard_normal(n_rows))
    return X, y, groups


X, y, groups = problem()
LOCAL = rankwise.RankRLS(0.1).fit(X, y, groups)


def lazily(*arrays, chunks=97):
    return tuple(da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in arrays)


def frame(X, y, groups, n_parts=4):
    data = pd.DataFrame(X, columns=list("abcde"))
    data["label"], data["query"] = y, groups
    data = dd.from_pandas(data, npartitions=n_parts)
    return data[list("abcde")], data["label"], data["query"]


def assert_same(model, expected, rtol=1e-8):
    name = "coef_" if hasattr(expected, "coef_") else "dual_coef_"
    scale = np.abs(getattr(expected, name)).max()
    np.testing.assert_allclose(getattr(model, name), getattr(expected, name), atol=rtol * scale)
    assert model.n_pairs_ == expected.n_pairs_


def test_rank_rls_on_processes_is_rank_rls(cluster):
    with cluster.as_current():
        model = RankRLS(0.1).fit(*lazily(X, y, groups))
    assert_same(model, LOCAL)
    assert model.n_split_groups_ == 6


@pytest.mark.parametrize("has_groups", [True, False])
@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e8, 1e12])
def test_units_of_a_column_and_of_the_scores_cost_no_digits(threads, scale, has_groups):
    scaled_X, scaled_y = X * [1, scale, 1, 1, 1], y / scale
    arrays = (scaled_X, scaled_y, groups) if has_groups else (scaled_X, scaled_y)
    alpha = 1e-3 * min(1.0, scale) ** 2
    model = RankRLS(alpha).fit(*lazily(*arrays))
    expected = rankwise.RankRLS(alpha).fit(*arrays)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)


def test_small_files_that_dask_would_join_are_read_as_they_are(threads, tmp_path):
    names = list("abcde")
    rows = pd.DataFrame(X, columns=names).assign(label=y, query=groups)
    for k in range(4):
        rows[150 * k : 150 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    data = dd.read_parquet(tmp_path)
    model = RankRLS(0.1).fit(data[names], data["label"], data["query"])
    assert_same(model, LOCAL)


def test_rank_svm_on_processes_is_rank_svm_within_its_gap(cluster):
    with cluster.as_current():
        model = RankSVM(1e-2, tol=1e-4).fit(*lazily(X, y, groups))
    local = rankwise.RankSVM(1e-2, tol=1e-4).fit(X, y, groups)
    assert model.gap_ <= 1e-4
    assert model.n_pairs_ == local.n_pairs_
    assert model.lower_bound_ <= local.objective_
    assert local.lower_bound_ <= model.objective_
    assert model.objective_ == pytest.approx(objective(model, X, y, groups))


def objective(model, X, y, groups, power=1):
    """J of a RankSVM, over explicit pairs."""
    f = X @ model.coef_
    i, j = np.nonzero((groups[:, None] == groups) & (y[:, None] > y))
    loss = np.maximum(0, 1 - (f[i] - f[j])) ** power
    return loss.mean() + model.alpha * model.coef_ @ model.coef_


MAX_WAIT = 120  # seconds, for what takes one second on an idle machine


def wait_for(is_done):
    deadline = time.monotonic() + MAX_WAIT
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def report_and_wait(block, folder):
    """Return the block after a test has written the file "go"; its process is in "started"."""
    (folder / f"started-{os.getpid()}").touch()
    wait_for((folder / "go").exists)
    return block


@pytest.mark.parametrize("estimator", [RankRLS(0.1), RankRLSCV(), RankSVM(1e-2, tol=1e-5)])
def test_a_worker_that_dies_during_the_fit_does_no_harm(cluster, estimator, tmp_path):
    lazy_X, lazy_y, lazy_groups = lazily(X, y, groups, chunks=60)
    lazy_X = lazy_X.map_blocks(report_and_wait, tmp_path, dtype=float, meta=np.empty((0, 0)))

    def fit():
        with cluster.as_current():
            estimator.fit(lazy_X, lazy_y, lazy_groups)

    with ThreadPoolExecutor(1) as pool:
        fitted = pool.submit(fit)
        wait_for(lambda: fitted.done() or any(tmp_path.glob("started-*")))
        assert not fitted.done()
        killed = int(next(tmp_path.glob("started-*")).name.removeprefix("started-"))
        os.kill(killed, signal.SIGKILL)
        (tmp_path / "go").touch()
        fitted.result(timeout=MAX_WAIT)
    cluster.wait_for_workers(2, timeout=MAX_WAIT)
    assert killed not in cluster.run(os.getpid).values()
    if isinstance(estimator, RankRLS):
        assert_same(estimator, rankwise.RankRLS(0.1).fit(X, y, groups))
    elif isinstance(estimator, RankRLSCV):
        assert_same(estimator.best_estimator_, rankwise.RankRLSCV().fit(X, y, groups))
    else:
        assert estimator.gap_ <= 1e-5
        assert estimator.objective_ == pytest.approx(objective(estimator, X, y, groups))


@pytest.mark.usefixtures("threads")
class TestRankRLS:
    @pytest.mark.parametrize("cost, ties", [*COSTS, ("relative", "exclude")])
    @pytest.mark.parametrize("sorted_groups", [True, False])
    def test_split_groups_are_exact_under_every_cost(self, cost, ties, sorted_groups):
        X, y, groups = problem(sorted_groups)
        for beta, group_weight in ((0.2, "groups"), (0.0, "pairs"), (1.0, "pairs")):
            options = {"cost": cost, "ties": ties, "group_weight": group_weight, "beta": beta}
            model = RankRLS(0.1, **options).fit(*lazily(X, y, groups))
            assert_same(model, rankwise.RankRLS(0.1, **options).fit(X, y, groups))

    @pytest.mark.parametrize("beta", [0.0, 0.3])
    def test_one_list_in_many_blocks(self, beta):
        for Y in (y, np.c_[y, y**2]):
            model = RankRLS(0.1, beta=beta).fit(*lazily(X, Y))
            assert_same(model, rankwise.RankRLS(0.1, beta=beta).fit(X, Y))
        with pytest.raises(ValueError, match="one list, but they are in several blocks"):
            RankRLS(cost="sign").fit(*lazily(X, y))

    def test_given_basis_points(self):
        model = RankRLS(0.1, kernel="rbf", basis=X[:9]).fit(*lazily(X, y, groups))
        local = rankwise.RankRLS(0.1, kernel="rbf", basis=np.arange(9)).fit(X, y, groups)
        np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=1e-7)

    def test_several_outputs_and_their_lazy_scores(self):
        Y = np.c_[y, y**2]
        lazy = lazily(X, Y, groups)
        model = RankRLS(0.1).fit(*lazy)
        assert_same(model, rankwise.RankRLS(0.1).fit(X, Y, groups))
        scores = model.predict(lazy[0])
        assert scores.shape == (600, 2)
        np.testing.assert_allclose(scores.compute(), X @ model.coef_.T)

    def test_sparse_blocks(self):
        thin = np.where(X > 2, X, 0)
        blocks, *others = lazily(thin, y, groups)
        model = RankRLS(0.1).fit(blocks.map_blocks(sp.csr_matrix, dtype=float), *others)
        assert_same(model, rankwise.RankRLS(0.1).fit(thin, y, groups))

    def test_nothing_to_rank(self):
        with pytest.raises(ValueError, match="nothing to rank: 600 items make no pair"):
            RankRLS().fit(*lazily(X, y, np.arange(600)))

    def test_more_features_than_rows_of_a_block(self):
        few = problem(n_rows=40)
        model = RankRLS(0.1).fit(*lazily(*few, chunks=3))
        assert_same(model, rankwise.RankRLS(0.1).fit(*few))


@pytest.mark.usefixtures("threads")
class TestRankSVM:
    @pytest.mark.parametrize(
        "loss, power, solver",
        [
            ("hinge", 1, "auto"),
            ("hinge", 1, "bmrm"),
            ("squared_hinge", 2, "auto"),
            ("squared_hinge", 2, "newton-cg"),
            ("squared_hinge", 2, "bmrm"),
        ],
    )
    def test_every_solver_reaches_the_minimum(self, loss, power, solver):
        X, y, groups = problem(n_rows=200, n_groups=9)
        chunks = np.bincount(np.sort(groups) // 3)  # three whole groups each
        lazy = [da.from_array(a, chunks=(tuple(chunks), *a.shape[1:])) for a in (X, y, groups)]
        model = RankSVM(0.1, loss=loss, solver=solver, tol=1e-6).fit(*lazy)
        local = rankwise.RankSVM(0.1, loss=loss, tol=1e-6).fit(X, y, groups)
        assert model.n_split_groups_ == 0
        assert model.objective_ == pytest.approx(local.objective_, rel=2e-6)
        assert model.objective_ == pytest.approx(objective(model, X, y, groups, power))
        np.testing.assert_allclose(model.coef_, local.coef_, rtol=0.02)

    def test_a_basis(self):
        X, y, groups = problem(sorted_groups=False)
        options = {"alpha": 0.01, "kernel": "rbf", "basis": X[:10], "tol": 1e-5}
        model = RankSVM(**options).fit(*lazily(X, y, groups))
        local = rankwise.RankSVM(**options).fit(X, y, groups)
        assert model.objective_ == pytest.approx(local.objective_, rel=2e-5)

    def test_one_list_must_be_one_block(self):
        with pytest.raises(ValueError, match="one list, but they are in several blocks"):
            RankSVM().fit(*lazily(X, y))
        model = RankSVM(0.1).fit(*lazily(X, y, chunks=600))
        local = rankwise.RankSVM(0.1).fit(X, y)
        assert model.objective_ == pytest.approx(local.objective_, rel=2e-3)

    def test_features_on_any_scale(self):
        scaled = X * 10.0 ** np.arange(-3, 2)
        model = RankSVM(1e-3).fit(*lazily(scaled, y, groups))
        assert model.gap_ <= 1e-3
        assert model.n_evaluations_ < 200

    def test_nothing_to_rank_and_several_outputs(self):
        with pytest.raises(ValueError, match="no pair of different scores"):
            RankSVM().fit(*lazily(X, np.zeros(600), groups))
        with pytest.raises(ValueError, match="fit one RankSVM for each"):
            RankSVM().fit(*lazily(X, np.c_[y, y], groups))

    def test_an_unfinished_search_warns(self):
        with pytest.warns(ConvergenceWarning, match="reached max_iter"):
            RankSVM(1e-6, max_iter=2).fit(*lazily(X, y, groups))


@pytest.mark.usefixtures("threads")
class TestCollections:
    @pytest.mark.parametrize("estimator", [RankRLS(0.1), RankSVM(0.1)])
    def test_data_frames_in_and_series_out(self, estimator):
        lazy = frame(X, y, groups)
        estimator.fit(*lazy)
        local = type(estimator.to_local())(0.1).fit(X, y, groups)
        assert list(estimator.feature_names_in_) == list("abcde")
        np.testing.assert_allclose(estimator.coef_, local.coef_, rtol=0.02)
        scores = estimator.predict(lazy[0])
        assert isinstance(scores, dd.Series)
        computed = scores.compute()
        assert isinstance(computed, pd.Series)
        np.testing.assert_allclose(computed, X @ estimator.coef_)
        with pytest.raises(ValueError, match="in the same order"):
            estimator.predict(lazy[0][list("edcba")]).compute()

    def test_data_frame_of_several_outputs(self):
        lazy_X, _, lazy_groups = frame(X, y, groups)
        outputs = dd.from_pandas(pd.DataFrame(np.c_[y, -y]), npartitions=4)
        model = RankRLS(0.1).fit(lazy_X, outputs, lazy_groups)
        assert_same(model, rankwise.RankRLS(0.1).fit(X, np.c_[y, -y], groups))
        assert model.predict(lazy_X).compute().shape == (600, 2)

    def test_blocks_of_unknown_length_and_empty_ones(self):
        data = dd.concat(
            [part.to_frame() if part.ndim == 1 else part for part in frame(X, y, groups)], axis=1
        )
        some = data[data["query"] > 8]  # the first partition is empty now
        arrays = [
            some[list("abcde")].to_dask_array(),
            *(some[c].to_dask_array() for c in ("label", "query")),
        ]
        assert np.isnan(arrays[0].chunks[0]).all()
        kept = groups > 8
        local = rankwise.RankRLS(0.1).fit(X[kept], y[kept], groups[kept])
        assert_same(RankRLS(0.1).fit(*arrays), local)
        svm = RankSVM(0.1).fit(*arrays)
        assert svm.n_pairs_ == rankwise.RankSVM(0.1).fit(X[kept], y[kept], groups[kept]).n_pairs_
        scores = RankRLS(0.1).fit(*arrays).predict(arrays[0])
        np.testing.assert_allclose(scores.compute(), X[kept] @ local.coef_)
        with pytest.raises(ValueError, match="y is in memory but the blocks of X have unknown"):
            RankRLS().fit(arrays[0], y, arrays[2])
        with pytest.raises(ValueError, match="groups has 2 blocks but X has 4"):
            RankRLS().fit(arrays[0], arrays[1], da.zeros(600, chunks=300))

    def test_other_blocks_are_cut_as_those_of_X(self):
        columns = da.from_array(X, chunks=(97, 2))
        model = RankRLS(0.1).fit(columns, da.from_array(y, chunks=50), groups)
        assert_same(model, LOCAL)
        np.testing.assert_allclose(model.predict(columns).compute(), X @ model.coef_)

    def test_labels_may_be_strings(self):
        names = np.array([f"query {g}" for g in groups])
        assert_same(RankRLS(0.1).fit(*lazily(X, y, names)), LOCAL)
        assert_same(RankRLS(0.1).fit(*frame(X, y, names)), LOCAL)

    def test_nothing_is_computed_before_it_is_asked_for(self):
        seen = []
        lazy_X, lazy_y, lazy_groups = lazily(X, y, groups)
        model = RankRLS(0.1).fit(lazy_X, lazy_y, lazy_groups)
        watched = lazy_X.map_blocks(lambda block: seen.append(len(block)) or block, meta=X[:0])
        scores = model.predict(watched)
        assert seen == []
        assert isinstance(scores, da.Array)
        assert scores.shape == (600,)
        np.testing.assert_allclose(scores[:10].compute(), X[:10] @ model.coef_)
        assert seen == [97]

    def test_the_client_never_sees_the_rows(self, monkeypatch):
        X, y, groups = problem(n_rows=5000)
        received = []
        compute = dask.compute

        def noted(*tasks):
            results = compute(*tasks)
            received.append(len(pickle.dumps(results)))
            return results

        monkeypatch.setattr(dask, "compute", noted)
        lazy = lazily(X, y, groups, chunks=500)
        RankRLS(0.1).fit(*lazy)
        RankRLS(0.1, kernel="rbf", basis=X[:5], cost="sign").fit(*lazy)
        RankSVM(0.1).fit(*lazy)
        assert len(received) >= 10
        assert max(received) < X.nbytes / 20

    def test_local_models_and_data_in_memory(self):
        lazy = lazily(X, y, groups)
        for estimator, kind in (
            (RankRLS(0.1), rankwise.RankRLS),
            (RankSVM(0.1), rankwise.RankSVM),
        ):
            estimator.fit(*lazy)
            local = estimator.to_local()
            assert type(local) is kind
            np.testing.assert_array_equal(local.predict(X), estimator.predict(X))
            assert estimator.score(X, y, groups) == local.score(X, y, groups)
            np.testing.assert_array_equal(estimator.rank(X, groups), local.rank(X, groups))
            assert estimator.score(*lazy) == pytest.approx(local.score(X, y, groups))

    def test_scores_of_single_precision_features_are_in_double_precision(self):
        lazy = lazily(X.astype(np.float32), y, groups)
        scores = RankRLS(0.1).fit(*lazy).predict(lazy[0])
        assert scores.dtype == scores.compute().dtype == np.float64

    @pytest.mark.parametrize(
        "message, change",
        [
            ("X is a ndarray; expected a dask array", {"X": np.zeros((600, 5))}),
            ("y has 599 entries but X has 600 rows", {"y": np.zeros(599)}),
            ("groups has 599 entries", {"groups": da.zeros(599, chunks=97)}),
            ("contains NaN", {"X": da.full((600, 5), np.nan, chunks=(97, 5))}),
            ("y contains NaN", {"y": da.full(600, np.nan, chunks=97)}),
            ("no label in row", {"groups": da.full(600, np.nan, chunks=97)}),
        ],
    )
    @pytest.mark.parametrize("estimator", [RankRLS(), RankSVM()])
    def test_bad_data_are_refused(self, estimator, message, change):
        data = dict(zip(("X", "y", "groups"), lazily(X, y, groups), strict=True)) | change
        with pytest.raises((ValueError, TypeError), match=message):
            estimator.fit(**data)

    def test_partitions_of_other_rows_are_refused(self):
        items, _, labels = frame(X, y, groups)
        other = dd.from_pandas(pd.Series(np.zeros(600), index=np.arange(600) + 7), npartitions=4)
        with pytest.raises(ValueError, match="different indices"):
            RankRLS().fit(items, other, labels)

    @pytest.mark.parametrize("estimator", [RankRLS, RankSVM])
    def test_kernels_need_a_basis_that_can_be_had(self, estimator):
        lazy = lazily(*problem())
        for options, message in (
            ({"kernel": "rbf"}, "basis points"),
            ({"basis": np.zeros((2, 5))}, "without a basis"),
            ({"kernel": "rbf", "basis": np.zeros((2, 3))}, "basis has points with 3"),
        ):
            with pytest.raises(ValueError, match=message):
                estimator(**options).fit(*lazy)

    def test_wrong_number_of_columns(self):
        lazy = lazily(*problem())
        model = RankRLS().fit(*lazy)
        with pytest.raises(ValueError, match="X has 4 features, but RankRLS is expecting 5"):
            model.predict(lazy[0][:, :4]).compute()


def test_labels_of_several_kinds_stay_what_they_are():
    groups = [np.array([7, 8]), np.array(["7", "x"]), np.array([7, 9])]
    surveys = [_count_groups(np.zeros(2), labels) for labels in groups]
    assert surveys == [{7: 1, 8: 1}, {"7": 1, "x": 1}, {7: 1, 9: 1}]
    blocks = [dask.delayed(None) for _ in groups]
    assert gather_groups(blocks, surveys)[1] == 1


@pytest.mark.usefixtures("threads")
def test_split_groups_go_where_most_of_their_rows_are():
    counts = [{"a": 5, "b": 1}, {"a": 2, "c": 4}, {"b": 9, "c": 4, "d": 8}]
    blocks = [
        dask.delayed(RowBlock)(np.zeros((len(g), 1)), np.zeros((len(g), 1)), g)
        for g in (np.repeat(list(one), list(one.values())) for one in counts)
    ]
    gathered, n_split = gather_groups(blocks, counts)
    whole = dask.compute(*gathered)
    assert n_split == 3
    assert [sorted(set(block.groups)) for block in whole] == [["a"], ["c"], ["b", "d"]]
    assert [len(block.y) for block in whole] == [7, 8, 18]
