"""Units of ratings: log odds, Elo points, margins."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.formatting import join_words
from rankwise.leaderboard.arguments import are_verdicts
from rankwise.leaderboard.models.least_squares_model import LeastSquares
from rankwise.uncertainty.jackknife_errors import CovarianceRoot
from rankwise.validation import check_option

ELO = 400 / math.log(10)  # points for a logit

SCALES = ("margin", "logit", "elo")


@dataclass(frozen=True)
class RatingScale:
    """What one unit of the model is on the board, and what is put at the base.

    Attributes
    ----------
    name : {"margin", "logit", "elo"}
        The unit.
    factor : float
        By what ratings of the model are multiplied.
    base : float
        Rating of the anchor, or the mean rating: 1000 Elo points, 0 otherwise.
    members : ndarray of bool or None
        The items that can be compared with the anchor; None without an anchor.
    at : int
        Position of the anchor.
    """

    name: str
    factor: float
    base: float
    members: NDArray[np.bool_] | None = None
    at: int = 0

    def values(self, ratings: Array) -> Array:
        """Ratings on the scale, along the last axis."""
        return self.changes(ratings) + self.base

    def changes(self, ratings: Array) -> Array:
        """The same without the base: for errors."""
        if self.members is not None:
            ratings = ratings - np.where(self.members, ratings[..., [self.at]], 0.0)
        return np.asarray(self.factor * ratings)

    def spread(self, spread: CovarianceRoot) -> CovarianceRoot:
        """Errors on the scale; relative to the anchor, which has none itself."""
        root, effects = self.changes(spread.root.T).T, self.factor * spread.effects
        return replace(spread, root=root, effects=effects)


def scale_of(
    name: Any, anchor: Any, model: LeastSquares, items: NDArray[Any], components: Indices
) -> RatingScale:
    """Check the names of the scale and of the anchor."""
    check_option("scale", name, SCALES)
    are_log_odds = model.logits is not None
    if name != "margin" and not are_log_odds:
        if are_verdicts(model.tally.target):
            raise ValueError(
                f"scale={name!r} needs ratings in log odds, but model='least-squares' rates mean "
                "outcomes; use model='bradley-terry', or scale='margin'."
            )
        raise ValueError(
            f"scale={name!r} is for wins, ties and losses, but the outcomes are margins; use "
            "scale='margin', or leave out magnitudes (margin=False)."
        )
    if name == "margin" and are_log_odds:
        name = "logit"
    factor = ELO if name == "elo" else 1.0
    base = 1000.0 if name == "elo" else 0.0
    if anchor is None:
        return RatingScale(name, factor, base)
    labels = items.tolist()
    if anchor not in labels:
        raise ValueError(
            f"anchor={anchor!r} is not on the board; its items are {join_words(map(repr, labels))}."
        )
    at = labels.index(anchor)
    return RatingScale(name, factor, base, components == components[at], at)
