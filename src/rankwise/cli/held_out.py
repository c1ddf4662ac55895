"""Held-out metrics of one model for a list of candidates, exact where the model has a shortcut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwise.cli.models import make_model, numbers_in
from rankwise.cli.options import ModelName, ModelOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.estimators.alpha_grid import AlphaGrid
    from rankwise.metrics import Metric

__all__ = ["HeldOut", "hold_out"]

SVM_FOLDS = 5


class HeldOut(NamedTuple):
    """What was held out, and how well it was ranked.

    Attributes
    ----------
    parameter : str
        What the candidates are: "alpha" or "n_basis".
    candidates : ndarray of shape (n_candidates,)
        Their values.
    by_group : dict from metric name to ndarray of shape (n_groups, n_candidates)
        Metrics in each held-out group, or part of a group.
    groups : ndarray
        Labels of the groups; None if the search of the model does not keep them.
    way : str
        Such as "exact leave-group-out".
    predictions : ndarray of shape (n_items, n_candidates) or None
        Held-out scores, if the way gives a score for each item.
    fixed : dict
        Other parameters that were chosen.
    """

    parameter: str
    candidates: NDArray[Any]
    by_group: dict[str, NDArray[np.float64]]
    groups: NDArray[Any] | None
    way: str
    predictions: NDArray[np.float64] | None = None
    fixed: Mapping[str, float] = MappingProxyType({})

    def mean(self, metric: Metric) -> NDArray[np.float64]:
        """Mean over the groups where the metric is defined, for each candidate."""
        from rankwise.estimators.cross_validation import mean_defined

        return mean_defined(self.by_group[metric.name])

    def best(self, metric: Metric) -> int:
        """Position of the best candidate; of equal ones that of the simplest model."""
        import numpy as np

        from rankwise.estimators.cross_validation import best_of

        mean = self.mean(metric)
        if np.isnan(mean).all():
            raise ValueError(f"{metric} is undefined in every held-out group; use another metric.")
        simplicity = self.candidates if self.parameter == "alpha" else -self.candidates
        return best_of(mean if metric.greater_is_better else -mean, simplicity)

    def note(self, metric: Metric) -> str:
        """What is to be said of the best candidate: at the edge of the grid, or one of many."""
        from rankwise.estimators.alpha_grid import edges_of, flat_note
        from rankwise.estimators.cross_validation import standard_error

        at, mean, values = self.best(metric), self.mean(metric), self.candidates
        if any(edges_of(values, mean, at)):
            return f"the best {self.parameter} {values[at]:.4g} is at the edge of the grid"
        return flat_note(
            self.parameter, values, mean, standard_error(self.by_group[metric.name]), at
        )

    def joined(self, other: HeldOut) -> HeldOut:
        """With more candidates, from the smallest to the largest."""
        import numpy as np

        values = np.concatenate([self.candidates, other.candidates])
        order = np.argsort(values)
        held = None
        if self.predictions is not None and other.predictions is not None:
            held = np.concatenate([self.predictions, other.predictions], axis=1)[:, order]
        by_group = {
            name: np.concatenate([scores, other.by_group[name]], axis=1)[:, order]
            for name, scores in self.by_group.items()
        }
        return self._replace(candidates=values[order], by_group=by_group, predictions=held)


def hold_out(
    options: ModelOptions, metrics: list[Metric], leave: str, X: Any, y: Any, groups: Any
) -> HeldOut:
    """Judge every candidate on held-out data.

    Parameters
    ----------
    options : ModelOptions
        The model; ``alpha="auto"`` takes the candidates of its search.
    metrics : list of Metric
        How to judge.
    leave : str
        "auto", "group", "pair", or a number of folds.
    X, y, groups
        Scaled training data.
    """
    if options.model in (ModelName.corankrls, ModelName.pursuit):
        return _by_search(options, metrics, _cv_of_search(options, leave), X, y, groups)
    model = make_model(options, search=False)
    alphas = None if options.alpha == "auto" else numbers_in("--alpha", options.alpha)
    task = model._task(X, y, groups)
    if leave == "auto":
        leave = _choose_way(options, metrics, task)

    def judge(some: Any) -> HeldOut:
        if leave == "pair":
            return _by_pairs(model, metrics, some, X, task.graphs[0])
        return _by_folds(options, task, metrics, some, None if leave == "group" else _folds(leave))

    return judge(alphas) if alphas is not None else _widen(task.default_grid(), judge, metrics[0])


def _widen(grid: AlphaGrid, judge: Callable[[Any], HeldOut], metric: Metric) -> HeldOut:
    """The default grid, and wider ones while the best alpha is at an end of it."""
    from rankwise.estimators.alpha_grid import edges_of

    found = judge(grid.alphas)
    while True:
        edges = edges_of(found.candidates, found.mean(metric), found.best(metric))
        wider = grid.wider(edges)
        if wider == grid:
            return found
        found, grid = found.joined(judge(wider.beyond(grid))), wider


def _choose_way(options: ModelOptions, metrics: list[Metric], task: Any) -> str:
    """As the searches choose: groups one at a time; pairs of a short list; folds of a long one."""
    from rankwise.estimators.cross_validation import choose_way

    graph = task.graphs[0]
    if options.model is ModelName.ranksvm:
        return str(min(SVM_FOLDS, graph.n_groups if graph.n_groups > 1 else graph.n_items))
    ways = dict(choose_way(task, "auto", metric) for metric in metrics)
    if "leave-group-out" in ways:
        return "group"
    return str(ways["folds of items"]) if "folds of items" in ways else "pair"


def _folds(leave: str) -> int:
    if not leave.isdecimal() or int(leave) < 2:
        raise ValueError(
            f"--leave {leave}: expected auto, group, pair or a number of folds from 2."
        )
    return int(leave)


def _by_folds(
    options: ModelOptions, task: Any, metrics: list[Metric], alphas: Any, cv: int | None
) -> HeldOut:
    import numpy as np

    from rankwise.estimators.cross_validation import hold_out_folds, score_groups

    graph = task.graphs[0]
    if cv is None and graph.n_groups < 2:
        raise ValueError(
            "--leave group: the data are one list; name the column of groups with --group, "
            "or use --leave pair or a number of folds."
        )
    ((folds, held),) = hold_out_folds(task, cv, np.asarray(alphas))
    scored = {metric.name: score_groups(graph, held, folds, metric) for metric in metrics}
    labels = next(iter(scored.values()))[1]
    is_exact = options.model is ModelName.rankrls
    what = "groups" if graph.n_groups > 1 else "items"
    way = "leave-group-out" if cv is None else f"{len(folds)} folds of {what}"
    return HeldOut(
        "alpha",
        np.asarray(alphas),
        {name: values[:, :, 0] for name, (values, _) in scored.items()},
        labels,
        f"exact {way}" if is_exact else f"{way}, trained again for each",
        held[:, 0],
    )


def _by_pairs(model: Any, metrics: list[Metric], alphas: Any, X: Any, graph: Any) -> HeldOut:
    import numpy as np

    from rankwise.estimators import RankRLS
    from rankwise.estimators.cross_validation import PAIRWISE
    from rankwise.model_selection import leave_pair_out

    if not isinstance(model, RankRLS):
        raise ValueError("--leave pair is for the model rankrls; use group or a number of folds.")
    if graph.n_groups > 1:
        raise ValueError(
            f"--leave pair is for one list, but there are {graph.n_groups} groups; use --leave "
            "group, which holds out a group at a time."
        )
    for metric in metrics:
        if metric.name not in PAIRWISE:
            raise ValueError(
                f"--leave pair holds out two items, of which {metric} has no value; use "
                f"{', '.join(PAIRWISE)}, or a number of folds."
            )
    error = leave_pair_out(model, X, graph.y, alphas=alphas).disagreement
    by_group = {m.name: np.atleast_2d(1 - error if m.greater_is_better else error) for m in metrics}
    labels = np.array(["all pairs"])
    return HeldOut("alpha", np.asarray(alphas), by_group, labels, "exact leave-pair-out")


def _cv_of_search(options: ModelOptions, leave: str) -> Any:
    if leave == "pair":
        raise ValueError(f"--leave pair is for rankrls, not for {options.model}.")
    return {"auto": "auto", "group": None}[leave] if leave in ("auto", "group") else _folds(leave)


def _by_search(
    options: ModelOptions, metrics: list[Metric], cv: Any, X: Any, y: Any, groups: Any
) -> HeldOut:
    """By the search of the model, once for each metric; nu and gamma as the first one chooses."""
    import numpy as np

    by_group: dict[str, Any] = {}
    chosen: dict[str, Any] = {}
    values: Any = None
    labels = None
    for metric in metrics:
        search = make_model(options, search=True).set_params(scoring=metric.name, cv=cv)
        results = search.fit(X, y, groups).cv_results_
        if not by_group:
            chosen = {k: v for k, v in search.best_params_.items() if k not in ("alpha", "n_basis")}
        if options.model is ModelName.corankrls:
            values, labels = results["alphas"], results["groups"]
            at = int(np.flatnonzero(results["nus"] == chosen["nu"])[0])
            by_group[metric.name] = results["group_score"][:, at]
        else:
            at = [*results["params"]].index(chosen)
            by_group[metric.name] = results["group_score"][at]
            values = 1 + np.arange(results["mean_score"].shape[1])
    what = {"auto": "five folds", None: "leave-group-out"}.get(cv, f"{cv} folds")
    parameter = "alpha" if options.model is ModelName.corankrls else "n_basis"
    return HeldOut(
        parameter, values, by_group, labels, f"{what}, trained again for each", fixed=chosen
    )
