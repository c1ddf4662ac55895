"""``rankwise evaluate``: how well a model, or any list of scores, ranks a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise.cli.options import AsJson, Metrics, PerGroup, TableOptions, WeightColumn, option

if TYPE_CHECKING:
    from rankwise.metrics import Evaluation

Ranker = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model, or a file with one score a line.")
]
ScoredData = Annotated[Path | None, typer.Argument(metavar="DATA", help="Scored items.")]
ScoresFile = Annotated[Path | None, option("Scores, one a line, in place of MODEL.", "FILE")]


def evaluate(
    model: Ranker,
    table: TableOptions,
    data: ScoredData = None,
    scores: ScoresFile = None,
    metric: Metrics = None,
    per_group: PerGroup = None,
    weight: WeightColumn = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model, or a file of scores, on scored items."""
    import rankwise.metrics as library
    from rankwise.cli.data import DataFile, open_ranker
    from rankwise.cli.models import metrics_for, too_good
    from rankwise.cli.output import check_inputs, check_output, print_json, print_table
    from rankwise.cli.session import note

    ranker, items = _what_is_evaluated(model, data, scores)
    check_inputs(ranker, items)
    check_output(per_group, ranker, items)
    opened = open_ranker(ranker)
    file = DataFile(items, table, weight=weight)
    predicted, found = opened.scores(file)
    chosen = metrics_for(metric, found.y, found.weight)
    result = library.evaluate(found.y, predicted, found.groups, chosen, sample_weight=found.weight)
    if all(row.n_undefined == row.n_groups for row in result):
        note("no group has items of different scores, so there is nothing to measure")
    if per_group is not None:
        write_groups(per_group, result, found.groups)
    if as_json:
        rows = [
            {
                "metric": row.name,
                "mean": row.mean,
                "low": row.low,
                "high": row.high,
                "groups": row.n_groups,
                "undefined": row.n_undefined,
            }
            for row in result
        ]
        print_json({"ranker": ranker, "data": items, "items": len(found.y), "metrics": rows})
    else:
        print_table(result.table())
    note(opened.seen_items(file, found))
    for row in result:
        if row.name == "disagreement":
            note(too_good(row.name, row.mean, len(found.y)))


def write_groups(path: Path, result: Evaluation, groups: Any) -> None:
    """One row for each group: its label, its size, its metrics."""
    import numpy as np

    from rankwise.cli.output import write_csv

    sizes = [None] if groups is None else np.unique(groups, return_counts=True)[1].tolist()
    labels = ["all"] if groups is None else result.groups.tolist()
    columns = [result.per_group[row.name].tolist() for row in result]
    rows = zip(labels, sizes, *columns, strict=True)
    write_csv(path, ["group", "items", *(row.name for row in result)], rows)


def _what_is_evaluated(model: Path, data: Path | None, scores: Path | None) -> tuple[Path, Path]:
    if scores is not None:
        if data is not None:
            raise ValueError("give a MODEL or --scores FILE, not both: `evaluate DATA --scores S`.")
        return scores, model
    if data is None:
        raise ValueError("DATA is missing: `rankwise evaluate MODEL DATA`.")
    return model, data
