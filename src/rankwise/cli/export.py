"""``rankwise export``: a model for other programs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rankwise.cli.options import ModelArgument, Output, flag, option

Target = StrEnum("Target", ["json", "solr", "opensearch", "onnx"])


def export(
    model: ModelArgument,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Where to write; .onnx at its end asks for ONNX."),
    ] = None,
    to: Annotated[
        Target | None,
        option("Who is to read it; onnx takes most models, the others linear ones.", None, "--to"),
    ] = None,
    name: Annotated[
        str, option("Name of the model over there; not for onnx.", "NAME")
    ] = "rankwise",
    float32: Annotated[
        bool, flag("--float32", help="ONNX that takes and gives 32-bit numbers, not 64-bit ones.")
    ] = False,
    output: Output = None,
) -> None:
    """Write a model for other programs: as an ONNX graph or JSON.

    Scaling and columns are part of it. A file that ends in .onnx is a graph with all steps from the
    columns to the score.
    """
    from rankwise.cli.data import open_model
    from rankwise.cli.output import check_output, write_text

    if file is not None and output is not None:
        raise ValueError(f"two files to write, {file} and {output}; name one.")
    output = file or output
    is_onnx = to == Target.onnx or (to is None and str(output).lower().endswith(".onnx"))
    if float32 and not is_onnx:
        raise ValueError("--float32 is for ONNX; name a file that ends in .onnx, or add --to onnx.")
    check_output(output, model)
    ranker = open_model(model)
    names = ranker.features or None
    if is_onnx:
        from rankwise.persistence import export_onnx

        if output is None:
            raise ValueError("a graph is no text; name a file, such as model.onnx, or - .")
        dtype = "float32" if float32 else "float64"
        export_onnx(ranker.model, output, dtype=dtype, feature_names=names)
        return
    from rankwise.persistence import export_linear

    document = export_linear(
        ranker.model, format=str(to or Target.json), feature_names=names, name=name
    )
    write_text(output, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
