"""``rankwise rank``: a leaderboard from comparisons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankwise.cli import terminal
from rankwise.cli.shared_options import PairOptions
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.formatting import TextTable, csv_text, join_tables, one_line

if TYPE_CHECKING:
    from rankwise.datasets import PairData
    from rankwise.leaderboard import Backtest, Leaderboard

LEAST_VOTES = 1.5  # rows of a person, on average, from which votes may depend on each other
FORMAT_OF = {".md": "markdown", ".json": "json", ".tex": "latex", ".html": "html", ".txt": "text"}


@dataclass
class ReadingOptions:
    """How the board is shown.

    Output
    ------
    scale : margin|logit|elo
        Unit of the ratings: that of the model, log odds, or Elo points (not for least-squares).
    anchor : ITEM
        The item that has 0, or 1000 Elo points.
    order : rating|lower
        Rank by the rating, or by the lower end of its interval.
    min_comparisons : N
        Items with fewer stand below the line.
    page : FILE
        Also write a page (HTML, needs no network) with pictures and how to read them.
    """

    scale: str = "margin"
    anchor: str | None = None
    order: str = "rating"
    min_comparisons: int = 0
    page: Path | None = None


@dataclass
class ComparisonOptions(PairOptions):
    """Which columns say what.

    Comparisons
    -----------
    weight : COLUMN
        How much the comparison counts.
    group : COLUMN
        One board for each value.
    cluster : COLUMN
        What is left out as a whole: users, matches.
    covariates : COLUMNS
        What else may explain who won: numbers of the first side, categories.
    delimiter : CHARACTER
        Between the columns of a text.
    features : FILE
        Table with features of the items.
    prior : FILE
        Ratings by another judge, as rank -o writes them: what is believed first.
    item : COLUMN
        Column of the items, of rankings or of these tables.
    ranking : COLUMN
        What tells rankings of several items apart: a race, a ballot.
    place : COLUMN
        Place of the item in its ranking; nothing or DNF is below all places.
    places : COLUMNS
        For a ranking a line: the best, the second best, …
    unlisted : absent|last
        Items that a ranking does not name took no part, or are last.
    time : COLUMN
        When it was: dates or numbers; rows is the order of the lines.
    context : COLUMNS
        In what an item may be better or worse, as a surface.
    """

    weight: str | None = None
    group: str | None = None
    cluster: str | None = None
    covariates: list[str] | None = None
    delimiter: str | None = None
    features: Path | None = None
    prior: list[Path] | None = None
    item: str = "item"
    ranking: str | None = None
    place: str = "place"
    places: list[str] | None = None
    unlisted: str = "absent"
    time: str | None = None
    context: list[str] | None = None


@dataclass
class RatingOptions:
    """How items are rated: options of `rankwise.leaderboard.rate`.

    Parameters
    ----------
    model : NAME
        Model of the outcomes: bradley-terry, least-squares or plackett-luce; by default
        bradley-terry for wins, ties and losses, least-squares for margins.
    ties : NAME
        How ties count: half; davidson with bradley-terry.
    alpha : auto|X
        Regularization; next to none if not given, auto leaves out one comparison at a time.
    side : flag
        Estimate the advantage of the first side, and take it out.
    reweight : flag
        Judges count as much as they agree with the others.
    confidence : X
        Level of the intervals.

    Time
    ----
    half_life : DAYS
        When half of a change is left; chosen if not given.
    """

    model: str | None = None
    ties: str = "half"
    alpha: str | None = None
    side: bool = False
    reweight: bool = False
    confidence: float = DEFAULT_CONFIDENCE
    half_life: float | None = None


def rank(
    pairs: Path,
    /,
    columns: ComparisonOptions,
    reading: ReadingOptions,
    rating: RatingOptions,
    until: str | None = None,
    test: bool = False,
    output: Path | None = None,
    as_json: bool = False,
) -> None:
    """Rate items by who beat whom: a leaderboard with intervals.

    With a column of groups there is one board for each group. -o writes CSV, or the format that
    the name of the file says (.md, .json, .tex, .html, .txt).

    \b
    rankwise rank games.csv --winner winner --loser loser
    rankwise rank battles.csv --sides model_a,model_b --outcome winner --scale elo

    Parameters
    ----------
    pairs : PAIRS
        CSV or TSV with one comparison a line.

    Time
    ----
    until : DATE
        Rate what was before this date only.
    test : flag
        Judge the board on what came from --until on.
    """  # noqa: D301
    from rankwise.datasets import read_pairs
    from rankwise.leaderboard import rate, rate_groups
    from rankwise.report import board_page

    terminal.check_files([pairs, columns.features, *(columns.prior or [])], output, reading.page)
    data = read_pairs(pairs, delimiter=columns.delimiter, **columns.columns())
    if data.read_as:
        terminal.note(f"{data.read_as}; --sides and --outcome say it otherwise.")
    _note_people(pairs, columns, data)
    options = {
        **_options(rating, reading, data),
        "covariates": list(data.covariates) or None,
        "features": _features(columns, data),
        "prior": [_prior(file, columns.item) for file in columns.prior or []] or None,
    }
    tested = None
    if until is not None:
        data, tested = _until(data, until, test, options)
    elif test:
        raise ValueError("--test judges what came from a date on; pass --time and --until.")
    is_one = data.groups is None
    boards = {None: rate(data, **options)} if is_one else rate_groups(data, **options)
    files: list[tuple[Path, str]] = []
    if output is not None:
        format = FORMAT_OF.get(output.suffix.lower(), "csv")
        files.append((output, _joined(boards, format)))
    if reading.page is not None:
        title = "Leaderboard" if str(pairs) == "-" else f"Leaderboard of {pairs.name}"
        page = board_page(boards.get(None, boards), title=title)
        files.append((reading.page, page.text))
    terminal.write_texts(files)
    if output is not None or str(reading.page) != "-":
        _print_boards(boards, as_json, is_written=output is not None)
    if tested is not None:
        typer.echo(f"\n{tested.table().title}")
        terminal.print_table(tested.table())
    if reading.page is not None:
        terminal.note(f"the page was written to {reading.page}")


def _note_people(pairs: Path, columns: ComparisonOptions, data: PairData) -> None:
    """Name a column of people who voted several times, unless judges or clusters are named."""
    if data.judges is not None or data.clusters is not None or str(pairs) == "-":
        return
    from rankwise.datasets.column_values import distinct_cells
    from rankwise.datasets.table_files import open_table
    from rankwise.datasets.vocabulary import is_person

    table = open_table(str(pairs), columns.delimiter)
    used = set(_used_columns(columns))
    people = [name for name in table.names if is_person(name) and name not in used]
    for name in people:
        at = table.names.index(name)
        codes, texts = distinct_cells(table.read([at], [])[at])
        n_rows = len(codes) / len(texts)
        if len(texts) > 1 and n_rows >= LEAST_VOTES:
            terminal.note(
                f"column {name} has {len(texts):,} values, {n_rows:.3g} rows each; pass --judge "
                f"{name} if votes of one person are not independent."
            )


def _used_columns(columns: ComparisonOptions) -> Iterator[str]:
    """Names of the columns that the options give a role."""
    for names in columns.columns().values():
        if isinstance(names, str):
            yield names
        elif isinstance(names, list | tuple):
            yield from (name for name in names if isinstance(name, str))


def _options(rating: RatingOptions, reading: ReadingOptions, data: PairData) -> dict[str, Any]:
    """The options as `rate` takes them."""
    options: dict[str, Any] = dict(vars(rating))
    options |= {name: getattr(reading, name) for name in ("scale", "order", "min_comparisons")}
    if rating.alpha not in (None, "auto"):
        try:
            options["alpha"] = float(rating.alpha or "")
        except ValueError:
            raise ValueError(f"--alpha {rating.alpha}: expected auto or one number.") from None
    anchor: Any = reading.anchor
    if anchor and data.items.dtype.kind == "i" and anchor.lstrip("-").isdigit():
        anchor = int(anchor)
    return {**options, "anchor": anchor}


def _until(
    data: PairData, until: str, test: bool, options: dict[str, Any]
) -> tuple[PairData, Backtest | None]:
    """The comparisons before a date, and how a board of them does afterwards if asked."""
    from rankwise.datasets.times import as_times
    from rankwise.leaderboard import backtest

    if data.times is None:
        raise ValueError("--until needs --time, the column of dates or numbers.")
    before = data.times < as_times([until], 1)[0]
    if not before.any():
        raise ValueError(f"--until {until}: no comparison is before it.")
    tested = None
    if test:
        tested = backtest(data, until, **{**options, "intervals": False, "order": "rating"})
    return data.take(before).compact()[0], tested


def _print_boards(boards: dict[Any, Leaderboard], as_json: bool, is_written: bool) -> None:
    """Print the boards as JSON, or as tables unless they are written to a file."""
    if as_json:
        documents = {label: board.to_dict() for label, board in boards.items()}
        terminal.print_json(documents.get(None, documents))
    elif not is_written:
        for table in _titled(boards):
            if table.title:
                typer.echo(f"\n{one_line(table.title)}")
            terminal.print_table(table)


def _titled(boards: dict[Any, Leaderboard]) -> list[TextTable]:
    """The tables of all boards, the first of each under the name of its group."""
    from rankwise.leaderboard.render import tables

    titled = []
    for label, board in boards.items():
        first, *others = tables(board)
        titled += [replace(first, title="" if label is None else str(label)), *others]
    return titled


def _joined(boards: dict[Any, Leaderboard], format: str) -> str:
    """All boards in one text; in CSV with a column of the groups."""
    if None in boards:
        return boards[None].to_text(format)
    if format == "json":
        documents = {str(label): board.to_dict() for label, board in boards.items()}
        return json.dumps(documents, indent=2, ensure_ascii=False) + "\n"
    if format != "csv":
        return join_tables(_titled(boards), format)
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
    from rankwise.cli.input_files import rows_of_items
    from rankwise.datasets import read_ranking
    from rankwise.preprocessing.table_vectorizer import TableVectorizer

    file = options.features
    if file is None:
        return None
    table: Any = read_ranking(file, target=None, group=None, id=options.item, as_frame=True)
    X = table.X.take(rows_of_items(pairs.items, table.ids, f"{file}, column {options.item},"))
    columns = TableVectorizer().decide_columns(X)
    for column in columns.facts_:
        if column.kind == "left out":
            terminal.note(f"column {column.name} of {file} is left out: {column.why}")
    return columns.transform(X)
