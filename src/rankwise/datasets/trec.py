"""Runs and relevance judgments (qrels) in the format of TREC, for trec_eval and its kin."""

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
UNKNOWN = ""  # document of a query that the run lacks
SHORTEST_UNKNOWN = 100  # such documents, at least, above the relevant ones of the query


class TrecRun(NamedTuple):
    """Documents found for queries, or judged for them, one row each.

    Attributes
    ----------
    query, document : ndarray of str, shape (n_rows,)
        Names; a query is a group.
    score : ndarray of shape (n_rows,)
        Of a run: larger is better. NaN for documents that are judged only.
    relevance : ndarray of shape (n_rows,)
        Of qrels: the grade. NaN for documents that nobody judged. Some qrels mark documents that
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
            What the numbers are: "score" of a run, "relevance" of qrels.

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
        query = [str(name) for name, documents in run.items() for _ in documents]
        document = [str(name) for documents in run.values() for name in documents]
        numbers = [float(number) for documents in run.values() for number in documents.values()]
        values = np.array(numbers, dtype=np.float64)
        unknown = np.full(len(values), np.nan)
        names = (np.array(query, dtype=np.str_), np.array(document, dtype=np.str_))
        if field == "score":
            return cls(*names, score=values, relevance=unknown)
        return cls(*names, score=unknown, relevance=values)

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
        nested: dict[str, dict[str, float]] = {}
        for query, document, number in zip(
            self.query.tolist(), self.document.tolist(), numbers.tolist(), strict=True
        ):
            if np.isnan(number):
                continue
            is_whole_grade = not is_run and number.is_integer()
            nested.setdefault(query, {})[document] = int(number) if is_whole_grade else number
        return nested

    def judged_by(self, qrels: TrecRun, *, missing_queries: str = "zero") -> TrecRun:
        """Join the run with relevance judgments, for `rankwise.metrics.evaluate`.

        Relevance is NaN for documents without a judgment; `evaluate` counts them as not relevant
        if a metric such as "judged@10" is requested, too. Relevant documents that the run lacks
        come last in their query, with a score below all others of the run: they belong to the
        ideal order of NDCG, and to all relevant documents of recall. So NDCG, precision, recall
        and reciprocal rank equal those of trec_eval, as long as the cut-off is no larger than the
        lists. Negative grades count as 0. Queries of the run without judgments are left out. A
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
            The rows of the run that belong to judged queries, then the documents it lacks.

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
        judgments = zip(qrels.query, qrels.document, strict=True)
        grades = np.maximum(qrels.relevance, 0.0)
        grade_of = dict(zip(judgments, grades, strict=True))
        has_judgments = np.isin(self.query, qrels.query)
        query, document, score = (column[has_judgments] for column in self[:3])
        retrieved = list(zip(query.tolist(), document.tolist(), strict=True))

        judged_queries = set(qrels.query.tolist())
        run_queries = set(self.query.tolist())
        missing = sorted(judged_queries - run_queries)
        _warn_of_queries(missing, run_queries - judged_queries, judged_queries, missing_queries)
        evaluated = judged_queries
        if missing_queries == "skip":
            evaluated = judged_queries & run_queries
            missing = []
        n_unknown = max(SHORTEST_UNKNOWN, _longest_list(query))
        unknown = [(name, UNKNOWN) for name in missing for _ in range(n_unknown)]
        relevant = [row for row, grade in grade_of.items() if grade > 0 and row[0] in evaluated]
        retrieved_rows = set(retrieved)
        lacking = [row for row in relevant if row not in retrieved_rows]

        rows = [*retrieved, *unknown, *lacking]
        lowest = score.min(initial=0.0)
        scores_below = np.repeat([lowest - 1.0, lowest - 2.0], [len(unknown), len(lacking)])
        return TrecRun(
            np.array([row[0] for row in rows], dtype=np.str_),
            np.array([row[1] for row in rows], dtype=np.str_),
            np.concatenate([score, scores_below]),
            np.array([grade_of.get(row, np.nan) for row in rows], dtype=np.float64),
        )


def _longest_list(query: NDArray[Any]) -> int:
    """Number of rows of the most frequent query; 0 if there are no rows."""
    return int(np.unique(query, return_counts=True)[1].max(initial=0))


