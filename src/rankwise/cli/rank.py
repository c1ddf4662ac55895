"""``rankwise rank``: a leaderboard from comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise.cli.options import OUTPUT, AsJson, Confidence, Output, Seed, flag
from rankwise.cli.pairs_file import ComparisonOptions

if TYPE_CHECKING:
    from rankwise.leaderboard import Leaderboard

PairsFile = Annotated[
    Path, typer.Argument(metavar="PAIRS", help="CSV or TSV with one comparison a line.")
]
Alpha = Annotated[
    str | None,
    typer.Option(
        metavar="auto|X",
        help="Regularization; next to none if not given, auto leaves out one comparison at a time.",
    ),
]
Intervals = Annotated[
    str,
    typer.Option(
        metavar="jackknife|bootstrap",
        help="Leave out every comparison or cluster in closed form, or draw them again.",
    ),
]
Reweight = Annotated[
    bool, flag("--reweight", help="Judges count as much as they agree with the others.")
]
Side = Annotated[
    bool, flag("--side", help="Estimate the advantage of the first side, and take it out.")
]
Resamples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Bootstrap resamples; 0 for no intervals. 1000 if not given, 200 above 2,000 items.",
    ),
]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="How outcomes are explained: least-squares or bradley-terry."
    ),
]
TiesOption = Annotated[
    str,
    typer.Option(
        "--ties",
        metavar="NAME",
        help="How ties count: half; davidson or rao-kupper with bradley-terry.",
    ),
]
FORMAT_OF = {".md": "markdown", ".json": "json", ".tex": "latex", ".html": "html", ".txt": "text"}


@dataclass
class ReadingOptions:
    """How the board is shown."""

    scale: Annotated[
        str,
        typer.Option(
            metavar="margin|logit|elo", help="Unit of the ratings.", rich_help_panel=OUTPUT
        ),
    ] = "margin"
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="ITEM", help="The item that has 0, or 1000 Elo points.", rich_help_panel=OUTPUT
        ),
    ] = None
    order: Annotated[
        str,
        typer.Option(
            metavar="rating|lower",
            help="Rank by the rating, or by the lower end of its interval.",
            rich_help_panel=OUTPUT,
        ),
    ] = "rating"
    min_comparisons: Annotated[
        int,
        typer.Option(
            metavar="N", help="Items with fewer stand below the line.", rich_help_panel=OUTPUT
        ),
    ] = 0
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="text, markdown, csv, json, latex or html; by default text, or what the name of "
            "the output says.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a page (HTML, needs no network) with pictures and how to read them.",
            rich_help_panel=OUTPUT,
        ),
    ] = None


def rank(
    pairs: PairsFile,
    columns: ComparisonOptions,
    reading: ReadingOptions,
    model: Model = "least-squares",
    ties: TiesOption = "half",
    alpha: Alpha = None,
    side: Side = False,
    reweight: Reweight = False,
    intervals: Intervals = "jackknife",
    resamples: Resamples = None,
    confidence: Confidence = 0.95,
    random_state: Seed = 0,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Rate items by who beat whom: a leaderboard with intervals.

    With a column of groups there is one board for each group. -o writes CSV, or the format that
    the name of the file says (.md, .json, .tex, .html, .txt).
    """
    from rankwise.cli.number_options import number_in
    from rankwise.cli.output import check_inputs, check_output
    from rankwise.cli.pairs_file import read_comparisons
    from rankwise.leaderboard import rate, rate_groups

    check_inputs(pairs, columns.features)
    check_output(output, pairs, columns.features)
    check_output(reading.page, pairs, columns.features, output)
    found = read_comparisons(pairs, columns)
    options: dict[str, Any] = {
        "covariates": list(found.pairs.covariates) or None,
        "features": found.features,
        "side": side,
        "model": model,
        "ties": ties,
        "scale": reading.scale,
        "anchor": _item(reading.anchor, found.pairs.items),
        "order": reading.order,
        "min_comparisons": reading.min_comparisons,
        "reweight": reweight,
        "intervals": intervals,
        "n_resamples": resamples,
        "confidence": confidence,
        "random_state": random_state,
    }
    if alpha is not None:
        options["alpha"] = alpha if alpha == "auto" else number_in("--alpha", alpha)
    is_one = found.pairs.groups is None
    boards = {None: rate(found.pairs, **options)} if is_one else rate_groups(found.pairs, **options)
    if output is not None or str(reading.page) != "-":
        _deliver(boards, reading.format, output, as_json)
    if reading.page is not None:
        _write_page(reading.page, boards, pairs)


def _write_page(page: Path, boards: dict[Any, Leaderboard], pairs: Path) -> None:
    from rankwise.cli.session import note
    from rankwise.report import write_board

    title = "Leaderboard" if str(pairs) == "-" else f"Leaderboard of {pairs.name}"
    write_board(page, boards.get(None, boards), title=title)
    note(f"the page was written to {page}")


def _item(anchor: str | None, items: Any) -> Any:
    """The anchor with the type that the labels have."""
    is_number = anchor is not None and items.dtype.kind == "i" and anchor.lstrip("-").isdigit()
    return int(anchor) if is_number and anchor is not None else anchor


def _deliver(
    boards: dict[Any, Leaderboard], format: str | None, output: Path | None, as_json: bool
) -> None:
    from rankwise.cli.output import print_json, write_text

    if output is not None:
        name = format or FORMAT_OF.get(output.suffix.lower(), "csv")
        write_text(output, _joined(boards, name))
    if as_json:
        documents = {label: board.to_dict() for label, board in boards.items()}
        print_json(documents.get(None, documents))
    elif output is None and format not in (None, "text"):
        write_text(None, _joined(boards, format or "text"))
    elif output is None:
        for label, board in boards.items():
            _print(label, board)


def _print(label: Any, board: Leaderboard) -> None:
    from rankwise.cli.output import print_table
    from rankwise.leaderboard.formats import tables

    if label is not None:
        typer.echo(str(label))
    for table in tables(board):
        if table.title:
            typer.echo(f"\n{table.title}")
        print_table(table)
    typer.echo("")


def _joined(boards: dict[Any, Leaderboard], format: str) -> str:
    """All boards in one text; in CSV with a column of the groups."""
    import json

    from rankwise.text_tables import csv_text

    if None in boards:
        return boards[None].to_text(format)
    if format == "json":
        documents = {str(label): board.to_dict() for label, board in boards.items()}
        return json.dumps(documents, indent=2, ensure_ascii=False) + "\n"
    if format != "csv":
        title = {"markdown": "## {}\n\n", "latex": "% {}\n", "html": "<h2>{}</h2>"}
        texts = [
            title.get(format, "{}\n").format(label) + board.to_text(format)
            for label, board in boards.items()
        ]
        return "\n".join(texts)
    columns = next(iter(boards.values())).columns
    rows = [[label, *row] for label, board in boards.items() for row in board.rows]
    return csv_text(["group", *columns], rows)
