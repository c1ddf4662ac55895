"""Model files that were damaged or made to harm: a clear error or a model that works, no more.

    python -c "from tests.persistence.test_persistence_hostile import *; print(fuzz(9_999, 1))"

runs the fuzz test for longer.
"""

from __future__ import annotations

import copy
import io
import json
import pickle
import random
import re
import struct
import tempfile
import tracemalloc
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rankwise.persistence import ModelFileError, load, read_header, save
from tests.persistence.saved_models import all_models

MODELS = all_models()
FUZZED = (
    *("linear", "two outputs", "rows", "sparse rbf", "precomputed basis", "margin rbf"),
    *("search with names", "views", "kernel views", "random views", "pursuit", "feature pursuit"),
    *("pursuit of views with columns", "frame pipeline", "PowerTransformer()", "sparse pipeline"),
    *("QuantileTransformer(n_quantiles=9, output_distribution='normal')", "additive_chi2"),
    *("columns", "columns, rare kinds", "selected columns", "bins", "union", "SplineTransformer()"),
)


def node(loader, name, **parts):
    """A node of the tree as skops has it."""
    module, _, short = name.rpartition(".")
    return {"__class__": short, "__module__": module, "__loader__": loader, **parts}


def plain(value):
    """The node of a value that is no array."""
    if isinstance(value, (list, tuple)):
        loader = "ListNode" if isinstance(value, list) else "TupleNode"
        name = f"builtins.{type(value).__name__}"
        return node(loader, name, content=[plain(entry) for entry in value])
    if isinstance(value, dict):
        keys = [node("TypeNode", f"builtins.{type(key).__name__}") for key in value]
        types = node("ListNode", "builtins.list", content=keys)
        content = {key: plain(entry) for key, entry in value.items()}
        return node("DictNode", "builtins.dict", content=content, key_types=types)
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def array(number=0, name="numpy.ndarray"):
    return node("NdArrayNode", name, type="numpy", file=f"a{number}.npy", __id__=number + 1)


def made(kind, *parts):
    content = [plain(kind), node("TupleNode", "builtins.tuple", content=list(parts))]
    return node("TupleNode", "rankwise.persistence.parts.Made", content=content)


ODD_VALUES = (
    *(None, True, -1, 0, 1, 3, 2**31, 2**62, 10**30, 0.5, -1e300, 1e-320, "", "a0", "a1", "rbf"),
    *("linear", "precomputed", "chi2", "RankRLS", "Pipeline", "View", "nan", [], {}, [[]], [0, 0]),
    *("sklearn.pipeline", "rankwise", "numpy", "int64", "ObjectNode", "TypeNode", "a0.npy", "null"),
    *map(plain, (None, True, -1, 0, 1, 3, 2**31, 0.5, -1e300, "", "rbf", "linear", "chi2", [], {})),
    *map(plain, (float("nan"), float("inf"), (4,), (2**40,), [0, 0], {"a": 1}, "precomputed", ())),
    *(array(0), array(1), array(9999), array(0, "numpy.int64"), array(1, "numpy.float64")),
    *(made("Kernel", *map(plain, (name, None, 3, 1, {}))) for name in ("linear", "chi2", "evil")),
    *(made("Metric", plain("ndcg@x")), made("csr_array", plain((4, 4)), *[array(0)] * 3)),
    node("SliceNode", "builtins.slice", content={"start": 0, "stop": 1, "step": None}),
    node("ObjectNode", "rankwise.RankRLS", content=plain({})),
    node("TypeNode", "numpy.float64"),
)


