"""A model file gives back what was saved: parameters, attributes, predictions to the last bit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Memory
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import rankwise
from rankwise import RankingPursuit, RankRLS, RankRLSCV, RankSVM, View
from rankwise.estimators.base import RankerMixin
from rankwise.features import FeatureMap, Kernel
from rankwise.persistence import ModelFileError, load, read_header, save
from rankwise.persistence.keeping import FORGOTTEN_ATTRIBUTES
from rankwise.persistence.model_file import FORMAT_VERSION
from rankwise.persistence.parts import STEPS
from tests.persistence.saved_models import GROUPS, NEW, NEW_FRAME, X, all_models, y

MODELS = all_models()


def assert_same(one, other, where="model"):
    """Equal in type, content, dtype and memory order, all the way down."""
    if isinstance(one, np.str_):
        one = str(one)
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.shape == other.shape, where
        assert one.flags.c_contiguous <= other.flags.c_contiguous, where
        assert one.flags.f_contiguous <= other.flags.f_contiguous, where
        assert other.flags.writeable, where
        if one.dtype == object:
            assert_same(one.tolist(), other.tolist(), where)
        else:
            np.testing.assert_array_equal(one, other, err_msg=where, strict=True)
    elif sp.issparse(one):
        for part in ("data", "indices", "indptr", "shape"):
            assert_same(getattr(one, part), getattr(other, part), f"{where}.{part}")
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{k}]")
    elif isinstance(one, (BaseEstimator, Kernel, BSpline, make_column_selector)):
        kept = {k: v for k, v in vars(one).items() if k not in FORGOTTEN_ATTRIBUTES}
        assert_same(kept, {k: vars(other)[k] for k in kept}, type(one).__name__)
        assert set(kept) == set(vars(other))
    else:
        assert one == other or (one != one and other != other), where


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rw"


def round_trip(model, path):
    save(model, path)
    return load(path)


@pytest.mark.parametrize("layout", [np.s_[:, ::2], np.s_[:, ::-1], np.s_[::2]])
def test_training_items_with_steps_in_memory_give_the_same_bits_too(layout, path):
    wide = np.random.default_rng(0).standard_normal((200, 24))
    items = wide[layout]
    model = RankRLS(kernel="rbf").fit(items, np.arange(len(items)))
    back = round_trip(model, path)
    np.testing.assert_array_equal(model.predict(items), back.predict(items), strict=True)


@pytest.mark.parametrize("name", MODELS)
def test_everything_survives_and_predictions_are_equal_to_the_last_bit(name, path):
    model, new = MODELS[name]
    back = round_trip(model, path)
    assert_same(model, back)
    for method in ("predict", "rank", "predict_views"):
        if hasattr(model, method):
            expected = getattr(model, method)(new)
            assert expected.tobytes() == getattr(back, method)(new).tobytes(), method
            assert expected.dtype == getattr(back, method)(new).dtype
    if hasattr(model, "staged_predict"):
        before, after = list(model.staged_predict(new)), list(back.staged_predict(new))
        assert len(before) > 1
        assert np.stack(before).tobytes() == np.stack(after).tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_gives_the_same_bytes_also_after_a_round_trip(name, tmp_path):
    model, _ = MODELS[name]
    first, second = tmp_path / "1.rw", tmp_path / "2.rw"
    save(round_trip(model, first), second)
    forgets = bool(read_header(first)["forgotten"])
    assert (first.read_bytes() == second.read_bytes()) is not forgets


def classes_in(value):
    """Names of the classes of all estimators inside."""
    if isinstance(value, (BaseEstimator, make_column_selector)):
        yield type(value).__name__
        value = vars(value)
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, (list, tuple)) or type(value).__name__ == "dict_values":
        for entry in value:
            yield from classes_in(entry)


def test_every_ranker_and_every_step_that_files_know_is_among_the_models():
    seen = {name for model, _ in MODELS.values() for name in classes_in(model)}
    public = [getattr(rankwise, name) for name in rankwise.__all__]
    rankers = {kind for kind in public if isinstance(kind, type) and issubclass(kind, RankerMixin)}
    assert len(rankers) >= 8
    expected = {kind.__name__ for kind in rankers} | {n for names in STEPS.values() for n in names}
    assert expected - seen == set()


def test_files_name_public_homes_only_so_that_classes_may_move(path, monkeypatch):
    model, new = MODELS["pursuit of views with columns"]
    save(model, path)
    before = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        tree = archive.read("schema.json").decode()
    homes = set(re.findall(r'"__module__": "([^"]*)"', tree))
    assert homes == {"builtins", "numpy", "rankwise", "rankwise.persistence.parts"}
    for kind in (RankingPursuit, FeatureMap, View):  # as if they had moved
        monkeypatch.setattr(kind, "__module__", "rankwise.a_new_place.of_modules")
    save(model, path)
    assert path.read_bytes() == before
    assert load(path).predict(new).tobytes() == model.predict(new).tobytes()


@pytest.mark.parametrize("name", ["columns", "frame pipeline", "SplineTransformer()"])
def test_files_name_no_private_modules_of_scikit_learn(name, path):
    save(MODELS[name][0], path)
    with zipfile.ZipFile(path) as archive:
        assert not re.search(r'"__module__": "[^"]*\._', archive.read("schema.json").decode())


def test_score_works_after_loading(path):
    model, _ = MODELS["search"]
    assert round_trip(model, path).score(X, y, GROUPS) == model.score(X, y, GROUPS)


def test_a_loaded_model_can_be_trained_again(path):
    model, _ = MODELS["sparse rbf"]
    back = round_trip(model, path).fit(X, y, GROUPS)
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
        arrays = [archive[name] for name in archive.files if name != "header.json"]
    assert any(np.array_equal(array, model.coef_) for array in arrays)


def test_feature_names_are_checked_after_loading(path):
    back = round_trip(MODELS["search with names"][0], path)
    with pytest.raises(ValueError, match="feature names should match"):
        back.predict(NEW_FRAME[["x", "age", "bm25", "länge"]])


def test_chunk_sums_are_forgotten_and_the_header_says_so(path):
    model, _ = MODELS["chunks"]
    back = round_trip(model, path)
    assert read_header(path)["forgotten"] == ["the sums from which partial_fit goes on"]
    assert back.n_samples_seen_ == 36
    assert back.partial_fit(X[:9], y[:9]).n_samples_seen_ == 9
    assert model.n_samples_seen_ == 36


def test_generators_and_splitters_are_forgotten_and_the_header_says_so(path):
    model = RankRLSCV(cv=GroupKFold(3), random_state=np.random.default_rng(0)).fit(X, y, GROUPS)
    back = round_trip(model, path)
    assert (back.cv, back.random_state) == ("auto", None)
    assert back.predict(NEW).tobytes() == model.predict(NEW).tobytes()
    assert read_header(path)["forgotten"] == ["cv (GroupKFold)", "random_state (Generator)"]


@pytest.mark.parametrize("memory", [Memory(None), "a folder"])
def test_memory_of_a_pipeline_from_which_fit_reads_pickles_is_forgotten(
    memory, path, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    model = make_pipeline(StandardScaler(), RankRLS(), memory=memory).fit(X, y)
    assert round_trip(model, path).memory is None
    assert read_header(path)["forgotten"] == [f"memory ({type(memory).__name__})"]


def test_files_with_the_longer_end_of_a_zip_above_4_gib_load(path, monkeypatch):
    model, items = MODELS["views"]
    save(model, path)
    with zipfile.ZipFile(path) as archive:
        limit = archive.start_dir - 1
    assert b"PK\x06\x07" not in path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZIP64_LIMIT", limit)
        save(model, path)
    assert b"PK\x06\x07" in path.read_bytes()[-42:]
    np.testing.assert_array_equal(load(path).predict(items), model.predict(items))


def test_lists_of_folds_are_kept(path):
    folds = [(np.arange(18), np.arange(18, 36)), (np.arange(18, 36), np.arange(18))]
    assert_same(folds, round_trip(RankRLSCV(cv=folds).fit(X, y, GROUPS), path).cv)


def test_header_tells_class_versions_parameters_and_notes_without_arrays(path):
    save(MODELS["margin pipeline"][0], path, notes={"data": "set A", "rows": [1, 2]})
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(path.with_suffix(".x"), "w") as other:
        for info in archive.infolist():  # read_header must not look at the arrays
            content = archive.read(info)
            other.writestr(info, content if info.filename == "header.json" else b"x" * len(content))
    header = read_header(path.with_suffix(".x"))
    assert header["format"] == "rankwise model"
    assert header["version"] == FORMAT_VERSION
    assert (header["model"], header["ranker"], header["n_features"]) == ("Pipeline", "RankSVM", 4)
    assert header["notes"] == {"data": "set A", "rows": [1, 2]}
    assert header["parameters"]["alpha"] == 0.1
    assert set(header["parameters"]) == set(RankSVM().get_params())
    assert set(header["written_with"]) == {"python", "numpy", "scipy", "scikit-learn", "skops"}
    assert json.dumps(header)


def test_parameters_in_the_header_are_readable(path):
    save(MODELS["views"][0], path)
    assert read_header(path)["parameters"]["views"] == ["View", "View", "View"]
    save(MODELS["list"][0], path)
    parameters = read_header(path)["parameters"]
    assert (parameters["alpha"], parameters["random_state"]) == (0.1, 3)
    save(MODELS["search with names"][0], path)
    parameters = read_header(path)["parameters"]
    assert (parameters["gamma"], parameters["scoring"]) == ([0.1, 1.0], "concordance")


@pytest.mark.parametrize(
    "model", [RankRLS(kernel=np.dot), RankSVM(kernel=np.dot)], ids=["rls", "svm"]
)
def test_callable_kernels_are_refused_with_a_way_out(model, path):
    with pytest.raises(ValueError, match=r"holds no code.*by name.*kernel='precomputed'"):
        save(model.fit(X, y), path)
    assert not path.exists()


def test_callable_kernels_of_views_and_pursuits_are_refused(path):
    with pytest.raises(ValueError, match="holds no code"):
        save(RankingPursuit(2, kernel=np.dot).fit(X, y), path)
    with pytest.raises(ValueError, match="holds no code"):
        save(RankingPursuit(2, views=[View(kernel=np.dot), View()]).fit(X, y), path)


@pytest.mark.parametrize("model", [RankRLS(), make_pipeline(StandardScaler(), RankRLS())], ids=str)
def test_unfitted_models_are_refused(model, path):
    with pytest.raises(NotFittedError):
        save(model, path)


@pytest.mark.parametrize(
    "model, match",
    [
        (GridSearchCV(RankRLS(), {"alpha": [1.0]}, cv=2).fit(X, y), "Save its best_estimator_"),
        (StandardScaler().fit(X), "Pipeline with a ranker"),
        (
            make_pipeline(SelectKBest(f_regression, k=1), RankRLS()).fit(X, y),
            r"\[1\] is a .*SelectKBest",
        ),
        (
            make_pipeline(FunctionTransformer(lambda items: items), RankRLS()).fit(X, y),
            r"\.func is the function .*lambda.*holds no code.*np\.log1p",
        ),
        (make_pipeline(StandardScaler()).fit(X), "StandardScaler is not a ranker"),
        (make_pipeline(make_pipeline(RankRLS())).fit(X, y), "Pipeline is not a ranker"),
        (RankRLS, "is a class"),
        ({"a": 1}, "a dict cannot be saved as a model. Model files hold rankers"),
    ],
    ids=["search", "scaler", "selection", "function", "no ranker", "nested", "class", "dict"],
)
def test_other_models_are_refused_with_advice(model, match, path):
    with pytest.raises(ValueError, match=match):
        save(model, path)
    assert not path.exists()


class Changed(RankRLS):
    pass


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda model: setattr(model, "mine", 1), "attribute 'mine'.*notes"),
        (lambda model: setattr(model, "coef_", np.array([1.0, np.nan, 0, 0])), "not finite"),
        (lambda model: setattr(model, "coef_", np.zeros(5)), "cannot score items"),
        (
            lambda model: setattr(model, "kernel", "rbf"),
            "coefficients and kernel of RankRLS do not match",
        ),
        (
            lambda model: setattr(model, "alpha", object()),
            "RankRLS.alpha .*cannot keep; expected num",
        ),
        (lambda model: setattr(model, "alpha", 10**30), "which is too large"),
        (lambda model: setattr(model, "alpha", {True: 2}), "expected strings or whole numbers"),
        (lambda model: setattr(model, "alpha", {1, 2}), "cannot keep"),
        (
            lambda model: setattr(model, "alpha", np.zeros(2, complex)),
            "only plain numbers and strings",
        ),
        (lambda model: setattr(model, "alpha", np.longdouble(1)), "cannot keep"),
        (lambda model: setattr(model, "alpha", np.ma.masked_array([1, 2])), "cannot keep"),
        (lambda model: setattr(model, "alpha", np.array(None)), "cannot be saved"),
        (lambda model: setattr(model, "__class__", Changed), "a Changed cannot be saved"),
    ],
)
def test_a_model_that_was_tampered_with_is_refused(change, match, path):
    model = RankRLS().fit(X, y)
    change(model)
    with pytest.raises(ValueError, match=match):
        save(model, path)
    assert not path.exists()


@pytest.mark.parametrize("notes", [[1], {1: 2}, {"a": np.nan}, {"a": object()}, {"a": {1, 2}}])
def test_notes_that_json_cannot_hold_are_refused(notes, path):
    with pytest.raises(ValueError, match="notes cannot be written as JSON"):
        save(RankRLS().fit(X, y), path, notes=notes)


def test_odd_parameter_values_survive(path):
    groups = np.array([np.datetime64("2020-01-01", "D") + k for k in range(6)]).repeat(6)
    alphas = RankRLSCV(range(1, 4), n_basis=None, kernel_params={}).fit(X, y, groups)
    back = round_trip(alphas, path)
    assert back.alphas == [1, 2, 3]
    assert_same(alphas.cv_results_["groups"], back.cv_results_["groups"])
    model = RankRLS(tol=np.float32(1e-8), max_iter=float("inf")).fit(X, y)
    model.alpha = np.arange(3, dtype=">i4")
    back = round_trip(model, path)
    assert back.max_iter == float("inf")
    assert back.alpha.tolist() == [0, 1, 2]
    assert type(back.tol) is np.float32


def test_models_trained_with_dask_are_saved_as_local_ones(path):
    da = pytest.importorskip("dask.array")
    from rankwise.dask import RankRLS as ClusterRankRLS
    from rankwise.dask import RankSVM as ClusterRankSVM

    for known in (ClusterRankRLS, ClusterRankSVM):
        codes = da.from_array(np.repeat(np.arange(6), 6), chunks=18)
        model = known().fit(da.from_array(X, chunks=(18, 4)), da.from_array(y, chunks=18), codes)
        with pytest.raises(ValueError, match=r"Save model.to_local\(\)"):
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

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        save(MODELS["sparse rbf"][0], path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_folders_that_do_not_exist_and_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        save(RankRLS().fit(X, y), tmp_path / "no" / "model.rw")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "model.rw")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


@pytest.mark.parametrize("use", [lambda path: save(MODELS["linear"][0], path), load])
def test_without_skops_the_extra_is_named_and_headers_are_read(use, path, monkeypatch):
    save(MODELS["linear"][0], path)
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ModuleNotFoundError, match=r"need skops; .*pip install skops"):
        use(path)
    assert read_header(path)["model"] == "RankRLS"


def test_skops_is_imported_when_it_is_used():
    code = "import sys, rankwise.persistence; assert 'skops' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_strings_are_written_as_arrays(path):
    words = [*(f"wörd {k}" for k in range(5000)), "", "\ud800", "a\0b"]
    model = RankRLS().fit(X, y)
    model.history_, model.solver_ = (
        dict(zip(words, range(len(words)), strict=True)),
        np.array(words, object),
    )
    back = round_trip(model, path)
    assert list(back.history_.items()) == list(model.history_.items())
    assert_same(model.solver_, back.solver_)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("schema.json").file_size < 10_000
    model.history_ = dict.fromkeys(words, True) | {"a": 2**70}
    with pytest.raises(ValueError, match="cannot keep"):
        save(model, path)


def test_an_array_in_two_places_stays_one(path):
    model = RankRLS(kernel="rbf", basis=X[:5]).fit(X, y)
    model.X_fit_ = model.basis
    back = round_trip(model, path)
    assert back.X_fit_ is back.basis


def test_a_newer_format_is_refused_with_both_versions(path):
    save(MODELS["linear"][0], path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    header |= {"version": FORMAT_VERSION + 1, "rankwise": "9.9.0", "something": "new"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
    for read in (load, read_header):
        with pytest.raises(ModelFileError, match=r"by rankwise '9\.9\.0' \(format 2\).*upgrade"):
            read(path)
