"""Grids of candidate parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arrays import Array, Indices

SIMPLER = {"alpha": 1, "nu": -1, "n_basis": -1}  # the sign of the direction of simpler models

SAME = 1e-12  # scores that differ by less are equal but for rounding

ALPHA_DECADES = (-15.5, 4)  # where default alphas start and end: from rounding to nothing learned


class CandidateGrid:
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
    >>> from rankwise.model_selection.folds import Candidates
    >>> both = Candidates({"alpha": np.array([0.1, 1.0, 10.0]), "nu": np.array([0.0, 1.0])})
    >>> len(both), both[4]
    (6, {'alpha': 1.0, 'nu': 1.0})
    >>> both.best(np.array([1, 2, 3, 3, 3, 1]))
    2
    """

    def __init__(self, axes: dict[str, Array]) -> None:
        self.axes = axes
        grid = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
        self.table = grid.reshape(-1, len(axes), order="F")

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, at: int) -> dict[str, Any]:
        """The parameters of one candidate."""
        return dict(zip(self.axes, self.table[at].tolist(), strict=True))

    def best(self, gain: Array) -> int:
        """Where the gain is largest; of equal ones the simplest model, of equal models the first.

        Parameters
        ----------
        gain : ndarray of shape (n_candidates,)
            Scores, larger being better; nan where there is none.
        """
        best = np.flatnonzero(gain >= np.nanmax(gain) - SAME)
        for name, column in zip(self.axes, self.table.T, strict=True):
            simple = SIMPLER[name] * column[best]
            best = best[simple == simple.max()]
        return int(best[0])

    def line(self, at: int, name: str) -> Indices:
        """The candidates that have every value of one parameter, all else as `at`."""
        others = np.delete(self.table, list(self.axes).index(name), axis=1)
        return np.flatnonzero((others == others[at]).all(axis=1))


def default_alphas(scale: float, decades: tuple[float, float] = ALPHA_DECADES) -> Array:
    """Two alphas a decade; the 40 of RankRLS run from rounding to 1e4 times the scale.

    Parameters
    ----------
    scale : float
        Sum of the eigenvalues of the system: the mean squared distance between items of a pair.
    decades : tuple of float
        Powers of ten where the alphas start and end, relative to the scale.
    """
    scale = scale if scale > 0 else 1.0  # constant features: every alpha gives the same model
    low, high = np.rint(2 * np.array(decades))
    return np.asarray(scale * 10.0 ** (np.arange(low, high + 1) / 2))