def bytes_of(name):
    with tempfile.TemporaryDirectory() as folder:
        save(MODELS[name][0], Path(folder) / "model.rw")
        return (Path(folder) / "model.rw").read_bytes()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(members, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of members that are there twice
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def changed(content, change):
    """The file with a changed header: `change` gets the JSON and may return another one."""
    members = members_of(content)
    header = json.loads(members["header.json"])
    new = change(header)
    members["header.json"] = json.dumps(header if new is None else new).encode()
    return zipped(members)


def grown(content, change):
    """The file with a changed tree."""
    members = members_of(content)
    tree = json.loads(members["schema.json"])
    change(tree)
    members["schema.json"] = json.dumps(tree).encode()
    return zipped(members)


def attributes(tree):
    return tree["content"]["content"]


def put(key, value):
    """A change of the tree: this attribute has that node."""

    def change(tree):
        if key not in attributes(tree):
            types = tree["content"]["key_types"]["content"]
            types.append(node("TypeNode", "builtins.str"))
        attributes(tree)[key] = value

    return change


def move(key, other):
    """A change of the tree: this attribute has another name."""

    def change(tree):
        put(other, attributes(tree)[key])(tree)
        take(key)(tree)

    return change


def swap(parts, one, other):
    parts[one], parts[other] = parts[other], parts[one]


def take(key):
    """A change of the tree: this attribute is gone."""

    def change(tree):
        del attributes(tree)[key]
        tree["content"]["key_types"]["content"].pop()

    return change


@pytest.fixture(scope="module")
def linear():
    return bytes_of("linear")


@pytest.fixture
def refused(tmp_path):
    """Check that a file of this content is refused by `load` with a message that fits."""

    def check(content, match):
        path = tmp_path / "odd.rw"
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=match) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert caught.value.path == str(path)

    return check


