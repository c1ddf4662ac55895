"""Evaluation of retrieval runs on relevance judgments, with the conventions of trec_eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.datasets.trec import TrecRun, read_qrels, read_trec_run
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.environment import require
from rankwise.errors import warn_user
from rankwise.formatting import TextTable
from rankwise.frames import frame_columns
from rankwise.metrics.by_group import mean_interval
from rankwise.metrics.run_measures import JudgedList, NamedMeasure, get_measure
from rankwise.validation import check_option

DEFAULT_MEASURES = ("nDCG@10", "AP", "RR")
QUERY_COLUMNS = ("query_id", "qid", "query", "topic")
DOCUMENT_COLUMNS = ("doc_id", "docno", "docid", "document")
GRADE_COLUMNS = ("relevance", "rel", "grade", "label")
SCORE_COLUMNS = ("score", "sim")

Judgments = dict[str, dict[str, float]]


@dataclass(frozen=True, repr=False, eq=False)
class RunEvaluation:
    """Result of `evaluate_runs`: the value of every measure for every run and query.

    ``evaluation["bm25", "nDCG@10"]`` is a mean over queries.

    Attributes
    ----------
    runs : tuple of str
        Names of the runs.
    measures : tuple of str
        Names of the measures, as tables print them.
    queries : ndarray of str, shape (n_queries,)
        The judged queries, sorted.
    values : dict from (run, measure) to ndarray of shape (n_queries,)
        In the order of `queries`; NaN for queries that are left out.
    n_missing : dict from run to int
        Judged queries for which a run has no documents.
    confidence : float
        Of the intervals.
    """

    runs: tuple[str, ...]
    measures: tuple[str, ...]
    queries: NDArray[Any]
    values: dict[tuple[str, str], Array]
    n_missing: dict[str, int]
    confidence: float = DEFAULT_CONFIDENCE

    def __getitem__(self, key: tuple[str, Any] | Any) -> float:
        """Return the mean of a measure; the run may be left out if there is only one."""
        run, measure = key if isinstance(key, tuple) else (self._only_run(), key)
        return float(np.nanmean(self.per_query(measure, run)))

    def per_query(self, measure: Any, run: str | None = None) -> Array:
        """Return the values of a measure for the queries of `queries`.

        Parameters
        ----------
        measure : str or object of ir_measures
            One of the measures that were evaluated, under any of its names.
        run : str, optional
            Name of the run; it may be left out if there is only one.

        Returns
        -------
        ndarray of shape (n_queries,)
            Values; NaN for queries that are left out.
        """
        label = measure if measure in self.measures else get_measure(measure).label
        name = self._only_run() if run is None else run
        if (name, label) not in self.values:
            raise KeyError(
                f"({name!r}, {label!r}) was not evaluated; runs are {', '.join(self.runs)}, "
                f"measures are {', '.join(self.measures)}."
            )
        return self.values[name, label]

    def interval(self, measure: Any, run: str | None = None) -> tuple[float, float]:
        """Return Student's interval of the mean over queries.

        Parameters
        ----------
        measure, run
            As in `per_query`.

        Returns
        -------
        tuple of float
            Lower and upper end; NaN with fewer than two queries.
        """
        summary = mean_interval(self.per_query(measure, run), self.confidence)
        return summary["low"], summary["high"]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{run: {measure: mean}}``."""
        return {
            run: {measure: self[run, measure] for measure in self.measures} for run in self.runs
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns run, query_id, measure and value."""
        pandas = require("pandas", "RunEvaluation.to_frame")
        blocks = [
            pandas.DataFrame(
                {"run": run, "query_id": self.queries, "measure": measure, "value": values}
            )
            for (run, measure), values in self.values.items()
        ]
        return pandas.concat(blocks, ignore_index=True)

    def table(self) -> TextTable:
        """Return the means with their intervals as a table of text."""
        rows = []
        for run in self.runs:
            for measure in self.measures:
                low, high = self.interval(measure, run)
                mean = self[run, measure]
                rows.append([run, measure, f"{mean:.4f}", f"{low:.4f} … {high:.4f}"])
        header = ["run", "measure", "mean", f"{100 * self.confidence:g}% interval"]
        n_queries = len(self.queries)
        return TextTable(header, rows, names=(0, 1), notes=[f"{n_queries:,} judged queries"])

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def _only_run(self) -> str:
        if len(self.runs) > 1:
            raise KeyError(f"there are {len(self.runs)} runs; name one of {', '.join(self.runs)}.")
        return self.runs[0]


def evaluate_runs(
    qrels: Any,
    runs: Any,
    measures: Any = DEFAULT_MEASURES,
    *,
    missing_queries: str = "zero",
    confidence: float = DEFAULT_CONFIDENCE,
) -> RunEvaluation:
    """Evaluate retrieval runs as trec_eval does.

    Use it for runs and qrels of TREC and for comparisons with published figures. `evaluate` is for
    arrays of scores; there nDCG has exponential gain and ties have no order.

    Conventions: the gain of nDCG is the grade; negative grades count as 0; documents without a
    judgment are not relevant; ties are broken by descending document id, scores being compared in
    single precision; a judged query that a run lacks has the value 0.

    Parameters
    ----------
    qrels : dict, data frame, TrecRun or path
        Relevance judgments: ``{query: {document: grade}}``, a frame with the columns query_id,
        doc_id and relevance, the result of `rankwise.datasets.read_qrels`, or a file.
    runs : dict, data frame, TrecRun, path, or a mapping from name to one of these
        One run, ``{query: {document: score}}`` or a frame with the columns query_id, doc_id and
        score; or several runs by name.
    measures : str, object of ir_measures, or sequence of these, default=("nDCG@10", "AP", "RR")
        Names of ir_measures (``nDCG@10``, ``P(rel=2)@5``, ``AP``, ``RR``, ``R@100``, ``Success@1``,
        ``Rprec``, ``Bpref``, ``infAP``, ``IPrec@0.1``, ``RBP(p=0.9)``, ``Judged@10``) or of
        trec_eval (``ndcg_cut_10``, ``map``, ``recip_rank``, ``P_5``, ``recall_100``).
    missing_queries : {"zero", "skip"}, default="zero"
        Judged queries for which a run has no documents count 0 (``trec_eval -c``) or are left out.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    RunEvaluation
        Means with intervals, and the values per query.

    Examples
    --------
    >>> from rankwise.metrics import evaluate_runs
    >>> qrels = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"d": 1}}
    >>> bm25 = {"q1": {"b": 3.0, "a": 2.0, "c": 1.0}, "q2": {"e": 1.0, "d": 0.5}}
    >>> result = evaluate_runs(qrels, bm25, ["nDCG@10", "P@1"])
    >>> round(result["nDCG@10"], 4), result["P@1"]
    (0.6503, 0.0)
    """
    check_option("missing_queries", missing_queries, ("zero", "skip"))
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    judgments = read_judgments(qrels)
    functions = _read_measures(measures)
    named_runs = {name: read_run(run, name) for name, run in _runs_by_name(runs).items()}

    queries = sorted(judgments)
    values: dict[tuple[str, str], Array] = {}
    n_missing: dict[str, int] = {}
    for name, run in named_runs.items():
        if not run.keys() & judgments.keys():
            raise ValueError(
                f"run {name!r} and the qrels have no query in common: the run begins with "
                f"{next(iter(run), 'nothing')!r}, the qrels with {queries[0]!r}."
            )
        is_missing = np.array([query not in run for query in queries])
        n_missing[name] = int(is_missing.sum())
        lists = [judged_list(judgments[query], run.get(query, {})) for query in queries]
        for measure in functions:
            by_query = np.array([measure(judged) for judged in lists])
            if missing_queries == "skip":
                by_query[is_missing] = np.nan
            else:
                by_query[is_missing] = 0.0
            values[name, measure.label] = by_query
    _warn_of_missing_queries(n_missing, len(queries), missing_queries)
    labels = tuple(measure.label for measure in functions)
    return RunEvaluation(
        tuple(named_runs), labels, np.array(queries), values, n_missing, confidence
    )


def ranked_documents(scores: Mapping[str, float]) -> list[str]:
    """Return documents in trec_eval's order: single-precision score, then descending id."""
    documents = sorted(scores, reverse=True)
    single_precision = np.array([scores[name] for name in documents], dtype=np.float32)
    order = np.argsort(-single_precision, kind="stable")
    return [documents[place] for place in order]


