"""A ranker at the end of a Pipeline, and the items as it sees them."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankwise.targets import make_target, split_target

__all__ = ["fit_ranker", "fit_transform_items", "last_step", "transform_items"]


def last_step(estimator: Any) -> Any:
    """Return the ranker itself: the last step of a Pipeline, anything else as it is."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def transform_items(estimator: Any, X: Any) -> Any:
    """Return the items as the last step of a fitted Pipeline gets them."""
    is_longer = isinstance(estimator, Pipeline) and len(estimator) > 1
    return estimator[:-1].transform(X) if is_longer else X


def fit_transform_items(estimator: Any, X: Any, y: Any) -> Any:
    """Return the same for a Pipeline that need not be fitted; a copy of it is fitted to all X."""
    is_longer = isinstance(estimator, Pipeline) and len(estimator) > 1
    return clone(estimator[:-1]).fit_transform(X, y) if is_longer else X


def fit_ranker(estimator: Any, X: Any, y: Any, groups: ArrayLike | None) -> Any:
    """Fit a copy of an estimator; the target carries the groups through any Pipeline."""
    y, groups = split_target(y, groups)
    return clone(estimator).fit(X, y if groups is None else make_target(y, groups))
