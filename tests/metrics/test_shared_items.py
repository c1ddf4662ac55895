"""Standard errors of means over comparisons that share items."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise import PairGraph, RankLogistic, RankLogisticCV, RankRLS, RankRLSCV
from rankwise.metrics import dyadic_robust_mean, evaluate
from rankwise.metrics.shared_items import dyadic_robust_variance
from rankwise.model_selection import compare


def variance_by_double_loop(deviations, first, second):
    """The sum of products over all two comparisons with a common item."""
    total = 0.0
    for k, deviation in enumerate(deviations):
        for other, value in enumerate(deviations):
            if {first[k], second[k]} & {first[other], second[other]}:
                total += deviation * value
    return total


def draw_comparisons(rng, n_items, n_comparisons):
    first = rng.integers(n_items, size=n_comparisons)
    second = (first + rng.integers(1, n_items, size=n_comparisons)) % n_items
    return first, second


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 40))
def test_variance_equals_the_double_loop(seed, n_items, n_comparisons):
    rng = np.random.default_rng(seed)
    first, second = draw_comparisons(rng, n_items, n_comparisons)
    deviations = rng.normal(size=n_comparisons)
    expected = variance_by_double_loop(deviations, first, second)
    variance = dyadic_robust_variance(deviations, first, second)
    if expected > 1e-9:
        np.testing.assert_allclose(variance, expected, rtol=1e-9)
    else:
        np.testing.assert_allclose(variance, deviations @ deviations)


def test_weighted_mean_equals_the_double_loop():
    rng = np.random.default_rng(3)
    first, second = draw_comparisons(rng, 40, 200)
    values = rng.random(200)
    weight = rng.random(200)
    result = dyadic_robust_mean(values, first, second, sample_weight=weight)
    mean = (weight @ values) / weight.sum()
    deviations = weight * (values - mean) / weight.sum()
    expected = variance_by_double_loop(deviations, first, second)
    assert expected > 0
    np.testing.assert_allclose(result.mean, mean)
    np.testing.assert_allclose(result.standard_error**2, expected)


def test_nothing_changes_if_sides_rows_and_names_are_permuted():
    rng = np.random.default_rng(4)
    first, second = draw_comparisons(rng, 15, 80)
    values = rng.random(80)
    result = dyadic_robust_mean(values, first, second)
    order = rng.permutation(80)
    is_swapped = rng.random(80) < 0.5
    names = np.array([f"item {k}" for k in rng.permutation(15)])
    sides = np.where(is_swapped, second, first), np.where(is_swapped, first, second)
    other = dyadic_robust_mean(values[order], names[sides[0][order]], names[sides[1][order]])
    np.testing.assert_allclose(other, result, rtol=1e-10)


def test_comparisons_of_different_items_are_independent():
    values = np.random.default_rng(5).random(30)
    result = dyadic_robust_mean(values, np.arange(30), np.arange(30, 60))
    np.testing.assert_allclose(result.standard_error, values.std() / np.sqrt(30))


@pytest.mark.slow
def test_p_values_are_uniform_where_items_have_effects():
    """Two models that are equally good; differences of losses have effects of the items."""
    rng = np.random.default_rng(6)
    n_rejected = 0
    n_rejected_as_independent = 0
    n_trials = 600
    for _ in range(n_trials):
        first, second = draw_comparisons(rng, 60, 600)
        effects = rng.normal(size=60)
        values = effects[first] + effects[second] + rng.normal(size=600)
        n_rejected += dyadic_robust_mean(values, first, second).p < 0.05
        independent = abs(values.mean()) / (values.std() / np.sqrt(600))
        n_rejected_as_independent += independent > 1.96
    assert n_rejected / n_trials < 0.10
    assert n_rejected_as_independent / n_trials > 0.3


def test_dyadic_robust_mean_of_few_or_wrong_values():
    single = dyadic_robust_mean([1.0], ["a"], ["b"])
    assert single.mean == 1.0
    assert np.isnan(single.p)
    equal = dyadic_robust_mean([0.0, 0.0], [0, 1], [1, 2])
    assert equal.p == 1.0
    assert equal.standard_error == 0.0
    with pytest.raises(ValueError, match="one item for each"):
        dyadic_robust_mean([0.0, 1.0], [0], [1])
    with pytest.raises(ValueError, match="finite"):
        dyadic_robust_mean([np.nan, 1.0], [0, 1], [1, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        dyadic_robust_mean([0.0, 1.0], [0, 1], [1, 2], sample_weight=[-1.0, 1.0])


def make_graph(rng, n_items=20, n_comparisons=150, weight=None):
    """Comparisons whose winners depend on the items, a tenth of them ties."""
    first, second = draw_comparisons(rng, n_items, n_comparisons)
    strength = 2 * rng.normal(size=n_items)
    has_first_won = rng.logistic(size=n_comparisons) < strength[first] - strength[second]
    winner = np.where(has_first_won, first, second)
    loser = np.where(has_first_won, second, first)
    magnitude = np.where(rng.random(n_comparisons) < 0.1, 0.0, 1.0)
    return PairGraph(winner, loser, magnitude, weight, n_items)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_intervals_of_evaluate_allow_for_shared_items(is_weighted):
    rng = np.random.default_rng(5)
    weight = None
    if is_weighted:
        weight = rng.random(150)
    graph = make_graph(rng, weight=weight)
    scores = rng.normal(size=20).round(1)
    result = evaluate(graph, scores, confidence=0.9)
    won = np.flatnonzero(graph.magnitude > 0)
    difference = (scores[graph.winner] - scores[graph.loser])[won]
    expected = dyadic_robust_mean(
        0.5 - 0.5 * np.sign(difference),
        graph.winner[won],
        graph.loser[won],
        sample_weight=graph.preference_weight[won],
        confidence=0.9,
    )
    (row,) = result.rows
    np.testing.assert_allclose(
        [row.mean, row.low, row.high], [expected.mean, expected.low, expected.high]
    )
    assert (row.n_groups, row.n_undefined) == (150, 150 - len(won))
    assert result.n_items == 20


def test_rows_of_comparisons_with_their_items_equal_the_graph():
    rng = np.random.default_rng(6)
    graph = make_graph(rng)
    scores = rng.normal(size=20)
    rows = np.column_stack([graph.winner, graph.loser]).ravel()
    y = np.column_stack([graph.magnitude, np.zeros(150)]).ravel()
    groups = np.repeat(rng.permutation(150), 2)
    order = rng.permutation(300)
    names = np.array([f"item {row}" for row in rows])
    result = evaluate(y[order], scores[rows][order], groups[order], "tau", items=names[order])
    expected = evaluate(graph, scores, metrics="tau")
    np.testing.assert_allclose(result.rows[0][1:], expected.rows[0][1:])
    independent = evaluate(y, scores[rows], groups, "tau").rows[0]
    assert independent.mean == pytest.approx(result["tau"])
    assert independent.low > result.rows[0].low  # too narrow


@pytest.mark.parametrize(
    "items, groups, words",
    [
        (["a", "b", "c"], [0, 0, 0], "3 rows"),
        (["a", "a", "b", "c"], [0, 0, 1, 1], "two different items"),
        (["a", "b"], [0, 0, 1, 1], "shape"),
    ],
)
def test_groups_that_do_not_compare_two_items_are_refused(items, groups, words):
    n_rows = len(groups)
    with pytest.raises(ValueError, match=words):
        evaluate(np.arange(n_rows), np.arange(n_rows), groups, items=items)


def test_a_graph_has_its_own_items_and_one_score_for_each():
    graph = make_graph(np.random.default_rng(7))
    with pytest.raises(ValueError, match="20 items"):
        evaluate(graph, np.zeros(300))
    with pytest.raises(ValueError, match="omit groups"):
        evaluate(graph, np.zeros(20), np.zeros(20))


def test_paired_tests_of_comparisons_allow_for_shared_items():
    rng = np.random.default_rng(8)
    first, second = draw_comparisons(rng, 30, 400)
    good = rng.normal(size=30)
    poor = good + rng.normal(size=30)
    values = {
        "good": 1.0 * (good[first] < good[second]),
        "poor": 1.0 * (poor[first] < poor[second]),
    }
    sides = np.column_stack([first, second])
    comparison = compare(values, items=sides, greater_is_better=False)
    expected = dyadic_robust_mean(values["good"] - values["poor"], first, second)
    (row,) = comparison.rows
    np.testing.assert_allclose(
        [row.difference, row.low, row.high, row.p],
        [expected.mean, expected.low, expected.high, expected.p],
    )
    assert comparison.n_items == 30
    assert comparison.to_dict()["items"] == 30
    swapped = sides[:, ::-1]
    assert compare(values, items=swapped, greater_is_better=False).rows == comparison.rows
    values["good"][:5] = np.nan
    complete = compare(
        {name: column[5:] for name, column in values.items()},
        items=sides[5:],
        greater_is_better=False,
    )
    assert compare(values, items=sides, greater_is_better=False).rows == complete.rows
    with pytest.raises(ValueError, match="share items"):
        compare(values, items=sides, test="wilcoxon", greater_is_better=False)
    with pytest.raises(ValueError, match="clusters"):
        compare(values, items=sides, clusters=first, greater_is_better=False)
    with pytest.raises(ValueError, match="two items"):
        compare(values, items=first, greater_is_better=False)


@pytest.mark.filterwarnings("ignore:the best alpha")
@pytest.mark.parametrize("search, learner", [(RankRLSCV, RankRLS), (RankLogisticCV, RankLogistic)])
def test_searches_report_errors_for_comparisons_that_share_items(search, learner):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 3))
    first, second = draw_comparisons(rng, 20, 120)
    graph = PairGraph(first, second, n_items=20, groups=np.zeros(20))
    folds = [
        (np.delete(np.arange(120), test), test) for test in np.array_split(rng.permutation(120), 4)
    ]
    alphas = [0.01, 1.0]
    model = search(alphas=alphas, cv=folds).fit(X, graph)
    errors = model.cv_results_["standard_error"]
    assert errors.shape == (1, 2)
    for k, alpha in enumerate(alphas):
        is_wrong = np.empty(120)
        for train, test in folds:
            scores = learner(alpha).fit(X, graph.with_edges(train)).predict(X)
            is_wrong[test] = 0.5 - 0.5 * np.sign(scores[first[test]] - scores[second[test]])
        expected = dyadic_robust_mean(is_wrong, first, second).standard_error
        np.testing.assert_allclose(errors[0, k], expected)
    assert model.summary().held_out_error == errors[0, alphas.index(model.alpha_)]