def judged_list(judgments: Mapping[str, float], scores: Mapping[str, float]) -> JudgedList:
    """Order the documents of one query as trec_eval does, and look up their grades."""
    grades = [judgments.get(document, np.nan) for document in ranked_documents(scores)]
    return JudgedList(
        np.array(grades, dtype=np.float64), np.array(list(judgments.values()), dtype=np.float64)
    )


def read_judgments(qrels: Any) -> Judgments:
    """Return relevance judgments as ``{query: {document: grade}}``, negative grades as 0."""
    if isinstance(qrels, TrecRun):
        rows = zip(qrels.query, qrels.document, qrels.relevance, strict=True)
        judgments = _nested(rows, "qrels")
    elif isinstance(qrels, Mapping):
        judgments = {str(query): dict(grades) for query, grades in qrels.items()}
    elif (columns := frame_columns(qrels)) is not None:
        judgments = _from_columns(columns, GRADE_COLUMNS, "qrels")
    else:
        return read_judgments(read_qrels(qrels))
    if not judgments:
        raise ValueError("qrels has no judgments.")
    return {
        query: {str(document): max(float(grade), 0.0) for document, grade in grades.items()}
        for query, grades in judgments.items()
    }


def read_run(run: Any, name: str) -> Judgments:
    """Return a run as ``{query: {document: score}}``; a ValueError for NaN and empty runs."""
    if isinstance(run, TrecRun):
        is_retrieved = ~np.isnan(run.score)
        columns = (column[is_retrieved] for column in (run.query, run.document, run.score))
        scores = _nested(zip(*columns, strict=True), f"run {name!r}")
    elif isinstance(run, Mapping):
        scores = {str(query): dict(documents) for query, documents in run.items()}
    elif (frame := frame_columns(run)) is not None:
        scores = _from_columns(frame, SCORE_COLUMNS, f"run {name!r}")
    else:
        return read_run(read_trec_run(run), name)
    if not any(scores.values()):
        raise ValueError(f"run {name!r} has no documents.")
    for query, documents in scores.items():
        for document, score in documents.items():
            if np.isnan(float(score)):
                raise ValueError(
                    f"run {name!r} has the score NaN for document {document!r} of query {query!r}; "
                    "leave the document out."
                )
    return {
        query: {str(document): float(score) for document, score in documents.items()}
        for query, documents in scores.items()
    }


