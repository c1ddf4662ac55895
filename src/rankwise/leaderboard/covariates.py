"""Covariates of comparisons and their effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.datasets import PairData
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.uncertainty.jackknife_errors import CovarianceRoot
from rankwise.validation import check_float_array

SIDE = "first side"

LARGEST_CATEGORY = 50  # levels

KNOWN = 1e-9  # share of a covariate that the items and the others may leave unexplained


@dataclass(frozen=True)
class Covariates:
    """Columns z of the comparisons, each with a mean square of 1, and what 1 of them was before.

    Attributes
    ----------
    names : tuple of str
        Of the columns; a level of a category has its own.
    columns : ndarray of shape (n_comparisons, n_columns)
        They speak for the first item.
    scale : ndarray of shape (n_columns,)
        By what the columns were divided.
    """

    names: tuple[str, ...]
    columns: Array
    scale: Array


def with_covariates(data: PairData, covariates: Any) -> PairData:
    """The comparisons with these covariates, which may be names of those that they have."""
    if covariates is None:
        return replace(data, covariates={})
    if isinstance(covariates, str):
        covariates = [covariates]
    if not isinstance(covariates, Mapping):
        missing = [name for name in covariates if name not in data.covariates]
        if missing:
            known = ", ".join(map(repr, data.covariates)) or "none"
            raise ValueError(
                f"covariates: the comparisons have no {', '.join(map(repr, missing))}, but {known};"
                " read them with covariates=[...], or pass a dictionary with one entry for each "
                "comparison."
            )
        return replace(data, covariates={name: data.covariates[name] for name in covariates})
    columns = {str(name): np.asarray(column) for name, column in covariates.items()}
    for name, column in columns.items():
        if column.shape != (data.n_pairs,):
            raise ValueError(
                f"the covariate {name!r} has shape {column.shape}, but there are {data.n_pairs} "
                "comparisons; pass one value for each."
            )
    return replace(data, covariates=columns)


def covariates_of(data: PairData, side: bool) -> Covariates:
    """The columns of the covariates, and one for the advantage of the first side if asked."""
    has_side, by_name = bool(side), dict[str, Array]()
    if has_side:
        _check_sides(data, "side=True asks")
        by_name[SIDE] = np.ones(data.n_pairs)
    for name, values in data.covariates.items():
        if values.dtype.kind in "biuf":
            by_name[name] = check_float_array(f"the covariate {name!r}", values)
            row = int(np.argmin(np.isfinite(by_name[name])))
            if not np.isfinite(by_name[name][row]):
                raise ValueError(
                    f"the covariate {name!r} is {by_name[name][row]} in comparison {row}; fill the "
                    "gaps, for example with the mean, or leave out the rows."
                )
            if np.ptp(by_name[name]) == 0:
                raise ValueError(
                    f"the covariate {name!r} is {by_name[name][0]:g} in every comparison; leave it "
                    "out, or pass side=True for the advantage of the first side."
                )
            continue
        _check_sides(data, f"the categories of {name!r} ask")
        by_name |= _indicators(name, values, keep_all=not has_side)
        has_side = True  # the indicators add up to it
    columns = np.column_stack([*by_name.values(), np.empty((data.n_pairs, 0))])
    scale = np.sqrt(data.weight @ columns**2 / data.weight.sum())
    return Covariates(tuple(by_name), columns / scale, scale)


def _indicators(name: str, values: NDArray[Any], *, keep_all: bool) -> Iterator[tuple[str, Array]]:
    """A column for each level; all but the most frequent one if the side is there already."""
    levels, codes = np.unique(values.astype(np.str_), return_inverse=True)
    if len(levels) < 2:
        raise ValueError(
            f"the covariate {name!r} is {levels.tolist()[0]!r} in every comparison, so nothing can "
            "be learned from it; leave it out."
        )
    if len(levels) > LARGEST_CATEGORY:
        raise ValueError(
            f"the covariate {name!r} has {len(levels)} categories, at most {LARGEST_CATEGORY} are "
            "taken; join the rare ones, or pass numbers."
        )
    common = -1 if keep_all else int(np.bincount(codes).argmax())
    chosen = [k for k in range(len(levels)) if k != common]
    return iter([(f"{name}={levels[k]}", (codes == k).astype(np.float64)) for k in chosen])


def _check_sides(data: PairData, who: str) -> None:
    if not (data.outcome < 0).any():
        raise ValueError(
            f"{who} how much the first side is favored, but the first item won or tied every "
            "comparison: winner and loser do not tell who was on which side. Pass sides= and "
            "outcome=, or a covariate such as home of the winner less home of the loser."
        )


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
    control: Covariates, effects: Array, spread: CovarianceRoot | None, confidence: float
) -> tuple[Effect, ...]:
    """One for each column of the covariates, in its own unit."""
    values = effects / control.scale
    errors = low = high = np.full(len(values), None)
    if spread is not None:
        errors = np.linalg.norm(spread.effects, axis=1) / control.scale
        low, high = values + spread.quantile((1 + confidence) / 2) * np.stack([-errors, errors])
    rows = zip(control.names, *(v.tolist() for v in (values, errors, low, high)), strict=True)
    return tuple(map(Effect._make, rows))


def check_identified(system: RatingSystem, names: tuple[str, ...]) -> None:
    """Refuse a covariate that the items, their features or the other covariates determine.

    What ratings cannot follow of the columns Z is the Schur complement
    ``Zᵀ W Z − Cᵀ L⁺ C`` with C = Bᵀ W Z. The reciprocal of a diagonal entry of its inverse is
    what is left of that column next to the others, too.
    """
    tally, Z = system.tally, system.tally.covariates
    weights, _ = tally.sums
    items = RatingSystem(replace(tally, covariates=Z[:, :0]), system.X, system.B)
    cross = items.right(weights[:, None] * Z)
    solve = items.solver(weights, 1e-13 * tally.total_weight, 1e-9)
    left = Z.T @ (weights[:, None] * Z) - cross.T @ solve(cross)
    values, vectors = np.linalg.eigh(left / tally.total_weight)
    if values[0] > KNOWN:
        return
    guilty = [names[k] for k in np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)]
    raise ValueError(
        f"the effect of {', '.join(map(repr, guilty))} cannot be told from the ratings or from the "
        "other covariates: which items met determines it, or they add up to each other. Leave one "
        "out; what belongs to an item, not to a comparison, goes into features=."
    )
