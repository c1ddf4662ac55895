"""Bradley-Terry ratings that change with time and context."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import AnyArray, Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import PairData
from rankwise.datasets.times import in_days
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.comparison_design import (
    ComparisonDesign,
    fixed_width_csr,
    iterative_solver,
)
from rankwise.leaderboard.algebra.leave_comparison_out import factor_covariance
from rankwise.leaderboard.algebra.newton import PairLikelihood, newton
from rankwise.leaderboard.algebra.outcome_likelihood import OutcomeCurve
from rankwise.leaderboard.algebra.team_rows import side_rows
from rankwise.leaderboard.board_types import Context, Moment
from rankwise.leaderboard.models.bradley_terry import tie_likelihood, tie_parameter
from rankwise.leaderboard.models.rating_terms import (
    Levels,
    PriorScales,
    RatingTerms,
    check_scales,
)
from rankwise.uncertainty.possible_ranks import CovarianceRoot

SOLVER_TOLERANCE = 1e-11
SOLVER_ITERATIONS = 500
N_DRAWS = 100
DRAW_TOLERANCE = 1e-2
EXACT_SIZE = 2**23  # entries of the dense design, up to which the covariance is exact
TOLERANCE = 1e-9  # relative to the objective
ROUGH_TOLERANCE = 1e-5  # while scales are selected
FIRST_SCALES = PriorScales(constant=1.0, time=0.5, half_life=0.3, context=0.3)
FACTORS = (2.0, 0.5, 2**0.5, 0.5**0.5)
LARGEST_SCALE = 4.0  # logits; 700 Elo points
ROUNDS = 3
LEAST_COMPARISONS = 3  # one in each third
SPLITS = ((1 / 3, 2 / 3), (2 / 3, 1.0))  # train on the share before, test up to the second share


class DynamicSystem(ComparisonDesign):
    """Design with ``(e_i − e_j) ⊗ φ(c)`` in place of ``e_i − e_j``, whitened.

    With teams, ``e_i − e_j`` is the difference of the sums over the members.

    The prior distribution of every unknown is N(0, 1).

    Parameters
    ----------
    counts : ComparisonCounts
        The comparisons; a cell is one combination of time and context.
    terms : RatingTerms
        Terms of a rating.
    cell_weights : sparse matrix of shape (n_cells, n_rating_terms)
        Weights of the terms of a rating in each cell.
    """

    def __init__(
        self, counts: ComparisonCounts, terms: RatingTerms, cell_weights: sp.csr_matrix
    ) -> None:
        n_items = counts.n_items
        n_terms = cell_weights.shape[1]
        n_pairs = len(counts.first)

        # A rating is a weighted sum of terms, with the weights of its cell (time and context). So
        # the row of a pair has, for each of its items, the signed weights of the terms in its cell.
        pair_weights = cell_weights[counts.cell_of_pair]  # all rows have as many entries
        term = pair_weights.indices.reshape(n_pairs, 1, -1)
        term_weight = pair_weights.data.reshape(n_pairs, 1, -1)
        items, signs = counts.members  # (n_pairs, n_members)
        # Of shape (n_pairs, n_members, n_entries), then with one axis for all members and entries.
        columns = (items[:, :, None] * n_terms + term).reshape(n_pairs, -1)
        values = (signs[:, :, None] * term_weight).reshape(n_pairs, -1)
        n_term_values = n_items * n_terms
        incidence = fixed_width_csr(columns, values, counts.covariates, n_term_values)

        # The unknowns are independent with variance 1 a priori: terms = covariance root @ unknowns.
        item_blocks = sp.kron(sp.identity(n_items), terms.covariance_root())
        effects_block = sp.identity(counts.covariates.shape[1])
        parameter_basis = sp.block_diag([item_blocks, effects_block], format="csr")
        super().__init__(counts, incidence, parameter_basis, n_regularized=n_term_values)

    def term_values(self, unknowns: Array) -> Array:
        """Terms of the ratings, of shape (n_items, n_rating_terms[, n_columns])."""
        # Values of the terms of all items; effects of covariates come after them.
        values = self.parameters(unknowns)[: self.n_regularized]
        return values.reshape(self.counts.n_items, -1, *unknowns.shape[1:])

    def ratings_at(self, term_weights: Array, unknowns: Array) -> Array:
        """Ratings with these weights of their terms, with mean 0 in each component."""
        values = self.term_values(unknowns)  # (n_items, n_terms[, n_columns])
        ratings = np.einsum("iq...,q->i...", values, term_weights)
        return self.counts.center(ratings)

    def contrast(self, item_weights: Array, term_weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i, for ratings with these weights of their terms."""
        # Parameters are the terms of all items, then the effects of covariates, which count 0 here.
        parameter_weights = np.zeros(self.n_parameters)
        weights_of_terms = np.outer(item_weights, term_weights)
        parameter_weights[: self.n_regularized] = weights_of_terms.ravel()
        return np.asarray(self._transposed_parameter_basis @ parameter_weights)

    def effects(self, unknowns: Array) -> Array:
        """Effects of the covariates."""
        return unknowns[self.n_regularized :]

    @cached_property
    def _transposed_squares(self) -> sp.csr_matrix:
        """Squared entries of Dᵀ, for the diagonal of ``Dᵀ W D``."""
        return (self.incidence @ self.parameter_basis).power(2).T.tocsr()

    def solver(
        self, weights: Array, ridge: float, tol: float = SOLVER_TOLERANCE
    ) -> Callable[[Array], Array]:
        """Return a solver by conjugate gradients that never forms the matrix."""
        # Solves (Dᵀ W D + Λ) x = b by conjugate gradients, without forming the matrix.
        penalties = self.penalties(ridge)

        def multiply_system(vectors: Array) -> Array:
            """``(Dᵀ W D + Λ) v``."""
            weighted_margins = weights[:, None] * self.margins(vectors)
            return self.apply_transpose(weighted_margins) + penalties[:, None] * vectors

        diagonal = self._transposed_squares @ weights + penalties
        return iterative_solver(multiply_system, diagonal, tol, SOLVER_ITERATIONS)


