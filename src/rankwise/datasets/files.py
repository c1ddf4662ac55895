"""Bytes of data files: unpacked, read by blocks of lines, written whole or not at all."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import lzma
import os
import secrets
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from io import BufferedReader
from typing import IO, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from rankwise.environment import require
from rankwise.errors import DataFileError, LetorFormatError
from rankwise.formatting import join_words

PathLike: TypeAlias = str | os.PathLike[str]

#: Suffixes of files that are written compressed.
PACKED = (".gz", ".bz2", ".xz", ".zst")
BLOCK_BYTES = 1 << 20

_DAMAGED = (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_standard_input: WeakKeyDictionary[Any, IO[bytes]] = WeakKeyDictionary()


def import_arrow(module: str = "pyarrow") -> Any:
    """Import pyarrow or a module of it, or say how to install it."""
    return require(module, "Reading and writing tables (svmlight rows do without it)")


def location(path: str) -> str:
    """Where the bytes are; standard input (-) is copied to a temporary file when first asked for.

    So it can be read more than once, as other files are.
    """
    if path != "-":
        return path
    if sys.stdin not in _standard_input:
        copy = tempfile.NamedTemporaryFile(prefix="rankwise-")  # noqa: SIM115
        # one system call at a time, so that Python handles a signal before it waits for more input
        stream = cast("BufferedReader", sys.stdin.buffer)
        while chunk := stream.read1(BLOCK_BYTES):
            copy.write(chunk)
        copy.flush()
        _standard_input[sys.stdin] = cast("IO[bytes]", copy)
    return str(_standard_input[sys.stdin].name)


@contextmanager
def open_unpacked(
    path: str, error: type[DataFileError] = LetorFormatError
) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file; yield the stream of its unpacked bytes, and the file itself.

    Raises
    ------
    DataFileError
        Of the kind `error`, if packed data are damaged or cut short.
    OSError
        If the file cannot be read, or is a pipe, which cannot be read twice.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise OSError(errno.ESPIPE, "not a file on disk; save the data to a file first", path)
    with open(location(path), "rb") as raw:
        try:
            yield _unpacked(raw, path, error), raw
        except _DAMAGED as problem:
            if getattr(problem, "errno", None) is not None:  # disk, network, a directory
                raise
            raise damage(error, path, problem) from None


def damage(error: type[DataFileError], path: str, problem: Exception) -> Exception:
    """The error to raise about bytes that cannot be read; that memory is full is no damage."""
    if isinstance(problem, MemoryError):
        return problem
    reason = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
    remedy = "Write, fetch or copy it again."
    return error(path, None, f"the file is damaged or cut short ({reason}). {remedy}")


def _unpacked(raw: IO[bytes], path: str, error: type[DataFileError]) -> IO[bytes]:
    """The stream of the unpacked bytes, by the first bytes of the file."""
    head = raw.peek(10)[:10]  # type: ignore[attr-defined]
    stream: Any = raw
    if head.startswith(b"\x1f\x8b"):
        stream = gzip.GzipFile(fileobj=raw)
    elif head.startswith(b"BZh") and head[4:] in (b"1AY&SY", b"\x17rE8P\x90"):
        stream = bz2.BZ2File(raw)
    elif head.startswith(b"\xfd7zXZ\x00"):
        stream = lzma.LZMAFile(raw)  # noqa: SIM115
    elif head.startswith(b"\x28\xb5\x2f\xfd"):
        stream = import_arrow().CompressedInputStream(raw, "zstd")
    elif head.startswith(b"PK\x03\x04"):
        archive = zipfile.ZipFile(raw)
        names = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
        if len(names) != 1:
            problem = f"a zip file of {join_words(names, 5)}, expected one file of data."
            remedy = "Save a sheet of an Excel workbook as CSV; a rankwise model is no data."
            raise error(path, None, f"{problem} {remedy}")
        stream = archive.open(names[0])
    return cast("IO[bytes]", stream)


def line_blocks(
    path: str, *, error: type[DataFileError] = LetorFormatError
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line, counted from one.

    Every line ends with a line feed, the last one of the file too.
    """
    number, begun = 1, b""
    with open_unpacked(path, error) as (stream, _):
        while piece := stream.read(BLOCK_BYTES):
            text = begun + piece
            cut = text.rfind(b"\n") + 1
            if cut:
                yield number, text[:cut].removeprefix(codecs.BOM_UTF8 if number == 1 else b"")
                number += text.count(b"\n", 0, cut)
            begun = text[cut:]
    if begun:
        yield number, begun.removeprefix(codecs.BOM_UTF8 if number == 1 else b"") + b"\n"


