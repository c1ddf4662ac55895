"""AutoRanker: held-out scores equal refitting, the stack by brute force, odd data, other models."""

from __future__ import annotations

import json
import re
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rankwise import (
    AutoRanker,
    GroupScaler,
    HingeFeatures,
    PairGraph,
    RankRLS,
    RankRLSCV,
    ScoreGraph,
    make_target,
)
from rankwise.auto import (
    auto_ranker,
    budgeted_evaluation,
    expected_time,
    member_evaluation,
    members,
    stacking,
    time_budget,
    tree_member,
)
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.evaluated_member import EvaluatedMember
from rankwise.auto.expected_time import ExpectedSeconds
from rankwise.auto.member_evaluation import evaluate_member, fit_any
from rankwise.auto.member_features import candidate_features
from rankwise.auto.members import CANDIDATE_MEMBERS, TREES, candidate_members
from rankwise.auto.stacking import ProposedWeights, Stacking
from rankwise.auto.training_data import HoldOut, read_training_data
from rankwise.auto.tree_member import STAGES
from rankwise.datasets import make_ranking
from rankwise.errors import UngroupedRowsWarning
from rankwise.inspection import permutation_importance
from rankwise.metrics import get_metric
from rankwise.model_selection.folds import make_folds
from rankwise.persistence import load, save
from rankwise.rankers.pipelines import transform_items
from rankwise.report import report
from rankwise.runtime import memory, threads
from tests.oracle import scaled_in_groups

LINEAR = ["linear, standard, magnitude", "linear, group, magnitude without ties"]


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_ranking(
        n_queries=9, n_documents=(5, 9), n_features=4, noise=0.5, random_state=1
    )[:3]
    return X, y, groups


