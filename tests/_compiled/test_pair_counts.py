"""The sweeps over sorted scores, compiled and in NumPy, against double loops."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise._compiled as sweeps
from rankwise import RankSVM
from rankwise._compiled import pair_counts_fallback
from tests import oracle_metrics

MODULES = [sweeps, pair_counts_fallback]


@st.composite
def sorted_groups(draw):
    """Groups with ties in scores and levels, scores that differ by exactly one among them."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    step = draw(st.sampled_from([0.25, 0.5, 1.0]))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    scores, level = [], []
    for n in sizes:
        scores += sorted(draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)))
        level += draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    starts = np.cumsum(sizes) - sizes
    return (np.array(scores) * step).astype(kind), np.array(level, dtype=np.int32), starts


def violated_pairs(scores, level, starts):
    """(loser, winner) by a double loop: same group, higher level, less than one above."""
    group = np.searchsorted(starts, np.arange(len(scores)), side="right")
    return [
        (i, j)
        for i in range(len(scores))
        for j in range(len(scores))
        if group[i] == group[j] and level[i] < level[j] and scores[j] < scores[i] + 1
    ]


@pytest.mark.skipif(os.environ.get("RANKWISE_PURE") == "1", reason="built without it on purpose")
def test_the_compiled_module_is_built():
    assert sweeps.IS_COMPILED, "install a C compiler and reinstall: pip install -e ."


@pytest.mark.parametrize("module", MODULES, ids=["active", "fallback"])
@given(case=sorted_groups())
def test_counts_are_those_of_a_double_loop(module, case):
    """[TreeRSVM11] algorithm 2: the frequencies of equations 5 and 6."""
    lost, won = module.count_violated(*case)
    pairs = violated_pairs(*case)
    m = len(case[0])
    np.testing.assert_array_equal(lost, np.bincount([i for i, _ in pairs], minlength=m))
    np.testing.assert_array_equal(won, np.bincount([j for _, j in pairs], minlength=m))


@pytest.mark.parametrize("module", MODULES, ids=["active", "fallback"])
@given(case=sorted_groups(), seed=st.integers(0, 10))
def test_sums_are_those_of_a_double_loop(module, case, seed):
    values = np.random.default_rng(seed).normal(size=len(case[0]))
    lost, won = np.zeros((2, len(values)))
    for i, j in violated_pairs(*case):
        lost[i] += values[j]
        won[j] += values[i]
    np.testing.assert_allclose(module.sum_violated(*case, values), (lost, won), atol=1e-12)


@pytest.mark.parametrize("module", MODULES, ids=["active", "fallback"])
@given(case=sorted_groups(), seed=st.integers(0, 10))
def test_an_order_is_sorted_by_group_and_stays_inside(module, case, seed):
    _, _, starts = case
    m = len(case[0])
    sizes = np.diff(starts, append=m)
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(len(starts)), sizes)).astype(np.int32)
    order = rng.permutation(m)
    truth = sorted(order, key=lambda item: group[item])
    np.testing.assert_array_equal(module.sort_by_group(order, group, starts), truth)


@pytest.mark.parametrize("module", MODULES, ids=["active", "fallback"])
@given(
    sizes=st.lists(st.sampled_from([1, 2, 5, 16, 17, 40, 150]), min_size=1, max_size=6),
    n_values=st.sampled_from([3, 10**6]),
    seed=st.integers(0, 100),
)
def test_items_are_sorted_inside_their_groups(module, sizes, n_values, seed):
    rng = np.random.default_rng(seed)
    m, starts = sum(sizes), np.cumsum(sizes) - sizes
    order, scores = rng.permutation(m), rng.integers(0, n_values, m).astype(float)
    found = module.sort_in_groups(scores, order, starts)
    for first, n in zip(starts, sizes, strict=True):
        part = order[first : first + n]
        np.testing.assert_array_equal(
            found[first : first + n], part[np.argsort(scores[part], kind="stable")]
        )


