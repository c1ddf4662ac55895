"""``rankwise predict``: score the items of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankwise.cli import terminal
from rankwise.cli.shared_options import TableOptions
from rankwise.defaults import DEFAULT_CONFIDENCE


def predict(
    model: Path,
    data: Path,
    /,
    table: TableOptions,
    output: Path | None = None,
    column: str | None = None,
    rank: bool = False,
    intervals: bool = False,
    level: float = DEFAULT_CONFIDENCE,
    best_set: float | None = None,
) -> None:
    """Score items: one number a line, in the order of the input.

    \b
    rankwise predict model.rw new.csv --rank -o ranked.csv

    Parameters
    ----------
    column : NAME
        Write a copy of the table with a column of this name added.
    rank : flag
        A ranked list: a copy of the table sorted by group, the best item first, with a column of
        ranks (rank, or --column). Without names of columns the ranks alone, in the order of DATA.
    intervals : flag
        Scores with standard errors, and ranks with intervals; CSV, or columns with --column. For
        models of rankwise train --calibrate.
    level : NUMBER
        Level of the intervals of --intervals.
    best_set : LEVEL
        Scores, and 1 for the items of each group that hold its best one with this probability, such
        as 0.9. For models of rankwise train --calibrate.
    """  # noqa: D301
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
        columns = ranker.intervals(found, level)
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
