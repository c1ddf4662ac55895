"""Terms of ratings that change with time and context."""

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
KNOTS_PER_DECAY_TIME = 4
MOST_KNOTS = 80
JITTER = 1e-10  # added to the diagonal of the correlations of the knots


class PriorScales(NamedTuple):
    """Standard deviations of the terms of a rating, in logits.

    Attributes
    ----------
    constant : float
        Of the constant term of an item.
    time : float
        Of the term that changes with time; 0 without time.
    half_life : float
        Time after which half of a change is left, in days if times are dates.
    context : float
        Of the term for each level of a context; 0 without contexts.
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


class RatingTerms:
    """The terms of a rating and their weights φ(c) in the circumstances c.

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
        Standard deviations of the terms.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Times, in days, of the values of the path; empty without time.
    context_codes : ndarray of shape (n_contexts, n_comparisons)
        Level of each comparison in each context.
    first_term_of_context : ndarray of shape (n_contexts + 1,)
        Position of the offset of the first level of each context among the terms.
    n_terms : int
        Number of terms of a rating: the constant, the knots, the offsets.
    """

    def __init__(self, data: PairData, levels: Levels, scales: PriorScales) -> None:
        self.times = data.times
        self.levels = levels
        self.scales = scales
        self.context_codes = self.encode_contexts(data)
        self.decay_time = scales.half_life / np.log(2)  # after which 1/e of a change is left
        self.knots = np.empty(0)
        if data.times is not None:
            self.knots = _place_knots(in_days(data.times), self.decay_time)

        # Order of the terms: the constant, one for each knot, one for each level of each context.
        n_levels = [len(labels) for labels in levels.values()]
        self.first_term_of_context = 1 + len(self.knots) + np.cumsum([0, *n_levels])
        self.n_terms = int(self.first_term_of_context[-1])

    def encode_contexts(self, data: PairData) -> Indices:
        """Level of each comparison in each context, shape (n_contexts, n); −1 if it is unknown."""
        codes = np.zeros((len(self.levels), data.n_pairs), np.intp)
        for context, (name, levels) in enumerate(self.levels.items()):
            labels = data.contexts[name]
            # Position of each label among the sorted levels; −1 for other labels.
            position = np.searchsorted(levels, labels)
            position = np.minimum(position, len(levels) - 1)
            is_level = levels[position] == labels
            codes[context] = np.where(is_level, position, -1)
        return codes

    def covariance_root(self) -> Array:
        """F with F Fᵀ the covariance of the terms of one item."""
        # Terms: the constant, the path in time at its knots, the offsets of the levels of contexts.
        n_knots = len(self.knots)
        path_terms = slice(1, 1 + n_knots)
        offset_terms = slice(1 + n_knots, self.n_terms)
        root = np.zeros((self.n_terms, self.n_terms))
        root[0, 0] = self.scales.constant  # standard deviation
        if n_knots:
            distances = np.abs(self.knots[:, None] - self.knots) / self.decay_time
            correlations = np.exp(-distances) + JITTER * np.eye(n_knots)
            root[path_terms, path_terms] = self.scales.time * np.linalg.cholesky(correlations)
        n_offsets = self.n_terms - 1 - n_knots
        root[offset_terms, offset_terms] = self.scales.context * np.eye(n_offsets)
        return root

    def term_weights(self, times: AnyArray | None, context_codes: Indices) -> sp.csr_matrix:
        """φ of shape (n, n_terms) for times and levels; a level of −1 has the weight 0.

        Between two knots the path has its conditional mean; before the first and after the last
        knot it decays.
        """
        # Columns and values of the nonzero weights, for one kind of terms after the other.
        n_rows = context_codes.shape[1] if times is None else len(times)
        columns = [np.zeros(n_rows, np.intp)]  # the constant, with the weight 1
        values = [np.ones(n_rows)]
        if len(self.knots):  # two neighboring knots, whose terms start at column 1
            days = in_days(np.asarray(times))
            left_knot, left_weight, right_weight = self._neighboring_knots(days)
            columns += [1 + left_knot, 2 + left_knot]
            values += [left_weight, right_weight]
        # Levels of the contexts; without any codes only the constant and the knots have weights.
        for first_term, codes in zip(self.first_term_of_context[:-1], context_codes, strict=False):
            is_known = codes >= 0  # −1 is an unknown level
            columns.append(first_term + np.where(is_known, codes, 0))
            values.append(is_known.astype(np.float64))

        # Every row has the same number of entries.
        row_width = len(columns)
        row_starts = np.arange(0, row_width * n_rows + 1, row_width)
        all_columns = np.stack(columns, axis=1).ravel()
        all_values = np.stack(values, axis=1).ravel()
        return sp.csr_matrix((all_values, all_columns, row_starts), shape=(n_rows, self.n_terms))

    def _neighboring_knots(self, days: Array) -> tuple[Indices, Array, Array]:
        """Return the knot to the left of each time and the weights of it and the next one."""
        knots = self.knots
        # The knot at or before each time, so that another knot follows it.
        left_knot = np.searchsorted(knots, days, side="right") - 1
        left_knot = np.clip(left_knot, 0, len(knots) - 2)

        # Distances in time as multiples of the decay time.
        knot_distance = (knots[1] - knots[0]) / self.decay_time
        from_left = np.clip((days - knots[left_knot]) / self.decay_time, 0.0, knot_distance)
        # Outside of the knots a rating decays towards its mean.
        decay_after_last = np.exp(-np.maximum(days - knots[-1], 0.0) / self.decay_time)
        decay_before_first = np.exp(-np.maximum(knots[0] - days, 0.0) / self.decay_time)
        decay = decay_after_last * decay_before_first

        def weight_of_knot(distance: Array) -> Array:
            """``sinh(d − distance)/sinh(d)`` with d the distance of two knots, by expm1."""
            numerator = np.expm1(-2 * (knot_distance - distance))
            return np.asarray(np.exp(-distance) * (numerator / np.expm1(-2 * knot_distance)))

        # Conditional mean of the path between two neighboring knots, decaying outside of all knots.
        left_weight = decay * weight_of_knot(from_left)
        right_weight = decay * weight_of_knot(knot_distance - from_left)
        return left_knot, left_weight, right_weight

    def margins(
        self,
        term_values: Array,
        side_weights: sp.csr_array,
        times: AnyArray | None,
        context_codes: Indices,
    ) -> Array:
        """Margins of comparisons, from the terms of all items, (n_items, n_terms).

        `side_weights` has 1 for the items on the first side and −1 for those on the second.
        """
        # Weighted sum of the differences of the terms, for each comparison.
        differences = side_weights @ term_values
        weights = self.term_weights(times, context_codes)
        return np.asarray(weights.multiply(differences).sum(axis=1)).ravel()

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

    def term_weights_at(self, time: Moment | None = None, context: Context = None) -> Array:
        """φ of one time and one context; by default the last time and the mix of levels."""
        # Weights of the constant and of the knots.
        times = self._check_time(time)
        no_levels = np.full((0, 1), -1)
        weights = self.term_weights(times, no_levels).toarray()[0]

        # Weights of the levels: 1 for the selected level of a context; without one, the shares of
        # the levels among the comparisons.
        level_of_context = self.codes_of_levels(context)
        for context_number, labels in enumerate(self.levels.values()):
            n_levels = len(labels)
            level = level_of_context[context_number]
            if level < 0:  # none is selected
                codes = self.context_codes[context_number]
                level_weights = np.bincount(codes, minlength=n_levels) / len(codes)
            else:
                level_weights = np.zeros(n_levels)
                level_weights[level] = 1.0
            first_term = self.first_term_of_context[context_number]
            weights[first_term : first_term + n_levels] = level_weights
        return np.asarray(weights)

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
            raise ValueError(
                f"time={time!r} does not have the format of the board's times, such as "
                f"{self.times[0]}."
            )
        return times

    def codes_of_levels(self, context: object) -> list[int]:
        """Number of the level of each context; −1 for contexts without a level."""
        if isinstance(context, Mapping):
            label_by_context = dict(context)
        elif context is None:
            label_by_context = {}
        elif len(self.levels) == 1:
            label_by_context = dict.fromkeys(self.levels, context)
        else:
            names = ", ".join(self.levels) or "none"
            raise ValueError(
                f"context={context!r}; expected a dict with a level for each context: {names}."
            )
        level_numbers = []
        for name, levels in self.levels.items():
            label = label_by_context.get(name)
            labels = levels.tolist()
            if label is None:
                level_numbers.append(-1)  # no level is selected
            elif label in labels:
                level_numbers.append(labels.index(label))
            else:
                raise ValueError(
                    f"{name} is {label!r}; the levels of the board are "
                    f"{join_words(map(repr, labels))}."
                )
        return level_numbers


def _place_knots(days: Array, decay_time: float) -> Array:
    """Return evenly spaced knots, a few for each τ."""
    first = days.min()
    last = max(days.max(), first + 0.1 * decay_time)  # all comparisons may be of one day
    n_intervals = int(np.ceil(KNOTS_PER_DECAY_TIME * (last - first) / decay_time))
    n_knots = min(max(1 + n_intervals, 2), MOST_KNOTS)
    return np.linspace(first, last, n_knots)
