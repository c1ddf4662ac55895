"""``rankwise train``: learn from a file, choose the parameters, write the model."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise.cli.options import AsJson, DataFile, ModelOptions, TrainingTableOptions

if TYPE_CHECKING:
    from rankwise.cli.training import Training

__all__ = ["train"]


def train(
    file: DataFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the model.")
    ],
    model: ModelOptions,
    table: TrainingTableOptions,
    as_json: AsJson = False,
) -> None:
    """Train a model on scored items, choose its parameters, and write it to a file."""
    from rankwise.cli.models import fit_pipeline, make_model, make_scaler
    from rankwise.cli.output import check_output, print_json, print_pairs
    from rankwise.cli.session import is_quiet
    from rankwise.cli.training import read_training
    from rankwise.estimators.pipelines import last_step
    from rankwise.persistence import save

    check_output(output, file)
    estimator = make_model(model)
    data = read_training(file, table, model.model)
    scaler = make_scaler(model.scale, estimator.kernel, data.is_sparse)
    start = time.perf_counter()
    fitted = fit_pipeline(estimator, scaler, data.X, data.y, data.groups)
    seconds = time.perf_counter() - start
    chosen = describe(last_step(fitted))
    save(fitted, output, notes=data.record(_command(), chosen).as_notes())
    summary = {
        "data": data.summary,
        "model": type(last_step(fitted)).__name__.removesuffix("CV"),
        "kernel": estimator.kernel,
        "chosen": chosen,
        "note": getattr(last_step(fitted), "cv_results_", {}).get("note", ""),
        "scaler": type(scaler).__name__ if scaler is not None else None,
        "seconds": round(seconds, 3),
        "output": output,
    }
    if as_json:
        print_json(summary)
    elif not is_quiet():
        print_pairs(_lines(summary, data))


def describe(ranker: Any) -> dict[str, Any]:
    """Parameters that were chosen or given, and how good the chosen ones were."""
    from rankwise.cli.output import plain

    search = getattr(ranker, "cv_results_", None)
    if search is None:
        return {name: getattr(ranker, name) for name in ("alpha", "nu") if hasattr(ranker, name)}
    chosen = {name: plain(value) for name, value in ranker.best_params_.items()}
    return {
        **chosen,
        "scoring": str(ranker.scoring),
        "held_out_score": float(ranker.best_score_),
        "held_out_by": search.get("cv", "folds"),
        "n_candidates": int(search["mean_score"].size),
    }


def _command() -> str:
    return shlex.join(["rankwise", *sys.argv[1:]])


def _lines(summary: dict[str, Any], data: Training) -> list[tuple[str, str]]:
    chosen = summary["chosen"]
    values = ", ".join(
        f"{name} {chosen[name]:.4g}"
        for name in ("alpha", "nu", "gamma", "n_basis")
        if chosen.get(name) is not None
    )
    how = [("given", values)]
    if "held_out_score" in chosen:
        score = f"{chosen['scoring']} {chosen['held_out_score']:.4f} by {chosen['held_out_by']}"
        how = [
            ("chosen", f"{values}, of {chosen['n_candidates']} candidates"),
            ("held-out score", score),
            *([("note", summary["note"])] if summary["note"] else []),
        ]
    return [
        *data.lines(),
        ("model", f"{summary['model']}, kernel {summary['kernel']}"),
        ("scaling", summary["scaler"] or "none"),
        *how,
        ("training time", f"{summary['seconds']:.2f} s"),
        ("written to", str(summary["output"])),
    ]
