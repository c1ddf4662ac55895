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
        order = np.argsort(X, axis=0)
        ordered = np.take_along_axis(X, order, axis=0)
        is_cut = np.zeros(X.shape, dtype=bool)  # a step may stand between two different values
        is_cut[:-1] = ordered[1:] > ordered[:-1]
        levels = _Levels(y, groups)
        H, steps = np.zeros(len(X)), []
        for _ in range(ROUNDS[-1]):
            above = np.cumsum(levels.potential(H)[order], axis=0)
            gain = np.where(is_cut, -above, 0.0)  # the potentials of all items sum to 0
            row, k = np.unravel_index(np.abs(gain).argmax(), gain.shape)
            r = np.clip(gain[row, k], -1 + 1e-12, 1 - 1e-12)
            threshold = (ordered[row, k] + ordered[row + 1, k]) / 2
            steps.append((int(k), threshold, 0.5 * np.log((1 + r) / (1 - r))))
            H += steps[-1][2] * (X[:, k] > threshold)
        return BoostedPath(steps)


class _Levels:
    """Sums over the items of the same query with a lower or a higher label."""

    def __init__(self, y, groups):
        labels, self.level = np.unique(y, return_inverse=True)
        _, self.group = np.unique(groups, return_inverse=True)
        self.shape = (self.group.max() + 1, len(labels))

    def potential(self, H):
        """Σ D over pairs in which the item is the better one, less those in which it is not."""
        shift = H.max()
        worse, better = np.exp(H - shift), np.exp(shift - H)
        lower = self._sums(worse).cumsum(axis=1)
        higher = self._sums(better)[:, ::-1].cumsum(axis=1)[:, ::-1]
        at = self.group, self.level
        wins = better * (lower[at] - self._sums(worse)[at])
        losses = worse * (higher[at] - self._sums(better)[at])
        return (wins - losses) / wins.sum()

    def _sums(self, values):
        cells = self.group * self.shape[1] + self.level
        return np.bincount(cells, values, minlength=np.prod(self.shape)).reshape(self.shape)


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
        return sum(weight * (X[:, k] > threshold) for k, threshold, weight in self.steps)

    def __str__(self):
        return f"{len(self.steps)} rounds"


LEARNER = Learner("RankBoost", (RankBoost(),))
