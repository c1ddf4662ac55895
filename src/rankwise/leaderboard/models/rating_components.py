"""Components of ratings that change with time and context."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Array, Indices
from rankwise.datasets import PairData
from rankwise.datasets.times import as_times, in_days
from rankwise.formatting import join_words
from rankwise.leaderboard.board_types import Context, Moment

Levels = dict[str, AnyArray]
KNOTS_PER_TAU = 4
MOST_KNOTS = 80
JITTER = 1e-10  # added to the diagonal of the correlations of the knots


class PriorScales(NamedTuple):
    """Standard deviations of the components of a rating, in logits.

    Attributes
    ----------
    constant : float
        Of the constant component of an item.
    time : float
        Of the component that changes with time; 0 without time.
    half_life : float
        Time after which half of a change is left, in days if times are dates.
    context : float
        Of the component for each level of a context; 0 without contexts.
    """

    constant: float
    time: float = 0.0
    half_life: float = 1.0
    context: float = 0.0


def check_scales(scales: object, half_life: Any) -> None:
    """Check the types and the range of the arguments `scales` and `half_life` of `rate`."""
    if half_life is not None:
        _check_half_life(half_life)
    if scales is None:
        return
    if not isinstance(scales, PriorScales):
        raise TypeError(
            f"scales is of type {type(scales).__name__}; expected "
            "rankwise.leaderboard.PriorScales, such as board.scales of another board."
        )
    is_in_range = all(isinstance(scale, Real) and 0 <= scale < np.inf for scale in scales)
    if not is_in_range or scales.constant == 0 or scales.half_life == 0:
        raise ValueError(
            f"scales={scales!r}; expected finite standard deviations in logits, a positive "
            "constant, non-negative time and context, and a positive half_life."
        )


def _check_half_life(half_life: Any) -> None:
    is_number = isinstance(half_life, int | float | np.number) and not isinstance(half_life, bool)
    if not is_number or not 0 < float(half_life) < np.inf:
        raise ValueError(
            f"half_life={half_life!r}; expected a positive, finite number (of days, if times are "
            "dates)."
        )


class RatingComponents:
    """The components of a rating and their coefficients φ(c) in the circumstances c, q numbers.

    ``r_i(c) = a_i + x_i(t) + Σ b_{i,s}``: a constant, a path in time with the covariance
    ``e^{−|t − t′|/τ}`` (an Ornstein–Uhlenbeck process, by its values at a few knots), and an offset
    for each level s of a context.

    Parameters
    ----------
    data : PairData
        The comparisons from which ratings are estimated.
    levels : dict from str to ndarray
        The levels of each context.
    scales : PriorScales
        Standard deviations of the components.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Times, in days, of the values of the path; empty without time.
    codes : ndarray of shape (n_contexts, n_comparisons)
        Level of each comparison in each context.
    size : int
        q, the number of components.
    """

    def __init__(self, data: PairData, levels: Levels, scales: PriorScales) -> None:
        self.times = data.times
        self.levels = levels
        self.scales = scales
        self.codes = self.codes_of(data)
        self.tau = scales.half_life / np.log(2)
        self.knots = np.empty(0)
        if data.times is not None:
            self.knots = _place_knots(in_days(data.times), self.tau)
        sizes = [len(labels) for labels in levels.values()]
        self.first_level = 1 + len(self.knots) + np.cumsum([0, *sizes])
        self.size = int(self.first_level[-1])

    def codes_of(self, data: PairData) -> Indices:
        """Level of each comparison in each context, shape (n_contexts, n); −1 if it is unknown."""
        codes = np.zeros((len(self.levels), data.n_pairs), np.intp)
        for k, (name, levels) in enumerate(self.levels.items()):
            labels = data.contexts[name]
            position = np.minimum(np.searchsorted(levels, labels), len(levels) - 1)
            codes[k] = np.where(levels[position] == labels, position, -1)
        return codes

    def root(self) -> Array:
        """T with T Tᵀ the covariance of the components of one item."""
        T = np.zeros((self.size, self.size))
        T[0, 0] = self.scales.constant
        first_level = 1 + len(self.knots)
        if len(self.knots):
            distances = np.abs(self.knots[:, None] - self.knots) / self.tau
            covariance = np.exp(-distances) + JITTER * np.eye(len(self.knots))
            T[1:first_level, 1:first_level] = self.scales.time * np.linalg.cholesky(covariance)
        n_levels = self.size - first_level
        T[first_level:, first_level:] = self.scales.context * np.eye(n_levels)
        return T

    def coefficients(self, times: AnyArray | None, codes: Indices) -> sp.csr_matrix:
        """φ of shape (n, q) for times and levels; a level of −1 has the coefficient 0.

        Between two knots the path has its conditional mean; before the first and after the last
        knot it decays.
        """
        n = codes.shape[1] if times is None else len(times)
        columns = [np.zeros(n, np.intp)]
        values = [np.ones(n)]
        if len(self.knots):
            days = in_days(np.asarray(times))
            left_knot, left_value, right_value = self._interpolate(days)
            columns += [1 + left_knot, 2 + left_knot]
            values += [left_value, right_value]
        for first_level, code in zip(self.first_level[:-1], codes, strict=False):
            columns.append(first_level + np.maximum(code, 0))
            values.append((code >= 0).astype(np.float64))
        width = len(columns)
        indices = np.stack(columns, axis=1).ravel()
        starts = np.arange(0, width * n + 1, width)
        return sp.csr_matrix(
            (np.stack(values, axis=1).ravel(), indices, starts), shape=(n, self.size)
        )

    def _interpolate(self, days: Array) -> tuple[Indices, Array, Array]:
        """Return the knot to the left of each time and the coefficients of it and the next one."""
        knots = self.knots
        left_knot = np.searchsorted(knots, days, side="right") - 1
        left_knot = np.clip(left_knot, 0, len(knots) - 2)
        width = (knots[1] - knots[0]) / self.tau
        since = np.clip((days - knots[left_knot]) / self.tau, 0.0, width)
        decay = np.exp(-np.maximum(days - knots[-1], 0.0) / self.tau)
        decay *= np.exp(-np.maximum(knots[0] - days, 0.0) / self.tau)

        def share(distance: Array) -> Array:
            """``sinh(width − distance)/sinh(width)``."""
            remaining = np.expm1(-2 * (width - distance)) / np.expm1(-2 * width)
            return np.asarray(np.exp(-distance) * remaining)

        return left_knot, decay * share(since), decay * share(width - since)

    def margins(
        self,
        components: Array,
        rows: sp.csr_array,
        times: AnyArray | None,
        codes: Indices,
    ) -> Array:
        """Margins of comparisons, from the components of all items, shape (n_items, q).

        `rows` has 1 for the items on the first side and −1 for those on the second.
        """
        phi = self.coefficients(times, codes)
        return np.asarray(phi.multiply(rows @ components).sum(axis=1)).ravel()

    def describe(self) -> str:
        """Return the note of a board on the scales."""
        scales = self.scales
        texts = [f"constant {scales.constant:.2g}"]
        if self.times is not None:
            unit = " days" if self.times.dtype.kind == "M" else ""
            half_life = f"{scales.half_life:.3g}{unit}"
            texts.append(f"time {scales.time:.2g} with a half-life of {half_life}")
        if self.levels:
            texts.append(f"context {scales.context:.2g}")
        return f"ratings in context; scales in logits: {', '.join(texts)}"

    def point(self, time: Moment | None = None, context: Context = None) -> Array:
        """φ of one time and one context; by default the last time and the mix of levels."""
        times = self._check_time(time)
        no_levels = np.full((0, 1), -1)
        phi = self.coefficients(times, no_levels).toarray()[0]
        selected = self.level_codes(context)
        for k, labels in enumerate(self.levels.values()):
            n_levels = len(labels)
            if selected[k] < 0:
                shares = np.bincount(self.codes[k], minlength=n_levels) / self.codes[k].size
            else:
                shares = np.eye(n_levels)[selected[k]]
            first_level = self.first_level[k]
            phi[first_level : first_level + n_levels] = shares
        return np.asarray(phi)

    def _check_time(self, time: Moment | None) -> AnyArray | None:
        """Return one time as an array, the last one by default; None without times."""
        if self.times is None:
            if time is not None:
                raise ValueError("the board was made without time=, so it does not depend on time.")
            return None
        if time is None:
            return np.array([self.times.max()])
        times = as_times([time], 1)
        if times.dtype.kind != self.times.dtype.kind:
            raise ValueError(f"time={time!r}, but the times of the board are like {self.times[0]}.")
        return times

    def level_codes(self, context: object) -> list[int]:
        """Number of the level of each context; −1 for contexts without a level."""
        if isinstance(context, Mapping):
            label_of = dict(context)
        elif context is None:
            label_of = {}
        elif len(self.levels) == 1:
            label_of = dict.fromkeys(self.levels, context)
        else:
            names = ", ".join(self.levels) or "none"
            raise ValueError(
                f"context={context!r}, but the contexts of the board are: {names}; pass a dict."
            )
        codes = []
        for name, levels in self.levels.items():
            label = label_of.get(name)
            labels = levels.tolist()
            if label is None:
                codes.append(-1)
            elif label in labels:
                codes.append(labels.index(label))
            else:
                raise ValueError(
                    f"{name} is {label!r}; the levels of the board are "
                    f"{join_words(map(repr, labels))}."
                )
        return codes


def _place_knots(days: Array, tau: float) -> Array:
    """Return evenly spaced knots, a few for each τ."""
    first = days.min()
    last = max(days.max(), first + 0.1 * tau)  # all comparisons may be of one day
    n_knots = 1 + int(np.ceil(KNOTS_PER_TAU * (last - first) / tau))
    return np.linspace(first, last, min(max(n_knots, 2), MOST_KNOTS))
