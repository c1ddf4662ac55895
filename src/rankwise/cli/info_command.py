"""``rankwise info``: describe the installation or a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command
from rankwise.cli.shared_options import json_option
from rankwise.formatting import JsonObject, join_words

Facts: TypeAlias = dict[str, Any]  # a document whose shape `read_header` has checked


@click.command(cls=Command)
@click.argument("model", type=FILE, required=False)
@json_option
def info(model: Path | None, as_json: bool) -> None:
    """Describe this installation, or the model file MODEL."""
    from rankwise.datasets.files import path_on_disk
    from rankwise.environment import describe_environment
    from rankwise.persistence import read_header

    if model is None:
        facts = describe_environment()
        lines = _installation_lines(facts)
    else:
        facts = dict(read_header(path_on_disk(str(model))))
        lines = _header_lines(facts)
    if as_json:
        terminal.print_json(facts)
    else:
        terminal.print_key_values(lines)


def _installation_lines(facts: Facts) -> list[tuple[str, str]]:
    """Versions, extras and memory as names and values."""
    compiled = "active"
    if not facts["compiled"]:
        compiled = "missing: NumPy sweeps in use, several times slower"
    extras = [name for name, is_installed in facts["extras"].items() if is_installed]
    return [
        *facts["versions"].items(),
        ("compiled sweep", compiled),
        ("BLAS", "; ".join(facts["blas"]) or "unknown"),
        ("extras", ", ".join(extras) or "none"),
        ("memory", f"{facts['available_gib']} GiB available"),
        ("platform", facts["platform"]),
    ]


def _header_lines(facts: Facts) -> list[tuple[str, str]]:
    """The header of a model file as names and values."""
    from rankwise.cli.input_files import SHOWN_NAMES
    from rankwise.cli.training_notes import read_notes

    file_format = f"file format {facts['version']}"
    if facts["model"] in ("Leaderboard", "TaskLeaderboard"):
        return [
            ("model", f"{facts['model']}, for rankwise.persistence.load in Python"),
            ("written by", f"rankwise {facts['rankwise']}; {file_format}"),
        ]
    notes = read_notes(facts["notes"])
    model = facts["ranker"]
    if facts["model"] == "Pipeline":
        model += " after scaling"
    kind_of_column = facts["columns"] or {}
    categories = [name for name, kind in kind_of_column.items() if kind == "category"]
    if kind_of_column:
        names = join_words(list(kind_of_column), SHOWN_NAMES)
        features = f"{len(kind_of_column):,}: {names}"
    else:
        features = f"{facts['n_features']:,}"
    packages = [f"rankwise {facts['rankwise']}"]
    packages += [f"{name} {version}" for name, version in facts["written_with"].items()]
    return [
        ("model", model),
        ("kernel", str(facts["parameters"].get("kernel", ""))),
        *_parameter_lines(notes.chosen),
        ("features", features),
        ("categories", join_words(categories, SHOWN_NAMES)),
        ("data", notes.data),
        ("items", str(notes.n_rows or "")),
        ("target", notes.target),
        ("group", notes.group),
        ("command", notes.command),
        ("written by", f"{', '.join(packages)}; {file_format}"),
    ]


def _parameter_lines(chosen: JsonObject) -> list[tuple[str, str]]:
    """Parameters and their values."""
    lines = []
    for name, value in chosen.items():
        label = name.replace("_", " ")
        if isinstance(value, float):
            lines.append((label, f"{value:.6g}"))
        elif value is not None:
            lines.append((label, str(value)))
    return lines
