"""Disagreement with explicit preferences, which have edges but no scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["edge_disagreement"]


def edge_disagreement(
    winner: NDArray[np.intp],
    loser: NDArray[np.intp],
    weight: NDArray[np.float64],
    scores: NDArray[np.floating[Any]],
    unit: NDArray[np.intp] | None = None,
    n_units: int = 1,
) -> NDArray[np.float64]:
    """Share of the weight of edges whose loser scores higher; equal scores count one half.

    Parameters
    ----------
    winner, loser : ndarray of shape (n_edges,)
        Items.
    weight : ndarray of shape (n_edges,)
        Weights; an edge that states a tie should have none.
    scores : ndarray of shape (n_items,)
        Predicted scores.
    unit : ndarray of shape (n_edges,), optional
        Group of each edge; one group if not given.
    n_units : int
        Number of groups.

    Returns
    -------
    ndarray of shape (n_units,)
        nan for a group without weight.
    """
    gap = scores[winner] - scores[loser]
    unit = np.zeros(len(winner), dtype=np.intp) if unit is None else unit
    wrong, total = np.zeros(n_units), np.zeros(n_units)
    np.add.at(wrong, unit, weight * ((gap < 0) + 0.5 * (gap == 0)))
    np.add.at(total, unit, weight)
    share = np.full(n_units, np.nan)
    np.divide(wrong, total, out=share, where=total > 0)
    return share
