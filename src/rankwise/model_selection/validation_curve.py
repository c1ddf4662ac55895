"""Curves of held-out scores over one parameter of a search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import Array


class ValidationCurve(NamedTuple):
    """Held-out scores over alpha or the number of steps, with all other parameters fixed.

    Attributes
    ----------
    params : dict
        The values of the other parameters that were searched.
    parameter : str
        "alpha" or "n_basis".
    x : ndarray of shape (n_candidates,)
        Values of that parameter.
    by_group : ndarray of shape (n_groups, n_candidates) or (n_groups, n_candidates, n_outputs)
        Scores.
    is_chosen : bool
        Whether the chosen parameters lie on this curve.
    error : ndarray of shape (n_candidates,) or None
        Standard errors of the means, if comparisons that share items were held out.
    """

    params: dict[str, object]
    parameter: str
    x: Array
    by_group: Array
    is_chosen: bool
    error: Array | None = None

    def place(self, value: float) -> int:
        """Position of a value of the parameter on the curve."""
        return int(np.flatnonzero(self.x == value)[0])


def curves_of_search(search: BaseEstimator) -> list[ValidationCurve]:
    """One curve for each row of ``cv_results_["mean_score"]`` of a fitted search."""
    results = search.cv_results_
    best_params = search.best_params_
    curves: list[ValidationCurve] = []
    has_chosen = False
    for k, params in enumerate(results["params"]):
        searched_params = {name: value for name, value in params.items() if name in best_params}
        # The first candidate with the best parameters; there may be equal ones
        is_best = searched_params.items() <= best_params.items()
        is_chosen = is_best and not has_chosen
        has_chosen = has_chosen or is_chosen
        if "alphas" in results:
            parameter = "alpha"
            x = results["alphas"][k]
        else:
            parameter = "n_basis"
            x = results["n_basis"]
        error = None
        if "standard_error" in results:
            error = results["standard_error"][k]
        by_group = results["group_score"][k]
        curves.append(ValidationCurve(searched_params, parameter, x, by_group, is_chosen, error))
    return curves
