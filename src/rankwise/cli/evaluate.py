"""``rankwise evaluate``: how well a model, or any list of scores, ranks a file."""

from __future__ import annotations

from pathlib import Path

from rankwise.cli import terminal
from rankwise.cli.options import ItemOptions, TableOptions
from rankwise.text_tables import csv_text


def evaluate(
    model: Path,
    data: Path,
    /,
    table: TableOptions,
    pairs: ItemOptions,
    metric: list[str] | None = None,
    per_group: Path | None = None,
    weight: str | None = None,
    as_json: bool = False,
) -> None:
    """Evaluate a model, or a file of scores, on items or comparisons.

    \b
    rankwise evaluate model.rw new.csv --metric ndcg@10 --metric tau

    Parameters
    ----------
    model : MODEL
        A model, or a file with one score a line.
    data : DATA
        Scored items, or comparisons.
    """  # noqa: D301
    import numpy as np

    import rankwise.metrics as library
    from rankwise.cli.data import open_data, open_ranker
    from rankwise.cli.models import metrics_for, too_good

    terminal.check_files([model, data, pairs.items], per_group)
    opened = open_ranker(model)
    file = open_data(data, table, pairs, weight=weight)
    predicted, found = opened.scores(file)
    chosen = metrics_for(metric or file.usual_metrics, found.y, found.weight)
    result = library.evaluate(found.y, predicted, found.groups, chosen, sample_weight=found.weight)
    if all(row.n_undefined == row.n_groups for row in result):
        terminal.note("no group has items of different scores, so there is nothing to measure")
    if per_group is not None:
        is_one = found.groups is None
        sizes = [None] if is_one else np.unique(found.groups, return_counts=True)[1].tolist()
        labels = ["all"] if is_one else result.groups.tolist()
        names = [row.name for row in result]
        columns = [result.per_group[name].tolist() for name in names]
        groups = zip(labels, sizes, *columns, strict=True)
        terminal.write_text(per_group, csv_text(["group", "items", *names], groups))
    if as_json:
        keys = ("metric", "mean", "groups", "undefined", "low", "high")
        rows = [dict(zip(keys, row, strict=True)) for row in result]
        terminal.print_json({"ranker": model, "data": data, "items": len(found.y), "metrics": rows})
    else:
        terminal.print_table(result.table())
    terminal.note(opened.seen_items(file, found))
    for row in result:
        if row.name == "disagreement":
            terminal.note(too_good(row.name, row.mean, len(found.y)))
