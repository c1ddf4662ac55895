"""Grids of candidate values of parameters."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices

#: +1 if larger values of the parameter give simpler models, −1 if smaller values do.
SIMPLER_DIRECTION = {"alpha": 1, "nu": -1, "n_basis": -1}

EQUAL_SCORES = 1e-12  # difference of scores that counts as equal

ALPHA_DECADES = (-15.5, 4)  # of default alphas: from the rounding error to a model shrunk to zero


class CandidateGrid:
    """All combinations of the values of one or more parameters.

    Parameters
    ----------
    axes : dict from str to ndarray
        Parameters and their values, such as {"alpha": ...}, {"alpha": ..., "nu": ...} or
        {"n_basis": ...}. The first parameter changes fastest. Among candidates with equal scores
        the one with the simplest value of the first parameter is best, then of the second: large
        alpha, small nu, few basis functions.

    Attributes
    ----------
    table : ndarray of shape (n_candidates, n_parameters)
        Values of the candidates, one candidate per row.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.model_selection.candidate_grid import CandidateGrid
    >>> grid = CandidateGrid({"alpha": np.array([0.1, 1.0, 10.0]), "nu": np.array([0.0, 1.0])})
    >>> len(grid), grid[4]
    (6, {'alpha': 1.0, 'nu': 1.0})
    >>> grid.best(np.array([1, 2, 3, 3, 3, 1]))
    2
    """

    def __init__(self, axes: dict[str, Array]) -> None:
        self.axes = axes
        # One row per combination; the first parameter varies fastest
        grid = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
        self.table = grid.reshape(-1, len(axes), order="F")

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> dict[str, float]:
        """The parameters of one candidate."""
        return dict(zip(self.axes, self.table[index].tolist(), strict=True))

    def best(self, gain: Array) -> int:
        """Index of the best candidate; among equal gains that of the simplest model.

        Parameters
        ----------
        gain : ndarray of shape (n_candidates,)
            Scores, larger is better; nan where undefined.

        Returns
        -------
        int
            Row of `table`.
        """
        best_candidates = np.flatnonzero(gain >= np.nanmax(gain) - EQUAL_SCORES)
        # Among equal candidates select the simplest model, by one parameter after the other
        for name, values in zip(self.axes, self.table.T, strict=True):
            # Sign 1: larger values are simpler; −1: smaller values are simpler
            simplicity = SIMPLER_DIRECTION[name] * values[best_candidates]
            is_simplest = simplicity == simplicity.max()
            best_candidates = best_candidates[is_simplest]
        return int(best_candidates[0])

    def line_through(self, index: int, name: str) -> Indices:
        """Candidates that differ from the one at `index` in the parameter `name` only."""
        column = list(self.axes).index(name)
        other_parameters = np.delete(self.table, column, axis=1)
        has_same_other_values = (other_parameters == other_parameters[index]).all(axis=1)
        return np.flatnonzero(has_same_other_values)


def default_alphas(scale: float, decades: tuple[float, float] = ALPHA_DECADES) -> Array:
    """Candidate alphas, two per decade.

    Parameters
    ----------
    scale : float
        Sum of the eigenvalues of the system: the mean squared distance between items of a pair.
    decades : tuple of float, default=(-15.5, 4)
        Exponents of ten of the first and the last alpha, relative to the scale.

    Returns
    -------
    ndarray of shape (n_alphas,)
        Alphas in ascending order; 40 with the default decades.
    """
    if not scale > 0:  # constant features: every alpha gives the same model
        scale = 1.0
    first_decade, last_decade = decades
    half_decades = np.arange(np.rint(2 * first_decade), np.rint(2 * last_decade) + 1)
    exponents = half_decades / 2
    return np.asarray(scale * 10.0**exponents)
