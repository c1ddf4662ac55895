"""Metrics under the names of trec_eval and ir_measures, with the values of trec_eval."""

from __future__ import annotations

from itertools import permutations

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from sklearn.metrics import make_scorer, ndcg_score

from rankwise import RankRLSCV
from rankwise.metrics import get_metric, r_precision, success


@pytest.fixture
def lists():
    """Relevance, scores without ties, and groups; every group has a relevant item."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(40), rng.integers(2, 15, 40))
    y = rng.integers(0, 3, len(groups)) * (rng.random(len(groups)) < 0.4)
    y[np.unique(groups, return_index=True)[1]] = 1
    return y, rng.permutation(len(y)).astype(float), groups


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("recall_5", "R@5"),
        ("recall_5", "recall_5"),
        ("success_5", "Success@5"),
        ("success_1", "success_1"),
        ("P_5", "P_5"),
        ("P_5", "P@5"),
        ("Rprec", "Rprec"),
        ("recip_rank", "recip_rank"),
        ("map_cut_5", "map_cut_5"),
        ("map_cut_5", "AP@5"),
        ("ndcg_cut_5", "ndcg_cut_5"),
        ("ndcg_cut_5", "nDCG(dcg='log2')@5"),
        ("ndcg_cut_5", ir_measures.nDCG @ 5),
        ("ndcg", ir_measures.nDCG),
        ("P_5", ir_measures.P @ 5),
        ("map", ir_measures.AP),
    ],
    ids=str,
)
def test_values_are_those_of_trec_eval(lists, theirs, ours):
    y, score, groups = lists
    qrels = {str(g): {} for g in np.unique(groups)}
    run = {str(g): {} for g in np.unique(groups)}
    for row, group in enumerate(groups):
        qrels[str(group)][f"d{row}"] = int(y[row])
        run[str(group)][f"d{row}"] = float(score[row])
    measured = pytrec_eval.RelevanceEvaluator(qrels, {theirs}).evaluate(run)
    expected = [measured[str(group)][theirs] for group in np.unique(groups)]
    values = get_metric(ours)(y, score, groups, per_group=True)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert 0 < values.mean() <= 1


def test_options_of_ir_measures_have_the_names_of_ours():
    assert get_metric("nDCG(dcg='exp-log2')@10").name == "ndcg(gain=exponential)@10"
    assert get_metric(ir_measures.nDCG(dcg="exp-log2") @ 10).name == "ndcg(gain=exponential)@10"
    assert get_metric("ndcg_cut_10").name == "ndcg(gain=linear)@10"
    assert get_metric(ir_measures.P(rel=2) @ 5).name == "p(relevant=2)@5"
    with pytest.raises(ValueError, match="judged_only"):
        get_metric(ir_measures.nDCG(judged_only=True) @ 10)


@pytest.mark.parametrize("name", ["Bpref", "infAP", "IPrec@0.1", ir_measures.Bpref], ids=str)
def test_metrics_of_runs_are_refused_with_the_function_that_computes_them(name):
    with pytest.raises(ValueError, match="evaluate_runs"):
        get_metric(name)


@pytest.mark.parametrize("metric", [r_precision, lambda *a, **o: success(*a, k=2, **o)])
def test_ties_have_the_mean_over_all_orders(metric):
    rng = np.random.default_rng(1)
    for _ in range(20):
        y = rng.integers(0, 2, 5)
        y[0] = 1
        score = rng.integers(0, 3, 5).astype(float)
        orders = np.array(list(permutations(range(5))))
        consistent = [o for o in orders if (np.diff(score[o]) <= 0).all()]
        ranked = [metric(y[o], np.arange(5, 0, -1)) for o in consistent]
        assert metric(y, score) == pytest.approx(np.mean(ranked))


def test_groups_without_relevant_items_are_skipped_or_zero_as_in_trec_eval():
    y, score, groups = [1, 0, 0, 0], [2, 1, 2, 1], [0, 0, 1, 1]
    for metric in (get_metric("success@1"), get_metric("rprec")):
        assert metric(y, score, groups) == 1.0
        assert metric(y, score, groups, undefined="zero") == 0.5


@pytest.mark.parametrize(
    "name",
    ["bpref", "infAP", "alpha_nDCG@10", "nERR@10", "gm_map", "q@3"],
)
def test_names_of_other_measures_get_no_misleading_suggestion(name):
    with pytest.raises(ValueError, match="is not known") as error:
        get_metric(name)
    assert "did you mean" not in str(error.value)


def test_a_scorer_of_scikit_learn_is_refused_with_the_name_of_the_metric():
    scorer = make_scorer(ndcg_score)
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"ndcg\(gain=linear\)"):
        RankRLSCV(scoring=scorer).fit(X, [0, 1, 2, 0, 1, 2], groups=[0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match=r"ndcg\(gain=linear\)"):
        get_metric(scorer)
