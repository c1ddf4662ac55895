"""Options that several commands share; `rankwise.cli.app` reads their help from the docstrings."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Common:
    """Arguments and options of several commands.

    Parameters
    ----------
    data : DATA
        svmlight rows with qid (LETOR), CSV, TSV, Parquet, Feather or JSON; - is standard input.
    model : MODEL
        A file written by rankwise train.
    confidence : X
        Level of the intervals.
    random_state : N
        Seed of everything that is random.

    Data
    ----
    weight : COLUMN
        Weights of the items.

    Output
    ------
    output : -o FILE
        Where to write; - is standard output.
    per_group : FILE
        Write the metrics of each group as CSV.
    as_json : --json
        Print JSON for machines.
    metric : -m NAME
        ndcg@10, map, p@5, mrr, err, auc, disagreement, tau, …, or MODULE:FUNCTION; repeatable.
    """


@dataclass
class TableOptions:
    """How data for a trained model are read; the model knows its features.

    Data
    ----
    format : NAME
        letor, csv, tsv, parquet, feather or json; told by the content.
    delimiter : CHARACTER
        Between the columns of a text table.
    decimal : CHARACTER
        In front of decimals; found if not given.
    no_header : flag
        The first line holds no names; columns are called 0, 1, 2, …
    target : COLUMN
        Scores, larger is better; found by name if not given.
    group : COLUMNS
        Queries, users; found by name if not given.
    id : COLUMN
        Column of names of the items.
    missing : WORD
        A word or number that is a gap; may be repeated.
    order : [COLUMN=]LOW,MID,HIGH
        Words of the scores, worst first, or of another column; may be repeated.
    lower_is_better : flag
        The smaller the score the better.
    zero_based : flag
        Features of svmlight rows count from 0.
    """

    format: str = "auto"
    delimiter: str | None = None
    decimal: str | None = None
    no_header: bool = False
    target: str | None = None
    group: list[str] | None = None
    id: str | None = None
    missing: list[str] | None = None
    order: list[str] | None = None
    lower_is_better: bool = False
    zero_based: bool = False

    def levels(self) -> list[str]:
        """Words of the scores from the worst to the best, if there are words."""
        orders = [text for text in self.order or () if "=" not in text]
        if len(orders) > 1:
            raise ValueError(f"--order {' --order '.join(orders)}: the scores have one order.")
        return split_names(orders)

    def orders(self) -> dict[str, list[str]]:
        """Words of other columns from low to high."""
        named = (text.rpartition("=") for text in self.order or () if "=" in text)
        return {name: split_names([words]) for name, _, words in named}


@dataclass
class TrainingTableOptions(TableOptions):
    """How training data are read.

    Data
    ----
    features : COLUMNS
        To learn from, with commas; all if not given.
    ignore : COLUMNS
        To leave out, with commas.
    categorical : COLUMNS
        Columns to take as categories, whatever they look like.
    numeric : COLUMNS
        Columns to take as numbers, whatever they look like.
    nuisance : COLUMNS
        No features, but part of the scores, such as the position of a click: the effect of each
        value (of numbers by --numeric: one slope) is taken out.
    time : COLUMN
        Dates or numbers: parameters are judged on groups that came later.
    no_impute : flag
        Refuse gaps in numbers instead of filling them.
    """

    features: list[str] | None = None
    ignore: list[str] | None = None
    categorical: list[str] | None = None
    numeric: list[str] | None = None
    nuisance: list[str] | None = None
    time: str | None = None
    no_impute: bool = False


@dataclass
class ModelOptions:
    """What is trained; None stands for what the model itself takes.

    Model
    -----
    model : NAME
        rankrls, ranksvm, ranklogistic, corankrls, pursuit, auto.
    alpha : auto|X|X,Y,…
        Regularization; auto chooses it by cross-validation.
    scale : NAME
        auto, standard, group, log+group, standard+group or none.
    kernel : NAME
        linear, rbf, poly, cosine, laplacian, …, precomputed.
    time_limit : SECONDS
        For the model auto: no further member is begun then.
    set : NAME=VALUE
        Another parameter: n_basis=300, gamma=0.1,1, cost=sign.
    """

    model: str = "rankrls"
    alpha: str = "auto"
    scale: str = "auto"
    kernel: str | None = None
    time_limit: float | None = None
    set: list[str] | None = None


@dataclass
class PairOptions:
    """Which columns say who met whom, and who won.

    Comparisons
    -----------
    winner : COLUMN
        Item that won.
    loser : COLUMN
        Item that lost; loser if not given.
    sides : A,B
        Two columns of items, the first side first.
    outcome : COLUMN
        With --sides, who won: left, first, a, 1, the name of the column or of the item, tie, both
        bad, …; --winner if not given.
    map : WORD=SIDE
        What a word of the outcome means, first, second or tie; may be repeated.
    wins : A,B[,TIES]
        With --sides, how often each side won, and neither.
    scores : A,B
        With --sides, the points of each side.
    margin : flag
        The difference of scores counts, not only who won.
    magnitude : COLUMN
        By how much; 0 is a tie.
    tie : COLUMN
        Whether it was a tie.
    judge : COLUMN
        Who judged; also what is left out as a whole.
    """

    winner: str = "winner"
    loser: str | None = None
    sides: str | None = None
    outcome: str | None = None
    map: list[str] | None = None
    wins: str | None = None
    scores: str | None = None
    margin: bool = False
    magnitude: str | None = None
    tie: str | None = None
    judge: str | None = None

    def columns(self) -> dict[str, Any]:
        """The columns as `read_pairs` takes them."""
        from rankwise.datasets.pair_data import PAIR_COLUMNS

        if self.sides is not None and self.loser is not None:
            raise ValueError("--sides says who took part; leave out --loser.")
        columns = {name: value for name, value in vars(self).items() if name in PAIR_COLUMNS}
        columns["loser"] = self.loser or "loser"
        for name in ("sides", "wins", "scores", "covariates", "context", "places"):
            names = columns.get(name)
            columns[name] = split_names([names] if isinstance(names, str) else names) or None
        meanings = [text.rpartition("=") for text in self.map or ()]
        if not all(equals for _, equals, _ in meanings):
            raise ValueError(f"--map {self.map}: expected WORD=first, WORD=second or WORD=tie.")
        columns["outcome_words"] = {word: side for word, _, side in meanings}
        return columns


@dataclass
class ItemOptions(PairOptions):
    """The same for commands that take either scored items or comparisons of items.

    Comparisons
    -----------
    items : FILE
        DATA are comparisons of the items of this table.
    """

    items: Path | None = None


def split_names(texts: list[str] | None, known: Sequence[str] = ()) -> list[str]:
    """Names of columns from an option that may be repeated and may hold several.

    A name with a comma is one of those known, or stands in quotation marks.
    """
    names: list[str] = []
    for text in texts or ():
        several = [text] if text in known else next(csv.reader([text], skipinitialspace=True), [])
        names += [name.strip() for name in several if name.strip()]
    return names
