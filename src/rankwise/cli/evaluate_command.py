"""``rankwise evaluate``: how well a model, or any list of scores, ranks a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import Command, option
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.shared_options import (
    TableOptions,
    data_argument,
    item_weight_option,
    items_option,
    json_option,
    metric_option,
    model_argument,
    per_group_option,
    table_options,
)
from rankwise.formatting import csv_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankwise.datasets import RankingData
    from rankwise.metrics import Evaluation


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
    from rankwise.cli.input_files import open_data
    from rankwise.cli.model_options import metrics_for, perfect_score_note
    from rankwise.cli.trained_model import open_ranker
    from rankwise.datasets.trec import is_trec_run
    from rankwise.metrics import evaluate as evaluate_scores

    terminal.check_files([model, data, items], per_group)
    warning = ""
    if is_trec_run(model):
        scores, scored_items = _read_trec(model, data, missing_queries or "zero")
        metrics = metrics_for(metric, scored_items.y)
        if not any(chosen.accepts_missing for chosen in metrics):
            scored_items = _with_zero_grades(scored_items)
    else:
        if missing_queries is not None:
            raise ValueError(f"--missing-queries is for TREC runs; {model} is none.")
        ranker = open_ranker(model)
        file = open_data(data, table, items, pair_columns, weight=weight)
        scores, scored_items = ranker.scores(file)
        metrics = metrics_for(metric or file.default_metrics, scored_items.y, scored_items.weight)
        warning = ranker.overlap_note(file, scored_items)
    y: Any = scored_items.y
    result = evaluate_scores(
        y, scores, scored_items.groups, metrics, sample_weight=scored_items.weight
    )
    if all(row.n_undefined == row.n_groups for row in result):
        terminal.note("no group has items of different scores, so the metrics are undefined")
    if per_group is not None:
        terminal.write_text(per_group, _per_group_text(result, scored_items.groups))
    if as_json:
        keys = ("metric", "mean", "groups", "undefined", "low", "high")
        rows = [dict(zip(keys, row, strict=True)) for row in result]
        terminal.print_json({"ranker": model, "data": data, "items": len(y), "metrics": rows})
    else:
        terminal.print_table(result.table())
    terminal.note(warning)
    for row in result:
        if row.name == "disagreement":
            terminal.note(perfect_score_note(row.name, row.mean, len(y)))


def _per_group_text(result: Evaluation, groups: NDArray[Any] | None) -> str:
    """The metrics of each group as CSV."""
    import numpy as np

    if groups is None:
        labels = ["all"]
        sizes = [None]
    else:
        labels = result.groups.tolist()
        sizes = np.unique(groups, return_counts=True)[1].tolist()
    names = [row.name for row in result]
    columns = [result.per_group[name].tolist() for name in names]
    return csv_text(["group", "items", *names], zip(labels, sizes, *columns, strict=True))


def _read_trec(run: Path, qrels: Path, missing_queries: str) -> tuple[Any, RankingData]:
    """Scores of the documents of a TREC run, and the documents with relevance and queries."""
    from rankwise.datasets import RankingData, read_qrels, read_trec_run
    from rankwise.validation import check_option

    check_option("--missing-queries", missing_queries, ("zero", "skip"))
    judged = read_trec_run(run).judged_by(read_qrels(qrels), missing_queries=missing_queries)
    if not len(judged.query):
        raise ValueError(f"{run} has no documents for the queries of {qrels}.")
    return judged.score, RankingData(X=None, y=judged.relevance, groups=judged.query)


def _with_zero_grades(documents: RankingData) -> RankingData:
    """The documents with relevance 0 where they are not judged."""
    import numpy as np

    assert documents.y is not None
    return documents._replace(y=np.nan_to_num(documents.y))
