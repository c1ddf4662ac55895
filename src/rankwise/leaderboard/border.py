"""The border of boards: what a user passes is checked here, once; covariates of comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from rankwise.arrays import Array, Indices
from rankwise.datasets import PairData, pairs_from_frame
from rankwise.datasets.times import as_times
from rankwise.errors import warn_user
from rankwise.frames import as_array
from rankwise.graphs import PreferenceGraph
from rankwise.groups import Groups, encode_groups
from rankwise.inputs import as_real, check_items, check_option
from rankwise.leaderboard.solving import RatingSystem
from rankwise.uncertainty.jackknife import Spread

MODEL_NAMES = ("least-squares", "bradley-terry", "plackett-luce")
ORDERS = ("rating", "lower")
LARGEST_MARGIN = 1e100
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100
LARGEST_ALPHA = 1e100
ROWS, MANY = 10_000, 0.4  # rows that are looked at for races, and the share that must be in some
SIDE = "first side"
LARGEST_CATEGORY = 50  # levels
KNOWN = 1e-9  # share of a covariate that the items and the others may leave unexplained


def read_comparisons(pairs: Any, covariates: Any, columns: Any) -> PairData:
    """The comparisons with the covariates that are asked for."""
    if columns and isinstance(pairs, PairData | PreferenceGraph):
        raise ValueError(
            f"{', '.join(columns)} name columns of a data frame, but pairs is a "
            f"{type(pairs).__name__}."
        )
    if isinstance(pairs, PairData):
        data = with_covariates(pairs, covariates)
        _ = data.graph()  # checks outcomes, weights and items
        if data.times is not None:
            data = replace(data, times=as_times(data.times, data.n_pairs))
    elif isinstance(pairs, PreferenceGraph):
        graph = pairs.pairs()
        ends = graph.winner, graph.loser
        data = PairData(*ends, graph.edge_target, graph.edge_weight, graph.items)
        data = with_covariates(data, covariates)
    elif covariates is None:
        data = pairs_from_frame(pairs, **columns)
    elif isinstance(covariates, Mapping):
        data = with_covariates(pairs_from_frame(pairs, **columns), covariates)
    else:
        names = [covariates] if isinstance(covariates, str) else covariates
        data = pairs_from_frame(pairs, covariates=names, **columns)
    if not data.n_pairs:
        raise ValueError("there are no comparisons; a rating needs at least one.")
    largest = float(np.abs(data.outcome).max())
    if largest > LARGEST_MARGIN:
        raise ValueError(
            f"there is a margin of {largest:.3g}; beyond {LARGEST_MARGIN:g} squares overflow. "
            "Correct it, or divide all margins."
        )
    lightest, heaviest = float(data.weight.min()), float(data.weight.max())
    if lightest < LEAST_WEIGHT or heaviest > LARGEST_WEIGHT:
        raise ValueError(
            f"the weights of the comparisons are from {lightest:.3g} to {heaviest:.3g}; expected "
            f"{LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}. Only their ratios count: multiply all of "
            "them by the same number, or leave out comparisons that weigh next to nothing."
        )
    return data


def are_verdicts(outcome: Array) -> bool:
    """Whether all outcomes are wins, ties and losses: 1, 0 and −1."""
    return bool(np.isin(outcome, [-1.0, 0.0, 1.0]).all())


def default_model(data: PairData) -> str:
    """The model of `rate` if none is named; time and context are for Bradley–Terry only."""
    if data.times is not None or data.contexts:
        return "bradley-terry"
    if data.rankings is not None:
        return "plackett-luce"
    return "bradley-terry" if are_verdicts(data.outcome) else "least-squares"


def check_model(
    model: str | None, data: PairData, *, features: Any, prior: Any, side: bool, ties: str,
    alpha: Any,
) -> str:  # fmt: skip
    """The model, if it goes with the data and the other options."""
    is_known = features is not None or prior is not None
    if prior is not None and features is not None:
        raise ValueError(
            "prior= and features= are two ways to say what is known of the items; pass one of them "
            "(a table of numbers may be a prior)."
        )
    in_context = data.times is not None or bool(data.contexts)
    if model is None:
        model = default_model(data)
    check_option("model", model, MODEL_NAMES)
    check_option("ties", ties, ("half", "davidson"))
    if ties != "half" and model != "bradley-terry":
        raise ValueError(
            f"ties={ties!r} is for model='bradley-terry'; least squares takes a tie as half a win, "
            "and rankings share places (ties='half')."
        )
    is_automatic = alpha is None or (isinstance(alpha, str) and alpha == "auto")
    if not is_automatic and not _is_number_between(alpha, 0.0, LARGEST_ALPHA):
        raise ValueError(
            f'alpha={alpha!r}; expected a positive number below {LARGEST_ALPHA:g}, or "auto".'
        )
    is_chosen = is_automatic and (alpha is not None or prior is not None)
    if is_chosen and data.n_pairs < 2:
        raise ValueError(
            'alpha="auto" leaves out one comparison at a time, and there is only one; '
            "pass a number such as alpha=0.01."
        )
    if in_context and (model != "bradley-terry" or is_known or alpha is not None):
        raise ValueError(
            "time= and context= are for model='bradley-terry', and go without features=, prior= "
            "and alpha=; scales= says how strong the regularization is."
        )
    is_listwise = model == "plackett-luce"
    if data.rankings is None and is_listwise:
        raise ValueError(
            "model='plackett-luce' is for rankings; name their columns with ranking=, item= and "
            "place=, or pass a list of lists. Comparisons of two are for 'bradley-terry'."
        )
    if data.rankings is not None and side:
        raise ValueError("side=True is for two sides; the items of a ranking have none.")
    if is_listwise and is_known:
        raise ValueError(
            "features=, prior= and model='plackett-luce' do not go together; use 'least-squares', "
            "or RankLogistic(likelihood='plackett-luce') on the rows of the rankings."
        )
    return model


def _is_number_between(value: Any, low: float, high: float) -> bool:
    """Whether a value is a number, not a bool, and strictly between two others."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return is_number and low < float(value) < high


