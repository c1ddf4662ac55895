"""Every metric equals its definition: double loops, and all orders of tied items."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.stats

from rankwise.metrics import (
    auc,
    average_precision,
    disagreement_error,
    evaluate,
    expected_reciprocal_rank,
    get_metric,
    judged,
    kendall_tau,
    letor_ndcg,
    ndcg,
    pooled_auc,
    precision,
    rank_biased_precision,
    recall,
    reciprocal_rank,
    top_k,
)
from tests import oracle_metrics as oracle

TIES = ["optimistic", "pessimistic", "order"]


def random_lists(seed, n_distinct_scores=3, n_items=26, n_groups=6):
    """Small groups of shuffled rows, most scores tied; one group has no relevant item."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n_items)
    y = rng.integers(0, 4, n_items)
    y[groups == 0] = 0
    return y, rng.integers(0, n_distinct_scores, n_items).astype(float), groups


@pytest.fixture(params=range(2))
def tied(request):
    return random_lists(request.param)


@pytest.fixture(params=range(2))
def untied(request):
    return random_lists(request.param, n_distinct_scores=10**9, n_items=60)


def named(word, of_list, **options):
    """A metric by name, and its definition for one list."""
    inside = ",".join(f"{k}={v}" for k, v in options.items() if k != "k" and v is not None)
    cutoff = f"@{options['k']}" if options["k"] else ""
    return f"{word}({inside}){cutoff}", partial(of_list, **options)


CUTS = [(None, None), (2, None), (None, 2), (3, 3)]
AVERAGED = dict(
    [
        *(
            named("ndcg", oracle.ndcg_of_list, k=k, gain=gain)
            for k, gain in product((None, 1, 3, 50), ("exponential", "linear"))
        ),
        *(
            named("map", oracle.average_precision_of_list, k=k, relevant=r, normalizer=normalizer)
            for (k, r), normalizer in product(CUTS, ("relevant", "attainable"))
        ),
        *(named("mrr", oracle.reciprocal_rank_of_list, k=k, relevant=r) for k, r in CUTS),
        *(named("p", oracle.precision_of_list, k=k, relevant=r) for k, r in CUTS if k),
        *(named("recall", oracle.recall_of_list, k=k, relevant=r) for k, r in CUTS if k),
        *(named("hit", oracle.hit_of_list, k=k) for k in (1, 2, 4)),
        named("rbp", oracle.rbp_of_list, k=3, p=0.7),
    ]
)


@pytest.mark.parametrize("name", AVERAGED)
def test_with_ties_a_metric_is_the_mean_over_all_orders_of_tied_items(tied, name):
    truth = oracle.by_group(lambda y, s: oracle.expected(AVERAGED[name], y, s), *tied)
    found = get_metric(name)(*tied, per_group=True)
    np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-14)


LISTWISE = {
    "ndcg": (ndcg, oracle.ndcg_of_list),
    "average_precision": (average_precision, oracle.average_precision_of_list),
    "precision": (precision, oracle.precision_of_list),
    "recall": (recall, oracle.recall_of_list),
    "rbp": (partial(rank_biased_precision, p=0.7), partial(oracle.rbp_of_list, p=0.7)),
    "reciprocal_rank": (reciprocal_rank, oracle.reciprocal_rank_of_list),
    "err": (expected_reciprocal_rank, oracle.err_of_list),
}


@pytest.mark.parametrize("tied_scores", TIES)
@pytest.mark.parametrize("name", LISTWISE)
def test_tied_items_are_ordered_as_asked(tied, name, tied_scores):
    metric, of_list = LISTWISE[name]
    extra = {"max_grade": 4} if name == "err" else {}
    truth = oracle.by_group(
        lambda y, s: oracle.resolved(lambda ys: of_list(ys, 3), y, s, tied_scores), *tied
    )
    found = metric(*tied, k=3, tied_scores=tied_scores, per_group=True, **extra)
    np.testing.assert_allclose(found, truth, rtol=1e-12)


@pytest.mark.parametrize("k", [1, 4, 100])
@pytest.mark.parametrize("name", LISTWISE)
def test_without_ties_the_metric_equals_its_definition(untied, name, k):
    metric, of_list = LISTWISE[name]
    extra = {"max_grade": 4} if name == "err" else {}
    truth = oracle.by_group(
        lambda y, s: oracle.resolved(lambda ys: of_list(ys, k), y, s, "order"), *untied
    )
    np.testing.assert_allclose(metric(*untied, k=k, per_group=True, **extra), truth, rtol=1e-12)


def test_err_takes_the_largest_grade_of_the_data_as_top_of_the_scale():
    y, score, groups = [1, 0, 3, 0], [1, 2, 3, 4], [0, 0, 1, 1]
    found = expected_reciprocal_rank(y, score, groups, per_group=True)
    truth = oracle.by_group(
        lambda y, s: oracle.resolved(lambda ys: oracle.err_of_list(ys, None, 3), y, s, "order"),
        y, score, groups,
    )  # fmt: skip
    np.testing.assert_allclose(found, truth)


