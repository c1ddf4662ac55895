"""``rankwise cv``: held-out metrics for a list of candidates, exact for RankRLS."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import Command, option
from rankwise.cli.shared_options import (
    FeatureOptions,
    ModelOptions,
    PairOptions,
    TableOptions,
    data_argument,
    feature_options,
    item_weight_option,
    items_option,
    json_option,
    metric_option,
    model_options,
    output_option,
    pair_options,
    per_group_option,
    table_options,
)
from rankwise.formatting import TextTable, csv_text

NO_SCORES = "-o: {} gives no score for each item; use --leave group or a number of folds."
PREPARED = "features scaled and filled by all rows, without a look at the scores"


@click.command(cls=Command, examples=["rankwise cv houses.csv --target price --group district"])
@data_argument
@option(
    "--leave",
    metavar="UNIT",
    default="auto",
    help="What is held out: one group, one pair of items, or one of N folds; of comparisons also "
    "folds by judge or edge (comparison).",
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
        raise ValueError(NO_SCORES.format("--leave pair"))
    if model.model == "auto":
        raise ValueError("the model auto judges itself: rankwise train prints its held-out score.")
    estimator = make_model(model, metric[0] if metric else None, search=True)
    file = open_data(data, table, items, pair_columns, weight=weight)
    training = read_training(file, features, model, estimator)
    wanted: list[Any] = list(metric) or [DEFAULT_METRIC]
    if not metric and training.groups is not None:  # others have no value for a pair of one list
        wanted += metrics_for(None, training.y, training.weights)
    metrics = metrics_for(wanted, training.y)
    start = time.perf_counter()
    curves, fixed = hold_out(model, metrics, leave, training)
    seconds = time.perf_counter() - start
    best = curves.best(metrics[0])
    files: list[tuple[Path, str]] = []
    if output is not None:
        if curves.predictions is None:
            raise ValueError(NO_SCORES.format(curves.describe()))
        files.append((output, scores_text(curves.predictions[:, 0, best], gaps=True)))
        n_gaps = training.summary["items_without_score"]
        if n_gaps:
            terminal.note(f"{n_gaps:,} items without score are never held out: nan in {output}")
    if per_group is not None:
        columns = [scores[:, best, 0].tolist() for scores in curves.by_group.values()]
        rows = zip(curves.groups.tolist(), *columns, strict=True)
        files.append((per_group, csv_text(["group", *curves.by_group], rows)))
    terminal.write_texts(files)
    error = float(standard_error(curves.by_group[metrics[0].name])[best].mean())
    means = {one.name: curves.overall(one).tolist() for one in metrics}
    candidates = [
        {**curves.candidates[k], **{name: values[k] for name, values in means.items()}}
        for k in range(len(curves.candidates))
    ]
    summary = {
        "data": training.summary,
        "model": type(estimator).__name__.removesuffix("CV"),
        "held_out_by": curves.describe(),
        "fixed": fixed,
        "prepared": PREPARED if training.steps else "",
        "best": {**candidates[best], "by": metrics[0].name, "standard_error": error},
        "candidates": candidates,
        "seconds": round(seconds, 3),
    }
    if as_json:
        terminal.print_json(summary)
    else:
        training.print_columns()
        print_summary(summary, training.lines(), best)


def print_summary(summary: dict[str, Any], about_data: list[tuple[str, str]], best: int) -> None:
    """Print what was found as a table of candidates."""
    fixed = "".join(f", {name} {value:.4g}" for name, value in summary["fixed"].items())
    terminal.print_key_values(
        [
            *about_data,
            ("model", summary["model"] + fixed),
            ("held out", f"{summary['held_out_by']}, {summary['seconds']:.2f} s"),
            ("prepared", summary["prepared"]),
        ]
    )
    rows, chosen = [], summary["best"]
    error = f", {chosen['by']} ± {chosen['standard_error']:.4f}"
    mark = "best" + error * (not math.isnan(chosen["standard_error"]))
    for k, candidate in enumerate(summary["candidates"]):
        value, *scores = candidate.values()
        rows.append(
            [f"{value:.4g}", *map(terminal.format_number, scores), mark if k == best else ""]
        )
    table = TextTable([*summary["candidates"][0], ""], rows, names=(len(rows[0]) - 1,))
    terminal.print_table(table, best=best)
