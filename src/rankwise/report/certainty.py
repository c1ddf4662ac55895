"""How sure a calibrated model is: ranks, items that cannot be told apart, reliability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from rankwise.arrays import Array, Indices
from rankwise.estimators.pipelines import transform_step
from rankwise.inspection.model_parts import ModelParts
from rankwise.report.scored_items import ScoredItems
from rankwise.uncertainty import CalibratedRanker, Reliability
from rankwise.uncertainty.jackknife import take_rows

LONGEST_RUN = 200  # items of a group that are compared with each other
SIDE = 260  # of the figure


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


def find_certainty(
    parts: ModelParts, X: Any, groups: Any, scored: ScoredItems, confidence: float
) -> Certainty | None:
    """Of the items that have a true score; None if the model is not calibrated."""
    ranker: CalibratedRanker | None = parts.sure
    if ranker is None:
        return None
    seen = X if parts.steps_before is None else transform_step(parts.steps_before, X, groups)
    seen = take_rows(seen, scored.rows) if scored.n_unscored else seen
    ranks = ranker.rank_interval(seen, scored.groups.codes, confidence)
    found = ranker.jackknife()
    quantile = float(student.ppf((1 + confidence) / 2, found.freedom))
    root = found.spread(seen, scored.groups.codes).root
    return Certainty(ranks.low, ranks.high, scored.scores, root, quantile)


def reliability_figure(found: Reliability, log_loss: float) -> str:
    """A picture: how often held-out pairs came out as their probability said."""

    def at(p: float, q: float) -> str:
        return f"{40 + 2 * (p - 0.5) * SIDE:.1f},{10 + 2 * (1 - q) * SIDE:.1f}"

    bins = [(p, max(q, 0.45)) for p, q in zip(found.predicted, found.observed, strict=True)]
    points = [at(p, q) for p, q in bins]
    line = " ".join(points)
    dots = "".join(
        '<circle cx="{}" cy="{}" r="3.5" fill="currentColor"/>'.format(*point.split(","))
        for point in points
    )
    size = f'viewBox="0 0 {SIDE + 60} {SIDE + 50}" width="{SIDE + 60}" height="{SIDE + 50}"'
    said = ", ".join(f"{p:.2f} and {q:.2f}" for p, q in bins)
    (x0, y0), (x1, y1) = at(0.5, 0.5).split(","), at(1, 1).split(",")
    return (
        f'<figure id="reliability"><svg {size} role="img" aria-label="said and was: {said}">'
        f'<path d="M{x0},{y1}V{y0}H{x1}M{x0},{y0}L{x1},{y1}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.4"/><polyline points="{line}" fill="none" stroke="currentColor" '
        f'stroke-width="2"/>{dots}'
        f'<text x="{x0}" y="{SIDE + 28}" fill="currentColor">0.5</text>'
        f'<text x="{x1}" y="{SIDE + 28}" text-anchor="end" fill="currentColor">1</text>'
        f'<text x="{SIDE / 2 + 40}" y="{SIDE + 44}" text-anchor="middle" fill="currentColor">'
        "probability that was said</text>"
        f'<text x="36" y="{y0}" text-anchor="end" fill="currentColor">0.5</text>'
        f'<text x="36" y="20" text-anchor="end" fill="currentColor">1</text></svg>'
        f'<figcaption class="hint">How often the item that was said to be above was above, in '
        f"{found.n_pairs.sum():,.0f} pairs that were held out from training. On the straight line "
        f"the probabilities are right. Log loss {log_loss:.3f}; that of a coin is 0.693."
        "</figcaption></figure>"
    )


def weight_errors(parts: ModelParts, weights: Array) -> Array | None:
    """Standard errors of the weights, if they are the coefficients of the model."""
    ranker = parts.sure
    if ranker is None or ranker.root_ is None or len(ranker.root_) != len(weights):
        return None
    return ranker.jackknife().coefficient_errors
