"""The container of a model file: a zip of one JSON document and NumPy arrays, uncompressed.

The functions for reading compare all sizes with the size of the file before they allocate memory.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import numpy as np
from numpy.lib import format as npy

from rankwise.arrays import AnyArray
from rankwise.datasets.files import PathLike, replace_file
from rankwise.errors import ModelFileError
from rankwise.formatting import Json, JsonObject

FORMAT = "rankwise model"
FORMAT_VERSION = 3  # raised by every change that older versions of rankwise could not read

DOCUMENT = "model.json"
DOCUMENT_KEYS = {"format", "version", "rankwise", "written_with", "notes", "model"}

MAX_DOCUMENT_BYTES = 2**22
MAX_DOCUMENT_VALUES = 500_000  # each takes some hundred bytes of memory
MAX_DIRECTORY_BYTES = 2**21  # enough for forty thousand arrays
MAX_EMPTY_LENGTH = 10**4  # of an axis of an array without entries
ZIP64_BYTES = 2**30  # arrays from this size on need the 64-bit entries of a zip

# The end of a zip (APPNOTE 4.3.16): the record of 22 bytes, and before it, in files with 64-bit
# entries, a locator of 20 bytes.
END_BYTES = 22
LOCATOR_BYTES = 20
END_SIGNATURE = b"PK\x05\x06"
LOCATOR_SIGNATURE = b"PK\x06\x07"
MIN_ZIP64_FILE = 2**31  # smaller files need no locator


def write_archive(path: PathLike, document: JsonObject, arrays: Sequence[AnyArray]) -> None:
    """Write the document and the arrays to one file, completely or not at all.

    Raises
    ------
    ValueError
        If the document is larger than `read_document` accepts.
    """
    text = json.dumps(document, allow_nan=False).encode()
    if len(text) > MAX_DOCUMENT_BYTES or _has_too_many_values(text):
        raise ValueError(
            f"the notes, names and labels of the model take {len(text):,} bytes, which is too many."
        )
    with replace_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        # The default date of an entry is 1980, so equal models give equal bytes.
        archive.writestr(zipfile.ZipInfo(DOCUMENT), text)
        for position, array in enumerate(arrays):
            entry = zipfile.ZipInfo(array_name(position))
            is_large = array.nbytes >= ZIP64_BYTES
            with archive.open(entry, "w", force_zip64=is_large) as target:
                npy.write_array(target, array, version=(1, 0), allow_pickle=False)


def array_name(position: int) -> str:
    """Name of the entry of an array."""
    return f"{position}.npy"


@contextmanager
def open_archive(path: PathLike) -> Iterator[zipfile.ZipFile]:
    """Open the zip of a model file; every error inside the context names the file."""
    name = os.fspath(path)
    with open(path, "rb") as stream:
        try:
            yield _open_zip(stream)
        except MemoryError:
            raise ModelFileError(name, "there is not enough memory for this model.") from None
        except Exception as error:  # an untrusted file may raise any exception
            problem = " ".join(str(error).split())  # in one line
            if not problem:
                problem = type(error).__name__
            problem = problem.rstrip(".")
            raise ModelFileError(name, f"this model cannot be read: {problem:.300}.") from error


def _open_zip(stream: IO[bytes]) -> zipfile.ZipFile:
    """Open the zip and check that its entries are uncompressed and not larger than the file."""
    n_bytes = stream.seek(0, os.SEEK_END)
    _check_directory_size(stream, n_bytes)
    archive = zipfile.ZipFile(stream)
    entries = archive.infolist()
    names = {entry.filename for entry in entries}
    if DOCUMENT not in names:
        raise ValueError(f"it is not a rankwise model: it has no {DOCUMENT}")
    n_arrays = len(entries) - 1
    expected_names = {DOCUMENT, *(array_name(position) for position in range(n_arrays))}
    if names != expected_names:
        raise ValueError("it has entries other than its document and its arrays")
    for entry in entries:
        is_compressed = entry.compress_type != zipfile.ZIP_STORED
        is_encrypted = entry.flag_bits & 1
        if is_compressed or is_encrypted:
            raise ValueError("its entries are compressed or encrypted")
    n_bytes_of_entries = sum(max(entry.file_size, entry.compress_size) for entry in entries)
    if n_bytes_of_entries > n_bytes:
        raise ValueError("its entries are larger than the file")
    return archive


def _check_directory_size(stream: IO[bytes], n_bytes: int) -> None:
    """Raise ValueError if zipfile would read a long list of entries; it reads all of them."""
    stream.seek(max(0, n_bytes - END_BYTES - LOCATOR_BYTES))
    locator_and_end_record = stream.read().rjust(END_BYTES + LOCATOR_BYTES)
    end_record = locator_and_end_record[-END_BYTES:]
    comment_length = end_record[20:22]  # positions by APPNOTE 4.3.16
    if not end_record.startswith(END_SIGNATURE) or comment_length != b"\0\0":
        raise ValueError("it is not a rankwise model, or its end is missing")
    n_directory_bytes = int.from_bytes(end_record[12:16], "little")
    has_locator = locator_and_end_record.startswith(LOCATOR_SIGNATURE)
    # A locator leads to another record, in which the list may be longer.
    has_needless_locator = has_locator and n_bytes < MIN_ZIP64_FILE
    if n_directory_bytes > MAX_DIRECTORY_BYTES or has_needless_locator:
        raise ValueError("the list of its entries is too long")


def read_document(archive: zipfile.ZipFile) -> JsonObject:
    """Read the JSON document and check its version."""
    if archive.getinfo(DOCUMENT).file_size > MAX_DOCUMENT_BYTES:
        raise ValueError(f"{DOCUMENT} is too large")
    text = archive.read(DOCUMENT)
    if _has_too_many_values(text):
        raise ValueError(f"{DOCUMENT} has too many values")
    document: JsonObject = json.loads(text)
    _check_version(document)
    if set(document) != DOCUMENT_KEYS:
        raise ValueError(f"it is not a rankwise model: its {DOCUMENT} has unexpected entries")
    if not isinstance(document["notes"], (dict, type(None))):
        raise ValueError("its notes are not a dictionary")
    return document


def _check_version(document: JsonObject) -> None:
    version: Json = document["version"]
    if document["format"] != FORMAT or type(version) is not int or version < 1:
        raise ValueError(f"it is not a rankwise model: its {DOCUMENT} has another format")
    if version < FORMAT_VERSION:
        raise ValueError("it was written by rankwise 0.3; train again")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"it was written by rankwise {document.get('rankwise')!r:.40} in format {version}; "
            f"this version reads format {FORMAT_VERSION}: upgrade rankwise"
        )


def _has_too_many_values(text: bytes) -> bool:
    # Each value follows a comma or an opening bracket, so this counts at least as many.
    n_values = text.count(b",") + text.count(b"[") + text.count(b"{")
    return n_values > MAX_DOCUMENT_VALUES


def read_arrays(archive: zipfile.ZipFile) -> list[AnyArray]:
    """Read all arrays, in the order of their numbers."""
    n_arrays = len(archive.namelist()) - 1
    return [_read_array(archive, array_name(position)) for position in range(n_arrays)]


def _read_array(archive: zipfile.ZipFile, name: str) -> AnyArray:
    """Read an array and check that its size is that of its entry in the zip."""
    n_bytes = archive.getinfo(name).file_size
    with archive.open(name) as entry:
        if npy.read_magic(entry) != (1, 0):
            raise ValueError(f"{name} is not an array in NumPy's format 1.0")
        shape, is_fortran, dtype = npy.read_array_header_1_0(entry)
        check_dtype_and_shape(dtype, shape)
        n_entries = int(np.prod(shape, dtype=object))  # integers of Python cannot overflow
        n_header_bytes = entry.tell()
        if n_entries * dtype.itemsize != n_bytes - n_header_bytes:
            raise ValueError(f"{name} has shape {shape}, which is not the size of its data")
        array = np.frombuffer(bytearray(entry.read()), dtype)
    if dtype.kind == "U":  # text is stored as one 32-bit number for each character
        largest_character = array.view(np.uint32).max(initial=0)
        if largest_character > sys.maxunicode:
            raise ValueError(f"{name} has invalid Unicode")
    if is_fortran:
        return array.reshape(shape, order="F")
    return array.reshape(shape)


def check_dtype_and_shape(dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> None:
    """Raise ValueError unless a file may have an array of this type and shape."""
    if not _is_portable(dtype):
        raise ValueError(
            f"an array has the type {dtype!s:.40}; expected plain numbers or text, little-endian"
        )
    is_long_and_empty = 0 in shape and max(shape) > MAX_EMPTY_LENGTH
    if is_long_and_empty or any(length < 0 for length in shape):
        raise ValueError(f"an array has the shape {shape!s:.60}")


def _is_portable(dtype: np.dtype[np.generic]) -> bool:
    """Whether the entries are numbers or text of a known size, little-endian."""
    is_record = dtype.names is not None or dtype.subdtype is not None
    is_number_text_or_date = dtype.kind in "biufUSMm" and dtype.itemsize > 0
    is_long_double = dtype.kind == "f" and dtype.itemsize > 8
    is_little_endian = dtype.newbyteorder("<") == dtype
    return is_number_text_or_date and is_little_endian and not is_record and not is_long_double
