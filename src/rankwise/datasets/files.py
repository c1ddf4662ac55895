"""Data files, compressed or not: read by blocks of whole lines, written whole or not at all."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import lzma
import mmap
import os
import re
import secrets
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from rankwise.environment import require
from rankwise.errors import DataFileError, LetorFormatError

PathLike: TypeAlias = str | os.PathLike[str]
Watch: TypeAlias = Callable[[int], None]  # gets the number of bytes of the file read so far

#: Suffixes of compressed files.
PACKED = (".gz", ".bz2", ".xz", ".zst")
#: Longer lines are refused, so that a small compressed file cannot fill the memory.
MAX_LINE = 1 << 26
BLOCK_BYTES = 1 << 20

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_READING = (EOFError, OSError, zlib.error, lzma.LZMAError)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_standard_input: WeakKeyDictionary[Any, IO[bytes]] = WeakKeyDictionary()


def line_blocks(
    path: str,
    watch: Watch | None = None,
    *,
    error: type[DataFileError] = LetorFormatError,
    n_bytes: int | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line, counted from one.

    Every line ends with a line feed, the last one of the file too.  `watch` is told now and then
    how much of the file, compressed as it is, has been read.

    Raises
    ------
    DataFileError
        Of the kind `error`, if the compressed data are damaged or cut short, a line has zero bytes
        or is longer than any row.
    OSError
        If the file cannot be opened.
    """
    number, begun = 1, b""
    with open(location(path), "rb") as raw:
        try:
            for piece in _pieces(raw, n_bytes or BLOCK_BYTES):
                text = begun + piece
                is_text = b"\0" not in piece
                cut = text.rfind(b"\n", 0, None if is_text else text.index(b"\0")) + 1
                if cut:
                    yield number, _without_mark(text[:cut], number)
                    number += text.count(b"\n", 0, cut)
                if not is_text:
                    raise error(path, number, _NOT_TEXT)
                begun = text[cut:]
                if len(begun) > MAX_LINE:
                    raise error(path, number, _TOO_LONG)
                if watch is not None:
                    watch(raw.tell())
        except _READING as problem:
            raise damage(error, path, number, problem) from None
    if begun:
        yield number, _without_mark(begun + b"\n", number)


def _without_mark(block: bytes, number: int) -> bytes:
    return block.removeprefix(codecs.BOM_UTF8) if number == 1 else block


_NOT_TEXT = (
    "this is not a text file (it has zero bytes). Expected plain text in UTF-8, or such a text "
    "compressed by gzip, bzip2, xz or zstandard."
)
_TOO_LONG = (
    f"the line has more than {MAX_LINE // 2**20} MiB, longer than any row. Check that the file is "
    "a text with one row a line."
)


def _pieces(raw: IO[bytes], n_bytes: int) -> Iterator[bytes]:
    """Pieces of the unpacked bytes; what was read before the data break off is a piece, too."""
    stream = _decompressed(raw)
    read = getattr(stream, "read1", stream.read)
    waiting = bytearray()
    try:
        while got := read(n_bytes):
            waiting += got
            if len(waiting) >= n_bytes:
                yield bytes(waiting)
                waiting.clear()
    except Exception:
        yield bytes(waiting)
        raise
    yield bytes(waiting)


