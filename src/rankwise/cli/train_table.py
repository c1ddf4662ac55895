"""Training on a table, on the command line."""

from __future__ import annotations

import time
from pathlib import Path

from rankwise.cli.options import ModelOptions
from rankwise.cli.score_tables import (
    Ranked,
    ScoreTableOptions,
    make_table_model,
    read_table_data,
)
from rankwise.cli.table_model import KEY


def train_table(
    file: Path,
    cells: ScoreTableOptions,
    model: ModelOptions,
    metric: str | None,
    output: Path,
    as_json: bool,
) -> None:
    """Choose alpha by held-out rows (columns, if rows are ranked), train, and write the model."""
    from rankwise.cli.output import print_json, print_pairs
    from rankwise.cli.session import is_quiet
    from rankwise.cli.train import command_line, describe, write_model
    from rankwise.cli.training_notes import TrainingNotes

    leave = "columns" if cells.ranked is Ranked.rows else "rows"
    search = make_table_model(model, cells, metric, leave)
    data = read_table_data(file, cells, model)
    start = time.perf_counter()
    search.fit(data.rows, data.columns, data.table.Y)
    seconds = time.perf_counter() - start
    chosen = describe(search)
    notes = TrainingNotes(command_line(), str(file), len(data.table.rows), chosen=chosen).as_notes()
    table = {what: vars(side) for what, side in data.sides.items()}
    notes[KEY] = table | {"names": data.table.columns.tolist()}
    write_model(search, output, notes)
    summary = {
        "model": "ConditionalRankRLS",
        "data": dict(data.lines()),
        "chosen": chosen,
        "seconds": round(seconds, 3),
        "output": str(output),
    }
    if as_json:
        print_json(summary)
    elif not is_quiet():
        score = f"{chosen['metric']} {chosen['held_out_score']:.4f} by {chosen['held_out_by']}"
        print_pairs(
            [
                *data.lines(),
                (
                    "model",
                    f"ConditionalRankRLS, kernels {search.row_kernel}, {search.column_kernel}",
                ),
                ("chosen", f"alpha {chosen['alpha']:.4g}, of {chosen['n_candidates']} candidates"),
                ("held-out score", score),
                ("training time", f"{seconds:.2f} s"),
                ("written to", str(output)),
            ]
        )
