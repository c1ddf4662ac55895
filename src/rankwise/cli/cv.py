"""``rankwise cv``: held-out metrics for a list of candidates, exact for RankRLS."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rankwise.cli.models import make_model, numbers_in, settings
from rankwise.cli.options import (
    AsJson,
    DataArgument,
    Metrics,
    ModelName,
    ModelOptions,
    Output,
    PerGroup,
    TrainingTableOptions,
    WeightColumn,
    option,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from rankwise.cli.training import TrainingSet
    from rankwise.metrics import Metric
    from rankwise.model_selection import HeldOutCurves

PREPARED = "features scaled and filled by all rows, without a look at the scores"
Leave = Annotated[
    str,
    option(
        "What is held out: one group or one pair of items at a time, or one of N folds.",
        "auto|group|pair|N",
    ),
]


def cv(
    file: DataArgument,
    model: ModelOptions,
    table: TrainingTableOptions,
    leave: Leave = "auto",
    metric: Metrics = None,
    output: Output = None,
    per_group: PerGroup = None,
    weight: WeightColumn = None,
    as_json: AsJson = False,
) -> None:
    """Cross-validate a model: each candidate judged on data that it was not trained on.

    By default, what is held out and which candidate is best is what `train` decides on the same
    data; the first --metric chooses. With -o the held-out scores of the best candidate are written,
    one a line, and nan for items without a score, which are never held out.
    """
    from rankwise.cli.models import held_out_metrics
    from rankwise.cli.output import check_output, print_json
    from rankwise.cli.session import note
    from rankwise.cli.training import read_training
    from rankwise.datasets import write_scores

    check_output(output, file, per_group)
    check_output(per_group, file)
    if leave == "pair" and output is not None:
        raise _gives_no_scores("--leave pair")
    if model.model is ModelName.auto and (output, per_group) != (None, None):
        raise ValueError("-o and --per-group: the model auto has no curve; use another model.")
    estimator = make_model(model, metric[0] if metric else None, search=True)
    data = read_training(file, table, model, estimator, weight)
    names = held_out_metrics(metric, data.y, data.groups, data.weights)
    X = data.prepared
    if model.model is ModelName.auto:
        _judge_members(estimator, leave, X, data, as_json)
        return
    start = time.perf_counter()
    found = hold_out(model, names, leave, X, data)
    seconds = time.perf_counter() - start
    best = found.best(names[0])
    if output is not None:
        held = found.predictions
        if held is None:
            raise _gives_no_scores(found.way)
        write_scores(output, held[:, best], gaps=True)
        n_gaps = data.summary["items_without_score"]
        if n_gaps:
            note(f"{n_gaps:,} items without score are never held out: nan in {output}")
    if per_group is not None:
        write_groups(per_group, found, best)
    prepared = PREPARED if data.steps else ""
    summary = summarize(found, names, best, estimator, prepared, seconds)
    if as_json:
        print_json({"data": data.summary, **summary})
    else:
        data.print_columns()
        print_summary(summary, data.lines(), names)


def _judge_members(ranker: Any, leave: str, X: Any, data: TrainingSet, as_json: bool) -> None:
    """Hold out every member of the model auto, and judge the combination on groups not drawn."""
    from rankwise.cli.output import print_json, print_pairs
    from rankwise.cli.train import describe_members, member_lines, print_members

    if leave != "auto":
        raise ValueError(f"--leave {leave}: the model auto holds out each group; leave it out.")
    start = time.perf_counter()
    ranker.fit(X, data.y, data.groups, data.weights)
    found = describe_members(ranker)
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"data": data.summary, "model": "AutoRanker", **found, "seconds": seconds})
        return
    data.print_columns()
    print_pairs([*data.lines(), ("model", f"AutoRanker, {seconds:.2f} s"), *member_lines(found)])
    print_members(ranker)


def _gives_no_scores(way: str) -> ValueError:
    return ValueError(
        f"-o: {way} gives no score for each item; use --leave group or a number of folds."
    )


def write_groups(path: Path, found: HeldOut, best: int) -> None:
    """Write the metrics of each group for the best candidate."""
    from rankwise.cli.output import write_csv

    columns = [values[:, best].tolist() for values in found.by_group.values()]
    rows = zip(found.groups.tolist(), *columns, strict=True)
    write_csv(path, ["group", *found.by_group], rows)


def summarize(
    found: HeldOut, metrics: list[Metric], best: int, estimator: Any, prepared: str, seconds: float
) -> dict[str, Any]:
    """What was found, for people and machines."""
    means = {metric.name: found.mean(metric).tolist() for metric in metrics}
    candidates = found.candidates.tolist()
    return {
        "model": type(estimator).__name__.removesuffix("CV"),
        "held_out_by": found.way,
        "fixed": found.fixed,
        "prepared": prepared,
        "best": {
            found.parameter: candidates[best],
            "by": metrics[0].name,
            **{name: values[best] for name, values in means.items()},
        },
        "candidates": [
            {found.parameter: value, **{name: values[k] for name, values in means.items()}}
            for k, value in enumerate(candidates)
        ],
        "seconds": round(seconds, 3),
    }


def print_summary(
    summary: dict[str, Any], about_data: list[tuple[str, str]], metrics: list[Metric]
) -> None:
    """Print it as a table."""
    from rankwise.cli.output import print_pairs, print_table, shown
    from rankwise.text_tables import Table

    parameter = next(iter(summary["best"]))
    fixed = "".join(f", {name} {value:.4g}" for name, value in summary["fixed"].items())
    print_pairs(
        [
            *about_data,
            ("model", summary["model"] + fixed),
            ("held out", f"{summary['held_out_by']}, {summary['seconds']:.2f} s"),
            ("prepared", summary["prepared"]),
        ]
    )
    rows, best = [], -1
    for k, row in enumerate(summary["candidates"]):
        is_best = row[parameter] == summary["best"][parameter]
        best = k if is_best else best
        cells = [shown(row[metric.name]) for metric in metrics]
        rows.append([f"{row[parameter]:.4g}", *cells, "best" if is_best else ""])
    header = [parameter, *(metric.name for metric in metrics), ""]
    print_table(Table(header, rows, names=()), best=best)


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
