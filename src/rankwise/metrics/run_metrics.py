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
    retrieved_grades : ndarray of shape (n_retrieved,)
        Grades of the retrieved documents; NaN without a judgment.
    grades_of_query : ndarray of shape (n_judged,)
        Grades of all judged documents of the query, retrieved or not.
    """

    retrieved_grades: Array
    grades_of_query: Array

    def is_relevant(self, min_relevant_grade: int) -> NDArray[np.bool_]:
        """Whether each retrieved document has at least this grade."""
        return self.retrieved_grades >= min_relevant_grade

    def is_nonrelevant(self, min_relevant_grade: int) -> NDArray[np.bool_]:
        """Whether each retrieved document has a grade from 0 to below `min_relevant_grade`."""
        return (self.retrieved_grades >= 0) & (self.retrieved_grades < min_relevant_grade)

    def n_relevant(self, min_relevant_grade: int) -> int:
        """Number of judged documents with at least this grade."""
        return int((self.grades_of_query >= min_relevant_grade).sum())

    def n_nonrelevant(self, min_relevant_grade: int) -> int:
        """Number of judged documents with a grade from 0 to below `min_relevant_grade`."""
        return int(
            ((self.grades_of_query >= 0) & (self.grades_of_query < min_relevant_grade)).sum()
        )

    def without_unjudged(self) -> JudgedList:
        """Return the list without the documents that have no judgment."""
        return self._replace(
            retrieved_grades=self.retrieved_grades[~np.isnan(self.retrieved_grades)]
        )


def precision(judged: JudgedList, min_relevant_grade: int, k: int) -> float:
    """Relevant documents among the first k, divided by k, also for shorter lists."""
    return float(judged.is_relevant(min_relevant_grade)[:k].sum() / k)


def recall(judged: JudgedList, min_relevant_grade: int, k: int | None) -> float:
    """Share of the relevant documents among the first k."""
    n_relevant = judged.n_relevant(min_relevant_grade)
    if n_relevant == 0:
        return 0.0
    return float(judged.is_relevant(min_relevant_grade)[:k].sum() / n_relevant)


def success(judged: JudgedList, min_relevant_grade: int, k: int | None) -> float:
    """1 if one of the first k documents is relevant, else 0."""
    return float(judged.is_relevant(min_relevant_grade)[:k].any())


def r_precision(judged: JudgedList, min_relevant_grade: int) -> float:
    """Precision at the number of relevant documents."""
    n_relevant = judged.n_relevant(min_relevant_grade)
    if n_relevant == 0:
        return 0.0
    return precision(judged, min_relevant_grade, n_relevant)


def average_precision(judged: JudgedList, min_relevant_grade: int, k: int | None) -> float:
    """Mean over the relevant documents of the precision at their ranks; 0 if not retrieved."""
    n_relevant = judged.n_relevant(min_relevant_grade)
    if n_relevant == 0:
        return 0.0
    is_relevant = judged.is_relevant(min_relevant_grade)[:k]
    ranks_of_relevant = 1 + np.flatnonzero(is_relevant)
    relevant_so_far = np.arange(1, len(ranks_of_relevant) + 1)
    precisions = relevant_so_far / ranks_of_relevant
    return float(precisions.sum() / n_relevant)


def reciprocal_rank(judged: JudgedList, min_relevant_grade: int, k: int | None) -> float:
    """1 divided by the rank of the first relevant document."""
    places_of_relevant = np.flatnonzero(judged.is_relevant(min_relevant_grade)[:k])
    if len(places_of_relevant) == 0:
        return 0.0
    return float(1.0 / (places_of_relevant[0] + 1))


def ndcg(judged: JudgedList, k: int | None, gain: str) -> float:
    """Discounted gain of the first k documents, divided by that of the ideal order."""
    ideal_grades = np.sort(judged.grades_of_query)[::-1]
    ideal_dcg = discounted_gain(ideal_grades, k, gain)
    if ideal_dcg == 0.0:
        return 0.0
    return discounted_gain(judged.retrieved_grades, k, gain) / ideal_dcg


def discounted_gain(grades: Array, k: int | None, gain: str) -> float:
    """Sum of gain / log2(1 + rank); NaN and negative grades have no gain."""
    # Unjudged documents (NaN) and negative grades have no gain
    gains = np.maximum(np.nan_to_num(grades[:k], nan=0.0), 0.0)
    if gain == "exponential":
        gains = 2.0**gains - 1.0
    ranks = np.arange(1, len(gains) + 1)
    return float((gains / np.log2(ranks + 1)).sum())


def bpref(judged: JudgedList, min_relevant_grade: int) -> float:
    """Preference of relevant over judged non-relevant documents (Buckley and Voorhees, 2004)."""
    n_relevant = judged.n_relevant(min_relevant_grade)
    if n_relevant == 0:
        return 0.0
    # bpref = 1/R Σ (1 − min(n, R) / min(N, R)) over the retrieved ones of R relevant documents,
    # with n of the N judged non-relevant documents above the relevant one
    is_relevant = judged.is_relevant(min_relevant_grade)
    is_nonrelevant = judged.is_nonrelevant(min_relevant_grade)
    nonrelevant_above = np.cumsum(is_nonrelevant)[is_relevant]
    largest_count = max(1, min(judged.n_nonrelevant(min_relevant_grade), n_relevant))
    share_above = np.minimum(nonrelevant_above, n_relevant) / largest_count
    return float((1.0 - share_above).sum() / n_relevant)


def inferred_ap(judged: JudgedList, min_relevant_grade: int) -> float:
    """Average precision inferred from a sample of judgments (Yilmaz and Aslam, 2006).

    Documents without a judgment count as outside the pool, and documents with a negative grade
    as pooled and not judged, as in trec_eval.
    """
    n_relevant = judged.n_relevant(min_relevant_grade)
    if n_relevant == 0:
        return 0.0
    is_relevant = judged.is_relevant(min_relevant_grade)
    is_nonrelevant = judged.is_nonrelevant(min_relevant_grade)
    is_pooled_only = judged.retrieved_grades < 0.0  # in the pool, but not judged

    # Number of documents above each retrieved relevant document: all of them (its place from 0),
    # the relevant, the judged, and the pooled ones
    places = np.flatnonzero(is_relevant)
    relevant_above = np.arange(len(places))
    judged_above = relevant_above + np.cumsum(is_nonrelevant)[is_relevant]
    pooled_above = judged_above + np.cumsum(is_pooled_only)[is_relevant]

    # Expected precision above it: share in the pool times share of relevant among the judged.
    # The document itself, which is relevant, completes the precision at its rank
    # (ε of trec_eval: one half if none is judged)
    pooled_share = pooled_above / np.maximum(places, 1)
    relevant_share = (relevant_above + INFAP_EPSILON) / (judged_above + 2 * INFAP_EPSILON)
    precision_above = pooled_share * relevant_share
    precisions = (1.0 + places * precision_above) / (places + 1.0)
    return float(precisions.sum() / n_relevant)


def interpolated_precision(
    judged: JudgedList, min_relevant_grade: int, recall_level: float
) -> float:
    """Largest precision at or after the rank where this recall is reached; 0 if it never is."""
    is_relevant = judged.is_relevant(min_relevant_grade)
    places_of_relevant = np.flatnonzero(is_relevant)
    n_relevant_retrieved = len(places_of_relevant)
    # Number of relevant documents that reach the recall level, rounded as in trec_eval
    n_relevant_needed = int(recall_level * judged.n_relevant(min_relevant_grade) + 0.9)
    if n_relevant_needed > n_relevant_retrieved or n_relevant_retrieved == 0:
        return 0.0
    # Interpolated: the largest precision at the place where the recall is reached, or later
    ranks = np.arange(1, len(is_relevant) + 1)
    precision_at_rank = np.cumsum(is_relevant) / ranks
    place_where_reached = int(places_of_relevant[max(n_relevant_needed, 1) - 1])
    return float(precision_at_rank[place_where_reached:].max())


def judged_share(judged: JudgedList, k: int | None) -> float:
    """Share of the first k retrieved documents that have a judgment."""
    grades = judged.retrieved_grades[:k]
    if len(grades) == 0:
        return 0.0
    is_judged = ~np.isnan(grades)
    return float(is_judged.mean())


def rank_biased_precision(
    judged: JudgedList, min_relevant_grade: int, k: int | None, persistence: float
) -> float:
    """Sum of (1 − p) p^(rank − 1) over the relevant documents (Moffat and Zobel, 2008)."""
    is_relevant = judged.is_relevant(min_relevant_grade)[:k]
    places = np.arange(len(is_relevant))
    view_probability = persistence**places  # of a user who continues with this probability
    weights = (1.0 - persistence) * view_probability
    return float(weights[is_relevant].sum())


@dataclass(frozen=True)
class RunMetric:
    """A metric of retrieved lists with its options.

    Attributes
    ----------
    kind : str
        One of the keys of `FORMULAS`.
    k : int or None
        Cut-off; None for the whole list.
    min_relevant_grade : int
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
    min_relevant_grade: int = 1
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
        if self.min_relevant_grade != 1:
            options.append(f"rel={self.min_relevant_grade}")
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
        return FORMULAS[self.kind](judged, self)


