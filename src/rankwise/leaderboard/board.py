"""Leaderboard: the table that `rate` returns."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.datasets import PairData
from rankwise.leaderboard.effects import Effect
from rankwise.leaderboard.jackknife import Spread

__all__ = ["Leaderboard", "LeaderboardRow", "Margin"]


class LeaderboardRow(NamedTuple):
    """One item of a `Leaderboard`; intervals are None if there are no resamples.

    Attributes
    ----------
    rank : int
        1 is best; items of equal rating share a rank. Counted inside the component.
    item : str or int
        The label.
    rating : float
        The mean over the items of a component is 0.
    low, high : float or None
        Interval of the rating.
    rank_low, rank_high : int or None
        Interval of the rank, the better end first.
    rank_upper : int or None
        1 plus the number of items whose whole interval is above that of this item: the best rank
        that the intervals leave open.
    n, wins, ties, losses : int
        Comparisons of the item, and how they ended.
    component : int
        Items of different components were never compared, not even by way of others, and their
        ratings cannot be compared either; 1 is the largest component. Always 1 if there are
        features, which make all items comparable.
    """

    rank: int
    item: Any
    rating: float
    low: float | None
    high: float | None
    rank_low: int | None
    rank_high: int | None
    rank_upper: int | None
    n: int
    wins: int
    ties: int
    losses: int
    component: int


class Margin(NamedTuple):
    """By how much one item is above another; the interval is None without resamples."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, repr=False, eq=False)
