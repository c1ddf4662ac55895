"""Common mistakes of users get a warning or an error that names the argument to change."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from rankwise import (
    AutoRanker,
    CalibratedRanker,
    CoRankRLS,
    GroupScaler,
    RankingPursuit,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    ScoreGraph,
    TableVectorizer,
    make_target,
)
from rankwise.errors import UngroupedRowsWarning
from rankwise.model_selection import compare
from rankwise.model_selection.scorer import predict_items
from rankwise.persistence import load, save

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


@pytest.mark.parametrize("name", ["distributed", "graphs", "judge", "losses"])
def test_subpackages_are_attributes_after_import_rankwise(name):
    code = f"import rankwise; print(rankwise.{name}.__name__, {name!r} in dir(rankwise))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [f"rankwise.{name}", "True"]


# ---- compare


@pytest.mark.parametrize(
    "constant, greater_is_better",
    [(0.0, True), (0.0, None), (0.5, False), (0.5, True), (1.0, None), (1.0, False)],
)
def test_compare_warns_of_a_ranker_with_one_value_in_all_groups(constant, greater_is_better):
    values = np.random.default_rng(0).uniform(0.3, 0.9, 40)
    with pytest.warns(UserWarning, match="'old'"):
        compare({"new": values, "old": np.full(40, constant)}, greater_is_better=greater_is_better)


@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
@pytest.mark.parametrize(
    "constant, greater_is_better, n_groups", [(1.0, True, 40), (0.0, False, 40), (0.0, True, 5)]
)
def test_compare_does_not_warn_of_perfect_rankers_and_few_groups(
    constant, greater_is_better, n_groups
):
    values = np.random.default_rng(0).uniform(0.3, 0.9, n_groups)
    errors = {"new": values, "old": np.full(n_groups, constant)}
    assert len(compare(errors, greater_is_better=greater_is_better)) == 1


# ---- groups by another name, or left in X


def table(groups, **columns):
    """A data frame of pandas with two features, and further columns."""
    rng = np.random.default_rng(1)
    features = {"a": rng.normal(size=len(groups)), "b": rng.normal(size=len(groups))}
    return pd.DataFrame(features | columns), rng.normal(size=len(groups))


RANKERS = [RankRLS(), RankRLSCV(alphas=[0.1, 1.0]), RankSVM(), RankLogistic(), RankingPursuit()]
FEW = AutoRanker(members=["linear, standard, magnitude"], n_resamples=0)


@pytest.mark.parametrize("model", [*RANKERS, FEW, CoRankRLS(), CalibratedRanker(RankRLS())])
@pytest.mark.parametrize("keyword", ["qid", "group", "group_id"])
def test_keywords_of_other_libraries_are_told_groups(lists, model, keyword):
    with pytest.raises(TypeError, match="groups="):
        model.fit(*lists, **{keyword: GROUPS})
    assert list(inspect.signature(model.fit).parameters)[:3] == ["X", "y", "groups"]
    with pytest.raises(TypeError, match="no_such"):
        model.fit(*lists, no_such=1)


@pytest.mark.parametrize("keyword", ["qid", "group", "group_id"])
def test_scalers_and_chunks_are_told_groups_as_well(lists, keyword):
    for method in (RankRLS().partial_fit, GroupScaler().fit, GroupScaler().fit_transform):
        with pytest.raises(TypeError, match="groups="):
            method(*lists, **{keyword: GROUPS})


@pytest.mark.parametrize("method", [RankRLS().partial_fit, GroupScaler().fit])
def test_scalers_and_chunks_warn_of_a_column_called_as_groups(method):
    X, y = table(GROUPS, qid=GROUPS)
    with pytest.warns(UserWarning, match=re.escape('groups=X.pop("qid")')):
        method(X, y)


def test_chunks_forget_the_group_column_of_an_earlier_fit():
    X, y = table(GROUPS, hotel=GROUPS)
    model = RankRLS()
    with pytest.warns(UserWarning, match="hotel"):
        model.fit(X, y, GROUPS)
    model.partial_fit(X, y, GROUPS)
    assert model.coef_.shape == (3,)
    assert model.predict(X).shape == (20,)


@pytest.mark.parametrize("model", [RankRLS(), FEW])
@pytest.mark.parametrize("name", ["qid", "query_id", "Group", "group_id", "session_id"])
def test_a_column_called_as_groups_without_groups_is_warned_of(model, name):
    X, y = table(GROUPS, **{name: GROUPS})
    with pytest.warns(UserWarning, match=re.escape(f'groups=X.pop("{name}")')):
        model.fit(X, y)


def test_columns_warns_of_groups_unless_the_target_carries_some():
    X, y = table(GROUPS, qid=GROUPS)
    with pytest.warns(UserWarning, match=re.escape('groups=X.pop("qid")')):
        TableVectorizer().fit(X, y)
    with pytest.warns(UserWarning, match=re.escape('groups=X.pop("qid")')):
        make_pipeline(TableVectorizer(), RankRLS()).fit(X, y)
    TableVectorizer().fit(X, make_target(y, GROUPS))


@pytest.mark.parametrize(
    "columns", [{"qid": np.arange(20)}, {"qid": np.zeros(20)}, {"groups_seen": GROUPS}]
)
def test_columns_that_group_no_rows_or_have_other_names_are_not_warned_of(columns):
    X, y = table(GROUPS, **columns)
    RankRLS().fit(X, y)


@pytest.mark.parametrize("model", [*RANKERS, FEW])
def test_the_group_column_of_a_frame_is_dropped(model, tmp_path):
    labels = 100 + 7 * GROUPS
    X, y = table(labels, hotel=labels)
    features = X[["a", "b"]]
    with pytest.warns(UserWarning, match="hotel"):
        model.fit(X, y, labels)
    scores = predict_items(model, X, labels)
    plain = clone(model).fit(features, y, labels)
    np.testing.assert_array_equal(scores, predict_items(plain, features, labels))
    np.testing.assert_array_equal(scores, predict_items(model, features, labels))
    assert list(model.feature_names_in_) == ["a", "b"]
    save(model, tmp_path / "model.rw")
    loaded = load(tmp_path / "model.rw")
    np.testing.assert_array_equal(predict_items(loaded, X, labels), scores)
    model.fit(features, y, labels)  # forgets the column
    with pytest.raises(ValueError, match="hotel"):
        predict_items(model, X, labels)


SEVEN = np.repeat(np.arange(7), 3)


@pytest.mark.parametrize(
    "groups, column",
    [
        (SEVEN, SEVEN),
        (SEVEN, SEVEN + 100.0),
        (np.array(list("abcdefg"))[SEVEN], SEVEN),
        (SEVEN * 11, SEVEN * 11),
        (SEVEN, SEVEN * 15 + 1),  # numbers of queries with gaps, in the order of the labels
        (np.array(list("gcabfed"))[SEVEN], SEVEN * 15 + 1),  # in the order of the rows
    ],
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.coo_matrix, list])
def test_the_group_column_of_an_array_is_warned_of(groups, column, make):
    X = np.random.default_rng(0).normal(size=(21, 3))
    X[:, 1] = column
    with pytest.warns(UserWarning, match="column 1"):
        RankRLS().fit(make(X), np.arange(21.0), groups)


@pytest.mark.parametrize(
    "groups, column",
    [
        (np.r_[0, np.arange(20)], np.arange(21)),  # groups of one row, and a row number
        (np.arange(21) // 11, np.arange(21) // 11),  # two groups
        (SEVEN, np.array([3, 1, 4, 15, 9, 2, 6])[SEVEN]),  # a number of the query
        (SEVEN, np.array([0.3, 0.1, 0.4, 0.15, 0.9, 0.2, 0.6])[SEVEN]),
        (SEVEN, np.arange(21) % 7),  # not constant in a group
        (SEVEN, SEVEN // 2),  # equal in two groups
        (SEVEN, np.zeros(21)),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, pl.DataFrame])
def test_features_that_do_not_hold_the_groups_are_not_warned_of(groups, column, make):
    X = np.random.default_rng(0).normal(size=(21, 3))
    X[:, 1] = column
    model = RankRLS().fit(make(X), np.arange(21.0) % 4, groups)
    assert model.n_features_in_ == 3


# ---- one list


def long_list(n_distinct, n_rows=201):
    """Many rows with few distinct scores."""
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    return X, np.arange(n_rows) % n_distinct


@pytest.mark.parametrize("model", [RankRLS(), RankRLSCV(alphas=[0.1, 1.0]), RankSVM(max_iter=1000)])
def test_few_distinct_scores_in_one_long_list_are_warned_of(model):
    with pytest.warns(UngroupedRowsWarning, match="groups="):
        model.fit(*long_list(5))


def test_one_list_is_not_warned_of_if_it_is_short_or_has_many_scores_or_has_groups():
    X, y = long_list(5)
    RankRLS().fit(X[:200], y[:200])
    RankRLS().fit(*long_list(7))
    RankRLS().fit(X, y, groups=np.zeros(201))
    RankRLS().fit(X, make_target(y, np.arange(201) // 10))
    RankRLS().fit(X, np.stack([y, y], axis=1))


def test_cross_validation_that_loses_the_groups_is_warned_of():
    X, y = long_list(5, n_rows=300)
    groups = np.arange(300) // 10
    with pytest.warns(UngroupedRowsWarning, match="make_target"):
        cross_val_score(RankRLS(), X, y, groups=groups, cv=GroupKFold(5))
    cross_val_score(RankRLS(), X, make_target(y, groups), groups=groups, cv=GroupKFold(5))


def test_one_list_is_warned_of_once_per_process():
    X, y = long_list(5, n_rows=300)
    groups = np.arange(300) // 10
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        cross_val_score(RankRLS(), X, y, groups=groups, cv=GroupKFold(5))
        RankRLS().fit(X, y)
    assert [warning.category for warning in shown] == [UngroupedRowsWarning]


def test_users_can_filter_the_warning_of_one_list_by_its_category():
    X, y = long_list(5)
    warnings.simplefilter("ignore", UngroupedRowsWarning)
    RankRLS().fit(X, y)


def test_the_command_names_the_option_of_groups(tmp_path):
    X, y = long_list(4)
    path = tmp_path / "items.csv"
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "grade": y}).to_csv(path, index=False)
    arguments = ["train", str(path), "--target", "grade", "--output", str(tmp_path / "m.rw")]
    command = [sys.executable, "-m", "rankwise", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "--group" in done.stderr
    assert "groups=" not in done.stderr
    assert "make_target" not in done.stderr


@pytest.mark.parametrize("model", [*RANKERS, FEW])
def test_ranking_far_more_rows_than_a_group_without_groups_warns(lists, model, tmp_path):
    X, y = lists
    model.fit(X, y, GROUPS)
    save(model, tmp_path / "model.rw")
    for fitted in (model, load(tmp_path / "model.rw")):
        assert fitted.max_group_size_ == 5
        assert sorted(fitted.rank(X[:15])) == list(range(1, 16))
        with pytest.warns(UserWarning, match="groups="):
            assert sorted(fitted.rank(X)) == list(range(1, 21))
        assert sorted(fitted.rank(X, groups=[0] * 20)) == list(range(1, 21))
    model.fit(X[:5], y[:5])
    assert sorted(model.rank(X)) == list(range(1, 21))


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
