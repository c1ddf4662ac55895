"""Is AutoRanker's estimate honest? It against NDCG@10 on 1,500 new groups of the same kind.

    python -m experiments.auto_estimate [--problems 24]

Made problems of 40, 80 or 160 groups with 3 to 20 items, much or little noise, a linear order or
one with a product of two features. "Second level" is `score_`, which chose and weighted the members
on the groups that it judges; "out of bag" is `estimate_`.
"""

import argparse

import numpy as np

from experiments.shared.command_line import record
from experiments.shared.tables import print_notes, print_table
from rankwise import AutoRanker
from rankwise.metrics import ndcg

SIZES = (40, 80, 160)
NOISES = (0.5, 2.0)
N_NEW = 1500


def make_problem(seed, n_groups):
    """Items, grades and groups."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(3, 21, n_groups))
    X = rng.standard_normal((len(groups), 8))
    weights = np.random.default_rng(seed // 100).standard_normal(8)
    utility = X @ weights + (seed % 2) * 2 * X[:, 0] * X[:, 1]
    utility += NOISES[seed // 2 % 2] * np.abs(weights).sum() * rng.standard_normal(len(groups)) / 2
    return X, np.clip(np.round(utility / utility.std() + 1), 0, 4), groups


def measure(seed, n_groups, n_new):
    """Second level and out of bag, each less NDCG@10 on new groups."""
    model = AutoRanker().fit(*make_problem(seed, n_groups))
    X, y, groups = make_problem(seed + 48, n_new)  # of the same kind, other items
    truth = ndcg(y, model.predict(X, groups), groups, k=10)
    return model.score_ - truth, model.estimate_["score"] - truth


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--new", type=int, default=N_NEW, help="new groups")
    options = parser.parse_args(arguments)
    gaps = [
        measure(100 * k + k % 4, SIZES[k % len(SIZES)], options.new)
        for k in range(options.problems)
    ]
    rows = []
    for name, gap in zip(("second level", "out of bag"), np.transpose(gaps), strict=True):
        error = gap.std(ddof=1) / len(gap) ** 0.5
        rows.append([name, f"{gap.mean():+.4f}", f"{error:.4f}", f"{np.abs(gap).mean():.4f}"])
    header = ["estimate", "less new groups", "standard error", "mean distance"]
    print_table(f"NDCG@10, {options.problems} problems", header, rows)
    print_notes(f"Each is judged on {options.new} new groups.")


if __name__ == "__main__":
    record(main)
