"""Contributions add up to the scores inside groups; shuffling a column inside groups costs what
it is worth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance as permute_all
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from rankwise import (
    CoRankRLS,
    GroupScaler,
    PairGraph,
    RankingPursuit,
    RankRLS,
    RankRLSCV,
    RankSVM,
    ScoreGraph,
    View,
    make_target,
)
from rankwise.inspection import contributions, permutation_importance
from rankwise.metrics import get_metric

rng = np.random.default_rng(3)
X = rng.normal(loc=[0.0, 1.0, -2.0, 5.0], size=(60, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=60)
GROUPS = rng.permutation(np.repeat(["a", "b", "c", "d", "e", "f"], [4, 16, 10, 10, 19, 1]))
NAMES = ["age", "bm25", "size", "x"]
FRAME = pd.DataFrame(X, columns=NAMES)
MIXED = pd.DataFrame(
    {
        "price": np.where(np.arange(60) % 7 == 0, np.nan, X[:, 0]),
        "color": rng.choice(["red", "green", "blue"], 60),
        "age": X[:, 1],
        "town": rng.choice(["A", "B", "C", "D", "E", "F"], 60),
    }
)


def centered(values, groups):
    out = np.array(values, dtype=float)
    for group in set(groups):
        out[groups == group] -= out[groups == group].mean(axis=0)
    return out


def add_up(found, model, X, groups=GROUPS):
    expected = centered(model.predict(X), groups)
    scale = np.abs(found.values).sum(axis=1).max()
    np.testing.assert_allclose(found.values.sum(axis=1), expected, atol=1e-12 * scale)
    np.testing.assert_allclose(found.scores, expected, atol=1e-11 * scale)
    assert found.values.shape == (len(expected), len(found.names))


VIEWS = [View([0, 1]), View([1, 2, 3])]
PARTLY = np.where(np.arange(60) % 3 == 0, np.nan, y)
LINEAR = {
    "RankRLS": RankRLS().fit(X, y, GROUPS),
    "RankRLSCV": RankRLSCV().fit(X, y, GROUPS),
    "RankSVM": RankSVM().fit(X, y, GROUPS),
    "views": CoRankRLS(views=VIEWS).fit(X, PARTLY, GROUPS),
    "features": RankingPursuit(2, kernel="linear", dictionary="features", beta=0.5).fit(X, y),
    "items": RankingPursuit(3, kernel="linear", beta=0.5).fit(X, y),
    "Ridge": Ridge().fit(X, y),
    "scaled": make_pipeline(StandardScaler(), RankRLS()).fit(X, y),
    "scaled twice": make_pipeline(RobustScaler(), "passthrough", MinMaxScaler(), RankSVM()).fit(
        X, y
    ),
    "largest": make_pipeline(MaxAbsScaler(), RankRLS()).fit(X, y),
    "grid": GridSearchCV(
        make_pipeline(StandardScaler(), RankRLS()), {"rankrls__alpha": [1, 2]}
    ).fit(X, y),
}


@pytest.mark.parametrize("name", LINEAR)
def test_contributions_add_up_to_the_score_less_the_mean_of_the_group(name):
    found = contributions(LINEAR[name], X, GROUPS)
    add_up(found, LINEAR[name], X)
    assert found.names == ["x0", "x1", "x2", "x3"]
    one_list = contributions(LINEAR[name], X)
    add_up(one_list, LINEAR[name], X, np.zeros(60))


@settings(max_examples=40, deadline=None)
@given(
    exponent=st.integers(-12, 12), offset=st.sampled_from([0.0, 1e3, 1e6]), seed=st.integers(0, 99)
)
def test_each_column_adds_its_weight_times_its_distance_from_the_mean(exponent, offset, seed):
    rng = np.random.default_rng(seed)
    scale = 10.0**exponent
    A = (rng.normal(size=(15, 3)) + offset) * scale
    groups = rng.integers(3, size=15)
    model = RankRLS().fit(A, rng.normal(size=15), groups)
    found = contributions(model, A, groups).values
    truth = np.array(
        [
            [
                w * (x - A[groups == g, j].mean())
                for j, (w, x) in enumerate(zip(model.coef_, row, strict=True))
            ]
            for row, g in zip(A, groups, strict=True)
        ]
    )
    np.testing.assert_allclose(found, truth, atol=1e-9 * max(np.abs(truth).max(), 1e-300))


@pytest.mark.parametrize(
    "convert", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "matrix", "array"]
)
def test_spread_and_share_are_those_of_explicitly_centered_features(convert):
    model = LINEAR["RankRLS"]
    found = contributions(model, convert(X), GROUPS)
    added = centered(X, GROUPS) * model.coef_
    np.testing.assert_allclose(found.values, added, atol=1e-12)
    np.testing.assert_allclose(found.spread, added.std(axis=0), atol=1e-9)
    score = added.sum(axis=1)
    np.testing.assert_allclose(found.share, added.T @ score / (score @ score), atol=1e-9)
    assert found.share.sum() == pytest.approx(1.0)


def table_model(ranker=None):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["price", "age"]),
        (OneHotEncoder(drop="first"), ["color"]),
        (OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=3), ["town"]),
        sparse_threshold=0.0,
    )
    return make_pipeline(columns, ranker or RankRLS()).fit(MIXED, make_target(y, GROUPS))


def test_all_features_of_a_column_count_together_under_its_name():
    model, frame = table_model(), MIXED[["town", "age", "color", "price"]]
    found = contributions(model, frame, GROUPS)
    assert found.names == ["price", "color", "age", "town"]
    add_up(found, model, frame)
    by_feature = contributions(model, frame, GROUPS, by="feature")
    add_up(by_feature, model, frame)
    assert len(by_feature.names) == model[0].transform(MIXED).shape[1] == 8
    for name, column in zip(found.names, found.values.T, strict=True):
        own = [k for k, feature in enumerate(by_feature.names) if name in feature]
        np.testing.assert_allclose(column, by_feature.values[:, own].sum(axis=1), atol=1e-12)


def test_a_column_adds_what_the_score_changes_by_if_only_it_changes():
    """Brute force, whatever the steps: swap one cell, and the score moves by the contribution."""
    model = table_model()
    found = contributions(model, MIXED)
    for name in MIXED.columns:
        j = found.names.index(name)
        other = MIXED.copy()
        other[name] = MIXED[name].to_numpy()[::-1]
        moved = model.predict(other) - model.predict(MIXED)
        np.testing.assert_allclose(moved, found.values[::-1, j] - found.values[:, j], atol=1e-10)


def test_frames_of_polars_keep_their_names():
    pytest.importorskip("sklearn", "1.9", reason="the scaler of older ones does not see the names")
    model = make_pipeline(StandardScaler(), RankRLS()).fit(FRAME, y)
    truth = contributions(model, FRAME, GROUPS)
    assert truth.names == NAMES
    found = contributions(
        model, pl.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)}), GROUPS
    )
    assert found.names == NAMES
    np.testing.assert_array_equal(found.values, truth.values)


def test_steps_that_mix_columns_are_explained_by_feature_only():
    model = make_pipeline(StandardScaler(), PCA(2), RankRLS()).fit(X, y)
    with pytest.raises(ValueError, match=r"PCA.*by='feature'"):
        contributions(model, X)
    found = contributions(model, X, GROUPS, by="feature")
    assert found.names == ["pca0", "pca1"]
    add_up(found, model, X)


@pytest.mark.parametrize(
    "step",
    [
        FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())]),
        make_column_transformer((StandardScaler(), [2, 0]), ("drop", [1]), remainder="passthrough"),
        FunctionTransformer(np.tanh),
        FunctionTransformer(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_unions_and_functions_of_single_columns_are_traced(step):
    model = make_pipeline(step, RankRLS()).fit(X, y)
    add_up(contributions(model, X, GROUPS), model, X)


@pytest.mark.parametrize(
    "model, groups, by, match",
    [
        (RankRLS(kernel="rbf").fit(X, y), GROUPS, "column", "weight.*permutation_importance"),
        (RankRLS().fit(X, np.column_stack([y, -y])), GROUPS, "column", "several outputs"),
        (np.ones(3), GROUPS, "column", "given scores"),
        (LINEAR["RankRLS"], GROUPS, "row", "by='row' is unknown"),
        (LINEAR["RankRLS"], GROUPS[:5], "column", "60"),
    ],
    ids=["kernel", "outputs", "scores", "by", "groups"],
)
def test_models_without_weights_and_odd_arguments_are_refused(model, groups, by, match):
    with pytest.raises(ValueError, match=match):
        contributions(model, X, groups, by=by)


def test_scaling_inside_groups_gets_the_groups():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(GroupScaler(with_standard=True), RankRLS())
        model.fit(FRAME, y, groups=GROUPS)
        expected = centered(model.predict(FRAME, groups=GROUPS), GROUPS)
        truth = model.score(FRAME, y, groups=GROUPS)
    found = contributions(model, FRAME, GROUPS)
    assert found.names == NAMES
    np.testing.assert_allclose(found.values.sum(axis=1), expected, atol=1e-12)
    lost = permutation_importance(model, FRAME, y, GROUPS)
    assert lost.score == pytest.approx(1 - truth)
    assert next(iter(lost)).name == "bm25"


# ---------------------------------------------------------------- permutation importance


def by_hand(model, X, y, groups, name, n_repeats, seed):
    """Double loop: shuffle the cells of a column inside each group, score each group anew."""
    metric = get_metric(name)
    sign = 1 if metric.greater_is_better else -1
    draw = np.random.default_rng(seed)
    labels = np.unique(groups)
    lost = np.full((X.shape[1], n_repeats, len(labels)), np.nan)
    for r in range(n_repeats):
        keys = draw.random(len(y))
        for j in range(X.shape[1]):
            changed = X.copy()
            for label in labels:
                rows = np.flatnonzero(groups == label)
                changed[rows, j] = X[rows[np.argsort(keys[rows])], j]
            for k, label in enumerate(labels):
                rows = groups == label
                scores = model.predict(X[rows]), model.predict(changed[rows])
                before, after = (metric(y[rows], f, undefined="nan") for f in scores)
                lost[j, r, k] = sign * (before - after)
    return lost


@pytest.mark.parametrize(
    "name, ranker",
    [
        ("disagreement", RankRLS(kernel="rbf")),
        ("ndcg@5", RankRLS(kernel="rbf")),
        ("ndcg@5", RankRLS()),
        ("tau", RankingPursuit(5)),
    ],
    ids=str,
)
def test_importance_is_that_of_a_double_loop(name, ranker):
    relevance = np.round(y - y.min())
    model = ranker.fit(X, relevance, GROUPS)
    found = permutation_importance(
        model, X, relevance, GROUPS, scoring=name, n_repeats=3, random_state=5
    )
    truth = by_hand(model, X, relevance, GROUPS, name, 3, 5)
    np.testing.assert_allclose(found.per_group, truth, atol=1e-12)
    by_group = truth[:, :, ~np.isnan(truth[0, 0])].mean(axis=1)
    np.testing.assert_allclose(found.importance, by_group.mean(axis=1), atol=1e-12)
    error = by_group.std(axis=1, ddof=1) / np.sqrt(by_group.shape[1])
    np.testing.assert_allclose(found.standard_error, error, atol=1e-12)
    assert ((found.low <= found.importance) & (found.importance <= found.high)).all()
    assert [row.importance for row in found] == sorted(found.importance, reverse=True)


@pytest.mark.parametrize(
    "convert",
    [
        sp.csr_matrix,
        sp.csr_array,
        lambda A: pd.DataFrame(A, columns=NAMES),
        np.asfortranarray,
        lambda A: pl.DataFrame({name: A[:, j] for j, name in enumerate(NAMES)}),
    ],
    ids=["matrix", "array", "pandas", "F", "polars"],
)
def test_every_kind_of_X_gives_the_same_importance(convert):
    model = RankRLS().fit(X, y, GROUPS)
    truth = permutation_importance(model, X, y, GROUPS)
    model = RankRLS().fit(convert(X), y, GROUPS)
    found = permutation_importance(model, convert(X), y, GROUPS)
    np.testing.assert_allclose(found.importance, truth.importance, atol=1e-12)
    named = hasattr(convert(X), "columns")
    assert found.names == (NAMES if named else ["x0", "x1", "x2", "x3"])


def test_text_and_gaps_are_shuffled_as_they_are():
    model = table_model(RankRLS(kernel="rbf"))
    found = permutation_importance(model, MIXED, make_target(y, GROUPS), scoring="concordance")
    assert set(found.names) == {"price", "color", "age", "town"}
    assert next(iter(found)).name == "age"


def test_a_column_of_the_group_and_an_unused_column_have_no_importance():
    of_group = np.sqrt(np.unique(GROUPS, return_inverse=True)[1])[:, None]
    A = np.hstack([X, of_group])
    model = RankRLS().fit(A, y, GROUPS)
    model.coef_[3] = 0.0
    found = permutation_importance(model, A, y, GROUPS)
    np.testing.assert_allclose(found.per_group[[3, 4]][:, :, :5], 0.0, atol=1e-15)
    assert np.argmax(found.importance) == 1


def test_one_list_has_the_error_of_the_repeats():
    found = permutation_importance(LINEAR["RankRLS"], X, y, n_repeats=7)
    expected = found.per_group[:, :, 0].std(axis=1, ddof=1) / np.sqrt(7)
    np.testing.assert_allclose(found.standard_error, expected)
    once = permutation_importance(LINEAR["RankRLS"], X, y, n_repeats=1)
    assert np.isnan(once.standard_error).all()


def test_graphs_of_scores_and_the_printed_table():
    model = LINEAR["RankRLS"]
    found = permutation_importance(model, X, ScoreGraph(y, GROUPS))
    plain = permutation_importance(model, X, y, GROUPS)
    np.testing.assert_array_equal(found.importance, plain.importance)
    lines = repr(found).splitlines()
    assert lines[0].split() == ["column", "loss", "of", "disagreement", "low", "high"]
    assert lines[1].startswith("x1 ")
    assert len(lines) == 5
    assert found.score == pytest.approx(1 - model.score(X, y, GROUPS))


@pytest.mark.parametrize(
    "options, match",
    [
        ({"n_repeats": 0}, "n_repeats=0; expected a whole number"),
        ({"confidence": 1.0}, "confidence=1.0; expected a number between"),
        ({"scoring": "r2"}, "r2"),
        ({"y": PairGraph([0], [1], n_items=60)}, "explicit preferences"),
        ({"groups": np.arange(60)}, "disagreement is undefined for each of the 60 groups"),
        ({"model": RankRLS().fit(X, np.column_stack([y, -y]))}, "one output"),
    ],
    ids=["repeats", "confidence", "scoring", "pairs", "groups", "outputs"],
)
def test_odd_arguments_of_permutation_importance_are_refused(options, match):
    arguments = {"model": LINEAR["RankRLS"], "X": X, "y": y} | options
    with pytest.raises(ValueError, match=match):
        permutation_importance(**arguments)


# ---------------------------------------------------------------- tools of others


def test_scikit_learns_permutation_importance_takes_rankers():
    assert LINEAR["RankRLS"].intercept_ == LINEAR["RankRLSCV"].intercept_ == 0.0
    for model in (LINEAR["RankRLS"], LINEAR["scaled"], LINEAR["views"]):
        found = permute_all(model, X, make_target(y, GROUPS), n_repeats=3, random_state=0)
        assert np.argmax(found.importances_mean) == 1


@pytest.mark.parametrize("name", ["RankRLS", "RankRLSCV", "RankSVM", "features"])
def test_shap_values_of_linear_rankers_centered_in_groups_are_the_contributions(name):
    shap = pytest.importorskip("shap")
    model = LINEAR[name]
    explained = shap.LinearExplainer(model, X)(X)
    np.testing.assert_allclose(
        explained.values.sum(axis=1) + explained.base_values, model.predict(X), atol=1e-9
    )
    found = contributions(model, X, GROUPS)
    np.testing.assert_allclose(centered(explained.values, GROUPS), found.values, atol=1e-9)
