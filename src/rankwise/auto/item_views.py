"""Views of the items that members of AutoRanker receive: dense and wide columns, and cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.auto.members import MIN_ITEMS_FOR_TREES
from rankwise.auto.tree_features import TreeFeatures
from rankwise.auto.tree_growth import is_predictive
from rankwise.frames import narwhals_frame
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import Preferences, TrainingTarget
from rankwise.preprocessing.table_vectorizer import TableFeatures, TableVectorizer
from rankwise.preprocessing.validate_features import validate_X

MAX_WIDE = 1000  # most frequent values and words, which exact members receive
PROBED_ITEMS = 20_000  # items on which an identifier is tested


class FittedViews(NamedTuple):
    """Views of the training items, and how they were computed.

    Attributes
    ----------
    views : dict
        Columns by name; see `TrainingData`.
    trees : TreeFeatures
        The first step of trees, not fitted.
    table : TableVectorizer or None
        Transforms new items; None for plain numbers.
    wide_values : ndarray of int
        Columns of single values and words in the view "wide".
    notes : list of str
        Remarks on columns.
    """

    views: dict[str, Any]
    trees: TreeFeatures
    table: TableVectorizer | None
    wide_values: Indices
    notes: list[str]


class PreparedTable(NamedTuple):
    """A fitted vectorizer of a table.

    Attributes
    ----------
    vectorizer : TableVectorizer
        Transforms new items.
    predictive_ids : list of str
        Columns with names of identifiers that are used as numbers.
    """

    vectorizer: TableVectorizer
    predictive_ids: list[str]

    @property
    def has_plain_numbers(self) -> bool:
        """Whether all columns are numbers without missing values, so that it has no effect."""
        columns = self.vectorizer.facts_
        return all(column.kind == "number" and not column.n_missing for column in columns)


def fit_views(estimator: Any, X: Any, target: TrainingTarget) -> FittedViews:
    """Decide how the columns of X are used, and compute the views.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    X : array-like, sparse matrix or data frame
        Items.
    target : Relevance or Preferences
        Decides whether an identifier that could be a number is used as one.
    """
    no_values: Indices = np.empty(0, dtype=np.intp)
    is_frame = narwhals_frame(X) is not None
    if not is_frame:
        X = validate_X(estimator, X, accept_sparse="csr", ensure_all_finite="allow-nan")
    # the sum is NaN if one value is
    has_missing_values = not is_frame and not sp.issparse(X) and np.isnan(np.sum(X))
    if not is_frame and not has_missing_values:  # a matrix of numbers is not transformed
        views = views_of_matrix(validate_X(estimator, X, accept_sparse="csr"))  # and refuse inf
        return FittedViews(views, TreeFeatures(), None, no_values, notes=[])

    # decide how each column of the table is used
    table = prepare_table(X, target)
    notes = [
        f"column {name} has the name of an identifier, but its numbers predict the order of "
        "held-out items: it is used as a number"
        for name in table.predictive_ids
    ]
    if table.has_plain_numbers:  # equivalent to a matrix
        views = views_of_matrix(validate_X(estimator, X, accept_sparse="csr"))
        return FittedViews(views, TreeFeatures(), None, no_values, notes)

    vectorizer = table.vectorizer
    estimator.n_features_in_ = vectorizer.n_features_in_
    if hasattr(vectorizer, "feature_names_in_"):
        estimator.feature_names_in_ = vectorizer.feature_names_in_
    features = vectorizer.views(X)
    wide_values = frequent_values(features)
    trees = TreeFeatures(features.n_codes, features.sizes)
    views = views_of_table(features, wide_values)
    return FittedViews(views, trees, vectorizer, wide_values, notes)


def prepare_table(X: Any, target: TrainingTarget) -> PreparedTable:
    """Decide how the columns of a table are used.

    An identifier that could be a number is used as one if it predicts the order of the target.
    """
    vectorizer = TableVectorizer().fit_without_warning(X)
    numbers_of_ids = vectorizer.numbered(X)
    predictive_ids: list[str] = []
    if numbers_of_ids:
        predictive_ids = find_predictive_ids(numbers_of_ids, target)
        vectorizer = TableVectorizer(keep=predictive_ids).fit_without_warning(X)
    return PreparedTable(vectorizer, predictive_ids)


def find_predictive_ids(numbers: dict[str, Array], target: TrainingTarget) -> list[str]:
    """Columns with names of identifiers whose numbers predict the order of held-out items."""
    if isinstance(target, Preferences):
        return []
    n_items = len(target.y)
    has_several_outputs = target.y.ndim > 1
    if has_several_outputs or n_items < MIN_ITEMS_FOR_TREES:
        return []
    step = 1 + n_items // PROBED_ITEMS
    sample = np.arange(0, n_items, step)
    graph = ScoreGraph(target.take(sample))
    return [name for name, values in numbers.items() if is_predictive(values[sample], graph)]


def frequent_values(features: TableFeatures) -> Indices:
    """Columns of the most frequent values and words, in order."""
    n_items_of_value = features.sparse.count_nonzero(axis=0)
    n_items_of_value = np.where(features.is_wide, n_items_of_value, 0)  # the others come last
    n_columns = min(MAX_WIDE, int(features.is_wide.sum()))
    most_frequent_first = np.argsort(-n_items_of_value, kind="stable")
    return np.sort(most_frequent_first[:n_columns])


def views_of_table(features: TableFeatures, wide_values: Indices) -> dict[str, Any]:
    """Dense columns; these with frequent values and words; cells with all of these; and cells."""
    wide = features.dense
    if len(wide_values):
        values = features.sparse[:, wide_values]
        wide = sp.hstack([sp.csr_array(features.dense), values], format="csr")
    cells = features.cells
    if features.sparse.shape[1]:
        cells = sp.hstack([sp.csr_array(cells), features.sparse], format="csr")
    return {"dense": features.dense, "wide": wide, "trees": cells, "cells": features.cells}


def views_of_matrix(X: Any) -> dict[str, Any]:
    """The same matrix in all views; sparse items have no view for trees."""
    if sp.issparse(X):
        return {"dense": X, "wide": X}
    return {"dense": X, "wide": X, "trees": X, "cells": X}
