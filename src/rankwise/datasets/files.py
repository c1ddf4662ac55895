"""Text files, compressed or not: read line by line, and written whole or not at all."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import lzma
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO, TypeAlias, cast

from rankwise.errors import LetorFormatError

__all__ = ["PathLike", "Watch", "numbered_lines", "open_unpacked", "replace_file"]

PathLike: TypeAlias = str | os.PathLike[str]
Watch: TypeAlias = Callable[[int], None]  # gets the number of bytes of the file read so far

_LINES_BETWEEN_LOOKS = 1000
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BZIP2_MARKS = (b"1AY&SY", b"\x17rE8P\x90")  # first block, or end of an empty stream


def numbered_lines(path: str, watch: Watch | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text file with their numbers, counted from one.

    gzip, bzip2 and xz files are recognised by their first bytes, not by their name. `watch` is
    told now and then how much of the file, compressed as it is, has been read.

    Raises
    ------
    LetorFormatError
        If the compressed data are damaged or cut short, or a line is not text.
    OSError
        If the file cannot be opened.
    """
    number = 0
    with open(path, "rb") as raw:
        stream = _decompressed(raw)
        try:
            for number, line in enumerate(stream, start=1):
                if watch is not None and number % _LINES_BETWEEN_LOOKS == 0:
                    watch(raw.tell())
                if b"\0" in line:
                    raise LetorFormatError(
                        path,
                        number,
                        "this is not a text file (it has zero bytes). Expected plain text in "
                        "UTF-8, or such a text compressed by gzip, bzip2 or xz.",
                    )
                yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            raise _damaged(path, number + 1, error) from None


@contextmanager
def open_unpacked(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes; gzip, bzip2 and xz are recognised by their first bytes.

    Raises
    ------
    LetorFormatError
        If the compressed data are damaged or cut short.
    OSError
        If the file cannot be opened.
    """
    with open(path, "rb") as raw:
        try:
            yield _decompressed(raw)
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            raise _damaged(path, None, error) from None


def _damaged(path: str, line: int | None, error: Exception) -> Exception:
    """What to raise when reading fails: the operating system's own error, or ours."""
    if getattr(error, "errno", None) is not None:
        return error  # disk, network, a directory
    return LetorFormatError(
        path,
        line,
        f"the compressed file is damaged or cut short ({error}). Fetch or copy the file again.",
    )


def _decompressed(raw: IO[bytes]) -> IO[bytes]:
    head = raw.peek(10)[:10]  # type: ignore[attr-defined]
    if head.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw, mode="rb"))
    if head.startswith(b"BZh") and head[4:10] in _BZIP2_MARKS:
        return bz2.BZ2File(raw)
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(raw)
    return raw


@contextmanager
def replace_file(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a stream whose content takes the place of `path` when the block ends well.

    The bytes go to a temporary file in the same directory, which then replaces `path` in one step.
    If anything fails, `path` is as it was and the temporary file is gone.  The suffixes ``.gz``,
    ``.bz2`` and ``.xz`` compress.

    Raises
    ------
    OSError
        If the directory does not exist or the file may not be written.
    """
    name = os.fspath(path)
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
    if suffix == ".gz":  # no time stamp: the same data give the same bytes
        stream = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
        return cast("AbstractContextManager[IO[bytes]]", stream)
    if suffix == ".bz2":
        return bz2.BZ2File(raw, "wb")
    if suffix == ".xz":
        return lzma.LZMAFile(raw, "wb")
    return nullcontext(raw)
