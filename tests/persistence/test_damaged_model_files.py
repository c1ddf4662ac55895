"""Files that no `save` has written are refused with a reason, or load and predict numbers."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

from rankwise import RankRLS
from rankwise.errors import ModelFileError
from rankwise.persistence import load, read_header, save
from tests.persistence.mutations import try_files, write
from tests.persistence.saved_models import all_models

MODELS = all_models()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rw"


def entries_of(name, path):
    """The document and the arrays of a saved model, to be changed and written again."""
    save(MODELS[name][0], path)
    with zipfile.ZipFile(path) as archive:
        entries = {member: archive.read(member) for member in archive.namelist()}
    return json.loads(entries.pop("model.json")), entries


def rewrite(path, document, arrays):
    path.write_bytes(write([("model.json", json.dumps(document).encode()), *arrays.items()]))


def array_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", pickle.dumps({"a": 1}), b"score\n1\n2\n", write([("a.txt", b"x")])],
    ids=["empty", "two bytes", "pickle", "text", "another zip"],
)
def test_what_is_no_model_is_refused(content, path):
    path.write_bytes(content)
    refused(path, "not a rankwise model")
    with pytest.raises(ModelFileError):
        read_header(path)


def test_a_cut_or_damaged_file_is_refused(path):
    save(MODELS["search"][0], path)
    whole = path.read_bytes()
    for n_bytes in (30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        refused(path, "cannot be read")
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    path.write_bytes(changed)
    refused(path, "cannot be read")


@pytest.mark.parametrize(
    "version, match",
    [(99, "upgrade rankwise"), (0, "not a rankwise model"), (1, "train again"), (2, "train again")],
)
def test_other_versions_are_refused(version, match, path):
    document, arrays = entries_of("linear", path)
    rewrite(path, document | {"version": version}, arrays)
    refused(path, match)


def test_classes_beyond_the_list_and_attributes_of_python_are_refused(path):
    document, arrays = entries_of("linear", path)
    for name in ("os.system", "Popen", "OneHotEncoder", "sklearn.pipeline.Pipeline"):
        changed = json.loads(json.dumps(document))
        changed["model"]["is"] = name
        rewrite(path, changed, arrays)
        refused(path, "not a class that model files may contain")
    for key in ("predict", "__class__", "__dict__", "mine", "_private", "fit"):
        changed = json.loads(json.dumps(document))
        changed["model"]["fitted"][key] = 1
        rewrite(path, changed, arrays)
        refused(path, "RankRLS has no|cannot be read")


def test_zip_bombs_and_foreign_entries_are_refused(path):
    document, arrays = entries_of("linear", path)
    first = ("model.json", json.dumps(document).encode())
    foreign = [("code.py", b"import os"), ("../0.npy", arrays["0.npy"]), ("1.npy", arrays["0.npy"])]
    for extra in foreign:
        path.write_bytes(write([first, *arrays.items(), extra]))
        refused(path, "entries other than its document|belong to no model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same name twice
        path.write_bytes(write([first, *arrays.items(), *arrays.items()]))
    refused(path, "entries other than its document")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(document))
        archive.writestr("0.npy", array_bytes(np.zeros(10**7)))
    refused(path, "compressed")
    path.write_bytes(write([("model.json", b"[" * 10**6), *arrays.items()]))
    refused(path, "cannot be read")
    path.write_bytes(write([("model.json", b" " * 10**7), *arrays.items()]))
    refused(path, "too large")


def test_many_words_and_values_take_little_memory(path):
    document, arrays = entries_of("search with names", path)
    many = np.full(4_000_000, "é", dtype="U1")
    best = document["model"]["fitted"]["best_estimator_"]
    name = best["fitted"]["feature_names_in_"]["words"]
    rewrite(path, document, arrays | {f"{name}.npy": array_bytes(many)})
    tracemalloc.start()
    refused(path, "too many strings")
    rewrite(path, document | {"notes": {"a": [[]] * 200_000}}, arrays)
    tracemalloc.reset_peak()
    assert load(path) is not None
    assert tracemalloc.get_traced_memory()[1] < 10**8
    tracemalloc.stop()
    rewrite(path, document | {"notes": {"a": [[]] * 900_000}}, arrays)
    refused(path, "too many values")


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(5),
        np.zeros((4, 1)),
        np.zeros(4, dtype=int),
        np.full(4, np.nan),
        np.zeros(4, dtype=">f8"),
        np.zeros((0, 10**6)),
        np.zeros(4, dtype=[("a", "f8")]),
        np.array(["a", "b", "c", "d"]),
    ],
    ids=str,
)
def test_arrays_of_another_size_or_type_than_the_class_needs_are_refused(array, path):
    document, _ = entries_of("linear", path)
    rewrite(path, document, {"0.npy": array_bytes(array)})
    refused(path, "cannot be read")


def test_arrays_that_lie_about_their_size_or_hold_objects_are_refused(path):
    document, arrays = entries_of("linear", path)
    plain = arrays["0.npy"]
    for old, new in [(b"(4,), }", b"(9**9,)"), (b"(4,), }  ", b"(10**9,)}"), (b"(4,)", b"(5,)")]:
        rewrite(path, document, {"0.npy": plain.replace(old, new)})
        refused(path, "cannot be read")
    objects = io.BytesIO()
    np.save(objects, np.array([{"a": 1}] * 4, dtype=object), allow_pickle=True)
    rewrite(path, document, {"0.npy": objects.getvalue()})
    refused(path, "expected plain numbers or text")


def test_trees_with_loops_and_sparse_matrices_with_entries_outside_are_refused(path):
    model = MODELS["trees"][0]
    for name in ("left_", "right_", "feature_", "roots_"):
        document, arrays = entries_of("trees", path)
        number = document["model"]["fitted"][name]["array"]
        values = getattr(model, name).copy()
        for odd in (-1, 10**9, 0):
            values[-1] = odd
            rewrite(path, document, arrays | {f"{number}.npy": array_bytes(values)})
            if odd or name in ("left_", "right_"):
                refused(path, "trees|negative")
    document, arrays = entries_of("sparse rbf", path)
    indptr = document["model"]["fitted"]["X_fit_"]["sparse"][2]["array"]
    starts = np.load(io.BytesIO(arrays[f"{indptr}.npy"]))
    for odd in (10**9, -1, 2**30):
        broken = starts.copy()
        broken[1], broken[-1] = odd, 0
        rewrite(path, document, arrays | {f"{indptr}.npy": array_bytes(broken)})
        refused(path, "rows that end before they begin")
    broken, half = starts.copy(), np.iinfo(starts.dtype).max // 2 + 1
    broken[1:3] = half, -half - 5  # the difference is beyond the whole numbers of its type
    rewrite(path, document, arrays | {f"{indptr}.npy": array_bytes(broken)})
    refused(path, "rows that end before they begin")


def test_trees_that_share_a_chain_of_nodes_would_take_hours_and_are_refused(path):
    document, arrays = entries_of("trees", path)
    nodes = np.arange(2001)
    left, right = nodes.copy(), nodes.copy()
    left[:-1:2], right[:-1:2] = nodes[:-1:2] + 2, nodes[:-1:2] + 1
    zeros = dict.fromkeys(("feature_", "gap_left_", "set_", "value_"), np.zeros(2001))
    changed = {"left_": left, "right_": right, "threshold_": np.full(2001, 1e9), **zeros}
    for name, values in {**changed, "roots_": np.zeros(10**4)}.items():
        number = document["model"]["fitted"][name]["array"]
        kind = getattr(MODELS["trees"][0], name).dtype
        arrays[f"{number}.npy"] = array_bytes(values.astype(kind))
    rewrite(path, document, arrays)
    refused(path, "the roots do not match")


def with_features(name, n_features, path):
    """Change the number of features wherever it is said, those of a sparse matrix among them."""
    document, arrays = entries_of(name, path)
    text = json.dumps(document).replace('"n_features_in_": 4', f'"n_features_in_": {n_features}')
    rewrite(
        path, json.loads(text.replace('"shape": [36, 4]', f'"shape": [36, {n_features}]')), arrays
    )


@pytest.mark.parametrize("n_features", [10**6, 10**8, 999999999999])
def test_a_large_number_of_features_takes_no_memory(n_features, path):
    names = ("linear", "sparse rbf", "columns of an array", "trees", "margin pipeline")
    for name in (*names, "pursuit of points"):
        with_features(name, n_features, path)
        tracemalloc.start()
        try:
            load(path)
        except ModelFileError:
            pass
        else:  # products with sparse items take 8 bytes a column
            assert (name, n_features) == ("sparse rbf", 10**6)
        assert tracemalloc.get_traced_memory()[1] < 10**7
        tracemalloc.stop()


def test_texts_of_many_n_grams_and_characters_that_there_are_not_are_refused(path):
    save(RankRLS(kernel="ngram").fit(["abc", "abd", "xyz", "aab"], [1, 2, 3, 4]), path)
    with zipfile.ZipFile(path) as archive:
        entries = {member: archive.read(member) for member in archive.namelist()}
    document = json.loads(entries.pop("model.json"))
    document["model"]["parameters"]["kernel_params"] = {"dict": {"ngram_range": [1, 100]}}
    number = document["model"]["fitted"]["X_fit_"]["words"]
    long = np.array([["ab" * 10**4]] * 4)
    rewrite(path, document, entries | {f"{number}.npy": array_bytes(long)})
    refused(path, "n-grams")
    document, arrays = entries_of("search", path)
    number = document["model"]["fitted"]["cv_results_"]["dict"]["groups"]["words"]
    labels = np.load(io.BytesIO(arrays[f"{number}.npy"]))
    labels.view(np.uint32)[0] = 2**31 - 1
    rewrite(path, document, arrays | {f"{number}.npy": array_bytes(labels)})
    refused(path, "invalid Unicode")


def test_200_mutated_files_load_and_predict_or_are_refused(path):
    n_loaded, _ = try_files(MODELS, 200, path, np.random.default_rng(24))
    assert 10 < n_loaded < 100
