"""Comparisons from a file, with the columns that a user may have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rankwise.cli.options import DATA, flag, split_names
from rankwise.cli.session import note

if TYPE_CHECKING:
    from rankwise.datasets import PairData


def _column(help: str) -> Any:
    return typer.Option(metavar="COLUMN", help=help, rich_help_panel="Data")


def _columns(metavar: str, help: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel="Data")


@dataclass
class ComparisonOptions:
    """Which columns say what."""

    winner: Annotated[str, _column("Item that won.")] = "winner"
    loser: Annotated[str | None, _column("Item that lost; loser if not given.")] = None
    sides: Annotated[str | None, _columns("A,B", "Two columns of items, the first side first.")] = (
        None
    )
    outcome: Annotated[
        str | None,
        _column(
            "With --sides, who won: left, first, a, 1, the name of the column or of the item, tie, "
            "both bad, …; --winner if not given."
        ),
    ] = None
    wins: Annotated[
        str | None, _columns("A,B[,TIES]", "With --sides, how often each side won, and neither.")
    ] = None
    scores: Annotated[str | None, _columns("A,B", "With --sides, the points of each side.")] = None
    margin: Annotated[
        bool,
        flag("--margin", help="The difference of scores counts, not only who won.", panel=DATA),
    ] = False
    magnitude: Annotated[str | None, _column("By how much; 0 is a tie.")] = None
    weight: Annotated[str | None, _column("How much the comparison counts.")] = None
    tie: Annotated[str | None, _column("Whether it was a tie.")] = None
    group: Annotated[str | None, _column("One board for each value.")] = None
    judge: Annotated[str | None, _column("Who judged; also what is left out as a whole.")] = None
    cluster: Annotated[
        str | None, _column("What is left out or resampled as a whole: users, matches.")
    ] = None
    covariates: Annotated[
        list[str] | None,
        _columns(
            "COLUMNS", "What else may explain who won: numbers of the first side, categories."
        ),
    ] = None
    delimiter: Annotated[str | None, typer.Option(metavar="CHARACTER", rich_help_panel="Data")] = (
        None
    )
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table with features of the items.", rich_help_panel="Data"
        ),
    ] = None
    item: Annotated[str, _column("Column of the items in the table of features.")] = "item"


class Comparisons(NamedTuple):
    """Comparisons, and what is known of the items."""

    pairs: PairData
    features: Any


def read_comparisons(path: Path, options: ComparisonOptions) -> Comparisons:
    """Read the comparisons and, if there is one, the table of features."""
    from rankwise.datasets import read_pairs

    alike = ("winner", "outcome", "margin", "magnitude", "weight", "tie", "group", "judge",
             "cluster", "delimiter")  # fmt: skip
    columns: dict[str, Any] = {name: getattr(options, name) for name in alike}
    columns["covariates"] = split_names(options.covariates)
    if options.sides is not None and options.loser is not None:
        raise ValueError("--sides says who took part; leave out --loser.")
    columns["loser"] = options.loser or "loser"
    for name in ("sides", "wins", "scores"):
        columns[name] = _listed(name, getattr(options, name))
    pairs = read_pairs(path, **columns)
    if pairs.read_as:
        note(f"{pairs.read_as}; --sides and --outcome say it otherwise.")
    return Comparisons(pairs, _features(options, pairs))


def _listed(name: str, columns: str | None) -> list[str] | None:
    if columns is None:
        return None
    names = [column.strip() for column in columns.split(",")]
    if len(names) not in ((2, 3) if name == "wins" else (2,)) or not all(names):
        raise ValueError(f"--{name} {columns}: expected two columns, such as left,right.")
    return names


def _features(options: ComparisonOptions, pairs: PairData) -> Any:
    """Features of the items that were compared, if any, in the order of ``pairs.items``."""
    from rankwise.datasets import column_kinds, column_transformer, read_ranking
    from rankwise.datasets.feature_columns import used_columns

    file = options.features
    if file is None:
        return None
    table: Any = read_ranking(file, target=None, group=None, id=options.item, as_frame=True)
    row = {str(label): k for k, label in enumerate(table.ids)}
    if len(row) < len(table.ids):
        raise ValueError(f"{file}: some item is there twice; give each item one row.")
    missing = [str(item) for item in pairs.items if str(item) not in row]
    if missing:
        shown = ", ".join(missing[:10]) + (", …" if len(missing) > 10 else "")
        raise ValueError(f"{file} has no features of {len(missing)} compared items: {shown}.")
    X = table.X.take([row[str(item)] for item in pairs.items])
    kinds = column_kinds(X)
    for kind in kinds:
        if kind.use == "left out":
            note(f"column {kind.name} of {file} is left out: {kind.why}")
    return column_transformer(kinds).fit_transform(used_columns(X, kinds))
