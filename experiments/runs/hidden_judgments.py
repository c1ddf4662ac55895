"""What hidden judgments do to comparisons of the Robust03 runs.

    python -m experiments.runs.hidden_judgments --data DIR

DIR/scores/robust03 has qrels.txt.gz and runs NAME.top100.gz of 100 queries. Two tables, NDCG@10:

* A share of the judgments is hidden at random. For all pairs of runs: is the true difference inside
  the bounds over all grades of the unjudged documents (those that no run retrieves included), how
  wide are the bounds of the mean, and how often do they decide the order?
* Each run in turn is new: only the first 5 or 10 documents of the other runs are judged. For the
  new run against each other run: is the order right if unjudged documents count as not relevant, or
  if they are removed, and how does that depend on `judgments_to_flip`?
"""

from __future__ import annotations

import itertools

import numpy as np

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import read_qrels, read_trec_run
from rankwise.metrics import evaluate_runs, unjudged_bounds
from rankwise.metrics.run_input import ranked_documents

RUNS = ("SABIR03BASE", "UAmsT03RDesc", "aplrob03a", "fub03IeOLKe3", "pircRBa1", "uwmtCR0")
METRIC = "nDCG@10"
HIDDEN = (0.0, 0.1, 0.3, 0.5, 0.9)
POOL_DEPTHS = (5, 10)
FEW = 0.05  # share of the loser's unjudged documents


def read_data(folder):
    """Qrels, and runs by name."""
    names = ["qrels.txt.gz", *(f"{run}.top100.gz" for run in RUNS)]
    qrels_path, *run_paths = find_data(folder, *(f"scores/robust03/{name}" for name in names))
    qrels = read_qrels(qrels_path).to_dict()
    runs = {name: read_trec_run(path).to_dict() for name, path in zip(RUNS, run_paths, strict=True)}
    return qrels, runs


def hide(qrels, share, rng):
    """Qrels without a random share of the judgments; each query keeps one."""
    visible = {}
    for query, grades in qrels.items():
        judged = {document: grade for document, grade in grades.items() if rng.random() >= share}
        visible[query] = judged or dict(itertools.islice(grades.items(), 1))
    return visible


def compare_hidden(qrels, runs, share):
    """One row of the first table: all pairs of runs at a share of hidden judgments."""
    visible = hide(qrels, share, np.random.default_rng(0))
    n_hidden = max(len(qrels[query]) - len(visible[query]) for query in qrels)
    truth = evaluate_runs(qrels, runs, METRIC)
    max_grade = max(grade for grades in qrels.values() for grade in grades.values())
    inside = []
    widths = []
    certain = 0
    right = 0
    pairs = list(itertools.combinations(runs, 2))
    for a, b in pairs:
        true_values = truth.per_query(METRIC, a) - truth.per_query(METRIC, b)
        bounds = unjudged_bounds(
            visible, runs[a], runs[b], METRIC, max_grade=max_grade, pool=min(n_hidden, 10)
        )
        for value, (low, high) in zip(true_values, bounds.by_query.values(), strict=True):
            inside.append(low.value - 1e-12 <= value <= high.value + 1e-12)
        widths.append(bounds.high - bounds.low)
        if bounds.low > 0.0 or bounds.high < 0.0:
            certain += 1
            right += np.sign(bounds.low + bounds.high) == np.sign(true_values.mean())
    n_unjudged = bounds.n_unjudged / len(qrels)
    return [
        f"{share:.0%}",
        n_unjudged,
        np.mean(inside),
        np.mean(widths),
        certain,
        right,
        len(pairs),
    ]


def judge_pool(qrels, runs, depth):
    """Qrels of the first documents of the runs."""
    judged = {}
    for query, grades in qrels.items():
        pool = {
            document
            for run in runs.values()
            for document in ranked_documents(run.get(query, {}))[:depth]
        }
        judged[query] = {document: grades.get(document, 0) for document in sorted(pool)}
    return judged


def compare_new(qrels, runs, depth):
    """Rows of the second table: a new run against the runs of the pool."""
    truth = evaluate_runs(qrels, runs, METRIC)
    outcomes = []
    for new in runs:
        pool = {name: run for name, run in runs.items() if name != new}
        judged = judge_pool(qrels, pool, depth)
        removed = evaluate_runs(judged, runs, METRIC, unjudged="judged_only")
        for old in pool:
            true_sign = np.sign(truth[new, METRIC] - truth[old, METRIC])
            bounds = unjudged_bounds(judged, runs[new], runs[old], METRIC, max_grade=2)
            share = 1.0
            if bounds.judgments_to_flip is not None:
                share = bounds.judgments_to_flip / max(bounds.n_unjudged_of_loser, 1)
            outcomes.append(
                [
                    bounds.zero - (truth[new, METRIC] - truth[old, METRIC]),
                    np.sign(bounds.zero) == true_sign,
                    np.sign(removed[new, METRIC] - removed[old, METRIC]) == true_sign,
                    share >= FEW,
                ]
            )
    bias, by_zero, by_removal, is_robust = np.array(outcomes).T
    is_robust = is_robust.astype(bool)
    right_if_robust = None
    if is_robust.any():
        right_if_robust = by_zero[is_robust].mean()
    right_if_not_robust = None
    if not is_robust.all():
        right_if_not_robust = by_zero[~is_robust].mean()
    return [
        depth,
        len(outcomes),
        bias.mean(),
        by_zero.mean(),
        by_removal.mean(),
        int(is_robust.sum()),
        right_if_robust,
        right_if_not_robust,
    ]


def main(arguments=None):
    """Print both tables."""
    options = make_parser(__doc__).parse_args(arguments)
    qrels, runs = read_data(options.data)
    print_table(
        "Hidden at random",
        [
            "hidden",
            "unjudged\na query",
            "true difference\ninside",
            "width of\nthe mean",
            "order\ncertain",
            "and\nright",
            "pairs",
        ],
        [compare_hidden(qrels, runs, share) for share in HIDDEN],
        digits=3,
    )
    print_table(
        "A new run",
        [
            "pool\ndepth",
            "pairs",
            "bias,\nunjudged = 0",
            "order right,\nunjudged = 0",
            "order right,\nremoved",
            f"to flip >= {FEW:.0%}\nof the loser's",
            "of these\nright",
            "of the others\nright",
        ],
        [compare_new(qrels, runs, depth) for depth in POOL_DEPTHS],
        digits=3,
    )
    print_notes(
        "NDCG@10 with linear gain over 100 queries of TREC 2003 Robust, grades 0 to 2.",
        "unjudged a query: unjudged documents among the first 10 of the last pair of runs.",
    )


if __name__ == "__main__":
    record(main)
