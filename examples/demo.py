"""The main job in one page: a LETOR-style file in, a ranker, a table of metrics out."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from rankwise import RankRLS, ScoreGraph
from rankwise.datasets import make_ranking, read_letor, write_letor
from rankwise.metrics import evaluate

METRICS = ["ndcg@10", "map", "disagreement", "tau"]
ALPHAS = 10.0 ** np.arange(-6, 3)


def write_files(folder: Path) -> tuple[Path, Path, Path]:
    """Three files of queries that share one hidden utility, as a search log would give them."""
    X, y, groups, *_ = make_ranking(
        n_queries=600, n_documents=(1, 40), n_features=20, noise=0.6, random_state=0
    )
    paths = folder / "train.txt", folder / "validate.txt", folder / "test.txt.gz"
    for part, path in enumerate(paths):
        rows = groups % 3 == part
        write_letor(path, X[rows], y[rows], groups[rows])
    return paths


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        train, validate, test = map(read_letor, write_files(Path(folder)))

    print("What there is to learn from (train.txt)\n")
    print(ScoreGraph(train.y, train.groups).describe())

    start = time.perf_counter()
    path = RankRLS().path(train.X, train.y, train.groups, alphas=ALPHAS)
    scores = path.predict(validate.X)
    gains = [evaluate(validate.y, s, validate.groups, ["ndcg@10"])["ndcg@10"] for s in scores.T]
    best = path.model(int(np.argmax(gains)))
    seconds = time.perf_counter() - start
    print(f"\nRankRLS, {len(ALPHAS)} alphas from one reduction, chosen on validate.txt:", end=" ")
    print(f"alpha = {best.alpha:g} ({seconds:.2f} s)")

    print("\nRankRLS on test.txt.gz\n")
    print(evaluate(test.y, best.predict(test.X), test.groups, METRICS))
    plain = RankRLS(best.alpha, beta=1).fit(train.X, train.y)
    print("\nPlain regression on the scores, for comparison\n")
    print(evaluate(test.y, plain.predict(test.X), test.groups, METRICS))


if __name__ == "__main__":
    main()
