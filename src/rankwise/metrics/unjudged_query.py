"""One query with unjudged documents: what its metric can be over all their grades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
        documents: dict[str, None] = {}
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
    """A metric of one run, or the difference of two runs, as a function of unknown grades."""

    def zero(self) -> float:
        """Return the value if no unjudged document is relevant."""

    def largest(self) -> Bound:
        """Return the largest value over all grades."""

    def largest_values(self, limit: int) -> Array:
        """Return the largest value with at most c relevant unjudged documents, c = 0 … limit.

        The array may be shorter if further documents change nothing.
        """

    def reversed(self) -> Self:
        """Return the query with the sign of the value reversed."""

    def effects(self) -> dict[str, float]:
        """Return by how much a relevant document would change the value, about."""


def smallest(query: UnjudgedQuery) -> Bound:
    """Return the smallest value over all grades."""
    bound = query.reversed().largest()
    return Bound(-bound.value, bound.grades)


@dataclass(frozen=True)
class LinearQuery:
    """A metric that is a weighted sum over relevant documents: precision and RBP.

    Attributes
    ----------
    base : float
        Contribution of the judged documents.
    weights : ndarray of shape (n_unjudged,)
        Contribution of each unjudged document if it is relevant.
    documents : list of str
        The unjudged documents.
    level : int
        Grade from which a document is relevant.
    """

    base: float
    weights: Array
    documents: list[str]
    level: int

    def zero(self) -> float:
        """Return the value if no unjudged document is relevant."""
        return self.base

    def largest(self) -> Bound:
        """Return the largest value: documents with a positive weight are relevant."""
        is_relevant = self.weights > 0.0
        grades = {self.documents[place]: self.level for place in np.flatnonzero(is_relevant)}
        return Bound(self.base + float(self.weights[is_relevant].sum()), grades)

    def largest_values(self, limit: int) -> Array:
        """Return the largest value with at most c relevant unjudged documents."""
        gains = np.sort(self.weights[self.weights > 0.0])[::-1][:limit]
        return self.base + np.concatenate([[0.0], np.cumsum(gains)])

    def reversed(self) -> LinearQuery:
        """Return the query with the sign of the value reversed."""
        return LinearQuery(-self.base, -self.weights, self.documents, self.level)

    def effects(self) -> dict[str, float]:
        """Return the weights of the unjudged documents."""
        return dict(zip(self.documents, self.weights.tolist(), strict=True))


@dataclass(frozen=True)
class FirstRelevantQuery:
    """A metric that the first relevant document decides: reciprocal rank and success.

    At most one relevant document is needed for the largest difference of two runs: of several, only
    the highest one in the first run matters for it, and the others can only raise the second run.

    Attributes
    ----------
    now : ndarray of shape (n_runs,)
        Value of each run if no unjudged document is relevant.
    place_values : ndarray of shape (n_unjudged, n_runs)
        Value of each run if the unjudged document is its first relevant one.
    signs : ndarray of shape (n_runs,)
        1 or −1 for each run.
    documents : list of str
        The unjudged documents.
    level : int
        Grade from which a document is relevant.
    """

    now: Array
    place_values: Array
    signs: Array
    documents: list[str]
    level: int

    def zero(self) -> float:
        """Return the value if no unjudged document is relevant."""
        return float(self.now @ self.signs)

    def largest(self) -> Bound:
        """Return the largest value over no and one relevant document."""
        values = self._values()
        best = int(np.argmax(values))
        if best == 0:
            return Bound(float(values[0]), {})
        return Bound(float(values[best]), {self.documents[best - 1]: self.level})

    def largest_values(self, limit: int) -> Array:
        """Return the values with no and with one relevant document."""
        values = self._values()
        return np.array([values[0], values.max()])[: limit + 1]

    def reversed(self) -> FirstRelevantQuery:
        """Return the query with the sign of the value reversed."""
        return FirstRelevantQuery(
            self.now, self.place_values, -self.signs, self.documents, self.level
        )

    def effects(self) -> dict[str, float]:
        """Return the change that each unjudged document alone would make."""
        changes = self._values()[1:] - self.zero()
        return dict(zip(self.documents, changes.tolist(), strict=True))

    def _values(self) -> Array:
        """Values without and with each unjudged document, shape (1 + n_unjudged,)."""
        with_document = np.maximum(self.now, self.place_values)
        values: Array = np.vstack([self.now, with_document]) @ self.signs
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
    level : int
        Grade from which a document is relevant.
    sign : float
        1, or −1 for the reversed value.
    """

    is_relevant: Array
    places: Indices
    n_relevant: int
    documents: list[str]
    level: int
    sign: float = 1.0

    def zero(self) -> float:
        """Return the value if no unjudged document is relevant."""
        return float(self._values()[0])

    def largest(self) -> Bound:
        """Return the largest value over the number of relevant documents."""
        values = self._values()
        n_relevant = int(np.argmax(values))
        names = self._first_documents()[:n_relevant]
        return Bound(float(values[n_relevant]), dict.fromkeys(names, self.level))

    def largest_values(self, limit: int) -> Array:
        """Return the largest value with at most c relevant unjudged documents."""
        return np.maximum.accumulate(self._values())[: limit + 1]

    def reversed(self) -> AveragePrecisionQuery:
        """Return the query with the sign of the value reversed."""
        return AveragePrecisionQuery(
            self.is_relevant,
            self.places,
            self.n_relevant,
            self.documents,
            self.level,
            -self.sign,
        )

    def effects(self) -> dict[str, float]:
        """Return the change that each unjudged document alone would make."""
        now = self.zero()
        changes = {}
        for document, place in zip(self.documents, self.places, strict=True):
            changes[document] = self.sign * self._average_precision(np.array([place])) - now
        return changes

    def _first_documents(self) -> list[str]:
        """Order in which documents become relevant."""
        if self.sign > 0:
            return self.documents
        return self.documents[::-1]

    def _values(self) -> Array:
        """Values with c relevant documents, the highest (or lowest) ones, for all c."""
        places = self.places
        if self.sign < 0:
            places = places[::-1]
        values = [self._average_precision(places[:c]) for c in range(len(places) + 1)]
        return self.sign * np.array(values)

    def _average_precision(self, relevant_places: Indices) -> float:
        """Average precision if the unjudged documents at these places are relevant."""
        n_relevant = self.n_relevant + len(relevant_places)
        if n_relevant == 0:
            return 0.0
        is_relevant = self.is_relevant.copy()
        is_relevant[relevant_places[relevant_places < len(is_relevant)]] = 1.0
        ranks = 1 + np.flatnonzero(is_relevant)
        return float((np.arange(1, len(ranks) + 1) / ranks).sum() / n_relevant)


