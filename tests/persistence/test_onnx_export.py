"""An ONNX graph scores items as the model does that it was made of, or is not written."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from rankwise import (
    AutoRanker,
    CoRankRLS,
    GroupScaler,
    RankingPursuit,
    RankRLS,
    RankRLSCV,
    RankSVM,
    TableVectorizer,
    View,
    make_target,
)
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.environment import describe_environment
from rankwise.model_selection.scorer import predict_items
from rankwise.persistence import export_onnx
from tests.persistence.saved_models import GROUPS, NEW, PARTLY, X, all_models, y

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pyarrow = pytest.importorskip("pyarrow")

NO_STEP = "a step .* cannot be written to ONNX"
NO_KERNEL = "kernel .* cannot be written to ONNX"
REFUSED = {
    "every kind of column": "is of the kind (text|date)",
    "auto of a frame": "is of the kind (text|date)",
    "MinMaxScaler(clip=True, feature_range=(1, 2))": "clip=True.* is not linear",
    **{name: "ConditionalRankRLS(CV)? is not" for name in all_models() if name[:5] == "table"},
} | dict.fromkeys(
    (
        *("precomputed", "precomputed basis", "kernel views", "stopped pursuit"),
        *("sigmoid", "laplacian", "chi2", "additive_chi2", "cosine"),
    ),
    NO_KERNEL,
)


def run(path, items, groups=None):
    """Scores by onnxruntime: of a matrix, or of a frame with one input for each column."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    if inputs[0].name == "X":
        items = items.toarray() if hasattr(items, "toarray") else np.asarray(items)
        feed = {"X": items.astype(np.float64)}
        if len(inputs) > 1:
            feed["groups"] = np.zeros(len(items), int) if groups is None else np.asarray(groups)
        return session.run(["scores"], feed)[0]
    if not hasattr(items, "columns"):
        items = pd.DataFrame(items, columns=[one.name for one in inputs])
    feed = {}
    for one in inputs:
        column = items[one.name].to_numpy()[:, None]
        if one.type == "tensor(string)":
            texts = ["" if pd.isna(cell) else str(cell) for [cell] in column]
            truth = {"True": "true", "False": "false"}
            feed[one.name] = np.array([[truth.get(text, text)] for text in texts], dtype=object)
        else:
            feed[one.name] = column.astype(np.float64)
    return session.run(["scores"], feed)[0]


def assert_same(found, expected, tolerance=1e-5):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * max(np.std(expected), 1e-300)


@pytest.mark.parametrize("name", all_models())
def test_every_model_scores_as_itself_or_is_refused_in_one_message(name, tmp_path):
    model, new = all_models()[name]
    path = tmp_path / "model.onnx"
    if name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name]):
            export_onnx(model, path)
        assert list(tmp_path.iterdir()) == []
        return
    export_onnx(model, path)
    expected = predict_items(model, new, [0] * new.shape[0])
    # linear functions and kernels are computed in double; the operator of trees gives float32
    assert_same(run(path, new), expected, 1e-6 if "tree" in name else 1e-12)


def test_all_members_of_an_auto_ranker_in_one_graph(tmp_path):
    rng = np.random.default_rng(0)
    items, groups = rng.normal(size=(240, 3)), np.arange(240) % 20
    grades = np.clip(2 * items[:, 0] * items[:, 1] + np.abs(items[:, 2]), 0, 4).round()
    members = ["linear, log+group, sign", "hinges, group, magnitude without ties"]
    members += ["rbf, standard, magnitude", ("trees", BoostedTrees(20))]
    model = AutoRanker(members, combine="mean", n_resamples=0).fit(items, grades, groups)
    assert len(model.estimators_) == 4
    assert any(isinstance(one, BoostedTrees) for one in model.estimators_)
    export_onnx(model, tmp_path / "model.onnx")
    new, lists = rng.normal(size=(90, 3)), np.repeat(np.arange(9), 10)
    found = run(tmp_path / "model.onnx", new, lists)
    assert_same(found, model.predict(new, lists), 1e-6)


def messy(n, rng, seen=True):
    """A frame with every kind of column; new rows have values that were not there before."""
    towns = [f"town_{k}" for k in rng.integers(0, 80 if seen else 120, n)]
    frame = pd.DataFrame(
        {
            "price": rng.lognormal(3, 1, n),
            "color": rng.choice(["red", "blue", "green", None], n),
            "town": towns,
            "size": rng.choice(["S", "M", "L"], n),
            "embedding": list(rng.normal(size=(n, 3))),
        }
    )
    frame.loc[frame.index % 9 == 4, "price"] = None
    return frame if seen else frame.assign(color=frame.color.replace("red", "brown"))