@pytest.fixture(scope="module")
def fitted(data):
    """A stack, though of few items."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacking, "LEAST_FOR_STACK", 0)
        return AutoRanker(n_resamples=0).fit(*data)


def checked_data(X, y, groups=None):
    return read_training_data({"dense": X, "wide": X, "trees": X}, y, groups)


def alphas_of(model):
    return {row["name"]: row["alpha"] for row in model.members_}


def assert_refitted(held, model, R, y, groups, weights=None):
    """The scores of each group are those of the model trained on the others."""
    weights = np.ones(len(y)) if weights is None else weights
    for g in np.unique(groups):
        rest = groups != g
        model.fit(R[rest], y[rest], groups[rest], sample_weight=weights[rest])
        np.testing.assert_allclose(held[~rest], model.predict(R[~rest]), atol=1e-6)


def test_held_out_scores_equal_refitting(data, fitted):
    X, y, groups = data
    menu = {recipe.name: recipe for recipe in CANDIDATE_MEMBERS if recipe is not TREES}
    assert [row["name"] for row in fitted.members_] == list(menu)
    alphas = alphas_of(fitted)
    for held, recipe in zip(fitted.held_out_scores_.T, menu.values(), strict=True):
        R = candidate_features(recipe, checked_data(X, y, groups), 0).R  # of X only
        model = RankRLS(alphas[recipe.name], cost=recipe.cost, ties=recipe.ties)
        assert_refitted(held, model, R, y, groups)


def test_the_alpha_of_a_member_is_the_best_of_all_decades_by_brute_force(data):
    X, y, groups = data
    model = AutoRanker(LINEAR, scoring="disagreement", n_resamples=0).fit(X, y, groups)
    R = GroupScaler().fit_transform(X, groups=groups)
    alpha = model.members_[1]["alpha"]

    def error(alpha):
        wrong = []
        for g in np.unique(groups):
            rest = groups != g
            ranker = RankRLS(alpha, ties="exclude").fit(R[rest], y[rest], groups[rest])
            wrong.append(1 - ranker.score(R[~rest], y[~rest]))
        return np.mean(wrong)

    tried = [error(alpha * 10.0**k) for k in range(-4, 3)]
    assert model.members_[1]["score"] == pytest.approx(error(alpha), abs=1e-12)
    assert error(alpha) <= min(tried) + 1e-12


@pytest.fixture
def combiner(data, fitted, monkeypatch):
    """A stack of the fitted members, though of few items."""
    monkeypatch.setattr(stacking, "LEAST_FOR_STACK", 0)
    held_out = HoldOut.of(checked_data(*data), None)
    members = [
        EvaluatedMember(np.nan, held, held_out.evaluate(held), train=lambda: None)
        for held in fitted.held_out_scores_.T
    ]
    return Stacking(members, held_out, "stack")


def test_the_stack_is_rank_rls_on_scaled_held_out_scores(data, fitted, combiner, monkeypatch):
    _, y, groups = data
    Z = scaled_in_groups(fitted.held_out_scores_, groups)
    rows = {g: groups == g for g in np.unique(groups)}

    def stack(alpha, drawn):
        """Weights by a refit on groups that may be there several times."""
        times = [np.flatnonzero(rows[g]) for g in drawn]
        labels = np.repeat(np.arange(len(drawn)), [len(part) for part in times])
        every = np.concatenate(times)
        return RankRLS(alpha, cost="sign").fit(Z[every], y[every], labels).coef_

    def held_out(alpha, drawn):
        held = np.empty(len(y))
        for g in rows:
            held[rows[g]] = Z[rows[g]] @ stack(alpha, [other for other in drawn if other != g])
        return held

    metric = get_metric("ndcg@10")
    every, alpha = list(rows), combiner._alpha
    wrong = get_metric("disagreement")
    errors = [wrong(y, held_out(alpha * 10.0**k, every), groups) for k in range(-3, 3)]
    assert wrong(y, held_out(alpha, every), groups) <= min(errors) + 1e-12
    combiner._metric_weights = []  # see test_metric_weights.py
    monkeypatch.setattr(stacking, "REPLACEMENT_ERRORS", np.inf)
    for drawn in (every, [0, 0, 2, 3, 3, 3, 5, 7, 8]):
        found = combiner.combine(np.asarray(drawn))
        weights = stack(alpha, drawn)
        np.testing.assert_allclose(found.weights, weights / np.abs(weights).sum(), atol=1e-7)
        held = held_out(alpha, drawn)
        expected = [metric(y[rows[g]], held[rows[g]]) for g in rows]
        np.testing.assert_allclose(found.metric_by_unit, expected, atol=1e-9)


def test_predictions_are_the_weighted_scaled_predictions_of_the_members(data, fitted):
    X, y, groups = data
    new, labels = X[10:30], groups[10:30]
    columns = []
    with sklearn.config_context(enable_metadata_routing=True):
        for member in fitted.estimators_:
            needs = isinstance(member[0], GroupScaler)
            columns.append(member.predict(new, **({"groups": labels} if needs else {})))
    scaled = scaled_in_groups(np.stack(columns, axis=1), labels)
    scores = fitted.predict(new, labels)
    if len(fitted.estimators_) > 1:
        np.testing.assert_allclose(scores, scaled @ fitted.weights_, atol=1e-6)
    assert (fitted.rank(new, labels) >= 1).all()
    assert fitted.score(X, y, groups) > 0.7
    with pytest.warns(UserWarning, match="groups="):
        scores = fitted.predict(X)
    np.testing.assert_array_equal(scores, fitted.predict(X, np.zeros(len(X))))


@pytest.mark.parametrize("combine", ["stack", "mean", "best"])
def test_the_combination_is_no_worse_than_its_best_member_on_held_out_data(
    data, combine, monkeypatch
):
    monkeypatch.setattr(stacking, "LEAST_FOR_STACK", 0)
    model = AutoRanker(LINEAR, combine=combine, n_resamples=0).fit(*data)
    best = max(row["score"] for row in model.members_)
    if combine == "stack":  # or within three standard errors of the difference
        assert model.score_ >= best - 0.05
    if combine == "best":
        assert model.score_ == best
        assert len(model.estimators_) == 1
    weights = [row["weight"] for row in model.members_]
    assert np.count_nonzero(weights) == len(model.estimators_)
    assert model.best_member_ in {row["name"] for row in model.members_}


@pytest.mark.parametrize("how", ["stack", "mean", "best"])
def test_the_estimate_is_of_groups_that_were_not_drawn(data, fitted, combiner, how):
    """Choice and weights from the groups drawn, the metric on the others, by plain loops."""
    _, y, groups = data
    combiner._requested_kind = how
    Z, metric = scaled_in_groups(fitted.held_out_scores_, groups), get_metric("ndcg@10")

    def judged(weights):
        return np.array([metric(y[groups == g], (Z @ weights)[groups == g]) for g in range(9)])

    rng = np.random.default_rng(3)
    values = [[] for _ in range(9)]
    for _ in range(8):
        drawn = rng.integers(9, size=9)
        weights = combiner.combine(drawn).weights
        score = np.array([judged(one)[drawn].mean() for one in np.eye(Z.shape[1])])
        if how == "best":
            assert np.argmax(weights) == np.argmax(score)
        if how == "mean":
            assert set(np.flatnonzero(weights)) == set(np.argsort(-score, kind="stable")[:4])
        for g in set(range(9)) - set(drawn):
            values[g].append(judged(weights)[g])
    expected = [np.mean(each) if each else np.nan for each in values]
    found = combiner.out_of_bag(8, np.random.default_rng(3))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_estimate_is_reported_with_its_optimism(data):
    X, y, groups = data
    model = AutoRanker(LINEAR).fit(X, y, groups)
    assert model.estimate_["low"] <= model.estimate_["score"] <= model.estimate_["high"]
    assert model.estimate_["optimism"] == pytest.approx(model.score_ - model.estimate_["score"])
    assert any("used neither for selection nor for weights" in note for note in model.notes_)
    assert AutoRanker(LINEAR, n_resamples=0).fit(X, y, groups).estimate_ == {}
    one_list = AutoRanker(LINEAR[:1]).fit(X, y)
    assert any("folds of the list" in note for note in one_list.notes_)
    assert "low_new" not in one_list.estimate_


def test_the_estimate_has_an_interval_for_the_mean_of_further_groups(data):
    model = AutoRanker(LINEAR).fit(*data)
    estimate = model.estimate_
    assert estimate["n_new"] == 9
    half_width = (estimate["high"] - estimate["low"]) / 2
    new_half_width = (estimate["high_new"] - estimate["low_new"]) / 2
    assert new_half_width == pytest.approx(half_width * np.sqrt(2))
    assert (estimate["low_new"] + estimate["high_new"]) / 2 == pytest.approx(estimate["score"])


def test_scoring_is_chosen_by_the_data_and_said(data):
    X, y, groups = data
    one = LINEAR[:1]
    assert AutoRanker(one).fit(X, y, groups).scoring_ == "ndcg@10"
    assert AutoRanker(one).fit(X, y + 0.5, groups).scoring_ == "disagreement"
    assert AutoRanker(one).fit(X, y).scoring_ == "disagreement"
    assert AutoRanker(one, scoring="map").fit(X, y > 1, groups).scoring_ == "map"


def test_one_list_needs_no_groups(data):
    X, y, _ = data
    model = AutoRanker().fit(X, y)
    names = [row["name"] for row in model.members_]
    assert not any("group" in name for name in names)
    assert len(names) == len(set(names))
    assert model.score(X, y) > 0.6
    assert any("folds of the list" in note for note in model.notes_)
    np.testing.assert_allclose(model.predict(X[:5]), model.predict(X)[:5], atol=1e-9)


@pytest.mark.parametrize("kind", ["groups", "components"])
def test_pair_graphs(data, kind):
    X, y, groups = data
    pairs = ScoreGraph(y, groups, cost="sign").pairs()
    kept = np.random.default_rng(0).permutation(pairs.n_pairs)[:150]
    graph = PairGraph(
        pairs.winner[kept],
        pairs.loser[kept],
        n_items=len(y),
        groups=groups if kind == "groups" else None,
    )
    model = AutoRanker().fit(X, graph)
    assert model.scoring_ == "disagreement"
    scores = model.predict(X, groups) if kind == "groups" else model.predict(X)
    assert 1 - graph.disagreement(scores, pooled=True)[0] > 0.7
    assert model.estimate_
    with pytest.raises(ValueError, match="explicit preferences"):
        AutoRanker(scoring="ndcg@10").fit(X, graph)


def test_items_alone_in_their_groups_are_said_to_have_no_scores(data):
    X, y, groups = data
    model = AutoRanker(LINEAR, combine="mean", n_resamples=0).fit(X, y, groups)
    with pytest.warns(UserWarning, match="Pass whole groups"):
        assert model.predict(X[:1], [0]) == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X[:6], groups[:6])


def test_sparse_items_and_frames(data):
    X, y, groups = data
    thin = np.where(X > 0.3, X, 0.0)
    model = AutoRanker(n_resamples=0).fit(sp.csr_array(thin), y, groups)
    assert not any("hinges" in row["name"] for row in model.members_)
    assert np.isfinite(model.predict(sp.csr_array(thin), groups)).all()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = AutoRanker(LINEAR).fit(frame, pd.Series(y), pd.Series(groups))
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_allclose(
        model.predict(frame, groups), AutoRanker(LINEAR).fit(X, y, groups).predict(X, groups)
    )


def test_targets_that_carry_groups_and_pipelines(data):
    X, y, groups = data
    plain = AutoRanker(LINEAR).fit(X, y, groups)
    carried = AutoRanker(LINEAR).fit(X, make_target(y, groups))
    np.testing.assert_array_equal(plain.predict(X, groups), carried.predict(X, groups))
    assert carried.score(X, make_target(y, groups)) == plain.score(X, y, groups)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), AutoRanker(LINEAR))
        pipeline.fit(X, y, groups=groups)
        assert pipeline.predict(X, groups=groups).shape == y.shape


class Foreign(Ridge):
    """Takes its groups by one of the usual names, and remembers them."""

    def fit(self, X, y, group=None):
        self.group_ = group
        return super().fit(X, y)


class ByQuery(Ridge):
    def fit(self, X, y, qid=None):
        assert (np.diff(qid) >= 0).all()
        self.qid_ = qid
        return super().fit(X, y)


def test_other_models_get_groups_as_they_take_them_and_one_thread_if_not_told(data):
    X, y, groups = data
    checked = checked_data(X, y, groups)
    assert list(fit_any(Foreign(), checked).group_) == list(np.bincount(groups))
    assert list(fit_any(ByQuery(), checked).qid_) == sorted(groups)
    assert fit_any(Ridge(), checked).coef_.shape == (4,)
    assert fit_any(RankRLS(), checked).n_pairs_ == RankRLS().fit(X, y, groups).n_pairs_
    assert fit_any(LinearRegression(), checked).n_jobs == 1
    assert fit_any(LinearRegression(n_jobs=2), checked).n_jobs == 2


def test_other_models_are_held_out_by_folds_of_groups(data):
    X, y, groups = data
    checked = checked_data(X, y, groups)
    held_out = HoldOut.of(checked, None)
    member = evaluate_member(Foreign(alpha=0.1), held_out, 0)
    for rows in make_folds(5, checked.graph):
        rest = np.setdiff1d(np.arange(len(y)), rows)
        expected = Ridge(alpha=0.1).fit(X[rest], y[rest]).predict(X[rows])
        np.testing.assert_allclose(member.scores[rows], expected)


def test_members_may_be_names_rankers_and_pairs(data):
    members = [*LINEAR, Foreign(), ("mine", Foreign(alpha=3.0)), Foreign(alpha=9.0), RankRLS(0.1)]
    model = AutoRanker(members, combine="mean").fit(*data)
    names = [row["name"] for row in model.members_]
    assert names == [*LINEAR, "Foreign", "mine", "Foreign 2", "RankRLS"]
    assert model.estimate_
    for wrong in ([], 3, [object()], ["linear"]):
        with pytest.raises(ValueError, match="members"):
            AutoRanker(wrong).fit(*data)


class Broken(Ridge):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no luck today")


@pytest.mark.parametrize("ranker, why", [(Broken(), "no luck today"), (ByQuery(), "sample_weight")])
def test_a_member_that_fails_or_takes_no_weights_is_left_out(data, ranker, why):
    weights = np.ones(len(data[1]))
    with pytest.warns(UserWarning, match=why):
        model = AutoRanker([*LINEAR, ranker], n_resamples=0).fit(*data, weights)
    assert why in model.members_[-1]["note"]
    assert "score" not in model.members_[-1]


def test_lightgbm_joins_in_one_line(data):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, groups = data
    ranker = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=2, verbose=-1, n_jobs=1)
    model = AutoRanker([LINEAR[0], ranker], combine="mean", n_resamples=0).fit(X, y, groups)
    assert [row["name"] for row in model.members_][-1] == "LGBMRanker"
    assert np.isfinite(model.predict(X, groups)).all()


def test_the_simplest_member_is_trained_whatever_the_time_limit(data):
    model = AutoRanker(time_limit=0.0).fit(*data)
    assert "score" in model.members_[0]
    assert all("time limit" in row["note"] for row in model.members_[1:])
    assert any("no time" in note for note in model.notes_)


@pytest.mark.parametrize(
    "slow, later, n_cores",
    [(1.0, 1.0, 1), (3.0, 1.0, 1), (12.0, 1.0, 1), (3.0, 8.0, 1), (3.0, 1.0, 2)],
)
def test_a_slow_machine_keeps_to_the_time_limit(many, monkeypatch, slow, later, n_cores):
    """By a clock that only members move: as expected, but so many times as slow.

    A machine that is slower later, when members are trained, leaves some of them out.
    """
    now, limit = [0.0], 25.0
    monkeypatch.setattr(threads, "n_threads_for", lambda work: n_cores)

    def expected(what, held_out):
        return ExpectedSeconds(held_out.graph.n_items / 60, 0.5)

    def slowly(what, held_out, seed, seconds, pace):
        member = evaluate_member(what, held_out, seed, seconds, pace)
        judging, training = expected(what, held_out)
        spent = min(seconds, slow * judging)
        now[0] += spent / n_cores

        def train(train=member.train):
            now[0] += later * spent * training / judging
            return train()

        member.train = train
        return member

    for module in (auto_ranker, budgeted_evaluation, time_budget):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time_budget, "measure_pace", lambda: slow)
    monkeypatch.setattr(budgeted_evaluation, "expected_seconds", expected)
    monkeypatch.setattr(budgeted_evaluation, "evaluate_member", slowly)
    monkeypatch.setattr(budgeted_evaluation, "MANY_ITEMS", 10**6)
    monkeypatch.setattr(budgeted_evaluation, "MIN_SAMPLE", 20)
    model = AutoRanker(time_limit=limit).fit(*many)
    assert now[0] <= (limit if later == 1.0 else 1.5 * limit)
    lost = [note for note in model.notes_ if "no time was left to train" in note]
    assert bool(lost) == (later > 1.0)
    assert len(model.estimators_) == sum(row.get("weight", 0) != 0 for row in model.members_)
    judged = [row["name"] for row in model.members_ if "score" in row]
    assert judged[:2] == [LINEAR[0], "trees"]
    assert len(judged) > 2 or slow == 12.0
    assert any(f"chosen on {len(model.held_out_scores_)} of" in note for note in model.notes_)


def test_members_side_by_side_are_the_same_to_the_bit(monkeypatch):
    X, y, groups = make_ranking(n_queries=60, n_documents=10, n_features=3, random_state=0)[:3]
    monkeypatch.setattr(budgeted_evaluation, "LARGE_STEP", 2**40)
    models, workers = [], []

    def judge(*arguments):
        workers.append(threading.get_ident())
        return evaluate_member(*arguments)

    monkeypatch.setattr(budgeted_evaluation, "evaluate_member", judge)
    with threadpool_limits(2):
        for n in (1, 2):
            count = {False: 1, True: n}
            monkeypatch.setattr(threads, "n_threads_for", lambda work, c=count: c[work > 2**35])
            models.append(AutoRanker().fit(X, y, groups))
    one, two = models
    assert set(workers[:11]) == {threading.get_ident()}
    assert threading.get_ident() not in workers[11:]
    assert [row["name"] for row in one.members_] == [row["name"] for row in two.members_]
    np.testing.assert_array_equal(one.held_out_scores_, two.held_out_scores_)
    np.testing.assert_array_equal(one.predict(X, groups), two.predict(X, groups))
    assert one.estimate_ == two.estimate_


def test_trees_stop_growing_where_their_share_of_the_time_is_over(data):
    X, y, groups = data
    held_out = HoldOut.of(checked_data(X, y, groups), None)
    few = evaluate_member(TREES, held_out, 0, seconds=0.0)
    assert few.n_trees == STAGES[0]


def test_trees_beyond_the_usual_number_have_a_limit_of_work(monkeypatch):
    X, y = np.arange(600.0)[:, None], np.arange(600.0)
    grown = []
    for most in (np.inf, 0):
        for name, value in {"STAGES": (1, 2, 4), "USUAL_TREES": 2, "MAX_WORK": most}.items():
            monkeypatch.setattr(tree_member, name, value)
        grown.append(
            evaluate_member(TREES, HoldOut.of(checked_data(X, y), None), 0, np.inf).n_trees
        )
    assert grown == [4, 2]


@pytest.fixture
def many(monkeypatch):
    """600 items that count as a great many; a fifth of them is the sample."""
    monkeypatch.setattr(budgeted_evaluation, "MANY_ITEMS", 600)
    monkeypatch.setattr(member_evaluation, "BLOCK_ITEMS", 100)
    monkeypatch.setattr(members, "MIN_ITEMS_FOR_TREES", 100)
    return make_ranking(n_queries=60, n_documents=10, n_features=3, random_state=0)[:3]


def test_of_many_items_whole_groups_are_judged_and_all_are_trained_on(many):
    X, y, groups = many
    model = AutoRanker(n_resamples=0).fit(X, y, groups)
    sample = checked_data(X, y, groups).sample_rows(120, np.random.default_rng(0))
    assert model.held_out_scores_.shape == (120, 11)
    assert "chosen on 120 of 600 items" in model.notes_[-1]
    assert sorted(np.bincount(groups[sample])[np.unique(groups[sample])]) == [10] * 12
    menu, alphas = {recipe.name: recipe for recipe in CANDIDATE_MEMBERS}, alphas_of(model)
    for row, member in zip(
        [row for row in model.members_ if row["weight"]], model.estimators_, strict=True
    ):
        R = transform_items(member, X, groups)
        if row["name"] == "trees":
            n_trees = int(row["note"].split()[0])
            whole = BoostedTrees(n_trees).fit(R, y, groups)
        else:
            recipe = menu[row["name"]]
            whole = RankRLS(alphas[row["name"]], cost=recipe.cost, ties=recipe.ties)
            whole.fit(R, y, groups)
        np.testing.assert_allclose(member[-1].predict(R), whole.predict(R), atol=1e-6)


def test_trees_judged_on_few_of_many_items_have_seen_all_others(many, monkeypatch):
    X, y, groups = many
    for module in (expected_time, tree_member):
        monkeypatch.setattr(module, "SEEN_TREE_SHARE", 0.2)
    model = AutoRanker(["trees"], n_resamples=0).fit(X, y, groups)
    sample = checked_data(X, y, groups).sample_rows(120, np.random.default_rng(0))
    others = np.setdiff1d(np.arange(600), sample)
    R = transform_items(model.estimators_[0], X, groups)
    n_trees = int(model.members_[0]["note"].split()[0])
    whole = BoostedTrees(n_trees).fit(R[others], y[others], groups[others])
    np.testing.assert_allclose(model.predict(X, groups), whole.predict(R), atol=1e-9)
    np.testing.assert_allclose(model.held_out_scores_[:, 0], whole.predict(R[sample]), atol=1e-9)


def test_many_items_of_one_list_are_compared_in_parts(many):
    X, y, _ = many
    with pytest.warns(UngroupedRowsWarning):
        model = AutoRanker(LINEAR[:1], n_resamples=0).fit(X, y)
    Z = model.estimators_[0][0].transform(X)
    parts = np.arange(600) % 6
    whole = RankRLS(model.members_[0]["alpha"]).fit(Z, y, parts)
    np.testing.assert_allclose(model.estimators_[0][-1].coef_, whole.coef_)


def messy(n=700, seed=0):
    """A frame of every kind of column, whose order is by a town of 60, a word and a number."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 60, n)
    word = rng.integers(0, 2, n)
    size = rng.standard_normal(n)
    X = pd.DataFrame(
        {
            "doc_id": rng.permutation(n),
            "town": [f"t{k}" for k in town],
            "text": [f"{('fine', 'plain')[w]} wine {k}" for k, w in enumerate(word)],
            "size": np.where(rng.random(n) < 0.2, np.nan, size),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "vector": list(rng.standard_normal((n, 2))),
            "new": rng.random(n) < 0.5,
        }
    )
    effects = np.random.default_rng(7).standard_normal(60)
    return X, effects[town] - 2.0 * word + size


