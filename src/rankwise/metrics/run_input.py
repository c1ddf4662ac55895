"""Read relevance judgments and retrieval runs from dictionaries, frames, files and ir_datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from rankwise.datasets.trec import TrecRun, read_qrels, read_trec_run
from rankwise.frames import DataFrame, frame_columns
from rankwise.metrics.run_metrics import JudgedList

QUERY_COLUMNS = ("query_id", "qid", "query", "topic")
DOCUMENT_COLUMNS = ("doc_id", "docno", "docid", "document")
GRADE_COLUMNS = ("relevance", "rel", "grade", "label")
SCORE_COLUMNS = ("score", "sim")
SINGLE_RUN = "run"  # name of a run that is passed without a name

ByQuery: TypeAlias = dict[str, dict[str, float]]
NestedMapping: TypeAlias = Mapping[str, Mapping[str, float]]
RunInput: TypeAlias = "NestedMapping | TrecRun | str | os.PathLike[str] | DataFrame"
RunsInput: TypeAlias = "RunInput | Mapping[str, RunInput]"


def read_judgments(qrels: RunInput) -> ByQuery:
    """Return relevance judgments as ``{query: {document: grade}}``."""
    if isinstance(qrels, Mapping):
        judgments = _read_mapping(qrels)
    elif isinstance(qrels, TrecRun):
        rows = zip(qrels.query, qrels.document, qrels.relevance, strict=True)
        judgments = _nest_by_query(rows, "qrels")
    elif isinstance(qrels, (str, os.PathLike)):
        judgments = _read_judgments_by_name(qrels)
    else:
        judgments = _read_frame(qrels, GRADE_COLUMNS, "qrels")
    for query, grades in judgments.items():
        for document, grade in grades.items():
            if not np.isfinite(grade):
                raise ValueError(
                    f"qrels has the grade {grade} for document {document!r} of query {query!r}; "
                    "leave the document out."
                )
    if not any(judgments.values()):
        raise ValueError("qrels has no judgments.")
    return judgments


def read_runs(runs: RunsInput) -> dict[str, ByQuery]:
    """Return runs by name; a single run gets the name "run"."""
    if isinstance(runs, Mapping):
        if not runs:
            raise ValueError("runs is empty; pass at least one run.")
        if not _is_one_run(runs):
            by_name = cast("Mapping[str, RunInput]", runs)
            return {str(name): read_run(run, str(name)) for name, run in by_name.items()}
    unnamed_run = cast("RunInput", runs)
    return {SINGLE_RUN: read_run(unnamed_run, SINGLE_RUN)}


def read_run(run: RunInput, name: str) -> ByQuery:
    """Return a run as ``{query: {document: score}}``; a ValueError for NaN and empty runs."""
    if isinstance(run, Mapping):
        scores = _read_mapping(run)
    elif isinstance(run, TrecRun):
        is_retrieved = ~np.isnan(run.score)
        columns = (run.query[is_retrieved], run.document[is_retrieved], run.score[is_retrieved])
        scores = _nest_by_query(zip(*columns, strict=True), f"run {name!r}")
    elif isinstance(run, (str, os.PathLike)):
        scores = _read_run_by_name(run, name)
    else:
        scores = _read_frame(run, SCORE_COLUMNS, f"run {name!r}")
    if not any(scores.values()):
        raise ValueError(f"run {name!r} has no documents.")
    for query, documents in scores.items():
        for document, score in documents.items():
            if np.isnan(score):
                raise ValueError(
                    f"run {name!r} has the score NaN for document {document!r} of query {query!r}; "
                    "leave the document out."
                )
    return scores


def ranked_documents(scores: Mapping[str, float]) -> list[str]:
    """Return documents in trec_eval's order: single-precision score, then descending id."""
    # trec_eval compares scores in single precision, and orders ties by falling document id
    documents = list(scores)
    single_precision = np.array(list(scores.values()), dtype=np.float32)
    order = np.argsort(-single_precision, kind="stable")
    has_ties = (np.diff(single_precision[order]) == 0.0).any()
    if has_ties:
        documents = sorted(documents, reverse=True)
        single_precision = np.array([scores[name] for name in documents], dtype=np.float32)
        order = np.argsort(-single_precision, kind="stable")
    return [documents[place] for place in order.tolist()]


def judged_list(judgments: Mapping[str, float], documents: Sequence[str]) -> JudgedList:
    """Look up the grades of ranked documents."""
    retrieved_grades = [judgments.get(document, np.nan) for document in documents]
    return JudgedList(
        retrieved_grades=np.array(retrieved_grades, dtype=np.float64),
        grades_of_query=np.array(list(judgments.values()), dtype=np.float64),
    )


