"""``rankwise export``: a linear model for other programs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from rankwise.cli.options import ModelArgument, Output

__all__ = ["export"]

Target = StrEnum("Target", ["json", "solr", "opensearch"])


def export(
    model: ModelArgument,
    to: Annotated[Target, typer.Option("--to", help="Who is to read it.")] = Target.json,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the model over there.")
    ] = "rankwise",
    output: Output = None,
) -> None:
    """Write a linear model, with its scaling folded in, as JSON for other programs."""
    from rankwise.cli.model_file import open_model
    from rankwise.cli.output import check_output, write_text
    from rankwise.persistence import export_linear

    check_output(output, model)
    ranker = open_model(model)
    names = ranker.notes.features or None
    document = export_linear(ranker.model, format=str(to), feature_names=names, name=name)
    write_text(output, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