@pytest.mark.parametrize("module", MODULES, ids=["active", "fallback"])
@pytest.mark.parametrize("n_levels", [1, 2, 5, 300, 10**6])
def test_inversions_equal_the_matrix_of_all_pairs(module, n_levels):
    rng = np.random.default_rng(n_levels)
    level = rng.integers(0, n_levels, 700).astype(np.int32)
    starts = np.array([0, 1, 2, 60, 300, 301])
    truth = oracle_metrics.inversions(level, starts)
    np.testing.assert_array_equal(module.count_inversions(level, starts), truth)
    weights = rng.random(700)
    truth = oracle_metrics.inversions(level, starts, weights)
    np.testing.assert_allclose(module.weigh_inversions(level, starts, weights), truth, rtol=1e-12)


@pytest.mark.parametrize("module", MODULES, ids=["active", "fallback"])
def test_a_reversed_order_has_all_pairs_inverted_without_overflow(module):
    n = 200_000  # more pairs than fit in 32 bits
    level = np.arange(n, dtype=np.int32)[::-1].copy()
    assert module.count_inversions(level, np.array([0]))[0] == n * (n - 1) // 2


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), n_levels=st.sampled_from([2, 40, 5000]))
def test_compiled_and_numpy_agree_on_thousands_of_items(seed, n_levels):
    rng = np.random.default_rng(seed)
    m = 5000
    starts = np.unique(np.r_[0, rng.integers(0, m, 6)])
    scores = np.concatenate([np.sort(part) for part in np.split(rng.normal(size=m), starts[1:])])
    level = rng.integers(0, n_levels, m).astype(np.int32)
    for fast, slow in zip(
        sweeps.count_violated(scores, level, starts),
        pair_counts_fallback.count_violated(scores, level, starts),
        strict=True,
    ):
        np.testing.assert_array_equal(fast, slow)
    values = rng.normal(size=m)
    np.testing.assert_allclose(
        sweeps.sum_violated(scores, level, starts, values),
        pair_counts_fallback.sum_violated(scores, level, starts, values),
        atol=1e-9,
    )


CODE = """
import sys, warnings
if sys.argv[1] == "fallback":
    for name in ("pair_counts", "group_sums"):
        sys.modules[f"rankwise._compiled.{name}"] = None
import numpy as np
import rankwise._compiled as active
from rankwise import RankRLS, RankSVM
assert active.IS_COMPILED == (sys.argv[1] != "fallback")
assert active.add_rows.__module__.endswith("fallback") == (sys.argv[1] == "fallback")
rng = np.random.default_rng(0)
X, y, groups = rng.normal(size=(500, 4)) + 3, rng.normal(size=500), rng.integers(0, 20, 500)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for ranker in (RankRLS(), RankSVM(), RankSVM()):
        print(*ranker.fit(X, y, groups).coef_.round(10))
print(*RankRLS().fit(X, y).coef_.round(10))
print(len(caught), *(warning.message for warning in caught), file=sys.stderr)
"""


@pytest.mark.skipif(not sweeps.IS_COMPILED, reason="nothing is compiled")
def test_without_the_compiled_modules_numpy_steps_in_with_one_warning():
    compiled, fallback = (
        subprocess.run(
            [sys.executable, "-c", CODE, which], capture_output=True, text=True, check=True
        )
        for which in ("compiled", "fallback")
    )
    assert compiled.stdout == fallback.stdout
    assert compiled.stderr == "0\n"
    assert fallback.stderr.startswith("1 rankwise was installed without its compiled module")
    assert "C compiler" in fallback.stderr


def test_threads_get_the_results_of_one_thread():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 5, 4000).astype(float), rng.integers(0, 40, 4000)
    X = rng.standard_normal((4000, 6))
    alone = [RankSVM(alpha).fit(X, y, groups).coef_ for alpha in (1e-3, 1e-2, 1e-1, 1.0)]
    with ThreadPoolExecutor(4) as pool:
        models = pool.map(lambda a: RankSVM(a).fit(X, y, groups), (1e-3, 1e-2, 1e-1, 1.0))
        together = [model.coef_ for model in models]
    np.testing.assert_array_equal(together, alone)
