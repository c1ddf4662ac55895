"""``rankwise rank``: a leaderboard from comparisons."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option, option_group
from rankwise.cli.shared_options import (
    COMPARISONS,
    OUTPUT,
    PairOptions,
    confidence_option,
    json_option,
    output_option,
    pair_options,
    split_names,
)
from rankwise.formatting import TextTable, csv_text, join_tables, one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.datasets import PairData
    from rankwise.datasets.table_files import TableFile
    from rankwise.leaderboard import Backtest, Leaderboard

MIN_ROWS_PER_PERSON = 1.5  # mean from which votes of one person may depend on each other
FORMAT_OF = {".md": "markdown", ".json": "json", ".tex": "latex", ".html": "html", ".txt": "text"}
TIME = "Time"  # section of the help


@dataclass(frozen=True)
class ComparisonOptions:
    """Columns and files that only boards use."""

    weight: str | None
    board_per: str | None
    cluster: str | None
    covariates: tuple[str, ...]
    delimiter: str | None
    item_features: Path | None
    prior: tuple[Path, ...]
    item: str
    ranking: str | None
    place: str
    places: tuple[str, ...]
    unlisted: str
    time: str | None
    context: tuple[str, ...]

    def columns(self) -> dict[str, Any]:
        """The arguments of `rankwise.datasets.read_pairs`."""
        return {
            "weight": self.weight,
            "group": self.board_per,
            "cluster": self.cluster,
            "covariates": split_names(self.covariates) or None,
            "item": self.item,
            "ranking": self.ranking,
            "place": self.place,
            "places": split_names(self.places) or None,
            "unlisted": self.unlisted,
            "time": self.time,
            "context": split_names(self.context) or None,
        }


comparison_options = option_group(
    ComparisonOptions,
    "comparisons",
    option(
        "--weight",
        metavar="COLUMN",
        section=COMPARISONS,
        help="Weight of the comparison.",
    ),
    option(
        "--board-per",
        metavar="COLUMN",
        section=COMPARISONS,
        help="Make one board for each value of this column.",
    ),
    option(
        "--item-features",
        metavar="FILE",
        type=FILE,
        section=COMPARISONS,
        help="Table with features of the items.",
    ),
    option(
        "--cluster",
        metavar="COLUMN",
        section=COMPARISONS,
        is_advanced=True,
        help="Comparisons that depend on each other, such as those of a user or a match.",
    ),
    option(
        "--covariates",
        metavar="COLUMNS",
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Covariates: numeric (from the first side's view) or categorical.",
    ),
    option(
        "--delimiter",
        metavar="CHARACTER",
        section=COMPARISONS,
        is_advanced=True,
        help="Separates the columns of a text table; by default recognized.",
    ),
    option(
        "--prior",
        metavar="FILE",
        type=FILE,
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Prior ratings, such as those of an LLM judge, as rank -o writes them; repeatable.",
    ),
    option(
        "--item",
        metavar="COLUMN",
        default="item",
        section=COMPARISONS,
        is_advanced=True,
        help="Items of rankings, of --item-features and of --prior.",
    ),
    option(
        "--ranking",
        metavar="COLUMN",
        section=COMPARISONS,
        is_advanced=True,
        help="Name of the ranking: a race, a ballot. One item a row.",
    ),
    option(
        "--place",
        metavar="COLUMN",
        default="place",
        section=COMPARISONS,
        is_advanced=True,
        help="Place of the item in its ranking; an empty cell or DNF is below all places.",
    ),
    option(
        "--places",
        metavar="COLUMNS",
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Best item, second best item, …: one ranking a row.",
    ),
    option(
        "--unlisted",
        metavar="absent|last",
        default="absent",
        section=COMPARISONS,
        is_advanced=True,
        help="Items that a ranking does not list did not take part, or are last.",
    ),
    option(
        "--time",
        metavar="COLUMN",
        section=TIME,
        is_advanced=True,
        help="Dates or numbers; rows is the order of the rows.",
    ),
    option(
        "--context",
        metavar="COLUMNS",
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Conditions under which strength may differ, such as the surface of a court.",
    ),
)


@dataclass(frozen=True)
class RatingOptions:
    """How items are rated: options of `rankwise.leaderboard.rate`."""

    rating_model: str | None
    ties: str
    alpha: str | None
    side: bool
    reweight: bool
    confidence: float
    half_life: float | None
    rating_scale: str
    anchor: str | None
    sort_by: str
    min_comparisons: int


rating_options = option_group(
    RatingOptions,
    "rating",
    option(
        "--rating-model",
        metavar="NAME",
        help="bradley-terry, least-squares or plackett-luce; default: bradley-terry for wins, "
        "ties and losses, least-squares for margins.",
    ),
    option(
        "--ties",
        metavar="NAME",
        default="half",
        is_advanced=True,
        help="Model of ties: half; davidson with bradley-terry.",
    ),
    option(
        "--alpha",
        metavar="auto|X",
        is_advanced=True,
        help="Regularization; default: almost none. auto selects it by leave-one-comparison-out.",
    ),
    option(
        "--side",
        is_flag=True,
        is_advanced=True,
        help="Estimate the advantage of the first side and remove it.",
    ),
    option(
        "--reweight",
        is_flag=True,
        is_advanced=True,
        help="Weight judges by their agreement with the other judges.",
    ),
    confidence_option,
    option(
        "--half-life",
        metavar="DAYS",
        type=float,
        section=TIME,
        is_advanced=True,
        help="Half-life of rating changes; default: chosen on later games.",
    ),
    option(
        "--rating-scale",
        metavar="NAME",
        default="margin",
        section=OUTPUT,
        help="Unit of the ratings: margin (that of the model), logit, or elo.",
    ),
    option(
        "--anchor",
        metavar="ITEM",
        section=OUTPUT,
        is_advanced=True,
        help="Item with rating 0, or 1000 Elo points.",
    ),
    option(
        "--sort-by",
        metavar="rating|lower",
        default="rating",
        section=OUTPUT,
        is_advanced=True,
        help="Rank by the rating, or by the lower end of its interval.",
    ),
    option(
        "--min-comparisons",
        metavar="N",
        type=int,
        default=0,
        section=OUTPUT,
        is_advanced=True,
        help="Items with fewer comparisons are listed without a rank.",
    ),
)


@click.command(
    cls=Command,
    examples=[
        "rankwise rank games.csv --winner winner --loser loser",
        "rankwise rank votes.csv --sides model_a,model_b --outcome winner",
    ],
)
@click.argument("pairs", type=FILE)
@pair_options(is_advanced=False)
@comparison_options
@rating_options
@option(
    "--until",
    metavar="DATE",
    section=TIME,
    is_advanced=True,
    help="Rate only the comparisons before this date.",
)
@option(
    "--backtest",
    is_flag=True,
    section=TIME,
    is_advanced=True,
    help="Evaluate the board on the comparisons from --until on.",
)
@option(
    "--page",
    metavar="FILE",
    type=FILE,
    section=OUTPUT,
    help="Also write a page with pictures and explanations (HTML, no network needed).",
)
@output_option
@json_option
def rank(
    pairs: Path,
    pair_columns: PairOptions,
    comparisons: ComparisonOptions,
    rating: RatingOptions,
    until: str | None,
    backtest: bool,
    page: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Rate items by who beat whom: a leaderboard with intervals.

    PAIRS is a table with one comparison a row, or a PrefLib file of rankings. -o writes CSV, or the
    format of the suffix of the file (.md, .json, .tex, .html, .txt).
    """
    from rankwise.datasets.comparisons import open_comparisons, pairs_from_table
    from rankwise.leaderboard import rate, rate_groups
    from rankwise.report import board_page

    terminal.check_files([pairs, comparisons.item_features, *comparisons.prior], output, page)
    file = open_comparisons(pairs, comparisons.delimiter)
    columns: Any = {**pair_columns.columns(), **comparisons.columns()}
    data = pairs_from_table(file, columns)
    if data.read_as:
        terminal.note(f"{data.read_as}; change it with --sides and --outcome.")
    if data.judges is None and data.clusters is None:
        _note_people(file, columns)
    options = _rate_options(rating, comparisons, data)
    if backtest and until is None:
        raise ValueError("--backtest evaluates the board on later comparisons; pass --until.")
    backtest_table = None
    if until is not None:
        is_before = _is_before(data, until)
        if backtest:
            backtest_table = _backtest(data, until, options).table()
        data = data.take(is_before).compact()[0]
    boards: dict[Any, Leaderboard]
    if data.groups is None:
        boards = {None: rate(data, **options)}
    else:
        boards = rate_groups(data, **options)
    files: list[tuple[Path, str]] = []
    if output is not None:
        format = FORMAT_OF.get(output.suffix.lower(), "csv")
        files.append((output, _boards_text(boards, format)))
    if page is not None:
        title = "Leaderboard" if str(pairs) == "-" else f"Leaderboard of {pairs.name}"
        files.append((page, board_page(boards.get(None, boards), title=title).text))
    terminal.write_texts(files)
    if output is not None or str(page) != "-":
        _print_boards(boards, as_json, is_written=output is not None)
    if backtest_table is not None:
        click.echo(f"\n{backtest_table.title}")
        terminal.print_table(backtest_table)
    if page is not None:
        terminal.note(f"the page was written to {page}")


