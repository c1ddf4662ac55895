"""How the parameters were chosen: curves of held-out scores, and paths of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators import RankingPursuit, RankRLS, RankRLSCV
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection.measures import mean_defined, standard_error
from rankwise.model_selection.search_curves import curves_of_search
from rankwise.report.scored_items import short_numbers

SHOWN_CURVES = 8
SHOWN_PATHS = 8


def searched(learner: Any, training: Any, metric: Metric) -> Any:
    """What has a curve: the learner if it searched, or a search like it on the training data."""
    if hasattr(learner, "cv_results_") and "mean_score" in learner.cv_results_:
        return learner
    if training is None or not isinstance(learner, RankRLS):
        return None
    given = learner.get_params(deep=False)
    given.pop("alpha")
    return RankRLSCV(scoring=metric, **given).fit(*training)


def describe_curves(search: Any, learner: Any) -> dict[str, Any] | None:
    """The score of each candidate for the page, with the spread over groups."""
    if search is None:
        return _training_curve(learner)
    found = curves_of_search(search)
    metric = get_metric(search.scoring)
    curves = [
        {
            "label": ", ".join(f"{name} = {value}" for name, value in each.params.items()),
            "x": short_numbers(each.x),
            **_mean_and_error(_over_outputs(each.by_group)),
        }
        for each in found
    ]
    peaks = [_peak(curve["mean"], metric.greater_is_better) for curve in curves]
    known = [k for k, peak in enumerate(peaks) if np.isfinite(peak)]
    order = sorted(known, key=lambda k: (not found[k].is_chosen, -peaks[k]))[:SHOWN_CURVES]
    variable = found[0].parameter
    own = getattr(learner, "alpha", None) if variable == "alpha" else None
    return {
        "variable": variable,
        "isLog": variable == "alpha",
        "metric": metric.title,
        "greater": metric.greater_is_better,
        "way": str(search.cv_results_.get("cv", "folds")),
        "curves": [curves[k] for k in order],
        "total": len(curves),
        "best": {
            "x": short_numbers(search.best_params_[variable])[0],
            "y": short_numbers(search.best_score_)[0],
        },
        "own": None if own is None else short_numbers(own)[0],
        **_spread_over(search.cv_results_, _over_outputs(found[order[0]].by_group)),
    }


def describe_path(
    learner: Any, training: Any, curves: dict[str, Any] | None, effects: Any
) -> dict[str, Any] | None:
    """The weights of the features that add most, for each alpha of the curve."""
    if effects is None or not len(effects.shown):
        return None
    model = getattr(learner, "best_estimator_", learner)
    if isinstance(model, RankingPursuit):
        return _pursuit_path(model, effects)
    if training is None or curves is None or not isinstance(model, RankRLS):
        return None
    alphas = np.sort(curves["curves"][0]["x"])
    path = model.path(*training, alphas=alphas).coefficients[:, :, 0]
    chosen = effects.shown[:SHOWN_PATHS]
    return _series("alpha", True, alphas, path[:, chosen], [effects.names[j] for j in chosen])


def _pursuit_path(learner: RankingPursuit, effects: Any) -> dict[str, Any] | None:
    if isinstance(learner.basis_indices_, list):  # several views
        return None
    chosen = learner.basis_indices_[:SHOWN_PATHS]
    names = [effects.names[j] for j in chosen]
    path = np.asarray(learner.coef_path_)
    return _series("n_basis", False, np.arange(1, len(path) + 1), path[:, : len(chosen)], names)


def _series(
    variable: str, is_log: bool, x: Any, columns: Array, names: list[str]
) -> dict[str, Any]:
    lines = [
        {"label": name, "mean": short_numbers(column)}
        for name, column in zip(names, columns.T, strict=True)
    ]
    return {"variable": variable, "isLog": is_log, "x": short_numbers(x), "curves": lines}


def _training_curve(learner: Any) -> dict[str, Any] | None:
    """The error on the training data after each step of a pursuit."""
    error = getattr(learner, "train_error_", None)
    if error is None or len(error) < 2:
        return None
    mean = short_numbers(error)
    return {
        "variable": "n_basis",
        "isLog": False,
        "metric": "training loss",
        "greater": False,
        "way": "training",
        "curves": [{"label": "", "x": list(range(1, len(mean) + 1)), "mean": mean}],
        "total": 1,
        "best": {"x": len(mean), "y": mean[-1]},
        "own": None,
        "nParts": 0,
    }


def _spread_over(results: dict[str, Any], by_part: Array) -> dict[str, Any]:
    """Over how many parts of the data a mean is taken, and what they are.

    The rows of a single list that was cut into folds all have the label of that list.
    """
    n_parts = int((~np.isnan(by_part)).any(axis=1).sum())
    if "groups" not in results:  # a pursuit of an older file does not tell
        return {"nParts": n_parts, "part": "held-out parts"}
    labels = results["groups"]
    is_grouped = results.get("cv") != "folds of edges" and len(np.unique(labels)) == len(labels)
    return {"nParts": n_parts, "part": "groups" if is_grouped else "folds"}


def _peak(mean: list[Any], greater: bool) -> float:
    """The best value of a curve, larger being better; −∞ if it has none."""
    return max((m if greater else -m for m in mean if m is not None), default=-np.inf)


def _over_outputs(scores: Array) -> Array:
    return scores if scores.ndim == 2 else scores.mean(axis=2)


def _mean_and_error(by_group: Array) -> dict[str, Any]:
    """Mean over groups and its standard error; no error for a single group."""
    mean, error = mean_defined(by_group), standard_error(by_group)
    return {
        "mean": short_numbers(mean, 6),
        "low": short_numbers(mean - error, 6),
        "high": short_numbers(mean + error, 6),
    }
