"""Bradley-Terry ratings, with ties after Davidson."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut
from rankwise.leaderboard.arguments import are_verdicts
from rankwise.leaderboard.models.base import (
    TOLERANCE,
    OutcomeLikelihood,
    PairLikelihood,
    Point,
    newton,
)
from rankwise.leaderboard.models.least_squares_model import LeastSquares


class BradleyTerry(LeastSquares):
    """``(1/W) Σ ω ℓ(r_i − r_j + zᵀγ) + α ‖r‖²``, ℓ being minus the log likelihood of a verdict.

    Item i beats j with the probability σ(r_i − r_j + zᵀγ) (Bradley and Terry, Rank analysis of
    incomplete block designs, 1952). Only who won counts, not by how much. A tie is half a win each,
    or has a probability of its own with one more parameter: ν of Davidson 1970. Parameters as in
    `LeastSquares`.
    """

    is_linear = False
    every = 2  # each needs a fit
    stiffness = 16.0  # 2α beside ⅛, the curvature of a verdict of 85 to 15
    logits = 1.0
    tol = TOLERANCE  # of the gap, relative to the objective

    def __init__(
        self,
        tally: ComparisonCounts,
        X: Array | None = None,
        B: Array | None = None,
        ties: str = "half",
    ) -> None:
        super().__init__(tally, X, B)
        if not are_verdicts(tally.target):
            raise ValueError(
                "model='bradley-terry' takes wins, ties and losses, but the outcomes are margins; "
                "do without margin and magnitude, or use model='least-squares'."
            )
        is_tie = tally.target == 0
        is_mixed = bool(is_tie.any() and not is_tie.all())  # else the parameter is at its limit
        self.verdicts = OutcomeLikelihood(ties == "davidson" and is_mixed)
        self.ties = None if ties == "half" or is_tie.all() else 0.0

    def solve(self, alpha: float) -> Self:
        """Newton's method."""
        super().solve(alpha)
        if self.verdicts.has_parameter:
            self.ties = float(np.exp(self.theta))
        self.note = self._note()
        return self

    def fit(self, start: Array | None = None) -> Point:
        """Newton's method; from zero, and what the share of ties says, if there is no start."""
        problem = PairLikelihood(self.system, self.verdicts, self.alpha)
        point = newton(problem, problem.start() if start is None else start, self.tol)
        self.unknowns, self.theta = point.unknowns[:-1], float(point.unknowns[-1])
        return point

    def held_out_losses(self, alphas: Array) -> Array:
        """Mean log loss of the comparisons, each by a Newton step without it."""
        losses, start = np.empty(len(alphas)), None
        for k in reversed(range(len(alphas))):
            self.alpha = float(alphas[k])
            start = self.fit(start).unknowns
            losses[k] = self.held_out_log_loss()
        return losses

    def left_out(self) -> LeaveOneOut:
        """Least squares with the same solution and the same curvature there.

        The weights are ω ℓ''(m), the targets m − ℓ'(m)/ℓ''(m). What they say without a comparison
        or a cluster is one Newton step, with θ as it is.
        """
        tally, margins = self.tally, self.margins()[self.tally.pair]
        derivatives = self.verdicts.at(margins, tally.target, self.theta)
        bend = np.maximum(derivatives.mm, 1e-300)
        working = replace(tally, weight=tally.weight * bend, target=margins - derivatives.m / bend)
        return LeaveOneOut(
            self.system.of(working), self.unknowns, 2 * self.alpha * tally.total_weight
        )

    def expected(self, margins: Array) -> Array:
        """Probability that the first item wins less that it loses."""
        chances = self.verdicts.probabilities(margins, self.theta)
        return np.asarray(chances[..., 0] - chances[..., 2])

    def variances(self, margins: Array) -> Array:
        """Variance of a verdict of 1, 0 or −1."""
        win, tie, loss = np.moveaxis(self.verdicts.probabilities(margins, self.theta), -1, 0)
        return np.asarray(win * (tie + loss) + loss * (tie + win) + 2 * win * loss)

    def held_out_log_loss(self) -> float:
        """Mean log loss of the comparisons, each by a Newton step without it; θ stays."""
        exact = self.left_out()
        tally, margins = exact.system.tally, exact.margins[self.tally.pair]
        leverages = tally.weight * exact.resistances[tally.pair]
        margins = margins + (margins - tally.target) * leverages / (1 - leverages)
        derivatives = self.verdicts.at(margins, self.tally.target, self.theta)
        weight = self.tally.count * self.tally.weight
        return float(weight @ derivatives.value / weight.sum())

    def _note(self) -> str:
        """Which ratings only alpha keeps finite (Ford, Solution of a ranking problem, 1957).

        Items outside the largest set in which everybody has beaten everybody, by way of others. A
        tie is half a win of both. Of every component of the comparisons the largest set counts.
        """
        tally, n = self.tally, self.tally.n_items
        margins = self.margins()[tally.pair]
        if (margins * tally.target > 0).all():
            return (
                "the ratings explain every comparison, so that their size depends on alpha alone; "
                "the order holds, probabilities do not"
            )
        if self.system.X is not None or self.system.has_prior:
            return ""
        first, second = tally.first[tally.pair], tally.second[tally.pair]
        won, lost = tally.target >= 0, tally.target <= 0
        source, target = np.r_[first[won], second[lost]], np.r_[second[won], first[lost]]
        beaten = sp.coo_matrix((np.ones(len(source)), (source, target)), shape=(n, n)).tocsr()
        strong = connected_components(beaten, connection="strong")[1]
        sizes, largest = np.bincount(strong), np.zeros(tally.components.max() + 1, np.intp)
        np.maximum.at(largest, tally.components, sizes[strong])
        n_apart = int(n - largest.sum())
        said = (
            f"{n_apart} of {n} items only won or only lost against the others, as "
            "far as comparisons lead: only alpha keeps their ratings finite"
        )
        return said if n_apart else ""
