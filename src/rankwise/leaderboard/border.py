"""The border of boards: what a user passes is checked here, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from rankwise.arrays import Array, Indices
from rankwise.datasets import PairData, pairs_from_frame
from rankwise.datasets.pair_data import PAIR_COLUMNS
from rankwise.datasets.times import as_times
from rankwise.errors import warn_user
from rankwise.frames import as_array
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.groups import Groups, encode_groups
from rankwise.inputs import check_items, check_option, suggestion
from rankwise.leaderboard.context import Circumstances
from rankwise.leaderboard.covariates import with_covariates
from rankwise.uncertainty.jackknife import COVARIANCE_LIMIT

MODEL_NAMES = ("least-squares", "bradley-terry", "plackett-luce")
ORDERS = ("rating", "lower")
LARGEST_MARGIN = 1e100
INTERVALS = ("jackknife", "bootstrap")
ROWS, MANY = 10_000, 0.4  # rows that are looked at for races, and the share that must be in some


def read_comparisons(
    pairs: Any, items: Any, covariates: Any, time: Any, context: Any, columns: Any
) -> PairData:
    """The comparisons with their times and contexts, which may be columns or arrays."""
    is_frame = not isinstance(pairs, PairData | PreferenceGraph)
    if is_frame and isinstance(time, (str, int)):
        columns, time = {**columns, "time": time}, None
    if is_frame and context is not None and not isinstance(context, Mapping):
        columns, context = {**columns, "context": context}, None
    data = _read_pairs(pairs, items, covariates, columns)
    if isinstance(time, str) and time == "rows":
        time = np.arange(data.n_pairs)
    if time is not None:
        data = replace(data, times=as_times(time, data.n_pairs))
    if context is not None:
        if not isinstance(context, Mapping):
            raise ValueError(f"context={context!r}; pass a dict from a name to labels.")
        labels = {name: np.asarray(column) for name, column in context.items()}
        for name, column in labels.items():
            encode_labels(f"the context {name!r}", column, data.n_pairs)
        data = replace(data, contexts=labels)
    return data


def _read_pairs(
    pairs: Any, items: ArrayLike | None, covariates: Any, columns: dict[str, Any]
) -> PairData:
    """The comparisons as PairData, with the covariates that are asked for and no others."""
    known = [name for name in PAIR_COLUMNS if name != "covariates"]
    for name in columns:
        if name not in known:
            raise TypeError(
                f"rate has no argument {name!r}; {suggestion(name, known)}columns of a frame are "
                f"given by {', '.join(known)}."
            )
    if isinstance(pairs, PairData | PreferenceGraph):
        if columns:
            raise ValueError(
                f"{', '.join(columns)} name columns of a data frame, but pairs is a "
                f"{type(pairs).__name__}."
            )
        data = pairs if isinstance(pairs, PairData) else _from_graph(pairs.pairs(), items)
        data = with_covariates(data, covariates)
    else:
        if covariates is not None:
            names = [covariates] if isinstance(covariates, str) else covariates
            columns = {**columns, "covariates": names}
        data = pairs_from_frame(pairs, **columns)
    if items is not None and not isinstance(pairs, PreferenceGraph):
        raise ValueError("items= names the items of a PairGraph; PairData has its own.")
    if not data.n_pairs:
        raise ValueError("there are no comparisons; a rating needs at least one.")
    largest = float(np.abs(data.outcome).max())
    if largest > LARGEST_MARGIN:
        raise ValueError(
            f"there is a margin of {largest:.3g}; beyond {LARGEST_MARGIN:g} squares overflow. "
            "Correct it, or divide all margins."
        )
    if isinstance(pairs, PairData):
        _ = data.graph()  # checks outcomes, weights and items
    return data


def _from_graph(graph: PairGraph, items: ArrayLike | None) -> PairData:
    labels = graph.items if items is None else np.asarray(items)
    if labels.shape != (graph.n_items,):
        raise ValueError(
            f"items has shape {labels.shape}, but the comparisons are of {graph.n_items} items; "
            "pass one label for each."
        )
    if len(set(labels.tolist())) < len(labels):
        raise ValueError("items has a label twice; every item needs its own.")
    return PairData(graph.winner, graph.loser, graph.edge_target, graph.edge_weight, labels)


def check_model(
    model: str | None,
    data: PairData,
    seen: Circumstances | None,
    *,
    features: Any,
    prior: Any,
    side: bool,
    ties: str,
    alpha: Any,
    intervals: str | None,
) -> str:
    """The model, if it goes with the data and the other options."""
    is_known = features is not None or prior is not None
    if prior is not None and features is not None:
        raise ValueError(
            "prior= and features= are two ways to say what is known of the items; pass one of them "
            "(a table of numbers may be a prior)."
        )
    if prior is not None and intervals == "bootstrap":
        raise ValueError(
            "resamples do not show how far a prior is wrong; with prior= use intervals='jackknife'."
        )
    if model is None:
        usual = "least-squares" if data.rankings is None else "plackett-luce"
        model = usual if seen is None else "bradley-terry"
    check_option("model", model, MODEL_NAMES)
    check_option("ties", ties, ("half", "davidson"))
    if ties != "half" and model != "bradley-terry":
        raise ValueError(
            f"ties={ties!r} is for model='bradley-terry'; least squares takes a tie as half a win, "
            "and rankings share places (ties='half')."
        )
    is_listwise = model == "plackett-luce"
    if seen is not None and model != "bradley-terry":
        raise ValueError(f"time= and context= are for model='bradley-terry', not {model!r}.")
    if seen is not None and (is_known or alpha is not None or intervals == "bootstrap"):
        raise ValueError(
            "time= and context= go without features=, prior=, alpha= and intervals='bootstrap'; "
            "scales= says how strong the regularization is."
        )
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
    if is_listwise and intervals == "bootstrap":
        raise ValueError(
            "intervals='bootstrap' is for comparisons; rankings have intervals='jackknife'."
        )
    return model


def check_options(
    intervals: Any,
    n_resamples: Any,
    confidence: Any,
    order: Any,
    min_comparisons: Any,
    n_items: int,
) -> int:
    """Check how intervals are made and how the board is ordered; return the number of resamples."""
    check_option("intervals", intervals, INTERVALS)
    if n_resamples is None:
        n_resamples = 1000 if n_items <= COVARIANCE_LIMIT else 200
    if not isinstance(n_resamples, Integral) or isinstance(n_resamples, bool) or n_resamples < 0:
        raise ValueError(
            f"n_resamples={n_resamples!r}; expected a whole number of at least 0 (no intervals)."
        )
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    check_option("order", order, ORDERS)
    if order == "lower" and not n_resamples:
        raise ValueError("order='lower' goes by intervals; do not pass n_resamples=0.")
    if not isinstance(min_comparisons, Integral) or min_comparisons < 0:
        raise ValueError(f"min_comparisons={min_comparisons!r}; expected a whole number from 0.")
    return int(n_resamples)


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


def check_clusters(data: PairData, clusters: Any, n_resamples: int) -> Indices | None:
    """The number of the cluster of each comparison: as passed, else clusters or judges of the data.

    None if there are no clusters.
    """
    if clusters is None:
        clusters = data.clusters if data.clusters is not None else data.judges
        if clusters is None and n_resamples and _are_races(data.winner[:ROWS], data.loser[:ROWS]):
            warn_user(
                "the comparisons look like races taken apart into pairs, which are not independent,"
                " so that the intervals are too narrow; name the races with cluster=, or pass the "
                "rankings themselves (ranking=, item=, place=)."
            )
        if clusters is None or len(np.unique(clusters)) < 2:
            return None
    encoded = encode_labels("clusters", clusters, data.n_pairs)
    if n_resamples and encoded.n_groups < 2:
        raise ValueError(
            f"all comparisons are in one cluster, {encoded.labels[0]!s}; whole clusters "
            "are left out or resampled, so at least two are needed. Do without clusters=, or pass "
            "n_resamples=0."
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
    return encode_groups(labels, n_comparisons)
