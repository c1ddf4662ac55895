"""rate: a leaderboard from comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets import PairData
from rankwise.errors import warn_user
from rankwise.groups import Groups
from rankwise.leaderboard.arguments import (
    check_clusters,
    check_features,
    check_options,
    check_pairs,
    check_reading,
    encode_labels,
)
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.bradley_terry import BradleyTerry
from rankwise.leaderboard.consistency import consistency
from rankwise.leaderboard.covariates import Covariates, check_identified, covariates_of
from rankwise.leaderboard.effects import effects_of
from rankwise.leaderboard.judges import Judge, judges_of, weights_of
from rankwise.leaderboard.least_squares import LeastSquares
from rankwise.leaderboard.meetings import meetings_of
from rankwise.leaderboard.model import RatingModel, Solution
from rankwise.leaderboard.scales import scale_of
from rankwise.leaderboard.solving import RatingSystem, Solutions
from rankwise.leaderboard.standing import ordered_columns, records_of, standing_of
from rankwise.leaderboard.tally import Tally
from rankwise.machine import calm
from rankwise.model_selection.candidates import check_alphas
from rankwise.options import check_option

MODELS: dict[str, Callable[..., RatingModel]] = {
    "least-squares": LeastSquares,
    "bradley-terry": BradleyTerry,
}
LEAST_ALPHA = 1e-13  # less is lost in rounding, and the system singular


@calm
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
    scale: str = "margin",
    anchor: Any = None,
    order: str = "rating",
    min_comparisons: int = 0,
    reweight: bool = False,
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
    scale : {"margin", "logit", "elo"}
        Unit of the ratings: margins; logits; Elo points, 400 / ln 10 for a logit, around 1000. A
        margin of least squares is taken for two logits, which holds for items close together.
    anchor : str or int, optional
        The item that the ratings are counted from: it has the rating 0, or 1000 Elo points, and no
        error. By default that is the mean of the items.
    order : {"rating", "lower"}
        Rank by the rating, or by the lower end of its interval.
    min_comparisons : int
        Items with fewer comparisons stand below the line: they have a rating, but no rank. So does
        an item without any, unless features rate it.
    reweight : bool
        Whether comparisons count as much as their judge agrees with the others; needs `judge`.
    intervals : {"jackknife", "bootstrap"}
        "jackknife" leaves out every comparison, or every cluster, in closed form: rating ± quantile
        of Student's t × standard error. "bootstrap" solves the system again for resamples of the
        comparisons and takes percentiles, which are a little narrow.
    n_resamples : int, optional
        Number of bootstrap resamples; 0 gives a board without intervals, also by the jackknife.
        1000 if not given, 200 above 2,000 items.
    confidence : float
        Probability with which an interval should cover the truth, between 0 and 1.
    clusters : array-like of shape (n_comparisons,), optional
        Labels of what is independent if single comparisons are not: judges, users, matches. Whole
        clusters are left out, or resampled. By default the clusters, or else the judges, that the
        data name.
    random_state : int, Generator or None
        Seed of what is random: resamples, folds, and the jackknife of more than 2,000 items.
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
    rank  item     rating  n  w/t/l
       1  Ann †    0.4530  3  2/1/0
       2  Bob †   -0.1653  4  1/1/2
       3  Cleo †  -0.2877  3  1/0/2
    † thin: fewer than 5 comparisons, or all of them ended alike
    5 comparisons of 3 items by least-squares, alpha 0.01
    unexplained 0.656, circles 0.083 (0.10 times chance)
    >>> board.expected_margin("Ann", "Cleo").value
    0.740...
    """
    data = check_pairs(pairs, items, covariates, columns)
    check_option("model", model, list(MODELS))
    n_draws = check_options(intervals, n_resamples, confidence, data.n_items)
    check_reading(order, min_comparisons, has_intervals=n_draws > 0)
    X = None if features is None else check_features(features, data.n_items)
    codes = check_clusters(_units_of(data, clusters), data.n_pairs, n_draws)
    judged = None if data.judges is None else encode_labels("judges", data.judges, data.n_pairs)
    rng = np.random.default_rng(random_state)
    if reweight:
        first, _ = _judges(data, judged, _fit(data, side, model, ties, X, alpha, rng), confidence)
        if not first or judged is None:
            raise ValueError(
                "reweight=True weighs judges by how far they agree; say who judged with judge=, "
                "and have at least two."
            )
        data = replace(data, weight=data.weight * weights_of(first, judged.codes))
    fit = _fit(data, side, model, ties, X, alpha, rng)
    solution, components = fit.solution, fit.components
    unit = scale_of(scale, anchor, fit.model.logits, data.items, components)
    records = records_of(fit.tally)
    spread, samples = None, Solutions(*(np.empty((0, len(of))) for of in solution[:2]))
    if n_draws and intervals == "jackknife":
        found = fit.model.jackknife(solution, fit.alpha, codes, records.thin, rng)
        spread = unit.spread(found)
    elif n_draws:
        drawn = fit.model.resample(solution, fit.alpha, codes, n_draws, rng)
        samples = Solutions(unit.values(drawn.ratings), unit.factor * drawn.effects)
    ratings = unit.values(solution.ratings)
    known = (records.n > 0) | (X is not None)
    standing = standing_of(
        ratings, spread, samples.ratings, components, confidence,
        order=order, counted=known & (records.n >= min_comparisons), known=known,
    )  # fmt: skip
    effects = unit.factor * solution.effects
    judges, note = _judges(data, judged, fit, confidence)
    _warn_of_components(components, data.items)
    return Leaderboard(
        columns=ordered_columns(data.items, ratings, standing, records, components),
        items=data.items,
        ratings=ratings,
        samples=samples.ratings,
        spread=spread,
        effects=effects_of(fit.control, effects, spread, samples.effects, confidence),
        judges=judges,
        meetings=meetings_of(fit.model, solution),
        scale=unit,
        model=model,
        ties=solution.ties,
        alpha=fit.alpha,
        confidence=float(confidence),
        n_comparisons=data.n_pairs,
        n_clusters=None if codes is None or not n_draws else int(codes.max()) + 1,
        notes=tuple(filter(None, [solution.note, note])),
        **_consistency(fit.model, solution, fit.alpha),
        **_trained(fit.model, solution, features, fit.alpha),
        comparisons=data,
    )


