"""``rankwise evaluate``: how well a model, or any list of scores, ranks a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import Command, option
from rankwise.cli.shared_options import (
    PairOptions,
    TableOptions,
    data_argument,
    item_weight_option,
    items_option,
    json_option,
    metric_option,
    model_argument,
    pair_options,
    per_group_option,
    table_options,
)
from rankwise.formatting import csv_text

if TYPE_CHECKING:
    from rankwise.datasets import RankingData


@click.command(
    cls=Command, examples=["rankwise evaluate model.rw new.csv --metric ndcg@10 --metric tau"]
)
@model_argument
@data_argument
@metric_option
@per_group_option
@json_option
@option(
    "--missing-queries",
    metavar="zero|skip",
    is_advanced=True,
    help="Queries of the qrels that a TREC run lacks: zero counts 0, as trec_eval -c (default); "
    "skip leaves them out of the mean.",
)
@table_options
@item_weight_option
@items_option
@pair_options(is_advanced=True)
def evaluate(
    model: Path,
    data: Path,
    table: TableOptions,
    items: Path | None,
    pair_columns: PairOptions,
    metric: tuple[str, ...],
    per_group: Path | None,
    weight: str | None,
    missing_queries: str | None,
    as_json: bool,
) -> None:
    """Evaluate a model, or a file of scores, on items, on comparisons, or on TREC qrels.

    MODEL is a model, a file with one score a line, or a TREC run. DATA has the items with their
    true scores, or comparisons of the items of --items; for a TREC run it is the file of qrels.
    """
    import numpy as np

    import rankwise.metrics as library
    from rankwise.cli.input_files import open_data, open_ranker
    from rankwise.cli.model_options import is_suspiciously_good, metrics_for
    from rankwise.datasets.trec import is_trec_run
    from rankwise.validation import check_option

    terminal.check_files([model, data, items], per_group)
    is_run = is_trec_run(model)
    if missing_queries is not None:
        check_option("--missing-queries", missing_queries, ("zero", "skip"))
        if not is_run:
            raise ValueError(f"--missing-queries is for TREC runs; {model} is none.")
    warning = ""
    predicted: Any
    found: Any
    if is_run:
        predicted, found = _judged_run(model, data, missing_queries or "zero")
        chosen = metrics_for(metric, found.y)
        if not any(one.accepts_missing for one in chosen):
            found = found._replace(y=np.nan_to_num(found.y))
    else:
        opened = open_ranker(model)
        file = open_data(data, table, items, pair_columns, weight=weight)
        predicted, found = opened.scores(file)
        chosen = metrics_for(metric or file.usual_metrics, found.y, found.weight)
        warning = opened.seen_items(file, found)
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
    terminal.note(warning)
    for row in result:
        if row.name == "disagreement":
            terminal.note(is_suspiciously_good(row.name, row.mean, len(found.y)))


def _judged_run(run: Path, qrels: Path, missing_queries: str) -> tuple[Any, RankingData]:
    """Scores of the documents of a TREC run, and the documents with relevance and queries."""
    from rankwise.datasets import RankingData, read_qrels, read_trec_run

    judged = read_trec_run(run).judged_by(read_qrels(qrels), missing_queries=missing_queries)
    if not len(judged.query):
        raise ValueError(f"{run} has no documents for the queries of {qrels}.")
    return judged.score, RankingData(X=None, y=judged.relevance, groups=judged.query)
