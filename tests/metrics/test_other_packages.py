"""Agreement with other packages where their conventions are ours, or an option of ours."""

import ir_measures
import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from rankwise.metrics import (
    auc,
    average_precision,
    get_metric,
    kendall_tau,
    ndcg,
    precision,
    reciprocal_rank,
    spearman,
)


@pytest.fixture(params=range(2))
def lists(request):
    """Twelve shuffled lists of 1 to 20 items, distinct scores; list 0 has no relevant item."""
    rng = np.random.default_rng(request.param)
    groups = np.repeat(np.arange(12), rng.integers(1, 21, 12))
    groups = rng.permutation(groups)
    y = rng.integers(0, 5, len(groups)) * (rng.random(len(groups)) < 0.5)
    y[groups == 0] = 0
    return y, rng.permutation(len(groups)) / 7.0, groups


def run_and_qrels(y, score, groups):
    run, qrels = {}, {}
    for row, (relevance, value, group) in enumerate(zip(y, score, groups, strict=True)):
        run.setdefault(f"q{group:02}", {})[f"d{row}"] = float(value)
        qrels.setdefault(f"q{group:02}", {})[f"d{row}"] = int(relevance)
    return run, qrels


def per_query(results):
    return np.array([results[query] for query in sorted(results)])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("nDCG", "ndcg(gain=linear)"),
        ("nDCG@10", "ndcg(gain=linear)@10"),
        ("AP", "map"),
        ("AP@5", "map@5"),
        ("AP(rel=2)", "map(relevant=2)"),
        ("P@5", "p@5"),
        ("P(rel=3)@5", "p(relevant=3)@5"),
        ("RR", "mrr"),
        ("RR(rel=2)", "mrr(relevant=2)"),
        ("RR@3", "mrr@3"),
    ],
)
def test_values_equal_those_of_trec_eval_by_ir_measures(lists, theirs, ours):
    run, qrels = run_and_qrels(*lists)
    measure = ir_measures.parse_measure(theirs)
    truth = per_query({r.query_id: r.value for r in ir_measures.iter_calc([measure], qrels, run)})
    values = get_metric(ours)(*lists, undefined="zero", per_group=True)
    np.testing.assert_allclose(values, truth, atol=1e-9)


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("n_distinct_scores", [1, 4, 10**9])
def test_linear_ndcg_equals_scikit_learn_with_and_without_ties(n_distinct_scores, k):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, (30, 9))
    score = rng.integers(0, n_distinct_scores, (30, 9)).astype(float)
    groups = np.repeat(np.arange(30), 9)
    found = ndcg(y.ravel(), score.ravel(), groups, k=k, gain="linear", undefined="zero")
    assert found == pytest.approx(ndcg_score(y, score, k=k), rel=1e-12)


def test_exponential_ndcg_equals_scikit_learn_on_gains():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 5, (1, 20)), rng.integers(0, 5, (1, 20))
    assert ndcg(y[0], score[0]) == pytest.approx(ndcg_score(2.0**y - 1, score), rel=1e-12)


def test_average_precision_equals_scikit_learn_without_ties():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 50), rng.normal(size=50)
    assert average_precision(y, score) == pytest.approx(average_precision_score(y, score))


@pytest.mark.parametrize("n_distinct_scores", [1, 3, 10**9])
def test_auc_equals_scikit_learn_with_and_without_ties(n_distinct_scores):
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 50), rng.integers(0, n_distinct_scores, 50)
    assert auc(y, score) == pytest.approx(roc_auc_score(y, score), rel=1e-14)


@pytest.mark.parametrize("n_distinct", [2, 5, 10**9])
def test_tau_b_equals_scipy(n_distinct):
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, n_distinct, 60), rng.integers(0, n_distinct, 60)
    assert kendall_tau(y, score) == pytest.approx(kendalltau(y, score).statistic, rel=1e-12)