class _Fit(NamedTuple):
    """A model that has been solved."""

    control: Covariates
    tally: Tally
    model: RatingModel
    alpha: float
    solution: Solution
    components: Indices


def _fit(
    data: PairData,
    side: bool,
    model: str,
    ties: str,
    X: Array | None,
    alpha: float | str,
    rng: np.random.Generator,
) -> _Fit:
    """Count the comparisons, choose alpha and solve."""
    control = covariates_of(data, side)
    tally = Tally.of(data, control.columns)
    fitted = MODELS[model](tally, X, ties)
    check_identified(RatingSystem(tally, X), control.names)
    alpha = _choose_alpha(fitted, tally, alpha, rng)
    components = tally.components if X is None else np.ones(data.n_items, np.intp)
    return _Fit(control, tally, fitted, alpha, fitted.solve(alpha), components)


def _judges(
    data: PairData, judged: Groups | None, fit: _Fit, confidence: float
) -> tuple[tuple[Judge, ...], str]:
    """The table of judges, if there are at least two, and what is to be said of it."""
    if judged is None or judged.n_groups < 2:
        return (), ""
    margins, note = fit.model.held_out_margins(fit.solution, fit.alpha, judged.codes)
    sign = np.where(data.first < data.second, 1.0, -1.0)
    outcome = np.sign(data.outcome) if fit.model.logits is not None else data.outcome
    expected = sign * fit.model.expected(margins)
    return judges_of(outcome, expected, judged.codes, judged.labels, confidence), note


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


def _choose_alpha(
    model: RatingModel, tally: Tally, alpha: float | str, rng: np.random.Generator
) -> float:
    if not isinstance(alpha, str):
        return max(LEAST_ALPHA, float(check_alphas([alpha], "alpha")[0]))
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
        warn_user(
            f"the items fall in {n_components} components that were never compared with each other "
            f"(the item {smallest!s} is in the smallest); ratings and ranks hold inside each only. "
            "Comparisons across them, or features of the items, would join them.",
        )
