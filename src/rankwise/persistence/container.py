"""The file around a model: an uncompressed zip of one ``header.json`` and plain ``.npy`` arrays.

Nothing in it is compressed, so nothing can come out larger than the file is, and every size is
compared with the size of the file before memory is asked for.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import PathLike, replace_file
from rankwise.persistence.odd import OddContent

__all__ = ["Container", "read_container", "write_container"]

HEADER = "header.json"
MAX_HEADER_BYTES = 2**24
MAX_HEADER_PARTS = 2**18  # lists and objects: empty ones take twenty times their text in memory
MAX_ARRAYS = 2**16 - 2  # more would need another kind of zip
MAX_DIRECTORY_BYTES = 2**23
BLOCK_BYTES = 2**22

_MEMBER = re.compile(r"header\.json|a\d{1,5}\.npy")
_END = struct.Struct("<4sHHHHIIH")
_LONG_END = struct.Struct("<4sQHHIIQQQQ4sIQI")  # the end of a zip above 4 GiB, before the plain end
_NPY_HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[<|][biufUSmM]\d{1,9}(?:\[\d{0,4}[a-zA-Z]{1,2}\])?)', "
    r"'fortran_order': (?P<fortran>False|True), "
    r"'shape': \((?P<shape>|\d{1,15},|\d{1,15}(?:, \d{1,15}){1,7})\), \} *\n"
)
_DAMAGE = (
    zipfile.BadZipFile,
    EOFError,
    OverflowError,
    RuntimeError,  # encrypted; unknown methods; JSON that is nested too deep
    TypeError,  # a dtype that does not exist
    ValueError,
    struct.error,
    zlib.error,
)


def write_container(path: PathLike, header: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write header and arrays, whole or not at all; the same content gives the same bytes."""
    text = json.dumps(header, allow_nan=False, ensure_ascii=True).encode("ascii")
    if len(text) > MAX_HEADER_BYTES or len(arrays) > MAX_ARRAYS:
        raise ValueError(
            f"the model has {len(arrays):,} arrays and {len(text):,} bytes of names and numbers "
            f"outside arrays; a model file holds {MAX_ARRAYS:,} and {MAX_HEADER_BYTES:,} at most."
        )
    if _count_parts(text) > MAX_HEADER_PARTS:
        raise ValueError(
            f"notes, names and parameters have {_count_parts(text):,} brackets; a model file holds "
            f"{MAX_HEADER_PARTS:,} at most. Use arrays in place of long lists."
        )
    with replace_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(_member(HEADER), text)
        for number, array in enumerate(arrays):
            large = array.nbytes > 2**30
            with archive.open(_member(f"a{number}.npy"), "w", force_zip64=large) as out:
                np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info


@contextmanager
def read_container(path: PathLike) -> Iterator[Container]:
    """Open a model file; anything odd raises `OddContent`."""
    with open(path, "rb") as stream:
        yield Container(stream)


