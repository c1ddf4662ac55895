"""``rankwise report``: one page that shows how a model ranks a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from rankwise.arrays import Array
    from rankwise.cli.input_files import DataFile
    from rankwise.cli.item_scores import ScoreFile
    from rankwise.cli.trained_model import TrainedModel


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
    help="Current model, or a file of its scores, to compare with.",
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
    from rankwise.cli.item_scores import open_ranker, overlap_note
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
        previous_scores = _scores_of_all_items(open_ranker(previous), file, all_items.y)
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


def _scores_of_all_items(ranker: TrainedModel | ScoreFile, file: DataFile, y: Array) -> Array:
    """Scores of the items of a file; 0 for those without a true score, which a page leaves out."""
    import numpy as np

    from rankwise.cli.item_scores import score_items

    has_true_score = ~np.isnan(y)
    scores = np.zeros(len(y))
    scores[has_true_score] = score_items(ranker, file).scores  # drops items without a true score
    return scores
