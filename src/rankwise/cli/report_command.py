"""``rankwise report``: one page that shows how a model ranks a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.shared_options import (
    OUTPUT,
    PairOptions,
    TableOptions,
    data_argument,
    items_option,
    metric_option,
    model_argument,
    pair_options,
    table_options,
)


@click.command(cls=Command, examples=["rankwise report model.rw new.csv -o report.html"])
@model_argument
@data_argument
@option(
    "-o",
    "--output",
    metavar="FILE",
    type=FILE,
    required=True,
    section=OUTPUT,
    help="HTML file to write; - is standard output.",
)
@option(
    "--previous",
    metavar="RANKER",
    type=FILE,
    help="Model in use so far, or a file of its scores, to compare with.",
)
@metric_option
@option("--title", metavar="TEXT", section=OUTPUT, is_advanced=True, help="Title of the page.")
@table_options
@items_option
@pair_options(is_advanced=True)
def report(
    model: Path,
    data: Path,
    output: Path,
    table: TableOptions,
    items: Path | None,
    pair_columns: PairOptions,
    previous: Path | None,
    metric: tuple[str, ...],
    title: str | None,
) -> None:
    """Write a page (HTML) that shows how a model ranks the items of a file.

    MODEL is a file of rankwise train. DATA has the items with their true scores.
    """
    import numpy as np

    from rankwise.cli.input_files import open_data, open_model, open_ranker
    from rankwise.cli.model_options import metrics_for
    from rankwise.report import report as make_page

    terminal.check_files([model, data, previous, items], output)
    ranker = open_model(model)
    file = open_data(data, table, items, pair_columns)
    found: Any = file.read_for(ranker)
    before = None
    if previous is not None:
        before = np.zeros(found.X.shape[0])  # rows without a true score are left out of the page
        before[~np.isnan(found.y)] = open_ranker(previous).scores(file)[0]
    warning = ranker.seen_items(file, found)
    metrics = metrics_for(metric or file.usual_metrics, found.y)
    page = make_page(
        ranker.model,
        found.X,
        found.y,
        found.groups,
        ids=None if found.ids is None else found.ids.tolist(),
        feature_names=ranker.features or [f"f{k + 1}" for k in range(ranker.n_features)],
        previous=before,
        metrics=metrics,
        warning=warning,
        title=title or f"{model.stem} on {data.name}",
    )
    page.save(output)
    terminal.note(warning)
    terminal.echo(f"written to {output}")
