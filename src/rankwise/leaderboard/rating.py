"""rate and rate_groups: leaderboards from comparisons."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import MatrixLike
from rankwise.datasets import PairData
from rankwise.datasets.column_roles import Column
from rankwise.datasets.pair_data import PAIR_COLUMNS
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import warn_user
from rankwise.leaderboard.arguments import (
    check_clusters,
    check_features,
    check_options,
    encode_labels,
    read_comparisons,
)
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.board_inputs import ModelInputs, Presentation
from rankwise.leaderboard.board_types import Comparisons, CovariateArgument, Label
from rankwise.leaderboard.covariates import covariate_columns
from rankwise.leaderboard.judges import LEAST_WEIGHT, evaluate_judges
from rankwise.leaderboard.model_choice import (
    check_model,
    check_scales_apply,
    default_model,
    fit_model,
)
from rankwise.leaderboard.models.base import RatingModel
from rankwise.leaderboard.models.rating_terms import PriorScales
from rankwise.leaderboard.prior_reader import PriorArgument, read_prior
from rankwise.leaderboard.rating_scale import make_scale
from rankwise.runtime.threads import single_threaded


@single_threaded
def rate(
    pairs: Comparisons,
    *,
    winner: Column | None = None,
    loser: Column | None = None,
    sides: Sequence[Column] | None = None,
    outcome: Column | None = None,
    outcome_words: Mapping[str, str] | None = None,
    wins: Sequence[Column] | None = None,
    scores: Sequence[Column] | None = None,
    margin: bool | None = None,
    magnitude: Column | None = None,
    tie: Column | None = None,
    weight: Column | None = None,
    judge: Column | None = None,
    cluster: Column | None = None,
    group: Column | None = None,
    ranking: Column | None = None,
    item: Column | None = None,
    place: Column | None = None,
    places: Sequence[Column] | None = None,
    unlisted: str | None = None,
    time: Column | None = None,
    context: Column | Sequence[Column] | None = None,
    team_separator: str | None = None,
    team_weights: Sequence[Column] | None = None,
    features: MatrixLike | None = None,
    prior: PriorArgument | None = None,
    side: bool = False,
    covariates: CovariateArgument = None,
    model: str | None = None,
    ties: str = "half",
    alpha: float | str | None = None,
    half_life: float | None = None,
    scales: PriorScales | None = None,
    reweight: bool = False,
    intervals: bool = True,
    confidence: float = DEFAULT_CONFIDENCE,
    clusters: ArrayLike | None = None,
    scale: str = "margin",
    anchor: Label | None = None,
    order: str = "rating",
    min_comparisons: int = 0,
) -> Leaderboard:
    """Rate items by comparisons, with intervals.

    Use it for matches, votes, tastings, races and ballots.

    Wins, ties and losses are rated by the Bradley–Terry model: item i beats j with probability
    ``σ(r_i − r_j + zᵀγ)``, with effects γ of covariates z. Ratings are log odds. They minimize
    ``(1/W) Σ_k ω_k ℓ_k + α ‖r‖²``, where ℓ_k is minus the log likelihood of comparison k.

    Margins and numeric scores are rated by least squares: the ratings minimize
    ``(1/W) Σ_k ω_k (δ_k − (r_i − r_j + z_kᵀγ))² + α ‖r‖²`` over the comparisons k = (i beat j by
    δ_k). This is the HodgeRank or Massey rating, regularized. It is RankRLS with one feature for
    each item; with `features` it is RankRLS on them.

    Parameters
    ----------
    pairs : data frame, dict of columns, list of rankings, PairData or PairGraph
        The comparisons, one per row. For a frame (pandas, polars, Arrow, …), the following
        parameters up to `context` name its columns; see the examples.
        `rankwise.datasets.read_pairs` reads a file.
    winner, loser : str or int, default="winner" and "loser"
        Columns with the labels of the two items.
    sides : pair of str or int, optional
        The two columns with the labels of the items, if another column has the outcome.
    outcome : str or int, optional
        With `sides`: column with the outcome, by default the one that `winner` names. It contains
        the name of a side's column, the label of an item, or a word such as "left", "home", "tie".
    outcome_words : mapping from str to str, optional
        Meaning of other words of the column `outcome`, such as ``{"A+": "first", "eh": "tie"}``.
    wins : two or three of str or int, optional
        With `sides`: columns with the number of wins of the first side, of the second side and,
        optionally, of ties.
    scores : pair of str or int, optional
        With `sides`: columns with the points, goals or grades of the two sides.
    margin : bool, default=False
        Whether the difference of the scores, or the number in the column `outcome`, is the margin
        of the first side. By default only the winner counts.
    magnitude : str or int, optional
        Column with the margin of the winner, 0 for a tie; by default the column "magnitude" if it
        exists.
    tie : str or int, optional
        Column that marks ties (1, true, yes, tie or draw); by default the column "tie" if it
        exists.
    weight : str or int, optional
        Column with the weight of each comparison; by default the column "weight" if it exists.
        Intervals count each comparison once, whatever its weight: for counts of equal results, pass
        `wins` or repeat the rows.
    judge, cluster : str or int, optional
        Columns with the judge of each comparison, and with the label that dependent comparisons
        share.
    group : str or int, optional
        Column with the group of each comparison, for `rate_groups`.
    ranking, item, place : str or int, optional
        For rankings of several items with one row per item: columns with the ranking (race,
        ballot), the item and its place.
    places : list of str or int, optional
        For rankings with one row each: columns with the best item, the second best, and so on.
    unlisted : {"absent", "last"}, default="absent"
        Whether items that a ranking does not contain took no part in it, or are below all others.
    time : str or int, optional
        Column with dates or numbers, for ratings that change; "rows" is the order of the rows. The
        board shows the last time, `Leaderboard.at` other times.
    context : str, int or list of them, optional
        Columns with conditions under which strength may differ, such as the court surface. The
        board shows their mix, `Leaderboard.at` one of them. With `time` or `context` the model is
        "bradley-terry".
    team_separator : str, optional
        Text between the members of a team in the columns of the items, such as "+". In a frame a
        side may also be a tuple, list or set of items, or a dictionary from item to weight. The
        margin is the sum of the ratings on the first side minus the sum on the second, and the
        board rates the members.
    team_weights : pair of str or int, optional
        Columns with the weights of the members on each side, in their order: the share of the time
        that each of them played. By default 1.
    features : array-like of shape (n_items, n_features), optional
        Features of the items, in the order of ``pairs.items``.
    prior : Leaderboard, dict or series of ratings, table, or a list of these, optional
        Prior ratings, such as those of a language model as a judge, in any unit. The ratings are
        r = Bβ + u, with B the prior ratings, and only ‖u‖² is regularized. With few votes the board
        follows the prior, with many the votes; unless `alpha` is a number, cross-validation on the
        votes sets the balance. A table has a column of items and one or more of ratings. Items that
        only the prior rates are on the board; items that it does not rate are imputed as average.
        ``board.prior`` has the weight of the prior.
    side : bool, default=False
        Whether to estimate an advantage of the first side, as one of the effects.
    covariates : list of str, or dict from name to array-like of shape (n_comparisons,), optional
        Covariates of the comparisons: columns of the frame (a pair of columns is their difference),
        names of covariates of PairData, or values. Numbers are from the point of view of the first
        item; text is categorical. Their effects are in ``board.effects``.
    model : {"bradley-terry", "least-squares", "plackett-luce"}, optional
        Model of the outcomes; by default "plackett-luce" for rankings, "bradley-terry" for wins,
        ties and losses, and "least-squares" for other numbers. "bradley-terry" does not accept
        margins. "least-squares" of wins, ties and losses rates the mean outcome, from −1 to 1, with
        ratings that are finite without `alpha`. "plackett-luce": the best item of a ranking is
        chosen first, then the best of the others, and so on, with probabilities proportional to
        e^r. The other models treat a ranking of n items as pairs with the weight 2/n.
    ties : {"half", "davidson"}, default="half"
        Model of ties: half a win of each item (a margin of 0), or an outcome with a probability of
        its own (Davidson 1970), for "bradley-terry" only.
    alpha : float or "auto", optional
        Regularization, positive; by default 1e-8 without a prior and "auto" with one. "auto"
        selects the value that predicts best the comparisons left out one at a time (up to 3,000
        items or features). It predicts few comparisons better, but shrinks all ratings towards 0,
        so that intervals cover the true ratings less often than the confidence.
    half_life : float, optional
        Half-life of rating changes, in days if times are dates; selected on later comparisons by
        default.
    scales : PriorScales, optional
        Standard deviations of ratings, their changes and their differences between contexts, such
        as ``board.scales`` of another board; selected on later comparisons by default.
    reweight : bool, default=False
        Whether to weight comparisons by the agreement of their judge with the other judges; needs
        `judge`.
    intervals : bool, default=True
        Whether ratings have intervals: every comparison, or every cluster, is left out in closed
        form, and an interval is rating ± quantile of Student's t × standard error.
    confidence : float, default=0.95
        Confidence of the intervals, between 0 and 1.
    clusters : array-like of shape (n_comparisons,), optional
        Labels that dependent comparisons share: judges, users, matches. Whole clusters are left
        out. By default the clusters, or else the judges, of the data.
    scale : {"margin", "logit", "elo"}, default="margin"
        Unit of the ratings. "margin" is the unit of the model: log odds, or the unit of the
        outcomes for least squares. "elo" are Elo points around 1000: 400 points are odds of 10
        to 1. Least squares has no log odds and accepts "margin" only.
    anchor : str or int, optional
        Item with the rating 0, or 1000 Elo points, and no error. By default the mean of the items
        has this rating; items that only won or only lost, directly or through other items, are not
        part of the mean of log odds, since only alpha keeps their ratings finite.
    order : {"rating", "lower"}, default="rating"
        Rank by the rating, or by the lower end of its interval.
    min_comparisons : int, default=0
        Items with fewer comparisons are listed without a rank. So are items without any
        comparison, unless features or a prior rate them.

    Returns
    -------
    Leaderboard
        Prints as a table.

    Warns
    -----
    UserWarning
        If the items are in components that were never compared with each other. Without features
        their ratings cannot be compared: each component has its own ranks.

    Notes
    -----
    The jackknife is exact up to 2,000 items (any number with features), without a refit: the
    ratings without each comparison or cluster. Above, the covariance is estimated from 200 random
    combinations of the same changes, and the comparisons of a cluster are corrected by their own
    leverage only; the last line of the table says so.

    Alpha is selected once, not again without each comparison.

    Examples
    --------
    Winners and losers:

    >>> rate({"winner": ["Ann", "Bob", "Ann"], "loser": ["Bob", "Cleo", "Cleo"]})["Ann"].rank
    1

    Two sides and an outcome:

    >>> games = {
    ...     "white": ["Ann", "Cleo", "Bob", "Bob", "Ann"],
    ...     "black": ["Bob", "Ann", "Cleo", "Cleo", "Bob"],
    ...     "result": ["white", "black", "Bob", "Cleo", "draw"],
    ... }
    >>> board = rate(games, sides=("white", "black"), outcome="result", alpha=0.01, intervals=False)
    >>> board
    rank  item    rating  w/t/l
       1  Ann †    0.958  2/1/0
       2  Bob †   -0.363  1/1/2
       3  Cleo †  -0.595  1/0/2
    † few data: fewer than 5 comparisons, or only wins, only ties or only losses
    ratings: log odds
    5 comparisons of 3 items by bradley-terry, alpha 0.01
    ratings explain 33% of the outcomes; the rest is ties, chance or circles
    circles (a beats b beats c beats a): 11% of mean results, 0.17 times chance
    boards without circles have 0.00 … 3.76 times chance in 95% of cases
    >>> board.expected_margin("Ann", "Cleo").value
    1.552...

    Scores and margins:

    >>> matches = {"home": list("ABC"), "away": list("BCA"), "hg": [3, 1, 0], "ag": [1, 1, 2]}
    >>> board = rate(matches, sides=("home", "away"), scores=("hg", "ag"), margin=True)
    >>> board.model, round(board.expected_margin("A", "C").value, 2)
    ('least-squares', 2.0)

    Rankings, the best item first:

    >>> rate([["Ann", "Bob", "Cleo"], ["Bob", "Ann", "Cleo"], ["Ann", "Cleo", "Bob"]]).model
    'plackett-luce'
    """
    columns = {
        "winner": winner,
        "loser": loser,
        "sides": sides,
        "outcome": outcome,
        "outcome_words": outcome_words,
        "wins": wins,
        "scores": scores,
        "margin": margin,
        "magnitude": magnitude,
        "tie": tie,
        "weight": weight,
        "judge": judge,
        "cluster": cluster,
        "group": group,
        "ranking": ranking,
        "item": item,
        "place": place,
        "places": places,
        "unlisted": unlisted,
        "time": time,
        "context": context,
        "team_separator": team_separator,
        "team_weights": team_weights,
    }
    named_columns = {name: column for name, column in columns.items() if column is not None}
    data = read_comparisons(pairs, covariates, named_columns)
    check_options(intervals, confidence, order, min_comparisons)

    if model is None:
        model = default_model(data)
    check_model(
        model,
        data,
        has_features=features is not None,
        has_prior=prior is not None,
        side=side,
        ties=ties,
        alpha=alpha,
    )
    check_scales_apply(data, scales, half_life)

    X = None if features is None else check_features(features, data.n_items)
    priors = None
    if prior is not None:
        data, priors = read_prior(prior, data)
    cluster_codes = check_clusters(data, clusters, intervals)

    inputs = ModelInputs(
        model=model,
        covariates=covariate_columns(data, side),
        side=side,
        ties=ties,
        alpha=alpha,
        scales=scales,
        half_life=half_life,
        features=X,
        clusters=cluster_codes,
        has_cluster_argument=clusters is not None,
        priors=priors,
    )
    fitted = fit_model(data, inputs)
    if reweight:
        data = _reweight_judges(data, fitted, confidence)
        inputs = replace(inputs, covariates=covariate_columns(data, side))
        fitted = fit_model(data, inputs)
    _warn_about_components(data, fitted)

    presentation = Presentation(
        scale=make_scale(scale, anchor, fitted, data.items),
        anchor=anchor,
        order=order,
        min_comparisons=min_comparisons,
        confidence=float(confidence),
        has_intervals=bool(intervals),
    )
    return Leaderboard(data, model, fitted, inputs, presentation)


def _reweight_judges(data: PairData, fitted: RatingModel, confidence: float) -> PairData:
    """Multiply the weights of the comparisons by the weight of their judge."""
    judges = evaluate_judges(data, fitted, confidence)
    if not judges or data.judges is None:
        raise ValueError(
            "reweight=True weights judges by their agreement with each other; name the column of "
            "judges with judge=. It must contain at least two judges."
        )
    # A weight must be positive.
    judge_weights = {judge.name: max(judge.weight, LEAST_WEIGHT) for judge in judges}
    weight_factors = [judge_weights[name] for name in np.asarray(data.judges).tolist()]
    return replace(data, weight=data.weight * weight_factors)


def _warn_about_components(data: PairData, fitted: RatingModel) -> None:
    n_components = int(fitted.components.max())  # numbered from 1, the largest first
    if n_components == 1:
        return
    item_of_smallest = data.items[np.argmax(fitted.components)]
    if data.teams is not None:
        warn_user(
            f"the comparisons do not determine all differences of the ratings: the items are in "
            f"{n_components} components (the item {item_of_smallest!s} is in the smallest), since "
            "members always played together, or never met; ratings and ranks are valid within a "
            "component only. Write members who always play together as one item."
        )
        return
    warn_user(
        f"the items are in {n_components} components that were never compared with each other "
        f"(the item {item_of_smallest!s} is in the smallest); ratings and ranks are valid within a "
        "component only. Comparisons between components, or features of the items, connect them."
    )


def rate_groups(
    pairs: Comparisons,
    groups: ArrayLike | None = None,
    *,
    covariates: CovariateArgument = None,
    features: MatrixLike | None = None,
    model: str | None = None,
    clusters: ArrayLike | None = None,
    **options: Any,
) -> dict[Hashable, Leaderboard]:
    """Make one board for each group of comparisons: by prompt, by country, by year.

    Use it to compare the ratings of the same items under different conditions.

    Parameters
    ----------
    pairs : data frame, dict of columns, PairData or PairGraph
        As in `rate`.
    groups : array-like of shape (n_comparisons,), optional
        Label of each comparison; by default those of the column `group` (``pairs.groups``).
    covariates, features, clusters
        As in `rate`, for all groups together.
    model : {"bradley-terry", "least-squares", "plackett-luce"}, optional
        As in `rate`. The default depends on the outcomes of all groups, so that every group has
        the same model.
    **options
        Other arguments of `rate`, including columns of a frame.

    Returns
    -------
    dict from label to Leaderboard
        Each board has the items of the comparisons of its group.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> games = PairGraph([0, 1, 1, 2], [1, 0, 2, 1])
    >>> boards = rate_groups(games, ["old", "new", "new", "new"], alpha=0.1, intervals=False)
    >>> {label: [row.item for row in board] for label, board in boards.items()}
    {'new': [1, 2, 0], 'old': [0, 1]}
    """
    columns = {name: options.pop(name) for name in PAIR_COLUMNS if name in options}
    data = read_comparisons(pairs, covariates, columns)
    if groups is None:
        groups = data.groups
    if groups is None:
        raise ValueError(
            "the comparisons have no groups; name their column with group=, or pass one label for "
            "each comparison."
        )
    encoded_groups = encode_labels("groups", groups, data.n_pairs)
    if model is None:
        model = default_model(data)
    X = None if features is None else check_features(features, data.n_items)
    if clusters is not None:
        encoded_clusters = encode_labels("clusters", clusters, data.n_pairs)
        data = replace(data, clusters=encoded_clusters.labels[encoded_clusters.codes])

    boards = {}
    for code, label in enumerate(encoded_groups.labels.tolist()):
        group_rows = np.flatnonzero(encoded_groups.codes == code)
        group_data, items_of_group = data.take(group_rows).compact()
        covariate_names = list(group_data.covariates)
        try:
            boards[label] = rate(
                group_data,
                covariates=covariate_names if covariate_names else None,
                features=None if X is None else X[items_of_group],
                clusters=None if clusters is None else group_data.clusters,
                model=model,
                **options,
            )
        except ValueError as error:
            raise ValueError(f"group {label!s}: {error}") from error
    return boards
