"""The report of a table, on the command line."""

from __future__ import annotations

from pathlib import Path

from rankwise.cli.table_model import KEY, check_notes, new_items
from rankwise.cli.table_side import SideFiles


def report_table(
    model: Path, file: Path, files: SideFiles, output: Path, title: str | None
) -> None:
    """Write the page of a table: each row is a group."""
    from rankwise.cli.output import say
    from rankwise.datasets import read_score_table
    from rankwise.persistence.model_file import load_with_notes
    from rankwise.report import write_table_report

    ranker, notes = load_with_notes(model)
    check_notes(notes, model)
    if files.rows is None:
        raise ValueError(f"{model} ranks tables: add --rows FILE with the features of the rows.")
    table = read_score_table(file)
    _, X = new_items(notes, "rows", files.rows, table.rows)
    Z = table.columns
    if "columns" in notes[KEY]:  # type: ignore[index]
        if files.columns is None:
            raise ValueError(f"{model} needs --columns FILE with the features of the columns.")
        _, Z = new_items(notes, "columns", files.columns, table.columns)
    scores = ranker.predict(X, Z)
    write_table_report(
        output,
        scores,
        table.Y,
        row_names=table.rows.tolist(),
        column_names=table.columns.tolist(),
        title=title or f"{model.stem} on {file.name}",
    )
    say(f"written to {output}")
