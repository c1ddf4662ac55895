"""What is known about the labels of each instance: scores, ranks, sets of labels, or one class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.frames import as_array, column_names
from rankwise.options import check_option
from rankwise.real_numbers import as_real, refuse_masked

VALUES = ("scores", "ranks")


class LabelTarget(NamedTuple):
    """Scores of the labels.

    Attributes
    ----------
    Y : ndarray of shape (n_instances, n_labels)
        Larger is better, nan where unknown.
    labels : ndarray of shape (n_labels,)
        Names of the columns.
    is_class : bool
        Whether each instance has one class, which is preferred to all others.
    """

    Y: Array
    labels: NDArray[Any]
    is_class: bool


def read_labels(Y: Any, values: str, known: NDArray[Any] | None = None) -> LabelTarget:
    """Scores of the labels from whatever the user has; `known` are the labels of a fitted model.

    A flat Y holds one class for each instance. Columns of a data frame are brought into the order
    of the known labels.
    """
    check_option("values", values, VALUES)
    if Y is None:
        raise ValueError(
            "this ranker requires y to be passed, but the target y is None; give scores or ranks "
            "of the labels, one row for each instance."
        )
    if sp.issparse(Y):
        Y = Y.toarray()
    names = column_names(Y)
    refuse_masked("Y", Y)
    _refuse_lists(Y)
    Y = as_array(Y, "Y")
    array = np.asarray(Y)
    if array.ndim == 1 and names is None:
        return _classes(array, known)
    if array.ndim != 2:
        raise ValueError(
            f"Y has shape {array.shape}; expected a score for each instance and label, shape "
            "(n_instances, n_labels), or one class for each instance."
        )
    labels = np.arange(array.shape[1]) if names is None else _names(names)
    scores = as_real(
        "Y", Y, "map what is said of a label to numbers, larger ones for better labels"
    )
    if values == "ranks":
        scores = _from_ranks(scores)
    target = LabelTarget(check_table(scores, "instance", "label"), labels, False)
    return target if known is None else _in_order(target, known)


def _refuse_lists(Y: Any) -> None:
    """Sets of labels by name, which NumPy would take for a ragged array or for text."""
    rows = Y if isinstance(Y, (list, tuple)) else []
    if any(isinstance(label, str) for row in rows if not np.isscalar(row) for label in row) or (
        any(isinstance(row, (set, frozenset)) for row in rows)
    ):
        raise ValueError(
            "Y has a list of labels for each instance; pass the table of zeros and ones that "
            "sklearn.preprocessing.MultiLabelBinarizer makes of it, with ties='exclude'."
        )


def check_table(Y: Array, row: str, column: str) -> Array:
    """Two columns or more, no infinity, and in each row and column a known score."""
    if Y.shape[1] < 2:
        raise ValueError(
            f"Y has the scores of {Y.shape[1]} {column}{'' if Y.shape[1] == 1 else 's'}; expected "
            f"at least two {column}s to rank for each {row}. One score for each {row} is a list of "
            "items: RankRLS ranks those."
        )
    if np.isinf(Y).any():
        i, j = np.argwhere(np.isinf(Y))[0]
        raise ValueError(
            f"Y contains infinity, the first in row {i}, column {j}; give finite scores, and NaN "
            "where a score is unknown."
        )
    known = ~np.isnan(Y)
    for axis, what in ((1, row), (0, column)):
        empty = np.flatnonzero(~known.any(axis=axis))
        if len(empty):
            raise ValueError(
                f"Y has no score for {len(empty)} {what}{'s' if len(empty) > 1 else ''}, the first "
                f"is number {empty[0]}; leave {'them' if len(empty) > 1 else 'it'} out."
            )
    return Y


def _classes(y: NDArray[Any], known: NDArray[Any] | None) -> LabelTarget:
    """One class for each instance: 1 for it, 0 for all others."""
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: Y must hold real numbers or classes.")
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity; give each instance a class.")
        if (y != np.rint(y)).any():
            raise ValueError(
                f"Y has shape {y.shape} and fractions; expected scores of all labels, shape "
                "(n_instances, n_labels), or one class for each instance. Unknown label type: "
                "continuous."
            )
    try:
        found, code = np.unique(y, return_inverse=True)
    except TypeError:
        raise ValueError("Y mixes classes of different types; give all as strings.") from None
    labels = found if known is None else known
    if known is not None:
        place = {label: k for k, label in enumerate(known.tolist())}
        code = np.array([_place(label, place) for label in found.tolist()])[code]
    if len(labels) < 2:
        raise ValueError(
            f"all instances are of one class, {labels.tolist()[0]!r}; expected at least two "
            "classes, or scores of all labels."
        )
    Y = np.zeros((len(y), len(labels)))
    Y[np.arange(len(y)), code] = 1.0
    return LabelTarget(Y, _names(labels.tolist()), True)


def _from_ranks(ranks: Array) -> Array:
    """Scores, minus the ranks; ranks of a row are 1, 2, … without gap or duplicate."""
    order = np.sort(ranks, axis=1)  # nan is last
    wanted = np.arange(1.0, ranks.shape[1] + 1)
    wrong = (order != wanted) & ~np.isnan(order)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        seen = ranks[row][~np.isnan(ranks[row])]
        what = "duplicates" if len(np.unique(seen)) < len(seen) else "gaps"
        raise ValueError(
            f"the ranks of row {row} have {what}: {', '.join(f'{each:g}' for each in seen[:12])}; "
            "expected 1 (best), 2, … up to the number of ranked labels, each once. For ties and "
            "gaps pass -ranks with values='scores'."
        )
    return -ranks


def _in_order(target: LabelTarget, known: NDArray[Any]) -> LabelTarget:
    place = {label: k for k, label in enumerate(target.labels.tolist())}
    if sorted(map(str, place)) != sorted(map(str, known.tolist())):
        plain = np.array_equal(target.labels, np.arange(len(target.labels)))
        if plain and len(place) == len(known):  # an array, its columns as in fit
            return target._replace(labels=known)
        raise ValueError(
            f"Y has the labels {_some(target.labels)}, but the model was trained with "
            f"{_some(known)}; give a column for each of these."
        )
    order = [place[label] for label in known.tolist()]
    return target._replace(Y=target.Y[:, order], labels=known)


def _place(label: Any, place: dict[Any, int]) -> int:
    if label not in place:
        raise ValueError(
            f"the class {label!r} is unknown to the model, which knows "
            f"{_some(np.array(list(place)))}."
        )
    return place[label]


def _names(names: list[Any]) -> NDArray[Any]:
    if len(set(names)) < len(names):
        raise ValueError("two columns of Y have the same name; give each label one column.")
    is_whole = all(
        isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names
    )
    return np.array(names if is_whole else [str(name) for name in names])


def _some(labels: NDArray[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:5].tolist())
    return shown if len(labels) <= 5 else f"{shown}, … ({len(labels)} in all)"
