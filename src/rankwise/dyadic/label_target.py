"""Scores of labels from scores, ranks, sets or classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from rankwise.arrays import Array, Labels, MatrixLike
from rankwise.dyadic.fitting import check_table
from rankwise.formatting import join_words
from rankwise.frames import as_array, column_names
from rankwise.validation import check_float_array, check_option

LISTED_LABELS = 5  # in a message
LISTED_RANKS = 12


class LabelTarget(NamedTuple):
    """Scores of the labels.

    Attributes
    ----------
    Y : ndarray of shape (n_instances, n_labels)
        Larger is better, NaN where unknown.
    labels : ndarray of shape (n_labels,)
        Names of the columns.
    is_class : bool
        Whether each instance has one class, which is preferred to all other labels.
    """

    Y: Array
    labels: Labels
    is_class: bool


def read_labels(Y: MatrixLike, values: str, fitted_labels: Labels | None = None) -> LabelTarget:
    """Scores of the labels from the target that the user passed.

    A target of one dimension contains the class of each instance. With the labels of a fitted
    model, the columns are those labels, in their order.
    """
    check_option("values", values, ("scores", "ranks"))
    if Y is None:
        raise ValueError(
            "this ranker requires y to be passed, but the target y is None; pass scores or ranks "
            "of the labels, one row per instance."
        )
    if sp.issparse(Y):
        Y = Y.toarray()
    names = column_names(Y)
    if isinstance(Y, list | tuple):
        type_of_target(Y)  # refuses a list of labels for each instance
    Y = as_array(Y, "Y")
    array = np.asarray(Y)
    if array.ndim == 1 and names is None:
        return _read_classes(array, fitted_labels)
    if names is None:
        labels: Labels = np.arange(array.shape[1])
    else:
        labels = _label_array(names)
    advice = "encode the labels as numbers, larger ones for better labels"
    scores = check_float_array("Y", Y, advice)
    if values == "ranks":
        scores = _scores_of_ranks(scores)
    target = LabelTarget(check_table(scores, "instance", "label"), labels, False)
    if fitted_labels is None:
        return target
    return _order_columns(target, fitted_labels)


def _read_classes(y: Labels, fitted_labels: Labels | None) -> LabelTarget:
    """Score 1 for the class of each instance, 0 for all other labels."""
    check_classification_targets(y)
    labels = fitted_labels
    if labels is None:
        labels = _label_array(np.unique(y).tolist())
    if len(labels) < 2:
        raise ValueError(
            f"all instances are of one class, {labels.tolist()[0]!r}; expected at least two "
            "classes, or scores of all labels."
        )
    classes = y
    if labels.dtype.kind not in "iu":
        classes = y.astype(str)
    is_class = classes[:, None] == labels
    unknown = y[~is_class.any(axis=1)].tolist()
    if unknown:
        raise ValueError(
            f"the class {unknown[0]!r} is unknown to the model, which knows "
            f"{join_words(map(repr, labels.tolist()), LISTED_LABELS)}."
        )
    return LabelTarget(is_class.astype(np.float64), labels, True)


def _scores_of_ranks(ranks: Array) -> Array:
    """Minus the ranks; those of a row must be 1, 2, … without gaps or duplicates."""
    sorted_ranks = np.sort(ranks, axis=1)  # NaN is last
    expected = np.arange(1.0, ranks.shape[1] + 1)
    is_wrong = ((sorted_ranks != expected) & ~np.isnan(sorted_ranks)).any(axis=1)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        listed = join_words((f"{rank:g}" for rank in sorted_ranks[row]), LISTED_RANKS)
        raise ValueError(
            f"the ranks of row {row} have gaps or duplicates: {listed}; expected 1 (best), 2, … up "
            "to the number of ranked labels, each once. For ties and gaps pass -ranks with "
            "values='scores'."
        )
    return -ranks


def _order_columns(target: LabelTarget, fitted_labels: Labels) -> LabelTarget:
    """The target with its columns in the order of the labels of a fitted model."""
    column_of_label = {label: k for k, label in enumerate(target.labels.tolist())}
    if column_of_label.keys() != set(fitted_labels.tolist()):
        has_no_names = list(column_of_label) == list(range(len(fitted_labels)))
        if has_no_names:  # an array, whose columns are in the order of those in fit
            return target._replace(labels=fitted_labels)
        passed = join_words(map(repr, target.labels.tolist()), LISTED_LABELS)
        expected = join_words(map(repr, fitted_labels.tolist()), LISTED_LABELS)
        raise ValueError(
            f"Y has the labels {passed}, but the model was trained with {expected}; pass a column "
            "for each label of the model."
        )
    order = [column_of_label[label] for label in fitted_labels.tolist()]
    return target._replace(Y=target.Y[:, order], labels=fitted_labels)


def _label_array(names: Sequence[object]) -> Labels:
    """Distinct labels, as integers if all are, else as text."""
    if len(set(names)) < len(names):
        raise ValueError("two columns of Y have the same name; give each label one column.")
    labels = np.array(names)
    if labels.dtype.kind in "iu":
        return labels
    return np.array([str(name) for name in names])