def feed_of(frame, groups=None):
    """The inputs of the graph as the page on model files describes them."""
    texts = {name: frame[name].fillna("").to_numpy(object)[:, None] for name in ("color", "size")}
    fed = {
        **texts,
        "town": frame.town.to_numpy(object)[:, None],
        "price": frame.price.to_numpy(float)[:, None],
        "embedding": np.stack(frame.embedding),
    }
    return fed if groups is None else {**fed, "groups": np.asarray(groups)}


@pytest.mark.parametrize("kind", ["columns", "auto"])
def test_a_frame_with_every_kind_of_column_but_text_and_dates(kind, tmp_path):
    rng = np.random.default_rng(0)
    frame, groups = messy(600, rng), np.arange(600) % 60
    rarity = frame.town.map(frame.town.value_counts())
    target = np.log(frame.price.fillna(20)) + np.log(rarity) + frame.embedding.str[0]
    target = (target + rng.normal(size=600)).to_numpy()
    columns = TableVectorizer(scale=True, order={"size": ["S", "M", "L"]})
    if kind == "columns":
        model = make_pipeline(columns, RankRLS()).fit(frame, make_target(target, groups))
        kinds = {column.name: column.kind for column in model[0].facts_}
        assert set(kinds.values()) == {"number", "category", "order", "vector"}
    else:
        words = " with all values and words, standard, magnitude"
        members = ["linear" + words, "hinges" + words, "rbf, log+group, sign", "trees"]
        model = AutoRanker(members, combine="mean", n_resamples=0).fit(frame, target, groups)
        assert sorted(model.views_) == ["dense", "trees", "wide", "wide"]
        trees = model.estimators_[model.views_.index("trees")][-1]
        assert trees.set_.any() or find_spec("lightgbm") is None  # they ask for sets of codes
    export_onnx(model, tmp_path / "model.onnx")
    new, lists = messy(90, rng, seen=False), np.repeat(np.arange(9), 10)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    found = session.run(None, feed_of(new, lists if kind == "auto" else None))[0]
    assert_same(found, predict_items(model, new, lists), 1e-6 if kind == "auto" else 1e-10)


def test_columns_of_text_and_dates_are_refused_by_name_and_kind(tmp_path):
    words = ["good wine", "bad wine", "good bread", "old bread", "new wine"]
    reviews = [f"{a} and {b}, number {k}" for k, (a, b) in enumerate(product(words, words * 3))]
    days = np.datetime64("2019-12-28") + np.arange(75)
    for name, kind, column in [("review", "text", reviews), ("since", "date", days)]:
        frame = pd.DataFrame({name: column, "price": np.arange(75.0)})
        model = make_pipeline(TableVectorizer(), RankRLS()).fit(frame, np.arange(75) % 7)
        with pytest.raises(ValueError, match=f"'{name}' is of the kind {kind}"):
            export_onnx(model, tmp_path / "model.onnx")


def test_missing_values_and_empty_strings_together_are_refused(tmp_path):
    frame = pd.DataFrame({"color": ["red", "", None, "blue", "red"] * 2, "x": np.arange(10.0)})
    model = make_pipeline(TableVectorizer(), RankRLS()).fit(frame, SCORES)
    with pytest.raises(ValueError, match="'color' has both missing values and empty"):
        export_onnx(model, tmp_path / "model.onnx")


def test_trees_cut_where_float32_would_not(tmp_path):
    rng = np.random.default_rng(0)
    items = 1 + 1e-12 * rng.integers(0, 50, (300, 2))
    model = BoostedTrees(10).fit(items, items[:, 0] - items[:, 1] ** 2)
    export_onnx(model, tmp_path / "model.onnx")
    assert len(np.unique(model.predict(items))) > 10
    assert_same(run(tmp_path / "model.onnx", items), model.predict(items), 1e-6)


PARAMETERS = [{}, {"gamma": 0.7, "degree": 2, "coef0": 0.5}, {"gamma": 2.0, "degree": 1.5}]


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_kernels_with_all_parameters(kernel, parameters, tmp_path):
    model = RankRLS(1.0, kernel=kernel, **parameters).fit(X, y)
    export_onnx(model, tmp_path / "model.onnx")
    new = np.vstack([NEW, np.zeros((1, 4))])
    assert_same(run(tmp_path / "model.onnx", new), model.predict(new), 1e-9)


