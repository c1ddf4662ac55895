"""The trees of an AutoRanker: targets by counting, scores by the library, folds by refitting."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import AutoRanker, ScoreGraph
from rankwise.auto import tree_growth, tree_member
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.tree_features import TreeFeatures
from rankwise.auto.tree_growth import grow_trees, rank_targets
from rankwise.datasets import make_ranking
from rankwise.errors import ModelFileError, UngroupedRowsWarning
from rankwise.metrics import disagreement_error
from rankwise.model_selection.folds import make_folds
from rankwise.persistence import load, save
from rankwise.preprocessing.group_scaling import scale_in_groups
from rankwise.rankers.pipelines import transform_items

TREES = "trees"


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_ranking(n_queries=30, n_documents=(12, 24), n_features=4, random_state=3)[
        :3
    ]
    return X, y, groups


@pytest.fixture(scope="module")
def interacting():
    """Only the product of two features orders the items; no sum of curves can see it."""
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((900, 3)), np.repeat(np.arange(45), 20)
    return X, np.sign(X[:, 0] * X[:, 1]) + 1.0, groups


@pytest.mark.parametrize("weighted", [False, True])
def test_a_target_counts_the_items_above_and_below(data, weighted):
    _, y, groups = data
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    found = rank_targets(ScoreGraph(y, groups, sample_weight=w if weighted else None))
    for i in np.flatnonzero(w):
        own = groups == groups[i]
        below, above = w[own & (y < y[i])].sum(), w[own & (y > y[i])].sum()
        assert found[i] == pytest.approx((below - above) / w[own].sum())
    assert (found[w == 0] == 0).all()


@pytest.fixture(params=["LightGBM", "scikit-learn"])
def library(request, monkeypatch):
    if request.param == "LightGBM":
        pytest.importorskip("lightgbm")
    else:
        monkeypatch.setattr(tree_growth, "lightgbm_or_none", lambda: None)


def test_scores_are_those_of_the_library_with_gaps_and_categories(data, library):
    X, y, groups = data
    rng = np.random.default_rng(0)
    code = rng.integers(0, 30, len(y)).astype(float)
    y = y + np.isin(code, (2, 3, 11, 29))
    X = np.column_stack([X, np.where(code == 7, np.nan, code)])
    X[rng.random(X.shape) < 0.1] = np.nan
    own = BoostedTrees(30, categorical=(4,)).fit(X, y, groups)
    theirs = grow_trees(None, 30, X, ScoreGraph(y, groups), (4,))
    new = np.column_stack([3 * rng.standard_normal((500, 4)), rng.integers(0, 60, 500)])
    new[rng.random(new.shape) < 0.1] = np.nan
    for items in (X, new, 1e12 * new):
        shift = own.predict(items) - theirs.predict(items)
        np.testing.assert_allclose(shift, shift[0], atol=1e-12)
    assert len(own.roots_) == 30


def test_columns_are_scored_by_models_that_have_not_seen_the_item(data):
    """Ridge regression on the values of one category, without the fold of the item's group."""
    X, y, groups = data
    code = np.random.default_rng(0).integers(0, 5, len(y))
    values = np.eye(5)[code]
    step = TreeFeatures(sizes=(5,))
    found = step.fit_transform(np.hstack([X, values]), y, groups)
    graph = ScoreGraph(y, groups)
    targets, folds = rank_targets(graph), make_folds(5, graph)

    def scores(alpha):
        held = np.empty(len(y))
        for rows in folds:
            rest = np.setdiff1d(np.arange(len(y)), rows)
            total = np.bincount(code[rest], targets[rest], 5)
            held[rows] = (total / (np.bincount(code[rest], minlength=5) + alpha))[code[rows]]
        return held

    best = min((scores(a) for a in (1, 10, 100)), key=lambda held: ((held - targets) ** 2).sum())
    np.testing.assert_allclose(found[:, -1], best, atol=1e-3)
    np.testing.assert_allclose(found[:, :4], X, rtol=1e-6)
    np.testing.assert_allclose(found[:, 4:8], scale_in_groups(X, groups), atol=1e-5)
    again = step.transform(np.hstack([X, values]), groups)
    np.testing.assert_allclose(again[:, -1], (values @ step.value_coef_), rtol=1e-6)


