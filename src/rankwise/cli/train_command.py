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
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.shared_options import (
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
    from rankwise.cli.training_set import TrainingSet
    from rankwise.uncertainty import CalibratedRanker

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
    trained = ranker.estimator_ if calibrate else ranker
    chosen = describe(trained)
    score = chosen.get("held_out_score")
    if score is not None:
        n_items = training.X.shape[0]
        terminal.note(perfect_score_note(metric or chosen["metric"], score, n_items))
    parameters = {
        name: value for name, value in chosen.items() if not isinstance(value, list | dict)
    }
    command = shlex.join(["rankwise", *sys.argv[1:]])
    save(fitted, output, notes=training.notes(command, parameters).as_notes())
    is_default_model = model.model == "rankrls" and training.pairs is None
    summary: dict[str, Any] = {
        "data": training.summary,
        "model": type(trained).__name__.removesuffix("CV"),
        "kernel": getattr(estimator, "kernel", None),
        "chosen": chosen,
        "calibration": describe_calibration(ranker) if calibrate else None,
        "nuisance": nuisance_effects(trained),
        "scaler": training.scaler_name,
        "seconds": round(seconds, 3),
        "output": output,
        "hint": HINT if is_default_model else "",
    }
    if as_json:
        terminal.print_json(summary)
    elif not terminal.current.quiet:
        training.print_columns()
        print_summary(summary, training)


def print_summary(summary: dict[str, Any], training: TrainingSet) -> None:
    """Print the summary, the effects of nuisance columns, and the members of the model auto."""
    terminal.print_key_values(_lines(summary, training))
    if summary["nuisance"]:
        rows = []
        for effect in summary["nuisance"]:
            name, *numbers = effect.values()
            rows.append([name, *map(terminal.format_number, numbers)])
        terminal.echo("")
        terminal.print_table(TextTable(["nuisance", "effect", "standard error"], rows))
    if "members" in summary["chosen"]:
        print_members(summary["chosen"])


def nuisance_effects(ranker: Any) -> list[dict[str, Any]]:
    """Names, effects and standard errors of the nuisance columns."""
    if not hasattr(ranker, "nuisance_names_"):
        return []
    effects = []
    columns = (ranker.nuisance_names_, ranker.nuisance_coef_, ranker.nuisance_se_)
    for name, effect, standard_error in zip(*columns, strict=True):
        effects.append({"name": name, "effect": effect, "standard_error": standard_error})
    return effects


def describe_calibration(ranker: CalibratedRanker) -> dict[str, Any]:
    """What the standard errors and probabilities are computed from."""
    return {
        "units": ranker.units_,
        "n_units": ranker.n_units_,
        "n_pairs": ranker.n_pairs_,
        "log_loss": ranker.log_loss_,
        "trained_again": ranker.members_ is not None,
    }


def describe(ranker: Any) -> dict[str, Any]:
    """Selected or fixed parameters, and the held-out score of a selection; NaN becomes None."""
    from rankwise.auto.auto_ranker import AutoRanker
    from rankwise.metrics import get_metric

    chosen: dict[str, Any] = {}
    if isinstance(ranker, AutoRanker):
        chosen = {
            "metric": ranker.scoring_,
            "held_out_score": ranker.score_,
            "combine": ranker.combine_,
            "best_member": ranker.best_member_,
            "estimate": ranker.estimate_,
            "members": ranker.members_,
            "notes": ranker.notes_,
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
        parameters = ranker.get_params(deep=False)
        chosen = {name: parameters[name] for name in ("alpha", "nu") if name in parameters}
    return {name: to_json_values(value) for name, value in chosen.items()}


def _lines(summary: dict[str, Any], training: TrainingSet) -> list[tuple[str, str]]:
    """The summary as names and values."""
    lines = training.lines()
    if summary["kernel"]:
        lines.append(("model", f"{summary['model']}, kernel {summary['kernel']}"))
        lines.append(("scaling", summary["scaler"] or "none"))
    else:
        lines.append(("model", summary["model"]))
    lines += _selection_lines(summary["chosen"])
    if summary["calibration"] is not None:
        lines += _calibration_lines(summary["calibration"])
    return [
        *lines,
        ("training time", f"{summary['seconds']:.2f} s"),
        ("written to", str(summary["output"])),
        ("tip", summary["hint"]),
    ]


def _selection_lines(chosen: dict[str, Any]) -> list[tuple[str, str]]:
    """Which parameters or members were selected."""
    if "members" in chosen:
        n_evaluated = sum("score" in row for row in chosen["members"])
        combination = COMBINED[chosen["combine"]]
        return [
            ("chosen", f"{combination} {n_evaluated} members by {chosen['metric']}"),
            ("best member", chosen["best_member"]),
            *(("note", text) for text in chosen["notes"]),
        ]
    parameters = []
    for name in ("alpha", "nu", "gamma", "n_basis"):
        if chosen.get(name) is not None:
            parameters.append(f"{name} {chosen[name]:.4g}")
    values = ", ".join(parameters)
    if "held_out_score" not in chosen:
        return [("given", values)]
    score = chosen["held_out_score"] + 0.0  # minus zero becomes zero
    return [
        ("chosen", f"{values}, of {chosen['n_candidates']} candidates"),
        ("held-out score", f"{chosen['metric']} {score:.4f} by {chosen['held_out_by']}"),
    ]


def _calibration_lines(calibration: dict[str, Any]) -> list[tuple[str, str]]:
    """What the standard errors and probabilities are computed from."""
    units = f"{calibration['n_units']} {calibration['units']}"
    if calibration["trained_again"]:
        units = f"{calibration['n_units']} folds of {calibration['units']}, refitted for each"
    loss = f"log loss {calibration['log_loss']:.3f} (random order: 0.693)"
    return [
        ("errors", f"by leaving out {units}"),
        ("probabilities", f"from {calibration['n_pairs']:,} held-out pairs, {loss}"),
    ]


def print_members(chosen: dict[str, Any]) -> None:
    """Print one row for each member of the model auto."""
    rows = []
    for member in chosen["members"]:
        name = member["name"]
        if member["note"]:
            name += f" ({member['note']})"
        score = ""
        weight = ""
        if "score" in member:
            score = terminal.format_number(member["score"])
            weight = f"{member['weight']:+.3f}"
        rows.append([name, score, weight, f"{member['seconds']:.1f}"])
    terminal.echo("")
    terminal.print_table(TextTable(["member", chosen["metric"], "weight", "seconds"], rows))
