"""The file around a model: an uncompressed zip of JSON and plain ``.npy`` arrays.

Nothing in it is compressed, so nothing can come out larger than the file is, and every size is
compared with the size of the file before memory is asked for.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from rankwise.errors import ModelFileError

HEADER, TREE = "header.json", "schema.json"
MAX_JSON_BYTES = {HEADER: 2**24, TREE: 2**26}
MAX_JSON_PARTS = 2**18  # lists and objects: empty ones take twenty times their text in memory
MAX_DIRECTORY_BYTES = 2**23

_MEMBER = re.compile(r"header\.json|schema\.json|a\d{1,5}\.npy")
_END = struct.Struct("<4sHHHHIIH")
_LONG_END = struct.Struct("<4sQHHIIQQQQ4sIQI")  # the end of a zip above 4 GiB, before the plain end
_NPY_HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[<|][biufUSmM]\d{1,9}(?:\[\d{0,4}[a-zA-Z]{1,2}\])?)', "
    r"'fortran_order': (?:False|True), "
    r"'shape': \((?P<shape>|\d{1,15},|\d{1,15}(?:, \d{1,15}){1,7})\), \} *\n"
)


def write_container(
    header: Any, tree: Any, source: zipfile.ZipFile, names: dict[str, str]
) -> io.BytesIO:
    """The bytes of a file; the same content gives the same.

    Parameters
    ----------
    header, tree : dict
        The JSON.
    source : ZipFile
        Where the arrays are.
    names : dict
        Names of the arrays in the file, by their names in `source`.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_member(HEADER), _json(header))
        archive.writestr(_member(TREE), _json(tree))
        for old, new in names.items():
            archive.writestr(_member(new), source.read(old))
    return content


def _json(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, ensure_ascii=True).encode("ascii")


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info


