"""Read data files, also compressed ones, and write files completely or not at all."""

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
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from io import BufferedIOBase, BufferedReader
from types import ModuleType
from typing import IO, TextIO, TypeAlias, cast
from weakref import WeakKeyDictionary

from rankwise.environment import require
from rankwise.errors import DataFileError, LetorFormatError
from rankwise.formatting import join_words

PathLike: TypeAlias = str | os.PathLike[str]

PACKED = (".gz", ".bz2", ".xz", ".zst")  # suffixes of files that are written compressed
BLOCK_BYTES = 1 << 20
MAX_REASON = 200  # characters of an error of another library that a message quotes

_ERRORS_OF_DAMAGED_FILES = (
    EOFError,
    OSError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
)
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_copy_of_standard_input: WeakKeyDictionary[TextIO, IO[bytes]] = WeakKeyDictionary()


def import_arrow(module: str = "pyarrow") -> ModuleType:
    """Import pyarrow or one of its modules; an ImportError says how to install it."""
    arrow: ModuleType = require(module, "Reading and writing tables (svmlight rows do without it)")
    return arrow


def path_on_disk(path: str) -> str:
    """Return the path of a file; standard input (-) is copied to a temporary file.

    The copy is made once. It can be read several times, as other files can.
    """
    if path != "-":
        return path
    if sys.stdin not in _copy_of_standard_input:
        copy = tempfile.NamedTemporaryFile(prefix="rankwise-")  # noqa: SIM115
        # one system call at a time, so that Python handles a signal before it waits for more input
        stream = cast("BufferedReader", sys.stdin.buffer)
        while chunk := stream.read1(BLOCK_BYTES):
            copy.write(chunk)
        copy.flush()
        _copy_of_standard_input[sys.stdin] = cast("IO[bytes]", copy)
    return str(_copy_of_standard_input[sys.stdin].name)


@contextmanager
def open_unpacked(
    path: str, error: type[DataFileError] = LetorFormatError
) -> Iterator[tuple[BufferedIOBase, BufferedReader]]:
    """Open a file; yield the stream of its decompressed bytes, and the file itself.

    Raises
    ------
    DataFileError
        An exception of the class `error`, if compressed data are damaged or truncated.
    OSError
        If the file cannot be read, or is a pipe, which cannot be read twice.
    """
    is_pipe_or_device = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    if is_pipe_or_device:
        raise OSError(errno.ESPIPE, "not a file on disk; save the data to a file first", path)
    with open(path_on_disk(path), "rb") as file:
        try:
            yield _decompressed(file, path, error), file
        except _ERRORS_OF_DAMAGED_FILES as problem:
            is_system_error = getattr(problem, "errno", None) is not None  # disk, network, …
            if is_system_error:
                raise
            raise damaged_file_error(error, path, problem) from None


def damaged_file_error(error: type[DataFileError], path: str, problem: Exception) -> Exception:
    """Return the error to raise about bytes that cannot be read; a MemoryError is no damage."""
    if isinstance(problem, MemoryError):
        return problem
    lines_of_problem = str(problem).splitlines() or [type(problem).__name__]
    reason = lines_of_problem[0][:MAX_REASON]
    return error(
        path,
        None,
        f"the file is damaged or truncated ({reason}). Write, download or copy it again.",
    )


def _decompressed(file: BufferedReader, path: str, error: type[DataFileError]) -> BufferedIOBase:
    """Return the stream of the decompressed bytes; the first bytes identify the compression."""
    first_bytes = file.peek(10)[:10]
    if first_bytes.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    # The fourth byte of bzip2 is a level; after it a block begins, or an empty stream ends.
    if first_bytes.startswith(b"BZh") and first_bytes[4:] in (b"1AY&SY", b"\x17rE8P\x90"):
        return bz2.BZ2File(file)
    if first_bytes.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(file)
    if first_bytes.startswith(b"\x28\xb5\x2f\xfd"):
        zstandard: BufferedIOBase = import_arrow().CompressedInputStream(file, "zstd")
        return zstandard
    if first_bytes.startswith(b"PK\x03\x04"):
        return _open_zip_member(file, path, error)
    return file


def _open_zip_member(file: BufferedReader, path: str, error: type[DataFileError]) -> BufferedIOBase:
    """Open the only file of a zip archive."""
    archive = zipfile.ZipFile(file)
    names = [name for name in archive.namelist() if not name.startswith("__MACOSX/")]
    if "model.json" in names:
        raise error(
            path,
            None,
            "this is a model file of rankwise, expected a file of data. Check the order of the "
            "files.",
        )
    if len(names) != 1:
        raise error(
            path,
            None,
            f"the zip archive contains {join_words(names, 5)}, expected one file of data. Save a "
            "sheet of an Excel workbook as CSV.",
        )
    return cast("BufferedIOBase", archive.open(names[0]))


