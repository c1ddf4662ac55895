"""One task for every learner, one table of candidates, one function of curves, any graph."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold

from rankwise import (
    CoRankRLS,
    CoRankRLSCV,
    PairGraph,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    View,
)
from rankwise.datasets import make_ranking
from rankwise.metrics import get_metric
from rankwise.model_selection import cross_val_predict_groups, cross_validate_candidates
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.folds import resolve_cv

ALPHAS = np.array([1e-3, 0.1, 10.0])
VIEWS = [View([0, 1, 2]), View([2, 3, 4])]
pytestmark = pytest.mark.filterwarnings("ignore:the best (alpha|nu|gamma) .* is at the edge")


@pytest.fixture
def data():
    return make_ranking(12, 8, 5, noise=1.0, n_levels=4, random_state=1)[:3]


SEARCHES = {
    "rls": RankRLSCV(ALPHAS, store_predictions=True),
    "svm": RankSVMCV(ALPHAS, store_predictions=True),
    "co": CoRankRLSCV(ALPHAS, nus=[0.0, 1.0], views=VIEWS, store_predictions=True),
    "pursuit": RankingPursuitCV(4, gamma=[0.1, 1.0], store_predictions=True),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_results_of_all_searches_have_the_same_keys(data, name):
    X, y, groups = data
    results = SEARCHES[name].fit(X, y, groups).cv_results_
    shared = {"params", "mean_score", "group_score", "groups", "n_undefined", "cv"}
    own = {"n_basis" if name == "pursuit" else "alphas"}
    assert set(results) == shared | own | {"predictions"}
    assert len(results["params"]) == len(results["mean_score"])
    assert results["cv"] == ("leave-group-out" if name == "rls" else "folds of groups")
    np.testing.assert_array_equal(results["groups"], np.unique(groups))
    held, scores = results["predictions"][0][:, 1], results["group_score"][0][:, 1]
    again = get_metric("disagreement")(y, held, groups, per_group=True, undefined="nan")
    np.testing.assert_allclose(scores, again, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(0.1),
        RankSVM(0.1, tol=1e-8),
        CoRankRLS(0.1, nu=2.0, views=VIEWS),
        RankingPursuit(3, kernel="linear", dictionary="features"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_held_out_scores_of_every_learner_are_those_of_training_again(data, model):
    X, y, groups = data
    y = y.astype(float)
    semi = isinstance(model, (CoRankRLS, RankingPursuit))
    y[groups >= (9 if semi else 12)] = np.nan
    scored = np.flatnonzero(~np.isnan(y))
    fast = cross_val_predict_groups(model, X, y, groups, cv=3)
    slow = np.full(len(y), np.nan)
    for _, test in GroupKFold(3).split(X[scored], y[scored], groups[scored]):
        kept = np.delete(np.arange(len(y)), scored[test])
        model.fit(X[kept], y[kept], groups[kept])
        slow[scored[test]] = model.predict(X[scored[test]])
    tolerance = 1e-2 if isinstance(model, RankSVM) else 1e-8
    np.testing.assert_allclose(fast, slow, atol=tolerance)


@pytest.mark.parametrize("name", SEARCHES)
def test_curves_are_those_of_the_search(data, name):
    X, y, groups = data
    search = SEARCHES[name].fit(X, y, groups)
    model = search.best_estimator_
    given = {"alpha": ALPHAS, **({"nu": [0.0, 1.0]} if name == "co" else {})}
    if name == "pursuit":
        given = {"n_basis": None}
        model = RankingPursuit(4, gamma=model.gamma)
    metrics = [get_metric("disagreement"), get_metric("ndcg@5")]
    found = cross_validate_candidates(model, X, y, groups, scoring=metrics, candidates=given)
    best = found.candidates[found.best(metrics[0])]
    assert best.items() <= search.best_params_.items()
    assert found.overall(metrics[0])[found.best(metrics[0])] == search.best_score_
    assert found.by_group["ndcg@5"].shape == (12, len(found.candidates), 1)
    assert found.scheme == search.cv_results_["cv"]
    assert found.refits == (name != "rls")


@settings(max_examples=200)
@given(st.data())
def test_the_best_candidate_is_the_largest_gain_then_the_simplest_model(data):
    numbers = st.lists(st.integers(1, 4).map(float), min_size=1, max_size=4, unique=True)
    names = data.draw(st.sampled_from([("alpha",), ("alpha", "nu"), ("n_basis",)]))
    axes = {name: np.array(data.draw(numbers)) for name in names}
    table = CandidateGrid(axes)
    gain = np.array([data.draw(st.integers(0, 2)) for _ in range(len(table))], dtype=float)
    signs = np.array([1 if name == "alpha" else -1 for name in names])
    at = table.best(gain)
    keys = [(g, *(signs * row)) for g, row in zip(gain, table.table, strict=True)]
    assert keys[at] == max(keys)
    for name in names:
        line = table.line_through(at, name)
        assert at in line
        np.testing.assert_array_equal(table.table[line, names.index(name)], axes[name])
        others = [k for k, other in enumerate(names) if other != name]
        assert (table.table[line][:, others] == table.table[at, others]).all()


def test_one_chooser_for_all(data):
    X, y, groups = data
    loss, pairs = [get_metric("ndcg")], [get_metric("disagreement")]
    some = slice(0, 30)
    cases = [
        (RankRLS(), groups, pairs, "leave-group-out", 12),
        (RankRLS(), None, pairs, "leave-pair-out", 0),
        (RankRLS(), None, loss, "folds of items", 10),
        (RankRLS(cost="sign"), None, pairs, "folds of items", 10),
        (RankSVM(), groups, pairs, "folds of groups", 5),
        (RankSVM(), np.where(groups < 3, groups, 3), pairs, "folds of groups", 4),
        (CoRankRLS(views=VIEWS), None, pairs, "folds of items", 5),
        (RankingPursuit(), groups, pairs, "folds of groups", 5),
    ]
    for model, labels, metrics, name, n_folds in cases:
        plan = resolve_cv(model.hold_out_task(X, y, labels), "auto", metrics)
        assert (plan.scheme, len(plan.folds)) == (name, n_folds)
    chain = PairGraph(np.arange(29), np.arange(1, 30))
    for model, n_folds in ((RankRLS(), 10), (RankSVM(), 5)):
        task = model.hold_out_task(X[some], chain)
        plan = resolve_cv(task, "auto", pairs)
        assert (plan.scheme, len(plan.folds)) == ("folds of edges", n_folds)
        np.testing.assert_array_equal(np.sort(np.concatenate(plan.folds)), np.arange(29))


def test_splits_that_can_be_read_once_serve_all_kernels_and_outputs(data):
    X, y, groups = data
    splits = list(GroupKFold(3).split(X, y, groups))
    search = RankRLSCV(kernel="rbf", gamma=[0.01, 0.1], cv=iter(splits)).fit(X, y, groups)
    again = RankRLSCV(kernel="rbf", gamma=[0.01, 0.1], cv=splits).fit(X, y, groups)
    np.testing.assert_array_equal(search.cv_results_["mean_score"], again.cv_results_["mean_score"])
    both = np.c_[y, -y + X[:, 0]]
    model = RankRLS()
    np.testing.assert_array_equal(
        cross_val_predict_groups(model, X, both, groups, cv=iter(splits)),
        cross_val_predict_groups(model, X, both, groups, cv=splits),
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("sizes", [(2, 2), (5, 3), (2, 5)])
def test_a_fold_beside_tied_items_has_equal_scores(sizes, sign, kernel):
    X = np.random.default_rng(0).normal(size=(sum(sizes), 3))
    large, tied = np.split(np.arange(len(X)), sizes[:1])
    y = np.where(np.isin(np.arange(len(X)), large), sign * (1.0 + np.arange(len(X))), 0.0)
    splits = [(tied, large), (large, tied)]
    alphas = [1e-12, 1e-3, 1.0]
    scores = cross_val_predict_groups(RankRLS(kernel=kernel), X, y, cv=splits, alphas=alphas)
    assert (scores[large] == 0.0).all()  # trained on the tied items
    assert (scores[tied] != 0.0).all()


def test_the_command_holds_out_alike_in_train_and_cv(tmp_path, data):
    pytest.importorskip("click")
    from tests.cli.shell import succeed

    X, y, _ = data
    file = tmp_path / "list.csv"
    rows = [",".join(map(repr, row)) for row in np.c_[y, X].tolist()]
    file.write_text("\n".join(["score,a,b,c,d,e", *rows]))
    options = [file, "--target", "score", "--json"]
    pairwise = ["-m", "disagreement"]
    for leave in ([], ["--leave", "pair"]):
        found = json.loads(succeed("cv", *options, *leave, *pairwise).stdout)
        assert found["held_out_by"] == "exact leave-pair-out"
        trained = json.loads(succeed("train", *options, "-o", tmp_path / "m.rankwise").stdout)
        assert trained["chosen"]["held_out_by"] == "leave-pair-out"
        assert found["best"]["alpha"] == pytest.approx(trained["chosen"]["parameters"]["alpha"])
        assert found["best"]["disagreement"] == pytest.approx(trained["chosen"]["held_out_score"])
    svm = ["--model", "ranksvm", "--alpha", "0.1,1"]
    found = json.loads(succeed("cv", *options, *svm).stdout)
    trained = json.loads(succeed("train", *options, *svm, "-o", tmp_path / "m.rankwise").stdout)
    assert found["held_out_by"] == "5 folds of items, refitted for each"
    assert trained["chosen"]["held_out_by"] == "folds of items"
