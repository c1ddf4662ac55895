"""Evaluation of TREC runs on qrels, for ``rankwise evaluate`` and ``rankwise compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, option, option_group
from rankwise.formatting import TextTable, csv_text

if TYPE_CHECKING:
    from rankwise.metrics import NextJudgment, RunEvaluation
    from rankwise.metrics.run_input import RunInput

RUNS = "Runs"  # section of the help
MISSING_QUERIES = ("zero", "skip")
UNJUDGED = ("zero", "judged_only", "bounds")


@dataclass(frozen=True)
class RetrievalOptions:
    """How TREC runs are evaluated; None stands for the default of `evaluate_runs`."""

    qrels: Path | None
    unjudged: str | None
    missing_queries: str | None
    next_judgments: int | None

    def unjudged_rule(self) -> str:
        """The argument `unjudged` of `evaluate_runs` and `compare`."""
        from rankwise.validation import check_option

        if self.unjudged is None:  # the next judgments follow from the bounds
            return "zero" if self.next_judgments is None else "bounds"
        check_option("--unjudged", self.unjudged, UNJUDGED)
        return self.unjudged

    def missing_queries_rule(self) -> str:
        """The argument `missing_queries` of `evaluate_runs`."""
        from rankwise.validation import check_option

        if self.missing_queries is None:
            return "zero"
        check_option("--missing-queries", self.missing_queries, MISSING_QUERIES)
        return self.missing_queries

    def refuse_without_qrels(self, path: Path) -> None:
        """Raise a ValueError if an option for runs is given without qrels."""
        for name, value in {
            "--unjudged": self.unjudged,
            "--missing-queries": self.missing_queries,
            "--next-judgments": self.next_judgments,
        }.items():
            if value is not None:
                raise ValueError(
                    f"{name} is for TREC runs, but without --qrels {path} is not read as a run; "
                    f"pass --qrels, or leave out {name}."
                )


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
        help="Documents without a judgment: zero (not relevant; default), judged_only or bounds.",
    ),
    option(
        "--missing-queries",
        metavar="zero|skip",
        section=RUNS,
        is_advanced=True,
        help="Queries of the qrels that a run lacks: zero counts 0, as trec_eval -c (default); "
        "skip leaves them out of the mean.",
    ),
    option(
        "--next-judgments",
        metavar="N",
        type=int,
        section=RUNS,
        is_advanced=True,
        help="List the N unjudged documents with the largest effect on the first metric.",
    ),
)


def read_named_runs(paths: Sequence[Path]) -> dict[str, RunInput]:
    """Read TREC runs; their names are the stems of the files."""
    from rankwise.datasets.trec import read_trec_run

    return {
        name: read_trec_run(path) for name, path in zip(unique_names(paths), paths, strict=True)
    }


def print_run_evaluation(
    result: RunEvaluation, options: RetrievalOptions, *, per_query: Path | None, as_json: bool
) -> None:
    """Print the metrics of runs as a table or as JSON; write the values of the queries as CSV."""
    if per_query is not None:
        terminal.write_text(per_query, _per_query_text(result))
    next_judgments = []
    if options.next_judgments is not None:
        next_judgments = result.next_judgments(options.next_judgments)
    if as_json:
        document = {
            "qrels": options.qrels,
            "unjudged": result.unjudged,
            "metrics": _metric_rows(result),
        }
        if next_judgments:
            document["next_judgments"] = [judgment._asdict() for judgment in next_judgments]
        terminal.print_json(document)
        return
    terminal.print_table(result.table())
    print_next_judgments(next_judgments)


def print_next_judgments(judgments: list[NextJudgment]) -> None:
    """Print the documents to judge next, if there are some."""
    if not judgments:
        return
    rows = [[query, document, f"{effect:.4f}"] for query, document, effect in judgments]
    click.echo("")
    terminal.print_table(TextTable(["judge next: query", "document", "effect"], rows, names=(0, 1)))


def _metric_rows(result: RunEvaluation) -> list[dict[str, object]]:
    """The rows of the table of `RunEvaluation` for JSON."""
    rows = []
    for run in result.runs:
        for metric in result.metrics:
            low, high = result.interval(metric, run)
            row: dict[str, object] = {
                "run": run,
                "metric": metric,
                "mean": result[run, metric],
                "low": low,
                "high": high,
                "queries": len(result.queries),
                "missing": result.n_missing[run],
            }
            if result.bounds:
                bounds = result.bounds[run, metric]
                row["lowest"] = bounds.low
                row["highest"] = bounds.high
                row["unjudged"] = bounds.n_unjudged
            rows.append(row)
    return rows


def _per_query_text(result: RunEvaluation) -> str:
    """The metrics of each run and query as CSV."""
    rows: list[list[object]] = []
    for run in result.runs:
        values_of_metrics = [result.per_query(metric, run).tolist() for metric in result.metrics]
        for query, *values in zip(result.queries.tolist(), *values_of_metrics, strict=True):
            rows.append([run, query, *values])
    return csv_text(["run", "query", *result.metrics], rows)


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Names of files: the stem, the path if stems are equal, then also a number."""
    stems = [path.stem for path in paths]
    stems_or_paths = []
    for path in paths:
        is_unique_stem = stems.count(path.stem) == 1
        stems_or_paths.append(path.stem if is_unique_stem else str(path))
    names = []
    for number, name in enumerate(stems_or_paths, start=1):
        is_unique = stems_or_paths.count(name) == 1
        names.append(name if is_unique else f"{name} ({number})")
    return names
