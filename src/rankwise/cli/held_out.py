"""``rankwise cv``: from the options of the command to `held_out_curves`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwise.cli.models import DEFAULT_SCORING, make_model, numbers_in
from rankwise.cli.options import ModelName, ModelOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.metrics import Metric
    from rankwise.model_selection import HeldOutCurves

__all__ = ["HeldOut", "hold_out"]


class HeldOut(NamedTuple):
    """The curve through the best candidate.

    Attributes
    ----------
    curves : HeldOutCurves
        Candidates of one parameter.
    fixed : dict
        Other parameters that were chosen.
    """

    curves: HeldOutCurves
    fixed: dict[str, float]

    @property
    def parameter(self) -> str:
        """What the candidates are: "alpha" or "n_basis"."""
        return next(iter(self.curves.candidates.axes))

    @property
    def candidates(self) -> NDArray[Any]:
        """Their values."""
        values = self.curves.candidates.axes[self.parameter]
        return values.astype(int) if self.parameter == "n_basis" else values

    @property
    def by_group(self) -> dict[str, NDArray[np.float64]]:
        """Metrics in each group, (n_groups, n_candidates)."""
        return {name: scores[:, :, 0] for name, scores in self.curves.by_group.items()}

    @property
    def groups(self) -> NDArray[Any]:
        """Labels of the groups."""
        return self.curves.groups

    @property
    def way(self) -> str:
        """Such as "exact leave-group-out"."""
        return self.curves.describe()

    @property
    def predictions(self) -> NDArray[np.float64] | None:
        """Held-out scores, (n_items, n_candidates)."""
        held = self.curves.predictions
        return None if held is None else held[:, 0]

    def mean(self, metric: Metric) -> NDArray[np.float64]:
        """Mean over the groups where the metric is defined, for each candidate."""
        return self.curves.overall(metric)

    def best(self, metric: Metric) -> int:
        """Position of the best candidate."""
        return self.curves.best(metric)

    def note(self, metric: Metric) -> str:
        """What is to be said of it."""
        return self.curves.note(metric)


def hold_out(
    options: ModelOptions,
    metrics: list[Metric],
    leave: str,
    X: Any,
    y: Any,
    groups: Any,
    *,
    is_default: bool = False,
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
    X, y, groups
        Scaled training data.
    is_default : bool
        Whether nobody asked for these metrics. Then data are held out as `train` does, and metrics
        that have no value there are left out.
    """
    from rankwise.model_selection import held_out_curves

    cv = _cv(options, leave, groups)
    gammas = [None] if options.gamma is None else options.gamma.split(",")
    models = [make_model(replace(options, gamma=gamma), search=False) for gamma in gammas]
    if is_default:
        metrics = _judging(metrics, models[0], cv, X, y, groups)
    values: dict[str, Any] = {"n_basis": None}
    if options.model is not ModelName.pursuit:
        values = {
            "alpha": None if options.alpha == "auto" else numbers_in("--alpha", options.alpha)
        }
    if options.model is ModelName.corankrls and options.nu is None:
        values["nu"] = None
    found = []
    for model in models:
        curves = held_out_curves(model, X, y, groups, scoring=metrics, cv=cv, candidates=values)
        line, fixed = curves.line(metrics[0])
        found.append(HeldOut(line, {**fixed, **({"gamma": model.gamma} if gammas[1:] else {})}))
    sign = 1 if metrics[0].greater_is_better else -1
    return max(found, key=lambda each: sign * each.mean(metrics[0])[each.best(metrics[0])])


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


def _judging(
    metrics: list[Metric], model: Any, cv: Any, X: Any, y: Any, groups: Any
) -> list[Metric]:
    """Those of the metrics that have a value where the search of the model holds out."""
    from rankwise.metrics import get_metric
    from rankwise.model_selection.ways import PAIR, PAIRWISE, choose_way

    way = choose_way(model.hold_out_task(X, y, groups), cv, [get_metric(DEFAULT_SCORING)])
    return [m for m in metrics if m.name in PAIRWISE] if way.name == PAIR else metrics
