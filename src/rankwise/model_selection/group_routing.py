"""Groups on their way to what asks for them: a ranker, or a step of a Pipeline before it."""

from __future__ import annotations

from typing import Any

import sklearn
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import get_routing_for_object


def group_metadata(estimator: Any, method: str, groups: Any) -> dict[str, Any]:
    """The groups as keyword of a method that asks for them; nothing otherwise."""
    if groups is None or not hasattr(estimator, "get_metadata_routing"):
        return {}
    with sklearn.config_context(enable_metadata_routing=True):
        asked = get_routing_for_object(estimator).consumes(method, ["groups"])
    return {"groups": groups} if asked else {}


def needs_groups(estimator: Any, method: str = "predict") -> bool:
    """Whether a method asks for the groups of the items, itself or in a step before it."""
    return bool(group_metadata(estimator, method, True))


def predict_items(estimator: Any, X: Any, groups: ArrayLike | None) -> Any:
    """Scores by an estimator of any kind; groups go to where they are asked for."""
    metadata = group_metadata(estimator, "predict", groups)
    if not metadata:
        return estimator.predict(X)
    with sklearn.config_context(enable_metadata_routing=True):
        return estimator.predict(X, **metadata)
