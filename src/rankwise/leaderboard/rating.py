"""rate: a leaderboard from comparisons; by groups, and judged on what came later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.datasets import PairData
from rankwise.datasets.pair_data import PAIR_COLUMNS
from rankwise.datasets.times import as_times
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.errors import warn_user
from rankwise.formatting import TextTable, join_tables
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.arguments import (
    check_clusters,
    check_features,
    check_model,
    check_options,
    default_model,
    encode_labels,
    read_comparisons,
)
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.covariates import check_identified, covariates_of
from rankwise.leaderboard.forecast import (
    ForecastScore,
    base_chances,
    board_chances,
    compare_forecasts,
    elo_chances,
)
from rankwise.leaderboard.inference.ranks import rank_table, win_counts
from rankwise.leaderboard.judges import LEAST_WEIGHT, judges_of
from rankwise.leaderboard.models.bradley_terry import BradleyTerry
from rankwise.leaderboard.models.dynamic import PriorScales, make_dynamic
from rankwise.leaderboard.models.least_squares_model import LeastSquares
from rankwise.leaderboard.models.plackett_luce_model import PlackettLuce
from rankwise.leaderboard.prior import read_prior
from rankwise.leaderboard.rating_scale import scale_of
from rankwise.runtime.threads import single_threaded

MODELS: dict[str, type[LeastSquares]] = {
    "least-squares": LeastSquares,
    "bradley-terry": BradleyTerry,
    "plackett-luce": PlackettLuce,
}
LEAST_ALPHA = 1e-13  # less is lost in rounding, and the system singular


@single_threaded
def rate(
    pairs: Any,
    *,
    features: Any = None,
    prior: Any = None,
    side: bool = False,
    covariates: Any = None,
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
    anchor: Any = None,
    order: str = "rating",
    min_comparisons: int = 0,
    **columns: Any,
) -> Leaderboard:
    """Rate items by comparisons of them, with intervals.

    Use it for matches, votes, tastings, races and ballots.

    Wins, ties and losses are rated by the Bradley–Terry model: item i beats j with probability
    ``σ(r_i − r_j + zᵀγ)``, with effects γ of covariates z if there are any. Ratings are log odds.
    They minimize ``(1/W) Σ_k ω_k ℓ_k + α ‖r‖²``, where ℓ_k is minus the log likelihood of
    comparison k.

    Margins and numeric scores are rated by least squares: the ratings minimize
    ``(1/W) Σ_k ω_k (δ_k − (r_i − r_j + z_kᵀγ))² + α ‖r‖²`` over the comparisons k = (i beat j by
    δ_k). This is the HodgeRank or Massey rating, regularized. It is RankRLS with one feature for
    each item; with `features` it is RankRLS on them.

    The arguments, by what they are for:

    * the comparisons: `pairs`, and columns of a frame, `time` and `context` among them;
    * what is known of the items: `features`, `prior`;
    * what else explains an outcome: `side`, `covariates`;
    * the model: `model`, `ties`, `alpha`, and with time or context `half_life`, `scales`;
    * judges: `reweight`;
    * intervals: `intervals`, `confidence`, `clusters`;
    * what the board shows: `scale`, `anchor`, `order`, `min_comparisons`.

    Parameters
    ----------
    pairs : data frame, dict of columns, PairData or PairGraph
        One comparison a row. A frame (pandas, polars, Arrow, …) needs to be told which columns say
        what: ``winner="winner", loser="loser"``, or ``sides=("model_a", "model_b"),
        outcome="winner"``, see `**columns`. `rankwise.datasets.read_pairs` reads a file.
    features : array-like of shape (n_items, n_features), optional
        Features of the items in the order of ``pairs.items``.
    prior : Leaderboard, dict or series of ratings, table, or a list of these, optional
        What somebody else says of the items, such as a language model as a judge, in any unit: the
        ratings are r = Bβ + u, B the ratings by the priors, and only ‖u‖² is regularized. With few
        votes the board is that of the judge, with many that of the votes; how far votes that are
        left out one at a time are foreseen decides in between, unless `alpha` is a number. A table
        has a column of items and one or more of ratings. Items that only the prior rates are on the
        board; those that it does not rate it is taken to call average. ``board.prior`` says what it
        was worth.
    side : bool
        Whether the first side may have an advantage, which is then one of the effects.
    covariates : list of str, or dict from name to array-like of shape (n_comparisons,), optional
        What else may explain the outcomes: columns of the frame (two of them in a tuple are their
        difference), names of the covariates of PairData, or values. Numbers speak for the first
        item; text is a category. Their effects are in ``board.effects``.
    model : {"bradley-terry", "least-squares", "plackett-luce"}, optional
        Model of the outcomes; by default "plackett-luce" for rankings of several items,
        "bradley-terry" if all outcomes are wins, ties and losses, and "least-squares" if any is
        another number. "bradley-terry" does not accept margins. "least-squares" of wins, ties and
        losses rates the mean outcome, from −1 to 1, with ratings that are finite without `alpha`.
        "plackett-luce": the best item of a ranking is chosen first, then the best of the others,
        and so on, with probabilities proportional to e^r. The other models take rankings as pairs
        that weigh 2/n.
    ties : {"half", "davidson"}
        How the model takes ties. "half": a margin of 0, or half a win of each. "davidson" is for
        "bradley-terry" and gives a tie a probability of its own (Davidson 1970).
    alpha : float or "auto", optional
        Regularization, positive; next to none, 1e-8, if not given and without a prior. "auto" takes
        the one that foresees comparisons best that are left out one at a time (at most 3,000 items
        or features). It predicts few comparisons better, but pulls all
        ratings towards 0, so that the intervals cover the truth less often than they say.
    half_life : float, optional
        Time, in days for dates, after which half of what changed in a rating is left; chosen on
        later comparisons if not given.
    scales : Scales, optional
        How far ratings, their changes and their differences between contexts are apart, such as
        ``board.scales`` of another board; chosen on later comparisons if not given.
    reweight : bool
        Whether comparisons count as much as their judge agrees with the others; needs `judge`.
    intervals : bool
        Whether ratings have intervals: every comparison, or every cluster, is left out in closed
        form, and an interval is rating ± quantile of Student's t × standard error.
    confidence : float
        Probability with which an interval should cover the truth, between 0 and 1.
    clusters : array-like of shape (n_comparisons,), optional
        Labels of what is independent if single comparisons are not: judges, users, matches. Whole
        clusters are left out. By default the clusters, or else the judges, that the data name.
    scale : {"margin", "logit", "elo"}
        Unit of the ratings. "margin" is the unit of the model: log odds, or the outcomes' own unit
        for least squares. "logit" are log odds. "elo" are Elo points: 400 / ln 10 for one unit of
        log odds, around 1000, so that 400 points are odds of 10 to 1. Least squares has no log
        odds and accepts "margin" only.
    anchor : str or int, optional
        The item that the ratings are counted from: it has the rating 0, or 1000 Elo points, and no
        error. By default that is the mean of the items.
    order : {"rating", "lower"}
        Rank by the rating, or by the lower end of its interval.
    min_comparisons : int
        Items with fewer comparisons stand below the line: they have a rating, but no rank. So does
        an item without any, unless features rate it.
    **columns
        For a frame: winner, loser, sides, outcome, wins, scores, margin, magnitude, weight, tie,
        judge, cluster, ranking, item, place, as in `rankwise.datasets.read_pairs`.

        ``time="date"`` is for ratings that change: dates or numbers, or "rows" for the order of
        the rows. The board is of the last day, `Leaderboard.at` has others. ``context="surface"``
        names circumstances that an item may be better or worse in; the board is of their mix,
        `Leaderboard.at` has one of them. Both are Bradley and Terry's model, so that outcomes are
        wins, ties and losses.

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

    Alpha is chosen once, not again without a comparison.

    Examples
    --------
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
    † thin: fewer than 5 comparisons, or all of them ended alike
    ratings: log odds
    5 comparisons of 3 items by bradley-terry, alpha 0.01
    ratings explain 33% of the outcomes; the rest is ties, chance or circles
    circles (a beats b beats c beats a): 11% of mean results, 0.17 times chance
    boards without circles have 0.00 … 3.76 times chance in 95% of cases
    >>> board.expected_margin("Ann", "Cleo").value
    1.552...
    """
    data = read_comparisons(pairs, covariates, columns)
    check_options(intervals, confidence, order, min_comparisons)
    name = check_model(
        model, data, features=features, prior=prior, side=side, ties=ties, alpha=alpha
    )
    X = None if features is None else check_features(features, data.n_items)
    priors = None
    if prior is not None:
        data, priors = read_prior(prior, data)
    codes = check_clusters(data, clusters, intervals)

    def learn(data: PairData) -> LeastSquares:
        tally, B = (
            ComparisonCounts.of(data, control.columns),
            None if priors is None else priors.basis,
        )
        if name == "plackett-luce" and data.rankings is not None:
            learner: LeastSquares = PlackettLuce(tally, data.rankings)
        else:
            learner = MODELS[name](tally, X, B, ties)
        if control.names:
            check_identified(learner.system, control.names)
        if data.times is not None or data.contexts:
            return make_dynamic(data, control.columns, ties, scales, half_life)
        strength = (1e-8 if priors is None else "auto") if alpha is None else alpha
        strength = learner.choose_alpha() if strength == "auto" else float(strength)
        return learner.solve(max(LEAST_ALPHA, strength))

    control = covariates_of(data, side)
    fitted = learn(data)
    if reweight:
        weights = {judge.name: judge.weight for judge in judges_of(data, fitted, confidence)}
        if not weights:
            raise ValueError(
                "reweight=True weighs judges by how far they agree; say who judged with judge=, "
                "and have at least two."
            )
        factors = [max(weights[name], LEAST_WEIGHT) for name in np.asarray(data.judges).tolist()]
        data = replace(data, weight=data.weight * factors)
        control = covariates_of(data, side)
        fitted = learn(data)
    n_components = int(fitted.components.max())
    if n_components > 1:
        smallest = data.items[np.argmax(fitted.components)]
        warn_user(
            f"the items fall in {n_components} components that were never compared with each other "
            f"(the item {smallest!s} is in the smallest); ratings and ranks hold inside each only. "
            "Comparisons across them, or features of the items, would join them.",
        )
    unit = scale_of(scale, anchor, fitted, data.items, fitted.components)
    records = win_counts(fitted.tally, data.rankings)
    spread = unit.spread(fitted.spread(codes, records.thin)) if intervals else None
    ratings = unit.values(fitted.ratings)
    is_known = (records.n > 0) | (X is not None) | (priors is not None)
    table = rank_table(
        data.items, ratings, spread, fitted.components, records, confidence=confidence,
        order=order, known=is_known, counted=is_known & (records.n >= min_comparisons),
    )  # fmt: skip
    worth, said = None, ""
    if priors is not None:
        worth = priors.worth(fitted.ratings, unit.factor, fitted.left_out())
        said = worth.note(data.n_pairs) + (f"; {priors.note}" if priors.note else "")
    return Leaderboard(
        columns=table,
        items=data.items,
        ratings=ratings,
        spread=spread,
        control=control,
        scale=unit,
        model=name,
        ties=fitted.ties,
        alpha=fitted.alpha,
        confidence=float(confidence),
        n_comparisons=data.n_pairs,
        n_clusters=None if codes is None or not intervals else int(codes.max()) + 1,
        notes=tuple(filter(None, [said, fitted.note])),
        comparisons=data,
        prior=worth,
        fitted=fitted,
        asked={
            "side": side, "scale": scale, "anchor": anchor, "order": order, "ties": ties,
            "min_comparisons": min_comparisons, "intervals": intervals, "confidence": confidence,
            "features": X,
            "clusters": None if clusters is None else codes,
            "prior": None if priors is None else priors.table,
        },
    )  # fmt: skip


def rate_groups(
    pairs: Any,
    groups: ArrayLike | None = None,
    *,
    covariates: Any = None,
    features: Any = None,
    model: str | None = None,
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
    covariates, features, clusters
        As in `rate`, for all groups together.
    model : {"bradley-terry", "least-squares", "plackett-luce"}, optional
        As in `rate`. The default depends on the outcomes of all groups, so that every group has
        the same model.
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
    >>> boards = rate_groups(games, ["old", "new", "new", "new"], alpha=0.1, intervals=False)
    >>> {label: [row.item for row in board] for label, board in boards.items()}
    {'new': [1, 2, 0], 'old': [0, 1]}
    """
    columns = {name: options.pop(name) for name in PAIR_COLUMNS if name in options}
    data = read_comparisons(pairs, covariates, columns)
    labels = data.groups if groups is None else groups
    if labels is None:
        raise ValueError(
            "the comparisons have no groups; read them with group=, or pass one label for each."
        )
    encoded = encode_labels("groups", labels, data.n_pairs)
    model = default_model(data) if model is None else model
    X = None if features is None else check_features(features, data.n_items)
    if clusters is not None:
        units = encode_labels("clusters", clusters, data.n_pairs)
        data = replace(data, clusters=units.labels[units.codes])
    boards = {}
    for code, label in enumerate(encoded.labels.tolist()):
        chosen = np.flatnonzero(encoded.codes == code)
        of_group, members = data.take(chosen).compact()
        try:
            boards[label] = rate(
                of_group,
                covariates=list(of_group.covariates) or None,
                features=None if X is None else X[members],
                model=model,
                clusters=None if clusters is None else of_group.clusters,
                **options,
            )
        except ValueError as error:
            raise ValueError(f"group {label!s}: {error}") from error
    return boards


