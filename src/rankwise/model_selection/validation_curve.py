"""Curves of held-out scores over one parameter of a search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array


class ValidationCurve(NamedTuple):
    """Held-out scores over alpha or the number of steps, all else fixed.

    Attributes
    ----------
    params : dict
        The values of the other parameters that were searched.
    parameter : str
        "alpha" or "n_basis".
    x : ndarray of shape (n_candidates,)
        Its values.
    by_group : ndarray of shape (n_groups, n_candidates) or (n_groups, n_candidates, n_outputs)
        Scores.
    is_chosen : bool
        Whether the chosen parameters lie on this curve.
    """

    params: dict[str, Any]
    parameter: str
    x: Array
    by_group: Array
    is_chosen: bool

    def place(self, value: float) -> int:
        """Where the parameter has a value."""
        return int(np.flatnonzero(self.x == value)[0])


def curves_of_search(search: Any) -> list[ValidationCurve]:
    """One curve for each row of ``cv_results_["mean_score"]``."""
    results, best = search.cv_results_, search.best_params_
    parameter = "alpha" if "alphas" in results else "n_basis"
    curves: list[ValidationCurve] = []
    for k, params in enumerate(results["params"]):
        shown = {name: value for name, value in params.items() if name in best}
        is_chosen = shown.items() <= best.items() and not any(one.is_chosen for one in curves)
        x = results["alphas"][k] if parameter == "alpha" else results["n_basis"]
        curves.append(ValidationCurve(shown, parameter, x, results["group_score"][k], is_chosen))
    return curves
