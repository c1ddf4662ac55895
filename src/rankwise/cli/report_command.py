"""``rankwise report``: one page that shows how a model ranks a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.shared_options import (
    OUTPUT,
    TableOptions,
    data_argument,
    items_option,
    metric_option,
    model_argument,
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

    from rankwise.cli.item_scores import open_ranker, overlap_note, score_items
    from rankwise.cli.model_options import metrics_for
    from rankwise.cli.pair_file import open_data
    from rankwise.cli.trained_model import open_model
    from rankwise.report import report as make_page

    terminal.check_files([model, data, previous, items], output)
    ranker = open_model(model)
    file = open_data(data, table, items, pair_columns)
    all_items: Any = file.read_for(ranker)
    previous_scores = None
    if previous is not None:
        # score_items gives scores of the items with a true score only; the page leaves out the
        # others, so their 0 is not used.
        has_true_score = ~np.isnan(all_items.y)
        previous_scores = np.zeros(all_items.X.shape[0])
        previous_scores[has_true_score] = score_items(open_ranker(previous), file).scores
    warning = overlap_note(ranker, file, all_items)
    ids = None
    if all_items.ids is not None:
        ids = all_items.ids.tolist()
    numbered_names = [f"f{number}" for number in range(1, ranker.n_features + 1)]
    page = make_page(
        ranker.model,
        all_items.X,
        all_items.truth,
        all_items.groups,
        ids=ids,
        feature_names=ranker.features or numbered_names,
        previous=previous_scores,
        metrics=metrics_for(metric or file.default_metrics, all_items.truth),
        warning=warning,
        title=title or f"{model.stem} on {data.name}",
    )
    page.save(output)
    terminal.note(warning)
    terminal.echo(f"written to {output}")
