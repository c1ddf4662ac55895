"""Boards of teams: margins of one team over another, the mean rating, and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array
from rankwise.formatting import count
from rankwise.leaderboard.algebra.team_rows import TeamRows
from rankwise.leaderboard.models.base import RatingModel


def component_means(model: RatingModel) -> Array:
    """Return the constant that was subtracted from the rating of each item so that the mean is 0.

    The ratings of single items have no other origin, and the result is 0. A change of the ratings
    of teams by the same number changes the margins of teams of different sizes.
    """
    n_items = model.counts.n_items
    means = np.zeros(n_items)
    if model.counts.teams is None:
        return means

    # model.ratings are centered in each component; the unknowns of the model give uncentered
    # ratings. Their difference is the mean, for any item of the component: we take the first.
    first_items = np.unique(model.components, return_index=True)[1]
    for item in first_items.tolist():
        item_weights = np.zeros(n_items)
        item_weights[item] = 1.0
        uncentered_rating = float(model.weights_of_unknowns(item_weights) @ model.unknowns)
        is_in_component = model.components == model.components[item]
        means[is_in_component] = uncentered_rating - model.ratings[item]
    return means


def count_undetermined_items(model: RatingModel) -> int:
    """Number of items of teams that the comparisons cannot compare with any other item."""
    component_size = np.bincount(model.components)[model.components]
    return int(np.sum(component_size == 1))


def team_notes(model: RatingModel, factor: float) -> list[str]:
    """Return remarks for readers of a board of teams, one sentence each.

    Parameters
    ----------
    model : RatingModel
        The model of the board.
    factor : float
        Factor of the scale of the board.
    """
    notes = []
    n_undetermined = count_undetermined_items(model)
    if n_undetermined:
        notes.append(
            f"{count(n_undetermined, 'item')} without a rank always played with the same others, "
            "so their own ratings are unknown"
        )
    teams = model.counts.teams
    if teams is not None and teams.has_level:
        is_in_largest = model.components == 1  # components are numbered by decreasing size
        mean = factor * float(component_means(model)[is_in_largest][0])
        notes.append(
            "teams have different sizes: ratings are relative to the average item, which adds "
            f"{mean:.3g} to the margin of its team"
        )
    return notes


def team_contrast(
    teams: TeamRows, position: Callable[[object], int], first: object, second: object
) -> Array:
    """Return the weight of each item in the margin of one team over another.

    Parameters
    ----------
    teams : TeamRows
        The comparisons of the board.
    position : callable
        Returns the position of an item by its label.
    first, second : label, or tuple, list, set or dict of labels
        The teams.
    """
    first_shares = _shares_of(first)
    second_shares = _shares_of(second)
    for member in first_shares:
        if member in second_shares:
            raise ValueError(f"{member!r} is on both sides.")
    # The margin is a weighted sum of the ratings: first side minus second side.
    item_weights = np.zeros(teams.n_items)
    for member, share in first_shares.items():
        item_weights[position(member)] = share
    for member, share in second_shares.items():
        item_weights[position(member)] = -share

    contrasts = sp.csr_array(item_weights[None, :])
    if not teams.determines(contrasts)[0]:
        raise ValueError(
            f"the comparisons do not determine the margin of {first!r} over {second!r}: some "
            "members always played together, or never played the others."
        )
    return item_weights


def _shares_of(side: object) -> dict[object, float]:
    """Members of a side and their weights."""
    if isinstance(side, Mapping):
        return {member: float(share) for member, share in side.items()}
    if isinstance(side, (tuple, list, set, frozenset)):
        return dict.fromkeys(side, 1.0)
    return {side: 1.0}
