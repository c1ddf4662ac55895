"""backtest: how well a board foresees what came after it, beside Elo and the base rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwise.datasets.pair_data import PairColumns
from rankwise.datasets.times import as_times
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.border import read_comparisons
from rankwise.leaderboard.forecast import (
    ForecastScore,
    base_chances,
    board_chances,
    compare_forecasts,
    elo_chances,
)
from rankwise.leaderboard.rating import rate
from rankwise.text_tables import Table, join_tables


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

    def table(self) -> Table:
        """One line for each method."""
        header = ["method", "log loss", "± s.e.", "behind", "± s.e.", "right"]
        rows = [
            [m.name, f"{m.log_loss:.4f}", f"{m.error:.4f}", f"{m.behind:+.4f}",
             f"{m.behind_error:.4f}", f"{m.accuracy:.1%}"]
            for m in self.methods
        ]  # fmt: skip
        title = f"{self.n_later} comparisons from {self.until} on, foreseen from {self.n_before}"
        notes = ["log loss: less is better; behind: by how much it is above that of the board"]
        return Table(header, rows, title=title, names=(0,), notes=notes)

    def __repr__(self) -> str:
        return join_tables([self.table()], "text")


def backtest(
    pairs: Any,
    until: Any,
    *,
    time: Any = None,
    context: Any = None,
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
    time, context, covariates, model
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
    columns = {name: options.pop(name) for name in PairColumns.names() if name in options}
    data = read_comparisons(pairs, None, covariates, time, context, columns)
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
        static |= {"alpha": 0.5 / variance / float(before.weight.sum()), "n_resamples": 0}
        other = rate(plain, covariates=controls, model="bradley-terry", **static)
        chances["without time"] = board_chances(other, later)
    chances["Elo, followed"] = elo_chances(before, later, followed=True)
    chances["Elo, frozen"] = elo_chances(before, later, followed=False)
    chances["base rate"] = base_chances(before, len(said))
    tested = compare_forecasts(said, chances)
    return Backtest(board, tested, before.n_pairs, later.n_pairs, str(until))
