"""How far each judge agrees with ratings that were made without that judge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from rankwise.arrays import Array, Indices
from rankwise.datasets import PairData
from rankwise.groups import encode_groups
from rankwise.leaderboard.algebra.leave_comparison_out import held_out_margins

LEAST_WEIGHT = 1e-6  # of a judge whose votes say nothing; a weight must be positive


class Judge(NamedTuple):
    """One judge beside all others; None where there are too few comparisons to say.

    Attributes
    ----------
    name : str or int
        The label.
    n : int
        Comparisons.
    agreement, agreement_low, agreement_high : float or None
        Share of the comparisons with a winner that the ratings without this judge foresee.
    side_bias, side_low, side_high : float or None
        By how much more the outcomes favor the first side than expected of this judge.
    weight, weight_low, weight_high : float
        How much of an expected margin is in the votes, relative to the average judge and drawn
        towards 1 where there are few comparisons: 1 is like everybody, 0 is chance. It is what
        `reweight` multiplies the comparisons with.
    remark : str
        What stands out among so many judges; empty for most.
    """

    name: Any
    n: int
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    side_bias: float
    side_low: float | None
    side_high: float | None
    weight: float
    weight_low: float
    weight_high: float
    remark: str


def krippendorff(first: Indices, second: Indices, outcome: Array) -> float | None:
    """Krippendorff's α: how far judges agree about the same two items, beyond chance.

    1 − D/D₀, with D the mean square of the difference of two votes on the same two items and D₀
    that of any two votes. Each vote counts in both directions, so that it does not matter which
    item is named first. 1 is that all agree, 0 what chance gives. None if no two votes are on the
    same two items, or all are ties.
    """
    turned = first > second
    value = np.where(turned, -outcome, outcome)
    ends = np.stack([np.where(turned, second, first), np.where(turned, first, second)])
    _, unit = np.unique(ends, axis=1, return_inverse=True)
    m = np.bincount(unit)
    sums, squares = np.bincount(unit, value), np.bincount(unit, value**2)
    several = m > 1
    n, total = int(m[several].sum()), float(squares[several].sum())
    if not n or not total:
        return None
    within = 2 * (m * squares - sums**2)[several] / (m[several] - 1)
    return 1 - float(within.sum() / n) * (2 * n - 1) / (4 * total)


def judges_of(data: PairData, model: Any, confidence: float) -> tuple[Judge, ...]:
    """The judges of comparisons, if there are at least two; boards in context have none."""
    if data.judges is None or len(np.unique(data.judges)) < 2 or model.is_in_context:
        return ()
    judged = encode_groups(data.judges, data.n_pairs)
    margins = held_out_margins(model.left_out(), judged.codes)
    sign = np.where(data.first < data.second, 1.0, -1.0)
    outcome = np.sign(data.outcome) if model.logits is not None else data.outcome
    expected = sign * model.expected(margins)
    return compare_judges(outcome, expected, judged.codes, judged.labels, confidence)


def compare_judges(
    outcome: Array,
    margin: Array,
    codes: Indices,
    labels: NDArray[Any],
    confidence: float,
) -> tuple[Judge, ...]:
    """Compare the outcomes for the first side with the margins held out for it.

    Parameters
    ----------
    outcome, margin : ndarray of shape (n_comparisons,)
        For the first side; the margin is expected without the judge's own comparisons.
    codes : ndarray of shape (n_comparisons,)
        The judge of each comparison.
    labels : ndarray of shape (n_judges,)
        Names of the judges.
    confidence : float
        Of the intervals, one judge at a time; remarks hold for all judges at once.
    """
    n, tail = np.bincount(codes), (1 - confidence) / 2
    slope, slope_error, average = _slopes(outcome, margin, codes)
    weight, deviation = _drawn_together(slope, slope_error)
    width = norm.isf(tail) * deviation
    left = outcome - average * weight[codes] * margin
    bias = np.bincount(codes, left) / n
    noise = float(np.mean(left**2))
    squares = np.bincount(codes, (left - bias[codes]) ** 2) / np.maximum(1, n - 1)
    error = np.sqrt(np.maximum(squares, noise) / n)  # few may agree by chance
    reach = np.where(n < 2, np.nan, student.isf(tail, np.maximum(1, n - 1)) * error)
    columns = [
        *_agreement(outcome, margin, codes, tail), bias, bias - reach, bias + reach,
        *np.maximum(0.0, [weight, weight - width, weight + width]),
    ]  # fmt: skip
    judges = []
    for k, name in enumerate(labels.tolist()):
        values = [None if np.isnan(column[k]) else float(column[k]) for column in columns]
        sure = float(student.isf(tail / len(n), max(1, n[k] - 1)))
        slopes = slope[k], slope[k] + sure * slope_error[k]
        remark = "" if n[k] < 2 else _remark(*slopes, bias[k], sure * error[k])
        judges.append(Judge._make([name, int(n[k]), *values, remark]))
    return tuple(judges)


def _slopes(outcome: Array, margin: Array, codes: Indices) -> tuple[Array, Array, float]:
    """``b = Σ m δ / Σ m²`` of each judge over the average one, its standard error, the average."""
    unit = max(float(np.abs(margin).max()), float(np.abs(outcome).max()))
    if unit > 0:  # the slopes have no unit, and fourth powers of margins overflow
        margin, outcome = margin / unit, outcome / unit
    average = float(margin @ outcome) / max(float(margin @ margin), 1e-300)
    average = average if average > 0 else 1.0
    strength, n = np.bincount(codes, margin**2), np.bincount(codes)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.bincount(codes, margin * outcome) / strength
        squares = np.bincount(codes, (margin * (outcome - slope[codes] * margin)) ** 2)
        error = np.sqrt(squares * n / np.maximum(1, n - 1)) / strength
        noise = np.mean((outcome - average * margin) ** 2)
        error = np.maximum(error, np.sqrt(noise / strength))  # few may agree by chance
    error[n < 2] = np.inf
    return np.nan_to_num(slope) / average, error / average, average


def _drawn_together(slope: Array, error: Array) -> tuple[Array, Array]:
    """Posterior mean and deviation around 1; the spread of judges by moments."""
    known = np.isfinite(error) & (error > 0)
    precision = np.where(known, 1 / np.where(known, error, 1.0) ** 2, 0.0)
    spread = 0.0
    if known.any():
        excess = (slope[known] - 1) ** 2 - error[known] ** 2
        spread = max(0.0, float(precision[known] @ excess) / precision[known].sum())
    prior = 1 / max(spread, 1e-6)
    mean = (np.where(known, slope, 0.0) * precision + prior) / (precision + prior)
    return mean, 1 / np.sqrt(precision + prior)


def _agreement(outcome: Array, margin: Array, codes: Indices, tail: float) -> Array:
    """Share with the interval of Wilson; a margin of 0 is half right, NaN is no winner at all."""
    right, size = (1 + np.sign(outcome * margin)) / 2, int(codes.max()) + 1
    n = np.bincount(codes, outcome != 0, size)
    z, m = float(norm.isf(tail)), np.maximum(1, n)
    p = np.bincount(codes, right * (outcome != 0), size) / m
    center, scale = (p + z**2 / (2 * m)) / (1 + z**2 / m), 1 / (1 + z**2 / m)
    width = z * scale * np.sqrt(p * (1 - p) / m + z**2 / (4 * m**2))
    interval = [p, np.maximum(0, center - width), np.minimum(1, center + width)]
    return np.where(n > 0, interval, np.nan)


def _remark(slope: float, most: float, bias: float, reach: float) -> str:
    """What is sure of a judge, although one among many was looked at."""
    said = []
    if most < 0:
        said.append("votes against the others")
    elif slope < 0.5 and most < 1:
        said.append("hardly follows the others")
    if abs(bias) > reach > 0:
        said.append(f"favors the {'first' if bias > 0 else 'second'} side")
    return ", ".join(said)