def check_options(intervals: Any, confidence: Any, order: Any, min_comparisons: Any) -> None:
    """Check how the board is ordered."""
    if not _is_number_between(confidence, 0.0, 1.0):
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    check_option("order", order, ORDERS)
    if order == "lower" and not intervals:
        raise ValueError("order='lower' goes by intervals; do not pass intervals=False.")
    if not isinstance(min_comparisons, Integral) or min_comparisons < 0:
        raise ValueError(f"min_comparisons={min_comparisons!r}; expected a whole number from 0.")


def check_features(features: Any, n_items: int) -> Array:
    """Finite features, one row for each item."""
    check_items("features", features)
    X = check_array(as_array(features, "features"), dtype=np.float64, input_name="features")
    if len(X) != n_items:
        raise ValueError(
            f"features has {len(X)} rows, but the comparisons are of {n_items} items; pass one row "
            "for each item, in the order of pairs.items."
        )
    return np.asarray(X)


def check_clusters(data: PairData, clusters: Any, intervals: bool) -> Indices | None:
    """The number of the cluster of each comparison: as passed, else clusters or judges of the data.

    None if there are no clusters.
    """
    if clusters is None:
        clusters = data.clusters if data.clusters is not None else data.judges
        if clusters is None and intervals and _are_races(data.winner[:ROWS], data.loser[:ROWS]):
            warn_user(
                "the comparisons look like races taken apart into pairs, which are not independent,"
                " so that the intervals are too narrow; name the races with cluster=, or pass the "
                "rankings themselves (ranking=, item=, place=)."
            )
        if clusters is None or len(np.unique(clusters)) < 2:
            return None
    encoded = encode_labels("clusters", clusters, data.n_pairs)
    if intervals and encoded.n_groups < 2:
        raise ValueError(
            f"all comparisons are in one cluster, {encoded.labels[0]!s}; whole clusters are left "
            "out, so at least two are needed. Do without clusters=, or pass intervals=False."
        )
    return encoded.codes


def _are_races(winner: Indices, loser: Indices) -> bool:
    """Whether many rows are pairs of rankings: a beats b, c and d, b beats c and d, c beats d."""
    starts = np.flatnonzero(np.r_[True, winner[1:] != winner[:-1]])
    lengths, inside, n_races, k = np.diff(np.r_[starts, len(winner)]), 0, 0, 0
    while k < len(lengths):
        m = int(lengths[k])
        rest, beaten = winner[starts[k + 1 : k + m]], loser[starts[k] : starts[k] + m]
        is_race = m > 2 and np.array_equal(lengths[k : k + m], np.arange(m, 0, -1))
        if is_race and np.isin(rest, beaten).all():
            inside, n_races = inside + m * (m + 1) // 2, n_races + 1
            k += m
        else:
            k += 1
    return n_races > 2 and inside > MANY * len(winner)


def encode_labels(name: str, labels: Any, n_comparisons: int) -> Groups:
    """One label for each comparison, as numbers."""
    if np.shape(labels) != (n_comparisons,):
        raise ValueError(
            f"{name} has shape {np.shape(labels)}, but there are {n_comparisons} comparisons; "
            "pass one label for each."
        )
    return encode_groups(labels, n_comparisons, name)


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
            by_name[name] = as_real(f"the covariate {name!r}", values)
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
    control: Covariates, effects: Array, spread: Spread | None, confidence: float
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