@pytest.mark.parametrize("tied_scores", ["half", "wrong"])
def test_disagreement_error_equals_the_double_loop_over_pairs(tied, tied_scores):
    truth = oracle.by_group(
        lambda y, s: oracle.disagreement_error(y, s, tied_scores=tied_scores), *tied
    )
    found = disagreement_error(*tied, tied_scores=tied_scores, per_group=True)
    np.testing.assert_allclose(found, truth, rtol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_average_over_pairs_pools_the_pairs_of_all_groups(tied, weighted):
    y, score, groups = tied
    weights = np.linspace(0, 2, len(y)) if weighted else np.ones(len(y))
    wrong, total = 0.0, 0.0
    for label in set(groups):
        i = groups == label
        pairs = oracle.disagreement(y[i], score[i], weights=weights[i])
        wrong, total = wrong + pairs[0], total + pairs[1]
    found = disagreement_error(
        y, score, groups, average="pairs", sample_weight=weights if weighted else None
    )
    assert found == pytest.approx(wrong / total, rel=1e-12)


def test_disagreement_of_real_valued_y_equals_the_double_loop():
    rng = np.random.default_rng(3)
    data = rng.normal(size=80), rng.normal(size=80), rng.integers(0, 3, 80)
    truth = oracle.by_group(oracle.disagreement_error, *data)
    np.testing.assert_allclose(disagreement_error(*data, per_group=True), truth)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, object])
def test_dtypes_and_size_of_y_and_dtypes_of_scores_do_not_matter(dtype):
    y, score, groups = random_lists(7, n_items=50)
    truth = disagreement_error(y, score, groups, per_group=True)
    found = disagreement_error(y.astype(dtype), score.astype(dtype), groups, per_group=True)
    np.testing.assert_array_equal(found, truth)
    for scale in (1e-3, 300.0, 2.0**16, 1e9):
        found = disagreement_error(scale * y - 128, score, groups, per_group=True)
        np.testing.assert_array_equal(found, truth)


def test_kendall_tau_equals_the_double_loop_over_pairs(tied):
    truth = oracle.by_group(lambda y, s: oracle.kendall_tau(y, s, "b"), *tied)
    found = kendall_tau(*tied, per_group=True)
    np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-15)


def test_auc_equals_the_double_loop_over_pairs(tied):
    truth = oracle.by_group(lambda y, s: oracle.auc(y, s, relevant=2), *tied)
    np.testing.assert_allclose(auc(*tied, relevant=2, per_group=True), truth, rtol=1e-14)


def test_pooled_auc_is_that_of_one_list_and_the_mean_over_positive_items(tied):
    y, score, groups = tied
    truth = oracle.auc(y, score, relevant=2)
    assert pooled_auc(y, score, groups, relevant=2) == pytest.approx(truth, rel=1e-14)
    assert auc(y, score, relevant=2) == pytest.approx(truth, rel=1e-14)
    assert np.isnan(pooled_auc([1, 1], [1, 2], relevant=1, undefined="nan"))


@pytest.mark.parametrize("seed", range(3))
def test_the_error_of_one_auc_is_that_of_delong_from_all_pairs(seed):
    rng = np.random.default_rng(seed)
    y, score = rng.integers(0, 2, 40), rng.integers(0, 9, 40).astype(float)
    area, error = oracle.delong(y, score)
    (row,) = evaluate(y, score, None, "auc")
    half = scipy.stats.norm.ppf(0.975) * error
    np.testing.assert_allclose(row[1], area)
    np.testing.assert_allclose([row.low, row.high], [area - half, min(area + half, 1)])
    assert "rough guess" not in str(evaluate(y, score, None, "auc"))


def test_the_error_of_pooled_auc_is_that_of_sums_in_clusters():
    rng = np.random.default_rng(0)
    groups = np.sort(rng.integers(0, 15, 90))
    score = (rng.normal(size=15)[groups] + rng.normal(size=90)).round(1)
    y = (rng.random(90) < 0.4).astype(int)
    area, error = oracle.delong(y, score, groups)
    (row,) = evaluate(y, score, groups, "pooled_auc", confidence=0.5)
    half = scipy.stats.norm.ppf(0.75) * error
    np.testing.assert_allclose([row.low, row.high], [area - half, area + half])


def test_an_auc_without_errors_or_with_one_positive_item_has_no_interval():
    for y, score in [([0, 0, 1, 1], [1, 2, 3, 4]), ([0, 0, 1], [1, 3, 2])]:
        assert np.isnan(evaluate(y, score, None, "auc").rows[0].low)


@pytest.mark.parametrize("tied_scores", ["half", "wrong"])
def test_pairs_of_equal_y_count_half_on_request(tied, tied_scores):
    def truth(y, score):
        wrong, differing = oracle.disagreement(y, score, tied_scores=tied_scores)
        n_pairs = len(y) * (len(y) - 1) / 2
        return (wrong + (n_pairs - differing) / 2) / n_pairs if n_pairs else np.nan

    name = f"disagreement(tied_scores={tied_scores},tied_y=half)"
    found = get_metric(name)(*tied, per_group=True)
    np.testing.assert_allclose(found, oracle.by_group(truth, *tied), rtol=1e-14)


