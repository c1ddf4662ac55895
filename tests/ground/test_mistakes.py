"""Common mistakes of users get a warning or an error that names the argument to change."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from rankwise import (
    RankingPursuit,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    ScoreGraph,
    make_target,
)
from rankwise.model_selection import compare

GROUPS = np.repeat([0, 1, 2, 3], 5)
pytestmark = pytest.mark.filterwarnings("ignore:the best")  # alpha at the edge of the grid


@pytest.fixture
def lists():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    return X, X @ [1.0, -1.0] + 0.1 * rng.normal(size=20)


# ---- objects and names in the place of values


class HasLaplacian:
    """Not derived from PreferenceGraph."""

    n_items = 20

    def laplacian(self, V):
        return V


@pytest.mark.parametrize("model", [RankRLS(), RankRLSCV(), RankSVM(), RankingPursuit()])
def test_an_object_with_a_laplacian_is_told_the_base_class(lists, model):
    with pytest.raises(ValueError, match=r"HasLaplacian.* PreferenceGraph"):
        model.fit(lists[0], HasLaplacian())


@pytest.mark.parametrize("model", [RankRLS(), RankRLSCV(), RankSVM(), RankingPursuit()])
def test_any_other_object_is_told_the_base_class(lists, model):
    with pytest.raises(ValueError, match=r"y is a dict.* PreferenceGraph"):
        model.fit(lists[0], {"score": 1})


def test_a_graph_of_a_graph_names_the_class_that_was_passed(lists):
    graph = ScoreGraph(lists[1])
    with pytest.raises(ValueError, match="y is a ScoreGraph"):
        ScoreGraph(graph)


@pytest.mark.parametrize("model", [RankRLS(), RankLogistic(), RankRLSCV()])
def test_the_name_of_a_column_is_not_its_values(lists, model):
    X, y = lists
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    with pytest.raises(ValueError, match=r'groups=frame\["qid"\]'):
        model.fit(frame, y, groups="qid")
    with pytest.raises(ValueError, match=r'y=frame\["grade"\]'):
        model.fit(frame, "grade", groups=GROUPS)
    fitted = model.fit(frame, y, groups=GROUPS)
    with pytest.raises(ValueError, match=r'groups=frame\["qid"\]'):
        fitted.rank(frame, groups="qid")


# ---- names of what was held out


@pytest.mark.parametrize(
    "cv, way",
    [
        (KFold(4), "folds of items"),
        (KFold(4, shuffle=True, random_state=0), "folds of items"),
        (GroupKFold(4), "folds of groups"),
        (2, "folds of groups"),
    ],
)
def test_folds_are_of_groups_only_if_no_group_is_cut(lists, cv, way):
    X, y = lists
    groups = np.roll(GROUPS, 2)  # so that KFold without shuffling cuts them, too
    model = RankRLSCV(alphas=[0.1, 1.0, 10.0], cv=cv).fit(X, y, groups)
    assert model.cv_results_["cv"] == way


def test_folds_of_splitters_that_fit_the_groups_are_of_groups(lists):
    X, y = lists
    model = RankRLSCV(alphas=[0.1, 1.0, 10.0], cv=KFold(4)).fit(X, y, GROUPS)
    assert model.cv_results_["cv"] == "folds of groups"


# ---- attributes of the package


@pytest.mark.parametrize("name", ["dask", "graphs", "judge", "losses"])
def test_subpackages_are_attributes_after_import_rankwise(name):
    code = f"import rankwise; print(rankwise.{name}.__name__, {name!r} in dir(rankwise))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [f"rankwise.{name}", "True"]


# ---- compare


@pytest.mark.parametrize(
    "constant, greater_is_better", [(0.0, True), (0.5, False), (0.5, True), (1.0, False)]
)
def test_compare_warns_of_a_ranker_with_one_value_in_all_groups(constant, greater_is_better):
    values = np.random.default_rng(0).uniform(0.3, 0.9, 40)
    with pytest.warns(UserWarning, match="'old'"):
        compare({"new": values, "old": np.full(40, constant)}, greater_is_better=greater_is_better)


@pytest.mark.parametrize(
    "constant, greater_is_better, n_groups", [(1.0, True, 40), (0.0, False, 40), (0.0, True, 5)]
)
def test_compare_does_not_warn_of_perfect_rankers_and_few_groups(
    constant, greater_is_better, n_groups
):
    values = np.random.default_rng(0).uniform(0.3, 0.9, n_groups)
    errors = {"new": values, "old": np.full(n_groups, constant)}
    assert len(compare(errors, greater_is_better=greater_is_better)) == 1


# ---- targets of make_target in scikit-learn


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_max_error"])
def test_scorers_of_scikit_learn_see_the_scores_of_a_target(lists, scoring):
    X, y = lists
    target = make_target(y, GROUPS)
    options = {"groups": GROUPS, "cv": GroupKFold(4), "scoring": scoring, "error_score": "raise"}
    values = cross_val_score(RankRLS(), X, target, **options)
    scorer = get_scorer(scoring)
    for value, (train, test) in zip(values, GroupKFold(4).split(X, y, GROUPS), strict=True):
        model = RankRLS().fit(X[train], y[train], GROUPS[train])
        assert value == pytest.approx(scorer(model, X[test], y[test]))


def test_a_target_converts_to_scores_and_slices_to_targets(lists):
    target = make_target(lists[1], GROUPS, np.arange(20.0))
    np.testing.assert_array_equal(np.asarray(target), lists[1])
    part = pickle.loads(pickle.dumps(target[5:9]))
    assert (len(part), part.shape, part["group"].tolist()) == (4, (4,), [1] * 4)
    np.testing.assert_array_equal(part["weight"], [5.0, 6.0, 7.0, 8.0])
    assert target[3] == lists[1][3]
