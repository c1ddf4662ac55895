"""Ratings as tables, users × items with features of both: MovieLens and Jester.

    python -m experiments.rating_tables [--sets movielens,jester]

MovieLens: 943 users (age, sex, occupation), 1,682 movies (genres), 6 % of the cells known. Jester:
2,000 users who rated all jokes, described by what they gave to the first ten; the table has the
other 90 jokes, described by 20 directions of the ratings of 2,000 other users. Held out are users,
items, or both. The kernel of items is that of their features plus one for the same item; the mean
over users of the concordance, beside the order of the mean ratings of the
items (the same for all users, and unknown for new items).
"""

import gzip
import time
import warnings

import numpy as np

from experiments.command_line import find_data, make_parser
from experiments.tables import print_table
from rankwise import ConditionalRankRLSCV
from rankwise.metrics import get_metric

CONCORDANCE = get_metric("concordance")
GENRES, GAUGE = 19, 10
ALPHAS = np.logspace(-4, -1, 4)


def read_movielens(data):
    """Features of users and movies, and the ratings."""
    ratings, users, movies = find_data(
        data, *(f"movielens100k/u.{part}.gz" for part in ("data", "user", "item"))
    )
    user, movie, rating = np.loadtxt(ratings, dtype=int)[:, :3].T
    Y = np.full((user.max(), movie.max()), np.nan)
    Y[user - 1, movie - 1] = rating
    with gzip.open(users, "rt") as stream:
        lines = [line.strip().split("|") for line in stream]
    jobs = sorted({line[3] for line in lines})
    X = np.array([[float(age) / 20, sex == "M", *(job == name for name in jobs)]
                  for _, age, sex, job, _ in lines], dtype=float)  # fmt: skip
    with gzip.open(movies, "rt", encoding="latin-1") as stream:
        Z = np.array([line.strip().split("|")[-GENRES:] for line in stream], dtype=float)
    return X, Z, Y


def read_jester(data):
    """Features of users and jokes, and the ratings of jokes that are no features."""
    (path,) = find_data(data, "jester/jester-data-1.csv.gz")
    ratings = np.loadtxt(path, delimiter=",")[:, 1:]
    full = ratings[(ratings != 99).all(axis=1)]
    users, others = full[:2000], full[2000:4000]
    X = users[:, :GAUGE] / 5
    centered = others[:, GAUGE:] - others[:, GAUGE:].mean(axis=1, keepdims=True)
    _, s, V = np.linalg.svd(centered, full_matrices=False)
    Z = V[:20].T * s[:20] / s[0]
    return X, Z / Z.std(), users[:, GAUGE:]


def by_mean_rating(Y, leave, cv=5):
    """Concordance of the order of mean ratings, of other users if users are held out."""
    if leave != "rows":
        return None
    fold = np.random.default_rng(0).permutation(len(Y)) % cv
    scores = np.empty(Y.shape)
    for k in range(cv):
        rest = Y[fold != k]
        known = ~np.isnan(rest)
        count = known.sum(axis=0)
        total = np.where(known, rest, 0.0).sum(axis=0)
        overall = total.sum() / count.sum()
        scores[fold == k] = (total + 5 * overall) / (count + 5)
    known = ~np.isnan(Y)
    return float(CONCORDANCE(Y[known], scores[known], np.nonzero(known)[0]))


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument("--sets", default="movielens,jester", help="names, separated by commas")
    given = parser.parse_args(arguments)
    rows = []
    for name in given.sets.split(","):
        X, Z, Y = {"movielens": read_movielens, "jester": read_jester}[name](given.data)
        for leave in ("rows", "columns") if name == "movielens" else ("rows", "columns", "both"):
            start = time.perf_counter()
            cv = 3 if name == "movielens" else "auto"
            kernel = Z @ Z.T / (Z**2).sum(axis=1).mean() + np.eye(len(Z))
            search = ConditionalRankRLSCV(
                ALPHAS,
                leave=leave,
                cv=cv,
                scoring="concordance",
                tol=1e-4,
                column_kernel="precomputed",
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search.fit(X, kernel, Y)
            seconds = time.perf_counter() - start
            way = search.cv_results_["cv"]
            base = by_mean_rating(Y, leave)
            rows.append([f"{name}, new {leave}", search.best_score_, base, way, seconds])
            print(rows[-1], flush=True)
    header = ["what is new", "concordance", "mean rating", "held out by", "s, 4 alphas"]
    print_table("Ratings as tables", header, rows)
    return rows


if __name__ == "__main__":
    main()
