"""Options that several commands share, as decorators and as records of their values."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from rankwise.cli.command import FILE, option, option_group
from rankwise.defaults import DEFAULT_CONFIDENCE

DATA = "Data"  # sections of the help
COMPARISONS = "Comparisons"
MODEL = "Model"
OUTPUT = "Output"

data_argument = click.argument("data", type=FILE)
model_argument = click.argument("model", type=FILE)

metric_option = option(
    "-m",
    "--metric",
    metavar="NAME",
    multiple=True,
    section=OUTPUT,
    help="ndcg@10, map, p@5, mrr, err, auc, disagreement, tau, …, or MODULE:FUNCTION; repeatable.",
)
output_option = option(
    "-o",
    "--output",
    metavar="FILE",
    type=FILE,
    section=OUTPUT,
    help="File to write; - is standard output.",
)
per_group_option = option(
    "--per-group",
    metavar="FILE",
    type=FILE,
    section=OUTPUT,
    help="Write the metrics of each group as CSV.",
)
json_option = option(
    "--json", "as_json", is_flag=True, section=OUTPUT, help="Print one JSON document."
)
confidence_option = option(
    "--confidence",
    metavar="X",
    type=float,
    default=DEFAULT_CONFIDENCE,
    help="Confidence level of the intervals.",
)
item_weight_option = option(
    "--weight",
    metavar="COLUMN",
    section=DATA,
    is_advanced=True,
    help="Column of item weights.",
)
items_option = option(
    "--items",
    metavar="FILE",
    type=FILE,
    section=COMPARISONS,
    help="Table of items; DATA are comparisons of these items.",
)


@dataclass(frozen=True)
class TableOptions:
    """How a file of items is read."""

    input_format: str
    delimiter: str | None
    decimal: str | None
    no_header: bool
    target: str | None
    survival_time: str | None
    event: str | None
    group: tuple[str, ...]
    id: str | None
    missing: tuple[str, ...]
    order: tuple[str, ...]
    lower_is_better: bool
    zero_based: bool

    def target_order(self) -> list[str]:
        """Words of the target from the worst to the best, if it has words."""
        orders_without_column = [text for text in self.order if "=" not in text]
        if len(orders_without_column) > 1:
            raise ValueError(
                f"--order {' --order '.join(orders_without_column)}: expected one order of the "
                "target; the orders of other columns begin with COLUMN=."
            )
        return split_names(orders_without_column)

    def survival_column(self) -> str | None:
        """The column of survival times; None without them."""
        if self.survival_time is None and self.event is None:
            return None
        if self.survival_time is None or self.event is None:
            raise ValueError(
                "pass both --survival-time and --event: the column of the times, and the column "
                "that says whether the event was observed (1) or the time is censored (0)."
            )
        if self.target is not None:
            raise ValueError("--survival-time replaces --target; leave out one of them.")
        if self.lower_is_better:
            raise ValueError(
                "--lower-is-better is not for --survival-time: a longer survival ranks higher."
            )
        return self.survival_time

    def column_orders(self) -> dict[str, list[str]]:
        """Words of other columns from low to high."""
        words_of_column = {}
        for text in self.order:
            column, equals_sign, words = text.rpartition("=")
            if equals_sign:
                words_of_column[column] = split_names([words])
        return words_of_column


table_options = option_group(
    TableOptions,
    "table",
    option(
        "--target",
        metavar="COLUMN",
        section=DATA,
        help="Scores, larger is better; default: by name.",
    ),
    option(
        "--survival-time",
        metavar="COLUMN",
        section=DATA,
        is_advanced=True,
        help="Right-censored survival times instead of scores; with --event.",
    ),
    option(
        "--event",
        metavar="COLUMN",
        section=DATA,
        is_advanced=True,
        help="Whether the event was observed (1) or the time is censored (0).",
    ),
    option(
        "--group",
        metavar="COLUMNS",
        multiple=True,
        section=DATA,
        help="Groups, such as queries or users; default: by name.",
    ),
    option(
        "--id",
        metavar="COLUMN",
        section=DATA,
        is_advanced=True,
        help="Column of item names.",
    ),
    option(
        "--input-format",
        metavar="NAME",
        default="auto",
        section=DATA,
        is_advanced=True,
        help="letor, csv, tsv, parquet, feather or json; auto reads it from the content.",
    ),
    option(
        "--delimiter",
        metavar="CHARACTER",
        section=DATA,
        is_advanced=True,
        help="Column separator of a text table; detected by default.",
    ),
    option(
        "--decimal",
        metavar="CHARACTER",
        section=DATA,
        is_advanced=True,
        help="Decimal point or comma; detected by default.",
    ),
    option(
        "--no-header",
        is_flag=True,
        section=DATA,
        is_advanced=True,
        help="The first line has no names; columns are called 0, 1, 2, …",
    ),
    option(
        "--missing",
        metavar="WORD",
        multiple=True,
        section=DATA,
        is_advanced=True,
        help="Word or number that marks a missing value; repeatable.",
    ),
    option(
        "--order",
        metavar="[COLUMN=]LOW,MID,HIGH",
        multiple=True,
        section=DATA,
        is_advanced=True,
        help="Words of the target from worst to best, or of another column; repeatable.",
    ),
    option(
        "--lower-is-better",
        is_flag=True,
        section=DATA,
        is_advanced=True,
        help="Smaller scores are better.",
    ),
    option(
        "--zero-based",
        is_flag=True,
        section=DATA,
        is_advanced=True,
        help="Features of svmlight rows count from 0.",
    ),
)


@dataclass(frozen=True)
class FeatureOptions:
    """How the columns of training data are used."""

    features: tuple[str, ...]
    ignore: tuple[str, ...]
    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    nuisance: tuple[str, ...]
    time: str | None
    no_impute: bool


feature_options = option_group(
    FeatureOptions,
    "features",
    option(
        "--features",
        metavar="COLUMNS",
        multiple=True,
        section=DATA,
        help="Features, separated by commas; default: all other columns.",
    ),
    option(
        "--ignore",
        metavar="COLUMNS",
        multiple=True,
        section=DATA,
        help="Columns to drop, separated by commas.",
    ),
    option(
        "--categorical",
        metavar="COLUMNS",
        multiple=True,
        section=DATA,
        is_advanced=True,
        help="Columns to use as categories.",
    ),
    option(
        "--numeric",
        metavar="COLUMNS",
        multiple=True,
        section=DATA,
        is_advanced=True,
        help="Columns to use as numbers.",
    ),
    option(
        "--nuisance",
        metavar="COLUMNS",
        multiple=True,
        section=DATA,
        is_advanced=True,
        help="Columns that affect the scores but not the quality of an item, such as the "
        "position of a click. Their effects are estimated and removed: one for each value, or a "
        "slope for columns of --numeric.",
    ),
    option(
        "--time",
        metavar="COLUMN",
        section=DATA,
        is_advanced=True,
        help="Column of dates or numbers; parameters are selected on later groups.",
    ),
    option(
        "--no-impute",
        is_flag=True,
        section=DATA,
        is_advanced=True,
        help="Refuse missing numbers instead of imputing them.",
    ),
)


@dataclass(frozen=True)
class ModelOptions:
    """What is trained; None stands for the default of the estimator."""

    model: str
    alpha: str
    kernel: str | None
    feature_scaling: str
    time_limit: float | None
    set: tuple[str, ...]


model_options = option_group(
    ModelOptions,
    "model",
    option(
        "--model",
        metavar="NAME",
        default="rankrls",
        section=MODEL,
        help="rankrls, ranksvm, ranklogistic, corankrls, pursuit or auto.",
    ),
    option(
        "--alpha",
        metavar="auto|X|X,Y,…",
        default="auto",
        section=MODEL,
        help="Regularization; auto: cross-validated.",
    ),
    option(
        "--kernel",
        metavar="NAME",
        section=MODEL,
        help="linear, rbf, poly, cosine, laplacian, …, precomputed.",
    ),
    option(
        "--set",
        metavar="NAME=VALUE",
        multiple=True,
        section=MODEL,
        help="Another parameter: n_basis=300, gamma=0.1,1.",
    ),
    option(
        "--feature-scaling",
        metavar="NAME",
        default="auto",
        section=MODEL,
        is_advanced=True,
        help="auto, standard, group, log+group, standard+group or none.",
    ),
    option(
        "--time-limit",
        metavar="SECONDS",
        type=float,
        section=MODEL,
        is_advanced=True,
        help="For --model auto: no further member is started after this time.",
    ),
)


def split_names(texts: Iterable[str], columns: Sequence[str] = ()) -> list[str]:
    """Names of columns in an option that can be repeated and can have several, with commas.

    A name that contains a comma is one of `columns`, or is quoted.
    """
    names: list[str] = []
    for text in texts:
        if text in columns:
            names.append(text)
            continue
        names_in_text = next(csv.reader([text], skipinitialspace=True), [])  # none if it is empty
        names += [name.strip() for name in names_in_text if name.strip()]
    return names
