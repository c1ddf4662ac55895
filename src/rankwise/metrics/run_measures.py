"""Measures of one retrieved list against the judgments of its query, by trec_eval's conventions.

`rankwise.metrics.ndcg` and the other metrics of arrays have conventions of their own; these
functions equal trec_eval's values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.validation import suggestion

INFAP_EPSILON = 1e-5  # of trec_eval's m_infap.c
DEFAULT_PERSISTENCE = 0.8  # of rank-biased precision, as in ir_measures


class JudgedList(NamedTuple):
    """The documents of a run for one query, best first, with the judgments of the query.

    Attributes
    ----------
    grades : ndarray of shape (n_retrieved,)
        Grades of the retrieved documents; NaN without a judgment.
    judgments : ndarray of shape (n_judged,)
        Grades of all judged documents of the query, retrieved or not.
    """

    grades: Array
    judgments: Array

    def is_relevant(self, level: int) -> NDArray[np.bool_]:
        """Whether each retrieved document has at least this grade."""
        return np.nan_to_num(self.grades, nan=0.0) >= level

    def n_relevant(self, level: int) -> int:
        """Number of judged documents with at least this grade."""
        return int((self.judgments >= level).sum())


Measure = Callable[[JudgedList], float]


def precision(judged: JudgedList, level: int, k: int) -> float:
    """Relevant documents among the first k, divided by k, also for shorter lists."""
    return float(judged.is_relevant(level)[:k].sum() / k)


def recall(judged: JudgedList, level: int, k: int | None) -> float:
    """Share of the relevant documents among the first k."""
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    return float(judged.is_relevant(level)[:k].sum() / n_relevant)


def success(judged: JudgedList, level: int, k: int) -> float:
    """1 if one of the first k documents is relevant, else 0."""
    return float(judged.is_relevant(level)[:k].any())


def r_precision(judged: JudgedList, level: int) -> float:
    """Precision at the number of relevant documents."""
    n_relevant = judged.n_relevant(level)
    return precision(judged, level, n_relevant) if n_relevant else 0.0


def average_precision(judged: JudgedList, level: int, k: int | None) -> float:
    """Mean over the relevant documents of the precision at their ranks; 0 if not retrieved."""
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    ranks = 1 + np.flatnonzero(judged.is_relevant(level)[:k])
    return float((np.arange(1, len(ranks) + 1) / ranks).sum() / n_relevant)


def reciprocal_rank(judged: JudgedList, level: int, k: int | None) -> float:
    """1 divided by the rank of the first relevant document."""
    ranks = 1 + np.flatnonzero(judged.is_relevant(level)[:k])
    return float(1.0 / ranks[0]) if len(ranks) else 0.0


def ndcg(judged: JudgedList, k: int | None, gain: str) -> float:
    """Discounted gain of the first k documents, divided by that of the ideal order."""
    ideal = discounted_gain(np.sort(judged.judgments)[::-1], k, gain)
    if ideal == 0.0:
        return 0.0
    return discounted_gain(judged.grades, k, gain) / ideal


def discounted_gain(grades: Array, k: int | None, gain: str) -> float:
    """Sum of gain / log2(1 + rank); grades without a judgment and negative ones gain nothing."""
    first = np.maximum(np.nan_to_num(grades[:k], nan=0.0), 0.0)
    gains = 2.0**first - 1.0 if gain == "exponential" else first
    return float((gains / np.log2(np.arange(2, len(first) + 2))).sum())


def bpref(judged: JudgedList, level: int) -> float:
    """Preference of relevant over judged non-relevant documents (Buckley and Voorhees, 2004)."""
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    n_other = len(judged.judgments) - n_relevant
    is_relevant = judged.is_relevant(level)
    is_other = ~np.isnan(judged.grades) & ~is_relevant
    others_above = np.cumsum(is_other)[is_relevant]
    bound = max(1, min(n_other, n_relevant))
    share_above = np.minimum(others_above, n_relevant) / bound
    return float((1.0 - share_above).sum() / n_relevant)


def inferred_ap(judged: JudgedList, level: int) -> float:
    """Average precision inferred from a sample of judgments (Yilmaz and Aslam, 2006).

    Documents without a judgment count as outside the pool, as in trec_eval.
    """
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    is_relevant = judged.is_relevant(level)
    is_other = ~np.isnan(judged.grades) & ~is_relevant
    places = np.flatnonzero(is_relevant)
    relevant_above = np.arange(len(places))
    others_above = np.cumsum(is_other)[is_relevant]
    judged_above = relevant_above + others_above
    judged_share_above = judged_above / np.maximum(places, 1)
    relevant_share = (relevant_above + INFAP_EPSILON) / (judged_above + 2 * INFAP_EPSILON)
    precision_above = judged_share_above * relevant_share
    precisions = (1.0 + places * precision_above) / (places + 1.0)
    return float(precisions.sum() / n_relevant)


def interpolated_precision(judged: JudgedList, level: int, recall_level: float) -> float:
    """Largest precision at or after the rank where this recall is reached; 0 if it never is."""
    is_relevant = judged.is_relevant(level)
    n_found = int(is_relevant.sum())
    needed = int(recall_level * judged.n_relevant(level) + 0.9)
    if needed > n_found or n_found == 0:
        return 0.0
    precisions = np.cumsum(is_relevant) / np.arange(1, len(is_relevant) + 1)
    first = 0 if needed == 0 else int(np.flatnonzero(is_relevant)[needed - 1])
    return float(precisions[first:].max())


def judged_share(judged: JudgedList, k: int | None) -> float:
    """Share of the first k retrieved documents that have a judgment."""
    first = judged.grades[:k]
    return float((~np.isnan(first)).mean()) if len(first) else 0.0


def rank_biased_precision(
    judged: JudgedList, level: int, k: int | None, persistence: float
) -> float:
    """Sum of (1 − p) p^(rank − 1) over the relevant documents (Moffat and Zobel, 2008)."""
    is_relevant = judged.is_relevant(level)[:k]
    weights = (1.0 - persistence) * persistence ** np.arange(len(is_relevant))
    return float(weights[is_relevant].sum())


# Every name of ir_measures and of trec_eval in lower case without "_", and the measure's own name.
NAMES = {
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
    "rbp": {"p", "rel"},
    "judged": set[str](),
}
GAINS = {"log2": "linear", "exp-log2": "exponential", "linear": "linear"}
GAINS["exponential"] = "exponential"
_NAME = re.compile(r"(?P<name>[A-Za-z_]+?)(?:\((?P<options>.*)\))?(?:[@_](?P<cutoff>[\d.]+))?")


class NamedMeasure(NamedTuple):
    """A measure and the name under which tables print it."""

    label: str
    function: Measure

    def __call__(self, judged: JudgedList) -> float:
        """Return the value of the measure for one query."""
        return self.function(judged)


def get_measure(measure: Any) -> NamedMeasure:
    """Return a measure by the name of ir_measures or trec_eval, or for an object of ir_measures.

    Parameters
    ----------
    measure : str or object of ir_measures
        Such as "nDCG@10", "AP", "P(rel=2)@5", "ndcg_cut_10", "recip_rank" or "IPrec@0.1".
    """
    text = str(measure).strip().replace(" ", "")
    parts = _NAME.fullmatch(text)
    name = NAMES.get(parts["name"].lower().replace("_", "")) if parts else None
    if parts is None or name is None:
        raise ValueError(
            f"measure {text!r} is unknown; {suggestion(text, list(NAMES))}choose nDCG, AP, RR, P, "
            "R, Success, Rprec, Bpref, infAP, IPrec, RBP or Judged, with a cut-off such as nDCG@10."
        )
    options = _read_options(text, name, parts["options"])
    cutoff = _read_cutoff(text, name, parts["cutoff"])
    judged_only = bool(options.pop("judged_only", False))
    function, label = _build(name, options, cutoff)
    if judged_only:
        label = _with_option(label, "judged_only=True")
        function = partial(_of_judged_documents, function)
    return NamedMeasure(label, function)


def _read_options(text: str, name: str, written: str | None) -> dict[str, Any]:
    """Read ``rel=2,dcg='exp-log2'``; a ValueError names an option that the measure lacks."""
    options: dict[str, Any] = {}
    allowed = {*OPTIONS.get(name, {"rel"}), "judged_only"}
    for entry in (written or "").split(","):
        if not entry:
            continue
        key, separator, value = entry.partition("=")
        if not separator or key not in allowed:
            raise ValueError(
                f"measure {text!r} has the option {entry!r}; options are "
                f"{', '.join(sorted(allowed))}."
            )
        try:
            options[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[key] = value
    return options


def _read_cutoff(text: str, name: str, written: str | None) -> float | None:
    if written is None:
        if name in NEEDS_CUTOFF:
            raise ValueError(f"measure {text!r} needs a cut-off, such as {text}@10.")
        return None
    if name in NO_CUTOFF:
        raise ValueError(f"measure {text!r} has no cut-off; write {text.split('@')[0]}.")
    cutoff = float(written)
    if name == "iprec":
        if not 0.0 <= cutoff <= 1.0:
            raise ValueError(f"measure {text!r} needs a recall from 0 to 1 after @.")
        return cutoff
    if cutoff < 1 or cutoff % 1:
        raise ValueError(f"measure {text!r} needs a whole number from 1 as cut-off.")
    return cutoff


def _build(name: str, options: dict[str, Any], cutoff: float | None) -> tuple[Measure, str]:
    """Return the function of a measure and its label."""
    k = None if cutoff is None else int(cutoff)
    at_k = "" if k is None else f"@{k}"
    if name == "ndcg":
        written = options.get("dcg", options.get("gain", "linear"))
        if written not in GAINS:
            raise ValueError(f"gain {written!r} of nDCG is unknown; use 'linear' or 'exponential'.")
        gain = GAINS[written]
        return partial(ndcg, k=k, gain=gain), f"ndcg(gain={gain}){at_k}"
    if name == "judged":
        return partial(judged_share, k=k), f"judged{at_k}"
    level = int(options.get("rel", 1))
    of_level = "" if level == 1 else f"(rel={level})"
    if name == "rbp":
        persistence = float(options.get("p", DEFAULT_PERSISTENCE))
        measure = partial(rank_biased_precision, level=level, k=k, persistence=persistence)
        written = f"p={persistence:g}" if level == 1 else f"p={persistence:g},rel={level}"
        return measure, f"rbp({written}){at_k}"
    if name == "iprec" and cutoff is not None:
        measure = partial(interpolated_precision, level=level, recall_level=cutoff)
        return measure, f"iprec{of_level}@{cutoff:g}"
    if name in NO_CUTOFF:
        functions = {"rprec": r_precision, "bpref": bpref, "infap": inferred_ap}
        return partial(functions[name], level=level), f"{name}{of_level}"
    with_cutoff: dict[str, Callable[..., float]] = {
        "p": precision,
        "recall": recall,
        "success": success,
        "map": average_precision,
        "mrr": reciprocal_rank,
    }
    return partial(with_cutoff[name], level=level, k=k), f"{name}{of_level}{at_k}"


def _with_option(label: str, option: str) -> str:
    """Write one more option into the label of a measure."""
    if ")" in label:
        return label.replace(")", f",{option})")
    name, at, cutoff = label.partition("@")
    return f"{name}({option}){at}{cutoff}"


def _of_judged_documents(measure: Measure, judged: JudgedList) -> float:
    """Evaluate the list without the documents that have no judgment."""
    return measure(judged._replace(grades=judged.grades[~np.isnan(judged.grades)]))
