"""A board as text: for the terminal, Markdown, CSV, JSON, LaTeX and HTML."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.formatting import TABLE_FORMATS, TextTable, csv_text, join_tables, one_line
from rankwise.leaderboard.inference.ranks import FEW
from rankwise.validation import check_option

if TYPE_CHECKING:
    from rankwise.leaderboard.board import Leaderboard, LeaderboardRow

FORMATS = (*TABLE_FORMATS, "csv", "json")
WORST_JUDGES = 10


def render(board: Leaderboard, format: str) -> str:
    """The board in a format, as `Leaderboard.to_text` has it."""
    check_option("format", format, FORMATS)
    if format == "csv":
        return csv_text(list(board.columns), board.rows)
    if format == "json":
        return json.dumps(board.to_dict(), indent=2, ensure_ascii=False) + "\n"
    return join_tables(tables(board), format)


def tables(board: Leaderboard) -> list[TextTable]:
    """The board, and effects and judges if there are any; the last table has the footnotes."""
    largest = float(np.ptp(board.ratings)) if len(board) > 1 else 0.0
    digits = min(9, max(0, 3 - math.floor(math.log10(largest)))) if largest > 0 else 3
    header = ["rank", "item", "rating"]
    if board.intervals:
        header += [f"{100 * board.confidence:g}% interval", "ranks", "at once", "tier"]
        header += ["holds by"] if board.holds_by else []
    header += ["w/t/l"] + (["component"] if board.n_components > 1 else [])
    rows, was_ranked = [], False
    for row in board.rows:
        if row.rank is None and was_ranked:
            rows.append(["–"] * 2 + [""] * (len(header) - 2))
        was_ranked = row.rank is not None
        rows.append(_cells(board, row, digits))
    shown = [TextTable(header, rows, names=(1,))]
    if board.effects:
        shown.append(_effects(board))
    if board.judges:
        shown.append(_judges(board))
    shown[-1] = replace(shown[-1], notes=footnotes(board))
    return shown


def _cells(board: Leaderboard, row: LeaderboardRow, digits: int) -> list[str]:
    def span(best: int | None, worst: int | None) -> str:
        return "–" if best is None else f"{best}–{worst}"

    rank = "–" if row.rank is None else str(row.rank)
    cells = [rank, f"{row.item}{' †' if row.thin else ''}", f"{row.rating:.{digits}f}"]
    if board.intervals:
        low, high = row.low, row.high
        cells += ["–" if low is None else f"{low:.{digits}f} … {high:.{digits}f}"]
        cells += [span(row.best_rank, row.worst_rank), span(row.best_of_all, row.worst_of_all)]
        cells += ["–" if row.tier is None else str(row.tier)]
        cells += [str(board.holds_by.get(row.item, "–"))] if board.holds_by else []
    cells += [f"{row.wins}/{row.ties}/{row.losses}"]
    return cells + ([str(row.component)] if board.n_components > 1 else [])


def _effects(board: Leaderboard) -> TextTable:
    unit = {"margin": "margin", "logit": "log odds", "elo": "Elo points"}[board.scale.name]
    title = f"effects on the {unit} of the first item"
    header, rows = ["covariate", "effect"], [[e.name, f"{e.value:.4g}"] for e in board.effects]
    if board.effects[0].error is not None:
        header += ["s.e.", f"{100 * board.confidence:g}% interval"]
        for row, e in zip(rows, board.effects, strict=True):
            row += [f"{e.error:.2g}", f"{e.low:.4g} … {e.high:.4g}"]
    return TextTable(header, rows, title=title)


def _judges(board: Leaderboard) -> TextTable:
    def span(low: float | None, high: float | None) -> str:
        return "–" if low is None or high is None else f"{low:.2f} … {high:.2f}"

    def unlikely(judge: Any) -> tuple[bool, float]:
        return not judge.remark, 1.0 if judge.agreement_high is None else judge.agreement_high

    shown = sorted(board.judges, key=unlikely)
    n = max(WORST_JUDGES, sum(bool(judge.remark) for judge in shown))
    rows = [
        [
            str(j.name), str(j.n), "–" if j.agreement is None else f"{j.agreement:.2f}",
            span(j.agreement_low, j.agreement_high), f"{j.side_bias:.2f}",
            span(j.side_low, j.side_high), f"{j.weight:.2f}", j.remark,
        ]
        for j in shown[:n]
    ]  # fmt: skip
    interval = f"{100 * board.confidence:g}%"
    header = ["judge", "n", "agrees", interval, "side bias", interval, "weight", ""]
    return TextTable(header, rows, title="judges who stand out, or agree least")


def footnotes(board: Leaderboard) -> list[str]:
    """What the columns mean and where the numbers come from, one short line each."""
    lines = list(board.notes)
    if board.judges and board.fitted.system.is_huge:
        lines.append("judges are compared with ratings with their own votes in")
    sure = f"{100 * board.confidence:g}"
    if board.intervals:
        lines.append(f"ranks: those it may have, {sure}% sure for each item; at once: for all")
        lines.append("tier: items not surely below its first one, though two of them may differ")
    if board.holds_by:
        lines.append(
            "holds by: comparisons to leave out until the next is level; a–b: between a and b"
        )
    rows = board.rows
    if any(row.thin for row in rows):
        lines.append(f"† thin: fewer than {FEW} comparisons, or all of them ended alike")
    if any(row.rank is None for row in rows):
        lines.append("below the line: too few comparisons, or none; not ranked")
    scale = board.scale
    unit = {"margin": "", "logit": "log odds", "elo": "Elo points, 400 are odds of 10 to 1"}
    anchor = "" if scale.members is None else f"; {one_line(board.items[scale.at])} is the base"
    if anchor or unit[scale.name]:
        lines.append(f"ratings: {unit[scale.name] or 'margins'}{anchor}")
    rankings, spread = board.comparisons.rankings, board.spread
    made = f"{board.n_comparisons} comparisons"
    if rankings is not None:
        made = f"{rankings.n_rankings} rankings"
    made += f" of {len(board)} items by {board.model}"
    if board.scales is None:
        made += f", alpha {board.alpha:.3g}"
    if board.intervals:
        made += f"; {board.intervals}"
    if board.n_clusters is not None and board.scales is None:
        made += f" over {board.n_clusters} clusters"
    if spread is not None and not spread.is_exact:
        made += f" estimated from {spread.root.shape[1]} draws"
    lines.append(made)
    lines += _unexplained(board)
    if board.krippendorff is not None:
        lines.append(
            f"judges agree: Krippendorff's α {board.krippendorff:.2f} (1 is always, 0 is chance)"
        )
    return lines


def _unexplained(board: Leaderboard) -> list[str]:
    """How much of the outcomes the ratings explain, and whether the rest is more than chance."""
    circles = board.circles
    explained = max(0.0, 100 - 100 * circles.unexplained)
    lines = [
        f"ratings explain {explained:.0f}% of the outcomes; the rest is ties, chance or circles"
    ]
    cyclic = f"{100 * circles.cyclicity:.0f}% of mean results"
    if circles.cycle_ratio is None:
        return [*lines, f"circles (a beats b, b beats c, c beats a): {cyclic}"]
    low, high = circles.chance_low, circles.chance_high
    return [
        *lines,
        f"circles (a beats b beats c beats a): {cyclic}, {circles.cycle_ratio:.2f} times chance",
        f"boards without circles have {low:.2f} … {high:.2f} times chance in 95% of cases",
    ]
