"""Checks of the arguments of `rate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_array

from rankwise.arrays import Array, Indices
from rankwise.datasets import PairData, pairs_from_frame
from rankwise.datasets.times import as_times
from rankwise.errors import warn_user
from rankwise.frames import as_array
from rankwise.graphs import PreferenceGraph
from rankwise.groups import Groups, encode_groups
from rankwise.leaderboard.covariates import with_covariates
from rankwise.validation import check_option, reject_dtype

MODEL_NAMES = ("least-squares", "bradley-terry", "plackett-luce")

ORDERS = ("rating", "lower")

LARGEST_MARGIN = 1e100

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100

LARGEST_ALPHA = 1e100

ROWS, MANY = 10_000, 0.4  # rows that are looked at for races, and the share that must be in some


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
    make_dynamic = data.times is not None or bool(data.contexts)
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
    if make_dynamic and (model != "bradley-terry" or is_known or alpha is not None):
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
    reject_dtype("features", features)
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
