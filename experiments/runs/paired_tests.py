"""Type I error, coverage and power of the paired tests of `compare`.

    python -m experiments.runs.paired_tests --data DIR [--samples N]

Three tables:

* Clusters: groups of one cluster share a part of their difference (30% of the variance), and the
  true difference is 0. How often is p <= 0.05 by the t test and the randomization test over whole
  clusters, and if the clusters are ignored?
* Seeds: two equally good ways of training, S seeds each, on Q groups, with the standard deviations
  0.07 of a group, 0.01 of a seed and 0.05 of both. How often is p <= 0.05 with both variances, and
  if the seeds are averaged first?
* Robust03 (DIR/scores/robust03): samples of n queries, with replacement, of all pairs of runs. How
  often does the 95% interval contain the mean difference of all queries, how often is p <= 0.05 in
  pairs that differ by 0.02 or more, and how often does the t interval disagree about 0 with
  Wilcoxon's p, as rankwise 0.3 combined them?
"""

from __future__ import annotations

import itertools

import numpy as np

from experiments.runs.hidden_judgments import read_data
from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.metrics import evaluate_runs
from rankwise.model_selection import paired_tests
from rankwise.model_selection.paired_tests import (
    cluster_error,
    randomization_tests,
    seed_error,
    signed_rank_p,
    student_test,
    sum_by_cluster,
)

ALPHA = 0.05
CONFIDENCE = 1 - ALPHA
CLUSTERS = {
    "6 of 10": [10] * 6,
    "20 of 5": [5] * 20,
    "50 of 4": [4] * 50,
    "12 of 1 to 12": list(range(1, 13)),
    "1 of 50, 10 of 5": [50] + [5] * 10,
}
SEEDS = (2, 3, 5)
GROUPS = (50, 500, 5000)
METRICS = ("nDCG@10", "AP", "RR")
QUERIES = (10, 25, 50)
LEAST_DIFFERENCE = 0.02
N_DRAWS = 1000  # sign patterns of a randomization test, here


def t_test(difference, codes=None):
    """The t test of a mean over groups or clusters."""
    error = cluster_error(sum_by_cluster(difference, codes))
    return student_test(float(difference.mean()), error, CONFIDENCE)


def flip_test(difference, codes=None):
    """The randomization test of a mean over groups or clusters."""
    (test,) = randomization_tests([sum_by_cluster(difference, codes)], CONFIDENCE, n_draws=N_DRAWS)
    return test


def cluster_rows(n_samples):
    """Type I error with clusters."""
    rows = []
    for name, sizes in CLUSTERS.items():
        rng = np.random.default_rng(len(sizes))
        codes = np.repeat(np.arange(len(sizes)), sizes)
        rejected = []
        for _ in range(n_samples):
            of_cluster = rng.normal(size=len(sizes))[codes]
            difference = np.sqrt(0.3) * of_cluster + np.sqrt(0.7) * rng.normal(size=len(codes))
            tests = [t_test(difference, codes), flip_test(difference, codes), t_test(difference)]
            rejected.append([test.p <= ALPHA for test in tests])
        rows.append([name, *np.mean(rejected, axis=0)])
    return rows


def seed_rows(n_samples):
    """Type I error with seeds."""
    rows = []
    for n_seeds, n_groups in itertools.product(SEEDS, GROUPS):
        rng = np.random.default_rng(n_seeds)
        rejected = []
        for _ in range(n_samples):
            arms = []
            for _ in range(2):
                of_group = 0.07 * rng.normal(size=n_groups)
                of_seed = 0.01 * rng.normal(size=(n_seeds, 1))
                arms.append(of_group + of_seed + 0.05 * rng.normal(size=(n_seeds, n_groups)))
            difference = arms[0].mean(axis=0) - arms[1].mean(axis=0)
            error = seed_error(cluster_error(sum_by_cluster(difference, None)), arms)
            both = student_test(float(difference.mean()), error, CONFIDENCE)
            rejected.append([both.p <= ALPHA, t_test(difference).p <= ALPHA])
        rows.append([n_seeds, n_groups, *np.mean(rejected, axis=0)])
    return rows


def sample_rows(folder, n_samples):
    """Coverage, power and disagreement on samples of the queries of Robust03."""
    qrels, runs = read_data(folder)
    evaluation = evaluate_runs(qrels, runs, METRICS)
    rows = []
    for metric, n_queries in itertools.product(METRICS, QUERIES):
        rng = np.random.default_rng(n_queries)
        covered = []
        rejections = []
        disagreeing = []
        for a, b in itertools.combinations(runs, 2):
            values = evaluation.per_query(metric, a) - evaluation.per_query(metric, b)
            for _ in range(n_samples // 15):
                sample = rng.choice(values, n_queries)
                tests = [t_test(sample), flip_test(sample)]
                wilcoxon = signed_rank_p(sample)
                covered.append([test.low <= values.mean() <= test.high for test in tests])
                disagreeing.append((tests[0].p <= ALPHA) != (wilcoxon <= ALPHA))
                if abs(values.mean()) >= LEAST_DIFFERENCE:
                    rejections.append([*(test.p <= ALPHA for test in tests), wilcoxon <= ALPHA])
        rows.append(
            [
                metric,
                n_queries,
                *np.mean(covered, axis=0),
                *np.mean(rejections, axis=0),
                np.mean(disagreeing),
            ]
        )
    return rows


def main(arguments=None):
    """Print the three tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    options = parser.parse_args(arguments)
    header = ["clusters", "t", "randomization", "t, clusters\nignored"]
    print_table("Type I error with clusters", header, cluster_rows(options.samples), digits=3)
    header = ["seeds", "groups", "both\nvariances", "seeds\naveraged"]
    print_table("Type I error with seeds", header, seed_rows(options.samples // 2), digits=3)
    header = ["metric", "queries", "coverage\nt", "coverage\nrandomization"]
    header += [
        "power\nt",
        "power\nrandomization",
        "power\nWilcoxon",
        "t interval and\nWilcoxon differ",
    ]
    print_table("Samples of Robust03", header, sample_rows(options.data, options.samples), digits=3)
    print_notes(
        f"{options.samples:,} samples a row, {options.samples // 2:,} with seeds; the standard "
        f"error of a share of 0.05 is {np.sqrt(0.05 * 0.95 / options.samples):.3f}.",
        f"Randomization tests of more than {paired_tests.ALL_SUBSETS} units draw {N_DRAWS:,} "
        "patterns here; `compare` draws 100,000.",
    )


if __name__ == "__main__":
    record(main)