def line_blocks(
    path: str, *, error: type[DataFileError] = LetorFormatError
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of complete lines, each with the number of its first line, counted from 1.

    Every line ends with a line feed, including the last line of the file. A byte order mark at the
    start of the file is dropped.
    """
    line_number = 1  # of the first line that was not yielded yet
    start_of_line = b""  # the part of a line whose end was not read yet
    with open_unpacked(path, error) as (stream, _):
        while chunk := stream.read(BLOCK_BYTES):
            text = start_of_line + chunk
            end_of_last_line = text.rfind(b"\n") + 1  # 0 if no line ends in the text
            complete_lines = text[:end_of_last_line]
            start_of_line = text[end_of_last_line:]
            if complete_lines:
                yield line_number, _without_byte_order_mark(complete_lines, line_number)
                line_number += complete_lines.count(b"\n")
    has_unfinished_last_line = start_of_line != b""
    if has_unfinished_last_line:
        yield line_number, _without_byte_order_mark(start_of_line, line_number) + b"\n"


def _without_byte_order_mark(lines: bytes, first_line_number: int) -> bytes:
    """Drop the byte order mark at the start of the first line of a file."""
    if first_line_number == 1:
        return lines.removeprefix(codecs.BOM_UTF8)
    return lines


def numbered_lines(
    path: str, *, error: type[DataFileError] = LetorFormatError
) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each line, and the line without its line feed; see `line_blocks`."""
    for first_number, block in line_blocks(path, error=error):
        yield from enumerate(block.split(b"\n")[:-1], start=first_number)


def check_writable(name: str) -> str:
    """Return the real path of a file, or raise an OSError that says why it cannot be written."""
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", name)
    if not os.path.isdir(folder):
        problem = f"the folder {folder} does not exist; create it first"
        raise FileNotFoundError(errno.ENOENT, problem, name)
    path_to_change = folder  # a new file changes its folder
    if os.path.exists(target):
        path_to_change = target
    if not os.access(path_to_change, os.W_OK):
        problem = "no permission to write there; choose another file or folder"
        raise PermissionError(errno.EACCES, problem, name)
    return target


@contextmanager
def replace_file(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a stream whose content replaces `path` if the block raises no error.

    The bytes are written to a temporary file in the same directory, which then replaces `path` in
    one step. After an error `path` is unchanged and the temporary file is removed. The suffixes
    ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress. The path ``-`` is standard output.

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
    if _is_stream(name):
        with (
            _name_file_in_errors(name),
            open(name, "wb") as device,
            _compress(device, name) as stream,
        ):
            yield stream
        return
    target = check_writable(name)
    with _temporary_path_next_to(target) as temporary_path:
        with _open_temporary_file(temporary_path, name) as stream:
            yield stream
        _move_into_place(temporary_path, target)


def write_files(contents: Sequence[tuple[PathLike, bytes]]) -> None:
    """Write several files, each as `replace_file` does; no file is replaced if one of them fails.

    Parameters
    ----------
    contents : sequence of (path, bytes)
        Files and their uncompressed contents.

    Raises
    ------
    OSError
        If a file cannot be written. Files on disk are then unchanged; output to standard output or
        to a pipe cannot be undone.
    """
    with ExitStack() as temporary_paths:  # removes the temporary files that are left at the end
        path_and_target: list[tuple[str, str]] = []
        for path, content in contents:
            name = os.fspath(path)
            if _is_stream(name):
                with replace_file(name) as stream:
                    stream.write(content)
                continue
            target = check_writable(name)
            temporary_path = temporary_paths.enter_context(_temporary_path_next_to(target))
            with _open_temporary_file(temporary_path, name) as stream:
                stream.write(content)
            path_and_target.append((temporary_path, target))
        for temporary_path, target in path_and_target:
            _move_into_place(temporary_path, target)


def _is_stream(name: str) -> bool:
    """Whether a path is standard output, a pipe or a device, which cannot be replaced."""
    return name == "-" or (os.path.exists(name) and not os.path.isfile(name))


@contextmanager
def _temporary_path_next_to(target: str) -> Iterator[str]:
    """Yield the path of a temporary file in the directory of `target`; remove it at the end."""
    temporary_name = f".rankwise-{secrets.token_hex(8)}.tmp"
    temporary_path = os.path.join(os.path.dirname(target), temporary_name)
    try:
        yield temporary_path
    finally:
        with suppress(FileNotFoundError):  # it was moved
            os.unlink(temporary_path)


@contextmanager
def _open_temporary_file(temporary_path: str, name: str) -> Iterator[IO[bytes]]:
    """Open a stream of the temporary file for `name`; its bytes are on the disk at the end."""
    with _name_file_in_errors(name, temporary_path), open(temporary_path, "xb") as file:
        with _compress(file, name) as stream:
            yield stream
        file.flush()
        os.fsync(file.fileno())


def _move_into_place(temporary_path: str, target: str) -> None:
    """Replace `target`, whose permissions are kept, by the temporary file."""
    if os.path.exists(target):
        shutil.copymode(target, temporary_path)
    os.replace(temporary_path, target)


@contextmanager
def _name_file_in_errors(name: str, temporary_path: str = "") -> Iterator[None]:
    """Name the file that could not be written; the system names no file or the temporary one."""
    try:
        yield
    except OSError as error:
        is_about_temporary_file = error.filename == temporary_path
        if error.errno not in _DISK_IS_FULL and not is_about_temporary_file:
            raise
        reason = os.strerror(error.errno or 0)
        problem = f"{reason}, nothing was written; free disk space or choose another folder"
        raise OSError(error.errno, problem, name) from error


def _compress(file: IO[bytes], name: str) -> AbstractContextManager[IO[bytes]]:
    """Return the stream that compresses into a file, by the suffix of its name."""
    suffix = os.path.splitext(name)[1].lower()
    stream: object
    if suffix == ".gz":  # without a time stamp, so that equal data give equal bytes
        stream = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    elif suffix == ".bz2":
        stream = bz2.BZ2File(file, "wb")
    elif suffix == ".xz":
        stream = lzma.LZMAFile(file, "wb")  # noqa: SIM115, closed by the caller
    elif suffix == ".zst":
        duplicate = open(os.dup(file.fileno()), "wb")  # noqa: SIM115, closed by the stream
        stream = import_arrow().CompressedOutputStream(duplicate, "zstd")
    else:
        stream = nullcontext(file)
    return cast("AbstractContextManager[IO[bytes]]", stream)
