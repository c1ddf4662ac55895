"""RankedBoard: base class of the leaderboards of comparisons and of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rankwise.arrays import AnyArray, Labels
from rankwise.caching import cached_property
from rankwise.environment import require
from rankwise.formatting import join_words
from rankwise.leaderboard.board_records import RANK_COLUMNS, LeaderboardRow
from rankwise.leaderboard.board_types import Label


class RankedBoard(ABC):
    """Rows of rated items, best item first; base class of the leaderboards.

    ``board["Ann"]`` is the row of an item; iterating yields the rows. A subclass computes the
    columns and renders itself.
    """

    @property
    @abstractmethod
    def items(self) -> Labels:
        """Labels in the order of the data."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, AnyArray | None]:
        """The rows by column, for many items; the names are those of `LeaderboardRow`.

        A rank or tier of None is 0 here, and a low or high of None is NaN.
        """

    @abstractmethod
    def to_text(self, format: str = "text") -> str:
        """Return the board in a format."""

    @cached_property
    def rows(self) -> tuple[LeaderboardRow, ...]:
        """Rows by component, the largest first, and rank; items without a rank are last."""
        columns = [self._row_values(name) for name in LeaderboardRow._fields]
        return tuple(LeaderboardRow(*values) for values in zip(*columns, strict=True))

    def _row_values(self, name: str) -> list[Any]:
        """Return a column as a list, with None for missing values."""
        column = self.columns[name]
        if column is None:
            return [None] * len(self)
        values: list[Any] = column.tolist()
        if name in RANK_COLUMNS:
            return [None if value == 0 else value for value in values]
        if name in ("low", "high"):
            return [None if np.isnan(value) else value for value in values]
        return values

    def __iter__(self) -> Iterator[LeaderboardRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, item: Label) -> LeaderboardRow:
        self.position(item)  # refuses unknown items
        return self._row_of[item]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the fields of `LeaderboardRow` as columns.

        Returns
        -------
        pandas.DataFrame
            One row for each item, the best one first.
        """
        pandas = require("pandas", "Leaderboard.to_frame")
        return pandas.DataFrame(list(self.rows), columns=list(LeaderboardRow._fields))

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_text("html")

    @cached_property
    def _positions(self) -> dict[object, int]:
        return {label: k for k, label in enumerate(self.items.tolist())}

    @cached_property
    def _row_of(self) -> dict[Label, LeaderboardRow]:
        return {row.item: row for row in self.rows}

    def position(self, item: object) -> int:
        """Return the position of an item in `items`.

        Parameters
        ----------
        item : label
            Name of the item.

        Returns
        -------
        int
            The position.
        """
        if item not in self._positions:
            items = join_words(map(repr, self._positions))
            raise KeyError(f"{item!r} is not on the board; its items are {items}")
        return self._positions[item]
