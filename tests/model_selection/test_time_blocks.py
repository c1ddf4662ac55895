"""Later groups are held out of models of earlier ones; the truth is training again."""

import numpy as np
import pandas as pd
import pytest

from rankwise import AutoRanker, CoRankRLSCV, RankRLS, RankRLSCV, RankSVM
from rankwise.groups import encode_groups
from rankwise.metrics import disagreement_error
from rankwise.model_selection import cross_validate_candidates
from rankwise.model_selection.time_blocks import time_series_blocks

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha")
RNG = np.random.default_rng(0)
GROUPS = RNG.permutation(np.repeat(np.arange(14), 5))
X = RNG.standard_normal((70, 3))
Y = X @ [1.0, -1.0, 0.5] + RNG.standard_normal(70)
TIME = (GROUPS * 7) % 15  # neither in the order of the rows nor of the labels
ALPHAS = [1e-3, 10.0]


def trained_before(model, X, y, groups, time, weight=None):
    """Mean error of each later group by a model of all rows of earlier blocks."""
    errors = []
    blocks = time_series_blocks(time, encode_groups(groups, len(y)))
    for k in range(1, len(blocks)):
        old, new = np.concatenate(blocks[:k]), blocks[k]
        assert time[old].max() < time[new].min()
        weights = {} if weight is None else {"sample_weight": weight[old]}
        model.fit(X[old], y[old], groups=groups[old], **weights)
        scores = model.predict(X[new])
        part = None if weight is None else weight[new]
        errors += list(
            disagreement_error(y[new], scores, groups[new], per_group=True, sample_weight=part)
        )
    return np.mean(errors)


@pytest.mark.parametrize("weight", [None, RNG.uniform(0.5, 2, 70)], ids=["plain", "weights"])
def test_a_search_over_time_judges_later_groups_by_models_of_earlier_ones(weight):
    search = RankRLSCV(ALPHAS).fit(X, Y, GROUPS, weight, time=TIME)
    assert search.cv_results_["cv"] == "later groups"
    for k, alpha in enumerate(ALPHAS):
        truth = trained_before(RankRLS(alpha), X, Y, GROUPS, TIME, weight)
        assert search.cv_results_["mean_score"][0, k] == pytest.approx(truth)
    whole = RankRLS(search.alpha_).fit(X, Y, GROUPS, weight)
    np.testing.assert_allclose(search.coef_, whole.coef_, rtol=1e-9)


def test_dates_numbers_and_frames_say_the_same():
    dates = np.datetime64("2020-01-01") + TIME.astype("timedelta64[D]")
    plain = RankRLSCV(ALPHAS).fit(X, Y, GROUPS, time=TIME).cv_results_["mean_score"]
    frame = pd.DataFrame(X, columns=list("abc"))
    for time in (dates, dates.astype(str), pd.Series(dates)):
        again = RankRLSCV(ALPHAS).fit(frame, Y, GROUPS, time=time).cv_results_["mean_score"]
        np.testing.assert_allclose(again, plain)


def test_curves_of_learners_that_train_again_and_of_unscored_rows_take_time():
    curves = cross_validate_candidates(
        RankSVM(tol=1e-6), X, Y, GROUPS, time=TIME, candidates={"alpha": [0.1]}
    )
    truth = trained_before(RankSVM(0.1, tol=1e-6), X, Y, GROUPS, TIME)
    assert curves.by_group["disagreement"].mean() == pytest.approx(truth, abs=1e-6)
    first = time_series_blocks(TIME, encode_groups(GROUPS, 70))[0]
    assert np.isnan(curves.predictions[first]).all()
    unscored = np.where(RNG.random(70) < 0.3, np.nan, Y)
    search = CoRankRLSCV([0.1], nus=[0.1], kernel="rbf", n_basis=8, random_state=0)
    search.fit(X, unscored, GROUPS, time=TIME)
    assert search.cv_results_["cv"] == "later groups"


def test_blocks_are_whole_groups_of_about_one_size_in_the_order_of_time():
    blocks = time_series_blocks(TIME, encode_groups(GROUPS, 70))
    assert len(blocks) == 6
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(70))
    assert all(10 <= len(block) <= 15 for block in blocks)
    items = time_series_blocks(np.arange(12)[::-1], encode_groups(None, 12))
    assert [block.tolist() for block in items[:2]] == [[10, 11], [8, 9]]
    few = time_series_blocks([0, 1, 1, 1], encode_groups([0, 1, 2, 3], 4))
    assert [block.tolist() for block in few] == [[0], [1, 2, 3]]


def test_a_group_is_as_late_as_its_last_row():
    blocks = time_series_blocks([0, 9, 5, 5], encode_groups(["a", "a", "b", "b"], 4))
    assert [block.tolist() for block in blocks] == [[2, 3], [0, 1]]


def test_one_time_a_second_cv_and_wrong_lengths_are_refused():
    with pytest.raises(ValueError, match="same time"):
        RankRLSCV().fit(X, Y, GROUPS, time=np.zeros(70))
    with pytest.raises(ValueError, match="cv=3"):
        RankRLSCV(cv=3).fit(X, Y, GROUPS, time=TIME)
    with pytest.raises(ValueError, match="70 rows"):
        RankRLSCV().fit(X, Y, GROUPS, time=TIME[:5])


def test_the_estimate_of_auto_ranker_is_that_of_the_latest_groups():
    model = AutoRanker([RankRLS(1.0)], combine="best", scoring="disagreement")
    model.fit(X, Y, GROUPS, time=TIME)
    *old, new = time_series_blocks(TIME, encode_groups(GROUPS, 70))
    old = np.concatenate(old)
    scores = RankRLS(1.0).fit(X[old], Y[old], GROUPS[old]).predict(X[new])
    truth = disagreement_error(Y[new], scores, GROUPS[new])
    assert model.estimate_["score"] == pytest.approx(truth)
    assert model.estimate_["low"] < truth < model.estimate_["high"]
