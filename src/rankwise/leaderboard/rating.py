"""rate: a leaderboard from comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Indices
from rankwise.datasets import PairData
from rankwise.datasets.pair_data import PairColumns
from rankwise.leaderboard.arguments import (
    check_clusters,
    check_features,
    check_options,
    check_pairs,
    encode_labels,
)
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.bradley_terry import BradleyTerry
from rankwise.leaderboard.consistency import consistency
from rankwise.leaderboard.covariates import check_identified, covariates_of
from rankwise.leaderboard.effects import effects_of
from rankwise.leaderboard.least_squares import LeastSquares
from rankwise.leaderboard.model import RatingModel, Solution
from rankwise.leaderboard.solving import RatingSystem, Solutions
from rankwise.leaderboard.standing import intervals_of, standings
from rankwise.leaderboard.tally import Tally
from rankwise.model_selection.candidates import check_alphas
from rankwise.options import check_option

__all__ = ["MODELS", "rate", "rate_groups"]

MODELS: dict[str, Callable[..., RatingModel]] = {
    "least-squares": LeastSquares,
    "bradley-terry": BradleyTerry,
}


def rate(
    pairs: Any,
    *,
    items: ArrayLike | None = None,
    covariates: Any = None,
    side: bool = False,
    model: str = "least-squares",
    ties: str = "half",
    alpha: float | str = 1e-8,
    features: Any = None,
    intervals: str = "jackknife",
    n_resamples: int | None = None,
    confidence: float = 0.95,
    clusters: ArrayLike | None = None,
    random_state: Any = 0,
    **columns: Any,
) -> Leaderboard:
    """Rate items by comparisons of them, with intervals.

    The ratings r minimize ``(1/W) Σ_k ω_k (δ_k − (r_i − r_j + z_kᵀγ))² + α ‖r‖²`` over the
    comparisons k = (i beat j by δ_k): the HodgeRank or Massey rating, regularized, with effects γ
    of covariates z if there are any. It is RankRLS with one feature for each item; with `features`
    it is RankRLS on them.

    Parameters
    ----------
    pairs : data frame, dict of columns, PairData or PairGraph
        One comparison a row. A frame (pandas, polars, Arrow, …) needs to be told which columns say
        what: ``winner="winner", loser="loser"``, or ``sides=("model_a", "model_b"),
        outcome="winner"``, see `**columns`. `rankwise.datasets.read_pairs` reads a file.
    items : array-like of shape (n_items,), optional
        Labels of the items of a PairGraph, if it has none; their numbers if not given.
    covariates : list of str, dict, or array-like of shape (n_comparisons, n_covariates), optional
        What else may explain the outcomes: columns of the frame (two of them in a tuple are their
        difference), names of the covariates of PairData, or values. Numbers speak for the first
        item; text is a category. Their effects are in ``board.effects``.
    side : bool
        Whether the first side may have an advantage, which is then one of the effects.
    model : {"least-squares", "bradley-terry"}
        Of the outcomes. "bradley-terry": item i beats j with the probability
        σ(r_i − r_j + zᵀγ), by regularized maximum likelihood; only who won counts, not by how much.
    ties : {"half", "davidson", "rao-kupper"}
        How the model takes ties. "half": a margin of 0, or half a win of each. The others are for
        "bradley-terry" and give a tie a probability of its own (Davidson 1970, Rao and Kupper
        1967).
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
        clusters are left out, or resampled. By default the clusters, or else the judges, that the
        data name.
    random_state : int, Generator or None
        Seed of the resamples and draws.
    **columns
        For a frame: winner, loser, sides, outcome, wins, scores, margin, magnitude, weight, tie,
        judge, cluster, as in `rankwise.datasets.read_pairs`.

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
    >>> games = {
    ...     "white": ["Ann", "Cleo", "Bob", "Bob", "Ann"],
    ...     "black": ["Bob", "Ann", "Cleo", "Cleo", "Bob"],
    ...     "result": ["white", "black", "Bob", "Cleo", "draw"],
    ... }
    >>> board = rate(games, sides=("white", "black"), outcome="result", alpha=0.01, n_resamples=0)
    >>> board
    rank  item   rating  n  w/t/l
       1  Ann    0.4530  3  2/1/0
       2  Bob   -0.1653  4  1/1/2
       3  Cleo  -0.2877  3  1/0/2
    5 comparisons of 3 items; alpha 0.01, unexplained 0.656, cyclicity 0.083 (0.10 times noise)
    >>> board.expected_margin("Ann", "Cleo").value
    0.740...
    """
    data = check_pairs(pairs, items, covariates, columns)
    check_option("model", model, list(MODELS))
    n_draws = check_options(intervals, n_resamples, confidence, data.n_items)
    X = None if features is None else check_features(features, data.n_items)
    codes = check_clusters(_units_of(data, clusters), data.n_pairs, n_draws)
    rng = np.random.default_rng(random_state)
    control = covariates_of(data, side)
    tally = Tally.of(data, control.columns)
    fitted = MODELS[model](tally, X, ties)
    check_identified(RatingSystem(tally, X), control.names)
    alpha = _choose_alpha(fitted, tally, alpha, rng)
    solution = fitted.solve(alpha)
    components = tally.components if X is None else np.ones(data.n_items, np.intp)
    spread, samples = (
        None,
        Solutions(np.empty((0, data.n_items)), np.empty((0, len(control.names)))),
    )
    if n_draws and intervals == "jackknife":
        spread = fitted.jackknife(solution, alpha, codes, rng)
        samples = Solutions(spread.draw(solution.ratings, n_draws, rng), samples.effects)
    elif n_draws:
        samples = fitted.resample(solution, alpha, codes, n_draws, rng)
    found = intervals_of(solution.ratings, samples.ratings, spread, components, confidence)
    _warn_of_components(components, data.items)
    return Leaderboard(
        columns=standings(tally, data.items, solution.ratings, components, found),
        items=data.items,
        ratings=solution.ratings,
        samples=samples.ratings,
        spread=spread,
        effects=effects_of(control, solution, spread, samples.effects, confidence),
        alpha=alpha,
        confidence=float(confidence),
        n_comparisons=data.n_pairs,
        **_consistency(fitted, solution, alpha),
        **_trained(fitted, solution, features, alpha),
        comparisons=data,
    )


def _consistency(model: RatingModel, solution: Solution, alpha: float) -> dict[str, Any]:
    """How far the comparisons go in circles; wins, ties and losses if only they count."""
    expected, effects = model.in_margins(solution, alpha)
    return consistency(model.tally, solution.ratings, expected, effects)._asdict()


def _trained(model: RatingModel, solution: Solution, features: Any, alpha: float) -> dict[str, Any]:
    """The learner on the features, which rates other items."""
    if features is None:
        return {}
    learner = model.learner(features, solution, alpha)
    return {"model_": learner, "level": float(learner.predict(features).mean())}


def _units_of(data: PairData, clusters: ArrayLike | None) -> Any:
    """Labels of what is independent: as given, else the clusters or judges of the data."""
    if clusters is not None:
        return clusters
    named = data.clusters if data.clusters is not None else data.judges
    return None if named is None or len(np.unique(named)) < 2 else named


def rate_groups(
    pairs: Any,
    groups: ArrayLike | None = None,
    *,
    items: ArrayLike | None = None,
    covariates: Any = None,
    features: Any = None,
    clusters: ArrayLike | None = None,
    **options: Any,
) -> dict[Any, Leaderboard]:
    """One board for each group of comparisons: by prompt, by country, by year.

    Parameters
    ----------
    pairs : data frame, dict of columns, PairData or PairGraph
        As in `rate`.
    groups : array-like of shape (n_comparisons,), optional
        Label of each comparison; by default those of the column `group` (``pairs.groups``).
    items, covariates, features, clusters
        As in `rate`, for all groups together.
    **options
        Other arguments of `rate`, and columns of a frame.

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
    columns = {name: options.pop(name) for name in PairColumns.names() if name in options}
    data = check_pairs(pairs, items, covariates, columns)
    given = data.groups if groups is None else groups
    if given is None:
        raise ValueError(
            "the comparisons have no groups; read them with group=, or pass one label for each."
        )
    encoded = encode_labels("groups", given, data.n_pairs)
    X = None if features is None else check_features(features, data.n_items)
    if clusters is not None:
        units = encode_labels("clusters", clusters, data.n_pairs)
        clusters = units.labels[units.codes]
    boards = {}
    for code, label in enumerate(encoded.labels.tolist()):
        chosen = np.flatnonzero(encoded.codes == code)
        part, members = _part_of(data, chosen)
        try:
            boards[label] = rate(
                part,
                covariates=list(part.covariates) or None,
                features=None if X is None else X[members],
                clusters=None if clusters is None else np.asarray(clusters)[chosen],
                **options,
            )
        except ValueError as error:
            raise ValueError(f"group {label!s}: {error}") from error
    return boards


def _part_of(data: PairData, chosen: Indices) -> tuple[PairData, Indices]:
    """The chosen comparisons, of the items that they name, and which items these are."""
    part = data.take(chosen)
    ends = np.stack([part.first, part.second])
    members, (first, second) = np.unique(ends, return_inverse=True)
    return replace(part, first=first, second=second, items=data.items[members]), members


def _choose_alpha(
    model: RatingModel, tally: Tally, alpha: float | str, rng: np.random.Generator
) -> float:
    if not isinstance(alpha, str):
        return float(check_alphas([alpha], "alpha")[0])
    if alpha != "auto":
        raise ValueError(f'alpha={alpha!r}; expected a positive number or "auto".')
    if tally.n_comparisons < 2:
        raise ValueError(
            'alpha="auto" leaves out one comparison at a time, and there is only one; '
            "pass a number such as alpha=0.01."
        )
    return model.choose_alpha(rng)


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
