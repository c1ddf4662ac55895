"""CalibratedRanker: what it says is what held-out pairs, refits and draws say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import (
    AutoRanker,
    CalibratedRanker,
    GroupScaler,
    PairGraph,
    RankRLS,
    RankRLSCV,
    RankSVM,
    make_target,
)
from rankwise.datasets import make_ranking
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.uncertainty.held_out_pairs import held_out_pairs
from rankwise.uncertainty.jackknife_errors import leave_units_out
from rankwise.uncertainty.probability_map import fit_probability_map, reliability
from tests.oracle_uncertainty import refit_without, weights_in_long_double

X, Y, GROUPS = make_ranking(
    n_queries=20, n_documents=(2, 8), n_features=4, noise=0.7, random_state=3
)[:3]
NEW = np.random.default_rng(1).standard_normal((12, 4))
MODEL = CalibratedRanker(RankRLS()).fit(X, Y, GROUPS)


def found_pairs(model, X, y, groups=None, units="auto", n_pairs=300):
    left = leave_units_out(model, X, y, groups, units=units)
    errors = left.jackknife()
    first, second, found = held_out_pairs(left, errors, n_pairs, np.random.default_rng(0))
    return first, second, found, left


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf", "gamma": 0.3}, {"cost": "sign"}])
def test_held_out_differences_and_errors_are_those_of_refits(options):
    model = RankRLS(0.1, **options)
    first, second, found, left = found_pairs(model, X, Y, GROUPS)
    assert (Y[first] > Y[second]).all()
    assert (GROUPS[first] == GROUPS[second]).all()
    fitted = clone(model).fit(X, Y, GROUPS)
    units = left.units.members
    refits = [refit_without(model, X, Y, GROUPS, U).predict(X) for U in units]
    f, n = fitted.predict(X), len(units)
    for k in range(0, len(first), 7):
        i, j = first[k], second[k]
        own = next(u for u, U in enumerate(units) if i in U)
        np.testing.assert_allclose(found.value[k], refits[own][i] - refits[own][j], atol=1e-9)
        changes = [(r[i] - r[j]) - (f[i] - f[j]) for u, r in enumerate(refits) if u != own]
        expected = np.sqrt((n - 2) / (n - 1) * np.sum(np.square(changes)))
        np.testing.assert_allclose(found.error[k], expected, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf", "gamma": 0.3}])
def test_pairs_of_one_list_are_held_out_two_at_a_time(options):
    model, m = RankRLS(0.1, **options), 25
    first, second, found, _ = found_pairs(model, X[:m], Y[:m])
    f = clone(model).fit(X[:m], Y[:m]).predict(X[:m])
    alone = [refit_without(model, X[:m], Y[:m], None, [u]).predict(X[:m]) for u in range(m)]
    for k in range(0, len(first), 31):
        i, j = first[k], second[k]
        refit = refit_without(model, X[:m], Y[:m], None, [i, j]).predict(X[:m])
        np.testing.assert_allclose(found.value[k], refit[i] - refit[j], atol=1e-9)
        changes = [(alone[u][i] - alone[u][j]) - (f[i] - f[j]) for u in range(m) if u not in (i, j)]
        expected = np.sqrt((m - 3) / (m - 2) * np.sum(np.square(changes)))
        np.testing.assert_allclose(found.error[k], expected, atol=1e-8)


def test_long_lists_and_other_costs_are_held_out_in_folds():
    first, second, _found, _ = found_pairs(RankRLS(0.1, cost="sign"), X[:40], Y[:40])
    assert len(first) > 20
    assert (Y[first] > Y[second]).all()


def test_held_out_comparisons_are_refits_without_each():
    rng = np.random.default_rng(0)
    winner = rng.integers(30, size=50)
    graph = PairGraph(winner, (winner + 1 + rng.integers(29, size=50)) % 30, n_items=30)
    _first, _second, found, _ = found_pairs(RankRLS(0.1), X[:30], graph)
    for k in range(0, 50, 9):
        refit = refit_without(RankRLS(0.1), X[:30], graph, None, [k]).predict(X[:30])
        expected = refit[graph.winner[k]] - refit[graph.loser[k]]
        np.testing.assert_allclose(found.value[k], expected, atol=1e-10)


def test_many_pairs_are_drawn_without_repeats():
    first, second, _found, _ = found_pairs(RankRLS(), X, Y, GROUPS, n_pairs=15)
    assert len(first) == 15
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == 15


def test_the_curve_has_the_least_logarithmic_loss():
    rng = np.random.default_rng(0)
    error = rng.uniform(0.1, 2, size=4000)
    d = rng.normal(0, 1.5, size=4000)
    sign = np.where(rng.random(4000) < expit(2 * d / np.sqrt(1 + 3 * error**2)), 1, -1)
    curve = fit_probability_map(sign * d, error)
    assert 1.6 < curve.slope < 2.5
    assert 1.5 < curve.error_weight < 6

    def loss(parameters):
        z = parameters[0] * sign * d / np.sqrt(1 + parameters[1] * error**2)
        return np.mean(np.logaddexp(0, -z)) + np.mean(z) / 4002

    best = minimize(loss, [1.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    np.testing.assert_allclose(curve, best.x, rtol=2e-3)
    np.testing.assert_allclose(approx_fprime(np.array(curve), loss, 1e-6), 0, atol=1e-5)


def test_a_curve_without_mistakes_is_finite_and_a_useless_one_is_flat():
    steep = fit_probability_map(np.full(50, 2.0), np.full(50, 0.1))
    assert 0.95 < steep.probability(np.array([2.0]), np.array([0.1]))[0] < 1
    flat = fit_probability_map(np.r_[-np.ones(60), np.ones(40)], np.ones(100))
    assert flat.probability(np.array([5.0]), np.array([1.0]))[0] == pytest.approx(0.5, abs=1e-3)
    assert fit_probability_map(np.zeros(5), np.zeros(5)).probability(np.ones(1), np.ones(1)) == 0.5


@pytest.mark.parametrize("units", [[1.0, 1e12, 1.0], [1e8, 1e8, 1e8], [1e-8, 1.0, 1e8]])
def test_units_of_the_columns_cost_no_digits_of_the_errors_of_one_list(units):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((40, 3))
    X, y = Z * units, Z @ [1, 2, 0.5] + rng.standard_normal(40)
    alpha = 1e-3 * min(1.0, *units) ** 2
    whole = weights_in_long_double(X, y, alpha)
    without = [
        weights_in_long_double(np.delete(X, k, 0), np.delete(y, k), alpha) for k in range(40)
    ]
    scores = X @ (np.array(without) - whole).T
    expected = np.sqrt(39 / 40) * np.linalg.norm(scores - scores.mean(axis=0), axis=1)
    found = CalibratedRanker(RankRLS(alpha)).fit(X, y).predict_error(X)
    np.testing.assert_allclose(found, expected.astype(np.float64), rtol=1e-9)


def test_units_of_the_scores_do_not_matter():
    rng = np.random.default_rng(0)
    d, error = rng.normal(1, 1, size=500), rng.uniform(0, 1, size=500)
    one = fit_probability_map(d, error).probability(d, error)
    for scale in (1e12, 1e-12):
        np.testing.assert_allclose(
            fit_probability_map(scale * d, scale * error).probability(scale * d, scale * error),
            one,
            rtol=1e-6,
        )


def test_reliability_counts_how_often_the_surer_side_was_right():
    p = np.array([0.9, 0.2, 0.6, 0.5, 0.95, 0.99])
    found = reliability(p, n_bins=2)
    np.testing.assert_allclose(found.predicted, [(0.5 + 0.6 + 0.8) / 3, (0.9 + 0.95 + 0.99) / 3])
    np.testing.assert_allclose(found.observed, [(0.5 + 1 + 0) / 3, 1])
    np.testing.assert_array_equal(found.n_pairs, [3, 3])


@pytest.mark.parametrize("inner", [None, RankRLS(kernel="rbf"), RankSVM()])
def test_equal_items_have_no_difference_and_even_odds(inner):
    model = CalibratedRanker(inner, n_folds=3).fit(X, Y, GROUPS)
    items = np.vstack([NEW, NEW[:2]])
    value, error = model.predict_difference(items, [0, 1, 5], [12, 13, 5])
    np.testing.assert_array_equal([value, error], 0.0)
    np.testing.assert_array_equal(model.predict_above(items, [0, 1], [12, 13]), 0.5)
    ranks = model.rank_interval(items)
    for part in ranks:
        np.testing.assert_array_equal(part[:2], part[12:])


def test_probabilities_of_both_sides_add_up_and_rise_with_the_difference():
    i, j = np.triu_indices(len(NEW), 1)
    p = MODEL.predict_above(NEW, i, j)
    np.testing.assert_allclose(p + MODEL.predict_above(NEW, j, i), 1)
    value, error = MODEL.predict_difference(NEW, i, j)
    np.testing.assert_array_equal(p > 0.5, value > 0)
    np.testing.assert_allclose(value, MODEL.predict(NEW)[i] - MODEL.predict(NEW)[j], atol=1e-12)
    assert (error > 0).all()


def test_rank_intervals_hold_the_rank_and_are_wider_at_a_higher_level():
    found = MODEL.rank_interval(X, GROUPS)
    np.testing.assert_array_equal(found.rank, MODEL.rank(X, GROUPS))
    assert (found.low <= found.rank).all()
    assert (found.rank <= found.high).all()
    sizes = np.bincount(np.unique(GROUPS, return_inverse=True)[1])
    assert found.high.max() <= sizes.max()
    narrow = MODEL.rank_interval(X, GROUPS, level=0.5)
    assert (narrow.high - narrow.low <= found.high - found.low).all()
    assert (narrow.high - narrow.low).sum() < (found.high - found.low).sum()


def test_it_is_the_last_step_of_a_pipeline_too():
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(RankRLS()))
    pipe.fit(X, make_target(Y, GROUPS))
    inside = pipe[-1].predict_above(pipe[:-1].transform(NEW), 0, 1)
    around = CalibratedRanker(make_pipeline(StandardScaler(), RankRLS())).fit(X, Y, GROUPS)
    np.testing.assert_allclose(around.predict_above(NEW, 0, 1), inside, rtol=1e-9)


def test_searches_and_scores_of_scikit_learn_work():
    target = make_target(Y, GROUPS)
    grid = {"estimator__alpha": [1e-3, 1.0]}
    cv = list(GroupKFold(3).split(X, Y, GROUPS))
    search = GridSearchCV(CalibratedRanker(RankRLS()), grid, cv=cv).fit(X, target)
    assert search.best_estimator_.score(X, target) > 0.7
    scores = cross_val_score(CalibratedRanker(RankRLS()), X, target, cv=cv)
    assert (scores > 0.5).all()


def test_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = CalibratedRanker(make_pipeline(StandardScaler(), RankRLSCV())).fit(frame, Y, GROUPS)
    plain = CalibratedRanker(make_pipeline(StandardScaler(), RankRLSCV())).fit(X, Y, GROUPS)
    assert model.feature_names_in_.tolist() == list("abcd")
    new = pd.DataFrame(NEW, columns=list("abcd"))
    np.testing.assert_allclose(model.predict_above(new, 0, 1), plain.predict_above(NEW, 0, 1))


@pytest.mark.parametrize("inner", [RankRLS(0.1), RankSVM()])
def test_items_of_weight_zero_are_as_if_they_were_not_there(inner):
    weights = np.where(np.isin(GROUPS, np.unique(GROUPS)[:3]), 0.0, 1.0)
    kept = weights > 0
    weighted = CalibratedRanker(inner, n_folds=4).fit(X, Y, GROUPS, weights)
    plain = CalibratedRanker(inner, n_folds=4).fit(X[kept], Y[kept], GROUPS[kept])
    assert weighted.n_units_ == plain.n_units_
    np.testing.assert_allclose(weighted.predict(NEW), plain.predict(NEW), rtol=1e-3, atol=1e-6)


def test_wrong_input_is_explained():
    with pytest.raises(ValueError, match="2 outputs"):
        CalibratedRanker().fit(X, np.column_stack([Y, Y]), GROUPS)
    with pytest.raises(ValueError, match="max_pairs=0"):
        CalibratedRanker(max_pairs=0).fit(X, Y, GROUPS)
    with pytest.raises(ValueError, match="level=1"):
        MODEL.rank_interval(NEW, level=1)
    within = [np.sum(GROUPS[:k] == GROUPS[k]) for k in range(len(GROUPS))]
    with pytest.raises(ValueError, match="no pair of items with different scores is held out"):
        CalibratedRanker(RankRLS(), units=within).fit(X, Y, GROUPS)
    with pytest.raises(ValueError, match="at least 4 items"):
        CalibratedRanker(RankRLS()).fit(X[:3], [1, 2, 3])


def test_intervals_of_differences_cover_the_truth():
    """200 simulations of 12 groups with a random slope each: 95 % intervals with Student's t."""
    from scipy.stats import t

    rng, n_groups, size = np.random.default_rng(0), 12, 6
    groups = np.repeat(np.arange(n_groups), size)
    quantile, covered = t.ppf(0.975, n_groups - 1), []
    w = np.array([1.0, -1.0, 0.5])
    for _ in range(200):
        items = rng.standard_normal((n_groups * size, 3))
        slopes = w + 0.5 * rng.standard_normal((n_groups, 3))[groups]
        y = np.einsum("ij,ij->i", items, slopes) + rng.standard_normal(len(items))
        new = rng.standard_normal((10, 3))
        left = leave_units_out(RankRLS(1e-6), items, y, groups)
        found = left.jackknife().predict_difference(new, np.arange(5), np.arange(5, 10))
        truth = (new[:5] - new[5:]) @ w
        covered.append(np.abs(found.value - truth) <= quantile * found.error)
    assert 0.92 < np.mean(covered) < 0.98


