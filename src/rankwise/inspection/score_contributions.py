"""What each column adds to the score of an item, inside its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.groups import Groups, encode_groups
from rankwise.inspection.model_parts import input_columns, name_columns, unwrap
from rankwise.rankers.pipelines import input_column_of_feature
from rankwise.validation import check_option


@dataclass(frozen=True, eq=False)
class Contributions:
    """What the columns of a linear model add to the scores of items; made by `contributions`.

    Attributes
    ----------
    weights : ndarray of shape (n_columns,)
        Of the columns of X; ones if each column of X is already what it adds.
    X : ndarray or sparse matrix of shape (n_items, n_columns)
        Columns with one weight each.
    groups : Groups
        The group of each item.
    names : list of str
        Of the columns.
    """

    weights: Array
    X: Any
    groups: Groups
    names: list[str]

    @cached_property
    def means(self) -> Any:
        """Mean of each column of X in each group."""
        codes, sizes = self.groups.codes, self.groups.sizes
        shape = (len(sizes), len(codes))
        average = sp.csr_matrix((1.0 / sizes[codes], (codes, np.arange(len(codes)))), shape=shape)
        return average @ self.X

    @cached_property
    def values(self) -> Array:
        """What each column adds to each item, shape (n_items, n_columns).

        Their sum over the columns is the score of the item less the mean score of its group.
        """
        return self.of(np.arange(len(self.groups.codes)), np.arange(len(self.weights)))

    def of(self, items: Indices, columns: Indices) -> Array:
        """The same for some items and columns only."""
        rows, means = self.X[items], self.means[self.groups.codes[items]]
        centered = rows[:, columns] - means[:, columns]
        dense = centered.toarray() if sp.issparse(centered) else np.asarray(centered)
        return np.asarray(self.weights[columns] * dense, dtype=np.float64)

    @cached_property
    def scores(self) -> Array:
        """Scores of the items less the mean of their group: the sum of `values`."""
        means = self.means @ self.weights
        return np.asarray(self.X @ self.weights - means[self.groups.codes])

    @cached_property
    def spread(self) -> Array:
        """Standard deviation inside groups of what each column adds: how much it moves items."""
        n_items = len(self.groups.codes)
        if sp.issparse(self.X):
            squares = np.ones(n_items) @ self.X.multiply(self.X)
            between = self.groups.sizes @ self.means.multiply(self.means)
            total = np.maximum(squares - between, 0.0)
        else:
            total = ((self.X - self.means[self.groups.codes]) ** 2).sum(axis=0)
        return np.asarray(np.abs(self.weights) * np.sqrt(total / n_items))

    @cached_property
    def share(self) -> Array:
        """Share of the variance of the scores inside groups that each column explains.

        ``Σ_i c_ij f_i / Σ_i f_i²`` for what column j adds to item i, c_ij, and centered scores f.
        The shares add up to 1; a column that works against the others has a negative one.
        """
        f = self.scores
        largest = float(np.abs(f).max())
        if not largest:
            return np.zeros(len(self.weights))
        f = f / largest  # so that no square is too large or too small
        return np.asarray((self.weights / largest) * (self.X.T @ f) / (f @ f))


def contributions(
    model: Any, X: Any, groups: ArrayLike | None = None, *, by: str = "column"
) -> Contributions:
    """What each column adds to the scores of a linear model, inside groups.

    Use it to see why an item of a linear model is where it is.

    Only differences inside a group matter to a ranking, so all is centered there: with weights w, a
    feature j adds ``w_j (x_ij − mean of x_j in the group of i)`` to the score of item i less the
    mean score of its group. These are the SHAP values of a linear model whose background is the
    group of the item.

    Parameters
    ----------
    model : estimator
        A fitted linear ranker, or a linear model of scikit-learn; a Pipeline that ends in one.
    X : array-like, sparse matrix or data frame of shape (n_items, n_features)
        Items as `predict` takes them.
    groups : array-like of shape (n_items,), optional
        Group labels; None makes one list.
    by : {"column", "feature"}
        By the columns of X, where all features that a Pipeline makes of a column (one for each
        category, an indicator of gaps) count together; or by the features that the ranker sees.

    Returns
    -------
    Contributions
        `values`, one row for each item and one column for each of `names`; `spread` and `share`
        sum them up.

    Raises
    ------
    ValueError
        If the model is not linear, or a step makes features of several columns (PCA) and `by` is
        "column".

    See Also
    --------
    permutation_importance : For any model.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankwise import RankRLS
    >>> from rankwise.inspection import contributions
    >>> X = pd.DataFrame({"bm25": [1.0, 2.0, 3.0, 4.0], "age": [2.0, 1.0, 1.0, 3.0]})
    >>> model = make_pipeline(StandardScaler(), RankRLS(1e-6)).fit(X, [1, 5, 7, 4])
    >>> found = contributions(model, X, groups=["a", "a", "b", "b"])
    >>> found.names
    ['bm25', 'age']
    >>> found.values.round(2)
    array([[-0.9 , -1.17],
           [ 0.9 ,  1.17],
           [-0.9 ,  2.35],
           [ 0.9 , -2.35]])
    """
    check_option("by", by, ("column", "feature"))
    parts = unwrap(model)
    weights = parts.weights()
    if weights is None:
        raise ValueError(
            f"{parts.name} has no weight for each feature: it is not linear, has several outputs, "
            "or is no ranker. permutation_importance takes any model."
        )
    features = parts.features(X, groups)
    encoded = encode_groups(groups, features.shape[0])
    first = model if parts.steps is None else parts.steps
    n_columns = getattr(first, "n_features_in_", len(weights))
    names = input_columns(first, X)
    if by == "feature" or parts.steps is None:
        return Contributions(weights, features, encoded, parts.feature_names(names, len(weights)))
    sources = input_column_of_feature(parts.steps, n_columns)
    if sources is None:
        raise ValueError(
            f"a step of {', '.join(parts.step_names)} makes features of several columns, so that "
            "no column has a part of its own. by='feature' gives the parts of the features that "
            "the ranker sees."
        )
    added = features @ sp.csr_array(
        (weights, (np.arange(len(sources)), sources)), (len(sources), n_columns)
    )
    return Contributions(np.ones(n_columns), added, encoded, name_columns(names, n_columns))