def place_weights(
    query: RankedQuery, weight_of_place: Array, signs: Iterable[float] = (1.0, -1.0)
) -> dict[str, float]:
    """Return the signed sum of the weights of each document's places in the runs."""
    weights: dict[str, float] = {}
    for sign, ranking in zip(signs, query.rankings, strict=False):
        for document, weight in zip(ranking, (sign * weight_of_place).tolist(), strict=False):
            weights[document] = weights.get(document, 0.0) + weight
    return weights


def linear_query(query: RankedQuery, weight_of_place: Array, level: int) -> LinearQuery:
    """Return the problem of a metric that is a weighted sum over relevant documents."""
    weights = place_weights(query, weight_of_place)
    judged = [name for name in weights if name in query.judgments]
    base = sum(weights[name] for name in judged if query.judgments[name] >= level)
    documents = [name for name in weights if name not in query.judgments]
    return LinearQuery(
        float(base), np.array([weights[name] for name in documents]), documents, level
    )


def first_relevant_query(
    query: RankedQuery, value_of_place: Array, level: int
) -> FirstRelevantQuery:
    """Return the problem of a metric that the first relevant document decides."""
    unjudged = query.unjudged()
    n_runs = len(query.rankings)
    now = np.zeros(n_runs)
    place_values = np.zeros((len(unjudged), n_runs))
    row_of = {document: row for row, document in enumerate(unjudged)}
    for run, ranking in enumerate(query.rankings):
        for document, value in zip(ranking, value_of_place.tolist(), strict=False):
            if document in row_of:
                place_values[row_of[document], run] = value
            elif query.judgments[document] >= level:
                now[run] = max(now[run], value)
    signs = np.array([1.0, -1.0])[:n_runs]
    return FirstRelevantQuery(now, place_values, signs, unjudged, level)


def average_precision_query(query: RankedQuery, k: int | None, level: int) -> AveragePrecisionQuery:
    """Return the problem of the average precision of one run."""
    ranking: Sequence[str] = query.rankings[0]
    grades = np.array([query.judgments.get(name, np.nan) for name in ranking])
    documents = query.unjudged() + query.pool_documents(query.n_pool)
    places = np.flatnonzero(np.isnan(grades))
    outside = len(ranking) + np.arange(query.n_pool)
    n_relevant = sum(grade >= level for grade in query.judgments.values())
    is_relevant = (grades >= level).astype(np.float64)
    return AveragePrecisionQuery(
        is_relevant[:k], np.concatenate([places, outside]), int(n_relevant), documents, level
    )
