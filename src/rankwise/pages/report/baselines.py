"""Baselines of a model: a random order, the best single feature, the previous model."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Array, Indices
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

# Metrics without an expected value for tied scores: they use one order, or the scores themselves.
NOT_AVERAGED = ("err", "letor_ndcg", "mse")
MAX_COLUMNS = 200  # that are evaluated: those with the largest standard deviation
MAX_ITEMS = 10_000  # in complete groups, on which the columns are evaluated


class BaselineKind(StrEnum):
    """Origin of the scores of a baseline."""

    RANDOM = "random"
    FEATURE = "feature"
    PREVIOUS = "previous"


class BaselineResult(NamedTuple):
    """A metric of a baseline.

    Attributes
    ----------
    mean : float
        Mean over groups; NaN if the metric says nothing about this baseline.
    values : ndarray of shape (n_groups,)
        Value of each group; NaN where it is undefined.
    """

    mean: float
    values: Array


class Baseline(NamedTuple):
    """Other scores of the same items.

    Attributes
    ----------
    kind : BaselineKind
        Kind of the baseline.
    name : str
        Name on the page; the name of a feature comes from the user.
    scores : ndarray of shape (m,)
        All equal for a random order.
    """

    kind: BaselineKind
    name: str
    scores: Array

    def measure(self, scored: ScoredItems, metric: Metric) -> BaselineResult:
        """Evaluate the baseline."""
        if self.kind is BaselineKind.RANDOM and not _averages_ties(metric):
            return _undefined_result(scored.groups.n_groups)
        return _evaluate(metric, scored.targets, self.scores)


def _averages_ties(metric: Metric) -> bool:
    """Whether the metric of equal scores is its expected value over random orders."""
    has_option_for_ties = "tied_scores" in dict(metric.options)
    if metric.is_custom or has_option_for_ties:
        return False
    return not metric.name.startswith(NOT_AVERAGED)  # such as "err@10"


def find_baselines(subject: ReportModel, previous: object, metric: Metric) -> list[Baseline]:
    """Find the baselines of a report, the easiest to beat first.

    Parameters
    ----------
    subject : ReportModel
        The model, whose features are evaluated one by one, and the items of the page.
    previous : object
        Another model or its scores, or None.
    metric : Metric
        Metric that selects the best feature.
    """
    scored = subject.scored
    equal_scores = np.zeros(len(scored.y))  # most metrics average over the orders of ties
    baselines = [Baseline(BaselineKind.RANDOM, "random order", equal_scores)]
    if subject.model_parts.learner is not None:
        feature_baseline = _find_best_feature(subject, metric)
        if feature_baseline is not None:
            baselines.append(feature_baseline)
    if previous is not None:
        baselines.append(_score_by_previous_model(subject, previous))
    return baselines


def _score_by_previous_model(subject: ReportModel, previous: object) -> Baseline:
    scored = subject.scored
    scores = predict_scores(previous, subject.X, subject.groups)
    n_rows = len(scored.y) + scored.n_unscored
    if len(scores) != n_rows:
        raise ValueError(
            f"previous has {len(scores)} scores; expected a model or one score for each of "
            f"the {n_rows} rows."
        )
    # checks the scores, and drops the axis of a single output
    previous_items = make_scored_items(scores[scored.rows], scored.y, scored.groups.codes)
    return Baseline(BaselineKind.PREVIOUS, "previous model", previous_items.scores)


class _SignedColumn(NamedTuple):
    """A column, and 1 if its large values are best, −1 if its small values are."""

    column: int
    sign: float


def _find_best_feature(subject: ReportModel, metric: Metric) -> Baseline | None:
    """The column that ranks the first groups best, by its large or by its small values."""
    scored = subject.scored
    # Choose the feature on some of the groups.
    sample = scored.first_groups(MAX_ITEMS)
    try:
        features = subject.features()
        sample_features = _dense_floats(features[sample])
    except (TypeError, ValueError):  # text, or features that only the model can read
        return None
    sample_groups = encode_groups(scored.groups.codes[sample], len(sample))
    targets = GroupedTargets(scored.y[sample], sample_groups)
    best = _find_best_column(metric, targets, sample_features)
    if best is None:
        return None

    # Score all items by it.
    column = _dense_floats(features[:, [best.column]])[:, 0]
    if not np.isfinite(column).all():
        return None
    feature_names = subject.model_parts.feature_names(subject.names, features.shape[1])
    name = as_text(feature_names[best.column])
    if best.sign < 0:
        name = f"{name}, low first"
    return Baseline(BaselineKind.FEATURE, name, best.sign * column)


def _find_best_column(
    metric: Metric, targets: GroupedTargets, features: Array
) -> _SignedColumn | None:
    """The best column and direction; None if the metric is undefined for all columns."""
    best = None
    best_value = -np.inf
    for column in _columns_with_largest_spread(features):
        for sign in (1.0, -1.0):  # largest values first, smallest values first
            value = _evaluate(metric, targets, sign * features[:, column]).mean
            if not metric.greater_is_better:
                value = -value
            if value > best_value:
                best_value = value
                best = _SignedColumn(int(column), sign)
    return best


def _columns_with_largest_spread(features: Array) -> Indices:
    """Columns of finite numbers that are not constant, at most `MAX_COLUMNS`."""
    with np.errstate(invalid="ignore", over="ignore"):
        # 0, so that the column is left out, if the standard deviation is not finite
        spread = np.nan_to_num(features.std(axis=0), nan=0.0, posinf=0.0)
    is_finite = np.isfinite(features).all(axis=0)
    usable = np.flatnonzero((spread > 0) & is_finite)
    by_spread = usable[np.argsort(-spread[usable], kind="stable")]
    return np.sort(by_spread[:MAX_COLUMNS])  # in the order of the columns


def _dense_floats(columns: AnyArray | sp.csr_array) -> Array:
    if sp.issparse(columns):
        return np.asarray(sp.csr_array(columns).toarray(), dtype=np.float64)
    return np.asarray(columns, dtype=np.float64)


def _evaluate(metric: Metric, targets: GroupedTargets, scores: Array) -> BaselineResult:
    try:
        by_group = metric.by_group(Ranking(targets, scores))
    except ValueError:  # a metric that does not accept these true scores
        return _undefined_result(targets.n_groups)
    mean = nanmean_by_group(by_group.values, by_group.weights)
    return BaselineResult(mean, by_group.values)


def _undefined_result(n_groups: int) -> BaselineResult:
    return BaselineResult(mean=np.nan, values=np.full(n_groups, np.nan))
