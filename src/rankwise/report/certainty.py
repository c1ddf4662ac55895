"""How sure a calibrated model is: ranks, and items that cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from rankwise.arrays import Array, Indices
from rankwise.estimators.anatomy import transform_step
from rankwise.report.items import Subject
from rankwise.uncertainty.jackknife import take_rows

LONGEST_RUN = 200  # items of a group that are compared with each other


@dataclass(frozen=True, eq=False)
class Certainty:
    """Of the items of a page.

    Attributes
    ----------
    low, high : ndarray of int, shape (m,)
        Interval of the rank of each item in its group.
    scores : ndarray of shape (m,)
        Predicted.
    root : ndarray of shape (m, n_columns)
        F with F Fᵀ the covariance of the scores.
    quantile : float
        Standard errors that are beyond doubt.
    """

    low: Indices
    high: Indices
    scores: Array
    root: Array
    quantile: float

    def describe(self, items: Indices) -> dict[str, Any]:
        """For the items of a group, best predicted first."""
        return {
            "rankLow": self.low[items].tolist(),
            "rankHigh": self.high[items].tolist(),
            "alike": self.runs(items) if len(items) <= LONGEST_RUN else [],
        }

    def runs(self, items: Indices) -> list[list[int]]:
        """First and last position of the longest runs of which no two items can be told apart."""
        F, f, n = self.root[items], self.scores[items], len(items)
        reach = []
        for first in range(n):
            change = np.linalg.norm(F[first:] - F[first], axis=1)
            apart = np.abs(f[first:] - f[first]) > self.quantile * change
            reach.append(first + int(np.argmax(apart)) if apart.any() else n)
        runs: list[list[int]] = []
        for first in range(n):
            end = reach[first]
            for item in range(first + 1, n):
                if item >= end:
                    break
                end = min(end, reach[item])
            if end - 1 > first and (not runs or end - 1 > runs[-1][1]):
                runs.append([first, end - 1])
        return runs


def find_certainty(subject: Subject, confidence: float) -> Certainty | None:
    """Of the items that have a true score; None if the model is not calibrated."""
    parts, scored, items = subject.parts, subject.scored, subject.X
    if parts.sure is None:
        return None
    if parts.steps_before is not None:
        items = transform_step(parts.steps_before, items, subject.groups)
    items = take_rows(items, scored.rows) if scored.n_unscored else items
    ranks = parts.sure.rank_interval(items, scored.groups.codes, confidence)
    jackknife = parts.sure.jackknife()
    quantile = float(student.ppf((1 + confidence) / 2, jackknife.freedom))
    root = jackknife.spread(items, scored.groups.codes).root
    return Certainty(ranks.low, ranks.high, scored.scores, root, quantile)
