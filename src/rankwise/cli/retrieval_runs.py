"""Evaluation of TREC runs on qrels, for ``rankwise evaluate`` and ``rankwise compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankwise.cli import terminal
from rankwise.cli.command import FILE, option, option_group
from rankwise.formatting import csv_text

if TYPE_CHECKING:
    from rankwise.metrics import RunEvaluation
    from rankwise.metrics.run_input import RunInput

RUNS = "Runs"  # section of the help
MISSING_QUERIES = ("zero", "skip")
UNJUDGED = ("zero", "judged_only")


@dataclass(frozen=True)
class RetrievalOptions:
    """How TREC runs are evaluated; None stands for the default of `evaluate_runs`."""

    qrels: Path | None
    unjudged: str | None
    missing_queries: str | None

    def arguments(self) -> dict[str, str]:
        """Arguments of `evaluate_runs`."""
        from rankwise.validation import check_option

        arguments = {}
        if self.unjudged is not None:
            check_option("--unjudged", self.unjudged, UNJUDGED)
            arguments["unjudged"] = self.unjudged
        if self.missing_queries is not None:
            check_option("--missing-queries", self.missing_queries, MISSING_QUERIES)
            arguments["missing_queries"] = self.missing_queries
        return arguments

    def refuse(self, path: Path) -> None:
        """Raise a ValueError if an option for runs is given without qrels."""
        for name, value in {
            "--unjudged": self.unjudged,
            "--missing-queries": self.missing_queries,
        }.items():
            if value is not None:
                raise ValueError(f"{name} is for TREC runs, and {path} is none; pass --qrels.")


retrieval_options = option_group(
    RetrievalOptions,
    "retrieval",
    option(
        "--qrels",
        metavar="FILE",
        type=FILE,
        section=RUNS,
        help="Relevance judgments (qrels of TREC); the other files are TREC runs.",
    ),
    option(
        "--unjudged",
        metavar="NAME",
        section=RUNS,
        is_advanced=True,
        help="Documents of runs without a judgment: zero (not relevant; default) or judged_only "
        "(removed from the lists).",
    ),
    option(
        "--missing-queries",
        metavar="zero|skip",
        section=RUNS,
        is_advanced=True,
        help="Queries of the qrels that a run lacks: zero counts 0, as trec_eval -c (default); "
        "skip leaves them out of the mean.",
    ),
)


def read_named_runs(paths: Sequence[Path]) -> dict[str, RunInput]:
    """Read TREC runs; their names are the stems of the files."""
    from rankwise.datasets.trec import read_trec_run

    return {
        name: read_trec_run(path) for name, path in zip(unique_names(paths), paths, strict=True)
    }


def print_run_evaluation(
    result: RunEvaluation, qrels: Path, *, per_query: Path | None, as_json: bool
) -> None:
    """Print the metrics of runs as a table or as JSON; write the values of the queries as CSV."""
    if per_query is not None:
        terminal.write_text(per_query, _per_query_text(result))
    if not as_json:
        terminal.print_table(result.table())
        return
    rows = []
    for run in result.runs:
        for metric in result.metrics:
            low, high = result.interval(metric, run)
            rows.append(
                {
                    "run": run,
                    "metric": metric,
                    "mean": result[run, metric],
                    "low": low,
                    "high": high,
                    "queries": len(result.queries),
                    "missing": result.n_missing[run],
                }
            )
    terminal.print_json({"qrels": qrels, "unjudged": result.unjudged, "metrics": rows})


def _per_query_text(result: RunEvaluation) -> str:
    """The metrics of each run and query as CSV."""
    rows: list[list[object]] = []
    for run in result.runs:
        columns = [result.per_query(metric, run).tolist() for metric in result.metrics]
        for query, *values in zip(result.queries.tolist(), *columns, strict=True):
            rows.append([run, query, *values])
    return csv_text(["run", "query", *result.metrics], rows)


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Names of files: the stem, the path if stems are equal, then also a number."""
    stems = [path.stem for path in paths]
    names = []
    for path in paths:
        is_unique = stems.count(path.stem) == 1
        names.append(path.stem if is_unique else str(path))
    unique = []
    for number, name in enumerate(names, start=1):
        is_unique = names.count(name) == 1
        unique.append(name if is_unique else f"{name} ({number})")
    return unique