def numbered_lines(
    path: str, *, error: type[DataFileError] = LetorFormatError
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text, without their line feeds, and their numbers: see `line_blocks`."""
    for first, block in line_blocks(path, error=error):
        yield from enumerate(block.split(b"\n")[:-1], start=first)


def text_content(path: str, error: type[DataFileError]) -> Any:
    """The bytes of a whole text, unpacked; those of a plain file are not copied.

    Raises the errors of `line_blocks`.
    """
    with open(location(path), "rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        is_plain = _decompressed(raw) is raw
        content = mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) if is_plain and size else b""
    if content[:2] in UTF16:
        return from_utf16(bytes(content))
    at = content.find(b"\0")
    if at >= 0:
        raise error(path, 1 + content[:at].count(b"\n"), _NOT_TEXT)
    return content if is_plain else b"".join([block for _, block in line_blocks(path, error=error)])


def from_utf16(text: bytes) -> bytes:
    """The same text in UTF-8."""
    return text.decode("utf-16", "replace").encode()


def location(path: str) -> str:
    """Where the bytes are; standard input (-) is copied to a temporary file when first asked for.

    So it can be read more than once, as other files are.
    """
    if path != "-":
        return path
    if sys.stdin not in _standard_input:
        copy = tempfile.NamedTemporaryFile(prefix="rankwise-")  # noqa: SIM115
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        _standard_input[sys.stdin] = cast("IO[bytes]", copy)
    return str(_standard_input[sys.stdin].name)


@contextmanager
def open_unpacked(path: str, error: type[DataFileError] = LetorFormatError) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacked if need be; raises the errors of `line_blocks`."""
    with open(location(path), "rb") as raw:
        try:
            yield _decompressed(raw)
        except _READING as problem:
            raise damage(error, path, None, problem) from None


def damage(
    kind: type[DataFileError], path: str, line: int | None, problem: Exception, what: str = "file"
) -> Exception:
    """What to raise when reading fails: the operating system's own error, or ours."""
    if getattr(problem, "errno", None) is not None:
        return problem  # disk, network, a directory
    reason = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
    remedy = "Write, fetch or copy it again."
    return kind(path, line, f"the {what} is damaged or cut short ({reason}). {remedy}")


def _decompressed(raw: IO[bytes]) -> IO[bytes]:
    head = raw.peek(10)  # type: ignore[attr-defined]
    for mark, unpack in _UNPACK.items():
        if re.match(mark, head):
            return cast("IO[bytes]", unpack(raw))
    return raw


def _zstandard(raw: IO[bytes]) -> Any:
    arrow = import_arrow(what="Files compressed by zstandard")
    return arrow.CompressedInputStream(raw, "zstd")


_UNPACK: dict[bytes, Callable[[Any], Any]] = {  # by the first bytes
    rb"\x1f\x8b": gzip.open,
    rb"BZh.(1AY&SY|\x17rE8P\x90)": bz2.open,  # first block, or end of an empty stream
    rb"\xfd7zXZ\x00": lzma.open,
    rb"\x28\xb5\x2f\xfd": _zstandard,
}


def import_arrow(module: str = "pyarrow", what: str = "Tables") -> Any:
    """Import pyarrow or a part of it, or say how to install it."""
    return require(module, f"{what}: reading or writing")


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
    target = os.path.realpath(name)
    temporary = os.path.join(os.path.dirname(target), f".rankwise-{secrets.token_hex(8)}.tmp")
    try:
        with _naming(name), _create(temporary, target, name) as raw:
            with _compressing(raw, name) as stream:
                yield stream
            raw.flush()
            os.fsync(raw.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say which file could not be written; the operating system only says that a disk is full."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_ROOM:
            raise
        problem = f"{os.strerror(error.errno)}, nothing was written; make room or write elsewhere"
        raise OSError(error.errno, problem, name) from error


def _create(temporary: str, target: str, name: str) -> IO[bytes]:
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        raise FileNotFoundError(
            errno.ENOENT, f"the directory {directory} does not exist; create it first", name
        )
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only; choose another name", name)
    try:
        return open(temporary, "xb")
    except PermissionError as error:
        raise PermissionError(
            errno.EACCES, f"no permission to create a file in {directory}", name
        ) from error


def _compressing(raw: IO[bytes], name: str) -> AbstractContextManager[IO[bytes]]:
    suffix = os.path.splitext(name)[1].lower()
    stream: Any = nullcontext(raw)
    if suffix == ".gz":  # no time stamp: the same data give the same bytes
        stream = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
    elif suffix in (".bz2", ".xz"):
        stream = (bz2 if suffix == ".bz2" else lzma).open(raw, "wb")
    elif suffix == ".zst":
        arrow = import_arrow(what="Files compressed by zstandard")
        own = open(os.dup(raw.fileno()), "wb")  # noqa: SIM115, closed by the stream
        stream = arrow.CompressedOutputStream(own, "zstd")
    return cast("AbstractContextManager[IO[bytes]]", stream)
