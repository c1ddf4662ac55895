"""RankSVM against an independent solver over explicit pairs, and that its certificate holds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics.pairwise import rbf_kernel

from rankwise import PairGraph, RankSVM, ScoreGraph
from rankwise.datasets import make_ranking
from rankwise.losses import HingeLoss, pairwise
from rankwise.solvers import pairwise_objective
from tests import oracle

LOSSES = ["hinge", "squared_hinge"]


def small_problem(seed, m=14, p=3, n_levels=4, n_groups=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, p))
    y = np.round(X @ rng.normal(size=p) + rng.normal(size=m)) if n_levels else rng.normal(size=m)
    groups = None if n_groups is None else rng.integers(0, n_groups, m)
    return X, y, groups


def minimum(X, y, groups, alpha, loss, group_weight="pairs"):
    """Bounds of the least objective, from explicit pairs."""
    edges = oracle.score_edges(y, groups, "sign", group_weight=group_weight)
    _, low, high = oracle.rank_svm(edges, X, alpha, loss)
    assert high - low < 2e-4 * high
    return low, high, edges


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "bmrm"])
@pytest.mark.parametrize(
    "n_groups, group_weight, alpha", [(None, "pairs", 1.0), (4, "pairs", 1e-2), (4, "groups", 1e-4)]
)
def test_objective_is_within_tol_of_an_independent_solver(
    loss, solver, n_groups, group_weight, alpha
):
    """[TreeRSVM11] equation 2 with the risk of equation 4."""
    X, y, groups = small_problem(3, n_groups=n_groups)
    model = RankSVM(alpha, loss=loss, solver=solver, group_weight=group_weight, tol=1e-4)
    model.fit(X, y, groups)
    low, high, edges = minimum(X, y, groups, alpha, loss, group_weight)
    w = model.coef_
    truth = oracle.margin_objective(edges, X @ w, w @ w, alpha, loss)
    assert model.objective_ == pytest.approx(truth, rel=1e-9)
    assert model.objective_ <= high * (1 + 1.1e-4)
    assert model.lower_bound_ <= high * (1 + 1e-9)
    assert model.objective_ >= low * (1 - 1e-9)
    assert model.gap_ <= 1e-4
    assert model.n_pairs_ == len(edges)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(LOSSES),
    solver=st.sampled_from(["auto", "bmrm"]),
    log_alpha=st.integers(-6, 1),
    n_groups=st.sampled_from([None, 3]),
    max_iter=st.integers(1, 30),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_the_certificate_is_never_wrong(seed, loss, solver, log_alpha, n_groups, max_iter, scale):
    """Stopped anywhere, the bound is below the least objective, and so is the gap honest."""
    X, y, groups = small_problem(seed, n_groups=n_groups)
    X = X * scale
    edges = oracle.score_edges(y, groups, "sign")
    if not edges:
        return
    alpha = 10.0**log_alpha * scale**2
    _, low, high = oracle.rank_svm(edges, X, alpha, loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RankSVM(alpha, loss=loss, solver=solver, max_iter=max_iter, tol=1e-5)
        model.fit(X, y, groups)
    assert model.lower_bound_ <= high + 1e-9
    assert model.objective_ >= low - 1e-9
    gap = (model.objective_ - model.lower_bound_) / model.objective_
    assert model.gap_ == pytest.approx(gap, abs=1e-12)
    assert (np.diff(model.history_["objective"]) <= 0).all()
    assert (np.diff(model.history_["lower_bound"]) >= -1e-12).all()
    assert len(model.history_["gap"]) == model.n_iter_ <= max_iter


@pytest.mark.parametrize("offset", [0.0, 2e3, 1e6])
@pytest.mark.parametrize("options", [{}, {"loss": "squared_hinge"}, {"solver": "bmrm"}])
def test_an_offset_of_float32_features_leaves_the_certificate_true(offset, options):
    """Scores and planes are computed in float64, whatever the precision of X."""
    rng = np.random.default_rng(0)
    X0 = rng.normal(size=(600, 5))
    y = np.round(X0 @ rng.normal(size=5) + rng.normal(size=600))
    X = (X0 + offset).astype("f4")
    model = RankSVM(1e-3, tol=1e-4, **options).fit(X, y)
    exact = X.astype(np.float64) - offset
    winner, loser = np.nonzero(y[:, None] > y)
    w = RankSVM(1e-3, tol=1e-4, **options).fit(exact, y).coef_
    for weights in (w, model.coef_):
        f = exact @ weights
        short = np.maximum(0.0, 1 - (f[winner] - f[loser]))
        value = np.mean(short ** (2 if options.get("loss") else 1)) + 1e-3 * weights @ weights
        assert model.lower_bound_ <= value * (1 + 1e-9)
        assert value <= model.lower_bound_ / (1 - 2.1e-4)
    assert model.objective_ == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_explicit_preferences_with_weights(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    winner = rng.integers(0, 10, 25)
    loser = (winner + rng.integers(1, 10, 25)) % 10
    weight = rng.random(25) + 0.1
    graph = PairGraph(winner, loser, weight=weight, n_items=10)
    model = RankSVM(0.05, loss=loss, tol=1e-5).fit(X, graph)
    edges = oracle.pair_edges(winner, loser, np.ones(25), weight)
    _, low, high = oracle.rank_svm(edges, X, 0.05, loss)
    assert low * (1 - 1e-9) <= model.objective_ <= high * (1 + 2e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_scores_and_their_explicit_pairs_give_the_same_model(loss):
    X, y, groups = small_problem(5, n_groups=3)
    graph = ScoreGraph(y, groups, cost="sign", group_weight="groups")
    a = RankSVM(loss=loss, tol=1e-8).fit(X, graph)
    b = RankSVM(loss=loss, tol=1e-8).fit(X, graph.pairs())
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-7)
    assert a.n_pairs_ == b.n_pairs_


def test_ties_among_explicit_preferences_are_left_out_with_a_warning():
    graph = PairGraph([0, 1, 2], [1, 2, 0], magnitude=[1, 1, 0])
    X = np.array([[2.0], [1.0], [0.0]])
    with pytest.warns(UserWarning, match="1 of 3 edges have magnitude 0"):
        model = RankSVM().fit(X, graph)
    strict = RankSVM().fit(X, PairGraph([0, 1], [1, 2]))
    np.testing.assert_allclose(model.coef_, strict.coef_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_kernels_go_by_the_empirical_kernel_map(loss, alpha):
    """[RankRLS09] section 4.2: the same objective on any root of the kernel matrix."""
    X, y, groups = small_problem(7, m=16, n_groups=2)
    K = rbf_kernel(X, gamma=0.3)
    model = RankSVM(alpha, loss=loss, kernel="rbf", gamma=0.3, tol=1e-5).fit(X, y, groups)
    values, vectors = np.linalg.eigh(K)
    low, high, edges = minimum(vectors * np.sqrt(values), y, groups, alpha, loss)
    a, f = model.dual_coef_, model.predict(X)
    np.testing.assert_allclose(f, K @ a, atol=1e-8)
    assert oracle.margin_objective(edges, f, a @ K @ a, alpha, loss) == pytest.approx(
        model.objective_, rel=1e-7
    )
    assert low * (1 - 1e-9) <= model.objective_ <= high * (1 + 2e-5)
    same = RankSVM(alpha, loss=loss, kernel="precomputed", tol=1e-5).fit(K, y, groups)
    np.testing.assert_allclose(same.predict(K), f, atol=1e-7)


def test_a_basis_of_all_items_is_the_full_kernel_and_a_part_is_no_better():
    """[RankRLS09] section 4.4."""
    X, y, groups = small_problem(9, m=20, n_groups=2)
    full = RankSVM(0.01, kernel="rbf", tol=1e-6).fit(X, y, groups)
    every = RankSVM(0.01, kernel="rbf", tol=1e-6, n_basis=20).fit(X, y, groups)
    some = RankSVM(0.01, kernel="rbf", tol=1e-6, basis=[1, 4, 7, 9, 15]).fit(X, y, groups)
    assert every.objective_ == pytest.approx(full.objective_, rel=3e-6)
    assert some.objective_ >= full.lower_bound_
    assert some.dual_coef_.shape == (5,)
    np.testing.assert_array_equal(some.X_fit_, X[[1, 4, 7, 9, 15]])


def test_an_indefinite_kernel_warns_and_leaves_the_negative_part_out():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    values = np.r_[-2.0, -1.0, np.linspace(1, 3, 10)]
    K = (Q * values) @ Q.T
    y = rng.normal(size=12)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = RankSVM(0.01, kernel="precomputed", tol=1e-6).fit(K, y)
    C = np.eye(12) - 1 / 12  # differences see the centred kernel only
    values, vectors = np.linalg.eigh(C @ K @ C)
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    same = RankSVM(0.01, kernel="precomputed", tol=1e-6).fit(positive, y)
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-5)


def test_a_conditionally_positive_kernel_is_a_kernel_for_differences():
    X, y, groups = small_problem(3, m=20, n_groups=2)
    K = rbf_kernel(X)
    shift = np.random.default_rng(0).normal(size=20)
    a = RankSVM(0.01, kernel="precomputed", tol=1e-6).fit(K, y, groups)
    shifted = K + shift[:, None] + shift - 5
    b = RankSVM(0.01, kernel="precomputed", tol=1e-6).fit(shifted, y, groups)
    assert a.objective_ == pytest.approx(b.objective_, rel=2e-6)
    assert a.dual_coef_.sum() == pytest.approx(0, abs=1e-9)
    difference = np.ptp(a.predict(K) - b.predict(K))
    assert difference < 0.02


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}, {"loss": "squared_hinge"}], ids=str)
def test_path_equals_separate_fits_in_the_order_given(options):
    X, y, groups = small_problem(11, m=30, n_groups=4)
    alphas = np.array([1e-3, 1.0, 1e-5, 0.1])
    path = RankSVM(tol=1e-5, **options).path(X, y, groups, alphas=alphas)
    assert len(path) == 4
    assert (path.gaps <= 1e-5).all()
    scores = path.predict(X)
    assert scores.shape == (30, 4)
    for k, alpha in enumerate(alphas):
        direct = RankSVM(alpha, tol=1e-5, **options).fit(X, y, groups)
        model = path.model(k)
        assert model.alpha == alpha
        assert model.objective_ == pytest.approx(direct.objective_, rel=2e-5)
        assert model.lower_bound_ <= direct.objective_ * (1 + 1e-12)
        np.testing.assert_allclose(model.predict(X), scores[:, k])


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}])
def test_warm_start_needs_fewer_iterations_and_ends_at_the_same_objective(options):
    X, y, groups = make_ranking(30, 10, 8, noise=1.0, n_levels=4, random_state=0)[:3]
    model = RankSVM(1e-3, warm_start=True, solver="bmrm", **options).fit(X, y, groups)
    first, objective = model.n_iter_, model.objective_
    model.fit(X, y, groups)
    assert model.n_iter_ < first
    assert model.objective_ == pytest.approx(objective, rel=1e-3)
    cold = RankSVM(1e-3, solver="bmrm", **options).fit(X, y, groups)
    assert cold.n_iter_ == first


def test_warm_start_after_data_of_another_shape_starts_anew():
    X, y, _ = small_problem(0)
    model = RankSVM(warm_start=True).fit(X, y)
    model.fit(X[:, :2], y)
    assert model.coef_.shape == (2,)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_from_a_sample_of_many_items_changes_only_the_time(loss, monkeypatch):
    X, y, groups = make_ranking(40, 50, 6, noise=0.5, random_state=0)[:3]
    plain = RankSVM(1e-3, loss=loss, tol=1e-6).fit(X, y, groups)
    monkeypatch.setattr(pairwise, "MIN_SAMPLE_ITEMS", 10)
    sampled = RankSVM(1e-3, loss=loss, tol=1e-6).fit(X, y, groups)
    assert sampled.objective_ == pytest.approx(plain.objective_, rel=2e-6)
    assert not np.array_equal(sampled.coef_, plain.coef_)  # the sample was used


# bad and extreme input


@pytest.mark.parametrize(
    "y, groups, message",
    [
        ([1, 1, 1, 1], None, "nothing to rank.*scores that differ"),
        ([1, 2, 3, 4], [0, 1, 2, 3], "nothing to rank.*group labels that are shared"),
        ([1, 2, 3, np.nan], None, "NaN|nan"),
        ([1, 2, 3, np.inf], None, "inf"),
        ([1, 2, 3], None, "y has 3 entries but X has 4 rows"),
        ([1, 2, 3, 4], [0, 0, 1], "groups has 3 entries but there are 4 rows"),
        ([[1, 2], [3, 4], [5, 6], [7, 8]], None, "RankSVM learns one output"),
        (PairGraph([0, 1], [1, 2], magnitude=[0, 0], n_items=4), None, "nothing to rank"),
        (PairGraph([], [], n_items=4), None, "nothing to rank"),
    ],
)
def test_bad_targets_are_explained(y, groups, message):
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(np.eye(4), y, groups)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"alpha": 0}, "alpha: got 0"),
        ({"alpha": -1.0}, "alpha: got -1"),
        ({"alpha": np.nan}, "alpha: got nan"),
        ({"loss": "logistic"}, "loss='logistic'"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"solver": "newton-cg"}, "squared_hinge"),
        ({"tol": 0}, "tol=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_basis": 3}, "n_basis and basis are for kernel models"),
        ({"group_weight": "rows"}, "group_weight='rows'"),
        ({"kernel": "gaussian"}, "kernel='gaussian'"),
    ],
)
def test_bad_parameters_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        RankSVM(**options).fit(np.eye(4), [1, 2, 3, 4])


def test_a_column_of_scores_is_taken_with_a_warning():
    X, y, _ = small_problem(0)
    with pytest.warns(DataConversionWarning):
        model = RankSVM().fit(X, y[:, None])
    np.testing.assert_array_equal(model.coef_, RankSVM().fit(X, y).coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_separable_data_are_separated(loss):
    X = np.arange(8.0)[:, None]
    model = RankSVM(1e-8, loss=loss).fit(X, np.arange(8))
    np.testing.assert_allclose(model.coef_, 1.0, rtol=1e-2)
    assert model.gap_ <= 1e-3
    assert model.score(X, np.arange(8)) == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_features_and_identical_rows(loss):
    X = np.ones((5, 2))
    model = RankSVM(loss=loss).fit(X, [1, 2, 3, 4, 5])
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-12)
    assert model.objective_ == pytest.approx(1.0)
    assert model.gap_ <= 1e-3
    varied = np.column_stack([np.ones(6), [0, 0, 1, 1, 2, 2]])
    y = [0, 1, 1, 2, 2, 3]
    low, high, _ = minimum(varied, np.array(y, float), None, 0.01, loss)
    model = RankSVM(0.01, loss=loss).fit(varied, y)
    assert low * (1 - 1e-9) <= model.objective_ <= high * 1.001


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [10.0, 1e3, 1e12])
def test_strong_regularisation_still_orders(loss, alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5)) * 0.1
    y = X[:, 0] + 0.05 * rng.normal(size=100)
    model = RankSVM(alpha, loss=loss).fit(X, y)
    assert model.gap_ <= 1e-3
    assert model.score(X, y) > 0.8
    assert model.lower_bound_ <= model.objective_
    path = RankSVM(loss=loss).path(X, y, alphas=[alpha, 1e-3])
    assert path.model(0).score(X, y) > 0.8


@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_only_the_order_of_the_scores_counts(scale):
    X, y, groups = small_problem(2, n_levels=0, n_groups=2)
    a, b = RankSVM().fit(X, y, groups), RankSVM().fit(X, y * scale, groups)
    np.testing.assert_array_equal(a.coef_, b.coef_)


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_features_of_any_scale(scale):
    X, y, groups = small_problem(2, n_groups=2)
    a = RankSVM(0.01, tol=1e-6).fit(X, y, groups)
    b = RankSVM(0.01 * scale**2, tol=1e-6).fit(X * scale, y, groups)
    assert a.objective_ == pytest.approx(b.objective_, rel=2e-6)


def test_features_on_very_different_scales():
    X, y, groups = small_problem(4, m=30, n_groups=3)
    X = X * [1.0, 1e4, 1e-3] + [0.0, 1e5, 0.0]
    low, high, _ = minimum(X, y, groups, 1.0, "squared_hinge")
    model = RankSVM(1.0, loss="squared_hinge").fit(X, y, groups)
    assert low * (1 - 1e-6) <= model.objective_ <= high * 1.001


@pytest.mark.parametrize("loss", LOSSES)
def test_many_features_go_by_the_diagonal_of_the_curvature(loss, monkeypatch):
    X, y, groups = small_problem(4, m=30, p=8, n_groups=3)
    few = RankSVM(0.01, loss=loss, tol=1e-5).fit(X, y, groups)
    monkeypatch.setattr(pairwise_objective, "MAX_COVARIANCE_FEATURES", 4)
    many = RankSVM(0.01, loss=loss, tol=1e-5).fit(X, y, groups)
    assert many.objective_ == pytest.approx(few.objective_, rel=2e-5)
    assert not np.array_equal(many.coef_, few.coef_)


def test_features_that_a_sample_misses_are_learnt_all_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 3))
    X[:, 2] = 0
    X[[1, 7, 11], 2] = 5.0  # none of them is in the samples
    y = X[:, 0] + 2 * X[:, 2] + rng.normal(size=len(X))
    model = RankSVM(1e-4).fit(X, y)
    assert model.gap_ <= 1e-3
    assert model.n_iter_ < 30
    assert model.coef_[2] > 0


def test_groups_of_one_row_teach_nothing():
    X, y, groups = small_problem(6, n_groups=3)
    lonely = np.vstack([X, 100 * np.ones((4, 3))])
    more = RankSVM(tol=1e-7).fit(lonely, np.r_[y, 9, 8, 7, 6], np.r_[groups, 10, 11, 12, 13])
    assert more.objective_ == pytest.approx(
        RankSVM(tol=1e-7).fit(X, y, groups).objective_, rel=2e-7
    )


# stopping, interruption, progress


def test_max_iter_warns_with_the_gap_reached():
    X, y, groups = make_ranking(30, 10, 8, noise=1.0, random_state=0)[:3]
    with pytest.warns(ConvergenceWarning, match=r"max_iter.*After 2 iterations.*gap is \d"):
        model = RankSVM(1e-6, max_iter=2).fit(X, y, groups)
    assert model.n_iter_ == 2
    assert model.gap_ > model.tol


@pytest.mark.parametrize("look", [1, 8])
def test_interrupting_leaves_the_best_model_so_far(monkeypatch, look):
    X, y, groups = make_ranking(30, 10, 8, noise=1.0, random_state=0)[:3]
    whole = RankSVM(1e-5).fit(X, y, groups)
    at, calls = HingeLoss.at, []

    def impatient(self, f):
        calls.append(1)
        if len(calls) == look:
            raise KeyboardInterrupt
        return at(self, f)

    monkeypatch.setattr(HingeLoss, "at", impatient)
    with pytest.warns(ConvergenceWarning, match="was interrupted; the model is the best"):
        model = RankSVM(1e-5).fit(X, y, groups)
    assert 1 <= model.n_iter_ < whole.n_iter_
    assert model.lower_bound_ <= whole.objective_
    if look == 1:  # before the first iteration
        np.testing.assert_array_equal(model.coef_, 0)
        assert model.gap_ == 1
    else:
        assert model.objective_ < 1
        assert model.score(X, y, groups) > 0.5


def test_verbose_shows_progress_on_standard_error(capsys):
    X, y, _ = small_problem(0)
    RankSVM().fit(X, y)
    assert capsys.readouterr() == ("", "")
    model = RankSVM(verbose=2).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == model.n_iter_
    assert err.startswith("RankSVM iteration 1: objective 1, gap ")
    RankSVM(verbose=1).fit(X, y)
    assert capsys.readouterr().err.count("\n") == 1
