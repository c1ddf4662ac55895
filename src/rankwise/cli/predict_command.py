"""``rankwise predict``: score the items of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    """Score items: one number a line, in the order of the input.

    MODEL is a file of rankwise train. DATA is a table (CSV, TSV, Parquet, Feather, JSON) or
    svmlight rows; - is standard input.
    """
    from rankwise.cli.input_files import DataFile, open_model
    from rankwise.datasets import write_table_with_scores
    from rankwise.rankers.base import ranks_in_groups

    terminal.check_files([model, data], output)
    if column is not None and table.no_header:
        raise ValueError(
            "--column gives the new column a name, but with --no-header there is none."
        )
    if rank + intervals + (best_set is not None) > 1:
        raise ValueError("--rank, --intervals and --best-set go one at a time.")
    ranker = open_model(model)
    file = DataFile(data, table, target_needed=False)
    found = file.read_for(ranker)
    if intervals:
        columns = ranker.intervals(found, confidence)
    elif best_set is not None:
        columns = ranker.best_set(found, best_set)
    else:
        scores = ranker.predict(found)
        columns = {"score": ranks_in_groups(scores, found.groups) if rank else scores}
    if found.rows is not None:  # rows without a group have no score
        columns = {name: _with_gaps(v, found.rows, file.n_rows()) for name, v in columns.items()}
    order = None
    if rank and not file.is_letor and not table.no_header:
        column = column or "rank"
        order = _in_order(columns["score"], found)
    if column is not None:
        named = {f"{column}_{name}": values for name, values in columns.items()}
        added = named if len(named) > 1 else {column: columns["score"]}
        write_table_with_scores(data, output or "-", added, delimiter=table.delimiter, order=order)
        return
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    lines = [",".join(columns)] if len(columns) > 1 else []
    lines += [",".join(map(repr, row)) for row in rows]
    terminal.write_text(output, "\n".join([*lines, ""]))


def _in_order(ranks: Any, data: Any) -> Any:
    """The rows of the file by group and rank; those without a group come last."""
    import numpy as np

    from rankwise.groups import encode_groups

    rows = np.arange(len(ranks)) if data.rows is None else data.rows
    groups = np.full(len(ranks), len(ranks))
    groups[rows] = encode_groups(data.groups, len(rows)).codes
    return np.lexsort((ranks, groups))


def _with_gaps(values: Any, rows: Any, n_rows: int) -> Any:
    """The values in their rows of the file, NaN in the others."""
    import numpy as np

    every = np.full(n_rows, np.nan)
    every[rows] = values
    return every
