"""What the items without a true score could do to a metric."""

from __future__ import annotations

from html import escape

import numpy as np

from rankwise.formatting import count
from rankwise.metrics import Bounds, Metric
from rankwise.metrics.run_metrics import RunMetric
from rankwise.metrics.unjudged import bounds_of_runs
from rankwise.pages.page_values import as_text
from rankwise.pages.report.html_text import hint, number_text
from rankwise.pages.report.report_data import AllRows, ScoredItems

BOUNDED = ("ndcg", "p", "rbp", "mrr", "success", "map")
DEFAULT_GAIN = "exponential"  # of `rankwise.metrics.ndcg`
DEFAULT_PERSISTENCE = 0.8  # of `rankwise.metrics.rank_biased_precision`
MAX_NEXT = 3  # items to judge next
OPTIONS = {"k", "gain", "relevant", "p"}


def unjudged_hint(metric: Metric, scored: ScoredItems) -> str:
    """Bounds of a metric over all grades of the unjudged items; "" if there are none.

    Parameters
    ----------
    metric : Metric
        A metric of the page.
    scored : ScoredItems
        The items, with `all_rows` if some have no true score.
    """
    if scored.all_rows is None:
        return ""
    bounds = unjudged_bounds_of_items(metric, scored.all_rows)
    if bounds is None or bounds.n_unjudged == 0:
        return ""
    items = count(bounds.n_unjudged, "item")
    range_text = hint(
        f"{number_text(bounds.low)} to {number_text(bounds.high)} over all grades of {items} "
        "without a true score, if these items stay in the lists (groups without a relevant item "
        "count 0)"
    )
    return range_text + _next_judgments(bounds, scored)


def _next_judgments(bounds: Bounds, scored: ScoredItems) -> str:
    """Name the items whose true scores would change the metric most."""
    assert scored.all_rows is not None
    names = []
    for query, document, _ in bounds.next_judgments(MAX_NEXT):
        name = scored.name_of_row(int(document))
        if not scored.is_one_list:
            group = scored.all_rows.groups.labels[int(query)]
            name += f" (group {as_text(group)})"
        names.append(f"<bdi>{escape(name)}</bdi>")
    if not names:
        return ""
    return f'<p class="hint">judge next: {", ".join(names)}</p>'


def unjudged_bounds_of_items(metric: Metric, rows: AllRows) -> Bounds | None:
    """Bounds of the mean over groups; None if the metric or the data have none.

    True scores must be whole grades, and predicted scores without ties, since the bounds are of
    ordered lists.
    """
    run_metric = _as_run_metric(metric)
    grades = rows.y[~np.isnan(rows.y)]
    are_grades = bool((grades >= 0.0).all() and (grades % 1.0 == 0.0).all())
    if run_metric is None or not are_grades:
        return None
    judgments: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for group in range(rows.groups.n_groups):
        items = np.flatnonzero(rows.groups.codes == group)
        if len(np.unique(rows.scores[items])) < len(items):
            return None
        best_first = items[np.argsort(-rows.scores[items])].tolist()
        n_items = len(best_first)
        run[str(group)] = {str(item): float(n_items - k) for k, item in enumerate(best_first)}
        judged = items[~np.isnan(rows.y[items])].tolist()
        judgments[str(group)] = {str(item): float(rows.y[item]) for item in judged}
    return bounds_of_runs(judgments, [run], run_metric)


def _as_run_metric(metric: Metric) -> RunMetric | None:
    """The metric of a list for a metric of arrays; None if there is none with bounds."""
    kind = metric.name.partition("(")[0].partition("@")[0]
    options = dict(metric.options)
    if kind not in BOUNDED or not options.keys() <= OPTIONS:
        return None
    level = options.get("relevant") or 1
    if level % 1 != 0 or level < 1:
        return None
    return RunMetric(
        kind,
        options.get("k"),
        int(level),
        gain=options.get("gain", DEFAULT_GAIN),
        persistence=options.get("p", DEFAULT_PERSISTENCE),
    )
