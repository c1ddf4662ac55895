"""partial_fit: whatever the chunks and their order, the model of one fit on all rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from rankwise import RankRLS
from tests.pairwise import pairwise


def problem(seed=0, n_rows=60, n_features=4, n_groups=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)) + 3
    return X, rng.integers(0, 3, n_rows) + 0.1, rng.integers(0, n_groups, n_rows)


def assert_same(model, expected, rtol=1e-9):
    name = "coef_" if hasattr(expected, "coef_") else "dual_coef_"
    scale = np.abs(getattr(expected, name)).max()
    np.testing.assert_allclose(getattr(model, name), getattr(expected, name), atol=rtol * scale)
    assert model.n_pairs_ == expected.n_pairs_


def in_chunks(model, X, y, groups, chunks, weights=None, convert=np.asarray):
    for rows in chunks:
        own = [None if part is None else part[rows] for part in (groups, weights)]
        model.partial_fit(convert(X[rows]), y[rows], *own)
    return model


def shuffled_chunks(n_rows, sizes, seed):
    rows = np.random.default_rng(seed).permutation(n_rows)
    cuts = np.unique(np.clip(np.cumsum(sizes), 1, n_rows - 1))
    return np.split(rows, cuts)


@pytest.mark.parametrize(
    "group_weight, beta, grouped, weighted, convert",
    pairwise(
        ("pairs", "groups"),
        (0.0, 0.3, 1.0),
        (True, False),
        (True, False),
        (np.asarray, np.float32, np.asfortranarray, sp.csr_matrix),
    ),
)
def test_chunks_of_any_rows_give_the_model_of_one_fit(
    group_weight, beta, grouped, weighted, convert
):
    X, y, groups = problem()
    X = np.round(X)  # single precision is exact
    weights = 10.0 ** np.random.default_rng(5).uniform(-4, 4, 60)
    weights[::7] = 0.0
    groups, weights = groups if grouped else None, weights if weighted else None
    model = RankRLS(0.1, group_weight=group_weight, beta=beta)
    expected = clone(model).fit(X, y, groups, weights)
    in_chunks(model, X, y, groups, shuffled_chunks(60, [7, 2, 30, 1], 1), weights, convert)
    assert_same(model, expected, rtol=1e-8)
    assert model.n_samples_seen_ == 60


@pytest.mark.parametrize("n_rows, n_groups, most_bytes", [(400, 2, 12_800), (5000, 1, 8 * 11 * 5)])
def test_long_groups_are_kept_as_scatter_matrices_and_still_exact(n_rows, n_groups, most_bytes):
    X, y, groups = problem(n_rows=n_rows, n_groups=n_groups)
    labels = groups if n_groups > 1 else None
    model = in_chunks(RankRLS(0.1), X, y, labels, shuffled_chunks(n_rows, [n_rows // 5] * 5, 2))
    assert_same(model, RankRLS(0.1).fit(X, y, groups))
    assert model._sums.open_bytes <= most_bytes


def test_the_coefficients_are_those_of_the_rows_so_far_after_every_chunk():
    X, y, groups = problem()
    model = RankRLS(0.1)
    for end in range(10, 61, 10):
        model.partial_fit(X[end - 10 : end], y[end - 10 : end], groups[end - 10 : end])
        assert_same(model, RankRLS(0.1).fit(X[:end], y[:end], groups[:end]))


def test_a_group_that_comes_back_after_whole_groups_is_refused_and_nothing_changes():
    X, y, groups = problem()
    model = RankRLS(0.1).partial_fit(X, y, groups, whole_groups=True)
    assert model._sums.open_bytes == 0
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="group 3 has rows in several batches"):
        model.partial_fit(X[:2], y[:2], [3, 77])
    np.testing.assert_array_equal(model.coef_, before)
    assert_same(
        model.partial_fit(X, y, groups + 10), RankRLS(0.1).fit(*twice(X, y, groups, groups + 10))
    )


def twice(X, y, groups, others):
    return np.vstack([X, X]), np.r_[y, y], np.r_[groups, others]


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_a_kernel_on_basis_items_of_the_first_chunk_is_the_fit_on_that_basis(kernel):
    X, y, groups = problem()
    model = RankRLS(0.1, kernel=kernel, n_basis=8, random_state=0)
    in_chunks(model, X, y, groups, [np.arange(20), np.arange(20, 45), np.arange(45, 60)])
    expected = RankRLS(0.1, kernel=kernel, basis=model.basis_indices_).fit(X, y, groups)
    assert_same(model, expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-7, atol=1e-9)


def test_chunks_without_pairs_give_zero_until_there_is_one():
    model = RankRLS(0.1).partial_fit([[1.0]], [2.0], ["a"])
    assert model.n_pairs_ == 0
    np.testing.assert_array_equal(model.coef_, [0.0])
    model.partial_fit([[2.0]], [3.0], ["a"])
    assert_same(model, RankRLS(0.1).fit([[1.0], [2.0]], [2.0, 3.0]))


def test_alpha_may_change_and_other_parameters_may_not():
    X, y, groups = problem()
    model = RankRLS(0.1).partial_fit(X[:30], y[:30], groups[:30])
    model.set_params(alpha=7.0).partial_fit(X[30:], y[30:], groups[30:])
    assert_same(model, RankRLS(7.0).fit(X, y, groups))
    with pytest.raises(ValueError, match="cost is 'sign' but was 'magnitude'"):
        model.set_params(cost="sign").partial_fit(X, y, groups)


def test_fit_forgets_the_chunks_and_clones_and_copies_know_what_they_should():
    X, y, groups = problem()
    model = RankRLS(0.1).partial_fit(X[:30], y[:30], groups[:30])
    restored = pickle.loads(pickle.dumps(model))
    assert_same(restored.partial_fit(X[30:], y[30:], groups[30:]), RankRLS(0.1).fit(X, y, groups))
    later = clone(model).partial_fit(X[30:], y[30:], groups[30:])
    assert_same(later, RankRLS(0.1).fit(X[30:], y[30:], groups[30:]))
    model.fit(X, y, groups)
    assert not hasattr(model, "n_samples_seen_")
    assert_same(
        model.partial_fit(X[:30], y[:30], groups[:30]),
        RankRLS(0.1).fit(X[:30], y[:30], groups[:30]),
    )


def test_what_cannot_be_learnt_in_chunks_has_no_partial_fit():
    for model in (
        RankRLS(kernel="rbf"),
        RankRLS(kernel="precomputed", n_basis=3),
        RankRLS(n_basis=3),
    ):
        assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as error:
        RankRLS(kernel="rbf").partial_fit([[0.0], [1.0]], [0, 1])
    assert "features that do not change from chunk to chunk" in str(error.value.__cause__)


@pytest.mark.parametrize(
    "message, X, y, groups",
    [
        ("0 sample", np.zeros((0, 4)), [], []),
        ("y has 1 entries but X has 2 rows", np.zeros((2, 4)), [0], [0, 0]),
        ("outputs of shape", np.zeros((2, 4)), [[0, 1], [1, 0]], [0, 0]),
        ("given in some batches and None in others", np.zeros((2, 4)), [0, 1], None),
    ],
)
def test_a_bad_chunk_is_refused_and_changes_nothing(message, X, y, groups):
    good = problem()
    model = RankRLS(0.1).partial_fit(*good)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, groups)
    assert_same(model, RankRLS(0.1).fit(*good))
    assert model.n_samples_seen_ == 60


def test_bad_first_chunks():
    X, y, groups = problem()
    with pytest.raises(ValueError, match="n_basis=100; expected a whole number"):
        RankRLS(kernel="rbf", n_basis=100).partial_fit(X, y, groups)
    with pytest.raises(ValueError, match="basis has points with 3 features but X has 4"):
        RankRLS(kernel="rbf", basis=np.zeros((2, 3))).partial_fit(X, y, groups)
    with pytest.raises(ValueError, match="y has 2 outputs"):
        RankRLS(cost="sign").partial_fit(X, np.c_[y, y], groups)
    model = RankRLS(0.1)
    with pytest.raises(ValueError, match="groups has 3 entries"):
        model.partial_fit(X[:, :2], y, groups[:3])
    assert_same(model.partial_fit(X, y, groups), RankRLS(0.1).fit(X, y, groups))
