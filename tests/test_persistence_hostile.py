"""Model files that were damaged or made to harm: a clear error or a model that works, no more.

    python -c "from tests.test_persistence_hostile import fuzz; print(fuzz(10_000, seed=1))"

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
from tests.saved_models import all_models

MODELS = all_models()
FUZZED = (
    *("linear", "two outputs", "rows", "sparse rbf", "precomputed basis", "margin rbf"),
    *("search with names", "views", "kernel views", "random views", "pursuit", "feature pursuit"),
    *("pursuit of views with columns", "frame pipeline", "PowerTransformer()", "sparse pipeline"),
    *("QuantileTransformer(n_quantiles=9, output_distribution='normal')", "additive_chi2"),
)
ODD_VALUES = (
    *(None, True, -1, 0, 1, 3, 2**31, 2**62, 10**30, 0.5, -1e300, 1e-320, "", "a0", "a1", "rbf"),
    *("linear", "precomputed", "chi2", "RankRLS", "Pipeline", "View", "nan", [], {}, [[]], [0, 0]),
    *({"array": "a0"}, {"array": "a9999"}, {"float": "nan"}, {"float": "inf"}, {"tuple": []}),
    *({"tuple": [4]}, {"tuple": [2**40]}, {"dict": {}}, {"scalar": ["int8", 300]}, {"objects": []}),
    *({"scalar": ["float64", 2.0]}, {"slice": [0, 1, None]}, {"metric": "ndcg@x"}, {"code": "1"}),
    {"estimator": {"class": "RankRLS", "parameters": {}, "state": {}}},
    {"record": {"class": "Kernel", "fields": {"function": "linear"}}},
    {"record": {"class": "Kernel", "fields": {"function": "chi2"}}},
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


def state(header):
    return header["content"]["estimator"]["state"]


def parameters(header):
    return header["content"]["estimator"]["parameters"]


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
        (zipped({"header.json": b"[" * 100_000}), "damaged or cut short"),
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
    refused(zipped(members), "the array 'a0' is missing")


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


def test_a_pipeline_with_a_folder_of_pickles_is_refused(refused):
    def edit(header):
        parameters(header).update(memory="/tmp/pickles")

    refused(changed(bytes_of("frame pipeline"), edit), "Pipeline has 'memory'")


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
        (b"(4,)", b"(2, 2)", r"coef_ has shape \(2, 2\)"),
        (b"(4,)", b"(" + b"1, " * 30 + b"4)", "unknown header"),
        (b"<f8", b"|O8", "unknown header"),
        (b"<f8", b"<f7", "damaged"),
        (b"<f8", b"<c16", "unknown header"),
        (b"'<f8'", b"[('a', '<f8')]", "unknown header"),
        (b"<f8", b"<U2", "of odd kind"),
        (b"<f8", b"<i8", "of odd kind"),
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
    value: object = 1
    for _ in range(depth):
        value = [value]
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
        (lambda h: h.update(model="RankSVM"), "says that it holds .RankSVM"),
        (lambda h: h.update(content={}), "unknown entry"),
        (lambda h: h.update(content={"array": "a0"}), "says that it holds"),
        (lambda h: h["content"]["estimator"].update({"class": "os.system"}), "not among RankRLS"),
        (lambda h: h["content"]["estimator"].pop("state"), "too few parts"),
        (lambda h: parameters(h).update(evil=1), "RankRLS has no 'evil'"),
        (lambda h: parameters(h).update(kernel="evil"), "kernel='evil' is unknown"),
        (lambda h: parameters(h).update(kernel=None), "kernel is not a name"),
        (lambda h: parameters(h).update(kernel={"dict": {}}), "kernel is not a name"),
        (lambda h: parameters(h).update(kernel="rbf"), "do not match"),
        (lambda h: parameters(h).update(gamma=-1.0), "gamma=-1.0"),
        (lambda h: parameters(h).update(degree="x"), "odd parameters"),
        (lambda h: parameters(h).update(alpha=nested(40)), "nested too deep"),
        (lambda h: parameters(h).update(alpha={"float": "Nan"}), "number 'Nan'"),
        (lambda h: parameters(h).update(alpha={"pickle": "x"}), "unknown entry"),
        (lambda h: parameters(h).update(alpha={"tuple": 3}), "where a list should be"),
        (lambda h: parameters(h).update(alpha={"scalar": ["int8", 300]}), "impossible scalar"),
        (lambda h: parameters(h).update(alpha={"scalar": ["object", 1]}), "scalar"),
        (lambda h: parameters(h).update(alpha={"metric": "evil"}), "impossible metric"),
        (lambda h: parameters(h).update(alpha={"slice": ["a", 1, 2]}), "slice"),
        (lambda h: state(h).update(n_features_in_=5), r"shape \(4,\), expected \(5,\)"),
        (lambda h: state(h).update(n_features_in_=-1), "n_features_in_ is -1"),
        (lambda h: state(h).update(n_features_in_=True), "of odd kind"),
        (lambda h: state(h).update(n_features_in_=2**60), "n_features_in_ is"),
        (lambda h: state(h).pop("n_features_in_"), "has no n_features_in_"),
        (lambda h: state(h).update(feature_names_in_={"objects": ["a"]}), "not 4 names"),
        (lambda h: state(h).update(feature_names_in_={"objects": [1, 2, 3, 4]}), "not 4 names"),
        (lambda h: state(h).update(output_shape_={"tuple": [10**12]}), "coef_ has shape"),
        (lambda h: state(h).update(output_shape_={"tuple": ["a"]}), "outputs have shape"),
        (lambda h: state(h).update(predict="x"), "attribute 'predict'"),
        (lambda h: state(h).update(__class__="x"), "attribute '__class__'"),
        (lambda h: state(h).update(coef_=[1.0, 2.0, 3.0, 4.0]), "'coef_' of odd kind"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_headers_are_refused(change, match, linear, refused):
    refused(changed(linear, lambda header: change(header) and None), match)


@pytest.mark.parametrize(
    "name, change, match",
    [
        ("sparse rbf", lambda b: b["shape"].__setitem__(1, 10**9), "X_fit_ has shape"),
        ("sparse rbf", lambda b: b["shape"].__setitem__(0, 10**9), "do not fit together"),
        ("sparse rbf", lambda b: b["shape"].__setitem__(1, 2), "impossible sparse matrix"),
        ("sparse rbf", lambda b: b.update({"class": "dok_matrix"}), "'dok_matrix'"),
        ("sparse rbf", lambda b: b.update(indptr=b["indices"]), "do not fit together"),
        ("sparse rbf", lambda b: b.update(indices=b["data"]), "wrong kind"),
    ],
)
def test_hostile_sparse_matrices_are_refused(name, change, match, refused):
    def edit(header):
        change(state(header)["X_fit_"]["sparse"])

    refused(changed(bytes_of(name), edit), match)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_coefficients_that_are_not_finite_are_refused(value, linear, refused):
    members = members_of(linear) | {"a0.npy": npy(np.array([1.0, value, 0.0, 0.0]))}
    refused(zipped(members), "not finite")


def test_row_numbers_out_of_range_are_refused(refused):
    content = bytes_of("precomputed basis")
    for bad in ([0, 1, 2, 3, 36], [0, 1, 2, 3, -1]):
        for name, array in members_of(content).items():
            if b"'<i8'" in array:
                new = members_of(content) | {name: npy(np.array(bad))}
                refused(zipped(new), "basis_indices_ has the number")


def nodes(tree):
    """Every place of the JSON: (container, key)."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from nodes(value)


