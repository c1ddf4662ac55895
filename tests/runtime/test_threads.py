"""Public calls run in one thread of BLAS and OpenMP, and leave the pools as they were."""

from __future__ import annotations

import _thread
import hashlib
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import sklearn.ensemble  # noqa: F401  # brings the threads of OpenMP
from threadpoolctl import ThreadpoolController, threadpool_limits

from rankwise import (
    AutoRanker,
    ConditionalRankRLS,
    CoRankRLS,
    LabelRanker,
    PairGraph,
    RankingPursuit,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.leaderboard import rate
from rankwise.model_selection import leave_group_out_predict, leave_pair_out
from rankwise.runtime import threads
from rankwise.runtime.threads import allow_threads, limit_threads, single_threaded

POOLS = ThreadpoolController()


def thread_limits():
    return {(pool["user_api"], pool["num_threads"]) for pool in POOLS.info()}


ONE = {("blas", 1), ("openmp", 1)}
TWO = {("blas", 2), ("openmp", 2)}


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(threads, "FIXED_THREADS", None)  # whatever the environment sets
    with threadpool_limits(2):
        if thread_limits() != TWO:
            pytest.skip("these libraries have one thread only")
        yield


def test_inside_every_pool_has_one_thread_and_outside_what_it_had():
    with limit_threads(1):
        assert thread_limits() == ONE
        with limit_threads(1):
            assert thread_limits() == ONE
        assert thread_limits() == ONE
    assert thread_limits() == TWO


def test_an_error_inside_gives_the_threads_back():
    @single_threaded
    def fail():
        assert thread_limits() == ONE
        raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert thread_limits() == TWO
    with pytest.raises(ValueError, match="alpha"):
        RankRLS(-1.0).fit([[0.0], [1.0]], [0, 1])
    assert thread_limits() == TWO


@pytest.mark.parametrize("stays_longer", ["first", "second"])
def test_python_threads_that_overlap_give_everything_back(stays_longer):
    second_in, second_out, first_out = threading.Event(), threading.Event(), threading.Event()
    in_second = []

    def second():
        with ThreadpoolController().select(user_api="openmp").limit(limits=2), limit_threads(1):
            in_second.append(thread_limits())
            second_in.set()
            if stays_longer == "second":
                first_out.wait(60)
        second_out.set()

    thread = threading.Thread(target=second)
    with limit_threads(1):
        thread.start()
        assert second_in.wait(60)
        if stays_longer == "first":
            assert second_out.wait(60)
            assert thread_limits() == ONE
    first_out.set()
    thread.join()
    assert in_second == [ONE]
    assert thread_limits() == TWO


def test_a_large_step_has_the_idle_cores_and_never_more_than_the_user_has_set(monkeypatch):
    monkeypatch.setattr(threads, "n_threads_for", lambda work: 5 if work >= 2**30 else 1)
    with limit_threads(1):
        with allow_threads(1000.0**3):
            assert thread_limits() == ONE
        with allow_threads(1025.0**3):
            assert thread_limits() == TWO
            with limit_threads(1):
                assert thread_limits() == ONE
            assert thread_limits() == TWO
        assert thread_limits() == ONE
    assert thread_limits() == TWO


def test_idle_cores_are_those_that_no_other_program_uses(monkeypatch, tmp_path):
    file = tmp_path / "loadavg"
    monkeypatch.setattr("builtins.open", lambda path, **options: file.open(**options))
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)))
    for n_running, n_idle in [(1, 8), (3, 6), (8, 1), (20, 1)]:
        file.write_text(f"0.10 0.20 0.30 {n_running}/117 4711\n", encoding="ascii")
        assert threads.n_threads_for(2.0**30) == n_idle
        assert threads.n_threads_for(2.0**29) == 1
    monkeypatch.setattr(threads, "count_spinning_threads", lambda: 15)
    assert threads.n_threads_for(2.0**30) == 4
    looks = iter([5, 2, 8])  # programs that run for a moment take no core
    monkeypatch.setattr(threads, "count_running_threads", lambda wait: next(looks))
    assert threads.n_threads_for(2.0**30) == 7


@pytest.mark.parametrize(
    "environment, n_threads",
    [
        ({}, None),
        ({"OMP_NUM_THREADS": ""}, None),
        ({"OMP_NUM_THREADS": "dynamic"}, None),
        ({"OMP_NUM_THREADS": "4,2"}, 4),
        ({"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": " 2 "}, 2),
        ({"MKL_NUM_THREADS": "0"}, None),
    ],
)
def test_the_environment_fixes_the_number_of_threads(environment, n_threads):
    assert threads.read_fixed_threads(environment) == n_threads


def test_with_a_fixed_number_of_threads_the_load_never_changes_a_bit(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1100, 3)), rng.normal(size=1100)

    def fit(n_running, n_fixed):
        monkeypatch.setattr(threads, "count_running_threads", lambda delay: n_running)
        monkeypatch.setattr(threads, "FIXED_THREADS", n_fixed)
        return RankRLS(1e-3, kernel="rbf").fit(X, y).dual_coef_

    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    for n_fixed in (1, 2):
        np.testing.assert_array_equal(fit(20, n_fixed), fit(1, n_fixed))
    np.testing.assert_array_equal(fit(20, None), fit(20, 1))
    np.testing.assert_array_equal(fit(1, None), fit(1, 2))


