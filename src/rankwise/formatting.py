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
from typing import TypeAlias
from unicodedata import category, east_asian_width

#: A value that `json.dumps` can write.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

#: An object of JSON.
JsonObject: TypeAlias = "dict[str, Json]"

TABLE_FORMATS = ("text", "markdown", "latex", "html")
GAP = "  "
MIN_NAME_WIDTH = 8  # of a column of names on a terminal

CONTROL_CATEGORIES = ("Cc", "Zl", "Zp")  # control characters, line and paragraph separators

MARKDOWN_SPECIAL = re.compile(r"([|\\*_`<>\[\]&~$])")

LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "−": "$-$",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    **{character: "\\" + character for character in "&%$#_{}"},
}


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
        rows = self._header_and_rows()
        column_widths = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
        if width is not None:
            self._narrow_name_columns(column_widths, width)
        lines = []
        for row in rows:
            lines += self._lines_of_row(row, column_widths)
        return lines

    def _narrow_name_columns(self, column_widths: list[int], table_width: int) -> None:
        """Reduce the widths of columns of names, if possible until the table fits."""
        width_of_gaps = len(GAP) * (len(column_widths) - 1)
        while self.names and sum(column_widths) + width_of_gaps > table_width:
            widest_column = max(self.names, key=lambda column: column_widths[column])
            if column_widths[widest_column] <= MIN_NAME_WIDTH:
                return
            column_widths[widest_column] -= 1

    def _lines_of_row(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        """Lines of one row, several if a name is wrapped."""
        lines_of_cells = [_wrap_words(cell, width) for cell, width in zip(row, widths, strict=True)]
        lines = []
        for cells_of_line in zip_longest(*lines_of_cells, fillvalue=""):
            padded_cells = []
            for column, text in enumerate(cells_of_line):
                is_name = column in self.names
                padded_cells.append(_pad_or_shorten(text, widths[column], align_left=is_name))
            lines.append(GAP.join(padded_cells).rstrip())
        return lines

    def text(self) -> str:
        """Aligned columns for a terminal."""
        lines = [*self.lines(), *self.notes]
        if self.title:
            lines.insert(0, self.title)
        return "\n".join(lines)

    def markdown(self) -> str:
        """A table of GitHub's Markdown, its title in bold, its notes as a list."""
        header, *rows = [_markdown_row(row) for row in self._header_and_rows()]
        alignments = []
        for column in range(len(self.header)):
            is_name = column in self.names
            alignments.append(":--" if is_name else "--:")
        lines = [header, "| " + " | ".join(alignments) + " |", *rows]
        if self.title:
            lines = [f"**{self.title}**", "", *lines]
        if self.notes:
            lines += ["", *(f"* {note}" for note in self.notes)]
        return "\n".join([*lines, ""])

    def latex(self) -> str:
        """A tabular, its title and notes as comments."""
        header, *rows = [_latex_row(row) for row in self._header_and_rows()]
        alignments = ""
        for column in range(len(self.header)):
            is_name = column in self.names
            alignments += "l" if is_name else "r"
        lines = [
            r"\begin{tabular}{" + alignments + "}",
            r"\hline",
            header,
            r"\hline",
            *rows,
            r"\hline",
            r"\end{tabular}",
            *(f"% {note}" for note in self.notes),
            "",
        ]
        if self.title:
            lines.insert(0, f"% {self.title}")
        return "\n".join(lines)

    def html(self) -> str:
        """A table element, its title as a caption, its notes as a paragraph."""
        header, *rows = self._header_and_rows()
        body = _html_row(header, "th") + "".join(_html_row(row, "td") for row in rows)
        caption = ""
        if self.title:
            caption = f"<caption>{html.escape(self.title)}</caption>"
        notes = ""
        if self.notes:
            notes = f"<p>{'<br>'.join(map(html.escape, self.notes))}</p>"
        return f"<table>{caption}{body}</table>{notes}"

    def _header_and_rows(self) -> list[list[str]]:
        """Header and rows, each cell on one line."""
        return [[one_line(cell) for cell in row] for row in (self.header, *self.rows)]


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = [MARKDOWN_SPECIAL.sub(r"\\\1", cell) for cell in cells]
    return "| " + " | ".join(escaped) + " |"


def _latex_row(cells: Sequence[str]) -> str:
    escaped = ["".join(LATEX_ESCAPES.get(char, char) for char in cell) for cell in cells]
    return " & ".join(escaped) + r" \\"


def _html_row(cells: Sequence[str], tag: str) -> str:
    elements = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{elements}</tr>"


def _wrap_words(cell: str, width: int) -> list[str]:
    """Lines of whole words; a single line if the cell fits or a word is too long."""
    if text_width(cell) <= width:
        return [cell]
    lines = textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
    has_long_word = any(text_width(line) > width for line in lines)
    if has_long_word:
        return [cell]
    return lines


def _pad_or_shorten(text: str, width: int, *, align_left: bool) -> str:
    """The text in exactly `width` columns of the terminal, cut if it is longer."""
    if text_width(text) > width:
        while text_width(text) > width - 1:  # leave room for the ellipsis
            text = text[:-1]
        text += "…"
    blanks = " " * (width - text_width(text))
    if align_left:
        return text + blanks
    return blanks + text


def join_tables(tables: Sequence[TextTable], format: str) -> str:
    """Several tables in one of the `TABLE_FORMATS`."""
    if format == "text":
        return "\n\n".join(table.text() for table in tables)
    if format == "markdown":
        return "\n".join(table.markdown() for table in tables)
    if format == "latex":
        return "\n".join(table.latex() for table in tables)
    return "".join(table.html() for table in tables)


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """CSV in full precision; missing values are empty cells."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")  # writes None as an empty cell
    writer.writerow(header)
    for row in rows:
        writer.writerow([to_json_values(cell) for cell in row])
    return stream.getvalue()


def one_line(name: object) -> str:
    """Replace line breaks and other control characters by blanks."""
    characters = []
    for character in str(name):
        is_control = category(character) in CONTROL_CATEGORIES
        characters.append(" " if is_control else character)
    return "".join(characters)


def text_width(text: str) -> int:
    """Columns of a terminal: two for a wide character, none for a mark on the one before."""
    # Wide and full-width characters take two cells, combining marks and format characters none.
    n_wide = sum(east_asian_width(char) in "WF" for char in text)
    n_without_width = sum(category(char) in ("Mn", "Me", "Cf") for char in text)
    return len(text) + n_wide - n_without_width


def join_words(names: Iterable[object], max_listed: int = 10) -> str:
    """The first names, and the number of the other names: ``"a, b, c and 4 more"``."""
    all_names = list(map(str, names))
    listed = ", ".join(all_names[:max_listed])
    n_more = len(all_names) - max_listed
    if n_more <= 0:
        return listed
    return f"{listed} and {n_more:,} more"


def count(n: int, noun: str) -> str:
    """A number with its noun: ``"1 group"``, ``"2,000 groups"``."""
    if n == 1:
        return f"1 {noun}"
    return f"{n:,} {noun}s"


def to_json_values(value: object) -> Json:
    """Convert arrays, paths and NaN in a value to types of JSON; NaN becomes None."""
    if isinstance(value, Mapping):
        return {str(key): to_json_values(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy, which is not imported here
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [to_json_values(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
