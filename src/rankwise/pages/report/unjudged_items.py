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
    range_hint = hint(
        f"{number_text(bounds.low)} to {number_text(bounds.high)} over all grades of {items} "
        "without a true score, if these items stay in the lists (groups without a relevant item "
        "count 0)"
    )
    return range_hint + _next_judgments_hint(bounds, scored)


def _next_judgments_hint(bounds: Bounds, scored: ScoredItems) -> str:
    """Name the items whose true scores would change the metric most."""
    assert scored.all_rows is not None
    names = []
    for query, document, _ in bounds.next_judgments(MAX_NEXT):  # queries are groups, documents rows
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
    judged_y = rows.y[~np.isnan(rows.y)]
    are_whole_numbers = bool((judged_y >= 0.0).all() and (judged_y % 1.0 == 0.0).all())
    if run_metric is None or not are_whole_numbers:
        return None

    # Groups become queries and items documents, with their ranks from below as scores.
    judgments: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for group in range(rows.groups.n_groups):
        items = np.flatnonzero(rows.groups.codes == group)
        has_ties = len(np.unique(rows.scores[items])) < len(items)
        if has_ties:  # the bounds are for one order of the items
            return None
        worst_first = items[np.argsort(-rows.scores[items])][::-1].tolist()
        run[str(group)] = {str(item): float(rank) for rank, item in enumerate(worst_first, 1)}
        judged_items = items[~np.isnan(rows.y[items])].tolist()
        judgments[str(group)] = {str(item): float(rows.y[item]) for item in judged_items}
    return bounds_of_runs(judgments, [run], run_metric)


def _as_run_metric(metric: Metric) -> RunMetric | None:
    """The metric of a list for a metric of arrays; None if there is none with bounds."""
    name_and_cutoff, _, _ = metric.name.partition("(")  # of "ndcg@10(gain=linear)"
    kind, _, _ = name_and_cutoff.partition("@")
    options = dict(metric.options)
    has_other_options = not options.keys() <= OPTIONS
    if kind not in BOUNDED or has_other_options:
        return None
    lowest_relevant_grade = options.get("relevant") or 1
    is_grade = lowest_relevant_grade % 1 == 0 and lowest_relevant_grade >= 1
    if not is_grade:
        return None
    return RunMetric(
        kind,
        options.get("k"),
        int(lowest_relevant_grade),
        gain=options.get("gain", DEFAULT_GAIN),
        persistence=options.get("p", DEFAULT_PERSISTENCE),
    )