@dataclass(frozen=True, repr=False, eq=False)
class Backtest:
    """Result of `backtest`; prints as a table.

    Attributes
    ----------
    board : Leaderboard
        Of the comparisons before.
    methods : tuple of ForecastScore
        The board first, then what it is compared with.
    n_before, n_later : int
        Number of comparisons.
    until : str
        The date or number that divides them.
    """

    board: Leaderboard
    methods: tuple[ForecastScore, ...]
    n_before: int
    n_later: int
    until: str

    def table(self) -> TextTable:
        """One line for each method."""
        header = ["method", "log loss", "± s.e.", "behind", "± s.e.", "right"]
        rows = [
            [m.name, f"{m.log_loss:.4f}", f"{m.error:.4f}", f"{m.behind:+.4f}",
             f"{m.behind_error:.4f}", f"{m.accuracy:.1%}"]
            for m in self.methods
        ]  # fmt: skip
        title = f"{self.n_later} comparisons from {self.until} on, foreseen from {self.n_before}"
        notes = ["log loss: less is better; behind: by how much it is above that of the board"]
        return TextTable(header, rows, title=title, names=(0,), notes=notes)

    def __repr__(self) -> str:
        return join_tables([self.table()], "text")


def backtest(
    pairs: Any,
    until: Any,
    *,
    covariates: Any = None,
    model: str | None = None,
    **options: Any,
) -> Backtest:
    """Rate the comparisons before a date, and judge the board on those from it on.

    Beside the board stand the same without time and context, Elo ratings (frozen at the date, and
    followed game by game, with the step that foresaw the comparisons before the date best), and the
    shares of win, draw and loss. An item that is new after the date counts as average.

    Parameters
    ----------
    pairs : data frame, dict of columns or PairData
        As in `rate`.
    until : date or number
        The first moment that is foreseen.
    covariates, model
        As in `rate`; with the model "least-squares" the time only divides the comparisons.
    **options
        Other arguments of `rate`, and columns of a frame.

    Returns
    -------
    Backtest
        Prints as a table.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.integers(0, 6, (2, 400))
    >>> second = (first + 1 + second % 5) % 6
    >>> better, other = np.minimum(first, second), np.maximum(first, second)
    >>> winner = np.where(rng.random(400) < 0.7, better, other)
    >>> games = {"a": first, "b": second, "winner": winner, "year": np.arange(400) // 100 + 1}
    >>> result = backtest(games, 4, time="year", sides=("a", "b"), outcome="winner")
    >>> [method.name for method in result.methods]
    ['the board', 'without time', 'Elo, followed', 'Elo, frozen', 'base rate']
    """
    columns = {name: options.pop(name) for name in PAIR_COLUMNS if name in options}
    data = read_comparisons(pairs, covariates, columns)
    if data.times is None:
        raise ValueError("backtest divides comparisons by time; say with time= when each was made.")
    cut = as_times([until], 1)
    if cut.dtype.kind != data.times.dtype.kind:
        raise ValueError(f"until={until!r}, but times are as {data.times[0]}.")
    order = np.argsort(data.times, kind="stable")
    first, last = data.times[order[[0, -1]]]
    is_before = data.times[order] < cut[0]
    if is_before.all() or not is_before.any():
        n, where = data.n_pairs, "before" if is_before.all() else "after"
        raise ValueError(f"all {n} comparisons are {where} {until}: from {first} to {last}.")
    data = data.take(order)
    before, later = data.take(is_before), data.take(~is_before)
    controls, (known, _) = list(data.covariates) or None, before.compact()
    plain = replace(known, times=None, contexts={})
    is_static = model in ("least-squares", "plackett-luce")
    said = np.sign(later.outcome)
    board = rate(plain if is_static else known, covariates=controls, model=model, **options)
    chances = {"the board": board_chances(board, later)}
    if board.scales is not None:
        c = board.scales
        variance = c.constant**2 + c.time**2 + c.context**2
        alike = ("side", "ties", "reweight")
        static: dict[str, Any] = {name: options[name] for name in alike if name in options}
        static |= {"alpha": 0.5 / variance / float(before.weight.sum()), "intervals": False}
        other = rate(plain, covariates=controls, model="bradley-terry", **static)
        chances["without time"] = board_chances(other, later)
    chances |= elo_chances(before, later)
    chances["base rate"] = base_chances(before, len(said))
    tested = compare_forecasts(said, chances)
    return Backtest(board, tested, before.n_pairs, later.n_pairs, str(until))
