"""A board as text: for the terminal, Markdown, CSV, JSON, LaTeX and HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.arrays import Array
from rankwise.formatting import TABLE_FORMATS, TextTable, count, csv_text, join_tables, one_line
from rankwise.leaderboard.inference.ranks import FEW
from rankwise.leaderboard.judges import Judge
from rankwise.validation import check_option

if TYPE_CHECKING:
    from rankwise.leaderboard.board import Leaderboard
    from rankwise.leaderboard.board_records import LeaderboardRow

FORMATS = (*TABLE_FORMATS, "csv", "json")
WORST_JUDGES = 10
MISSING = "–"
UNIT_OF_EFFECTS = {"margin": "margin", "logit": "log odds", "elo": "Elo points"}
UNIT_OF_RATINGS = {
    "margin": "margins",
    "logit": "log odds",
    "elo": "Elo points, 400 are odds of 10 to 1",
}


def render(board: Leaderboard, format: str) -> str:
    """Return the board in a format, see `Leaderboard.to_text`."""
    check_option("format", format, FORMATS)
    if format == "csv":
        return csv_text(list(board.columns), board.rows)
    if format == "json":
        return json.dumps(board.to_dict(), indent=2, ensure_ascii=False) + "\n"
    return join_tables(tables(board), format)


def tables(board: Leaderboard) -> list[TextTable]:
    """Return the board, and effects and judges if it has any; the last table has the footnotes."""
    text_tables = [_item_table(board)]
    if board.effects:
        text_tables.append(_effect_table(board))
    if board.judges:
        text_tables.append(_judge_table(board))
    # The footnotes are below the last table.
    text_tables[-1] = replace(text_tables[-1], notes=footnotes(board))
    return text_tables


def _item_table(board: Leaderboard) -> TextTable:
    """Return the rows of the board; a line separates items without a rank."""
    header = ["rank", "item", "rating"]
    if board.intervals:
        header += [_interval_header(board), "ranks", "at once", "tier"]
        if board.votes_to_flip_next:
            header.append("to flip")
    header.append("w/t/l")
    if board.n_components > 1:
        header.append("component")
    digits = rating_digits(board.ratings)
    cells = [_item_cells(board, row, digits) for row in board.rows]
    return TextTable(header, separate_unranked(board.rows, cells), names=(1,))


def separate_unranked(rows: Sequence[LeaderboardRow], cells: list[list[str]]) -> list[list[str]]:
    """Insert a line between the ranked items of a component and those without a rank."""
    # Insert a line of dashes after the last ranked item.
    separated = []
    was_ranked = False
    for row, row_cells in zip(rows, cells, strict=True):
        is_ranked = row.rank is not None
        if was_ranked and not is_ranked:
            empty_cells = [""] * (len(row_cells) - 2)
            separated.append([MISSING, MISSING, *empty_cells])
        separated.append(row_cells)
        was_ranked = is_ranked
    return separated


def _interval_header(board: Leaderboard) -> str:
    return f"{100 * board.confidence:g}% interval"


def rating_digits(ratings: Array) -> int:
    """Return the number of decimals that shows four digits of the range of the ratings."""
    # Decimals that show about four digits of the range of the ratings.
    span = float(np.ptp(ratings))
    if span == 0:
        return 3
    order_of_magnitude = math.floor(math.log10(span))
    return min(9, max(0, 3 - order_of_magnitude))


def _item_cells(board: Leaderboard, row: LeaderboardRow, digits: int) -> list[str]:
    """Return the cells of one item."""
    mark = " †" if row.thin else ""  # few data
    cells = [optional_text(row.rank), f"{row.item}{mark}", f"{row.rating:.{digits}f}"]
    if board.intervals:
        interval = MISSING
        if row.low is not None:
            interval = f"{row.low:.{digits}f} … {row.high:.{digits}f}"
        cells += [
            interval,
            rank_range(row.best_rank, row.worst_rank),
            rank_range(row.best_of_all, row.worst_of_all),
            optional_text(row.tier),
        ]
        if board.votes_to_flip_next:
            cells.append(optional_text(board.votes_to_flip_next.get(row.item)))
    cells.append(f"{row.wins}/{row.ties}/{row.losses}")
    if board.n_components > 1:
        cells.append(str(row.component))
    return cells


def optional_text(value: object) -> str:
    """A cell of a value that may be missing."""
    return MISSING if value is None else str(value)


def rank_range(best: int | None, worst: int | None) -> str:
    """A cell of possible ranks."""
    return MISSING if best is None else f"{best}–{worst}"


def _effect_table(board: Leaderboard) -> TextTable:
    title = f"effects on the {UNIT_OF_EFFECTS[board.scale.name]} of the first item"
    header = ["covariate", "effect"]
    if board.intervals:
        header += ["s.e.", _interval_header(board)]
    rows = []
    for effect in board.effects:
        row = [effect.name, f"{effect.value:.4g}"]
        if effect.error is not None:
            row += [f"{effect.error:.2g}", f"{effect.low:.4g} … {effect.high:.4g}"]
        rows.append(row)
    return TextTable(header, rows, title=title)


def _judge_table(board: Leaderboard) -> TextTable:
    """Return the judges with a remark, and those with the lowest agreement."""

    def remarks_first_then_agreement(judge: Judge) -> tuple[bool, float]:
        has_no_remark = judge.remark == ""
        if judge.agreement_high is None:
            return has_no_remark, 1.0
        return has_no_remark, judge.agreement_high

    judges = sorted(board.judges, key=remarks_first_then_agreement)
    n_remarks = sum(judge.remark != "" for judge in judges)
    n_listed = max(WORST_JUDGES, n_remarks)
    rows = [_judge_cells(judge) for judge in judges[:n_listed]]
    interval = f"{100 * board.confidence:g}%"
    header = ["judge", "n", "agrees", interval, "side bias", interval, "weight", ""]
    return TextTable(header, rows, title="judges with remarks, or with the lowest agreement")


def _judge_cells(judge: Judge) -> list[str]:
    def interval(low: float | None, high: float | None) -> str:
        return MISSING if low is None or high is None else f"{low:.2f} … {high:.2f}"

    return [
        str(judge.name),
        str(judge.n),
        MISSING if judge.agreement is None else f"{judge.agreement:.2f}",
        interval(judge.agreement_low, judge.agreement_high),
        MISSING if judge.side_bias is None else f"{judge.side_bias:z.2f}",
        interval(judge.side_low, judge.side_high),
        f"{judge.weight:.2f}",
        judge.remark,
    ]


def footnotes(board: Leaderboard) -> list[str]:
    """Return the meaning of the columns and the source of the numbers, one short line each."""
    lines = [*board.notes, *explanations(board)]
    if board.krippendorff is not None:
        lines.append(
            f"agreement of judges: Krippendorff's α {board.krippendorff:.2f} (1 is perfect, 0 is "
            "chance)"
        )
    return lines


def explanations(board: Leaderboard) -> list[str]:
    """Return the footnotes without the notes and without the agreement of the judges."""
    lines = _column_notes(board)
    unit_note = _unit_note(board)
    if unit_note:
        lines.append(unit_note)
    lines.append(_model_note(board))
    lines += _unexplained_notes(board)
    return lines


def _column_notes(board: Leaderboard) -> list[str]:
    """Return the meaning of the columns."""
    lines = []
    leave_one_out = board.fitted.leave_one_out()
    if board.judges and leave_one_out is not None and leave_one_out.system.exceeds_covariance_limit:
        lines.append("judges are compared with ratings that include their own votes")
    if board.intervals:
        confidence = f"{100 * board.confidence:g}%"
        lines.append(f"ranks: possible ranks, {confidence} for each item; at once: for all items")
        lines.append("tier: items not significantly below the tier's first item; two may differ")
    if board.votes_to_flip_next:
        lines.append("to flip: comparisons to drop to tie with the next item; a–b: between a and b")
    if any(row.thin for row in board.rows):
        lines.append(
            f"† few data: fewer than {FEW} comparisons, or only wins, only ties or only losses"
        )
    if any(row.rank is None for row in board.rows):
        lines.append("below the line: too few comparisons, or none; not ranked")
    return lines


def _unit_note(board: Leaderboard) -> str:
    """Return the unit of the ratings and the anchor; empty for margins without an anchor."""
    scale = board.scale
    if scale.is_anchored is None:
        return "" if scale.name == "margin" else f"ratings: {UNIT_OF_RATINGS[scale.name]}"
    anchor = one_line(board.items[scale.anchor_position])
    return f"ratings: {UNIT_OF_RATINGS[scale.name]}; {anchor} is the base"


def _model_note(board: Leaderboard) -> str:
    """Return the number of comparisons and items, the model and the method of the intervals."""
    rankings = board.comparisons.rankings
    if rankings is None:
        n_comparisons = count(board.n_comparisons, "comparison")
    else:
        n_comparisons = count(rankings.n_rankings, "ranking")
    text = f"{n_comparisons} of {count(len(board), 'item')}{_team_sizes(board)} by {board.model}"
    if board.scales is None:
        text += f", alpha {board.alpha:.3g}"
    if board.intervals:
        text += f"; {board.intervals}"
    if board.n_clusters is not None and board.scales is None:
        text += f" over {count(board.n_clusters, 'cluster')}"
    spread = board.spread
    if spread is not None and spread.is_from_draws:
        text += f" estimated from {spread.root.shape[1]} draws"
    return text


def _team_sizes(board: Leaderboard) -> str:
    """Return the sizes of the teams; empty without teams."""
    teams = board.comparisons.teams
    if teams is None:
        return ""
    smallest = int(teams.sizes.min())
    largest = int(teams.sizes.max())
    if smallest == largest:
        return f" in teams of {largest}"
    return f" in teams of {smallest} to {largest}"


def _unexplained_notes(board: Leaderboard) -> list[str]:
    """Return the share of the outcomes that ratings explain, and the test of circles."""
    # Circles: a beats b, b beats c and c beats a.
    circles = board.circles
    if circles.unexplained is None:
        return []
    explained = max(0.0, 100 - 100 * circles.unexplained)  # percent
    if circles.cyclicity is None:
        return [f"ratings explain {explained:.0f}% of the outcomes"]
    cyclic = f"{100 * circles.cyclicity:.0f}% of mean results"
    lines = [
        f"ratings explain {explained:.0f}% of the outcomes; the rest is ties, chance or circles"
    ]
    if circles.cycle_ratio is None:
        lines.append(f"circles (a beats b, b beats c, c beats a): {cyclic}")
        return lines
    lines.append(
        f"circles (a beats b beats c beats a): {cyclic}, {circles.cycle_ratio:.2f} times chance"
    )
    lines.append(
        f"boards without circles have {circles.chance_low:.2f} … {circles.chance_high:.2f} times "
        "chance in 95% of cases"
    )
    return lines


def leaderboard_document(board: Leaderboard) -> dict[str, Any]:
    """Return everything except the covariance and the model, ready for JSON."""
    anchor = None
    if board.scale.is_anchored is not None:
        anchor = board.items.tolist()[board.scale.anchor_position]
    return {
        "model": board.model,
        "ties": board.ties,
        "alpha": board.alpha,
        "confidence": board.confidence,
        "intervals": board.intervals,
        "n_comparisons": board.n_comparisons,
        "n_components": board.n_components,
        "n_clusters": board.n_clusters,
        **board.circles._asdict(),
        "krippendorff": board.krippendorff,
        "scale": board.scale.name,
        "anchor": anchor,
        "notes": list(board.notes),
        "prior": None if board.prior is None else board.prior._asdict(),
        "effects": [effect._asdict() for effect in board.effects],
        "judges": [judge._asdict() for judge in board.judges],
        "rows": [row._asdict() for row in board.rows],
    }
