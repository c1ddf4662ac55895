"""Read ranking data from Parquet files, and write them back with one more column."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import PathLike, open_unpacked, replace_file
from rankwise.datasets.group_labels import GroupLabels
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.table_columns import TableColumns, Wishes, choose_columns
from rankwise.datasets.labels import show
from rankwise.errors import LetorFormatError
from rankwise.progress import Meter

__all__ = ["parquet_records", "read_parquet", "write_parquet_with_scores"]

_BATCH_ROWS = 1 << 16


def read_parquet(path: str, wishes: Wishes, show_progress: bool | None) -> RankingData:
    """Read the columns that are used, batch by batch; `read_table` says the rest.

    Raises
    ------
    LetorFormatError
        If the columns are not clear, one has a type that cannot be used, or a value is missing; the
        message names column and row, counted from 1.
    ImportError
        If pyarrow is missing.
    """
    with _opened(path) as file:
        columns = choose_columns(path, None, list(file.schema_arrow.names), wishes)
        _check_types(path, file.schema_arrow, columns)
        labels = GroupLabels()
        batches = _batches(path, file, columns, show_progress)
        parts = [_part(path, columns, labels, start, batch) for start, batch in batches]
    if not parts:
        raise LetorFormatError(path, None, "the file has columns but no rows.")
    X, y, ids = zip(*parts, strict=True)
    return RankingData(
        np.concatenate(X),
        None if columns.target is None else np.concatenate(y),
        None if columns.group is None else labels.labels(),
        None if columns.id is None else np.concatenate(ids),
        np.array(columns.feature_names, dtype=object),
    )


def parquet_records(path: str) -> Iterator[list[str]]:
    """Yield the column names, then the rows as text, an empty one for a null."""
    with _opened(path) as file:
        names = list(file.schema_arrow.names)
        yield names
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            columns = [batch.column(at).to_pylist() for at in range(len(names))]
            for row in zip(*columns, strict=True):
                yield ["" if value is None else str(value) for value in row]


def write_parquet_with_scores(
    source: str, path: PathLike, scores: NDArray[Any], column: str
) -> None:
    """Copy a Parquet file, row group by row group, and add a column of numbers at its end."""
    pyarrow = _pyarrow()
    with _opened(source) as file:
        schema = file.schema_arrow
        if column in schema.names:
            raise LetorFormatError(
                source, None, f"the column {show(column)} is there already. Choose another name."
            )
        n_rows = file.metadata.num_rows
        if n_rows != len(scores):
            raise ValueError(f"{source} has {n_rows} rows but there are {len(scores)} scores.")
        extended = schema.append(pyarrow.field(column, pyarrow.from_numpy_dtype(scores.dtype)))
        start = 0
        with (
            replace_file(path) as stream,
            pyarrow.parquet.ParquetWriter(
                stream, extended, compression=_compression(file)
            ) as writer,
        ):
            for k in range(file.metadata.num_row_groups):
                rows = file.read_row_group(k)
                added = pyarrow.array(scores[start : start + rows.num_rows])
                writer.write_table(rows.append_column(extended.field(column), added))
                start += rows.num_rows


def _compression(file: Any) -> str:
    """The compression of the first column, for the copy."""
    if not file.metadata.num_row_groups or not file.metadata.num_columns:
        return "snappy"
    name = str(file.metadata.row_group(0).column(0).compression)
    return "none" if name == "UNCOMPRESSED" else name.lower()


def _pyarrow() -> Any:
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow. Install it with pip install 'rankwise[parquet]', "
            "or write the table as CSV."
        ) from error


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """The Parquet file; what pyarrow says about damaged ones becomes a LetorFormatError."""
    pyarrow = _pyarrow()
    with open_unpacked(path) as stream:
        is_packed = not isinstance(stream, io.BufferedReader)
        source = io.BytesIO(stream.read()) if is_packed else stream
        try:
            yield pyarrow.parquet.ParquetFile(source)
        except LetorFormatError:
            raise
        except (pyarrow.ArrowException, OSError, UnicodeError) as error:
            if getattr(error, "errno", None) is not None:
                raise
            raise LetorFormatError(
                path,
                None,
                f"the Parquet file is damaged or cut short ({_first_line(error)}). "
                "Write or fetch it again.",
            ) from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _check_types(path: str, schema: Any, columns: TableColumns) -> None:
    for at in columns.features:
        _check_number(path, schema, at, "a feature", "leave it out with ignore= (--ignore)")
    if columns.target is not None:
        remedy = "name the right one with target= (--target)"
        _check_number(path, schema, columns.target, "the target", remedy)
    types = _pyarrow().types
    for role, position in (("group", columns.group), ("id", columns.id)):
        kind = None if position is None else _value_type(schema.field(position).type)
        if kind is not None and (types.is_nested(kind) or types.is_null(kind)):
            raise LetorFormatError(
                path,
                None,
                f"the column {show(schema.names[position])} has the type {kind}, which cannot be "
                f"the {role}. Write it as whole numbers or strings.",
            )


def _value_type(kind: Any) -> Any:
    return kind.value_type if _pyarrow().types.is_dictionary(kind) else kind


def _check_number(path: str, schema: Any, at: int, role: str, remedy: str) -> None:
    types = _pyarrow().types
    kind = _value_type(schema.field(at).type)
    if not (types.is_integer(kind) or types.is_floating(kind)):
        raise LetorFormatError(
            path,
            None,
            f"the column {show(schema.names[at])} has the type {kind}, but {role} has to be a "
            f"whole number or a float. Convert the column, or {remedy}.",
        )


def _batches(
    path: str, file: Any, columns: TableColumns, show_progress: bool | None
) -> Iterator[tuple[int, Any]]:
    """Yield the number of rows before each batch, and the batch with only the columns used."""
    others = (columns.target, columns.group, columns.id)
    used = sorted({*columns.features, *(at for at in others if at is not None)})
    name = os.path.basename(path)
    meter = Meter(f"reading {name} (rows)", max(1, file.metadata.num_rows), show_progress)
    start = 0
    for batch in file.iter_batches(
        batch_size=_BATCH_ROWS, columns=[columns.names[at] for at in used]
    ):
        yield start, batch
        start += batch.num_rows
        meter.update(start)
    meter.close()


def _part(
    path: str, columns: TableColumns, labels: GroupLabels, start: int, batch: Any
) -> tuple[NDArray[np.float64], Any, Any]:
    X = np.empty((batch.num_rows, len(columns.features)))
    for k, at in enumerate(columns.features):
        X[:, k] = _floats(batch.column(columns.names[at]))
        _refuse_first(path, columns.names[at], start, X[:, k], ~np.isfinite(X[:, k]))
    y = ids = None
    if columns.target is not None:
        name = columns.names[columns.target]
        y = _floats(batch.column(name))
        _refuse_first(path, name, start, y, np.isinf(y))
    if columns.group is not None:
        rows = range(start + 1, start + 1 + batch.num_rows)
        labels.extend(path, rows, _texts(batch.column(columns.names[columns.group])))
    if columns.id is not None:
        ids = np.array(_texts(batch.column(columns.names[columns.id])), dtype=object)
    return X, y, ids


def _decoded(values: Any) -> Any:
    is_dictionary = _pyarrow().types.is_dictionary(values.type)
    return values.dictionary_decode() if is_dictionary else values


def _floats(values: Any) -> NDArray[np.float64]:
    """A column as float64, NaN for a null; large whole numbers are rounded."""
    numbers = _decoded(values).cast(_pyarrow().float64(), safe=False)
    floats: NDArray[np.float64] = numbers.to_numpy(zero_copy_only=False)
    return floats


def _texts(values: Any) -> list[str]:
    """A column as texts, empty for a null; a float that is whole is written without its point."""
    pyarrow = _pyarrow()
    values = _decoded(values)
    types, kind = pyarrow.types, values.type
    if not (types.is_integer(kind) or types.is_floating(kind)):
        values = values.cast(pyarrow.string(), safe=False)
    return [_as_text(value) for value in values.to_pylist()]


def _as_text(value: Any) -> str:
    if value is None or value != value:  # NaN
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()


def _refuse_first(
    path: str, name: str, start: int, values: NDArray[np.float64], is_bad: NDArray[np.bool_]
) -> None:
    if not is_bad.any():
        return
    k = int(is_bad.argmax())
    found = "missing" if np.isnan(values[k]) else f"{values[k]}, expected a finite number"
    raise LetorFormatError(
        path,
        start + k + 1,
        f"column {show(name)} is {found} in row {start + k + 1}. Fill in such values before "
        "reading, or leave the column out with ignore= (--ignore).",
    )
