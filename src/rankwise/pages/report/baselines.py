"""What a model must beat: a random order, the best single feature, the model before it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array
from rankwise.groups import encode_groups
from rankwise.metrics import Metric
from rankwise.metrics.metric import nanmean_by_group
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.pages.page_values import as_text
from rankwise.pages.report.report_data import (
    ReportModel,
    ScoredItems,
    make_scored_items,
    predict_scores,
)

# Metrics that say nothing of a random order: of tied scores they take one order, or the values.
NOT_AVERAGED = ("err", "letor_ndcg", "mse")
MOST_COLUMNS = 200  # those that differ most between items are tried
MOST_ITEMS = 10_000  # in whole groups, on which the best column is found


class Baseline(NamedTuple):
    """Another order of the same items.

    Attributes
    ----------
    kind : {"random", "feature", "previous"}
        Where it comes from.
    name : str
        As people say it; the name of a feature is not ours.
    scores : ndarray of shape (m,)
        All equal for a random order.
    """

    kind: str
    name: str
    scores: Array

    def measure(self, scored: ScoredItems, metric: Metric) -> tuple[float, Array]:
        """Mean of a metric over groups and its values; NaN where it says nothing of this order."""
        takes_one_order = metric.is_custom or metric.name.startswith(NOT_AVERAGED)
        takes_one_order |= "tied_scores" in dict(metric.options)
        if self.kind == "random" and takes_one_order:
            return np.nan, np.full(scored.groups.n_groups, np.nan)
        return _evaluate(metric, scored.targets, self.scores)


def find_baselines(subject: ReportModel, previous: Any, metric: Metric) -> list[Baseline]:
    """Those that there are, the easiest to beat first.

    Parameters
    ----------
    subject : Subject
        The model, whose features are tried one by one, and the items of the page.
    previous : Any
        Another model or its scores, or None.
    metric : Metric
        By which the best feature is found.
    """
    scored = subject.scored
    rivals = [Baseline("random", "random order", np.zeros(len(scored.y)))]
    feature = None if subject.parts.learner is None else _best_feature(subject, metric)
    rivals += [] if feature is None else [feature]
    if previous is not None:
        scores = predict_scores(previous, subject.X, subject.groups)
        n_rows = len(scored.y) + scored.n_unscored
        if len(scores) != n_rows:
            raise ValueError(
                f"previous has {len(scores)} scores; expected a model or one score for each of "
                f"the {n_rows} rows."
            )
        other = make_scored_items(scores[scored.rows], scored.y, scored.groups.codes)
        rivals.append(Baseline("previous", "previous model", other.scores))
    return rivals


def _best_feature(subject: ReportModel, metric: Metric) -> Baseline | None:
    """The column that orders some groups best by itself, high or low values first."""
    scored = subject.scored
    last = int(np.searchsorted(np.cumsum(scored.groups.sizes), MOST_ITEMS, side="right"))
    rows = np.flatnonzero(scored.groups.codes < max(last, 1))
    try:
        features = subject.features()
        values = np.asarray(_dense(features[rows]), dtype=np.float64)
    except (TypeError, ValueError):  # text, or features that only the model understands
        return None
    targets = GroupedTargets(scored.y[rows], encode_groups(scored.groups.codes[rows], len(rows)))
    with np.errstate(invalid="ignore", over="ignore"):
        width = np.nan_to_num(values.std(axis=0), nan=0.0, posinf=0.0)
    usable = np.flatnonzero((width > 0) & np.isfinite(values).all(axis=0))
    usable = usable[np.argsort(-width[usable], kind="stable")][:MOST_COLUMNS]
    sign = 1.0 if metric.greater_is_better else -1.0
    best, chosen = -np.inf, None
    for j in np.sort(usable):
        for direction in (1.0, -1.0):
            value = sign * _evaluate(metric, targets, direction * values[:, j])[0]
            if value > best:
                best, chosen = value, (int(j), direction)
    if chosen is None:
        return None
    j, direction = chosen
    column = np.asarray(_dense(features[:, [j]]), dtype=np.float64)[:, 0]
    if not np.isfinite(column).all():
        return None
    name = as_text(subject.parts.feature_names(subject.names, features.shape[1])[j])
    return Baseline("feature", name if direction > 0 else f"{name}, low first", direction * column)


def _dense(columns: Any) -> Any:
    return columns.toarray() if sp.issparse(columns) else columns


def _evaluate(metric: Metric, targets: GroupedTargets, scores: Array) -> tuple[float, Array]:
    try:
        by_group = metric.by_group(Ranking(targets, scores))
    except ValueError:  # a metric that does not take these true scores
        return np.nan, np.full(targets.n_groups, np.nan)
    return nanmean_by_group(by_group.values, by_group.weights), by_group.values