def _warn_of_queries(
    missing: list[str], unjudged: set[str], judged: set[str], missing_queries: str
) -> None:
    """Report the queries that only one of run and judgments has, if there are some."""
    problems = []
    fate = "are left out"
    remedy = "missing_queries='zero' counts them as 0"
    if missing_queries == "zero":
        fate = "count 0, as by trec_eval -c"
        remedy = "missing_queries='skip' leaves them out"
    if missing:
        problems.append(
            f"{len(missing):,} of {len(judged):,} judged queries, such as "
            f"{shown_value(missing[0])}, are missing in the run and {fate} ({remedy})"
        )
    if unjudged:
        problems.append(f"{len(unjudged):,} queries of the run have no judgments and are left out")
    if problems:
        warn_user(f"{'; '.join(problems)}.")


def is_trec_run(path: PathLike) -> bool:
    """Whether the first line of a file is one of a run: query, Q0, document, rank, score, name."""
    try:
        lines = numbered_lines(str(path), error=TableFormatError)
        first = next((line for _, line in lines if line.strip()), b"")
    except TableFormatError:
        return False
    cells = first.decode("utf-8", errors="replace").split()
    if len(cells) != len(RUN):
        return False
    return cells[1].upper() == "Q0" and finite_number(cells[4]) is not None


def read_trec_run(path: PathLike) -> TrecRun:
    """Read a run: lines of query, ``Q0``, document, rank, score, name of the run.

    The rank is not looked at, as in trec_eval: the score orders the documents.

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
    query, document, score = _read(path, RUN)
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
        Its `score` is NaN. Grades are those of the file; `TrecRun.judged_by` and
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
    query, document, relevance = _read(path, QRELS)
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
        As `predict` gives them. Equal scores stay in the order of rows; trec_eval orders them by
        the names of documents.
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
    names, scores = _checked(path, query, document, score)
    groups = encode_groups(names[0], len(scores))
    order, sizes = np.lexsort((-scores, groups.codes)), groups.sizes
    place = 1 + np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    lines = (
        f"{names[0][row]} Q0 {names[1][row]} {rank} {float(scores[row])!r} {tag}\n"
        for row, rank in zip(order, place, strict=True)
    )
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
    judged = ~np.isnan(grades)
    names, grades = _checked(
        path, np.asarray(query)[judged], np.asarray(document)[judged], grades[judged]
    )
    if (grades % 1 != 0).any():
        raise ValueError(f"{path}: qrels hold whole numbers only.")
    rows = zip(*names, grades, strict=True)
    with replace_file(path) as stream:
        stream.write("".join(f"{q} 0 {d} {int(grade)}\n" for q, d, grade in rows).encode())


def _read(path: PathLike, fields: tuple[str, ...]) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Queries, documents and the number that follows the documents."""
    place = -2 if len(fields) == len(RUN) else -1
    rows: dict[tuple[str, str], float] = {}
    with open_unpacked(str(path), TableFormatError) as (stream, _):
        for number, line in enumerate(stream, 1):
            cells = line.decode("utf-8", errors="replace").split()
            if not cells:
                continue
            value = None
            if len(cells) == len(fields):
                value = finite_number(cells[place])
            if value is None:
                problem = f"{line[:60]!r} is not of TREC's format: {', '.join(fields)}."
                raise TableFormatError(str(path), number, problem)
            if (cells[0], cells[2]) in rows:
                problem = f"document {cells[2]!r} occurs twice for query {cells[0]!r}; keep one."
                raise TableFormatError(str(path), number, problem)
            rows[cells[0], cells[2]] = value
    if not rows:
        raise TableFormatError(str(path), None, "the file is empty.")
    query, document = zip(*rows, strict=True)
    return np.array(query), np.array(document), np.array(list(rows.values()))


def _checked(path: PathLike, *columns: Any) -> tuple[list[list[str]], Array]:
    """Names and numbers as they can be written."""
    numbers = np.asarray(columns[-1], dtype=np.float64)
    names = [[str(name) for name in np.asarray(column).tolist()] for column in columns[:-1]]
    for column in names:
        if len(column) != len(numbers):
            raise ValueError(f"{path}: {len(column)} names, but {len(numbers)} numbers.")
        wrong = [name for name in column if len(name.split()) != 1 or name != name.strip()]
        if wrong:
            raise ValueError(
                f"{path}: the name {wrong[0]!r} has spaces, which the TREC format does not allow."
            )
    if not np.isfinite(numbers).all():
        raise ValueError(f"{path}: scores must be finite numbers.")
    return names, numbers
