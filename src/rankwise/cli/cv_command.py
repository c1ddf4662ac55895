"""``rankwise cv``: held-out metrics for a list of candidates, exact for RankRLS."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import Command, option
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.shared_options import (
    FeatureOptions,
    ModelOptions,
    TableOptions,
    data_argument,
    feature_options,
    item_weight_option,
    items_option,
    json_option,
    metric_option,
    model_options,
    output_option,
    per_group_option,
    table_options,
)
from rankwise.formatting import TextTable, csv_text

if TYPE_CHECKING:
    from rankwise.metrics import Metric
    from rankwise.model_selection import CrossValidationResult

NO_ITEM_SCORES = "-o: {} gives no score for each item; use --leave group or a number of folds."
PREPARED = "features scaled and imputed from all rows, without the scores"


@click.command(cls=Command, examples=["rankwise cv houses.csv --target price --group district"])
@data_argument
@option(
    "--leave",
    metavar="UNIT",
    default="auto",
    help="What is held out: group, pair (of items), a number of folds, judge or edge.",
)
@metric_option
@output_option
@per_group_option
@json_option
@model_options
@table_options
@item_weight_option
@feature_options
@items_option
@pair_options(is_advanced=True)
def cv(
    data: Path,
    model: ModelOptions,
    table: TableOptions,
    features: FeatureOptions,
    items: Path | None,
    pair_columns: PairOptions,
    leave: str,
    metric: tuple[str, ...],
    output: Path | None,
    per_group: Path | None,
    weight: str | None,
    as_json: bool,
) -> None:
    """Cross-validate a model: evaluate each candidate on held-out data.

    The first --metric selects the best candidate. -o writes its held-out scores, one a line, and
    nan for items without a true score.
    """
    from rankwise.cli.input_files import open_data
    from rankwise.cli.model_options import DEFAULT_METRIC, make_model, metrics_for
    from rankwise.cli.training_input import hold_out, read_training
    from rankwise.datasets.score_files import scores_text
    from rankwise.metrics.by_group import standard_error

    terminal.check_files([data, items], output, per_group)
    if leave == "pair" and output is not None:
        raise ValueError(NO_ITEM_SCORES.format("--leave pair"))
    if model.model == "auto":
        raise ValueError("the model auto evaluates itself: rankwise train prints its score.")
    estimator = make_model(model, metric[0] if metric else None, search=True)
    file = open_data(data, table, items, pair_columns, weight=weight)
    training = read_training(file, features, model, estimator)
    names: list[Any] = list(metric) or [DEFAULT_METRIC]
    if not metric and training.groups is not None:  # undefined for a held-out pair of one list
        names += metrics_for(None, training.y, training.data.weight)
    metrics = metrics_for(names, training.y)
    start = time.perf_counter()
    results, fixed = hold_out(model, metrics, leave, training)
    seconds = time.perf_counter() - start
    best = results.best(metrics[0])
    n_unscored = training.summary["items_without_score"]
    files: list[tuple[Path, str]] = []
    if output is not None:
        if results.predictions is None:
            raise ValueError(NO_ITEM_SCORES.format(results.describe()))
        files.append((output, scores_text(results.predictions[:, 0, best], gaps=True)))
        if n_unscored:
            terminal.note(f"{n_unscored:,} items without score are never held out: nan in {output}")
    if per_group is not None:
        files.append((per_group, _per_group_text(results, best)))
    terminal.write_texts(files)
    candidates = _candidate_rows(results, metrics)
    first = metrics[0].name
    summary = {
        "data": training.summary,
        "model": type(estimator).__name__.removesuffix("CV"),
        "held_out_by": results.describe(),
        "fixed": fixed,
        "prepared": PREPARED if training.steps else "",
        "best": {
            **candidates[best],
            "by": first,
            "standard_error": float(standard_error(results.by_group[first])[best].mean()),
        },
        "candidates": candidates,
        "seconds": round(seconds, 3),
    }
    if as_json:
        terminal.print_json(summary)
    else:
        training.print_columns()
        print_summary(summary, training.lines(), best)


def _candidate_rows(
    results: CrossValidationResult, metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """Parameters and mean metrics of each candidate."""
    means = {metric.name: results.overall(metric).tolist() for metric in metrics}
    rows = []
    for k in range(len(results.candidates)):
        metrics_of_candidate = {name: values[k] for name, values in means.items()}
        rows.append({**results.candidates[k], **metrics_of_candidate})
    return rows


def _per_group_text(results: CrossValidationResult, best: int) -> str:
    """The metrics of the best candidate in each group as CSV."""
    columns = [values[:, best, 0].tolist() for values in results.by_group.values()]
    rows = zip(results.groups.tolist(), *columns, strict=True)
    return csv_text(["group", *results.by_group], rows)


def print_summary(summary: dict[str, Any], data_lines: list[tuple[str, str]], best: int) -> None:
    """Print the summary and a table of the candidates."""
    model = summary["model"]
    for name, value in summary["fixed"].items():
        model += f", {name} {value:.4g}"
    terminal.print_key_values(
        [
            *data_lines,
            ("model", model),
            ("held out", f"{summary['held_out_by']}, {summary['seconds']:.2f} s"),
            ("prepared", summary["prepared"]),
        ]
    )
    error = summary["best"]["standard_error"]
    mark = "best"
    if not math.isnan(error):
        mark += f", {summary['best']['by']} ± {error:.4f}"
    rows = []
    for k, candidate in enumerate(summary["candidates"]):
        parameter, *metrics = candidate.values()
        last = mark if k == best else ""
        rows.append([f"{parameter:.4g}", *map(terminal.format_number, metrics), last])
    header = [*summary["candidates"][0], ""]
    table = TextTable(header, rows, names=(len(header) - 1,))
    terminal.print_table(table, best=best)
