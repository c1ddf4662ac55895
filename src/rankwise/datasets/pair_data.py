"""PairData: comparisons of items with their sides; PairColumns: where a table has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices

if TYPE_CHECKING:
    from rankwise.graphs import PairGraph

Column = str | int

SIDES = (
    ("first", "second"),
    ("left", "right"),
    ("model_a", "model_b"),
    ("home", "away"),
    ("a", "b"),
)
OUTCOMES = ("outcome", "winner", "result", "better")


@dataclass(frozen=True, eq=False)
class PairData:
    """Comparisons of items: ``items[first[k]]`` met ``items[second[k]]``, sides as in the data.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
        Positions in `items`. Where the data name winner and loser, the winner is first.
    outcome : ndarray of shape (n_pairs,)
        By how much the first item won: positive if it did, negative if the second did, 0 is a
        tie; 1, −1 and 0 if the data do not say by how much.
    weight : ndarray of shape (n_pairs,)
        How much the comparison counts; 1 if the data do not say.
    items : ndarray of shape (n_items,)
        The distinct labels in increasing order: int64 if all are whole numbers, else strings.
    groups, judges, clusters : ndarray of shape (n_pairs,) or None
        A label of each comparison: which board it belongs to, who judged, what is independent.
    covariates : dict from str to ndarray of shape (n_pairs,)
        What else is known of each comparison, as numbers or as labels of categories. A number
        speaks for the first side.
    read_as : str
        Which columns were taken for the sides and the outcome, if that was not asked for.
    """

    first: Indices
    second: Indices
    outcome: Array
    weight: Array
    items: NDArray[Any]
    groups: NDArray[Any] | None = None
    judges: NDArray[Any] | None = None
    clusters: NDArray[Any] | None = None
    covariates: dict[str, NDArray[Any]] = field(default_factory=dict)
    read_as: str = ""

    @property
    def n_items(self) -> int:
        """Number of distinct items."""
        return len(self.items)

    @property
    def n_pairs(self) -> int:
        """Number of comparisons."""
        return len(self.first)

    @property
    def winner(self) -> Indices:
        """The item that won, the first one of a tie."""
        return np.where(self.outcome < 0, self.second, self.first)

    @property
    def loser(self) -> Indices:
        """The item that lost, the second one of a tie."""
        return np.where(self.outcome < 0, self.first, self.second)

    @property
    def magnitude(self) -> Array:
        """By how much the winner won; 0 is a tie."""
        return np.abs(self.outcome)

    def graph(self) -> PairGraph:
        """The comparisons as a preference graph, which a ranker takes as its `y`."""
        from rankwise.graphs import PairGraph

        return PairGraph(
            self.winner,
            self.loser,
            magnitude=self.magnitude,
            weight=self.weight,
            n_items=self.n_items,
        )

    def take(self, rows: NDArray[Any]) -> PairData:
        """Some of the comparisons, by their numbers or a mask, each as often as it is named."""
        per_row = ("first", "second", "outcome", "weight", "groups", "judges", "clusters")
        values: dict[str, Any] = {name: getattr(self, name) for name in per_row}
        taken: dict[str, Any] = {name: None if v is None else v[rows] for name, v in values.items()}
        covariates = {name: column[rows] for name, column in self.covariates.items()}
        return replace(self, **taken, covariates=covariates)


@dataclass(frozen=True)
class PairColumns:
    """Which columns of a table say what; the parameters of `read_pairs`."""

    winner: Column = "winner"
    loser: Column = "loser"
    sides: Sequence[Column] | None = None
    outcome: Column | None = None
    wins: Sequence[Column] | None = None
    scores: Sequence[Column] | None = None
    margin: bool = False
    magnitude: Column | None = None
    weight: Column | None = None
    tie: Column | None = None
    group: Column | None = None
    judge: Column | None = None
    cluster: Column | None = None
    covariates: Sequence[Column | tuple[Column, Column]] = ()

    def __post_init__(self) -> None:
        for name, sizes in (("sides", (2,)), ("scores", (2,)), ("wins", (2, 3))):
            given = getattr(self, name)
            if given is None:
                continue
            if isinstance(given, str) or len(given) not in sizes:
                raise ValueError(f"{name} is {given!r}; pass the names of two columns.")
            if self.sides is None:
                raise ValueError(f"{name}= needs sides=, the two columns with the items.")
        if isinstance(self.covariates, (str, int)):
            raise ValueError(f"covariates is {self.covariates!r}; pass a list of column names.")
        said = [n for n in ("outcome", "wins", "scores") if getattr(self, n) is not None]
        if len(said) > 1:
            raise ValueError(f"{' and '.join(said)} say the same thing; pass one of them.")

    def recognized(self, names: Sequence[str]) -> PairColumns:
        """The same, with sides and outcome by their usual names where nothing else is meant."""
        is_asked = self.sides is not None or self.outcome is not None
        if is_asked or (self.winner, self.loser) != ("winner", "loser") or "loser" in names:
            return self
        sides = [pair for pair in SIDES if all(names.count(name) == 1 for name in pair)]
        outcomes = [name for name in OUTCOMES if names.count(name) == 1]
        if len(sides) != 1 or len(outcomes) != 1:
            return self
        return replace(self, sides=sides[0], outcome=outcomes[0])

    @classmethod
    def names(cls) -> list[str]:
        """The roles that a column may have."""
        return [one.name for one in fields(cls)]
