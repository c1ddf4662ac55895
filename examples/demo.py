"""The main job in one page: a LETOR-style file in, a ranker, a table of metrics out."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rankwise import RankRLS, RankRLSCV, ScoreGraph
from rankwise.datasets import make_ranking, read_letor, write_letor
from rankwise.metrics import evaluate

METRICS = ["ndcg@10", "map", "disagreement", "tau"]


def write_files(folder: Path) -> tuple[Path, Path]:
    """Two files of queries that share one hidden utility, as a search log would give them."""
    X, y, groups, *_ = make_ranking(
        n_queries=400, n_documents=(1, 40), n_features=20, noise=0.6, random_state=0
    )
    train, test = folder / "train.txt", folder / "test.txt.gz"
    for path, rows in ((train, groups % 2 == 0), (test, groups % 2 == 1)):
        write_letor(path, X[rows], y[rows], groups[rows])
    return train, test


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        train, test = map(read_letor, write_files(Path(folder)))

    print("What there is to learn from (train.txt)\n")
    print(ScoreGraph(train.y, train.groups).describe())

    start = time.perf_counter()
    model = RankRLSCV(scoring="ndcg@10").fit(train.X, train.y, train.groups)
    seconds = time.perf_counter() - start
    candidates = len(model.cv_results_["alphas"][0])
    n_queries = len(model.cv_results_["groups"])
    print(f"\nRankRLS, {candidates} alphas, each judged by exact {model.cv_results_['cv']}:")
    print(f"{candidates * n_queries:,} refits' worth of scores in {seconds:.2f} s")
    print(f"alpha = {model.alpha_:.3g}, held-out ndcg@10 = {model.best_score_:.4f}")

    print("\nRankRLS on test.txt.gz\n")
    print(evaluate(test.y, model.predict(test.X), test.groups, METRICS))
    plain = RankRLS(1e-3, beta=1).fit(train.X, train.y)
    print("\nPlain regression on the scores, which cannot know about queries, for comparison\n")
    print(evaluate(test.y, plain.predict(test.X), test.groups, METRICS))


if __name__ == "__main__":
    main()
