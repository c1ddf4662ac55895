"""Frames of pandas, polars and Arrow give what the same numbers in NumPy give, bit by bit."""

from __future__ import annotations

import datetime
import decimal
import re
import subprocess
import sys
from pathlib import Path

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import rankwise
from rankwise import (
    CoRankRLS,
    PairGraph,
    RankingPursuit,
    RankRLS,
    RankRLSCV,
    RankSVM,
    ScoreGraph,
    make_target,
    metrics,
)
from rankwise.datasets import groups_from_sizes, make_ranking
from rankwise.frames import as_array, check_same_index, column_names, frame_columns, frame_matrix
from rankwise.groups import encode_groups
from rankwise.model_selection import (
    compare,
    cross_val_predict_groups,
    cross_validate_candidates,
    leave_group_out_predict,
    permutation_test,
)

NAMES = ["price", "weight", "age", "size"]
X, Y, GROUPS = make_ranking(n_queries=6, n_documents=6, n_features=4, random_state=0)[:3]
X = np.asfortranarray(X)  # as frames store it; sums of rows stored otherwise round otherwise
LABELS = np.array([f"query {g}" for g in GROUPS])


def arrow_table(columns):
    """In two chunks, as Arrow's readers give them."""
    table = pa.table(columns)
    cut = len(table) // 3
    return pa.concat_tables([table[:cut], table[cut:]])


def arrow_column(values):
    return arrow_table({"": values})[0]


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": arrow_table}
COLUMNS = {"pandas": pd.Series, "polars": pl.Series, "arrow": arrow_column}


@pytest.fixture(params=FRAMES)
def kind(request):
    return request.param


def frame(kind, X=X, names=NAMES):
    return FRAMES[kind](dict(zip(names, X.T, strict=True)))


def column(kind, values):
    return COLUMNS[kind](values)


def data(kind):
    return frame(kind), column(kind, Y), column(kind, LABELS)


ALPHAS = [1.0]


def test_chunks_may_be_frames(kind):
    model = RankRLS().partial_fit(frame(kind, X[:18]), Y[:18], column(kind, LABELS[:18]))
    model.partial_fit(frame(kind, X[18:]), column(kind, Y[18:]), column(kind, LABELS[18:]))
    plain = (
        RankRLS().partial_fit(X[:18], Y[:18], LABELS[:18]).partial_fit(X[18:], Y[18:], LABELS[18:])
    )
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    with pytest.raises(ValueError, match=r"0 sample.*\(0, 4\)"):
        model.partial_fit(frame(kind, X[:0]), [])


def test_columns_in_another_order_or_of_other_names_are_told_as_scikit_learn_does(kind):
    model = RankRLS().fit(*data(kind))
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict(frame(kind, X, NAMES[::-1]))
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- cost\n.*now missing:\n- size"):
        model.predict(frame(kind, X, [*NAMES[:3], "cost"]))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but RankRLS was"):
        model.predict(X)
    with pytest.warns(UserWarning, match="X has feature names, but RankRLS was fitted without"):
        RankRLS().fit(X, Y).predict(frame(kind))


@pytest.mark.parametrize("name", ["auc", "map", "disagreement", "err", "tau", "ndcg", "mrr"])
def test_metrics_take_columns(name, kind):
    y = (Y > 1).astype(int) if name == "auc" else Y.astype(int)
    columns = [column(kind, each) for each in (y, X[:, 0], LABELS)]
    metric = metrics.get_metric(name)
    assert metric(*columns) == metric(y, X[:, 0], LABELS)
    assert str(metrics.evaluate(*columns)) == str(metrics.evaluate(y, X[:, 0], LABELS))


def test_cross_validation_takes_frames(kind):
    for call in (
        lambda *data: leave_group_out_predict(RankRLS(), *data),
        lambda *data: cross_val_predict_groups(RankRLS(), *data),
        lambda *data: cross_validate_candidates(RankSVM(), *data, candidates={}, cv=3).predictions,
        lambda *data: (
            permutation_test(RankRLS(), *data, n_permutations=5, random_state=0).null_scores
        ),
    ):
        np.testing.assert_array_equal(call(*data(kind)), call(X, Y, LABELS))