class Container:
    """An open model file; anything odd raises `ModelFileError`.

    Attributes
    ----------
    size : int
        Bytes of the file.
    """

    def __init__(self, path: str, stream: IO[bytes]) -> None:
        self._path = path
        self.size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        with self.reading("the file is damaged or cut short; copy it again"):
            self._check_ends(stream)
            self._zip = zipfile.ZipFile(stream)
            self._members = self._check_members()

    def odd(self, problem: str) -> ModelFileError:
        """What to raise."""
        return ModelFileError(self._path, f"{problem}.")

    @contextmanager
    def reading(self, what: str, *, plainly: bool = False) -> Iterator[None]:
        """Whatever zipfile, json, NumPy and skops say; a ValueError as it is if that is plain."""
        try:
            yield
        except ModelFileError:
            raise
        except Exception as error:
            said = str(error).rstrip(".") or type(error).__name__
            is_plain = plainly and isinstance(error, ValueError)
            raise self.odd(said if is_plain else f"{what} ({said:.500})") from error

    def read_json(self, member: str) -> dict[str, Any]:
        """One of the two texts."""
        info = self._members.get(member)
        if info is None:
            raise self.odd(f"{member!r} is missing")
        limit = MAX_JSON_BYTES[member]
        if info.file_size > limit:
            raise self.odd(f"{member!r} has {info.file_size:,} bytes; at most {limit:,} are read")
        with self.reading(f"{member!r} is damaged"):
            text = self._zip.read(info)
            if _count_parts(text) > MAX_JSON_PARTS:
                raise self.odd(
                    f"{member!r} has more than {MAX_JSON_PARTS:,} lists and objects; use arrays in "
                    "place of long lists"
                )
            found = json.loads(
                text.decode("ascii"),
                object_pairs_hook=_unique_keys,
                parse_int=_read_number,
                parse_float=_read_number,
                parse_constant=_read_number,
            )
        if not isinstance(found, dict):
            raise self.odd(f"{member!r} is not a JSON object")
        return found

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all arrays, each of which has as many bytes as it claims."""
        found = {}
        for name, info in self._members.items():
            if name not in (HEADER, TREE):
                with self.reading(f"the array {name!r} is damaged"), self._zip.open(info) as stream:
                    found[name] = self._claimed_shape(info, stream)
        return found

    def _claimed_shape(self, info: zipfile.ZipInfo, stream: IO[bytes]) -> tuple[int, ...]:
        start = stream.read(10)
        length = int.from_bytes(start[8:], "little")
        found = _NPY_HEADER.fullmatch(stream.read(length).decode("ascii"))
        if start[:8] != b"\x93NUMPY\x01\x00" or found is None:
            raise self.odd(
                "an array has an unknown header: only plain numbers and strings are read"
            )
        dtype = np.dtype(found["dtype"])
        shape = tuple(int(n) for n in found["shape"].split(",") if n)
        n_bytes = info.file_size - 10 - length
        if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != n_bytes:
            raise self.odd(
                f"{info.filename!r} claims shape {shape} of {dtype} but has {n_bytes:,} bytes"
            )
        return shape

    def _check_members(self) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        total = 0
        if HEADER not in self._zip.namelist():
            raise self.odd(f"this is a zip file without {HEADER}, not a rankwise model")
        for info in self._zip.infolist():
            name = info.filename
            if not _MEMBER.fullmatch(name) or name != info.orig_filename:
                raise self.odd(f"it has a member {name[:80]!r}, which no model file has")
            if name in members:
                raise self.odd(f"it has two members {name!r}")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & ~0x808:
                raise self.odd(f"{name!r} is compressed or encrypted; model files never are")
            total += info.file_size
            if info.file_size != info.compress_size or total > self.size:
                raise self.odd(f"{name!r} claims to be larger than the file")
            if not 0 <= info.header_offset < self.size:
                raise self.odd(f"{name!r} claims to be outside of the file")
            members[name] = info
        if min(info.header_offset for info in members.values()):
            raise self.odd("something stands before its beginning; copy it again")
        return members

    def _check_ends(self, stream: IO[bytes]) -> None:
        """Look at the first and last bytes: what kind of file is it, and is it whole?"""
        start = stream.read(4)
        if not self.size:
            raise self.odd("the file is empty")
        if start != b"PK\x03\x04":
            kind = " but a pickle, which is never read" if start[:1] == b"\x80" else ""
            kind = " but compressed by gzip; unpack it first" if start[:2] == b"\x1f\x8b" else kind
            raise self.odd(f"this is not a rankwise model{kind}; write one with rankwise's save")
        if self.size < _END.size:
            raise self.odd("the file is cut short; copy it again")
        stream.seek(self.size - _END.size)
        mark, _, _, _, _, directory, _, comment = _END.unpack(stream.read(_END.size))
        if mark != b"PK\x05\x06" or comment:
            raise self.odd("the file is cut short, or something follows its end; copy it again")
        if max(directory, self._long_directory(stream)) > MAX_DIRECTORY_BYTES:
            raise self.odd("its table of contents is too large")
        stream.seek(0)

    def _long_directory(self, stream: IO[bytes]) -> int:
        """Size of the directory as the end of a long zip has it; where there is one, it counts."""
        start = self.size - _END.size - _LONG_END.size
        if start < 0:
            return 0
        stream.seek(start)
        mark, *_, directory, _, pointer, _, at, _ = _LONG_END.unpack(stream.read(_LONG_END.size))
        if pointer != b"PK\x06\x07":
            return 0
        if mark != b"PK\x06\x06" or at != start:
            raise self.odd("its table of contents is not where it should be")
        return int(directory)


def _count_parts(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it names something twice")
    return found


def _read_number(text: str) -> float:
    is_whole = text.removeprefix("-").isdigit()
    if not math.isfinite(float(text)) or (is_whole and not -(2**63) <= int(text) < 2**64):
        raise ValueError(f"it has {text[:40]}, which is too large or no number")
    return int(text) if is_whole else float(text)
