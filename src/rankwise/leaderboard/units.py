"""What is left out or drawn again: single comparisons, or clusters of them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.tally import Tally

Counts = NDArray[np.integer]
DRAWS_A_BINOMIAL = 20  # one binomial number costs as much as so many draws


class Units:
    """What is drawn: single comparisons, where those of one outcome are alike, or whole clusters.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    clusters : ndarray of int, shape (n_comparisons,), optional
        Number of the cluster of each comparison, numbered from 0 without gaps.

    Attributes
    ----------
    sizes : ndarray of shape (n_units,)
        How many of the equally likely draws lead to the unit.
    weights, flows : sparse matrix of shape (n_units, n_distinct)
        Σ ω and Σ ω δ that a drawn unit adds to each distinct pair.
    """

    def __init__(self, tally: Tally, clusters: Indices | None = None) -> None:
        outcomes = np.arange(len(tally.count)) if clusters is None else tally.outcome
        units = outcomes if clusters is None else clusters
        self.sizes = tally.count if clusters is None else np.ones(clusters.max() + 1, np.intp)
        omega = tally.weight[outcomes]
        at = (units, tally.pair[outcomes])
        shape = (len(self.sizes), tally.n_distinct)
        self.weights = sp.coo_matrix((omega, at), shape).tocsr()
        self.flows = sp.coo_matrix((omega * tally.target[outcomes], at), shape).tocsr()

    def draw(self, n_resamples: int, rng: np.random.Generator) -> Counts:
        """How often each unit is drawn in each resample, shape (n_resamples, n_units)."""
        n_units, n_draws = len(self.sizes), int(self.sizes.sum())
        if DRAWS_A_BINOMIAL * n_units < n_draws:
            return rng.multinomial(n_draws, self.sizes / n_draws, size=n_resamples)
        unit = np.repeat(np.arange(n_units), self.sizes)
        counts = np.empty((n_resamples, n_units), np.intp)
        for row in counts:
            row[:] = np.bincount(unit[rng.integers(n_draws, size=n_draws)], minlength=n_units)
        return counts

    def of(self, unit: int) -> tuple[NDArray[np.integer], Array, Array]:
        """The distinct pairs of a unit, and what it adds to each: Σ ω and Σ ω δ."""
        at = slice(*self.weights.indptr[unit : unit + 2])
        return self.weights.indices[at], self.weights.data[at], self.flows.data[at]

    def pair_sums(self, counts: Counts) -> tuple[Array, Array]:
        """Σ ω and Σ ω δ of each distinct pair in each resample."""
        columns = counts.T.astype(np.float64)
        return (self.weights.T @ columns).T, (self.flows.T @ columns).T