OLD = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)


def test_scikit_learn_cross_validates_frames(kind):
    if OLD and kind == "arrow":
        pytest.skip("scikit-learn before 1.9 takes no rows of Arrow tables")
    items, y, groups = data(kind)
    target, cv = make_target(y, groups), GroupKFold(3)
    np.testing.assert_array_equal(target, make_target(Y, LABELS))
    plain = cross_val_predict(RankRLS(), X, make_target(Y, LABELS), groups=LABELS, cv=cv)
    found = cross_val_predict(RankRLS(), items, target, groups=np.asarray(groups), cv=cv)
    np.testing.assert_allclose(found, plain, rtol=1e-13)  # slices of arrays are stored by rows
    scores = cross_val_score(RankRLSCV(ALPHAS), items, target, groups=LABELS, cv=cv)
    np.testing.assert_array_equal(
        scores, cross_val_score(RankRLSCV(ALPHAS), X, target, groups=LABELS, cv=cv)
    )


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_transformers_may_hand_on_frames(kind, output):
    if OLD and kind == "polars":
        pytest.skip("scalers of scikit-learn before 1.9 do not see the names of polars columns")
    items, y, groups = data(kind)
    pipeline = make_pipeline(MinMaxScaler(), RankRLS())
    plain = clone(pipeline).fit(X, make_target(Y, LABELS)).predict(X)
    model = pipeline.set_output(transform=output).fit(items, make_target(y, groups))
    assert list(model[-1].feature_names_in_) == NAMES
    assert list(model[:-1].get_feature_names_out()) == NAMES
    np.testing.assert_allclose(model.predict(items), plain, rtol=1e-13)


def test_graphs_take_columns(kind):
    found = ScoreGraph(column(kind, Y), column(kind, LABELS))
    np.testing.assert_array_equal(found.divergence, ScoreGraph(Y, LABELS).divergence)
    winner, loser, magnitude = np.array([0, 1, 1]), np.array([1, 2, 0]), np.array([1.0, 2.0, 0.5])
    edges = [column(kind, values) for values in (winner, loser, magnitude)]
    found, plain = PairGraph(*edges), PairGraph(winner, loser, magnitude)
    np.testing.assert_array_equal(found.divergence, plain.divergence)
    with pytest.raises(ValueError, match="expected a flat array of whole row numbers"):
        PairGraph(column(kind, ["a", "b"]), [0, 1])


def test_comparisons_take_frames(kind):
    errors = {"a": [*np.arange(3.0, 14.0), np.nan], "b": [0.0, 0.1, 0.1, 0.2] * 3}
    assert str(compare(FRAMES[kind](errors), greater_is_better=False)) == str(
        compare(errors, greater_is_better=False)
    )
    with pytest.raises(ValueError, match="mapping with at least two rankers"):
        compare(FRAMES[kind]({"a": [1.0]}), greater_is_better=False)


# What columns may be


def test_every_kind_of_number_is_a_number(kind):
    whole = np.arange(36) % 7
    prices = [decimal.Decimal(int(k)) / 100 for k in np.arange(36) * 7919]
    columns = {
        "int8": whole.astype(np.int8),
        "uint64": whole.astype(np.uint64),
        "float32": X[:, 0].astype(np.float32),
        "bool": whole > 3,
        "price": prices,
    }
    expected = np.column_stack([np.array(each).astype(np.float64) for each in columns.values()])
    table = FRAMES[kind]({**columns, "float32": list(columns["float32"])})
    if kind != "pandas":
        assert "decimal" in str(frame_dtype(table, "price")).lower()
    matrix = frame_matrix("X", table)
    np.testing.assert_array_equal(matrix, expected)
    assert matrix.dtype == np.float64
    assert matrix.flags.f_contiguous
    assert frame_matrix("X", frame(kind, X.astype(np.float32))).dtype == np.float32
    np.testing.assert_array_equal(RankRLS().fit(table, Y).coef_, RankRLS().fit(expected, Y).coef_)
    plain = metrics.disagreement_error(expected[:, 4], Y)
    assert metrics.disagreement_error(column(kind, prices), Y) == plain
    np.testing.assert_array_equal(
        RankRLS().fit(X, column(kind, prices)).coef_, RankRLS().fit(X, expected[:, 4]).coef_
    )


