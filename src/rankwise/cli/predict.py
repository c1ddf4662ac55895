"""``rankwise predict``: score the items of a file."""

from __future__ import annotations

from typing import Annotated

import typer

from rankwise.cli.options import DataArgument, ModelArgument, Output, TableOptions, flag
from rankwise.cli.score_tables import ColumnsFile

__all__ = ["predict"]


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
    columns: ColumnsFile = None,
) -> None:
    """Score items: one number a line, in the order of the input.

    With a model of tables DATA has the features of rows, and a table of their scores is written.
    """
    from rankwise.cli.data_file import DataFile
    from rankwise.cli.model_file import open_model
    from rankwise.cli.output import check_inputs, check_output, write_text
    from rankwise.cli.table_commands import is_table_model, predict_table
    from rankwise.datasets import write_table_with_scores
    from rankwise.estimators.base import ranks_in_groups

    check_inputs(model, data)
    check_output(output, data, model)
    if column is not None and table.no_header:
        raise ValueError(
            "--column gives the new column a name, but with --no-header there is none."
        )
    if is_table_model(model):
        predict_table(model, data, columns, output, rank)
        return
    if columns is not None:
        raise ValueError(f"--columns is for models of tables, and {model} is none; leave it out.")
    ranker = open_model(model)
    found = DataFile(data, table, target_needed=False).read_for(ranker)
    scores = ranker.predict(found)
    values = ranks_in_groups(scores, found.groups) if rank else scores
    if column is None:
        write_text(output, "".join(f"{value!r}\n" for value in values.tolist()))
        return
    write_table_with_scores(data, output or "-", values, column=column, delimiter=table.delimiter)
