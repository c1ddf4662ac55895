"""Model files changed at random: in their JSON, their arrays, and the zip around them.

A long run: ``python -m tests.persistence.mutations 5000``.
"""

from __future__ import annotations

import copy
import io
import json
import re
import struct
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np

from rankwise.errors import ModelFileError
from rankwise.leaderboard.ranked_board import RankedBoard
from rankwise.model_selection.scorer import predict_items
from rankwise.persistence import load, save

ODD = [None, True, -1, 0, 3, 10**6, 2**40, 10**30, -(2**70), 0.5, 1e308]
ODD += ["", "x", "../../etc/passwd", "rbf", "precomputed", "linear", "sigmoid"]
ODD += [[], [1, 2], {}, [[]], {"dict": {}}, {"tuple": [1]}, {"float": "nan"}, {"float": "x"}]
ODD += [{"slice": [0, 10**12, 1]}, {"array": 0}, {"array": 10**9}, {"words": 0}, {"objects": [{}]}]
ODD += [{"metric": "ndcg@10"}, {"metric": "os.system"}, {"is": "Pipeline"}]
ODD += [
    {"is": "subprocess.Popen"},
    {"is": "Kernel", "fields": {"function": "rbf", "gamma": 1e-300}},
]
ODD += [{"sparse": [{"array": 0}] * 3, "shape": [10**9, 10**9]}]
NAMES = ["RankRLS", "RankSVM", "View", "GroupScaler", "BoostedTrees", "KernelFeatures"]
NAMES += ["TableVectorizer"]


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
        key = rng.choice(["__class__", "mine", "coef_", "steps", "predict", "_functions"])
        parent[str(key)] = parent.pop(path[-1])
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
    if way == 0 and array.dtype.kind != "U":
        kinds = ["f4", "i8", "u1", "U3", "c16", "f2", "?", ">f8", "M8[s]"]
        with np.errstate(all="ignore"):
            array = array.astype(str(rng.choice(kinds)), casting="unsafe")
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
        number = rng.choice(odd[array.dtype.kind])
        array.flat[rng.integers(array.size)] = number.astype(array.dtype)  # small ones wrap around
    out = io.BytesIO()
    np.save(out, array)
    content = out.getvalue()
    if rng.random() < 0.2:  # a header that does not tell the truth
        lies = [(b"'<f8'", b"'|O8'"), (b"(", b"(9"), (b"False", b"True "), (b"<", b">")]
        content = content.replace(*lies[rng.integers(4)], 1)
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


def try_files(models, n_files, path, rng):
    """Load so many changed files, and predict; the number of those that load, and the peaks.

    Each one is refused, or predicts numbers of the right shape. No other file is opened, and the
    memory is at most twice that of the file and 3 MB, or 10 MB for a board.
    """
    boards = [name for name, (model, _) in models.items() if isinstance(model, RankedBoard)]
    originals = {}
    for name, (model, _) in models.items():
        save(model, path)
        originals[name] = path.read_bytes()
        load(path)  # so that all modules are imported
    opened, is_watched = [], [True]

    def watch(event, args):  # a hook stays for good
        if is_watched and event == "open":
            opened.append(str(args[0]))

    sys.addaudithook(watch)
    tracemalloc.start()
    n_loaded, peaks = 0, []
    for _ in range(n_files):
        name = list(models)[rng.integers(len(models))]
        content = mutated(originals[name], rng)
        path.write_bytes(content)
        opened.clear()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        try:
            model = load(path)
        except ModelFileError:
            model = None
        peaks.append(tracemalloc.get_traced_memory()[1] - before - 2 * len(content))
        # a board is rated again, with up to 80 knots in time for each of its items
        assert peaks[-1] < (10_000_000 if name in boards else 3_000_000), name
        assert set(opened) <= {str(path), "/proc/meminfo"}, (name, opened)
        if model is not None:
            n_loaded += 1
            if name in boards:
                assert model.ratings.shape == model.items.shape, name
                assert np.isfinite(model.ratings).all(), name
                assert len(str(model).splitlines()) > len(model), name
                continue
            new = models[name][1][:5]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    scores = predict_items(model, new, [0] * new.shape[0])
                except ValueError as error:  # it is a model of other items now
                    assert re.search("features|columns|names", str(error)), (name, error)  # noqa: PT017
                    continue
            assert scores.dtype.kind == "f", name
            assert scores.shape[0] == new.shape[0], name
    is_watched.clear()
    tracemalloc.stop()
    return n_loaded, peaks


if __name__ == "__main__":
    from tests.persistence.saved_boards import BOARDS
    from tests.persistence.saved_models import all_models

    models = all_models() | {f"board, {kind}": (make(), None) for kind, make in BOARDS.items()}
    n_files, start = int(sys.argv[1]), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rw"
        n_loaded, peaks = try_files(models, n_files, path, np.random.default_rng(1))
    seconds = time.perf_counter() - start
    print(f"{n_files:,} changed files of {len(models)} models in {seconds:.0f} s: {n_loaded:,}")
    print(f"loaded and predicted numbers, {n_files - n_loaded:,} were refused; memory beyond twice")
    print(f"the size of the file: at most {max(peaks) / 1e6:.1f} MB")


def change_document(file, old, new):
    """Replace bytes of the document of a file."""
    with zipfile.ZipFile(file) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    assert old in entries[0][1]
    file.write_bytes(write([(entries[0][0], entries[0][1].replace(old, new)), *entries[1:]]))