def test_frames_with_categories_gaps_dates_text_and_vectors(tmp_path, capsys):
    X, y = messy()
    model = AutoRanker(n_resamples=0, verbose=1).fit(X, y)
    said = capsys.readouterr().err
    assert "column town: category of 60 values" in said
    assert all(f"AutoRanker: {row['name']}: " in said for row in model.members_)
    assert "column doc_id: dropped (an identifier: its name says so)" in said
    assert "column doc_id is dropped: an identifier: its name says so" in model.notes_
    names = [row["name"] for row in model.members_]
    assert "trees" in names
    assert "linear with all values and words, standard, magnitude" in names
    lines = str(model.summary()).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == f"disagreement {model.score_:.4f} on held-out data"
    assert any(line.startswith("town") and "category of 60 values" in line for line in lines)
    new, y_new = messy(400, seed=1)
    assert model.score(new, y_new) > 0.8
    shuffled = new.drop(columns="doc_id")[["new", "vector", "day", "size", "text", "town"]]
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(new))
    strange = new.assign(town="elsewhere", size=np.nan)
    assert np.isfinite(model.predict(strange)).all()
    save(model, tmp_path / "model.rw")
    np.testing.assert_array_equal(load(tmp_path / "model.rw").predict(new), model.predict(new))


def test_numbers_of_an_identifier_are_used_where_they_tell_the_order(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((600, 2)), columns=["a", "b"])
    X["work_id"] = rng.permutation(6000)[:600]
    year = np.abs(X["work_id"] - 3000) + 300 * rng.standard_normal(600)
    model = AutoRanker(LINEAR[:1], n_resamples=0).fit(X, year)
    assert "work_id has the name of an identifier, but" in model.notes_[0]
    assert model.table_ is None  # three columns of numbers without gaps
    save(model, tmp_path / "model.rw")
    np.testing.assert_array_equal(load(tmp_path / "model.rw").predict(X), model.predict(X))
    for ids, y in [(X["work_id"], X["a"]), (np.argsort(np.argsort(year)), year)]:
        model = AutoRanker(LINEAR[:1], n_resamples=0).fit(X.assign(work_id=ids), y)
        assert model.table_.facts_[2].kind == "dropped"  # noise, or a counter of the rows


