"""``rankwise demo``: a tour of the library on generated data.

It may be read as an example: everything that is not printing is done by public functions. Outside
of the package one would write ``from rankwise import RankRLSCV, RankSVMCV, ScoreGraph``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from rankwise.cli import terminal
from rankwise.cli.command import FILE, Command, option
from rankwise.cli.compare_command import print_comparison
from rankwise.formatting import TextTable
from rankwise.runtime.threads import single_threaded

METRICS = ["ndcg@10", "disagreement", "tau"]


@click.command(cls=Command)
@option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=FILE,
    default="rankwise-demo",
    help="Folder to write to.",
)
def demo(output: Path) -> None:
    """Make data, train, compare four rankers, and write a report."""
    from rankwise.cli.training_notes import TrainingNotes
    from rankwise.datasets import read_letor
    from rankwise.graphs import ScoreGraph
    from rankwise.persistence import save
    from rankwise.report import report

    if output.exists() and not output.is_dir():
        raise ValueError(f"--output {output} is a file; name a folder.")
    output.mkdir(parents=True, exist_ok=True)
    train: Any
    test: Any
    train_file, test_file = _write_queries(output)
    train = read_letor(train_file)
    test = read_letor(test_file)
    _heading("1. Training data: train.txt")
    click.echo(str(ScoreGraph(train.y, train.groups).describe()))
    _heading("2. RankRLS, alpha chosen by exact leave-query-out")
    rankers = _train(train)
    _heading("3. Four rankers on new queries: test.txt")
    _print_evaluation(test, rankers)
    notes = TrainingNotes(command="rankwise demo", data="train.txt")
    save(rankers["RankRLS"], output / "model.rw", notes=notes.as_notes())
    page = report(
        rankers["RankRLS"],
        test.X,
        test.y,
        test.groups,
        metrics=METRICS,
        title="rankwise demo",
    )
    page.save(output / "report.html")
    _heading("5. Files to look at")
    terminal.print_key_values(
        [
            (str(output / "report.html"), "open it in a browser"),
            (str(output / "model.rw"), "for rankwise predict, evaluate, export and info"),
            (str(output / "train.txt"), "training data; test.txt has the test data"),
        ]
    )
    terminal.echo(
        "\nComparisons instead of scores? rankwise rank FILE. "
        "Neither? rankwise judge ITEMS asks people."
    )


@single_threaded
def _train(train: Any) -> dict[str, Any]:
    """Train RankRLS, AutoRanker, RankSVM, and a ridge regression without queries."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from rankwise.auto.auto_ranker import AutoRanker
    from rankwise.rankers.rank_rls_cv import RankRLSCV
    from rankwise.rankers.rank_svm import RankSVMCV

    start = time.perf_counter()
    rank_rls = make_pipeline(StandardScaler(), RankRLSCV(scoring="ndcg@10"))
    rank_rls.fit(train.X, train.y, rankrlscv__groups=train.groups)
    search = rank_rls[-1]
    n_alphas = len(search.cv_results_["alphas"][0])  # of the only output
    n_queries = len(search.cv_results_["groups"])
    click.echo(
        f"{n_alphas} alphas x {n_queries} queries = {n_alphas * n_queries:,} trainings' worth of "
        f"held-out scores in {time.perf_counter() - start:.2f} s:\n"
        f"alpha {search.alpha_:.3g}, held-out ndcg@10 {search.best_score_:.4f}"
    )
    auto = AutoRanker(n_resamples=0).fit(train.X, train.y, train.groups)
    rank_svm = make_pipeline(StandardScaler(), RankSVMCV(scoring="ndcg@10"))
    rank_svm.fit(train.X, train.y, ranksvmcv__groups=train.groups)
    ridge = make_pipeline(StandardScaler(), RidgeCV(alphas=[0.01, 0.1, 1, 10, 100, 1e3, 1e4]))
    ridge.fit(train.X, train.y)
    return {"RankRLS": rank_rls, "AutoRanker": auto, "RankSVM": rank_svm, "ridge": ridge}


def _print_evaluation(test: Any, rankers: dict[str, Any]) -> None:
    from rankwise.metrics import evaluate
    from rankwise.model_selection import compare
    from rankwise.model_selection.scorer import predict_items

    table_rows = []
    ndcg_of_queries = {}  # by ranker
    for name, ranker in rankers.items():
        scores = predict_items(ranker, test.X, test.groups)
        evaluation = evaluate(test.y, scores, test.groups, METRICS)
        table_rows.append([name, *(f"{evaluation[metric]:.4f}" for metric in METRICS)])
        ndcg_of_queries[name] = evaluation.per_group["ndcg@10"]
    terminal.print_table(TextTable(["", *METRICS], table_rows))
    _heading("4. Is the difference real? A paired test over the test queries, ndcg@10")
    print_comparison(compare(ndcg_of_queries, greater_is_better=True, baseline="ridge"))


def _write_queries(folder: Path) -> tuple[Path, Path]:
    """Two files of queries that share one hidden utility, on levels that differ by query.

    Some queries have many good documents and some have few, for reasons that have nothing to do
    with what makes a document better than another of the same query. The utility is linear, but
    what is measured of it is bent, as prices and counts are.
    """
    import numpy as np

    from rankwise.datasets import make_ranking, write_letor

    # The utility is linear in the hidden features; those of the files are functions of them.
    n_features = 12
    hidden, y, groups, *_ = make_ranking(
        n_queries=300,
        n_documents=(5, 40),
        n_features=n_features,
        noise=0.8,
        offset=1.0,
        random_state=0,
    )
    is_odd_feature = np.arange(n_features) % 2 == 1
    X = np.where(is_odd_feature, np.cbrt(hidden), np.exp(0.6 * hidden)).round(6)
    is_train_row = groups % 2 == 0  # every second query
    train_file = folder / "train.txt"
    test_file = folder / "test.txt"
    write_letor(train_file, X[is_train_row], y[is_train_row], groups[is_train_row])
    write_letor(test_file, X[~is_train_row], y[~is_train_row], groups[~is_train_row])
    return train_file, test_file


def _heading(text: str) -> None:
    click.secho(f"\n{text}\n", bold=True)
