"""backtest: a leaderboard evaluated on later comparisons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array
from rankwise.datasets import PairData
from rankwise.datasets.pair_data import PAIR_COLUMNS
from rankwise.datasets.times import as_times
from rankwise.formatting import TextTable, join_tables
from rankwise.leaderboard.algebra.team_rows import side_rows
from rankwise.leaderboard.arguments import read_comparisons
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.board_types import Comparisons, CovariateArgument, Moment
from rankwise.leaderboard.covariates import side_advantage
from rankwise.leaderboard.forecast import (
    ForecastScore,
    base_rates,
    compare_forecasts,
    elo_probabilities,
    predict_margins,
)
from rankwise.leaderboard.models.dynamic import DynamicBradleyTerry
from rankwise.leaderboard.rating import rate

STATIC_MODELS = ("least-squares", "plackett-luce")
STATIC_OPTIONS = ("side", "ties", "reweight")


@dataclass(frozen=True, repr=False, eq=False)
class Backtest:
    """Result of `backtest`; prints as a table.

    Attributes
    ----------
    board : Leaderboard
        Board of the earlier comparisons.
    methods : tuple of ForecastScore
        The board first, then the methods that it is compared with.
    n_before, n_later : int
        Number of earlier and later comparisons.
    until : str
        The date or number that separates them.
    """

    board: Leaderboard
    methods: tuple[ForecastScore, ...]
    n_before: int
    n_later: int
    until: str

    def table(self) -> TextTable:
        """Return a table with one line for each method.

        Returns
        -------
        TextTable
            The table, with `text`, `markdown` and other formats.
        """
        header = ["method", "log loss", "± s.e.", "behind", "± s.e.", "right"]
        rows = []
        for score in self.methods:
            row = [
                score.name,
                f"{score.log_loss:.4f}",
                f"{score.error:.4f}",
                f"{score.behind:+.4f}",
                f"{score.behind_error:.4f}",
                f"{score.accuracy:.1%}",
            ]
            rows.append(row)
        title = (
            f"{self.n_later} comparisons from {self.until} on, predicted from {self.n_before} "
            "earlier ones"
        )
        notes = ["log loss: smaller is better; behind: log loss minus that of the board"]
        return TextTable(header, rows, title=title, names=(0,), notes=notes)

    def __repr__(self) -> str:
        return join_tables([self.table()], "text")


def backtest(
    pairs: Comparisons,
    until: Moment,
    *,
    covariates: CovariateArgument = None,
    model: str | None = None,
    **options: Any,
) -> Backtest:
    """Rate the comparisons before a date, and evaluate the board on those from the date on.

    Use it to check how well a board predicts later games, and whether time or context improve it.

    The board is compared with the same model without time and context, with Elo ratings (frozen at
    the date, and updated game by game, with the step that predicts the earlier comparisons best),
    and with the shares of win, draw and loss. Items that are new after the date count as average.

    Parameters
    ----------
    pairs : data frame, dict of columns or PairData
        As in `rate`.
    until : date or number
        The first time that is predicted.
    covariates, model
        As in `rate`; with the model "least-squares" the time only separates the comparisons.
    **options
        Other arguments of `rate`, including columns of a frame.

    Returns
    -------
    Backtest
        Prints as a table; its attribute `board` is the board of the earlier comparisons.

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
    before, later = _split_by_time(data, until)
    training, _ = before.compact()  # without items that are new later
    timeless = replace(training, times=None, contexts={})
    if model in STATIC_MODELS:
        training = timeless
    covariate_names = list(data.covariates) if data.covariates else None
    board = rate(training, covariates=covariate_names, model=model, **options)

    # The same board and the other methods on the later comparisons.
    probabilities = {"the board": board_probabilities(board, later)}
    if board.scales is not None:
        static_board = _rate_without_time(board, timeless, covariate_names, options)
        probabilities["without time"] = board_probabilities(static_board, later)
    probabilities |= elo_probabilities(before, later)
    outcome = np.sign(later.outcome)
    probabilities["base rate"] = base_rates(before, len(outcome))
    scores = compare_forecasts(outcome, probabilities)
    return Backtest(
        board=board,
        methods=scores,
        n_before=before.n_pairs,
        n_later=later.n_pairs,
        until=str(until),
    )


def board_probabilities(board: Leaderboard, later: PairData) -> Array:
    """Probabilities of later comparisons, each at its time and in its context.

    Items and levels of a context that the board does not have are average.
    """
    # Position on the board of each later item; unknown ones are in the last place.
    n_items = len(board.items)
    position_of = {label: position for position, label in enumerate(board.items.tolist())}
    positions = np.array(
        [position_of.get(label, n_items) for label in later.items.tolist()], np.intp
    )
    n_later_items = len(positions)
    entries = (np.ones(n_later_items), (np.arange(n_later_items), positions))
    # Weights of the items of the board in the margin of each game: 1 on the first side, −1 on the
    # second.
    later_to_board_items = sp.csr_array(entries, shape=(n_later_items, n_items + 1))
    side_weights = side_rows(later) @ later_to_board_items

    model = board.fitted
    context_codes = None
    if isinstance(model, DynamicBradleyTerry):
        context_codes = model.rating_terms.encode_contexts(later)
    margins = predict_margins(model, side_weights, later.times, context_codes)
    # Effects are on the scale of the board, margins on that of the model.
    advantage = side_advantage(board.effects) / board.scale.factor
    return board.chances.probabilities(margins + advantage)


def _split_by_time(data: PairData, until: Moment) -> tuple[PairData, PairData]:
    """Return the comparisons before a date and those from it on, both in the order of time."""
    if data.times is None:
        raise ValueError("backtest splits comparisons by time; name the column with time=.")
    first_later_time = as_times([until], 1)
    if first_later_time.dtype.kind != data.times.dtype.kind:
        raise ValueError(
            f"until={until!r} does not have the format of the times, such as {data.times[0]}."
        )
    order = np.argsort(data.times, kind="stable")
    ordered = data.take(order)
    times = data.times[order]
    is_before = times < first_later_time[0]
    is_one_side_empty = is_before.all() or not is_before.any()
    if is_one_side_empty:
        where = "before" if is_before.all() else "on or after"
        raise ValueError(
            f"all {data.n_pairs} comparisons are {where} until={until}: they are from {times[0]} "
            f"to {times[-1]}. Pass a date with comparisons on both sides."
        )
    return ordered.take(is_before), ordered.take(~is_before)


def _rate_without_time(
    board: Leaderboard, timeless: PairData, covariates: list[str] | None, options: dict[str, Any]
) -> Leaderboard:
    """Rate by the Bradley–Terry model with the total variance of the components of the board."""
    scales = board.scales
    assert scales is not None
    # One constant rating with the variance of all terms of a rating in time and context.
    variance = scales.constant**2 + scales.time**2 + scales.context**2
    total_weight = float(timeless.weight.sum())
    static_options = {name: options[name] for name in STATIC_OPTIONS if name in options}
    return rate(
        timeless,
        covariates=covariates,
        model="bradley-terry",
        alpha=0.5 / variance / total_weight,  # the ridge penalty of a normal prior
        intervals=False,
        **static_options,
    )
