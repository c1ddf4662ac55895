"""Text for results, messages and the command: tables, lists of names and counts."""

from __future__ import annotations

import csv
import html
import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unicodedata import category, east_asian_width

TABLE_FORMATS = ("text", "markdown", "latex", "html")
GAP = "  "
LEAST_NAME = 8  # smallest width of a column of names on a terminal
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {c: "\\" + c for c in "&%$#_{}"} | {"–": "--", "…": r"\ldots{}", "†": r"\dag{}"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "−": "$-$"}


@dataclass(frozen=True)
class TextTable:
    """Cells of text under a header.

    Attributes
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        Cells. Control characters are replaced by blanks.
    names : tuple of int
        Columns of names, which are aligned to the left; the others are numbers.
    title : str
        Above the table; empty for none.
    notes : sequence of str
        Below the table, a line each.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: tuple[int, ...] = (0,)
    title: str = ""
    notes: Sequence[str] = ()

    def lines(self, width: int | None = None) -> list[str]:
        """Header and rows with aligned columns, without title and notes.

        Parameters
        ----------
        width : int, optional
            Width of the terminal. Names are wrapped until the table fits; numbers are not. A word
            that is too long is cut.
        """
        cells = self._cells()
        widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
        while width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
            widest = max(self.names, key=widths.__getitem__, default=None)
            if widest is None or widths[widest] <= LEAST_NAME:
                break
            widths[widest] -= 1
        lines = []
        for row in cells:
            parts = [_wrapped(cell, wide) for cell, wide in zip(row, widths, strict=True)]
            for part in zip_longest(*parts, fillvalue=""):
                fitted = (
                    _fitted(cell, wide, is_name=k in self.names)
                    for k, (cell, wide) in enumerate(zip(part, widths, strict=True))
                )
                lines.append(GAP.join(fitted).rstrip())
        return lines

    def text(self) -> str:
        """Aligned columns for a terminal."""
        return "\n".join([*([self.title] if self.title else []), *self.lines(), *self.notes])

    def markdown(self) -> str:
        """A table of GitHub's Markdown, its title in bold, its notes as a list."""
        header, *rows = (
            "| " + " | ".join(re.sub(r"([|\\*_`<>\[\]&~$])", r"\\\1", cell) for cell in row) + " |"
            for row in self._cells()
        )
        rule = [":--" if k in self.names else "--:" for k in range(len(self.header))]
        title = [f"**{self.title}**", ""] if self.title else []
        notes = ["", *(f"* {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*title, header, "| " + " | ".join(rule) + " |", *rows, *notes, ""])

    def latex(self) -> str:
        """A tabular, its title and notes as comments."""
        header, *rows = (
            " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in row) + r" \\"
            for row in self._cells()
        )
        columns = "".join("l" if k in self.names else "r" for k in range(len(self.header)))
        lines = [r"\begin{tabular}{" + columns + "}", r"\hline", header, r"\hline"]
        lines += [*rows, r"\hline", r"\end{tabular}"]
        title = [f"% {self.title}"] if self.title else []
        return "\n".join([*title, *lines, *(f"% {note}" for note in self.notes), ""])

    def html(self) -> str:
        """A table element, its title as a caption, its notes as a paragraph."""
        body = ""
        for k, row in enumerate(self._cells()):
            tag = "td" if k else "th"
            cells = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
            body += f"<tr>{cells}</tr>"
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        notes = f"<p>{'<br>'.join(map(html.escape, self.notes))}</p>" if self.notes else ""
        return f"<table>{caption}{body}</table>{notes}"

    def _cells(self) -> list[list[str]]:
        """Header and rows, each cell on one line."""
        return [[one_line(cell) for cell in row] for row in (self.header, *self.rows)]


def _wrapped(cell: str, width: int) -> list[str]:
    """The cell in lines of whole words, or as it is if it fits or has a longer word."""
    if text_width(cell) <= width:
        return [cell]
    lines = textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
    return [cell] if any(text_width(line) > width for line in lines) else lines


def _fitted(cell: str, width: int, *, is_name: bool) -> str:
    """The cell with blanks, or cut."""
    if text_width(cell) > width:
        while text_width(cell) > width - 1:
            cell = cell[:-1]
        cell += "…"
    blanks = " " * (width - text_width(cell))
    return cell + blanks if is_name else blanks + cell


def join_tables(tables: Sequence[TextTable], format: str) -> str:
    """Several tables in one of the `TABLE_FORMATS`."""
    between = {"html": "", "text": "\n\n"}.get(format, "\n")
    return between.join(getattr(table, format)() for table in tables)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV in full precision; what is missing is an empty cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(
        ["" if cell is None else cell for cell in map(without_markup, row)] for row in rows
    )
    return stream.getvalue()


def one_line(name: Any) -> str:
    """Replace line breaks and other control characters by blanks."""
    return "".join(" " if category(c) in ("Cc", "Zl", "Zp") else c for c in str(name))


def text_width(text: str) -> int:
    """Columns of a terminal: two for a wide character, none for a mark on the one before."""
    wide = sum(east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(category(c) in ("Mn", "Me", "Cf") for c in text)


def join_words(names: Iterable[Any], n: int = 10) -> str:
    """The first `n` names and the number of the other names: ``"a, b, c and 4 more"``."""
    all_names = list(map(str, names))
    listed = ", ".join(all_names[:n])
    n_more = len(all_names) - n
    if n_more <= 0:
        return listed
    return f"{listed} and {n_more:,} more"


def count(n: int, noun: str) -> str:
    """A number with its noun: ``"1 group"``, ``"2,000 groups"``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def without_markup(value: Any) -> Any:
    """Convert arrays, paths and NaN in a value to types of JSON; NaN becomes None."""
    if isinstance(value, Mapping):
        return {str(key): without_markup(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [without_markup(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
