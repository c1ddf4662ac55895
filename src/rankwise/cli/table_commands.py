"""Models of tables on the command line: training, prediction, report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rankwise.cli.options import ModelOptions
from rankwise.cli.score_tables import (
    Ranked,
    ScoreTableOptions,
    SideFiles,
    TableSide,
    make_table_model,
    read_table_data,
)

__all__ = ["is_table_model", "predict_table", "report_table", "train_table"]

KEY = "rankwise table"


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


def is_table_model(path: Path) -> bool:
    """Whether a model file ranks the columns of a table."""
    from rankwise.errors import ModelFileError
    from rankwise.persistence import read_header

    if str(path) == "-":
        return False
    try:
        return str(read_header(path)["ranker"]).startswith("ConditionalRankRLS")
    except (ModelFileError, OSError):
        return False


def _new_items(notes: Any, what: str, path: Path, names: Any = None) -> tuple[Any, Any]:
    """Names and features of a file, scaled as in training."""
    from rankwise.datasets import read_item_features

    side = TableSide(**notes[KEY][what])
    items = read_item_features(path)
    if items.feature_names != side.features:
        raise ValueError(
            f"{path} has the columns {', '.join(items.feature_names[:5])}, …, but the model was "
            f"trained with {', '.join(side.features[:5])}, … for its {what}; give these, in this "
            "order, after the names."
        )
    X = items.X if names is None else items.of(names, path, what[:-1])
    return (items.names if names is None else names), side.scaled(X)


def predict_table(
    model: Path, rows: Path, columns: Path | None, output: Path | None, rank: bool
) -> None:
    """Score the rows of a file, in the columns of training or those of another file."""
    import numpy as np

    from rankwise.cli.output import write_csv
    from rankwise.persistence.model_file import load_with_notes

    ranker, notes = load_with_notes(model)
    _check_notes(notes, model)
    names, X = _new_items(notes, "rows", rows)
    titles, Z = notes[KEY]["names"], None  # type: ignore[index]
    if columns is not None:
        if "columns" not in notes[KEY]:  # type: ignore[index]
            raise ValueError(f"{model} was trained without features of columns; drop --columns.")
        titles, Z = _new_items(notes, "columns", columns)
    scores = (ranker.rank if rank else ranker.predict)(X, Z)
    lines = zip(names.tolist(), scores.tolist(), strict=True)
    header = ["row", *np.asarray(titles).tolist()]
    write_csv(output or Path("-"), header, ([name, *line] for name, line in lines))


def report_table(
    model: Path, file: Path, files: SideFiles, output: Path, title: str | None
) -> None:
    """Write the page of a table: each row is a group."""
    from rankwise.cli.output import say
    from rankwise.datasets import read_score_table
    from rankwise.persistence.model_file import load_with_notes
    from rankwise.report import write_table_report

    ranker, notes = load_with_notes(model)
    _check_notes(notes, model)
    if files.rows is None:
        raise ValueError(f"{model} ranks tables: add --rows FILE with the features of the rows.")
    table = read_score_table(file)
    _, X = _new_items(notes, "rows", files.rows, table.rows)
    Z = table.columns
    if "columns" in notes[KEY]:  # type: ignore[index]
        if files.columns is None:
            raise ValueError(f"{model} needs --columns FILE with the features of the columns.")
        _, Z = _new_items(notes, "columns", files.columns, table.columns)
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


def _check_notes(notes: Any, model: Path) -> None:
    """Refuse a file that another program wrote, or with notes that are not those of a table."""
    sides = notes.get(KEY) if isinstance(notes, dict) else None
    try:
        for what in {"rows", "columns"} & set(sides or {}):
            side = TableSide(**sides[what])  # type: ignore[index]
            ok = all(isinstance(name, str) for name in (*side.names, *side.features))
            numbers = all(isinstance(x, (int, float)) for x in (*side.mean, *side.scale))
            if not ok or not numbers or len(side.mean) != len(side.scale):
                raise TypeError
        if not sides or "rows" not in sides or not isinstance(sides["names"], list):
            raise TypeError
    except (TypeError, KeyError):
        raise ValueError(
            f"{model} does not say how its table was read; train it with rankwise train --table, "
            "or use it in Python."
        ) from None
