"""How the parameters were chosen: curves of held-out scores, and paths of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.estimators.rank_rls import RankRLS, RankRLSCV
from rankwise.estimators.ranking_pursuit import RankingPursuit
from rankwise.inspection.model_parts import ModelParts
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection.curves import curves_of_search, mean_defined, standard_error
from rankwise.report.items import short_numbers
from rankwise.report.sections import FeatureEffects

SHOWN_CURVES = 8
SHOWN_PATHS = 8


def describe_tuning(
    parts: ModelParts,
    training: tuple[Any, Any, Any] | None,
    metric: Metric,
    effects: FeatureEffects | None,
) -> dict[str, Any]:
    """Curves and paths of a learner that searched, or of a search like it on the training data."""
    learner, search = parts.learner, None
    if training is not None and parts.steps is not None:
        X, y, groups = training
        training = parts.features(X, groups), y, groups
    if "mean_score" in getattr(learner, "cv_results_", ()):
        search = learner
    elif training is not None and isinstance(learner, RankRLS):
        params = learner.get_params(deep=False)
        params.pop("alpha")
        search = RankRLSCV(scoring=metric, **params).fit(*training)
    curves = None if search is None else describe_curves(search, learner)
    return {"curves": curves, "path": describe_path(learner, training, curves, effects)}


def describe_curves(search: Any, learner: Any) -> dict[str, Any]:
    """The score of each candidate for the page, with the spread over groups."""
    every = curves_of_search(search)
    metric = get_metric(search.scoring)
    drawn, peaks = [], []
    for curve in every:
        by_group = curve.by_group if curve.by_group.ndim == 2 else curve.by_group.mean(axis=2)
        mean, error = mean_defined(by_group), standard_error(by_group)
        drawn.append(
            {
                "label": ", ".join(f"{name} = {value}" for name, value in curve.params.items()),
                "x": short_numbers(curve.x),
                "mean": short_numbers(mean, 6),
                "low": short_numbers(mean - error, 6),
                "high": short_numbers(mean + error, 6),
                "nParts": int((~np.isnan(by_group)).any(axis=1).sum()),
            }
        )
        worth = mean if metric.greater_is_better else -mean
        peaks.append(np.max(worth, initial=-np.inf, where=~np.isnan(worth)))
    known = [k for k, peak in enumerate(peaks) if np.isfinite(peak)]
    order = sorted(known, key=lambda k: (not every[k].is_chosen, -peaks[k]))[:SHOWN_CURVES]
    variable = every[0].parameter
    alpha = getattr(learner, "alpha", None) if variable == "alpha" else None
    return {
        "variable": variable,
        "isLog": variable == "alpha",
        "metric": metric.title,
        "greater": metric.greater_is_better,
        "way": str(search.cv_results_.get("cv", "folds")),
        "curves": [drawn[k] for k in order],
        "total": len(drawn),
        "best": {
            "x": short_numbers(search.best_params_[variable])[0],
            "y": short_numbers(search.best_score_)[0],
        },
        "own": None if alpha is None else short_numbers(alpha)[0],
        "nParts": drawn[order[0]]["nParts"],
        "part": _parts_of(search.cv_results_),
    }


def describe_path(
    learner: Any,
    training: tuple[Any, Any, Any] | None,
    curves: dict[str, Any] | None,
    effects: FeatureEffects | None,
) -> dict[str, Any] | None:
    """The weights of the features that add most, for each alpha or step of the curve."""
    model = getattr(learner, "best_estimator_", learner)
    if effects is None or curves is None or not len(effects.shown):
        return None
    if isinstance(model, RankingPursuit):
        if isinstance(model.basis_indices_, list):  # several views
            return None
        chosen, path = model.basis_indices_[:SHOWN_PATHS], np.asarray(model.coef_path_)
        x, lines = np.arange(1, len(path) + 1), path[:, : len(chosen)]
    elif training is not None and isinstance(model, RankRLS):
        chosen, x = effects.shown[:SHOWN_PATHS], np.sort(curves["curves"][0]["x"])
        lines = model.path(*training, alphas=x).coefficients[:, chosen, 0]
    else:
        return None
    is_pursuit = isinstance(model, RankingPursuit)
    return {
        "variable": "n_basis" if is_pursuit else "alpha",
        "isLog": not is_pursuit,
        "x": short_numbers(x),
        "curves": [
            {"label": effects.added.names[j], "mean": short_numbers(line)}
            for j, line in zip(chosen, lines.T, strict=True)
        ],
    }


def _parts_of(results: dict[str, Any]) -> str:
    """Over which parts of the data a mean is taken.

    The rows of a single list that was cut into folds all have the label of that list.
    """
    labels = results.get("groups")
    if labels is None:  # a pursuit does not tell
        return "held-out parts"
    is_grouped = results.get("cv") != "folds of edges" and len(np.unique(labels)) == len(labels)
    return "groups" if is_grouped else "folds"