def _runs_by_name(runs: Any) -> dict[str, Any]:
    """Return runs by name; a single run gets the name "run"."""
    if not isinstance(runs, Mapping):
        return {"run": runs}
    if not runs:
        raise ValueError("runs is empty; pass at least one run.")
    return dict(runs) if _is_mapping_of_runs(runs) else {"run": runs}


def _is_mapping_of_runs(runs: Mapping[Any, Any]) -> bool:
    """Whether the values are runs, rather than the documents of queries."""
    first = next(iter(runs.values()))
    if not isinstance(first, Mapping):
        return True
    return any(isinstance(documents, Mapping) for documents in first.values())


def _nested(rows: Any, what: str) -> Judgments:
    """Return rows of query, document and number as nested dictionaries."""
    nested: Judgments = {}
    for query, document, number in rows:
        documents = nested.setdefault(str(query), {})
        if str(document) in documents:
            raise ValueError(f"{what} has document {document!r} twice for query {query!r}.")
        documents[str(document)] = float(number)
    return nested


def _from_columns(columns: dict[str, Any], names: Sequence[str], what: str) -> Judgments:
    """Return the rows of a frame as nested dictionaries."""
    picked = []
    for accepted in (QUERY_COLUMNS, DOCUMENT_COLUMNS, names):
        present = [name for name in accepted if name in columns]
        if not present:
            raise ValueError(
                f"{what} has the columns {', '.join(columns)}; expected one called {accepted[0]}."
            )
        picked.append(columns[present[0]].to_list())
    return _nested(zip(*picked, strict=True), what)


def _read_measures(measures: Any) -> list[NamedMeasure]:
    is_sequence = isinstance(measures, (list, tuple, set, frozenset))
    functions = [get_measure(measure) for measure in (measures if is_sequence else [measures])]
    if not functions:
        raise ValueError("measures is empty; pass at least one, such as 'nDCG@10'.")
    return list({measure.label: measure for measure in functions}.values())


def _warn_of_missing_queries(n_missing: dict[str, int], n_queries: int, rule: str) -> None:
    """Report the runs that lack judged queries."""
    lacking = [f"{name} {n:,}" for name, n in n_missing.items() if n]
    if not lacking:
        return
    effect = "count 0" if rule == "zero" else "are left out"
    other = "skip" if rule == "zero" else "zero"
    warn_user(
        f"judged queries missing in runs (of {n_queries:,}) {effect}: {', '.join(lacking)}. Pass "
        f"missing_queries={other!r} for the other rule."
    )
