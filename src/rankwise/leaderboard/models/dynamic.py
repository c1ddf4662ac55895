"""Ratings that change with time and with the circumstances of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import PairData
from rankwise.datasets.times import as_times, in_days
from rankwise.formatting import join_words
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import root_of
from rankwise.leaderboard.algebra.rating_system import (
    TOLERANCE,
    RatingSystem,
    fixed_width_csr,
    iterative_solver,
)
from rankwise.leaderboard.models.bradley_terry import BradleyTerry
from rankwise.uncertainty.jackknife_errors import CovarianceRoot

Levels = dict[str, NDArray[Any]]
KNOTS = 4  # in the time τ
MOST_KNOTS = 80
N_DRAWS = 100
DRAW_TOLERANCE = 1e-2
EXACT_SIZE = 2**23  # numbers of the dense design
GAP, ROUGH_GAP = 1e-9, 1e-5
MAX_ITERATIONS = 500
FIRST = (1.0, 0.5, 0.3, 0.3)  # constant, time, half-life as a share of all time, context
FACTORS = (2.0, 0.5, 2**0.5, 0.5**0.5)
LARGEST = 4.0  # logits, a scale of 700 Elo points
ROUNDS = 3
LEAST_COMPARISONS = 3  # one in each third
SPLITS = ((1 / 3, 2 / 3), (2 / 3, 1.0))  # comparisons before and until which share


class PriorScales(NamedTuple):
    """How much ratings differ, in logits: standard deviations of the parts of a rating.

    Attributes
    ----------
    constant : float
        Of what an item always has.
    time : float
        Of what changes with time; 0 without time.
    half_life : float
        After which half of a change is left, in days if times are dates.
    context : float
        Of what an item has in one context only; 0 without contexts.
    """

    constant: float
    time: float = 0.0
    half_life: float = 1.0
    context: float = 0.0


class RatingComponents:
    """The parts of a rating and how much of each there is in a comparison: φ(c), q numbers.

    ``r_i(c) = a_i + x_i(t) + Σ b_{i,s}``: a constant, a path in time with the covariance
    ``e^{−|t − t′|/τ}`` (an Ornstein–Uhlenbeck process, by its values at a few knots), and an offset
    for each level s of a context.

    Parameters
    ----------
    data : PairData
        The comparisons to learn from.
    levels : dict from str to ndarray
        The levels of each context.
    scales : Scales
        Of the parts.
    """

    def __init__(self, data: PairData, levels: Levels, scales: PriorScales) -> None:
        self.times, self.levels, self.scales = data.times, levels, scales
        self.codes = self.codes_of(data)
        self.tau = scales.half_life / np.log(2)
        self.knots = np.empty(0)
        if self.times is not None:
            days = in_days(self.times)
            first = days.min()
            last = max(days.max(), first + 0.1 * self.tau)  # all of them may be of one day
            n = 1 + int(np.ceil(KNOTS * (last - first) / self.tau))
            self.knots = np.linspace(first, last, min(max(n, 2), MOST_KNOTS))
        sizes = [len(known) for known in levels.values()]
        self.first_level = 1 + len(self.knots) + np.cumsum([0, *sizes])
        self.size = int(self.first_level[-1])

    def codes_of(self, data: PairData) -> Indices:
        """The level of each comparison in each context, of shape (n_contexts, n); −1 is unknown."""
        codes = np.zeros((len(self.levels), data.n_pairs), np.intp)
        for code, (name, known) in zip(codes, self.levels.items(), strict=True):
            labels = data.contexts[name]
            at = np.minimum(np.searchsorted(known, labels), len(known) - 1)
            code[:] = np.where(known[at] == labels, at, -1)
        return codes

    def root(self) -> Array:
        """T with T Tᵀ the covariance of the parts of one item."""
        T, k = np.zeros((self.size, self.size)), 1 + len(self.knots)
        T[0, 0] = self.scales.constant
        gaps = np.abs(self.knots[:, None] - self.knots) / self.tau
        covariance = np.exp(-gaps) + 1e-10 * np.eye(len(self.knots))
        T[1:k, 1:k] = self.scales.time * np.linalg.cholesky(covariance) if k > 1 else 0.0
        T[k:, k:] = self.scales.context * np.eye(self.size - k)
        return T

    def at(self, times: NDArray[Any] | None, codes: Indices) -> sp.csr_matrix:
        """φ of shape (n, q): between two knots what the process expects, after the last it fades.

        A level of −1 is none.
        """
        n = codes.shape[1] if times is None else len(times)
        columns, values = [np.zeros(n, np.intp)], [np.ones(n)]
        if len(self.knots):
            days, last, K = in_days(np.asarray(times)), self.knots[-1], len(self.knots)
            left = np.clip(np.searchsorted(self.knots, days, side="right") - 1, 0, K - 2)
            width = (self.knots[1] - self.knots[0]) / self.tau
            since = np.clip((days - self.knots[left]) / self.tau, 0.0, width)
            fading = np.exp(-np.maximum(days - last, 0.0) / self.tau)
            fading *= np.exp(-np.maximum(self.knots[0] - days, 0.0) / self.tau)
            columns += [1 + left, 2 + left]
            for far in (since, width - since):  # sinh(width − far)/sinh(width)
                share = np.exp(-far) * np.expm1(-2 * (width - far)) / np.expm1(-2 * width)
                values.append(fading * share)
        for first, code in zip(self.first_level, codes, strict=False):
            columns.append(first + np.maximum(code, 0))
            values.append((code >= 0).astype(np.float64))
        m = len(columns)
        at = np.stack(columns, axis=1).ravel(), np.arange(0, m * n + 1, m)
        return sp.csr_matrix((np.stack(values, axis=1).ravel(), *at), shape=(n, self.size))

    def margins(
        self, parts: Array, first: Indices, second: Indices, times: Any, codes: Indices
    ) -> Array:
        """By how much the first items should win, by the parts of all items."""
        phi = self.at(times, codes)
        return np.asarray(phi.multiply(parts[first] - parts[second]).sum(axis=1)).ravel()

    def words(self) -> str:
        """What the board says of the scales."""
        scales, times = self.scales, self.times
        said = [f"constant {scales.constant:.2g}"]
        if times is not None:
            unit = " days" if times.dtype.kind == "M" else ""
            said += [f"time {scales.time:.2g} with a half-life of {scales.half_life:.3g}{unit}"]
        if self.levels:
            said += [f"context {scales.context:.2g}"]
        return f"ratings in context; scales in logits: {', '.join(said)}"

    def point(self, time: Any = None, context: Any = None) -> Array:
        """φ of one moment and one context: the last day, and the mix of levels, if not given."""
        times = None
        if self.times is not None:
            times = np.array([self.times.max()]) if time is None else as_times([time], 1)
            if times.dtype.kind != self.times.dtype.kind:
                raise ValueError(
                    f"time={time!r}, but the times of the board are as {self.times[0]}."
                )
        elif time is not None:
            raise ValueError("the board was made without time=, so it is the same at all times.")
        phi = self.at(times, np.full((0, 1), -1)).toarray()[0]
        asked = self.level_codes(context)
        for first, code, codes, known in zip(
            self.first_level, asked, self.codes, self.levels.values(), strict=False
        ):
            n = len(known)
            share = np.bincount(codes, minlength=n) / codes.size if code < 0 else np.eye(n)[code]
            phi[first : first + n] = share
        return np.asarray(phi)

    def level_codes(self, context: Any) -> list[int]:
        """The number of the level of each context, −1 where none is asked for."""
        if not isinstance(context, Mapping):
            if context is not None and len(self.levels) != 1:
                names = ", ".join(self.levels) or "none"
                raise ValueError(
                    f"context={context!r}, but the contexts of the board are: {names}; pass a dict."
                )
            context = dict.fromkeys(self.levels, context)
        codes = []
        for name, known in self.levels.items():
            label, labels = context.get(name), known.tolist()
            if label is not None and label not in labels:
                raise ValueError(
                    f"{name} is {label!r}; the board knows {join_words(map(repr, labels))}."
                )
            codes.append(-1 if label is None else labels.index(label))
        return codes


class DynamicSystem(RatingSystem):
    """``(e_i − e_j) ⊗ φ(c)`` in the place of ``e_i − e_j``, whitened: every unknown is N(0, 1).

    Parameters
    ----------
    tally : Tally
        The comparisons; a cell is one of the circumstances.
    parts : Parts
        Of a rating.
    phi : sparse matrix of shape (n_cells, q)
        How much of each part there is in each cell.
    """

    def __init__(
        self, tally: ComparisonCounts, parts: RatingComponents, phi: sp.csr_matrix
    ) -> None:
        super().__init__(tally)
        self.now = parts.point()
        n, (_, q) = tally.n_items, phi.shape
        rows = phi[tally.cell]
        at, values = (each.reshape(len(tally.first), -1) for each in (rows.indices, rows.data))
        columns = np.hstack([end[:, None] * q + at for end in (tally.first, tally.second)])
        self.E = fixed_width_csr(columns, np.hstack([values, -values]), tally.covariates, n * q)
        every = sp.identity(tally.covariates.shape[1])
        self.T = sp.block_diag([sp.kron(sp.identity(n), parts.root()), every], format="csr")
        self.n_regularized, self.size = n * q, n * q + tally.covariates.shape[1]

    def parts_of(self, unknowns: Array) -> Array:
        """Parts of the items, of shape (n_items, q) or (n_items, q, n_columns)."""
        inner = self.inner(unknowns)[: self.n_regularized]
        return inner.reshape(self.tally.n_items, -1, *unknowns.shape[1:])

    def ratings_at(self, phi: Array, unknowns: Array) -> tuple[Array, Array]:
        """Ratings in one of the circumstances, of mean 0 in each component, and effects."""
        ratings = np.einsum("iq...,q->i...", self.parts_of(unknowns), phi)
        return self.tally.centered(ratings), unknowns[self.n_regularized :]

    def ratings_and_effects(self, unknowns: Array) -> tuple[Array, Array]:
        """Those of the last day."""
        return self.ratings_at(self.now, unknowns)

    @cached_property
    def _squares(self) -> sp.csr_matrix:
        return (self.E @ self.T).power(2).T.tocsr()

    def solver(
        self, weights: Array, shift: float, tol: float = TOLERANCE, dtype: Any = np.float64
    ) -> Callable[[Array], Array]:
        """By conjugate gradients, without the matrix."""
        penalty = self.penalty(shift)

        def product(v: Array) -> Array:
            return self.right(weights[:, None] * self.margins(v)) + penalty[:, None] * v

        return iterative_solver(product, self._squares @ weights + penalty, tol, MAX_ITERATIONS)


class DynamicBradleyTerry(BradleyTerry):
    """Bradley and Terry's model with ratings that depend on time and context.

    ``Σ ω ℓ(r_i(c) − r_j(c) + zᵀγ) + ½ Σ (a²/σ₀² + …)``: the mode of the posterior when the parts of
    a rating are independent and normal with the scales. The ratings of the board are those of the
    last day, and of the mix of contexts.

    Parameters
    ----------
    data : PairData
        The comparisons.
    levels : dict from str to ndarray
        The levels of each context.
    Z : ndarray of shape (n_comparisons, n_covariates)
        Columns of covariates.
    scales : Scales
        Of the parts of a rating.
    ties : {"half", "davidson"}
        As in `BradleyTerry`.
    gap : float
        How exact, relative to the objective.
    """

    can_leave_out = False
    is_in_context = True

    def __init__(
        self,
        data: PairData,
        levels: Levels,
        Z: Array,
        scales: PriorScales,
        ties: str,
        gap: float = GAP,
    ) -> None:
        tally = ComparisonCounts.of(data, Z, np.arange(data.n_pairs))
        super().__init__(tally, ties=ties)
        self.parts, self.tol = RatingComponents(data, levels, scales), gap
        phi = self.parts.at(data.times, self.parts.codes)
        self.system: DynamicSystem = DynamicSystem(tally, self.parts, phi)
        self.alpha = 0.5 / tally.total_weight  # the scales say how strong the regularization is

    def _note(self) -> str:
        return self.parts.words()

    def spread(self, clusters: Indices | None, thin: NDArray[np.bool_]) -> CovarianceRoot:
        """Errors by the posterior; clusters and thin items need no care, since the prior has it."""
        system, tally = self.system, self.tally
        bends = self.verdicts.at(self.margins()[tally.pair], tally.target, self.theta)
        curvatures = tally.by_pair(tally.count * tally.weight * bends.mm)
        penalty = system.penalty(1)
        if system.size * len(tally.first) <= EXACT_SIZE:
            matrix = system.dense_gram(curvatures) + np.diag(penalty)
            self.draws = root_of(np.asarray(np.linalg.inv(matrix), np.float64))
        else:
            rng = np.random.default_rng(0)
            noise = rng.standard_normal((len(curvatures) + system.size, N_DRAWS))
            flows, own = np.split(noise / np.sqrt(N_DRAWS), [len(curvatures)])
            right = system.right(np.sqrt(curvatures)[:, None] * flows)
            right += np.sqrt(penalty)[:, None] * own
            self.draws = system.solver(curvatures, 1.0, DRAW_TOLERANCE)(right)
        return self.spread_at(self.parts.point())

    def spread_at(self, phi: Array) -> CovarianceRoot:
        """Errors of the ratings in one of the circumstances."""
        root, effects = self.system.ratings_at(phi, self.draws)
        freedom, is_exact = max(1, len(self.tally.outcome) - 1), len(self.draws) == root.shape[1]
        return CovarianceRoot(root, freedom, effects, is_exact)

    def log_loss(self, data: PairData, Z: Array) -> float:
        """Mean log loss of other comparisons, with these columns of covariates."""
        parts, codes = self.system.parts_of(self.unknowns), self.parts.codes_of(data)
        margins = self.parts.margins(parts, data.first, data.second, data.times, codes)
        margins += Z @ self.unknowns[self.system.n_regularized :]
        losses = self.verdicts.at(margins, data.outcome, self.theta).value
        return float(data.weight @ losses / data.weight.sum())


def make_dynamic(
    data: PairData, Z: Array, ties: str, scales: PriorScales | None, half_life: float | None
) -> DynamicBradleyTerry:
    """Choose the scales and solve."""
    if data.times is not None and (data.times == data.times[0]).all():
        raise ValueError(
            f"the time is {data.times[0]} in every comparison, so nothing can change; "
            "leave out time."
        )
    levels = {name: np.unique(labels) for name, labels in data.contexts.items()}
    for name, known in levels.items():
        if len(known) < 2:
            raise ValueError(
                f"the context {name!r} is {known[0]} in every comparison, so that it tells "
                "nothing; leave it out."
            )
    check_scales(scales, half_life)
    if scales is None:
        scales = choose_scales(data, levels, Z, ties, half_life)
    elif half_life is not None:
        scales = scales._replace(half_life=float(half_life))
    model = DynamicBradleyTerry(data, levels, Z, scales, ties)
    return model.solve(model.alpha)


def check_scales(scales: Any, half_life: Any) -> None:
    """Check the types and the range of both arguments of `rate`."""
    if half_life is not None:
        is_number = isinstance(half_life, Real) and not isinstance(half_life, bool)
        if not is_number or not 0 < half_life < np.inf:
            raise ValueError(
                f"half_life={half_life!r}; expected a positive, finite number (of days, if times "
                "are dates)."
            )
    if scales is None:
        return
    if not isinstance(scales, PriorScales):
        raise TypeError(
            f"scales is of type {type(scales).__name__}; expected "
            "rankwise.leaderboard.models.dynamic.Scales, such as board.scales of another board."
        )
    is_in_range = all(isinstance(scale, Real) and 0 <= scale < np.inf for scale in scales)
    if not is_in_range or not scales.constant > 0 or not scales.half_life > 0:
        raise ValueError(
            f"scales={scales!r}; expected finite standard deviations in logits, the constant "
            "positive and the others from 0, and a positive half_life."
        )


def choose_scales(
    data: PairData, levels: Levels, Z: Array, ties: str, half_life: float | None
) -> PriorScales:
    """The scales of least log loss on later comparisons, by a search along one after the other.

    The last third is foreseen from all before it, and the third before that likewise. Without times
    the thirds are random. Fewer than three comparisons have no thirds, and get the scales that the
    search starts from.
    """
    span = 1.0
    if data.times is None:
        order = np.random.default_rng(0).permutation(data.n_pairs)
    else:
        days = in_days(data.times)
        order, span = np.argsort(days, kind="stable"), float(np.ptp(days))
    has_time, has_levels = data.times is not None, bool(levels)
    constant, drift, share, offset = FIRST
    now = PriorScales(
        constant,
        drift if has_time else 0.0,
        half_life or share * span,
        offset if has_levels else 0.0,
    )
    if data.n_pairs < LEAST_COMPARISONS:
        return now
    free = ["constant"] + ["context"] * has_levels + ["time"] * has_time
    free += ["half_life"] * (has_time and half_life is None)

    def loss(scales: PriorScales) -> float:
        total = 0.0
        for start, stop in SPLITS:
            a, b = int(start * data.n_pairs), int(stop * data.n_pairs)
            before, later = np.sort(order[:a]), order[a:b]
            model = DynamicBradleyTerry(
                data.take(before), levels, Z[before], scales, ties, ROUGH_GAP
            )
            model.fit()
            total += model.log_loss(data.take(later), Z[later])
        return total

    tried = {now: loss(now)}
    for _ in range(ROUNDS):
        before = now
        for name in free:
            for factor in FACTORS:
                trial = now._replace(**{name: factor * getattr(now, name)})
                if name != "half_life" and getattr(trial, name) > LARGEST:
                    continue
                if trial not in tried:
                    tried[trial] = loss(trial)
                now = min(now, trial, key=tried.__getitem__)
        if now == before:
            break
    return now
