"""Metrics of one retrieved list against the judgments of its query, by trec_eval's conventions.

`rankwise.metrics.ndcg` and the other metrics of arrays have other conventions; these functions
equal trec_eval's values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array

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
        return self.grades >= level

    def is_nonrelevant(self, level: int) -> NDArray[np.bool_]:
        """Whether each retrieved document is judged and has a grade from 0 to below the level."""
        return (self.grades >= 0) & (self.grades < level)

    def n_relevant(self, level: int) -> int:
        """Number of judged documents with at least this grade."""
        return int((self.judgments >= level).sum())

    def n_nonrelevant(self, level: int) -> int:
        """Number of judged documents with a grade from 0 to below the level."""
        return int(((self.judgments >= 0) & (self.judgments < level)).sum())

    def without_unjudged(self) -> JudgedList:
        """Return the list without the documents that have no judgment."""
        return self._replace(grades=self.grades[~np.isnan(self.grades)])


def precision(judged: JudgedList, level: int, k: int) -> float:
    """Relevant documents among the first k, divided by k, also for shorter lists."""
    return float(judged.is_relevant(level)[:k].sum() / k)


def recall(judged: JudgedList, level: int, k: int | None) -> float:
    """Share of the relevant documents among the first k."""
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    return float(judged.is_relevant(level)[:k].sum() / n_relevant)


def success(judged: JudgedList, level: int, k: int | None) -> float:
    """1 if one of the first k documents is relevant, else 0."""
    return float(judged.is_relevant(level)[:k].any())


def r_precision(judged: JudgedList, level: int) -> float:
    """Precision at the number of relevant documents."""
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    return precision(judged, level, n_relevant)


def average_precision(judged: JudgedList, level: int, k: int | None) -> float:
    """Mean over the relevant documents of the precision at their ranks; 0 if not retrieved."""
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    ranks = 1 + np.flatnonzero(judged.is_relevant(level)[:k])
    return float((np.arange(1, len(ranks) + 1) / ranks).sum() / n_relevant)


def reciprocal_rank(judged: JudgedList, level: int, k: int | None) -> float:
    """1 divided by the rank of the first relevant document."""
    places = np.flatnonzero(judged.is_relevant(level)[:k])
    if len(places) == 0:
        return 0.0
    return float(1.0 / (places[0] + 1))


def ndcg(judged: JudgedList, k: int | None, gain: str) -> float:
    """Discounted gain of the first k documents, divided by that of the ideal order."""
    ideal = discounted_gain(np.sort(judged.judgments)[::-1], k, gain)
    if ideal == 0.0:
        return 0.0
    return discounted_gain(judged.grades, k, gain) / ideal


def discounted_gain(grades: Array, k: int | None, gain: str) -> float:
    """Sum of gain / log2(1 + rank); NaN and negative grades gain nothing."""
    gains = np.maximum(np.nan_to_num(grades[:k], nan=0.0), 0.0)
    if gain == "exponential":
        gains = 2.0**gains - 1.0
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def bpref(judged: JudgedList, level: int) -> float:
    """Preference of relevant over judged non-relevant documents (Buckley and Voorhees, 2004)."""
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    is_relevant = judged.is_relevant(level)
    nonrelevant_above = np.cumsum(judged.is_nonrelevant(level))[is_relevant]
    bound = max(1, min(judged.n_nonrelevant(level), n_relevant))
    share_above = np.minimum(nonrelevant_above, n_relevant) / bound
    return float((1.0 - share_above).sum() / n_relevant)


def inferred_ap(judged: JudgedList, level: int) -> float:
    """Average precision inferred from a sample of judgments (Yilmaz and Aslam, 2006).

    Documents without a judgment count as outside the pool, and documents with a negative grade
    as pooled and not judged, as in trec_eval.
    """
    n_relevant = judged.n_relevant(level)
    if n_relevant == 0:
        return 0.0
    is_relevant = judged.is_relevant(level)
    places = np.flatnonzero(is_relevant)
    relevant_above = np.arange(len(places))
    judged_above = relevant_above + np.cumsum(judged.is_nonrelevant(level))[is_relevant]
    only_pooled = judged.grades < 0.0
    pooled_above = judged_above + np.cumsum(only_pooled)[is_relevant]
    pooled_share_above = pooled_above / np.maximum(places, 1)
    relevant_share = (relevant_above + INFAP_EPSILON) / (judged_above + 2 * INFAP_EPSILON)
    precision_above = pooled_share_above * relevant_share
    precisions = (1.0 + places * precision_above) / (places + 1.0)
    return float(precisions.sum() / n_relevant)


def interpolated_precision(judged: JudgedList, level: int, recall_level: float) -> float:
    """Largest precision at or after the rank where this recall is reached; 0 if it never is."""
    is_relevant = judged.is_relevant(level)
    relevant_places = np.flatnonzero(is_relevant)
    needed = int(recall_level * judged.n_relevant(level) + 0.9)
    if needed > len(relevant_places) or len(relevant_places) == 0:
        return 0.0
    precisions = np.cumsum(is_relevant) / np.arange(1, len(is_relevant) + 1)
    first = int(relevant_places[max(needed, 1) - 1])
    return float(precisions[first:].max())


def judged_share(judged: JudgedList, k: int | None) -> float:
    """Share of the first k retrieved documents that have a judgment."""
    grades = judged.grades[:k]
    if len(grades) == 0:
        return 0.0
    return float((~np.isnan(grades)).mean())


def rank_biased_precision(
    judged: JudgedList, level: int, k: int | None, persistence: float
) -> float:
    """Sum of (1 − p) p^(rank − 1) over the relevant documents (Moffat and Zobel, 2008)."""
    is_relevant = judged.is_relevant(level)[:k]
    weights = (1.0 - persistence) * persistence ** np.arange(len(is_relevant))
    return float(weights[is_relevant].sum())


@dataclass(frozen=True)
class RunMetric:
    """A metric of retrieved lists with its options.

    Attributes
    ----------
    kind : str
        One of the keys of `FUNCTIONS`.
    k : int or None
        Cut-off; None for the whole list.
    level : int
        Smallest grade of a relevant document.
    gain : str
        Gain of nDCG, "linear" or "exponential".
    persistence : float
        Of rank-biased precision.
    recall_level : float
        Of interpolated precision.
    judged_only : bool
        Whether documents without a judgment are removed from the list first.
    """

    kind: str
    k: int | None = None
    level: int = 1
    gain: str = "linear"
    persistence: float = DEFAULT_PERSISTENCE
    recall_level: float = 0.0
    judged_only: bool = False

    @property
    def name(self) -> str:
        """Name under which tables print the metric, such as "ndcg(gain=linear)@10"."""
        options = []
        if self.kind == "ndcg":
            options.append(f"gain={self.gain}")
        if self.kind == "rbp":
            options.append(f"p={self.persistence:g}")
        if self.level != 1:
            options.append(f"rel={self.level}")
        if self.judged_only:
            options.append("judged_only=True")
        name = self.kind
        if options:
            name += f"({','.join(options)})"
        if self.kind == "iprec":
            return f"{name}@{self.recall_level:g}"
        if self.k is not None:
            name += f"@{self.k}"
        return name

    def __call__(self, judged: JudgedList) -> float:
        """Return the value of the metric for one query."""
        if self.judged_only:
            judged = judged.without_unjudged()
        return FUNCTIONS[self.kind](judged, self)


FUNCTIONS: dict[str, Callable[[JudgedList, RunMetric], float]] = {
    "ndcg": lambda judged, metric: ndcg(judged, metric.k, metric.gain),
    "map": lambda judged, metric: average_precision(judged, metric.level, metric.k),
    "mrr": lambda judged, metric: reciprocal_rank(judged, metric.level, metric.k),
    "p": lambda judged, metric: precision(judged, metric.level, metric.k or len(judged.grades)),
    "recall": lambda judged, metric: recall(judged, metric.level, metric.k),
    "success": lambda judged, metric: success(judged, metric.level, metric.k),
    "rprec": lambda judged, metric: r_precision(judged, metric.level),
    "bpref": lambda judged, metric: bpref(judged, metric.level),
    "infap": lambda judged, metric: inferred_ap(judged, metric.level),
    "iprec": lambda judged, metric: interpolated_precision(
        judged, metric.level, metric.recall_level
    ),
    "judged": lambda judged, metric: judged_share(judged, metric.k),
    "rbp": lambda judged, metric: rank_biased_precision(
        judged, metric.level, metric.k, metric.persistence
    ),
}
"""The function of each kind of metric."""
