"""``rankwise compare``: which of several rankers is better on the same groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.retrieval_runs import (
    RetrievalOptions,
    print_next_judgments,
    read_named_runs,
    retrieval_options,
    unique_names,
)
from rankwise.cli.shared_options import (
    OUTPUT,
    TableOptions,
    confidence_option,
    items_option,
    json_option,
    metric_option,
    table_options,
)
from rankwise.formatting import TABLE_FORMATS, TextTable, join_tables, text_width

if TYPE_CHECKING:
    from rankwise.arrays import Array
    from rankwise.cli.input_files import DataFile
    from rankwise.metrics import Evaluation, Metric, NextJudgment
    from rankwise.model_selection import Comparison

DEFAULT_RUN_METRIC = "nDCG@10"
WIDE_TABLE_COLUMNS = ("mean a", "mean b", "p", "p Holm")  # not shown on narrow terminals
SHORT_COLUMN_NAMES = {"groups to flip": "to flip", "significant (Holm)": "significant"}


@click.command(
    cls=Command,
    examples=[
        "rankwise compare new.csv model.rw other.rw --metric ndcg@10",
        "rankwise compare --qrels qrels.txt bm25.run dense.run --metric nDCG@10",
    ],
)
@click.argument("paths", metavar="DATA RANKER...", nargs=-1, required=True, type=FILE)
@option("--baseline", metavar="NAME", help="Compare the other rankers only with this one.")
@option(
    "--test",
    metavar="NAME",
    default="t",
    help="t, randomization (both of the mean difference) or wilcoxon (ranks of the differences).",
)
@option(
    "--correction",
    metavar="NAME",
    default="holm",
    is_advanced=True,
    help="Correction of the p-values for several comparisons: holm or none.",
)
@option(
    "--difference",
    metavar="X",
    type=float,
    is_advanced=True,
    help="Report how many groups detect this difference with a power of 80%.",
)
@confidence_option
@metric_option
@option(
    "--format",
    metavar="NAME",
    default="text",
    section=OUTPUT,
    help="Format of the tables: text, markdown, latex or html.",
)
@json_option
@retrieval_options
@table_options
@items_option
@pair_options(is_advanced=True)
def compare(
    paths: tuple[Path, ...],
    table: TableOptions,
    items: Path | None,
    pair_columns: PairOptions,
    metric: tuple[str, ...],
    baseline: str | None,
    test: str,
    correction: str,
    difference: float | None,
    confidence: float,
    format: str,
    retrieval: RetrievalOptions,
    as_json: bool,
) -> None:
    """Compare models, files of scores, or TREC runs by a paired test.

    DATA has the items with their true scores. Each RANKER is a model, or a file with one score a
    line; two or more are compared. With --qrels all files are TREC runs.
    """
    from rankwise.cli.pair_file import open_data
    from rankwise.datasets.trec import is_trec_run
    from rankwise.model_selection.comparison import CORRECTIONS, TESTS
    from rankwise.validation import check_option

    check_option("--test", test, TESTS)
    check_option("--correction", correction, CORRECTIONS)
    check_option("--format", format, TABLE_FORMATS)
    options = CompareOptions(test, baseline, correction, confidence, difference)
    terminal.check_files([*paths, retrieval.qrels, items])
    comparison_of_metric: dict[str, Comparison]
    if retrieval.qrels is not None:
        if len(paths) < 2:
            raise ValueError("compare needs two runs: `rankwise compare --qrels QRELS RUN RUN`.")
        comparison_of_metric = _compare_runs(paths, metric, retrieval, options)
    else:
        if len(paths) < 3:
            raise ValueError("compare needs at least two rankers: `rankwise compare DATA A B`.")
        data, *rankers = paths
        retrieval.refuse_without_qrels(rankers[0])
        for path in rankers:
            if is_trec_run(path):
                raise ValueError(f"{path} is a TREC run; pass the file of judgments as --qrels.")
        file = open_data(data, table, items, pair_columns)
        comparison_of_metric = _compare_rankers(file, rankers, metric, options)
    next_judgments: list[NextJudgment] = []
    if retrieval.next_judgments is not None:
        by_first_metric = next(iter(comparison_of_metric.values()))
        next_judgments = by_first_metric.next_judgments(retrieval.next_judgments)
    if as_json:
        _print_json(comparison_of_metric, next_judgments)
        return
    for name, comparison in comparison_of_metric.items():
        if format == "text":
            click.echo(name)
            print_comparison(comparison)
        else:
            table_with_title = replace(comparison.table(), title=name)
            click.echo(join_tables([table_with_title], format))
    print_next_judgments(next_judgments)


def _print_json(
    comparison_of_metric: dict[str, Comparison], next_judgments: list[NextJudgment]
) -> None:
    """Print the comparisons, and the documents to judge next, as one JSON document."""
    document = {name: comparison.to_dict() for name, comparison in comparison_of_metric.items()}
    if next_judgments:
        documents = [judgment._asdict() for judgment in next_judgments]
        document["next_judgments"] = {"documents": documents}
    terminal.print_json(document)


class CompareOptions(NamedTuple):
    """Arguments of `rankwise.model_selection.compare` that the command has as options."""

    test: str
    baseline: str | None
    correction: str
    confidence: float
    difference: float | None


def _compare_rankers(
    file: DataFile, rankers: Sequence[Path], metric: tuple[str, ...], options: CompareOptions
) -> dict[str, Comparison]:
    """Compare models or files of scores on the items of a file, by each metric."""
    from rankwise.cli.item_scores import open_ranker, overlap_note, score_items
    from rankwise.cli.model_options import metrics_for
    from rankwise.cli.pair_file import PairFile
    from rankwise.metrics import evaluate
    from rankwise.model_selection import compare as paired_test

    metrics: list[Metric] = []
    scores_of_ranker: dict[str, Array] = {}
    evaluations: dict[str, Evaluation] = {}
    for name, path in zip(unique_names(rankers), rankers, strict=True):
        ranker = open_ranker(path)
        scores, items = score_items(ranker, file)
        terminal.note(overlap_note(ranker, file, items))
        if len(scores) > 1 and (scores == scores[0]).all():
            terminal.note(f"all scores of {name} are equal, so it does not rank anything")
        y: Any = items.truth
        if not metrics:  # the default metrics depend on the true scores
            metrics = metrics_for(metric or file.default_metrics, y)
        scores_of_ranker[name] = scores
        evaluations[name] = evaluate(y, scores, items.groups, metrics, undefined="nan")

    # The true scores and the items are the same for all rankers: those of the last one are used.
    items_of_comparisons = None
    if isinstance(file, PairFile):
        items_of_comparisons = file.items_of_comparisons(items)
    comparison_of_metric = {}
    for tested_metric in metrics:
        values_of_ranker = {
            name: evaluation.per_group[tested_metric.name]
            for name, evaluation in evaluations.items()
        }
        comparison_of_metric[tested_metric.name] = paired_test(
            values_of_ranker,
            items=items_of_comparisons,
            metric=tested_metric,
            **options._asdict(),
        )
    has_survival_times_in_one_list = items.event is not None and items.groups is None
    if has_survival_times_in_one_list:
        _note_concordances(y, scores_of_ranker, options)
    return comparison_of_metric


def _note_concordances(y: Array, scores: dict[str, Array], options: CompareOptions) -> None:
    """Compare the concordances of survival times in one list by the jackknife over items."""
    from rankwise.metrics import concordance_difference
    from rankwise.model_selection.comparison import pairs_of

    for name_a, name_b in pairs_of(list(scores), options.baseline):
        result = concordance_difference(
            y, scores[name_a], scores[name_b], confidence=options.confidence
        )
        interval = f"{result.low:+.4f} to {result.high:+.4f}"
        terminal.note(
            f"concordance of {name_a} − {name_b}: {result.difference:+.4f} "
            f"({100 * options.confidence:g}% interval {interval}, p = {result.pvalue:.2g}), by "
            "the jackknife over items"
        )


def _compare_runs(
    paths: Sequence[Path],
    metrics: tuple[str, ...],
    retrieval: RetrievalOptions,
    options: CompareOptions,
) -> dict[str, Comparison]:
    """Compare TREC runs on qrels, by each metric."""
    from rankwise.datasets import read_qrels
    from rankwise.metrics.run_metric_names import get_run_metrics
    from rankwise.model_selection import compare as paired_test

    assert retrieval.qrels is not None
    if retrieval.missing_queries is not None:
        raise ValueError("--missing-queries is for evaluate; compare counts missing queries as 0.")
    unjudged = retrieval.unjudged_rule()
    runs = read_named_runs(paths)
    qrels = read_qrels(retrieval.qrels)
    comparison_of_metric = {}
    for metric in get_run_metrics(metrics or DEFAULT_RUN_METRIC):
        comparison_of_metric[metric.name] = paired_test(
            runs, qrels=qrels, metric=metric, unjudged=unjudged, **options._asdict()
        )
    return comparison_of_metric


def print_comparison(comparison: Comparison) -> None:
    """Print one row for each pair of rankers; a narrow terminal shows fewer columns."""
    if comparison.n_groups == 1:
        terminal.note("there is only one group, so there is no test over groups")
    table = comparison.table()
    width = terminal.terminal_width()
    if width is not None and max(map(text_width, table.lines())) > width:
        table = _narrow_table(table)
    terminal.print_table(table)
    click.echo("")


def _narrow_table(table: TextTable) -> TextTable:
    """The table without `WIDE_TABLE_COLUMNS` and with short column names."""
    positions = []
    short_header = []
    for position, name in enumerate(table.header):
        if name not in WIDE_TABLE_COLUMNS:
            positions.append(position)
            short_header.append(SHORT_COLUMN_NAMES.get(name, name))
    short_rows = [[row[position] for position in positions] for row in table.rows]
    return replace(table, header=short_header, rows=short_rows)
