"""Standard errors by leaving out units are those of refits, for every kind of model and unit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import (
    AutoRanker,
    PairGraph,
    RankLogisticCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    ScoreGraph,
    make_target,
)
from rankwise.datasets import make_ranking
from rankwise.uncertainty import jackknife
from tests.oracle_uncertainty import jackknife_covariance, weights_in_long_double

RNG = np.random.default_rng(0)
X, Y, GROUPS = make_ranking(n_queries=9, n_documents=(3, 7), n_features=4, random_state=1)[:3]
NEW = RNG.standard_normal((6, 4))
BASIS = X[:5]


def rows_of(labels):
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def assert_is_covariance(found, new_X, expected, rtol=1e-7):
    root = found.spread(new_X).root
    np.testing.assert_allclose(root @ root.T, expected, rtol=rtol, atol=rtol * expected.max())


MODELS = {
    "linear": {},
    "sign": {"cost": "sign"},
    "relative": {"cost": "relative"},
    "ties excluded, groups alike": {"ties": "exclude", "group_weight": "groups"},
    "dual": {"solver": "dual"},
    "iterative": {"solver": "iterative", "tol": 1e-13},
    "half regression": {"beta": 0.4},
    "regression": {"beta": 1.0},
    "kernel": {"kernel": "rbf", "gamma": 0.3},
    "kernel, half regression": {"kernel": "rbf", "gamma": 0.3, "beta": 0.4},
    "kernel, sign": {"kernel": "rbf", "gamma": 0.3, "cost": "sign"},
    "basis": {"kernel": "rbf", "gamma": 0.3, "basis": BASIS},
}


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("name", MODELS)
def test_leaving_out_groups_is_a_refit_for_each(name, alpha):
    model = RankRLS(alpha, **MODELS[name])
    groups = [U for U in rows_of(GROUPS) if model.beta or len(np.unique(Y[U])) > 1]
    found = jackknife(model, X, Y, GROUPS)
    assert (found.units, found.n_units, found.freedom) == ("groups", len(groups), len(groups) - 1)
    assert_is_covariance(found, NEW, jackknife_covariance(model, X, Y, GROUPS, groups, NEW))


@pytest.mark.parametrize("name", ["linear", "sign", "ties excluded, groups alike", "kernel"])
def test_groups_without_pairs_are_no_units(name):
    model = RankRLS(0.1, **MODELS[name])
    alone = RNG.standard_normal((3, X.shape[1]))
    more_X = np.concatenate([X, alone])
    more_y = np.append(Y, [1, 0, 1])
    more_groups = np.append(GROUPS, GROUPS.max() + np.arange(1, 4))
    found = jackknife(model, more_X, more_y, more_groups)
    expected = jackknife(model, X, Y, GROUPS)
    assert found.n_units == expected.n_units
    roots = found.spread(NEW).root, expected.spread(NEW).root
    np.testing.assert_allclose(roots[0] @ roots[0].T, roots[1] @ roots[1].T, rtol=1e-9)
    model.set_params(beta=0.4)  # with regression single items matter
    assert jackknife(model, more_X, more_y, more_groups).n_units == expected.n_units + 3


@pytest.mark.parametrize("name", ["linear", "sign", "dual", "half regression", "kernel", "basis"])
def test_leaving_out_items_of_a_list_is_a_refit_for_each(name):
    model = RankRLS(0.05, **MODELS[name])
    found = jackknife(model, X[:30], Y[:30])
    assert (found.units, found.n_units) == ("items", 30)
    expected = jackknife_covariance(model, X[:30], Y[:30], None, np.arange(30)[:, None], NEW)
    assert_is_covariance(found, NEW, expected)


def comparisons(n_items, n_pairs, seed=0):
    rng = np.random.default_rng(seed)
    winner = rng.integers(n_items, size=n_pairs)
    loser = (winner + 1 + rng.integers(n_items - 1, size=n_pairs)) % n_items
    magnitude, weight = rng.integers(3, size=n_pairs), rng.integers(1, 4, size=n_pairs)
    return PairGraph(winner, loser, magnitude, weight, n_items)


@pytest.mark.parametrize("name", ["linear", "dual", "iterative", "kernel", "basis"])
def test_leaving_out_comparisons_or_clusters_of_them_is_a_refit_for_each(name):
    model, graph = RankRLS(0.02, **MODELS[name]), comparisons(len(X), 60)
    found = jackknife(model, X, graph)
    assert (found.units, found.n_units) == ("comparisons", 60)
    expected = jackknife_covariance(model, X, graph, None, np.arange(60)[:, None], NEW)
    assert_is_covariance(found, NEW, expected)
    judges = RNG.integers(5, size=60)
    found = jackknife(model, X, graph, units=judges)
    assert (found.units, found.n_units) == ("clusters", 5)
    expected = jackknife_covariance(model, X, graph, None, rows_of(judges), NEW)
    assert_is_covariance(found, NEW, expected)


def test_groups_and_items_of_explicit_preferences_leave_with_all_their_edges():
    labels = np.arange(len(X)) % 4
    graph = comparisons(len(X), 80)
    grouped = PairGraph(
        graph.winner, graph.loser, graph.magnitude, graph.weight, len(X), groups=labels
    )
    for units, of_item in [("groups", labels), ("items", np.arange(len(X)))]:
        touching = [
            np.flatnonzero((of_item[graph.winner] == u) | (of_item[graph.loser] == u))
            for u in np.unique(of_item)
        ]
        touching = [edges for edges in touching if len(edges)]
        for options in ({}, MODELS["kernel"]):
            found = jackknife(RankRLS(0.1, **options), X, grouped, units=units)
            assert found.n_units == len(touching)
            expected = jackknife_covariance(RankRLS(0.1, **options), X, graph, None, touching, NEW)
            assert_is_covariance(found, NEW, expected)


def test_small_parts_beside_a_large_one_are_no_groups():
    """Matches of a season: nearly all players are connected, a few only with each other."""
    rng = np.random.default_rng(0)
    winner = rng.integers(10, size=60)
    loser = (winner + 1 + rng.integers(9, size=60)) % 10
    apart = 10 + 2 * np.arange(12)
    graph = PairGraph(np.r_[winner, apart], np.r_[loser, apart + 1], n_items=34)
    assert graph.n_units == 13
    assert jackknife(RankRLS(0.1), np.eye(34), graph).units == "comparisons"
    even = PairGraph(apart - 10, apart - 9, n_items=24)
    assert jackknife(RankRLS(0.1), np.eye(24), even).units == "groups"


WHOLE_GROUPS = np.unique(GROUPS, return_inverse=True)[1] // 3


CUT_GROUPS = np.arange(len(X)) % 6
ONE_WHOLE = np.where(WHOLE_GROUPS == 0, 0, 1 + CUT_GROUPS)


@pytest.mark.parametrize(
    "clusters", [WHOLE_GROUPS, CUT_GROUPS, ONE_WHOLE], ids=["whole", "cut", "one whole"]
)
@pytest.mark.parametrize("name", ["linear", "kernel"])
def test_clusters_of_groups_leave_together_and_may_cut_groups(clusters, name):
    model = RankRLS(0.1, **MODELS[name])
    found = jackknife(model, X, Y, GROUPS, units=clusters)
    assert (found.units, found.n_units) == ("clusters", clusters.max() + 1)
    expected = jackknife_covariance(model, X, Y, GROUPS, rows_of(clusters), NEW)
    assert_is_covariance(found, NEW, expected)


def test_precomputed_kernels_and_graphs_as_y():
    K = X @ X.T + 0.1 * np.eye(len(X))
    model = RankRLS(0.1, kernel="precomputed")
    found = jackknife(model, K, ScoreGraph(Y, GROUPS))
    assert_is_covariance(
        found, K[:5], jackknife_covariance(model, K, Y, GROUPS, rows_of(GROUPS), K[:5])
    )


def test_sparse_items_targets_and_float32():
    expected = jackknife(RankRLS(), X, Y, GROUPS).spread(NEW).root
    for items in (sp.csr_array(X), X.astype(np.float32)):
        found = jackknife(RankRLS(), items, make_target(Y, GROUPS)).spread(NEW).root
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-4, atol=1e-7)


def test_a_random_basis_is_that_of_the_model():
    found = jackknife(RankRLS(0.1, kernel="rbf", n_basis=6), X, Y, GROUPS)
    np.testing.assert_allclose(found.predict(NEW), found.model.predict(NEW), rtol=1e-8)


def test_the_root_has_no_more_columns_than_coefficients():
    found = jackknife(RankRLS(), X, Y)
    assert found.root.shape == (4, 4)
    assert found.n_units == len(X)
    np.testing.assert_allclose(
        found.coefficient_errors, np.sqrt(np.diag(found.root @ found.root.T))
    )


def test_large_offsets_of_features_do_not_matter():
    for groups in (GROUPS, None):
        plain = jackknife(RankRLS(1e-3), X, Y, groups).predict_difference(NEW, 0, 1)
        moved = jackknife(RankRLS(1e-3), X + 1e5, Y, groups).predict_difference(NEW + 1e5, 0, 1)
        np.testing.assert_allclose(moved, plain, rtol=1e-5)


UNITS = {
    "all large": [1e8, 1e8, 1e8, 1e8],
    "all very large": [1e12, 1e12, 1e12, 1e12],
    "all small": [1e-8, 1e-8, 1e-8, 1e-8],
    "one large": [1.0, 1.0, 1e8, 1.0],
    "one very large": [1.0, 1.0, 1.0, 1e12],
    "one small": [1e-8, 1.0, 1.0, 1.0],
    "large and small": [1.0, 1e12, 1e-8, 1e-12],
}


def one_list(units, n_items=40):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((n_items, 4))
    return (Z + 2) * units, Z @ [1, 2, 0.5, 1] + rng.standard_normal(n_items)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("name", UNITS)
def test_units_of_the_columns_cost_no_digits_of_the_errors_of_one_list(name, beta, is_weighted):
    X, y = one_list(UNITS[name])
    weight = np.arange(len(y)) % 3 + 1.0 if is_weighted else None
    alpha = 1e-3 * min(1.0, *UNITS[name]) ** 2

    def weights(rows):
        of_rows = None if weight is None else weight[rows]
        return weights_in_long_double(X[rows], y[rows], alpha, beta=beta, weight=of_rows)

    n = len(y)
    whole = weights(np.arange(n))
    changes = np.array([weights(np.delete(np.arange(n), k)) - whole for k in range(n)])
    expected = np.sqrt((n - 1) / n * (changes**2).sum(axis=0)).astype(np.float64)
    target = y if weight is None else make_target(y, None, weight)
    found = jackknife(RankRLS(alpha, beta=beta), X, target)
    np.testing.assert_allclose(found.coefficient_errors, expected, rtol=1e-11)


def test_scale_of_the_scores_is_that_of_the_errors():
    one = jackknife(RankRLS(), X, Y, GROUPS).predict_difference(NEW, [0, 1], [1, 2])
    for scale in (1e12, 1e-12):
        many = jackknife(RankRLS(), X, scale * Y, GROUPS).predict_difference(NEW, [0, 1], [1, 2])
        np.testing.assert_allclose(np.array(many) / scale, one, rtol=1e-9)


def test_pipelines_and_searches_keep_their_steps_and_alpha():
    pipe = make_pipeline(StandardScaler(), RankRLSCV())
    found = jackknife(pipe, X, Y, GROUPS)
    alpha = found.model[-1].alpha_
    Z = found.model[:-1].transform(X)
    expected = jackknife(RankRLS(alpha), Z, Y, GROUPS).spread(found.model[:-1].transform(NEW)).root
    assert_is_covariance(found, NEW, expected @ expected.T)


def test_other_rankers_are_trained_again_without_folds_of_groups():
    found = jackknife(RankSVM(), X, Y, GROUPS, n_folds=4)
    assert (found.n_units, len(found.members), found.root) == (4, 4, None)
    f = found.model.predict(NEW)
    changes = np.stack([member.predict(NEW) for member in found.members]) - f
    assert_is_covariance(found, NEW, 3 / 4 * changes.T @ changes)
    graph = comparisons(len(X), 60)
    graph = graph.with_edges(graph.magnitude > 0)
    assert jackknife(RankSVM(), X, graph, n_folds=3).n_units == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": "queries"}, "units='queries'"),
        ({"units": "comparisons"}, "y is a PairGraph"),
        ({"units": [1, 2, 3]}, "one label of a"),
        ({"units": [0] * len(X)}, "at least two clusters"),
        ({"n_folds": 1}, "n_folds=1"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        jackknife(RankRLS(), X, Y, GROUPS, **arguments)


def test_wrong_rows_are_explained():
    found = jackknife(RankRLS(), X, Y, GROUPS)
    with pytest.raises(IndexError):
        found.predict_difference(NEW, 0, 6)
    for wrong in (0.5, [True, False]):
        with pytest.raises(ValueError, match="row numbers of X"):
            found.predict_difference(NEW, wrong, 1)
    np.testing.assert_array_equal(
        found.predict_difference(NEW, -1, 0), found.predict_difference(NEW, 5, 0)
    )
    with pytest.raises(ValueError, match="refitted without folds"):
        _ = jackknife(RankSVM(), X, Y, GROUPS).coefficient_errors


@pytest.mark.parametrize(
    "search",
    [RankSVMCV(cv=3), make_pipeline(StandardScaler(), RankLogisticCV(cv=3))],
    ids=["search", "pipeline"],
)
def test_refits_keep_the_parameters_that_a_search_selected(search):
    """Another alpha in each fold has another scale of the scores, which is no error."""
    errors = jackknife(search, X, Y, GROUPS, n_folds=4)
    best = errors.model
    if hasattr(best, "steps"):
        fixed = make_pipeline(StandardScaler(), clone(best[-1].best_estimator_))
    else:
        fixed = clone(best.best_estimator_)
    expected = jackknife(fixed, X, Y, GROUPS, n_folds=4)
    pairs = [0, 1, 2], [3, 4, 5]
    np.testing.assert_allclose(
        errors.predict_difference(NEW, *pairs).error,
        expected.predict_difference(NEW, *pairs).error,
        rtol=1e-9,
    )


def test_models_of_auto_ranker_have_the_scale_of_the_model_of_all_data():
    """The stack of one fold and the best member of another have scores on different scales."""
    X, y, groups = make_ranking(n_queries=40, n_documents=8, n_features=3, random_state=0)[:3]
    members = ["linear, standard, magnitude", "rbf, standard, magnitude"]
    errors = jackknife(AutoRanker(members, n_resamples=0), X, y, groups, n_folds=4)

    def centered(model):
        scores = model.predict(X, groups)
        means = np.bincount(groups, scores) / np.bincount(groups)
        return scores - means[groups]

    scores = centered(errors.model)
    for member in errors.members:
        other = centered(member)
        assert (other @ scores) / (other @ other) == pytest.approx(1)
    error = errors.predict_difference(X, np.arange(4), np.arange(4, 8), groups).error
    assert error.max() < scores.std()
