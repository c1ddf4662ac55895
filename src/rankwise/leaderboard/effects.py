"""Effects of covariates, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.leaderboard.covariates import Covariates
from rankwise.uncertainty.jackknife import Spread


class Effect(NamedTuple):
    """What one more of a covariate adds to the margin of the first item.

    Attributes
    ----------
    name : str
        Of the covariate; "first side" is the advantage of the first side.
    value : float
        In the unit of the ratings.
    error : float or None
        Standard error; that of left-out clusters if there are clusters.
    low, high : float or None
        Interval.
    """

    name: str
    value: float
    error: float | None
    low: float | None
    high: float | None


def effects_of(
    control: Covariates,
    effects: Array,
    spread: Spread | None,
    samples: Array,
    confidence: float,
) -> tuple[Effect, ...]:
    """One for each column of the covariates, in its own unit."""
    values = effects / control.scale
    tail = (1 - confidence) / 2
    if spread is not None:
        errors = np.linalg.norm(spread.effects, axis=1) / control.scale
        low, high = values + spread.quantile(1 - tail) * np.stack([-errors, errors])
    elif len(samples):
        errors = samples.std(axis=0) / control.scale
        low, high = np.quantile(samples, [tail, 1 - tail], axis=0) / control.scale
    else:
        return tuple(
            Effect(n, float(v), None, None, None)
            for n, v in zip(control.names, values, strict=True)
        )
    table = np.stack([values, errors, low, high]).T.tolist()
    return tuple(Effect(name, *row) for name, row in zip(control.names, table, strict=True))
