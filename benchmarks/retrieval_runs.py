"""Bounds of retrieval runs over unjudged documents."""

from __future__ import annotations

import numpy as np

from benchmarks.row import Row, Works
from rankwise.metrics.run_metrics import RunMetric
from rankwise.metrics.unjudged import bounds_of_runs

TITLE = "Retrieval runs"
N_QUERIES = {"tiny": 3, "short": 30, "full": 100}
N_GRADES = 4
SHARE_JUDGED = 0.3

Scores = dict[str, dict[str, float]]


def make_runs(size: str, n_retrieved: int) -> tuple[Scores, list[Scores]]:
    """Judgments of a part of the documents, and two runs that share about half of theirs."""
    rng = np.random.default_rng(0)
    judgments: Scores = {}
    runs: list[Scores] = [{}, {}]
    for number in range(N_QUERIES[size]):
        query = f"q{number}"
        documents = np.array([f"doc{k:06}" for k in range(2 * n_retrieved)])
        for run in runs:
            retrieved = rng.permutation(documents)[:n_retrieved].tolist()
            run[query] = dict(zip(retrieved, rng.normal(size=n_retrieved).tolist(), strict=True))
        judged = documents[rng.random(len(documents)) < SHARE_JUDGED].tolist()
        grades = rng.integers(0, N_GRADES + 1, len(judged)).astype(float).tolist()
        judgments[query] = dict(zip(judged, grades, strict=True))
    return judgments, runs


def bounds(size: str) -> Works:
    """Both bounds of every query, from the problems that are built once."""
    metric = RunMetric("ndcg", 1000)
    judgments, runs = make_runs(size, 1000)
    problems = list(bounds_of_runs(judgments, runs, metric).problems.values())

    def ours() -> None:
        for problem in problems:
            problem.upper_bound()
            problem.negated().upper_bound()

    return ours, None


def judgments_to_flip(size: str) -> Works:
    """The fewest relevant documents that reverse the order of two runs, without reading them."""
    judgments, runs = make_runs(size, 100)
    built = bounds_of_runs(judgments, runs, RunMetric("ndcg", 10))

    def ours() -> int | None:
        built.__dict__.pop("judgments_to_flip", None)
        return built.judgments_to_flip

    return ours, None


ROWS = [
    Row(
        TITLE,
        "bounds of NDCG@1000 over unjudged documents, 4 grades, 100 queries",
        "1 ms a query",
        1.0,
        bounds,
        limit=0.1,
    ),
    Row(
        TITLE,
        "`judgments_to_flip`, NDCG@10, 100 queries",
        "0.05 s",
        1.0,
        judgments_to_flip,
        limit=0.05,
    ),
]
