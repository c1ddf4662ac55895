"""``rankwise cv``: held-out metrics for a list of candidates, exact for RankRLS."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.models import (
    DEFAULT_METRIC,
    fit_model,
    make_model,
    metrics_for,
    numbers_in,
    settings,
)
from rankwise.cli.options import ItemOptions, ModelOptions, TrainingTableOptions
from rankwise.cli.output import note

if TYPE_CHECKING:
    from rankwise.cli.training import TrainingSet
    from rankwise.metrics import Metric
    from rankwise.model_selection import HeldOutCurves

FOLDS_OF_EDGES = 10
NO_SCORES = "-o: {} gives no score for each item; use --leave group or a number of folds."
PREPARED = "features scaled and filled by all rows, without a look at the scores"


def cv(
    data: Path,
    /,
    model: ModelOptions,
    table: TrainingTableOptions,
    pairs: ItemOptions,
    leave: str = "auto",
    metric: list[str] | None = None,
    output: Path | None = None,
    per_group: Path | None = None,
    weight: str | None = None,
    as_json: bool = False,
) -> None:
    """Cross-validate a model: judge each candidate on held-out data.

    By default as `train` does it; the first --metric chooses. -o writes the held-out scores of
    the best candidate, one a line, nan for items without a score.

    \b
    rankwise cv houses.csv --target price --group district

    Parameters
    ----------
    leave : auto|group|pair|judge|edge|N
        What is held out: one group or one pair of items at a time, or one of N folds; of
        comparisons group, judge or edge (ten folds of them).
    """  # noqa: D301
    from rankwise.cli.output import check_inputs, check_output, print_json, write_text
    from rankwise.cli.training import read_training
    from rankwise.datasets import write_scores
    from rankwise.model_selection.curves import standard_error
    from rankwise.text_tables import csv_text

    check_inputs(data, pairs.items)
    check_output(output, data, per_group, pairs.items)
    check_output(per_group, data, pairs.items)
    if leave == "pair" and output is not None:
        raise ValueError(NO_SCORES.format("--leave pair"))
    if model.model == "auto" and (output, per_group) != (None, None):
        raise ValueError("-o and --per-group: the model auto has no curve; use another model.")
    estimator = make_model(model, metric[0] if metric else None, search=True)
    training = read_training(data, table, pairs, model, estimator, weight)
    if model.model == "auto":
        _judge_members(estimator, leave, training, as_json)
        return
    wanted: list[Any] = metric or [DEFAULT_METRIC]
    if not metric and training.groups is not None:  # others have no value for a pair of one list
        wanted += metrics_for(None, training.y, training.weights)
    metrics = metrics_for(wanted, training.y)
    start = time.perf_counter()
    curves, fixed = hold_out(model, metrics, leave, training)
    seconds = time.perf_counter() - start
    best = curves.best(metrics[0])
    if output is not None:
        if curves.predictions is None:
            raise ValueError(NO_SCORES.format(curves.describe()))
        write_scores(output, curves.predictions[:, 0, best], gaps=True)
        n_gaps = training.summary["items_without_score"]
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
        "data": training.summary,
        "model": type(estimator).__name__.removesuffix("CV"),
        "held_out_by": curves.describe(),
        "fixed": fixed,
        "prepared": PREPARED if training.steps else "",
        "best": {**candidates[best], "by": metrics[0].name, "standard_error": error},
        "candidates": candidates,
        "seconds": round(seconds, 3),
    }
    if as_json:
        print_json(summary)
    else:
        training.print_columns()
        print_summary(summary, training.lines(), best)


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


def _judge_members(ranker: Any, leave: str, training: TrainingSet, as_json: bool) -> None:
    """Hold out every member of the model auto, and judge the combination on groups not drawn."""
    from rankwise.cli.output import print_json, print_pairs
    from rankwise.cli.train import describe, member_lines, print_members

    if leave != "auto":
        raise ValueError(f"--leave {leave}: the model auto holds out each group; leave it out.")
    start = time.perf_counter()
    fit_model(ranker, training)
    seconds = time.perf_counter() - start
    chosen = describe(ranker)
    if as_json:
        print_json({"data": training.summary, "model": "AutoRanker", **chosen, "seconds": seconds})
        return
    training.print_columns()
    model = ("model", f"AutoRanker, {seconds:.2f} s")
    print_pairs([*training.lines(), model, *member_lines(chosen)])
    print_members(ranker)


def hold_out(
    options: ModelOptions, metrics: list[Metric], leave: str, training: TrainingSet
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
    training : TrainingSet
        Prepared features, scores, groups and weights.
    """
    from rankwise.inputs import read_target
    from rankwise.model_selection import held_out_curves

    values, metric = settings(options), metrics[0]
    candidates: dict[str, Any] = {"alpha": None}  # None stands for those of the search
    if options.alpha != "auto":
        candidates["alpha"] = numbers_in("--alpha", options.alpha)
    if options.model == "pursuit":
        candidates = {"n_basis": None}
    if options.model == "corankrls" and "nu" not in values:
        candidates["nu"] = None
    cv, lines = _cv(options, leave, training), []
    y, groups, weights = training.y, training.groups, training.weights
    if training.nuisance is not None:
        y, groups, weights = read_target(y, groups, weights, training.nuisance), None, None
    gammas = values["gamma"] if isinstance(values.get("gamma"), list) else []
    for gamma in gammas or [None]:
        added = [f"gamma={gamma}"] if gammas else []
        model = make_model(replace(options, set=[*(options.set or ()), *added]), search=False)
        curves = held_out_curves(
            *(model, training.prepared, y, groups),
            scoring=metrics,
            cv=cv,
            candidates=candidates,
            sample_weight=weights,
            time=training.time,
        )
        line, fixed = curves.line(metric)
        lines.append((line, {**fixed, **({"gamma": gamma} if gammas else {})}))
    sign = 1 if metric.greater_is_better else -1
    return max(lines, key=lambda each: sign * each[0].overall(metric)[each[0].best(metric)])


def _cv(options: ModelOptions, leave: str, training: TrainingSet) -> Any:
    """What `held_out_curves` calls it."""
    if leave == "auto":
        return training.cv
    if training.time is not None:
        raise ValueError(f"--time and --leave {leave} both say what is held out; give one.")
    if training.pairs is not None and leave in ("edge", "judge"):
        if leave == "judge" and training.cv == "auto":
            raise ValueError("--leave judge: name the column of judges with --judge.")
        training.y = training.pairs.graph(None, training.y, is_one=True)
        return training.cv if leave == "judge" else FOLDS_OF_EDGES
    if leave == "group":
        if training.summary["groups"] < 2:
            raise ValueError(
                "--leave group: the data are one list; name the column of groups with --group, "
                "or use --leave pair or a number of folds."
            )
        return None
    if leave == "pair":
        if options.model != "rankrls":
            raise ValueError(f"--leave pair is for the model rankrls, not for {options.model}.")
        return "leave-pair-out"
    if not leave.isdecimal() or int(leave) < 2:
        raise ValueError(
            f"--leave {leave}: expected auto, group, pair or a number of folds from 2; for "
            "comparisons also judge or edge."
        )
    return int(leave)
