"""``rankwise rank``: a leaderboard from comparisons."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option, refuse_options
from rankwise.cli.pair_options import PairOptions, pair_options
from rankwise.cli.rank_options import (
    TIME,
    ComparisonOptions,
    RatingOptions,
    comparison_options,
    rating_options,
)
from rankwise.cli.rank_output import (
    RankOutput,
    board_title,
    format_of,
    print_board_table,
    write_score_board,
)
from rankwise.cli.rank_scores import (
    OPTIONS_OF_COMPARISONS,
    OPTIONS_OF_TASKS,
    find_scores,
    rate_file,
)
from rankwise.cli.shared_options import OUTPUT, json_option, output_option
from rankwise.cli.task_options import TaskOptions, task_options
from rankwise.formatting import TextTable, csv_text, join_tables, one_line

if TYPE_CHECKING:
    from rankwise.arrays import Mask, Matrix
    from rankwise.datasets import PairData
    from rankwise.datasets.pair_data import PairColumns
    from rankwise.datasets.table_files import TableFile
    from rankwise.leaderboard import Leaderboard

MIN_ROWS_PER_PERSON = 1.5  # mean from which votes of one person may depend on each other

Boards: TypeAlias = "Mapping[Hashable, Leaderboard]"  # by group; None if there are no groups
Prior: TypeAlias = dict[str, object]  # columns of ratings by name, and of the items


class RateOptions(TypedDict):
    """Arguments of `rankwise.leaderboard.rate`."""

    model: str | None
    ties: str
    alpha: float | str | None
    side: bool
    reweight: bool
    confidence: float
    half_life: float | None
    scale: str
    anchor: str | int | None
    order: str
    min_comparisons: int
    covariates: list[str] | None
    features: Matrix | None
    prior: list[Prior] | None


@click.command(
    cls=Command,
    examples=[
        "rankwise rank games.csv --winner winner --loser loser",
        "rankwise rank votes.csv --sides model_a,model_b --outcome winner",
        "rankwise rank scores.csv --item model --task task --score score",
    ],
)
@click.argument("pairs", type=FILE)
@pair_options(is_advanced=False)
@comparison_options
@rating_options
@task_options
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
    help="Also write an HTML page with charts.",
)
@output_option
@json_option
def rank(
    pairs: Path,
    pair_columns: PairOptions,
    comparisons: ComparisonOptions,
    rating: RatingOptions,
    tasks: TaskOptions,
    until: str | None,
    backtest: bool,
    page: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Rate items by comparisons, or by scores over tasks, with intervals.

    PAIRS is a table of comparisons or of scores, or a PrefLib file of rankings. -o writes CSV, or
    the format of the suffix (.md, .json, .tex, .html, .txt).
    """
    from rankwise.datasets.comparisons import open_comparisons, pairs_from_table

    terminal.check_files([pairs, comparisons.item_features, *comparisons.prior], output, page)
    if output is not None:
        format_of(output)  # refuses unknown suffixes
    file = open_comparisons(pairs, comparisons.delimiter, header=not comparisons.no_header)
    scores = find_scores(file, pair_columns, comparisons, tasks)
    if scores is not None:
        refuse_options(
            OPTIONS_OF_COMPARISONS,
            f"is for comparisons, and {pairs} is read as scores over tasks.",
        )
        board = rate_file(scores, tasks, comparisons.weight, rating.confidence)
        write_score_board(board, RankOutput(pairs, page, output, as_json))
        return
    refuse_options(
        OPTIONS_OF_TASKS,
        f"is for scores over tasks, and {pairs} is read as comparisons; pass --item, --task and "
        "--score if it has scores.",
    )
    columns: PairColumns = {**pair_columns.columns(), **comparisons.columns()}
    data = pairs_from_table(file, columns)
    if data.read_as:
        terminal.note(f"{data.read_as}; change it with --sides and --outcome.")
    if data.judges is None and data.clusters is None:
        _note_people(file, columns)
    options = _rate_options(rating, comparisons, data)
    boards, backtest_table = _make_boards(data, options, until, evaluate=backtest)
    _write_boards(boards, pairs, output, page)
    page_is_only_output = output is None and str(page) == "-"
    if not page_is_only_output:
        _print_boards(boards, as_json, is_written=output is not None)
    if backtest_table is not None:
        click.echo(f"\n{backtest_table.title}")
        terminal.print_table(backtest_table)
    if page is not None:
        terminal.note(f"the page was written to {page}")


