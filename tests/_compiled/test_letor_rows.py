"""The compiled reader of LETOR rows: the numbers of Python's float, the rows of its fallback."""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.datasets import files, read_letor
from rankwise.errors import LetorFormatError
from tests.datasets.data import LETOR, PLAIN, mutated

compiled = pytest.importorskip("rankwise._compiled.letor_rows")
from rankwise._compiled import letor_rows_fallback  # noqa: E402

LARGEST = sys.float_info.max


def labels_of(words):
    text = "".join(f"{word}\n" for word in words).encode()
    return compiled.read_rows(text, False, 9, LARGEST)[0]


def is_same(text, zero_based=False, n_columns=2**31, largest=LARGEST):
    fast = compiled.read_rows(text, zero_based, n_columns, largest)
    slow = letor_rows_fallback.read_rows(text, zero_based, n_columns, largest)
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    return fast


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_doubles_come_back_bit_by_bit(values):
    assert labels_of(map(repr, values)).tobytes() == np.array(values).tobytes()


def half_way(rng):
    """A decimal exactly between two doubles."""
    odd = 2 * rng.randrange(2**52, 2**53) + 1
    power = rng.randrange(-60, 60)
    if power >= 0:
        return str(odd << power)
    return f"{odd * 5**-power}e{power}"


def any_decimal(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return repr(struct.unpack("d", rng.randbytes(8))[0])
    if kind == 1:
        whole, part = rng.randrange(10 ** rng.randrange(1, 22)), rng.randrange(10**9)
        return f"{whole}.{part}e{rng.randrange(-345, 310)}"
    if kind == 2:
        return f"{rng.randrange(2**64)}E{rng.randrange(-30, 30):+d}"
    if kind == 3:
        return half_way(rng)
    if kind == 4:
        return "0" * rng.randrange(30) + "." + "0" * rng.randrange(30) + str(rng.randrange(10**18))
    return f"{rng.gauss(0, 1) * 10.0 ** rng.randrange(-30, 30):.{rng.randrange(1, 25)}g}"


def test_every_decimal_is_rounded_as_python_rounds_it():
    rng = random.Random(0)
    words = [any_decimal(rng) for _ in range(20_000)]
    words = [w for w in words if "n" not in w and abs(float(w)) <= LARGEST]
    assert len(words) > 15_000
    expected = np.array([float(word) for word in words])
    assert labels_of(words).tobytes() == expected.tobytes()


@pytest.mark.parametrize("options", [{}, {"zero_based": True}, {"n_columns": 2, "largest": 5.0}])
def test_damaged_texts_are_read_as_far_as_the_fallback_reads_them(options):
    rng = random.Random(1)
    stops = 0
    for round_ in range(300):
        text = mutated((LETOR, PLAIN)[round_ % 2], rng) + b"\n"
        *_, end = is_same(text, **options)
        stops += end < len(text)
    assert stops > 60


@given(st.lists(st.text("0123456789:.+-eEqid#\r\t \x0b_", max_size=12), max_size=6))
def test_any_text_is_read_as_the_twin_reads_it(lines):
    is_same("".join(f"{line}\n" for line in lines).encode())


def test_a_text_without_its_last_line_feed_is_no_text_for_the_reader():
    with pytest.raises(ValueError, match="line feed"):
        compiled.read_rows(b"1 1:1", False, 9, LARGEST)
    assert compiled.read_rows(b"", False, 9, LARGEST)[-1] == 0


def test_without_the_compiled_module_python_reads_with_one_warning(tmp_path):
    (tmp_path / "a.txt").write_bytes(LETOR)
    code = f"""
import sys, warnings
sys.modules["rankwise._compiled.letor_rows"] = None
from rankwise.datasets import read_letor
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        data = read_letor({str(tmp_path / "a.txt")!r}, sparse=False)
print(len(caught), caught[0].message)
print(data.X[0].tolist(), data.groups.tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1 rankwise was installed without its compiled module"), done
    assert done.stdout.endswith("[0.5, 1.0, 0.0] ['1', '1', 'b', '1', '1', 'b']\n")


# Bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, 1])
def test_a_feature_id_of_two_billion_is_refused_unless_it_is_meant(tmp_path, chunks):
    path = tmp_path / "wide.txt"
    path.write_bytes(b"1 qid:1 1:1\n0 qid:1 2000000000:1\n")

    def read(**options):
        data = read_letor(path, chunks=chunks, **options)
        return data if chunks is None else next(data)

    read(n_features=2_000_000_000)  # imports what it needs
    tracemalloc.start()
    words = r"wide\.txt:2: .*features from 1 to 134217728.* Pass n_features="
    with pytest.raises(LetorFormatError, match=words):
        read()
    assert read(n_features=2_000_000_000).X.shape == (2, 2_000_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    path.write_bytes(b"1 qid:1 1:1\n0 qid:1 134217728:1\n")
    assert read().X.shape == (2, 2**27)


def test_the_peak_is_at_most_three_times_the_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1 << 14)
    rng = np.random.default_rng(0)
    full = b"".join(
        b"1 qid:1 " + b" ".join(b"%d:%.3f" % (j + 1, v) for j, v in enumerate(row)) + b"\n"
        for row in rng.random((2000, 60))
    )
    gaps = b"\n".join(
        b" ".join(word for k, word in enumerate(line.split(b" ")) if k < 2 or (k + n) % 3)
        for n, line in enumerate(full.splitlines())
    )
    for name, text in (("full", full), ("gaps", gaps)):
        path = tmp_path / name
        path.write_bytes(text)
        read_letor(path)  # imports what it needs
        tracemalloc.start()
        data = read_letor(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        arrays = data.X.nbytes + data.y.nbytes + data.groups.nbytes
        assert isinstance(data.X, np.ndarray)
        assert peak < 3 * arrays, name


# Standard input and zstandard --------------------------------------------------------------------


def test_standard_input_is_read_as_a_file_and_more_than_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 qid:1 1:1\n0 qid:2 2:1\n")))
    assert read_letor("-").groups.tolist() == [1, 2]
    assert [chunk.X.shape for chunk in read_letor("-", chunks=1)] == [(1, 2), (1, 2)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    with pytest.raises(LetorFormatError, match=r"^-:1: got 'x'"):
        read_letor("-")


def test_zstandard(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    text = b"1 qid:1 1:1\n0 qid:2 2:1\n" * 1000
    packed = bytes(arrow.compress(text, "zstd", asbytes=True))
    path = tmp_path / "a.txt.zst"
    path.write_bytes(packed)
    assert len(read_letor(path).y) == 2000
    path.write_bytes(packed[: len(packed) - 9])
    with pytest.raises(LetorFormatError, match="damaged"):
        read_letor(path)
