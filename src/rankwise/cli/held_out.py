"""``rankwise cv``: from the options of the command to `held_out_curves`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwise.cli.models import make_model, settings
from rankwise.cli.number_options import numbers_in
from rankwise.cli.options import ModelName, ModelOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.cli.training_set import TrainingSet
    from rankwise.metrics import Metric
    from rankwise.model_selection import HeldOutCurves


class HeldOut(NamedTuple):
    """The curve through the best candidate, as the command shows it.

    Attributes
    ----------
    curves : HeldOutCurves
        Candidates of one parameter.
    parameter : str
        What the candidates are: "alpha" or "n_basis".
    candidates : ndarray of shape (n_candidates,)
        Their values.
    by_group : dict from metric name to ndarray of shape (n_groups, n_candidates)
        Metrics in each held-out group, or part of a group.
    groups : ndarray
        Labels of the groups.
    way : str
        Such as "exact leave-group-out".
    predictions : ndarray of shape (n_items, n_candidates) or None
        Held-out scores, if the way gives a score for each item.
    fixed : dict
        Other parameters that were chosen.
    """

    curves: HeldOutCurves
    parameter: str
    candidates: NDArray[Any]
    by_group: dict[str, NDArray[np.float64]]
    groups: NDArray[Any]
    way: str
    predictions: NDArray[np.float64] | None
    fixed: dict[str, float]

    def mean(self, metric: Metric) -> NDArray[np.float64]:
        """Mean over the groups where the metric is defined, for each candidate."""
        return self.curves.overall(metric)

    def best(self, metric: Metric) -> int:
        """Position of the best candidate; of equal ones that of the simplest model."""
        return self.curves.best(metric)

    def note(self, metric: Metric) -> str:
        """What is to be said of it."""
        return self.curves.note(metric)


def hold_out(
    options: ModelOptions, metrics: list[Metric], leave: str, X: Any, data: TrainingSet
) -> HeldOut:
    """Judge every candidate on held-out data.

    Parameters
    ----------
    options : ModelOptions
        The model; ``alpha="auto"`` takes the candidates of its search, and so does every other
        parameter that is searched and not given.
    metrics : list of Metric
        How to judge; the first one chooses.
    leave : str
        "auto", "group", "pair", or a number of folds.
    X : array or sparse matrix
        Prepared features.
    data : TrainingSet
        Scores, groups and weights.
    """
    from rankwise.model_selection import held_out_curves

    cv, metric, found = _cv(options, leave, data.groups), metrics[0], []
    gammas = settings(options).get("gamma")
    gammas = gammas if isinstance(gammas, list) else [gammas]
    for gamma in gammas:
        one = [*(options.set or ()), f"gamma={gamma}"] if gammas[1:] else options.set
        model = make_model(replace(options, set=one), search=False)
        given = {"scoring": metrics, "cv": cv, "candidates": _values(options)}
        known = {"groups": data.groups, "sample_weight": data.weights}
        curves, fixed = held_out_curves(model, X, data.y, **known, **given).line(metric)
        found.append((curves, {**fixed, **({"gamma": model.gamma} if gammas[1:] else {})}))
    sign = 1 if metric.greater_is_better else -1
    best, fixed = max(found, key=lambda each: sign * each[0].overall(metric)[each[0].best(metric)])
    ((name, values),) = best.candidates.axes.items()
    return HeldOut(
        best,
        name,
        values.astype(int) if name == "n_basis" else values,
        {metric: scores[:, :, 0] for metric, scores in best.by_group.items()},
        best.groups,
        best.describe(),
        None if best.predictions is None else best.predictions[:, 0],
        fixed,
    )


def _values(options: ModelOptions) -> dict[str, Any]:
    """Candidates that were given; None stands for those of the search."""
    if options.model is ModelName.pursuit:
        return {"n_basis": None}
    is_auto = options.alpha == "auto"
    alphas = {"alpha": None if is_auto else numbers_in("--alpha", options.alpha)}
    is_nu_open = options.model is ModelName.corankrls and "nu" not in settings(options)
    return {**alphas, "nu": None} if is_nu_open else alphas


def _cv(options: ModelOptions, leave: str, groups: Any) -> Any:
    """What `held_out_curves` calls it."""
    if leave == "group":
        if groups is None or len(set(groups)) < 2:
            raise ValueError(
                "--leave group: the data are one list; name the column of groups with --group, "
                "or use --leave pair or a number of folds."
            )
        return None
    if leave == "pair" and options.model is not ModelName.rankrls:
        raise ValueError(f"--leave pair is for the model rankrls, not for {options.model}.")
    if leave in ("auto", "pair"):
        return "leave-pair-out" if leave == "pair" else "auto"
    if not leave.isdecimal() or int(leave) < 2:
        raise ValueError(
            f"--leave {leave}: expected auto, group, pair or a number of folds from 2."
        )
    return int(leave)