CELLS = {
    "price": [9.5, None, 7.0, 8.0, 3.0, 1.5, None, 2.0, 4.0, 6.0],
    "stock": [1, 2, 3, 4, 5, 6, 7, 8, 9, 8],
    "color": ["red", "blue", "red", None, "green", "blue", "red", None, "blue", "red"],
    "sold": ["yes", "no", "no", "yes", "no", "yes", "no", "yes", "no", "yes"],
}
SCORES = [1, 4, 2, 3, 5, 9, 7, 6, 8, 0]


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize(
    "ranker",
    [RankRLS(), RankRLSCV(kernel="rbf"), RankSVM(), RankingPursuit(3), CoRankRLS(n_basis=4)],
    ids=str,
)
def test_tables_with_gaps_and_text_as_the_command_trains_them(scale, ranker, tmp_path):
    table = pyarrow.table(CELLS)
    steps = [TableVectorizer(scale=scale), *([] if scale else [RobustScaler()]), ranker]
    model = make_pipeline(*steps).fit(table, SCORES)
    export_onnx(model, tmp_path / "model.onnx")
    new = {
        "sold": ["yes", "no", "maybe", None],
        "color": ["blue", None, "white", "red"],
        "stock": [3.0, 100.0, None, 1.0],
        "price": [None, 1.0, 2.0, 1e6],
    }
    expected = model.predict(pyarrow.table(new))
    assert_same(run(tmp_path / "model.onnx", pd.DataFrame(new)), expected, 1e-9)


@pytest.mark.parametrize("options", [{}, {"with_log": True}, {"with_standard": True}], ids=str)
@pytest.mark.parametrize("with_groups", [True, False])
def test_scaling_inside_groups_takes_the_groups_of_the_items(options, with_groups, tmp_path):
    A = np.column_stack([X, np.repeat(np.arange(6.0) + 0.1, 6), 1e6 + X[:, 0]])  # one is constant
    order = np.random.default_rng(0).permutation(36)
    A, target, groups = A[order], y[order], GROUPS[order] if with_groups else None
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(GroupScaler(**options), RankRLS())
        model.fit(A, target, **({"groups": groups} if with_groups else {}))
        expected = model.predict(A, groups=groups) if with_groups else model.predict(A)
    export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    codes = np.unique(GROUPS[order], return_inverse=True)[1]
    feed = {"X": A} | ({"groups": codes} if with_groups else {})
    assert {one.name for one in session.get_inputs()} == set(feed)
    assert_same(session.run(None, feed)[0], expected, 1e-8)


@settings(max_examples=15, deadline=None)
@given(
    exponent=st.integers(-9, 9),
    offset=st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    scaler=st.sampled_from([StandardScaler(), MinMaxScaler(), RobustScaler()]),
    kernel=st.sampled_from(["linear", "rbf"]),
    seed=st.integers(0, 99),
)
def test_offsets_and_scales_do_not_matter_to_a_graph_of_64_bits(
    exponent, offset, scaler, kernel, seed, tmp_path_factory
):
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    rng = np.random.default_rng(seed)
    A = (rng.normal(size=(20, 3)) + offset) * 10.0**exponent
    model = make_pipeline(scaler, RankRLS(0.1, kernel=kernel)).fit(A, rng.normal(size=20))
    export_onnx(model, path)
    assert_same(run(path, A), model.predict(A))


def test_a_kernel_far_from_zero_is_exact(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 2)) + 1e8  # distances of such numbers are noise without a shift
    model = RankRLS(kernel="rbf", gamma=0.5).fit(A, A[:, 0])
    export_onnx(model, tmp_path / "model.onnx")
    assert_same(run(tmp_path / "model.onnx", A), model.predict(A), 1e-6)


def test_the_file_says_what_it_is(tmp_path):
    model = make_pipeline(StandardScaler(), RankRLSCV()).fit(
        pd.DataFrame(X, columns=list("äbcd")), y
    )
    export_onnx(model, tmp_path / "model.onnx")
    graph = onnx.load(str(tmp_path / "model.onnx"))
    facts = {entry.key: entry.value for entry in graph.metadata_props}
    version = describe_environment()["versions"]["rankwise"]
    assert (graph.producer_name, graph.producer_version) == ("rankwise", version)
    assert json.loads(facts["feature_names"]) == list("äbcd")
    assert facts["ranker"] == "RankRLSCV"
    assert facts["rankwise_version"] == version


def by_hand(a, b):
    return float(a @ b)


@pytest.mark.parametrize(
    "model, match",
    [
        (RankRLS(kernel=by_hand).fit(X, y), "'by_hand' cannot be written"),
        (CoRankRLS(views=[View(), View(kernel=by_hand, n_basis=3)]).fit(X, PARTLY), "'by_hand'"),
        (Ridge().fit(X, y), "Ridge is not a ranker of rankwise"),
        (make_pipeline(QuantileTransformer(n_quantiles=9), RankRLS()).fit(X, y), NO_STEP),
        (StandardScaler().fit(X), "StandardScaler is not a ranker of rankwise"),
    ],
    ids=["function", "view", "foreign", "quantiles", "scaler"],
)
def test_what_cannot_be_a_graph_is_refused_and_nothing_is_written(model, match, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_text("what was there before")
    with pytest.raises(ValueError, match=match):
        export_onnx(model, path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert path.read_text() == "what was there before"


def test_models_that_are_not_fitted_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        export_onnx(RankRLS(), tmp_path / "model.onnx")


def test_without_the_extra_the_message_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx"):
        export_onnx(RankRLS().fit(X, y), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
