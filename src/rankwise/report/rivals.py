"""What a model must beat: a random order, the best single feature, the model before it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array
from rankwise.groups import encode_groups
from rankwise.inspection.model_parts import ModelParts
from rankwise.metrics import Metric
from rankwise.metrics.averaging import mean
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.report.model_words import predict_scores
from rankwise.report.scored_items import ScoredItems, as_text, make_scored_items

MOST_COLUMNS = 200  # those that differ most between items are tried
MOST_ITEMS = 10_000  # in whole groups, on which the best column is found


class Rival(NamedTuple):
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
        takes_one_order = metric.core.name == "expected_reciprocal_rank"
        takes_one_order |= "tied_scores" in dict(metric.options)
        if self.kind == "random" and takes_one_order:
            return np.nan, np.full(scored.groups.n_groups, np.nan)
        return _evaluate(metric, scored.targets, self.scores)


def find_rivals(
    scored: ScoredItems, parts: ModelParts, X: Any, groups: Any, names: Any, previous: Any,
    metric: Metric,
) -> list[Rival]:  # fmt: skip
    """Those that there are, the easiest to beat first.

    Parameters
    ----------
    scored : ScoredItems
        The items of the page.
    parts : ModelParts
        The model, whose features are tried one by one.
    X, groups, names : Any
        As given for the page.
    previous : Any
        Another model or its scores, or None.
    metric : Metric
        By which the best feature is found.
    """
    found = [Rival("random", "random order", np.zeros(scored.n_items))]
    if parts.learner is not None:
        feature = _best_feature(scored, parts, X, groups, names, metric)
        found += [] if feature is None else [feature]
    if previous is not None:
        scores = predict_scores(previous, X, groups)
        if len(scores) != len(scored.y) + scored.n_unscored:
            raise ValueError(
                f"previous has {len(scores)} scores; expected a model or one score for each of "
                f"the {len(scored.y) + scored.n_unscored} rows."
            )
        other = make_scored_items(scores[scored.rows], scored.y, scored.groups.codes, None)
        found.append(Rival("previous", "previous model", other.scores))
    return found


def _best_feature(
    scored: ScoredItems, parts: ModelParts, X: Any, groups: Any, names: Any, metric: Metric
) -> Rival | None:
    """The column that orders some groups best by itself, high or low values first."""
    rows = _some_groups(scored)
    try:
        seen = parts.features(X, groups)[scored.rows]
        values = np.asarray(_dense(seen[rows]), dtype=np.float64)
    except (TypeError, ValueError):  # text, or features that only the model understands
        return None
    targets = Targets(scored.y[rows], encode_groups(scored.groups.codes[rows], len(rows)))
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
    column = np.asarray(_dense(seen[:, [j]]), dtype=np.float64)[:, 0]
    if not np.isfinite(column).all():
        return None
    name = as_text(parts.feature_names(names, seen.shape[1])[j])
    return Rival("feature", name if direction > 0 else f"{name}, low first", direction * column)


def _some_groups(scored: ScoredItems) -> Any:
    """Rows of the first groups that have few enough items together; all rows of one list."""
    last = int(np.searchsorted(np.cumsum(scored.sizes), MOST_ITEMS, side="right"))
    return np.flatnonzero(scored.groups.codes < max(last, 1))


def _dense(columns: Any) -> Any:
    return columns.toarray() if sp.issparse(columns) else columns


def _evaluate(metric: Metric, targets: Targets, scores: Array) -> tuple[float, Array]:
    try:
        found = metric.by_group(Ranking(targets, scores))
    except ValueError:  # a metric that does not take these true scores
        return np.nan, np.full(targets.n_groups, np.nan)
    return mean(*found), found.values
