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
from rankwise.leaderboard.models.rating_components import (
    Levels,
    PriorScales,
    RatingComponents,
    check_scales,
)
from rankwise.uncertainty.jackknife_errors import CovarianceRoot

SOLVER_TOLERANCE = 1e-11
SOLVER_ITERATIONS = 500
N_DRAWS = 100
DRAW_TOLERANCE = 1e-2
EXACT_SIZE = 2**23  # entries of the dense design, up to which the covariance is exact
GAP = 1e-9  # relative to the objective
ROUGH_GAP = 1e-5  # while scales are selected
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
    components : RatingComponents
        Components of a rating.
    phi : sparse matrix of shape (n_cells, q)
        Coefficients of the components in each cell.
    """

    def __init__(
        self, counts: ComparisonCounts, components: RatingComponents, phi: sp.csr_matrix
    ) -> None:
        n_items = counts.n_items
        q = phi.shape[1]
        n_rows = len(counts.first)
        rows = phi[counts.cell]
        positions = rows.indices.reshape(n_rows, 1, -1)
        values = rows.data.reshape(n_rows, 1, -1)
        items, signs = counts.members
        columns = (items[:, :, None] * q + positions).reshape(n_rows, -1)
        entries = (signs[:, :, None] * values).reshape(n_rows, -1)
        E = fixed_width_csr(columns, entries, counts.covariates, n_items * q)
        item_blocks = sp.kron(sp.identity(n_items), components.root())
        effects_block = sp.identity(counts.covariates.shape[1])
        T = sp.block_diag([item_blocks, effects_block], format="csr")
        super().__init__(counts, E, T, n_regularized=n_items * q)

    def components_of(self, unknowns: Array) -> Array:
        """Components of the items, of shape (n_items, q) or (n_items, q, n_columns)."""
        inner = self.transform(unknowns)[: self.n_regularized]
        return inner.reshape(self.counts.n_items, -1, *unknowns.shape[1:])

    def ratings_at(self, phi: Array, unknowns: Array) -> Array:
        """Ratings for the coefficients φ, with mean 0 in each component."""
        ratings = np.einsum("iq...,q->i...", self.components_of(unknowns), phi)
        return self.counts.center(ratings)

    def contrast(self, weights: Array, phi: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i, for ratings with the coefficients φ."""
        inner = np.zeros(self.E.shape[1])
        inner[: self.n_regularized] = np.outer(weights, phi).ravel()
        return np.asarray(self._transposed_T @ inner)

    def effects(self, unknowns: Array) -> Array:
        """Effects of the covariates."""
        return unknowns[self.n_regularized :]

    @cached_property
    def _squares(self) -> sp.csr_matrix:
        return (self.E @ self.T).power(2).T.tocsr()

    def solver(
        self, weights: Array, shift: float, tol: float = SOLVER_TOLERANCE
    ) -> Callable[[Array], Array]:
        """Return a solver by conjugate gradients that never forms the matrix."""
        penalty = self.penalty(shift)

        def product(v: Array) -> Array:
            return self.apply_transpose(weights[:, None] * self.margins(v)) + penalty[:, None] * v

        diagonal = self._squares @ weights + penalty
        return iterative_solver(product, diagonal, tol, SOLVER_ITERATIONS)


