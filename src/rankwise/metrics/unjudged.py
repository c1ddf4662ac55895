"""Exact bounds of nDCG over all grades that unjudged documents may have.

The nDCG difference of two runs on one query is N / I. With the gain steps s_l = y_l − y_(l−1) of
the grades l = 1 … G, the discount differences w_d of the documents, J_l judged documents of grade
l or higher and c_l unjudged ones,

    N = N_0 + Σ_l s_l Σ_{d unjudged, grade ≥ l} w_d
    I = Σ_l s_l D(J_l + c_l),    D(m) = sum of the first min(m, k) discounts.

For a fixed λ the maximum of N − λI over all gradings takes the documents in falling order of w: a
grading is a sequence c_1 ≥ … ≥ c_G, found by running maxima over the grades. Dinkelbach's iteration
λ ← N / I ends at the exact maximum. Queries are independent, so the bounds of a mean over queries
are the means of the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.metrics.run_input import ByQuery, ranked_documents, read_judgments, read_run
from rankwise.metrics.run_metric_names import GAINS
from rankwise.validation import check_int, check_option

MAX_STEPS = 50  # of Dinkelbach's iteration; 4 were enough in 1,470 random problems


class UnjudgedQuery(NamedTuple):
    """One query, two runs, and the documents whose grades are unknown.

    Attributes
    ----------
    base : float
        N_0: difference of the discounted gains of the judged documents.
    weights : ndarray of shape (n_unjudged,)
        Discount differences of the unjudged documents, largest first.
    documents : tuple of str
        The unjudged documents in this order.
    n_judged : ndarray of shape (n_grades,)
        J_l: judged documents of grade l or higher.
    steps : ndarray of shape (n_grades,)
        s_l: what grade l gains beyond grade l − 1.
    discounts : ndarray of shape (k,)
        Discounts of the first k ranks.
    """

    base: float
    weights: Array
    documents: tuple[str, ...]
    n_judged: Indices
    steps: Array
    discounts: Array

    def ideal(self, counts: NDArray[np.intp]) -> Array:
        """Return D(J_l + c) for the grades l and all counts c, shape (n_grades, n_counts)."""
        cumulated = np.concatenate([[0.0], np.cumsum(self.discounts)])
        n_relevant = self.n_judged[:, None] + counts[None, :]
        ideal: Array = cumulated[np.minimum(n_relevant, len(self.discounts))]
        return ideal

    def reversed(self) -> UnjudgedQuery:
        """Return the same query with the runs exchanged."""
        return self._replace(
            base=-self.base, weights=-self.weights[::-1], documents=self.documents[::-1]
        )

    def value(self, counts: NDArray[np.intp]) -> Array:
        """Return nDCG differences if the first c_l unjudged documents have grade l or higher.

        Counts have the shape (n_grades, n); a difference without any relevant document is 0.
        """
        gained = np.concatenate([[0.0], np.cumsum(self.weights)])[counts]
        cumulated = np.concatenate([[0.0], np.cumsum(self.discounts)])
        n_relevant = np.minimum(self.n_judged[:, None] + counts, len(self.discounts))
        numerator = self.base + self.steps @ gained
        denominator = self.steps @ cumulated[n_relevant]
        values = np.zeros(counts.shape[1])
        np.divide(numerator, denominator, out=values, where=denominator > 0)
        return values

    def value_of_zero(self) -> float:
        """Return the nDCG difference if no unjudged document is relevant."""
        return float(self.value(np.zeros((len(self.steps), 1), dtype=np.intp))[0])


class Bound(NamedTuple):
    """An extreme value of a query and a grading that attains it.

    Attributes
    ----------
    value : float
        The nDCG difference.
    grades : dict from document to int
        A grade above 0 for some unjudged documents; the others have grade 0.
    """

    value: float
    grades: dict[str, int]


class Bounds(NamedTuple):
    """Result of `ndcg_bounds`.

    Attributes
    ----------
    low, high : float
        Smallest and largest mean difference over all grades of the unjudged documents.
    zero : float
        The difference if unjudged documents are not relevant.
    n_unjudged : int
        Unjudged documents among the first k of a run.
    by_query : dict from query to tuple of Bound
        Lower and upper bound of each query, with the gradings that attain them.
    """

    low: float
    high: float
    zero: float
    n_unjudged: int
    by_query: dict[str, tuple[Bound, Bound]]


def ndcg_bounds(
    qrels: Any,
    run: Any,
    other: Any = None,
    *,
    k: int = 10,
    max_grade: int | None = None,
    gain: str = "linear",
) -> Bounds:
    """Bound the nDCG of a run or a difference of two runs over all grades of unjudged documents.

    Use it to see what an evaluation with incomplete judgments can conclude. The bounds are exact:
    for both ends there is a grading that attains them. They decide the order of two runs only
    while about one document per query is unjudged; `judgments_to_flip` says more.

    Parameters
    ----------
    qrels : dict, data frame, TrecRun or path
        Relevance judgments, as in `evaluate_runs`.
    run, other : dict, data frame, TrecRun or path
        A run, and optionally the run that is subtracted.
    k : int, default=10
        Cut-off of nDCG.
    max_grade : int, optional
        Largest grade that an unjudged document may have; default: the largest grade in the qrels.
    gain : {"linear", "exponential"}, default="linear"
        Gain of a grade: the grade, or 2^grade − 1.

    Returns
    -------
    Bounds
        Bounds of the mean over the judged queries, and of each query with witnesses.

    Examples
    --------
    >>> from rankwise.metrics import ndcg_bounds
    >>> qrels = {"q": {"a": 1, "b": 0}}
    >>> one, two = {"q": {"a": 2.0, "x": 1.0}}, {"q": {"b": 2.0, "a": 1.0}}
    >>> bounds = ndcg_bounds(qrels, one, two)
    >>> [round(value, 3) for value in (bounds.low, bounds.zero, bounds.high)]
    [0.369, 0.369, 0.613]
    """
    queries = _queries(qrels, run, other, k, max_grade, gain)
    by_query = {}
    for name, query in queries.items():
        upper = largest_value(query)
        lower = largest_value(query.reversed())
        by_query[name] = (Bound(-lower.value, lower.grades), upper)
    return Bounds(
        low=float(np.mean([lower.value for lower, _ in by_query.values()])),
        high=float(np.mean([upper.value for _, upper in by_query.values()])),
        zero=float(np.mean([query.value_of_zero() for query in queries.values()])),
        n_unjudged=sum(len(query.documents) for query in queries.values()),
        by_query=by_query,
    )


def judgments_to_flip(
    qrels: Any,
    run: Any,
    other: Any,
    *,
    k: int = 10,
    max_grade: int | None = None,
    gain: str = "linear",
) -> int | None:
    """Return the fewest unjudged documents that must be relevant to reverse the order of two runs.

    In 272 comparisons of runs that the pool had not seen, the order with unjudged documents as not
    relevant was right in 99–100% where this number was at least 5% of the loser's unjudged
    documents, and in 41–59% below.

    Parameters
    ----------
    qrels, run, other, k, max_grade, gain
        As in `ndcg_bounds`.

    Returns
    -------
    int or None
        The number of documents; None if no grading makes the difference 0 or reverses it. 0 if the
        runs are level.

    Examples
    --------
    >>> from rankwise.metrics import judgments_to_flip
    >>> qrels = {"q": {"a": 1}}
    >>> judgments_to_flip(qrels, {"q": {"a": 2.0, "b": 1.0}}, {"q": {"x": 2.0, "a": 1.0}})
    1
    """
    queries = _queries(qrels, run, other, k, max_grade, gain)
    difference = sum(query.value_of_zero() for query in queries.values())
    if difference > 0:
        queries = {name: query.reversed() for name, query in queries.items()}
    # best[c] = largest sum of differences if at most c documents of the queries so far are relevant
    best = np.zeros(1)
    for query in queries.values():
        with_at_most = largest_values(query)
        n_counts = len(best) + len(with_at_most) - 1
        longer = np.full(n_counts, -np.inf)
        for count, value in enumerate(with_at_most):
            part = longer[count : count + len(best)]
            np.maximum(part, best + value, out=part)
        best = np.maximum.accumulate(longer)
    level = np.flatnonzero(best >= -1e-12 * len(queries))
    return int(level[0]) if len(level) else None


def largest_value(query: UnjudgedQuery) -> Bound:
    """Return the largest nDCG difference of a query over all gradings, and a grading."""
    values, counts = _maximize(query, np.array([len(query.documents)]))
    n_relevant = counts[0, 0]
    grades = {
        document: int((counts[:, 0] > place).sum())
        for place, document in enumerate(query.documents[:n_relevant])
    }
    return Bound(float(values[0]), grades)


def largest_values(query: UnjudgedQuery) -> Array:
    """Return the largest difference with at most c relevant unjudged documents, for all c."""
    return _maximize(query, np.arange(len(query.documents) + 1))[0]


def _maximize(query: UnjudgedQuery, limits: Indices) -> tuple[Array, NDArray[np.intp]]:
    """Maximize the nDCG difference with at most so many relevant documents, for each limit.

    Returns
    -------
    values : ndarray of shape (n_limits,)
        The largest differences.
    counts : ndarray of shape (n_grades, n_limits)
        Counts c_1 ≥ … ≥ c_G that attain them.
    """
    gained = np.concatenate([[0.0], np.cumsum(query.weights)])
    ideal = query.ideal(np.arange(len(gained)))
    without_judged_relevant = query.n_judged[0] == 0
    counts = np.zeros((len(query.steps), len(limits)), dtype=np.intp)
    if without_judged_relevant:
        counts[0] = np.minimum(limits, 1)  # one relevant document makes the ideal gain positive
    values = query.value(counts)
    for _ in range(MAX_STEPS):
        net = gained[None, :, None] - values[None, None, :] * ideal[:, :, None]
        objective = query.steps[:, None, None] * net
        if without_judged_relevant and len(gained) > 1:
            objective[0, 0] = -np.inf
        candidates = _best_counts(objective, limits)
        new_values = query.value(candidates)
        is_better = new_values > values
        if not is_better.any():
            break
        counts[:, is_better] = candidates[:, is_better]
        values = np.where(is_better, new_values, values)
    if without_judged_relevant:  # no relevant document at all: nDCG is 0 by trec_eval's convention
        is_negative = values < 0.0
        counts[:, is_negative] = 0
        values = np.maximum(values, 0.0)
    return values, counts


def _best_counts(objective: Array, limits: Indices) -> NDArray[np.intp]:
    """Return limit ≥ c_1 ≥ … ≥ c_G with the largest sum of ``objective[l, c_l]``.

    Running maxima from the highest grade down: after grade l, ``total[c]`` is the largest sum over
    the grades l … G with c_l ≤ c, and ``arguments[l, c]`` the c_l that attains it.

    Parameters
    ----------
    objective : ndarray of shape (n_grades, n_counts, n_limits)
        Gain of each count, for each limit.
    limits : ndarray of shape (n_limits,)
        Largest c_1.
    """
    n_grades, n_counts, n_limits = objective.shape
    arguments = np.empty(objective.shape, dtype=np.intp)
    positions = np.arange(n_counts)[:, None]
    total = np.zeros((n_counts, n_limits))
    for grade in range(n_grades - 1, -1, -1):
        total = objective[grade] + total
        running = np.maximum.accumulate(total, axis=0)
        is_new = np.ones(total.shape, dtype=bool)
        is_new[1:] = total[1:] > running[:-1]
        arguments[grade] = np.maximum.accumulate(np.where(is_new, positions, 0), axis=0)
        total = running
    counts = np.empty((n_grades, n_limits), dtype=np.intp)
    count = limits
    for grade in range(n_grades):
        count = arguments[grade, count, np.arange(n_limits)]
        counts[grade] = count
    return counts


def _queries(
    qrels: Any, run: Any, other: Any, k: int, max_grade: int | None, gain: str
) -> dict[str, UnjudgedQuery]:
    """Read judgments and runs, and return the judged queries."""
    check_int("k", k, least=1)
    check_option("gain", gain, tuple(set(GAINS.values())))
    judgments = read_judgments(qrels)
    first = read_run(run, "run")
    second: ByQuery = {} if other is None else read_run(other, "other")
    largest = int(max(max(grades.values(), default=0.0) for grades in judgments.values()))
    n_grades = largest if max_grade is None else check_int("max_grade", max_grade, least=1)
    if n_grades < max(largest, 1):
        raise ValueError(
            f"max_grade={n_grades} but the qrels have the grade {largest}; give at least that."
        )
    grades = np.arange(n_grades + 1)
    gains = grades.astype(np.float64)
    if gain == "exponential":
        gains = np.exp2(gains) - 1.0
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    return {
        name: _read_query(
            judgments[name],
            [first.get(name, {}), second.get(name, {})],
            gains,
            discounts,
        )
        for name in sorted(judgments)
    }


def _read_query(
    judgments: Mapping[str, float],
    runs: Sequence[Mapping[str, float]],
    gains: Array,
    discounts: Array,
) -> UnjudgedQuery:
    """Collect the documents of the first k ranks of two runs and their discount differences."""
    weight_of: dict[str, float] = {}
    for sign, scores in zip((1.0, -1.0), runs, strict=True):
        documents = ranked_documents(scores)[: len(discounts)]
        for document, discount in zip(documents, discounts, strict=False):
            weight_of[document] = weight_of.get(document, 0.0) + sign * discount
    base = sum(
        weight * gains[int(judgments[document])]
        for document, weight in weight_of.items()
        if document in judgments
    )
    unjudged = [document for document in weight_of if document not in judgments]
    unjudged.sort(key=lambda document: -weight_of[document])
    grades = np.array(list(judgments.values()))
    levels = np.arange(1, len(gains))
    return UnjudgedQuery(
        base=float(base),
        weights=np.array([weight_of[document] for document in unjudged]),
        documents=tuple(unjudged),
        n_judged=(grades[None, :] >= levels[:, None]).sum(axis=1),
        steps=np.diff(gains),
        discounts=discounts,
    )
