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

import gzip
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
        for train, validation, test in read_folds(data, name):
            yield Split(
                X=np.concatenate([train.X, validation.X]),
                y=np.concatenate([train.y, validation.y]),
                groups=np.concatenate([train.groups, validation.groups]),
                X_test=test.X,
                y_test=test.y,
                groups_test=test.groups,
            )

    return splits


def lightgbm_splits(data):
    """LightGBM's own example, with its own split."""
    train = read_lightgbm(data, "train")
    test = read_lightgbm(data, "test")
    yield Split(*train, *test)


def read_lightgbm(data, name):
    """Features, grades and groups of the "train" or the "test" file of LightGBM's example."""
    names = [f"rank.{name}.gz", f"rank.{name}.query.gz"]
    rows_path, sizes_path = find_data(data, *(f"lightgbm_rank/{name}" for name in names))
    rows = read_letor(rows_path, n_features=300, sparse=False)
    with gzip.open(sizes_path, "rt") as file:
        sizes = [int(line) for line in file]
    return rows.X, rows.y, np.repeat(np.arange(len(sizes)), sizes)


def jester_splits(data, n_users=60, n_reference=100):
    """Each user is a list of 100 jokes: half to train on, half to test on."""
    ratings = read_jester(data)
    has_all_ratings = ~np.isnan(ratings).any(axis=1)
    rng = np.random.default_rng(0)
    drawn = rng.choice(np.flatnonzero(has_all_ratings), n_users + n_reference, replace=False)
    users, reference_users = np.split(drawn, [n_users])
    X = ratings[reference_users].T
    for user in users:
        order = rng.permutation(len(X))
        train = order[:50]
        test = order[50:]
        y = ratings[user]
        one_group = np.zeros(50, int)
        yield Split(X[train], y[train], one_group, X[test], y[test], one_group)


def cadata_splits(data, n=4000, n_folds=5, length=100):
    """One list of districts by the value of their houses, tested in short lists."""
    (path,) = find_data(data, "cadata/cal_housing.data.gz")
    table = np.loadtxt(path, delimiter=",")
    X = table[:, :-1]
    y = table[:, -1]
    rng = np.random.default_rng(0)
    folds = np.array_split(rng.permutation(len(table)), n_folds)
    for k, test in enumerate(folds):
        training_folds = np.concatenate(folds[:k] + folds[k + 1 :])
        train = rng.permutation(training_folds)[:n]
        one_group = np.zeros(n, int)
        lists = np.arange(len(test)) // length
        yield Split(X[train], y[train], one_group, X[test], y[test], lists)


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

    is_one_list = len(np.unique(groups)) == 1
    model = AutoRanker(random_state=0)
    if is_one_list:
        model.fit(X, y)
    else:
        model.fit(X, y, groups)

    def predict(X, groups):
        if is_one_list:
            return model.predict(X)
        return model.predict(X, groups)

    return predict, str(model.best_member_)


def rank_rls(X, y, groups):
    """RankRLSCV as it comes."""
    model = RankRLSCV()
    if len(np.unique(groups)) == 1:
        model.fit(X, y)
    else:
        model.fit(X, y, groups)

    def predict(X, groups):
        return model.predict(X)

    return predict, f"alpha {model.alpha_:.3g}"


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
    processor_start = time.process_time()
    predict, chosen = fit(split.X, split.y, split.groups)
    seconds = time.perf_counter() - start
    processor_seconds = time.process_time() - processor_start

    scores = np.asarray(predict(split.X_test, split.groups_test), dtype=float)
    y = split.y_test
    ndcg_values = None
    has_grades = y.min() >= 0 and y.max() < 31
    if has_grades:
        ndcg_values = ndcg(y, scores, split.groups_test, k=10, per_group=True).tolist()
    return {
        "ndcg@10": ndcg_values,
        "error": disagreement_error(y, scores, split.groups_test, per_group=True).tolist(),
        "seconds": seconds,
        "processor": processor_seconds,
        "chosen": chosen,
    }


def is_left_out(name, learner):
    """Whether a learner is not measured on a set: regressions of grades, and what takes hours."""
    is_regression_of_grades = learner in LIST_PEERS and name in GRADED
    return is_regression_of_grades or (name, learner) in TOO_SLOW


def run(options):
    """Measure what has no result yet; results by the key "set/fold/learner"."""
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "quality.json"
    results = {}
    if path.exists():
        results = json.loads(path.read_text())
    for name in options.only:
        for fold, split in enumerate(SETS[name](options.data)):
            for learner in options.learners:
                key = f"{name}/{fold}/{learner}"
                has_result = key in results and not options.again
                if has_result or is_left_out(name, learner):
                    continue
                with threadpool_limits(THREADS):
                    result = measure(LEARNERS[learner], split)
                results[key] = result
                path.write_text(json.dumps(results))
                print(f"{key}: {result['seconds']:.1f} s, {result['chosen']}", flush=True)
    return results


def results_of(results, name, learner):
    """Results of a learner on all folds of a set, in the order of the folds."""
    result_of_fold = {}
    for key, result in results.items():
        set_name, fold, learner_name = key.split("/")
        if set_name == name and learner_name == learner:
            result_of_fold[int(fold)] = result
    return [result_of_fold[fold] for fold in sorted(result_of_fold)]


def values_of(results, name, learner, metric):
    """Values in all test groups of all folds; None if there are none."""
    results_of_folds = results_of(results, name, learner)
    if not results_of_folds or results_of_folds[0][metric] is None:
        return None
    return np.concatenate([np.array(result[metric], dtype=float) for result in results_of_folds])


def compare_with_ours(values, metric):
    """Tests of all learners against AutoRanker by name; none without values of AutoRanker."""
    values = {learner: v for learner, v in values.items() if v is not None}
    if OURS not in values or len(values) < 2:
        return {}
    table = compare(values, baseline=OURS, greater_is_better=metric != "error")
    return {row.a: row for row in table.rows}


def cells_of_test(test):
    """The difference to AutoRanker with its interval, and p with a star if it is significant."""
    if test is None:
        return ["", ""]
    p_value = f"{test.p_adjusted:.2g}"
    if test.significant:
        p_value += " *"
    return [f"{test.difference:+.4f} [{test.low:+.4f}, {test.high:+.4f}]", p_value]


def show(results, name, learners):
    """A table of means and of tests against ours."""
    metrics = ["error"]
    if name in GRADED:
        metrics = ["ndcg@10", "error"]
    values = {}
    tests = {}
    for metric in metrics:
        values[metric] = {
            learner: values_of(results, name, learner, metric) for learner in learners
        }
        tests[metric] = compare_with_ours(values[metric], metric)

    rows = []
    for learner in learners:
        if values["error"][learner] is None:
            continue
        row = [learner]
        for metric in metrics:
            row.append(float(np.nanmean(values[metric][learner])))
            row += cells_of_test(tests[metric].get(learner))
        results_of_folds = results_of(results, name, learner)
        for clock in ("seconds", "processor"):
            total = sum(result[clock] for result in results_of_folds)
            row.append(f"{total:.0f}")
        rows.append(row)
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
    results = run(options)
    for name in options.only:
        show(results, name, list(LEARNERS))
    print_notes(
        "Means over all test groups (queries, users, lists) in which a metric is defined.",
        "The interval and p are of the difference to AutoRanker in the same groups: a paired t "
        "test, Holm's correction over the learners of a column; * at 0.05.",
        "error: share of pairs in the wrong order; lower is better.",
    )


if __name__ == "__main__":
    record(main)