def edit_header(members, rng):
    header = json.loads(members["header.json"])
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        content = header.get("content")
        is_inside = isinstance(content, dict) and content and rng.random() < 0.9
        places = list(nodes(content if is_inside else header))
        inside, key = rng.choice(places)
        other, there = rng.choice(places)
        how = rng.randrange(6)
        if how == 0 and isinstance(inside, dict):
            del inside[key]
        elif how == 1 and isinstance(inside, dict):
            inside[rng.choice(("class", "coef_", "array", "items", "root"))] = inside.pop(key)
        elif how == 2:
            inside[key] = copy.deepcopy(other[there])
        elif how == 3 and isinstance(inside, list):
            inside.insert(0, copy.deepcopy(inside[key]))
        else:
            inside[key] = copy.deepcopy(rng.choice(ODD_VALUES))
    members["header.json"] = json.dumps(header).encode()


def edit_array(members, rng):
    name = rng.choice([name for name in members if name != "header.json"])
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
        members[name] = npy(rng.choice((array.T, array[..., :-1], array[..., None], array[None])))


def edit_members(members, rng):
    names = list(members)
    one, other = rng.choice(names), rng.choice(names)
    how = rng.randrange(4)
    if how == 0:
        members[one], members[other] = members[other], members[one]
    elif how == 1:
        del members[one]
    elif how == 2:
        members[rng.choice(("a99.npy", "x", "header.json", "a0.npy"))] = members[one]
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
    chances = ((edit_array, 0.3), (edit_header, 0.7), (edit_members, 0.2))
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
