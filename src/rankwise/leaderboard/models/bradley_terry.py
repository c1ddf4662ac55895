"""Bradley-Terry ratings, with ties after Davidson."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.alpha_selection import select_alpha, would_select_larger_alpha
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import LeaveOneOut, jackknife_covariance
from rankwise.leaderboard.algebra.newton import PairLikelihood, Point, newton
from rankwise.leaderboard.algebra.outcome_likelihood import (
    OutcomeCurve,
    OutcomeLikelihood,
    are_verdicts,
)
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.leaderboard.algebra.team_rows import TeamRows, determined_sets
from rankwise.leaderboard.models.base import comparable_components
from rankwise.uncertainty.possible_ranks import CovarianceRoot

TOLERANCE = 1e-14  # of the gap, relative to the objective
GRID_STEP = 2  # every second alpha of the grid is tried, since each needs a fit
STIFFNESS = 16.0  # 2α relative to ⅛, the curvature of an outcome with odds of 85 to 15


def tie_likelihood(counts: ComparisonCounts, ties: str) -> OutcomeLikelihood:
    """Return the likelihood of the outcomes; refuse margins.

    The parameter of the ties has no finite estimate if there are no ties, or only ties.
    """
    if not are_verdicts(counts.target):
        raise ValueError(
            "model='bradley-terry' is for wins, ties and losses, but the outcomes are margins; "
            "leave out margin and magnitude, or use model='least-squares'."
        )
    # Without any tie, or with ties only, the parameter of the ties has no finite estimate.
    is_tie = counts.target == 0
    is_parameter_finite = bool(is_tie.any() and not is_tie.all())
    return OutcomeLikelihood(has_tie_parameter=ties == "davidson" and is_parameter_finite)


def tie_parameter(counts: ComparisonCounts, ties: str, curve: OutcomeCurve) -> float | None:
    """Return ν of Davidson's model; None if ties are half a win or all outcomes are ties."""
    if curve.likelihood.has_tie_parameter:
        return float(np.exp(curve.theta))  # ν = e^θ
    has_only_ties = (counts.target == 0).all()
    if ties == "half" or has_only_ties:
        return None
    return 0.0  # no ties


