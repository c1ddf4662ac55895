"""Notice groups that scikit-learn gave to a splitter but not to the ranker.

With metadata routing off (scikit-learn's default) ``GridSearchCV(...).fit(X, y, groups=g)``,
``cross_validate(..., groups=g)`` and their like hand the groups to the splitter only, so a ranker
inside is trained on one global list. Nothing that `fit` is given tells; but whoever calls it is
still on the stack, with the groups in hand. All these functions of scikit-learn 1.7 to 1.9, and
feature selection with cross-validation, keep what they pass to whom in a local variable named
`routed_params`, which is the only thing looked at here.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from sklearn import get_config

__all__ = ["warn_if_groups_were_lost"]

ROUTED = "routed_params"
BETWEEN = ("sklearn", "joblib", "rankwise", "contextlib")


def warn_if_groups_were_lost() -> None:
    """Warn if a function of scikit-learn up the stack keeps the groups for its splitter.

    To be called from `fit` when it got no groups, neither by name nor inside y; and from
    ``__sklearn_clone__``, where the data are not at hand but the function that has them is. Looks
    at nothing if metadata routing is on, and costs some microseconds otherwise. A `fit` in a worker
    process or thread of joblib does not have the caller on its stack and cannot tell; the copies
    for the workers are cloned in the calling process, which can.
    """
    if get_config()["enable_metadata_routing"]:
        return
    frame = sys._getframe(1) if hasattr(sys, "_getframe") else None
    depth = 2  # in the sense of stacklevel: 1 is this function, 2 its caller
    while frame is not None and not _keeps_groups(frame):
        frame, depth = frame.f_back, depth + 1
    if frame is None:
        return
    while frame is not None and _module(frame).split(".")[0] in BETWEEN:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(
        "groups were given to the splitter of a scikit-learn function but not to the ranker, "
        "which compares all items as one list. Pass make_target(y, groups) as y, or turn "
        "metadata routing on: sklearn.set_config(enable_metadata_routing=True). If one list is "
        "meant, say so by make_target(y, [0] * len(y)).",
        stacklevel=depth,
    )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _keeps_groups(frame: FrameType) -> bool:
    """Whether this function has groups for a splitter, none for the ranker, and none in y."""
    code = frame.f_code
    if ROUTED not in code.co_varnames and ROUTED not in code.co_cellvars:
        return False
    if not _module(frame).startswith("sklearn."):
        return False
    try:
        local = frame.f_locals
        routed: Any = local[ROUTED]
        given = [*routed["estimator"].get("fit", ())]
        return (
            routed["splitter"]["split"]["groups"] is not None
            and not any(name == "groups" or name.endswith("__groups") for name in given)
            and getattr(getattr(local.get("y"), "dtype", None), "names", None) is None
        )
    except (AttributeError, KeyError, TypeError):  # another version keeps its books otherwise
        return False
