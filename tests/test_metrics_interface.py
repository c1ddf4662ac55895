"""How metrics are called: groups, undefined groups, outputs, names, reports, refusals."""

import pickle
import sys

import numpy as np
import pytest

import rankwise.metrics
from rankwise.errors import UndefinedMetricError
from rankwise.metrics import (
    auc,
    average_precision,
    disagreement_error,
    evaluate,
    expected_reciprocal_rank,
    get_metric,
    kendall_tau,
    metric_names,
    ndcg,
    precision,
    reciprocal_rank,
)

EVERY = [
    *("ndcg@3", "map", "p@2", "mrr", "err", "auc(relevant=1)"),
    *("disagreement", "concordance", "tau"),
]
UNDEFINED_IN_B = [name for name in EVERY if name != "p@2"]

# group a is defined for all metrics, b for none but precision
Y, SCORE, GROUPS = [0, 1, 0, 2, 0], [0.3, 0.1, 0.2, 0.9, 0.4], ["b", "a", "b", "a", "a"]


def value_in_a(metric):
    return metric([1, 2, 0], [0.1, 0.9, 0.4])


@pytest.mark.parametrize("name", UNDEFINED_IN_B)
class TestUndefinedGroups:
    def test_skip_leaves_them_out_of_the_mean(self, name):
        metric = get_metric(name)
        assert metric(Y, SCORE, GROUPS) == pytest.approx(value_in_a(metric))

    @pytest.mark.parametrize(("undefined", "fill"), [("zero", 0.0), ("one", 1.0)])
    def test_zero_and_one_stand_in_for_them(self, name, undefined, fill):
        metric = get_metric(name)
        expected = (value_in_a(metric) + fill) / 2
        assert metric(Y, SCORE, GROUPS, undefined=undefined) == pytest.approx(expected)

    def test_nan_makes_the_mean_nan(self, name):
        assert np.isnan(get_metric(name)(Y, SCORE, GROUPS, undefined="nan"))

    def test_raise_names_the_first_of_them_and_what_it_lacks(self, name):
        with pytest.raises(UndefinedMetricError, match=r"group 'b' \(2 items\): it needs"):
            get_metric(name)(Y, SCORE, GROUPS, undefined="raise")

    @pytest.mark.parametrize("undefined", ["skip", "nan"])
    def test_per_group_values_are_nan_there(self, name, undefined):
        metric = get_metric(name)
        found = metric(Y, SCORE, GROUPS, undefined=undefined, per_group=True)
        np.testing.assert_allclose(found, [value_in_a(metric), np.nan])

    @pytest.mark.parametrize(("undefined", "fill"), [("zero", 0.0), ("one", 1.0)])
    def test_per_group_values_are_filled_on_request(self, name, undefined, fill):
        found = get_metric(name)(Y, SCORE, GROUPS, undefined=undefined, per_group=True)
        assert found[1] == fill

    def test_skip_raises_when_no_group_is_left(self, name):
        with pytest.raises(UndefinedMetricError, match=r"each of the 2 groups.*undefined='nan'"):
            get_metric(name)([0, 0, 0], [1, 2, 3], [7, 7, 8])

    def test_per_group_with_no_group_defined_is_all_nan(self, name):
        assert np.isnan(get_metric(name)([0, 0], [1, 2], [7, 8], per_group=True)).all()

    def test_undefined_data_in_one_group_are_called_the_data(self, name):
        with pytest.raises(UndefinedMetricError, match="undefined for the data"):
            get_metric(name)([0, 0], [1, 2])


def test_precision_counts_groups_without_relevant_items_as_zero():
    found = precision(Y, SCORE, GROUPS, k=2, undefined="raise", per_group=True)
    np.testing.assert_allclose(found, [0.5, 0.0])


@pytest.mark.parametrize("name", ["disagreement", "concordance", "tau", "auc"])
def test_a_group_of_one_item_has_no_pair(name):
    found = get_metric(name)([1, 1, 0], [1, 2, 3], [0, 1, 1], per_group=True)
    assert np.isnan(found).tolist() == [True, False]


