"""Candidates for alpha: where the default ones start and end, and what to say of a choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.errors import warn_user

STEP = 3  # decades by which a grid is widened at a time
CEILING = 6  # decades above the scale where it ends; far below, all models order items alike
CONSTANT = 1e-30  # norm of a column, relative to the largest, that rounding of its mean may leave
SAME = 1e-12  # scores that differ by less are equal but for rounding
NEAR = 0.1  # standard errors of the best score within which another is as good


class Edges(NamedTuple):
    """Which ends of a grid the choice is at."""

    lower: bool
    upper: bool


class AlphaGrid(NamedTuple):
    """Alphas ``scale · 10^(k / per_decade)`` for k from `low` to `high`.

    Attributes
    ----------
    scale : float
        Sum of the eigenvalues of the system: the mean squared distance between items of a pair.
    low, high : int
        The first and the last k.
    per_decade : int
        Alphas in each decade.
    hides : bool
        Whether the median column would need alphas below the floor.
    """

    scale: float
    low: int
    high: int
    per_decade: int
    hides: bool = False

    @property
    def alphas(self) -> Array:
        """The candidates, from the smallest to the largest."""
        return self.values(range(self.low, self.high + 1))

    @property
    def floor(self) -> int:
        """The smallest k of any grid: below, rounding in the system is as large as alpha."""
        return int(np.ceil(self.per_decade * np.log10(np.finfo(np.float64).eps)))

    def values(self, steps: range) -> Array:
        """Alphas of some k."""
        return np.asarray(
            self.scale * 10.0 ** (np.array(steps, dtype=np.float64) / self.per_decade)
        )

    def wider(self, edges: Edges) -> AlphaGrid:
        """Three decades more at the edges where the choice is, up to the limits of any grid."""
        more = STEP * self.per_decade
        low = max(self.low - more, self.floor) if edges.lower else self.low
        high = min(self.high + more, CEILING * self.per_decade) if edges.upper else self.high
        return self._replace(low=min(low, self.low), high=max(high, self.high))

    def beyond(self, narrow: AlphaGrid) -> Array:
        """The alphas that a narrower grid does not have."""
        below, above = range(self.low, narrow.low), range(narrow.high + 1, self.high + 1)
        return np.concatenate([self.values(below), self.values(above)])


def make_grid(
    scale: float, share: float = 1.0, *, decades: tuple[int, int] = (-8, 2), per_decade: int = 3
) -> AlphaGrid:
    """31 values from 1e-8 to 1e2 times the scale, and smaller ones if the columns need them.

    Parameters
    ----------
    scale : float
        Sum of the eigenvalues of the system.
    share : float
        See `median_share`: the grid starts at 1e-8 times this share of the scale.
    decades : tuple of int
        Powers of ten where the grid starts and ends.
    per_decade : int
        Values in each decade.
    """
    if not scale > 0:
        scale = 1.0  # constant features: every alpha gives the same model
    low, high = (per_decade * decade for decade in decades)
    grid = AlphaGrid(scale, low, high, per_decade)
    lower = low + round(per_decade * np.log10(min(share, 1.0)))
    return grid._replace(low=max(lower, grid.floor), hides=lower < grid.floor)


def median_share(norms: Array) -> float:
    """What the sum of the norms would be if all columns were as the median one, relative to it.

    One column on a large scale has nearly all of the sum, and an alpha in proportion to it shuts
    off the others. Columns that are constant but for rounding do not count.
    """
    seen = norms[norms > CONSTANT * norms.max(initial=0.0)]
    return float(np.median(seen) * len(seen) / seen.sum()) if len(seen) else 1.0


def edges_of(grid: Array, scores: Array, at: int) -> Edges:
    """Whether the choice `at` is the first or last of the grid and no other is as good."""
    order = np.argsort(grid)
    alone = len(grid) > 1 and bool((np.delete(scores, at) != scores[at]).all())
    return Edges(alone and at == order[0], alone and at == order[-1])


def warn_at_edge(name: str, grid: Array, scores: Array, at: int) -> None:
    """Warn if the grid of the user ends at the choice `at`, where the score still improves."""
    if any(edges_of(grid, scores, at)):
        warn_user(
            f"the best {name} {grid[at]:g} is at the edge of the grid from {grid.min():g} to "
            f"{grid.max():g}; extend the grid.",
        )


def warn_at_edge_of_gamma(
    points: Sequence[dict[str, Any]], scores: Array, chosen: dict[str, Any]
) -> None:
    """The same for widths of a kernel, if there are more than two.

    Parameters
    ----------
    points : sequence of dict
        Kernel parameters that were tried.
    scores : ndarray of shape (n_points,)
        The best score of each.
    chosen : dict
        One of the points.
    """
    same = [{**point, "gamma": chosen.get("gamma")} == chosen for point in points]
    gammas = [point.get("gamma") for point, others in zip(points, same, strict=True) if others]
    if len(gammas) > 2 and None not in gammas:
        grid, at = np.array(gammas, dtype=np.float64), gammas.index(chosen["gamma"])
        warn_at_edge("gamma", grid, scores[same], at)


def warn_at_limit(grid: AlphaGrid, edges: Edges) -> None:
    """Warn if the choice is where no default grid goes on, or the columns need a wider one."""
    alphas = grid.alphas
    at_edge = "the best alpha {:g} is at the edge of the default grid: "
    scale = " Scale the features, for example with sklearn.preprocessing.StandardScaler."
    if edges.upper:
        message = at_edge.format(alphas[-1]) + (
            "nearly nothing is learned. The features may not tell the order of held-out items."
        )
    elif edges.lower:
        message = at_edge.format(alphas[0]) + (
            "below, rounding of the largest features or kernel values hides the small ones." + scale
        )
    elif grid.hides:
        message = (
            "half of the features are on scales ten thousand times and more below the largest: an "
            "alpha that suits them is near the rounding of the largest." + scale
        )
    else:
        return
    warn_user(message)


def flat_note(name: str, grid: Array, mean: Array, error: Array, at: int) -> str:
    """A sentence if at least half of the grid is as good as the choice, else an empty string.

    As good means: equal but for rounding, or within a tenth of the standard error of the best.

    Parameters
    ----------
    name : str
        Of the parameter.
    grid, mean, error : ndarray of shape (n,)
        Candidates, their mean scores and the standard errors of these (nan if unknown).
    at : int
        The choice.
    """
    if len(grid) < 2:
        return ""
    distance = np.abs(mean - mean[at])
    same = distance <= SAME
    near = same | (distance <= NEAR * np.nan_to_num(error[at]))
    stretch = grid[near]
    if 2 * len(stretch) < len(grid) or len(stretch) < 2:
        return ""
    how = "score the same" if same[near].all() else "score within a tenth of the standard error"
    which = "all" if near.all() else f"{len(stretch)} of"
    return (
        f"{which} {len(grid)} values of {name}, from {stretch.min():.3g} to {stretch.max():.3g}, "
        f"{how}: the choice hardly matters"
    )
