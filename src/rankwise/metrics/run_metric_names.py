"""Metrics of runs by the names of ir_measures and trec_eval."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TypeAlias

from rankwise.metrics.run_metrics import DEFAULT_PERSISTENCE, RunMetric
from rankwise.validation import suggestion

# An object of ir_measures, which is read by its str, or a name.
RunMetricName: TypeAlias = "str | RunMetric | object"

# Names of ir_measures, trec_eval and rankwise in lower case without "_".
KINDS = {
    "ndcg": "ndcg",
    "ndcgcut": "ndcg",
    "ap": "map",
    "map": "map",
    "mapcut": "map",
    "rr": "mrr",
    "mrr": "mrr",
    "recip": "mrr",
    "reciprank": "mrr",
    "p": "p",
    "precision": "p",
    "r": "recall",
    "recall": "recall",
    "success": "success",
    "hit": "success",
    "rprec": "rprec",
    "bpref": "bpref",
    "infap": "infap",
    "iprec": "iprec",
    "iprecatrecall": "iprec",
    "judged": "judged",
    "rbp": "rbp",
}
NEEDS_CUTOFF = ("p", "success", "iprec")
NO_CUTOFF = ("rprec", "bpref", "infap")
OPTIONS = {
    "ndcg": {"dcg", "gain", "judged_only"},
    "rbp": {"p", "rel", "judged_only"},
    "judged": set[str](),
}
OPTIONS_OF_OTHER_KINDS = {"rel", "judged_only"}
GAINS = {
    "log2": "linear",
    "linear": "linear",
    "exp-log2": "exponential",
    "exponential": "exponential",
}
_NAME = re.compile(r"(?P<name>[A-Za-z_]+?)(?:\((?P<options>.*)\))?(?:[@_.](?P<cutoff>[\d.]+))?")

Option: TypeAlias = "str | float | bool"


def get_run_metric(metric: RunMetricName) -> RunMetric:
    """Return a metric by the name of ir_measures or trec_eval, or for an object of ir_measures.

    Parameters
    ----------
    metric : str or object of ir_measures
        Such as "nDCG@10", "AP", "P(rel=2)@5", "ndcg_cut_10", "recip_rank" or "IPrec@0.1".

    Returns
    -------
    RunMetric
        The metric with its options.
    """
    if isinstance(metric, RunMetric):
        return metric
    text = str(metric).strip().replace(" ", "")
    match = _NAME.fullmatch(text)  # name(options)@cutoff
    kind = None
    if match is not None:
        kind = KINDS.get(match["name"].lower().replace("_", ""))
    if match is None or kind is None:
        raise ValueError(
            f"metric {text!r} is unknown{suggestion(text, list(KINDS))} Choose nDCG, AP, RR, P, "
            "R, Success, Rprec, Bpref, infAP, IPrec, RBP or Judged, with a cut-off such as nDCG@10."
        )
    options = _read_options(text, kind, match["options"])
    judged_only = bool(options.get("judged_only", False))
    cutoff = _read_cutoff(text, kind, match["cutoff"])

    if kind == "iprec":  # what follows @ is a recall
        return RunMetric(
            kind,
            min_relevant_grade=_read_min_relevant_grade(text, options),
            recall_level=cutoff or 0.0,
            judged_only=judged_only,
        )
    k = None
    if cutoff is not None:
        k = int(cutoff)
    if kind == "ndcg":
        return RunMetric(kind, k, gain=_read_gain(text, options), judged_only=judged_only)
    persistence = DEFAULT_PERSISTENCE
    if kind == "rbp":
        persistence = _read_persistence(text, options)
    return RunMetric(
        kind,
        k,
        _read_min_relevant_grade(text, options),
        persistence=persistence,
        judged_only=judged_only,
    )


def get_run_metrics(metrics: RunMetricName | Iterable[RunMetricName]) -> list[RunMetric]:
    """Return one or several metrics without duplicates."""
    if not isinstance(metrics, (list, tuple, set, frozenset)):
        metrics = [metrics]
    by_name = {metric.name: metric for metric in map(get_run_metric, metrics)}
    if not by_name:
        raise ValueError("metrics is empty; pass at least one, such as 'nDCG@10'.")
    return list(by_name.values())


def _read_options(text: str, kind: str, options_text: str | None) -> dict[str, Option]:
    """Read ``rel=2,dcg='exp-log2'``; a ValueError names an option that the metric lacks."""
    options: dict[str, Option] = {}
    allowed = OPTIONS.get(kind, OPTIONS_OF_OTHER_KINDS)
    for entry in (options_text or "").split(","):
        if not entry:
            continue
        key, separator, value = entry.partition("=")
        if not separator or key not in allowed:
            raise ValueError(
                f"metric {text!r} has the option {entry!r}; options are "
                f"{', '.join(sorted(allowed)) or 'none'}."
            )
        try:
            options[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[key] = value
    return options


def _read_gain(text: str, options: dict[str, Option]) -> str:
    gain = str(options.get("dcg", options.get("gain", "linear")))
    if gain not in GAINS:
        raise ValueError(f"metric {text!r}: gain {gain!r} is unknown; use linear or exponential.")
    return GAINS[gain]


def _read_min_relevant_grade(text: str, options: dict[str, Option]) -> int:
    grade = options.get("rel", 1)
    if not isinstance(grade, int) or grade < 1:
        raise ValueError(f"metric {text!r}: rel={grade!r}; expected a whole number from 1.")
    return grade


def _read_persistence(text: str, options: dict[str, Option]) -> float:
    persistence = options.get("p", DEFAULT_PERSISTENCE)
    if isinstance(persistence, str) or not 0.0 < persistence < 1.0:
        raise ValueError(f"metric {text!r}: p={persistence!r}; expected a number between 0 and 1.")
    return float(persistence)


def _read_cutoff(text: str, kind: str, cutoff_text: str | None) -> float | None:
    if cutoff_text is None:
        if kind in NEEDS_CUTOFF:
            raise ValueError(f"metric {text!r} needs a cut-off, such as {text}@10.")
        return None
    if kind in NO_CUTOFF:
        raise ValueError(f"metric {text!r} has no cut-off; write {text.split('@')[0]}.")
    try:
        cutoff = float(cutoff_text)
    except ValueError:
        raise ValueError(f"metric {text!r}: {cutoff_text!r} is not a number.") from None
    if kind == "iprec":
        if not 0.0 <= cutoff <= 1.0:
            raise ValueError(f"metric {text!r} needs a recall from 0 to 1 after @.")
        return cutoff
    if cutoff < 1 or cutoff % 1:
        raise ValueError(f"metric {text!r} needs a whole number from 1 as cut-off.")
    return cutoff
