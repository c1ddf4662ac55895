"""Units of ratings: log odds, Elo points, margins."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Labels
from rankwise.formatting import join_words
from rankwise.leaderboard.algebra.outcome_likelihood import are_verdicts
from rankwise.leaderboard.board_types import Label
from rankwise.leaderboard.models.base import RatingModel
from rankwise.uncertainty.possible_ranks import CovarianceRoot
from rankwise.validation import check_option

ELO_PER_LOGIT = 400 / math.log(10)
ELO_BASE = 1000.0
SCALES = ("margin", "logit", "elo")


@dataclass(frozen=True)
class RatingScale:
    """Unit of the ratings of a board, and the item from which they are counted.

    Attributes
    ----------
    name : {"margin", "logit", "elo"}
        The unit.
    factor : float
        Factor by which ratings of the model are multiplied.
    base : float
        Rating of the anchor, or the mean rating: 1000 Elo points, 0 otherwise.
    is_anchored : ndarray of bool or None
        Items that can be compared with the anchor; None without an anchor.
    anchor_position : int
        Position of the anchor.
    """

    name: str
    factor: float
    base: float
    is_anchored: NDArray[np.bool_] | None = None
    anchor_position: int = 0

    def convert_ratings(self, ratings: Array) -> Array:
        """Convert ratings of the model, along the last axis."""
        return self.convert_differences(ratings) + self.base

    def convert_differences(self, ratings: Array) -> Array:
        """Convert differences of ratings of the model, such as errors, along the last axis."""
        # Relative to the anchor in its component; then in the unit of the scale.
        if self.is_anchored is not None:
            anchor_rating = ratings[..., [self.anchor_position]]
            ratings = ratings - np.where(self.is_anchored, anchor_rating, 0.0)
        return np.asarray(self.factor * ratings)

    def convert_covariance(self, covariance: CovarianceRoot) -> CovarianceRoot:
        """Convert a covariance of the model; the anchor has no error."""
        unknowns_root = covariance.unknowns_root
        if unknowns_root is not None and self.factor != 1.0:
            unknowns_root = self.factor * unknowns_root
        return replace(
            covariance,
            root=self.convert_differences(covariance.root.T).T,
            effects_root=self.factor * covariance.effects_root,
            unknowns_root=unknowns_root,
        )


def make_scale(name: str, anchor: Label | None, model: RatingModel, items: Labels) -> RatingScale:
    """Check the arguments `scale` and `anchor` of `rate`, and return the scale."""
    check_option("scale", name, SCALES)
    are_log_odds = model.outcome_curve is not None
    if name != "margin" and not are_log_odds:
        _refuse_scale_of_margins(name, model)

    if name == "elo":
        scale = RatingScale("elo", factor=ELO_PER_LOGIT, base=ELO_BASE)
    elif are_log_odds:
        scale = RatingScale("logit", factor=1.0, base=0.0)
    else:
        scale = RatingScale("margin", factor=1.0, base=0.0)
    if anchor is None:
        return scale
    labels = items.tolist()
    if anchor not in labels:
        raise ValueError(
            f"anchor={anchor!r} is not on the board; its items are {join_words(map(repr, labels))}."
        )
    # Only items of the component of the anchor have ratings relative to it.
    position = labels.index(anchor)
    is_anchored = model.components == model.components[position]
    return replace(scale, is_anchored=is_anchored, anchor_position=position)


def _refuse_scale_of_margins(name: str, model: RatingModel) -> None:
    if are_verdicts(model.counts.target):
        raise ValueError(
            f"scale={name!r} needs ratings in log odds, but model='least-squares' rates mean "
            "outcomes; use model='bradley-terry', or scale='margin'."
        )
    raise ValueError(
        f"scale={name!r} is for wins, ties and losses, but the outcomes are margins; use "
        "scale='margin', or leave out magnitudes (margin=False)."
    )
