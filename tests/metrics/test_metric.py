"""How metrics are called: groups, undefined groups, outputs, refusals."""

import inspect
import re

import numpy as np
import pytest

import rankwise.metrics
from rankwise import make_target
from rankwise.errors import UndefinedMetricError
from rankwise.metrics import (
    auc,
    disagreement_error,
    evaluate,
    expected_reciprocal_rank,
    get_metric,
    ndcg,
    precision,
)
from tests.metrics.data import EVERY, GROUPS, SCORE, UNDEFINED_IN_B, Y

FOREIGN = np.zeros(2, dtype=[("relevance", float), ("query", int)])


@pytest.mark.parametrize("name", UNDEFINED_IN_B)
def test_undefined_groups_are_skipped_filled_shown_or_refused(name):
    metric = get_metric(name)
    value = metric([1, 2, 0], [0.1, 0.9, 0.4])  # in group a
    assert metric(Y, SCORE, GROUPS) == pytest.approx(value)
    assert np.isnan(metric(Y, SCORE, GROUPS, undefined="nan"))
    for undefined, fill in [("zero", 0.0), ("one", 1.0), ("skip", np.nan), ("nan", np.nan)]:
        found = metric(Y, SCORE, GROUPS, undefined=undefined, per_group=True)
        np.testing.assert_allclose(found, [value, fill])
        if undefined in ("zero", "one"):
            filled = metric(Y, SCORE, GROUPS, undefined=undefined)
            assert filled == pytest.approx((value + fill) / 2)
    with pytest.raises(UndefinedMetricError, match=r"group 'b' \(2 items\): it needs"):
        metric(Y, SCORE, GROUPS, undefined="raise")


@pytest.mark.parametrize("name", UNDEFINED_IN_B)
def test_no_defined_group_is_an_error_of_the_mean_only(name):
    metric = get_metric(name)
    with pytest.raises(UndefinedMetricError, match=r"each of the 2 groups.*undefined='nan'"):
        metric([0, 0, 0], [1, 2, 3], [7, 7, 8])
    with pytest.raises(UndefinedMetricError, match="undefined for the data"):
        metric([0, 0], [1, 2])
    assert np.isnan(metric([0, 0], [1, 2], [7, 8], per_group=True)).all()


def test_precision_counts_groups_without_relevant_items_as_zero():
    found = precision(Y, SCORE, GROUPS, k=2, undefined="raise", per_group=True)
    np.testing.assert_allclose(found, [0.5, 0.0])


def test_a_group_of_one_item_has_no_pair_and_is_perfect_if_relevant():
    for name in ("disagreement", "concordance", "tau", "auc"):
        found = get_metric(name)([1, 1, 0], [1, 2, 3], [0, 1, 1], per_group=True)
        assert np.isnan(found).tolist() == [True, False]
    for name in ("ndcg", "map", "mrr", "p@1"):
        assert get_metric(name)([2], [0.1]) == 1.0


def test_pooled_pairs_without_any_pair_are_undefined():
    for undefined in ("skip", "raise"):
        with pytest.raises(UndefinedMetricError):
            disagreement_error([1, 1], [1, 2], average="pairs", undefined=undefined)
    assert disagreement_error([1, 1], [1, 2], average="pairs", undefined="one") == 1.0


def test_groups_where_all_weights_are_zero_are_undefined():
    found = disagreement_error(
        [0, 1, 0, 1], [1, 2, 2, 1], [0, 0, 1, 1], sample_weight=[0, 5, 2, 1], per_group=True
    )
    np.testing.assert_array_equal(found, [np.nan, 1.0])


@pytest.mark.parametrize("name", EVERY)
def test_mean_is_that_of_the_groups(name):
    rng = np.random.default_rng(0)
    y, score, groups = rng.integers(0, 3, 99), rng.normal(size=99), rng.integers(0, 7, 99)
    found = get_metric(name)(y, score, groups, per_group=True)
    assert get_metric(name)(y, score, groups) == pytest.approx(found.mean())


