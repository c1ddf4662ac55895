"""Runs and relevance judgments (qrels) in the format of TREC, for trec_eval and similar tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.datasets.files import PathLike, numbered_lines, open_unpacked, replace_file
from rankwise.datasets.vocabulary import finite_number, shown_value
from rankwise.errors import TableFormatError, warn_user
from rankwise.groups import encode_groups
from rankwise.validation import check_option

RUN = ("query", "Q0", "document", "rank", "score", "tag")
QRELS = ("query", "0", "document", "relevance")
UNKNOWN = ""  # document of a query that is missing in the run
MIN_UNKNOWN_DOCUMENTS = 100  # such documents, at least, above the relevant ones of the query


class TrecRun(NamedTuple):
    """Documents found for queries, or judged for them, one row each.

    Attributes
    ----------
    query, document : ndarray of str, shape (n_rows,)
        Names; a query is a group.
    score : ndarray of shape (n_rows,)
        Of a run: larger is better. NaN for documents that are judged only.
    relevance : ndarray of shape (n_rows,)
        Of qrels: the grade. NaN for documents without a judgment. Some qrels mark documents that
        were in the pool and not judged by negative grades.
    """

    query: NDArray[Any]
    document: NDArray[Any]
    score: Array
    relevance: Array

    @classmethod
    def from_dict(cls, run: Mapping[str, Mapping[str, float]], *, field: str = "score") -> Self:
        """Return a run or qrels from nested dictionaries, as pytrec_eval and ranx have them.

        Parameters
        ----------
        run : dict
            ``{query: {document: number}}``.
        field : {"score", "relevance"}, default="score"
            Meaning of the numbers: "score" of a run, "relevance" of qrels.

        Returns
        -------
        TrecRun
            One row for each document; the other field is NaN.

        Examples
        --------
        >>> from rankwise.datasets import TrecRun
        >>> TrecRun.from_dict({"q1": {"a": 0.5, "b": 0.25}}).score
        array([0.5 , 0.25])
        """
        check_option("field", field, ("score", "relevance"))
        queries = []
        documents = []
        numbers = []
        for query, number_of_document in run.items():
            for document, number in number_of_document.items():
                queries.append(str(query))
                documents.append(str(document))
                numbers.append(float(number))
        rows = cls(
            query=np.array(queries, dtype=np.str_),
            document=np.array(documents, dtype=np.str_),
            score=np.full(len(numbers), np.nan),
            relevance=np.full(len(numbers), np.nan),
        )
        return rows._replace(**{field: np.array(numbers, dtype=np.float64)})

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return ``{query: {document: number}}``, as pytrec_eval and ir_measures accept it.

        Returns
        -------
        dict
            Scores of the documents that have one. Qrels, which have none, give grades; whole
            grades are int, as pytrec_eval requires.

        Examples
        --------
        >>> from rankwise.datasets import TrecRun
        >>> TrecRun.from_dict({"q1": {"a": 2}}, field="relevance").to_dict()
        {'q1': {'a': 2}}
        """
        is_run = bool((~np.isnan(self.score)).any())
        numbers = self.relevance
        if is_run:
            numbers = self.score
        documents_of_query: dict[str, dict[str, float]] = {}
        for query, document, number in zip(
            self.query.tolist(), self.document.tolist(), numbers.tolist(), strict=True
        ):
            if np.isnan(number):
                continue
            is_whole_grade = not is_run and number.is_integer()
            number_of_document = documents_of_query.setdefault(query, {})
            number_of_document[document] = int(number) if is_whole_grade else number
        return documents_of_query

    def judged_by(self, qrels: TrecRun, *, missing_queries: str = "zero") -> TrecRun:
        """Join the run with relevance judgments, for `rankwise.metrics.evaluate`.

        Relevance is NaN for documents without a judgment; `evaluate` counts them as not relevant
        if a metric such as "judged@10" is requested, too. Relevant documents that are missing in
        the run come last in their query, with a score below all others of the run: they belong to
        the ideal order of NDCG, and to all relevant documents of recall. So NDCG, precision, recall
        and reciprocal rank equal the values of trec_eval if the cut-off is at most the length of
        the lists. Negative grades count as 0. Queries of the run without judgments are left out. A
        UserWarning reports how many queries are missing in the run, and how many have no judgments.

        Parameters
        ----------
        qrels : TrecRun
            Relevance judgments, as `read_qrels` returns them.
        missing_queries : {"zero", "skip"}, default="zero"
            What to do with judged queries for which the run has no documents. "zero" counts them
            with the value 0, as ``trec_eval -c`` does: they get documents without a name, not
            judged and above the relevant ones, as many as the longest list of the run has and at
            least 100. Metrics with a cut-off up to that number are exactly 0 (errors are 1).
            "skip" leaves the queries out, as trec_eval does without ``-c``.

        Returns
        -------
        TrecRun
            The rows of the run that belong to judged queries, then the relevant documents that are
            missing in the run.

        Examples
        --------
        >>> import warnings
        >>> import numpy as np
        >>> from rankwise.datasets import TrecRun
        >>> from rankwise.metrics import evaluate
        >>> run = TrecRun(*np.array([["q1"], ["a"]]), np.array([1.0]), np.array([np.nan]))
        >>> two = np.array([["q1", "q2"], ["a", "b"]])
        >>> qrels = TrecRun(*two, np.array([np.nan, np.nan]), np.array([1.0, 1.0]))
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     judged = run.judged_by(qrels)
        >>> evaluate(judged.relevance, judged.score, judged.query, ["p@1", "judged@1"])["p@1"]
        0.5
        """
        check_option("missing_queries", missing_queries, ("zero", "skip"))
        # A row is a pair (query, document); negative grades count as 0.
        grades = np.maximum(qrels.relevance, 0.0)
        judged_rows = _pairs_of_names(qrels.query, qrels.document)
        grade_of_row = dict(zip(judged_rows, grades.tolist(), strict=True))
        judged_queries = set(qrels.query.tolist())
        run_queries = set(self.query.tolist())
        queries_not_in_run = sorted(judged_queries - run_queries)
        _warn_of_queries(
            queries_not_in_run,
            run_queries - judged_queries,
            len(judged_queries),
            missing_queries,
        )

        has_judgments = np.isin(self.query, qrels.query)  # other queries are left out
        score = self.score[has_judgments]
        run_rows = _pairs_of_names(self.query[has_judgments], self.document[has_judgments])
        evaluated_queries = judged_queries
        unknown_rows = []
        if missing_queries == "skip":
            evaluated_queries = judged_queries & run_queries
        elif missing_queries == "zero":
            # Queries that are missing in the run get documents without a name, which are not
            # relevant, above the relevant ones and as many as in the longest list: metrics with a
            # cut-off are 0.
            longest_list = _length_of_longest_list(self.query[has_judgments])
            n_unknown = max(MIN_UNKNOWN_DOCUMENTS, longest_list)
            for query in queries_not_in_run:
                unknown_rows += [(query, UNKNOWN)] * n_unknown
        # Missing relevant documents come last: they are part of the ideal order of a metric.
        relevant_rows_not_in_run = _relevant_rows(grade_of_row, evaluated_queries, set(run_rows))

        all_rows = [*run_rows, *unknown_rows, *relevant_rows_not_in_run]
        lowest_score = score.min(initial=0.0)  # at most 0
        return TrecRun(
            query=np.array([query for query, _ in all_rows], dtype=np.str_),
            document=np.array([document for _, document in all_rows], dtype=np.str_),
            score=np.concatenate(
                [
                    score,
                    np.full(len(unknown_rows), lowest_score - 1.0),
                    np.full(len(relevant_rows_not_in_run), lowest_score - 2.0),
                ]
            ),
            relevance=np.array([grade_of_row.get(row, np.nan) for row in all_rows], np.float64),
        )