def frame_dtype(table, name):
    return table[name].dtype if hasattr(table[name], "dtype") else table[name].type


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype="int16[pyarrow]"),
        pd.Series([1.0, None, 3.0], dtype="Float32"),
        pd.Series([1, None, 3], dtype=object),
        pl.Series([1, None, 3]),
        pl.Series([1, None, 3], dtype=pl.Int128),
        pa.array([1, None, 3]),
        pa.chunked_array([[1, None], [3]]),
    ],
    ids=lambda values: f"{type(values).__module__} {getattr(values, 'dtype', '')}",
)
def test_gaps_are_unscored_rows(values):
    target = make_target(values, [0, 0, 1])
    np.testing.assert_array_equal(target["score"], [1, np.nan, 3])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        RankRLS().fit(X[:3], values)
    with pytest.raises(ValueError, match="y_true contains NaN"):
        metrics.kendall_tau(values, [1, 2, 3])
    with pytest.raises(ValueError, match="groups has no label in row 1"):
        encode_groups(values, 3)


def test_narwhals_is_imported_in_one_place():
    source = Path(rankwise.__file__).parent
    importing = re.compile(r"(import|from) narwhals\b")
    for_type_checkers = re.compile(r"^if TYPE_CHECKING:\n((    .*)?\n)+", re.MULTILINE)
    names = []
    for path in source.rglob("*.py"):
        if importing.search(for_type_checkers.sub("", path.read_text())):
            names.append(path.name)
    assert names == ["frames.py"]


def test_group_sizes_may_be_a_column(kind):
    assert groups_from_sizes(column(kind, [2, 1])).tolist() == [0, 0, 1]


def test_several_outputs_are_a_frame(kind):
    Y2 = np.column_stack([Y, -X[:, 0]])
    model = RankRLS().fit(X, frame(kind, Y2, ["stars", "clicks"]), GROUPS)
    np.testing.assert_array_equal(model.coef_, RankRLS().fit(X, Y2, GROUPS).coef_)


# What is not copied


def test_rows_of_pandas_and_columns_of_all_are_not_copied(kind):
    assert np.shares_memory(frame_matrix("X", pd.DataFrame(X, copy=False)), X)
    items = frame("pandas")
    assert np.shares_memory(frame_matrix("X", items), items["size"].to_numpy())
    values = np.arange(5.0)
    whole = {"pandas": pd.Series, "polars": pl.Series, "arrow": pa.array}[kind](values)
    assert np.shares_memory(as_array(whole), np.asarray(whole))


def test_frames_give_the_bits_of_their_own_arrays():
    by_rows = pd.DataFrame(np.ascontiguousarray(X), columns=NAMES, copy=False)
    assert by_rows.to_numpy().flags.c_contiguous
    for table in (by_rows, frame("pandas"), frame("polars")):
        found = RankRLS(kernel="rbf").fit(table, Y).predict(table)
        plain = RankRLS(kernel="rbf").fit(table.to_numpy(), Y).predict(table.to_numpy())
        np.testing.assert_array_equal(found, plain)


def test_sparse_columns_stay_sparse():
    pytest.importorskip("scipy", minversion="1.16.1", reason="pandas 3 asks for it")
    table = pd.DataFrame.sparse.from_spmatrix(sp.eye_array(36, 4, format="csr"))
    assert sp.issparse(frame_matrix("X", table))
    plain = RankRLS().fit(sp.eye_array(36, 4, format="csr"), Y)
    np.testing.assert_array_equal(RankRLS().fit(table, Y).coef_, plain.coef_)


