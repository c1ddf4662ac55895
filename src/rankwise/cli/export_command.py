"""``rankwise export``: a model for other programs."""

from __future__ import annotations

import json
from pathlib import Path

from rankwise.cli import terminal


def export(
    model: Path,
    file: Path | None = None,
    /,
    to: str | None = None,
    name: str = "rankwise",
    output: Path | None = None,
) -> None:
    """Write a model for other programs: as an ONNX graph or JSON.

    Scaling and columns are part of it. A file that ends in .onnx is a graph with all steps from the
    columns to the score.

    \b
    rankwise export model.rw model.onnx

    Parameters
    ----------
    file : FILE
        Where to write; .onnx at its end asks for ONNX.
    to : json|solr|opensearch|onnx
        Who is to read it; onnx takes most models, the others linear ones.
    name : NAME
        Name of the model over there; not for onnx.
    """  # noqa: D301
    from rankwise.cli.input_files import open_model
    from rankwise.persistence import export_linear, export_onnx

    if file is not None and output is not None:
        raise ValueError(f"two files to write, {file} and {output}; name one.")
    output = file or output
    is_onnx = to == "onnx" or (to is None and str(output).lower().endswith(".onnx"))
    terminal.check_files([model], output)
    ranker = open_model(model)
    names = ranker.features or None
    if is_onnx:
        if output is None:
            raise ValueError("a graph is no text; name a file, such as model.onnx, or - .")
        export_onnx(ranker.model, output, feature_names=names)
        return
    document = export_linear(ranker.model, format=to or "json", feature_names=names, name=name)
    terminal.write_text(output, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
