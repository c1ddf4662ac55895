"""Candidates: the values of parameters that are judged together, as one flat list."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.model_selection.alpha_grid import AlphaGrid, Edges, edges_of
from rankwise.real_numbers import as_real

SIMPLER = {"alpha": 1, "nu": -1, "n_basis": -1}  # the sign of the direction of simpler models
SAME = 1e-12  # scores that differ by less are equal but for rounding


@dataclass(frozen=True, eq=False)
class Candidates:
    """A table of all combinations of the values of some parameters, one candidate in each row.

    Parameters
    ----------
    axes : dict from str to ndarray
        Parameters and their values, such as {"alpha": ...}, {"alpha": ..., "nu": ...} or
        {"n_basis": ...}. In the table the first parameter changes fastest. Of candidates that score
        alike the one with the simplest value of the first is chosen, then of the second: large
        alpha, small nu, few basis functions.
    grid : AlphaGrid, optional
        Where the alphas come from, if they are default ones, which may be widened.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.model_selection.candidates import Candidates
    >>> both = Candidates({"alpha": np.array([0.1, 1.0, 10.0]), "nu": np.array([0.0, 1.0])})
    >>> len(both), both[4]
    (6, {'alpha': 1.0, 'nu': 1.0})
    >>> both.best(np.array([1, 2, 3, 3, 3, 1]))
    2
    """

    axes: dict[str, Array]
    grid: AlphaGrid | None = None

    @cached_property
    def table(self) -> Array:
        """The values, shape (n_candidates, n_parameters)."""
        columns = np.meshgrid(*reversed(self.axes.values()), indexing="ij")
        return np.stack([column.ravel() for column in reversed(columns)], axis=1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of values, those of the last parameter first: how to fold a row of candidates."""
        return tuple(len(values) for values in reversed(self.axes.values()))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, at: int) -> dict[str, Any]:
        """The parameters of one candidate."""
        row = zip(self.axes, self.table[at].tolist(), strict=True)
        return {name: int(value) if name == "n_basis" else value for name, value in row}

    def best(self, gain: Array) -> int:
        """Where the gain is largest; of equal ones the simplest model, of equal models the first.

        Parameters
        ----------
        gain : ndarray of shape (n_candidates,)
            Scores, larger being better; nan where there is none.
        """
        ties = np.flatnonzero(gain == np.nanmax(gain))
        signs = np.array([SIMPLER[name] for name in self.axes])
        simplest = np.lexsort((-signs * self.table[ties])[:, ::-1].T)
        at = int(ties[simplest[0]])
        if "nu" not in self.axes:
            return at
        line, _ = self.line(at, "nu")  # where nu makes no difference but for rounding: the smallest
        same = line[gain[line] >= gain[at] - SAME]
        return int(same[np.argmin(self.table[same, list(self.axes).index("nu")])])

    def line(self, at: int, name: str) -> tuple[NDArray[np.intp], int]:
        """The candidates that have every value of one parameter, all else as `at`; its place."""
        axis = len(self.axes) - 1 - list(self.axes).index(name)
        place = list(np.unravel_index(at, self.shape))
        every: list[Any] = [slice(value, value + 1) for value in place]
        every[axis] = slice(None)
        return np.arange(len(self)).reshape(self.shape)[tuple(every)].ravel(), int(place[axis])

    def edges(self, scores: Array, at: int, name: str) -> Edges:
        """Which ends of the values of one parameter the choice `at` is at, all else equal."""
        line, place = self.line(at, name)
        return edges_of(self.axes[name], scores[line], place)

    def beyond(self, edges: Edges) -> Candidates | None:
        """More candidates beyond the ends of the default alphas; None if there are none."""
        if self.grid is None or (grid := self.grid.wider(edges)) == self.grid:
            return None
        return Candidates({**self.axes, "alpha": grid.beyond(self.grid)}, grid)

    def joined(self, more: Candidates) -> tuple[Candidates, NDArray[np.intp]]:
        """These and those beyond, by ascending alpha, and the former place of each."""
        alphas = np.concatenate([self.axes["alpha"], more.axes["alpha"]])
        order = np.argsort(alphas)
        ours = np.arange(len(self)).reshape(self.shape)
        theirs = len(self) + np.arange(len(more)).reshape(more.shape)
        places = np.concatenate([ours, theirs], axis=-1)[..., order]
        return Candidates({**self.axes, "alpha": alphas[order]}, more.grid), places.ravel()


def check_alphas(alphas: ArrayLike, name: str) -> Array:
    """Positive finite numbers, as an array of one dimension."""
    checked = _numbers(alphas, name, "positive numbers")
    bad = ~(np.isfinite(checked) & (checked > 0))
    if bad.any():
        raise ValueError(
            f"{name}: got {checked[bad][0]}, expected a positive finite number; alpha is the "
            "weight of the regularizer, and for almost none pass something small such as 1e-9."
        )
    return checked


def check_nus(nus: ArrayLike, name: str) -> Array:
    """Finite numbers from 0, as an array of one dimension."""
    checked = _numbers(nus, name, "numbers from 0")
    bad = ~(np.isfinite(checked) & (checked >= 0))
    if bad.any():
        raise ValueError(
            f"{name}: got {checked[bad][0]}, expected a finite number from 0 (the views are "
            "trained independently) upwards (they agree more and more)."
        )
    return checked


def _numbers(values: ArrayLike, name: str, expected: str) -> Array:
    try:
        checked = as_real(name, values)
    except ValueError:
        raise ValueError(f"{name}: got {values!r}, expected {expected}.") from None
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"{name} has shape {checked.shape}; expected a flat list of numbers.")
    return checked
