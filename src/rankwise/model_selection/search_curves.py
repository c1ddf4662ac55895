"""The curves in `cv_results_` of a fitted search, for plots and reports."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array


class SearchCurve(NamedTuple):
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


def curves_of_search(search: Any) -> list[SearchCurve]:
    """One curve for each row of ``cv_results_["mean_score"]``."""
    results, best = search.cv_results_, search.best_params_
    parameter = "alpha" if "alphas" in results else "n_basis"
    settings = results.get("params") or [{"nu": float(nu)} for nu in results["nus"]]
    is_chosen = [all(best[n] == v for n, v in each.items() if n in best) for each in settings]
    curves = []
    for k, params in enumerate(settings):
        scores, values = results["group_score"], results.get(f"{parameter}s")
        scores = scores[k] if isinstance(scores, list) else scores[:, k]
        if values is None:
            values = np.arange(1, scores.shape[1] + 1)
        x = values[k] if isinstance(values, list) else values
        shown = {name: value for name, value in params.items() if name in best}
        curves.append(SearchCurve(shown, parameter, x, scores, k == is_chosen.index(True)))
    return curves
