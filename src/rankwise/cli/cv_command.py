"""``rankwise cv``: held-out metrics for a list of candidates, exact for RankRLS."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
    from rankwise.cli.training_set import DataSummary, TrainingSet
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
    help="Unit that is held out: group, pair (of items), a number of folds, judge or edge.",
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

    The first --metric selects the best candidate. -o writes its held-out scores, one per line, and
    nan for items without a true score.
    """
    from rankwise.cli.model_options import make_model
    from rankwise.cli.pair_file import open_data
    from rankwise.cli.training_input import hold_out, read_training

    terminal.check_files([data, items], output, per_group)
    if leave == "pair" and output is not None:
        raise ValueError(NO_ITEM_SCORES.format("--leave pair"))
    if model.model == "auto":
        raise ValueError(
            "--model auto has its own evaluation; run rankwise train, which prints the held-out "
            "score."
        )
    selecting_metric = metric[0] if metric else None
    estimator = make_model(model, selecting_metric, search=True)
    file = open_data(data, table, items, pair_columns, weight=weight)
    training = read_training(file, features, model, estimator)
    metrics = _metrics(metric, training)
    start = time.perf_counter()
    results, fixed_parameters = hold_out(model, metrics, leave, training)
    seconds = time.perf_counter() - start
    best_candidate = results.best(metrics[0])  # its position among the candidates
    n_unscored = training.summary.items_without_score
    _write_results(results, best_candidate, output, per_group, n_unscored)
    document = CrossValidationDocument(
        data=training.summary,
        model=type(estimator).__name__.removesuffix("CV"),
        held_out_by=results.describe(),
        fixed=fixed_parameters,
        prepared=PREPARED if training.steps else "",
        best=_best_row(results, metrics, best_candidate),
        candidates=_candidate_rows(results, metrics),
        seconds=round(seconds, 3),
    )
    if as_json:
        terminal.print_json(asdict(document))
    else:
        training.print_columns()
        print_summary(document, training.lines(), best_candidate)


@dataclass(frozen=True)
class CrossValidationDocument:
    """What `cv` prints, and the JSON document.

    Attributes
    ----------
    data : DataSummary
        Columns and counts of the data.
    model : str
        Class of the model.
    held_out_by : str
        What is held out.
    fixed : dict from str to float
        The best values of parameters that are not in the table of candidates.
    prepared : str
        Steps that are fitted to all rows.
    best : dict
        The best candidate, the metric that selects it, and its standard error.
    candidates : list of dict
        Parameters and mean metrics of each candidate.
    seconds : float
        Duration of the cross-validation.
    """

    data: DataSummary
    model: str
    held_out_by: str
    fixed: dict[str, float]
    prepared: str
    best: dict[str, float | str]
    candidates: list[dict[str, float]]
    seconds: float


def _metrics(names: Sequence[str], training: TrainingSet) -> list[Metric]:
    """The metrics of --metric; by default the metric of a search and those of `evaluate`."""
    from rankwise.cli.model_options import DEFAULT_METRIC, metrics_for, read_metrics

    if names:
        return read_metrics(names)
    if training.groups is None:  # other metrics are undefined for a held-out pair of one list
        return read_metrics([DEFAULT_METRIC])
    default_metrics = metrics_for([], training.data.y, training.data.weight)
    return read_metrics([DEFAULT_METRIC, *default_metrics])


def _write_results(
    results: CrossValidationResult,
    best_candidate: int,
    output: Path | None,
    per_group: Path | None,
    n_unscored: int,
) -> None:
    """Write the held-out scores and the metrics of each group of the best candidate."""
    from rankwise.datasets.score_files import scores_text

    files: list[tuple[Path, str]] = []
    if output is not None:
        if results.predictions is None:
            raise ValueError(NO_ITEM_SCORES.format(results.describe()))
        # (n_items, n_outputs, n_candidates)
        held_out_scores = results.predictions[:, 0, best_candidate]
        files.append((output, scores_text(held_out_scores, gaps=True)))
        if n_unscored:
            terminal.note(f"{n_unscored:,} items without score are never held out: nan in {output}")
    if per_group is not None:
        files.append((per_group, _per_group_text(results, best_candidate)))
    terminal.write_texts(files)


def _best_row(
    results: CrossValidationResult, metrics: Sequence[Metric], best_candidate: int
) -> dict[str, float | str]:
    """The best candidate, the metric that selects it, and its standard error."""
    from rankwise.metrics.by_group import standard_error

    selecting_metric = metrics[0].name
    # (n_candidates, n_outputs), over the groups or folds
    errors = standard_error(results.by_group[selecting_metric])
    return {
        **_candidate_rows(results, metrics)[best_candidate],
        "by": selecting_metric,
        "standard_error": float(errors[best_candidate].mean()),  # over the outputs
    }


def _candidate_rows(
    results: CrossValidationResult, metrics: Sequence[Metric]
) -> list[dict[str, float]]:
    """Parameters and mean metrics of each candidate."""
    values_of_metric = {metric.name: results.overall(metric).tolist() for metric in metrics}
    rows = []
    for number in range(len(results.candidates)):
        parameters = results.candidates[number]
        mean_metrics = {name: values[number] for name, values in values_of_metric.items()}
        rows.append({**parameters, **mean_metrics})
    return rows


def _per_group_text(results: CrossValidationResult, best_candidate: int) -> str:
    """The metrics of the best candidate in each group as CSV."""
    columns = []
    for values in results.by_group.values():  # (n_groups, n_candidates, n_outputs)
        columns.append(values[:, best_candidate, 0].tolist())
    rows = zip(results.groups.tolist(), *columns, strict=True)
    return csv_text(["group", *results.by_group], rows)


def print_summary(
    document: CrossValidationDocument, data_lines: list[tuple[str, str]], best_candidate: int
) -> None:
    """Print the data, the model and a table of the candidates."""
    model = document.model
    for name, value in document.fixed.items():
        model += f", {name} {value:.4g}"
    terminal.print_key_values(
        [
            *data_lines,
            ("model", model),
            ("held out", f"{document.held_out_by}, {document.seconds:.2f} s"),
            ("prepared", document.prepared),
        ]
    )
    note_of_best = "best"
    standard_error = float(document.best["standard_error"])
    if not math.isnan(standard_error):
        note_of_best += f", {document.best['by']} ± {standard_error:.4f}"
    rows = []
    for number, candidate in enumerate(document.candidates):
        parameter, *metrics = candidate.values()
        note = note_of_best if number == best_candidate else ""
        rows.append([f"{parameter:.4g}", *map(terminal.format_number, metrics), note])
    header = [*document.candidates[0], ""]
    note_column = len(header) - 1  # has text; the other columns have numbers
    table = TextTable(header, rows, names=(note_column,))
    terminal.print_table(table, bold_row=best_candidate)
