"""Model files changed at random: in their JSON, their arrays, and the zip around them."""

from __future__ import annotations

import copy
import io
import json
import struct
import zipfile

import numpy as np

ODD = [
    None,
    True,
    -1,
    0,
    3,
    10**6,
    2**40,
    10**30,
    -(2**70),
    0.5,
    1e308,
    "",
    "x",
    "../../etc/passwd",
]
ODD += [[], [1, 2], {}, [[]], {"dict": {}}, {"tuple": [1]}, {"float": "nan"}, {"float": "x"}]
ODD += [{"slice": [0, 10**12, 1]}, {"array": 0}, {"array": 10**9}, {"words": 0}, {"objects": [{}]}]
ODD += [
    {"metric": "ndcg@10"},
    {"metric": "os.system"},
    {"is": "Pipeline"},
    {"is": "subprocess.Popen"},
]
ODD += [{"is": "Kernel", "fields": {"function": "rbf", "gamma": 1e-300}}, "rbf", "precomputed"]
ODD += [{"sparse": "csr_array", "shape": [10**9, 10**9], "entries": [0, 1, 2]}, "linear", "sigmoid"]
NAMES = ["RankRLS", "RankSVM", "View", "GroupScaler", "BoostedTrees", "FeatureMap", "Columns"]


def places(node, path=()):
    """Paths to all entries of a JSON document."""
    entries = node.items() if isinstance(node, dict) else enumerate(node)
    for key, entry in list(entries):
        yield (*path, key)
        if isinstance(entry, (dict, list)):
            yield from places(entry, (*path, key))


def mutate_json(document, rng):
    every = list(places(document))
    path = every[rng.integers(len(every))]
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    way = rng.integers(6)
    if way == 0 and isinstance(parent, dict):
        del parent[path[-1]]
    elif way == 1 and isinstance(parent, dict):
        parent[
            str(rng.choice(["__class__", "mine", "coef_", "steps", "predict", "_functions"]))
        ] = parent.pop(path[-1])
    elif way == 2:
        other = document
        for key in every[rng.integers(len(every))]:
            other = other[key]
        parent[path[-1]] = copy.deepcopy(other)
    elif way == 3 and isinstance(parent[path[-1]], (int, float)):
        parent[path[-1]] = parent[path[-1]] * int(rng.choice([-1, 2, 1000])) + int(rng.integers(3))
    elif way == 4 and "is" in parent:
        parent["is"] = str(rng.choice(NAMES))
    else:
        parent[path[-1]] = copy.deepcopy(ODD[rng.integers(len(ODD))])


def mutate_array(content, rng):
    """The bytes of an array of another type, shape or content."""
    array = np.load(io.BytesIO(content))
    way = rng.integers(8)
    if way == 0:
        with np.errstate(all="ignore"):
            kinds = ["f4", "i8", "u1", "U3", "c16", "f2", "?", ">f8", "M8[s]"]
            array = (
                array.astype(str(rng.choice(kinds)), casting="unsafe")
                if array.dtype.kind != "U"
                else array
            )
    elif way == 1:
        array = array.reshape(*array.shape, 1) if rng.random() < 0.5 else array.reshape(1, -1)
    elif way == 2:
        array = array[: rng.integers(len(array) + 1)] if array.ndim else array
    elif way == 3:
        array = np.concatenate([array, array]) if array.ndim else array
    elif way == 4:
        array = np.empty((0, int(rng.choice([0, 5, 10**5, 10**12]))), array.dtype)
    elif array.size and array.dtype.kind in "fiu":
        odd = {"f": [np.nan, np.inf, -1e300, 0.0], "i": [-1, 10**9, 2**62, 0], "u": [0, 255]}
        array = np.array(array)
        array.flat[rng.integers(array.size)] = rng.choice(odd[array.dtype.kind])
    out = io.BytesIO()
    np.save(out, array)
    content = out.getvalue()
    if rng.random() < 0.2:  # a header that does not tell the truth
        old, new = [(b"'<f8'", b"'|O8'"), (b"(", b"(9"), (b"False", b"True "), (b"<", b">")][
            rng.integers(4)
        ]
        content = content.replace(old, new, 1)
    return content


def write(entries, rng=None):
    """A zip of (name, bytes); now and then with entries that are packed, twice, or foreign."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content)
        way = -1 if rng is None else rng.integers(8)
        if way == 0:
            archive.writestr(zipfile.ZipInfo("evil.py"), b"import os")
        if way == 1:
            archive.writestr(zipfile.ZipInfo("../0.npy"), entries[-1][1])
        if way == 2:
            archive.writestr(f"{len(entries) - 1}.npy", bytes(10**7), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def mutated(content, rng):
    """The bytes of a model file, changed in one way or a few."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    way = rng.integers(10)
    if way < 5:
        document = json.loads(entries[0][1])
        for _ in range(rng.integers(1, 4)):
            mutate_json(document, rng)
        entries[0] = (entries[0][0], json.dumps(document).encode())
    if 4 <= way < 8 and len(entries) > 1:
        at = int(rng.integers(1, len(entries)))
        entries[at] = (entries[at][0], mutate_array(entries[at][1], rng))
    if way == 8:
        at, other = rng.integers(len(entries), size=2)
        entries[at] = (entries[at][0], entries[other][1])
        entries = entries[: rng.integers(1, len(entries) + 1)]
        return write(entries, rng)
    content = write(entries)
    if way == 9:
        changed = bytearray(content)
        if rng.random() < 0.5:
            changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
        else:
            at = int(rng.integers(len(changed) - 4))
            changed[at : at + 4] = struct.pack("<I", int(rng.choice([0, 2**31, 2**32 - 1, 77])))
        content = bytes(changed[: rng.integers(len(changed)) if rng.random() < 0.2 else None])
    return content
