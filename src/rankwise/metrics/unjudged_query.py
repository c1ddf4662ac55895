"""One query with unjudged documents: range of its metric over all their grades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np

from rankwise.arrays import Array, Indices


class Bound(NamedTuple):
    """An extreme value of a query and grades that attain it.

    Attributes
    ----------
    value : float
        Value of the metric, or difference of two runs.
    grades : dict from document to int
        Grades above 0 of unjudged documents; the other unjudged documents have grade 0.
    """

    value: float
    grades: dict[str, int]


class RankedQuery(NamedTuple):
    """The judgments of a query, and the documents that one or two runs retrieve for it.

    Attributes
    ----------
    judgments : dict from document to float
        Grades.
    rankings : list of list of str
        Documents of each run, best first.
    n_pool : int
        Number of further unjudged documents, which no run retrieves.
    """

    judgments: Mapping[str, float]
    rankings: list[list[str]]
    n_pool: int

    def unjudged(self) -> list[str]:
        """Return the retrieved documents without a judgment."""
        documents: dict[str, None] = {}  # an ordered set
        for ranking in self.rankings:
            documents.update(dict.fromkeys(ranking))
        return [name for name in documents if name not in self.judgments]

    def unjudged_in_first(self, k: int | None) -> list[set[str]]:
        """Return the unjudged documents among the first k of each run."""
        return [set(ranking[:k]) - self.judgments.keys() for ranking in self.rankings]

    def pool_documents(self, limit: int) -> list[str]:
        """Return names for at most `limit` documents that no run retrieves."""
        return [f"pool-{number + 1}" for number in range(min(self.n_pool, limit))]


class UnjudgedQuery(Protocol):
    """A metric of one run, or the difference of two runs, as a function of unknown grades.

    "Value" in the names of the methods means this metric or difference.
    """

    def value_if_no_unjudged_relevant(self) -> float:
        """Return the value if no unjudged document is relevant."""

    def upper_bound(self) -> Bound:
        """Return the largest value over all grades."""

    def largest_values_by_n_relevant(self, max_relevant: int) -> Array:
        """Return the largest value with at most c relevant ones, c = 0 … max_relevant.

        The array may be shorter if further documents have no effect.
        """

    def negated(self) -> Self:
        """Return the query with the sign of the value reversed."""

    def effects_of_documents(self) -> dict[str, float]:
        """Return by how much a relevant document would change the value, about."""


def lower_bound(query: UnjudgedQuery) -> Bound:
    """Return the smallest value over all grades."""
    # min f = −max(−f)
    bound_of_negated = query.negated().upper_bound()
    return Bound(-bound_of_negated.value, bound_of_negated.grades)


@dataclass(frozen=True)
class LinearQuery:
    """A metric that is a weighted sum over relevant documents: precision and RBP.

    Attributes
    ----------
    judged_value : float
        Contribution of the judged documents.
    weights : ndarray of shape (n_unjudged,)
        Contribution of each unjudged document if it is relevant.
    documents : list of str
        The unjudged documents.
    min_relevant_grade : int
        Grade from which a document is relevant.
    """

    judged_value: float
    weights: Array
    documents: list[str]
    min_relevant_grade: int

    def value_if_no_unjudged_relevant(self) -> float:
        """Return the value if no unjudged document is relevant."""
        return self.judged_value

    def upper_bound(self) -> Bound:
        """Return the largest value: documents with a positive weight are relevant."""
        # Unjudged documents whose relevance raises the value are relevant, all others are not
        is_relevant = self.weights > 0.0
        relevant_documents = [self.documents[index] for index in np.flatnonzero(is_relevant)]
        value = self.judged_value + float(self.weights[is_relevant].sum())
        return Bound(value, dict.fromkeys(relevant_documents, self.min_relevant_grade))

    def largest_values_by_n_relevant(self, max_relevant: int) -> Array:
        """Return the largest value with at most c relevant unjudged documents."""
        # Entry c: the c unjudged documents of largest weight are relevant
        positive_weights = self.weights[self.weights > 0.0]
        largest_weights = np.sort(positive_weights)[::-1][:max_relevant]
        gain_of_n_relevant = np.concatenate([[0.0], np.cumsum(largest_weights)])
        return self.judged_value + gain_of_n_relevant

    def negated(self) -> LinearQuery:
        """Return the query with the sign of the value reversed."""
        return replace(self, judged_value=-self.judged_value, weights=-self.weights)

    def effects_of_documents(self) -> dict[str, float]:
        """Return the weights of the unjudged documents."""
        return dict(zip(self.documents, self.weights.tolist(), strict=True))


@dataclass(frozen=True)
class FirstRelevantQuery:
    """A metric that the first relevant document decides: reciprocal rank and success.

    At most one relevant document is needed for the largest difference of two runs: of several, only
    the highest one in the first run matters for it, and the others can only raise the second run.

    Attributes
    ----------
    values_without_unjudged : ndarray of shape (n_runs,)
        Value of each run if no unjudged document is relevant.
    values_if_first : ndarray of shape (n_unjudged, n_runs)
        Value of each run if the unjudged document is its first relevant one.
    signs : ndarray of shape (n_runs,)
        1 or −1 for each run.
    documents : list of str
        The unjudged documents.
    min_relevant_grade : int
        Grade from which a document is relevant.
    """

    values_without_unjudged: Array
    values_if_first: Array
    signs: Array
    documents: list[str]
    min_relevant_grade: int

    def value_if_no_unjudged_relevant(self) -> float:
        """Return the value if no unjudged document is relevant."""
        return float(self.values_without_unjudged @ self.signs)  # signs (1, −1): of two runs

    def upper_bound(self) -> Bound:
        """Return the largest value over no and one relevant document."""
        # The metric depends on the first relevant document only, so one unjudged relevant document
        # is enough for the largest value, if any raises it
        value_without = self.value_if_no_unjudged_relevant()
        values_with = self._values_with_one_relevant()
        if values_with.max(initial=-np.inf) <= value_without:
            return Bound(value_without, {})
        best = int(np.argmax(values_with))
        return Bound(float(values_with[best]), {self.documents[best]: self.min_relevant_grade})

    def largest_values_by_n_relevant(self, max_relevant: int) -> Array:
        """Return the values with no and with one relevant document."""
        value_without = self.value_if_no_unjudged_relevant()
        best_value = self._values_with_one_relevant().max(initial=value_without)
        # Entries: no, and at most one relevant document; further ones do not raise the value
        return np.array([value_without, best_value])[: max_relevant + 1]

    def negated(self) -> FirstRelevantQuery:
        """Return the query with the sign of the value reversed."""
        return replace(self, signs=-self.signs)

    def effects_of_documents(self) -> dict[str, float]:
        """Return the change that each unjudged document alone would make."""
        changes = self._values_with_one_relevant() - self.value_if_no_unjudged_relevant()
        return dict(zip(self.documents, changes.tolist(), strict=True))

    def _values_with_one_relevant(self) -> Array:
        """Value if only this unjudged document is relevant, for each, shape (n_unjudged,)."""
        # An unjudged document counts if it is above the first judged relevant one
        values_of_runs = np.maximum(self.values_without_unjudged, self.values_if_first)
        values: Array = values_of_runs @ self.signs  # signs (1, −1): the difference of two runs
        return values


@dataclass(frozen=True)
class AveragePrecisionQuery:
    """Average precision of one run.

    With c relevant unjudged documents the value is largest if they have the c highest places, and
    smallest if they have the c lowest.

    Attributes
    ----------
    is_relevant : ndarray of bool, shape (n_places,)
        Whether the judged document at a place is relevant.
    places : ndarray of shape (n_unjudged,)
        Places of the unjudged documents, from 0, ascending; documents at or after `n_places`
        contribute no precision.
    n_relevant : int
        Number of judged relevant documents, retrieved or not.
    documents : list of str
        The unjudged documents in the order of `places`.
    min_relevant_grade : int
        Grade from which a document is relevant.
    sign : float
        1, or −1 for the reversed value.
    """

    is_relevant: Array
    places: Indices
    n_relevant: int
    documents: list[str]
    min_relevant_grade: int
    sign: float = 1.0

    def value_if_no_unjudged_relevant(self) -> float:
        """Return the value if no unjudged document is relevant."""
        return float(self._signed_values_by_n_relevant()[0])

    def upper_bound(self) -> Bound:
        """Return the largest value over the number of relevant documents."""
        signed_values = self._signed_values_by_n_relevant()
        best_n_relevant = int(np.argmax(signed_values))
        # Sign 1: AP is largest if the c relevant unjudged documents are the highest ones
        documents = self.documents  # highest first
        if self.sign < 0:
            # Sign −1: −AP is largest if they are the lowest ones
            documents = documents[::-1]
        relevant_documents = documents[:best_n_relevant]
        grades = dict.fromkeys(relevant_documents, self.min_relevant_grade)
        return Bound(float(signed_values[best_n_relevant]), grades)

    def largest_values_by_n_relevant(self, max_relevant: int) -> Array:
        """Return the largest value with at most c relevant unjudged documents."""
        # Entry c: the largest value with 0, …, c relevant documents
        largest_values = np.maximum.accumulate(self._signed_values_by_n_relevant())
        return largest_values[: max_relevant + 1]

    def negated(self) -> AveragePrecisionQuery:
        """Return the query with the sign of the value reversed."""
        return replace(self, sign=-self.sign)

    def effects_of_documents(self) -> dict[str, float]:
        """Return the change that each unjudged document alone would make."""
        value_without = self.value_if_no_unjudged_relevant()
        changes = {}
        for document, place in zip(self.documents, self.places, strict=True):
            # Only this unjudged document is relevant
            value_with = self.sign * self._average_precision(np.array([place]))
            changes[document] = value_with - value_without
        return changes

    def _signed_values_by_n_relevant(self) -> Array:
        """AP times the sign, at its largest with exactly c relevant documents, for all c."""
        # Sign 1: AP is largest if the c relevant unjudged documents are the highest ones
        places = self.places  # ascending
        if self.sign < 0:
            # Sign −1: −AP is largest if they are the lowest ones
            places = places[::-1]
        values = [
            self._average_precision(places[:n_relevant]) for n_relevant in range(len(places) + 1)
        ]
        return self.sign * np.array(values)

    def _average_precision(self, relevant_places: Indices) -> float:
        """Average precision if the unjudged documents at these places are relevant."""
        # AP if the unjudged documents at these places are relevant, in addition to the judged ones
        n_relevant = self.n_relevant + len(relevant_places)
        if n_relevant == 0:
            return 0.0
        is_relevant = self.is_relevant.copy()
        is_above_cutoff = relevant_places < len(is_relevant)
        is_relevant[relevant_places[is_above_cutoff]] = 1.0
        ranks_of_relevant = 1 + np.flatnonzero(is_relevant)
        relevant_so_far = np.arange(1, len(ranks_of_relevant) + 1)
        precisions = relevant_so_far / ranks_of_relevant
        return float(precisions.sum() / n_relevant)


def weights_of_documents(
    query: RankedQuery, weight_of_place: Array, signs: Iterable[float] = (1.0, -1.0)
) -> dict[str, float]:
    """Return the signed sum of the weights of each document's places in the runs."""
    # A document has the weight of its place in the first run minus that in the second run
    weights: dict[str, float] = {}
    for sign, ranking in zip(signs, query.rankings, strict=False):
        signed_weights = (sign * weight_of_place).tolist()
        for document, weight in zip(ranking, signed_weights, strict=False):
            weights[document] = weights.get(document, 0.0) + weight
    return weights