class DynamicBradleyTerry:
    """The Bradley–Terry model with ratings that depend on time and context.

    A `RatingModel`. It minimizes ``Σ ω ℓ(r_i(c) − r_j(c) + zᵀγ) + ½ Σ (a²/σ₀² + …)``, minus the log
    posterior if the components of a rating are independent and normal with the given scales.
    Ratings are those of the last time and the mix of contexts; `at` returns others.

    Parameters
    ----------
    data : PairData
        The comparisons.
    counts : ComparisonCounts
        The same, with covariates and one cell for each comparison; see `count_cells`.
    levels : dict from str to ndarray
        The levels of each context.
    scales : PriorScales
        Standard deviations of the components of a rating.
    ties : {"half", "davidson"}
        As in `BradleyTerry`.
    gap : float, default=1e-9
        Tolerance, relative to the objective.
    """

    def __init__(
        self,
        data: PairData,
        counts: ComparisonCounts,
        levels: Levels,
        scales: PriorScales,
        ties: str,
        gap: float = GAP,
    ) -> None:
        self.counts = counts
        self.likelihood = tie_likelihood(counts, ties)
        self.tie_model = ties
        self.theta = 0.0
        self.gap = gap
        self.rating_components = RatingComponents(data, levels, scales)
        cell_phi = self.rating_components.coefficients(data.times, self.rating_components.codes)
        self.system = DynamicSystem(counts, self.rating_components, cell_phi)
        self.components = counts.components
        self.phi = self.rating_components.point()
        self.alpha = 0.5 / counts.total_weight  # the scales determine the regularization

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
        """Scales of the components."""
        return self.rating_components.describe()

    def fit(self, alpha: float | None = None) -> Self:
        """Estimate the components of all ratings by Newton's method; alpha is 1/(2W)."""
        if alpha is not None:
            self.alpha = alpha
        problem = PairLikelihood(self.system, self.likelihood, self.alpha)
        point = newton(problem, problem.start(), self.gap)
        self.unknowns = point.unknowns[:-1]
        self.theta = float(point.unknowns[-1])
        return self

    @property
    def ratings(self) -> Array:
        """Ratings at `phi`, with mean 0 in each component."""
        return self.system.ratings_at(self.phi, self.unknowns)

    @property
    def effects(self) -> Array:
        """Effects of the covariates."""
        return self.system.effects(self.unknowns)

    def at(self, time: Moment | None = None, context: Context = None) -> Self:
        """Return the fitted model with the ratings of another time or context."""
        model = copy(self)
        model.phi = self.rating_components.point(time, context)
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

    def leave_out(self) -> None:
        """Comparisons cannot be removed in closed form."""

    def covariance(self, clusters: Indices | None, thin: NDArray[np.bool_]) -> CovarianceRoot:
        """Posterior covariance of the ratings at `phi`.

        Clusters are not left out, and thin items have errors from the prior.
        """
        root = self.system.ratings_at(self.phi, self.draws)
        n_degrees = max(1, len(self.counts.outcome) - 1)
        is_exact = len(self.draws) == root.shape[1]
        effects = self.system.effects(self.draws)
        return CovarianceRoot(root, n_degrees, effects, is_exact, self.draws)

    def contrast(self, weights: Array) -> Array:
        """Return d with dᵀ u = Σ w_i r_i, the ratings at `phi`."""
        return self.system.contrast(weights, self.phi)

    @cached_property
    def draws(self) -> Array:
        """Root of the posterior covariance of the unknowns, or draws from it if it is large."""
        counts = self.counts
        margins = self.margins()[counts.pair]
        derivatives = self.outcome_curve.derivatives(margins, counts.target)
        curvatures = counts.sum_by_pair(counts.outcome_weight * derivatives.mm)
        penalty = self.system.penalty(1)
        if self.system.size * len(counts.first) <= EXACT_SIZE:
            precision = self.system.dense_gram(curvatures) + np.diag(penalty)
            return factor_covariance(np.asarray(np.linalg.inv(precision), np.float64))
        rng = np.random.default_rng(0)
        noise = rng.standard_normal((len(curvatures) + self.system.size, N_DRAWS))
        noise /= np.sqrt(N_DRAWS)
        flows = noise[: len(curvatures)]
        prior_noise = noise[len(curvatures) :]
        right = self.system.apply_transpose(np.sqrt(curvatures)[:, None] * flows)
        right += np.sqrt(penalty)[:, None] * prior_noise
        return self.system.solver(curvatures, 1.0, DRAW_TOLERANCE)(right)

    def margins_of(self, rows: sp.csr_array, times: AnyArray | None, codes: Indices) -> Array:
        """Margins of other comparisons without covariates.

        Parameters
        ----------
        rows : sparse array of shape (n, n_items + 1)
            1 for the items on the first side, −1 on the second. The last column is an unknown
            item, with the mean rating.
        times : ndarray of shape (n,) or None
            Times of the comparisons.
        codes : ndarray of shape (n_contexts, n)
            Levels of the contexts.
        """
        values = self.system.components_of(self.unknowns)
        unknown_item = np.zeros((1, self.rating_components.size))
        values = np.vstack([values, unknown_item])
        return self.rating_components.margins(values, rows, times, codes)

    def log_loss(self, data: PairData, Z: Array) -> float:
        """Mean log loss of other comparisons with the columns of covariates Z."""
        codes = self.rating_components.codes_of(data)
        values = self.system.components_of(self.unknowns)
        margins = self.rating_components.margins(values, side_rows(data), data.times, codes)
        margins += Z @ self.effects
        losses = self.outcome_curve.derivatives(margins, data.outcome).value
        return float(data.weight @ losses / data.weight.sum())