class Container:
    """An open model file: its header, and its arrays when they are asked for.

    Attributes
    ----------
    header : dict
        The JSON of the header.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._size = os.fstat(stream.fileno()).st_size
        _check_ends(stream, self._size)
        with _as_odd_content("the file is damaged or cut short"):
            self._zip = zipfile.ZipFile(stream)
            self._members = self._check_members()
            self.header = self._read_header()
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: object) -> NDArray[Any]:
        """The array of this name; the same object whenever it is asked for."""
        info = self._members.get(f"{name}.npy") if isinstance(name, str) else None
        if info is None or not isinstance(name, str):
            raise OddContent(f"the array {name!r} is missing")
        if name not in self._arrays:
            with _as_odd_content(f"the array {name!r} is damaged"):
                self._arrays[name] = self._read_array(info)
        return self._arrays[name]

    def check_all_used(self) -> None:
        """Raise `OddContent` if an array was never asked for."""
        unused = set(self._members) - {HEADER} - {f"{name}.npy" for name in self._arrays}
        if unused:
            raise OddContent(f"{min(unused)!r} belongs to nothing in the model")

    def _check_members(self) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        total = 0
        if HEADER not in self._zip.namelist():
            raise OddContent(f"this is a zip file without {HEADER}, not a rankwise model")
        for info in self._zip.infolist():
            name = info.filename
            if not _MEMBER.fullmatch(name) or name != info.orig_filename:
                raise OddContent(f"it has a member {name[:80]!r}, which no model file has")
            if name in members:
                raise OddContent(f"it has two members {name!r}")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & ~0x808:
                raise OddContent(f"{name!r} is compressed or encrypted; model files never are")
            total += info.file_size
            if info.file_size != info.compress_size or total > self._size:
                raise OddContent(f"{name!r} claims to be larger than the file")
            if not 0 <= info.header_offset < self._size:
                raise OddContent(f"{name!r} claims to be outside of the file")
            members[name] = info
        if min(info.header_offset for info in members.values()):
            raise OddContent("something stands before its beginning; copy it again")
        return members

    def _read_header(self) -> dict[str, Any]:
        info = self._members[HEADER]
        if info.file_size > MAX_HEADER_BYTES:
            raise OddContent(
                f"its header has {info.file_size:,} bytes; at most {MAX_HEADER_BYTES:,} are read"
            )
        text = self._zip.read(info)
        if _count_parts(text) > MAX_HEADER_PARTS:
            raise OddContent(f"its header has more than {MAX_HEADER_PARTS:,} lists and objects")
        header = json.loads(
            text.decode("ascii"),
            object_pairs_hook=_unique_keys,
            parse_int=_read_int,
            parse_float=_read_float,
            parse_constant=_read_constant,
        )
        if not isinstance(header, dict):
            raise OddContent("its header is not a JSON object")
        return header

    def _read_array(self, info: zipfile.ZipInfo) -> NDArray[Any]:
        with self._zip.open(info) as stream:
            dtype, shape, fortran, start = _read_npy_header(stream)
            if math.prod(shape) * dtype.itemsize != info.file_size - start:
                raise OddContent(
                    f"{info.filename!r} claims shape {shape} of {dtype} but has "
                    f"{info.file_size - start:,} bytes"
                )
            array = np.empty(shape, dtype, order="F" if fortran else "C")
            if array.size:
                _fill(array.reshape(-1, order="A").view(np.uint8), stream)
            stream.read(1)  # compares the checksum at the end
        return array


def _fill(memory: NDArray[np.uint8], stream: IO[bytes]) -> None:
    filled = 0
    while filled < len(memory):
        piece = stream.read(min(BLOCK_BYTES, len(memory) - filled))
        if not piece:
            raise EOFError("an array ends too early")
        memory[filled : filled + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        filled += len(piece)


def _read_npy_header(stream: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Dtype, shape, order and length of the header, which must be as NumPy writes it."""
    start = stream.read(10)
    length = int.from_bytes(start[8:], "little")
    text = stream.read(length).decode("ascii")
    found = _NPY_HEADER.fullmatch(text)
    if start[:8] != b"\x93NUMPY\x01\x00" or found is None:
        raise OddContent("an array has an unknown header: only plain numbers and strings are read")
    dtype = np.dtype(found["dtype"])
    if dtype.itemsize == 0:
        raise OddContent("an array has entries without size")
    shape = tuple(int(n) for n in found["shape"].split(",") if n)
    return dtype, shape, found["fortran"] == "True", 10 + length


def _check_ends(stream: IO[bytes], size: int) -> None:
    """Look at the first and last bytes: what kind of file is it, and is it whole?"""
    start = stream.read(4)
    if not size:
        raise OddContent("the file is empty")
    if start != b"PK\x03\x04":
        kind = " but a pickle, which is never read" if start[:1] == b"\x80" else ""
        kind = " but compressed by gzip; unpack it first" if start[:2] == b"\x1f\x8b" else kind
        raise OddContent(f"this is not a rankwise model{kind}; write one with rankwise's save")
    if size < _END.size:
        raise OddContent("the file is cut short; copy it again")
    stream.seek(size - _END.size)
    mark, _, _, _, _, directory, _, comment = _END.unpack(stream.read(_END.size))
    if mark != b"PK\x05\x06" or comment:
        raise OddContent("the file is cut short, or something follows its end; copy it again")
    if max(directory, _long_directory(stream, size)) > MAX_DIRECTORY_BYTES:
        raise OddContent("its table of contents is too large")
    stream.seek(0)


def _long_directory(stream: IO[bytes], size: int) -> int:
    """Size of the directory as the end of a long zip has it; where there is one, it counts."""
    start = size - _END.size - _LONG_END.size
    if start < 0:
        return 0
    stream.seek(start)
    mark, *_, directory, _, pointer, _, at, _ = _LONG_END.unpack(stream.read(_LONG_END.size))
    if pointer != b"PK\x06\x07":
        return 0
    if mark != b"PK\x06\x06" or at != start:
        raise OddContent("its table of contents is not where it should be")
    return int(directory)


def _count_parts(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


@contextmanager
def _as_odd_content(what: str) -> Iterator[None]:
    """Whatever zipfile, json and NumPy say about bytes that make no sense."""
    try:
        yield
    except OddContent:
        raise
    except _DAMAGE as error:
        raise OddContent(f"{what} ({error or type(error).__name__}); copy it again") from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise OddContent("its header names something twice")
    return found


def _read_int(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise OddContent(f"its header has the number {text[:40]}, which is too large")
    return int(text)


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise OddContent(f"its header has the number {text[:40]}, which is too large")
    return number


def _read_constant(text: str) -> None:
    raise OddContent(f"its header has {text}, which is no JSON number")
