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
HALF_SLOPE = 0.5
"""A judge below it, and significantly below 1, "agrees little with the other judges"."""


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
        Mean outcome for the first side minus the expected one. None if the first side never lost,
        as in a table of winners and losers, where it has no meaning.
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
    side_bias: float | None
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
    # Every vote from the point of view of the item with the smaller number.
    is_reversed = first > second
    vote = np.where(is_reversed, -outcome, outcome)
    items_of_vote = np.stack([np.minimum(first, second), np.maximum(first, second)])
    _, pair = np.unique(items_of_vote, axis=1, return_inverse=True)

    # Only pairs of items with several votes count.
    n_by_pair = np.bincount(pair)
    is_repeated = n_by_pair > 1
    n_by_pair = n_by_pair[is_repeated]
    sums = np.bincount(pair, vote)[is_repeated]
    squares = np.bincount(pair, vote**2)[is_repeated]
    n_votes = int(n_by_pair.sum())
    total_squares = float(squares.sum())
    if n_votes == 0 or total_squares == 0:
        return None

    # α = 1 − observed / expected disagreement, which are mean squared differences of two votes. The
    # mean over all pairs of n votes is 2 (n Σ v² − (Σ v)²) / (n (n − 1)). Observed: within pairs of
    # items, weighted by their n. Expected: of all votes together with their opposites, whose sum
    # is 0, so that it is 4 Σ v² / (2 n_votes − 1).
    disagreement_within_pairs = 2 * (n_by_pair * squares - sums**2) / (n_by_pair - 1)
    observed_disagreement = float(disagreement_within_pairs.sum() / n_votes)
    return 1 - observed_disagreement * (2 * n_votes - 1) / (4 * total_squares)


def evaluate_judges(data: PairData, model: RatingModel, confidence: float) -> tuple[Judge, ...]:
    """Compare the judges of the data with the model; empty without at least two judges.

    Models from which comparisons cannot be removed, such as dynamic ones, have no judges.
    """
    leave_one_out = model.leave_one_out()
    if data.judges is None or leave_one_out is None or len(np.unique(data.judges)) < 2:
        return ()

    judges = encode_groups(data.judges, data.n_pairs)
    margins = held_out_margins(leave_one_out, judges.codes)  # of the item with the smaller number
    sign = np.where(data.first < data.second, 1.0, -1.0)  # from the view of the first side
    expected = sign * model.expected(margins)
    outcome = data.outcome
    if model.outcome_curve is not None:  # it expects wins and losses, not margins
        outcome = np.sign(outcome)
    return compare_judges(
        outcome, expected, judges.codes, judges.labels, confidence, has_sides=data.has_sides
    )


def compare_judges(
    outcome: Array,
    expected: Array,
    judge_codes: Indices,
    labels: Labels,
    confidence: float,
    *,
    has_sides: bool = True,
) -> tuple[Judge, ...]:
    """Compare the outcomes for the first side with held-out expectations.

    Parameters
    ----------
    outcome, expected : ndarray of shape (n_comparisons,)
        For the first side; the expected outcome is predicted without the judge's own comparisons.
    judge_codes : ndarray of shape (n_comparisons,)
        The judge of each comparison.
    labels : ndarray of shape (n_judges,)
        Names of the judges.
    confidence : float
        Confidence of the intervals, for each judge; remarks hold for all judges simultaneously.
    has_sides : bool, default=True
        Whether the first side means anything; otherwise no side bias is estimated.
    """
    # The weight of a judge is the slope of the outcomes on the expected ones, shrunk towards 1.
    tail = (1 - confidence) / 2
    n_votes = np.bincount(judge_codes)
    slopes = _slope_by_judge(outcome, expected, judge_codes)
    weight, weight_error = _shrink_to_one(slopes.value, slopes.error)
    weight_width = norm.isf(tail) * weight_error

    # The side bias is the mean residual after the weighted expected outcomes.
    predicted = slopes.average * weight[judge_codes] * expected
    bias = _side_bias_by_judge(outcome - predicted, judge_codes)
    if not has_sides:
        bias = bias._replace(value=np.full(len(n_votes), np.nan))
    bias_quantile = student.isf(tail, np.maximum(1, n_votes - 1))
    bias_width = np.where(n_votes < 2, np.nan, bias_quantile * bias.error)
    agreement = _agreement_by_judge(outcome, expected, judge_codes, tail)
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
    judges = []  # NaN becomes None
    for k, name in enumerate(labels.tolist()):
        values: dict[str, Any] = {
            field: None if np.isnan(column[k]) else float(column[k])
            for field, column in columns.items()
        }
        remark = ""
        if n_votes[k] >= 2:
            # Bonferroni: remarks hold for all judges simultaneously.
            quantile = float(student.isf(tail / len(n_votes), n_votes[k] - 1))
            remark = _remark(
                slope=slopes.value[k],
                largest_slope=slopes.value[k] + quantile * slopes.error[k],
                bias=bias.value[k],
                bias_width=quantile * bias.error[k],
            )
        judges.append(Judge(name=name, n=int(n_votes[k]), remark=remark, **values))
    return tuple(judges)


class _Estimates(NamedTuple):
    """An estimate for each judge and its standard error, relative to the average judge."""

    value: Array
    error: Array
    average: float