@pytest.mark.parametrize(
    "content, match",
    [
        (b"", "the file is empty"),
        (b"1 qid:1 1:0.5\n" * 9, "not a rankwise model"),
        (pickle.dumps([1]), "a pickle, which is never read"),
        (b"\x1f\x8b" + b"0" * 99, "compressed by gzip"),
        (b"PK\x03\x04", "cut short"),
        (zipped({"a.txt": b"x"}), "without header.json"),
        (zipped({"a0.npy": npy(np.zeros(3))}), "without header.json"),
        (zipped({"header.json": b"{}"}), "does not say so"),
        (zipped({"header.json": b"[]"}), "not a JSON object"),
        (zipped({"header.json": b"[" * 100_000}), "'header.json' is damaged"),
        (zipped({"schema.json": b"{}"}), "without header.json"),
        (zipped({"header.json": b'{"a": NaN}'}), "has NaN"),
        (zipped({"header.json": b'{"a": 1e999}'}), "1e999, which is too large"),
        (zipped({"header.json": b'{"a": ' + b"9" * 5000 + b"}"}), "too large"),
        (zipped({"header.json": b'{"a": 1, "a": 2}'}), "twice"),
        (zipped({"header.json": b"\xff\xfe"}), "damaged"),
        (zipped({"header.json": b" " * (2**24 + 1)}), "at most 16,777,216"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_files_that_are_no_models_are_refused(content, match, refused):
    refused(content, match)


def test_truncated_files_are_refused_at_every_length(linear, tmp_path):
    path = tmp_path / "cut.rw"
    for length in range(0, len(linear), 7):
        path.write_bytes(linear[:length])
        for read in (load, read_header):
            with pytest.raises(ModelFileError, match=r"cut short|empty|not a rankwise model"):
                read(path)


@pytest.mark.parametrize(
    "name", ["../evil.npy", "/etc/passwd", "a0.txt", "A0.npy", "a0.npy/", "a.npy", "a1234567.npy"]
)
def test_unexpected_members_are_refused(name, linear, refused):
    refused(zipped({**members_of(linear), name: b"x"}), "which no model file has")


def test_arrays_that_belong_to_nothing_are_refused(linear, refused):
    members = members_of(linear) | {"a7.npy": npy(np.zeros(3))}
    refused(zipped(members), "belongs to nothing")


def test_members_that_are_there_twice_are_refused(linear, refused):
    members = list(members_of(linear).items())
    refused(zipped([*members, members[-1]]), "two members")


def test_missing_arrays_are_refused(linear, refused):
    members = members_of(linear)
    del members["a0.npy"]
    refused(zipped(members), "the array 'a0.npy' is missing")
    del members["schema.json"]
    refused(zipped(members), "'schema.json' is missing")


def test_compressed_members_are_refused_so_that_there_are_no_bombs(linear, refused):
    bomb = members_of(linear) | {"a0.npy": npy(np.zeros(10**6))}
    refused(zipped(bomb, zipfile.ZIP_DEFLATED), "compressed or encrypted")


def test_something_after_the_end_is_refused(linear, refused):
    refused(linear + b"more", "something follows its end")


def test_something_before_the_beginning_is_refused(linear, refused):
    refused(linear + linear, "before its beginning")
    refused(b"PK\x03\x04" + b"other" * 20 + linear, "before its beginning")


def with_long_end(content, n_members, shift=0):
    """A directory of so many members that only the end of a long zip tells of."""
    entry = struct.Struct("<4s6H3I5H2I").pack(b"PK\x01\x02", *[20] * 2, *[0] * 7, 6, *[0] * 6)
    directory = (entry + b"a0.npy") * n_members
    start = len(content)
    record = struct.pack(
        "<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, *[n_members] * 2, len(directory), start
    )
    at = start + len(directory) + shift
    pointer = struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, 52, 0, 0)
    return content + directory + record + pointer + end


def test_a_long_end_does_not_get_around_the_limit_of_the_directory(linear, refused):
    refused(with_long_end(linear, 2), "two members|before its beginning|without header")
    refused(with_long_end(linear, 2, shift=-5), "not where it should be")
    tracemalloc.start()
    try:
        refused(with_long_end(linear, 2**18), "table of contents is too large")
        assert tracemalloc.get_traced_memory()[1] < 2**26  # the bytes above, three times
    finally:
        tracemalloc.stop()


def test_a_header_of_many_small_parts_is_refused_before_it_takes_memory(linear, refused):
    many = b"[" + b",".join([b"[]"] * 2**19) + b"]"
    header = members_of(linear)["header.json"].replace(
        b'"notes": null', b'"notes": {"a": %s}' % many
    )
    assert many in header
    content = zipped(members_of(linear) | {"header.json": header})
    tracemalloc.start()
    try:
        refused(content, "262,144 lists and objects")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_a_tree_of_many_small_parts_is_refused_before_it_takes_memory(linear, refused):
    many = b"[" + b",".join([b"{}"] * 2**19) + b"]"
    tree = members_of(linear)["schema.json"].replace(b'"protocol": 2', b'"x": %s' % many)
    assert many in tree
    content = zipped(members_of(linear) | {"schema.json": tree})
    tracemalloc.start()
    try:
        refused(content, "'schema.json' has more than 262,144 lists and objects")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    refused(zipped(members_of(linear) | {"schema.json": b" " * (2**26 + 1)}), "at most 67,108,864")


def test_a_list_inside_a_text_does_not_get_around_the_limit_of_parts(linear, refused):
    many = json.dumps("[" + ",".join(["[]"] * 9) + "]").replace("[", "\\u005b")
    tree = members_of(linear)["schema.json"].replace(
        b'"content": "0.1"', b'"content": %s' % many.encode()
    )
    assert b"u005b" in tree
    refused(zipped(members_of(linear) | {"schema.json": tree}), "RankRLS.alpha is .*cannot keep")


def test_a_pipeline_with_a_folder_of_pickles_is_refused(refused):
    change = put("memory", plain("/tmp/pickles"))
    refused(grown(bytes_of("frame pipeline"), change), "Pipeline has 'memory'")


def test_a_pipeline_with_a_ranker_before_its_end_is_refused(refused):
    def change(tree):
        steps = attributes(tree)["steps"]["content"]
        steps.insert(1, steps[-1])

    refused(grown(bytes_of("frame pipeline"), change), "before its end is a ranker")


def test_a_changed_byte_in_an_array_is_found_by_the_checksum(linear, refused):
    members = members_of(linear)
    at = linear.index(members["a0.npy"]) + len(members["a0.npy"]) - 1
    refused(linear[:at] + bytes([linear[at] ^ 1]) + linear[at + 1 :], "damaged.*CRC")


def claim(content, old, new):
    """An array whose header claims something else, with a checksum that fits."""
    members = members_of(content)
    array = members["a0.npy"]
    assert old in array
    length = struct.unpack("<H", array[8:10])[0]
    head = array[10 : 10 + length].rstrip().replace(old, new).ljust(length - 1) + b"\n"
    members["a0.npy"] = array[:8] + struct.pack("<H", len(head)) + head + array[10 + length :]
    return zipped(members)


@pytest.mark.parametrize(
    "old, new, match",
    [
        (b"(4,)", b"(100000000000,)", r"claims shape \(100000000000,\)"),
        (b"(4,)", b"(999999999999999, 999999999999999, 9)", "claims shape"),
        (b"(4,)", b"(99999999999999999999,)", "unknown header"),
        (b"(4,)", b"(-4,)", "unknown header"),
        (b"(4,)", b"(2, 2)", "cannot score items"),
        (b"(4,)", b"(" + b"1, " * 30 + b"4)", "unknown header"),
        (b"<f8", b"|O8", "unknown header"),
        (b"<f8", b"<f7", "damaged"),
        (b"<f8", b"<c16", "unknown header"),
        (b"'<f8'", b"[('a', '<f8')]", "unknown header"),
        (b"<f8", b"<U2", "cannot score items"),
        (b"<f8", b"<M8[xx]", "damaged"),
        (b"False", b"__import__('os')", "unknown header"),
    ],
)
def test_hostile_array_headers_are_refused(old, new, match, linear, refused):
    refused(claim(linear, old, new), match)


def test_hostile_sizes_ask_for_no_memory(linear, refused):
    tracemalloc.start()
    try:
        refused(claim(linear, b"(4,)", b"(1000000000,)"), "claims shape")
        content = bytearray(linear)
        at = content.rindex(b"PK\x01\x02")
        content[at + 20 : at + 28] = struct.pack("<II", 2**31, 2**31)  # sizes in the directory
        refused(bytes(content), "larger than the file")
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def nested(depth):
    value = plain(1)
    for _ in range(depth):
        value = node("ListNode", "builtins.list", content=[value])
    return value


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda h: h.update(version="1"), "does not say so"),
        (lambda h: h.update(version=0), "does not say so"),
        (lambda h: h.update(version=2), "upgrade"),
        (lambda h: h.update(format="other"), "does not say so"),
        (lambda h: h.update(extra=1), "unknown entry 'extra'"),
        (lambda h: h.pop("notes"), "no 'notes'"),
        (lambda h: h.update(model="RankSVM"), "of another model"),
        (lambda h: h.update(ranker="RankSVM"), "of another model"),
        (lambda h: h.update(n_features=5), "of another model"),
        (lambda h: h["parameters"].update(alpha=7.0), "of another model"),
        (lambda h: h.update(parameters=[]), "no 'parameters'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_headers_are_refused(change, match, linear, refused):
    refused(changed(linear, lambda header: change(header) and None), match)


DAMAGED, ODD, FAILS = "is damaged", "cannot keep", "cannot score items"


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda t: t.update(protocol=1), "says protocol 1"),
        (lambda t: t.update(protocol=True), "says protocol True"),
        (lambda t: t.pop("protocol"), "says protocol None"),
        (lambda t: t.update(protocol=10**9), "damaged.*protocol"),
        (lambda t: t.clear(), "says protocol"),
        (lambda t: t.update(array() | {"content": 1}), "ndarray is not a ranker"),
        (lambda t: t.update(__class__="system", __module__="os"), "'os.system', which .* keep"),
        (lambda t: t.update(__class__="PairGraph"), ODD),
        (lambda t: t.update(__class__="RankSVM"), "no model|another model|attribute"),
        (lambda t: t.update(__class__=["x"]), ODD),
        (lambda t: t.update(__loader__=["x"]), DAMAGED),
        (lambda t: t.update(__loader__="ListNode"), ODD),
        (lambda t: t.update(__loader__="ConstructorFromReduceNode"), ODD),
        (lambda t: t.update(__id__=5), "twice"),
        (lambda t: t.pop("content"), DAMAGED),
        (lambda t: t.update(content=plain(None)), "has no attributes"),
        (put("evil", plain(1)), "attribute 'evil'"),
        (put("kernel", plain("evil")), "do not match"),
        (put("kernel", plain(None)), "do not match"),
        (put("kernel", plain({})), "do not match"),
        (put("kernel", plain("rbf")), "coefficients and kernel of RankRLS do not match"),
        (put("gamma", plain(-1.0)), "gamma=-1.0"),
        (put("alpha", nested(400)), DAMAGED),
        (put("alpha", node("JsonNode", "builtins.str", content="Nan", is_json=True)), ODD),
        (put("alpha", node("JsonNode", "builtins.str", content="[[]]", is_json=True)), ODD),
        (
            put("alpha", node("JsonNode", "builtins.str", content='"a" 1"', is_json=True)),
            "RankRLS|Extra",
        ),
        (put("alpha", plain(10**30)), ODD),
        (put("alpha", node("PickleNode", "builtins.str", content="x")), ODD),
        (put("alpha", node("TupleNode", "builtins.tuple", content=3)), DAMAGED),
        (put("alpha", node("SetNode", "builtins.set", content=[])), ODD),
        (put("alpha", node("BytesNode", "builtins.bytes", file="a0.npy")), ODD),
        (put("alpha", node("TypeNode", "builtins.eval")), ODD),
        (put("alpha", node("TypeNode", "subprocess.Popen")), ODD),
        (
            put("alpha", node("FunctionNode", "os.system")),
            "'os.system': a model file holds no code",
        ),
        (put("alpha", node("FunctionNode", "numpy.dot")), "holds no code"),
        (put("alpha", node("FunctionNode", "numpy.load")), "holds no code"),
        (put("alpha", node("MethodNode", "rankwise.RankRLS", content={})), "holds no code"),
        (put("alpha", node("PartialNode", "functools.partial", content={})), "holds no code"),
        (put("alpha", node("OperatorFuncNode", "operator.methodcaller", attrs=1)), "holds no code"),
        (put("alpha", node("CachedNode", "builtins.str", __id__=1)), ODD),
        (put("alpha", node("ObjectNode", "sklearn.tree.DecisionTreeRegressor")), ODD),
        (put("alpha", node("ObjectNode", "rankwise.datasets.read_letor")), ODD),
        (put("alpha", node("ObjectNode", "rankwise.make_target")), ODD),
        (put("alpha", node("RandomStateNode", "numpy.random.RandomState", content={})), ODD),
        (put("alpha", array(0, "numpy.int8")), "is no numpy.int8"),
        (put("alpha", array(0, "numpy.void")), ODD),
        (put("alpha", array(0, "numpy.memmap")), ODD),
        (put("alpha", array(7)), "'a7.npy' is missing"),
        (put("alpha", array(0) | {"file": "../x.npy"}), "missing"),
        (put("alpha", array(0) | {"__id__": 9}), "is no numpy.ndarray"),
        (put("alpha", made("Metric", plain("evil"))), DAMAGED),
        (put("alpha", made("Kernel", plain("evil"))), "kernel='evil' is unknown"),
        (put("alpha", made("evil", plain("evil"))), "has a 'evil'"),
        (put("alpha", node("TupleNode", "rankwise.persistence.parts.Made", content=[])), DAMAGED),
        (put("alpha", made("texts", array(0), array(0))), DAMAGED),
        (put("n_features_in_", plain(5)), FAILS),
        (put("n_features_in_", plain(-1)), "n_features_in_ is -1"),
        (put("n_features_in_", plain(2**60)), "n_features_in_ is 1152"),
        (take("n_features_in_"), "n_features_in_"),
        (put("feature_names_in_", plain(["a"])), "not 4 names"),
        (put("feature_names_in_", plain([1, 2, 3, 4])), "not 4 names"),
        (put("output_shape_", plain((10**12,))), FAILS),
        (put("output_shape_", plain(("a",))), FAILS),
        (put("predict", plain("x")), "attribute 'predict'"),
        (put("_scores", plain("x")), "attribute '_scores'"),
        (put("__class__", plain("x")), "attribute '__class__'"),
        (put("n_jobs", plain(2)), "attribute 'n_jobs'"),
        (put("coef_", plain("x")), "belongs to nothing"),
        (take("coef_"), "belongs to nothing"),
        (move("coef_", "mine_"), "do not match"),
        (move("coef_", "n_pairs_"), "do not match"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_trees_are_refused(change, match, linear, refused):
    refused(grown(linear, change), match)


@pytest.mark.parametrize("n_features", [5, -1, 0, True, 2**60, 10**12, "4"])
def test_a_wrong_number_of_features_is_refused_in_header_and_tree(n_features, linear, refused):
    content = grown(linear, put("n_features_in_", plain(n_features)))
    match = "cannot score|n_features_in_ is|another model|no 'n_features'"
    tracemalloc.start()
    try:
        refused(changed(content, lambda header: header.update(n_features=n_features)), match)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "name, change, match",
    [
        ("sparse rbf", lambda p: p.__setitem__(0, plain((36, 10**9))), FAILS),
        ("sparse rbf", lambda p: p.__setitem__(0, plain((10**9, 4))), "do not fit together"),
        ("sparse rbf", lambda p: p.__setitem__(0, plain((36, 2))), DAMAGED),
        ("sparse rbf", lambda p: swap(p, 2, 3), "do not fit together"),
        ("sparse rbf", lambda p: swap(p, 1, 2), "wrong kind"),
        ("sparse rbf", lambda p: p.pop(0), DAMAGED),
        ("sparse rbf", lambda p: p.pop(), "belongs to nothing"),
    ],
)
def test_hostile_sparse_matrices_are_refused(name, change, match, refused):
    def edit(tree):
        change(attributes(tree)["X_fit_"]["content"][1]["content"])

    refused(grown(bytes_of(name), edit), match)


@pytest.mark.parametrize("name", ["views", "pursuit", "random views"])
def test_kernels_of_views_that_do_not_match_are_refused(name, refused):
    def edit(tree):
        kernels = [n for n, _ in nodes_of(tree) if n["__class__"] == "Made"]
        kernels = [n for n in kernels if "Kernel" in n["content"][0]["content"]]
        kernels[0]["content"][1]["content"][0] = plain("linear" if name == "pursuit" else "evil")
        if name == "pursuit":
            kernels[0]["content"][1]["content"][1] = plain(-1.0)

    refused(grown(bytes_of(name), edit), "kernel='evil' is unknown|gamma=-1.0")


@pytest.mark.parametrize("kind", ["dok_matrix", "save_npz", "__init__"])
def test_sparse_matrices_of_other_kinds_are_refused(kind, refused):
    def edit(tree):
        attributes(tree)["X_fit_"]["content"][0] = plain(kind)

    refused(grown(bytes_of("sparse rbf"), edit), f"has a '{kind}'")


def step(tree, name):
    """The attributes of the first object of this class that was fitted."""
    found = [
        n for n, _ in nodes_of(tree) if n["__class__"] == name and n["__loader__"] == "ObjectNode"
    ]
    is_fitted = {"n_features_in_", "vocabulary_", "transformer_list"}
    return next(n for n in found if is_fitted & set(attributes(n)))


@pytest.mark.parametrize(
    "model, name, key, value, match",
    [
        (
            "PolynomialFeatures(degree=3)",
            "PolynomialFeatures",
            "_max_degree",
            10**9,
            "the limit is",
        ),
        (
            "PolynomialFeatures(degree=3)",
            "PolynomialFeatures",
            "_n_out_full",
            10**10,
            "the limit is",
        ),
        ("PolynomialFeatures(degree=3)", "PolynomialFeatures", "_n_out_full", 99, FAILS),
        ("SplineTransformer()", "SplineTransformer", "n_features_out_", 10**10, "the limit is"),
        ("columns", "ColumnTransformer", "n_jobs", 10**6, "the limit is"),
        ("columns", "ColumnTransformer", "n_jobs", "x", "its model is odd"),
        ("columns", "TfidfVectorizer", "input", "filename", "would read files"),
        ("columns", "TfidfVectorizer", "vocabulary_", {"a": 10**9}, "not numbered from 0"),
        ("columns", "TfidfVectorizer", "vocabulary_", {"a": -1}, "not numbered from 0"),
        ("columns", "OneHotEncoder", "_n_features_outs", [0], "damaged|odd|indices|column"),
        ("columns", "OneHotEncoder", "_n_features_outs", [-9], "."),
        ("bins", "OneHotEncoder", "_n_features_outs", [1, 1, 1, 1], "."),
        ("sparse pipeline", "MaxAbsScaler", "n_features_in_", 2**39, "another model|cannot score"),
        ("StandardScaler()", "StandardScaler", "n_features_in_", 2**33, "."),
        ("PolynomialFeatures(degree=3)", "PolynomialFeatures", "_n_out_full", 9, FAILS),
        ("columns", "OneHotEncoder", "categories", [["x"]], None),
        ("columns", "OneHotEncoder", "categories_", ["rbf"], "belongs to nothing|no arrays"),
        ("StandardScaler()", "StandardScaler", "with_mean", "x", None),
        ("union", "FeatureUnion", "n_jobs", 10**6, "the limit is"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_hostile_steps_are_refused_with_little_memory(
    model, name, key, value, match, refused, tmp_path
):
    content = grown(bytes_of(model), lambda tree: put(key, plain(value))(step(tree, name)))
    if match is None:  # it does no harm
        path = tmp_path / "model.rw"
        path.write_bytes(content)
        load(path).predict(MODELS[model][1])
        return
    tracemalloc.start()
    try:
        refused(content, match)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [3, 5, (1, 4)])
@pytest.mark.parametrize("name", ["MaxAbsScaler()", "sparse pipeline"])
def test_scalers_of_another_number_of_features_are_refused(shape, name, refused):
    members, scale = members_of(bytes_of(name)), MODELS[name][0][0].scale_
    found = [member for member, content in members.items() if content.endswith(scale.tobytes())]
    assert found
    refused(zipped(members | dict.fromkeys(found, npy(np.full(shape, 2.0)))), FAILS)


@pytest.mark.parametrize("bad", [10**6, -5])
def test_kinds_that_have_no_column_are_refused(bad, refused):
    """Compiled code would write outside of the matrix."""
    model, _ = MODELS["columns, rare kinds"]
    encoder = model[0].named_transformers_["kind"][-1]
    mapping = encoder._default_to_infrequent_mappings[0]
    assert (mapping >= 0).all()
    content = bytes_of("columns, rare kinds")
    for name, member in members_of(content).items():
        if member.endswith(mapping.tobytes()) and b"'<i8'" in member:
            refused(zipped(members_of(content) | {name: npy(np.full(len(mapping), bad))}), ".")
            break
    else:
        raise AssertionError("no mapping found")


def test_knots_of_splines_that_do_not_fit_are_refused(refused):
    def edit(tree):
        splines = [n for n, _ in nodes_of(tree) if n["__class__"] == "Made"]
        assert "BSpline" in splines[0]["content"][0]["content"]
        splines[0]["content"][1]["content"][2] = plain(10**6)

    refused(grown(bytes_of("SplineTransformer()"), edit), "damaged.*knots")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_coefficients_that_are_not_finite_are_refused(value, linear, refused):
    members = members_of(linear) | {"a0.npy": npy(np.array([1.0, value, 0.0, 0.0]))}
    refused(zipped(members), "not finite")


def test_row_numbers_out_of_range_are_refused(refused):
    content = bytes_of("precomputed basis")
    for bad, match in (([0, 1, 2, 3, 36], FAILS), ([0, 1, 2, 3, -1], "has the number -1")):
        for name, member in members_of(content).items():
            if b"'<i8'" in member and b"(5,)" in member:
                new = members_of(content) | {name: npy(np.array(bad))}
                refused(zipped(new), match)
                break
        else:
            raise AssertionError("no row numbers found")


def nodes(tree):
    """Every place of the JSON: (container, key)."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from nodes(value)


def nodes_of(tree):
    return [(tree, None)] * ("__class__" in tree) + [
        (inside[key], key)
        for inside, key in nodes(tree)
        if isinstance(inside[key], dict) and "__class__" in inside[key]
    ]


def is_value(inside, key):
    """Whether this is a whole node, so that another one in its place makes a tree of skops."""
    return isinstance(inside[key], dict) and "__loader__" in inside[key] and key != "key_types"


def edit_json(members, rng):
    member = "schema.json" if rng.random() < 0.9 else "header.json"
    tree = json.loads(members[member])
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        places = list(nodes(tree))
        if not places:
            break
        values = [place for place in places if is_value(*place)]
        inside, key = rng.choice(values if values and rng.random() < 0.5 else places)
        other, there = rng.choice(places)
        how = rng.randrange(6)
        if how == 0 and isinstance(inside, dict):
            del inside[key]
        elif how == 1 and isinstance(inside, dict):
            inside[rng.choice(("__class__", "coef_", "content", "file", "root"))] = inside.pop(key)
        elif how == 2:
            inside[key] = copy.deepcopy(other[there])
        elif how == 3 and isinstance(inside, list):
            inside.insert(0, copy.deepcopy(inside[key]))
        else:
            inside[key] = copy.deepcopy(rng.choice(ODD_VALUES))
    members[member] = json.dumps(tree).encode()


def edit_array(members, rng):
    name = rng.choice([name for name in members if name.endswith(".npy")])
    how = rng.randrange(4)
    if how == 0:  # numbers in the header of the array
        start = members[name][:128]
        digits = [match.span() for match in re.finditer(rb"\d+", start)]
        a, b = rng.choice(digits)
        number = str(rng.choice((0, 1, 2, 3, 4, 5, 8, 2**31, 10**14))).encode()
        members[name] = start[:a] + number + start[b:] + members[name][128:]
    elif how == 1:  # numbers of the array
        data = bytearray(members[name])
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(min(128, len(data) - 1), len(data))] = rng.choice((0, 127, 255, 240))
        members[name] = bytes(data)
    elif how == 2:  # another array altogether
        shape = tuple(rng.randrange(6) for _ in range(rng.randrange(4)))
        kind = rng.choice(("f8", "f4", "i8", "u1", "?", "U3", "M8[s]", "f2"))
        members[name] = npy(np.ones(shape).astype(kind, order=rng.choice("CF")))
    else:  # the same array, transposed or cut
        array = np.load(io.BytesIO(members[name]))
        cut = array[..., :-1] if array.ndim else np.empty(0)
        members[name] = npy(rng.choice((array.T, cut, array[..., None], array[None])))


def edit_members(members, rng):
    names = list(members)
    one, other = rng.choice(names), rng.choice(names)
    how = rng.randrange(4)
    if how == 0:
        members[one], members[other] = members[other], members[one]
    elif how == 1:
        del members[one]
    elif how == 2:
        members[rng.choice(("a99.npy", "x", "schema.json", "a0.npy"))] = members[one]
    else:
        members[one] = members[one][: rng.randrange(len(members[one]))]


def edit_bytes(content, rng):
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data)) if rng.random() < 0.5 else -1 - rng.randrange(120)
        at = max(at, -len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 2:
            del data[at : at + rng.randint(1, 5) or None]
        else:
            data[at:at] = data[: rng.randint(1, 30)]
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.1 else data)


def mutated(content, rng):
    if rng.random() < 0.25:
        return edit_bytes(content, rng)
    members = members_of(content)
    chances = ((edit_array, 0.3), (edit_json, 0.7), (edit_members, 0.2))
    for edit, chance in chances:
        if rng.random() < chance:
            edit(members, rng)
    return zipped(members)


def fuzz(count, seed):
    """Load so many mutated files; return how often each thing happened."""
    rng = random.Random(seed)
    originals = {name: bytes_of(name) for name in FUZZED}
    happened: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "mutated.rw"
        for _ in range(count):
            name = rng.choice(FUZZED)
            path.write_bytes(mutated(originals[name], rng))
            try:
                read_header(path)
            except ModelFileError:
                happened["header refused"] += 1
            try:
                model = load(path)
            except ModelFileError as error:
                happened["refused"] += 1
                happened["refused at last"] += "cannot score" in str(error)
                continue
            try:
                model.predict(MODELS[name][1])
                happened["predicted"] += 1
            except ValueError:
                happened["predict raised ValueError"] += 1
    return happened


def test_mutated_files_are_refused_or_work():
    happened = fuzz(300, seed=0)
    assert happened["refused"] > 150
    assert happened["predicted"] > 30  # some changes do no harm: these were close to real files


def test_mutated_files_take_little_memory():
    tracemalloc.start()
    try:
        fuzz(50, seed=1)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