@pytest.mark.parametrize("name", ["ndcg", "map", "mrr", "p@1"])
def test_a_group_of_one_relevant_item_is_perfect(name):
    assert get_metric(name)([2], [0.1]) == 1.0


@pytest.mark.parametrize("undefined", ["skip", "raise"])
def test_pooled_pairs_without_any_pair_are_undefined(undefined):
    with pytest.raises(UndefinedMetricError):
        disagreement_error([1, 1], [1, 2], average="pairs", undefined=undefined)


def test_pooled_pairs_without_any_pair_take_the_stand_in():
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
        (lambda: ndcg([1, 0, 1], [1, 2]), "y_true has 3 rows but y_score has 2"),
        (lambda: ndcg([1, 0], [1, 2], [0, 0, 1]), "groups has 3 entries but there are 2 rows"),
        (lambda: ndcg([[1], [0]], [1, 2]), r"shape \(2, 1\) but y_score has shape \(2,\).*ravel"),
        (lambda: ndcg([[1, 2], [0, 1]], [[1], [2]]), r"as many score columns as y_true"),
        (lambda: ndcg([1, np.nan], [1, 2]), "y_true is nan in row 1; .*leave out the rows"),
        (lambda: ndcg([1, 0], [1, np.inf]), "y_score is inf in row 1"),
        (lambda: ndcg([[1, 0], [0, np.nan]], np.eye(2)), "y_true is nan in row 1"),
        (lambda: ndcg([], []), r"y_true is empty \(shape \(0,\)\)"),
        (lambda: ndcg(1, 2), r"y_true has shape \(\); pass shape \(n_items,\)"),
        (lambda: ndcg(["a", "b"], [1, 2]), "y_true has dtype <U1; pass real numbers"),
        (lambda: ndcg([1, {}], [1, 2]), "y_true has entries that are not numbers"),
        (lambda: ndcg([1, 0], [1j, 2]), "y_score has dtype complex128"),
        (lambda: ndcg([1, -1], [1, 2]), "0 or larger, y_true has -1.*kendall_tau or disagreement"),
        (lambda: ndcg([1, 99], [1, 2]), r"too large for y = 99 \(at most 50\); pass gain='linear'"),
        (lambda: expected_reciprocal_rank([-1], [1]), "0 or larger, y_true has -1"),
        (lambda: expected_reciprocal_rank([99], [1]), r"use ndcg\(..., gain='linear'\)"),
        (lambda: expected_reciprocal_rank([3], [1], max_grade=2), "y_true has a grade of 3"),
        (
            lambda: expected_reciprocal_rank([1], [1], tied_scores="average"),
            "no closed form. Use 'pessimistic'",
        ),
        (
            lambda: ndcg([1], [1], k=0),
            "k=0 is not a cut-off; pass a whole number of at least",
        ),
        (lambda: ndcg([1], [1], k=-3), "k=-3 is not a cut-off"),
        (lambda: ndcg([1], [1], k=2.0), "k=2.0 is not a cut-off"),
        (lambda: ndcg([1], [1], k=True), "k=True is not a cut-off"),
        (lambda: precision([1], [1], k=None), "k=None is not a cut-off"),
        (lambda: average_precision([1], [1], k=0), "k=0 is not a cut-off"),
        (lambda: reciprocal_rank([1], [1], k=0), "k=0 is not a cut-off"),
        (lambda: expected_reciprocal_rank([1], [1], k=0), "k=0 is not a cut-off"),
        (lambda: ndcg([1], [1], gain="lin"), "gain='lin' is not known; did you mean 'linear'"),
        (
            lambda: ndcg([1], [1], tied_scores="half"),
            "tied_scores='half' is not .*'average'",
        ),
        (lambda: average_precision([1], [1], normalizer="all"), "normalizer='all' is not known"),
        (lambda: kendall_tau([1], [1], variant="c"), "variant='c' is not known; .*'b', 'a'"),
        (lambda: disagreement_error([1], [1], tied_scores="skip"), "use 'half', 'wrong'"),
        (lambda: disagreement_error([1], [1], average="micro"), "use 'groups', 'pairs'"),
        (lambda: ndcg([1], [1], undefined=0), "undefined=0 is not known; use 'skip', 'zero'"),
        (lambda: evaluate([1], [1], undefined="drop"), "undefined='drop' is not known"),
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
    ],
)
def test_refusals_say_what_came_and_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_groups_next_to_a_structured_target_are_refused():
    target = np.zeros(2, dtype=[("score", float), ("group", int)])
    with pytest.raises(ValueError, match="carries its groups"):
        ndcg(target, [1, 2], [0, 1])


