"""Checks of the arguments of `rate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from rankwise.arrays import Array, Indices, MatrixLike
from rankwise.datasets import PairData, pairs_from_frame
from rankwise.datasets.times import as_times
from rankwise.errors import warn_user
from rankwise.frames import as_array
from rankwise.graphs import PreferenceGraph
from rankwise.groups import Groups, encode_groups
from rankwise.leaderboard.board_types import Comparisons, CovariateArgument
from rankwise.leaderboard.covariates import with_covariates
from rankwise.validation import check_option, reject_dtype

ORDERS = ("rating", "lower")
LARGEST_MARGIN = 1e100
LEAST_WEIGHT = 1e-100
LARGEST_WEIGHT = 1e100
RACE_ROWS = 10_000  # rows in which races are looked for
RACE_SHARE = 0.4  # share of the rows in races, above which a warning is issued
LEAST_RACES = 3
LEAST_BEATEN = 3  # items that the winner of a race beats


def read_comparisons(
    pairs: Comparisons, covariates: CovariateArgument, columns: dict[str, Any]
) -> PairData:
    """Return the comparisons with the selected covariates.

    Parameters
    ----------
    pairs : data frame, dict of columns, PairData or PairGraph
        The comparisons.
    covariates : list, dict or None
        As in `rate`.
    columns : dict
        Columns of a frame, as in `rankwise.datasets.read_pairs`.
    """
    if columns and isinstance(pairs, PairData | PreferenceGraph):
        raise ValueError(
            f"{', '.join(columns)} name columns of a data frame, but pairs is a "
            f"{type(pairs).__name__}; pass a data frame, or omit them."
        )
    if isinstance(pairs, PairData):
        data = with_covariates(pairs, covariates)
        sides_as_items = replace(data, items=np.arange(data.n_sides), teams=None)
        _ = sides_as_items.graph()  # checks outcomes, weights and items
        if data.times is not None:
            data = replace(data, times=as_times(data.times, data.n_pairs))
    elif isinstance(pairs, PreferenceGraph):
        graph = pairs.pairs()
        data = PairData(
            graph.winner, graph.loser, graph.edge_target, graph.edge_weight, graph.items
        )
        data = with_covariates(data, covariates)
    else:
        data = _read_frame(pairs, covariates, columns)
    _check_ranges(data)
    return data


def _read_frame(frame: object, covariates: CovariateArgument, columns: dict[str, Any]) -> PairData:
    """Read a data frame; covariates are names of its columns, or values by name."""
    if covariates is None:
        return pairs_from_frame(frame, **columns)
    if isinstance(covariates, Mapping):
        return with_covariates(pairs_from_frame(frame, **columns), covariates)
    if isinstance(covariates, str):
        covariates = [covariates]
    return pairs_from_frame(frame, covariates=covariates, **columns)


def _check_ranges(data: PairData) -> None:
    """Refuse no comparisons, and margins and weights whose squares overflow."""
    if not len(data.outcome):
        raise ValueError("there are no comparisons; a rating needs at least one.")
    largest = float(np.abs(data.outcome).max())
    if largest > LARGEST_MARGIN:
        raise ValueError(
            f"there is a margin of {largest:.3g}; the squares of margins beyond {LARGEST_MARGIN:g} "
            "overflow. Correct it, or divide all margins by a constant."
        )
    lightest = float(data.weight.min())
    heaviest = float(data.weight.max())
    if lightest < LEAST_WEIGHT or heaviest > LARGEST_WEIGHT:
        raise ValueError(
            f"the weights of the comparisons range from {lightest:.3g} to {heaviest:.3g}; expected "
            f"{LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}. Only their ratios matter: multiply all of "
            "them by the same number, or drop comparisons with a negligible weight."
        )


def is_number_between(value: object, low: float, high: float) -> bool:
    """Whether a value is a number, not a bool, and strictly between two others."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    return low < float(value) < high


