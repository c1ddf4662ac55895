"""What is left out or drawn again, and ratings of bootstrap samples of the comparisons."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.solving import DENSE_LIMIT, RatingSystem, Solution
from rankwise.leaderboard.tally import Tally
from rankwise.machine import Progress

BATCH = 2**22  # numbers
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
        shape = (len(self.sizes), len(tally.first))
        self.weights = sp.coo_matrix((omega, at), shape).tocsr()
        self.flows = sp.coo_matrix((omega * tally.target[outcomes], at), shape).tocsr()

    def draw(self, n_resamples: int, rng: np.random.Generator) -> NDArray[np.integer]:
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

    def pair_sums(self, counts: NDArray[np.integer]) -> tuple[Array, Array]:
        """Σ ω and Σ ω δ of each distinct pair in each resample."""
        columns = counts.T.astype(np.float64)
        return (self.weights.T @ columns).T, (self.flows.T @ columns).T


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
) -> Solution:
    """Ratings of shape (n_resamples, n_items), and effects, from resamples of the comparisons."""
    n_items = system.tally.n_items
    ratings = np.empty((n_resamples, n_items))
    effects = np.empty((n_resamples, system.tally.n_covariates))
    meter = Progress("bootstrap", n_resamples)
    matrix = n_items**2 if n_items <= DENSE_LIMIT else n_items
    features = 0 if system.X is None else system.X.shape[1] ** 2
    size = max(1, BATCH // max(len(units.sizes), len(system.tally.first), matrix, features))
    for start in range(0, n_resamples, size):
        stop = min(n_resamples, start + size)
        weights, flows = units.pair_sums(units.draw(stop - start, rng))
        samples, effects[start:stop] = system.solve(weights, flows, alpha)
        if means is not None:
            present = (abs(system.tally.incidence).T @ weights.T).T > 0
            samples = means.keep(samples, present)
        ratings[start:stop] = samples
        meter.update(stop)
    meter.close()
    return Solution(ratings, effects)