FORMULAS: dict[str, Callable[[JudgedList, RunMetric], float]] = {
    "ndcg": lambda judged, metric: ndcg(judged, metric.k, metric.gain),
    "map": lambda judged, metric: average_precision(judged, metric.min_relevant_grade, metric.k),
    "mrr": lambda judged, metric: reciprocal_rank(judged, metric.min_relevant_grade, metric.k),
    "p": lambda judged, metric: precision(
        judged, metric.min_relevant_grade, metric.k or len(judged.retrieved_grades)
    ),
    "recall": lambda judged, metric: recall(judged, metric.min_relevant_grade, metric.k),
    "success": lambda judged, metric: success(judged, metric.min_relevant_grade, metric.k),
    "rprec": lambda judged, metric: r_precision(judged, metric.min_relevant_grade),
    "bpref": lambda judged, metric: bpref(judged, metric.min_relevant_grade),
    "infap": lambda judged, metric: inferred_ap(judged, metric.min_relevant_grade),
    "iprec": lambda judged, metric: interpolated_precision(
        judged, metric.min_relevant_grade, metric.recall_level
    ),
    "judged": lambda judged, metric: judged_share(judged, metric.k),
    "rbp": lambda judged, metric: rank_biased_precision(
        judged, metric.min_relevant_grade, metric.k, metric.persistence
    ),
}
"""The function of each kind of metric."""
