"""Boosted trees for losses that are functions of several rows, such as losses of comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from rankwise.arrays import Array
from rankwise.auto.tree_growth import LEARNING_RATE, lightgbm_or_none
from rankwise.runtime.threads import ENTRY_OF_TREE, limit_threads, n_threads_for

N_LEAVES = 31
LEAF_ROWS = 20  # fewest rows of a leaf
LEAST_CURVATURE = 1e-6

#: Gradient and curvature of a loss with respect to the score of each row.
ScoreDerivatives = Callable[[Array], tuple[Array, Array]]


class GradientTrees(Protocol):
    """Trees that grow one at a time along the gradient of a loss."""

    @property
    def n_trees(self) -> int:
        """Number of trees."""

    def add_trees(self, n_trees: int) -> None:
        """Grow further trees."""

    def predict(self, X: Array, first_tree: int) -> Array:
        """Sum of the trees from this one on."""

    @property
    def model(self) -> Any:
        """The trees, for `BoostedTrees.store_trees`."""


def start_gradient_trees(
    X: Array, derivatives: ScoreDerivatives, categorical: tuple[int, ...]
) -> GradientTrees:
    """Trees of LightGBM if it is installed, otherwise of scikit-learn."""
    if len(X) < 2 * LEAF_ROWS:
        raise ValueError(f"trees need at least {2 * LEAF_ROWS} rows, but there are {len(X)}")
    if lightgbm_or_none() is None:
        return ScikitLearnTrees(X, derivatives)
    return LightGBMTrees(X, derivatives, categorical)


class LightGBMTrees:
    """Trees of LightGBM, which treat columns of codes as categories.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Training rows.
    derivatives : callable
        Derivatives of the loss at the scores of these rows.
    categorical : tuple of int
        Columns of codes.
    """

    def __init__(
        self, X: Array, derivatives: ScoreDerivatives, categorical: tuple[int, ...]
    ) -> None:
        lightgbm = lightgbm_or_none()
        options = {
            "objective": "none",
            "learning_rate": LEARNING_RATE,
            "num_leaves": N_LEAVES,
            "min_data_in_leaf": LEAF_ROWS,
            "num_threads": n_threads_for(ENTRY_OF_TREE * X.size),
            "deterministic": True,
            "force_col_wise": True,
            "boost_from_average": False,
            "seed": 0,
            "verbosity": -1,
        }
        no_targets = np.zeros(len(X))  # the derivatives replace them
        dataset = lightgbm.Dataset(
            X, no_targets, categorical_feature=list(categorical), params=options
        )
        self.model = lightgbm.Booster(options, dataset)
        self._errors = lightgbm.basic.LightGBMError
        self.n_trees = 0
        self._derivatives = derivatives

    def add_trees(self, n_trees: int) -> None:
        """Grow further trees."""

        def gradient_and_curvature(scores: Array, dataset: Any) -> tuple[Array, Array]:
            return self._derivatives(scores)

        try:
            for _ in range(n_trees):
                self.model.update(fobj=gradient_and_curvature)
        except self._errors as error:  # such as no column that can be split
            raise ValueError(f"LightGBM cannot grow trees: {error}") from None
        self.n_trees = self.model.current_iteration()  # a tree without a split is dropped

    def predict(self, X: Array, first_tree: int) -> Array:
        """Sum of the trees from this one on."""
        if first_tree >= self.n_trees:  # no tree was added
            return np.zeros(len(X))
        scores = self.model.predict(
            X, raw_score=True, start_iteration=first_tree, num_iteration=-1, num_threads=1
        )
        return np.asarray(scores)


class ScikitLearnTrees:
    """Trees of scikit-learn, each fitted to the Newton steps of the rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Training rows; codes of categories are treated as numbers.
    derivatives : callable
        Derivatives of the loss at the scores of these rows.
    """

    def __init__(self, X: Array, derivatives: ScoreDerivatives) -> None:
        self._X = X
        self._derivatives = derivatives
        self._scores = np.zeros(len(X))
        self.model: list[HistGradientBoostingRegressor] = []

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.model)

    def add_trees(self, n_trees: int) -> None:
        """Grow further trees."""
        n_threads = n_threads_for(ENTRY_OF_TREE * self._X.size)
        with limit_threads(n_threads):
            for _ in range(n_trees):
                gradient, curvature = self._derivatives(self._scores)
                curvature = np.maximum(curvature, LEAST_CURVATURE)
                tree = HistGradientBoostingRegressor(
                    learning_rate=LEARNING_RATE,
                    max_iter=1,
                    max_leaf_nodes=N_LEAVES,
                    min_samples_leaf=LEAF_ROWS,
                    early_stopping=False,
                    random_state=0,
                )
                newton_step = -gradient / curvature
                tree.fit(self._X, newton_step, sample_weight=curvature)
                self._scores += tree.predict(self._X)
                self.model.append(tree)

    def predict(self, X: Array, first_tree: int) -> Array:
        """Sum of the trees from this one on."""
        scores: NDArray[Any] = np.zeros(len(X))
        for tree in self.model[first_tree:]:
            scores += tree.predict(X)
        return scores
