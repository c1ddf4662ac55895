"""Options of the columns of comparisons, which several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankwise.cli.command import Decorator, option, option_group
from rankwise.cli.shared_options import COMPARISONS, split_names

if TYPE_CHECKING:
    from rankwise.datasets.pair_data import PairColumns


@dataclass(frozen=True)
class PairOptions:
    """Which columns of a file of comparisons have which role."""

    winner: str | None
    loser: str | None
    sides: str | None
    outcome: str | None
    scores: str | None
    judge: str | None
    map: tuple[str, ...]
    wins: str | None
    margin: bool
    magnitude: str | None
    tie: str | None

    def is_empty(self) -> bool:
        """Whether none of the options was passed."""
        return not any(vars(self).values())

    def columns(self) -> PairColumns:
        """The arguments of `rankwise.datasets.read_pairs`."""
        if self.sides is not None and self.loser is not None:
            raise ValueError("--sides names both items; leave out --loser.")
        return {
            "winner": self.winner or "winner",
            "loser": self.loser or "loser",
            "sides": _column_names(self.sides),
            "outcome": self.outcome,
            "outcome_words": self._outcome_words(),
            "wins": _column_names(self.wins),
            "scores": _column_names(self.scores),
            "margin": self.margin,
            "magnitude": self.magnitude,
            "tie": self.tie,
            "judge": self.judge,
        }

    def _outcome_words(self) -> dict[str, str]:
        meaning_of_word = {}
        for text in self.map:
            word, equals_sign, meaning = text.rpartition("=")
            if not equals_sign:
                raise ValueError(f"--map {text}: expected WORD=first, WORD=second or WORD=tie.")
            meaning_of_word[word] = meaning
        return meaning_of_word


def pair_options(*, is_advanced: bool) -> Decorator:
    """Options of the columns of comparisons.

    Parameters
    ----------
    is_advanced : bool
        Whether only --help-all lists them: in commands that usually read scored items.
    """
    return option_group(
        PairOptions,
        "pair_columns",
        option(
            "--winner",
            metavar="COLUMN",
            section=COMPARISONS,
            is_advanced=is_advanced,
            help="Column of winners; default: winner.",
        ),
        option(
            "--loser",
            metavar="COLUMN",
            section=COMPARISONS,
            is_advanced=is_advanced,
            help="Column of losers; default: loser.",
        ),
        option(
            "--sides",
            metavar="A,B",
            section=COMPARISONS,
            is_advanced=is_advanced,
            help="Two columns of items, the first side first.",
        ),
        option(
            "--outcome",
            metavar="COLUMN",
            section=COMPARISONS,
            is_advanced=is_advanced,
            help="Outcomes, with --sides: first, a, 1, an item, tie, …",
        ),
        option(
            "--scores",
            metavar="A,B",
            section=COMPARISONS,
            is_advanced=is_advanced,
            help="Columns of the points of each side, with --sides.",
        ),
        option(
            "--judge",
            metavar="COLUMN",
            section=COMPARISONS,
            is_advanced=is_advanced,
            help="Column of judges; each judge is held out as a whole.",
        ),
        option(
            "--map",
            metavar="WORD=SIDE",
            multiple=True,
            section=COMPARISONS,
            is_advanced=True,
            help="Meaning of a word of the outcome: first, second or tie; repeatable.",
        ),
        option(
            "--wins",
            metavar="A,B[,TIES]",
            section=COMPARISONS,
            is_advanced=True,
            help="Columns of the wins of each side, and of ties, with --sides.",
        ),
        option(
            "--margin",
            is_flag=True,
            section=COMPARISONS,
            is_advanced=True,
            help="Use the difference of --scores, not only the winner.",
        ),
        option(
            "--magnitude",
            metavar="COLUMN",
            section=COMPARISONS,
            is_advanced=True,
            help="Column of the magnitude of the difference; 0 is a tie.",
        ),
        option(
            "--tie",
            metavar="COLUMN",
            section=COMPARISONS,
            is_advanced=True,
            help="Column that marks ties.",
        ),
    )


def _column_names(text: str | None) -> list[str] | None:
    """Names of columns separated by commas, or None if there are none."""
    if text is None:
        return None
    return split_names([text]) or None