def _write_boards(boards: Boards, pairs: Path, output: Path | None, page: Path | None) -> None:
    """Write the boards to a file, and the page, or neither."""
    from rankwise.report import board_page

    files: list[tuple[Path, str]] = []
    if output is not None:
        files.append((output, _boards_text(boards, format_of(output))))
    if page is not None:
        one_board_or_all = boards.get(None, boards)  # the only board has the label None
        files.append((page, board_page(one_board_or_all, title=board_title(pairs)).text))
    terminal.write_texts(files)


def _note_people(file: TableFile, columns: PairColumns) -> None:
    """Name columns of people with several rows each, which have no role."""
    from rankwise.datasets.column_values import distinct_cells
    from rankwise.datasets.comparison_words import is_person

    columns_with_role = _names_in(columns)
    for position, name in enumerate(file.names):
        if name.lower() in columns_with_role or not is_person(name):
            continue
        column = file.read([position], [])[position]  # as text
        codes, people = distinct_cells(column)
        rows_per_person = len(codes) / len(people)
        if len(people) > 1 and rows_per_person >= MIN_ROWS_PER_PERSON:
            terminal.note(
                f"column {name} has {len(people):,} values, {rows_per_person:.3g} rows each; pass "
                f"--judge {name} if votes of one person are not independent."
            )


def _names_in(columns: PairColumns) -> set[str]:
    """Names of the columns with a role, in lower case."""
    names: set[str] = set()
    for column_or_columns in columns.values():
        if isinstance(column_or_columns, str):
            names.add(column_or_columns.lower())
        elif isinstance(column_or_columns, list):
            names.update(name.lower() for name in column_or_columns)
    return names


def _rate_options(
    rating: RatingOptions, comparisons: ComparisonOptions, data: PairData
) -> RateOptions:
    """The arguments of `rate`."""
    priors = [_read_prior(file, comparisons.item_column) for file in comparisons.prior]
    return {
        "model": rating.rating_model,
        "ties": rating.ties,
        "alpha": _parse_alpha(rating.alpha),
        "side": rating.side,
        "reweight": rating.reweight,
        "confidence": rating.confidence,
        "half_life": rating.half_life,
        "scale": rating.rating_scale,
        "anchor": _label_of_anchor(rating.anchor, data),
        "order": rating.sort_by,
        "min_comparisons": rating.min_comparisons,
        "covariates": list(data.covariates) or None,
        "features": _read_features(comparisons, data),
        "prior": priors or None,
    }