@pytest.mark.parametrize(
    "labels", [[3, 1, 2], ["z", "x", "y"], [2.5, -1.0, 0.0], [(2,), (0,), (1,)]]
)
def test_per_group_values_come_in_the_order_of_sorted_labels(labels):
    y, score = [1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 1, 1]
    groups = [label for label in labels for _ in range(2)]
    np.testing.assert_array_equal(auc(y, score, groups, per_group=True), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("name", EVERY)
def test_a_structured_target_carries_its_groups(name):
    target = np.array(list(zip(Y, GROUPS, strict=True)), dtype=[("score", float), ("group", "U1")])
    found = get_metric(name)(target, SCORE, per_group=True)
    np.testing.assert_array_equal(found, get_metric(name)(Y, SCORE, GROUPS, per_group=True))


def test_a_structured_target_with_two_outputs_gives_two_values():
    target = np.zeros(4, dtype=[("score", float, (2,)), ("group", int)])
    target["score"] = [[0, 1], [1, 0], [0, 1], [1, 0]]
    target["group"] = [0, 0, 1, 1]
    score = np.repeat(np.arange(4.0)[:, None], 2, axis=1)
    np.testing.assert_array_equal(disagreement_error(target, score), [0.0, 1.0])


@pytest.mark.parametrize("per_group", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_outputs_are_evaluated_column_by_column(name, per_group):
    rng = np.random.default_rng(0)
    y, score, groups = rng.integers(0, 3, (40, 3)), rng.normal(size=(40, 3)), np.arange(40) % 4
    metric = get_metric(name)
    y[:, 1] = np.minimum(y[:, 1], 1)
    found = metric(y, score, groups, per_group=per_group)
    columns = [metric(y[:, j], score[:, j], groups, per_group=per_group) for j in range(3)]
    np.testing.assert_array_equal(found, np.stack(columns, axis=-1))


@pytest.mark.parametrize("per_group", [False, True])
def test_one_target_is_compared_with_each_column_of_scores(per_group):
    rng = np.random.default_rng(0)
    y, score, groups = rng.integers(0, 3, 40), rng.normal(size=(40, 3)), np.arange(40) % 4
    found = ndcg(y, score, groups, per_group=per_group)
    repeated = ndcg(np.repeat(y[:, None], 3, axis=1), score, groups, per_group=per_group)
    np.testing.assert_array_equal(found, repeated)


def test_a_single_column_keeps_its_axis():
    assert np.shape(ndcg([[1], [0]], [[2], [1]])) == (1,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ndcg([1, 0, 1], [1, 2]), r"shape \(3,\) but y_score has shape \(2,\)"),
        (lambda: ndcg([1, 0], [1, 2], [0, 0, 1]), "groups has 3 entries but there are 2 rows"),
        (lambda: ndcg([[1], [0]], [1, 2]), r"shape \(2, 1\) but y_score has shape \(2,\)"),
        (lambda: ndcg([[1, 2], [0, 1]], [[1], [2]]), r"as many score columns as y_true"),
        (lambda: ndcg([1, np.nan], [1, 2]), "y_true contains NaN"),
        (lambda: ndcg([1, 0], [1, np.inf]), "y_score contains infinity"),
        (lambda: ndcg([], []), r"y_true has shape \(0,\).* at least one item"),
        (lambda: ndcg(1, 2), r"y_true has shape \(\); pass shape \(n_items,\)"),
        (lambda: ndcg(["a", "b"], [1, 2]), "y_true has dtype <U1, expected real numbers"),
        (lambda: ndcg([1, {}], [1, 2]), "y_true has dtype object, expected real numbers"),
        (lambda: ndcg([1, 0], [1j, 2]), "y_score must contain real numbers"),
        (lambda: ndcg([1, -1], [1, 2]), "0 or larger, y_true has -1.*kendall_tau or disagreement"),
        (lambda: ndcg([1, 99], [1, 2]), r"too large for y = 99.*pass gain='linear'"),
        (lambda: expected_reciprocal_rank([99], [1]), r"use ndcg\(..., gain='linear'\)"),
        (lambda: expected_reciprocal_rank([3], [1], max_grade=2), "y_true has a grade of 3"),
        (
            lambda: expected_reciprocal_rank([1], [1], tied_scores="average"),
            "Choose one of 'pessimistic'",
        ),
        (
            lambda: ndcg([1], [1], k=0),
            "k=0; expected a whole number from 1",
        ),
        (lambda: ndcg([1], [1], k=2.0), "k=2.0; expected"),
        (lambda: ndcg([1], [1], k=True), "k=True; expected"),
        (lambda: precision([1], [1], k=None), "k=None; expected"),
        (lambda: ndcg([1], [1], gain="lin"), "gain='lin' is unknown; did you mean 'linear'"),
        (
            lambda: ndcg([1], [1], tied_scores="half"),
            "tied_scores='half' is unknown.*'average'",
        ),
        (lambda: disagreement_error([1], [1], tied_scores="skip"), "Choose one of 'half', 'wrong'"),
        (lambda: disagreement_error([1], [1], average="micro"), "Choose one of 'groups', 'pairs'"),
        (
            lambda: ndcg([1], [1], undefined=0),
            "undefined=0 is unknown. Choose one of 'skip', 'zero'",
        ),
        (lambda: evaluate([1], [1], undefined="drop"), "undefined='drop' is unknown"),
        (lambda: auc([0, 1, 2], [1, 2, 3]), "more than two values; pass relevant=c"),
        (
            lambda: disagreement_error([0, 1], [1, 2], sample_weight=[1]),
            r"sample_weight has shape \(1,\) but there are 2 rows",
        ),
        (
            lambda: disagreement_error([0, 1], [1, 2], sample_weight=[1, -2]),
            r"sample_weight\[1\] is -2.0; weights must be 0 or larger",
        ),
        (lambda: evaluate(np.eye(2), np.eye(2)), "evaluate takes one list of scores"),
        (lambda: ndcg(make_target([1, 0], [0, 1]), [1, 2], [0, 1]), "contains its groups"),
        (lambda: ndcg(FOREIGN, [1, 2]), r"'relevance', 'query'.*'score' and 'group'"),
    ],
)
def test_refusals_say_what_came_and_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_names_exist_and_are_documented_with_an_example():
    for name in rankwise.metrics.__all__:
        thing = getattr(rankwise.metrics, name)
        assert thing.__doc__
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, name
            entries = thing.__doc__.partition("Parameters\n")[2].partition("Returns\n")[0]
            assert set(inspect.signature(thing).parameters) <= set(re.findall(r"\w+", entries)), (
                name
            )


def test_inputs_are_left_as_they_were():
    y, score, weights = np.array([1.0, 0, 2]), np.array([1.0, 1, 0]), np.array([1.0, 2, 3])
    before = [column.copy() for column in (y, score, weights)]
    evaluate(y, score)
    disagreement_error(y, score, sample_weight=weights)
    for column, old in zip((y, score, weights), before, strict=True):
        np.testing.assert_array_equal(column, old)
