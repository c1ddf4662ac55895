"""``rankwise train``: read training data, choose the parameters, write the model."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.shared_options import (
    DATA,
    MODEL,
    FeatureOptions,
    ModelOptions,
    TableOptions,
    data_argument,
    feature_options,
    item_weight_option,
    items_option,
    model_options,
    table_options,
)
from rankwise.formatting import TextTable, to_json_values

if TYPE_CHECKING:
    from rankwise.cli.training_set import DataSummary, TrainingSet
    from rankwise.formatting import JsonObject
    from rankwise.rankers.summary import Calibration, Summary

COMBINED = {"stack": "a stack of", "mean": "the mean of the best of", "best": "the best of"}
HINT = "--model auto combines several models: often better, slower, harder to explain"


@click.command(
    cls=Command,
    examples=[
        "rankwise train queries.txt --metric ndcg@10 -o model.rw",
        "rankwise train houses.csv --target price --group district -o houses.rw",
        "rankwise train houses.csv --target price --model auto -o auto.rw",
        "rankwise train games.csv --items players.csv -o players.rw",
    ],
)
@data_argument
@option(
    "-o",
    "--output",
    metavar="FILE",
    type=FILE,
    required=True,
    help="Model file to write.",
)
@model_options
@option(
    "-m",
    "--metric",
    metavar="NAME",
    section=MODEL,
    help="Metric that selects the parameters; default: disagreement.",
)
@option(
    "--calibrate", is_flag=True, section=MODEL, help="Estimate standard errors and probabilities."
)
@table_options
@item_weight_option
@feature_options
@items_option
@pair_options(is_advanced=True)
@option(
    "--engine",
    metavar="NAME",
    type=click.Choice(["pyarrow", "duckdb", "polars", "dask", "spark"]),
    section=DATA,
    is_advanced=True,
    help="Read Parquet files of any size; DATA is a pattern such as 'folder/*.parquet'.",
)
@option("--json", "as_json", is_flag=True, is_advanced=True, help="Print one JSON document.")
def train(
    data: Path,
    output: Path,
    model: ModelOptions,
    table: TableOptions,
    features: FeatureOptions,
    items: Path | None,
    pair_columns: PairOptions,
    metric: str | None,
    calibrate: bool,
    weight: str | None,
    engine: str | None,
    as_json: bool,
) -> None:
    """Train a model, choose its parameters, and write it to a file.

    DATA is a table (CSV, TSV, Parquet, Feather, JSON) or svmlight rows with qid (LETOR); - is
    standard input. A table can have missing values, text, dates and identifiers; the use of each
    column is printed.
    """
    from rankwise.cli.engine_training import train_with_engine
    from rankwise.cli.model_options import make_model
    from rankwise.cli.pair_file import open_data
    from rankwise.cli.training_input import read_training
    from rankwise.persistence import save
    from rankwise.uncertainty import CalibratedRanker

    if engine is not None:
        train_with_engine(engine, data, output, model, table, features, metric, as_json)
        return
    terminal.check_files([data, items], output)
    estimator = make_model(model, metric)
    file = open_data(data, table, items, pair_columns, weight=weight)
    training = read_training(file, features, model, estimator)
    if training.folds is not None and "cv" in estimator.get_params():
        estimator.set_params(cv=training.folds)  # of judges
    if calibrate and training.nuisance is not None:
        raise ValueError("--calibrate and --nuisance cannot be combined; leave out one of them.")
    ranker = CalibratedRanker(estimator) if calibrate else estimator
    start = time.perf_counter()
    fitted = training.fit(ranker)
    seconds = time.perf_counter() - start
    summary = ranker.summary()
    _note_perfect_score(summary, metric, training.X.shape[0])
    command = shlex.join(["rankwise", *sys.argv[1:]])
    notes = training.notes(command, _chosen_parameters(summary))
    save(fitted, output, notes=notes.as_notes())
    is_default_model = model.model == "rankrls" and training.pairs is None
    document = TrainingDocument(
        data=training.summary,
        model=summary.model,
        kernel=getattr(estimator, "kernel", None),
        chosen=summary,
        scaler=training.scaler_name,
        seconds=round(seconds, 3),
        output=output,
        hint=HINT if is_default_model else "",
    )
    if as_json:
        terminal.print_json(asdict(document))
    elif not terminal.current.quiet:
        training.print_columns()
        print_summary(document, training)


@dataclass(frozen=True)
class TrainingDocument:
    """What `train` prints, and the JSON document.

    Attributes
    ----------
    data : DataSummary
        Columns and counts of the training data.
    model : str
        Class of the ranker.
    kernel, scaler : str or None
        Kernel of the ranker, and class of the scaler before it.
    chosen : Summary
        Summary of the ranker.
    seconds : float
        Duration of the training.
    output : Path
        The model file.
    hint : str
        What to try next.
    """

    data: DataSummary
    model: str
    kernel: str | None
    chosen: Summary
    scaler: str | None
    seconds: float
    output: Path
    hint: str


def _note_perfect_score(summary: Summary, metric: str | None, n_items: int) -> None:
    """Ask about a leak if the held-out score is perfect."""
    from rankwise.cli.model_options import perfect_score_note

    if summary.held_out_score is not None and summary.metric is not None:
        name = metric or summary.metric
        terminal.note(perfect_score_note(name, summary.held_out_score, n_items))


def _chosen_parameters(summary: Summary) -> JsonObject:
    """The selected parameters and their score, for the notes of the model file."""
    values = {
        **summary.parameters,
        "metric": summary.metric,
        "held_out_score": summary.held_out_score,
        "held_out_by": summary.held_out_by,
        "n_candidates": summary.n_candidates,
        "combine": summary.combine,
        "best_member": summary.best_member,
    }
    return {name: to_json_values(value) for name, value in values.items() if value is not None}


def print_summary(document: TrainingDocument, training: TrainingSet) -> None:
    """Print the summary, the effects of nuisance columns, and the members of the model auto."""
    from rankwise.rankers.summary import comparison_table, member_table

    summary = document.chosen
    terminal.print_key_values(_summary_lines(document, training))
    if summary.nuisance:
        rows = [
            [
                effect.name,
                terminal.format_number(effect.effect),
                terminal.format_number(effect.standard_error),
            ]
            for effect in summary.nuisance
        ]
        terminal.echo("")
        terminal.print_table(TextTable(["nuisance", "effect", "standard error"], rows))
    if summary.comparisons:
        terminal.echo("")
        terminal.print_table(comparison_table(summary.comparisons))
    if summary.members:
        terminal.echo("")
        terminal.print_table(member_table(str(summary.metric), summary.members))


def _summary_lines(document: TrainingDocument, training: TrainingSet) -> list[tuple[str, str]]:
    """The summary as names and values."""
    lines = training.lines()
    if document.kernel:
        lines.append(("model", f"{document.model}, kernel {document.kernel}"))
        lines.append(("scaling", document.scaler or "none"))
    else:
        lines.append(("model", document.model))
    lines += _selection_lines(document.chosen)
    if document.chosen.calibration is not None:
        lines += _calibration_lines(document.chosen.calibration)
    return [
        *lines,
        ("training time", f"{document.seconds:.2f} s"),
        ("written to", str(document.output)),
        ("tip", document.hint),
    ]


def _selection_lines(summary: Summary) -> list[tuple[str, str]]:
    """Which parameters or members were selected."""
    if summary.combine is not None:  # AutoRanker
        evaluated_members = [member for member in summary.members if "score" in member]
        combination = COMBINED[summary.combine]
        return [
            ("chosen", f"{combination} {len(evaluated_members)} members by {summary.metric}"),
            ("best member", summary.best_member or ""),
            *(("note", text) for text in summary.notes),
        ]
    parameters = summary.describe_parameters()
    if summary.held_out_score is None:
        return [("given", parameters)]
    held_out_score = summary.held_out_score + 0.0  # minus zero becomes zero
    return [
        ("chosen", f"{parameters}, of {summary.n_candidates} candidates"),
        ("held-out score", f"{summary.metric} {held_out_score:.4f} by {summary.held_out_by}"),
    ]


def _calibration_lines(calibration: Calibration) -> list[tuple[str, str]]:
    """What the standard errors and probabilities are computed from."""
    units = f"{calibration.n_units} {calibration.units}"
    if calibration.is_refitted:
        units = f"{calibration.n_units} folds of {calibration.units}, refitted for each"
    loss = f"log loss {calibration.log_loss:.3f} (random order: 0.693)"
    return [
        ("errors", f"by leaving out {units}"),
        ("probabilities", f"from {calibration.n_pairs:,} held-out pairs, {loss}"),
    ]