def test_held_out_scores_of_wide_members_equal_refitting():
    X, y = messy(300)
    groups = np.arange(300) % 30
    name = "linear with all values and words, standard, magnitude"
    model = AutoRanker([name], n_resamples=0).fit(X, y, groups)
    wide = model._transform(X)["wide"]
    n_dense = model._transform(X)["dense"].shape[1]
    R = wide.toarray()
    R[:, :n_dense] /= R[:, :n_dense].std(axis=0)
    again = RankRLS(model.members_[0]["alpha"])
    assert_refitted(model.held_out_scores_[:, 0], again, R, y, groups)


def test_arrays_may_have_gaps(data):
    X, y, groups = data
    X = X.copy()
    X[::7, 1] = np.nan
    model = AutoRanker(n_resamples=0).fit(X, y, groups)
    assert model.table_.facts_[1].words == f"number with {len(X[::7])} missing values"
    assert np.isfinite(model.predict(X, groups)).all()


def test_a_member_that_does_not_fit_in_memory_is_left_out(data, monkeypatch):
    X, y, groups = data
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * len(y) * 40)
    model = AutoRanker(n_resamples=0).fit(X, y, groups)
    assert "GiB" in model.members_[-1]["note"]
    assert "score" in model.members_[0]


@pytest.mark.parametrize(
    "n, groups", [(30, np.zeros(30)), (30, np.arange(30) % 5), (3, None), (4, [0, 0, 1, 2])]
)
def test_small_and_empty_data(n, groups):
    rng = np.random.default_rng(0)
    X, y = np.ones((n, 2)), rng.normal(size=n)
    if n < 30:
        with pytest.raises(ValueError, match="evaluated on held-out data: a fold leaves"):
            AutoRanker().fit(X, y, groups)
        return
    for items in (X, rng.normal(size=(n, 2))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = AutoRanker().fit(items, y, groups)
        assert np.isfinite(model.predict(items, groups)).all()
    with pytest.raises(ValueError, match="one output"):
        AutoRanker().fit(X, np.stack([y, y], axis=1), groups)


def test_a_model_file_keeps_it(tmp_path, data, fitted):
    X, _, groups = data
    save(fitted, tmp_path / "auto.rw")
    again = load(tmp_path / "auto.rw")
    np.testing.assert_array_equal(again.predict(X, groups), fitted.predict(X, groups))
    assert again.members_ == fitted.members_


def test_the_menu_has_no_two_equal_entries(data):
    X, y, groups = data
    for labels in (groups, None):
        for target in (y, ScoreGraph(y, labels)):
            menu = candidate_members(checked_data(X, target, labels if target is y else None))
            assert len(menu) == len({recipe.name for recipe in menu})
            assert 4 <= len(menu) <= 11


def test_few_items_get_a_mean_since_weights_would_be_noise(data):
    model = AutoRanker(n_resamples=0).fit(*data)
    assert model.combine_ == "mean"
    assert "61 items are too few" in model.notes_[0]
    assert sorted({row["weight"] for row in model.members_}) == [0.0, 0.25]


def test_a_stack_that_is_clearly_worse_gives_way_and_says_so(data, monkeypatch):
    monkeypatch.setattr(stacking, "LEAST_FOR_STACK", 0)

    propose_weights = Stacking._propose_weights

    def reverse_the_order(combiner, counts):
        proposed = propose_weights(combiner, counts)
        return ProposedWeights(
            np.full_like(proposed.weights, -1.0), np.full_like(proposed.weights_without_unit, -1.0)
        )

    monkeypatch.setattr(Stacking, "_propose_weights", reverse_the_order)
    model = AutoRanker(LINEAR, n_resamples=0).fit(*data)
    assert model.combine_ == "best"
    assert "the best member replaces the stack" in model.notes_[0]


def test_weights_of_items_reach_members_stack_and_metric(data):
    X, y, groups = data
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, size=len(y)).astype(float)
    model = AutoRanker(LINEAR, n_resamples=0).fit(X, y, groups, weights)
    R, again = StandardScaler().fit_transform(X), RankRLS(model.members_[0]["alpha"])
    assert_refitted(model.held_out_scores_[:, 0], again, R, y, groups, weights)
    carried = AutoRanker(LINEAR, n_resamples=0).fit(X, make_target(y, groups, weights))
    np.testing.assert_allclose(carried.predict(X, groups), model.predict(X, groups))
    metric = get_metric("ndcg@10")
    expected = metric(y, model.held_out_scores_[:, 0], groups, sample_weight=weights)
    assert model.members_[0]["score"] == pytest.approx(expected)


