"""Annotator agreement: agreement of each judge with ratings without that judge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from rankwise.arrays import Array, Indices, Labels
from rankwise.datasets import PairData
from rankwise.groups import encode_groups
from rankwise.leaderboard.algebra.leave_comparison_out import held_out_margins
from rankwise.leaderboard.board_types import Label
from rankwise.leaderboard.models.base import RatingModel

LEAST_WEIGHT = 1e-6  # of a judge whose votes are random; a weight must be positive
LEAST_VARIANCE = 1e-6  # of the slopes of the judges
HALF_SLOPE = 0.5  # a judge below it, and significantly below 1, "hardly follows the others"


class Judge(NamedTuple):
    """One judge compared with all others; None where there are too few comparisons.

    Attributes
    ----------
    name : str or int
        The label.
    n : int
        Number of comparisons.
    agreement, agreement_low, agreement_high : float or None
        Share of the judge's comparisons with a winner that the ratings of the other judges predict.
    side_bias, side_low, side_high : float or None
        Mean outcome for the first side minus the expected one.
    weight, weight_low, weight_high : float
        Slope of the judge's outcomes on the expected margins, relative to the average judge and
        shrunk towards 1 where there are few comparisons: 1 is the average judge, 0 is chance.
        `reweight` multiplies the weights of the comparisons by it.
    remark : str
        What differs significantly from the other judges, after a correction for the number of
        judges; empty for most judges.
    """

    name: Label
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
    """Krippendorff's α: agreement of judges about the same two items, corrected for chance.

    1 − D/D₀, with D the mean squared difference of two votes on the same two items and D₀ that of
    any two votes. Each vote counts in both directions, so the order of the two items does not
    matter. 1 is perfect agreement, 0 is chance. None if no two votes are on the same two items, or
    all votes are ties.
    """
    is_reversed = first > second
    value = np.where(is_reversed, -outcome, outcome)
    lower = np.where(is_reversed, second, first)
    upper = np.where(is_reversed, first, second)
    _, pair = np.unique(np.stack([lower, upper]), axis=1, return_inverse=True)
    n_votes = np.bincount(pair)
    sums = np.bincount(pair, value)
    squares = np.bincount(pair, value**2)
    is_repeated = n_votes > 1
    n = int(n_votes[is_repeated].sum())
    total = float(squares[is_repeated].sum())
    if not n or not total:
        return None
    within = 2 * (n_votes * squares - sums**2)[is_repeated] / (n_votes[is_repeated] - 1)
    return 1 - float(within.sum() / n) * (2 * n - 1) / (4 * total)


def evaluate_judges(data: PairData, model: RatingModel, confidence: float) -> tuple[Judge, ...]:
    """Compare the judges of the data with the model; empty without at least two judges.

    Models from which comparisons cannot be removed, such as dynamic ones, have no judges.
    """
    exact = model.leave_one_out()
    if data.judges is None or exact is None or len(np.unique(data.judges)) < 2:
        return ()
    judges = encode_groups(data.judges, data.n_pairs)
    margins = held_out_margins(exact, judges.codes)
    sign = np.where(data.first < data.second, 1.0, -1.0)
    outcome = data.outcome if model.outcome_curve is None else np.sign(data.outcome)
    expected = sign * model.expected(margins)
    return compare_judges(outcome, expected, judges.codes, judges.labels, confidence)


def compare_judges(
    outcome: Array,
    margin: Array,
    codes: Indices,
    labels: Labels,
    confidence: float,
) -> tuple[Judge, ...]:
    """Compare the outcomes for the first side with held-out expectations.

    Parameters
    ----------
    outcome, margin : ndarray of shape (n_comparisons,)
        For the first side; the margin is expected without the judge's own comparisons.
    codes : ndarray of shape (n_comparisons,)
        The judge of each comparison.
    labels : ndarray of shape (n_judges,)
        Names of the judges.
    confidence : float
        Confidence of the intervals, for each judge; remarks hold for all judges simultaneously.
    """
    tail = (1 - confidence) / 2
    n = np.bincount(codes)
    slopes = _slopes(outcome, margin, codes)
    weight, deviation = _shrink_to_one(slopes.value, slopes.error)
    weight_width = norm.isf(tail) * deviation
    bias = _side_bias(outcome - slopes.average * weight[codes] * margin, codes)
    bias_width = np.where(n < 2, np.nan, student.isf(tail, np.maximum(1, n - 1)) * bias.error)
    agreement = _agreement(outcome, margin, codes, tail)
    columns = {
        "agreement": agreement.share,
        "agreement_low": agreement.low,
        "agreement_high": agreement.high,
        "side_bias": bias.value,
        "side_low": bias.value - bias_width,
        "side_high": bias.value + bias_width,
        "weight": np.maximum(0.0, weight),
        "weight_low": np.maximum(0.0, weight - weight_width),
        "weight_high": np.maximum(0.0, weight + weight_width),
    }
    judges = []
    for k, name in enumerate(labels.tolist()):
        values: dict[str, Any] = {
            field: None if np.isnan(column[k]) else float(column[k])
            for field, column in columns.items()
        }
        remark = ""
        if n[k] >= 2:
            quantile = float(student.isf(tail / len(n), n[k] - 1))
            largest_slope = slopes.value[k] + quantile * slopes.error[k]
            remark = _remark(
                slopes.value[k], largest_slope, bias.value[k], quantile * bias.error[k]
            )
        judges.append(Judge(name=name, n=int(n[k]), remark=remark, **values))
    return tuple(judges)


class _Estimates(NamedTuple):
    """An estimate for each judge and its standard error, relative to the average judge."""

    value: Array
    error: Array
    average: float


def _slopes(outcome: Array, margin: Array, codes: Indices) -> _Estimates:
    """``b = Σ m δ / Σ m²`` of each judge, divided by that of all judges."""
    unit = max(float(np.abs(margin).max()), float(np.abs(outcome).max()))
    if unit > 0:  # slopes have no unit, and fourth powers of margins overflow
        margin = margin / unit
        outcome = outcome / unit
    average = float(margin @ outcome) / max(float(margin @ margin), 1e-300)
    if average <= 0:
        average = 1.0
    n = np.bincount(codes)
    margin_squares = np.bincount(codes, margin**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.bincount(codes, margin * outcome) / margin_squares
        influence = np.bincount(codes, (margin * (outcome - slope[codes] * margin)) ** 2)
        error = np.sqrt(influence * n / np.maximum(1, n - 1)) / margin_squares
        noise = np.mean((outcome - average * margin) ** 2)
        error = np.maximum(error, np.sqrt(noise / margin_squares))  # few may agree by chance
    has_no_margin = margin_squares == 0  # only comparisons of items with equal ratings
    error[has_no_margin | (n < 2)] = np.inf
    return _Estimates(np.nan_to_num(slope) / average, error / average, average)


def _side_bias(residual: Array, codes: Indices) -> _Estimates:
    """Mean residual of each judge; the errors are at least those of the mean noise."""
    n = np.bincount(codes)
    bias = np.bincount(codes, residual) / n
    noise = float(np.mean(residual**2))
    variance = np.bincount(codes, (residual - bias[codes]) ** 2) / np.maximum(1, n - 1)
    error = np.sqrt(np.maximum(variance, noise) / n)  # few may agree by chance
    return _Estimates(bias, error, float(np.mean(residual)))


def _shrink_to_one(slope: Array, error: Array) -> tuple[Array, Array]:
    """Posterior mean and deviation around 1; the variance of the judges by moments."""
    is_usable = np.isfinite(error) & (error > 0)
    precision = np.zeros(len(error))
    precision[is_usable] = 1 / error[is_usable] ** 2
    variance = 0.0
    if is_usable.any():
        excess = (slope[is_usable] - 1) ** 2 - error[is_usable] ** 2
        mean_excess = float(precision[is_usable] @ excess) / precision[is_usable].sum()
        variance = max(0.0, mean_excess)
    prior_precision = 1 / max(variance, LEAST_VARIANCE)
    total_precision = precision + prior_precision
    usable_slope = np.where(is_usable, slope, 0.0)
    mean = (usable_slope * precision + prior_precision) / total_precision
    return mean, 1 / np.sqrt(total_precision)


class _Agreement(NamedTuple):
    """Share of correct predictions of each judge, with its interval."""

    share: Array
    low: Array
    high: Array


def _agreement(outcome: Array, margin: Array, codes: Indices, tail: float) -> _Agreement:
    """Share with Wilson's interval; a margin of 0 is half correct, NaN without any winner."""
    n_judges = int(codes.max()) + 1
    has_winner = outcome != 0
    correct = (1 + np.sign(outcome * margin)) / 2
    n = np.bincount(codes, has_winner, n_judges)
    m = np.maximum(1, n)
    z = float(norm.isf(tail))
    share = np.bincount(codes, correct * has_winner, n_judges) / m
    scale = 1 / (1 + z**2 / m)
    center = (share + z**2 / (2 * m)) / (1 + z**2 / m)
    width = z * scale * np.sqrt(share * (1 - share) / m + z**2 / (4 * m**2))
    return _Agreement(
        share=np.where(n > 0, share, np.nan),
        low=np.where(n > 0, np.maximum(0, center - width), np.nan),
        high=np.where(n > 0, np.minimum(1, center + width), np.nan),
    )


def _remark(slope: float, largest_slope: float, bias: float, bias_width: float) -> str:
    """Return what is significant about a judge, with widths corrected for several judges."""
    remarks = []
    if largest_slope < 0:
        remarks.append("votes against the others")
    elif slope < HALF_SLOPE and largest_slope < 1:
        remarks.append("hardly follows the others")
    if abs(bias) > bias_width > 0:
        side = "first" if bias > 0 else "second"
        remarks.append(f"favors the {side} side")
    return ", ".join(remarks)
