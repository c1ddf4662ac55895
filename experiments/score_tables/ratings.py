"""Ratings as tables, users × items with features of both: MovieLens and Jester.

    python -m experiments.score_tables.ratings [--sets movielens,jester]

MovieLens: 943 users (age, sex, occupation), 1,682 movies (genres), 6 % of the cells known. Jester:
2,000 users who rated all jokes, described by what they gave to the first ten; the table has the
other 90 jokes, described by 20 directions of the ratings of 2,000 other users. Held out are users,
items, or both, in three folds (three times three for both); alpha is chosen inside each training
part. The kernel of items is that of their features plus one for the same item; the mean over users
of the concordance, beside the order of the mean ratings of the items (the same for all users, and
unknown for new items).
"""

import gzip
import time
import warnings

import numpy as np

from experiments.score_tables.drug_target import concordance, splits
from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.ratings import read_jester, read_movielens
from experiments.shared.tables import print_table
from rankwise import ConditionalRankRLSCV

GENRES = 19
GAUGE = 10
FOLDS = 3
ALPHAS = np.logspace(-4, -1, 4)


def movielens(data):
    """Features of users and movies, and the ratings."""
    users, movies = find_data(data, "movielens100k/u.user.gz", "movielens100k/u.item.gz")
    with gzip.open(users, "rt") as stream:
        lines = [line.strip().split("|") for line in stream]
    jobs = sorted({line[3] for line in lines})
    X = np.array([[float(age) / 20, sex == "M", *(job == name for name in jobs)]
                  for _, age, sex, job, _ in lines], dtype=float)  # fmt: skip
    with gzip.open(movies, "rt", encoding="latin-1") as stream:
        Z = np.array([line.strip().split("|")[-GENRES:] for line in stream], dtype=float)
    return X, Z, read_movielens(data)


def jester(data):
    """Features of users and jokes, and the ratings of jokes that are no features."""
    ratings = read_jester(data)
    full = ratings[~np.isnan(ratings).any(axis=1)]
    users = full[:2000]
    other_ratings = full[2000:4000]
    X = users[:, :GAUGE] / 5
    centered = other_ratings[:, GAUGE:] - other_ratings[:, GAUGE:].mean(axis=1, keepdims=True)
    _, s, V = np.linalg.svd(centered, full_matrices=False)
    Z = V[:20].T * s[:20] / s[0]
    return X, Z / Z.std(), users[:, GAUGE:]


def by_mean_rating(Y):
    """Scores of all cells by the mean ratings of the items, drawn to the overall mean."""
    is_rated = ~np.isnan(Y)
    count = is_rated.sum(axis=0)
    total = np.nansum(Y, axis=0)
    return np.broadcast_to((total + 5 * total.sum() / count.sum()) / (count + 5), Y.shape)


def held_out(X, Z, Y, leave):
    """For each fold, concordance of the model and of the mean ratings (nan for new items)."""
    K = Z @ Z.T / (Z**2).sum(axis=1).mean() + np.eye(len(Z))
    cv = FOLDS
    if not np.isnan(Y).any():
        cv = "auto"
    for rows, columns, hidden in splits(Y.shape, leave, FOLDS):
        is_training = ~np.isnan(Y) & ~hidden
        rows = rows[is_training[np.ix_(rows, columns)].any(axis=1)]
        columns = columns[is_training[np.ix_(rows, columns)].any(axis=0)]
        search = ConditionalRankRLSCV(
            ALPHAS,
            leave=leave,
            cv=cv,
            scoring="concordance",
            tol=1e-4,
            column_kernel="precomputed",
        )
        training_Y = np.where(hidden, np.nan, Y)[np.ix_(rows, columns)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(X[rows], K[np.ix_(columns, columns)], training_Y)
        truth = np.where(hidden, Y, np.nan)
        by_model = concordance(truth, search.predict(X, K[:, columns]))
        by_mean = np.nan
        if leave == "rows":
            by_mean = concordance(truth, by_mean_rating(np.where(hidden, np.nan, Y)))
        yield by_model, by_mean


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument("--sets", default="movielens,jester", help="names, separated by commas")
    options = parser.parse_args(arguments)
    rows = []
    for name in options.sets.split(","):
        X, Z, Y = {"movielens": movielens, "jester": jester}[name](options.data)
        for leave in ("rows", "columns", "both"):
            start = time.process_time()
            concordances = np.array(list(held_out(X, Z, Y, leave)))
            seconds = (time.process_time() - start) / len(concordances)
            base = (
                f"{concordances[:, 1].mean():.3f} ± {concordances[:, 1].std():.3f}"
                if leave == "rows"
                else "–"
            )
            model = f"{concordances[:, 0].mean():.3f} ± {concordances[:, 0].std():.3f}"
            rows.append([f"{name}, new {leave}", model, base, seconds])
    header = ["what is new", "concordance", "mean rating", "s a fold"]
    print_table("Ratings as tables: mean and sd over folds", header, rows)
    return rows


if __name__ == "__main__":
    record(main)
