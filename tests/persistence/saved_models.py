"""Fitted models of all kinds, for the tests of model files."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise import (
    AutoRanker,
    CalibratedRanker,
    ConditionalRankRLS,
    ConditionalRankRLSCV,
    CoRankRLS,
    CoRankRLSCV,
    GroupScaler,
    HingeFeatures,
    LabelRanker,
    LabelRankerCV,
    PairGraph,
    RankingPursuit,
    RankingPursuitCV,
    RankLogistic,
    RankLogisticCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    TableVectorizer,
    View,
)
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.tree_features import TreeFeatures
from rankwise.metrics import get_metric

KERNELS = ("rbf", "polynomial", "sigmoid", "laplacian", "chi2", "additive_chi2", "cosine")
rng = np.random.default_rng(7)
X = rng.uniform(0.1, 2.0, size=(36, 4))
Y = np.column_stack([X @ [1.0, -2.0, 0.5, 0.0], np.sin(3 * X[:, 0]) + X[:, 3]])
y = Y[:, 0] + 0.1 * rng.normal(size=36)
GROUPS = np.repeat([f"q{k}" for k in range(6)], 6)
PARTLY = np.where(np.arange(36) % 3 == 0, np.nan, y)
NEW = rng.uniform(0.1, 2.0, size=(9, 4))
FRAME, NEW_FRAME = (pd.DataFrame(part, columns=["age", "bm25", "länge", "x"]) for part in (X, NEW))
SPARSE, NEW_SPARSE = (sp.csr_array(np.where(part > 1, part, 0.0)) for part in (X, NEW))
MIXED = pd.DataFrame(
    {
        "a": np.where(np.arange(36) % 7 == 0, np.nan, X[:, 0]),
        "b": X[:, 1],
        "c": rng.choice(["red", "green", "blue", "grey"], 36, p=[0.4, 0.4, 0.1, 0.1]),
        "t": rng.choice([True, False], 36),
    }
)
KINDS = MIXED.assign(
    since=np.datetime64("2023-11-28T07", "s") + 86400 * rng.integers(0, 900, 36),
    embedding=list(rng.normal(size=(36, 2))),
    size=rng.choice(["S", "M", "L"], 36),
    review=[f"{word} wine, number {k}" for k, word in enumerate(["good", "bad", "new"] * 12)],
)
WEAPONS = pd.DataFrame(
    {"power": rng.normal(size=40), "kind": rng.choice(["axe", "bow", "cap"], 40)},
)
K, NEW_K = rbf_kernel(X), rbf_kernel(NEW, X)


def linear_models():
    yield "linear", RankRLS(0.1).fit(X, y, GROUPS), NEW
    yield "iterative", RankRLS(solver="iterative").fit(SPARSE, y), NEW_SPARSE
    yield "two outputs", RankRLS().fit(X, Y, GROUPS), NEW
    yield "float32", RankRLS().fit(X.astype(np.float32), y), NEW.astype(np.float32)
    yield "chunks", RankRLS().partial_fit(X[:18], y[:18]).partial_fit(X[18:], y[18:]), NEW
    yield "logistic", RankLogistic(0.1).fit(X, y, GROUPS), NEW
    yield "margin", RankSVM(0.1).fit(X, y, GROUPS), NEW
    yield "one path", RankSVM().path(X, y, GROUPS, alphas=[1.0, 0.1]).model(1), NEW
    yield "nuisance", RankRLS().fit(X, y, GROUPS, nuisance=np.eye(6)[np.arange(36) % 6]), NEW
    yield "list", RankRLS(np.float64(0.1), random_state=np.int64(3)).fit(X.tolist(), y), NEW


def kernel_models():
    for kernel in KERNELS:
        yield kernel, RankRLS(1.0, kernel=kernel).fit(X, y, GROUPS), NEW
    yield "margin rbf", RankSVM(kernel="rbf", gamma=0.5).fit(X, y, GROUPS), NEW
    yield "two rbf", RankRLS(kernel="rbf").fit(np.asfortranarray(X), Y), np.asfortranarray(NEW)
    yield "columns rbf", RankRLS(kernel="rbf").fit(np.hstack([Y, X, X])[:, 1:5], y), NEW
    yield "rows of F", RankRLS(kernel="rbf").fit(np.asfortranarray(np.vstack([X, X]))[:36], y), NEW
    yield "float32 rbf", RankRLS(kernel="rbf").fit(X.astype("f4"), y), NEW.astype("f4")
    yield "rows", RankRLS(kernel="rbf", basis=[3, 1, 8], n_basis=3).fit(X, y), NEW
    yield "points", RankRLS(kernel="rbf", basis=X[:5]).fit(X, y, GROUPS), NEW
    yield "basis", RankSVM(kernel="rbf", n_basis=6, random_state=0).fit(X, y), NEW
    yield "sparse rbf", RankRLS(kernel="rbf", gamma=1.0).fit(SPARSE, y, GROUPS), NEW_SPARSE
    yield "sparse matrix", RankRLS(kernel="rbf").fit(sp.csr_matrix(SPARSE), y), NEW_SPARSE
    yield "precomputed", RankRLS(kernel="precomputed").fit(K, y, GROUPS), NEW_K
    basis = RankRLS(kernel="precomputed", n_basis=5, random_state=0)
    yield "precomputed basis", basis.fit(K, y, GROUPS), NEW_K
    yield "rbf chunks", RankRLS(kernel="rbf", basis=X[:3]).partial_fit(X, y, GROUPS), NEW


def searches():
    names = RankRLSCV(kernel="rbf", gamma=(0.1, 1.0), scoring=get_metric("concordance"))
    yield "search with names", names.fit(FRAME, y, GROUPS), NEW_FRAME
    yield "search", RankRLSCV(store_predictions=True).fit(X, y, GROUPS.astype(object)), NEW
    yield "logistic search", RankLogisticCV([0.01, 0.1, 1.0], cv=3).fit(X, y, GROUPS), NEW
    yield "margin search", RankSVMCV([0.01, 0.1, 1.0], cv=3).fit(X, y, GROUPS), NEW
    yield "semi search", CoRankRLSCV(views=2, n_basis=3, random_state=0).fit(X, PARTLY, GROUPS), NEW
    yield "pursuit search", RankingPursuitCV(4, gamma=[0.1, 1.0]).fit(X, y, GROUPS), NEW


def comparison_model():
    """A stack with a joint model and with trees of pairs: who wins depends on both items."""
    draw = np.random.default_rng(0)
    first = draw.integers(40, size=600)
    second = (first + draw.integers(1, 40, size=600)) % 40
    power, kind = WEAPONS["power"].to_numpy(), WEAPONS["kind"].to_numpy()
    is_near = np.abs(power[first] - power[second]) < 0.5
    beats = power[first] > power[second]
    won = np.where(is_near, ~beats, beats) ^ (kind[first] < kind[second])
    graph = PairGraph(
        np.where(won, first, second), np.where(won, second, first), n_items=len(WEAPONS)
    )
    members = ["hinges", "joint linear model of pairs", "trees of pairs"]
    return AutoRanker(members, n_resamples=0).fit(WEAPONS, graph)


def combined_models():
    yield "auto", AutoRanker(n_resamples=0).fit(X, y), NEW
    yield "auto of groups", AutoRanker(n_resamples=0).fit(X, y, GROUPS), NEW
    yield "auto of comparisons", comparison_model(), WEAPONS
    yield "trees", BoostedTrees(5).fit(np.tile(X, (2, 1)), np.tile(y, 2)), NEW
    seen = make_pipeline(TreeFeatures(sizes=(2,)), BoostedTrees(5))
    yield "tree features", seen.fit(np.tile(X, (2, 1)), np.tile(y, 2)), NEW
    yield "calibrated", CalibratedRanker(RankRLS()).fit(X, y, GROUPS), NEW
    scaled = make_pipeline(StandardScaler(), RankRLSCV(kernel="rbf", n_basis=8))
    yield "calibrated pipeline", CalibratedRanker(scaled).fit(X, y, GROUPS), NEW
    yield "calibrated again", CalibratedRanker(RankSVM(), n_folds=3).fit(X, y, GROUPS), NEW
    labels = np.column_stack([Y, Y[:, 0] - Y[:, 1]])
    yield "labels", LabelRanker(kernel="rbf").fit(X, labels), NEW
    yield "labels search", LabelRankerCV([0.1, 1.0]).fit(FRAME, labels), NEW_FRAME
    yield "classes", LabelRanker().fit(X, np.array(list("abc"))[np.arange(36) % 3]), NEW
    both = ConditionalRankRLS(row_kernel="precomputed", column_kernel="precomputed")
    yield "table of kernels", both.fit(K, K[:5, :5], X @ X[:5].T), NEW_K
    table = ConditionalRankRLS(column_kernel="rbf").fit(X, X[:5], X @ X[:5].T)
    yield "table", table, NEW
    search = ConditionalRankRLSCV([0.1, 1.0], leave="rows")
    yield "table search", search.fit(X, X[:5], X @ X[:5].T), NEW


def semi_supervised_models():
    views = [View([0, 1]), View(slice(1, 4), kernel="rbf", n_basis=5), View(basis=X[:3])]
    yield "views", CoRankRLS(views=views, random_state=1).fit(X, PARTLY, GROUPS), NEW
    yield "random views", CoRankRLS(kernel="rbf", n_basis=8).fit(SPARSE, PARTLY, GROUPS), NEW_SPARSE
    named = CoRankRLS(views=[View(["age", "x"]), View(np.array([False, True, True, False]))])
    yield "named views", named.fit(FRAME, PARTLY, GROUPS), NEW_FRAME
    kernels = [View(kernel="precomputed", n_basis=4), View(kernel="precomputed", n_basis=5)]
    yield "kernel views", CoRankRLS(views=kernels).fit(K, PARTLY, GROUPS), NEW_K
    yield "pursuit", RankingPursuit(5, beta=0.3).fit(X, y, GROUPS), NEW
    features = RankingPursuit(3, kernel="linear", dictionary="features")
    yield "feature pursuit", features.fit(X, y, GROUPS), NEW
    yield "pursuit of views", RankingPursuit(3, views=2, random_state=0).fit(X, PARTLY, GROUPS), NEW
    stopping = RankingPursuit(9, n_iter_no_change=2, random_state=0, kernel="precomputed")
    yield "stopped pursuit", stopping.fit(K, y, GROUPS), NEW_K
    yield "pursuit of points", RankingPursuit(2, dictionary=X[:6]).fit(X, y), NEW
    yield "pursuit of views with columns", RankingPursuit(2, views=views[:2]).fit(X, PARTLY), NEW


def pipelines():
    scalers = (
        StandardScaler(),
        StandardScaler(with_mean=False, with_std=False),
        MinMaxScaler((1, 2), clip=True),
        MaxAbsScaler(),
        RobustScaler(quantile_range=(10.0, 90.0)),
        RobustScaler(with_centering=False),
        HingeFeatures(2),
        Nystroem(n_components=5, random_state=0),
        GroupScaler(with_log=True, with_standard=True),
    )
    for scaler in scalers:
        yield f"{scaler!r}", make_pipeline(scaler, RankRLS()).fit(X, y), NEW
    two = make_pipeline(StandardScaler(), "passthrough", MinMaxScaler(), RankRLSCV(cv=3))
    yield "frame pipeline", two.set_output(transform="pandas").fit(FRAME, y), NEW_FRAME
    yield "margin pipeline", make_pipeline(StandardScaler(), RankSVM(0.1)).fit(X, y), NEW
    steps = [("nothing", "passthrough"), ("rank", RankingPursuit(3))]
    yield "pipeline of nothing", Pipeline(steps, verbose=False).fit(X, y), NEW
    scaled = make_pipeline(MaxAbsScaler(), RankRLS(kernel="rbf"))
    yield "sparse pipeline", scaled.fit(SPARSE, y), NEW_SPARSE


def tables():
    yield "columns", make_pipeline(TableVectorizer(), RankRLS()).fit(MIXED, y), MIXED
    scaled = make_pipeline(TableVectorizer(scale=True, categorical=["b"]), RankSVM(0.1)).fit(
        MIXED, y
    )
    yield "scaled columns", scaled, MIXED
    two = make_pipeline(TableVectorizer(), MinMaxScaler(), RankRLS(kernel="rbf")).fit(MIXED, y)
    yield "columns and a scaler", two, MIXED
    yield (
        "columns of an array",
        make_pipeline(TableVectorizer(scale=True), RankRLS()).fit(X, y),
        NEW,
    )
    every = TableVectorizer(scale=True, order={"size": ["S", "M", "L"]})
    yield "every kind of column", make_pipeline(every, RankRLS()).fit(KINDS, y), KINDS
    yield "auto of a frame", AutoRanker(n_resamples=0).fit(KINDS, y, GROUPS), KINDS
    codes = np.tile(np.c_[np.arange(36) % 5, X], (20, 1))
    trees = BoostedTrees(5, categorical=(0,)).fit(codes, np.tile(y + np.arange(36) % 5, 20))
    yield "trees of codes", trees, codes[:9]


@functools.cache
def all_models():
    """Name → (fitted model, new items)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how good these models are is of no interest here
        makers = (linear_models, kernel_models, searches, combined_models)
        makers += (semi_supervised_models, pipelines, tables)
        return {name: (model, new) for make in makers for name, model, new in make()}
