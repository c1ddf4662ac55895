"""The two sides of a table on the command line: files of features, and how they are scaled."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

PANEL = "Tables"


def table_option(*names: str, metavar: str | None = None, help: str) -> Any:
    """An option of tables."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=PANEL)


RowsFile = Annotated[
    Path | None, table_option("--rows", metavar="FILE", help="Features of the rows of a table.")
]
ColumnsFile = Annotated[
    Path | None,
    table_option(
        "--columns", metavar="FILE", help="Features of its columns; without, these have none."
    ),
]


@dataclass
class SideFiles:
    """Files of features of the rows and the columns of a table."""

    rows: RowsFile = None
    columns: ColumnsFile = None


@dataclass
class TableSide:
    """Features of one side, and what becomes of them."""

    names: list[str]
    features: list[str]
    mean: list[float]
    scale: list[float]
    categories: dict[str, list[str]] = field(default_factory=dict)

    def scaled(self, X: Any) -> Any:
        """X, gaps filled by the mean and scaled as in training."""
        import numpy as np

        if not self.mean:
            return X
        return (np.where(np.isnan(X), self.mean, X) - np.array(self.mean)) / np.array(self.scale)