@pytest.mark.parametrize("limit", [-1, "5", float("nan"), True])
def test_a_time_limit_that_is_none_is_refused(data, limit):
    with pytest.raises(ValueError, match="expected a non-negative number of seconds"):
        AutoRanker(time_limit=limit).fit(*data)


def test_seeds_of_all_kinds_leave_no_member_out(data):
    models = [
        AutoRanker(random_state=seed, n_resamples=0).fit(*data)
        for seed in (5, np.int64(5), np.random.RandomState(5), None)
    ]
    for model in models:
        assert not any(row["note"] for row in model.members_)
    np.testing.assert_array_equal(models[0].held_out_scores_, models[1].held_out_scores_)


@pytest.mark.filterwarnings("ignore:no item is preferred")
def test_scores_without_a_preference_are_refused_in_the_words_of_the_caller(data):
    X, _, groups = data
    with pytest.raises(ValueError, match="check y and groups"):
        AutoRanker().fit(X, groups.astype(float), groups)


def test_the_report_draws_the_curves_of_an_additive_model(data):
    X, y, groups = data
    model = make_pipeline(StandardScaler(), HingeFeatures(2), RankRLS(0.1))
    model.fit(X, make_target(y, groups))
    page = str(report(model, X, y, groups, feature_names=["height", "b", "c", "d"]))
    shapes = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["shapes"]
    assert shapes["scale"] == "value"
    assert shapes["total"] == 4
    total = np.zeros(len(y))
    for curve in shapes["curves"]:
        at = ["height", "b", "c", "d"].index(curve["label"])
        total += np.interp(X[:, at], curve["x"], curve["mean"])
    scores = model.predict(X)
    np.testing.assert_allclose(total, scores - scores.mean(), atol=0.01)
    plain = str(report(RankRLS().fit(X, y, groups), X, y, groups))
    assert '"shapes":null' in plain