def check_options(intervals: bool, confidence: object, order: str, min_comparisons: object) -> None:
    """Check the arguments of `rate` on intervals and order."""
    if not is_number_between(confidence, 0.0, 1.0):
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    check_option("order", order, ORDERS)
    if order == "lower" and not intervals:
        raise ValueError("order='lower' needs intervals; do not pass intervals=False.")
    if not isinstance(min_comparisons, Integral) or min_comparisons < 0:
        raise ValueError(f"min_comparisons={min_comparisons!r}; expected a non-negative integer.")


def check_features(features: MatrixLike, n_items: int) -> Array:
    """Return finite features, one row for each item."""
    reject_dtype("features", features)
    X = check_array(as_array(features, "features"), dtype=np.float64, input_name="features")
    if len(X) != n_items:
        raise ValueError(
            f"features has {len(X)} rows, but the comparisons have {n_items} items; pass one row "
            "for each item, in the order of pairs.items."
        )
    return np.asarray(X)


def check_clusters(data: PairData, clusters: ArrayLike | None, intervals: bool) -> Indices | None:
    """Return the cluster of each comparison as a number, or None if there are no clusters.

    By default the clusters, or else the judges, of the data are used.
    """
    # Without the argument: the clusters of the data, or else its judges.
    if clusters is None:
        clusters = data.judges if data.clusters is None else data.clusters
        if clusters is not None and len(np.unique(clusters)) < 2:
            return None
    if clusters is None:
        if intervals:
            _warn_about_races(data)
        return None
    encoded = encode_labels("clusters", clusters, data.n_pairs)
    if intervals and encoded.n_groups < 2:
        raise ValueError(
            f"all comparisons are in one cluster, {encoded.labels[0]!s}; intervals leave out whole "
            "clusters, so at least two are needed. Omit clusters=, or pass intervals=False."
        )
    return encoded.codes


def _warn_about_races(data: PairData) -> None:
    if _are_races(data.winner[:RACE_ROWS], data.loser[:RACE_ROWS]):
        warn_user(
            "the comparisons look like races split into pairs, which are not independent, so the "
            "intervals are too narrow; name the races with cluster=, or pass the rankings "
            "themselves (ranking=, item=, place=)."
        )


def _are_races(winner: Indices, loser: Indices) -> bool:
    """Whether many rows are pairs of rankings: a beats b, c and d, b beats c and d, c beats d."""
    # Runs of consecutive rows with the same winner.
    is_first_of_run = np.append(True, winner[1:] != winner[:-1])
    run_starts = np.flatnonzero(is_first_of_run)
    run_lengths = np.diff(np.append(run_starts, len(winner)))

    # A race of n + 1 items is n runs: of the length n, n − 1, …, 1, won by items of the first run.
    def starts_race(run: int, n_beaten: int) -> bool:
        lengths = run_lengths[run : run + n_beaten]
        if not np.array_equal(lengths, np.arange(n_beaten, 0, -1)):
            return False
        beaten = loser[run_starts[run] : run_starts[run] + n_beaten]
        later_winners = winner[run_starts[run + 1 : run + n_beaten]]
        return bool(np.isin(later_winners, beaten).all())

    n_races = 0
    n_race_rows = 0
    run = 0
    while run < len(run_lengths):
        n_beaten = int(run_lengths[run])
        if n_beaten >= LEAST_BEATEN and starts_race(run, n_beaten):
            n_races += 1
            n_race_rows += n_beaten * (n_beaten + 1) // 2
            run += n_beaten
        else:
            run += 1
    return n_races >= LEAST_RACES and n_race_rows > RACE_SHARE * len(winner)


def encode_labels(name: str, labels: ArrayLike, n_comparisons: int) -> Groups:
    """Return labels, one for each comparison, as numbers."""
    if np.shape(labels) != (n_comparisons,):
        raise ValueError(
            f"{name} has shape {np.shape(labels)}, but there are {n_comparisons} comparisons; "
            "pass one label for each."
        )
    return encode_groups(labels, n_comparisons, name)
