"""Notice groups that scikit-learn has but does not hand to the ranker.

With metadata routing off (the default of scikit-learn) ``GridSearchCV(...).fit(X, y, groups=g)``,
``cross_validate(..., groups=g)`` and their like hand the groups to the splitter only: a ranker
inside is trained on one list of all items. `fit` and `score` cannot see that from their arguments.
But the function that holds the groups is up the stack, and keeps what it hands to whom in a local
variable named `routed_params`.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from sklearn import get_config

RECEIVER = {"fit": "estimator", "score": "scorer"}
EFFECT = {
    "fit": "it is trained to order all items as one list",
    "score": "its score judges all items as one list",
}


def warn_if_groups_were_lost(y: Any, groups: Any, method: str) -> None:
    """Warn if this method got no groups although a function of scikit-learn up the stack has some.

    A worker process or thread of joblib does not have that function on its stack and cannot tell.

    Parameters
    ----------
    y, groups
        What the method got.
    method : {"fit", "score"}
        The method.
    """
    if groups is not None or _holds_groups(y) or get_config()["enable_metadata_routing"]:
        return
    frame, depth, is_lost = inspect.currentframe(), 1, False
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "")).split(".")[0]
        is_lost = is_lost or (name == "sklearn" and _keeps_groups(frame.f_locals, method))
        if is_lost and name not in ("sklearn", "joblib", "rankwise", "contextlib"):
            break  # the line of the user
        frame, depth = frame.f_back, depth + 1
    if is_lost:
        warnings.warn(
            "groups were given to a function of scikit-learn, which did not hand them to the "
            f"ranker: {EFFECT[method]}. Pass make_target(y, groups) as y, or turn metadata routing "
            "on: sklearn.set_config(enable_metadata_routing=True). If one list is meant, say so by "
            "make_target(y, [0] * len(y)).",
            stacklevel=depth,
        )


def _holds_groups(y: Any) -> bool:
    """Whether y is a target of `make_target` or a graph, which know their groups."""
    return getattr(getattr(y, "dtype", None), "names", None) is not None or hasattr(y, "laplacian")


def _keeps_groups(local: dict[str, Any], method: str) -> bool:
    """Whether a function with these local variables has groups, but none for this method."""
    try:
        routed: Any = local["routed_params"]
        given = [*routed["splitter"]["split"].items(), *routed["estimator"]["fit"].items()]
        received = (routed[RECEIVER[method]].get(method) or {}).items()
    except (AttributeError, KeyError, TypeError):  # another version keeps its books otherwise
        return False
    return _has_groups(given) and not _has_groups(received) and not _holds_groups(local.get("y"))


def _has_groups(metadata: Any) -> bool:
    """Whether groups are among the metadata, by themselves or for a step of a Pipeline."""
    return any(
        value is not None and (name == "groups" or name.endswith("__groups"))
        for name, value in metadata
    )
