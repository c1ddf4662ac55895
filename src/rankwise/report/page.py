"""Put the page together: words, data, style and script in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Indices
from rankwise.datasets.files import PathLike, replace_file
from rankwise.datasets.row_sketch import seen_shares, seen_words, sketch_rows
from rankwise.environment import describe_environment
from rankwise.frames import as_array
from rankwise.graphs import PreferenceGraph
from rankwise.inspection.contributions import Contributions
from rankwise.inspection.feature_curves import feature_curves, has_curves
from rankwise.inspection.model_parts import ModelParts, take_apart
from rankwise.metrics import Metric
from rankwise.report import sentences
from rankwise.report.assembling import assemble
from rankwise.report.cards import metric_cards
from rankwise.report.certainty import (
    Certainty,
    find_certainty,
    reliability_figure,
    weight_errors,
)
from rankwise.report.feature_effects import FeatureEffects
from rankwise.report.feature_losses import describe_losses
from rankwise.report.group_items import describe_items, groups_that_fit
from rankwise.report.group_metrics import (
    LISTED_GROUPS,
    MetricResult,
    choose_groups,
    describe_groups,
    describe_metric,
    measure,
)
from rankwise.report.margins import describe_margins
from rankwise.report.model_words import input_names, predict_scores
from rankwise.report.rivals import find_rivals
from rankwise.report.scored_items import (
    ScoredItems,
    as_text,
    make_scored_items,
    short_numbers,
)
from rankwise.report.tuning import describe_curves, describe_path, searched
from rankwise.targets import as_scores, split_target

SCRIPTS = ("charts.js", "tables.js", "theme.js", "items.js", "report.js")
LONGEST_TITLE = 200
SHAPES = 8  # curves of features that are drawn
METRICS = ("ndcg@10", "map", "disagreement", "tau")


def write_report(
    path: PathLike,
    model: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    ids: Sequence[Any] | None = None,
    feature_names: Sequence[Any] | None = None,
    training: tuple[Any, ...] | None = None,
    previous: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    title: str | None = None,
    warning: str = "",
    confidence: float = 0.95,
    random_state: int = 0,
) -> None:
    """Write one HTML page that shows how well a model orders a data set.

    The page needs no network: style, script and data are inside. It shows metrics with intervals
    and what they must beat (a random order, the best single feature, a previous model), each
    group, the items of single groups in predicted and true order, what each feature adds, the
    margins of all pairs, and how the parameters were chosen.

    Parameters
    ----------
    path : str or path
        The file to write; it appears whole or not at all.
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
    training : tuple (X, y) or (X, y, groups), optional
        Training data of a `RankRLS` or `RankRLSCV`: adds the path of the weights and, for a
        `RankRLS`, the curve of exact cross-validation. Not scaled: a Pipeline does that. If these
        items are among them, the page says on top that its figures flatter.
    previous : estimator or array-like of shape (n_items,), optional
        The model in use so far, or its scores: each metric is compared with it, group by group.
    metrics : iterable of str or Metric
        As `rankwise.metrics.get_metric` reads them; the first decides which groups are worst.
    title : str, optional
        Heading of the page.
    warning : str
        What a reader must know first, such as that these items were trained on; shown on top.
    confidence : float
        Probability of the intervals: Student's over groups, as in
        `rankwise.model_selection.compare`.
    random_state : int
        Seed of what is sampled: pairs and groups, where there are too many to show.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankwise import RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.report import write_report
    >>> X, y, groups = make_ranking(n_queries=20, random_state=0)[:3]
    >>> model = RankRLSCV().fit(X[:200], y[:200], groups[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     write_report(path, model, X[200:], y[200:], groups[200:])
    ...     os.path.getsize(path) > 10_000
    True
    """
    page = make_report(
        model,
        X,
        y,
        groups,
        ids=ids,
        feature_names=feature_names,
        training=training,
        previous=previous,
        metrics=metrics,
        title=title,
        warning=warning,
        confidence=confidence,
        random_state=random_state,
    )
    with replace_file(path) as stream:
        stream.write(page.encode("utf-8"))


def make_report(
    model: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    ids: Sequence[Any] | None = None,
    feature_names: Sequence[Any] | None = None,
    training: tuple[Any, ...] | None = None,
    previous: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    title: str | None = None,
    warning: str = "",
    confidence: float = 0.95,
    random_state: int = 0,
) -> str:
    """The page of `write_report` as text.

    Parameters
    ----------
    model, X, y, groups, ids, feature_names, training, previous, metrics
        As in `write_report`.
    title, warning, confidence, random_state
        As in `write_report`.

    Returns
    -------
    str
        HTML; the same input gives the same text.

    Examples
    --------
    >>> from rankwise.report import make_report
    >>> page = make_report([3.0, 1.0, 2.0], None, [2, 0, 1], metrics="tau")
    >>> "100.0% are in the right order" in page
    True
    """
    rng = np.random.default_rng(random_state)
    known = y.groups if isinstance(y, PreferenceGraph) else split_target(y, groups)[1]
    scored = make_scored_items(predict_scores(model, X, known), y, groups, ids)
    results = measure(scored, metrics, confidence)
    parts = take_apart(model)
    names = input_names(feature_names, model, X)
    rivals = find_rivals(scored, parts, X, known, names, previous, results[0].metric)
    effects = _effects(parts, X, known, names, scored)
    certainty = find_certainty(parts, X, known, scored, confidence)
    data = {
        **_group_data(scored, results, effects, certainty, rng),
        "features": effects.describe() if effects else None,
        "losses": describe_losses(model, parts, X, known, names, scored, results[0].metric),
        "shapes": _shapes(model, X, known, names),
        "margins": describe_margins(scored, rng),
        **_tuning_data(parts, training, results[0].metric, effects),
    }
    usual = "Ranking report" if parts.learner is None else f"{parts.name} report"
    return assemble(
        "page.html",
        ["report.css"],
        SCRIPTS,
        data,
        title=escape(as_text(usual if title is None else title, LONGEST_TITLE)),
        warning=sentences.banner(warning or _seen_rows(training, X, y, groups)),
        cards=metric_cards(results, rivals, scored, confidence),
        interval_hint=sentences.interval_hint(results, scored, confidence),
        **_words(parts, scored, data),
    )


def _words(parts: ModelParts, scored: ScoredItems, data: dict[str, Any]) -> dict[str, str]:
    versions = describe_environment()["versions"]
    return {
        "subtitle": sentences.subtitle(parts, scored),
        "headline": sentences.headline(scored),
        "group_note": sentences.group_note(data["groups"], data["items"], data["metrics"][0]),
        "item_note": sentences.item_note(data["items"]),
        "feature_note": sentences.feature_note(
            parts, data["features"] is not None, data["losses"] is not None
        ),
        "margin_note": sentences.margin_note(data["margins"]),
        "reliability": ""
        if parts.sure is None
        else reliability_figure(parts.sure.reliability(), parts.sure.log_loss_),
        "curve_note": sentences.curve_note(parts, data["curves"], data["path"]),
        "members": sentences.member_table(parts.learner),
        "about": sentences.about_table(parts, scored, versions),
        "version": escape(versions["rankwise"]),
    }


def _group_data(
    scored: ScoredItems,
    results: list[MetricResult],
    effects: FeatureEffects | None,
    certainty: Certainty | None,
    rng: np.random.Generator,
) -> dict[str, Any]:
    valid = [result for result in results if not np.isnan(result.mean)]
    listed, shown = _choose(scored, valid[0], rng)
    return {
        "metrics": [describe_metric(result) for result in valid],
        "groups": describe_groups(valid, scored, listed),
        "items": describe_items(
            scored, shown, effects.contributions if effects else None, certainty
        ),
    }


def _tuning_data(
    parts: ModelParts, training: Any, metric: Metric, effects: FeatureEffects | None
) -> dict[str, Any]:
    seen = _check_training(training, parts)
    curves = describe_curves(searched(parts.learner, seen, metric), parts.learner)
    return {"curves": curves, "path": describe_path(parts.learner, seen, curves, effects)}


def _effects(
    parts: ModelParts, X: Any, groups: Any, names: list[str] | None, scored: ScoredItems
) -> FeatureEffects | None:
    weights = None if parts.learner is None else parts.weights()
    if weights is None:
        return None
    seen = parts.features(X, groups)
    if scored.n_unscored:
        seen = seen[scored.rows]
    seen_names = [as_text(name) for name in parts.feature_names(names, len(weights))]
    added = Contributions(weights, seen, scored.groups, seen_names)
    return FeatureEffects(added, scored, weight_errors(parts, weights))


def _shapes(model: Any, X: Any, groups: Any, names: list[str] | None) -> dict[str, Any] | None:
    """The curves of the features of an additive model that add most."""
    if not has_curves(model):
        return None
    curves, scale = feature_curves(model, X, groups, names)
    shown = [
        {
            "label": as_text(curve.name),
            "x": short_numbers(curve.x),
            "mean": short_numbers(curve.added),
        }
        for curve in curves[:SHAPES]
        if curve.spread > 0
    ]
    return {"scale": scale, "curves": shown, "total": len(curves)} if shown else None


def _seen_rows(training: Any, X: Any, y: Any, groups: Any) -> str:
    """What is to be said if these items were trained on, as far as training tells."""
    if not isinstance(training, (tuple, list)) or len(training) < 2 or X is None:
        return ""
    try:
        seen, new = (
            (as_array(rows), as_scores(target, allow_nan=True), labels)
            for rows, (target, labels) in (
                (training[0], split_target(training[1], (*training, None)[2])),
                (X, split_target(y, groups)),
            )
        )
        known = ~np.isnan(new[1])
        rows: Any = [None if part is None else np.asarray(part)[known] for part in new]
        words = seen_words(seen_shares(sketch_rows(*seen), *rows), "the model")
        return f"{words[0].upper()}{words[1:]}." if words else ""
    except (TypeError, ValueError):  # graphs, text: nothing that can be compared
        return ""


def _check_training(training: Any, parts: ModelParts) -> tuple[Any, Any, Any] | None:
    if training is None:
        return None
    if not isinstance(training, (tuple, list)) or len(training) not in (2, 3):
        raise ValueError(
            f"training is a {type(training).__name__}; expected a tuple (X, y) or (X, y, groups)."
        )
    X, y, groups = (*training, None)[:3]
    return (X if parts.steps is None else parts.features(X, split_target(y, groups)[1])), y, groups


def _choose(
    scored: ScoredItems, result: MetricResult, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """The groups of the table, those with items first, and those with items."""
    every = np.arange(scored.groups.n_groups)
    listed = choose_groups(result, every, LISTED_GROUPS, rng)
    shown = groups_that_fit(scored, listed)
    if len(shown) < len(listed):
        shown = groups_that_fit(scored, choose_groups(result, listed, len(shown), rng))
    rest = listed[~np.isin(listed, shown)]
    return np.r_[shown, rest], shown
