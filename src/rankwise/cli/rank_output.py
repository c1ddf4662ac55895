"""Output of `rankwise rank`: formats, titles, and boards of scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from rankwise.cli import terminal
from rankwise.cli.argument_names import with_options

if TYPE_CHECKING:
    from rankwise.formatting import TextTable
    from rankwise.leaderboard import TaskLeaderboard

FORMATS = {".md": "markdown", ".json": "json", ".tex": "latex", ".html": "html", ".txt": "text"}
OTHER_SUFFIXES = (".docx", ".feather", ".parquet", ".pdf", ".png", ".xls", ".xlsx")  # refused


class RankOutput(NamedTuple):
    """Where a board is written.

    Attributes
    ----------
    source : Path
        The file that was read.
    page, output : Path or None
        Files of the page and of the board.
    as_json : bool
        Whether the board is printed as JSON.
    """

    source: Path
    page: Path | None
    output: Path | None
    as_json: bool


def format_of(output: Path) -> str:
    """Format of a board by the suffix of its file; CSV by default."""
    suffix = output.suffix.lower()
    if suffix in OTHER_SUFFIXES:
        raise ValueError(
            f"{output}: the board cannot be written as {suffix}; choose .csv or "
            f"{', '.join(FORMATS)}."
        )
    return FORMATS.get(output.suffix.lower(), "csv")


def board_title(source: Path) -> str:
    """Heading of the page of a board."""
    if str(source) == "-":
        return "Leaderboard"
    return f"Leaderboard of {source.name}"


def write_score_board(board: TaskLeaderboard, target: RankOutput) -> None:
    """Write and print a board of scores."""
    from rankwise.leaderboard.render_scores import board_tables
    from rankwise.report import board_page

    files: list[tuple[Path, str]] = []
    if target.output is not None:
        files.append((target.output, board.to_text(format_of(target.output))))
    if target.page is not None:
        page = board_page(board, title=board_title(target.source))
        files.append((target.page, page.text))
    terminal.write_texts(files)
    is_printed = target.output is None and str(target.page) != "-"
    if target.as_json:
        terminal.print_json(board.to_dict())
    elif is_printed:
        for table in board_tables(board):
            if table.title:
                click.echo(f"\n{table.title}")
            print_board_table(table)
    else:  # the printed tables would end with the warnings
        for message in board.warnings:
            terminal.note(with_options(f"{message}.", "rank"))
    if target.page is not None:
        terminal.note(f"the page was written to {target.page}")


def print_board_table(table: TextTable) -> None:
    """Print a table of a board, with options in place of the arguments that its notes name."""
    notes = [with_options(note, "rank") for note in table.notes]
    terminal.print_table(replace(table, notes=notes))
