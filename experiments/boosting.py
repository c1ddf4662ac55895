"""Boosted trees as a baseline that is run: LightGBM, where it is installed (the extra ``bench``).

[RankRLS07] and [RankRLS09] quote RankBoost from LETOR; there is no code of it to run. LightGBM's
LambdaMART stands beside it as what one would boost with today. The number of leaves and of trees
are chosen like alpha, on the validation part.
"""

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from experiments.shared.letor import Learner

__all__ = ["ABSENT", "LEARNERS", "BoostedTrees"]

LEAVES = (4, 8, 16)
TREES = np.array([10, 20, 40, 80, 120, 200, 300, 400])
ABSENT = "LightGBM is not installed, its row is left out: pip install lightgbm"


class BoostedTrees:
    """LambdaMART with the interface of a ranker's `path`, over numbers of trees."""

    def __init__(self, num_leaves, learning_rate=0.05):
        self.num_leaves = num_leaves
        self.learning_rate = learning_rate

    def path(self, X, y, groups, alphas=None):
        """All numbers of trees at once; `alphas` are of rankers that have some."""
        from lightgbm import LGBMRanker

        order = np.argsort(groups, kind="stable")
        sizes = np.unique(groups, return_counts=True)[1]
        model = LGBMRanker(
            n_estimators=int(TREES[-1]),
            num_leaves=self.num_leaves,
            learning_rate=self.learning_rate,
            n_jobs=1,
            random_state=0,
            deterministic=True,
            force_row_wise=True,
            verbosity=-1,
        )
        return TreePath(model.fit(X[order], y[order].astype(int), group=sizes))


class TreePath(NamedTuple):
    """Models with the first trees."""

    booster: object

    def predict(self, X):
        """Scores of shape (n_items, n_numbers)."""
        return np.column_stack([self.model(k).predict(X) for k in range(len(TREES))])

    def model(self, k):
        """The model of the k-th number of trees."""
        return FirstTrees(self.booster, int(TREES[k]))


class FirstTrees(NamedTuple):
    """The first trees of a booster."""

    booster: object
    n_trees: int

    def predict(self, X):
        """Scores of the items."""
        return self.booster.predict(X, num_iteration=self.n_trees)

    def __str__(self):
        return f"{self.n_trees} trees of {self.booster.num_leaves} leaves"


LEARNERS = (Learner("LightGBM", tuple(map(BoostedTrees, LEAVES))),) if find_spec("lightgbm") else ()
"""Nothing where LightGBM is not installed."""
