"""Ratings of bootstrap samples of the comparisons."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.leaderboard.solving import DENSE_LIMIT, RatingSystem
from rankwise.leaderboard.tally import Tally
from rankwise.memory import check_matrix_fits
from rankwise.progress import Meter

__all__ = ["Level", "Units", "resample"]

Array = NDArray[np.float64]
Counts = NDArray[np.integer]
BATCH = 2**22  # numbers
DRAWS_A_BINOMIAL = 20  # that a binomial number costs as much as


class Units:
    """What is drawn: single comparisons, those of one cell being alike, or whole clusters.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    clusters : ndarray of int, shape (n_comparisons,), optional
        Number of the cluster of each comparison, every number from 0 on being there.

    Attributes
    ----------
    sizes : ndarray of shape (n_units,)
        How many of the equally likely draws lead to the unit.
    weights, flows : sparse matrix of shape (n_units, n_distinct)
        Σ ω and Σ ω δ that a drawn unit adds to each distinct pair.
    """

    def __init__(self, tally: Tally, clusters: NDArray[np.intp] | None = None) -> None:
        cells = np.arange(len(tally.count)) if clusters is None else tally.cell
        units = cells if clusters is None else clusters
        self.sizes = tally.count if clusters is None else np.ones(clusters.max() + 1, np.intp)
        omega = tally.weight[cells]
        at = (units, tally.pair[cells])
        shape = (len(self.sizes), tally.n_distinct)
        self.weights = sp.coo_matrix((omega, at), shape).tocsr()
        self.flows = sp.coo_matrix((omega * tally.target[cells], at), shape).tocsr()

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

    def pair_sums(self, counts: Counts) -> tuple[Array, Array]:
        """Σ ω and Σ ω δ of each distinct pair in each resample."""
        columns = counts.T.astype(np.float64)
        return (self.weights.T @ columns).T, (self.flows.T @ columns).T


class Level:
    """Where the zero of the ratings of a resample is, which its comparisons do not tell.

    A rating has mean 0. If weak items are missing in a resample, the mean of the others is 0 in it
    though it is more on the board. So those which are there get the mean that they have on the
    board; those which are not there get 0. Nothing changes if no item is missing.

    Parameters
    ----------
    ratings : ndarray of shape (n_items,)
        From all comparisons.
    components : ndarray of int, shape (n_items,)
        Parts with a level of their own, numbered from 1.
    """

    def __init__(self, ratings: Array, components: NDArray[np.intp]) -> None:
        self.ratings, self.part = ratings, components - 1
        n = len(ratings)
        self.indicator = sp.csr_matrix((np.ones(n), self.part, np.arange(n + 1)))

    def keep(self, samples: Array, present: NDArray[np.bool_]) -> Array:
        """The samples with their level corrected; both arrays have shape (n_resamples, n_items)."""
        if present.all():
            return samples
        missing = np.where(present, self.ratings - samples, 0.0) @ self.indicator
        n_present = np.maximum(1, present @ self.indicator)
        shift = (missing / n_present)[:, self.part]
        return np.where(present, samples + shift, 0.0)


def resample(
    system: RatingSystem,
    units: Units,
    alpha: float,
    n_resamples: int,
    rng: np.random.Generator,
    level: Level | None = None,
) -> Array:
    """Ratings of shape (n_resamples, n_items) from resamples of the comparisons."""
    n_items = system.tally.n_items
    check_matrix_fits(n_resamples, n_items, "the resampled ratings", "pass a smaller n_resamples")
    ratings = np.empty((n_resamples, n_items))
    if not n_resamples:
        return ratings
    meter = Meter("bootstrap", n_resamples)
    for start, stop in _batches(n_resamples, _batch_size(system, units)):
        weights, flows = units.pair_sums(units.draw(stop - start, rng))
        found = system.solve(weights, flows, alpha)
        if level is not None:
            present = (abs(system.tally.incidence).T @ weights.T).T > 0
            found = level.keep(found, present)
        ratings[start:stop] = found
        meter.update(stop)
    meter.close()
    return ratings


def _batch_size(system: RatingSystem, units: Units) -> int:
    n_items = system.tally.n_items
    matrix = n_items**2 if n_items <= DENSE_LIMIT else n_items
    features = 0 if system.X is None else system.X.shape[1] ** 2
    return max(1, BATCH // max(len(units.sizes), system.tally.n_distinct, matrix, features))


def _batches(n: int, size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n, size):
        yield start, min(n, start + size)
