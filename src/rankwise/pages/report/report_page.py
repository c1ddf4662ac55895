"""The report page: how well a model ranks a data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.environment import package_versions
from rankwise.formatting import JsonObject
from rankwise.frames import check_same_index
from rankwise.metrics import Metric
from rankwise.pages.page import Page, assemble
from rankwise.pages.report.baselines import find_baselines
from rankwise.pages.report.comparison_section import comparison_section
from rankwise.pages.report.feature_sections import (
    describe_curves,
    describe_importance,
    find_effects,
)
from rankwise.pages.report.group_sections import (
    describe_groups,
    describe_items,
    possible_ranks,
    select_groups,
)
from rankwise.pages.report.margin_sections import describe_reliability, find_margins
from rankwise.pages.report.metric_cards import metric_cards
from rankwise.pages.report.metric_results import measure
from rankwise.pages.report.overview_text import banner, headline, interval_hint, subtitle
from rankwise.pages.report.report_data import make_report_model
from rankwise.pages.report.report_tables import about_table, best_set_table, member_table
from rankwise.pages.report.search_section import describe_search
from rankwise.pages.report.section_notes import section_notes
from rankwise.pages.report.survival_page import survival_ranking, survival_report

STYLES = ("page.css", "report/report.css")
SCRIPTS = (
    "charts.js",
    "tables.js",
    "theme.js",
    "report/items.js",
    "report/slope.js",
    "report/report.js",
)


def report(
    model: object,
    X: object,
    y: object,
    groups: ArrayLike | None = None,
    *,
    ids: Sequence[object] | None = None,
    feature_names: Sequence[object] | None = None,
    previous: object = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    title: str | None = None,
    warning: str = "",
    confidence: float = DEFAULT_CONFIDENCE,
    random_state: int = 0,
) -> Page:
    """Make a page that shows how well a model ranks a data set.

    Use it to evaluate a model, to find the groups that it ranks badly, and to see what each
    feature contributes. The page shows metrics with intervals and baselines (a random order, the
    best single feature, a previous model), each group, the items of single groups in predicted
    and true order, the effects of features, the margins of all pairs, and the search for the
    parameters.

    Parameters
    ----------
    model : estimator or array-like of shape (n_items,)
        A fitted ranker, a Pipeline that ends in one, or scores.
    X : array-like, sparse matrix or data frame of shape (n_items, n_features)
        Items, preferably items that the model was not trained on; not used if `model` is scores.
    y : array-like of shape (n_items,), target of `make_target`, or graph of scores
        True scores; larger is better. Items with NaN are dropped and counted. Or right-censored
        survival times, as in `rankwise.metrics.concordance`: the page then shows the concordance
        and survival curves of the items in thirds of the predicted score.
    groups : array-like of shape (n_items,), optional
        Group labels; None treats all items as one list.
    ids : sequence of shape (n_items,), optional
        Names of the items; by default the index of a pandas frame if it has text, or row numbers.
    feature_names : sequence of shape (n_features,), optional
        Names of the columns of X.
    previous : estimator or array-like of shape (n_items,), optional
        The model used so far, or its scores; each metric is compared with it, group by group.
    metrics : iterable of str or Metric, optional
        Names for `rankwise.metrics.get_metric`, or metrics; the first one sorts the groups. By
        default those of `rankwise.metrics.evaluate`.
    title : str, optional
        Heading of the page.
    warning : str, default=""
        Caveat at the top of the page, for example that the model was trained on these items.
    confidence : float, default=0.95
        Confidence of the intervals: Student's over groups, as in
        `rankwise.model_selection.compare`.
    random_state : int, default=0
        Seed of the sample of pairs if there are more than a million.

    Returns
    -------
    Page
        ``page.save("report.html")`` writes the file. Equal input gives the same page.

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
    check_same_index(X=X, y=y, groups=groups, ids=ids, model=model, previous=previous)
    ranking = survival_ranking(model, X, y, groups)
    if ranking is not None:
        return survival_report(
            model,
            X,
            ranking,
            previous=previous,
            metrics=metrics,
            title=title,
            warning=warning,
            confidence=confidence,
        )
    # What is measured
    subject = make_report_model(model, X, y, groups, ids, feature_names)
    scored = subject.scored
    model_parts = subject.model_parts
    results = measure(scored, metrics, confidence)
    main_result = results[0]
    baselines = find_baselines(subject, previous, main_result.metric)
    selection = select_groups(scored, main_result)
    effects = find_effects(subject)
    margins = find_margins(scored, np.random.default_rng(random_state))
    search = describe_search(model_parts.learner)
    rank_intervals = possible_ranks(subject, confidence)
    described_effects = None
    if effects is not None:
        described_effects = effects.describe()

    # The data of the page, drawn by its script
    data: JsonObject = {
        "metrics": [result.describe() for result in results if result.has_mean],
        "groups": describe_groups(scored, results, selection),
        "items": describe_items(scored, selection, effects, rank_intervals),
        "features": described_effects,
        "losses": describe_importance(subject, main_result.metric, confidence),
        "shapes": describe_curves(subject),
        "margins": margins.describe(),
        "reliability": describe_reliability(model_parts.calibrated),
        "curves": search,
    }
    if title is None:
        title = "Ranking report" if model_parts.learner is None else f"{model_parts.name} report"

    # The text of the page
    comparisons = comparison_section(model_parts)
    text = assemble(
        "report/report",
        STYLES,
        SCRIPTS,
        data,
        title=title,
        warning=banner(warning),
        cards=metric_cards(results, baselines, scored, confidence),
        headline=headline(scored, baselines),
        interval_hint=interval_hint(results, scored, confidence),
        subtitle=subtitle(model_parts, scored),
        about=about_table(model_parts, scored, package_versions()),
        members=member_table(model_parts),
        comparisons=comparisons.html,
        comparison_link=comparisons.link,
        best_sets=best_set_table(model_parts.calibrated, scored),
        **section_notes(subject, selection, main_result, effects, margins, search),
    )
    return Page(text)
