"""Notes of a board of teams: what the comparisons do not determine, and the mean rating."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array
from rankwise.formatting import count
from rankwise.leaderboard.models.base import RatingModel


def component_means(model: RatingModel) -> Array:
    """Return what was subtracted from the rating of each item so that the mean is 0.

    The ratings of single items have no other origin, and the result is 0. A change of the ratings
    of teams by the same number changes the margins of teams of different sizes.
    """
    n_items = model.counts.n_items
    means = np.zeros(n_items)
    if model.counts.teams is None:
        return means
    first_items = np.unique(model.components, return_index=True)[1]
    for item in first_items.tolist():
        only_item = np.zeros(n_items)
        only_item[item] = 1.0
        rating = float(model.contrast(only_item) @ model.unknowns)
        means[model.components == model.components[item]] = rating - model.ratings[item]
    return means


def undetermined_items(model: RatingModel) -> int:
    """Number of items of teams that the comparisons cannot compare with any other item."""
    sizes = np.bincount(model.components)
    return int(np.sum(sizes[model.components] == 1))


def team_notes(model: RatingModel, factor: float) -> list[str]:
    """Return what a reader of a board of teams must know, one sentence each.

    Parameters
    ----------
    model : RatingModel
        The model of the board.
    factor : float
        Factor of the scale of the board.
    """
    notes = []
    n_undetermined = undetermined_items(model)
    if n_undetermined:
        notes.append(
            f"{count(n_undetermined, 'item')} without a rank always played with the same others, "
            "so their own ratings are unknown"
        )
    teams = model.counts.teams
    if teams is not None and teams.has_level:
        mean = factor * float(component_means(model)[model.components == 1][0])
        notes.append(
            "teams have different sizes: ratings are relative to the average item, which adds "
            f"{mean:.3g} to the margin of its team"
        )
    return notes