def _is_one_run(runs: Mapping[str, object]) -> bool:
    """Whether a mapping is one run, from queries to documents, rather than several by name."""
    # {query: {document: score}} rather than {name: run}
    for documents in runs.values():
        if not isinstance(documents, Mapping):
            return False
        first_value = next(iter(documents.values()), None)
        if isinstance(first_value, Mapping):
            return False
    return True


def _read_mapping(nested: Mapping[str, Mapping[str, float]]) -> ByQuery:
    by_query = {}
    for query, documents in nested.items():
        if not isinstance(documents, Mapping):
            raise ValueError(
                f"the documents of query {query!r} are of type {type(documents).__name__}; "
                "expected a dictionary {document: number}. For a ranked list, pass decreasing "
                "numbers, such as {document: -position}."
            )
        by_query[str(query)] = {
            str(name): _read_number(number, name, query) for name, number in documents.items()
        }
    return by_query


def _read_number(number: float, document: str, query: str) -> float:
    try:
        return float(number)
    except (TypeError, ValueError):
        raise ValueError(
            f"document {document!r} of query {query!r} has the value {number!r}; expected a "
            "number. Pass dictionaries {query: {document: number}}; for a ranked list, decreasing "
            "numbers, such as {document: -position}."
        ) from None


def _read_frame(frame: DataFrame, value_names: Sequence[str], description: str) -> ByQuery:
    """Return the rows of a frame as nested dictionaries."""
    columns = frame_columns(frame)
    if columns is None:
        raise ValueError(
            f"{description} is of type {type(frame).__name__}; expected nested dictionaries "
            "{query: {document: number}}, a data frame, a TrecRun or a path."
        )
    selected_columns = []
    for accepted_names in (QUERY_COLUMNS, DOCUMENT_COLUMNS, value_names):
        present_names = [name for name in accepted_names if name in columns]
        if not present_names:
            raise ValueError(
                f"{description} has the columns {', '.join(columns)}; expected one called "
                f"{accepted_names[0]}."
            )
        selected_columns.append(columns[present_names[0]].to_list())
    return _nest_by_query(zip(*selected_columns, strict=True), description)


def _nest_by_query(rows: Iterable[tuple[object, object, float]], description: str) -> ByQuery:
    """Return {query: {document: number}} of rows (query, document, number)."""
    by_query: ByQuery = {}
    for query, document, number in rows:
        by_document = by_query.setdefault(str(query), {})
        if str(document) in by_document:
            raise ValueError(f"{description} has document {document!r} twice for query {query!r}.")
        by_document[str(document)] = float(number)
    return by_query


def _read_judgments_by_name(name: str | os.PathLike[str]) -> ByQuery:
    """Read a file of qrels, or the qrels of a data set of ir_datasets."""
    if _is_file(name):
        return read_judgments(read_qrels(name))
    records = _ir_dataset_records(str(name), "qrels_iter")
    rows = map(attrgetter("query_id", "doc_id", "relevance"), records)
    return _nest_by_query(rows, f"qrels of {name}")


def _read_run_by_name(name: str | os.PathLike[str], label: str) -> ByQuery:
    """Read a TREC run, or the scored documents of a data set of ir_datasets."""
    if _is_file(name):
        return read_run(read_trec_run(name), label)
    records = _ir_dataset_records(str(name), "scoreddocs_iter")
    rows = map(attrgetter("query_id", "doc_id", "score"), records)
    return _nest_by_query(rows, f"run {label!r}")


def _is_file(name: str | os.PathLike[str]) -> bool:
    """Whether to read a file; a name that can be of ir_datasets is looked up there."""
    # Without ir_datasets every name is that of a file, which may be missing
    may_be_a_dataset = isinstance(name, str) and find_spec("ir_datasets") is not None
    is_standard_input = name == "-"
    return is_standard_input or Path(name).exists() or not may_be_a_dataset


def _ir_dataset_records(name: str, method: str) -> Iterator[object]:
    """Records of a data set of ir_datasets."""
    ir_datasets = import_module("ir_datasets")
    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise FileNotFoundError(
            f"{name} is neither a file nor a data set of ir_datasets."
        ) from None
    if not hasattr(dataset, method):
        field = method.removesuffix("_iter")
        raise ValueError(f"the data set {name} of ir_datasets has no {field}.")
    return iter(getattr(dataset, method)())
