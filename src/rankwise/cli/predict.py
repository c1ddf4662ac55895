"""``rankwise predict``: score the items of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise.cli.options import DataArgument, ModelArgument, Output, TableOptions, flag

if TYPE_CHECKING:
    from rankwise.cli.model_file import TrainedModel


def predict(
    model: ModelArgument,
    data: DataArgument,
    table: TableOptions,
    output: Output = None,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Write a copy of the table with a column of this name added."
        ),
    ] = None,
    rank: Annotated[
        bool, flag("--rank", help="Ranks inside the groups (1 is best), not scores.")
    ] = False,
    intervals: Annotated[
        bool,
        flag(
            "--intervals",
            help="Scores with standard errors, and ranks with intervals; CSV, or columns with "
            "--column. For models of rankwise train --calibrate.",
        ),
    ] = False,
    level: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Level of the intervals of --intervals; 0.95."),
    ] = None,
) -> None:
    """Score items: one number a line, in the order of the input."""
    from rankwise.cli.data_file import DataFile
    from rankwise.cli.model_file import open_model
    from rankwise.cli.output import check_inputs, check_output, write_text
    from rankwise.datasets import write_table_with_scores
    from rankwise.estimators.base import ranks_in_groups

    check_inputs(model, data)
    check_output(output, data, model)
    if column is not None and table.no_header:
        raise ValueError(
            "--column gives the new column a name, but with --no-header there is none."
        )
    if rank and intervals:
        raise ValueError("--intervals has the ranks already; leave out --rank.")
    if level is not None and not intervals:
        raise ValueError("--level is the level of --intervals, which was not given.")
    ranker = open_model(model)
    found = DataFile(data, table, target_needed=False).read_for(ranker)
    if intervals:
        _write_intervals(ranker, found, data, output, column, level or 0.95, table.delimiter)
        return
    scores = ranker.predict(found)
    values = ranks_in_groups(scores, found.groups) if rank else scores
    if column is None:
        write_text(output, "".join(f"{value!r}\n" for value in values.tolist()))
        return
    write_table_with_scores(data, output or "-", values, column=column, delimiter=table.delimiter)


def _write_intervals(
    ranker: TrainedModel,
    found: Any,
    data: Path,
    output: Path | None,
    column: str | None,
    level: float,
    delimiter: str | None,
) -> None:
    """A line or a row for each item: score, standard error, rank and where the rank may be."""
    from rankwise.cli.output import write_text

    columns = ranker.intervals(found, level)
    if column is None:
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        lines = [",".join(map(repr, row)) for row in rows]
        write_text(output, "\n".join([",".join(columns), *lines, ""]))
        return
    _add_columns(data, output, {f"{column}_{k}": v for k, v in columns.items()}, delimiter)


def _add_columns(
    data: Path, output: Path | None, columns: dict[str, Any], delimiter: str | None
) -> None:
    """A copy of the table with these columns; written at once when all are there."""
    import tempfile

    from rankwise.datasets import write_table_with_scores

    with tempfile.TemporaryDirectory() as folder:
        source: Path = data
        *first, last = columns
        for name in first:
            copy = Path(folder) / f"{len(list(Path(folder).iterdir()))}{''.join(data.suffixes)}"
            write_table_with_scores(source, copy, columns[name], column=name, delimiter=delimiter)
            source = copy
        target = output or Path("-")
        write_table_with_scores(source, target, columns[last], column=last, delimiter=delimiter)
