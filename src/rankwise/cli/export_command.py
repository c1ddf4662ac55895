"""``rankwise export``: a model for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.shared_options import model_argument, output_option

FORMATS = ("json", "solr", "opensearch", "elasticsearch", "onnx")


@click.command(cls=Command, examples=["rankwise export model.rw model.onnx"])
@model_argument
@click.argument("file", type=FILE, required=False)
@option(
    "--to",
    metavar="json|solr|opensearch|elasticsearch|onnx",
    help="Format; most models support onnx, only linear models the others.",
)
@option(
    "--name",
    metavar="NAME",
    default="rankwise",
    help="Name of the model in the target program; not for onnx.",
)
@output_option
def export(model: Path, file: Path | None, to: str | None, name: str, output: Path | None) -> None:
    """Export a model as an ONNX graph or as JSON for other programs.

    MODEL is a file of rankwise train. FILE, or --output, is the file to write; a name that ends in
    .onnx selects ONNX: a graph with all steps from the columns of the table to the score.
    """
    from rankwise.cli.trained_model import open_model
    from rankwise.persistence import export_linear, export_onnx
    from rankwise.validation import check_option

    if file is not None and output is not None:
        raise ValueError(f"FILE is {file} and --output is {output}; pass one of them.")
    if to is not None:
        check_option("--to", to, FORMATS)
    output = file or output
    is_onnx = to == "onnx" or (to is None and str(output).lower().endswith(".onnx"))
    terminal.check_files([model], output)
    ranker = open_model(model)
    feature_names = ranker.features or None
    if is_onnx:
        if output is None:
            raise ValueError(
                "ONNX files are binary; pass --output, such as model.onnx, or - for standard "
                "output."
            )
        export_onnx(ranker.model, output, feature_names=feature_names)
        return
    document = export_linear(
        ranker.model, format=to or "json", feature_names=feature_names, name=name
    )
    terminal.write_text(output, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
