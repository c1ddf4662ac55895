"""Effect of unjudged documents on the metric of a run, or on the difference of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.caching import cached_property
from rankwise.datasets.files import PathLike
from rankwise.datasets.trec import write_qrels
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.metrics.by_group import mean_interval
from rankwise.metrics.run_input import (
    ByQuery,
    RunInput,
    ranked_documents,
    read_judgments,
    read_run,
)
from rankwise.metrics.run_metric_names import RunMetricName, get_run_metric
from rankwise.metrics.run_metrics import RunMetric
from rankwise.metrics.unjudged_ndcg import ndcg_query
from rankwise.metrics.unjudged_query import (
    Bound,
    RankedQuery,
    UnjudgedQuery,
    average_precision_query,
    first_relevant_query,
    linear_query,
    lower_bound,
)
from rankwise.validation import check_int, check_option

BOUNDED = ("ndcg", "p", "rbp", "mrr", "success", "map")
FIRST_LIMIT = 64  # relevant documents tried first by `fewest_to_flip`
ROUNDING = 1e-12  # a difference per query that counts as 0


class NextJudgment(NamedTuple):
    """A document whose judgment matters for a result.

    Attributes
    ----------
    query, document : str
        Names.
    effect : float
        About how much the value of the query would change if the document were relevant.
    """

    query: str
    document: str
    effect: float


@dataclass(frozen=True, repr=False, eq=False)
class Bounds:
    """Result of `unjudged_bounds`: extreme values over all grades of the unjudged documents.

    Attributes
    ----------
    metric : str
        Name of the metric.
    problems : dict from query to UnjudgedQuery
        The value of each query as a function of the unknown grades.
    judgments : dict
        The relevance judgments, ``{query: {document: grade}}``.
    n_unjudged : int
        Unjudged documents among the first k of a run.
    n_unjudged_by_run : tuple of int
        The same for each of the one or two runs.
    """

    metric: str
    problems: dict[str, UnjudgedQuery]
    judgments: ByQuery
    n_unjudged: int
    n_unjudged_by_run: tuple[int, ...]

    @cached_property
    def by_query(self) -> dict[str, tuple[Bound, Bound]]:
        """Lower and upper bound of each query, with grades that attain them."""
        bounds = {}
        for name, problem in self.problems.items():
            bounds[name] = (lower_bound(problem), problem.upper_bound())
        return bounds

    @property
    def low(self) -> float:
        """Smallest mean over the queries."""
        return float(np.mean([lower.value for lower, _ in self.by_query.values()]))

    @property
    def high(self) -> float:
        """Largest mean over the queries."""
        return float(np.mean([upper.value for _, upper in self.by_query.values()]))

    @property
    def zero(self) -> float:
        """Mean if unjudged documents are not relevant."""
        values = [problem.value_if_no_unjudged_relevant() for problem in self.problems.values()]
        return float(np.mean(values))

    @cached_property
    def judgments_to_flip(self) -> int | None:
        """The fewest unjudged documents that must be relevant to reverse the sign of the mean.

        0 if the mean is 0; None if no grades reverse it.
        """
        return fewest_to_flip(list(self.problems.values()))

    @property
    def n_unjudged_of_loser(self) -> int:
        """Unjudged documents among the first k of the run that is behind."""
        # self.zero: first minus second run, if no unjudged document is relevant
        first_loses = len(self.n_unjudged_by_run) > 1 and self.zero < 0.0
        if first_loses:
            return self.n_unjudged_by_run[0]
        return self.n_unjudged_by_run[-1]

    def interval(self, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
        """Return an interval for the mean over a population of queries, valid for any grades.

        Parameters
        ----------
        confidence : float, default=0.95
            Level of the two intervals that are joined.

        Returns
        -------
        tuple of float
            Lower end of Student's interval of the lower bounds, and upper end of that of the upper
            bounds; NaN with fewer than two queries.
        """
        lower_values = []
        upper_values = []
        for lower, upper in self.by_query.values():
            lower_values.append(lower.value)
            upper_values.append(upper.value)
        # From the lower end for the worst grades to the upper end for the best ones
        low = mean_interval(np.array(lower_values), confidence)["low"]
        high = mean_interval(np.array(upper_values), confidence)["high"]
        return low, high

    def witness(self, end: str) -> ByQuery:
        """Return judgments that attain a bound.

        Parameters
        ----------
        end : {"low", "high"}
            Which bound.

        Returns
        -------
        dict
            The judgments, and a grade for each unjudged document that is relevant there.
        """
        check_option("end", end, ("low", "high"))
        witness = {}
        for name, (lower, upper) in self.by_query.items():
            bound = upper
            if end == "low":
                bound = lower
            witness[name] = {**self.judgments[name], **bound.grades}
        return witness

    def write_qrels(self, path: PathLike, end: str) -> None:
        """Write judgments that attain a bound as qrels.

        Parameters
        ----------
        path : str or path-like
            The file.
        end : {"low", "high"}
            Which bound.
        """
        rows = [
            (query, document, grade)
            for query, grades in self.witness(end).items()
            for document, grade in grades.items()
        ]
        queries, documents, grades = zip(*rows, strict=True)
        write_qrels(path, queries, documents, grades)

    def next_judgments(self, n: int = 20) -> list[NextJudgment]:
        """Return the unjudged documents that matter most for the value.

        Parameters
        ----------
        n : int, default=20
            Number of documents.

        Returns
        -------
        list of NextJudgment
            Largest effect first.
        """
        effects = {}
        for name, problem in self.problems.items():
            effects[name] = problem.effects_of_documents()
        return largest_effects([effects], n)

    def __repr__(self) -> str:
        return (
            f"{self.metric} {self.zero:.4f}; over all grades of {self.n_unjudged:,} unjudged "
            f"documents: {self.low:.4f} to {self.high:.4f}"
        )


def unjudged_bounds(
    qrels: RunInput,
    run: RunInput,
    other: RunInput | None = None,
    metric: RunMetricName = "nDCG@10",
    *,
    max_grade: int | None = None,
    pool: int = 0,
) -> Bounds:
    """Bound a metric of one run or of two over all grades of the unjudged documents.

    Use it to check which conclusions an evaluation with incomplete judgments supports. The bounds
    are exact: for both ends there are grades that attain them. They decide the order of two runs
    only while about one document per query is unjudged; `judgments_to_flip` is more informative.

    Parameters
    ----------
    qrels : dict, data frame, TrecRun or path
        Relevance judgments, as in `evaluate_runs`.
    run, other : dict, data frame, TrecRun or path
        A run, and optionally the run that is subtracted.
    metric : str or object of ir_measures, default="nDCG@10"
        nDCG, P, RBP, RR or Success; AP for one run.
    max_grade : int, optional
        Largest grade that an unjudged document may have; default: the largest grade in the qrels.
    pool : int, default=0
        Number of unjudged documents per query that neither run retrieves. They can only enlarge
        the ideal gain of nDCG and the number of relevant documents of AP.

    Returns
    -------
    Bounds
        Bounds of the mean over the judged queries, and of each query with grades that attain them.

    Notes
    -----
    All documents that a run retrieves can be relevant, also those after the cut-off. For nDCG see
    `rankwise.metrics.unjudged_ndcg`: running maxima over the grades inside Dinkelbach's iteration,
    O(n G) for n documents and G grades in each of at most about four steps.

    Examples
    --------
    >>> from rankwise.metrics import unjudged_bounds
    >>> qrels = {"q": {"a": 1, "b": 0}}
    >>> one, two = {"q": {"a": 2.0, "x": 1.0}}, {"q": {"b": 2.0, "a": 1.0}}
    >>> bounds = unjudged_bounds(qrels, one, two)
    >>> [round(value, 3) for value in (bounds.low, bounds.zero, bounds.high)]
    [0.369, 0.369, 0.613]
    """
    judgments = read_judgments(qrels)
    runs = [read_run(run, "run")]
    if other is not None:
        runs.append(read_run(other, "other"))
    return bounds_of_runs(judgments, runs, get_run_metric(metric), max_grade=max_grade, pool=pool)


def judgments_to_flip(
    qrels: RunInput,
    run: RunInput,
    other: RunInput,
    metric: RunMetricName = "nDCG@10",
    *,
    max_grade: int | None = None,
    pool: int = 0,
) -> int | None:
    """Return the fewest unjudged documents that must be relevant to reverse the order of two runs.

    Use it to check whether unjudged documents could change which of two runs is better.

    In 272 comparisons of runs that the pool had not seen, the order with unjudged documents as not
    relevant was right in 99–100% where this number was at least 5% of the loser's unjudged
    documents, and in 41–59% below.

    Parameters
    ----------
    qrels, run, other, metric, max_grade, pool
        As in `unjudged_bounds`.

    Returns
    -------
    int or None
        The number of documents; None if no grades make the difference 0 or reverse it. 0 if the
        runs are level.

    Examples
    --------
    >>> from rankwise.metrics import judgments_to_flip
    >>> qrels = {"q": {"a": 1}}
    >>> judgments_to_flip(qrels, {"q": {"a": 2.0, "b": 1.0}}, {"q": {"x": 2.0, "a": 1.0}})
    1
    """
    bounds = unjudged_bounds(qrels, run, other, metric, max_grade=max_grade, pool=pool)
    return bounds.judgments_to_flip


def bounds_of_runs(
    judgments: ByQuery,
    runs: list[ByQuery],
    metric: RunMetric,
    *,
    max_grade: int | None = None,
    pool: int = 0,
) -> Bounds:
    """Return the bounds for one run, or for the first run minus the second."""
    check_bounded(metric, len(runs))
    check_int("pool", pool, least=0)
    n_grades = _largest_grade(judgments, max_grade)  # without grade 0
    problems: dict[str, UnjudgedQuery] = {}
    n_unjudged = 0
    n_unjudged_by_run = np.zeros(len(runs), dtype=int)
    for name in sorted(judgments):
        rankings = [ranked_documents(run.get(name, {})) for run in runs]
        grades = {document: max(grade, 0.0) for document, grade in judgments[name].items()}
        query = RankedQuery(grades, rankings, pool)
        problems[name] = _query_problem(query, metric, n_grades)
        unjudged_of_runs = query.unjudged_in_first(metric.k)
        n_unjudged += len(set.union(*unjudged_of_runs))
        n_unjudged_by_run += [len(documents) for documents in unjudged_of_runs]
    return Bounds(metric.name, problems, judgments, n_unjudged, tuple(n_unjudged_by_run.tolist()))


def _query_problem(query: RankedQuery, metric: RunMetric, n_grades: int) -> UnjudgedQuery:
    """Return the value of a query as a function of the unknown grades."""
    # How the metric depends on unknown grades determines the kind of problem
    if metric.kind == "ndcg":
        gains = np.arange(n_grades + 1.0)  # of the grades 0 … n_grades
        if metric.gain == "exponential":
            gains = np.exp2(gains) - 1.0
        return ndcg_query(query, metric.k, gains)
    if metric.kind == "map":
        return average_precision_query(query, metric.k, metric.min_relevant_grade)
    n_places = max(len(ranking) for ranking in query.rankings)
    if metric.k is not None:
        n_places = metric.k
    weight_of_place = _weights_of_places(metric, n_places)
    if metric.kind in ("mrr", "success"):
        return first_relevant_query(query, weight_of_place, metric.min_relevant_grade)
    # "p" and "rbp": sums of the weights of the places with a relevant document
    return linear_query(query, weight_of_place, metric.min_relevant_grade)


def _weights_of_places(metric: RunMetric, n_places: int) -> Array:
    """Contribution of a relevant document at each place."""
    if metric.kind == "p":
        return np.full(n_places, 1.0 / n_places)
    if metric.kind == "rbp":
        return (1.0 - metric.persistence) * np.power(metric.persistence, np.arange(n_places))
    if metric.kind == "mrr":
        return 1.0 / np.arange(1.0, n_places + 1.0)
    return np.ones(n_places, dtype=np.float64)  # "success"


def check_bounded(metric: RunMetric, n_runs: int) -> None:
    """Raise a ValueError if the metric of one run, or of two, has no exact bounds."""
    if metric.kind not in BOUNDED or metric.judged_only:
        raise ValueError(
            f"metric {metric.name!r} has no bounds over unjudged documents; use nDCG, P, RBP, RR, "
            "Success, or AP of one run."
        )
    if metric.kind == "map" and n_runs > 1:
        raise ValueError(
            "the difference of the AP of two runs has no exact bounds over unjudged documents; "
            "use nDCG, P, RBP, RR or Success, or bound each run."
        )


def _largest_grade(judgments: ByQuery, max_grade: int | None) -> int:
    """Return the largest grade that an unjudged document may have; validates the grades."""
    grades = [grade for by_document in judgments.values() for grade in by_document.values()]
    fractions = [grade for grade in grades if grade % 1.0 != 0.0]
    if fractions:
        raise ValueError(f"bounds need whole grades, and the qrels have {fractions[0]}.")
    largest_in_qrels = max(int(max(grades)), 1)
    if max_grade is None:
        return largest_in_qrels
    check_int("max_grade", max_grade, least=1)
    if max_grade < largest_in_qrels:
        raise ValueError(
            f"max_grade={max_grade} but the qrels have the grade {largest_in_qrels}; pass at least "
            "that."
        )
    return max_grade


def fewest_to_flip(problems: list[UnjudgedQuery]) -> int | None:
    """Return the fewest relevant unjudged documents that reverse the sign of the sum.

    The largest sum with at most c relevant documents is a (max, +) convolution over the queries.
    It is computed up to a limit, which is doubled until the sign is reversed.
    """
    # The difference of two runs, summed over the queries, if no unjudged document is relevant
    difference = sum(problem.value_if_no_unjudged_relevant() for problem in problems)
    tolerance = ROUNDING * len(problems)
    if abs(difference) <= tolerance:
        return 0
    if difference > 0.0:  # make it negative, so that it has to rise to 0
        problems = [problem.negated() for problem in problems]
    largest_difference = sum(problem.upper_bound().value for problem in problems)
    if largest_difference < -tolerance:  # no grades reverse the order
        return None
    max_relevant = FIRST_LIMIT
    while True:
        # Entry c: the largest difference with at most c relevant unjudged documents
        largest_differences = _largest_sums_by_n_relevant(problems, max_relevant)
        n_relevant_that_flip = np.flatnonzero(largest_differences >= -tolerance)
        if len(n_relevant_that_flip):
            return int(n_relevant_that_flip[0])
        max_relevant *= 2


def _largest_sums_by_n_relevant(problems: list[UnjudgedQuery], max_relevant: int) -> Array:
    """Return the largest sum with at most c relevant documents, c = 0 … max_relevant."""
    # Dynamic programming over the queries. Entry c of `sums`: the largest sum over the queries so
    # far with at most c relevant unjudged documents
    sums = np.zeros(1)
    for problem in problems:
        values_of_query = problem.largest_values_by_n_relevant(max_relevant)
        n_sums = min(len(sums) + len(values_of_query) - 1, max_relevant + 1)
        new_sums = np.full(n_sums, -np.inf)
        # n of the c documents are of this query, the others of the earlier queries
        for n, value in enumerate(values_of_query.tolist()):
            entries = slice(n, min(n + len(sums), n_sums))
            n_entries = entries.stop - entries.start
            new_sums[entries] = np.maximum(new_sums[entries], sums[:n_entries] + value)
        sums = np.maximum.accumulate(new_sums)
    return sums


def largest_effects(
    effects_by_run: list[Mapping[str, Mapping[str, float]]] | list[dict[str, dict[str, float]]],
    n: int,
) -> list[NextJudgment]:
    """Return the documents whose effects differ most between runs.

    Parameters
    ----------
    effects_by_run : list of dict
        ``{query: {document: effect}}`` of each run; a single entry counts by its size.
    n : int
        Number of documents.
    """
    check_int("n", n, least=1)
    judgments = _judgments_with_effects(effects_by_run)
    largest_first = sorted(judgments, key=lambda judgment: -judgment.effect)
    return largest_first[:n]


def _judgments_with_effects(
    effects_by_run: list[Mapping[str, Mapping[str, float]]] | list[dict[str, dict[str, float]]],
) -> Iterator[NextJudgment]:
    queries = sorted({query for effects in effects_by_run for query in effects})
    for query in queries:
        effects_of_query = [effects.get(query, {}) for effects in effects_by_run]
        documents: dict[str, None] = {}  # an ordered set
        for effect_of_document in effects_of_query:
            documents.update(dict.fromkeys(effect_of_document))
        for document in documents:
            effects = [by_document.get(document, 0.0) for by_document in effects_of_query]
            effect = _range_over_runs(effects)
            if effect > 0.0:
                yield NextJudgment(query, document, effect)


def _range_over_runs(values: list[float]) -> float:
    """Largest minus smallest effect; the size of the effect if there is one run."""
    if len(values) == 1:  # the change of the only run
        return abs(values[0])
    return max(values) - min(values)
