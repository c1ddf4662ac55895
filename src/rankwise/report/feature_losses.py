"""What is lost if a feature is shuffled, for models that have no weight for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from rankwise.inspection import permutation_importance
from rankwise.inspection.model_parts import ModelParts
from rankwise.metrics import Metric
from rankwise.report.scored_items import ScoredItems, as_text, short_numbers

MOST_ITEMS = 1000  # of whole groups that are shuffled
MOST_FEATURES = 100


def describe_losses(
    model: Any,
    parts: ModelParts,
    X: Any,
    groups: Any,
    names: list[str] | None,
    scored: ScoredItems,
    metric: Metric,
) -> dict[str, Any] | None:
    """Permutation importance of the columns of X for an AutoRanker; None for other models."""
    if not hasattr(parts.learner, "members_") or X.shape[1] > MOST_FEATURES:
        return None
    last = int(np.searchsorted(np.cumsum(scored.sizes), MOST_ITEMS, side="right"))
    kept = np.flatnonzero(scored.groups.codes < max(1, last))
    rows = scored.rows[kept]
    labels = None if groups is None else scored.groups.codes[kept]
    found = permutation_importance(
        model, _safe_indexing(X, rows), scored.y[kept], labels, scoring=metric, n_repeats=2
    )
    if np.isnan(found.importance).any():
        return None
    order = np.argsort(-found.importance, kind="stable")
    known = found.names if names is None else names
    interval = (np.where(np.isnan(end), 0.0, end) for end in (found.low, found.high))
    low, high = (short_numbers(end[order]) for end in interval)
    return {
        "names": [as_text(known[j]) for j in order],
        "losses": short_numbers(found.importance[order]),
        "low": low,
        "high": high,
        "metric": metric.name,
        "items": len(rows),
    }
