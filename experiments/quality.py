"""Quality of AutoRanker beside boosted trees and ridge regression, nothing tuned by hand.

    python -m experiments.quality --data DIR [--only ohsumed,mq2008] [--learners AutoRanker,...]

OHSUMED and MQ2008 (five folds each: three parts and the validation part to train on, one to test
on), LightGBM's example (its own split), Jester (60 users, each a list of 100 jokes; half of them
are to train on, and the ratings of 100 other users are the features) and California housing (one
list: five folds, 4,000 districts of the others to train on; the test fold is cut at random into
lists of 100, so that there is something to take a mean and a test over). Everybody has the same
training data, and chooses on inner folds of them. Results of each learner and fold are kept in
--output, so that a run can be continued; --again measures again.
"""

import json
import time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.quality_peers import LIST_PEERS, PEERS, THREADS
from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.letor import read_folds
from experiments.shared.ratings import read_jester
from experiments.shared.tables import print_notes, print_table
from rankwise import RankRLSCV
from rankwise.datasets import read_letor
from rankwise.metrics import disagreement_error, ndcg
from rankwise.model_selection import compare

OURS = "AutoRanker"


class Split(NamedTuple):
    """Training data and test data of one fold."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups_test: np.ndarray


def letor_splits(name):
    """Five folds; the validation part is for training, too."""

    def splits(data):
        for fold in read_folds(data, name):
            parts = [
                np.concatenate([a, b])
                for a, b in zip(fold.train[:3], fold.validation[:3], strict=True)
            ]
            yield Split(*parts, *fold.test[:3])

    return splits


def lightgbm_splits(data):
    """LightGBM's own example, with its own split."""
    import gzip

    names = ["rank.train.gz", "rank.test.gz", "rank.train.query.gz", "rank.test.query.gz"]
    paths = find_data(data, *(f"lightgbm_rank/{name}" for name in names))
    parts = []
    for rows, sizes in zip(paths[:2], paths[2:], strict=True):
        found = read_letor(rows, n_features=300, sparse=False)
        with gzip.open(sizes, "rt") as stream:
            counts = [int(line) for line in stream]
        parts += [found.X, found.y, np.repeat(np.arange(len(counts)), counts)]
    yield Split(*parts)


def jester_splits(data, n_users=60, n_reference=100):
    """Each user is a list of 100 jokes: half to train on, half to test on."""
    ratings = read_jester(data)
    complete = np.flatnonzero(~np.isnan(ratings).any(axis=1))
    rng = np.random.default_rng(0)
    chosen = rng.choice(complete, n_users + n_reference, replace=False)
    X = ratings[chosen[n_users:]].T
    for user in chosen[:n_users]:
        order = rng.permutation(len(X))
        train = order[:50]
        test = order[50:]
        y = ratings[user]
        one = np.zeros(50, int)
        yield Split(X[train], y[train], one, X[test], y[test], one)


def cadata_splits(data, n=4000, n_folds=5, length=100):
    """One list of districts by the value of their houses, tested in short lists."""
    (path,) = find_data(data, "cadata/cal_housing.data.gz")
    table = np.loadtxt(path, delimiter=",")
    rng = np.random.default_rng(0)
    parts = np.array_split(rng.permutation(len(table)), n_folds)
    for k, test in enumerate(parts):
        train = rng.permutation(np.concatenate(parts[:k] + parts[k + 1 :]))[:n]
        X = table[:, :-1]
        y = table[:, -1]
        lists = np.arange(len(test)) // length
        yield Split(X[train], y[train], np.zeros(n, int), X[test], y[test], lists)


SETS = {
    "ohsumed": letor_splits("ohsumed"),
    "mq2008": letor_splits("mq2008"),
    "lightgbm": lightgbm_splits,
    "jester": jester_splits,
    "cadata": cadata_splits,
}
GRADED = ("ohsumed", "mq2008", "lightgbm")
TOO_SLOW = [("cadata", "CatBoost PairLogit")]  # a quarter of an hour for each fold


def auto(X, y, groups):
    """AutoRanker as it comes."""
    from rankwise import AutoRanker

    is_one = len(np.unique(groups)) == 1
    model = AutoRanker(random_state=0)
    model.fit(X, y, None if is_one else groups)
    return (lambda X, g: model.predict(X, None if is_one else g)), str(model.best_member_)


def rank_rls(X, y, groups):
    """RankRLSCV as it comes."""
    model = RankRLSCV().fit(X, y, None if len(np.unique(groups)) == 1 else groups)
    return (lambda X, groups: model.predict(X)), f"alpha {model.alpha_:.3g}"


