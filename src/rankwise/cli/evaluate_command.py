"""``rankwise evaluate``: how well a model, or any list of scores, ranks a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.retrieval_runs import (
    RetrievalOptions,
    print_run_evaluation,
    read_named_runs,
    retrieval_options,
)
from rankwise.cli.shared_options import (
    TableOptions,
    confidence_option,
    item_weight_option,
    items_option,
    json_option,
    metric_option,
    per_group_option,
    table_options,
)
from rankwise.formatting import csv_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankwise.cli.pair_file import PairFile
    from rankwise.cli.trained_model import TrainedModel
    from rankwise.metrics import Evaluation, RunEvaluation


@click.command(
    cls=Command,
    examples=[
        "rankwise evaluate model.rw new.csv --metric ndcg@10 --metric tau",
        "rankwise evaluate --qrels qrels.txt bm25.run dense.run --metric nDCG@10",
    ],
)
@click.argument("paths", metavar="MODEL DATA", nargs=-1, required=True, type=FILE)
@metric_option
@per_group_option
@json_option
@confidence_option
@retrieval_options
@table_options
@item_weight_option
@items_option
@pair_options(is_advanced=True)
def evaluate(
    paths: tuple[Path, ...],
    table: TableOptions,
    items: Path | None,
    pair_columns: PairOptions,
    metric: tuple[str, ...],
    per_group: Path | None,
    weight: str | None,
    retrieval: RetrievalOptions,
    confidence: float,
    as_json: bool,
) -> None:
    """Evaluate a model, or a file of scores, on items or comparisons; or TREC runs on qrels.

    MODEL is a model, or a file with one score per line. DATA has the items with their true scores,
    or comparisons of the items of --items. With --qrels all files are TREC runs, and the metrics
    have the conventions of trec_eval.
    """
    from rankwise.cli.item_scores import open_ranker, overlap_note, score_items
    from rankwise.cli.model_options import metrics_for
    from rankwise.cli.pair_file import PairFile, open_data
    from rankwise.cli.trained_model import TrainedModel
    from rankwise.datasets.trec import is_trec_run
    from rankwise.metrics import evaluate as evaluate_scores

    terminal.check_files([*paths, retrieval.qrels, items], per_group)
    if retrieval.qrels is None and len(paths) == 2 and is_trec_run(paths[0]):
        run, qrels = paths  # without --qrels
        retrieval = replace(retrieval, qrels=qrels)
        paths = (run,)
    if retrieval.qrels is not None:
        result_of_runs = _evaluate_runs(paths, metric, retrieval, confidence)
        print_run_evaluation(result_of_runs, retrieval, per_query=per_group, as_json=as_json)
        return
    if len(paths) != 2:
        raise ValueError(
            f"got {len(paths)} files; expected `rankwise evaluate MODEL DATA`, or "
            "`rankwise evaluate --qrels QRELS RUN...`."
        )
    model, data = paths
    retrieval.refuse_without_qrels(model)
    ranker = open_ranker(model)
    file = open_data(data, table, items, pair_columns, weight=weight)
    scores, scored_items = score_items(ranker, file)
    y: Any = scored_items.truth
    metrics = metrics_for(metric or file.default_metrics, y, scored_items.weight)
    compared_items = None
    if isinstance(file, PairFile):  # errors allow for comparisons that share items
        compared_items = scored_items.ids
    result = evaluate_scores(
        y,
        scores,
        scored_items.groups,
        metrics,
        items=compared_items,
        sample_weight=scored_items.weight,
        confidence=confidence,
    )
    if per_group is not None:
        terminal.write_text(per_group, _per_group_text(result, scored_items.groups))
    if as_json:
        document = {
            "ranker": model,
            "data": data,
            "items": len(y),
            "metrics": _metric_rows(result),
        }
        terminal.print_json(document)
    else:
        terminal.print_table(result.table())
    _note_undefined_or_perfect(result, len(y))
    terminal.note(overlap_note(ranker, file, scored_items))
    if isinstance(ranker, TrainedModel) and isinstance(file, PairFile):
        terminal.note(_model_of_pairs_note(ranker, file))


def _evaluate_runs(
    paths: Sequence[Path], metric: tuple[str, ...], retrieval: RetrievalOptions, confidence: float
) -> RunEvaluation:
    """Evaluate TREC runs on qrels."""
    from rankwise.metrics import evaluate_runs
    from rankwise.metrics.runs import DEFAULT_METRICS

    assert retrieval.qrels is not None
    return evaluate_runs(
        retrieval.qrels,
        read_named_runs(paths),
        metric or DEFAULT_METRICS,
        confidence=confidence,
        unjudged=retrieval.unjudged_rule(),
        missing_queries=retrieval.missing_queries_rule(),
    )


def _metric_rows(result: Evaluation) -> list[dict[str, Any]]:
    """The metrics for JSON."""
    # The keys of the document for the fields of a row, in their order
    keys = ("metric", "mean", "groups", "undefined", "low", "high")
    return [dict(zip(keys, row, strict=True)) for row in result]


def _note_undefined_or_perfect(result: Evaluation, n_items: int) -> None:
    """Note metrics that are undefined, and ask about a leak if no pair is wrong."""
    from rankwise.cli.model_options import perfect_score_note

    if all(row.n_undefined == row.n_groups for row in result):
        terminal.note("no group has items of different scores, so the metrics are undefined")
    for row in result:
        if row.name == "disagreement":
            terminal.note(perfect_score_note(row.name, row.mean, n_items))


def _model_of_pairs_note(ranker: TrainedModel, file: PairFile) -> str:
    """The share of wrong comparisons by the model of both items, if the model has one."""
    import numpy as np

    from rankwise.auto.auto_ranker import AutoRanker
    from rankwise.auto.capped_link import wrong_shares
    from rankwise.metrics import dyadic_robust_mean

    model = ranker.model
    if not isinstance(model, AutoRanker) or model.comparison_ is None:
        return ""
    if not model.comparison_.uses_pairs_:
        return ""
    items = file.read_items(ranker)
    assert items.ids is not None
    pairs = file.comparisons
    row_of_item = file.item_rows(items.ids)
    probability_of_first = np.asarray(
        model.predict_above(items.X, row_of_item[pairs.first], row_of_item[pairs.second])
    )
    share_won_by_first = 0.5 + 0.5 * np.sign(pairs.outcome)  # 0.5 for a tie
    # 1 if the wrong item is predicted to win, 0.5 if neither, NaN for a tie
    wrong = wrong_shares(probability_of_first - 0.5, share_won_by_first)
    decided = np.flatnonzero(~np.isnan(wrong))
    result = dyadic_robust_mean(wrong[decided], pairs.first[decided], pairs.second[decided])
    return (
        f"the table is that of the ranking; predict_above, the model of both items, misorders "
        f"{result.mean:.1%} ± {result.standard_error:.1%} of the comparisons"
    )


def _per_group_text(result: Evaluation, groups: NDArray[Any] | None) -> str:
    """The metrics of each group as CSV."""
    import numpy as np

    if groups is None:
        labels = ["all"]
        sizes = [None]
    else:
        labels = result.groups.tolist()
        _, n_items_of_group = np.unique(groups, return_counts=True)  # sorted as result.groups
        sizes = n_items_of_group.tolist()
    names = [row.name for row in result]
    columns = [result.per_group[name].tolist() for name in names]
    return csv_text(["group", "items", *names], zip(labels, sizes, *columns, strict=True))