def test_fixed_threads_are_not_multiplied_by_threads_of_python(monkeypatch):
    monkeypatch.setattr(threads, "FIXED_THREADS", 2)
    n_threads = threads.map_in_threads(
        lambda tasks: threads.n_threads_for(2.0**30), [0, 1, 2], 2.0**30, one_by_one=True
    )
    assert n_threads == [1, 1, 1]
    assert threads.n_threads_for(2.0**30) == 2


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells")
def test_threads_that_python_does_not_know_are_those_that_spin():
    stop, data = threading.Event(), bytes(10**7)

    def spin():
        while not stop.is_set():
            hashlib.sha256(data)

    def any_thread_spins():
        return any(threads.count_spinning_threads() for _ in range(20))

    def wait_for(condition):
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline

    known = threading.Thread(target=spin)
    known.start()
    try:
        wait_for(lambda: not any_thread_spins())  # those of an earlier test stop after a moment
        _thread.start_new_thread(spin, ())  # as one of BLAS: `threading` does not know it
        wait_for(any_thread_spins)
    finally:
        stop.set()
        known.join()


STEPS = [
    (np, "asarray"),
    (np.linalg, "solve"),
    (scipy.linalg, "eigh"),
    (scipy.linalg.lapack, "dpotrf"),
    (scipy.linalg.lapack, "dsytrd"),
]


def learn(X, y, groups):
    edges = PairGraph([0, 1, 2], [1, 2, 0], n_items=3)
    half = np.where(np.arange(len(y)) % 2, y, np.nan)
    yield lambda: RankRLS().fit(X, y, groups)
    yield lambda: RankRLS(kernel="rbf").path(X, y, groups, alphas=[0.1, 1.0])
    yield lambda: RankRLSCV().fit(X, y, groups)
    yield lambda: RankSVM().fit(X, y, groups)
    yield lambda: RankSVMCV([0.1, 1.0]).fit(X, y, groups)
    yield lambda: RankLogistic().fit(X, y, groups)
    yield lambda: CoRankRLS(n_basis=5).fit(X, half, groups)
    yield lambda: RankingPursuit(3).fit(X, y, groups)
    yield lambda: LabelRanker().fit(X, np.argsort(X[:, :3], axis=1))
    yield lambda: ConditionalRankRLS().fit(X, X[:5], X @ X[:5].T)
    yield lambda: leave_group_out_predict(RankRLS(), X, y, groups, alphas=[0.1, 1.0])
    yield lambda: leave_pair_out(RankRLS(), X, y)
    yield lambda: AutoRanker().fit(X, y, groups)
    yield lambda: rate(edges)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("which", range(14))
def test_every_public_call_computes_in_one_thread(monkeypatch, which):
    """Two were 2 to 25 times slower beside other programs."""
    seen = set()

    def watch(function):
        def watched(*args, **options):
            seen.update(thread_limits())
            return function(*args, **options)

        return watched

    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 5)), np.arange(40) // 10
    y = (X[:, 0] + rng.normal(size=40)).round(1)
    calls = list(learn(X, y, groups))
    for module, name in STEPS:
        monkeypatch.setattr(module, name, watch(getattr(module, name)))
    calls[which]()
    assert seen == ONE
    assert thread_limits() == TWO


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_runs_of_parts_on_idle_cores_are_all_of_them_in_order(monkeypatch, n):
    monkeypatch.setattr(threads, "n_threads_for", lambda work: n)
    runs = threads.map_in_threads(list, [0, 1, 2, 3, 4], 2.0**30)
    assert [part for run in runs for part in run] == [0, 1, 2, 3, 4]
    assert len(runs) == min(n, 5)
    with limit_threads(1):
        assert len(threads.map_in_threads(list, [0, 1, 2, 3, 4], 2.0**30)) == min(n, 2)


def test_parts_that_go_one_by_one_count_as_running_and_have_one_thread_each(monkeypatch):
    both = threading.Barrier(2, timeout=60)

    def work(parts):
        both.wait()
        seen = parts, thread_limits(), count(2.0**30)
        both.wait()
        return seen

    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: {0, 1})
    count = threads.n_threads_for
    monkeypatch.setattr(threads, "n_threads_for", lambda work: 2)
    with limit_threads(1):
        runs = threads.map_in_threads(work, [0, 1, 2, 3], 2.0**30, one_by_one=True)
    assert runs == [([k], ONE, 1) for k in range(4)]
    assert not threads._workers
    assert threads.map_in_threads(list, [], 2.0**30) == [[]]


@pytest.mark.filterwarnings("ignore:column 0 of X contains the groups")
@pytest.mark.parametrize("kind", ["plain", "far", "weights", "one value in a group", "outputs"])
def test_a_gram_matrix_is_the_same_to_the_last_bit_on_any_number_of_cores(monkeypatch, kind):
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(400, 3)), rng.normal(size=400), np.arange(400) // 7
    weights = rng.uniform(1, 2, 400) if kind == "weights" else None
    if kind == "far":
        X += 1e6
    if kind == "one value in a group":
        X[:, 0] = groups
    if kind == "outputs":
        y = rng.normal(size=(400, 2))
    monkeypatch.setattr("rankwise.graphs.gram.BLOCK_BYTES", 1)  # many blocks
    monkeypatch.setattr("rankwise.graphs.gram.LARGE_STEP", 1)  # several partial sums
    coefs = []
    for n in (1, 2, 3):
        monkeypatch.setattr(threads, "n_threads_for", lambda work, n=n: n)
        coefs.append(RankRLS(1e-3).fit(X, y, groups, sample_weight=weights).coef_)
    np.testing.assert_array_equal(coefs[1], coefs[0])
    np.testing.assert_array_equal(coefs[2], coefs[0])
