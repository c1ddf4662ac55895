"""GroupScaler against double loops, in Pipelines, searches, model files and on hard numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import GroupScaler, RankRLS, RankRLSCV
from rankwise.datasets import make_ranking
from rankwise.model_selection import leave_group_out_predict
from rankwise.model_selection.scorer import needs_groups, predict_items
from tests.oracle import scaled_in_groups

rng = np.random.default_rng(3)
GROUPS = rng.integers(0, 6, size=40)
X = rng.normal(size=(40, 3)) * [1.0, 1e6, 1e-9] + [1.0, -5.0, 0.0]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=30),
    st.integers(0, 2**31),
    st.sampled_from([0.0, 1.0, 1e3, -1e7]),
    st.sampled_from([1.0, 1e-12, 1e12]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_is_the_double_loop_whatever_offset_and_scale(labels, seed, offset, scale, log, wide):
    local = np.random.default_rng(seed)
    values = np.round(local.normal(size=(len(labels), 12 if wide else 2)), 1) * scale
    values += offset * scale
    scaler = GroupScaler(with_log=log)
    found = scaler.fit_transform(values, groups=labels)
    expected = scaled_in_groups(values, labels, log=log)
    np.testing.assert_allclose(found, expected, atol=2e-6 if log or offset else 1e-9)


def test_blocks_of_groups_change_nothing(monkeypatch):
    from rankwise.preprocessing import group_scaling

    whole = GroupScaler().fit_transform(X, groups=GROUPS)
    monkeypatch.setattr(group_scaling, "BLOCK_ENTRIES", 4)
    np.testing.assert_allclose(GroupScaler().fit_transform(X, groups=GROUPS), whole, atol=1e-12)


def test_no_block_passes_over_all_groups(monkeypatch):
    from rankwise.groups import Groups
    from rankwise.preprocessing import group_scaling

    def pass_over_all_groups(groups, rows):
        raise AssertionError("as many blocks as groups: quadratic time")

    monkeypatch.setattr(group_scaling, "BLOCK_ENTRIES", 4)
    monkeypatch.setattr(Groups, "take", pass_over_all_groups)
    scaled = group_scaling.scale_in_groups(X, GROUPS)
    np.testing.assert_allclose(scaled, scaled_in_groups(X, GROUPS), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("value", [0.1, 1e8 + 0.1, 1e-300, 1e300, -7.3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_column_that_is_constant_in_a_group_becomes_zero(value, dtype):
    value = dtype(np.clip(value, -np.finfo(dtype).max, np.finfo(dtype).max))
    items = np.full((7, 1), value, dtype=dtype)
    items[3, 0] = value * (1 - np.finfo(dtype).eps)  # rounding, not information
    scaled = GroupScaler().fit_transform(items, groups=[0, 0, 1, 1, 1, 1, 1])
    assert scaled.dtype == dtype
    assert not scaled.any()


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_squares_that_would_overflow_do_not(scale):
    scaled = GroupScaler().fit_transform(np.array([[1.0], [2.0], [3.0]]) * scale, groups=[0] * 3)
    np.testing.assert_allclose(scaled[:, 0], [-(1.5**0.5), 0.0, 1.5**0.5], atol=1e-12)


def test_float32_loses_no_digits_to_an_offset():
    small = np.array([0.0, 1.0, 2.0, 4.0])
    items = (small + 1e6).astype(np.float32)[:, None]
    scaled = GroupScaler().fit_transform(items, groups=[0] * 4)
    np.testing.assert_allclose(scaled[:, 0], scaled_in_groups(small[:, None], [0] * 4)[:, 0], 1e-6)


def test_sparse_columns_are_divided_and_rankers_learn_the_same():
    dense = np.where(rng.random(X.shape) < 0.5, X, 0.0)
    dense[GROUPS == 2, 1] = 3.0  # constant in one group
    y = rng.normal(size=40)
    with pytest.raises(ValueError, match="with_mean=False"):
        GroupScaler().fit(sp.csr_array(dense))
    scaler = GroupScaler(with_mean=False)
    found = scaler.fit_transform(sp.csr_array(dense), groups=GROUPS)
    assert sp.issparse(found)
    plain = GroupScaler().fit_transform(dense, groups=GROUPS)
    np.testing.assert_allclose(
        found.toarray(), scaler.fit_transform(dense, groups=GROUPS), atol=1e-12
    )
    one, other = (RankRLS().fit(items, y, GROUPS).coef_ for items in (found, plain))
    np.testing.assert_allclose(one, other, atol=1e-12)
    both = GroupScaler(with_mean=False, with_standard=True, with_log=True)
    joined = both.fit_transform(sp.csr_array(dense), groups=GROUPS)
    np.testing.assert_allclose(
        joined.toarray(), both.fit_transform(dense, groups=GROUPS), atol=1e-12
    )


def test_standard_columns_stand_beside():
    scaler = GroupScaler(with_standard=True, with_log=True).fit(X, groups=GROUPS)
    logged = np.sign(X) * np.log1p(abs(X))
    new, labels = X[:9], GROUPS[:9]
    expected = [
        scaled_in_groups(new, labels, log=True),
        StandardScaler().fit(logged).transform(logged[:9]),
    ]
    np.testing.assert_allclose(scaler.transform(new, labels), np.hstack(expected), atol=1e-7)


def test_names_of_the_columns():
    frame = pd.DataFrame(X, columns=["bm25", "length", "age"])
    scaler = GroupScaler(with_standard=True).set_output(transform="pandas")
    names = ["bm25_in_group", "length_in_group", "age_in_group", "bm25", "length", "age"]
    assert list(scaler.fit_transform(frame, groups=GROUPS).columns) == names
    assert list(GroupScaler().fit(X).get_feature_names_out()) == [
        f"x{k}_in_group" for k in (0, 1, 2)
    ]


def test_groups_are_asked_for_where_they_were_given():
    scaler = GroupScaler().fit(X, groups=GROUPS)
    with pytest.raises(ValueError, match=r"enable_metadata_routing=True"):
        scaler.transform(X)
    alone = GroupScaler().fit(X)  # one list, to which new items belong, too
    np.testing.assert_allclose(alone.transform(X[:3]), alone.transform(X)[:3], atol=1e-12)
    np.testing.assert_allclose(alone.transform(X), StandardScaler().fit_transform(X), atol=1e-12)
    with pytest.raises(ValueError, match="groups has 3 entries"):
        scaler.transform(X, groups=[1, 2, 3])


def ranking_data():
    return make_ranking(n_queries=12, n_documents=8, noise=0.5, random_state=0)[:3]


@pytest.mark.parametrize("standard", [True, False])
def test_pipelines_hand_groups_on_when_routing_is_on(standard):
    items, y, groups = ranking_data()
    scaled = GroupScaler(with_standard=standard).fit_transform(items, groups=groups)
    expected = RankRLSCV().fit(scaled, y, groups)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(GroupScaler(with_standard=standard), RankRLSCV())
        model.fit(items, y, groups=groups)
        np.testing.assert_allclose(model.predict(items, groups=groups), expected.predict(scaled))
        assert model.score(items, y, groups=groups) == expected.score(scaled, y, groups)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        model.predict(items)
    np.testing.assert_allclose(predict_items(model, items, groups), expected.predict(scaled))
    assert needs_groups(model)
    assert not needs_groups(make_pipeline(StandardScaler(), RankRLS()))


def test_leave_group_out_after_scaling_is_exact():
    items, y, groups = ranking_data()
    scaled = GroupScaler(with_log=True).fit_transform(items, groups=groups)
    held = leave_group_out_predict(RankRLS(0.1), scaled, y, groups)
    for g in np.unique(groups):
        rest = groups != g
        scaler = GroupScaler(with_log=True)
        seen = scaler.fit_transform(items[rest], groups=groups[rest])
        new = scaler.transform(items[~rest], groups[~rest])
        refit = RankRLS(0.1).fit(seen, y[rest], groups[rest])
        np.testing.assert_allclose(held[~rest], refit.predict(new), atol=1e-9)


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=30),
    st.integers(0, 2**31),
    st.sampled_from([0.0, 1.0, -1e7]),
    st.sampled_from([1.0, 1e-12, 1e300]),
)
@settings(max_examples=60, deadline=None)
def test_minmax_of_rankrls09_section_5_2_is_the_double_loop(labels, seed, offset, scale):
    values = np.round(np.random.default_rng(seed).normal(size=(len(labels), 3)), 1)
    values = (values + offset) * scale
    scaled = GroupScaler(method="minmax").fit_transform(values, groups=labels)
    expected = np.zeros_like(values)
    for label in set(labels):
        rows = np.flatnonzero(np.array(labels) == label)
        for column in range(3):
            x = values[rows, column] / scale
            if x.max() > x.min():
                expected[rows, column] = (x - x.min()) / (x.max() - x.min())
    np.testing.assert_allclose(scaled, expected, atol=1e-7)
    assert scaled.min() >= 0
    assert scaled.max() <= 1


def test_minmax_without_groups_learns_the_range_of_the_list():
    scaler = GroupScaler(method="minmax").fit([[1.0], [3.0]])
    np.testing.assert_allclose(scaler.transform([[2.0], [5.0]]), [[0.5], [2.0]])
    with_both = GroupScaler(method="minmax", with_standard=True).fit(X, groups=GROUPS)
    both = with_both.transform(X, GROUPS)
    np.testing.assert_allclose(both[:, 3:], StandardScaler().fit_transform(X))
    with pytest.raises(ValueError, match="minmax"):
        GroupScaler(method="minmax", with_mean=False).fit(sp.csr_matrix(X), groups=GROUPS)
    with pytest.raises(ValueError, match="method"):
        GroupScaler(method="max").fit(X)
