"""Baselines of a model: a random order, the best single feature, the previous model."""

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

# Metrics without a value for tied scores: they use one order, or the values of the scores.
NOT_AVERAGED = ("err", "letor_ndcg", "mse")
MAX_COLUMNS = 200  # that are evaluated: those with the largest standard deviation
MAX_ITEMS = 10_000  # in whole groups, on which the columns are evaluated


class Baseline(NamedTuple):
    """A baseline: other scores of the same items.

    Attributes
    ----------
    kind : {"random", "feature", "previous"}
        Kind of the baseline.
    name : str
        Name on the page; the name of a feature comes from the user.
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
    """Find the baselines of a report, the easiest to beat first.

    Parameters
    ----------
    subject : ReportModel
        The model, whose features are evaluated one by one, and the items of the page.
    previous : Any
        Another model or its scores, or None.
    metric : Metric
        Metric that selects the best feature.
    """
    scored = subject.scored
    baselines = [Baseline("random", "random order", np.zeros(len(scored.y)))]
    if subject.parts.learner is not None:
        feature = _best_feature(subject, metric)
        if feature is not None:
            baselines.append(feature)
    if previous is not None:
        scores = predict_scores(previous, subject.X, subject.groups)
        n_rows = len(scored.y) + scored.n_unscored
        if len(scores) != n_rows:
            raise ValueError(
                f"previous has {len(scores)} scores; expected a model or one score for each of "
                f"the {n_rows} rows."
            )
        other = make_scored_items(scores[scored.rows], scored.y, scored.groups.codes)
        baselines.append(Baseline("previous", "previous model", other.scores))
    return baselines


def _best_feature(subject: ReportModel, metric: Metric) -> Baseline | None:
    """The column that orders some groups best by itself, high or low values first."""
    scored = subject.scored
    last = int(np.searchsorted(np.cumsum(scored.groups.sizes), MAX_ITEMS, side="right"))
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
    usable = usable[np.argsort(-width[usable], kind="stable")][:MAX_COLUMNS]
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
