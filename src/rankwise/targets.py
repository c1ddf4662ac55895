"""What a learner is told about its items: scores, scores with groups in one array, or a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.frames import check_same_index
from rankwise.groups import encode_groups
from rankwise.real_numbers import as_real

__all__ = ["as_scores", "make_target", "split_target"]


def make_target(y: ArrayLike, groups: ArrayLike) -> NDArray[Any]:
    """Join scores and group labels in one structured array that scikit-learn can slice.

    With metadata routing off (scikit-learn's default) ``GridSearchCV(...).fit(X, y, groups=g)``
    gives the groups to the splitter only and the ranker would learn one global list. A target
    that carries its groups cannot lose them.

    Parameters
    ----------
    y : array-like of shape (n_items,) or (n_items, n_outputs)
        Scores; NaN for unscored items, which only the semi-supervised learners take.
    groups : array-like of shape (n_items,)
        Group labels. Integers and strings are kept; any other labels become codes.

    Returns
    -------
    ndarray with fields "score" and "group"
        Pass it as `y` to any estimator or metric of rankwise, with ``groups=None``.

    Examples
    --------
    >>> target = make_target([3.0, 1.0, 2.0], ["a", "a", "b"])
    >>> target["group"]
    array(['a', 'a', 'b'], dtype='<U1')
    """
    check_same_index(y=y, groups=groups)
    scores = as_scores(y, allow_nan=True)
    codes, labels = encode_groups(groups, len(scores))
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    members = labels[codes] if labels.dtype.kind in "iuU" else codes
    target = np.empty(
        len(scores),
        dtype=[("score", np.float64, scores.shape[1:]), ("group", members.dtype)],
    )
    target["score"] = scores
    target["group"] = members
    return target


def split_target(y: Any, groups: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
    """Take a target of `make_target` apart; anything else is passed through unchanged."""
    if getattr(getattr(y, "dtype", None), "names", None) is None:
        return y, groups
    if set(y.dtype.names) != {"score", "group"}:
        raise ValueError(
            f"y is a structured array with the fields {list(y.dtype.names)}; expected the fields "
            "'score' and 'group' as made by rankwise.make_target(y, groups)."
        )
    if groups is not None:
        raise ValueError(
            "y carries its groups (make_target) and groups was given as well; pass one of them."
        )
    return y["score"], y["group"]


def as_scores(y: Any, *, allow_nan: bool = False, keep: bool = False) -> Array:
    """Finite real scores as float64, shape (n_items,) or (n_items, n_outputs).

    With `allow_nan` a score may be NaN, "not scored", as the semi-supervised learners take it. The
    result is a copy, which nobody else can change; with `keep` it may be a read-only view of y, and
    such a view is not copied when it comes back.
    """
    if y is None:
        raise ValueError(
            "this ranker requires y to be passed, but the target y is None; give scores, "
            "a target of make_target, or a preference graph."
        )
    if type(y) is np.ndarray and y.dtype == np.float64 and (keep or not y.flags.writeable):
        scores = y.view()
        scores.flags.writeable = False
    else:
        advice = "map the labels to numbers so that a larger number means a better item"
        scores = as_real("y", y, advice)
    if scores.ndim not in (1, 2) or 0 in scores.shape:
        raise ValueError(
            f"y has shape {scores.shape}; expected one score per item, shape (n_items,), "
            "or several outputs, shape (n_items, n_outputs), and at least one item."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(scores.sum()):
            return scores
    bad = np.isinf(scores) if allow_nan else ~np.isfinite(scores)
    if bad.any():
        row = int(np.argmax(bad.reshape(len(scores), -1).any(axis=1)))
        what = (
            "NaN"
            if np.isnan(scores[row]).any() and not allow_nan
            else "infinity or a value too large for dtype('float64')"
        )
        raise ValueError(
            f"Input y contains {what}. The first such row is {row}; give every item a finite score "
            "or drop the row (only the semi-supervised learners take NaN, as 'not scored')."
        )
    return scores
