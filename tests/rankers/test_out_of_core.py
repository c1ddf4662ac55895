"""Sums: batches in any order, merged, subtracted, sent as bytes, are RankRLS on the rows."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise import PairGraph, RankRLS, SufficientStatistics, make_target
from rankwise.errors import ClosedGroupError
from rankwise.persistence import load, save
from rankwise.rankers import batch_sums

RULES = [
    {"cost": "magnitude", "ties": "include"},
    {"cost": "magnitude", "ties": "exclude"},
    {"cost": "sign"},
    {"cost": "relative"},
]


def problem(seed=0, n_rows=60, n_features=4, n_groups=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) + 3
    return X, rng.integers(0, 3, n_rows) + 0.1, rng.integers(0, n_groups, n_rows)


def added(X, y, groups, batches, weight=None, **options):
    sums = SufficientStatistics(**options)
    for rows in batches:
        own = None if weight is None else weight[rows]
        sums.add(X[rows], y[rows], None if groups is None else groups[rows], own)
    return sums


def assert_same(sums, expected, alpha=0.1, rtol=1e-9):
    model = sums.solve([alpha]).model(0)
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=rtol * scale)
    assert model.n_pairs_ == expected.n_pairs_


def cut(n_rows, sizes, seed):
    rows = np.random.default_rng(seed).permutation(n_rows)
    return np.split(rows, np.unique(np.clip(np.cumsum(sizes), 1, n_rows - 1)))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    options=st.fixed_dictionaries(
        {"group_weight": st.sampled_from(["pairs", "groups"]), "beta": st.sampled_from([0.0, 0.3])}
    ),
    is_one_list=st.booleans(),
    order=st.randoms(use_true_random=False),
)
def test_any_tree_of_merges_of_any_rows_is_one_fit(seed, sizes, options, is_one_list, order):
    X, y, groups = problem(seed, n_rows=30, n_features=2, n_groups=3)
    groups = None if is_one_list else groups
    weight = np.random.default_rng(seed).uniform(0.5, 2, 30) * (np.arange(30) % 7 > 0)
    batches = cut(30, sizes, seed)
    several = [added(X, y, groups, [rows], weight, **options) for rows in batches]
    while len(several) > 1:
        order.shuffle(several)
        several.append(
            several.pop(0).merge(SufficientStatistics.from_bytes(several.pop(0).to_bytes()))
        )
    expected = RankRLS(0.1, **options).fit(X, y, groups, weight)
    assert_same(several[0], expected)
    assert_same(added(X, y, groups, batches, weight, **options), expected)


@pytest.mark.parametrize("rule", RULES)
def test_whole_groups_of_every_cost_and_all_alphas_at_once(rule):
    X, y, groups = problem()
    options = {**rule, "group_weight": "groups", "beta": 0.2}
    batches = [np.flatnonzero(np.isin(groups, some)) for some in ([3, 1], [0], [4, 2])]
    path = added(X, y, groups, batches, **options).solve([0.01, 1.0])
    expected = RankRLS(**options).path(X, y, groups, alphas=[0.01, 1.0])
    np.testing.assert_allclose(path.coefficients, expected.coefficients, rtol=1e-9)
    np.testing.assert_allclose(path.predict(X), expected.predict(X), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n_gone=st.integers(1, 26),
    group_weight=st.sampled_from(["pairs", "groups"]),
    is_one_list=st.booleans(),
)
def test_what_is_subtracted_was_never_there(seed, n_gone, group_weight, is_one_list):
    X, y, groups = problem(seed, n_rows=30, n_features=2, n_groups=3)
    groups = None if is_one_list else groups
    options = {"group_weight": group_weight, "beta": 0.3}
    gone, left = cut(30, [n_gone], seed)
    sums = added(X, y, groups, [left, gone], **options)
    sums.subtract(added(X, y, groups, [gone], **options))
    assert_same(sums, fitted(X[left], y[left], groups, left, options), rtol=1e-7)
    sums.add(X[gone], y[gone], None if groups is None else groups[gone])
    assert_same(sums, fitted(X, y, groups, slice(None), options), rtol=1e-7)


def fitted(X, y, groups, rows, options):
    return RankRLS(0.1, **options).fit(X, y, None if groups is None else groups[rows])


def test_whole_groups_are_subtracted_under_every_cost_and_parts_are_not():
    X, y, groups = problem()
    first, rest = np.flatnonzero(groups < 2), np.flatnonzero(groups >= 2)
    for rule in RULES:
        sums = added(X, y, groups, [first, rest], **rule)
        if not sums.takes_parts:
            with pytest.raises(ValueError, match=r"rows of group 0 cannot be subtracted"):
                sums.subtract(added(X, y, groups, [first[groups[first] == 0][1:]], **rule))
        sums.subtract(added(X, y, groups, [first], **rule))
        assert_same(sums, RankRLS(0.1, **rule).fit(X[rest], y[rest], groups[rest]))
        with pytest.raises(ValueError, match="0 rows of it were added"):
            sums.subtract(added(X, y, groups, [first], **rule))
        sums.add(X[first], y[first], groups[first])
        assert_same(sums, RankRLS(0.1, **rule).fit(X, y, groups))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_a_second_pass_leaves_out_every_group_as_a_refit_does(rule, beta):
    X, y, groups = problem()
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    options = {**rule, "beta": beta, "group_weight": "groups"}
    batches = [np.flatnonzero(np.isin(groups, some)) for some in ([3, 1], [0], [4, 2])]
    sums = added(X, y, groups, batches, weight, **options)
    found = np.empty((60, 2))
    for rows in batches:
        found[rows] = sums.held_out(X[rows], y[rows], groups[rows], [0.01, 1.0], weight[rows])
    for group in range(5):
        own = groups == group
        refit = RankRLS(**options).path(
            X[~own], y[~own], groups[~own], alphas=[0.01, 1.0], sample_weight=weight[~own]
        )
        np.testing.assert_allclose(found[own], refit.predict(X[own]), rtol=1e-8, atol=1e-10)


def test_groups_that_may_go_on_are_left_out_row_by_row_and_others_must_be_whole():
    X, y, groups = problem()
    sums = added(X, y, groups, cut(60, [20, 20], 0))
    expected = sums.held_out(X, y, groups, [0.1])
    parts = [sums.held_out(X[rows], y[rows], groups[rows], [0.1]) for rows in cut(60, [7], 1)]
    np.testing.assert_allclose(np.vstack(parts), expected[np.concatenate(cut(60, [7], 1))])
    closed = SufficientStatistics().add(X, y, groups, whole_groups=True)
    np.testing.assert_allclose(closed.held_out(X, y, groups, [0.1]), expected, rtol=1e-8)
    n_rows = np.sum(groups == groups[0])
    with pytest.raises(ValueError, match=rf"group {groups[0]} has 1 rows .* but {n_rows} were"):
        closed.held_out(X[:1], y[:1], groups[:1], [0.1])
    with pytest.raises(ValueError, match="group 9 has 60 rows in this batch, but 0"):
        closed.held_out(X, y, np.full(60, 9), [0.1])
    with pytest.raises(ValueError, match="without groups all rows are one list"):
        SufficientStatistics().add(X, y).held_out(X, y, None, [0.1])
    alone = np.zeros(60, int)
    with pytest.raises(ValueError, match="without group 0 there is no pair"):
        SufficientStatistics().add(X, y, alone).held_out(X, y, alone, [0.1])


def test_sorted_rows_keep_the_first_and_last_group_of_a_batch():
    X, y, groups = problem(n_rows=200, n_groups=20)
    groups.sort()
    halves = [SufficientStatistics(), SufficientStatistics()]
    for k, rows in enumerate(np.array_split(np.arange(200), 9)):
        halves[k // 5].add(X[rows], y[rows], groups[rows], is_sorted=True)
    kept = [one._open_groups.keys() for one in halves]
    assert all(2 < len(names) < 15 for names in kept)
    assert_same(halves[1].merge(halves[0]), RankRLS(0.1).fit(X, y, groups))


def test_a_long_group_is_added_up_in_blocks():
    X, y, _ = problem(n_rows=9000, n_features=2)
    both, scores, _ = twice(X, y, None, None, 1e4)
    one_list = np.zeros(len(scores))
    assert_same(
        SufficientStatistics().add(X + 1e4, y).add(X, y), RankRLS(0.1).fit(both, scores, one_list)
    )


def test_several_outputs_sparse_rows_targets_and_large_offsets():
    X, y, groups = problem()
    Y = np.c_[y, -y, y**2]
    both = added(X, Y, groups, cut(60, [20, 20], 3))
    assert_same(both, RankRLS(0.1).fit(X, Y, groups))
    assert SufficientStatistics.from_bytes(both.to_bytes()).held_out(
        X, Y, groups, [0.1, 1]
    ).shape == (60, 3, 2)
    expected = RankRLS(0.1).fit(X, y, groups)
    assert_same(added(X + 1e6, y, groups, cut(60, [20, 20], 3)), expected, rtol=1e-6)
    sums = SufficientStatistics()
    for rows in cut(60, [20, 20], 3):
        sums.add(sp.csr_array(X[rows]), make_target(y[rows], groups[rows]))
    assert_same(sums, expected)


SCALES = [1e-12, 1e-8, 1.0, 1e8, 1e12]


def scaled_problem(scale_of_column, scale_of_scores):
    X, y, groups = problem(n_rows=200, n_groups=4)
    units = np.array([1.0, 1.0, scale_of_column, 1.0])
    alpha = 1e-3 * min(1.0, scale_of_column) ** 2  # small enough to leave every column its weight
    return X * units, y * scale_of_scores, groups, units / scale_of_scores, alpha


@pytest.mark.parametrize("is_one_list", [True, False])
@pytest.mark.parametrize("scale_of_scores", SCALES)
@pytest.mark.parametrize("scale_of_column", SCALES)
def test_units_of_a_column_and_of_the_scores_cost_no_digits(
    scale_of_column, scale_of_scores, is_one_list
):
    X, y, groups, units, alpha = scaled_problem(scale_of_column, scale_of_scores)
    groups = None if is_one_list else groups
    expected = RankRLS(alpha).fit(X, y, groups).coef_ * units
    batches = np.array_split(np.arange(200), 7)
    sums = added(X, y, groups, batches)
    found = sums.solve([alpha]).model(0).coef_ * units
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    expired = added(X, y, groups, batches[:2])
    rest = np.concatenate(batches[2:])
    of_rest = None if is_one_list else groups[rest]
    expected = RankRLS(alpha).fit(X[rest], y[rest], of_rest).coef_ * units
    found = sums.subtract(expired).solve([alpha]).model(0).coef_ * units
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    model = RankRLS(alpha)
    for rows in batches[2:]:
        model.partial_fit(X[rows], y[rows], None if is_one_list else groups[rows])
    np.testing.assert_allclose(model.coef_ * units, expected, rtol=1e-10)


def test_models_know_their_columns_and_are_saved(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, groups = problem()
    frame = pd.DataFrame(X, columns=list("abcd"))
    sums = SufficientStatistics().add(frame[:30], y[:30], groups[:30])
    sums = SufficientStatistics.from_bytes(sums.to_bytes()).add(frame[30:], y[30:], groups[30:])
    model = sums.solve([0.1]).model(0)
    assert model.feature_names_in_.tolist() == list("abcd")
    save(model, tmp_path / "model.rw")
    np.testing.assert_array_equal(load(tmp_path / "model.rw").predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        sums.add(frame.rename(columns={"a": "z"}), y, groups)


def test_without_room_the_groups_seen_last_stay_open_and_the_others_are_refused(monkeypatch):
    monkeypatch.setattr(batch_sums, "OPEN_BYTES", 400)
    X, y, _ = problem(n_rows=200, n_features=2)
    groups = np.repeat(np.arange(20), 10)
    sums = SufficientStatistics()
    for rows in np.split(np.arange(200), np.arange(15, 200, 15)):  # every second group is cut
        sums.add(X[rows], y[rows], groups[rows])
        assert sums.open_bytes <= 400
    assert_same(sums, RankRLS(0.1).fit(X, y, groups))
    with pytest.raises(ValueError, match="group 0 has rows in several batches"):
        sums.add(X[:1], y[:1], [0])
    other = SufficientStatistics().add(X[:1], y[:1], [0])
    for one, two in ((sums, other), (other, sums)):
        with pytest.raises(ValueError, match="no longer kept"):
            one.merge(two)
    np.testing.assert_allclose(  # closed groups are held out whole
        sums.held_out(X[:10], y[:10], groups[:10], [0.1])[:, 0],
        RankRLS(0.1).fit(X[10:], y[10:], groups[10:]).predict(X[:10]),
    )


@pytest.mark.parametrize(
    "message, X, y, groups",
    [
        ("X has 3 features, but EarlierBatches is expecting 4", np.zeros((2, 3)), [0, 1], [0, 0]),
        ("contains NaN", np.full((2, 4), np.nan), [0, 1], [0, 0]),
        ("preferences cannot be split", np.zeros((2, 4)), PairGraph([0], [1], n_items=2), None),
    ],
)
def test_a_bad_batch_is_refused_and_changes_nothing(message, X, y, groups):
    good = problem()
    sums = SufficientStatistics().add(*good)
    with pytest.raises(ValueError, match=message):
        sums.add(X, y, groups)
    assert_same(sums, RankRLS(0.1).fit(*good))
    assert sums.n_items == 60


def test_sums_of_different_problems_do_not_mix_and_nothing_is_no_model():
    X, y, groups = problem()
    sums = SufficientStatistics().add(X, y, groups)
    for other, message in [
        (SufficientStatistics(cost="sign").add(X, y, groups), "cost of the sums differ"),
        (
            SufficientStatistics().add(X[:, :2], y, groups),
            "n_features_in_ of the sums differ, 4 and 2",
        ),
        (SufficientStatistics().add(X, np.c_[y, y], groups), "output_shape"),
        (SufficientStatistics().add(X, y), "given in some batches"),
    ]:
        with pytest.raises(ValueError, match=message):
            sums.merge(other)
    with pytest.raises(TypeError, match=r"expected rankwise\.SufficientStatistics"):
        sums.merge(RankRLS())
    assert_same(sums.merge(SufficientStatistics()), RankRLS(0.1).fit(X, y, groups))
    for empty in (SufficientStatistics(), SufficientStatistics().add(X[:2], y[:2], [0, 1])):
        with pytest.raises(ValueError, match="nothing to rank"):
            empty.solve([0.1])
    with pytest.raises(ValueError, match="squares of some features overflow"):
        SufficientStatistics().add(1e200 * X, y, groups)
    with pytest.raises(ValueError, match="cost='signs'"):
        SufficientStatistics(cost="signs").add(X, y, groups)
    with pytest.raises(ValueError, match="beta=2"):
        SufficientStatistics(beta=2)


def test_damaged_bytes_are_refused():
    """A byte that is not as it was: the checksums of the archive tell."""
    data = SufficientStatistics().add(*problem()).to_bytes()
    for place in (0, 200, 1000, len(data) // 2, len(data) - 10):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        with pytest.raises(ValueError, match=r"do not contain rankwise\.SufficientStatistics"):
            SufficientStatistics.from_bytes(bytes(damaged))


def test_other_bytes_and_labels_are_refused():
    X, y, groups = problem()
    packed = io.BytesIO()
    np.savez_compressed(packed, np.zeros(10**6))
    other = io.BytesIO()
    np.savez(other, np.frombuffer(b'{"format": "other"}', np.uint8))
    for data in (b"", b"PK", packed.getvalue(), other.getvalue()):
        with pytest.raises(ValueError, match=r"do not contain rankwise\.SufficientStatistics"):
            SufficientStatistics.from_bytes(data)
    sums = SufficientStatistics().add(X, y, [(0, group) for group in groups.tolist()])
    with pytest.raises(ValueError, match="only numbers and text"):
        sums.to_bytes()
    for labels in (groups.astype(str), groups.astype(float), None):
        sums = SufficientStatistics().add(X, y, labels)
        again = SufficientStatistics.from_bytes(sums.to_bytes())
        assert_same(again.add(X, y, labels), RankRLS(0.1).fit(*twice(X, y, groups, labels)))


def twice(X, y, groups, labels, shift=0.0):
    return np.vstack([X + shift, X]), np.r_[y, y], None if labels is None else np.r_[groups, groups]


def test_closed_groups_need_no_memory_and_take_no_rows():
    rng = np.random.default_rng(0)
    X, y, groups = rng.standard_normal((60, 3)), rng.standard_normal(60), np.repeat(range(6), 10)
    sums = SufficientStatistics().add(X, y, groups)
    expected = sums.solve([0.1]).coefficients
    assert sums.open_bytes > 0
    sums.close_groups()
    assert sums.open_bytes == 0
    np.testing.assert_array_equal(sums.solve([0.1]).coefficients, expected)
    held_out = sums.held_out(X[:10], y[:10], groups[:10], [0.1])
    refit = RankRLS(0.1).fit(X[10:], y[10:], groups[10:])
    np.testing.assert_allclose(held_out[:, 0], refit.predict(X[:10]), rtol=1e-9)
    with pytest.raises(ClosedGroupError):
        sums.add(X[:1], y[:1], groups[:1])