@pytest.mark.parametrize(
    "inner",
    [
        AutoRanker(["linear, group, magnitude without ties"], n_resamples=0),
        make_pipeline(GroupScaler(), RankRLS()),
    ],
    ids=["auto", "pipeline"],
)
def test_models_that_look_at_the_group_of_an_item_get_the_groups(inner):
    X, y, groups = make_ranking(n_queries=12, n_documents=6, n_features=3, random_state=0)[:3]
    model = CalibratedRanker(inner, n_folds=4).fit(X, y, groups)
    scores = model.predict(X, groups)
    np.testing.assert_allclose(scores, predict_items(model.estimator_, X, groups))
    i, j = np.array([0, 5, 9]), np.array([1, 6, 2])
    value, error = model.predict_difference(X, i, j, groups)
    np.testing.assert_allclose(value, scores[i] - scores[j])
    members = model.members_ or []
    if members:  # trained again without four folds
        changes = np.array([predict_items(m, X, groups) - scores for m in members])
        truth = np.sqrt(3 / 4 * ((changes[:, i] - changes[:, j]) ** 2).sum(axis=0))
        np.testing.assert_allclose(error, truth)
    above = model.predict_above(X, i, j, groups)
    np.testing.assert_array_equal(above > 0.5, value > 0)
    assert (model.rank_interval(X, groups).low <= model.rank(X, groups)).all()
    assert model.score(X, y, groups) > 0.5


def test_after_a_transformer_of_groups_scores_are_those_of_the_estimator():
    scaled = make_pipeline(GroupScaler(), CalibratedRanker(RankRLS(0.1)))
    with config_context(enable_metadata_routing=True):
        scaled.fit(X, Y, groups=GROUPS)
        scores = scaled.predict(X, groups=GROUPS)
    items = GroupScaler().fit_transform(X, groups=GROUPS)
    expected = RankRLS(0.1).fit(items, Y, GROUPS).predict(items)
    np.testing.assert_allclose(scores, expected, atol=1e-12)


@pytest.mark.parametrize("requested", [True, False])
def test_an_explicit_request_of_groups_is_kept(requested):
    with config_context(enable_metadata_routing=True):
        model = CalibratedRanker(RankRLS()).set_predict_request(groups=requested)
    assert needs_groups(model) is requested
