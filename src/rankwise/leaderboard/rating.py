"""rate: a leaderboard from comparisons."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Indices
from rankwise.datasets import PairData
from rankwise.estimators import RankRLS
from rankwise.graphs import PairGraph
from rankwise.leaderboard.arguments import (
    check_clusters,
    check_features,
    check_options,
    check_pairs,
    encode_labels,
)
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.choosing_alpha import (
    EIGEN_LIMIT,
    alpha_grid,
    leave_one_out_errors,
    tenfold_errors,
)
from rankwise.leaderboard.consistency import consistency
from rankwise.leaderboard.jackknife import jackknife
from rankwise.leaderboard.resampling import KeptMeans, resample
from rankwise.leaderboard.solving import RatingSystem
from rankwise.leaderboard.standing import intervals_of, standings
from rankwise.leaderboard.tally import Tally
from rankwise.leaderboard.units import Units
from rankwise.model_selection.candidates import check_alphas

__all__ = ["rate", "rate_groups"]


def rate(
    pairs: PairData | PairGraph,
    *,
    items: ArrayLike | None = None,
    alpha: float | str = 1e-8,
    features: Any = None,
    intervals: str = "jackknife",
    n_resamples: int | None = None,
    confidence: float = 0.95,
    clusters: ArrayLike | None = None,
    random_state: Any = 0,
) -> Leaderboard:
    """Rate items by comparisons of them, with intervals.

    The ratings r minimize ``(1/W) Σ_k ω_k (δ_k − (r_i − r_j))² + α ‖r‖²`` over the comparisons
    k = (i beat j by δ_k): the HodgeRank or Massey rating, regularized. It is RankRLS with one
    feature for each item; with `features` it is RankRLS on them.

    Parameters
    ----------
    pairs : PairData or PairGraph
        Who beat whom by how much, as `rankwise.datasets.read_pairs` gives it; magnitude 0 is a tie.
    items : array-like of shape (n_items,), optional
        Labels of the items of a PairGraph; their numbers if not given. PairData has its own.
    alpha : float or "auto"
        Regularization, positive; the default is next to none. "auto" takes the one with the least
        squared error on comparisons left out one at a time (exact; ten folds of them above 3,000
        items or features). It predicts few comparisons better, but pulls all ratings towards 0,
        so that the intervals cover the truth less often than they say.
    features : array-like of shape (n_items, n_features), optional
        Features of the items in the order of ``pairs.items``.
    intervals : {"jackknife", "bootstrap"}
        "jackknife" leaves out every comparison, or every cluster, in closed form: rating ± quantile
        of Student's t × standard error. "bootstrap" solves the system again for resamples of the
        comparisons and takes percentiles, which are a little narrow.
    n_resamples : int, optional
        Number of bootstrap resamples, or of draws from the distribution that the jackknife finds,
        which are for the ranks only; 0 gives a board without intervals. 1000 if not given, 200
        above 2,000 items.
    confidence : float
        Probability with which an interval should cover the truth, between 0 and 1.
    clusters : array-like of shape (n_comparisons,), optional
        Labels of what is independent if single comparisons are not: judges, users, matches. Whole
        clusters are left out, or resampled.
    random_state : int, Generator or None
        Seed of the resamples and draws.

    Returns
    -------
    Leaderboard
        Prints as a table.

    Warns
    -----
    UserWarning
        If the items fall in components that were never compared with each other. Without features
        their ratings cannot be compared: each component has its own ranks, and the table shows it.

    Notes
    -----
    The jackknife is exact up to 2,000 items (of any number with features): no refit, and the
    same ratings without each comparison or cluster. Above, the covariance is estimated from 200
    random combinations of the same changes, and the comparisons of a cluster are corrected by
    their own leverage only; the last line of the table says so.

    A bootstrap resample is a weighting of the same graph, so that 1,000 of them are 1,000 linear
    systems, whatever the number of comparisons. An item that is not in a resample has the rating 0
    there; the others keep their mean rating, so that the absence of weak items does not make the
    strong ones look weaker. Alpha is chosen once, not again without a comparison or in a resample.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> games = PairGraph([0, 0, 1, 2, 0], [1, 2, 2, 1, 1], magnitude=[1, 1, 1, 1, 0])
    >>> board = rate(games, items=["Ann", "Bob", "Cleo"], alpha=0.01, n_resamples=0)
    >>> board
    rank  item   rating  n  w/t/l
       1  Ann    0.4530  3  2/1/0
       2  Bob   -0.1653  4  1/1/2
       3  Cleo  -0.2877  3  1/0/2
    5 comparisons of 3 items; alpha 0.01, unexplained 0.656, cyclicity 0.083 (0.10 times noise)
    >>> board.expected_margin("Ann", "Cleo").value
    0.740...
    """
    graph, labels = check_pairs(pairs, items)
    n_draws = check_options(intervals, n_resamples, confidence, graph.n_items)
    X = None if features is None else check_features(features, graph.n_items)
    codes = None if clusters is None else check_clusters(clusters, graph.n_pairs, n_draws)
    rng = np.random.default_rng(random_state)
    tally = Tally.of(graph)
    system = RatingSystem(tally, X)
    alpha = _choose_alpha(system, alpha, rng)
    weights, flows = tally.sums
    (ratings,) = system.solve(weights[None], flows[None], alpha)
    components = tally.components if X is None else np.ones(graph.n_items, np.intp)
    spread, samples = None, np.empty((0, graph.n_items))
    if n_draws and intervals == "jackknife":
        spread = jackknife(system, ratings, alpha, codes, rng)
        samples = spread.draw(ratings, n_draws, rng)
    elif n_draws:
        means = None if X is not None else KeptMeans(ratings, components)
        samples = resample(system, Units(tally, codes), alpha, n_draws, rng, means)
    found = intervals_of(ratings, samples, spread, components, confidence)
    _warn_of_components(components, labels)
    model = None if X is None else RankRLS(alpha).fit(features, graph)
    return Leaderboard(
        columns=standings(tally, labels, ratings, components, found),
        items=labels,
        ratings=ratings,
        samples=samples,
        spread=spread,
        alpha=alpha,
        confidence=float(confidence),
        n_comparisons=graph.n_pairs,
        **consistency(tally, ratings)._asdict(),
        model_=model,
        level=0.0 if model is None else float(model.predict(features).mean()),
        comparisons=graph,
    )


def rate_groups(
    pairs: PairData | PairGraph,
    groups: ArrayLike | None = None,
    *,
    items: ArrayLike | None = None,
    features: Any = None,
    clusters: ArrayLike | None = None,
    **options: Any,
) -> dict[Any, Leaderboard]:
    """One board for each group of comparisons: by prompt, by country, by year.

    Parameters
    ----------
    pairs : PairData or PairGraph
        As in `rate`.
    groups : array-like of shape (n_comparisons,), optional
        Label of each comparison; by default those that the file had (``pairs.groups``).
    items, features, clusters
        As in `rate`, for all groups together.
    **options
        Other arguments of `rate`.

    Returns
    -------
    dict from label to Leaderboard
        A board has the items that its comparisons name.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> games = PairGraph([0, 1, 1, 2], [1, 0, 2, 1])
    >>> boards = rate_groups(games, ["old", "new", "new", "new"], alpha=0.1, n_resamples=0)
    >>> {label: [row.item for row in board] for label, board in boards.items()}
    {'new': [1, 2, 0], 'old': [0, 1]}
    """
    graph, labels = check_pairs(pairs, items)
    given = _groups_of(pairs) if groups is None else groups
    if given is None:
        raise ValueError(
            "the comparisons have no groups; read them with group=, or pass one label for each."
        )
    encoded = encode_labels("groups", given, graph.n_pairs)
    X = None if features is None else check_features(features, graph.n_items)
    if clusters is not None:
        units = encode_labels("clusters", clusters, graph.n_pairs)
        clusters = units.labels[units.codes]
    boards = {}
    for code, label in enumerate(encoded.labels.tolist()):
        chosen = np.flatnonzero(encoded.codes == code)
        graph_of_group, members = _graph_of(graph, chosen)
        try:
            boards[label] = rate(
                graph_of_group,
                items=labels[members],
                features=None if X is None else X[members],
                clusters=None if clusters is None else np.asarray(clusters)[chosen],
                **options,
            )
        except ValueError as error:
            raise ValueError(f"group {label!s}: {error}") from error
    return boards


def _graph_of(graph: PairGraph, chosen: Indices) -> tuple[PairGraph, Indices]:
    """The chosen comparisons as a graph of the items that they name, and which items these are."""
    ends = np.stack([graph.winner[chosen], graph.loser[chosen]])
    members, (winner, loser) = np.unique(ends, return_inverse=True)
    targets, weights = graph.edge_target[chosen], graph.edge_weight[chosen]
    return PairGraph(winner, loser, targets, weights, n_items=len(members)), members


def _groups_of(pairs: PairData | PairGraph) -> NDArray[Any] | None:
    return pairs.groups if isinstance(pairs, PairData) else None


def _choose_alpha(system: RatingSystem, alpha: float | str, rng: np.random.Generator) -> float:
    if not isinstance(alpha, str):
        return float(check_alphas([alpha], "alpha")[0])
    if alpha != "auto":
        raise ValueError(f'alpha={alpha!r}; expected a positive number or "auto".')
    if len(system.tally.outcome) < 2:
        raise ValueError(
            'alpha="auto" leaves out one comparison at a time, and there is only one; '
            "pass a number such as alpha=0.01."
        )
    alphas = alpha_grid(system)
    if system.size > EIGEN_LIMIT:
        return tenfold_errors(system, alphas, rng).best
    return leave_one_out_errors(system, alphas).best


def _warn_of_components(components: Indices, labels: NDArray[Any]) -> None:
    n_components = int(components.max())
    if n_components > 1:
        smallest = labels[np.argmax(components)]
        warnings.warn(
            f"the items fall in {n_components} parts that were never compared with each other (the "
            f"item {smallest!s} is in the smallest); ratings and ranks hold inside each part only. "
            "Comparisons across the parts, or features of the items, would join them.",
            stacklevel=3,
        )