def linear_query(
    query: RankedQuery, weight_of_place: Array, min_relevant_grade: int
) -> LinearQuery:
    """Return the problem of a metric that is a weighted sum over relevant documents."""
    weights = weights_of_documents(query, weight_of_place)
    judged_value = 0.0  # value of the judged relevant documents
    unjudged = []
    for document, weight in weights.items():
        if document not in query.judgments:
            unjudged.append(document)
        elif query.judgments[document] >= min_relevant_grade:
            judged_value += weight
    unjudged_weights = np.array([weights[document] for document in unjudged])
    return LinearQuery(judged_value, unjudged_weights, unjudged, min_relevant_grade)


def first_relevant_query(
    query: RankedQuery, value_of_place: Array, min_relevant_grade: int
) -> FirstRelevantQuery:
    """Return the problem of a metric that the first relevant document decides."""
    unjudged = query.unjudged()
    index_of_unjudged = {document: index for index, document in enumerate(unjudged)}
    n_runs = len(query.rankings)
    values_without_unjudged = np.zeros(n_runs)
    values_if_first = np.zeros((len(unjudged), n_runs))
    for run, ranking in enumerate(query.rankings):
        # value: of the metric if the first relevant document is at this place
        for document, value in zip(ranking, value_of_place.tolist(), strict=False):
            if document in index_of_unjudged:
                values_if_first[index_of_unjudged[document], run] = value
            elif query.judgments[document] >= min_relevant_grade:
                values_without_unjudged[run] = max(values_without_unjudged[run], value)
    signs = np.array([1.0, -1.0])[:n_runs]
    return FirstRelevantQuery(
        values_without_unjudged, values_if_first, signs, unjudged, min_relevant_grade
    )


def average_precision_query(
    query: RankedQuery, k: int | None, min_relevant_grade: int
) -> AveragePrecisionQuery:
    """Return the problem of the average precision of one run."""
    ranking: Sequence[str] = query.rankings[0]
    grades = np.array([query.judgments.get(name, np.nan) for name in ranking])
    is_relevant = (grades >= min_relevant_grade).astype(np.float64)
    n_relevant = sum(grade >= min_relevant_grade for grade in query.judgments.values())
    # Unjudged documents: retrieved ones, then those of the pool below the list
    places_in_list = np.flatnonzero(np.isnan(grades))
    places_below_list = len(ranking) + np.arange(query.n_pool)
    return AveragePrecisionQuery(
        is_relevant=is_relevant[:k],
        places=np.concatenate([places_in_list, places_below_list]),
        n_relevant=int(n_relevant),
        documents=query.unjudged() + query.pool_documents(query.n_pool),
        min_relevant_grade=min_relevant_grade,
    )
