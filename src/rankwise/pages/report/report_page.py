"""The report page: how well a model orders a data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.environment import describe_environment
from rankwise.metrics import Metric
from rankwise.pages.page import Page, assemble
from rankwise.pages.report import report_sections, report_text
from rankwise.pages.report.baselines import find_baselines
from rankwise.pages.report.report_data import make_report_model

SCRIPTS = ("charts.js", "tables.js", "theme.js", "report/items.js", "report/report.js")


def report(
    model: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    ids: Sequence[Any] | None = None,
    feature_names: Sequence[Any] | None = None,
    previous: Any = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    title: str | None = None,
    warning: str = "",
    confidence: float = DEFAULT_CONFIDENCE,
    random_state: int = 0,
) -> Page:
    """Make a page that shows how well a model orders a data set.

    It shows metrics with intervals and what they must beat (a random order, the best single
    feature, a previous model), each group, the items of single groups in predicted and true
    order, what each feature adds, the margins of all pairs, and how the parameters were chosen.

    Parameters
    ----------
    model : estimator or array-like of shape (n_items,)
        A fitted ranker, a Pipeline that ends in one, or plain scores.
    X : array-like, sparse matrix or data frame of shape (n_items, n_features)
        Items, best ones that the model has not been trained on; not used with plain scores.
    y : array-like of shape (n_items,), target of `make_target`, or graph of scores
        True scores; larger is better. Items with NaN are left out and counted.
    groups : array-like of shape (n_items,), optional
        Group labels; None makes one list.
    ids : sequence of shape (n_items,), optional
        Names of the items; row numbers if not given.
    feature_names : sequence of shape (n_features,), optional
        Names of the columns of X.
    previous : estimator or array-like of shape (n_items,), optional
        The model in use so far, or its scores: each metric is compared with it, group by group.
    metrics : iterable of str or Metric, optional
        As `rankwise.metrics.get_metric` reads them; the first decides which groups are worst. By
        default those of `rankwise.metrics.evaluate`.
    title : str, optional
        Heading of the page.
    warning : str
        What a reader must know first, such as that these items were trained on; shown on top.
    confidence : float
        Probability of the intervals: Student's over groups, as in
        `rankwise.model_selection.compare`.
    random_state : int
        Seed of the pairs that are drawn where there are more than a million.

    Returns
    -------
    Page
        ``page.save("report.html")`` writes it. The same input gives the same page.

    Examples
    --------
    >>> from rankwise import RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.report import report
    >>> X, y, groups = make_ranking(n_queries=20, random_state=0)[:3]
    >>> model = RankRLSCV().fit(X[:200], y[:200], groups[:200])
    >>> page = report(model, X[200:], y[200:], groups[200:])
    >>> "are in the right order" in str(page)
    True
    """
    rng = np.random.default_rng(random_state)
    subject = make_report_model(model, X, y, groups, ids, feature_names)
    scored, parts = subject.scored, subject.parts
    results = report_sections.measure(scored, metrics, confidence)
    metric = results[0].metric
    rivals = find_baselines(subject, previous, metric)
    effects = report_sections.find_effects(subject)
    data = {
        **report_sections.describe_groups(
            scored, results, effects, report_sections.possible_ranks(subject, confidence)
        ),
        "features": effects.describe() if effects else None,
        "losses": report_sections.describe_losses(subject, metric, confidence),
        "shapes": report_sections.describe_shapes(subject),
        "margins": report_sections.describe_margins(scored, rng),
        "reliability": report_sections.describe_reliability(parts.calibrated),
        "curves": report_sections.describe_curves(parts.learner),
    }
    usual = "Ranking report" if parts.learner is None else f"{parts.name} report"
    text = assemble(
        "report/report",
        ["page.css"],
        SCRIPTS,
        data,
        title=usual if title is None else title,
        warning=report_text.banner(warning),
        cards=report_text.metric_cards(results, rivals, scored, confidence),
        headline=report_text.headline(scored, rivals),
        interval_hint=report_text.interval_hint(results, scored, confidence),
        subtitle=report_text.subtitle(parts, scored),
        about=report_text.about_table(parts, scored, describe_environment()["versions"]),
        members=report_text.member_table(parts.learner),
        best_sets=report_text.best_set_table(parts.calibrated, scored),
        **report_text.notes(parts, data),
    )
    return Page(text)