# What other packages report in corner cases, by our options: the table of conventions in the
# research notes (section 2.7), measured with the packages themselves.
SCIKIT_LEARN = {"gain": "linear", "undefined": "zero"}
LIGHTGBM = {"undefined": "one", "tied_scores": "order"}
CATBOOST = {"gain": "linear", "undefined": "one", "tied_scores": "pessimistic"}
RANX = {"gain": "linear", "undefined": "zero", "tied_scores": "order"}


@pytest.mark.parametrize(
    ("y", "score", "options", "value"),
    [
        ([0, 0], [1, 2], SCIKIT_LEARN, 0.0),
        ([0, 0], [1, 2], LIGHTGBM, 1.0),
        ([0, 0], [1, 2], CATBOOST, 1.0),
        ([0, 0], [1, 2], RANX, 0.0),
        ([1], [1], LIGHTGBM, 1.0),
        ([1], [1], CATBOOST, 1.0),
        ([0, 0, 2], [1, 1, 1], SCIKIT_LEARN, 0.710),
        ([0, 0, 2], [1, 1, 1], LIGHTGBM, 0.5),
        ([0, 0, 2], [1, 1, 1], CATBOOST, 0.5),
        ([0, 0, 2], [1, 1, 1], RANX, 0.5),
        ([0, 0, 2], [1, 1, 1], {"tied_scores": "optimistic"}, 1.0),
        ([2, 0, 0], [1, 1, 1], SCIKIT_LEARN, 0.710),
        ([2, 0, 0], [1, 1, 1], LIGHTGBM, 1.0),
        ([2, 0, 0], [1, 1, 1], CATBOOST, 0.5),
        ([3, 1, 2], [1, 3, 2], SCIKIT_LEARN, 0.790),
        ([3, 1, 2], [1, 3, 2], LIGHTGBM, 0.681),
        ([3, 1, 2], [1, 3, 2], CATBOOST, 0.790),
        ([3, 1, 2], [1, 3, 2], {**CATBOOST, "gain": "exponential"}, 0.681),
    ],
)
def test_ndcg_reproduces_the_conventions_of_other_packages(y, score, options, value):
    assert ndcg(y, score, **options) == pytest.approx(value, abs=5e-4)


def test_precision_divides_by_k_in_groups_shorter_than_k():
    assert precision([1, 1], [2, 1], k=5) == 2 / 5


def test_average_precision_at_k_divides_by_all_relevant_items_unless_told_otherwise():
    y, score = [1, 1, 1, 1], [4, 3, 2, 1]
    assert average_precision(y, score, k=2) == 0.5
    assert average_precision(y, score, k=2, normalizer="attainable") == 1.0


def test_reciprocal_rank_of_two_tied_items_is_the_mean_of_one_and_one_half():
    assert reciprocal_rank([0, 1], [5, 5]) == 0.75


def test_spearman_is_that_of_scipy():
    rng = np.random.default_rng(0)
    y, score, groups = rng.integers(0, 4, 60), rng.integers(0, 5, 60), rng.integers(0, 6, 60)
    truth = [spearmanr(y[groups == g], score[groups == g]).statistic for g in range(6)]
    np.testing.assert_allclose(spearman(y, score, groups, per_group=True), truth)
    assert spearman([1, 2], [3, 3]) == 0.0  # SciPy has nan


def test_rank_biased_precision_and_judged_equal_those_of_ir_measures(lists):
    y, score, groups = lists
    run, qrels = run_and_qrels(*lists)
    known = np.arange(len(y)) % 2 == 0
    some = {
        query: {doc: grade for doc, grade in judgments.items() if int(doc[1:]) % 2 == 0}
        for query, judgments in qrels.items()
    }
    measure = ir_measures.Judged @ 5
    theirs = {m.query_id: m.value for m in ir_measures.iter_calc([measure], some, run)}
    found = get_metric("judged@5")(np.where(known, y, np.nan), score, groups, per_group=True)
    labels = [f"q{group:02}" for group in np.unique(groups)]
    for label, value in zip(labels, found, strict=True):
        assert theirs.get(label, 0.0) == pytest.approx(value)
