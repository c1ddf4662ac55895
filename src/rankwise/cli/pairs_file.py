"""Comparisons from a file, with the columns that a user may have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rankwise.cli.session import note

if TYPE_CHECKING:
    from rankwise.datasets import PairData

__all__ = ["ComparisonOptions", "Comparisons", "read_comparisons"]


def _column(help: str) -> Any:
    return typer.Option(metavar="COLUMN", help=help, rich_help_panel="Data")


@dataclass
class ComparisonOptions:
    """Which columns say what."""

    winner: Annotated[str, _column("Item that won; with --sides, which side won.")] = "winner"
    loser: Annotated[str | None, _column("Item that lost; loser if not given.")] = None
    sides: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Two columns of items; --winner then holds one of these names, an item, or tie.",
            rich_help_panel="Data",
        ),
    ] = None
    magnitude: Annotated[str | None, _column("By how much; 0 is a tie.")] = None
    weight: Annotated[str | None, _column("How much the comparison counts.")] = None
    tie: Annotated[str | None, _column("Whether it was a tie.")] = None
    group: Annotated[str | None, _column("One board for each value.")] = None
    cluster: Annotated[
        str | None, _column("What is resampled as a whole: judges, users, matches.")
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
    """Comparisons, and what else is known of them and of the items."""

    pairs: PairData
    clusters: Any
    features: Any


def read_comparisons(path: Path, options: ComparisonOptions) -> Comparisons:
    """Read the comparisons and, if there is one, the table of features."""
    from rankwise.datasets import read_pairs

    names = ("winner", "magnitude", "weight", "tie", "group", "delimiter")
    columns: dict[str, Any] = {name: getattr(options, name) for name in names}
    if options.sides is None:
        columns["loser"] = options.loser or "loser"
    elif options.loser is not None:
        raise ValueError("--sides says who took part; leave out --loser.")
    else:
        columns["sides"] = _two(options.sides)
    pairs, clusters = read_pairs(path, **columns), None
    if options.cluster is not None:  # a second label, so the file is read once more
        clusters = read_pairs(path, **{**columns, "group": options.cluster}).groups
    return Comparisons(pairs, clusters, _features(options, pairs))


def _two(sides: str) -> list[str]:
    names = [name.strip() for name in sides.split(",")]
    if len(names) != 2 or not all(names):
        raise ValueError(f"--sides {sides}: expected two columns, such as left,right.")
    return names


def _features(options: ComparisonOptions, pairs: PairData) -> Any:
    """Features of the items that were compared, if any, in the order of ``pairs.items``."""
    from rankwise.datasets import column_kinds, column_transformer, read_frame
    from rankwise.datasets.feature_columns import used_columns

    file = options.features
    if file is None:
        return None
    table: Any = read_frame(file, target=None, group=None, id=options.item)
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
