"""``rankwise train``: read training data, choose the parameters, write the model."""

from __future__ import annotations

import math
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rankwise.cli.options import (
    AsJson,
    DataArgument,
    ModelName,
    ModelOptions,
    TrainingTableOptions,
    WeightColumn,
    flag,
    option,
)
from rankwise.cli.pairs import ItemOptions
from rankwise.cli.session import current, note

if TYPE_CHECKING:
    from rankwise.cli.training import TrainingSet

HINT = "--model auto combines several models: often better, slower, harder to explain"


ChoosingMetric = Annotated[
    str | None,
    option(
        "Chooses the parameters; disagreement if not given.",
        "NAME",
        "--metric",
        "-m",
        panel="Model",
    ),
]


Calibrate = Annotated[
    bool,
    flag(
        "--calibrate",
        help="Also find standard errors and probabilities.",
        panel="Model",
    ),
]


def train(
    file: DataArgument,
    output: Annotated[Path, option("Where to write the model.", "FILE", "--output", "-o")],
    model: ModelOptions,
    table: TrainingTableOptions,
    pairs: ItemOptions,
    metric: ChoosingMetric = None,
    calibrate: Calibrate = False,
    weight: WeightColumn = None,
    as_json: AsJson = False,
) -> None:
    """Train a model, choose its parameters, and write it to a file.

    A table may have gaps, text, dates and identifiers: what becomes of each column is printed.

    \b
    rankwise train queries.txt --metric ndcg@10 -o model.rw
    rankwise train houses.csv --target price --group district -o houses.rw
    rankwise train houses.csv --target price --model auto -o auto.rw
    rankwise train games.csv --items players.csv -o players.rw
    """  # noqa: D301
    from rankwise.cli.models import fit_model, make_model, too_good
    from rankwise.cli.output import check_inputs, check_output, print_json, print_pairs
    from rankwise.cli.training import read_training
    from rankwise.persistence import save

    check_inputs(file, pairs.items)
    check_output(output, file, pairs.items)
    estimator = make_model(model, metric)
    data = read_training(file, table, pairs, model, estimator, weight)
    if data.cv != "auto" and "cv" in estimator.get_params():
        estimator.set_params(cv=data.cv)
    ranker = estimator
    if calibrate and data.nuisance is not None:
        raise ValueError("--calibrate and --nuisance do not go together; leave out one of them.")
    if calibrate:
        from rankwise.uncertainty import CalibratedRanker

        ranker = CalibratedRanker(estimator)
    start = time.perf_counter()
    fitted = fit_model(ranker, data)
    seconds = time.perf_counter() - start
    inner = ranker.estimator_ if calibrate else ranker
    chosen = describe(inner)
    if chosen.get("held_out_score") is not None:
        note(too_good(chosen["metric"], chosen["held_out_score"], data.X.shape[0]))
    short = {name: v for name, v in chosen.items() if not isinstance(v, (list, dict))}
    notes = data.notes(shlex.join(["rankwise", *sys.argv[1:]]), short)
    save(fitted, output, notes=notes.as_notes())
    calibration = (
        {
            "units": ranker.units_,
            "n_units": ranker.n_units_,
            "n_pairs": ranker.n_pairs_,
            "log_loss": ranker.log_loss_,
            "trained_again": ranker.members_ is not None,
        }
        if calibrate
        else None
    )
    effects = nuisance_effects(inner)
    summary = {
        "data": data.summary,
        "model": type(inner).__name__.removesuffix("CV"),
        "kernel": getattr(estimator, "kernel", None),
        "chosen": chosen,
        "calibration": calibration,
        "nuisance": effects,
        "scaler": type(data.scaler).__name__ if data.scaler is not None else None,
        "seconds": round(seconds, 3),
        "output": output,
        "hint": HINT if model.model is ModelName.rankrls and data.pairs is None else "",
    }
    if as_json:
        print_json(summary)
    elif not current.quiet:
        data.print_columns()
        print_pairs(_lines(summary, data))
        if effects:
            print_effects(effects)
        if hasattr(inner, "members_"):
            print_members(inner)


