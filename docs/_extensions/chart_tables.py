"""Charts of the widest tables, drawn from the tables themselves when the site is built."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent.parent
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777", "#222222"]
MARKS = "osD^vPX*"


def read_table(page: str, first: str) -> list[list[str]]:
    """Cells of the table of a page whose head begins so, without the line below the head."""
    rest = (DOCS / page).read_text(encoding="utf-8").split(first, 1)[1]
    lines = takewhile(lambda line: line.startswith("|"), (first + rest).splitlines())
    rows = [line.strip("| ").split("|") for line in lines]
    return [[cell.strip(" *`") for cell in row] for row in rows if "---" not in row[0]]


def number(cell: str) -> float:
    """The number that a cell begins with, NaN for none."""
    found = re.match(r"[\d.]+", cell)
    return float(found[0]) if found else float("nan")


def draw(path: Path, rows: list[tuple[str, list[float]]], places: list[str], label: str) -> None:
    """A line for each place, a mark for each row."""
    figure, ax = plt.subplots(figsize=(8.5, 1 + 0.24 * len(places)), layout="constrained")
    for k, (name, values) in enumerate(rows):
        ax.plot(values, range(len(places)), MARKS[k % 8], color=COLORS[k % 8], label=name, alpha=0.85)
    ax.set_yticks(range(len(places)), places)
    ax.invert_yaxis()
    ax.grid(axis="x", alpha=0.3)
    ax.set(xlabel=label)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_all(app) -> None:
    """AutoRanker beside boosted trees, and label ranking."""
    head, ours, *others = read_table("auto_ranker.md", "| | MQ2008")
    peers = [row for row in others if row[0] and "seconds" not in row[0] and "those of" not in row[0]]
    rows = [
        (row[0], [100 * (number(b) / number(a) - 1) for a, b in zip(ours[1:], row[1:], strict=True)])
        for row in peers
    ]
    label = "wrong pairs more than AutoRanker has, in percent (right of 0: AutoRanker is ahead)"
    draw(DOCS / "_static" / "chart_trees.png", rows, head[-5:], label)
    head, *sets = read_table("measured.md", "| set | instances |")
    rows = [(name, [number(row[k]) for row in sets]) for k, name in enumerate(head) if 3 <= k <= 6]
    draw(DOCS / "_static" / "chart_labels.png", rows, [row[0] for row in sets], "Kendall's tau")


def setup(app) -> None:
    """Draw before the pages are read."""
    app.connect("builder-inited", draw_all)