def test_a_structured_target_with_other_fields_is_refused():
    target = np.zeros(2, dtype=[("relevance", float), ("query", int)])
    with pytest.raises(ValueError, match="fields relevance, query; expected 'score' and 'group'"):
        ndcg(target, [1, 2])


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("ndcg", "ndcg"),
        ("nDCG@10", "ndcg@10"),
        (" MAP@5 ", "map@5"),
        ("precision@5", "p@5"),
        ("P@5", "p@5"),
        ("mrr@10", "mrr@10"),
        ("err", "err"),
        ("kendall-tau", "tau"),
        ("disagreement_error", "disagreement"),
        ("ndcg( gain = linear )@3", "ndcg(gain=linear)@3"),
        ("map(tied_scores=order, relevant=2)", "map(relevant=2,tied_scores=order)"),
        ("map(relevant=0.5)", "map(relevant=0.5)"),
    ],
)
def test_a_metric_prints_as_its_name(typed, name):
    assert str(get_metric(typed)) == repr(get_metric(typed)) == name


@pytest.mark.parametrize("name", [*EVERY, "ndcg(gain=linear)@3", "map(relevant=0.5)@7"])
def test_the_printed_name_gives_the_same_metric_back(name):
    metric = get_metric(name)
    assert get_metric(str(metric)) == metric
    assert get_metric(metric) is metric


def test_metrics_can_be_pickled_and_hashed():
    metric = get_metric("ndcg(gain=linear)@3")
    assert {pickle.loads(pickle.dumps(metric)): 1}[metric] == 1


def test_only_the_disagreement_is_better_when_smaller():
    cut = {"p": "@5"}
    smaller = [n for n in metric_names() if not get_metric(n + cut.get(n, "")).greater_is_better]
    assert smaller == ["disagreement"]


def test_options_in_the_name_reach_the_metric():
    y, score = [3, 1, 2], [1, 3, 2]
    assert get_metric("ndcg(gain=linear)@2")(y, score) == ndcg(y, score, k=2, gain="linear")


def test_options_of_the_call_win_over_those_of_the_name():
    y, score = [3, 1, 2], [1, 3, 2]
    assert get_metric("ndcg@2")(y, score, k=1, gain="linear") == ndcg(y, score, k=1, gain="linear")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", "'ndgc@10' is not known; did you mean 'ndcg'"),
        ("accuracy", "known are ndcg, map, p, mrr, err, auc, disagreement, concordance, tau"),
        ("", "'' is not known"),
        ("ndcg@10@5", "is not known"),
        ("p", "needs a cut-off, such as p@10"),
        ("tau@5", "kendall_tau has no cut-off; leave out @5"),
        ("ndcg@", "cut-off after @ must be a whole number"),
        ("ndcg@ten", "cut-off after @ must be a whole number"),
        ("ndcg@0", "k=0 is not a cut-off"),
        ("ndcg(gian=linear)", "'gian=linear' is not an option; did you mean 'gain'"),
        ("ndcg(linear)", "'linear' is not an option; .*gain=..., tied_scores=..."),
        (10, "given by name, such as 'ndcg@10', got 10"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(name, message):
    with pytest.raises(ValueError, match=message):
        get_metric(name)


def test_evaluate_agrees_with_the_single_metrics():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 200), rng.integers(0, 30, 200)
    score = rng.integers(0, 9, 200)
    result = evaluate(y, score, groups, EVERY)
    for name in EVERY:
        single = get_metric(name)(y, score, groups, per_group=True)
        np.testing.assert_array_equal(result.per_group[name], single)
        assert result[name] == get_metric(name)(y, score, groups)