def numbered_lines(
    path: str, *, error: type[DataFileError] = LetorFormatError
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text, without their line feeds, and their numbers: see `line_blocks`."""
    for first, block in line_blocks(path, error=error):
        yield from enumerate(block.split(b"\n")[:-1], start=first)


def check_writable(name: str) -> str:
    """The real path of a file that can be written; of one that cannot, an OSError says why."""
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", name)
    if not os.path.isdir(folder):
        problem = f"the folder {folder} does not exist; create it first"
        raise FileNotFoundError(errno.ENOENT, problem, name)
    if not os.access(target if os.path.exists(target) else folder, os.W_OK):
        problem = "no permission to write there; choose another name or place"
        raise PermissionError(errno.EACCES, problem, name)
    return target


@contextmanager
def replace_file(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a stream whose content takes the place of `path` when the block ends well.

    The bytes go to a temporary file in the same directory, which then replaces `path` in one step.
    If anything fails, `path` is as it was and the temporary file is gone.  The suffixes ``.gz``,
    ``.bz2``, ``.xz`` and ``.zst`` compress.  The path ``-`` is standard output.

    Raises
    ------
    OSError
        If the directory does not exist or the file may not be written.
    """
    name = os.fspath(path)
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if os.path.exists(name) and not os.path.isfile(name):  # a pipe, a device, a directory
        with _naming(name), open(name, "wb") as device, _compressing(device, name) as stream:
            yield stream
        return
    target = check_writable(name)
    with _temporary_beside(target) as temporary:
        with _writing(temporary, name) as stream:
            yield stream
        _put_in_place(temporary, target)


def write_files(contents: Sequence[tuple[PathLike, bytes]]) -> None:
    """Write several files, each as `replace_file` does; no file is replaced if one of them fails.

    Parameters
    ----------
    contents : sequence of (path, bytes)
        Files and their uncompressed contents.

    Raises
    ------
    OSError
        If a file cannot be written. Files on disk are then unchanged; what went to standard output
        or a pipe cannot be taken back.
    """
    with ExitStack() as stack:
        finished: list[tuple[str, str]] = []
        for path, content in contents:
            name = os.fspath(path)
            if _is_stream(name):
                with replace_file(name) as stream:
                    stream.write(content)
                continue
            target = check_writable(name)
            temporary = stack.enter_context(_temporary_beside(target))
            with _writing(temporary, name) as stream:
                stream.write(content)
            finished.append((temporary, target))
        for temporary, target in finished:
            _put_in_place(temporary, target)


def _is_stream(name: str) -> bool:
    """Whether a path is standard output, a pipe or a device, which cannot be replaced."""
    return name == "-" or (os.path.exists(name) and not os.path.isfile(name))


@contextmanager
def _temporary_beside(target: str) -> Iterator[str]:
    """Path of a temporary file in the directory of `target`; removed at the end if it exists."""
    temporary = os.path.join(os.path.dirname(target), f".rankwise-{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


@contextmanager
def _writing(temporary: str, name: str) -> Iterator[IO[bytes]]:
    """Open a stream of the temporary file for `name`; its bytes are on the disk at the end."""
    with _naming(name, temporary), open(temporary, "xb") as raw:
        with _compressing(raw, name) as stream:
            yield stream
        raw.flush()
        os.fsync(raw.fileno())


def _put_in_place(temporary: str, target: str) -> None:
    """Replace `target`, whose permissions are kept, by the temporary file."""
    if os.path.exists(target):
        shutil.copymode(target, temporary)
    os.replace(temporary, target)


@contextmanager
def _naming(name: str, temporary: str = "") -> Iterator[None]:
    """Say which file could not be written; the system names none, or the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM and error.filename != temporary:
            raise
        reason = os.strerror(error.errno or 0)
        problem = f"{reason}, nothing was written; make room or write elsewhere"
        raise OSError(error.errno, problem, name) from error


def _compressing(raw: IO[bytes], name: str) -> Any:
    """The stream that compresses into a file, as its suffix says."""
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".gz":  # no time stamp: the same data give the same bytes
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
    if suffix in (".bz2", ".xz"):
        return (bz2 if suffix == ".bz2" else lzma).open(raw, "wb")
    if suffix == ".zst":
        own = open(os.dup(raw.fileno()), "wb")  # noqa: SIM115, closed by the stream
        return import_arrow().CompressedOutputStream(own, "zstd")
    return nullcontext(raw)
