"""``rankwise predict``: score the items of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from rankwise.cli import terminal
from rankwise.cli.command import Command, option
from rankwise.cli.shared_options import (
    OUTPUT,
    TableOptions,
    confidence_option,
    data_argument,
    model_argument,
    output_option,
    table_options,
)

if TYPE_CHECKING:
    from rankwise.arrays import Array, Indices, Numbers
    from rankwise.datasets import RankingData

Columns: TypeAlias = "dict[str, Numbers]"


@click.command(cls=Command, examples=["rankwise predict model.rw new.csv --rank -o ranked.csv"])
@model_argument
@data_argument
@output_option
@option(
    "--column",
    metavar="NAME",
    section=OUTPUT,
    help="Write a copy of the table with the scores in a new column of this name.",
)
@option(
    "--rank",
    is_flag=True,
    section=OUTPUT,
    help="Write a copy of the table sorted by group, best item first, with a column of ranks "
    "(rank, or --column). Without column names: the ranks only, in the order of DATA.",
)
@option(
    "--intervals",
    is_flag=True,
    section=OUTPUT,
    help="Write scores with standard errors and ranks with intervals, as CSV, or as columns with "
    "--column. For models of rankwise train --calibrate.",
)
@confidence_option
@option(
    "--best-set",
    metavar="X",
    type=float,
    section=OUTPUT,
    is_advanced=True,
    help="Write scores, and 1 for the items of each group that include its best item with this "
    "probability, such as 0.9. For models of rankwise train --calibrate.",
)
@table_options
def predict(
    model: Path,
    data: Path,
    table: TableOptions,
    output: Path | None,
    column: str | None,
    rank: bool,
    intervals: bool,
    confidence: float,
    best_set: float | None,
) -> None:
    """Score items: one number per line, in the order of the input.

    MODEL is a file of rankwise train. DATA is a table (CSV, TSV, Parquet, Feather, JSON) or
    svmlight rows; - is standard input.
    """
    from rankwise.cli.input_files import DataFile
    from rankwise.cli.trained_model import open_model
    from rankwise.datasets import write_table_with_scores
    from rankwise.rankers.base import ranks_in_groups

    terminal.check_files([model, data], output)
    _check_options(table, column, rank, intervals, best_set)
    if not 0 < confidence < 1:
        raise ValueError(f"--confidence {confidence:g}: expected a number between 0 and 1.")
    ranker = open_model(model)
    file = DataFile(data, table, target_needed=False)
    items = file.read_for(ranker)
    if intervals:
        columns = ranker.intervals(items, confidence)
    elif best_set is not None:
        columns = ranker.best_set(items, best_set)
    elif rank:
        columns = {"rank": ranks_in_groups(ranker.predict(items), items.groups)}
    else:
        columns = {"score": ranker.predict(items)}
    if items.rows is not None:  # rows without a group were dropped
        n_rows = file.opened.n_rows()
        columns = {
            name: _spread_over_rows(values, items.rows, n_rows) for name, values in columns.items()
        }

    row_order = None
    has_column_names = not file.is_letor and not table.no_header
    if rank and has_column_names:
        row_order = _order_by_group_and_rank(columns["rank"], items)
        column = column or "rank"
    if column is None:
        terminal.write_text(output, _columns_text(columns))
        return
    source = data if file.is_letor else file.opened
    write_table_with_scores(
        source,
        output or "-",
        _rename_columns(columns, column),
        delimiter=table.delimiter,
        order=row_order,
    )


def _check_options(
    table: TableOptions, column: str | None, rank: bool, intervals: bool, best_set: float | None
) -> None:
    """Refuse options that exclude each other."""
    if column is not None and table.no_header:
        raise ValueError(
            "--column needs a file with column names, but --no-header says that it has none; leave "
            "out one of the two options."
        )
    passed_options = [rank, intervals, best_set is not None]
    if passed_options.count(True) > 1:
        raise ValueError("--rank, --intervals and --best-set exclude each other; pass one of them.")


def _rename_columns(columns: Columns, name: str) -> Columns:
    """Give one column the name of --column; several columns get it as a prefix."""
    if len(columns) == 1:
        (values,) = columns.values()
        return {name: values}
    return {f"{name}_{suffix}": values for suffix, values in columns.items()}


def _columns_text(columns: Columns) -> str:
    """One row a line; several columns as CSV with a header."""
    lines = []
    if len(columns) > 1:
        header = ",".join(columns)
        lines.append(header)
    lists_of_values = [values.tolist() for values in columns.values()]
    for row in zip(*lists_of_values, strict=True):
        lines.append(",".join(repr(number) for number in row))
    return "\n".join(lines) + "\n"


def _order_by_group_and_rank(ranks: Numbers, items: RankingData) -> Indices:
    """The rows of the file by group and rank; rows without a group are last."""
    import numpy as np

    from rankwise.groups import encode_groups

    n_rows = len(ranks)
    rows_with_group = np.arange(n_rows) if items.rows is None else items.rows
    after_all_groups = n_rows  # larger than every code of a group
    group_of_row = np.full(n_rows, after_all_groups)
    group_of_row[rows_with_group] = encode_groups(items.groups, len(rows_with_group)).codes
    return np.lexsort((ranks, group_of_row))


def _spread_over_rows(values: Numbers, rows: Indices, n_rows: int) -> Array:
    """The values in their rows of the file, NaN in the other rows."""
    import numpy as np

    column = np.full(n_rows, np.nan)
    column[rows] = values
    return column