def _parse_alpha(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha {text}: expected auto or one number.") from None


def _label_of_anchor(text: str | None, data: PairData) -> str | int | None:
    """The label of the anchor: an integer if the items are integers."""
    items_are_integers = data.items.dtype.kind == "i"
    if text is not None and items_are_integers and text.lstrip("-").isdigit():
        return int(text)
    return text


def _is_before(data: PairData, until: str) -> Mask:
    """Mask of the comparisons before a date."""
    from rankwise.datasets.times import as_times

    if data.times is None:
        raise ValueError("--until needs --time, the column of dates or numbers.")
    try:
        (end,) = as_times([until], 1)
    except ValueError:
        raise ValueError(
            f"--until {until}: expected a date such as 2019-01-31, or a number, as in the column "
            "of --time."
        ) from None
    is_before: Mask = data.times < end
    if not is_before.any():
        raise ValueError(f"--until {until}: no comparison is earlier; pass a later date or number.")
    return is_before


def _make_boards(
    data: PairData, options: RateOptions, until: str | None, *, evaluate: bool
) -> tuple[Boards, TextTable | None]:
    """Rate all comparisons, or those before a date, and evaluate the board on the later ones.

    Returns
    -------
    boards : dict from label to Leaderboard
        One board for each group; the label is None without groups.
    backtest_table : TextTable or None
        The evaluation.
    """
    from rankwise.leaderboard import backtest

    if until is None:
        if evaluate:
            raise ValueError(
                "--backtest evaluates the board on the comparisons from --until on; pass --until."
            )
        return _rate(data, options), None
    is_before = _is_before(data, until)
    backtest_table = None
    if evaluate:
        result = backtest(data, until, **options)
        backtest_table = result.table()
        if data.groups is None:
            return {None: result.board}, backtest_table
    data_before, _ = data.take(is_before).compact()  # without items that meet only later
    return _rate(data_before, options), backtest_table


def _rate(data: PairData, options: RateOptions) -> Boards:
    """Rate the comparisons of each group; the label is None without groups."""
    from rankwise.leaderboard import rate, rate_groups

    if data.groups is None:
        return {None: rate(data, **options)}
    return rate_groups(data, **options)


def _print_boards(boards: Boards, as_json: bool, is_written: bool) -> None:
    """Print the boards as JSON, or as tables unless they are written to a file."""
    if as_json:
        documents = {label: board.to_dict() for label, board in boards.items()}
        one_board_or_all = documents.get(None, documents)  # the only board has the label None
        terminal.print_json(one_board_or_all)
    elif not is_written:
        for table in _tables_of_boards(boards):
            if table.title:
                click.echo(f"\n{one_line(table.title)}")
            print_board_table(table)


def _tables_of_boards(boards: Boards) -> list[TextTable]:
    """The tables of all boards, the first of each under the name of its group."""
    from rankwise.leaderboard.render import tables

    tables_with_titles = []
    for group, board in boards.items():
        first_table, *further_tables = tables(board)
        title = "" if group is None else str(group)
        tables_with_titles += [replace(first_table, title=title), *further_tables]
    return tables_with_titles


def _boards_text(boards: Boards, format: str) -> str:
    """All boards in one text; in CSV with a column of the groups."""
    has_groups = None not in boards
    if not has_groups:
        return boards[None].to_text(format)
    if format == "json":
        documents = {str(group): board.to_dict() for group, board in boards.items()}
        return json.dumps(documents, indent=2, ensure_ascii=False) + "\n"
    if format != "csv":
        return join_tables(_tables_of_boards(boards), format)
    any_board = next(iter(boards.values()))
    rows = [[group, *row] for group, board in boards.items() for row in board.rows]
    return csv_text(["group", *any_board.columns], rows)


def _read_prior(file: Path, item: str) -> Prior:
    """Read ratings from a table: its column rating, or else all columns except the items."""
    from rankwise.datasets import read_ranking
    from rankwise.frames import frame_columns

    data = read_ranking(file, target=None, group=None, id=item, as_frame=True)
    ratings = frame_columns(data.frame) or {}  # by name
    if "rating" in ratings:  # a file of `rank -o`: its other columns are no ratings
        ratings = {file.stem: ratings["rating"]}
    return {"item": data.ids, **ratings}


def _read_features(comparisons: ComparisonOptions, pairs: PairData) -> Matrix | None:
    """Read features of the compared items in the order of ``pairs.items``; None without a file."""
    from rankwise.cli.pair_file import rows_of_items
    from rankwise.datasets import read_ranking
    from rankwise.preprocessing.table_vectorizer import TableVectorizer

    file = comparisons.item_features
    if file is None:
        return None
    item = comparisons.item_column
    data = read_ranking(file, target=None, group=None, id=item, as_frame=True)
    assert data.ids is not None  # id= names a column
    rows = rows_of_items(pairs.items, data.ids, source=f"{file}, column {item},")
    X = data.frame.take(rows)
    vectorizer = TableVectorizer().fit_without_warning(X)
    for column in vectorizer.facts_:
        if not column.is_used:
            terminal.note(f"column {column.name} of {file} is dropped: {column.why}")
    return vectorizer.transform(X)
