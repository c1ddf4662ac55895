"""Leaderboard: the table that `rate` returns, its scale, circles, and results head to head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import PairData
from rankwise.datasets.times import in_days
from rankwise.environment import require
from rankwise.formatting import join_words
from rankwise.groups import encode_groups
from rankwise.leaderboard import render
from rankwise.leaderboard.algebra.leave_comparison_out import LARGEST_WEIGHT
from rankwise.leaderboard.covariates import Covariates, Effect, effects_of
from rankwise.leaderboard.forecast import Chances, Forecast, chances_of, forecast
from rankwise.leaderboard.inference.intransitivity import Intransitivity, intransitivity_of
from rankwise.leaderboard.inference.ranks import rank_table, win_counts
from rankwise.leaderboard.inference.robustness import (
    VotesToFlip,
    blocks_to_flip,
    next_places,
    votes_to_flip,
)
from rankwise.leaderboard.judges import Judge, judges_of, krippendorff
from rankwise.leaderboard.models.dynamic import PriorScales, RatingComponents
from rankwise.leaderboard.models.least_squares_model import LeastSquares
from rankwise.leaderboard.prior import Prior
from rankwise.leaderboard.rating_scale import RatingScale
from rankwise.uncertainty.jackknife_errors import COVARIANCE_LIMIT, CovarianceRoot
from rankwise.validation import check_option

WHOLE = ("rank", "best_rank", "worst_rank", "best_of_all", "worst_of_all", "tier")


class LeaderboardRow(NamedTuple):
    """One item of a `Leaderboard`; intervals are None if the board or the item has none.

    Attributes
    ----------
    rank : int or None
        1 is best; items of equal rating share a rank. Counted inside the component. None is below
        the line: the item has fewer comparisons than `min_comparisons`, or none at all.
    item : str or int
        The label.
    rating : float
        On the scale of the board.
    low, high : float or None
        Interval of the rating.
    best_rank, worst_rank : int or None
        The ranks that are possible: 1 + the number of items that are surely above, and
        the number of those that are not surely below. For this item alone: with the
        confidence c, a share of 1 - c of the items is expected to lie outside.
    best_of_all, worst_of_all : int or None
        The same for all items at once: with the confidence of the board all true ranks are inside.
    tier : int or None
        A tier begins with an item that is surely below the first one of the tier before; its items
        are not surely below that first one. Two of them may differ. Thin items have none.
    n, wins, ties, losses : int
        Comparisons of the item, and how they ended.
    thin : bool
        Whether there are fewer than 5 comparisons, or all of them ended alike.
    component : int
        Items of different components were never compared, not even by way of others, and their
        ratings cannot be compared either; 1 is the largest component. Always 1 if there are
        features, which make all items comparable.
    """

    rank: int | None
    item: Any
    rating: float
    low: float | None
    high: float | None
    best_rank: int | None
    worst_rank: int | None
    best_of_all: int | None
    worst_of_all: int | None
    tier: int | None
    n: int
    wins: int
    ties: int
    losses: int
    thin: bool
    component: int


class RatingDifference(NamedTuple):
    """By how much one item is above another; the interval is None on a board without."""

    value: float
    low: float | None
    high: float | None


class RatingHistory(NamedTuple):
    """Ratings of an item over time.

    Attributes
    ----------
    times : ndarray
        Dates or numbers.
    rating, low, high : ndarray
        The rating and its interval, NaN on a board without.
    """

    times: NDArray[Any]
    rating: Array
    low: Array
    high: Array


class HeadToHead(NamedTuple):
    """Two items that met, in every entry.

    Attributes
    ----------
    first, second : ndarray of shape (n_edges,)
        Their numbers in the items of the board.
    n : ndarray of shape (n_edges,)
        Number of comparisons.
    observed : ndarray of shape (n_edges,)
        Weighted mean outcome of the first one: 1 if it won all, −1 if it lost all.
    expected : ndarray of shape (n_edges,)
        Mean outcome that ratings and effects let expect in the same comparisons.
    """

    first: Indices
    second: Indices
    n: Indices
    observed: Array
    expected: Array


@dataclass(frozen=True, repr=False, eq=False)
class Leaderboard:
    """Result of `rate`: prints as a table, best item first.

    ``board["Ann"]`` is the row of an item; iterating gives the rows.

    Attributes
    ----------
    columns : dict from str to ndarray or None
        The rows by column, for very many items; the names are those of `LeaderboardRow`. A rank or
        tier of 0 is None there, and so is a low or high of NaN.
    items : ndarray of shape (n_items,)
        Labels in the order of the data.
    ratings : ndarray of shape (n_items,)
        Their ratings.
    spread : Spread or None
        Covariance of the ratings and effects by the jackknife.
    control : Covariates
        Columns of the covariates.
    scale : Scale
        The unit of ratings, margins and effects.
    model : str
        Model of the outcomes: "bradley-terry", "least-squares" or "plackett-luce".
    ties : float or None
        The parameter of the ties, if the model has one.
    alpha : float
        Regularization in use.
    confidence : float
        Probability with which an interval should cover the truth.
    n_comparisons : int
        Number of comparisons.
    n_clusters : int or None
        Number of clusters (judges, matches) if whole clusters were left out.
    notes : tuple of str
        What a reader must know, one sentence each.
    comparisons : PairData
        What the board was made from.
    prior : Prior or None
        What the priors were worth, if there were any.
    fitted : LeastSquares
        The model behind the ratings, before they were put on the scale.
    asked : dict
        Other arguments of `rate` that the board was made with, as a file keeps them.

    Examples
    --------
    >>> from rankwise.leaderboard import rate
    >>> board = rate({"winner": list("ABAC"), "loser": list("BCCA")})
    >>> [row.item for row in board], board["B"].rank
    (['A', 'B', 'C'], 2)
    """

    columns: dict[str, NDArray[Any] | None]
    items: NDArray[Any]
    ratings: Array
    spread: CovarianceRoot | None
    control: Covariates
    scale: RatingScale
    model: str
    ties: float | None
    alpha: float
    confidence: float
    n_comparisons: int
    n_clusters: int | None
    notes: tuple[str, ...]
    comparisons: PairData
    prior: Prior | None
    fitted: LeastSquares
    asked: dict[str, Any]

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What the covariates add to the margin of the first item, with intervals."""
        values = self.scale.factor * self.fitted.effects
        return effects_of(self.control, values, self.spread, self.confidence)

    @cached_property
    def judges(self) -> tuple[Judge, ...]:
        """How far each judge agrees with the others; empty if the data name no judges."""
        return judges_of(self.comparisons, self.fitted, self.confidence)

    @cached_property
    def krippendorff(self) -> float | None:
        """How far the judges agree about the same two items: 1 is always, 0 chance; or None."""
        data = self.comparisons
        return krippendorff(data.first, data.second, data.outcome) if self.judges else None

    @cached_property
    def circles(self) -> Intransitivity:
        """How far the comparisons go in circles, and what else the ratings do not explain."""
        return intransitivity_of(self.fitted, has_rankings=self.comparisons.rankings is not None)

    @property
    def n_components(self) -> int:
        """Number of sets of items that can be compared with each other."""
        return int(np.max(np.asarray(self.columns["component"])))

    @property
    def intervals(self) -> str | None:
        """How the intervals were found: "jackknife", "posterior" or None."""
        if self.spread is None:
            return None
        return "jackknife" if self.scales is None else "posterior"

    @cached_property
    def rows(self) -> tuple[LeaderboardRow, ...]:
        """By component, the largest first, and rank; those below the line last."""
        lists = []
        for name, column in self.columns.items():
            values = [None] * len(self) if column is None else column.tolist()
            if name in WHOLE:
                values = [value or None for value in values]
            elif name in ("low", "high"):
                values = [None if value != value else value for value in values]
            lists.append(values)
        return tuple(map(LeaderboardRow._make, zip(*lists, strict=True)))

    def __iter__(self) -> Iterator[LeaderboardRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, item: Any) -> LeaderboardRow:
        self.position(item)
        return self._row_of[item]

    def expected_margin(self, a: Any, b: Any) -> RatingDifference:
        """By how much a is expected to beat b, on neutral ground: the difference of their ratings.

        Parameters
        ----------
        a, b : str or int
            Labels of two items of one component.

        Returns
        -------
        Margin
            The difference on the scale of the board and its interval. The interval is that of the
            difference, and narrower than the two intervals of the ratings suggest if the errors
            are correlated.
        """
        i, j = self.comparable(a, b)
        value = float(self.ratings[i] - self.ratings[j])
        if self.spread is None:
            return RatingDifference(value, None, None)
        quantile = self.spread.quantile((1 + self.confidence) / 2)
        width = quantile * self.spread.error_of_difference(i, j)
        return RatingDifference(value, value - width, value + width)

    def above(self, a: Any, b: Any) -> float:
        """How sure it is that a is above b, between 0 and 1: the probability by Student's t."""
        i, j = self.comparable(a, b)
        if self.spread is None:
            raise ValueError("the board has no intervals; do not pass intervals=False to rate.")
        value = float(self.ratings[i] - self.ratings[j])
        error = self.spread.error_of_difference(i, j)
        return self.spread.probability(value / error) if error else (np.sign(value) + 1) / 2

    def votes_to_flip(self, a: Any, b: Any, *, by: Any = None) -> VotesToFlip:
        """How many comparisons hold the order of two items: fewer cannot turn it around.

        Use it before you announce a winner: a first place that rests on 13 of 9,000 votes is one
        that a few careless judges could have made. Comparisons are left out one at a time, each
        time the one whose absence brings the two closest (exact for least squares; a refit confirms
        the result for Bradley–Terry), with the same λ. That is an upper bound of the fewest; a
        lower bound stands beside it.

        Parameters
        ----------
        a, b : str or int
            Labels of two items of one component.
        by : {"judge", "cluster", "group"} or array-like of shape (n_comparisons,), optional
            Leave out whole blocks of comparisons: those of a judge, cluster or group of the data,
            or of the same label, such as a prompt.

        Returns
        -------
        Overturn
            `n`, `at_least`, of how many, and which ones.

        Examples
        --------
        >>> from rankwise.leaderboard import rate
        >>> games = {"winner": ["Ann", "Ann", "Ann", "Bob"], "loser": ["Bob", "Bob", "Bob", "Ann"]}
        >>> board = rate(games, winner="winner", loser="loser")
        >>> board.votes_to_flip("Ann", "Bob")
        Overturn(n=2, at_least=None, of=4, removed=array([0, 1]))
        """
        i, j = self.comparable(a, b)
        if self.ratings[i] < self.ratings[j]:
            i, j = j, i
        if not self._has_votes:
            raise ValueError(
                "votes_to_flip is for boards of comparisons of two items by least squares or "
                "Bradley–Terry, without time and context, and with at most 2,000 items."
            )
        if by is None:
            return votes_to_flip(self.fitted, i, j)
        labels = by
        if isinstance(by, str):
            check_option("by", by, ("judge", "cluster", "group"))
            labels = getattr(self.comparisons, f"{by}s")
            if labels is None:
                raise ValueError(f"by={by!r}: the comparisons name no {by}s; pass {by}= to rate.")
        encoded = encode_groups(labels, self.n_comparisons)
        return blocks_to_flip(self.fitted, i, j, encoded.codes, encoded.labels)

    @cached_property
    def holds_by(self) -> dict[Any, VotesToFlip]:
        """What holds each ranked item above the next one of its component, by its label.

        The first one is held above any of the next ten, whoever needs the fewest. Empty without
        intervals and for boards of hundreds of items, where it would take more than a second.
        Bradley–Terry by one Newton step; `votes_to_flip` confirms it by a refit.
        """
        if not self._has_votes or self.intervals is None:
            return {}
        if len(self) * len(self.fitted.tally.count) > LARGEST_WEIGHT:
            return {}
        holds: dict[Any, VotesToFlip] = {}
        for component in range(1, self.n_components + 1):
            ranked = [r for r in self.rows if r.component == component and r.rank is not None]
            ranked.sort(key=lambda row: -row.rating)
            order = [self._positions[row.item] for row in ranked]
            overturns = next_places(self.fitted, order)
            holds |= dict(zip([row.item for row in ranked[:-1]], overturns, strict=True))
        return holds

    @property
    def _has_votes(self) -> bool:
        model, is_paired = self.fitted, self.comparisons.rankings is None
        return is_paired and model.can_leave_out and model.system.size <= COVARIANCE_LIMIT

    def at(self, time: Any = None, context: Any = None) -> Leaderboard:
        """The board of another day, or of one context; of a board made with time= or context=.

        Parameters
        ----------
        time : date or number, optional
            The last day if not given. After it, what changed fades with the half-life.
        context : label, or dict from name to label for several contexts, optional
            The mix of all if not given.
        """
        if self.parts is None:
            raise ValueError("the board was made without time= and context=; pass them to rate.")
        ratings, spread = self._in(self.parts.point(time, context))
        records = win_counts(self.fitted.tally, self.comparisons.rankings)
        counted = np.array([self[item].rank is not None for item in self.items.tolist()])
        columns = rank_table(
            self.items, ratings, spread, self.fitted.components, records, counted=counted,
            confidence=self.confidence, order=self.asked["order"], known=records.n > 0,
        )  # fmt: skip
        return replace(self, columns=columns, ratings=ratings, spread=spread)

    def _in(self, phi: Array) -> tuple[Array, CovarianceRoot | None]:
        """Ratings and their errors in one of the circumstances."""
        model: Any = self.fitted
        ratings = self.scale.values(model.system.ratings_at(phi, model.unknowns)[0])
        return ratings, None if self.spread is None else self.scale.spread(model.spread_at(phi))

    def paths(self, items: Any = None, n_times: int = 60) -> dict[Any, RatingHistory]:
        """Ratings over time, of a board made with time=.

        Parameters
        ----------
        items : sequence of labels, optional
            By default the first eight of the board.
        n_times : int
            Moments from the first comparison to the last.

        Returns
        -------
        dict from label to Path
            From the first to the last comparison of the item.
        """
        data, parts = self.comparisons, self.parts
        if parts is None or data.times is None:
            raise ValueError("the board was made without time=; pass it to rate.")
        days, kind = in_days(data.times), data.times.dtype
        moments = np.linspace(days.min(), days.max(), n_times)
        times = (86400 * moments).astype(np.int64).astype(kind) if kind.kind == "M" else moments
        table = np.full((3, n_times, len(self)), np.nan)
        for k, time in enumerate(times):
            table[0, k], spread = self._in(parts.point(time))
            if spread is not None:
                width = spread.quantile((1 + self.confidence) / 2) * spread.errors
                table[1:, k] = table[0, k] - width, table[0, k] + width
        step, paths = moments[1] - moments[0], {}
        for item in [row.item for row in self.rows[:8]] if items is None else items:
            at = self.position(item)
            met = days[(data.first == at) | (data.second == at)]
            is_seen = (moments > met.min() - step) & (moments < met.max() + step)
            paths[item] = RatingHistory(times[is_seen], *table[:, is_seen, at])
        return paths

    def predict(
        self, home: Any, away: Any, *, time: Any = None, context: Any = None, neutral: bool = False
    ) -> Forecast:
        """Chances of win, draw and loss of games to come.

        Ratings become chances by the curve of the model. Least squares have none: a curve is fitted
        to the margins of comparisons that were left out one at a time.

        Parameters
        ----------
        home, away : label, or sequence of labels
            The items on the first and on the second side.
        time : date or number, or a sequence of them
            When; the last day of the board if not given.
        context : as in `at`, or dict from name to a sequence of labels for several games
            Where; the mix of all if not given.
        neutral : bool
            Whether to leave out the advantage of the first side, if the board has one.

        Returns
        -------
        Forecast
            Three floats, or three arrays for several games.

        Examples
        --------
        >>> from rankwise.leaderboard import rate
        >>> games = {"home": list("abcabc"), "away": list("bcacab"), "winner": list("abcxab")}
        >>> games["winner"] = ["home", "home", "tie", "away", "away", "home"]
        >>> board = rate(games, sides=("home", "away"), outcome="winner", alpha=0.1)
        >>> sum(board.predict("a", "b"))
        1.0
        """
        return forecast(self, home, away, time, context, neutral)

    @cached_property
    def chances(self) -> Chances:
        """The curve from margins to chances of win, draw and loss."""
        return chances_of(self.fitted)

    @property
    def parts(self) -> RatingComponents | None:
        """What the ratings of a board with time or context are made of."""
        return getattr(self.fitted, "parts", None)

    @property
    def scales(self) -> PriorScales | None:
        """The scales of a board with time or context, which `rate` takes for the next one."""
        return None if self.parts is None else self.parts.scales

    @cached_property
    def head_to_head(self) -> HeadToHead:
        """Observed and expected outcomes of every two items that met."""
        tally, expected = self.fitted.tally, self.fitted.expected(self.fitted.margins())
        weights, flows = tally.sums
        total, ends = tally.by_edge(weights), (tally.first[tally.edges], tally.second[tally.edges])
        count = tally.by_edge(tally.by_pair(tally.count.astype(np.float64))).astype(np.intp)
        observed, expected = tally.by_edge(flows) / total, tally.by_edge(weights * expected) / total
        return HeadToHead(*ends, count, observed, expected)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the resamples and the model, ready for JSON."""
        alike = (
            *("model", "ties", "alpha", "confidence", "intervals", "n_comparisons"),
            *("n_components", "n_clusters"),
        )
        return {
            **{name: getattr(self, name) for name in alike},
            **self.circles._asdict(),
            "krippendorff": self.krippendorff,
            "scale": self.scale.name,
            "anchor": None if self.scale.members is None else self.items.tolist()[self.scale.at],
            "notes": list(self.notes),
            "prior": None if self.prior is None else self.prior._asdict(),
            "effects": [effect._asdict() for effect in self.effects],
            "judges": [judge._asdict() for judge in self.judges],
            "rows": [row._asdict() for row in self.rows],
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the fields of `LeaderboardRow` as columns."""
        pandas = require("pandas", "Leaderboard.to_frame")
        return pandas.DataFrame(list(self.rows), columns=list(LeaderboardRow._fields))

    def to_text(self, format: str = "text") -> str:
        """The board as text, Markdown, CSV, JSON, LaTeX or HTML.

        Parameters
        ----------
        format : {"text", "markdown", "csv", "json", "latex", "html"}
            CSV has the fields of `LeaderboardRow` in full precision; the others are for reading.
        """
        return render.render(self, format)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_text("html")

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {label: k for k, label in enumerate(self.items.tolist())}

    @cached_property
    def _row_of(self) -> dict[Any, LeaderboardRow]:
        return {row.item: row for row in self.rows}

    def position(self, item: Any) -> int:
        """Number of an item in the order of the data."""
        if item not in self._positions:
            items = join_words(map(repr, self._positions))
            raise KeyError(f"{item!r} is not on the board; its items are {items}")
        return self._positions[item]

    def comparable(self, a: Any, b: Any) -> tuple[int, int]:
        """The numbers of two items, if they are in one component."""
        i, j = self.position(a), self.position(b)
        if self[a].component != self[b].component:
            raise ValueError(
                f"{a!r} and {b!r} are in different components: no chain of comparisons leads from "
                "one to the other, so their ratings cannot be compared."
            )
        return i, j
