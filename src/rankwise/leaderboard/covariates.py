"""Covariates of comparisons and their effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Array
from rankwise.datasets import PairData
from rankwise.datasets.column_roles import Column
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.leaderboard.board_types import CovariateArgument
from rankwise.uncertainty.possible_ranks import CovarianceRoot
from rankwise.validation import check_float_array

SIDE = "first side"
MOST_LEVELS = 50
LEAST_UNEXPLAINED = 1e-9  # share of a covariate that items and other covariates must not explain
NULL_SPACE_ENTRY = 0.1  # covariates with a larger entry are named in the message


@dataclass(frozen=True)
class Covariates:
    """Columns z of the comparisons, each with a mean square of 1.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; each level of a category has its own.
    columns : ndarray of shape (n_comparisons, n_columns)
        From the point of view of the first item.
    scale : ndarray of shape (n_columns,)
        Root mean square by which each column was divided.
    """

    names: tuple[str, ...]
    columns: Array
    scale: Array


def with_covariates(data: PairData, covariates: CovariateArgument) -> PairData:
    """Return the comparisons with these covariates: names of columns of the data, or values."""
    if covariates is None:
        return replace(data, covariates={})
    if isinstance(covariates, str):
        covariates = [covariates]
    if not isinstance(covariates, Mapping):  # names of columns of the data
        return _select_covariates(data, covariates)
    columns = {str(name): np.asarray(column) for name, column in covariates.items()}
    for name, column in columns.items():
        if column.shape != (data.n_pairs,):
            raise ValueError(
                f"the covariate {name!r} has shape {column.shape}, but there are {data.n_pairs} "
                "comparisons; pass one value for each."
            )
    return replace(data, covariates=columns)


def _select_covariates(data: PairData, names: Sequence[Column | tuple[Column, Column]]) -> PairData:
    present = [name for name in names if isinstance(name, str) and name in data.covariates]
    missing = [name for name in names if name not in present]
    if missing:
        available = ", ".join(map(repr, data.covariates)) or "none"
        raise ValueError(
            f"covariates: the comparisons have no {', '.join(map(repr, missing))}; they have "
            f"{available}. Read them with covariates=[...], or pass a dictionary with one value "
            "for each comparison."
        )
    return replace(data, covariates={name: data.covariates[name] for name in present})


def covariate_columns(data: PairData, side: bool) -> Covariates:
    """Return the columns of the covariates, and one for the advantage of the first side."""
    columns: dict[str, Array] = {}
    has_side_effect = bool(side)
    if side:
        _check_second_side_can_win(data, "side=True estimates")
        columns[SIDE] = np.ones(data.n_pairs)
    for name, values in data.covariates.items():
        if values.dtype.kind in "biuf":
            columns[name] = _numeric_column(name, values)
            continue
        _check_second_side_can_win(data, f"the categories of {name!r} estimate")
        columns |= _indicator_columns(name, values, drop_most_frequent=has_side_effect)
        has_side_effect = True  # the indicators of all levels add up to the side
    # Columns are divided by their root mean squares.
    no_columns = np.empty((data.n_pairs, 0))  # so that the table has rows without any covariate
    table = np.column_stack([*columns.values(), no_columns])
    root_mean_squares = np.sqrt(data.weight @ table**2 / data.weight.sum())
    return Covariates(
        names=tuple(columns), columns=table / root_mean_squares, scale=root_mean_squares
    )


def _numeric_column(name: str, values: AnyArray) -> Array:
    """Return a finite column that varies."""
    column = check_float_array(f"the covariate {name!r}", values)
    is_finite = np.isfinite(column)
    if not is_finite.all():
        row = int(np.argmin(is_finite))
        raise ValueError(
            f"the covariate {name!r} is {column[row]} in comparison {row}; impute missing values, "
            "for example with the mean, or drop the rows."
        )
    if np.ptp(column) == 0:
        raise ValueError(
            f"the covariate {name!r} is {column[0]:g} in every comparison; leave it out, or pass "
            "side=True for the advantage of the first side."
        )
    return column


def _indicator_columns(
    name: str, values: AnyArray, *, drop_most_frequent: bool
) -> dict[str, Array]:
    """Return a column for each level of a category."""
    levels, codes = np.unique(values.astype(np.str_), return_inverse=True)
    if len(levels) < 2:
        raise ValueError(
            f"the covariate {name!r} is {levels.tolist()[0]!r} in every comparison, so its effect "
            "cannot be estimated; leave it out."
        )
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"the covariate {name!r} has {len(levels)} categories, and at most {MOST_LEVELS} are "
            "allowed; merge rare ones, or pass numbers."
        )
    columns = {}
    for code, level in enumerate(levels):
        columns[f"{name}={level}"] = (codes == code).astype(float)
    if drop_most_frequent:
        most_frequent = levels[np.bincount(codes).argmax()]
        del columns[f"{name}={most_frequent}"]
    return columns


def _check_second_side_can_win(data: PairData, argument: str) -> None:
    """Refuse data whose first item is always the winner."""
    if not (data.outcome < 0).any():  # the first item never loses
        raise ValueError(
            f"{argument} the advantage of the first side, but the first item won or tied every "
            "comparison: winner and loser do not say which item was on which side. Pass sides= and "
            "outcome=, or a covariate such as home of the winner minus home of the loser."
        )


class Effect(NamedTuple):
    """Change of the margin of the first item for an increase of a covariate by one.

    Attributes
    ----------
    name : str
        Name of the covariate; "first side" is the advantage of the first side.
    value : float
        In the unit of the ratings.
    error : float or None
        Standard error, from left-out clusters if there are clusters.
    low, high : float or None
        Interval.
    """

    name: str
    value: float
    error: float | None
    low: float | None
    high: float | None


def effect_table(
    covariates: Covariates, effects: Array, spread: CovarianceRoot | None, confidence: float
) -> tuple[Effect, ...]:
    """Return the effect of each column of the covariates, in its original unit."""
    # Back to the unit of the original columns.
    values = (effects / covariates.scale).tolist()
    if spread is None:
        return tuple(
            Effect(name, value, error=None, low=None, high=None)
            for name, value in zip(covariates.names, values, strict=True)
        )
    # Standard errors are the lengths of the rows of a root of the covariance.
    errors = (np.linalg.norm(spread.effects_root, axis=1) / covariates.scale).tolist()
    quantile = spread.quantile((1 + confidence) / 2)
    table = []
    for name, value, error in zip(covariates.names, values, errors, strict=True):
        half_width = quantile * error
        table.append(Effect(name, value, error, low=value - half_width, high=value + half_width))
    return tuple(table)


def side_advantage(effects: tuple[Effect, ...]) -> float:
    """Return the advantage of the first side; 0 if it was not estimated."""
    for effect in effects:
        if effect.name == SIDE:
            return effect.value
    return 0.0


def check_identified(
    counts: ComparisonCounts, X: Array | None, prior_ratings: Array | None, names: tuple[str, ...]
) -> None:
    """Refuse covariates that the items, their features or the other covariates determine.

    The part of the columns Z that ratings cannot explain is the Schur complement
    ``Zᵀ W Z − Cᵀ L⁺ C`` with C = Dᵀ W Z and D the rows of the items. Z is determined if it is
    singular.
    """
    covariates = counts.covariates
    weights = counts.pair_weights
    without_covariates = replace(counts, covariates=covariates[:, :0])
    item_system = RatingSystem(without_covariates, X, prior_ratings)

    # Schur complement Zᵀ W Z − Cᵀ A⁻¹ C: the Gram matrix of the residuals of the covariates Z on
    # the items, with the Gram matrix A of the items and the cross products C.
    weighted_covariates = weights[:, None] * covariates
    cross = item_system.apply_transpose(weighted_covariates)
    # A tiny ridge: the ratings may explain all that they can.
    solve = item_system.solver(weights, ridge=1e-13 * counts.total_weight, tol=1e-9)
    unexplained = covariates.T @ weighted_covariates - cross.T @ solve(cross)
    eigenvalues, eigenvectors = np.linalg.eigh(unexplained / counts.total_weight)
    if eigenvalues[0] > LEAST_UNEXPLAINED:
        return

    # The covariates with a large part in the combination that is explained.
    is_involved = np.abs(eigenvectors[:, 0]) > NULL_SPACE_ENTRY
    involved = [repr(names[k]) for k in np.flatnonzero(is_involved)]
    raise ValueError(
        f"the effect of {', '.join(involved)} cannot be separated from the ratings or from the "
        "other covariates: the compared items determine it, or the covariates are linearly "
        "dependent. Leave one out; a property of an item, not of a comparison, belongs in "
        "features=."
    )
