"""Ratings of bootstrap samples of the comparisons."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.solving import DENSE_LIMIT, RatingSystem, Solutions
from rankwise.leaderboard.units import Units
from rankwise.machine import Progress, check_matrix_fits

BATCH = 2**22  # numbers


class KeptMeans:
    """Mean ratings that the components keep in every resample.

    Comparisons determine ratings up to a constant, which makes their mean 0. If weak items are
    missing in a resample, the others have mean 0 there, but a higher mean on the board. So the
    items in the resample are shifted to the mean that they have on the board, and the missing ones
    get 0. If no item is missing, nothing changes.

    Parameters
    ----------
    ratings : ndarray of shape (n_items,)
        From all comparisons.
    components : ndarray of int, shape (n_items,)
        The component of each item, numbered from 1.
    """

    def __init__(self, ratings: Array, components: Indices) -> None:
        self.ratings, self.component = ratings, components - 1
        n = len(ratings)
        self.indicator = sp.csr_matrix((np.ones(n), self.component, np.arange(n + 1)))

    def keep(self, samples: Array, present: NDArray[np.bool_]) -> Array:
        """The samples with their means corrected; both arrays have shape (n_resamples, n_items)."""
        if present.all():
            return samples
        missing = np.where(present, self.ratings - samples, 0.0) @ self.indicator
        n_present = np.maximum(1, present @ self.indicator)
        shift = (missing / n_present)[:, self.component]
        return np.where(present, samples + shift, 0.0)


def resample(
    system: RatingSystem,
    units: Units,
    alpha: float,
    n_resamples: int,
    rng: np.random.Generator,
    means: KeptMeans | None = None,
) -> Solutions:
    """Ratings of shape (n_resamples, n_items), and effects, from resamples of the comparisons."""
    n_items = system.tally.n_items
    check_matrix_fits(n_resamples, n_items, "the resampled ratings", "pass a smaller n_resamples")
    ratings = np.empty((n_resamples, n_items))
    effects = np.empty((n_resamples, system.tally.n_covariates))
    meter = Progress("bootstrap", n_resamples)
    for start, stop in _batches(n_resamples, _batch_size(system, units)):
        weights, flows = units.pair_sums(units.draw(stop - start, rng))
        found, effects[start:stop] = system.solve(weights, flows, alpha)
        if means is not None:
            present = (abs(system.tally.incidence).T @ weights.T).T > 0
            found = means.keep(found, present)
        ratings[start:stop] = found
        meter.update(stop)
    meter.close()
    return Solutions(ratings, effects)


def _batch_size(system: RatingSystem, units: Units) -> int:
    n_items = system.tally.n_items
    matrix = n_items**2 if n_items <= DENSE_LIMIT else n_items
    features = 0 if system.X is None else system.X.shape[1] ** 2
    return max(1, BATCH // max(len(units.sizes), system.tally.n_distinct, matrix, features))


def _batches(n: int, size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n, size):
        yield start, min(n, start + size)
