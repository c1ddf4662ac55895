"""Options that several commands share, as typer reads them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

DATA, MODEL, OUTPUT = "Data", "Model", "Output"


def option(help: str, metavar: str | None = None, *names: str, panel: str | None = None) -> Any:
    """An option with a value; `names` are those that differ from the name of the parameter."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


def flag(*names: str, help: str, panel: str | None = None) -> Any:
    """An option without a value."""
    return typer.Option(*names, help=help, rich_help_panel=panel)


ModelName = StrEnum(
    "ModelName", ["rankrls", "ranksvm", "ranklogistic", "corankrls", "pursuit", "auto"]
)


class Scale(StrEnum):
    """How features are scaled."""

    auto = "auto"
    standard = "standard"
    minmax = "minmax"
    maxabs = "maxabs"
    robust = "robust"
    group = "group"
    log_group = "log+group"
    standard_group = "standard+group"
    none = "none"


FileFormat = StrEnum("FileFormat", ["auto", "letor", "csv", "tsv", "parquet", "feather", "json"])

DataArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="svmlight rows with qid (LETOR), CSV, TSV, Parquet, Feather or JSON; - is standard "
        "input.",
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file written by rankwise train.")
]
Output = Annotated[
    Path | None,
    option("Where to write; - is standard output.", "FILE", "--output", "-o", panel=OUTPUT),
]
PerGroup = Annotated[
    Path | None, option("Write the metrics of each group as CSV.", "FILE", panel=OUTPUT)
]
AsJson = Annotated[bool, flag("--json", help="Print JSON for machines.", panel=OUTPUT)]
Metrics = Annotated[
    list[str] | None,
    option(
        "ndcg@10, map, p@5, mrr, err, auc, disagreement, tau, …, or MODULE:FUNCTION; repeatable.",
        "NAME",
        "--metric",
        "-m",
        panel=OUTPUT,
    ),
]
Seed = Annotated[int, option("Seed of everything that is random.", "N")]
Confidence = Annotated[float, option("Level of the intervals.", "X")]


WeightColumn = Annotated[
    str | None,
    option("Weights of the items.", "COLUMN", panel=DATA),
]


def _data(help: str, metavar: str = "COLUMN") -> Any:
    return option(help, metavar, panel=DATA)


@dataclass
class TableOptions:
    """How data for a trained model are read; the model knows its features."""

    format: Annotated[
        FileFormat, _data("letor, csv, tsv, parquet, feather or json; told by the content.", "NAME")
    ] = FileFormat.auto
    delimiter: Annotated[str | None, _data("Between the columns of a text table.", "CHARACTER")] = (
        None
    )
    decimal: Annotated[
        str | None, _data("In front of decimals; found if not given.", "CHARACTER")
    ] = None
    no_header: Annotated[
        bool,
        flag(
            "--no-header",
            help="The first line holds no names; columns are called 0, 1, 2, …",
            panel=DATA,
        ),
    ] = False
    target: Annotated[
        str | None, _data("Scores, larger is better; found by name if not given.")
    ] = None
    group: Annotated[
        list[str] | None,
        _data("Queries, users; found by name if not given.", "COLUMNS"),
    ] = None
    id: Annotated[str | None, _data("Column of names of the items.")] = None
    missing: Annotated[
        list[str] | None, _data("A word or number that is a gap; may be repeated.", "WORD")
    ] = None
    order: Annotated[
        list[str] | None,
        _data(
            "Words of the scores, worst first, or of another column; may be repeated.",
            "[COLUMN=]LOW,MID,HIGH",
        ),
    ] = None
    lower_is_better: Annotated[
        bool, flag("--lower-is-better", help="The smaller the score the better.", panel=DATA)
    ] = False
    zero_based: Annotated[
        bool, flag("--zero-based", help="Features of svmlight rows count from 0.", panel=DATA)
    ] = False

    def levels(self) -> list[str]:
        """Words of the scores from the worst to the best, if there are words."""
        orders = [text for text in self.order or () if "=" not in text]
        if len(orders) > 1:
            raise ValueError(f"--order {' --order '.join(orders)}: the scores have one order.")
        return split_names(orders)

    def orders(self) -> dict[str, list[str]]:
        """Words of other columns from low to high."""
        given = (text.rpartition("=") for text in self.order or () if "=" in text)
        return {name: split_names([words]) for name, _, words in given}


@dataclass
class TrainingTableOptions(TableOptions):
    """How training data are read."""

    features: Annotated[
        list[str] | None,
        _data("To learn from, with commas; all if not given.", "COLUMNS"),
    ] = None
    ignore: Annotated[list[str] | None, _data("To leave out, with commas.", "COLUMNS")] = None
    categorical: Annotated[
        list[str] | None,
        _data("Columns to take as categories, whatever they look like.", "COLUMNS"),
    ] = None
    numeric: Annotated[
        list[str] | None, _data("Columns to take as numbers, whatever they look like.", "COLUMNS")
    ] = None
    nuisance: Annotated[
        list[str] | None,
        _data(
            "No features, but part of the scores, such as the position of a click: the effect of "
            "each value (of numbers by --numeric: one slope) is taken out.",
            "COLUMNS",
        ),
    ] = None
    time: Annotated[
        str | None,
        _data("Dates or numbers: parameters are judged on groups that came later."),
    ] = None
    no_impute: Annotated[
        bool,
        flag("--no-impute", help="Refuse gaps in numbers instead of filling them.", panel=DATA),
    ] = False


@dataclass
class ModelOptions:
    """What is trained; None stands for what the model itself takes."""

    model: Annotated[
        ModelName,
        option("rankrls, ranksvm, ranklogistic, corankrls, pursuit, auto.", "NAME", panel=MODEL),
    ] = ModelName.rankrls
    alpha: Annotated[
        str,
        option(
            "Regularization; auto chooses it by cross-validation.",
            "auto|X|X,Y,…",
            panel=MODEL,
        ),
    ] = "auto"
    scale: Annotated[
        Scale,
        option(
            "auto, standard, minmax, maxabs, robust, group, log+group, standard+group or none.",
            "NAME",
            panel=MODEL,
        ),
    ] = Scale.auto
    kernel: Annotated[
        str | None,
        option("linear, rbf, poly, cosine, laplacian, …, precomputed.", "NAME", panel=MODEL),
    ] = None
    time_limit: Annotated[
        float | None,
        option("For the model auto: no further member is begun then.", "SECONDS", panel=MODEL),
    ] = None
    set: Annotated[
        list[str] | None,
        option(
            "Another parameter: n_basis=300, gamma=0.1,1, cost=sign.",
            "NAME=VALUE",
            panel=MODEL,
        ),
    ] = None


def split_names(texts: list[str] | None, known: Sequence[str] = ()) -> list[str]:
    """Names of columns from an option that may be repeated and may hold several.

    A name with a comma is one of those known, or stands in quotation marks.
    """
    names: list[str] = []
    for text in texts or ():
        several = [text] if text in known else next(csv.reader([text], skipinitialspace=True), [])
        names += [name.strip() for name in several if name.strip()]
    return names
