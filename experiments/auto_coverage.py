"""Coverage of AutoRanker's intervals: for the mean over all groups, and for further groups.

    python -m experiments.auto_coverage --data DIR [--repeats 100] [--only made,mq2008]

Each repeat draws n groups to train on and n further groups, without replacement: n of 20, 50 and
200 as far as a set has enough groups. The interval for further groups (`low_new`, `high_new`)
should contain the mean NDCG@10 of the further groups in 95% of the repeats. On made data
(`experiments.auto_estimate`) the interval of the mean (`low`, `high`) is compared with the mean
over 1,000 new groups. The seed was fixed before the first run.
"""

import numpy as np

from experiments.auto_estimate import make_problem
from experiments.shared.command_line import make_parser, record
from experiments.shared.letor import read_folds
from experiments.shared.tables import print_notes, print_table
from rankwise import AutoRanker
from rankwise.metrics import ndcg

SEED = 2026
SIZES = (20, 50, 200)
SETS = ("made", "ohsumed", "mq2008")
N_TRUE = 1000  # groups that stand for all groups


class Groups:
    """Items in groups of which some are drawn."""

    def __init__(self, X, y, labels):
        distinct, codes = np.unique(labels, return_inverse=True)
        self.X = X
        self.y = y
        self.codes = codes
        self.n_groups = len(distinct)

    def select(self, groups):
        """X, y and groups of the items of these groups."""
        rows = np.isin(self.codes, groups)
        return self.X[rows], self.y[rows], self.codes[rows]


def read_set(name, data):
    """All groups of a LETOR set with items of different grades."""
    test_parts = [fold.test for fold in read_folds(data, name)]
    y = np.concatenate([test_part.y for test_part in test_parts])
    labels = np.concatenate([test_part.groups for test_part in test_parts])
    X = np.concatenate([test_part.X for test_part in test_parts])
    groups = Groups(X, y, labels)
    highest = np.zeros(groups.n_groups)
    np.maximum.at(highest, groups.codes, y)
    X, y, labels = groups.select(np.flatnonzero(highest > 0))
    return Groups(X, y, labels)


def draw(source, n_groups, seed):
    """Training groups, further groups, and many groups that stand for all groups, or None."""
    if source is None:
        training = make_problem(seed, n_groups)
        further = make_problem(seed + 48, n_groups)
        return training, further, make_problem(seed + 52, N_TRUE)
    order = np.random.default_rng([SEED, seed]).permutation(source.n_groups)
    training = source.select(order[:n_groups])
    return training, source.select(order[n_groups : 2 * n_groups]), None


def mean_of_groups(model, sample):
    """NDCG@10 of the model on a sample of groups."""
    X, y, groups = sample
    return ndcg(y, model.predict(X, groups), groups, k=10)


def cover(source, n_groups, seed):
    """Whether each interval contains its truth; NaN if the truth is not known."""
    training, further, all_groups = draw(source, n_groups, seed)
    model = AutoRanker(scoring="ndcg@10").fit(*training)
    estimate = model.estimate_
    of_further = mean_of_groups(model, further)
    contains_further = estimate["low_new"] <= of_further <= estimate["high_new"]
    if all_groups is None:
        return contains_further, np.nan
    of_all = mean_of_groups(model, all_groups)
    return contains_further, estimate["low"] <= of_all <= estimate["high"]


def share(hits):
    """Share and its standard error as text."""
    hits = np.array(hits, dtype=float)
    if np.isnan(hits).all():
        return ""
    mean = hits.mean()
    return f"{100 * mean:.1f} ± {100 * np.sqrt(mean * (1 - mean) / len(hits)):.1f}"


def main(arguments=None):
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args(arguments)
    rows = []
    for name in options.only:
        source = None if name == "made" else read_set(name, options.data)
        for n_groups in SIZES:
            if source is not None and 2 * n_groups > source.n_groups:
                continue
            hits = [cover(source, n_groups, 100 * k + k % 4) for k in range(options.repeats)]
            of_further, of_all = zip(*hits, strict=True)
            rows.append([name, n_groups, share(of_further), share(of_all)])
    header = ["set", "groups", "further groups, %", "all groups, %"]
    print_table(f"coverage of 95% intervals, {options.repeats} repeats", header, rows)
    print_notes(
        "further groups: the mean of as many further groups lies in [low_new, high_new].",
        f"all groups: the mean of {N_TRUE:,} new groups lies in [low, high].",
        "± is the standard error of the simulation.",
    )


if __name__ == "__main__":
    record(main)
