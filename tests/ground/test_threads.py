"""Loops of small systems run on one BLAS thread, and leave the pools as they were."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from rankwise import RankRLS
from rankwise.model_selection import leave_group_out_predict
from rankwise.solvers import closed_form, hold_out
from rankwise.solvers.closed_form import SMALL
from rankwise.threads import one_blas_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if set(blas_threads()) != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


def test_inside_every_pool_has_one_thread_and_outside_what_it_had():
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_an_error_inside_gives_the_threads_back():
    with pytest.raises(RuntimeError, match="inside"), one_blas_thread():
        raise RuntimeError("inside")
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize("stays_longer", ["first", "second"])
def test_threads_that_overlap_give_everything_back(stays_longer):
    second_in, second_out, first_out = threading.Event(), threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            second_in.set()
            if stays_longer == "second":
                first_out.wait(10)
        second_out.set()

    thread = threading.Thread(target=second)
    with one_blas_thread():
        thread.start()
        assert second_in.wait(10)
        if stays_longer == "first":
            assert second_out.wait(10)
            assert set(blas_threads()) == {1}
    first_out.set()
    thread.join()
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize(
    "work, options, size",
    [("_solve_definite", {}, 60), ("_downdate", {}, 3), ("_both_corners", {"kernel": "rbf"}, 40)],
)
def test_the_folds_of_leave_group_out_are_solved_on_one_thread(monkeypatch, work, options, size):
    """Two were five to ten times slower from about 100 features on."""
    seen = []
    solve = getattr(hold_out, work)

    def watched(*args):
        seen.extend(blas_threads())
        return solve(*args)

    monkeypatch.setattr(hold_out, work, watched)
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(120, 5)), rng.normal(size=120), np.arange(120) // size
    leave_group_out_predict(RankRLS(**options), X, y, groups, alphas=[0.1, 1.0])
    assert set(seen) == {1}
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize("n", [SMALL, SMALL + 1])
def test_small_systems_are_solved_on_one_thread_and_large_ones_on_all(monkeypatch, n):
    seen = []
    solve = closed_form.solve_symmetric

    def watched(*args):
        seen.extend(blas_threads())
        return solve(*args)

    monkeypatch.setattr(closed_form, "solve_symmetric", watched)
    closed_form.solve_shifted(np.eye(n), np.ones(n), [1.0])
    assert set(seen) == {1 if n == SMALL else 2}