def test_disagreement_with_ties_as_half_is_half_of_one_minus_tau_a(untied):
    found = get_metric("disagreement(tied_y=half)")(*untied, per_group=True)
    tau = oracle.by_group(lambda y, s: oracle.kendall_tau(y, s, "a"), *untied)
    np.testing.assert_allclose(found, (1 - np.nan_to_num(tau)) / 2)


@pytest.mark.parametrize("k", [1, 2, 10, None])
def test_letor_ndcg_is_that_of_the_script_of_letor(tied, k):
    def truth(y, score):
        ys = [y[i] for i in sorted(range(len(y)), key=lambda i: (-score[i], i))]
        dcg, best = (
            sum(
                (2**grade - 1) / max(np.log2(place), 1) for place, grade in enumerate(grades[:k], 1)
            )
            for grades in (ys, sorted(ys, reverse=True))
        )
        return dcg / best if best else 0.0

    found = letor_ndcg(*tied, k=k, per_group=True)
    np.testing.assert_allclose(found, oracle.by_group(truth, *tied), rtol=1e-12)


def test_mean_squared_error_of_groups_and_of_all_items(tied):
    y, score, groups = tied
    truth = oracle.by_group(lambda y, s: np.mean((np.array(y) - s) ** 2), *tied)
    np.testing.assert_allclose(get_metric("mse")(*tied, per_group=True), truth)
    assert get_metric("mse(average=items)")(*tied) == pytest.approx(np.mean((y - score) ** 2))
    weights = np.linspace(0, 1, len(y))
    found = get_metric("mse(average=items)")(*tied, sample_weight=weights)
    assert found == pytest.approx(np.average((y - score) ** 2, weights=weights))
    assert evaluate(10 * y, score, groups, "mse").rows[0].high > 1


def test_judged_is_the_share_of_known_items_and_unknown_ones_count_as_zero(tied):
    y, score, groups = tied
    gaps = np.where(np.arange(len(y)) % 3 == 0, np.nan, y)
    known = ~np.isnan(gaps)
    truth = oracle.by_group(
        lambda y, s: oracle.expected(lambda ys: sum(ys[:2]) / min(2, len(ys)), y, s),
        known, score, groups,
    )  # fmt: skip
    found = evaluate(gaps, score, groups, ["judged@2", "ndcg@2"])
    np.testing.assert_allclose(found.per_group["judged@2"], truth)
    assert found["ndcg@2"] == ndcg(np.where(known, y, 0), score, groups, k=2)
    assert judged(gaps, score, groups, k=2) == found["judged@2"]
    with pytest.raises(ValueError, match="y_true contains NaN"):
        evaluate(gaps, score, groups, "ndcg@2")


def test_disagreement_of_two_levels_is_one_minus_auc(tied):
    y, score, groups = tied
    binary = np.where(y >= 2, 7.5, 3.0)
    np.testing.assert_allclose(
        disagreement_error(binary, score, groups, per_group=True),
        1 - auc(binary, score, groups, per_group=True),
        atol=1e-15,
    )


def test_concordance_is_one_minus_disagreement(tied):
    np.testing.assert_allclose(
        get_metric("concordance")(*tied, per_group=True),
        1 - disagreement_error(*tied, per_group=True),
    )


@pytest.mark.parametrize("n_groups", [200, 60_000, 70_000, 140_000])
def test_any_number_of_groups_is_kept_apart(n_groups):
    rng = np.random.default_rng(0)
    rows = rng.permutation(2 * n_groups)
    groups, y, score = rows // 2, rows % 2, rng.normal(size=2 * n_groups)
    worse, better = np.argsort(rows).reshape(-1, 2).T
    truth = (score[better] < score[worse]).astype(float)
    np.testing.assert_array_equal(disagreement_error(y, score, groups, per_group=True), truth)


def test_tied_reciprocal_rank_stays_exact_for_a_long_tied_list():
    n = 50_000
    y = np.zeros(n)
    y[123] = 1
    harmonic = np.sum(1 / np.arange(1, n + 1))
    assert reciprocal_rank(y, np.ones(n)) == pytest.approx(harmonic / n, rel=1e-10)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_top_k_are_the_first_rows_of_each_sorted_group(tied, k):
    score, groups = tied[1:]
    truth = [
        row
        for label in sorted(set(groups))
        for row in sorted(np.flatnonzero(groups == label), key=lambda i: (-score[i], i))[:k]
    ]
    assert top_k(score, groups, k=k).tolist() == truth


def test_top_k_refuses_what_is_not_one_column_of_numbers():
    with pytest.raises(ValueError, match=r"shape \(2, 2\); pass one column"):
        top_k([[1, 2], [3, 4]], k=1)
    with pytest.raises(ValueError, match="k=0; expected a whole number"):
        top_k([1, 2], k=0)
    with pytest.raises(ValueError, match="y_score contains NaN"):
        top_k([1, np.nan], k=1)
