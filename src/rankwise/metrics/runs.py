"""Evaluation of retrieval runs on relevance judgments, with the conventions of trec_eval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.environment import require
from rankwise.errors import warn_user
from rankwise.formatting import TextTable
from rankwise.metrics.by_group import mean_interval
from rankwise.metrics.run_input import (
    ByQuery,
    RunInput,
    RunsInput,
    judged_list,
    ranked_documents,
    read_judgments,
    read_runs,
)
from rankwise.metrics.run_metric_names import RunMetricName, get_run_metric, get_run_metrics
from rankwise.metrics.run_metrics import JudgedList, RunMetric
from rankwise.metrics.unjudged import Bounds, NextJudgment, bounds_of_runs, largest_effects
from rankwise.validation import check_option

if TYPE_CHECKING:
    import pandas

DEFAULT_METRICS = ("nDCG@10", "AP", "RR")
MISSING_QUERIES = ("zero", "skip")
UNJUDGED = ("zero", "judged_only", "bounds")
LEAST_RETRIEVED_DOCUMENTS = 10  # in fewer, all documents may be unjudged by chance


@dataclass(frozen=True, repr=False, eq=False)
class RunEvaluation:
    """Result of `evaluate_runs`: the value of every metric for every run and query.

    ``evaluation["bm25", "nDCG@10"]`` is a mean over queries.

    Attributes
    ----------
    runs : tuple of str
        Names of the runs.
    metrics : tuple of str
        Names of the metrics, as tables print them.
    queries : ndarray of str, shape (n_queries,)
        The judged queries, sorted.
    values : dict from (run, metric) to ndarray of shape (n_queries,)
        In the order of `queries`; NaN for queries that are left out.
    n_missing : dict from run to int
        Judged queries for which a run has no documents.
    n_without_judgments : dict from run to int
        Queries of a run that have no judgments. They are left out.
    missing_queries, unjudged : str
        The arguments of `evaluate_runs`.
    bounds : dict from (run, metric) to Bounds
        With ``unjudged="bounds"``: the values over all grades of the unjudged documents.
    confidence : float
        Level of the intervals.
    """

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    queries: NDArray[np.str_]
    values: dict[tuple[str, str], Array]
    n_missing: dict[str, int]
    n_without_judgments: dict[str, int]
    missing_queries: str = "zero"
    unjudged: str = "zero"
    bounds: dict[tuple[str, str], Bounds] = field(default_factory=dict)
    confidence: float = DEFAULT_CONFIDENCE

    def __getitem__(self, key: tuple[str, RunMetricName] | RunMetricName) -> float:
        """Return the mean of a metric; the run may be left out if there is only one."""
        if isinstance(key, tuple):
            run, metric = key
        else:
            run = self._only_run()
            metric = key
        values = self.per_query(metric, run)
        return float(np.nanmean(values))

    def per_query(self, metric: RunMetricName, run: str | None = None) -> Array:
        """Return the values of a metric for the queries of `queries`.

        Parameters
        ----------
        metric : str or object of ir_measures
            One of the metrics that were evaluated, under any of its names.
        run : str, optional
            Name of the run; it may be left out if there is only one.

        Returns
        -------
        ndarray of shape (n_queries,)
            Values; NaN for queries that are left out.
        """
        metric_name = get_run_metric(metric).name
        if run is None:
            run = self._only_run()
        if (run, metric_name) not in self.values:
            raise KeyError(
                f"({run!r}, {metric_name!r}) was not evaluated; runs are {', '.join(self.runs)}, "
                f"metrics are {', '.join(self.metrics)}."
            )
        return self.values[run, metric_name]

    def interval(self, metric: RunMetricName, run: str | None = None) -> tuple[float, float]:
        """Return Student's interval of the mean over queries, clipped to the range from 0 to 1.

        Parameters
        ----------
        metric, run : str, default=None for `run`
            As in `per_query`.

        Returns
        -------
        tuple of float
            Lower and upper end; NaN with fewer than two queries.
        """
        summary = mean_interval(self.per_query(metric, run), self.confidence)
        low, high = np.clip([summary["low"], summary["high"]], 0.0, 1.0).tolist()
        return low, high

    def next_judgments(
        self, n: int = 20, metric: RunMetricName | None = None
    ) -> list[NextJudgment]:
        """Return the unjudged documents whose judgments matter most.

        For one run these are the documents that change its value most; for several runs those that
        change the differences between runs most.

        Parameters
        ----------
        n : int, default=20
            Number of documents.
        metric : str or object of ir_measures, optional
            One of the metrics that were evaluated; default: the first.

        Returns
        -------
        list of NextJudgment
            Query, document and effect, the largest effect first.

        References
        ----------
        Carterette, Allan, Sitaraman: Minimal test collections for retrieval evaluation. SIGIR 2006.
        """
        if not self.bounds:
            raise ValueError("next_judgments needs evaluate_runs(..., unjudged='bounds').")
        metric_name = self.metrics[0]
        if metric is not None:
            metric_name = get_run_metric(metric).name
        effects_by_run = []
        for run in self.runs:
            queries = self.bounds[run, metric_name].problems
            effects_by_run.append(
                {name: query.effects_of_documents() for name, query in queries.items()}
            )
        return largest_effects(effects_by_run, n)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{run: {metric: mean}}``.

        Returns
        -------
        dict
            Means over queries.
        """
        return {run: {metric: self[run, metric] for metric in self.metrics} for run in self.runs}

    def to_frame(self) -> pandas.DataFrame:
        """Return the values of all queries as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row per run, query and metric, with the columns run, query_id, metric and value.
        """
        pandas = require("pandas", "RunEvaluation.to_frame")
        frames = []
        for (run, metric), values in self.values.items():
            columns = {"run": run, "query_id": self.queries, "metric": metric, "value": values}
            frames.append(pandas.DataFrame(columns))
        return pandas.concat(frames, ignore_index=True)

    def table(self) -> TextTable:
        """Return the means with their intervals as a table of text.

        Returns
        -------
        TextTable
            One row per run and metric.
        """
        header = ["run", "metric", "mean", f"{100 * self.confidence:g}% interval"]
        if self.bounds:
            header += ["any grades", "unjudged"]
        rows = [self._table_row(run, metric) for run in self.runs for metric in self.metrics]
        return TextTable(header, rows, names=(0, 1), notes=self._notes())

    def _table_row(self, run: str, metric: str) -> list[str]:
        low, high = self.interval(metric, run)
        interval = "–"
        if not np.isnan(low):
            interval = f"{low:.4f} … {high:.4f}"
        row = [run, metric, f"{self[run, metric]:.4f}", interval]
        if self.bounds:
            bounds = self.bounds[run, metric]
            row += [f"{bounds.low:.4f} … {bounds.high:.4f}", f"{bounds.n_unjudged:,}"]
        return row

    def _notes(self) -> list[str]:
        notes = [_count_judged_queries(len(self.queries))]
        effect = "left out"
        if self.missing_queries == "zero":
            effect = "counted as 0"
        for run, n_missing in self.n_missing.items():
            if n_missing:
                notes.append(f"{run}: {n_missing:,} judged queries without documents, {effect}")
        if self.unjudged == "judged_only":
            notes.append("documents without a judgment are removed from the lists")
        if self.bounds:
            notes.append(
                "any grades: lowest and highest mean over the grades of unjudged documents"
            )
            notes.append("unjudged: documents without a judgment down to the cut-off")
        return notes

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def _only_run(self) -> str:
        if len(self.runs) > 1:
            raise KeyError(f"there are {len(self.runs)} runs; name one of {', '.join(self.runs)}.")
        return self.runs[0]