def fit_dynamic(
    data: PairData, Z: Array, ties: str, scales: PriorScales | None, half_life: float | None
) -> DynamicBradleyTerry:
    """Select the scales that are not given, and fit the model."""
    _check_variation(data)
    check_scales(scales, half_life)
    levels = {name: np.unique(labels) for name, labels in data.contexts.items()}
    if scales is None:
        scales = select_scales(data, levels, Z, ties, half_life)
    elif half_life is not None:
        scales = scales._replace(half_life=float(half_life))
    return DynamicBradleyTerry(data, count_cells(data, Z), levels, scales, ties).fit()


def count_cells(data: PairData, Z: Array) -> ComparisonCounts:
    """Count comparisons with the covariates Z, each in a cell of its own."""
    return ComparisonCounts.of(data, Z, np.arange(data.n_pairs))


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
    test_Z: Array


def select_scales(
    data: PairData, levels: Levels, Z: Array, ties: str, half_life: float | None
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
    names = ["constant"]
    if levels:
        names.append("context")
    if has_time:
        names.append("time")
        if half_life is None:
            names.append("half_life")
    splits = _time_splits(data, Z)

    def loss(scales: PriorScales) -> float:
        total = 0.0
        for split in splits:
            model = DynamicBradleyTerry(
                split.train, split.train_counts, levels, scales, ties, ROUGH_GAP
            )
            total += model.fit().log_loss(split.test, split.test_Z)
        return total

    return _coordinate_search(start, names, loss)


def _first_scales(data: PairData, has_levels: bool, half_life: float | None) -> PriorScales:
    """Return the scales from which the search starts."""
    span = 1.0
    if data.times is not None:
        span = float(np.ptp(in_days(data.times)))
    return PriorScales(
        constant=FIRST_SCALES.constant,
        time=FIRST_SCALES.time if data.times is not None else 0.0,
        half_life=FIRST_SCALES.half_life * span if half_life is None else half_life,
        context=FIRST_SCALES.context if has_levels else 0.0,
    )


def _time_splits(data: PairData, Z: Array) -> list[_Split]:
    """Return the training and test comparisons of both splits."""
    if data.times is None:
        order = np.random.default_rng(0).permutation(data.n_pairs)
    else:
        order = np.argsort(in_days(data.times), kind="stable")
    splits = []
    for train_share, test_share in SPLITS:
        n_train = int(train_share * data.n_pairs)
        n_seen = int(test_share * data.n_pairs)
        train_rows = np.sort(order[:n_train])
        test_rows = order[n_train:n_seen]
        train = data.take(train_rows)
        counts = count_cells(train, Z[train_rows])
        splits.append(_Split(train, counts, data.take(test_rows), Z[test_rows]))
    return splits


def _coordinate_search(
    start: PriorScales, names: list[str], loss: Callable[[PriorScales], float]
) -> PriorScales:
    """Minimize the loss by changing one scale at a time by a factor."""
    losses = {start: loss(start)}
    best = start
    for _ in range(ROUNDS):
        before = best
        for name in names:
            for factor in FACTORS:
                value = factor * best._asdict()[name]
                if name != "half_life" and value > LARGEST_SCALE:
                    continue
                trial = best._replace(**{name: value})
                if trial not in losses:
                    losses[trial] = loss(trial)
                best = min(best, trial, key=losses.__getitem__)
        if best == before:
            break
    return best
