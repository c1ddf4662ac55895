"""Exact bounds of nDCG over all grades that unjudged documents may have.

The nDCG difference of two runs on one query is N / I. With the gain steps s_l = y_l − y_(l−1) of
the grades l = 1 … G, the discount differences w_d of the documents, J_l judged documents of grade
l or higher and c_l unjudged ones,

    N = N_0 + Σ_l s_l Σ_{d unjudged, grade ≥ l} w_d
    I = Σ_l s_l D(J_l + c_l),    D(m) = sum of the first min(m, k) discounts.

For a fixed λ the maximum of N − λI over all gradings takes the documents in falling order of w: a
grading is a sequence c_1 ≥ … ≥ c_G, found by running maxima over the grades. Dinkelbach's iteration
λ ← N / I ends at the exact maximum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.metrics.unjudged_query import Bound, RankedQuery, weights_of_documents

MAX_STEPS = 50  # of Dinkelbach's iteration; 4 were enough in 1,470 random problems
LIMITS_AT_ONCE = 64  # of `largest_values_by_n_relevant`


@dataclass(frozen=True, eq=False)
class NDCGQuery:
    """nDCG of one run, or the difference of two runs, as a function of unknown grades.

    Attributes
    ----------
    judged_gain : float
        N_0: difference of the discounted gains of the judged documents.
    weights : ndarray of shape (n_unjudged,)
        Discount differences of the unjudged documents, largest first.
    documents : list of str
        The unjudged documents in this order.
    n_judged_of_grade_or_higher : ndarray of shape (n_grades,)
        J_l: judged documents of grade l or higher.
    gain_steps : ndarray of shape (n_grades,)
        s_l: gain of grade l minus gain of grade l − 1.
    discounts : ndarray of shape (k,)
        Discounts of the first k ranks.
    """

    judged_gain: float
    weights: Array
    documents: list[str]
    n_judged_of_grade_or_higher: Indices
    gain_steps: Array
    discounts: Array

    @cached_property
    def sums_of_first_weights(self) -> Array:
        """Sums of the first c weights, c = 0 … n_unjudged."""
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    @cached_property
    def sums_of_first_discounts(self) -> Array:
        """D(m) for m = 0 … k."""
        return np.concatenate([[0.0], np.cumsum(self.discounts)])

    @cached_property
    def ideal_discount_sums(self) -> Array:
        """D(J_l + c) for all grades l and counts c, shape (n_grades, 1 + n_unjudged)."""
        # Documents of grade l or higher if c unjudged ones have it: (n_grades, 1 + n_unjudged)
        n_relevant = self.n_judged_of_grade_or_higher[:, None] + np.arange(len(self.weights) + 1)
        n_in_ideal = np.minimum(n_relevant, len(self.discounts))  # not beyond the cut-off
        sums: Array = self.sums_of_first_discounts[n_in_ideal]
        return sums

    def value_if_no_unjudged_relevant(self) -> float:
        """Return the difference if no unjudged document is relevant."""
        n_grades = len(self.gain_steps)
        no_documents = np.zeros((n_grades, 1), dtype=np.intp)  # of any grade
        return float(self.values_of_grade_counts(no_documents)[0])

    def upper_bound(self) -> Bound:
        """Return the largest difference over all grades, and grades that attain it."""
        # All unjudged documents may be relevant
        n_documents = len(self.documents)
        values, counts = self._maximize_under_limits(np.array([n_documents]))
        # Documents are sorted by weight: the first counts_of_grades[l] have grade l + 1 or higher
        counts_of_grades = counts[:, 0]
        n_relevant = counts_of_grades[0]
        positions = np.arange(n_relevant)
        grades = (counts_of_grades > positions[:, None]).sum(axis=1)
        relevant_documents = self.documents[:n_relevant]
        return Bound(float(values[0]), dict(zip(relevant_documents, grades.tolist(), strict=True)))

    def largest_values_by_n_relevant(self, max_relevant: int) -> Array:
        """Return the largest difference with at most c relevant unjudged documents."""
        # Entry c: the largest value if at most c unjudged documents are relevant
        limits = np.arange(min(max_relevant, len(self.documents)) + 1)
        blocks = []
        for start in range(0, len(limits), LIMITS_AT_ONCE):
            largest_values, _ = self._maximize_under_limits(limits[start : start + LIMITS_AT_ONCE])
            blocks.append(largest_values)
        return np.concatenate(blocks)

    def negated(self) -> NDCGQuery:
        """Return the query with the runs exchanged."""
        # nDCG is a gain divided by the ideal gain, which keeps its sign. Weights stay sorted
        return replace(
            self,
            judged_gain=-self.judged_gain,
            weights=-self.weights[::-1],
            documents=self.documents[::-1],
        )

    def effects_of_documents(self) -> dict[str, float]:
        """Return |weight| · largest gain / ideal gain with its sign: the order of MTC."""
        # About the change of nDCG if a document has the highest grade: its weight (discount) times
        # the gain of that grade, by the ideal gain of the judged documents
        gain_of_highest_grade = float(self.gain_steps.sum())
        ideal_gain = float(self.gain_steps @ self.ideal_discount_sums[:, 0])
        if ideal_gain == 0.0:  # without relevant documents this one is ideal
            ideal_gain = gain_of_highest_grade
        effects = self.weights * (gain_of_highest_grade / ideal_gain)
        return dict(zip(self.documents, effects.tolist(), strict=True))

    def values_of_grade_counts(self, counts: NDArray[np.intp]) -> Array:
        """Return differences if the first c_l unjudged documents have grade l or higher.

        Counts have the shape (n_grades, n); a difference without any relevant document is 0.
        """
        # A column of counts is one grading: the first counts[l] unjudged documents have grade l + 1
        # or higher. Value: the difference of the discounted gains of two runs (or that of one),
        # divided by the ideal gain
        grade = np.arange(len(self.gain_steps))[:, None]
        gain = self.judged_gain + self.gain_steps @ self.sums_of_first_weights[counts]
        ideal_gain = self.gain_steps @ self.ideal_discount_sums[grade, counts]
        values = np.zeros(counts.shape[1])
        np.divide(gain, ideal_gain, out=values, where=ideal_gain > 0)
        return values

    def _maximize_under_limits(self, limits: Indices) -> tuple[Array, NDArray[np.intp]]:
        """Maximize the difference under each limit of the number of relevant documents.

        Returns
        -------
        values : ndarray of shape (n_limits,)
            The largest differences.
        counts : ndarray of shape (n_grades, n_limits)
            Counts c_1 ≥ … ≥ c_G that attain them.
        """
        # Largest nDCG (difference) if at most limits[i] unjudged documents are relevant, and the
        # counts of documents of each grade or higher that reach it.
        # Start: no unjudged document is relevant, or one if the ideal gain would be 0
        counts = np.zeros((len(self.gain_steps), len(limits)), dtype=np.intp)
        no_judged_is_relevant = self.n_judged_of_grade_or_higher[0] == 0
        if no_judged_is_relevant:
            counts[0] = np.minimum(limits, 1)
        values = self.values_of_grade_counts(counts)

        # Gain and ideal gain of every count of every grade, shape (n_grades, 1, n_counts)
        gains = (self.gain_steps[:, None] * self.sums_of_first_weights)[:, None, :]
        ideal_gains = (self.gain_steps[:, None] * self.ideal_discount_sums)[:, None, :]
        for _ in range(MAX_STEPS):
            # Dinkelbach's iteration for a ratio: maximize gain − λ · ideal gain, where λ is the
            # best ratio so far; the maximum is positive only if some ratio is better
            n_counts = self._n_useful_counts(values)
            best_value = values[:, None]
            objective = gains[..., :n_counts] - best_value * ideal_gains[..., :n_counts]
            if no_judged_is_relevant and len(self.weights):
                objective[0, :, 0] = -np.inf  # the ideal gain of no document is 0
            candidates = best_counts_of_grades(objective, np.minimum(limits, n_counts - 1))
            candidate_values = self.values_of_grade_counts(candidates)
            is_better = candidate_values > values
            if not is_better.any():
                break
            counts[:, is_better] = candidates[:, is_better]
            values = np.where(is_better, candidate_values, values)

        # Without a relevant document nDCG is 0, as in trec_eval
        if no_judged_is_relevant:
            counts[:, values < 0.0] = 0
            values = np.maximum(values, 0.0)
        return values, counts

    def _n_useful_counts(self, values: Array) -> int:
        """Number of counts 0, 1, … of relevant documents that can give more than these values."""
        n_documents = len(self.weights)
        if values.min() < 0.0:
            return n_documents + 1
        # If the value is positive, documents without a positive weight only lower it: they enlarge
        # the ideal gain
        n_positive = int((self.weights > 0.0).sum())
        return min(max(n_positive, 1), n_documents) + 1


def best_counts_of_grades(objective: Array, limits: Indices) -> NDArray[np.intp]:
    """Return limit ≥ c_1 ≥ … ≥ c_G with the largest sum of ``objective[l, c_l]``.

    Running maxima from the highest grade down: ``best_total[c]`` of grade l is the largest sum over
    the grades l … G with c_l ≤ c, and ``best_count_up_to[l, c]`` the c_l that attains it.

    Parameters
    ----------
    objective : ndarray of shape (n_grades, n_limits, n_counts)
        Gain of each count, for each limit.
    limits : ndarray of shape (n_limits,)
        Largest c_1.
    """
    # For each limit i maximize the sum of objective[l, i, c_l] over the grades l, where the count
    # c_l of documents of grade l or higher falls with l: limits[i] ≥ c_0 ≥ c_1 ≥ …
    n_grades, n_limits, n_counts = objective.shape

    # From the highest grade down: the best count of each grade among 0, …, c, for all c. `total` is
    # the objective of a grade plus the best total of all higher grades
    best_count_up_to = np.empty(objective.shape, dtype=np.intp)
    positions = np.arange(n_counts)
    total = objective[-1]
    for grade in range(n_grades - 1, -1, -1):
        best_total = np.maximum.accumulate(total, axis=1)
        is_new_best = np.ones(total.shape, dtype=bool)
        np.greater(total[:, 1:], best_total[:, :-1], out=is_new_best[:, 1:])
        np.maximum.accumulate(positions * is_new_best, axis=1, out=best_count_up_to[grade])
        if grade > 0:
            total = objective[grade - 1] + best_total

    # From the lowest grade up: each count is limited by that of the grade below
    counts = np.empty((n_grades, n_limits), dtype=np.intp)
    largest_count = limits
    for grade in range(n_grades):
        counts[grade] = best_count_up_to[grade, np.arange(n_limits), largest_count]
        largest_count = counts[grade]
    return counts


def ndcg_query(query: RankedQuery, k: int | None, gains: Array) -> NDCGQuery:
    """Return the problem of nDCG at a cut-off.

    Parameters
    ----------
    query : RankedQuery
        One or two runs.
    k : int or None
        Cut-off; None for the whole list.
    gains : ndarray of shape (1 + n_grades,)
        Gains of the grades 0 … G.
    """
    if k is None:
        k = len(query.judgments) + len(query.unjudged()) + query.n_pool
    ranks = np.arange(1, k + 1)
    discounts = 1.0 / np.log2(ranks + 1)
    # Discount of a document in the first run minus that in the second run
    weight_of_document = weights_of_documents(query, discounts)
    gain_of_grade = gains.tolist()
    judged_gain = 0.0
    for document, weight in weight_of_document.items():
        if document in query.judgments:
            judged_gain += weight * gain_of_grade[int(query.judgments[document])]

    # Unjudged documents, first those that change the gain, then those that change the ideal gain
    unjudged = [name for name in weight_of_document if name not in query.judgments]
    unjudged += _unjudged_after(query, k, weight_of_document)
    weights = np.array([weight_of_document.get(name, 0.0) for name in unjudged])
    largest_first = np.argsort(-weights, kind="stable")
    judged_grades = np.array(list(query.judgments.values()))
    grades = np.arange(1, len(gains))
    return NDCGQuery(
        judged_gain=judged_gain,
        weights=weights[largest_first],
        documents=[unjudged[index] for index in largest_first.tolist()],
        n_judged_of_grade_or_higher=(judged_grades >= grades[:, None]).sum(axis=1),
        gain_steps=np.diff(gains),
        discounts=discounts,
    )


def _unjudged_after(
    query: RankedQuery, k: int, weight_of_document: Mapping[str, float]
) -> list[str]:
    """Unjudged documents after place k, which have no weight but enlarge the ideal gain.

    k of them are enough to saturate it.
    """
    # Documents below the cut-off k of all runs change only the ideal gain, so at most k count
    documents = query.pool_documents(k)
    longest = max(len(ranking) for ranking in query.rankings)
    if longest > k:
        documents += [name for name in query.unjudged() if name not in weight_of_document]
    return documents[:k]