def evaluate_runs(
    qrels: RunInput,
    runs: RunsInput,
    metrics: RunMetricName | Iterable[RunMetricName] = DEFAULT_METRICS,
    *,
    unjudged: str = "zero",
    missing_queries: str = "zero",
    confidence: float = DEFAULT_CONFIDENCE,
) -> RunEvaluation:
    """Evaluate retrieval runs as trec_eval does.

    Use it for runs and qrels of TREC and for comparisons with published figures. `evaluate` is for
    arrays of scores; there nDCG has exponential gain and ties have no order.

    Conventions: the gain of nDCG is the grade; negative grades have no gain; documents without a
    judgment are not relevant; ties are broken by descending document id, scores being compared in
    single precision; a judged query that is missing in a run has the value 0.

    Parameters
    ----------
    qrels : dict, data frame, TrecRun, path or id of ir_datasets
        Relevance judgments: ``{query: {document: grade}}``, a frame with the columns query_id,
        doc_id and relevance, the result of `rankwise.datasets.read_qrels`, a file, or the name of
        a data set of ir_datasets, if that package is installed.
    runs : dict, data frame, TrecRun, path or id of ir_datasets, or a mapping from name to these
        One run, ``{query: {document: score}}`` or a frame with the columns query_id, doc_id and
        score; or several runs by name.
    metrics : str, object of ir_measures, or sequence of these, default=("nDCG@10", "AP", "RR")
        Names of ir_measures (``nDCG@10``, ``P(rel=2)@5``, ``AP``, ``RR``, ``R@100``, ``Success@1``,
        ``Rprec``, ``Bpref``, ``infAP``, ``IPrec@0.1``, ``RBP(p=0.9)``, ``Judged@10``) or of
        trec_eval (``ndcg_cut_10``, ``map``, ``recip_rank``, ``P_5``, ``recall_100``).
    unjudged : {"zero", "judged_only", "bounds"}, default="zero"
        Documents without a judgment are not relevant; or they are removed from the lists first; or
        they are not relevant, and the result also has the exact bounds of each mean over all grades
        that they may have (nDCG, AP, RR, P, RBP and Success; see `unjudged_bounds`).
    missing_queries : {"zero", "skip"}, default="zero"
        Judged queries for which a run has no documents count 0 (``trec_eval -c``) or are left out.
    confidence : float, default=0.95
        Level of the intervals.

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
    _check_options(unjudged, missing_queries, confidence)
    run_metrics = get_run_metrics(metrics)
    judgments = read_judgments(qrels)
    runs_by_name = read_runs(runs)
    _check_common_queries(runs_by_name, judgments)

    bounds = {}
    if unjudged == "bounds":
        bounds = _bounds_of_all_runs(judgments, runs_by_name, run_metrics)

    queries = sorted(judgments)
    values: dict[tuple[str, str], Array] = {}
    n_missing = {}
    n_without_judgments = {}
    for name, run in runs_by_name.items():
        lists = judged_lists(judgments, run)
        is_missing = np.array([query not in run for query in queries])
        for metric in run_metrics:
            by_query = _values_by_query(metric, lists, unjudged)
            if missing_queries == "skip":
                by_query[is_missing] = np.nan
            values[name, metric.name] = by_query
        n_missing[name] = int(is_missing.sum())
        n_without_judgments[name] = len(run.keys() - judgments.keys())
        _warn_if_nothing_is_judged(name, run, lists, judgments)

    _warn_of_missing_queries(n_missing, len(queries), missing_queries)
    return RunEvaluation(
        runs=tuple(runs_by_name),
        metrics=tuple(metric.name for metric in run_metrics),
        queries=np.array(queries),
        values=values,
        n_missing=n_missing,
        n_without_judgments=n_without_judgments,
        missing_queries=missing_queries,
        unjudged=unjudged,
        bounds=bounds,
        confidence=confidence,
    )


def _check_options(unjudged: str, missing_queries: str, confidence: float) -> None:
    """Raise a ValueError for an option of `evaluate_runs` that is not accepted."""
    check_option("missing_queries", missing_queries, MISSING_QUERIES)
    check_option("unjudged", unjudged, UNJUDGED)
    if unjudged == "bounds" and missing_queries == "skip":
        raise ValueError("unjudged='bounds' counts missing queries as 0; omit missing_queries=.")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")


def _count_judged_queries(n_queries: int) -> str:
    if n_queries == 1:
        return "1 judged query"
    return f"{n_queries:,} judged queries"


def judged_lists(judgments: ByQuery, run: ByQuery) -> list[JudgedList]:
    """Return the ranked and graded documents of a run for the judged queries, in sorted order.

    A query that is missing in the run has an empty list, for which every metric is 0.
    """
    lists = []
    for query in sorted(judgments):
        documents = ranked_documents(run.get(query, {}))
        lists.append(judged_list(judgments[query], documents))
    return lists


def _bounds_of_all_runs(
    judgments: ByQuery, runs: dict[str, ByQuery], metrics: list[RunMetric]
) -> dict[tuple[str, str], Bounds]:
    """Bounds of each run and metric over all grades of the unjudged documents."""
    bounds = {}
    for name, run in runs.items():
        for metric in metrics:
            bounds[name, metric.name] = bounds_of_runs(judgments, [run], metric)
    return bounds


def _values_by_query(metric: RunMetric, lists: list[JudgedList], unjudged: str) -> Array:
    if unjudged == "judged_only":
        metric = replace(metric, judged_only=True)
    return np.array([metric(judged) for judged in lists])


def _check_common_queries(runs: dict[str, ByQuery], judgments: ByQuery) -> None:
    """Raise a ValueError for a run that has no judged query."""
    for name, run in runs.items():
        if not run.keys() & judgments.keys():
            raise ValueError(
                f"run {name!r} and the qrels have no query in common: the first query of the run "
                f"is {next(iter(run))!r}, that of the qrels {next(iter(judgments))!r}."
            )


def _warn_if_nothing_is_judged(
    name: str, run: ByQuery, lists: list[JudgedList], judgments: ByQuery
) -> None:
    """Warn about a run without any judged document; its identifiers may have another form."""
    grades = np.concatenate([judged.retrieved_grades for judged in lists])
    if len(grades) < LEAST_RETRIEVED_DOCUMENTS or not np.isnan(grades).all():
        return
    retrieved = next((document for query in judgments for document in run.get(query, ())), None)
    judged = next((document for query in judgments for document in judgments[query]), None)
    if retrieved is None or judged is None:
        return
    warn_user(
        f"no document of the run {name!r} is judged, so all metrics are 0. Do the identifiers of "
        f"documents differ? One of the run is {retrieved!r}, one of the qrels {judged!r}."
    )


def _warn_of_missing_queries(n_missing: dict[str, int], n_queries: int, rule: str) -> None:
    """Warn about runs without documents for judged queries."""
    messages = []
    for name, n_missing_of_run in n_missing.items():
        if n_missing_of_run:
            messages.append(
                f"{n_missing_of_run:,} of {n_queries:,} judged queries are missing in the run "
                f"{name!r}"
            )
    if not messages:
        return
    effect = "they count 0, as by trec_eval -c; missing_queries='skip' of evaluate leaves them out"
    if rule == "skip":
        effect = "they are left out; missing_queries='zero' counts them as 0"
    warn_user(f"{', '.join(messages)}; {effect}.")
