"""Views of the items that members of AutoRanker receive: dense and wide columns, and cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.auto.members import MIN_ITEMS_FOR_TREES
from rankwise.auto.tree_growth import is_predictive
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import Preferences, TrainingTarget
from rankwise.preprocessing.table_vectorizer import TableFeatures, TableVectorizer

MAX_WIDE = 1000  # most frequent values and words, which exact members receive
PROBED_ITEMS = 20_000  # items on which an identifier is tested


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


def prepare_table(X: Any, read_target: Any) -> PreparedTable:
    """Decide how the columns of a table are used.

    `read_target` is called without arguments if the table has an identifier that could be a number.
    """
    vectorizer = TableVectorizer().decide_columns(X)
    numbers = vectorizer.numbered(X)
    predictive_ids: list[str] = []
    if numbers:
        predictive_ids = find_predictive_ids(numbers, read_target())
        vectorizer = TableVectorizer(wanted=predictive_ids).decide_columns(X)
    return PreparedTable(vectorizer, predictive_ids)


def find_predictive_ids(numbers: dict[str, Array], target: TrainingTarget) -> list[str]:
    """Columns with names of identifiers whose numbers predict the order of held-out items."""
    if isinstance(target, Preferences):
        return []
    n_items = len(target.y)
    if target.y.ndim > 1 or n_items < MIN_ITEMS_FOR_TREES:
        return []
    rows = np.arange(0, n_items, 1 + n_items // PROBED_ITEMS)
    graph = ScoreGraph(target.take(rows))
    return [name for name, values in numbers.items() if is_predictive(values[rows], graph)]


def frequent_values(features: TableFeatures) -> Indices:
    """Columns of the most frequent values and words, in order."""
    n_items_of_value = features.sparse.count_nonzero(axis=0)
    n_items_of_value = np.where(features.is_wide, n_items_of_value, 0)
    n_columns = min(MAX_WIDE, int(features.is_wide.sum()))
    return np.sort(np.argsort(-n_items_of_value, kind="stable")[:n_columns])


def views_of_table(features: TableFeatures, wide_values: Indices) -> dict[str, Any]:
    """Dense columns, these with the frequent values and words, and cells with all of them."""
    wide = features.dense
    if len(wide_values):
        values = features.sparse[:, wide_values]
        wide = sp.hstack([sp.csr_array(features.dense), values], format="csr")
    cells = features.cells
    if features.sparse.shape[1]:
        cells = sp.hstack([sp.csr_array(cells), features.sparse], format="csr")
    return {"dense": features.dense, "wide": wide, "trees": cells}


def views_of_matrix(X: Any) -> dict[str, Any]:
    """The same matrix in all views; sparse items have no view for trees."""
    if sp.issparse(X):
        return {"dense": X, "wide": X}
    return {"dense": X, "wide": X, "trees": X}
