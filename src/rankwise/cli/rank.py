"""``rankwise rank``: a leaderboard from comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise.cli.options import (
    OUTPUT,
    AsJson,
    Confidence,
    Output,
    Seed,
    flag,
    option,
    split_names,
)
from rankwise.cli.pairs import PAIRS, PairOptions
from rankwise.cli.session import note
from rankwise.text_tables import listed

if TYPE_CHECKING:
    from rankwise.datasets import PairData
    from rankwise.leaderboard import Backtest, Leaderboard

PairsFile = Annotated[
    Path, typer.Argument(metavar="PAIRS", help="CSV or TSV with one comparison a line.")
]
Alpha = Annotated[
    str | None,
    option(
        "Regularization; next to none if not given, auto leaves out one comparison at a time.",
        "auto|X",
    ),
]
Intervals = Annotated[
    str,
    option(
        "Leave out every comparison or cluster in closed form, or draw them again.",
        "jackknife|bootstrap",
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
    option(
        "Bootstrap resamples; 0 for no intervals. 1000 if not given, 200 above 2,000 items.", "N"
    ),
]
Model = Annotated[
    str | None,
    option(
        "How outcomes are explained: least-squares, bradley-terry, plackett-luce (rankings).",
        "NAME",
    ),
]
TiesOption = Annotated[
    str,
    option("How ties count: half; davidson with bradley-terry.", "NAME", "--ties"),
]
TIME = "Time"
FORMAT_OF = {".md": "markdown", ".json": "json", ".tex": "latex", ".html": "html", ".txt": "text"}


@dataclass
class ReadingOptions:
    """How the board is shown."""

    scale: Annotated[str, option("Unit of the ratings.", "margin|logit|elo", panel=OUTPUT)] = (
        "margin"
    )
    anchor: Annotated[
        str | None, option("The item that has 0, or 1000 Elo points.", "ITEM", panel=OUTPUT)
    ] = None
    order: Annotated[
        str,
        option(
            "Rank by the rating, or by the lower end of its interval.", "rating|lower", panel=OUTPUT
        ),
    ] = "rating"
    min_comparisons: Annotated[
        int, option("Items with fewer stand below the line.", "N", panel=OUTPUT)
    ] = 0
    format: Annotated[
        str | None,
        option(
            "text, markdown, csv, json, latex or html; by default text, or what the name of "
            "the output says.",
            "NAME",
            panel=OUTPUT,
        ),
    ] = None
    page: Annotated[
        Path | None,
        option(
            "Also write a page (HTML, needs no network) with pictures and how to read them.",
            "FILE",
            panel=OUTPUT,
        ),
    ] = None


def _column(help: str, metavar: str = "COLUMN") -> Any:
    return option(help, metavar, panel=PAIRS)


@dataclass
class ComparisonOptions(PairOptions):
    """Which columns say what."""

    weight: Annotated[str | None, _column("How much the comparison counts.")] = None
    group: Annotated[str | None, _column("One board for each value.")] = None
    cluster: Annotated[
        str | None, _column("What is left out or resampled as a whole: users, matches.")
    ] = None
    covariates: Annotated[
        list[str] | None,
        _column("What else may explain who won: numbers of the first side, categories.", "COLUMNS"),
    ] = None
    delimiter: Annotated[str | None, _column("Between the columns of a text.", "CHARACTER")] = None
    features: Annotated[Path | None, _column("Table with features of the items.", "FILE")] = None
    prior: Annotated[
        list[Path] | None,
        _column(
            "Ratings by another judge, as rank -o writes them: what is believed first.", "FILE"
        ),
    ] = None
    item: Annotated[str, _column("Column of the items, of rankings or of these tables.")] = "item"
    ranking: Annotated[
        str | None, _column("What tells rankings of several items apart: a race, a ballot.")
    ] = None
    place: Annotated[
        str, _column("Place of the item in its ranking; nothing or DNF is below all places.")
    ] = "place"
    places: Annotated[
        list[str] | None, _column("For a ranking a line: the best, the second best, …", "COLUMNS")
    ] = None
    unlisted: Annotated[
        str, _column("Items that a ranking does not name took no part, or are last.", "absent|last")
    ] = "absent"
    time: Annotated[
        str | None, _column("When it was: dates or numbers; rows is the order of the lines.")
    ] = None
    context: Annotated[
        list[str] | None,
        _column("In what an item may be better or worse, as a surface.", "COLUMNS"),
    ] = None

    def columns(self) -> dict[str, Any]:
        """The columns as `read_pairs` takes them."""
        own = ("weight", "group", "cluster", "delimiter", "ranking", "item", "place", "unlisted",
               "time")  # fmt: skip
        more = {name: getattr(self, name) for name in own}
        for name in ("covariates", "context"):
            more[name] = split_names(getattr(self, name))
        return {**super().columns(), **more, "places": split_names(self.places) or None}


@dataclass
class TimeOptions:
    """Ratings that change, and games to come."""

    half_life: Annotated[
        float | None,
        option("When half of a change is left; chosen if not given.", "DAYS", panel=TIME),
    ] = None
    until: Annotated[
        str | None, option("Rate what was before this date only.", "DATE", panel=TIME)
    ] = None
    test: Annotated[
        bool, flag("--test", help="Judge the board on what came from --until on.", panel=TIME)
    ] = False


def rank(
    pairs: PairsFile,
    columns: ComparisonOptions,
    reading: ReadingOptions,
    timing: TimeOptions,
    model: Model = None,
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
    from rankwise.cli.output import check_inputs, check_output
    from rankwise.datasets import read_pairs
    from rankwise.leaderboard import rate, rate_groups
    from rankwise.report import board_page

    tables = [columns.features, *(columns.prior or [])]
    check_inputs(pairs, *tables)
    check_output(output, pairs, *tables)
    check_output(reading.page, pairs, *tables, output)
    data = read_pairs(pairs, **columns.columns())
    if data.read_as:
        note(f"{data.read_as}; --sides and --outcome say it otherwise.")
    anchor: Any = reading.anchor
    if anchor and data.items.dtype.kind == "i" and anchor.lstrip("-").isdigit():
        anchor = int(anchor)
    options: dict[str, Any] = {
        "covariates": list(data.covariates) or None,
        "features": _features(columns, data),
        "prior": [_prior(file, columns.item) for file in columns.prior or []] or None,
        "side": side,
        "model": model,
        "ties": ties,
        "scale": reading.scale,
        "anchor": anchor,
        "order": reading.order,
        "min_comparisons": reading.min_comparisons,
        "reweight": reweight,
        "intervals": intervals,
        "n_resamples": resamples,
        "confidence": confidence,
        "random_state": random_state,
    }
    if alpha is not None:
        try:
            options["alpha"] = alpha if alpha == "auto" else float(alpha)
        except ValueError:
            raise ValueError(f"--alpha {alpha}: expected auto or one number.") from None
    if timing.half_life is not None:
        options["half_life"] = timing.half_life
    tested = None
    if timing.until is not None:
        data, tested = _until(data, timing, options)
    elif timing.test:
        raise ValueError("--test judges what came from a date on; pass --time and --until.")
    is_one = data.groups is None
    boards = {None: rate(data, **options)} if is_one else rate_groups(data, **options)
    if output is not None or str(reading.page) != "-":
        _deliver(boards, reading.format, output, as_json)
    if tested is not None:
        from rankwise.cli.output import print_table

        typer.echo(f"\n{tested.table().title}")
        print_table(tested.table())
    if reading.page is not None:
        title = "Leaderboard" if str(pairs) == "-" else f"Leaderboard of {pairs.name}"
        board_page(boards.get(None, boards), title=title).save(reading.page)
        note(f"the page was written to {reading.page}")


def _until(
    data: PairData, timing: TimeOptions, options: dict[str, Any]
) -> tuple[PairData, Backtest | None]:
    """The comparisons before a date, and how a board of them does afterwards if asked."""
    from rankwise.datasets.times import as_times
    from rankwise.leaderboard import backtest

    if data.times is None:
        raise ValueError("--until needs --time, the column of dates or numbers.")
    before = data.times < as_times([timing.until], 1)[0]
    if not before.any():
        raise ValueError(f"--until {timing.until}: no comparison is before it.")
    tested = None
    if timing.test:
        tested = backtest(data, timing.until, **{**options, "n_resamples": 0, "order": "rating"})
    return data.take(before).compact()[0], tested


def _deliver(
    boards: dict[Any, Leaderboard], format: str | None, output: Path | None, as_json: bool
) -> None:
    from rankwise.cli.output import print_json, print_table, write_text
    from rankwise.leaderboard.formats import tables
    from rankwise.text_tables import one_line

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
            if label is not None:
                typer.echo(one_line(label))
            for table in tables(board):
                if table.title:
                    typer.echo(f"\n{one_line(table.title)}")
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


def _prior(file: Path, item: str) -> dict[str, Any]:
    """The ratings of a table: its column rating, or all columns but that of the items."""
    from rankwise.datasets import read_ranking
    from rankwise.frames import frame_columns

    table: Any = read_ranking(file, target=None, group=None, id=item, as_frame=True)
    columns = frame_columns(table.X) or {}
    if "rating" in columns:
        columns = {file.stem: columns["rating"]}
    return {"item": table.ids, **columns}


def _features(options: ComparisonOptions, pairs: PairData) -> Any:
    """Features of the items that were compared, if any, in the order of ``pairs.items``."""
    from rankwise.datasets import read_ranking
    from rankwise.estimators.columns import Columns

    file = options.features
    if file is None:
        return None
    table: Any = read_ranking(file, target=None, group=None, id=options.item, as_frame=True)
    row = {str(label): k for k, label in enumerate(table.ids)}
    if len(row) < len(table.ids):
        raise ValueError(f"{file}: some item is there twice; give each item one row.")
    missing = [str(item) for item in pairs.items if str(item) not in row]
    if missing:
        shown = listed(missing)
        raise ValueError(f"{file} has no features of {len(missing)} compared items: {shown}.")
    X = table.X.take([row[str(item)] for item in pairs.items])
    columns = Columns().fit(X)
    for column in columns.facts_:
        if column.kind == "left out":
            note(f"column {column.name} of {file} is left out: {column.why}")
    return columns.transform(X)
