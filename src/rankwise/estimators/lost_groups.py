"""Notice groups that scikit-learn has but does not hand to the ranker.

With metadata routing off (scikit-learn's default) ``GridSearchCV(...).fit(X, y, groups=g)``,
``cross_validate(..., groups=g)`` and their like hand the groups to the splitter only, so a ranker
inside is trained on one global list. With routing on, scikit-learn 1.7 (not 1.8) forgets them when
it calls the `score` of a Pipeline. Nothing that `fit` and `score` are given tells; but whoever
called is still on the stack, with the groups in hand. All these functions of scikit-learn 1.7 to
1.9 keep what they pass to whom in a local variable named `routed_params`; that and y are looked at.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
import weakref
from types import FrameType
from typing import Any

from sklearn import get_config

__all__ = ["warn_if_groups_were_lost"]

ROUTED = "routed_params"
BETWEEN = ("sklearn", "joblib", "rankwise", "contextlib")
RECEIVER = {"fit": "estimator", "score": "scorer"}
EFFECT = {
    "fit": "it is trained to order all items as one list",
    "score": "its score judges all items as one list",
}

_reported: dict[str, weakref.ref[Any]] = {}  # the last call of scikit-learn, for each method


def warn_if_groups_were_lost(method: str = "fit") -> None:
    """Warn if a function of scikit-learn up the stack has groups that this method did not get.

    To be called from `fit` or `score` if they got no groups, neither by name nor inside y; and
    from ``__sklearn_clone__``, where the data are not at hand but the function that has them is.
    Warns once for a call of scikit-learn, however many folds it has, and costs some microseconds.

    A call in a worker process or thread of joblib does not have the caller on its stack and cannot
    tell; the copies for the workers are cloned by the caller, which can.

    Parameters
    ----------
    method : {"fit", "score"}
        Where the groups are missing. With metadata routing on, `fit` goes without them only if
        the user said so, and is not looked into.
    """
    is_routed = get_config()["enable_metadata_routing"]
    if is_routed and method == "fit":
        return
    frame = sys._getframe(1) if hasattr(sys, "_getframe") else None
    depth = 2  # in the sense of stacklevel: 1 is this function, 2 its caller
    while frame is not None and (routed := _held_back(frame, method)) is None:
        frame, depth = frame.f_back, depth + 1
    if frame is None or _was_reported(routed, method):
        return
    while frame is not None and _module(frame).split(".")[0] in BETWEEN:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(_message(method, is_routed), stacklevel=depth)


def _message(method: str, is_routed: bool) -> str:
    if is_routed:
        remedy = "Pass scoring=make_ranking_scorer('concordance'), which asks for the groups"
    else:
        remedy = (
            "Pass make_target(y, groups) as y, or turn metadata routing on: "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    return (
        "groups were given to a function of scikit-learn, which did not hand them to the ranker: "
        f"{EFFECT[method]}. {remedy}. If one list is meant, say so by make_target(y, [0] * len(y))."
    )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _was_reported(routed: Any, method: str) -> bool:
    """Whether the same call of scikit-learn was reported before; if not, it is from now on."""
    last = _reported.get(method)
    if last is not None and last() is routed:
        return True
    with contextlib.suppress(TypeError):  # a plain dict cannot be remembered this way
        _reported[method] = weakref.ref(routed)
    return False


def _held_back(frame: FrameType, method: str) -> Any:
    """What this function routes, if that has groups but none for the ranker's method or in y."""
    code = frame.f_code
    if ROUTED not in code.co_varnames and ROUTED not in code.co_cellvars:
        return None
    if not _module(frame).startswith("sklearn."):
        return None
    try:
        local = frame.f_locals
        routed: Any = local[ROUTED]
        is_given = _has_groups(routed["splitter"]["split"]) or _has_groups(
            routed["estimator"]["fit"]
        )
        is_received = _has_groups(routed[RECEIVER[method]].get(method) or {})
        in_target = getattr(getattr(local.get("y"), "dtype", None), "names", None) is not None
    except (AttributeError, KeyError, TypeError):  # another version keeps its books otherwise
        return None
    return routed if is_given and not is_received and not in_target else None


def _has_groups(metadata: dict[str, Any]) -> bool:
    """Whether groups are among the metadata, by themselves or for a step of a Pipeline."""
    return any(
        value is not None and (name == "groups" or name.endswith("__groups"))
        for name, value in metadata.items()
    )
