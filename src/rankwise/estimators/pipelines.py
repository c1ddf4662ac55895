"""A ranker at the end of a Pipeline, and the items as it sees them."""

from __future__ import annotations

from typing import Any

import sklearn
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankwise.model_selection.group_routing import group_metadata
from rankwise.targets import make_target, split_weighted


def last_step(estimator: Any) -> Any:
    """Return the ranker itself: the last step of a Pipeline, anything else as it is."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def transform_items(estimator: Any, X: Any, groups: ArrayLike | None = None) -> Any:
    """Return the items as the last step of a fitted Pipeline gets them."""
    if not isinstance(estimator, Pipeline) or len(estimator) < 2:
        return X
    return transform_step(estimator[:-1], X, groups)


def transform_step(step: Any, X: Any, groups: ArrayLike | None) -> Any:
    """Transform items by a fitted step; groups go to where they are asked for."""
    with sklearn.config_context(enable_metadata_routing=True):
        return step.transform(X, **group_metadata(step, "transform", groups))


def fit_transform_items(estimator: Any, X: Any, y: Any, groups: ArrayLike | None = None) -> Any:
    """Return the same for a Pipeline that need not be fitted; a copy of it is fitted to all X."""
    if not isinstance(estimator, Pipeline) or len(estimator) < 2:
        return X
    return fit_transform(clone(estimator[:-1]), X, groups, y)


def fit_transform(step: Any, X: Any, groups: ArrayLike | None, y: Any = None) -> Any:
    """Fit a transformer and transform the same items; groups go to where they are asked for."""
    with sklearn.config_context(enable_metadata_routing=True):
        return step.fit_transform(X, y, **group_metadata(step, "fit_transform", groups))


def fit_ranker(estimator: Any, X: Any, y: Any, groups: ArrayLike | None) -> Any:
    """Fit a copy of an estimator; the target carries the groups through any Pipeline."""
    y, groups, weights = split_weighted(y, groups)
    return clone(estimator).fit(X, y if groups is None else make_target(y, groups, weights))