def _pairs_of_names(query: NDArray[Any], document: NDArray[Any]) -> list[tuple[str, str]]:
    """Pairs (query, document) of the rows."""
    return list(zip(query.tolist(), document.tolist(), strict=True))


def _relevant_rows(
    grade_of_row: Mapping[tuple[str, str], float],
    queries: set[str],
    known_rows: set[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Pairs (query, document) of some queries that are relevant and are not known."""
    rows = []
    for row, grade in grade_of_row.items():
        query, _ = row
        if grade > 0 and query in queries and row not in known_rows:
            rows.append(row)
    return rows


def _length_of_longest_list(query: NDArray[Any]) -> int:
    """Number of rows of the most frequent query; 0 if there are no rows."""
    _, n_rows_of_query = np.unique(query, return_counts=True)
    return int(n_rows_of_query.max(initial=0))


def _warn_of_queries(
    queries_not_in_run: list[str],
    queries_without_judgments: set[str],
    n_judged_queries: int,
    missing_queries: str,
) -> None:
    """Report the queries that only one of run and judgments has, if there are some."""
    problems = []
    effect = "are left out"
    remedy = "missing_queries='zero' counts them as 0"
    if missing_queries == "zero":
        effect = "count 0, as by trec_eval -c"
        remedy = "missing_queries='skip' leaves them out"
    if queries_not_in_run:
        problems.append(
            f"{len(queries_not_in_run):,} of {n_judged_queries:,} judged queries, such as "
            f"{shown_value(queries_not_in_run[0])}, are missing in the run and {effect} ({remedy})"
        )
    if queries_without_judgments:
        n_queries = len(queries_without_judgments)
        problems.append(f"{n_queries:,} queries of the run have no judgments and are left out")
    if problems:
        warn_user(f"{'; '.join(problems)}.")


def is_trec_run(path: PathLike) -> bool:
    """Whether the first line of a file is one of a run: query, Q0, document, rank, score, name."""
    try:
        lines = numbered_lines(str(path), error=TableFormatError)
        first_line = next((line for _, line in lines if line.strip()), b"")
    except TableFormatError:
        return False
    cells = first_line.decode("utf-8", errors="replace").split()
    if len(cells) != len(RUN):
        return False
    _, q0, _, _, score, _ = cells
    return q0.upper() == "Q0" and finite_number(score) is not None


def read_trec_run(path: PathLike) -> TrecRun:
    """Read a run: lines of query, ``Q0``, document, rank, score, name of the run.

    As in trec_eval, the rank is ignored and the score orders the documents.

    Parameters
    ----------
    path : str or path-like
        The file, compressed or not.

    Returns
    -------
    TrecRun
        Its `relevance` is NaN; see `TrecRun.judged_by`.

    Raises
    ------
    TableFormatError
        If a line has other fields, or a document occurs twice for a query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import read_trec_run, write_trec_run
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_trec_run(path, ["q1", "q1"], ["d1", "d2"], [0.5, 2.0])
    >>> print(path.read_text(), end="")
    q1 Q0 d2 1 2.0 rankwise
    q1 Q0 d1 2 0.5 rankwise
    >>> read_trec_run(path).document
    array(['d2', 'd1'], dtype='<U2')
    """
    query, document, score = _read_columns(path, RUN, number_field="score")
    return TrecRun(query, document, score, np.full(len(query), np.nan))


def read_qrels(path: PathLike) -> TrecRun:
    """Read relevance judgments: lines of query, ``0``, document, relevance.

    Parameters
    ----------
    path : str or path-like
        The file, compressed or not.

    Returns
    -------
    TrecRun
        Its `score` is NaN. Grades are read unchanged; `TrecRun.judged_by` and
        `rankwise.metrics.evaluate_runs` treat negative grades as trec_eval does.

    Raises
    ------
    TableFormatError
        If a line has other fields, or a document occurs twice for a query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import read_qrels, write_qrels
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(path, ["q1", "q1"], ["d1", "d2"], [2, 0])
    >>> read_qrels(path).relevance
    array([2., 0.])
    """
    query, document, relevance = _read_columns(path, QRELS, number_field="relevance")
    return TrecRun(query, document, np.full(len(query), np.nan), relevance)


def write_trec_run(
    path: PathLike, query: ArrayLike, document: ArrayLike, score: ArrayLike, tag: str = "rankwise"
) -> None:
    """Write scores as a run, the best document of each query first.

    Parameters
    ----------
    path : str or path-like
        The file.
    query, document : array-like of str, shape (n_rows,)
        Names without spaces, such as the groups of the items and their identifiers.
    score : array-like of shape (n_rows,)
        Predicted scores. Equal scores stay in the order of rows; trec_eval orders them by the names
        of documents.
    tag : str, default="rankwise"
        Name of the run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import write_trec_run
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_trec_run(path, ["q1", "q1"], ["d1", "d2"], [0.5, 2.0], tag="mine")
    >>> print(path.read_text(), end="")
    q1 Q0 d2 1 2.0 mine
    q1 Q0 d1 2 0.5 mine
    """
    scores = np.asarray(score, dtype=np.float64)
    queries = _writable_names(path, query, len(scores))
    documents = _writable_names(path, document, len(scores))
    _refuse_infinite(path, scores)
    groups = encode_groups(queries, len(scores))
    sorted_rows = np.lexsort((-scores, groups.codes))  # by query, the best document first
    start_of_group = np.cumsum(groups.sizes) - groups.sizes  # in sorted_rows
    ranks = 1 + np.arange(len(scores)) - np.repeat(start_of_group, groups.sizes)
    lines = []
    for row, rank in zip(sorted_rows, ranks, strict=True):
        lines.append(f"{queries[row]} Q0 {documents[row]} {rank} {float(scores[row])!r} {tag}\n")
    with replace_file(path) as stream:
        stream.write("".join(lines).encode())


def write_qrels(
    path: PathLike, query: ArrayLike, document: ArrayLike, relevance: ArrayLike
) -> None:
    """Write relevance judgments; rows whose relevance is NaN are left out.

    Parameters
    ----------
    path : str or path-like
        The file.
    query, document : array-like of str, shape (n_rows,)
        Names without spaces.
    relevance : array-like of shape (n_rows,)
        Whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import write_qrels
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(path, ["q1", "q1"], ["d1", "d2"], [2, 0])
    >>> print(path.read_text(), end="")
    q1 0 d1 2
    q1 0 d2 0
    """
    grades = np.asarray(relevance, dtype=np.float64)
    is_judged = ~np.isnan(grades)
    grades = grades[is_judged]
    queries = _writable_names(path, np.asarray(query)[is_judged], len(grades))
    documents = _writable_names(path, np.asarray(document)[is_judged], len(grades))
    _refuse_infinite(path, grades)
    if (grades % 1 != 0).any():
        raise ValueError(f"{path}: qrels contain whole numbers only; round or rescale relevance.")
    lines = []
    for query_name, document_name, grade in zip(queries, documents, grades, strict=True):
        lines.append(f"{query_name} 0 {document_name} {int(grade)}\n")
    with replace_file(path) as stream:
        stream.write("".join(lines).encode())


def _read_columns(
    path: PathLike, fields: tuple[str, ...], number_field: str
) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Queries, documents, and the numbers in one of the fields."""
    number_position = fields.index(number_field)
    number_of_row: dict[tuple[str, str], float] = {}  # by query and document
    with open_unpacked(str(path), TableFormatError) as (stream, _):
        for line_number, line in enumerate(stream, start=1):
            cells = line.decode("utf-8", errors="replace").split()
            if not cells:
                continue
            number = None
            if len(cells) == len(fields):
                number = finite_number(cells[number_position])
            if number is None:
                problem = f"{line[:60]!r} is not of TREC's format: {', '.join(fields)}."
                raise TableFormatError(str(path), line_number, problem)
            query = cells[0]  # the first and the third field of runs and of qrels
            document = cells[2]
            if (query, document) in number_of_row:
                problem = f"document {document!r} occurs twice for query {query!r}; keep one."
                raise TableFormatError(str(path), line_number, problem)
            number_of_row[query, document] = number
    if not number_of_row:
        raise TableFormatError(str(path), None, "the file is empty.")
    queries, documents = zip(*number_of_row, strict=True)
    return np.array(queries), np.array(documents), np.array(list(number_of_row.values()))


def _writable_names(path: PathLike, names: ArrayLike, n_rows: int) -> list[str]:
    """Names of queries or documents as text; refuse names with spaces, or too few names."""
    texts = [str(name) for name in np.asarray(names).tolist()]
    if len(texts) != n_rows:
        raise ValueError(
            f"{path}: got {len(texts)} names but {n_rows} numbers; pass one name for each number."
        )
    for text in texts:
        if text.split() != [text]:
            raise ValueError(
                f"{path}: the name {text!r} has spaces, which the TREC format does not allow."
            )
    return texts


def _refuse_infinite(path: PathLike, numbers: Array) -> None:
    """Refuse numbers that are not finite."""
    if not np.isfinite(numbers).all():
        raise ValueError(f"{path}: NaN and infinity cannot be written; pass finite numbers.")
