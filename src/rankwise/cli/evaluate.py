"""``rankwise evaluate``: how well a model, or any list of scores, ranks a file."""

from __future__ import annotations

from pathlib import Path

from rankwise.cli.options import ItemOptions, TableOptions
from rankwise.cli.output import (
    check_inputs,
    check_output,
    note,
    print_json,
    print_table,
    write_text,
)
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

    check_inputs(model, data, pairs.items)
    check_output(per_group, model, data, pairs.items)
    opened = open_ranker(model)
    file = open_data(data, table, pairs, weight=weight)
    predicted, found = opened.scores(file)
    chosen = metrics_for(metric or file.usual_metrics, found.y, found.weight)
    result = library.evaluate(found.y, predicted, found.groups, chosen, sample_weight=found.weight)
    if all(row.n_undefined == row.n_groups for row in result):
        note("no group has items of different scores, so there is nothing to measure")
    if per_group is not None:
        is_one = found.groups is None
        sizes = [None] if is_one else np.unique(found.groups, return_counts=True)[1].tolist()
        labels = ["all"] if is_one else result.groups.tolist()
        columns = [result.per_group[row.name].tolist() for row in result]
        groups = zip(labels, sizes, *columns, strict=True)
        write_text(per_group, csv_text(["group", "items", *(row.name for row in result)], groups))
    if as_json:
        names = ("metric", "mean", "groups", "undefined", "low", "high")
        rows = [dict(zip(names, row, strict=True)) for row in result]
        print_json({"ranker": model, "data": data, "items": len(found.y), "metrics": rows})
    else:
        print_table(result.table())
    note(opened.seen_items(file, found))
    for row in result:
        if row.name == "disagreement":
            note(too_good(row.name, row.mean, len(found.y)))
