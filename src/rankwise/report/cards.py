"""One card for each metric: what it is, its mean with an interval, and what it must beat."""

from __future__ import annotations

from html import escape

import numpy as np

from rankwise.arrays import Array
from rankwise.model_selection import compare
from rankwise.report.group_metrics import MetricResult
from rankwise.report.rivals import Rival
from rankwise.report.scored_items import ScoredItems

MARKS = {"random": "○", "feature": "◇", "previous": "□"}


def metric_cards(
    results: list[MetricResult], rivals: list[Rival], scored: ScoredItems, confidence: float
) -> str:
    """All cards."""
    return "\n".join(_card(result, rivals, scored, confidence) for result in results)


def _card(result: MetricResult, rivals: list[Rival], scored: ScoredItems, confidence: float) -> str:
    if result.refusal:
        return (
            f'<li class="card"><h3>{escape(result.metric.title)}</h3><p class="value">–</p>'
            f'<p class="hint">{escape(result.refusal)}</p></li>'
        )
    direction = "Higher is better" if result.metric.greater_is_better else "Lower is better"
    meaning = f"{escape(result.metric.meaning)} {direction}{_undefined(result)}."
    value = "–" if np.isnan(result.mean) else number(result.mean)
    found = [(rival, *rival.measure(scored, result.metric)) for rival in rivals]
    known = [each for each in found if not np.isnan(each[1])]
    lines = [
        f"<h3>{escape(result.metric.title)}</h3>",
        f'<p class="value">{value}</p>',
        f'<p class="hint">{_interval_text(result, confidence)}</p>',
        _drawing(result, [(rival.kind, mean) for rival, mean, _ in known]),
        _rival_list(known),
        _against_previous(result, known, confidence),
        f'<p class="hint">{meaning}</p>',
    ]
    return f'<li class="card">{"".join(lines)}</li>'


def _rival_list(known: list[tuple[Rival, float, Array]]) -> str:
    rows = "".join(
        f'<li><span aria-hidden="true">{MARKS[rival.kind]}</span> '
        f"<span>{_name(rival)}</span><b>{number(mean)}</b></li>"
        for rival, mean, _ in known
    )
    return f'<ul class="rivals">{rows}</ul>' if rows else ""


def _name(rival: Rival) -> str:
    if rival.kind == "feature":
        return f"best single feature: <bdi>{escape(rival.name)}</bdi> "
    return f"{escape(rival.name)} "


def _against_previous(
    result: MetricResult, known: list[tuple[Rival, float, Array]], confidence: float
) -> str:
    """The difference to the previous model, with the interval of paired groups."""
    values = [found for rival, _, found in known if rival.kind == "previous"]
    if not values:
        return ""
    row = compare(
        {"this": result.values, "previous": values[0]},
        confidence=confidence,
        greater_is_better=result.metric.greater_is_better,
    ).rows[0]
    sure = (
        ""
        if np.isnan(row.low)
        else f" ({100 * confidence:g}%: {_signed(row.low)} to {_signed(row.high)})"
    )
    return f'<p class="hint">{_signed(row.difference)} against the previous model{sure}</p>'


def _interval_text(result: MetricResult, confidence: float) -> str:
    if not np.isnan(result.low):
        return f"{100 * confidence:g}%: {number(result.low)} to {number(result.high)}"
    n_defined = len(result.values) - result.n_undefined
    if n_defined == 0:
        return "no group has a value"
    if n_defined > 1:
        return f"the same in all {n_defined:,} groups: no interval"
    return "one list: no interval" if len(result.values) == 1 else "one group: no interval"


def _drawing(result: MetricResult, rivals: list[tuple[str, float]]) -> str:
    """A line from the worst to the best possible value; on it the interval, the mean, rivals."""
    if np.isnan(result.mean):
        return ""
    start = result.metric.lowest

    def place(value: float) -> float:
        return round(4 + 192 * (value - start) / (1 - start), 1)

    def mark(kind: str, value: float) -> str:
        x = place(value)
        if kind == "random":
            return f'<circle class="rival" cx="{x}" cy="7" r="3.5"/>'
        if kind == "feature":
            return f'<path class="rival" d="M{x - 4.5:.1f},7l4.5,-4.5l4.5,4.5l-4.5,4.5z"/>'
        return f'<rect class="rival" x="{x - 3.5:.1f}" y="3.5" width="7" height="7"/>'

    low = result.mean if np.isnan(result.low) else result.low
    high = result.mean if np.isnan(result.high) else result.high
    label = f"{result.metric.title} {number(result.mean)} on a scale from {start:g} to 1"
    return (
        f'<svg viewBox="0 0 200 14" role="img" aria-label="{escape(label)}">'
        '<line class="rail" x1="4" y1="7" x2="196" y2="7"/>'
        f'<line class="whisker" x1="{place(low)}" y1="7" x2="{place(high)}" y2="7"/>'
        f"{''.join(mark(*rival) for rival in rivals)}"
        f'<circle class="dot" cx="{place(result.mean)}" cy="7" r="4.5"/></svg>'
        f'<p class="ends" aria-hidden="true"><span>{"−1" if start else "0"}</span>'
        "<span>1</span></p>"
    )


def _undefined(result: MetricResult) -> str:
    if not result.n_undefined:
        return ""
    return escape(
        f"; undefined in {result.n_undefined:,} of {count(len(result.values), 'group')}, "
        f"it needs {result.metric.core.needs}"
    )


def number(value: float) -> str:
    """Three decimals and a minus that is as wide as a plus; no −0."""
    return f"{value:z.3f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+z.3f}".replace("-", "−")


def count(n: int, what: str) -> str:
    """As people say it: "1 item", "2,000 items"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
