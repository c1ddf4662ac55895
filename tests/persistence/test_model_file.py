"""A model file gives back what was saved: parameters, attributes, predictions to the last bit."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import zipfile
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Memory
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import rankwise
from rankwise import RankingPursuit, RankRLS, RankRLSCV, RankSVM, View
from rankwise.fitted_schema import FittedSchema, Floats
from rankwise.kernels.kernel import Kernel
from rankwise.model_selection.scorer import predict_items
from rankwise.persistence import load, read_header, save
from rankwise.persistence.model_file import FORMAT_VERSION
from rankwise.persistence.saved_classes import ESTIMATORS, RECORDS, schema_of
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import RankerMixin
from tests.persistence.saved_models import GROUPS, NEW, NEW_FRAME, X, all_models, y

MODELS = all_models()


def assert_same(one, other, where="model"):
    """Equal in type, content, dtype and memory order, all the way down; scalars are Python's."""
    if isinstance(one, np.generic):
        one = one.item()
    assert type(one) is type(other) or sp.issparse(one), where
    if isinstance(one, np.ndarray):
        assert one.flags.c_contiguous <= other.flags.c_contiguous, where
        assert one.flags.f_contiguous <= other.flags.f_contiguous, where
        assert other.flags.writeable, where
        np.testing.assert_array_equal(one, other, err_msg=where, strict=True)
    elif sp.issparse(one):
        for name in ("data", "indices", "indptr", "shape"):
            assert_same(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif isinstance(one, dict):
        assert set(one) == set(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{k}]")
    elif isinstance(one, (BaseEstimator, Kernel)):
        schema = schema_of(type(one))
        unsaved = {name for name, field in schema.items() if not field.is_saved}
        saved = {name: value for name, value in vars(one).items() if name not in unsaved}
        assert_same(saved, vars(other), type(one).__name__)
    else:
        assert one == other or (one != one and other != other), where


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rw"


def round_trip(model, path):
    save(model, path)
    return load(path)


@pytest.mark.parametrize("name", MODELS)
def test_everything_survives_and_predictions_and_files_are_equal_to_the_last_bit(name, path):
    model, new = MODELS[name]
    back = round_trip(model, path)
    assert_same(model, back)
    expected, found = (predict_items(one, new, [0] * new.shape[0]) for one in (model, back))
    assert expected.tobytes() == found.tobytes()
    assert expected.dtype == found.dtype
    if hasattr(model, "staged_predict"):
        before, after = list(model.staged_predict(new)), list(back.staged_predict(new))
        assert np.stack(before).tobytes() == np.stack(after).tobytes()
    save(back, path.with_suffix(".again"))
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()


@pytest.mark.parametrize("layout", [np.s_[:, ::2], np.s_[:, ::-1], np.s_[::2]])
def test_training_items_with_steps_in_memory_give_the_same_bits_too(layout, path):
    items = np.random.default_rng(0).standard_normal((200, 24))[layout]
    model = RankRLS(kernel="rbf").fit(items, np.arange(len(items)))
    back = round_trip(model, path)
    np.testing.assert_array_equal(model.predict(items), back.predict(items), strict=True)


def classes_in(value):
    """Names of the classes of all models and records inside."""
    if type(value).__name__ in {**ESTIMATORS, **RECORDS}:
        yield type(value).__name__
        value = getattr(value, "__dict__", value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from classes_in(entry)


def test_every_ranker_and_every_class_that_files_know_is_among_the_models():
    seen = {name for model, _ in MODELS.values() for name in classes_in(model)}
    public = [getattr(rankwise, name) for name in rankwise.__all__]
    rankers = {kind for kind in public if isinstance(kind, type) and issubclass(kind, RankerMixin)}
    assert len(rankers) >= 15
    assert ({kind.__name__ for kind in rankers} | set(ESTIMATORS) | set(RECORDS)) - seen == set()


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_every_field_of_a_record_is_declared(record):
    assert set(schema_of(record)) == set(inspect.signature(record).parameters)


def test_score_works_and_a_loaded_model_can_be_trained_again(path):
    model, _ = MODELS["search"]
    assert round_trip(model, path).score(X, y, GROUPS) == model.score(X, y, GROUPS)
    back = round_trip(MODELS["sparse rbf"][0], path).fit(X, y, GROUPS)
    assert_same(RankRLS(kernel="rbf", gamma=1.0).fit(X, y, GROUPS), back)


def test_another_process_predicts_the_same_bits(path):
    model, new = MODELS["pursuit"]
    save(model, path)
    np.save(path.with_suffix(".npy"), new)
    code = (
        "import sys, numpy as np; from rankwise.persistence import load;"
        "print(load(sys.argv[1]).predict(np.load(sys.argv[2])).tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(path), str(path.with_suffix(".npy"))]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == model.predict(new).tobytes().hex()


def test_the_file_is_an_npz_that_numpy_reads_without_pickle(path):
    model, _ = MODELS["linear"]
    save(model, path)
    with np.load(path, allow_pickle=False) as archive:
        arrays = [archive[name] for name in archive.files if name != "model.json"]
    assert any(np.array_equal(array, model.coef_) for array in arrays)


def test_feature_names_are_checked_after_loading(path):
    back = round_trip(MODELS["search with names"][0], path)
    with pytest.raises(ValueError, match="feature names should match"):
        back.predict(NEW_FRAME[["x", "age", "bm25", "länge"]])


def test_what_only_fit_uses_is_not_kept(path, tmp_path, monkeypatch):
    model, _ = MODELS["chunks"]
    back = round_trip(model, path)
    assert back.n_samples_seen_ == 36
    assert back.partial_fit(X[:9], y[:9]).n_samples_seen_ == 9
    search = RankRLSCV(cv=GroupKFold(3), random_state=np.random.default_rng(0)).fit(X, y, GROUPS)
    back = round_trip(search, path)
    assert (back.cv, back.random_state) == ("auto", None)
    assert back.predict(NEW).tobytes() == search.predict(NEW).tobytes()
    monkeypatch.chdir(tmp_path)
    pipeline = make_pipeline(StandardScaler(), RankRLS(), memory=Memory(None)).fit(X, y)
    assert round_trip(pipeline, path).memory is None


def test_lists_of_folds_labels_with_gaps_and_dates_are_kept(path):
    folds = [(np.arange(18), np.arange(18, 36)), (np.arange(18, 36), np.arange(18))]
    assert_same(folds, round_trip(RankRLSCV(cv=folds).fit(X, y, GROUPS), path).cv)
    days = np.array([np.datetime64("2020-01-01", "D") + k for k in range(6)]).repeat(6)
    for labels in (days, np.array(["a", "a\0", 1, 2.5, "b", "c"], dtype=object).repeat(6)):
        model = RankRLSCV(range(1, 4)).fit(X, y, labels)
        back = round_trip(model, path)
        assert back.alphas == [1, 2, 3]
        assert_same(model.cv_results_["groups"], back.cv_results_["groups"])


def test_the_header_tells_class_versions_parameters_and_notes_without_arrays(path):
    save(MODELS["margin pipeline"][0], path, notes={"data": "set A", "rows": [1, 2]})
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(path.with_suffix(".x"), "w") as other:
        for info in archive.infolist():  # read_header must not look at the arrays
            content = archive.read(info)
            other.writestr(info, content if info.filename == "model.json" else b"x" * len(content))
    header = read_header(path.with_suffix(".x"))
    assert (header["format"], header["version"]) == ("rankwise model", FORMAT_VERSION)
    assert (header["model"], header["ranker"], header["n_features"]) == ("Pipeline", "RankSVM", 4)
    save(all_models()["search"][0], path)
    assert read_header(path)["n_features"] == 4
    assert header["notes"] == {"data": "set A", "rows": [1, 2]}
    assert header["parameters"]["alpha"] == 0.1
    assert set(header["parameters"]) == set(RankSVM().get_params())
    assert set(header["written_with"]) == {"python", "numpy", "scipy", "scikit-learn"}
    assert json.dumps(header)
    save(MODELS["columns"][0], path)
    kinds = {"a": "number", "b": "number", "c": "category", "t": "category"}
    assert read_header(path)["columns"] == kinds


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(kernel=np.dot),
        RankingPursuit(2, kernel=np.dot),
        RankingPursuit(2, views=[View(kernel=np.dot), View()]),
    ],
    ids=["rls", "pursuit", "views"],
)
def test_callable_kernels_are_refused_with_a_way_out(model, path):
    with pytest.raises(ValueError, match=r"holds no code.*by name.*kernel='precomputed'"):
        save(model.fit(X, y), path)
    assert not path.exists()


class Changed(RankRLS):
    pass


@pytest.mark.parametrize(
    "model, match",
    [
        (GridSearchCV(RankRLS(), {"alpha": [1.0]}, cv=2).fit(X, y), "its best_estimator_"),
        (StandardScaler().fit(X), "Pipelines that end in such a ranker"),
        (make_pipeline(OneHotEncoder(), RankRLS()).fit(X, y), "OneHotEncoder.*skops or joblib"),
        (
            make_pipeline(CountVectorizer(), RankRLS()).fit(["aa bb", "cc dd", "aa dd"], [1, 2, 3]),
            "CountVectorizer.*skops or joblib",
        ),
        (make_pipeline(StandardScaler()).fit(X), "Pipelines that end in such a ranker"),
        (RankRLS, "RankRLS cannot be saved.*fitted"),
        ({"a": 1}, "a dict cannot be saved as a model. Model files contain fitted rankers"),
        (Changed().fit(X, y), "a Changed cannot be saved"),
        (RankRLS(), "not fitted"),
        (make_pipeline(StandardScaler(), RankRLS()), "not fitted"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_other_models_are_refused_with_advice(model, match, path):
    with pytest.raises(ValueError, match=match):
        save(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    "name, value, match",
    [
        ("mine", 1, "attribute 'mine'"),
        ("coef_", np.array([1.0, np.nan, 0, 0]), "not finite"),
        ("coef_", np.zeros(5), "does not fit"),
        ("coef_", np.zeros(4, complex), "expected plain numbers"),
        ("alpha", object(), "RankRLS.alpha is a object"),
        ("alpha", 10**30, "64 bits"),
        ("alpha", {1, 2}, "is a set"),
        ("alpha", np.ma.masked_array([1, 2]), "MaskedArray"),
        ("alpha", np.longdouble(1), "float128|plain numbers"),
    ],
)
def test_a_model_that_was_tampered_with_is_refused(name, value, match, path):
    model = RankRLS().fit(X, y)
    setattr(model, name, value)
    with pytest.raises(ValueError, match=match):
        save(model, path)
    assert not path.exists()


@pytest.mark.parametrize("notes", [{"a": np.nan}, {"a": object()}, {"a": {1, 2}}])
def test_notes_that_json_cannot_hold_are_refused(notes, path):
    with pytest.raises(ValueError, match=r"cannot be saved: .*JSON"):
        save(RankRLS().fit(X, y), path, notes=notes)


def test_models_trained_with_dask_are_saved_as_local_ones(path):
    da = pytest.importorskip("dask.array")
    from rankwise.distributed import RankRLS as ClusterRankRLS

    codes = da.from_array(np.repeat(np.arange(6), 6), chunks=18)
    model = ClusterRankRLS()
    model.fit(da.from_array(X, chunks=(18, 4)), da.from_array(y, chunks=18), codes)
    with pytest.raises(ValueError, match=r"its to_local\(\)"):
        save(model, path)
    back = round_trip(model.to_local(), path)
    assert back.predict(NEW).tobytes() == model.predict(NEW).tobytes()


def test_compressing_suffixes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"not compressed; choose a name such as model\.rw"):
        save(RankRLS().fit(X, y), tmp_path / "model.rw.gz")


def test_a_failing_write_leaves_the_old_file(path, monkeypatch):
    save(MODELS["linear"][0], path)
    before = path.read_bytes()

    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="No space left"):
        save(MODELS["margin"][0], path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


class MeanRanker(RankerMixin, BaseEstimator):
    """Scores items by the weighted mean of their features."""

    _fitted: ClassVar[FittedSchema] = {"weight_": Floats("features")}

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y, groups=None):
        X = validate_X(self, X)
        self.weight_ = np.abs(X).mean(axis=0) ** self.power
        return self

    def predict(self, X):
        return validate_X(self, X, reset=False) @ self.weight_


def test_a_new_estimator_is_its_class_and_one_line_of_the_registry(path, monkeypatch):
    model = MeanRanker(power=2.0).fit(X, y)
    with pytest.raises(ValueError, match="a MeanRanker cannot be saved"):
        save(model, path)
    monkeypatch.setitem(ESTIMATORS, "MeanRanker", MeanRanker)
    save(make_pipeline(StandardScaler(), MeanRanker()).fit(X, y), path)
    assert read_header(path)["ranker"] == "MeanRanker"
    save(model, path)
    back = load(path)
    assert back.get_params() == model.get_params()
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    model.note_ = "not declared"
    with pytest.raises(ValueError, match="'note_' that its class does not declare"):
        save(model, path)