def _note_people(file: TableFile, columns: dict[str, Any]) -> None:
    """Name columns of people with several rows each, which have no role."""
    from rankwise.datasets.column_values import distinct_cells
    from rankwise.datasets.vocabulary import is_person

    columns_with_role = _names_in(columns)
    for position, name in enumerate(file.names):
        if name in columns_with_role or not is_person(name):
            continue
        codes, people = distinct_cells(file.read([position], [])[position])
        rows_per_person = len(codes) / len(people)
        if len(people) > 1 and rows_per_person >= MIN_ROWS_PER_PERSON:
            terminal.note(
                f"column {name} has {len(people):,} values, {rows_per_person:.3g} rows each; pass "
                f"--judge {name} if votes of one person are not independent."
            )


def _names_in(columns: dict[str, Any]) -> set[str]:
    """Names of the columns with a role."""
    names: set[str] = set()
    for value in columns.values():
        if isinstance(value, str):
            names.add(value)
        elif isinstance(value, list):
            names.update(value)
    return names


def _rate_options(
    rating: RatingOptions, comparisons: ComparisonOptions, data: PairData
) -> dict[str, Any]:
    """The arguments of `rate`."""
    priors = [_read_prior(file, comparisons.item) for file in comparisons.prior]
    return {
        "model": rating.rating_model,
        "ties": rating.ties,
        "alpha": _alpha(rating.alpha),
        "side": rating.side,
        "reweight": rating.reweight,
        "confidence": rating.confidence,
        "half_life": rating.half_life,
        "scale": rating.rating_scale,
        "anchor": _anchor(rating.anchor, data),
        "order": rating.sort_by,
        "min_comparisons": rating.min_comparisons,
        "covariates": list(data.covariates) or None,
        "features": _read_features(comparisons, data),
        "prior": priors or None,
    }


