"""Three charts of a run: ratios and their bars, boards beside others, and how time grows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

Record = dict[str, Any]
OURS = "#0072B2"
THEIRS = "#999999"
GOOD = "#009E73"
BAD = "#D55E00"


def draw_charts(records: list[Record], folder: Path) -> None:
    """PNG files in this folder; a chart without rows is left as it is."""
    import matplotlib as mpl

    mpl.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    draw_ratios(records, folder / "ratios.png")
    for section, name in (("Boards", "boards"), ("Beside boosted trees", "trees")):
        chosen = [record for record in records if record["section"] == section]
        if chosen:
            draw_seconds(section, chosen, folder / f"{name}.png")


def draw_ratios(records: list[Record], path: Path) -> None:
    """Every ratio as a share of its bar: left of the line is met."""
    from matplotlib import pyplot as plt

    records = [record for record in records if math.isfinite(record["bar"])]
    records = sorted(records, key=lambda record: record["ratio"] / record["bar"], reverse=True)
    shares = [max(record["ratio"] / record["bar"], 1e-3) for record in records]
    figure, axes = plt.subplots(figsize=(9, 0.24 * len(records) + 1), layout="constrained")
    axes.scatter(
        shares, range(len(records)), c=[GOOD if share <= 1 else BAD for share in shares], s=28
    )
    axes.axvline(1, color="#444444", linewidth=1)
    axes.set_xscale("log")
    axes.margins(y=0.01)
    axes.set_yticks(
        range(len(records)),
        [f"{record['work']} / {record['against']}" for record in records],
        fontsize=7,
    )
    axes.set_xlabel("ratio as a share of its bar (left of 1: met)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_seconds(title: str, records: list[Record], path: Path) -> None:
    """Ours and theirs side by side, on a log scale."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 0.55 * len(records) + 1), layout="constrained")
    for k, record in enumerate(records):
        pair = ((0.18, "seconds", OURS), (-0.18, "seconds_against", THEIRS))
        for offset, name, color in pair:
            axes.barh(k + offset, record[name], height=0.34, color=color)
            text = f" {record[name]:.2g} {record['unit']}"
            axes.text(record[name], k + offset, text, va="center", fontsize=8)
    names = [f"{record['work']}\n{record['against']}" for record in records]
    axes.set_yticks(range(len(records)), names, fontsize=7)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("seconds; blue: rankwise, gray: the other")
    axes.set_title(title)
    figure.savefig(path, dpi=120)
    plt.close(figure)
