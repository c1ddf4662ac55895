"""RankBoost (Freund, Iyer, Schapire and Singer, JMLR 4, 2003) as a baseline that is run.

Weak rankers are steps, h(x) = 1 if feature k of x exceeds θ and 0 otherwise (their section 3.2).
A round takes the step of largest |r|, r = Σ over relevant pairs of D (h(better) − h(worse)), with
the weight ½ log((1 + r) / (1 − r)), the "third method". D is a product of a factor of each item
of a pair, so a round costs one pass over the features and no pair is formed.
"""

from typing import NamedTuple

import numpy as np

from experiments.shared.letor import Learner

__all__ = ["LEARNER", "ROUNDS", "RankBoost"]

ROUNDS = np.array([10, 20, 50, 100, 200, 300])


class RankBoost:
    """Boosted steps with the interface of a ranker's `path`, over numbers of rounds."""

    def path(self, X, y, groups, alphas=None):
        """All numbers of rounds at once; `alphas` are of rankers that have some."""
        order = np.argsort(X, axis=0)  # of each feature
        sorted_X = np.take_along_axis(X, order, axis=0)
        is_cut = np.zeros(X.shape, dtype=bool)  # a threshold lies between two different values
        is_cut[:-1] = sorted_X[1:] > sorted_X[:-1]
        levels = _Levels(y, groups)
        scores = np.zeros(len(X))
        steps = []
        for _ in range(ROUNDS[-1]):
            # r of every step: the potentials of all items sum to 0, so that the sum of those above
            # a threshold is minus the sum of those up to it.
            potentials_up_to = np.cumsum(levels.potential(scores)[order], axis=0)
            correlations = np.where(is_cut, -potentials_up_to, 0.0)
            best_step = np.abs(correlations).argmax()
            row, feature = np.unravel_index(best_step, correlations.shape)
            r = np.clip(correlations[row, feature], -1 + 1e-12, 1 - 1e-12)

            threshold = (sorted_X[row, feature] + sorted_X[row + 1, feature]) / 2
            weight = 0.5 * np.log((1 + r) / (1 - r))
            steps.append((int(feature), threshold, weight))
            scores += weight * (X[:, feature] > threshold)
        return BoostedPath(steps)


class _Levels:
    """Sums over the items of the same query with a lower or a higher label."""

    def __init__(self, y, groups):
        labels, self.level = np.unique(y, return_inverse=True)
        _, self.group = np.unique(groups, return_inverse=True)
        self.shape = (self.group.max() + 1, len(labels))

    def potential(self, scores):
        """Σ D over pairs in which the item is the better one, less those in which it is not."""
        # D of a pair is the product of a factor of its worse and a factor of its better item
        shift = scores.max()
        factor_as_worse = np.exp(scores - shift)
        factor_as_better = np.exp(shift - scores)
        sums_as_worse = self._sums_by_level(factor_as_worse)  # (n_groups, n_levels)
        sums_as_better = self._sums_by_level(factor_as_better)
        up_to_level = sums_as_worse.cumsum(axis=1)
        from_level = sums_as_better[:, ::-1].cumsum(axis=1)[:, ::-1]

        cell = (self.group, self.level)
        wins = factor_as_better * (up_to_level[cell] - sums_as_worse[cell])
        losses = factor_as_worse * (from_level[cell] - sums_as_better[cell])
        return (wins - losses) / wins.sum()

    def _sums_by_level(self, values):
        """Sums over the items of each query and label."""
        n_groups, n_levels = self.shape
        cells = self.group * n_levels + self.level
        sums = np.bincount(cells, values, minlength=n_groups * n_levels)
        return sums.reshape(self.shape)


class BoostedPath(NamedTuple):
    """Models of the first steps."""

    steps: list

    def predict(self, X):
        """Scores of shape (n_items, n_numbers)."""
        return np.column_stack([self.model(k).predict(X) for k in range(len(ROUNDS))])

    def model(self, k):
        """The model of the k-th number of rounds."""
        return BoostedSteps(self.steps[: ROUNDS[k]])


class BoostedSteps(NamedTuple):
    """A sum of steps."""

    steps: list

    def predict(self, X):
        """Scores of the items."""
        return sum(
            weight * (X[:, feature] > threshold) for feature, threshold, weight in self.steps
        )

    def __str__(self):
        return f"{len(self.steps)} rounds"


LEARNER = Learner("RankBoost", (RankBoost(),))
