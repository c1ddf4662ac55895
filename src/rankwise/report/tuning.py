"""How the parameters were chosen: curves of held-out scores, and paths of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators import RankingPursuit, RankRLS, RankRLSCV
from rankwise.estimators.cross_validation import mean_defined, standard_error
from rankwise.metrics import Metric, get_metric
from rankwise.report.group_metrics import metric_title
from rankwise.report.scored_items import short_numbers

__all__ = ["describe_curves", "describe_path", "searched"]

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
    results = search.cv_results_
    is_loss = search.scoring == "loss"
    greater = not is_loss and get_metric(search.scoring).greater_is_better
    x, labels, parts, is_log = _grid(search)
    curves = [
        {"label": label, "x": short_numbers(xs), **_mean_and_error(by_group)}
        for xs, label, by_group in zip(x, labels, parts, strict=True)
    ]
    best = _best_curve(search)
    peaks = [_peak(curve["mean"], greater) for curve in curves]
    known = [k for k, peak in enumerate(peaks) if np.isfinite(peak)]
    order = sorted(known, key=lambda k: (k != best, -peaks[k]))[:SHOWN_CURVES]
    variable = "alpha" if is_log else "n_basis"
    own = getattr(learner, "alpha", None) if is_log else None
    return {
        "variable": variable,
        "isLog": is_log,
        "metric": "loss" if is_loss else metric_title(get_metric(search.scoring)),
        "greater": greater,
        "way": str(results.get("cv", "folds")),
        "curves": [curves[k] for k in order],
        "total": len(curves),
        "best": {
            "x": short_numbers(search.best_params_[variable])[0],
            "y": short_numbers(search.best_score_)[0],
        },
        "own": None if own is None else short_numbers(own)[0],
        **_spread_over(results, parts[best]),
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


def _grid(search: Any) -> tuple[list[Any], list[str], list[Array], bool]:
    """For each curve its candidates, its label and the scores, shape (n_groups, n_candidates)."""
    results = search.cv_results_
    if "nus" in results:
        scores = results["group_score"]
        nus = results["nus"]
        parts = [scores[:, k] for k in range(len(nus))]
        return [results["alphas"]] * len(nus), [f"ν = {nu:g}" for nu in nus], parts, True
    labels = _labels(results["params"])
    parts = [_first_output(part) for part in results["group_score"]]
    if "alphas" in results:
        return list(results["alphas"]), labels, parts, True
    steps = [np.arange(1, part.shape[1] + 1) for part in parts]
    return steps, labels, parts, False


def _spread_over(results: dict[str, Any], by_part: Array) -> dict[str, Any]:
    """Over how many parts of the data a mean is taken, and what they are.

    The rows of a single list that was cut into folds all have the label of that list.
    """
    n_parts = int((~np.isnan(by_part)).any(axis=1).sum())
    if "groups" not in results:  # a pursuit does not tell
        return {"nParts": n_parts, "part": "held-out parts"}
    labels = results["groups"]
    is_grouped = results.get("cv") != "folds of edges" and len(np.unique(labels)) == len(labels)
    return {"nParts": n_parts, "part": "groups" if is_grouped else "folds"}


def _peak(mean: list[Any], greater: bool) -> float:
    """The best value of a curve, larger being better; −∞ if it has none."""
    return max((m if greater else -m for m in mean if m is not None), default=-np.inf)


def _best_curve(search: Any) -> int:
    """Number of the curve that the chosen parameters lie on."""
    results = search.cv_results_
    if "nus" in results:
        return int(np.flatnonzero(results["nus"] == search.nu_)[0])
    chosen = search.best_params_
    fits = [all(p.get(n, v) == v for n, v in chosen.items()) for p in results["params"]]
    return fits.index(True)


def _labels(params: Sequence[dict[str, Any]]) -> list[str]:
    """Those parameters that differ between the curves."""
    varying = [
        name for name in (params[0] if params else {}) if len({str(p[name]) for p in params}) > 1
    ]
    return [", ".join(f"{name} = {each[name]}" for name in varying) for each in params]


def _first_output(scores: Array) -> Array:
    return scores if scores.ndim == 2 else scores.mean(axis=2)


def _mean_and_error(by_group: Array) -> dict[str, Any]:
    """Mean over groups and its standard error; no error for a single group."""
    mean, error = mean_defined(by_group), standard_error(by_group)
    return {
        "mean": short_numbers(mean, 6),
        "low": short_numbers(mean - error, 6),
        "high": short_numbers(mean + error, 6),
    }