def _slope_by_judge(outcome: Array, expected: Array, judge_codes: Indices) -> _Estimates:
    """``b = Σ m δ / Σ m²`` of each judge, divided by that of all judges."""
    # Slopes have no unit; without the division, fourth powers of large margins would overflow.
    largest = max(float(np.abs(expected).max()), float(np.abs(outcome).max()))
    if largest > 0:
        expected = expected / largest
        outcome = outcome / largest

    # Regression through the origin, of all votes and of those of each judge.
    average_slope = float(expected @ outcome) / max(float(expected @ expected), 1e-300)
    if average_slope <= 0:  # on average no judge follows the ratings: slopes stay as they are
        average_slope = 1.0

    n_votes = np.bincount(judge_codes)
    expected_squares = np.bincount(judge_codes, expected**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.bincount(judge_codes, expected * outcome) / expected_squares
        residual = outcome - slope[judge_codes] * expected
        squared_influence = np.bincount(judge_codes, (expected * residual) ** 2)
        # Standard error that is robust to unequal variances, for small samples.
        corrected_influence = squared_influence * n_votes / np.maximum(1, n_votes - 1)
        error = np.sqrt(corrected_influence) / expected_squares

        # Few votes may agree by chance: an error is at least that by the noise of all votes.
        noise = np.mean((outcome - average_slope * expected) ** 2)
        error = np.maximum(error, np.sqrt(noise / expected_squares))
    has_only_equal_items = expected_squares == 0  # a judge without any expected winner
    error[has_only_equal_items | (n_votes < 2)] = np.inf
    return _Estimates(
        value=np.nan_to_num(slope) / average_slope,  # 0 without any expected winner
        error=error / average_slope,
        average=average_slope,
    )


def _side_bias_by_judge(residual: Array, judge_codes: Indices) -> _Estimates:
    """Mean residual of each judge; the errors are at least those of the mean noise."""
    n_votes = np.bincount(judge_codes)
    bias = np.bincount(judge_codes, residual) / n_votes
    deviation_squares = np.bincount(judge_codes, (residual - bias[judge_codes]) ** 2)
    variance = deviation_squares / np.maximum(1, n_votes - 1)
    # Few votes may agree by chance, so the variance is at least that of all votes.
    noise = float(np.mean(residual**2))
    error = np.sqrt(np.maximum(variance, noise) / n_votes)
    return _Estimates(value=bias, error=error, average=float(np.mean(residual)))


def _shrink_to_one(slope: Array, error: Array) -> tuple[Array, Array]:
    """Posterior mean and deviation around 1; the variance of the judges by moments."""
    is_usable = np.isfinite(error) & (error > 0)
    precision = np.zeros(len(error))
    precision[is_usable] = 1 / error[is_usable] ** 2

    # Variance of the true slopes around 1: weighted excess of the squares over the errors.
    variance_of_slopes = 0.0
    if is_usable.any():
        excess = (slope[is_usable] - 1) ** 2 - error[is_usable] ** 2
        mean_excess = float(precision[is_usable] @ excess) / precision[is_usable].sum()
        variance_of_slopes = max(0.0, mean_excess)

    # Posterior mean and error, for a normal prior with the mean 1.
    prior_precision = 1 / max(variance_of_slopes, LEAST_VARIANCE)
    total_precision = precision + prior_precision
    usable_slope = np.where(is_usable, slope, 0.0)
    mean = (usable_slope * precision + prior_precision) / total_precision
    return mean, 1 / np.sqrt(total_precision)


class _Agreement(NamedTuple):
    """Share of correct predictions of each judge, with its interval."""

    share: Array
    low: Array
    high: Array


def _agreement_by_judge(
    outcome: Array, expected: Array, judge_codes: Indices, tail: float
) -> _Agreement:
    """Share with Wilson's interval; half correct if 0 is expected, NaN without any winner."""
    n_judges = int(judge_codes.max()) + 1
    has_winner = outcome != 0
    agrees = (1 + np.sign(outcome * expected)) / 2  # ½ if equal items were expected
    n_votes = np.bincount(judge_codes, has_winner, n_judges)  # without ties
    n = np.maximum(1, n_votes)
    share = np.bincount(judge_codes, agrees * has_winner, n_judges) / n

    # Wilson's interval of a proportion.
    z = float(norm.isf(tail))
    scale = 1 / (1 + z**2 / n)
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z * scale * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    has_votes = n_votes > 0
    return _Agreement(
        share=np.where(has_votes, share, np.nan),
        low=np.where(has_votes, np.maximum(0, center - half_width), np.nan),
        high=np.where(has_votes, np.minimum(1, center + half_width), np.nan),
    )


def _remark(slope: float, largest_slope: float, bias: float, bias_width: float) -> str:
    """Return significant deviations of a judge, with widths corrected for several judges."""
    remarks = []
    if largest_slope < 0:
        remarks.append("votes against the others")
    elif slope < HALF_SLOPE and largest_slope < 1:
        remarks.append("agrees little with the other judges")
    if abs(bias) > bias_width > 0:
        side = "first" if bias > 0 else "second"
        remarks.append(f"favors the {side} side")
    return ", ".join(remarks)
