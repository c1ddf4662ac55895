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
@option("--baseline", metavar="NAME", help="Compare the other rankers with this one only.")
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
    from rankwise.cli.input_files import open_data
    from rankwise.datasets.trec import is_trec_run
    from rankwise.model_selection.comparison import CORRECTIONS, TESTS
    from rankwise.validation import check_option

    check_option("--test", test, TESTS)
    check_option("--correction", correction, CORRECTIONS)
    check_option("--format", format, TABLE_FORMATS)
    options = CompareOptions(test, baseline, correction, confidence, difference)
    terminal.check_files([*paths, retrieval.qrels, items])
    comparisons: dict[str, Comparison]
    if retrieval.qrels is not None:
        if len(paths) < 2:
            raise ValueError("compare needs two runs: `rankwise compare --qrels QRELS RUN RUN`.")
        comparisons = _compare_runs(paths, metric, retrieval, options)
    else:
        if len(paths) < 3:
            raise ValueError("compare needs at least two rankers: `rankwise compare DATA A B`.")
        retrieval.refuse(paths[1])
        for path in paths[1:]:
            if is_trec_run(path):
                raise ValueError(f"{path} is a TREC run; pass the file of judgments as --qrels.")
        file = open_data(paths[0], table, items, pair_columns)
        comparisons = _compare_rankers(file, paths[1:], metric, options)
    judgments: list[NextJudgment] = []
    if retrieval.next_judgments is not None:
        first = next(iter(comparisons.values()))
        judgments = first.next_judgments(retrieval.next_judgments)
    if as_json:
        document = {name: result.to_dict() for name, result in comparisons.items()}
        if judgments:
            document["next_judgments"] = {"documents": [entry._asdict() for entry in judgments]}
        terminal.print_json(document)
        return
    for name, comparison in comparisons.items():
        if format == "text":
            click.echo(name)
            print_comparison(comparison)
        else:
            table_with_title = replace(comparison.table(), title=name)
            click.echo(join_tables([table_with_title], format))
    print_next_judgments(judgments)


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
    from rankwise.cli.input_files import PairFile
    from rankwise.cli.model_options import metrics_for
    from rankwise.cli.trained_model import open_ranker
    from rankwise.metrics import evaluate
    from rankwise.model_selection import compare as paired_test

    evaluations: dict[str, Evaluation] = {}
    metrics: list[Metric] = []
    items = None
    groups = None
    survival_scores: dict[str, Array] = {}
    for name, path in zip(unique_names(rankers), rankers, strict=True):
        ranker = open_ranker(path)
        scores, scored_items = ranker.scores(file)
        y: Any = scored_items.truth
        terminal.note(ranker.overlap_note(file, scored_items))
        if len(scores) > 1 and (scores == scores[0]).all():
            terminal.note(f"all scores of {name} are equal, so it does not rank anything")
        if not metrics:
            metrics = metrics_for(metric or file.default_metrics, y)
        evaluations[name] = evaluate(y, scores, scored_items.groups, metrics, undefined="nan")
        if scored_items.event is not None:
            survival_scores[name] = scores
            groups = scored_items.groups
        if isinstance(file, PairFile):
            items = file.items_of_comparisons(scored_items)
    comparisons = {}
    for tested_metric in metrics:
        values = {
            name: result.per_group[tested_metric.name] for name, result in evaluations.items()
        }
        comparisons[tested_metric.name] = paired_test(
            values,
            items=items,
            metric=tested_metric,
            **options._asdict(),
        )
    if survival_scores and groups is None:
        _note_concordances(y, survival_scores, options)
    return comparisons


def _note_concordances(y: Array, scores: dict[str, Array], options: CompareOptions) -> None:
    """Compare the concordances of survival times in one list by the jackknife over items."""
    from rankwise.metrics import concordance_difference
    from rankwise.model_selection.comparison import pairs_of

    for a, b in pairs_of(list(scores), options.baseline):
        result = concordance_difference(y, scores[a], scores[b], confidence=options.confidence)
        interval = f"{result.low:+.4f} to {result.high:+.4f}"
        terminal.note(
            f"concordance of {a} − {b}: {result.difference:+.4f} "
            f"({100 * options.confidence:g}% interval {interval}, p = {result.pvalue:.2g}), by "
            "leaving out items in turn"
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
    comparisons = {}
    for metric in get_run_metrics(metrics or DEFAULT_RUN_METRIC):
        comparisons[metric.name] = paired_test(
            runs, qrels=qrels, metric=metric, unjudged=unjudged, **options._asdict()
        )
    return comparisons


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
    columns = [k for k, name in enumerate(table.header) if name not in WIDE_TABLE_COLUMNS]
    header = [table.header[k] for k in columns]
    return replace(
        table,
        header=[SHORT_COLUMN_NAMES.get(name, name) for name in header],
        rows=[[row[k] for k in columns] for row in table.rows],
    )
