"""The report bounds metrics over the grades of items without a true score."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankwise.groups import encode_groups
from rankwise.metrics import get_metric
from rankwise.pages.report.report_data import AllRows
from rankwise.pages.report.unjudged_items import unjudged_bounds_of_items
from rankwise.report import report


def make_rows(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat([3, 5, 8], 6)
    y = rng.integers(0, 3, 18).astype(float)
    y[rng.permutation(18)[:4]] = np.nan
    return rng.normal(size=18), y, groups


@pytest.mark.parametrize(
    "name", ["ndcg@3", "ndcg(gain=linear)@2", "p@2", "mrr", "map", "rbp", "success@2"]
)
def test_bounds_equal_the_metric_over_all_grades(name):
    metric = get_metric(name)
    for seed in range(5):
        scores, y, groups = make_rows(seed)
        highest = int(np.nanmax(y))
        bounds = unjudged_bounds_of_items(metric, AllRows(scores, y, encode_groups(groups, 18)))
        unknown = np.flatnonzero(np.isnan(y))
        values = []
        for grades in itertools.product(range(highest + 1), repeat=len(unknown)):
            complete = y.copy()
            complete[unknown] = grades
            values.append(metric(complete, scores, groups, undefined="zero"))
        assert bounds.low == pytest.approx(min(values), abs=1e-12)
        assert bounds.high == pytest.approx(max(values), abs=1e-12)


@pytest.mark.parametrize("name", ["tau", "err", "ndcg(tied_scores=order)@3"])
def test_other_metrics_have_no_bounds(name):
    scores, y, groups = make_rows(0)
    rows = AllRows(scores, y, encode_groups(groups, 18))
    assert unjudged_bounds_of_items(get_metric(name), rows) is None


def test_fractions_and_ties_have_no_bounds():
    scores, y, groups = make_rows(0)
    encoded = encode_groups(groups, 18)
    metric = get_metric("ndcg@3")
    assert unjudged_bounds_of_items(metric, AllRows(np.round(scores), y, encoded)) is None
    assert unjudged_bounds_of_items(metric, AllRows(scores, y / 4, encoded)) is None


def test_the_card_of_a_metric_has_the_bounds():
    scores, y, groups = make_rows(1)
    with_gaps = str(report(scores, scores[:, None], y, groups, metrics="ndcg@3"))
    assert "without a true score, if these items stay" in with_gaps
    complete = str(report(scores, scores[:, None], np.nan_to_num(y), groups, metrics="ndcg@3"))
    assert "if these items stay" not in complete


def test_the_card_names_the_items_to_judge_next():
    scores, y, groups = make_rows(1)
    rows = AllRows(scores, y, encode_groups(groups, 18))
    next_rows = [
        (int(judgment.document), groups[int(judgment.document)])
        for judgment in unjudged_bounds_of_items(get_metric("ndcg"), rows).next_judgments(3)
    ]
    assert len(next_rows) > 1
    assert all(np.isnan(y[row]) for row, _ in next_rows)
    page = str(report(scores, scores[:, None], y, groups, metrics="ndcg"))
    for row, group in next_rows:
        assert f"<bdi>row {row} (group {group})</bdi>" in page
    ids = [f"<item {k}>" for k in range(18)]
    named = str(report(scores, scores[:, None], y, groups, metrics="ndcg", ids=ids))
    assert f"<bdi>&lt;item {next_rows[0][0]}&gt; (group {next_rows[0][1]})</bdi>" in named
