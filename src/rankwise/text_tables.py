"""Tables with notes below as Markdown, LaTeX and HTML: boards and comparisons share them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence

Table = tuple[str, list[list[str]], int]  # title, header and rows, columns of text at the left
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {c: "\\" + c for c in "&%$#_{}"} | {"–": "--", "…": r"\ldots{}", "†": r"\dag{}"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "−": "$-$"}


def _markdown(tables: Sequence[Table], notes: Sequence[str]) -> str:
    blocks = []
    for title, (header, *rows), n_left in tables:
        rule = [":--" if k < n_left else "--:" for k in range(len(header))]
        lines = ["| " + " | ".join(_piped(row)) + " |" for row in (header, rule, *rows)]
        blocks.append("\n".join(([f"**{title}**\n"] if title else []) + lines))
    return "\n\n".join([*blocks, "\n".join(f"* {line}" for line in notes)]) + "\n"


def _piped(cells: Sequence[str]) -> list[str]:
    return [re.sub(r"([|\\*_`<>\[\]&~$])", r"\\\1", cell.replace("\n", " ")) for cell in cells]


def _latex(tables: Sequence[Table], notes: Sequence[str]) -> str:
    blocks = []
    for title, (header, *rows), n_left in tables:
        lines = [r"\begin{tabular}{" + "l" * n_left + "r" * (len(header) - n_left) + "}", r"\hline"]
        lines += [" & ".join(map(_tex, header)) + r" \\", r"\hline"]
        lines += [" & ".join(map(_tex, row)) + r" \\" for row in rows]
        lines += [r"\hline", r"\end{tabular}"]
        blocks.append("\n".join(([f"% {title}"] if title else []) + lines))
    return "\n\n".join([*blocks, "\n".join(f"% {line}" for line in notes)]) + "\n"


def _tex(cell: str) -> str:
    return "".join(_LATEX.get(c, c) for c in cell)


def _html(tables: Sequence[Table], notes: Sequence[str]) -> str:
    blocks = []
    for title, rows, _ in tables:
        tags = ["th"] + ["td"] * (len(rows) - 1)
        body = "".join(
            "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
            for tag, cells in zip(tags, rows, strict=True)
        )
        caption = f"<caption>{html.escape(title)}</caption>" if title else ""
        blocks.append(f"<table>{caption}{body}</table>")
    return "".join(blocks) + f"<p>{'<br>'.join(map(html.escape, notes))}</p>"


TABLE_FORMATS: dict[str, Callable[[Sequence[Table], Sequence[str]], str]] = {
    "markdown": _markdown,
    "latex": _latex,
    "html": _html,
}
