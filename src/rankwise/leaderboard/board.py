"""Leaderboard: the result of `rate`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import AnyArray, Array, Labels
from rankwise.caching import cached_property
from rankwise.datasets import PairData
from rankwise.groups import encode_groups
from rankwise.leaderboard import render
from rankwise.leaderboard.algebra.effective_clusters import effective_clusters
from rankwise.leaderboard.board_inputs import ModelInputs, Presentation
from rankwise.leaderboard.board_records import HeadToHead, RatingDifference, RatingHistory
from rankwise.leaderboard.board_types import Context, Contexts, Label, Moment, Side
from rankwise.leaderboard.covariates import Effect, effect_table, side_advantage
from rankwise.leaderboard.forecast import (
    Chances,
    Forecast,
    fit_board_chances,
    is_one_side,
    pair_sides,
    predict_games,
)
from rankwise.leaderboard.inference.head_to_head import head_to_head
from rankwise.leaderboard.inference.intransitivity import Intransitivity, measure_intransitivity
from rankwise.leaderboard.inference.ranks import (
    FEW_UNITS,
    RatedItems,
    WinCounts,
    effective_number,
    interval_columns,
    rank_table,
    win_counts,
)
from rankwise.leaderboard.inference.rating_histories import rating_histories, time_grid
from rankwise.leaderboard.inference.robustness import (
    VotesToFlip,
    blocks_to_flip,
    votes_to_flip,
    votes_to_flip_neighbors,
)
from rankwise.leaderboard.inference.team_margins import team_contrast, team_notes
from rankwise.leaderboard.judges import Judge, evaluate_judges, krippendorff
from rankwise.leaderboard.models.base import RatingModel
from rankwise.leaderboard.models.bradley_terry import BradleyTerry
from rankwise.leaderboard.models.dynamic import DynamicBradleyTerry
from rankwise.leaderboard.models.least_squares_model import LeastSquares
from rankwise.leaderboard.models.rating_terms import PriorScales, RatingTerms
from rankwise.leaderboard.prior import Prior
from rankwise.leaderboard.ranked_board import RankedBoard
from rankwise.leaderboard.rating_scale import RatingScale
from rankwise.runtime.threads import single_threaded
from rankwise.uncertainty.possible_ranks import COVARIANCE_LIMIT, JOINT_LIMIT, CovarianceRoot
from rankwise.validation import check_option

MOST_FLIP_ENTRIES = 2_500_000  # items times outcomes; more votes to flip take over a second


@dataclass(frozen=True, repr=False, eq=False)
class Leaderboard(RankedBoard):
    """Result of `rate`; prints as a table, best item first.

    ``board["Ann"]`` is the row of an item; iterating yields the rows. A board is a fitted model and
    a presentation; everything else is computed at the first access.

    Attributes
    ----------
    comparisons : PairData
        The comparisons.
    model : str
        Name of the model: "bradley-terry", "least-squares" or "plackett-luce".
    fitted : RatingModel
        The fitted model; its ratings are not on the scale of the board.
    inputs : ModelInputs
        Other inputs of the ratings: features, covariates, priors.
    presentation : Presentation
        Scale, order and confidence.

    Examples
    --------
    >>> from rankwise.leaderboard import rate
    >>> board = rate({"winner": list("ABAC"), "loser": list("BCCA")})
    >>> [row.item for row in board], board["B"].rank
    (['A', 'B', 'C'], 2)
    """

    comparisons: PairData
    model: str
    fitted: RatingModel
    inputs: ModelInputs
    presentation: Presentation

    @property
    def items(self) -> Labels:
        """Labels in the order of the data."""
        return self.comparisons.items

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons."""
        return self.comparisons.n_pairs

    @property
    def scale(self) -> RatingScale:
        """Unit of ratings, margins and effects."""
        return self.presentation.scale

    @property
    def confidence(self) -> float:
        """Confidence of the intervals."""
        return self.presentation.confidence

    @property
    def ties(self) -> float | None:
        """Parameter of the ties, if the model has one."""
        return self.fitted.ties

    @property
    def alpha(self) -> float:
        """Regularization."""
        return self.fitted.alpha

    @cached_property
    def ratings(self) -> Array:
        """Rating of each item, in the order of `items`."""
        return self.scale.convert_ratings(self.fitted.ratings)

    @cached_property
    @single_threaded
    def spread(self) -> CovarianceRoot | None:
        """Covariance of the ratings and effects; None without intervals."""
        if not self.presentation.has_intervals:
            return None
        has_few_data = self._records.thin
        covariance = self.fitted.covariance(self.inputs.clusters, has_few_data)
        return self.scale.convert_covariance(covariance)

    @property
    def interval_half_widths(self) -> Array:
        """Half of the width of each interval (`high` − rating); NaN without intervals."""
        if self.spread is None:
            return np.full(len(self.items), np.nan)
        quantile = self.spread.quantile((1 + self.confidence) / 2)
        return quantile * self.spread.errors  # to each side of the rating

    @cached_property
    def _records(self) -> WinCounts:
        return win_counts(self.fitted.counts, self.comparisons.rankings)

    @cached_property
    def columns(self) -> dict[str, AnyArray | None]:
        """The rows by column, for many items; the names are those of `LeaderboardRow`.

        A rank or tier of None is 0 here, and a low or high of None is NaN.
        """
        rated = self._rated_items
        intervals = None
        if self.spread is not None:
            intervals = interval_columns(
                rated,
                self.spread,
                confidence=self.confidence,
                n_effective_units=self._n_effective_units,
                n_units_by_pair=self._effective_clusters_of_pairs,
            )
        return rank_table(rated, intervals, order=self.presentation.order)

    @property
    def _rated_items(self) -> RatedItems:
        """Which items are rated and ranked, with their ratings."""
        n_comparisons = self._records.n
        components = self.fitted.components
        has_features_or_prior = self.inputs.features is not None or self.inputs.priors is not None
        is_rated = (n_comparisons > 0) | has_features_or_prior
        if self.comparisons.teams is not None:  # an item alone in its component has no own rating
            component_size = np.bincount(components)[components]
            is_rated &= component_size > 1
        return RatedItems(
            items=self.items,
            ratings=self.ratings,
            components=components,
            win_counts=self._records,
            is_rated=is_rated,
            is_ranked=is_rated & (n_comparisons >= self.presentation.min_comparisons),
        )

    @property
    def _n_effective_units(self) -> float:
        """Effective number of the units that intervals leave out; a posterior leaves out none.

        It decides how simultaneous ranks are computed, not the intervals of the ratings.
        """
        if self.parts is not None:  # intervals of the posterior do not leave out units
            return np.inf
        # Intervals leave out units: comparisons, or clusters of them.
        weights = self.comparisons.weight
        if self.inputs.clusters is None:
            return effective_number(weights)
        cluster_weights = np.bincount(self.inputs.clusters, weights)
        return effective_number(np.asarray(cluster_weights, np.float64))

    @property
    def _effective_clusters_of_pairs(self) -> Array | None:
        """Effective number of clusters of each difference; None if clusters are many or unknown."""
        clusters = self.inputs.clusters
        leave_one_out = self.fitted.leave_one_out()
        if clusters is None or leave_one_out is None:
            return None
        # Only few clusters make the degrees of freedom of each pair matter; the matrix of all pairs
        # is for few items.
        is_needed = self._n_effective_units < FEW_UNITS and len(self) <= JOINT_LIMIT
        if not is_needed:
            return None
        return effective_clusters(leave_one_out, clusters)

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters (judges, matches) that intervals leave out; None without clusters."""
        clusters = self.inputs.clusters
        if clusters is None or not self.presentation.has_intervals:
            return None
        return int(clusters.max()) + 1

    @cached_property
    def prior(self) -> Prior | None:
        """Weight of the prior ratings; None without a prior."""
        leave_one_out = self.fitted.leave_one_out()
        if self.inputs.priors is None or leave_one_out is None:
            return None
        return self.inputs.priors.weigh(self.fitted.ratings, self.scale.factor, leave_one_out)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Remarks for readers of the board, one sentence each."""
        notes = []
        if self.prior is not None and self.inputs.priors is not None:
            prior_note = self.prior.note(self.n_comparisons)
            if self.inputs.priors.note:
                prior_note += f"; {self.inputs.priors.note}"
            notes.append(prior_note)
        if self.fitted.note:
            notes.append(self.fitted.note)
        if self.comparisons.teams is not None:
            notes += team_notes(self.fitted, self.scale.factor)
        return tuple(notes)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """Effects of the covariates on the margin of the first item, with intervals."""
        values = self.scale.factor * self.fitted.effects
        return effect_table(self.inputs.covariates, values, self.spread, self.confidence)

    @cached_property
    @single_threaded
    def judges(self) -> tuple[Judge, ...]:
        """Agreement of each judge with the others; empty if the data name no judges."""
        return evaluate_judges(self.comparisons, self.fitted, self.confidence)

    @cached_property
    def krippendorff(self) -> float | None:
        """Agreement of judges about the same two items: 1 is perfect, 0 chance; None if unknown."""
        if not self.judges:
            return None
        data = self.comparisons
        return krippendorff(data.first, data.second, data.outcome)

    @cached_property
    @single_threaded
    def circles(self) -> Intransitivity:
        """Share of the outcomes that the ratings do not explain, and a test of circles."""
        has_rankings = self.comparisons.rankings is not None
        is_testable = not has_rankings and self.parts is None
        return measure_intransitivity(self.fitted, is_testable=is_testable)

    @property
    def n_components(self) -> int:
        """Number of sets of items that can be compared with each other."""
        return int(self.fitted.components.max())

    @property
    def intervals(self) -> str | None:
        """Method of the intervals: "jackknife", "posterior" or None."""
        if not self.presentation.has_intervals:
            return None
        return "jackknife" if self.parts is None else "posterior"

    def expected_margin(self, a: Side, b: Side) -> RatingDifference:
        """Return the difference of two ratings: the expected margin of a over b without covariates.

        Parameters
        ----------
        a, b : str or int, or tuple of them
            Labels of two items of one component; with teams also tuples of members, or dictionaries
            from member to weight.

        Returns
        -------
        RatingDifference
            The difference on the scale of the board and its interval, which is narrower than the
            two intervals of the ratings suggest if their errors are correlated.
        """
        if self.comparisons.teams is not None:
            return self._team_margin(a, b)
        i, j = self.comparable(a, b)
        value = float(self.ratings[i] - self.ratings[j])
        if self.spread is None:
            return RatingDifference(value, low=None, high=None)
        error = self.spread.error_of_difference(i, j)
        return self._with_interval(value, self.spread, error)

    def _team_margin(self, a: Side, b: Side) -> RatingDifference:
        """Expected margin of a team over another one."""
        # The margin is a weighted sum of the unknowns of the model, and its standard error the norm
        # of the same sum of the rows of a root of their covariance.
        item_weights = self.contrast(a, b)
        weights_of_unknowns = self.fitted.weights_of_unknowns(item_weights)
        value = self.scale.factor * float(weights_of_unknowns @ self.fitted.unknowns)
        if self.spread is None or self.spread.unknowns_root is None:
            return RatingDifference(value, low=None, high=None)
        error = float(np.linalg.norm(weights_of_unknowns @ self.spread.unknowns_root))
        return self._with_interval(value, self.spread, error)

    def _with_interval(
        self, value: float, spread: CovarianceRoot, error: float
    ) -> RatingDifference:
        half_width = spread.quantile((1 + self.confidence) / 2) * error
        return RatingDifference(value, low=value - half_width, high=value + half_width)

    def above(self, a: Label, b: Label) -> float:
        """Return the probability, by Student's t, that the true rating of a is above that of b.

        Parameters
        ----------
        a, b : label
            Names of the items.

        Returns
        -------
        float
            The probability.
        """
        i, j = self.comparable(a, b)
        if self.spread is None:
            raise ValueError("the board has no intervals; rate again without intervals=False.")
        value = float(self.ratings[i] - self.ratings[j])
        error = self.spread.error_of_difference(i, j)
        if error == 0:  # certain: 0, ½ for equal ratings, or 1
            return float(np.sign(value) + 1) / 2
        return self.spread.probability(value / error)

    @single_threaded
    def votes_to_flip(
        self, a: Label, b: Label, *, by: str | ArrayLike | None = None
    ) -> VotesToFlip:
        """Return how many comparisons must be removed to change the order of two items.

        Use it before announcing a winner: a few careless judges can cause a first place that 13 of
        9,000 votes decide. Comparisons are removed one at a time, always the one whose removal
        brings the two items closest, for the same λ (exactly for least squares; a refit confirms
        the result for Bradley–Terry). That is an upper bound of the fewest; least squares also has
        a lower bound.

        Parameters
        ----------
        a, b : str or int
            Labels of two items of one component.
        by : {"judge", "cluster", "group"} or array-like of shape (n_comparisons,), optional
            Remove whole blocks of comparisons: all comparisons of a judge, cluster or group of the
            data, or all comparisons with the same label, such as a prompt.

        Returns
        -------
        VotesToFlip
            `n`, `at_least`, the total number, and the removed ones.

        Examples
        --------
        >>> from rankwise.leaderboard import rate
        >>> games = {"winner": ["Ann", "Ann", "Ann", "Bob"], "loser": ["Bob", "Bob", "Bob", "Ann"]}
        >>> board = rate(games, winner="winner", loser="loser")
        >>> board.votes_to_flip("Ann", "Bob")
        VotesToFlip(n=2, at_least=None, of=4, removed=array([0, 1]))
        """
        i, j = self.comparable(a, b)
        if self.ratings[i] < self.ratings[j]:
            i, j = j, i  # item i is above
        model = self._model_with_removable_votes
        if model is None:
            raise ValueError(
                "votes_to_flip is for boards of comparisons of two items by least squares or "
                "Bradley–Terry, without time and context, and with at most 2,000 items."
            )
        if by is None:
            return votes_to_flip(model, i, j)
        blocks = encode_groups(self._block_labels(by), self.n_comparisons)
        return blocks_to_flip(model, i, j, blocks.codes, blocks.labels)

    def _block_labels(self, by: str | ArrayLike) -> ArrayLike:
        """Return the labels that the argument `by` of `votes_to_flip` names."""
        if not isinstance(by, str):
            return by
        check_option("by", by, ("judge", "cluster", "group"))
        data = self.comparisons
        labels_by_column = {"judge": data.judges, "cluster": data.clusters, "group": data.groups}
        labels = labels_by_column[by]
        if labels is None:
            raise ValueError(f"by={by!r}: the comparisons have no {by}s; pass {by}= to rate.")
        return labels

    @cached_property
    @single_threaded
    def votes_to_flip_next(self) -> dict[Label, VotesToFlip]:
        """Votes to flip each ranked item and the next one of its component, by label.

        The first item is compared with each of the next ten; the fewest votes count. Empty without
        intervals and for boards of hundreds of items, for which it would take more than a second.
        Bradley–Terry by one Newton step; the method `votes_to_flip` confirms it by a refit.
        """
        model = self._model_with_removable_votes
        if model is None or not self.presentation.has_intervals:
            return {}
        if len(self) * len(model.counts.count) > MOST_FLIP_ENTRIES:
            return {}
        # In each component, votes that reverse each ranked item and the next one.
        by_item: dict[Label, VotesToFlip] = {}
        for component in range(1, self.n_components + 1):
            rows = [row for row in self.rows if row.component == component]
            ranked = [row for row in rows if row.rank is not None]
            ranked.sort(key=lambda row: -row.rating)
            positions = [self._positions[row.item] for row in ranked]
            flips = votes_to_flip_neighbors(model, positions)
            for row, flip in zip(ranked[:-1], flips, strict=True):
                by_item[row.item] = flip
        return by_item

    @property
    def _model_with_removable_votes(self) -> LeastSquares | BradleyTerry | None:
        """The model, if it is one of pairs from which votes can be removed."""
        # Models of comparisons of two items that are small enough to remove votes in closed form.
        model = self.fitted
        if not isinstance(model, (LeastSquares, BradleyTerry)):
            return None
        has_rankings = self.comparisons.rankings is not None
        is_too_large = model.system.n_unknowns > COVARIANCE_LIMIT
        if has_rankings or is_too_large:
            return None
        return model

    def at(self, time: Moment | None = None, context: Context = None) -> Leaderboard:
        """Return the board at another time or in one context, if it has time or context.

        Parameters
        ----------
        time : date or number, optional
            The last time by default. After it, the time-varying part decays with the half-life.
        context : label, or dict from name to label for several contexts, optional
            The mix of all levels by default.

        Returns
        -------
        Leaderboard
            The board at that time, in that context.
        """
        model = self.fitted
        if not isinstance(model, DynamicBradleyTerry):
            raise ValueError("the board was made without time= and context=; pass them to rate.")
        if self.presentation.has_intervals:
            _ = model.unknowns_root  # computed once for all times and contexts
        return replace(self, fitted=model.at(time, context))

    @single_threaded
    def paths(
        self, items: Collection[Label] | None = None, n_times: int = 60
    ) -> dict[Label, RatingHistory]:
        """Return ratings over time, of a board with time.

        Parameters
        ----------
        items : sequence of labels, optional
            By default the first eight of the board.
        n_times : int, default=60
            Number of times from the first comparison to the last.

        Returns
        -------
        dict from label to RatingHistory
            From the first to the last comparison of each item.
        """
        data = self.comparisons
        if self.parts is None or data.times is None:
            raise ValueError("the board was made without time=; pass it to rate.")
        if items is None:
            items = [row.item for row in self.rows[:8]]
        grid = time_grid(data.times, n_times)
        boards = [self.at(time) for time in grid.times]
        return rating_histories(
            data,
            grid,
            ratings=np.array([board.ratings for board in boards]),
            half_widths=np.array([board.interval_half_widths for board in boards]),
            positions={item: self.position(item) for item in items},
        )

    def predict(
        self,
        home: Side | Collection[Side],
        away: Side | Collection[Side],
        *,
        time: Moment | ArrayLike | None = None,
        context: Contexts = None,
        neutral: bool = False,
    ) -> Forecast:
        """Predict the probabilities of win, draw and loss of games.

        The probabilities come from the model. Least squares has no probabilities: a curve is fitted
        to the margins of comparisons that were left out one at a time.

        Parameters
        ----------
        home, away : label, or sequence of labels
            The items on the first and on the second side. On a board of teams, a tuple or set of
            labels is one team, and a dictionary is one with weights; a list contains the sides of
            several games.
        time : date or number, or a sequence of them, optional
            Time of the games; the last time of the board by default.
        context : as in `at`, or dict from name to a sequence of labels for several games, optional
            Context of the games; the mix of all levels by default.
        neutral : bool, default=False
            Whether to omit the advantage of the first side, if the board has one.

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
        is_one_game = is_one_side(home, are_teams=self.comparisons.teams is not None)
        games = pair_sides(home, away, is_one_game=is_one_game)
        # Weights of the items in the margin of each game, (n_games, n_items).
        contrasts = np.array([self.contrast(first, second) for first, second in games])
        contrasts = contrasts.reshape(len(games), len(self.items))
        margins = predict_games(self.fitted, contrasts, time, context, is_one_game=is_one_game)
        if not neutral:  # effects are on the scale of the board, margins on that of the model
            margins = margins + side_advantage(self.effects) / self.scale.factor
        probabilities = self.chances.probabilities(margins)
        if is_one_game:
            return Forecast(*probabilities[0].tolist())
        return Forecast(*probabilities.T)

    @cached_property
    @single_threaded
    def chances(self) -> Chances:
        """Curve from margins to probabilities of win, draw and loss."""
        return fit_board_chances(self.fitted)

    @property
    def parts(self) -> RatingTerms | None:
        """Components of the ratings of a board with time or context."""
        if isinstance(self.fitted, DynamicBradleyTerry):
            return self.fitted.rating_terms
        return None

    @property
    def scales(self) -> PriorScales | None:
        """Scales of a board with time or context, to pass to `rate` for the next board."""
        return None if self.parts is None else self.parts.scales

    @cached_property
    def head_to_head(self) -> HeadToHead:
        """Observed and expected outcomes of every two items that met."""
        return head_to_head(self.fitted)

    def rate_arguments(self) -> dict[str, Any]:
        """Return the arguments with which `rate` makes this board from its comparisons.

        Returns
        -------
        dict
            Keyword arguments of `rate`.
        """
        inputs = self.inputs
        presentation = self.presentation
        is_dynamic = self.scales is not None
        return {
            "model": self.model,
            "side": inputs.side,
            "ties": inputs.ties,
            "features": inputs.features,
            "prior": None if inputs.priors is None else inputs.priors.table,
            "alpha": None if is_dynamic else self.alpha,
            "scales": self.scales,
            "clusters": inputs.clusters if inputs.has_cluster_argument else None,
            "scale": self.scale.name,
            "anchor": presentation.anchor,
            "order": presentation.order,
            "min_comparisons": presentation.min_comparisons,
            "intervals": presentation.has_intervals,
            "confidence": presentation.confidence,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the covariance and the model, ready for JSON.

        Returns
        -------
        dict
            Rows, options, effects and notes.
        """
        return render.leaderboard_document(self)

    def to_text(self, format: str = "text") -> str:
        """Return the board as text, Markdown, CSV, JSON, LaTeX or HTML.

        Parameters
        ----------
        format : {"text", "markdown", "csv", "json", "latex", "html"}, default="text"
            CSV has the fields of `LeaderboardRow` in full precision.

        Returns
        -------
        str
            The board.
        """
        return render.render(self, format)

    def contrast(self, first: object, second: object) -> Array:
        """Return the weight of each item in the margin of one side over another.

        Parameters
        ----------
        first, second : label, or tuple, set or dict of labels
            Items, or teams on a board of teams.

        Returns
        -------
        ndarray of shape (n_items,)
            1 for items on the first side and −1 for items on the second.
        """
        teams = self.fitted.counts.teams
        if teams is not None:
            return team_contrast(teams, self.position, first, second)
        i, j = self.comparable(first, second)
        item_weights = np.zeros(len(self.items))
        item_weights[i] = 1.0
        item_weights[j] = -1.0
        return item_weights

    def comparable(self, a: object, b: object) -> tuple[int, int]:
        """Return the positions of two items of the same component.

        Parameters
        ----------
        a, b : label
            Names of the items.

        Returns
        -------
        tuple of int
            Positions in `items`.
        """
        i = self.position(a)
        j = self.position(b)
        if self.fitted.components[i] != self.fitted.components[j]:
            raise ValueError(
                f"{a!r} and {b!r} are in different components: no chain of comparisons connects "
                "them, so their ratings cannot be compared."
            )
        return i, j
