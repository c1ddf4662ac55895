"""``rankwise predict``: score the items of a file."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwise.cli.options import DataFile, ModelFile, Output, TableOptions

__all__ = ["predict"]


def predict(
    model: ModelFile,
    data: DataFile,
    table: TableOptions,
    output: Output = None,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Write a copy of the table with a column of this name added."
        ),
    ] = None,
    rank: Annotated[
        bool, typer.Option("--rank", help="Ranks inside the groups (1 is best), not scores.")
    ] = False,
) -> None:
    """Score items: one number a line, in the order of the input."""
    from rankwise.cli.output import check_output, write_text
    from rankwise.cli.rankers import open_model
    from rankwise.cli.source import Source
    from rankwise.datasets import write_table_with_scores
    from rankwise.estimators.base import ranks_in_groups

    if column is not None and output is None:
        raise ValueError("--column makes a table; say where to write it with -o FILE.")
    check_output(output, data, model, dash=True)
    ranker = open_model(model)
    found = Source(data, table, target_needed=False).read_for(ranker)
    scores = ranker.model.predict(found.X)
    values = ranks_in_groups(scores, found.groups) if rank else scores
    if column is None or output is None:
        write_text(output, "".join(f"{value!r}\n" for value in values.tolist()))
        return
    write_table_with_scores(data, output, values, column=column, delimiter=table.delimiter)