def _alpha(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha {text}: expected auto or one number.") from None


def _anchor(text: str | None, data: PairData) -> str | int | None:
    """The label of the anchor: an integer if the items are integers."""
    if text is not None and data.items.dtype.kind == "i" and text.lstrip("-").isdigit():
        return int(text)
    return text


def _is_before(data: PairData, until: str) -> NDArray[np.bool_]:
    """Mask of the comparisons before a date."""
    from rankwise.datasets.times import as_times

    if data.times is None:
        raise ValueError("--until needs --time, the column of dates or numbers.")
    is_before: NDArray[np.bool_] = data.times < as_times([until], 1)[0]
    if not is_before.any():
        raise ValueError(f"--until {until}: there is no earlier comparison.")
    return is_before


def _backtest(data: PairData, until: str, options: dict[str, Any]) -> Backtest:
    """Evaluate a board of the comparisons before a date on the later ones."""
    from rankwise.leaderboard import backtest

    return backtest(data, until, **{**options, "intervals": False, "order": "rating"})


def _print_boards(boards: dict[Any, Leaderboard], as_json: bool, is_written: bool) -> None:
    """Print the boards as JSON, or as tables unless they are written to a file."""
    if as_json:
        documents = {label: board.to_dict() for label, board in boards.items()}
        terminal.print_json(documents.get(None, documents))
    elif not is_written:
        for table in _titled(boards):
            if table.title:
                click.echo(f"\n{one_line(table.title)}")
            terminal.print_table(table)


def _titled(boards: dict[Any, Leaderboard]) -> list[TextTable]:
    """The tables of all boards, the first of each under the name of its group."""
    from rankwise.leaderboard.render import tables

    titled = []
    for label, board in boards.items():
        first, *others = tables(board)
        titled += [replace(first, title="" if label is None else str(label)), *others]
    return titled


def _boards_text(boards: dict[Any, Leaderboard], format: str) -> str:
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


def _read_prior(file: Path, item: str) -> dict[str, Any]:
    """The ratings of a table: its column rating, or all columns but that of the items."""
    from rankwise.datasets import read_ranking
    from rankwise.frames import frame_columns

    table: Any = read_ranking(file, target=None, group=None, id=item, as_frame=True)
    columns = frame_columns(table.X) or {}
    if "rating" in columns:
        columns = {file.stem: columns["rating"]}
    return {"item": table.ids, **columns}


def _read_features(comparisons: ComparisonOptions, pairs: PairData) -> Any:
    """Features of the compared items in the order of ``pairs.items``, or None."""
    from rankwise.cli.input_files import rows_of_items
    from rankwise.datasets import read_ranking
    from rankwise.preprocessing.table_vectorizer import TableVectorizer

    file = comparisons.item_features
    if file is None:
        return None
    item = comparisons.item
    table: Any = read_ranking(file, target=None, group=None, id=item, as_frame=True)
    X = table.X.take(rows_of_items(pairs.items, table.ids, f"{file}, column {item},"))
    vectorizer = TableVectorizer().decide_columns(X)
    for column in vectorizer.facts_:
        if column.kind == "left out":
            terminal.note(f"column {column.name} of {file} is left out: {column.why}")
    return vectorizer.transform(X)
