"""``rankwise compare``: which of several rankers is better on the same groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.shared_options import (
    OUTPUT,
    TableOptions,
    confidence_option,
    data_argument,
    items_option,
    json_option,
    metric_option,
    table_options,
)
from rankwise.formatting import TABLE_FORMATS, TextTable, join_tables, text_width

if TYPE_CHECKING:
    from rankwise.metrics import Evaluation, Metric
    from rankwise.model_selection import Comparison

WIDE_TABLE_COLUMNS = ("mean a", "mean b", "p")  # not shown on narrow terminals
SHORT_COLUMN_NAMES = {"groups to flip": "to flip"}


@click.command(
    cls=Command, examples=["rankwise compare new.csv model.rw other.rw --metric ndcg@10"]
)
@data_argument
@click.argument("rankers", metavar="RANKER...", nargs=-1, required=True, type=FILE)
@option("--baseline", metavar="NAME", help="Compare the other rankers with this one only.")
@option(
    "--test",
    metavar="NAME",
    default="wilcoxon",
    help="wilcoxon (ranks of the differences) or randomization (their mean).",
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
@table_options
@items_option
@pair_options(is_advanced=True)
def compare(
    data: Path,
    rankers: tuple[Path, ...],
    table: TableOptions,
    items: Path | None,
    pair_columns: PairOptions,
    metric: tuple[str, ...],
    baseline: str | None,
    test: str,
    confidence: float,
    format: str,
    as_json: bool,
) -> None:
    """Compare models, or files of scores, by a paired test.

    DATA has the items with their true scores. Each RANKER is a model, or a file with one score a
    line; two or more are compared.
    """
    from rankwise.cli.input_files import open_data
    from rankwise.cli.model_options import metrics_for
    from rankwise.cli.trained_model import open_ranker
    from rankwise.metrics import evaluate
    from rankwise.model_selection import compare as paired_test
    from rankwise.model_selection.comparison import TESTS
    from rankwise.validation import check_option

    check_option("--test", test, TESTS)
    check_option("--format", format, TABLE_FORMATS)
    if len(rankers) < 2:
        raise ValueError("compare needs at least two rankers: `rankwise compare DATA A B`.")
    terminal.check_files([data, items, *rankers])
    file = open_data(data, table, items, pair_columns)
    evaluations: dict[str, Evaluation] = {}
    metrics: list[Metric] = []
    for name, path in zip(unique_names(rankers), rankers, strict=True):
        ranker = open_ranker(path)
        scores, scored_items = ranker.scores(file)
        y: Any = scored_items.y
        terminal.note(ranker.overlap_note(file, scored_items))
        if len(scores) > 1 and (scores == scores[0]).all():
            terminal.note(f"all scores of {name} are equal, so it does not rank anything")
        if not metrics:
            metrics = metrics_for(metric or file.default_metrics, y)
        evaluations[name] = evaluate(y, scores, scored_items.groups, metrics, undefined="nan")
    comparisons: dict[str, Comparison] = {}
    for tested_metric in metrics:
        values = {
            name: result.per_group[tested_metric.name] for name, result in evaluations.items()
        }
        comparisons[tested_metric.name] = paired_test(
            values,
            confidence=confidence,
            greater_is_better=tested_metric.greater_is_better,
            baseline=baseline,
            test=test,
        )
    if as_json:
        terminal.print_json({name: result.to_dict() for name, result in comparisons.items()})
        return
    for name, comparison in comparisons.items():
        if format == "text":
            click.echo(name)
            print_comparison(comparison)
        else:
            table_with_title = replace(comparison.table(), title=name)
            click.echo(join_tables([table_with_title], format))


def print_comparison(comparison: Comparison) -> None:
    """Print one row for each pair of rankers; a narrow terminal shows fewer columns."""
    if comparison.n_groups == 1:
        terminal.note("there is only one group, so the difference cannot be tested")
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


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Names of rankers: the stem of the file, the path if stems are equal, then also a number."""
    stems = [path.stem for path in paths]
    names = []
    for path in paths:
        is_unique = stems.count(path.stem) == 1
        names.append(path.stem if is_unique else str(path))
    unique = []
    for number, name in enumerate(names, start=1):
        is_unique = names.count(name) == 1
        unique.append(name if is_unique else f"{name} ({number})")
    return unique
