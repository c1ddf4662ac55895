"""``rankwise train``: learn from a file, choose the parameters, write the model."""

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

if TYPE_CHECKING:
    from rankwise.cli.training import TrainingSet

HINT = "--model auto combines several models: often better, slower, harder to explain"


ChoosingMetric = Annotated[
    str | None,
    option(
        "Metric that chooses the parameters, such as ndcg@10; disagreement if not given.",
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
        help="Find standard errors and probabilities; rankwise predict --intervals shows them.",
        panel="Model",
    ),
]


def train(
    file: DataArgument,
    output: Annotated[
        Path, option("Where to write the model; - is standard output.", "FILE", "--output", "-o")
    ],
    model: ModelOptions,
    table: TrainingTableOptions,
    metric: ChoosingMetric = None,
    calibrate: Calibrate = False,
    weight: WeightColumn = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on scored items, choose its parameters, and write it to a file.

    A table may have gaps, text, dates and identifiers: what becomes of each column is printed.

    For example:

      rankwise train queries.txt -o model.rw

      rankwise train houses.csv --target price --group district -o houses.rw

      rankwise train houses.csv --target price --categorical zip --ignore agent -o houses.rw

      rankwise train queries.txt --model auto -o auto.rw

      rankwise train clicks.csv --target clicked --weight inverse_propensity -o clicks.rw

      rankwise train queries.txt --kernel rbf --set n_basis=300 --metric ndcg@10 -o rbf.rw

      rankwise train queries.txt --calibrate -o sure.rw
    """
    from rankwise.cli.models import calibrated, fit_model, make_model, too_good
    from rankwise.cli.output import check_output, print_json, print_pairs
    from rankwise.cli.session import is_quiet, note
    from rankwise.cli.training import read_training
    from rankwise.estimators.anatomy import last_step

    check_output(output, file)
    estimator = make_model(model, metric)
    data = read_training(file, table, model, estimator, weight)
    start = time.perf_counter()
    fitted = fit_model(calibrated(estimator) if calibrate else estimator, data)
    seconds = time.perf_counter() - start
    ranker = last_step(fitted)
    inner = ranker.estimator_ if calibrate else ranker
    chosen = describe(inner)
    short = {name: v for name, v in chosen.items() if not isinstance(v, (list, dict))}
    if "held_out_score" in chosen:
        note(too_good(chosen["metric"], chosen["held_out_score"], len(data.y)))
    write_model(fitted, output, data.notes(command_line(), short).as_notes())
    summary = {
        "data": data.summary,
        "model": type(inner).__name__.removesuffix("CV"),
        "kernel": getattr(estimator, "kernel", None),
        "chosen": chosen,
        "calibration": describe_calibration(ranker) if calibrate else None,
        "scaler": type(data.scaler).__name__ if data.scaler is not None else None,
        "seconds": round(seconds, 3),
        "output": output,
        "hint": HINT if model.model is ModelName.rankrls else "",
    }
    if as_json:
        print_json(summary)
    elif not is_quiet():
        data.print_columns()
        print_pairs(_lines(summary, data))
        if hasattr(inner, "members_"):
            print_members(inner)


def describe(ranker: Any) -> dict[str, Any]:
    """Parameters that were chosen or given, and how good the chosen ones were."""
    from rankwise.text_tables import plain

    search = getattr(ranker, "cv_results_", None)
    if hasattr(ranker, "members_"):
        return describe_members(ranker)
    if search is None:
        return {name: getattr(ranker, name) for name in ("alpha", "nu") if hasattr(ranker, name)}
    chosen = {name: plain(value) for name, value in ranker.best_params_.items()}
    return {
        **chosen,
        "metric": str(ranker.scoring),
        "held_out_score": float(ranker.best_score_),
        "held_out_by": search.get("cv", "folds"),
        "n_candidates": int(search["mean_score"].size),
    }


def describe_calibration(ranker: Any) -> dict[str, Any]:
    """What standard errors and probabilities rest on."""
    return {
        "units": ranker.units_,
        "n_units": ranker.n_units_,
        "n_pairs": ranker.n_pairs_,
        "log_loss": ranker.log_loss_,
        "trained_again": ranker.members_ is not None,
    }


def write_model(fitted: Any, output: Path, notes: dict[str, Any]) -> None:
    """Write the model to a file, or whole to standard output."""
    import tempfile

    from rankwise.persistence import save

    if str(output) != "-":
        save(fitted, output, notes=notes)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model.rw"
        save(fitted, copy, notes=notes)
        sys.stdout.buffer.write(copy.read_bytes())
        sys.stdout.buffer.flush()


def command_line() -> str:
    """What was typed."""
    return shlex.join(["rankwise", *sys.argv[1:]])


def _lines(summary: dict[str, Any], data: TrainingSet) -> list[tuple[str, str]]:
    chosen = summary["chosen"]
    kernel = f", kernel {summary['kernel']}" if summary["kernel"] else ""
    values = ", ".join(
        f"{name} {chosen[name]:.4g}"
        for name in ("alpha", "nu", "gamma", "n_basis")
        if chosen.get(name) is not None
    )
    how = [("given", values)]
    if "members" in chosen:
        how = member_lines(chosen)
    elif "held_out_score" in chosen:
        score = (
            f"{chosen['metric']} {chosen['held_out_score'] + 0.0:.4f} by {chosen['held_out_by']}"
        )
        how = [
            ("chosen", f"{values}, of {chosen['n_candidates']} candidates"),
            ("held-out score", score),
        ]
    return [
        *data.lines(),
        ("model", f"{summary['model']}{kernel}"),
        *([("scaling", summary["scaler"] or "none")] if kernel else []),
        *how,
        *_calibration_lines(summary["calibration"]),
        ("training time", f"{summary['seconds']:.2f} s"),
        ("written to", str(summary["output"])),
        *([("or else", summary["hint"])] if summary["hint"] else []),
    ]


def _calibration_lines(found: dict[str, Any] | None) -> list[tuple[str, str]]:
    if found is None:
        return []
    what = f"{found['n_units']} {found['units']}"
    if found["trained_again"]:
        what = f"{found['n_units']} folds of {found['units']}, trained again for each"
    pairs = f"{found['n_pairs']:,} held-out pairs, log loss {found['log_loss']:.3f} (a coin 0.693)"
    return [("errors", f"by leaving out {what}"), ("probabilities", f"from {pairs}")]


def describe_members(ranker: Any) -> dict[str, Any]:
    """What there is to note about a combination; JSON has no nan."""
    return {
        "metric": ranker.scoring_,
        "held_out_score": _finite(ranker.score_),
        "combine": ranker.combine_,
        "best_member": ranker.best_member_,
        "estimate": {name: _finite(value) for name, value in ranker.estimate_.items()},
        "members": [{name: _finite(v) for name, v in row.items()} for row in ranker.members_],
        "notes": list(ranker.notes_),
    }


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


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