def test_the_report_has_what_is_lost_without_each_feature(data, fitted):
    X, y, groups = data
    page = str(report(fitted, X, y, groups, feature_names=["height", "b", "c", "d"]))
    found = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["losses"]
    expected = permutation_importance(fitted, X, y, groups, scoring="ndcg@10", n_repeats=2)
    order = np.argsort(-expected.importance, kind="stable")
    assert found["names"] == [["height", "b", "c", "d"][j] for j in order]
    np.testing.assert_allclose(found["losses"], expected.importance[order], rtol=1e-3, atol=1e-6)
    assert "a feature is permuted in the groups" in page
    assert '"losses":null' in str(report(RankRLS().fit(X, y, groups), X, y, groups))


def test_a_metric_of_ones_own_judges_later_groups_too(data):
    X, y, groups = data

    def best_is_first(y, scores):
        return float(y[np.argmax(scores)] == y.max())

    model = AutoRanker(["linear, standard, magnitude"], scoring=best_is_first, n_resamples=0)
    model.fit(X, y, groups, time=groups)
    assert 0 <= model.estimate_["score"] <= 1

    def fails(y, scores):
        raise RuntimeError("no luck today")

    with pytest.raises(ValueError, match=r"metric 'fails' failed for group .* no luck today"):
        AutoRanker(scoring=fails).fit(X, y, groups)