def test_evaluate_pools_pairs_when_the_name_says_so():
    y, score, groups = [0, 1, 0, 1, 1], [1, 2, 2, 1, 1], [0, 0, 1, 1, 1]
    result = evaluate(y, score, groups, "disagreement(average=pairs)")
    assert [row.mean for row in result] == [pytest.approx(2 / 3)]


def test_evaluate_counts_the_groups_that_have_no_value():
    result = evaluate(Y, SCORE, GROUPS, ["ndcg@3", "p@2"])
    assert [(row.name, row.n_groups, row.n_undefined) for row in result] == [
        ("ndcg@3", 2, 1),
        ("p@2", 2, 0),
    ]


def test_evaluate_counts_undefined_groups_also_when_they_get_a_value():
    (row,) = evaluate(Y, SCORE, GROUPS, ["ndcg"], undefined="one")
    assert (row.n_undefined, row.mean) == (1, (1 + ndcg(Y, SCORE, GROUPS)) / 2)


def test_evaluate_reports_nan_where_no_group_has_a_value():
    result = evaluate([0, 0], [1, 2], None, ["ndcg", "p@1"])
    assert np.isnan(result["ndcg"])
    assert result["p@1"] == 0.0


def test_evaluate_raises_on_request():
    with pytest.raises(UndefinedMetricError, match="group 'b'"):
        evaluate(Y, SCORE, GROUPS, ["ndcg"], undefined="raise")


def test_evaluate_knows_the_labels_of_its_groups():
    assert evaluate(Y, SCORE, GROUPS).groups.tolist() == ["a", "b"]


def test_an_evaluation_is_found_under_any_spelling():
    result = evaluate(Y, SCORE, GROUPS, ["precision@2", "P@2"])
    assert len(result) == len(result.per_group) == 1
    assert result["P@2"] == result[get_metric("p@2")] == result.to_dict()["p@2"]
    np.testing.assert_array_equal(result.per_group["Precision@2"], result.per_group["p@2"])


@pytest.mark.parametrize("look_up", [lambda r: r["map"], lambda r: r.per_group["map"]])
def test_looking_up_what_was_not_evaluated_names_what_was(look_up):
    with pytest.raises(KeyError, match="map was not evaluated, only ndcg, tau"):
        look_up(evaluate(Y, SCORE, GROUPS, ["ndcg", "tau"]))


def test_an_evaluation_prints_as_an_aligned_table():
    result = evaluate(Y, SCORE, GROUPS, ["ndcg@10", "map(tied_scores=order)@3", "tau"])
    lines = str(result).splitlines()
    assert lines[0].split() == ["metric", "mean", "groups", "undefined"]
    for heading, cells in (("mean", [f"{row.mean:.4f}" for row in result]), ("groups", ["2"] * 3)):
        column = lines[0].index(heading)
        assert [line[column:].split()[0] for line in lines[1:]] == cells


def test_the_html_table_has_a_row_for_each_metric():
    text = evaluate(Y, SCORE, GROUPS, ["ndcg", "tau"])._repr_html_()
    assert text.count("<tr>") == 3
    assert "<td>tau</td>" in text


def test_to_frame_has_a_row_for_each_metric():
    frame = evaluate(Y, SCORE, GROUPS, ["ndcg", "p@2"]).to_frame()
    assert frame.index.tolist() == ["ndcg", "p@2"]
    assert frame["undefined"].tolist() == [1, 0]


def test_to_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas, or use to_dict"):
        evaluate(Y, SCORE, GROUPS).to_frame()


def test_public_names_exist_and_are_documented_with_an_example():
    for name in rankwise.metrics.__all__:
        thing = getattr(rankwise.metrics, name)
        assert thing.__doc__
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, name


def test_inputs_are_left_as_they_were():
    y, score, weights = np.array([1.0, 0, 2]), np.array([1.0, 1, 0]), np.array([1.0, 2, 3])
    before = [column.copy() for column in (y, score, weights)]
    evaluate(y, score)
    disagreement_error(y, score, sample_weight=weights)
    for column, old in zip((y, score, weights), before, strict=True):
        np.testing.assert_array_equal(column, old)
