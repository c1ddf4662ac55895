"""Label ranking on the 21 data sets of Cheng, Hühn and Hüllermeier: Kendall's tau.

    python -m experiments.label_ranking [--repeats 5] [--sets iris,wine] [--short]

No paper of ours: the benchmark of label ranking (ICML 2009, "Decision tree and instance-based
learning for label ranking"), with complete rankings. Folds of ten, repeated five times for sets of
up to 1,000 instances, once for larger ones. Features are standardized on the training part. Alpha
is chosen by exact leave-one-instance-out on the training part; the width of the Gaussian kernel by
the same on at most 400 of its instances. More than 1,000 instances have a basis of 300.
"""

import csv
import gzip
import time
import warnings

import numpy as np
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from experiments.command_line import find_data, make_parser
from experiments.tables import print_notes, print_table
from rankwise import LabelRankerCV

SETS = (
    *("authorship", "bodyfat", "calhousing", "cpu", "elevators", "fried", "glass", "housing"),
    *("iris", "pendigits", "segment", "stock", "vehicle", "vowel", "wine", "wisconsin"),
    *("cold", "diau", "dtt", "heat", "spo"),
)
SMALL, CHOOSING, MOST_KERNEL, N_BASIS = 1000, 400, 1000, 300
WIDTHS = (0.1, 0.3, 1.0, 3.0)  # times one over the number of features


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


def gaussian_model(X, Y, rng):
    """The search over alpha with the width that suits a part of the data."""
    some = rng.permutation(len(X))[:CHOOSING]
    gammas = [width / X.shape[1] for width in WIDTHS]
    chosen = fit_quietly(
        LabelRankerCV(kernel="rbf", gamma=gammas, values="ranks"), X[some], Y[some]
    )
    options = {"n_basis": N_BASIS, "random_state": 0} if len(X) > MOST_KERNEL else {}
    gamma = chosen.best_params_["gamma"]
    return LabelRankerCV(kernel="rbf", gamma=gamma, values="ranks", **options)


def cross_validate(X, Y, repeats):
    """Mean and standard deviation over folds of tau of both kernels, and seconds of a fold."""
    taus, seconds = {"linear": [], "rbf": []}, {"linear": 0.0, "rbf": 0.0}
    for repeat in range(repeats):
        for train, test in KFold(10, shuffle=True, random_state=repeat).split(X):
            scaler = StandardScaler().fit(X[train])
            A, B = scaler.transform(X[train]), scaler.transform(X[test])
            rng = np.random.default_rng(repeat)
            for name in taus:
                start = time.perf_counter()
                linear = name == "linear"
                model = (
                    LabelRankerCV(values="ranks") if linear else gaussian_model(A, Y[train], rng)
                )
                fit_quietly(model, A, Y[train])
                seconds[name] += time.perf_counter() - start
                taus[name].append(model.score(B, Y[test]))
    n = len(taus["rbf"])
    return {name: (float(np.mean(each)), float(np.std(each)), seconds[name] / n)
            for name, each in taus.items()}  # fmt: skip


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="of ten folds, for small sets")
    parser.add_argument("--sets", default=",".join(SETS), help="names, separated by commas")
    parser.add_argument("--short", action="store_true", help="only sets of up to 1,000, once")
    given = parser.parse_args(arguments)
    rows = []
    for name in given.sets.split(","):
        (path,) = find_data(given.data, f"label_ranking/{name}.csv.gz")
        X, Y = read_ranks(path)
        if given.short and len(X) > SMALL:
            continue
        repeats = given.repeats if len(X) <= SMALL and not given.short else 1
        found = cross_validate(X, Y, repeats)
        (linear, _, quick), (tau, spread, slow) = found["linear"], found["rbf"]
        rows.append([name, len(X), X.shape[1], Y.shape[1], linear, tau, spread, quick, slow])
        print(f"{name}: tau {linear:.3f} linear, {tau:.3f} rbf", flush=True)
    header = ["set", "instances", "features", "labels", "tau\nlinear", "tau\nrbf", "sd of\nfolds",
              "s a fold\nlinear", "s a fold\nrbf"]  # fmt: skip
    print_table("Label ranking: Kendall's tau, ten folds", header, rows)
    print_notes("seconds include the choice of alpha by leave-one-instance-out, and of the width")
    return rows


if __name__ == "__main__":
    main()
