"""Comparisons in files, and the items that were compared with their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from rankwise.cli.options import flag, option, split_names

PAIRS = "Comparisons"


def _column(help: str, metavar: str = "COLUMN") -> Any:
    return option(help, metavar, panel=PAIRS)


@dataclass
class PairOptions:
    """Which columns say who met whom, and who won."""

    winner: Annotated[str, _column("Item that won.")] = "winner"
    loser: Annotated[str | None, _column("Item that lost; loser if not given.")] = None
    sides: Annotated[str | None, _column("Two columns of items, the first side first.", "A,B")] = (
        None
    )
    outcome: Annotated[
        str | None,
        _column(
            "With --sides, who won: left, first, a, 1, the name of the column or of the item, tie, "
            "both bad, …; --winner if not given."
        ),
    ] = None
    map: Annotated[
        list[str] | None,
        _column(
            "What a word of the outcome means, first, second or tie; may be repeated.", "WORD=SIDE"
        ),
    ] = None
    wins: Annotated[
        str | None, _column("With --sides, how often each side won, and neither.", "A,B[,TIES]")
    ] = None
    scores: Annotated[str | None, _column("With --sides, the points of each side.", "A,B")] = None
    margin: Annotated[
        bool,
        flag("--margin", help="The difference of scores counts, not only who won.", panel=PAIRS),
    ] = False
    magnitude: Annotated[str | None, _column("By how much; 0 is a tie.")] = None
    tie: Annotated[str | None, _column("Whether it was a tie.")] = None
    judge: Annotated[str | None, _column("Who judged; also what is left out as a whole.")] = None

    def columns(self) -> dict[str, Any]:
        """The columns as `read_pairs` takes them."""
        if self.sides is not None and self.loser is not None:
            raise ValueError("--sides says who took part; leave out --loser.")
        alike = ("winner", "outcome", "margin", "magnitude", "tie", "judge")
        columns: dict[str, Any] = {name: getattr(self, name) for name in alike}
        columns["loser"] = self.loser or "loser"
        for name in ("sides", "wins", "scores"):
            given = getattr(self, name)
            columns[name] = None if given is None else split_names([given])
        meanings = [text.rpartition("=") for text in self.map or ()]
        if not all(equals for _, equals, _ in meanings):
            raise ValueError(f"--map {self.map}: expected WORD=first, WORD=second or WORD=tie.")
        columns["outcome_words"] = {word: side for word, _, side in meanings}
        return columns
