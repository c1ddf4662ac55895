"""The cards of metrics: value, interval and baselines."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np

from rankwise.formatting import count
from rankwise.metrics.evaluation import FEW_GROUPS
from rankwise.metrics.shared_items import ComparedItems
from rankwise.model_selection.comparison import ComparisonSettings, compare_values
from rankwise.model_selection.comparison_input import PairedValues
from rankwise.pages.report.baselines import Baseline, BaselineKind, BaselineResult
from rankwise.pages.report.html_text import hint, number_text
from rankwise.pages.report.metric_results import MetricResult
from rankwise.pages.report.report_data import ScoredItems
from rankwise.pages.report.unjudged_items import unjudged_hint

SYMBOLS = {BaselineKind.RANDOM: "○", BaselineKind.FEATURE: "◇", BaselineKind.PREVIOUS: "□"}

# The drawing of a scale, in units of its viewBox.
WIDTH = 200
HEIGHT = 16
MARGIN = 4
MIDDLE = 8


class MeasuredBaseline(NamedTuple):
    """A baseline and its value of one metric."""

    baseline: Baseline
    result: BaselineResult


def metric_cards(
    results: list[MetricResult],
    baselines: list[Baseline],
    scored: ScoredItems,
    confidence: float,
) -> str:
    """A card for each metric."""
    cards = []
    for result in results:
        if result.refusal:
            body = f'<p class="value">–</p>{hint(result.refusal)}'
        else:
            measured = _measure_baselines(baselines, scored, result)
            body = _card_body(result, measured, scored, confidence)
            body += unjudged_hint(result.metric, scored)
        cards.append(f'<li class="card"><h3>{escape(result.metric.title)}</h3>{body}</li>')
    return "\n".join(cards)


def _measure_baselines(
    baselines: list[Baseline], scored: ScoredItems, result: MetricResult
) -> list[MeasuredBaseline]:
    """The baselines for which the metric has a value."""
    measured = []
    for baseline in baselines:
        baseline_result = baseline.measure(scored, result.metric)
        if not np.isnan(baseline_result.mean):
            measured.append(MeasuredBaseline(baseline, baseline_result))
    return measured


def _card_body(
    result: MetricResult,
    measured: list[MeasuredBaseline],
    scored: ScoredItems,
    confidence: float,
) -> str:
    value = "–"
    drawing = ""
    if result.has_mean:
        value = number_text(result.mean)
        drawing = _draw_scale(result, measured)
    metric = result.metric
    direction = "Lower is better"
    if metric.greater_is_better:
        direction = "Higher is better"
    return "".join(
        [
            f'<p class="value">{value}</p>',
            hint(_interval_text(result, confidence)),
            drawing,
            _list_baselines(measured),
            _difference_to_previous(result, measured, scored.compared_items, confidence),
            hint(f"{metric.meaning} {direction}{_text_of_undefined_groups(result)}."),
        ]
    )


def _list_baselines(measured: list[MeasuredBaseline]) -> str:
    if not measured:
        return ""
    rows = ""
    for baseline, result in measured:
        name = escape(baseline.name)
        if baseline.kind is BaselineKind.FEATURE:
            name = f"best single feature: <bdi>{name}</bdi>"
        symbol = f'<span aria-hidden="true">{SYMBOLS[baseline.kind]}</span>'
        rows += f"<li>{symbol} <span>{name} </span><b>{number_text(result.mean)}</b></li>"
    return f'<ul class="baselines">{rows}</ul>'


def _difference_to_previous(
    result: MetricResult,
    measured: list[MeasuredBaseline],
    compared: ComparedItems | None,
    confidence: float,
) -> str:
    """The difference to the previous model, with the interval of paired groups."""
    results_of_previous = []
    for baseline, baseline_result in measured:
        if baseline.kind is BaselineKind.PREVIOUS:
            results_of_previous.append(baseline_result)
    if not results_of_previous:
        return ""
    (previous_result,) = results_of_previous

    # `PairedValues` has an axis of seeds, here of length 1. `complete` leaves out groups in which
    # one of the two values is NaN.
    values = {"this": result.values[None], "previous": previous_result.values[None]}
    paired = PairedValues(values, labels=None, clusters=None, items=compared).complete()
    settings = ComparisonSettings(result.metric.greater_is_better, confidence=confidence)
    (comparison,) = compare_values(paired, settings).rows
    interval = ""
    if not np.isnan(comparison.low):
        low = _signed_number(comparison.low)
        high = _signed_number(comparison.high)
        interval = f" ({100 * confidence:g}%: {low} to {high})"
    difference = _signed_number(comparison.difference)
    return hint(f"{difference} against the previous model{interval}")


def _signed_number(value: float) -> str:
    text = f"{value:+z.3f}"  # z: no minus before 0.000
    return text.replace("-", "−")


def _interval_text(result: MetricResult, confidence: float) -> str:
    n_groups = len(result.values)
    n_defined = n_groups - result.n_undefined
    if not np.isnan(result.low):
        caveat = ""
        if 1 < n_defined < FEW_GROUPS:
            caveat = f", a rough estimate from {n_defined} groups"
        interval = f"{number_text(result.low)} to {number_text(result.high)}"
        return f"{100 * confidence:g}% interval: {interval}{caveat}"
    if n_defined == 0:
        return "undefined in all groups"
    if n_defined > 1:
        return f"the same in all {n_defined:,} groups: no interval"
    if n_groups == 1:
        return "one list: no interval"
    return "one group: no interval"


def _draw_scale(result: MetricResult, measured: Iterable[MeasuredBaseline]) -> str:
    """The range of the metric as a line, with the interval, the mean and the baselines."""
    start, end = result.scale

    def x_of(value: float) -> float:
        # Baselines may be outside of the scale if the metric is unbounded.
        share_of_scale = float(np.clip((value - start) / (end - start), 0, 1))
        return round(MARGIN + (WIDTH - 2 * MARGIN) * share_of_scale, 1)

    baselines = "".join(
        _draw_baseline(baseline.kind, x_of(baseline_result.mean))
        for baseline, baseline_result in measured
    )
    interval = ""
    if not np.isnan(result.low):
        left = x_of(result.low)
        width = max(x_of(result.high) - left, 1.0)  # narrower ones are invisible
        interval = f'<rect class="interval" x="{left}" y="4" width="{width:.1f}" height="8"/>'
    x = x_of(result.mean)
    title = result.metric.title
    label = f"{title} {number_text(result.mean)} on a scale from {start:.4g} to {end:.4g}"
    ends = f"<span>{_scale_end(start)}</span><span>{_scale_end(end)}</span>"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<line class="rail" x1="{MARGIN}" y1="{MIDDLE}" x2="{WIDTH - MARGIN}" y2="{MIDDLE}"/>'
        f"{interval}{baselines}"
        f'<line class="mean" x1="{x}" y1="1" x2="{x}" y2="{HEIGHT - 1}"/></svg>'
        f'<p class="ends" aria-hidden="true">{ends}</p>'
    )


def _draw_baseline(kind: BaselineKind, x: float) -> str:
    """The symbol of a baseline: a circle, a diamond or a square."""
    if kind is BaselineKind.RANDOM:
        return f'<circle class="baseline" cx="{x}" cy="{MIDDLE}" r="3.5"/>'
    if kind is BaselineKind.FEATURE:
        corners = "l4.5,-4.5l4.5,4.5l-4.5,4.5z"
        return f'<path class="baseline" d="M{x - 4.5:.1f},{MIDDLE}{corners}"/>'
    assert kind is BaselineKind.PREVIOUS
    return f'<rect class="baseline" x="{x - 3.5:.1f}" y="{MIDDLE - 3.5}" width="7" height="7"/>'


def _scale_end(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _text_of_undefined_groups(result: MetricResult) -> str:
    if not result.n_undefined:
        return ""
    n_groups = count(len(result.values), "group")
    # The card is for readers of a page, who know the target as the true score
    needs = result.metric.needs.removesuffix(" (and positive weights)")
    needs = needs.replace("different y", "different true scores").replace("y > 0", "true score > 0")
    return f"; undefined in {result.n_undefined:,} of {n_groups}: it requires {needs}"
