"""Targets that carry their groups, and scores at the border."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import make_target
from rankwise.graphs.supervision import unpack_unweighted_target
from rankwise.validation import check_y


def test_target_keeps_scores_and_labels():
    for labels in ([1, 5, 1], ["q1", "q2", "q1"]):
        target = make_target([3.5, 1.0, 2.0], labels)
        scores, groups = unpack_unweighted_target(target, None)
        np.testing.assert_array_equal(scores, [3.5, 1.0, 2.0])
        np.testing.assert_array_equal(groups, labels)


def test_labels_that_do_not_fit_an_array_become_codes():
    assert make_target([1.0, 2.0, 3.0], [(1, 2), "a", (1, 2)])["group"].tolist() == [0, 1, 0]


def test_target_with_several_outputs_keeps_its_shape():
    assert make_target(np.ones((4, 2)), [0, 0, 1, 1])["score"].shape == (4, 2)


def test_nan_is_an_unscored_item_where_that_is_allowed():
    target = make_target([3.0, np.nan], ["a", "b"])
    np.testing.assert_array_equal(target["score"], [3.0, np.nan])
    assert np.isnan(check_y([np.nan, 1.0], allow_nan=True)).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"contains infinity.*row is 1"):
        check_y([np.nan, np.inf], allow_nan=True)


def test_integers_and_booleans_are_scores():
    assert check_y([True, False]).tolist() == [1.0, 0.0]
    assert check_y(np.array([1, 2], dtype=np.uint8)).dtype == np.float64


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "requires y"),
        ([], "at least one item"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (3.0, r"shape \(\)"),
        (["high", "low"], "map the labels to numbers"),
        ([1.0, np.nan], "contains NaN.*row is 1"),
        ([-np.inf, 1.0], "contains infinity.*row is 0"),
    ],
)
def test_what_is_not_a_score_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        check_y(y)
