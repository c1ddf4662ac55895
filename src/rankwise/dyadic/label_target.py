"""Scores of labels from scores, ranks, sets or classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from rankwise.arrays import Array, Labels, MatrixLike
from rankwise.dyadic.fitting import check_table
from rankwise.errors import warn_user
from rankwise.formatting import join_words
from rankwise.frames import as_array, column_names
from rankwise.validation import check_float_array, check_option

LISTED_LABELS = 5  # in a message
LISTED_RANKS = 12
# Fewer rows or labels may have the numbers of ranks by chance.
LEAST_RANKED_INSTANCES = 5
LEAST_RANKED_LABELS = 3


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
    names_in_frame = column_names(Y)
    if isinstance(Y, list | tuple):
        type_of_target(Y)  # refuses a list of labels for each instance
    Y = as_array(Y, "Y")
    array = np.asarray(Y)
    if array.ndim == 1 and names_in_frame is None:
        return _read_classes(array, fitted_labels)

    if names_in_frame is None:
        labels: Labels = np.arange(array.shape[1])
    else:
        labels = _make_label_array(names_in_frame)
    advice = "encode the labels as numbers, larger ones for better labels"
    scores = check_float_array("Y", Y, advice)
    if values == "ranks":
        scores = _scores_of_ranks(scores)
    scores = check_table(scores, "instance", "label")
    target = LabelTarget(scores, labels, is_class=False)
    if fitted_labels is None:
        if values == "scores":
            _warn_of_ranks(scores)
        return target
    return _order_columns(target, fitted_labels)


def _read_classes(y: Labels, fitted_labels: Labels | None) -> LabelTarget:
    """Score 1 for the class of each instance, 0 for all other labels."""
    check_classification_targets(y)
    labels = fitted_labels
    if labels is None:
        labels = _make_label_array(np.unique(y).tolist())
    if len(labels) < 2:
        raise ValueError(
            f"all instances are of one class, {labels.tolist()[0]!r}; expected at least two "
            "classes, or scores of all labels."
        )
    class_of_instance = y
    has_integer_labels = labels.dtype.kind in "iu"
    if not has_integer_labels:  # the labels are strings
        class_of_instance = y.astype(str)
    is_class_of_instance = class_of_instance[:, None] == labels  # (n_instances, n_labels)
    unknown_classes = y[~is_class_of_instance.any(axis=1)].tolist()
    if unknown_classes:
        raise ValueError(
            f"the class {unknown_classes[0]!r} is unknown to the model, which knows "
            f"{join_words(map(repr, labels.tolist()), LISTED_LABELS)}."
        )
    return LabelTarget(is_class_of_instance.astype(np.float64), labels, is_class=True)


def _scores_of_ranks(ranks: Array) -> Array:
    """Minus the ranks; the ranks of a row must be 1, 2, … without gaps or duplicates."""
    sorted_ranks = np.sort(ranks, axis=1)  # NaN is last
    expected_ranks = np.arange(1.0, ranks.shape[1] + 1)
    is_wrong_rank = (sorted_ranks != expected_ranks) & ~np.isnan(sorted_ranks)
    wrong_rows = np.flatnonzero(is_wrong_rank.any(axis=1))
    if len(wrong_rows):
        row = int(wrong_rows[0])
        listed = join_words((f"{rank:g}" for rank in sorted_ranks[row]), LISTED_RANKS)
        raise ValueError(
            f"the ranks of row {row} have gaps or duplicates: {listed}; expected 1 (best), 2, … up "
            "to the number of ranked labels, each once. For ties and gaps pass -ranks with "
            "values='scores'."
        )
    return -ranks


def _warn_of_ranks(scores: Array) -> None:
    """Warn about scores that look like ranks, because the largest score is the best."""
    n_instances, n_labels = scores.shape
    if n_instances < LEAST_RANKED_INSTANCES or n_labels < LEAST_RANKED_LABELS:
        return
    if (np.sort(scores, axis=1) == np.arange(1.0, n_labels + 1)).all():
        warn_user(
            f"every row of y has the numbers 1 to {n_labels}, as ranks do, but the largest score "
            "is the best label. If 1 is the best label, pass values='ranks'; if not, y - 1 avoids "
            "this warning."
        )


def _order_columns(target: LabelTarget, fitted_labels: Labels) -> LabelTarget:
    """The target with its columns in the order of the labels of a fitted model."""
    column_of_label = {label: column for column, label in enumerate(target.labels.tolist())}
    if column_of_label.keys() != set(fitted_labels.tolist()):
        has_numbered_columns = list(column_of_label) == list(range(len(fitted_labels)))
        if has_numbered_columns:  # an array, whose columns are in the order of those in fit
            return target._replace(labels=fitted_labels)
        passed = join_words(map(repr, target.labels.tolist()), LISTED_LABELS)
        expected = join_words(map(repr, fitted_labels.tolist()), LISTED_LABELS)
        raise ValueError(
            f"Y has the labels {passed}, but the model was trained with {expected}; pass a column "
            "for each label of the model."
        )
    columns_in_fitted_order = [column_of_label[label] for label in fitted_labels.tolist()]
    return target._replace(Y=target.Y[:, columns_in_fitted_order], labels=fitted_labels)


def _make_label_array(names: Sequence[object]) -> Labels:
    """Distinct labels, as integers if all are, else as text."""
    if len(set(names)) < len(names):
        raise ValueError("two columns of Y have the same name; give each label one column.")
    labels = np.array(names)
    if labels.dtype.kind in "iu":
        return labels
    return np.array([str(name) for name in names])
