"""Candidates: the values of parameters that are judged together, as one flat list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.errors import warn_user
from rankwise.inputs import check_alphas

SIMPLER = {"alpha": 1, "nu": -1, "n_basis": -1}  # the sign of the direction of simpler models
SAME = 1e-12  # scores that differ by less are equal but for rounding
DECADES = (-15.5, 4)  # where default alphas start and end: from rounding to nothing learned


class Candidates:
    """A table of all combinations of the values of some parameters, one candidate in each row.

    Parameters
    ----------
    axes : dict from str to ndarray
        Parameters and their values, such as {"alpha": ...}, {"alpha": ..., "nu": ...} or
        {"n_basis": ...}. In the table the first parameter changes fastest. Of candidates that score
        alike the one with the simplest value of the first is chosen, then of the second: large
        alpha, small nu, few basis functions.

    Attributes
    ----------
    table : ndarray of shape (n_candidates, n_parameters)
        The values.

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

    def __init__(self, axes: dict[str, Array]) -> None:
        self.axes = axes
        columns = np.meshgrid(*reversed(axes.values()), indexing="ij")
        self.table = np.stack([column.ravel() for column in reversed(columns)], axis=1)

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
        line = self.line(at, "nu")  # where nu makes no difference but for rounding: the smallest
        same = line[gain[line] >= gain[at] - SAME]
        return int(same[np.argmin(self.table[same, list(self.axes).index("nu")])])

    def line(self, at: int, name: str) -> Indices:
        """The candidates that have every value of one parameter, all else as `at`."""
        others = [column for column, axis in enumerate(self.axes) if axis != name]
        same = (self.table[:, others] == self.table[at, others]).all(axis=1)
        return np.flatnonzero(same)


def default_alphas(scale: float, decades: tuple[float, float] = DECADES) -> Array:
    """Two alphas a decade; the 40 of RankRLS run from rounding to 1e4 times the scale.

    Parameters
    ----------
    scale : float
        Sum of the eigenvalues of the system: the mean squared distance between items of a pair.
    decades : tuple of float
        Powers of ten where the alphas start and end, relative to the scale.
    """
    scale = scale if scale > 0 else 1.0  # constant features: every alpha gives the same model
    low, high = (round(2 * decade) for decade in decades)
    return np.asarray(scale * 10.0 ** (np.arange(low, high + 1) / 2))


def warn_at_edge(name: str, grid: Array, scores: Array, at: int) -> None:
    """Warn if the grid ends at the choice `at` and no other value is as good."""
    is_alone = len(grid) > 1 and bool((np.delete(scores, at) != scores[at]).all())
    if is_alone and grid[at] in (grid.min(), grid.max()):
        warn_user(
            f"the best {name} {grid[at]:g} is at the edge of the grid from {grid.min():g} to "
            f"{grid.max():g}; extend the grid, or scale the features."
        )


def asked_alphas(values: Mapping[str, ArrayLike | None], own: float) -> Array | None:
    """The alphas that were asked for, that of the learner if none were; None for default ones."""
    alphas = values.get("alpha", [own])
    return None if alphas is None else check_alphas(alphas, "alphas")