class Leaderboard:
    """Result of `rate`: prints as a table, best item first.

    ``board["Ann"]`` is the row of an item; iterating gives the rows.

    Attributes
    ----------
    columns : dict from str to ndarray or None
        The rows by column, for very many items; the names are those of `LeaderboardRow`.
    items : ndarray of shape (n_items,)
        Labels in the order of the data.
    ratings : ndarray of shape (n_items,)
        Their ratings.
    samples : ndarray of shape (n_resamples, n_items)
        Ratings in the bootstrap resamples, or drawn around the ratings with the covariance of the
        jackknife.
    spread : Spread or None
        That covariance; None for the bootstrap and without intervals.
    effects : tuple of Effect
        What the covariates add to the margin of the first item, with intervals.
    alpha : float
        Regularization in use.
    confidence : float
        Probability with which an interval should cover the truth.
    n_comparisons : int
        Number of comparisons.
    cyclicity : float
        Share of the mean margins that no rating of the items can explain, because they go in
        circles: 0 if all margins add up, 1 if all of them go in circles.
    unexplained : float
        Share of Σ ω δ² that these ratings do not explain: circles, disagreement about the same two
        items, and what regularization (or the features) cannot follow.
    cycle_ratio : float or None
        Mean square of the circles over that of the disagreement about the same two items, each by
        its degrees of freedom: about 1 if the circles are chance, more if they are real. None if
        no two items were compared twice, their comparisons all agree, or no circle is possible.
    model_ : RankRLS or None
        The fitted model if there are features.
    level : float
        Mean score that the model gives to the items. The board subtracts it: its mean rating is 0.
    comparisons : PairData or None
        What the board was made from.
    """

    columns: dict[str, NDArray[Any] | None]
    items: NDArray[Any]
    ratings: Array
    samples: Array
    spread: Spread | None
    effects: tuple[Effect, ...]
    alpha: float
    confidence: float
    n_comparisons: int
    unexplained: float
    cyclicity: float
    cycle_ratio: float | None
    model_: Any = None
    level: float = 0.0
    comparisons: PairData | None = None

    @property
    def n_resamples(self) -> int:
        """Number of bootstrap resamples, or of draws."""
        return len(self.samples)

    @property
    def n_components(self) -> int:
        """Number of sets of items that can be compared with each other."""
        return int(np.max(np.asarray(self.columns["component"])))

    @property
    def intervals(self) -> str | None:
        """How the intervals were found: "jackknife", "bootstrap" or None."""
        if not self.n_resamples:
            return None
        return "bootstrap" if self.spread is None else "jackknife"

    @cached_property
    def rows(self) -> tuple[LeaderboardRow, ...]:
        """By component, the largest first, and rank."""
        lists = (
            [None] * len(self) if column is None else column.tolist()
            for column in self.columns.values()
        )
        return tuple(map(LeaderboardRow._make, zip(*lists, strict=True)))

    def __iter__(self) -> Iterator[LeaderboardRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, item: Any) -> LeaderboardRow:
        self._position(item)
        return self._row_of[item]

    def expected_margin(self, a: Any, b: Any) -> Margin:
        """By how much a is expected to beat b: the difference of their ratings.

        Parameters
        ----------
        a, b : str or int
            Labels of two items of one component.

        Returns
        -------
        Margin
            The difference and its interval. The interval is that of the difference, and
            narrower than the two intervals of the ratings suggest if the errors are correlated.
        """
        i, j = self._comparable(a, b)
        value = float(self.ratings[i] - self.ratings[j])
        if not self.n_resamples:
            return Margin(value, None, None)
        tail = (1 - self.confidence) / 2
        if self.spread is not None:
            width = self.spread.quantile(1 - tail) * self.spread.error_of_difference(i, j)
            return Margin(value, value - width, value + width)
        low, high = np.quantile(self.samples[:, i] - self.samples[:, j], [tail, 1 - tail])
        return Margin(value, float(low), float(high))

    def above(self, a: Any, b: Any) -> float:
        """How sure it is that a is above b, between 0 and 1.

        The share of the bootstrap resamples in which it is, equal ratings counting one half; with
        the jackknife the probability by Student's t.
        """
        i, j = self._comparable(a, b)
        if not self.n_resamples:
            raise ValueError("the board has no resamples; pass n_resamples=1000 to rate.")
        if self.spread is None:
            difference = self.samples[:, i] - self.samples[:, j]
            return float(np.mean(difference > 0) + np.mean(difference == 0) / 2)
        value = float(self.ratings[i] - self.ratings[j])
        error = self.spread.error_of_difference(i, j)
        return self.spread.probability(value / error) if error else (np.sign(value) + 1) / 2

    def predict(self, features: Any) -> Array:
        """Ratings of other items, on the scale of the board, from their features."""
        if self.model_ is None:
            raise ValueError(
                "the board was made without features, so it knows only its own items; "
                "pass features= to rate."
            )
        return np.asarray(self.model_.predict(features) - self.level)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the resamples and the model, ready for JSON."""
        return {
            "alpha": self.alpha,
            "confidence": self.confidence,
            "intervals": self.intervals,
            "n_resamples": self.n_resamples,
            "n_comparisons": self.n_comparisons,
            "n_components": self.n_components,
            "unexplained": self.unexplained,
            "cyclicity": self.cyclicity,
            "cycle_ratio": self.cycle_ratio,
            "effects": [effect._asdict() for effect in self.effects],
            "rows": [row._asdict() for row in self.rows],
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the fields of `LeaderboardRow` as columns."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise ImportError(
                "Leaderboard.to_frame needs pandas: pip install pandas, or use to_dict()."
            ) from error
        return pandas.DataFrame(list(self.rows), columns=list(LeaderboardRow._fields))

    def __repr__(self) -> str:
        table = self.table
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if title == "item" else cell.rjust(width)
                for title, cell, width in zip(table[0], cells, widths, strict=True)
            ).rstrip()
            for cells in table
        ]
        return "\n".join([*lines, self.footer])

    def _repr_html_(self) -> str:
        head, *body = (
            "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            for tag, cells in zip(["th"] + ["td"] * len(self), self.table, strict=True)
        )
        rows = "".join(f"<tr>{row}</tr>" for row in (head, *body))
        return f"<table>{rows}</table><p>{html.escape(self.footer)}</p>"

    @property
    def table(self) -> list[list[str]]:
        """Header and rows as text; columns that say nothing are left out."""
        largest = float(np.abs(self.ratings).max())
        digits = min(9, max(0, 3 - math.floor(math.log10(largest)))) if largest > 0 else 3
        interval = f"{100 * self.confidence:g}% interval"
        header = ["rank", "item", "rating"]
        header += [interval, "ranks", "upper"] if self.n_resamples else []
        header += ["n", "w/t/l"] + (["component"] if self.n_components > 1 else [])
        return [header, *(self._cells(row, digits) for row in self.rows)]

    def _cells(self, row: LeaderboardRow, digits: int) -> list[str]:
        cells = [str(row.rank), str(row.item), f"{row.rating:.{digits}f}"]
        if self.n_resamples:
            cells += [
                f"{row.low:.{digits}f} … {row.high:.{digits}f}",
                f"{row.rank_low}–{row.rank_high}",
                str(row.rank_upper),
            ]
        cells += [str(row.n), f"{row.wins}/{row.ties}/{row.losses}"]
        return cells + ([str(row.component)] if self.n_components > 1 else [])

    @property
    def footer(self) -> str:
        """One line about the data and the fit."""
        resamples = self._said_of_intervals
        noise = "" if self.cycle_ratio is None else f" ({self.cycle_ratio:.2f} times noise)"
        return (
            f"{self.n_comparisons} comparisons of {len(self)} items{resamples}; "
            f"alpha {self.alpha:.3g}, unexplained {self.unexplained:.3f}, "
            f"cyclicity {self.cyclicity:.3f}{noise}"
        )

    @property
    def _said_of_intervals(self) -> str:
        if not self.n_resamples:
            return ""
        if self.spread is None:
            return f", {self.n_resamples} resamples"
        n_draws = self.spread.root.shape[1]
        return ", jackknife" + ("" if self.spread.is_exact else f" estimated from {n_draws} draws")

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {label: k for k, label in enumerate(self.items.tolist())}

    @cached_property
    def _row_of(self) -> dict[Any, LeaderboardRow]:
        return {row.item: row for row in self.rows}

    def _position(self, item: Any) -> int:
        if item not in self._positions:
            some = ", ".join(repr(label) for label in list(self._positions)[:10])
            more = ", …" if len(self) > 10 else ""
            raise KeyError(f"{item!r} is not on the board; its items are {some}{more}")
        return self._positions[item]

    def _comparable(self, a: Any, b: Any) -> tuple[int, int]:
        i, j = self._position(a), self._position(b)
        if self[a].component != self[b].component:
            raise ValueError(
                f"{a!r} and {b!r} are in different components: no chain of comparisons leads from "
                "one to the other, so their ratings cannot be compared."
            )
        return i, j
