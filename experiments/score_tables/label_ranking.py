"""Label ranking on the 21 data sets of Cheng, Hühn and Hüllermeier: Kendall's tau.

    python -m experiments.score_tables.label_ranking [--repeats 5] [--sets iris,wine] [--short]

No paper of ours: the benchmark of label ranking (ICML 2009, "Decision tree and instance-based
learning for label ranking"), with complete rankings. Folds of ten, five times for sets of up to
2,500 instances, once for larger ones. Features are standardized on the training part. Alpha is
chosen by exact leave-one-instance-out on the training part; the width of the Gaussian kernel by the
same on at most 400 of its instances. More than 1,000 instances have a basis of 600. On the same
folds: ranking by pairwise comparison (logistic regression for each pair of labels, and votes), and
a random forest that regresses the ranks, both of scikit-learn with its defaults. "Published" is
ranking by pairwise comparison with random forests of 100 trees, on other folds: Table 5.1 of the
thesis of G. Giannakoulias (GitHub repository yiorgosynkl/label-ranking).
"""

import csv
import gzip
import sys
import time
import warnings
from itertools import combinations

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import LabelRankerCV
from rankwise.metrics import get_metric

SETS = (
    *("authorship", "bodyfat", "calhousing", "cpu", "elevators", "fried", "glass", "housing"),
    *("iris", "pendigits", "segment", "stock", "vehicle", "vowel", "wine", "wisconsin"),
    *("cold", "diau", "dtt", "heat", "spo"),
)
SMALL = 1000
LARGE = 2500
CHOOSING = 400
MOST_KERNEL = 1000
N_BASIS = 600
WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # times one over the number of features
TAU = get_metric("tau")
PUBLISHED = {
    "authorship": "0.935 ± 0.018",
    "bodyfat": "0.204 ± 0.060",
    "calhousing": "0.484 ± 0.009",
    "cpu": "0.519 ± 0.014",
    "glass": "0.901 ± 0.035",
    "housing": "0.822 ± 0.026",
    "iris": "0.965 ± 0.037",
    "pendigits": "0.975 ± 0.001",
    "segment": "0.977 ± 0.005",
    "stock": "0.926 ± 0.014",
    "vehicle": "0.882 ± 0.025",
    "vowel": "0.914 ± 0.016",
    "wine": "0.941 ± 0.051",
    "wisconsin": "0.549 ± 0.034",
}


def read_ranks(path):
    """Features and ranks of the labels."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    values = np.array(rows, dtype=float)
    is_label = np.array([name.startswith("L") for name in header])
    return values[:, ~is_label], values[:, is_label]


def fit_quietly(model, X, Y):
    """Trained; a grid that ends is no news for hundreds of folds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, Y)


def linear(A, Y, B, rng):
    """Scores of the instances B by LabelRanker with a linear kernel."""
    return fit_quietly(LabelRankerCV(values="ranks"), A, Y).predict(B)


def gaussian(A, Y, B, rng):
    """The same with a Gaussian kernel, its width chosen on a part of the data."""
    rows = rng.permutation(len(A))[:CHOOSING]
    gammas = [width / A.shape[1] for width in WIDTHS]
    search = LabelRankerCV(kernel="rbf", gamma=gammas, values="ranks")
    fit_quietly(search, A[rows], Y[rows])
    options = {}
    if len(A) > MOST_KERNEL:
        options = {"n_basis": N_BASIS, "random_state": 0}
    gamma = search.best_params_["gamma"]
    model = LabelRankerCV(kernel="rbf", gamma=gamma, values="ranks", **options)
    return fit_quietly(model, A, Y).predict(B)


def pairwise(A, Y, B, rng):
    """Ranking by pairwise comparison: the probability of each pair of labels is a vote."""
    votes = np.zeros((len(B), Y.shape[1]))
    for j, k in combinations(range(Y.shape[1]), 2):
        first = Y[:, j] < Y[:, k]
        share = np.full(len(B), first.mean())
        if 0 < share[0] < 1:
            share = LogisticRegression(max_iter=1000).fit(A, first).predict_proba(B)[:, 1]
        votes[:, j] += share
        votes[:, k] += 1 - share
    return votes


def forest(A, Y, B, rng):
    """A random forest that regresses the ranks of all labels."""
    return -RandomForestRegressor(random_state=0).fit(A, Y).predict(B)


METHODS = {"linear": linear, "rbf": gaussian, "pairwise": pairwise, "forest": forest}


def cross_validate(X, Y, repeats):
    """Tau of each method in each fold, and the processor seconds of a fold."""
    taus = {name: [] for name in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for repeat in range(repeats):
        for train, test in KFold(10, shuffle=True, random_state=repeat).split(X):
            scaler = StandardScaler().fit(X[train])
            A = scaler.transform(X[train])
            B = scaler.transform(X[test])
            groups = np.repeat(np.arange(len(test)), Y.shape[1])
            for name, method in METHODS.items():
                start = time.process_time()
                scores = method(A, Y[train], B, np.random.default_rng(repeat))
                seconds[name] += time.process_time() - start
                taus[name].append(float(TAU(-Y[test].ravel(), scores.ravel(), groups)))
    return taus, {name: spent / (10 * repeats) for name, spent in seconds.items()}


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument(
        "--repeats", type=int, default=5, help="of ten folds, up to 2,500 instances"
    )
    parser.add_argument("--sets", default=",".join(SETS), help="names, separated by commas")
    parser.add_argument("--short", action="store_true", help="only sets of up to 1,000, once")
    options = parser.parse_args(arguments)
    rows = []
    for name in options.sets.split(","):
        (path,) = find_data(options.data, f"label_ranking/{name}.csv.gz")
        X, Y = read_ranks(path)
        if options.short and len(X) > SMALL:
            continue
        repeats = options.repeats if len(X) <= LARGE and not options.short else 1
        taus, seconds = cross_validate(X, Y, repeats)
        means = [f"{np.mean(values):.3f} ± {np.std(values):.3f}" for values in taus.values()]
        seconds_of_fold = [f"{value:.2g}" for value in seconds.values()]
        published = PUBLISHED.get(name, "–")
        rows.append([name, len(X), Y.shape[1], *means, published, *seconds_of_fold])
        print(" ".join(map(str, rows[-1])), file=sys.stderr)
    titles_of_seconds = [f"seconds\n{name}" for name in METHODS]
    header = ["set", "instances", "labels", *METHODS, "published", *titles_of_seconds]
    print_table("Label ranking: Kendall's tau, mean and sd over folds", header, rows)
    print_notes("seconds: processor seconds of a fold, with the choice of alpha and width")
    return rows


if __name__ == "__main__":
    record(main)
