"""The search of a report: held-out scores of all candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import Array
from rankwise.formatting import JsonObject
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.by_group import nanmean_over_units, standard_error
from rankwise.model_selection.validation_curve import ValidationCurve, curves_of_search
from rankwise.pages.page_values import short_numbers

MAX_CURVES = 8


class _MeanCurve(NamedTuple):
    """Mean score of each candidate of a curve, with its standard error over units."""

    curve: ValidationCurve
    mean: Array
    error: Array
    n_units: int

    def best_quality(self, metric: Metric) -> float:
        """The best mean, negated for errors; −inf if the metric is undefined."""
        quality = self.mean
        if not metric.greater_is_better:
            quality = -self.mean
        return float(np.max(quality, initial=-np.inf, where=~np.isnan(quality)))

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
    mean_curves = [_average_units(curve) for curve in curves_of_search(learner)]

    # Curves with a defined metric: the chosen one first, then the others by their best value (the
    # second sort is stable).
    sorted_curves = [curve for curve in mean_curves if np.isfinite(curve.best_quality(metric))]
    sorted_curves.sort(key=lambda mean_curve: -mean_curve.best_quality(metric))
    sorted_curves.sort(key=lambda mean_curve: not mean_curve.curve.is_chosen)
    shown_curves = sorted_curves[:MAX_CURVES]
    chosen_curve = shown_curves[0]
    parameter = chosen_curve.curve.parameter
    best_value = learner.best_params_[parameter]  # of the parameter on the horizontal axis
    (best_x,) = short_numbers(best_value)
    (best_score,) = short_numbers(learner.best_score_)
    return {
        "variable": parameter,
        "isLog": parameter == "alpha",
        "metric": metric.title,
        "greater": metric.greater_is_better,
        "heldOut": str(results.get("cv", "folds")),
        "curves": [curve.describe() for curve in shown_curves],
        "total": len(mean_curves),
        "best": {"x": best_x, "y": best_score},
        "isFlat": _is_flat(chosen_curve, best_value),
        "nUnits": chosen_curve.n_units,
        "unit": _unit_of(results),
    }


def _average_units(curve: ValidationCurve) -> _MeanCurve:
    """Average over outputs and units."""
    by_unit = curve.by_group  # (n_units, n_values) or (n_units, n_values, n_outputs)
    if by_unit.ndim > 2:
        by_unit = by_unit.mean(axis=2)  # over the outputs; units are groups or folds
    is_defined = (~np.isnan(by_unit)).any(axis=1)
    n_units = int(np.count_nonzero(is_defined))
    error = curve.error
    if error is None:  # the search has not computed its own
        error = standard_error(by_unit)
    return _MeanCurve(curve, nanmean_over_units(by_unit), error, n_units)


def _is_flat(mean_curve: _MeanCurve, best_value: float) -> bool:
    """Whether all candidates of a curve are within one standard error of the best candidate."""
    best = mean_curve.curve.place(best_value)  # position of the best candidate on the curve
    distance = np.abs(mean_curve.mean - mean_curve.mean[best])
    is_within_one_error = distance <= mean_curve.error[best]
    has_several_points = len(mean_curve.mean) > 1
    return has_several_points and bool(np.all(is_within_one_error))


def _unit_of(results: Mapping[str, object]) -> str:
    """Name of the units over which scores are averaged.

    The rows of a single list that was split into folds all have the label of that list.
    """
    labels = results.get("groups")
    if labels is None:  # RankingPursuitCV
        return "held-out parts"
    # Groups differ in their labels; folds of a list repeat its label. Folds of edges are numbered.
    unit_labels = np.asarray(labels)
    is_unique = len(np.unique(unit_labels)) == len(unit_labels)
    if is_unique and results.get("cv") != "folds of edges":
        return "groups"
    return "folds"
