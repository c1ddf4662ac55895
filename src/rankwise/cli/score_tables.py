"""Tables of scores on the command line: options, files, and the model that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rankwise.cli.options import ModelOptions, Scale, flag
from rankwise.cli.table_side import PANEL, SideFiles, TableSide, table_option

if TYPE_CHECKING:
    from rankwise.datasets.score_tables import ScoreTable

Layout = StrEnum("Layout", ["auto", "wide", "long"])
Ranked = StrEnum("Ranked", ["columns", "rows", "both"])


@dataclass
class ScoreTableOptions(SideFiles):
    """How a table of scores is read, and what is learned from it."""

    is_table: Annotated[
        bool,
        flag(
            "--table",
            help="DATA is a table: a line for each row, or for each cell (row, column, score).",
            panel=PANEL,
        ),
    ] = False
    layout: Annotated[
        Layout, table_option(help="Whether lines are rows (wide) or cells (long).")
    ] = Layout.auto
    ranked: Annotated[
        Ranked, table_option(help="Rank the columns of each row, the rows of each column, or both.")
    ] = Ranked.columns
    column_kernel: Annotated[
        str | None,
        table_option(metavar="NAME", help="Kernel of the columns; --kernel is of the rows."),
    ] = None
    column_gamma: Annotated[
        str | None,
        table_option(metavar="X|X,Y,…", help="Of that kernel; several are chosen among."),
    ] = None

    def refuse_weights(self, column: str | None) -> None:
        """Refuse weights of items for a table, which has cells."""
        if column is not None:
            raise ValueError(
                f"weights (column {column}) are of items of lists, but a table of scores has "
                "cells; leave out the weights, or --table."
            )

    def refuse(self) -> None:
        """Refuse options of tables if there is none."""
        given = [name for name in ("rows", "columns", "column_kernel", "column_gamma")
                 if getattr(self, name) is not None]  # fmt: skip
        given += ["layout"] if self.layout is not Layout.auto else []
        given += ["ranked"] if self.ranked is not Ranked.columns else []
        if given:
            raise ValueError(f"--{given[0].replace('_', '-')} is for tables; add --table.")


@dataclass
class TableData:
    """A table and the features of its sides, as the estimator takes them."""

    table: ScoreTable
    rows: Any
    columns: Any
    sides: dict[str, TableSide]

    def lines(self) -> list[tuple[str, str]]:
        """What is printed about the data."""
        import numpy as np

        q, t = self.table.Y.shape
        known = int((~np.isnan(self.table.Y)).sum())
        columns = self.sides.get("columns")
        width = f"{len(columns.features)} features" if columns else "no features"
        return [
            ("rows", f"{q:,}, {len(self.sides['rows'].features)} features"),
            ("columns", f"{t:,}, {width}"),
            ("known cells", f"{known:,} of {q * t:,} ({known / (q * t):.0%})"),
        ]


def read_table_data(file: Path, cells: ScoreTableOptions, model: ModelOptions) -> TableData:
    """Read the scores and the features of both sides, scaled."""
    from rankwise.datasets import read_item_features, read_score_table

    if cells.rows is None:
        raise ValueError(
            "--table needs --rows FILE with the features of the rows: a model without them would "
            "have nothing to say of new rows."
        )
    table = read_score_table(file, layout=str(cells.layout))
    sides, found = {}, {}
    for what, path in (("rows", cells.rows), ("columns", cells.columns)):
        names = getattr(table, what)
        if path is None:
            found[what] = names
            continue
        items = read_item_features(path)
        X = items.of(names, path, what[:-1])
        kernel = (model.kernel if what == "rows" else cells.column_kernel) or "linear"
        if kernel == "precomputed":
            X = _square(items, names, path, what)
        scaling = _scaling(X, model.scale, kernel)
        side = TableSide(names.tolist(), items.feature_names, *scaling, items.categories)
        sides[what], found[what] = side, side.scaled(X)
    return TableData(table, found["rows"], found["columns"], sides)


def _square(items: Any, names: Any, path: Path, what: str) -> Any:
    """Kernel values between the items of the table, in its order."""
    import numpy as np

    place = {name: k for k, name in enumerate(items.names.tolist())}
    if items.feature_names != items.names.tolist():
        raise ValueError(
            f"{path}: a precomputed kernel of the {what} needs a column for each line, with the "
            "same names in the same order."
        )
    at = [place[name] for name in names.tolist()]
    return np.asarray(items.X[np.ix_(at, at)])


def _scaling(X: Any, scale: Scale, kernel: str) -> tuple[list[float], list[float]]:
    import numpy as np

    if scale not in (Scale.auto, Scale.standard, Scale.none):
        raise ValueError(f"--scale {scale} is not for tables; use standard or none.")
    raw = kernel in ("precomputed", "chi2", "additive_chi2")
    if scale is Scale.none or raw:
        return [], []
    seen = ~np.isnan(X)
    mean = np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    spread = np.where(seen, X - mean, 0.0).std(axis=0)
    return mean.tolist(), np.where(spread > 0, spread, 1.0).tolist()


def make_table_model(
    model: ModelOptions, cells: ScoreTableOptions, metric: str | None, leave: str, cv: Any = "auto"
) -> Any:
    """The search that the options describe."""
    from rankwise.cli.number_options import numbers_in
    from rankwise.estimators import ConditionalRankRLSCV

    for name in ("n_basis", "beta", "loss", "nu", "views", "degree", "coef0"):
        if getattr(model, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} is not for tables; leave it out.")
    if model.model != "rankrls":
        raise ValueError(f"--model {model.model} does not take tables; leave it out.")
    column_kernel = cells.column_kernel or ("linear" if cells.columns is not None else "delta")
    if cells.columns is None and column_kernel != "delta":
        raise ValueError(f"--column-kernel {column_kernel} needs --columns with features.")
    given: dict[str, Any] = {
        name: str(getattr(model, name))
        for name in ("cost", "ties", "group_weight")
        if getattr(model, name) is not None
    }
    gammas = {"row_gamma": ("--gamma", model.gamma)}
    gammas["column_gamma"] = ("--column-gamma", cells.column_gamma)
    for name, (option, text) in gammas.items():
        if text is not None:
            values = numbers_in(option, text)
            given[name] = values if len(values) > 1 else values[0]
    alphas = None if model.alpha == "auto" else numbers_in("--alpha", model.alpha)
    return ConditionalRankRLSCV(
        alphas,
        leave=leave,
        cv=cv,
        scoring=metric or "disagreement",
        row_kernel=model.kernel or "linear",
        column_kernel=column_kernel,
        ranked=str(cells.ranked),
        **given,
    )
