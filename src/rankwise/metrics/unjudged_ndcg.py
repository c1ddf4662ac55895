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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.metrics.unjudged_query import Bound, RankedQuery, place_weights

MAX_STEPS = 50  # of Dinkelbach's iteration; 4 were enough in 1,470 random problems
LIMITS_AT_ONCE = 64  # of `largest_values`


@dataclass(frozen=True, eq=False)
class NDCGQuery:
    """nDCG of one run, or the difference of two runs, as a function of unknown grades.

    Attributes
    ----------
    base : float
        N_0: difference of the discounted gains of the judged documents.
    weights : ndarray of shape (n_unjudged,)
        Discount differences of the unjudged documents, largest first.
    documents : list of str
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
    documents: list[str]
    n_judged: Indices
    steps: Array
    discounts: Array

    @cached_property
    def cumulated_weights(self) -> Array:
        """Sums of the first c weights, c = 0 … n_unjudged."""
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    @cached_property
    def cumulated_discounts(self) -> Array:
        """D(m) for m = 0 … k."""
        return np.concatenate([[0.0], np.cumsum(self.discounts)])

    @cached_property
    def ideal(self) -> Array:
        """D(J_l + c) for all grades l and counts c, shape (n_grades, 1 + n_unjudged)."""
        n_relevant = self.n_judged[:, None] + np.arange(len(self.weights) + 1)
        ideal: Array = self.cumulated_discounts[np.minimum(n_relevant, len(self.discounts))]
        return ideal

    def zero(self) -> float:
        """Return the difference if no unjudged document is relevant."""
        return float(self.value(np.zeros((len(self.steps), 1), dtype=np.intp))[0])

    def largest(self) -> Bound:
        """Return the largest difference over all grades, and grades that attain it."""
        values, counts = self._maximize(np.array([len(self.documents)]))
        n_relevant = counts[0, 0]
        grade_of_place = (counts[:, 0] > np.arange(n_relevant)[:, None]).sum(axis=1)
        names = self.documents[:n_relevant]
        return Bound(float(values[0]), dict(zip(names, grade_of_place.tolist(), strict=True)))

    def largest_values(self, limit: int) -> Array:
        """Return the largest difference with at most c relevant unjudged documents."""
        limits = np.arange(min(limit, len(self.documents)) + 1)
        blocks = [
            self._maximize(limits[start : start + LIMITS_AT_ONCE])[0]
            for start in range(0, len(limits), LIMITS_AT_ONCE)
        ]
        return np.concatenate(blocks)

    def reversed(self) -> NDCGQuery:
        """Return the query with the runs exchanged."""
        return replace(
            self,
            base=-self.base,
            weights=-self.weights[::-1],
            documents=self.documents[::-1],
        )

    def effects(self) -> dict[str, float]:
        """Return |weight| · largest gain / ideal gain with its sign: the order of MTC."""
        largest_gain = float(self.steps.sum())
        ideal_gain = float(self.steps @ self.ideal[:, 0])
        if ideal_gain == 0.0:
            ideal_gain = largest_gain
        effects = self.weights * (largest_gain / ideal_gain)
        return dict(zip(self.documents, effects.tolist(), strict=True))

    def value(self, counts: NDArray[np.intp]) -> Array:
        """Return differences if the first c_l unjudged documents have grade l or higher.

        Counts have the shape (n_grades, n); a difference without any relevant document is 0.
        """
        grade = np.arange(len(self.steps))[:, None]
        numerator = self.base + self.steps @ self.cumulated_weights[counts]
        denominator = self.steps @ self.ideal[grade, counts]
        values = np.zeros(counts.shape[1])
        np.divide(numerator, denominator, out=values, where=denominator > 0)
        return values

    def _maximize(self, limits: Indices) -> tuple[Array, NDArray[np.intp]]:
        """Maximize the difference under each limit of the number of relevant documents.

        Returns
        -------
        values : ndarray of shape (n_limits,)
            The largest differences.
        counts : ndarray of shape (n_grades, n_limits)
            Counts c_1 ≥ … ≥ c_G that attain them.
        """
        nothing_is_relevant = self.n_judged[0] == 0
        counts = np.zeros((len(self.steps), len(limits)), dtype=np.intp)
        if nothing_is_relevant:
            counts[0] = np.minimum(limits, 1)  # one relevant document makes the ideal positive
        values = self.value(counts)
        gains = (self.steps[:, None] * self.cumulated_weights)[:, None, :]
        ideal_gains = (self.steps[:, None] * self.ideal)[:, None, :]
        n_positive = int((self.weights > 0.0).sum())
        for _ in range(MAX_STEPS):
            n_useful = len(self.weights)
            if values.min() >= 0.0:  # then other documents only enlarge the ideal
                n_useful = max(n_positive, 1)
            columns = slice(n_useful + 1)
            objective = gains[..., columns] - values[:, None] * ideal_gains[..., columns]
            if nothing_is_relevant and len(self.weights):
                objective[0, :, 0] = -np.inf
            candidates = best_counts(objective, np.minimum(limits, objective.shape[2] - 1))
            new_values = self.value(candidates)
            is_better = new_values > values
            if not is_better.any():
                break
            counts[:, is_better] = candidates[:, is_better]
            values = np.where(is_better, new_values, values)
        if nothing_is_relevant:  # without a relevant document nDCG is 0, as in trec_eval
            counts[:, values < 0.0] = 0
            values = np.maximum(values, 0.0)
        return values, counts


def best_counts(objective: Array, limits: Indices) -> NDArray[np.intp]:
    """Return limit ≥ c_1 ≥ … ≥ c_G with the largest sum of ``objective[l, c_l]``.

    Running maxima from the highest grade down: after grade l, ``total[c]`` is the largest sum over
    the grades l … G with c_l ≤ c, and ``arguments[l, c]`` the c_l that attains it.

    Parameters
    ----------
    objective : ndarray of shape (n_grades, n_limits, n_counts)
        Gain of each count, for each limit.
    limits : ndarray of shape (n_limits,)
        Largest c_1.
    """
    n_grades, n_limits, n_counts = objective.shape
    arguments = np.empty(objective.shape, dtype=np.intp)
    positions = np.arange(n_counts)
    total = objective[-1]
    for grade in range(n_grades - 1, -1, -1):
        running = np.maximum.accumulate(total, axis=1)
        is_new = np.ones(total.shape, dtype=bool)
        np.greater(total[:, 1:], running[:, :-1], out=is_new[:, 1:])
        np.maximum.accumulate(positions * is_new, axis=1, out=arguments[grade])
        if grade > 0:
            total = objective[grade - 1] + running
    counts = np.empty((n_grades, n_limits), dtype=np.intp)
    count = limits
    for grade in range(n_grades):
        count = arguments[grade, np.arange(n_limits), count]
        counts[grade] = count
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
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    weight_of = place_weights(query, discounts)
    gain_of_grade = gains.tolist()
    base = 0.0
    documents = []
    for document, weight in weight_of.items():
        if document in query.judgments:
            base += weight * gain_of_grade[int(query.judgments[document])]
        else:
            documents.append(document)
    # Documents after place k enlarge the ideal gain only; k of them are enough to saturate it.
    without_weight = query.pool_documents(k)
    if max(map(len, query.rankings)) > k:
        without_weight += [name for name in query.unjudged() if name not in weight_of]
    documents += without_weight[:k]
    weights = np.array([weight_of.get(name, 0.0) for name in documents])
    order = np.argsort(-weights, kind="stable")
    grades = np.array(list(query.judgments.values()))
    levels = np.arange(1, len(gains))
    return NDCGQuery(
        base=base,
        weights=weights[order],
        documents=[documents[place] for place in order.tolist()],
        n_judged=(grades >= levels[:, None]).sum(axis=1),
        steps=np.diff(gains),
        discounts=discounts,
    )
