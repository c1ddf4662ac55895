"""``rankwise cv``: held-out metrics for a list of candidates, exact for RankRLS."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from rankwise.cli.models import (
    DEFAULT_METRIC,
    fit_model,
    make_model,
    metrics_for,
    numbers_in,
    settings,
)
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
from rankwise.cli.pairs import ItemOptions, pair_graph

if TYPE_CHECKING:
    from rankwise.cli.training import TrainingSet
    from rankwise.metrics import Metric
    from rankwise.model_selection import HeldOutCurves

FOLDS_OF_EDGES = 10
PREPARED = "features scaled and filled by all rows, without a look at the scores"
Leave = Annotated[
    str,
    option(
        "What is held out: one group or one pair of items at a time, or one of N folds; of "
        "comparisons group, judge or edge (ten folds of them).",
        "auto|group|pair|judge|edge|N",
    ),
]


def cv(
    file: DataArgument,
    model: ModelOptions,
    table: TrainingTableOptions,
    pairs: ItemOptions,
    leave: Leave = "auto",
    metric: Metrics = None,
    output: Output = None,
    per_group: PerGroup = None,
    weight: WeightColumn = None,
    as_json: AsJson = False,
) -> None:
    """Cross-validate a model: judge each candidate on held-out data.

    By default, what is held out and which candidate is best is what `train` decides on the same
    data; the first --metric chooses. With -o the held-out scores of the best candidate are written,
    one a line, and nan for items without a score, which are never held out.
    """
    from rankwise.cli.output import check_inputs, check_output, print_json, write_text
    from rankwise.cli.session import note
    from rankwise.cli.training import read_training
    from rankwise.datasets import write_scores
    from rankwise.metrics import get_metric
    from rankwise.model_selection.curves import standard_error
    from rankwise.text_tables import csv_text

    check_inputs(file, pairs.items)
    check_output(output, file, per_group, pairs.items)
    check_output(per_group, file, pairs.items)
    if leave == "pair" and output is not None:
        raise _gives_no_scores("--leave pair")
    if model.model is ModelName.auto and (output, per_group) != (None, None):
        raise ValueError("-o and --per-group: the model auto has no curve; use another model.")
    estimator = make_model(model, metric[0] if metric else None, search=True)
    data = read_training(file, table, pairs, model, estimator, weight)
    if model.model is ModelName.auto:
        _judge_members(estimator, leave, data, as_json)
        return
    usual = [get_metric(DEFAULT_METRIC)]
    if data.groups is not None:  # one list is held out pair by pair: others have no value there
        usual += metrics_for(None, data.y, data.weights)
    metrics = metrics_for(metric or usual, data.y)
    start = time.perf_counter()
    curves, fixed = hold_out(model, metrics, leave, data)
    seconds = time.perf_counter() - start
    best = curves.best(metrics[0])
    if output is not None:
        if curves.predictions is None:
            raise _gives_no_scores(curves.describe())
        write_scores(output, curves.predictions[:, 0, best], gaps=True)
        n_gaps = data.summary["items_without_score"]
        if n_gaps:
            note(f"{n_gaps:,} items without score are never held out: nan in {output}")
    if per_group is not None:
        columns = [scores[:, best, 0].tolist() for scores in curves.by_group.values()]
        rows = zip(curves.groups.tolist(), *columns, strict=True)
        write_text(per_group, csv_text(["group", *curves.by_group], rows))
    error = float(standard_error(curves.by_group[metrics[0].name])[best].mean())
    means = {one.name: curves.overall(one).tolist() for one in metrics}
    candidates = [
        {**curves.candidates[k], **{name: values[k] for name, values in means.items()}}
        for k in range(len(curves.candidates))
    ]
    summary = {
        "data": data.summary,
        "model": type(estimator).__name__.removesuffix("CV"),
        "held_out_by": curves.describe(),
        "fixed": fixed,
        "prepared": PREPARED if data.steps else "",
        "best": {**candidates[best], "by": metrics[0].name, "standard_error": error},
        "candidates": candidates,
        "seconds": round(seconds, 3),
    }
    if as_json:
        print_json(summary)
    else:
        data.print_columns()
        print_summary(summary, data.lines(), best)


def print_summary(summary: dict[str, Any], about_data: list[tuple[str, str]], best: int) -> None:
    """Print what was found as a table of candidates."""
    from rankwise.cli.output import print_pairs, print_table, shown
    from rankwise.text_tables import Table

    fixed = "".join(f", {name} {value:.4g}" for name, value in summary["fixed"].items())
    print_pairs(
        [
            *about_data,
            ("model", summary["model"] + fixed),
            ("held out", f"{summary['held_out_by']}, {summary['seconds']:.2f} s"),
            ("prepared", summary["prepared"]),
        ]
    )
    rows, chosen = [], summary["best"]
    error = f", {chosen['by']} ± {chosen['standard_error']:.4f}"
    mark = "best" + error * (not math.isnan(chosen["standard_error"]))
    for k, candidate in enumerate(summary["candidates"]):
        value, *scores = candidate.values()
        rows.append([f"{value:.4g}", *map(shown, scores), mark if k == best else ""])
    table = Table([*summary["candidates"][0], ""], rows, names=(len(rows[0]) - 1,))
    print_table(table, best=best)


def _judge_members(ranker: Any, leave: str, data: TrainingSet, as_json: bool) -> None:
    """Hold out every member of the model auto, and judge the combination on groups not drawn."""
    from rankwise.cli.output import print_json, print_pairs
    from rankwise.cli.train import describe, member_lines, print_members

    if leave != "auto":
        raise ValueError(f"--leave {leave}: the model auto holds out each group; leave it out.")
    start = time.perf_counter()
    fit_model(ranker, data)
    seconds = time.perf_counter() - start
    chosen = describe(ranker)
    if as_json:
        print_json({"data": data.summary, "model": "AutoRanker", **chosen, "seconds": seconds})
        return
    data.print_columns()
    print_pairs([*data.lines(), ("model", f"AutoRanker, {seconds:.2f} s"), *member_lines(chosen)])
    print_members(ranker)


def _gives_no_scores(way: str) -> ValueError:
    return ValueError(
        f"-o: {way} gives no score for each item; use --leave group or a number of folds."
    )


def hold_out(
    options: ModelOptions, metrics: list[Metric], leave: str, data: TrainingSet
) -> tuple[HeldOutCurves, dict[str, Any]]:
    """Judge every candidate on held-out data: the curve through the best, and what it fixes.

    Parameters
    ----------
    options : ModelOptions
        The model; ``alpha="auto"`` takes the candidates of its search, and so does every other
        parameter that is searched and not given.
    metrics : list of Metric
        How to judge; the first one chooses.
    leave : str
        "auto", "group", "pair", or a number of folds.
    data : TrainingSet
        Prepared features, scores, groups and weights.
    """
    from rankwise.inputs import read_target
    from rankwise.model_selection import held_out_curves

    values, metric = settings(options), metrics[0]
    candidates: dict[str, Any] = {"alpha": None}  # None stands for those of the search
    if options.alpha != "auto":
        candidates["alpha"] = numbers_in("--alpha", options.alpha)
    if options.model is ModelName.pursuit:
        candidates = {"n_basis": None}
    if options.model is ModelName.corankrls and "nu" not in values:
        candidates["nu"] = None
    cv, lines = _cv(options, leave, data), []
    y, groups, weights = data.y, data.groups, data.weights
    if data.nuisance is not None:
        y, groups, weights = read_target(y, groups, weights, data.nuisance), None, None
    gammas = values["gamma"] if isinstance(values.get("gamma"), list) else []
    for gamma in gammas or [None]:
        added = [f"gamma={gamma}"] if gammas else []
        model = make_model(replace(options, set=[*(options.set or ()), *added]), search=False)
        curves = held_out_curves(
            *(model, data.prepared, y, groups),
            scoring=metrics,
            cv=cv,
            candidates=candidates,
            sample_weight=weights,
            time=data.time,
        )
        line, fixed = curves.line(metric)
        lines.append((line, {**fixed, **({"gamma": gamma} if gammas else {})}))
    sign = 1 if metric.greater_is_better else -1
    return max(lines, key=lambda each: sign * each[0].overall(metric)[each[0].best(metric)])


def _cv(options: ModelOptions, leave: str, data: TrainingSet) -> Any:
    """What `held_out_curves` calls it."""
    if leave == "auto":
        return data.cv
    if data.time is not None:
        raise ValueError(f"--time and --leave {leave} both say what is held out; give one.")
    if data.pairs is not None and leave in ("edge", "judge"):
        if leave == "judge" and data.cv == "auto":
            raise ValueError("--leave judge: name the column of judges with --judge.")
        data.y = pair_graph(data.pairs.compared, None, data.y, is_one=True)
        return data.cv if leave == "judge" else FOLDS_OF_EDGES
    if leave == "group":
        if data.summary["groups"] < 2:
            raise ValueError(
                "--leave group: the data are one list; name the column of groups with --group, "
                "or use --leave pair or a number of folds."
            )
        return None
    if leave == "pair":
        if options.model is not ModelName.rankrls:
            raise ValueError(f"--leave pair is for the model rankrls, not for {options.model}.")
        return "leave-pair-out"
    if not leave.isdecimal() or int(leave) < 2:
        raise ValueError(
            f"--leave {leave}: expected auto, group, pair or a number of folds from 2; for "
            "comparisons also judge or edge."
        )
    return int(leave)
