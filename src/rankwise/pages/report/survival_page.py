"""The report page of right-censored survival times: concordance, and curves of thirds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.environment import package_versions
from rankwise.formatting import TextTable, count
from rankwise.frames import as_array
from rankwise.graphs import SurvivalGraph
from rankwise.inspection.model_parts import ModelParts, unwrap
from rankwise.metrics import Metric, concordance_difference, kaplan_meier
from rankwise.metrics.registry import MetricName, get_metrics
from rankwise.metrics.survival import SurvivalRanking, read_survival, read_times_and_events
from rankwise.pages.page import Page, assemble
from rankwise.pages.report.html_text import hint, number_text, scrolling_table
from rankwise.pages.report.overview_text import banner
from rankwise.pages.report.report_data import predict_scores
from rankwise.pages.report.report_tables import describe_learner, fact_rows

STYLES = ("page.css", "report/report.css")
SCRIPTS = ("theme.js",)
DEFAULT_METRIC = "concordance"
THIRDS = ("shortest predicted survival", "middle third", "longest predicted survival")

# The drawing of the curves, in units of its viewBox.
WIDTH = 640
HEIGHT = 300
LEFT = 48
RIGHT = 12
TOP = 10
BOTTOM = 34
N_TICKS = 6
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


class SurvivalCurve(NamedTuple):
    """Kaplan–Meier curve of a third of the items.

    Attributes
    ----------
    number : int
        Number of the third, 0 for the lowest scores.
    items : ndarray of int
        Its items.
    times, survival : ndarray of shape (n_times,)
        0 and the times of events, and the share that survives them.
    end : float
        Last time of an item.
    """

    number: int
    items: Indices
    times: Array
    survival: Array
    end: float

    @property
    def median(self) -> float | None:
        """First time that at most half of the items survive; None if more survive."""
        is_at_most_half = self.survival <= 0.5
        if not is_at_most_half.any():
            return None
        return float(self.times[np.argmax(is_at_most_half)])  # the first such time


def survival_ranking(
    model: object, X: object, y: object, groups: ArrayLike | None
) -> SurvivalRanking | None:
    """Survival times and the scores of a model; None if y has other targets.

    Two columns are times and events if the second one has only 0 and 1.
    """
    if isinstance(y, SurvivalGraph):
        groups = y.group_labels[y.groups]
        scores = predict_scores(model, X, groups)
        return read_survival(y, scores, groups=None, sample_weight=None)  # y has the groups
    array = np.asarray(as_array(y))
    if array.ndim == 2:  # columns of times and events, unless it has other numbers
        has_events = np.isin(array[:, 1:], [0, 1]).all()
        if not has_events:
            return None
    if read_times_and_events(array) is None:
        return None
    return read_survival(array, predict_scores(model, X, groups), groups, sample_weight=None)


def survival_report(
    model: object,
    X: object,
    ranking: SurvivalRanking,
    *,
    previous: object,
    metrics: MetricName | Iterable[MetricName] | None,
    title: str | None,
    warning: str,
    confidence: float,
) -> Page:
    """Make a page of the concordance of a model, and of survival curves by predicted score.

    Parameters
    ----------
    model, X, previous, title, warning, confidence
        As in `rankwise.report.report`.
    ranking : SurvivalRanking
        Survival times and predicted scores.
    metrics : str, Metric, iterable of them, or None
        Metrics that accept survival times; None is the concordance.
    """
    graph = ranking.graph
    model_parts = unwrap(model)
    if title is None:
        title = "Survival report" if model_parts.learner is None else f"{model_parts.name} report"
    if not metrics:
        metrics = DEFAULT_METRIC
    cards = [_metric_card(metric, ranking, confidence) for metric in get_metrics(metrics)]
    curves = curves_of_thirds(ranking)
    of_their_group = ""
    if graph.n_groups > 1:
        of_their_group = " of their group"
    learner = " → ".join([*model_parts.step_names, model_parts.name])
    text = assemble(
        "report/survival",
        STYLES,
        SCRIPTS,
        {},
        title=title,
        warning=banner(warning),
        subtitle=escape(f"{learner} on {_describe_items(graph)}"),
        headline=_headline(ranking),
        cards="\n".join(cards),
        previous=_difference_to_previous(ranking, previous, X, confidence),
        inside=of_their_group,
        legend=_legend(),
        chart=draw_curves(curves),
        thirds=_table_of_thirds(curves, graph),
        about=_about(model_parts, graph),
    )
    return Page(text)


def curves_of_thirds(ranking: SurvivalRanking) -> list[SurvivalCurve]:
    """Survival curves of the items in thirds of the predicted score, inside each group."""
    graph = ranking.graph
    timed_items = np.flatnonzero(~np.isnan(graph.time))
    third_of_item = _split_into_thirds(ranking.score[timed_items], graph.groups[timed_items])
    curves = []
    for third in range(len(THIRDS)):
        items = timed_items[third_of_item == third]
        if not len(items):
            continue
        times, survival = kaplan_meier(graph.time[items], graph.event[items])
        last_time = float(graph.time[items].max())
        curves.append(SurvivalCurve(third, items, times, survival, last_time))
    return curves


def _split_into_thirds(score: Array, groups: NDArray[np.intp]) -> Indices:
    """0, 1 or 2 for each item, by its place among the scores of its group."""
    order = np.lexsort((score, groups))  # by group, lowest score first
    group_sizes = np.bincount(groups)
    group_starts = np.cumsum(group_sizes) - group_sizes
    place_in_group = np.empty(len(score))
    place_in_group[order] = np.arange(len(score)) - group_starts[groups[order]]
    # places 0, …, size − 1 become the thirds 0, 1 and 2
    third: Indices = (place_in_group * 3 // group_sizes[groups]).astype(np.intp)
    return third


def _describe_items(graph: SurvivalGraph) -> str:
    text = f"{count(graph.n_items, 'item')} with {count(int(graph.event.sum()), 'event')}"
    if graph.n_groups > 1:
        text += f" in {count(graph.n_groups, 'group')}"
    return text


def _headline(ranking: SurvivalRanking) -> str:
    """The share of correctly ordered pairs of all groups."""
    counts = ranking.count_pairs()
    total = float(counts.total.sum())
    share_in_right_order = 1 - float(counts.errors.sum()) / total  # a tied pair counts half
    pairs = f"{ranking.graph.n_pairs:,} comparable pairs"
    return f"<strong>{share_in_right_order:.1%}</strong> of the {pairs} are in the right order."


def _metric_card(metric: Metric, ranking: SurvivalRanking, confidence: float) -> str:
    mean, low, high = metric.interval(metric.by_group(ranking), confidence)
    interval = "no interval"
    if not np.isnan(low):
        interval = f"{100 * confidence:g}% interval: {number_text(low)} to {number_text(high)}"
    units = "by leaving out items"
    if ranking.graph.n_groups > 1:
        units = "mean over groups"
    return (
        f'<li class="card"><h3>{escape(metric.title)}</h3>'
        f'<p class="value">{number_text(mean)}</p>'
        f"{hint(f'{interval} ({units})')}{hint(metric.meaning)}</li>"
    )


def _difference_to_previous(
    ranking: SurvivalRanking, previous: object, X: object, confidence: float
) -> str:
    """The difference to the previous model, by the jackknife; empty without one."""
    if previous is None:
        return ""
    graph = ranking.graph
    scores = predict_scores(previous, X, graph.group_labels[graph.groups])
    result = concordance_difference(graph, ranking.score, scores, confidence=confidence)
    interval = f"{100 * confidence:g}%: {result.low:+.3f} to {result.high:+.3f}"
    return hint(
        f"Concordance {result.difference:+.3f} against the previous model ({interval}, "
        f"p = {result.pvalue:.2g})."
    )


def _legend() -> str:
    entries = ""
    for third, name in enumerate(THIRDS):
        entries += f'<span><i class="third-{third}"></i>{name}</span>'
    return entries


def draw_curves(curves: Sequence[SurvivalCurve]) -> str:
    """The curves as a drawing (SVG)."""
    scale = _Scale(max(curve.end for curve in curves))
    grid_lines = [_grid_line(scale.y(share), f"{share:.0%}") for share in SHARES]
    time_labels = []
    for time in round_ticks(scale.end):
        x = f"{scale.x(time):.1f}"
        time_labels.append(f'<text x="{x}" y="{HEIGHT - 12}" text-anchor="middle">{time:g}</text>')
    paths = [_draw_steps(curve, scale) for curve in curves]
    label = "Kaplan–Meier curves of the items in thirds of the predicted score"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label="{label}">'
        + "".join([*grid_lines, *time_labels, *paths])
        + "</svg>"
    )


class _Scale(NamedTuple):
    """Places of times and shares in the drawing."""

    end: float

    def x(self, time: float) -> float:
        end = self.end
        if end == 0.0:  # all times are 0
            end = 1.0
        return LEFT + (WIDTH - LEFT - RIGHT) * time / end

    def y(self, share: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def _grid_line(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    )


def _draw_steps(curve: SurvivalCurve, scale: _Scale) -> str:
    """Steps at the times of events, up to the last time of an item."""
    # Commands of SVG: M moves, H draws a horizontal line to x, V a vertical line to y.
    commands = f"M{scale.x(0):.1f},{scale.y(1):.1f}"
    for time, share in zip(curve.times[1:], curve.survival[1:], strict=True):
        commands += f"H{scale.x(time):.1f}V{scale.y(share):.1f}"
    commands += f"H{scale.x(curve.end):.1f}"
    return f'<path class="curve third-{curve.number}" d="{commands}"/>'


def round_ticks(end: float) -> list[float]:
    """At most six round numbers from 0 to `end`."""
    if end <= 0:
        return [0.0]
    power_of_ten = 10.0 ** np.floor(np.log10(end))  # `end` is 1 to 10 times as large
    round_steps = [factor * power_of_ten for factor in (0.2, 0.5, 1.0, 2.0)]
    step = next(step for step in round_steps if end / step < N_TICKS)  # the smallest that fits
    n_steps = int(end / step)
    return [step * number for number in range(n_steps + 1)]


def _table_of_thirds(curves: Sequence[SurvivalCurve], graph: SurvivalGraph) -> str:
    rows = []
    for curve in curves:
        median = "not reached"
        if curve.median is not None:
            median = f"{curve.median:g}"
        n_events = int(graph.event[curve.items].sum())
        rows.append([THIRDS[curve.number], f"{len(curve.items):,}", f"{n_events:,}", median])
    table = TextTable(["Third", "Items", "Events", "Median survival"], rows, names=(0,))
    return scrolling_table(table, "thirds", "Table of thirds")


def _about(model_parts: ModelParts, graph: SurvivalGraph) -> str:
    """Model, data and versions as rows of a table."""
    data = {
        "items": f"{graph.n_items:,}",
        "events": f"{int(graph.event.sum()):,}",
        "groups": f"{graph.n_groups:,}" if graph.n_groups > 1 else "one list",
        "comparable pairs": f"{graph.n_pairs:,}",
        "times": f"{np.nanmin(graph.time):g} to {np.nanmax(graph.time):g}",
    }
    return fact_rows({**describe_learner(model_parts), **data, **package_versions()})