def nuisance_effects(ranker: Any) -> list[dict[str, Any]]:
    """Names, effects and standard errors of the nuisance columns."""
    if not hasattr(ranker, "nuisance_names_"):
        return []
    columns = (ranker.nuisance_names_, ranker.nuisance_coef_, ranker.nuisance_se_)
    keys = ("name", "effect", "standard_error")
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def print_effects(effects: list[dict[str, Any]]) -> None:
    """One row for each effect of the nuisance."""
    from rankwise.cli.output import print_table, say, shown
    from rankwise.text_tables import Table

    rows = [[row["name"], *map(shown, (row["effect"], row["standard_error"]))] for row in effects]
    say("")
    print_table(Table(["nuisance", "effect", "standard error"], rows))


def describe(ranker: Any) -> dict[str, Any]:
    """Parameters that were chosen or given, and how good the chosen ones were; JSON has no nan."""
    from rankwise.text_tables import plain

    if hasattr(ranker, "members_"):
        found = {
            "metric": ranker.scoring_,
            "held_out_score": ranker.score_,
            "combine": ranker.combine_,
            "best_member": ranker.best_member_,
            "estimate": ranker.estimate_,
            "members": ranker.members_,
            "notes": ranker.notes_,
        }
    elif hasattr(ranker, "cv_results_"):
        found = {
            **ranker.best_params_,
            "metric": str(ranker.scoring),
            "held_out_score": ranker.best_score_,
            "held_out_by": ranker.cv_results_.get("cv", "folds"),
            "n_candidates": ranker.cv_results_["mean_score"].size,
        }
    else:
        found = {name: getattr(ranker, name) for name in ("alpha", "nu") if hasattr(ranker, name)}
    described: dict[str, Any] = plain(found)
    return described


def _lines(summary: dict[str, Any], data: TrainingSet) -> list[tuple[str, str]]:
    """The summary for people."""
    chosen, calibration = summary["chosen"], summary["calibration"]
    kernel = f", kernel {summary['kernel']}" if summary["kernel"] else ""
    lines = [*data.lines(), ("model", f"{summary['model']}{kernel}")]
    if kernel:
        lines.append(("scaling", summary["scaler"] or "none"))
    values = ", ".join(
        f"{name} {chosen[name]:.4g}"
        for name in ("alpha", "nu", "gamma", "n_basis")
        if chosen.get(name) is not None
    )
    if "members" in chosen:
        lines += member_lines(chosen)
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
            units = f"{folds}, trained again for each"
        loss = f"log loss {calibration['log_loss']:.3f} (a coin 0.693)"
        lines += [
            ("errors", f"by leaving out {units}"),
            ("probabilities", f"from {calibration['n_pairs']:,} held-out pairs, {loss}"),
        ]
    return [
        *lines,
        ("training time", f"{summary['seconds']:.2f} s"),
        ("written to", str(summary["output"])),
        ("or else", summary["hint"]),
    ]


def member_lines(chosen: dict[str, Any]) -> list[tuple[str, str]]:
    """The combination in a few lines."""
    what = {"stack": "a stack of", "mean": "the mean of the best of", "best": "the best of"}
    judged = sum("score" in row for row in chosen["members"])
    return [
        ("chosen", f"{what[chosen['combine']]} {judged} members by {chosen['metric']}"),
        ("best member", chosen["best_member"]),
        *(("note", note) for note in chosen["notes"]),
    ]


def print_members(ranker: Any) -> None:
    """One row for each member."""
    from rankwise.cli.output import print_table, say, shown
    from rankwise.text_tables import Table

    def cells(row: dict[str, Any]) -> list[str]:
        if "score" not in row:
            return [row["name"], "", "", "", "", f"{row['seconds']:.1f}", row["note"]]
        interval = f"{shown(row['low'])} … {shown(row['high'])}"
        alpha = "" if math.isnan(row["alpha"]) else f"{row['alpha']:.3g}"
        numbers = [shown(row["score"]), interval, alpha, f"{row['weight']:+.3f}"]
        return [row["name"], *numbers, f"{row['seconds']:.1f}", row["note"]]

    say("")
    header = ["member", ranker.scoring_, "95% interval", "alpha", "weight", "seconds", ""]
    print_table(Table(header, [cells(row) for row in ranker.members_]))
