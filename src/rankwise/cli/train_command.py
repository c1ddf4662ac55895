"""``rankwise train``: read training data, choose the parameters, write the model."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.shared_options import (
    MODEL,
    FeatureOptions,
    ModelOptions,
    PairOptions,
    TableOptions,
    data_argument,
    feature_options,
    item_weight_option,
    items_option,
    model_options,
    pair_options,
    table_options,
)
from rankwise.formatting import TextTable, without_markup

if TYPE_CHECKING:
    from rankwise.cli.training_input import TrainingSet

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
    help="File of the model.",
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
    as_json: bool,
) -> None:
    """Train a model, choose its parameters, and write it to a file.

    DATA is a table (CSV, TSV, Parquet, Feather, JSON) or svmlight rows with qid (LETOR); - is
    standard input. A table can have missing values, text, dates and identifiers; the use of each
    column is printed.
    """
    from rankwise.cli.input_files import open_data
    from rankwise.cli.model_options import make_model, perfect_score_note
    from rankwise.cli.training_input import read_training
    from rankwise.persistence import save
    from rankwise.uncertainty import CalibratedRanker

    terminal.check_files([data, items], output)
    estimator = make_model(model, metric)
    file = open_data(data, table, items, pair_columns, weight=weight)
    training = read_training(file, features, model, estimator)
    if training.folds is not None and "cv" in estimator.get_params():
        estimator.set_params(cv=training.folds)
    if calibrate and training.nuisance is not None:
        raise ValueError("--calibrate and --nuisance do not go together; leave out one of them.")
    ranker = CalibratedRanker(estimator) if calibrate else estimator
    start = time.perf_counter()
    fitted = training.fit(ranker)
    seconds = time.perf_counter() - start
    inner = ranker.estimator_ if calibrate else ranker
    chosen = describe(inner)
    if chosen.get("held_out_score") is not None:
        n_items = training.X.shape[0]
        terminal.note(
            perfect_score_note(metric or chosen["metric"], chosen["held_out_score"], n_items)
        )
    short = {name: v for name, v in chosen.items() if not isinstance(v, (list, dict))}
    notes = training.notes(shlex.join(["rankwise", *sys.argv[1:]]), short)
    save(fitted, output, notes=notes.as_notes())
    calibration = None
    if calibrate:
        facts = ("units", "n_units", "n_pairs", "log_loss")
        calibration = {name: getattr(ranker, f"{name}_") for name in facts}
        calibration["trained_again"] = ranker.members_ is not None
    summary: dict[str, Any] = {
        "data": training.summary,
        "model": type(inner).__name__.removesuffix("CV"),
        "kernel": getattr(estimator, "kernel", None),
        "chosen": chosen,
        "calibration": calibration,
        "nuisance": nuisance_effects(inner),
        "scaler": training.scaler_name,
        "seconds": round(seconds, 3),
        "output": output,
        "hint": HINT if model.model == "rankrls" and training.pairs is None else "",
    }
    if as_json:
        terminal.print_json(summary)
    elif not terminal.current.quiet:
        training.print_columns()
        terminal.print_key_values(_lines(summary, training))
        if summary["nuisance"]:
            effects = [list(row.values()) for row in summary["nuisance"]]
            rows = [[name, *map(terminal.format_number, numbers)] for name, *numbers in effects]
            terminal.echo("")
            terminal.print_table(TextTable(["nuisance", "effect", "standard error"], rows))
        if "members" in chosen:
            print_members(chosen)


def nuisance_effects(ranker: Any) -> list[dict[str, Any]]:
    """Names, effects and standard errors of the nuisance columns."""
    if not hasattr(ranker, "nuisance_names_"):
        return []
    columns = (ranker.nuisance_names_, ranker.nuisance_coef_, ranker.nuisance_se_)
    keys = ("name", "effect", "standard_error")
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def describe(ranker: Any) -> dict[str, Any]:
    """Parameters that were chosen or given, and how good the chosen ones were; JSON has no nan."""
    from rankwise.metrics import get_metric

    if hasattr(ranker, "members_"):
        facts = ("combine", "best_member", "estimate", "members", "notes")
        chosen = {
            "metric": ranker.scoring_,
            "held_out_score": ranker.score_,
            **{name: getattr(ranker, f"{name}_") for name in facts},
        }
    elif hasattr(ranker, "cv_results_"):
        chosen = {
            **ranker.best_params_,
            "metric": get_metric(ranker.scoring).name,
            "held_out_score": ranker.best_score_,
            "held_out_by": ranker.cv_results_.get("cv", "folds"),
            "n_candidates": ranker.cv_results_["mean_score"].size,
        }
    else:
        chosen = {name: getattr(ranker, name) for name in ("alpha", "nu") if hasattr(ranker, name)}
    described: dict[str, Any] = without_markup(chosen)
    return described


def _lines(summary: dict[str, Any], training: TrainingSet) -> list[tuple[str, str]]:
    """The summary for people."""
    chosen, calibration = summary["chosen"], summary["calibration"]
    kernel = f", kernel {summary['kernel']}" if summary["kernel"] else ""
    lines = [*training.lines(), ("model", f"{summary['model']}{kernel}")]
    if kernel:
        lines.append(("scaling", summary["scaler"] or "none"))
    values = ", ".join(
        f"{name} {chosen[name]:.4g}"
        for name in ("alpha", "nu", "gamma", "n_basis")
        if chosen.get(name) is not None
    )
    if "members" in chosen:
        judged = sum("score" in row for row in chosen["members"])
        how = COMBINED[chosen["combine"]]
        lines += [
            ("chosen", f"{how} {judged} members by {chosen['metric']}"),
            ("best member", chosen["best_member"]),
            *(("note", text) for text in chosen["notes"]),
        ]
    elif "held_out_score" in chosen:
        score = f"{chosen['metric']} {chosen['held_out_score'] + 0.0:.4f}"
        lines += [
            ("chosen", f"{values}, of {chosen['n_candidates']} candidates"),
            ("held-out score", f"{score} by {chosen['held_out_by']}"),
        ]
    else:
        lines.append(("given", values))
    if calibration is not None:
        units = f"{calibration['n_units']} {calibration['units']}"
        if calibration["trained_again"]:
            folds = f"{calibration['n_units']} folds of {calibration['units']}"
            units = f"{folds}, refitted for each"
        loss = f"log loss {calibration['log_loss']:.3f} (a coin 0.693)"
        lines += [
            ("errors", f"by leaving out {units}"),
            ("probabilities", f"from {calibration['n_pairs']:,} held-out pairs, {loss}"),
        ]
    return [
        *lines,
        ("training time", f"{summary['seconds']:.2f} s"),
        ("written to", str(summary["output"])),
        ("tip", summary["hint"]),
    ]


def print_members(chosen: dict[str, Any]) -> None:
    """One row for each member of the model auto."""
    rows = []
    for row in chosen["members"]:
        name = f"{row['name']} ({row['note']})" if row["note"] else row["name"]
        judged = (
            [terminal.format_number(row["score"]), f"{row['weight']:+.3f}"]
            if "score" in row
            else ["", ""]
        )
        rows.append([name, *judged, f"{row['seconds']:.1f}"])
    terminal.echo("")
    terminal.print_table(TextTable(["member", chosen["metric"], "weight", "seconds"], rows))
