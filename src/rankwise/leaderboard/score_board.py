"""TaskLeaderboard: the result of `rate_scores`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import AnyArray, Array, Indices, Labels, Mask
from rankwise.caching import cached_property
from rankwise.formatting import JsonObject
from rankwise.leaderboard import render_scores
from rankwise.leaderboard.algebra.team_rows import number_by_size
from rankwise.leaderboard.inference.missing_cells import choose_cells, missing_excess
from rankwise.leaderboard.inference.ranks import FEW, RatedItems, WinCounts, rank_table
from rankwise.leaderboard.inference.ranks_by_pairs import RatingErrors, interval_columns_by_pairs
from rankwise.leaderboard.inference.score_errors import ScoreErrors
from rankwise.leaderboard.inference.task_influence import UnitInfluence
from rankwise.leaderboard.inference.task_power import detectable_difference, tasks_needed
from rankwise.leaderboard.models.task_scores import AdditiveModel, TaskDesign
from rankwise.leaderboard.ranked_board import RankedBoard
from rankwise.leaderboard.score_notes import score_notes, score_warnings
from rankwise.leaderboard.score_options import ScoreOptions
from rankwise.leaderboard.score_records import (
    CellsToFlip,
    ScoreDifference,
    ScoreNoise,
    SuggestedCell,
    TaskInfluence,
    TasksNeeded,
)
from rankwise.leaderboard.score_table import ScoreTable
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int

MOST_TIED = 10  # models tied with the first that `next_cells` considers


@dataclass(frozen=True, repr=False, eq=False)
class TaskLeaderboard(RankedBoard):
    """Result of `rate_scores`: models rated by their scores over tasks; prints as a table.

    ``board["a"]`` is the row of a model; iterating yields the rows, as for `Leaderboard`. Wins,
    ties and losses of a row count, over the tasks, the other models with a lower, equal and higher
    score; n is the number of tasks.

    Attributes
    ----------
    table : ScoreTable
        The scores, as they were passed.
    rated_table : ScoreTable
        The scores from which the ratings are computed: larger is better, rescaled, missing cells
        filled according to `missing`.
    options : ScoreOptions
        Arguments of `rate_scores`.

    Examples
    --------
    >>> from rankwise.leaderboard import rate_scores
    >>> scores = {
    ...     "model": ["a", "b", "c"],
    ...     "t1": [0.9, 0.8, 0.5],
    ...     "t2": [0.7, 0.5, 0.4],
    ...     "t3": [0.8, 0.7, 0.4],
    ...     "t4": [0.6, 0.5, 0.3],
    ...     "t5": [0.9, 0.7, 0.5],
    ... }
    >>> board = rate_scores(scores, item="model", score=["t1", "t2", "t3", "t4", "t5"])
    >>> [row.item for row in board], board["b"].tier
    (['a', 'b', 'c'], 2)
    """

    table: ScoreTable
    rated_table: ScoreTable
    options: ScoreOptions

    @property
    def items(self) -> Labels:
        """Labels of the models."""
        return self.rated_table.models

    @property
    def confidence(self) -> float:
        """Confidence of the intervals."""
        return self.options.confidence

    @cached_property
    def design(self) -> TaskDesign:
        """Observed cells, weights, and the units that are left out."""
        table = self.rated_table
        weights = table.task_weights
        # Units are left out as a whole: tasks, or families of tasks.
        units: Indices = np.arange(len(table.tasks))
        if table.families is not None:
            units = table.families
            if self.options.balance == "family":  # each family has the same weight
                family_weights = np.bincount(units, weights)
                weights = weights / family_weights[units]
        return TaskDesign(table.is_observed, weights=weights / weights.mean(), units=units)

    @cached_property
    @single_threaded
    def model(self) -> AdditiveModel:
        """The fitted additive model."""
        return AdditiveModel(self.design, self.rated_table.scores)

    @cached_property
    def score_errors(self) -> ScoreErrors:
        """Errors of the ratings, by tasks and by seeds."""
        n_tasks = self.design.is_observed.sum(axis=1)
        least_tasks = self.options.min_tasks * len(self.rated_table.tasks)
        baseline = None
        if self.options.baseline is not None:
            baseline = self.position(self.options.baseline)
        return ScoreErrors(
            model=self.model,
            repetitions=self.rated_table.repetitions,
            has_enough_tasks=n_tasks >= least_tasks,
            baseline=baseline,
        )

    @cached_property
    @single_threaded
    def errors(self) -> RatingErrors:
        """Errors of all differences of ratings."""
        noise = self.score_errors.seed_noise
        if self.options.tasks == "fixed" and noise is not None:
            return self.score_errors.for_fixed_tasks(noise)
        return self.score_errors.for_sample_of_tasks()

    @property
    def is_ranked(self) -> Mask:
        """Models with a rank, in the order of `items`."""
        return self.score_errors.is_ranked

    @property
    def ratings(self) -> Array:
        """Rating of each model: the completed mean of its scores, in the order of `items`."""
        return self.model.ratings

    @property
    def n_components(self) -> int:
        """Number of sets of models that common tasks connect."""
        return int(self.model.components.max()) + 1

    @cached_property
    def _records(self) -> WinCounts:
        # Every model against every other one on their common tasks; NaN counts nowhere.
        scores = self.rated_table.scores
        n_tasks = self.design.is_observed.sum(axis=1)
        wins = np.array([np.sum(row > scores) for row in scores])
        losses = np.array([np.sum(row < scores) for row in scores])
        ties_with_itself = n_tasks
        ties = np.array([np.sum(row == scores) for row in scores]) - ties_with_itself
        has_few_tasks = n_tasks < min(FEW, len(self.rated_table.tasks))
        return WinCounts(n_tasks, wins, ties, losses, thin=has_few_tasks)

    @cached_property
    @single_threaded
    def columns(self) -> dict[str, AnyArray | None]:
        """The rows by column, for many items; the names are those of `LeaderboardRow`."""
        rated = RatedItems(
            items=self.items,
            ratings=self.ratings,
            components=number_by_size(self.model.components),
            win_counts=self._records,
            is_rated=self.score_errors.jackknife.remains_connected,
            is_ranked=self.is_ranked,
        )
        intervals = interval_columns_by_pairs(
            rated,
            self.errors,
            reference=float(self.score_errors.reference @ self.ratings),
            confidence=self.confidence,
        )
        return rank_table(rated, intervals)

    @property
    def unit_labels(self) -> Labels:
        """Labels of the tasks, or of the families if these are left out."""
        table = self.rated_table
        if table.family_labels is None:
            return table.tasks
        return table.family_labels

    @cached_property
    def influence(self) -> UnitInfluence:
        """The ratings without each task, or family."""
        return UnitInfluence(self.model, self.score_errors.left_out, self.is_ranked)

    @property
    def unit_shares(self) -> Array:
        """Share of each task, or family, in the squared errors of all differences."""
        return self.influence.shares()

    @cached_property
    @single_threaded
    def tasks(self) -> tuple[TaskInfluence, ...]:
        """What each task, or each family of tasks, decides; the largest share first."""
        if not self.is_ranked.any():
            return ()
        return self.influence.rows(self.items, self.unit_labels)

    @cached_property
    def effective_tasks(self) -> float:
        """Effective number of tasks, or of families: the median over pairs of ranked models.

        It is smaller than their number if weights are unequal or cells are missing.
        """
        ranked = np.flatnonzero(self.is_ranked)
        if len(ranked) < 2:
            return float("nan")
        effective_units = self.score_errors.left_out.effective_units  # of each difference
        first, second = np.triu_indices(len(ranked), k=1)
        return float(np.median(effective_units[ranked[first], ranked[second]]))

    @cached_property
    @single_threaded
    def noise(self) -> ScoreNoise:
        """Sources of the errors: cells and, with `seed`, repetitions."""
        cell_error = float(np.sqrt(self.model.residual_variance))
        seed_noise = self.score_errors.seed_noise
        if seed_noise is None:
            return ScoreNoise(cell_error, seed=None, seed_share=None)

        # Share of the seeds in the variance of all differences of ranked models.
        ranked = np.flatnonzero(self.is_ranked)
        pairs = np.ix_(ranked, ranked)
        variance_by_tasks = float(self.score_errors.by_tasks.variance[pairs].sum())
        seed_share = None
        if variance_by_tasks > 0:
            seed_share = float(seed_noise.errors.variance[pairs].sum() / variance_by_tasks)
        seed_error = float(np.sqrt(seed_noise.variance))
        return ScoreNoise(cell_error, seed_error, seed_share)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to distrust the board, one sentence each; `rate_scores` warns about them."""
        return score_warnings(self)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, one sentence each, including the warnings."""
        return (*self.warnings, *score_notes(self))

    def difference(self, a: Hashable, b: Hashable) -> ScoreDifference:
        """Return the difference of the ratings of two models, with an interval and a p-value.

        Parameters
        ----------
        a, b : str or int
            Labels of two models that common tasks connect.

        Returns
        -------
        ScoreDifference
            For a complete table it is that of Student's paired t-test over the tasks.
        """
        i, j = self._comparable(a, b)
        value = float(self.ratings[i] - self.ratings[j])
        # A model that depends on a single task for its connection has no error.
        remains_connected = self.score_errors.jackknife.remains_connected
        if not (remains_connected[i] and remains_connected[j]):
            return ScoreDifference(value, low=None, high=None, p_value=None, freedom=None)

        # Tests take a table of all differences, of which only this one is needed; the last row and
        # column is the reference.
        n_rows = len(self.items) + 1
        differences = np.zeros((n_rows, n_rows))
        differences[i, j] = self.errors.differences(self.ratings[[i, j]])[0, 1]
        pair_errors = self.errors.pair_errors
        half_width = float(pair_errors.half_widths(i, self.confidence)[j])
        return ScoreDifference(
            value=value,
            low=value - half_width,
            high=value + half_width,
            p_value=float(pair_errors.p_values(differences)[i, j]),
            freedom=float(pair_errors.by_tasks_or_seeds.freedom[i, j]),
        )

    def _comparable(self, a: Hashable, b: Hashable) -> tuple[int, int]:
        """Return the positions of two models that common tasks connect."""
        i = self.position(a)
        j = self.position(b)
        if self.model.components[i] != self.model.components[j]:
            raise ValueError(
                f"no chain of common tasks connects {a!r} and {b!r}, so their ratings cannot be "
                "compared."
            )
        return i, j

    @single_threaded
    def needs(self, a: Hashable, b: Hashable, *, difference: float | None = None) -> TasksNeeded:
        """Return how many tasks like these detect the difference of two models with 80% power.

        An observed difference is uncertain, so the number of tasks is, too: trust its range.

        Parameters
        ----------
        a, b : str or int
            Labels of two models.
        difference : float, optional
            Difference to detect; by default the observed one.

        Returns
        -------
        TasksNeeded
            Number of tasks (or families, if these are left out) with scores of both models.
        """
        i, j = self._comparable(a, b)
        by_tasks = self.score_errors.by_tasks
        error = float(np.sqrt(by_tasks.variance[i, j]))
        freedom = float(by_tasks.freedom[i, j])
        n_effective_tasks = freedom + 1  # degrees of freedom are one less
        deviation = error * n_effective_tasks**0.5  # of the difference on one task
        detectable = detectable_difference(error, freedom, self.confidence)

        def needed_for(value: float) -> int | None:
            return tasks_needed(value, deviation, self.confidence)

        if difference is not None:
            n_needed = needed_for(difference)
            return TasksNeeded(
                n=n_needed,
                at_least=n_needed,
                at_most=n_needed,
                difference=float(difference),
                detectable=detectable,
            )

        # For the observed difference, and for the larger and the smaller end of its interval.
        observed = self.difference(a, b)
        at_least = None
        at_most = None
        if observed.low is not None and observed.high is not None:
            ends = (abs(observed.low), abs(observed.high))
            at_least = needed_for(max(ends))
            is_significant = observed.low > 0 or observed.high < 0
            if is_significant:
                at_most = needed_for(min(ends))
        return TasksNeeded(
            n=needed_for(observed.value),
            at_least=at_least,
            at_most=at_most,
            difference=observed.value,
            detectable=detectable,
        )

    @single_threaded
    def next_cells(
        self, n_cells: int = 5, *, between: tuple[Hashable, Hashable] | None = None
    ) -> list[SuggestedCell]:
        """Return which models to run on which tasks next.

        Cells are chosen one at a time, each for the largest decrease of the variance.

        Parameters
        ----------
        n_cells : int, default=5
            Number of cells; fewer are returned if fewer are missing.
        between : pair of labels, optional
            The two models to distinguish; by default the first model and the models tied with it.

        Returns
        -------
        list of SuggestedCell
            Missing cells, the most useful first.
        """
        check_int("n_cells", n_cells, least=1)
        self._check_missing_by_model("next_cells")
        pairs = self._tied_pairs() if between is None else [between]
        # The differences whose variances the cells should reduce.
        contrasts = np.zeros((len(pairs), len(self.items)))
        for row, (a, b) in enumerate(pairs):
            i, j = self._comparable(a, b)
            contrasts[row, i] = 1.0
            contrasts[row, j] = -1.0

        models = self.items.tolist()
        tasks = self.rated_table.tasks.tolist()
        suggestions = []
        for choice in choose_cells(self.model, contrasts, n_cells):
            suggestion = SuggestedCell(
                item=models[choice.model],
                task=tasks[choice.task],
                error_ratio=choice.variance**0.5,
            )
            suggestions.append(suggestion)
        return suggestions

    def _tied_pairs(self) -> list[tuple[Hashable, Hashable]]:
        """The best model and each one that is tied with it, or else the next one."""
        # The models that may be first; if only one may be, the first two.
        tied = [row.item for row in self.rows if row.best_rank == 1][: MOST_TIED + 1]
        if len(tied) == 1:
            tied = [row.item for row in self.rows if row.rank is not None][:2]
        return [(tied[0], other) for other in tied[1:]]

    def cells_to_flip(self, a: Hashable, b: Hashable) -> CellsToFlip:
        """Return the values of the missing cells that would reverse the order of two models.

        Use it before announcing that a model with missing cells is ahead: the additive model
        assumes that the model would have done as well on the missing tasks as on the others.

        Parameters
        ----------
        a, b : str or int
            Labels of two models.

        Returns
        -------
        CellsToFlip
            How much better or worse than predicted the missing scores must be.
        """
        self._check_missing_by_model("cells_to_flip")
        i, j = self._comparable(a, b)
        if self.ratings[i] < self.ratings[j]:
            i, j = j, i  # model i is above
        difference = float(self.ratings[i] - self.ratings[j])

        # Excess of the missing scores of one of the models that closes the difference.
        shortfall_of_upper = missing_excess(self.model, i, difference)
        excess_of_lower = missing_excess(self.model, j, difference)
        return CellsToFlip(
            above=self.items.tolist()[i],
            below=self.items.tolist()[j],
            difference=difference,
            n_missing_above=shortfall_of_upper.n_missing,
            n_missing_below=excess_of_lower.n_missing,
            excess=excess_of_lower.excess,
            excess_in_sd=excess_of_lower.excess_in_sd,
            shortfall=shortfall_of_upper.excess,
            shortfall_in_sd=shortfall_of_upper.excess_in_sd,
        )

    def _check_missing_by_model(self, method: str) -> None:
        if self.options.missing != "model":
            raise ValueError(f"{method} is for boards with missing='model'.")

    def to_dict(self) -> JsonObject:
        """Return everything except the scores and the covariance, ready for JSON.

        Returns
        -------
        dict
            Rows, options, tasks and notes.
        """
        return render_scores.board_document(self)

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
        return render_scores.render_board(self, format)
