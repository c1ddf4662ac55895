"""The estimate of AutoRanker from units that were used neither for selection nor for weights."""

from __future__ import annotations

from typing import NamedTuple

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.metrics.by_group import mean_interval, new_mean_interval


class UnitEstimate(NamedTuple):
    """The estimate, and remarks on it."""

    estimate: dict[str, float]
    notes: list[str]


def estimate_from_units(
    metric_by_unit: Array, scoring: str, where: str, n_groups: int
) -> UnitEstimate:
    """Mean of the metric with its interval, and an interval for as many further groups.

    Parameters
    ----------
    metric_by_unit : ndarray of shape (n_units,)
        The metric in each unit.
    scoring : str
        Name of the metric.
    where : str
        Description of the units, for the remark.
    n_groups : int
        Number of groups in training; one list has no interval for further groups.
    """
    estimate = mean_interval(metric_by_unit)
    interval = f"{DEFAULT_CONFIDENCE:.0%} from {estimate['low']:.4f} to {estimate['high']:.4f}"
    notes = [f"{scoring} {estimate['score']:.4f} ({interval}) on {where}"]
    if n_groups > 1:
        low_new, high_new = new_mean_interval(metric_by_unit, n_groups)
        estimate |= {"n_new": n_groups, "low_new": low_new, "high_new": high_new}
        notes.append(
            f"the mean {scoring} of {n_groups:,} further groups lies between {low_new:.4f} "
            f"and {high_new:.4f} with a probability of {DEFAULT_CONFIDENCE:.0%}"
        )
    return UnitEstimate(estimate, notes)


def note_of_optimism(optimism: float, score: float, scoring: str, units: str) -> str:
    """Remark on the score of the units that were used for selection and weights."""
    return (
        f"on the {units} used for selection and weights {scoring} is {score:.4f}, "
        f"optimistic by {optimism:+.4f}"
    )