class BradleyTerry:
    """``(1/W) Σ ω ℓ(r_i − r_j + zᵀγ) + α ‖r‖²``, with −ℓ the log likelihood of an outcome.

    A `RatingModel`. Item i beats j with the probability σ(r_i − r_j + zᵀγ) (Bradley and Terry, Rank
    analysis of incomplete block designs, 1952). Outcomes are wins, ties and losses; the size of a
    margin is ignored. A tie is half a win of each item, or has its own probability with one more
    parameter: ν of Davidson 1970.

    Parameters
    ----------
    counts : ComparisonCounts
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items.
    prior_ratings : ndarray of shape (n_items, n_priors), optional
        Prior ratings, as in `RatingSystem`.
    ties : {"half", "davidson"}, default="half"
        Model of the ties.

    Attributes
    ----------
    theta : float
        Log of the parameter of the ties; 0 without the parameter.
    """

    def __init__(
        self,
        counts: ComparisonCounts,
        X: Array | None = None,
        prior_ratings: Array | None = None,
        ties: str = "half",
    ) -> None:
        self.likelihood = tie_likelihood(counts, ties)
        self.counts = counts
        self.system = RatingSystem(counts, X, prior_ratings)
        self.components = comparable_components(counts, X, prior_ratings)
        self.tie_model = ties
        self.theta = 0.0  # log of the parameter of the ties

    @property
    def outcome_curve(self) -> OutcomeCurve:
        """Probabilities of win, tie and loss."""
        return OutcomeCurve(self.likelihood, self.theta)

    @property
    def ties(self) -> float | None:
        """Parameter of the ties; None if ties are half a win."""
        return tie_parameter(self.counts, self.tie_model, self.outcome_curve)

    @property
    def note(self) -> str:
        """Which ratings only alpha keeps finite."""
        return separation_note(self)

    def select_alpha(self) -> float:
        """Return the alpha that predicts best the comparisons left out one at a time."""
        return select_alpha(
            self.system, self.held_out_losses, grid_step=GRID_STEP, stiffness=STIFFNESS
        )

    def held_out_losses(self, alphas: Array) -> Array:
        """Mean log loss of left-out comparisons, each by a Newton step, for each alpha."""
        losses = np.empty(len(alphas))
        start = None
        # From the strongest regularization on; each search starts at the solution before.
        for k in reversed(range(len(alphas))):
            solution = self._fit_unknowns(float(alphas[k]), start)
            start = solution.unknowns
            losses[k] = self.held_out_log_loss()
        return losses

    def fit(self, alpha: float) -> Self:
        """Estimate ratings and effects by Newton's method."""
        self._fit_unknowns(alpha)
        ratings, self.effects = self.system.ratings_and_effects(self.unknowns)
        self.ratings = self._origin.center(ratings)  # mean 0 of the items with finite ratings
        return self

    @property
    def _origin(self) -> RatingOrigin:
        return RatingOrigin.of(self.counts, self.system)

    def _fit_unknowns(self, alpha: float, start: Array | None = None) -> Point:
        self.alpha = alpha
        problem = PairLikelihood(self.system, self.likelihood, alpha)
        if start is None:
            start = problem.start()
        point = newton(problem, start, TOLERANCE)
        # The last unknown is θ, the log of the parameter of the ties.
        self.unknowns = point.unknowns[:-1]
        self.theta = float(point.unknowns[-1])
        return point

    def refit(self, counts: ComparisonCounts) -> Self:
        """Return the model of other counts of the same comparisons, for the same λ."""
        model = copy(self)
        model.counts = counts
        model.system = self.system.with_counts(counts)
        # The penalty is α times the total weight; it stays the same.
        alpha_of_same_penalty = self.alpha * self.counts.total_weight / counts.total_weight
        return model.fit(alpha_of_same_penalty)

    def leave_one_out(self) -> LeaveOneOut:
        """Least squares with the same solution and the same curvature there."""
        return working_least_squares(self)

    def covariance(
        self, clusters: Indices | None, has_few_data: NDArray[np.bool_]
    ) -> CovarianceRoot:
        """Covariance by the jackknife: every comparison or cluster is left out by a Newton step."""
        covariance = jackknife_covariance(self.leave_one_out(), clusters, has_few_data)
        return replace(covariance, root=self._origin.center(covariance.root))

    def margins(self) -> Array:
        """Margin of each distinct pair."""
        return self.system.margins(self.unknowns)

    def weights_of_unknowns(self, item_weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i."""
        return self.system.contrast(item_weights)

    def expected(self, margins: Array) -> Array:
        """Probability that the first item wins minus the probability that it loses."""
        return self.outcome_curve.expected(margins)

    def variances(self, margins: Array) -> Array:
        """Variance of the outcomes 1, 0 and −1."""
        return self.outcome_curve.variances(margins)

    def held_out_log_loss(self) -> float:
        """Mean log loss of the comparisons, each by a Newton step without it, for the same θ."""
        # Margins without the comparison itself, by a Newton step from its leverage.
        leave_one_out = self.leave_one_out()
        margins = leave_one_out.margins[self.counts.pair_of_outcome]
        negative_residuals = margins - leave_one_out.counts.target
        leverages = leave_one_out.leverages
        held_out_margins = margins + negative_residuals * leverages / (1 - leverages)

        losses = self.outcome_curve.derivatives(held_out_margins, self.counts.target).loss
        weight = self.counts.outcome_weight
        return float(weight @ losses / weight.sum())


@dataclass(frozen=True, eq=False)
class RatingOrigin:
    """Items whose mean rating is 0, in each component.

    The rating of an item that only won or only lost is as large as alpha allows. If it were part of
    the mean, the ratings of all other items would have its error. The mean is therefore that of the
    items with finite ratings, if there are at least two, and of all items otherwise. Features and
    priors keep all ratings finite.

    Attributes
    ----------
    is_reference : ndarray of bool, shape (n_items,)
        The items.
    components : ndarray of shape (n_items,)
        Items with the same number can be compared.
    """

    is_reference: NDArray[np.bool_]
    components: Indices

    @classmethod
    def of(cls, counts: ComparisonCounts, system: RatingSystem) -> RatingOrigin:
        """Return the reference items of comparisons."""
        if system.X is not None or system.has_prior:  # they keep all ratings finite
            is_reference = np.ones(counts.n_items, dtype=bool)
        else:
            # Ratings that only alpha keeps finite do not count in the mean of a component, unless
            # at most one other rating is left.
            is_finite = is_finite_without_alpha(counts)
            n_finite = np.bincount(counts.components, is_finite)
            has_few_finite = n_finite[counts.components] < 2
            is_reference = is_finite | has_few_finite
        return cls(is_reference, counts.components)

    def center(self, ratings: Array) -> Array:
        """Subtract the mean of the reference items of each component, along the first axis."""
        if self.is_reference.all():
            return ratings
        # Subtract the mean of the reference items of each component.
        centered = ratings.copy()
        for items in indices_by_group(self.components):
            if len(items):  # components are numbered from 1, so that number 0 has no items
                reference_items = items[self.is_reference[items]]
                centered[items] -= ratings[reference_items].mean(axis=0)
        return centered


class LogOddsModel(Protocol):
    """A fitted model of log odds over a `RatingSystem`."""

    counts: ComparisonCounts
    system: RatingSystem
    alpha: float
    unknowns: Array

    @property
    def outcome_curve(self) -> OutcomeCurve:
        """Probabilities of win, tie and loss."""

    def margins(self) -> Array:
        """Margin of each distinct pair."""


def working_least_squares(model: LogOddsModel) -> LeaveOneOut:
    """Return least squares with the solution of the model and the same curvature there.

    The weights are ω ℓ''(m), the targets m − ℓ'(m)/ℓ''(m). Removing a comparison or a cluster is
    one Newton step, for the same θ.
    """
    # Iteratively reweighted least squares at the solution: weights ω ℓ″, targets m − ℓ′/ℓ″.
    counts = model.counts
    margins = model.margins()[counts.pair_of_outcome]
    derivatives = model.outcome_curve.derivatives(margins, counts.target)
    curvature = np.maximum(derivatives.curvature, 1e-300)  # not 0, as it divides
    working_counts = replace(
        counts,
        weight=counts.weight * curvature,
        target=margins - derivatives.slope / curvature,
    )
    system = model.system.with_counts(working_counts)
    ridge = 2 * model.alpha * counts.total_weight  # second derivative of W α ‖r‖²
    return LeaveOneOut(system, model.unknowns, ridge, removes_exactly=False)


def separation_note(model: LogOddsModel) -> str:
    """Return a sentence on ratings that only alpha keeps finite; empty if there are none."""
    counts = model.counts
    margins = model.margins()[counts.pair_of_outcome]
    explains_every_comparison = (margins * counts.target > 0).all()
    if explains_every_comparison:
        return (
            "the ratings explain every comparison, so their size depends on alpha alone; the order "
            "is meaningful, probabilities are not"
        )
    if model.system.X is not None or model.system.has_prior:  # they keep ratings finite
        return ""
    n_items = counts.n_items
    n_separated = n_items - int(np.sum(is_finite_without_alpha(counts)))
    if n_separated == 0:
        return ""
    note = (
        f"{n_separated} of {n_items} items only won or only lost against the others, directly or "
        "through other items: only alpha keeps their ratings finite"
    )
    if would_select_larger_alpha(model.system, model.alpha):  # not if it was selected already
        note += "; use alpha='auto' to compare them with the others"
    return note


def is_finite_without_alpha(counts: ComparisonCounts) -> NDArray[np.bool_]:
    """Return the items whose ratings are finite relative to each other without alpha.

    In each component these are the items of the largest set in which every item has beaten every
    other one, directly or through other items (Ford, Solution of a ranking problem from binary
    comparisons, 1957). A tie is half a win of both items.

    With teams, they are the largest set that is determined by the comparisons without members who
    only won or only lost.
    """
    # Pairs of which the first side, or the second one, won or tied a comparison.
    is_present = counts.count > 0
    first_scored = counts.sum_by_pair(is_present & (counts.target >= 0)) > 0
    second_scored = counts.sum_by_pair(is_present & (counts.target <= 0)) > 0

    # Sets of items with finite differences of ratings: each won or tied against each other one, if
    # not directly then through other items.
    if counts.teams is None:
        set_of_item = _strong_components(counts, first_scored, second_scored)
    else:
        set_of_item = _sets_of_members(counts, counts.teams, first_scored, second_scored)

    # The largest set of each component is finite; of equal ones, the one of the first item.
    set_size = np.bincount(set_of_item)[set_of_item]
    items = np.arange(counts.n_items)
    largest_sets_first = np.lexsort((items, -set_size, counts.components))
    components, first_positions = np.unique(
        counts.components[largest_sets_first], return_index=True
    )
    finite_set = np.zeros(components.max() + 1, np.intp)  # by component
    finite_set[components] = set_of_item[largest_sets_first[first_positions]]
    return np.asarray(set_of_item == finite_set[counts.components])


def _strong_components(
    counts: ComparisonCounts, first_scored: NDArray[np.bool_], second_scored: NDArray[np.bool_]
) -> Indices:
    """Number of the set of each item in which every item has beaten every other one."""
    n_items = counts.n_items
    winner = np.concatenate([counts.first[first_scored], counts.second[second_scored]])
    loser = np.concatenate([counts.second[first_scored], counts.first[second_scored]])
    # Directed graph with an edge from each item to the items that it beat or tied with.
    ones = np.ones(len(winner))
    has_scored = sp.coo_matrix((ones, (winner, loser)), shape=(n_items, n_items)).tocsr()
    return np.asarray(connected_components(has_scored, connection="strong")[1])


def _sets_of_members(
    counts: ComparisonCounts,
    teams: TeamRows,
    first_scored: NDArray[np.bool_],
    second_scored: NDArray[np.bool_],
) -> Indices:
    """Number of the set of each item that comparisons determine without one-sided members.

    The comparisons of a member who only won or only lost are removed, until every remaining member
    has won and lost.
    """
    is_remaining = first_scored | second_scored  # of each distinct pair
    while True:
        # Remove the comparisons of members who only won, or only lost, the remaining ones: nothing
        # bounds their ratings.
        first_won = first_scored & is_remaining
        second_won = second_scored & is_remaining
        n_won = counts.sum_by_item(first_won, second_won)
        n_lost = counts.sum_by_item(second_won, first_won)
        is_one_sided = (n_won == 0) != (n_lost == 0)
        is_removed = is_remaining & counts.has_member(is_one_sided)
        if not is_removed.any():
            break
        is_remaining &= ~is_removed
    if is_remaining.all():
        return teams.components
    return determined_sets(teams.select(np.flatnonzero(is_remaining)))