def test_gaps_stay_and_do_not_change_how_others_are_scaled():
    X = np.array([[1.0], [3.0], [np.nan], [5.0], [np.nan]])
    found = TreeFeatures().fit_transform(X, [1, 2, 3, 1, 2], [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(found[:, 1], [-1, 1, np.nan, 0, np.nan])


def test_trees_that_go_on_are_those_that_grow_at_once(data, library):
    X, y, groups = data
    graph = ScoreGraph(y, groups)
    both = grow_trees(grow_trees(None, 10, X, graph), 25, X, graph)
    np.testing.assert_allclose(both.predict(X), grow_trees(None, 25, X, graph).predict(X))


def test_held_out_scores_of_trees_equal_refitting(data):
    X, y, groups = data
    model = AutoRanker([TREES], n_resamples=0).fit(X, y, groups)
    n_trees = int(model.members_[0]["note"].split()[0])
    R = transform_items(model.estimators_[0], X, groups)
    for rows in make_folds(tree_member.TREE_FOLDS, ScoreGraph(y, groups)):
        rest = np.setdiff1d(np.arange(len(y)), rows)
        again = grow_trees(None, n_trees, R[rest], ScoreGraph(y[rest], groups[rest]))
        np.testing.assert_allclose(model.held_out_scores_[rows, 0], again.predict(R[rows]))
    refit = BoostedTrees(n_trees).fit(R, y, groups)
    np.testing.assert_array_equal(model.predict(X, groups), refit.predict(R))


def test_the_number_of_trees_has_the_fewest_wrong_pairs_of_the_stages_tried(data):
    X, y, groups = data
    model = AutoRanker([TREES], n_resamples=0).fit(X, y, groups)
    n_trees = int(model.members_[0]["note"].split()[0])
    R = transform_items(model.estimators_[0], X, groups)
    folds = make_folds(tree_member.TREE_FOLDS, ScoreGraph(y, groups))
    wrong = {}
    last = max(2 * n_trees, tree_member.MIN_TREES)
    for stage in (stage for stage in tree_member.STAGES if stage <= last):
        held = np.empty(len(y))
        for rows in folds:
            rest = np.setdiff1d(np.arange(len(y)), rows)
            grown = grow_trees(None, stage, R[rest], ScoreGraph(y[rest], groups[rest]))
            held[rows] = grown.predict(R[rows])
        wrong[stage] = disagreement_error(y, held, groups)
    assert min(wrong, key=wrong.__getitem__) == n_trees


def test_features_that_interact_are_left_to_the_trees(interacting):
    X, y, groups = interacting
    new = groups >= 30
    model = AutoRanker(n_resamples=0).fit(X[~new], y[~new], groups[~new])
    linear = [row["score"] for row in model.members_ if row["name"].startswith("linear")]
    trees = next(row for row in model.members_ if row["name"] == TREES)
    assert trees["score"] > max(linear) + 0.1
    assert abs(trees["weight"]) > 0.1
    assert disagreement_error(y[new], model.predict(X[new], groups[new]), groups[new]) < 0.1


def test_one_list_has_trees_too(interacting):
    X, y, _ = interacting
    with pytest.warns(UngroupedRowsWarning):
        model = AutoRanker(n_resamples=0).fit(X, y)
    assert model.members_[1]["name"] == "trees"
    assert model.members_[1]["score"] < 0.1


def test_few_items_sparse_items_and_preferences_have_no_trees(data):
    import scipy.sparse as sp

    X, y, groups = data
    few = groups < 5
    for items, target, labels in [
        (X[few], y[few], groups[few]),
        (sp.csr_array(X), y, groups),
        (X, ScoreGraph(y, groups), None),
    ]:
        model = AutoRanker(n_resamples=0).fit(items, target, labels)
        assert not any("trees" in row["name"] for row in model.members_)


def test_a_model_file_holds_trees_and_refuses_a_loop(data, tmp_path):
    X, y, groups = data
    model = AutoRanker([TREES, "linear, standard, magnitude"], n_resamples=0, combine="mean")
    model.fit(X, y, groups)
    save(model, tmp_path / "model.rw")
    again = load(tmp_path / "model.rw")
    np.testing.assert_array_equal(again.predict(X, groups), model.predict(X, groups))
    trees = next(e for e in model.estimators_ if isinstance(e[-1], BoostedTrees))[-1]
    trees.left_ = np.zeros_like(trees.left_)
    with pytest.raises((ModelFileError, ValueError), match="loop"):
        save(model, tmp_path / "loop.rw")
    assert not (tmp_path / "loop.rw").exists()


def test_gaps_elsewhere_do_not_change_what_is_scaled_in_a_group():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 3)), np.arange(40) % 4
    X[groups == 1, 0] = 0.1  # a constant, whose mean has another last bit
    targets = rng.normal(size=40)
    step = TreeFeatures().fit(X, targets, groups)
    truth = step.transform(X, groups)
    holes = X.copy()
    holes[groups == 2, 1] = np.nan
    found = step.transform(holes, groups)
    others = groups != 2
    np.testing.assert_allclose(found[others], truth[others], atol=1e-6)
    assert np.isnan(found[~others, [1]]).all()