class DynamicBradleyTerry:
    """The Bradley–Terry model with ratings that depend on time and context.

    A `RatingModel`. It minimizes ``Σ ω ℓ(r_i(c) − r_j(c) + zᵀγ) + ½ Σ (a²/σ₀² + …)``, minus the log
    posterior if the terms of a rating are independent and normal with the given scales.
    The ratings refer to the last time and the mix of contexts; `at` returns other ratings.

    Parameters
    ----------
    data : PairData
        The comparisons.
    counts : ComparisonCounts
        The same, with covariates and one cell for each comparison; see `count_cells`.
    levels : dict from str to ndarray
        The levels of each context.
    scales : PriorScales
        Standard deviations of the terms of a rating.
    ties : {"half", "davidson"}
        As in `BradleyTerry`.
    tolerance : float, default=1e-9
        Tolerance, relative to the objective.
    """

    def __init__(
        self,
        data: PairData,
        counts: ComparisonCounts,
        levels: Levels,
        scales: PriorScales,
        ties: str,
        tolerance: float = TOLERANCE,
    ) -> None:
        self.counts = counts
        self.likelihood = tie_likelihood(counts, ties)
        self.tie_model = ties
        self.theta = 0.0  # log of the parameter of the ties
        self.tolerance = tolerance
        self.components = counts.components

        # A rating is a weighted sum of terms (constant, path in time, offsets of contexts); each
        # comparison has the weights of its time and contexts.
        self.rating_terms = RatingTerms(data, levels, scales)
        weights_by_comparison = self.rating_terms.term_weights(
            data.times, self.rating_terms.context_codes
        )
        self.system = DynamicSystem(counts, self.rating_terms, weights_by_comparison)
        # Ratings of the board: at the last time and for the mix of contexts.
        self.term_weights = self.rating_terms.term_weights_at(time=None, context=None)
        # The prior of the unknowns is N(0, 1); the scales determine the regularization.
        self.alpha = 0.5 / counts.total_weight  # W α ‖u‖² is ½ ‖u‖²

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
        """Scales of the terms."""
        return self.rating_terms.describe()

    def fit(self, alpha: float | None = None) -> Self:
        """Estimate the terms of all ratings by Newton's method; alpha is 1/(2W)."""
        if alpha is not None:
            self.alpha = alpha
        problem = PairLikelihood(self.system, self.likelihood, self.alpha)
        point = newton(problem, problem.start(), self.tolerance)
        # The last unknown is θ, the log of the parameter of the ties.
        self.unknowns = point.unknowns[:-1]
        self.theta = float(point.unknowns[-1])
        return self

    @property
    def ratings(self) -> Array:
        """Ratings with `term_weights`, with mean 0 in each connected component."""
        return self.system.ratings_at(self.term_weights, self.unknowns)

    @property
    def effects(self) -> Array:
        """Effects of the covariates."""
        return self.system.effects(self.unknowns)

    def at(self, time: Moment | None = None, context: Context = None) -> Self:
        """Return the fitted model with the ratings of another time or context."""
        model = copy(self)
        model.term_weights = self.rating_terms.term_weights_at(time, context)
        return model

    def margins(self) -> Array:
        """Margin of each distinct pair in its cell."""
        return self.system.margins(self.unknowns)

    def expected(self, margins: Array) -> Array:
        """Probability that the first item wins minus the probability that it loses."""
        return self.outcome_curve.expected(margins)

    def variances(self, margins: Array) -> Array:
        """Variance of the outcomes 1, 0 and −1."""
        return self.outcome_curve.variances(margins)

    def leave_one_out(self) -> None:
        """Comparisons cannot be removed in closed form."""

    def covariance(
        self, clusters: Indices | None, has_few_data: NDArray[np.bool_]
    ) -> CovarianceRoot:
        """Posterior covariance of the ratings with `term_weights`.

        Clusters are not left out, and items with few data have errors from the prior.
        """
        # Clusters are not left out, and the prior gives items with few data their errors: neither
        # argument of the other models has an effect here.
        root = self.system.ratings_at(self.term_weights, self.unknowns_root)
        n_columns = root.shape[1]
        return CovarianceRoot(
            root=root,
            freedom=max(1, self.counts.n_comparisons - 1),
            effects_root=self.system.effects(self.unknowns_root),
            is_from_draws=n_columns != len(self.unknowns_root),  # an exact root is square
            unknowns_root=self.unknowns_root,
        )

    def weights_of_unknowns(self, item_weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i, for ratings with `term_weights`."""
        return self.system.contrast(item_weights, self.term_weights)

    @cached_property
    def unknowns_root(self) -> Array:
        """Root F of the posterior covariance F Fᵀ of the unknowns; by draws if it is large."""
        system = self.system
        counts = self.counts
        # The posterior precision is Dᵀ W D + Λ, with the curvatures of the likelihood as W.
        margins = self.margins()[counts.pair_of_outcome]
        derivatives = self.outcome_curve.derivatives(margins, counts.target)
        curvatures = counts.sum_by_pair(counts.outcome_weight * derivatives.curvature)
        penalties = system.penalties(ridge=1)  # the prior of an unknown is N(0, 1)
        n_pairs = len(counts.first)
        if system.n_unknowns * n_pairs <= EXACT_SIZE:
            precision = system.dense_gram(curvatures) + np.diag(penalties)
            return factor_covariance(np.asarray(np.linalg.inv(precision), np.float64))

        # Draws: right-hand sides with the covariance Dᵀ W D + Λ = A have solutions with A⁻¹. They
        # are scaled so that root @ root.T is the covariance, up to the error of the draws.
        rng = np.random.default_rng(0)
        noise = rng.standard_normal((n_pairs + system.n_unknowns, N_DRAWS))
        noise /= np.sqrt(N_DRAWS)
        pair_noise = noise[:n_pairs]
        prior_noise = noise[n_pairs:]
        right_sides = system.apply_transpose(np.sqrt(curvatures)[:, None] * pair_noise)
        right_sides += np.sqrt(penalties)[:, None] * prior_noise
        solve = system.solver(curvatures, ridge=1.0, tol=DRAW_TOLERANCE)
        return solve(right_sides)

    def margins_of(
        self, side_weights: sp.csr_array, times: AnyArray | None, context_codes: Indices
    ) -> Array:
        """Margins of other comparisons without covariates.

        Parameters
        ----------
        side_weights : sparse array of shape (n, n_items + 1)
            1 for the items on the first side, −1 on the second. The last column is an unknown
            item, with the mean rating.
        times : ndarray of shape (n,) or None
            Times of the comparisons.
        context_codes : ndarray of shape (n_contexts, n)
            Levels of the contexts.
        """
        # Rows of the side weights are comparisons, with 1 for items of the first side and −1 for
        # those of the second. The last column is an unknown item, whose terms are all 0.
        term_values = self.system.term_values(self.unknowns)
        unknown_item = np.zeros((1, self.rating_terms.n_terms))
        all_values = np.vstack([term_values, unknown_item])
        return self.rating_terms.margins(all_values, side_weights, times, context_codes)

    def log_loss(self, data: PairData, covariates: Array) -> float:
        """Mean log loss of other comparisons with these columns of covariates."""
        context_codes = self.rating_terms.encode_contexts(data)
        term_values = self.system.term_values(self.unknowns)
        margins = self.rating_terms.margins(term_values, side_rows(data), data.times, context_codes)
        margins += covariates @ self.effects
        losses = self.outcome_curve.derivatives(margins, data.outcome).loss
        return float(data.weight @ losses / data.weight.sum())


def fit_dynamic(
    data: PairData,
    covariates: Array,
    ties: str,
    scales: PriorScales | None,
    half_life: float | None,
) -> DynamicBradleyTerry:
    """Select the scales that are not given, and fit the model."""
    _check_variation(data)
    check_scales(scales, half_life)
    levels = {name: np.unique(labels) for name, labels in data.contexts.items()}
    if scales is None:
        scales = select_scales(data, levels, covariates, ties, half_life)
    elif half_life is not None:
        scales = scales._replace(half_life=float(half_life))
    counts = count_cells(data, covariates)
    return DynamicBradleyTerry(data, counts, levels, scales, ties).fit()


def count_cells(data: PairData, covariates: Array) -> ComparisonCounts:
    """Count comparisons with covariates, one cell per comparison."""
    # One cell per comparison, so that none are merged.
    cell_of_comparison = np.arange(data.n_pairs)
    return ComparisonCounts.of(data, covariates, cell_of_comparison)


def _check_variation(data: PairData) -> None:
    """Refuse a time or context that is the same in every comparison."""
    if data.times is not None and (data.times == data.times[0]).all():
        raise ValueError(
            f"the time is {data.times[0]} in every comparison, so changes cannot be estimated; "
            "leave out time."
        )
    for name, labels in data.contexts.items():
        if (labels == labels[0]).all():
            raise ValueError(
                f"the context {name!r} is {labels[0]} in every comparison, so its effect cannot be "
                "estimated; leave it out."
            )


class _Split(NamedTuple):
    """Comparisons to train on and later ones to predict, with their covariates."""

    train: PairData
    train_counts: ComparisonCounts
    test: PairData
    test_covariates: Array


def select_scales(
    data: PairData, levels: Levels, covariates: Array, ties: str, half_life: float | None
) -> PriorScales:
    """Return the scales of least log loss on later comparisons, by coordinate search.

    The last third is predicted from all comparisons before it, and the second third from the first.
    Without times the thirds are random. Fewer than three comparisons have no thirds, and get the
    scales from which the search starts.
    """
    has_time = data.times is not None
    start = _first_scales(data, bool(levels), half_life)
    if data.n_pairs < LEAST_COMPARISONS:
        return start

    # The scales to select, by the loss of later comparisons.
    names = ["constant"]
    if levels:
        names.append("context")
    if has_time:
        names.append("time")
        if half_life is None:
            names.append("half_life")
    splits = _time_splits(data, covariates)

    def held_out_loss(scales: PriorScales) -> float:
        total_loss = 0.0
        for split in splits:
            model = DynamicBradleyTerry(
                split.train,
                split.train_counts,
                levels,
                scales,
                ties,
                tolerance=ROUGH_TOLERANCE,
            )
            total_loss += model.fit().log_loss(split.test, split.test_covariates)
        return total_loss

    return _coordinate_search(start, names, held_out_loss)


def _first_scales(data: PairData, has_levels: bool, half_life: float | None) -> PriorScales:
    """Return the scales from which the search starts."""
    scales = FIRST_SCALES
    if not has_levels:
        scales = scales._replace(context=0.0)
    if data.times is None:
        scales = scales._replace(time=0.0)
    else:  # the half-life is a share of the time from the first comparison to the last
        n_days = float(np.ptp(in_days(data.times)))
        scales = scales._replace(half_life=scales.half_life * n_days)
    if half_life is not None:
        scales = scales._replace(half_life=half_life)
    return scales


def _time_splits(data: PairData, covariates: Array) -> list[_Split]:
    """Return the training and test comparisons of both splits."""
    if data.times is None:
        order = np.random.default_rng(0).permutation(data.n_pairs)
    else:
        order = np.argsort(in_days(data.times), kind="stable")
    splits = []
    for train_share, end_share in SPLITS:
        test_start = int(train_share * data.n_pairs)
        test_end = int(end_share * data.n_pairs)
        train_rows = np.sort(order[:test_start])
        test_rows = order[test_start:test_end]
        train = data.take(train_rows)
        split = _Split(
            train=train,
            train_counts=count_cells(train, covariates[train_rows]),
            test=data.take(test_rows),
            test_covariates=covariates[test_rows],
        )
        splits.append(split)
    return splits


def _coordinate_search(
    start: PriorScales, names: list[str], loss_of: Callable[[PriorScales], float]
) -> PriorScales:
    """Minimize the loss by changing one scale at a time by a factor."""
    # Multiply one scale at a time by each factor, and keep what decreases the loss.
    losses = {start: loss_of(start)}
    best = start
    for _ in range(ROUNDS):
        best_of_last_round = best
        for name in names:
            for factor in FACTORS:
                value = factor * best._asdict()[name]
                is_standard_deviation = name != "half_life"
                if is_standard_deviation and value > LARGEST_SCALE:
                    continue
                trial = best._replace(**{name: value})
                if trial not in losses:
                    losses[trial] = loss_of(trial)
                if losses[trial] < losses[best]:
                    best = trial
        if best == best_of_last_round:  # no scale changed
            break
    return best
