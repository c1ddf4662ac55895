"""``rankwise train --engine``: RankRLS on Parquet files that do not fit in memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rankwise.cli import terminal
from rankwise.cli.shared_options import FeatureOptions, ModelOptions, TableOptions, split_names
from rankwise.formatting import to_json_values

if TYPE_CHECKING:
    from rankwise.rankers.group_sample import AlphaSelection

OPTIONS_WITH_EFFECT = {
    "data",
    "output",
    "engine",
    "target",
    "group",
    "features",
    "alpha",
    "metric",
    "as_json",
    "quiet",
    "debug",
}


def train_with_engine(
    engine: str,
    pattern: Path,
    output: Path,
    model: ModelOptions,
    table: TableOptions,
    features: FeatureOptions,
    metric: str | None,
    as_json: bool,
) -> None:
    """Train on all files of a pattern, write the model, and print a summary."""
    from rankwise.cli.model_options import numbers_in
    from rankwise.distributed.parquet_training import train_parquet
    from rankwise.persistence import save

    refuse_options_without_effect()
    if table.target is None or len(table.group) != 1:
        raise ValueError("--engine needs --target and one --group, the names of two columns.")
    alphas = None
    if model.alpha != "auto":
        alphas = numbers_in("--alpha", model.alpha)
    start = time.perf_counter()
    selection = train_parquet(
        str(pattern),
        target=table.target,
        group=table.group[0],
        features=split_names(features.features) or None,
        engine=engine,
        alphas=alphas,
        scoring=metric or "disagreement",
    )
    seconds = time.perf_counter() - start
    save(selection.model, output)
    summary = describe_selection(selection, engine, seconds, output)
    if as_json:
        terminal.print_json(summary)
    elif not terminal.current.quiet:
        terminal.print_key_values(summary_lines(summary))


def refuse_options_without_effect() -> None:
    """Raise a ValueError for options that out-of-core training does not use."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        was_passed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if was_passed and name not in OPTIONS_WITH_EFFECT:
            raise ValueError(
                f"{parameter.opts[-1]} has no effect with --engine, which trains a linear RankRLS "
                "on numeric columns; leave out one of the two options."
            )


def describe_selection(
    selection: AlphaSelection, engine: str, seconds: float, output: Path
) -> dict[str, Any]:
    """Facts about the training, for JSON."""
    return {
        "engine": engine,
        "model": "RankRLS",
        "n_pairs": selection.model.n_pairs_,
        "n_features": selection.model.n_features_in_,
        "alpha": selection.alpha,
        "n_candidates": len(selection.alphas),
        "metric": selection.metric.name,
        "held_out_score": to_json_values(selection.best_score),
        "n_held_out_groups": len(selection.groups),
        "seconds": round(seconds, 3),
        "output": output,
    }


def summary_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as names and values."""
    score = f"{summary['metric']} {summary['held_out_score']:.4f}"
    return [
        ("data", f"{summary['n_pairs']:,} pairs, {summary['n_features']} columns"),
        ("model", f"{summary['model']}, read by {summary['engine']}"),
        ("chosen", f"alpha {summary['alpha']:.4g}, of {summary['n_candidates']} candidates"),
        ("held-out score", f"{score} on {summary['n_held_out_groups']:,} groups, one at a time"),
        ("training time", f"{summary['seconds']:.2f} s"),
        ("written to", str(summary["output"])),
    ]
