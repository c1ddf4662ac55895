"""``rankwise info``: what this installation is made of, or what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command
from rankwise.cli.shared_options import json_option
from rankwise.formatting import join_words


@click.command(cls=Command)
@click.argument("model", type=FILE, required=False)
@json_option
def info(model: Path | None, as_json: bool) -> None:
    """Describe this installation, or the model file MODEL."""
    from rankwise.datasets.files import location
    from rankwise.environment import describe_environment
    from rankwise.persistence import read_header

    if model is None:
        found = describe_environment()
    else:
        found = dict(read_header(location(str(model))))
    if as_json:
        terminal.print_json(found)
    else:
        terminal.print_key_values(
            _installation_lines(found) if model is None else _header_lines(found)
        )


def _installation_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    sweep = "active" if found["compiled"] else "missing: NumPy sweeps in use, several times slower"
    return [
        *found["versions"].items(),
        ("compiled sweep", sweep),
        ("BLAS", "; ".join(found["blas"]) or "unknown"),
        ("extras", ", ".join(k for k, v in found["extras"].items() if v) or "none"),
        ("memory", f"{found['available_gib']} GiB available"),
        ("platform", found["platform"]),
    ]


def _header_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    from rankwise.cli.input_files import SHOWN_NAMES
    from rankwise.cli.training_notes import read_notes

    written = ("written by", f"rankwise {found['rankwise']}; file format {found['version']}")
    if found["model"] == "Leaderboard":
        return [("model", "Leaderboard, for rankwise.persistence.load in Python"), written]
    notes = read_notes(found["notes"])
    parameters = found["parameters"]
    chosen = {name: v for name, v in notes.chosen.items() if v is not None}
    versions = "".join(f", {name} {value}" for name, value in found["written_with"].items())
    columns = found["columns"] or {}
    names, features = list(columns), len(columns) or found["n_features"]
    categories = [name for name, kind in columns.items() if kind == "category"]
    return [
        ("model", found["ranker"] + (" after scaling" if found["model"] == "Pipeline" else "")),
        ("kernel", str(parameters.get("kernel", ""))),
        *((name, f"{v:.6g}" if isinstance(v, float) else str(v)) for name, v in chosen.items()),
        ("features", f"{features:,}" + (f": {join_words(names, SHOWN_NAMES)}" if names else "")),
        ("categories", join_words(categories, SHOWN_NAMES)),
        ("data", notes.data),
        ("n_rows", str(notes.n_rows or "")),
        ("target", notes.target),
        ("group", notes.group),
        ("command", notes.command),
        ("written by", f"rankwise {found['rankwise']}{versions}; file format {found['version']}"),
    ]
