"""Paired comparison of rankers over groups."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
import scipy.stats

from rankwise.metrics import disagreement_error
from rankwise.model_selection import Comparison, compare


@pytest.fixture
def errors():
    rng = np.random.default_rng(0)
    hard = rng.random(30)
    return {
        "good": 0.2 * hard + 0.01 * rng.random(30),
        "same": 0.2 * hard + 0.01 * rng.random(30),
        "bad": 0.4 * hard + 0.1,
    }


def statistic_p(differences, sizes):
    """Share of all signs of the sizes whose sum is as far from zero."""
    sums = [np.dot(signs, sizes) for signs in itertools.product([-1, 1], repeat=len(sizes))]
    return np.mean(np.abs(sums) >= abs(np.dot(np.sign(differences), sizes)) - 1e-9)


def test_rows_hold_means_differences_and_counts(errors):
    result = compare(errors, greater_is_better=False)
    assert [(row.a, row.b) for row in result] == [
        ("good", "same"),
        ("good", "bad"),
        ("same", "bad"),
    ]
    row = result.rows[1]
    difference = errors["good"] - errors["bad"]
    assert row.mean_a == pytest.approx(errors["good"].mean())
    assert row.mean_b == pytest.approx(errors["bad"].mean())
    assert row.difference == pytest.approx(difference.mean())
    assert (row.wins, row.ties, row.losses) == (30, 0, 0)
    assert row.significant
    assert len(result) == 3
    assert (result.n_groups, result.n_dropped) == (30, 0)


@pytest.mark.parametrize("n", [5, 30, 150])
def test_wilcoxon_p_value_is_that_of_scipy(n):
    a, b = np.random.default_rng(n).random((2, n))
    row = compare({"a": a, "b": b}, test="wilcoxon", greater_is_better=False).rows[0]
    assert row.p == pytest.approx(scipy.stats.wilcoxon(a, b).pvalue)
    assert np.isnan([row.low, row.high]).all()


@pytest.mark.filterwarnings("ignore:the value of 'b' is 0 in each")
@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
@pytest.mark.parametrize("test", ["wilcoxon", "randomization"])
@pytest.mark.parametrize(
    "differences",
    [[0.1, -0.2, 0.3, 0.4, 0.5], [0.1, 0.1, -0.1, 0.2, 0.0, 0.0, 0.4], [0.5, 0.0], [0.3], [0, 0]],
    ids=str,
)
def test_p_value_of_few_groups_tries_all_signs(differences, test):
    d = np.array(differences)
    sizes = scipy.stats.rankdata(np.abs(d)) * (d != 0) if test == "wilcoxon" else np.abs(d)
    row = compare({"a": d, "b": np.zeros(len(d))}, test=test, greater_is_better=False).rows[0]
    assert row.p == pytest.approx(statistic_p(d, sizes))


@pytest.mark.filterwarnings("ignore:the value of 'b' is 0 in each")
def test_randomization_is_the_test_of_the_mean_where_wilcoxon_is_of_ranks():
    values = {"a": [*[0.01] * 11, -3.0], "b": np.zeros(12)}  # one group decides the mean
    assert compare(values, test="wilcoxon", greater_is_better=False).rows[0].significant
    with pytest.warns(UserWarning, match="a few groups decide"):
        assert (
            not compare(values, test="randomization", greater_is_better=False).rows[0].significant
        )
    with pytest.raises(ValueError, match=r"test='wilcoxn' is unknown; did you mean 'wilcoxon'"):
        compare(values, test="wilcoxn", greater_is_better=False)


def test_formats_have_the_numbers_of_the_table(errors):
    result = compare(
        {"a_1": errors["good"], "b": errors["bad"]}, test="randomization", greater_is_better=False
    )
    row = result.rows[0]
    for name in ("text", "markdown", "latex", "html"):
        assert f"{row.mean_a:.4f}" in result.to_text(name)
        assert "randomization" in result.to_text(name)
    assert r"a\_1 & b &" in result.to_text("latex")
    assert "| a\\_1 | b |" in result.to_text("markdown")
    (numbers,) = result.to_dict()["comparisons"]
    assert numbers == row._asdict()
    with pytest.raises(ValueError, match="format='tex' is unknown; did you mean 'text'"):
        result.to_text("tex")


def test_interval_and_p_value_are_those_of_the_t_test(errors):
    row = compare(errors, confidence=0.99, greater_is_better=False).rows[0]
    test = scipy.stats.ttest_rel(errors["good"], errors["same"])
    assert (row.low, row.high) == pytest.approx(tuple(test.confidence_interval(0.99)))
    assert row.p == pytest.approx(test.pvalue, rel=1e-12)


@pytest.mark.filterwarnings("ignore:the value of 'b' is 0 in each")
@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
@pytest.mark.parametrize("seed", range(4))
def test_the_groups_that_hold_a_difference_are_the_fewest_of_all_sets(seed):
    difference = np.random.default_rng(seed).normal(0.3, 1, size=8)
    (row,) = compare({"a": difference, "b": np.zeros(8)}, greater_is_better=False)
    sizes = []
    for kept in itertools.product([True, False], repeat=8):
        turned = difference[list(kept)].sum() * difference.mean() <= 1e-12
        sizes += [8 - sum(kept)] if turned else []
    assert row.groups_to_flip == min(sizes)
    assert (
        compare({"a": np.ones(3), "b": np.ones(3)}, greater_is_better=False).rows[0].groups_to_flip
        == 0
    )


def test_correction_is_over_all_comparisons_and_a_baseline_has_fewer(errors):
    one = compare({name: errors[name] for name in ("good", "bad")}, greater_is_better=False).rows[0]
    three = {(row.a, row.b): row for row in compare(errors, greater_is_better=False)}["good", "bad"]
    assert one.p_adjusted == one.p == three.p
    assert three.p_adjusted > three.p
    result = compare(errors, baseline="same", greater_is_better=False)
    assert [(row.a, row.b) for row in result] == [("good", "same"), ("bad", "same")]


def test_equal_rankers_have_p_one(errors):
    row = compare({"a": errors["bad"], "b": errors["bad"].copy()}, greater_is_better=False).rows[0]
    assert (row.p, row.p_adjusted, row.ties, row.significant) == (1.0, 1.0, 30, False)
    assert (row.difference, row.low, row.high) == (0.0, 0.0, 0.0)


@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
def test_rounding_errors_are_ties():
    a = np.array([0.1 + 0.2, 0.5, 0.7, 0.9])
    row = compare({"a": a, "b": [0.3, 0.5, 0.7, 0.8]}, greater_is_better=False).rows[0]
    assert (row.wins, row.ties, row.losses) == (0, 3, 1)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_scale_of_the_values_does_not_matter(errors, scale):
    p = [
        row.p
        for row in compare({name: scale * v for name, v in errors.items()}, greater_is_better=False)
    ]
    assert p == pytest.approx([row.p for row in compare(errors, greater_is_better=False)])


def test_undefined_groups_are_dropped_for_all_and_counted(errors):
    holed = {name: values.copy() for name, values in errors.items()}
    holed["good"][3] = np.nan
    holed["bad"][[3, 7]] = np.nan
    result = compare(holed, greater_is_better=False)
    kept = compare(
        {name: np.delete(values, [3, 7]) for name, values in errors.items()},
        greater_is_better=False,
    )
    assert result.rows == kept.rows
    assert (result.n_groups, result.n_dropped) == (28, 2)
    assert "28 groups, 2 dropped as undefined" in str(result)


def test_without_a_direction_smaller_values_win_and_the_table_says_so(errors):
    result = compare(errors)
    expected = compare(errors, greater_is_better=False)
    assert result.rows == expected.rows
    assert "smaller values win" in str(result)
    assert "smaller values win" not in str(expected)


@pytest.mark.parametrize(
    "metric, greater_is_better", [("ndcg@10", True), (disagreement_error, False), ("mse", False)]
)
def test_the_metric_of_values_says_which_are_better(errors, metric, greater_is_better):
    expected = compare(errors, greater_is_better=greater_is_better)
    assert compare(errors, metric=metric).rows == expected.rows
    assert compare(errors, metric=metric, greater_is_better=greater_is_better).rows == expected.rows
    with pytest.raises(ValueError, match="contradicts the metric"):
        compare(errors, metric=metric, greater_is_better=not greater_is_better)


def test_runs_are_compared_by_scores():
    runs = {"a": {"q": {"d": 1.0}}, "b": {"q": {"d": 2.0}}}
    with pytest.raises(ValueError, match="contradicts the metric 'nDCG@10'"):
        compare(runs, qrels={"q": {"d": 1}}, greater_is_better=False)


def test_greater_is_better_swaps_wins_and_losses(errors):
    error, score = compare(errors, greater_is_better=False), compare(errors, greater_is_better=True)
    for low, high in zip(error, score, strict=True):
        assert (low.wins, low.losses) == (high.losses, high.wins)
        assert low.p == high.p


def test_note_says_what_wins_and_losses_count(errors):
    assert "value of a is smaller" in repr(compare(errors, greater_is_better=False))
    assert "a won, tied, lost" in repr(compare(errors, greater_is_better=True))


@pytest.mark.filterwarnings("ignore:fewer than 10 groups")
def test_note_on_missing_intervals_has_the_level_of_the_test():
    values = {"a": [0.1, 0.3, 0.3, 0.4, 0.5, 0.6, 0.7], "b": [0.0, 0.1, 0.0, 0.1, 0.0, 0.1, 0.0]}
    result = compare(values, test="randomization", confidence=0.99, greater_is_better=False)
    assert result.rows[0].p == 2 / 2**7
    assert "no p-value is at most 0.01" in repr(result)
    assert "no interval" not in repr(compare(values, test="randomization", greater_is_better=False))


def test_one_group_has_no_interval():
    row = compare({"a": [0.1], "b": [0.2]}, greater_is_better=False).rows[0]
    assert np.isnan([row.low, row.high]).all()
    assert row.p == 1.0


def test_table_html_and_frame_have_one_row_a_comparison(errors):
    lines = repr(compare(errors, greater_is_better=False)).splitlines()
    assert len(lines) == 7
    assert lines[0].endswith("significant (Holm)")
    assert lines[2].endswith("yes")
    page = compare(
        {"a<b>": errors["good"], "b": errors["bad"]}, greater_is_better=False
    )._repr_html_()
    assert "a&lt;b&gt;" in page
    frame = compare(errors, greater_is_better=False).to_frame()
    assert list(frame.columns[:3]) == ["a", "b", "mean_a"]
    assert frame.shape == (3, 16)


def test_frame_without_pandas_says_what_to_do(errors, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = compare(errors, greater_is_better=False)
    assert isinstance(result, Comparison)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()


@pytest.mark.parametrize(
    "values, options, message",
    [
        ({"a": [1, 2]}, {}, "at least two rankers"),
        ([[1, 2], [2, 3]], {}, "mapping"),
        ({"a": [1, 2], "b": [1]}, {}, r"different numbers of groups: \{'a': 2, 'b': 1\}"),
        ({"a": [1, np.nan], "b": [np.nan, 1]}, {}, "no group can be compared"),
        ({"a": [], "b": []}, {}, "no group can be compared"),
        ({"a": [[[1, 2]]], "b": [[1, 2]]}, {}, "n_seeds, n_groups"),
        ({"a": [1, np.inf], "b": [1, 2]}, {}, "'a' contain infinity"),
        ({"a": {"q": {"d": 1.0}}, "b": {"q": {"d": 2.0}}}, {}, "qrels="),
        ({"a": 1.0, "b": 2.0}, {}, "n_groups"),
        ({"a": [1], "b": [2]}, {"confidence": 95}, "between 0 and 1"),
        ({"a": [1], "b": [2]}, {"baseline": "c"}, "not among the rankers a, b"),
    ],
    ids=str,
)
def test_bad_input(values, options, message):
    with pytest.raises(ValueError, match=message):
        compare(values, **options, greater_is_better=False)