def of_items(fit):
    """A peer, whose scores do not depend on the groups."""

    def fit_peer(X, y, groups):
        predict, chosen = fit(X, y, groups)
        return (lambda X, groups: predict(X)), chosen

    return fit_peer


LEARNERS = {OURS: auto, "RankRLSCV": rank_rls}
LEARNERS |= {name: of_items(fit) for name, fit in (PEERS | LIST_PEERS).items()}


def measure(fit, split):
    """Values of the metrics in each group of the test part, seconds, and what was chosen."""
    start = time.perf_counter()
    processor = time.process_time()
    predict, chosen = fit(split.X, split.y, split.groups)
    seconds = time.perf_counter() - start
    processor = time.process_time() - processor
    scores = predict(split.X_test, split.groups_test)
    given = split.y_test, np.asarray(scores, dtype=float), split.groups_test
    has_grades = split.y_test.min() >= 0 and split.y_test.max() < 31
    return {
        "ndcg@10": ndcg(*given, k=10, per_group=True).tolist() if has_grades else None,
        "error": disagreement_error(*given, per_group=True).tolist(),
        "seconds": seconds,
        "processor": processor,
        "chosen": chosen,
    }


def run(options):
    """Measure what is not kept yet; return results[set][learner] as lists over folds."""
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "quality.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name in options.only:
        for fold, split in enumerate(SETS[name](options.data)):
            for learner in options.learners:
                is_regression = learner in LIST_PEERS and name in GRADED
                if is_regression or (name, learner) in TOO_SLOW:
                    continue
                key = f"{name}/{fold}/{learner}"
                if key in kept and not options.again:
                    continue
                with threadpool_limits(THREADS):
                    kept[key] = measure(LEARNERS[learner], split)
                path.write_text(json.dumps(kept))
                print(f"{key}: {kept[key]['seconds']:.1f} s, {kept[key]['chosen']}", flush=True)
    return kept


def keys_of(kept, name, learner):
    """Keys of a learner's results on all folds of a set."""
    keys = (key for key in kept if key.split("/")[::2] == [name, learner])
    return sorted(keys, key=lambda key: int(key.split("/")[1]))


def values_of(kept, name, learner, metric):
    """Values in all test groups of all folds; None if there are none."""
    folds = keys_of(kept, name, learner)
    if not folds or kept[folds[0]][metric] is None:
        return None
    return np.concatenate([np.array(kept[key][metric], dtype=float) for key in folds])


def show(kept, name, learners):
    """A table of means and of tests against ours."""
    metrics = ("ndcg@10", "error") if name in GRADED else ("error",)
    tests = {}
    for metric in metrics:
        found = {learner: values_of(kept, name, learner, metric) for learner in learners}
        values = {learner: v for learner, v in found.items() if v is not None}
        if OURS in values and len(values) > 1:
            table = compare(values, baseline=OURS, greater_is_better=metric != "error")
            tests[metric] = {row.a: row for row in table.rows}
    rows = []
    for learner in learners:
        if values_of(kept, name, learner, "error") is None:
            continue
        row = [learner]
        for metric in metrics:
            row.append(float(np.nanmean(values_of(kept, name, learner, metric))))
            test = tests.get(metric, {}).get(learner)
            row.append(
                ""
                if test is None
                else f"{test.difference:+.4f} [{test.low:+.4f}, {test.high:+.4f}]"
            )
            row.append("" if test is None else f"{test.p_adjusted:.2g}" + " *" * test.significant)
        taken = [kept[key] for key in keys_of(kept, name, learner)]
        times = [sum(one[clock] for one in taken) for clock in ("seconds", "processor")]
        rows.append([*row, *(f"{time:.0f}" for time in times)])
    header = ["learner"]
    for metric in metrics:
        header += [metric, "minus AutoRanker\n95 % interval", "p (Holm)"]
    print_table(name, [*header, "seconds", "of the\nprocessor"], rows, digits=4)


def _listed(text):
    return text.split(",")


def main(arguments=None):
    """Run what is missing and print the tables."""
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--only", type=_listed, default=list(SETS), help="sets, by commas")
    parser.add_argument("--learners", type=_listed, default=list(LEARNERS))
    parser.add_argument("--again", action="store_true", help="measure again what is kept")
    options = parser.parse_args(arguments)
    kept = run(options)
    for name in options.only:
        show(kept, name, list(LEARNERS))
    print_notes(
        "Means over all test groups (queries, users, lists) in which a metric is defined.",
        "The interval and p are of the difference to AutoRanker in the same groups: a paired t "
        "test, Holm's correction over the learners of a column; * at 0.05.",
        "error: share of pairs in the wrong order; lower is better.",
    )


if __name__ == "__main__":
    record(main)
