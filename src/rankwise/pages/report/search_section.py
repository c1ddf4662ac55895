"""The search of a report: held-out scores of all candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import Array
from rankwise.formatting import JsonObject
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.by_group import nanmean, standard_error
from rankwise.model_selection.validation_curve import ValidationCurve, curves_of_search
from rankwise.pages.page_values import short_numbers

MAX_CURVES = 8


class _MeanCurve(NamedTuple):
    """Mean score of each candidate of a curve, with its standard error over units."""

    curve: ValidationCurve
    mean: Array
    error: Array
    n_units: int

    def best(self, metric: Metric) -> float:
        """The best mean, negated for errors; −inf if the metric is undefined."""
        goodness = self.mean if metric.greater_is_better else -self.mean
        return float(np.max(goodness, initial=-np.inf, where=~np.isnan(goodness)))

    def describe(self) -> JsonObject:
        params = self.curve.params.items()
        return {
            "label": ", ".join(f"{name} = {value}" for name, value in params),
            "x": short_numbers(self.curve.x),
            "mean": short_numbers(self.mean, 6),
            "low": short_numbers(self.mean - self.error, 6),
            "high": short_numbers(self.mean + self.error, 6),
        }


def describe_search(learner: BaseEstimator | None) -> JsonObject | None:
    """The held-out score of each candidate of a search of rankwise; None without a search."""
    results: Mapping[str, object] = getattr(learner, "cv_results_", {})
    if "mean_score" not in results:
        return None
    assert learner is not None
    metric = get_metric(learner.scoring)
    curves = [_average(curve) for curve in curves_of_search(learner)]
    defined = [curve for curve in curves if np.isfinite(curve.best(metric))]
    best_first = sorted(defined, key=lambda mean: (not mean.curve.is_chosen, -mean.best(metric)))
    best_curves = best_first[:MAX_CURVES]
    parameter = best_curves[0].curve.parameter
    best_value = learner.best_params_[parameter]
    return {
        "variable": parameter,
        "isLog": parameter == "alpha",
        "metric": metric.title,
        "greater": metric.greater_is_better,
        "heldOut": str(results.get("cv", "folds")),
        "curves": [curve.describe() for curve in best_curves],
        "total": len(curves),
        "best": {
            "x": short_numbers(best_value)[0],
            "y": short_numbers(learner.best_score_)[0],
        },
        "isFlat": _is_flat(best_curves[0], best_value),
        "nUnits": best_curves[0].n_units,
        "unit": _unit_of(results),
    }


def _average(curve: ValidationCurve) -> _MeanCurve:
    """Average over outputs and units."""
    by_unit = curve.by_group
    if by_unit.ndim > 2:
        by_unit = by_unit.mean(axis=2)
    n_units = int((~np.isnan(by_unit)).any(axis=1).sum())
    error = curve.error
    if error is None:
        error = standard_error(by_unit)
    return _MeanCurve(curve, nanmean(by_unit), error, n_units)


def _is_flat(best_curve: _MeanCurve, best_value: float) -> bool:
    """Whether all candidates of a curve are within one standard error of the best candidate."""
    chosen = best_curve.curve.place(best_value)
    distance = np.abs(best_curve.mean - best_curve.mean[chosen])
    has_several = len(best_curve.mean) > 1
    return has_several and bool(np.all(distance <= best_curve.error[chosen]))


def _unit_of(results: Mapping[str, object]) -> str:
    """Name of the units over which scores are averaged.

    The rows of a single list that was split into folds all have the label of that list.
    """
    labels = results.get("groups")
    if labels is None:  # RankingPursuitCV
        return "held-out parts"
    unit_labels = np.asarray(labels)
    is_unique = len(np.unique(unit_labels)) == len(unit_labels)
    if is_unique and results.get("cv") != "folds of edges":
        return "groups"
    return "folds"
