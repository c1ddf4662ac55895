"""The functions of RankingPursuit: coefficients of the chosen functions after each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices, MatrixLike
from rankwise.fitted_schema import Floats, Ints, Record, saved_fields
from rankwise.kernels.feature_maps import ColumnFeatures, KernelFeatures
from rankwise.rankers.pursuit_dictionary import Dictionary
from rankwise.solvers.pursuit import Step


@saved_fields(
    {
        "basis": Record(ColumnFeatures, KernelFeatures),
        "choices": Ints("steps"),
        "coef_path": Floats("states functions"),
        "intercept_path": Floats("states"),
    }
)
class PursuitFunction(NamedTuple):
    """The function of one view before the first step and after each.

    Attributes
    ----------
    basis : ColumnFeatures or KernelFeatures
        The chosen functions.
    choices : ndarray of int, shape (n_steps,)
        The number of the function that each step chose.
    coef_path : ndarray of shape (n_steps + 1, n_functions)
        Their coefficients.
    intercept_path : ndarray of shape (n_steps + 1,)
        The intercept.
    """

    basis: ColumnFeatures | KernelFeatures
    choices: Indices
    coef_path: Array
    intercept_path: Array

    def scores(self, X: MatrixLike) -> Array:
        """Scores after the last step, shape (n_items,)."""
        return self._scores_of_path(X, self.coef_path[-1], self.intercept_path[-1])

    def staged_scores(self, X: MatrixLike) -> Array:
        """Scores before the first step and after each, shape (n_items, n_steps + 1)."""
        return self._scores_of_path(X, self.coef_path.T, self.intercept_path)

    def _scores_of_path(self, X: MatrixLike, coef: Array, intercept: Array) -> Array:
        has_functions = len(coef) > 0
        if has_functions:
            return np.asarray(self.basis.scores(X, coef) + intercept)
        # without functions every score is the intercept
        return np.broadcast_to(intercept, (X.shape[0], *np.shape(intercept)))


def make_functions(
    dictionaries: list[Dictionary], steps: list[Step], mean_score: float | None
) -> list[PursuitFunction]:
    """Gather the coefficients of all steps; with `mean_score` there is an intercept."""
    has_intercept = mean_score is not None
    n_states = len(steps) + 1  # a model before the first step, and one after each step
    functions = []
    for view, dictionary in enumerate(dictionaries):
        # Numbers of functions in the dictionary: each function of the basis once, and the function
        # chosen in each step, which may be one that is in the basis already
        basis_numbers: list[int] = []
        if steps:
            basis_numbers = steps[-1].basis[view]
        chosen_numbers = [step.chosen[view] for step in steps]

        # after a step, the functions of later steps have coefficient 0
        coef_path = np.zeros((n_states, len(basis_numbers)))
        intercept_path = np.zeros(n_states)
        if has_intercept:
            intercept_path[:] = mean_score
        for n_steps, step in enumerate(steps, 1):
            coef = step.coef[view]
            coef_path[n_steps, : len(coef)] = coef
            if has_intercept:  # the mean prediction is the mean score
                intercept_path[n_steps] -= step.means[view]
        basis = dictionary.take(np.array(basis_numbers, dtype=np.intp))
        choices = dictionary.indices[np.array(chosen_numbers, dtype=np.intp)]
        functions.append(PursuitFunction(basis, choices, coef_path, intercept_path))
    return functions