def test_a_metric_that_is_nan_everywhere_is_refused(data):
    def unknown(y, scores):
        return float("nan")

    for search in (AutoRanker(scoring=unknown), RankRLSCV(scoring=unknown)):
        with pytest.raises(ValueError, match="unknown is undefined"):
            search.fit(*data)


def test_float32_features_give_the_model_of_float64():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(560, 4)).astype(np.float32)
    new = rng.normal(size=(50, 4)).astype(np.float32)
    groups = np.repeat(np.arange(40), 14)
    y = np.clip(np.round(X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=560) / 2), 0, 3)
    members = ["rbf, standard, magnitude", "linear, standard, magnitude"]
    single = AutoRanker(members, n_resamples=0).fit(X, y, groups)
    double = AutoRanker(members, n_resamples=0).fit(X.astype(float), y, groups)
    assert alphas_of(single) == pytest.approx(alphas_of(double), rel=1e-3)
    new_groups = np.repeat(np.arange(5), 10)
    scores = double.predict(new.astype(float), new_groups)
    found = single.predict(new, new_groups)
    np.testing.assert_allclose(found, scores, atol=1e-4 * np.ptp(scores))


def test_groups_in_another_order_than_the_items_are_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    groups = pd.Series(np.repeat(np.arange(12), 10))
    model = AutoRanker(["linear, standard, magnitude"], n_resamples=0)
    model.fit(X, X["a"] + rng.normal(size=120), groups)
    for method in (model.predict, model.rank):
        with pytest.raises(ValueError, match="X and groups"):
            method(X, groups[::-1])