def test_plain_input_does_not_import_narwhals():
    code = (
        "import sys; import sklearn.linear_model\n"
        "sys.modules['narwhals.stable.v2'] = None  # an import fails\n"
        "import numpy as np, scipy.sparse as sp, rankwise, rankwise.groups, fractions\n"
        "from rankwise.frames import as_array, check_same_index, narwhals_frame\n"
        "X = np.eye(3)\n"
        "for each in (X, X.tolist(), sp.csr_array(X), None, 1.0, 'a', ((1, 2),)):\n"
        "    assert as_array(each) is each and narwhals_frame(each) is None\n"
        "    check_same_index(X=X, y=each)\n"
        "rankwise.groups.encode_groups([1, 2, 2], 3)\n"
        "rankwise.metrics.kendall_tau([1, 2, 3], [1, 2, 3])\n"
        "try: narwhals_frame(fractions.Fraction(1))\n"
        "except ImportError: print('only now')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "only now\n"


# What is refused


def messy(kind):
    n = len(Y)
    columns = {
        "price": [None if k == 3 else float(k) for k in range(n)],
        "color": ["red", "green", "blue"] * (n // 3),
        "shape": [None, "round", "flat"] * (n // 3),
        "sold": [datetime.date(2026, 1, 1 + k % 28) for k in range(n)],
        "parts": [[k] for k in range(n)],
        "fresh": [None, True, False] * (n // 3),
        "lost": [None] * n,
        "weight": list(X[:, 1]),
        "cost": [decimal.Decimal(k) / 8 for k in range(n)],
        "new": [k % 2 == 0 for k in range(n)],
    }
    if kind == "pandas":
        table = pd.DataFrame(columns)
        table["color"] = table["color"].astype("category")
        table["sold"] = pd.to_datetime(table["sold"])
        return table.astype({"fresh": "boolean"})
    if kind == "polars":
        return pl.DataFrame(columns).with_columns(pl.col("color").cast(pl.Categorical))
    table = pa.table(columns)
    return table.set_column(1, "color", table["color"].dictionary_encode())


def message_of(ranker, items):
    with pytest.raises(ValueError, match="Input X ") as raised:
        ranker.fit(items, Y, GROUPS)
    return str(raised.value)


@pytest.mark.parametrize("ranker", [RankRLS(), RankSVM(), RankingPursuit(3)])
def test_one_message_names_every_column(kind, ranker):
    items = messy(kind)
    message = message_of(ranker, items)
    told = dict(re.findall(r"(\w+) \(([^)]*)\)[,.]", message))
    assert {k: v for k, v in told.items() if k != "parts"} == {
        "price": "missing values",
        "color": "category",
        "shape": "text",
        "sold": "dates",
        "fresh": "missing values",
        "lost": "no values",
    }
    assert "parts (" in message


def test_gaps_alone_are_told_in_the_words_of_scikit_learn(kind):
    items = frame(kind, np.where(np.arange(36)[:, None] == [0, 5, 99, 99], np.nan, X))
    message = message_of(RankRLS(), items)
    assert message.startswith(
        "Input X contains NaN, in the columns price, weight. Put rankwise.TableVectorizer()"
    )
    model = RankRLS().fit(*data(kind))
    with pytest.raises(ValueError, match="contains NaN, in the columns price, weight"):
        model.predict(items)
    items = frame(kind, np.where(np.arange(36)[:, None] == [0, 99, 99, 99], np.inf, X))
    with pytest.raises(ValueError, match="Input X contains infinity"):
        RankRLS().fit(items, Y)


@pytest.mark.parametrize(
    "columns, told",
    [
        ({7: X[:, 0], 3: ["a", "b"] * 18}, "not numbers: 3 (text)"),  # a place, for want of a name
        ({f"c{k}": ["a"] * 36 for k in range(70)}, "c49 (text) and 20 more."),
        ({"weight": ["1", "2"] * 18}, "weight (text)"),  # that looks like numbers
    ],
)
def test_columns_of_text_are_named_but_not_thousands_of_them(columns, told):
    assert told in message_of(RankRLS(), pd.DataFrame(columns))


def test_lazy_frames_and_columns_of_one_name_are_refused():
    with pytest.raises(TypeError, match=r"LazyFrame was passed; pass frame.collect\(\)"):
        RankRLS().fit(frame("polars").lazy(), Y)
    for twice in (pd.DataFrame(X, columns=list("abab")), pa.table(list(X.T), names=list("abab"))):
        with pytest.raises(ValueError, match="columns of the same name"):
            RankRLS().fit(twice, Y)


# The index of pandas


def test_rows_are_never_matched_against_the_index_in_silence():
    items = pd.DataFrame(X, columns=NAMES, index=[f"row {k}" for k in range(36)])
    y = pd.Series(Y, index=items.index)
    shuffled = y.sample(frac=1, random_state=0)
    expected = r"X and y have the same pandas index, but in different orders.*y.loc\[X.index\]"
    rankers = (RankRLS(), RankSVM(), CoRankRLS(kernel="rbf"), RankingPursuit(3), RankRLSCV(ALPHAS))
    for ranker in rankers:
        with pytest.raises(ValueError, match=expected):
            ranker.fit(items, shuffled, GROUPS)
    model = RankRLS().fit(items, shuffled.loc[items.index], GROUPS)
    np.testing.assert_array_equal(model.coef_, RankRLS().fit(X, Y, GROUPS).coef_)
    for call in (
        lambda: model.score(items, shuffled),
        lambda: CoRankRLS(kernel="rbf").fit(items, y).score(items, shuffled),
        lambda: RankRLS().partial_fit(items, shuffled),
        lambda: permutation_test(RankRLS(), items, shuffled, GROUPS),
        lambda: metrics.kendall_tau(y, shuffled),
        lambda: make_target(y, pd.Series(GROUPS, index=shuffled.index)),
        lambda: ScoreGraph(y, pd.Series(GROUPS, index=shuffled.index)),
    ):
        with pytest.raises(ValueError, match="same pandas index, but in different orders"):
            call()


def test_an_index_that_says_nothing_is_not_looked_at():
    items = pd.DataFrame(X, columns=NAMES, index=np.arange(36) + 100)
    check_same_index(X=items, y=pd.Series(Y), groups=pl.Series(GROUPS))
    check_same_index(X=items, y=pd.Series(Y, index=items.index))
    check_same_index(X=items, y=pd.Series(Y[:5]), groups=None)
    model = RankRLS().fit(items, pd.Series(Y), GROUPS)
    np.testing.assert_array_equal(model.coef_, RankRLS().fit(X, Y, GROUPS).coef_)


# The tools


def test_record_batches_and_cells_of_frames(kind):
    columns = frame_columns(FRAMES[kind]({"winner": ["a", None], "n": [1, 2]}))
    assert as_array(columns["winner"]).tolist() == ["a", None]
    assert as_array(columns["n"]).dtype == np.int64
    assert frame_columns([1, 2]) is None
    batch = pa.record_batch({"a": [1.0, 2.0]})
    assert column_names(batch) == ["a"]
    assert list(RankRLS().fit(batch, [1, 2]).feature_names_in_) == ["a"]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_missing_values_of_floats_are_not_counted(kind, monkeypatch):
    """A count for each of thousands of columns takes as long as their conversion."""
    frame = kind({"a": [0.5, 1.5], "b": [2.0, 3.0]})

    def refuse(column):
        raise AssertionError(f"counted the missing values of {column.name}")

    monkeypatch.setattr(nw.Series, "null_count", refuse)
    np.testing.assert_array_equal(frame_matrix("X", frame), [[0.5, 2.0], [1.5, 3.0]])
