"""Are the probabilities of `predict_above` right? Log loss and reliability on four real data sets.

    python -m experiments.uncertainty.probabilities [--data DIR] [--folds 5]

Test pairs are of groups, battles or years that no model has seen; ties are left out. Compared are

* CalibratedRanker: slope and weight of the standard error from exact held-out pairs;
* Platt's scaling on refits: one slope from five folds of groups or comparisons, refitted;
* Bradley–Terry: RankLogisticCV on the same features (alpha by the order of held-out groups), or
  logistic regression on the items where there are none (penalty by held-out log loss).

The calibration error is the mean distance of the share of right answers from the mean probability
over ten bins of equal size; its own chance level is in the last column. Seconds are of one run
beside other work: compare them with those of one fit.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.model_selection import GroupKFold, KFold

from experiments.boards.battles import Battles, bradley_terry, read_battles
from experiments.boards.tennis import read_season
from experiments.shared.command_line import make_parser, record
from experiments.shared.letor import read_folds
from experiments.shared.tables import print_table
from rankwise import CalibratedRanker, PairGraph, RankLogisticCV, RankRLS, RankRLSCV
from rankwise.uncertainty.probability_map import reliability

N_PAIRS = 20_000


def slope_of(difference):
    """The slope of least log loss on pairs whose first item is the better one."""
    scale = np.sqrt(np.mean(difference**2))

    def log_loss(slope):
        return np.mean(np.logaddexp(0, -slope * difference / scale))

    return minimize_scalar(log_loss, bounds=(0, 50), method="bounded").x / scale


def strict_pairs(y, groups, rng):
    """Pairs of one group, the better item first: shape (2, n_pairs), at most `N_PAIRS`."""
    pairs_of_groups = []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        first, second = np.triu_indices(len(rows), 1)
        i = rows[first]
        j = rows[second]
        better = np.where(y[i] > y[j], i, j)
        worse = np.where(y[i] > y[j], j, i)
        pairs_of_groups.append(np.stack([better, worse]))
    pairs = np.concatenate(pairs_of_groups, axis=1)
    is_strict = y[pairs[0]] != y[pairs[1]]
    pairs = pairs[:, is_strict]
    drawn = rng.permutation(pairs.shape[1])[:N_PAIRS]
    return pairs[:, drawn]


class Problem:
    """Items, what is known about them, and pairs to test on."""

    def __init__(self, X, y, groups, X_test, first, second):
        self.X = X
        self.y = y
        self.groups = groups
        self.X_test = X_test
        self.first = first
        self.second = second


def letor(data, name):
    """The five folds: training and validation part together, pairs of the test part."""
    for k, fold in enumerate(read_folds(data, name)):
        X = np.concatenate([fold.train.X, fold.validation.X])
        y = np.concatenate([fold.train.y, fold.validation.y])
        groups = np.concatenate([fold.train.groups, fold.validation.groups])
        first, second = strict_pairs(fold.test.y, fold.test.groups, np.random.default_rng(k))
        yield Problem(X, y, groups, fold.test.X, first, second)


def battles(data, n_folds):
    """Folds of the battles; items are the models, without features."""
    all_battles = read_battles(data)
    features = np.eye(len(all_battles.names))
    folds = KFold(n_folds, shuffle=True, random_state=0).split(all_battles.outcome)
    for train, test in folds:
        graph = all_battles.subset(train).graph()
        decided = all_battles.subset(test[all_battles.outcome[test] != 0])
        left_wins = decided.outcome > 0
        winner = np.where(left_wins, decided.left, decided.right)
        loser = np.where(left_wins, decided.right, decided.left)
        yield Problem(features, graph, None, features, winner, loser)


def tennis(data, years=range(2013, 2019)):
    """Two years of matches to learn from, the next one to test on; items are the players."""

    def read(year):
        """Names of winner and loser of each match."""
        season = read_season(data, year)
        return list(zip(season["winner"], season["loser"], strict=True))

    for year in years:
        matches = np.array(read(year - 1) + read(year))
        names, codes = np.unique(matches, return_inverse=True)
        winner, loser = codes.reshape(-1, 2).T
        graph = PairGraph(winner, loser, n_items=len(names))
        number_of = {name: number for number, name in enumerate(names)}
        test_pairs = [
            (number_of[a], number_of[b])
            for a, b in read(year + 1)
            if a in number_of and b in number_of
        ]
        test_winner, test_loser = np.array(test_pairs).T
        features = np.eye(len(names))
        yield Problem(features, graph, None, features, test_winner, test_loser)


def refit_folds(problem, make_model):
    """Held-out differences of pairs of known order, by five refits."""
    if problem.groups is None:
        yield from refit_comparison_folds(problem, make_model)
        return
    rng = np.random.default_rng(0)
    for train, test in GroupKFold(5).split(problem.X, problem.y, problem.groups):
        model = make_model().fit(problem.X[train], problem.y[train], problem.groups[train])
        better, worse = strict_pairs(problem.y[test], problem.groups[test], rng)
        scores = model.predict(problem.X[test])
        yield scores[better] - scores[worse]


def refit_comparison_folds(problem, make_model):
    """The same for comparisons of items without groups."""
    graph = problem.y
    for train, test in KFold(5, shuffle=True, random_state=0).split(graph.winner):
        scores = make_model().fit(problem.X, graph.with_edges(train)).predict(problem.X)
        strict = test[graph.magnitude[test] > 0]
        yield scores[graph.winner[strict]] - scores[graph.loser[strict]]


def by_bradley_terry(problem):
    """Probabilities by logistic regression on pairs, with an L2 penalty chosen by held-out data."""
    if problem.groups is None:
        graph = problem.y
        unused = np.zeros(graph.n_pairs)
        battles_of_graph = Battles(
            left=graph.winner,
            right=graph.loser,
            outcome=(graph.magnitude > 0).astype(float),
            judge=unused,
            prompt=unused,
            names=np.arange(graph.n_items),
        )
        ratings = bradley_terry(battles_of_graph)
        return expit(ratings[problem.first] - ratings[problem.second])
    model = RankLogisticCV([1e-4, 1e-3, 1e-2], cv=3).fit(problem.X, problem.y, problem.groups)
    return model.best_estimator_.predict_above(problem.X_test, problem.first, problem.second)


def judge(problem):
    """Probabilities of the test pairs by each method, and seconds."""
    probabilities = {}
    seconds = {}

    start = time.perf_counter()
    search = RankRLSCV().fit(problem.X, problem.y, problem.groups)
    seconds["RankRLSCV alone"] = time.perf_counter() - start

    start = time.perf_counter()
    RankRLS(search.alpha_).fit(problem.X, problem.y, problem.groups)
    seconds["one fit"] = time.perf_counter() - start

    start = time.perf_counter()
    model = CalibratedRanker(RankRLS(search.alpha_))
    model.fit(problem.X, problem.y, problem.groups)
    probabilities["CalibratedRanker"] = model.predict_above(
        problem.X_test, problem.first, problem.second
    )
    seconds["CalibratedRanker"] = time.perf_counter() - start

    scores = model.predict(problem.X_test)
    difference = scores[problem.first] - scores[problem.second]
    start = time.perf_counter()
    held_out = np.concatenate(list(refit_folds(problem, lambda: RankRLS(search.alpha_))))
    probabilities["Platt on refits"] = expit(slope_of(held_out) * difference)
    seconds["Platt on refits"] = time.perf_counter() - start

    start = time.perf_counter()
    probabilities["Bradley–Terry"] = by_bradley_terry(problem)
    seconds["Bradley–Terry"] = time.perf_counter() - start
    return probabilities, seconds


def judge_all(problems):
    """For each method a list over the problems: probabilities, and seconds."""
    probabilities_of = {}
    seconds_of = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for problem in problems:
            probabilities, seconds = judge(problem)
            for method, values in probabilities.items():
                probabilities_of.setdefault(method, []).append(values)
            for method, value in seconds.items():
                seconds_of.setdefault(method, []).append(value)
    return probabilities_of, seconds_of


def row_of(method, probabilities_of_problems, relative_time):
    """A row of the table; the standard error of the log loss is over the problems."""
    losses = [float(-np.log(values).mean()) for values in probabilities_of_problems]
    probabilities = np.concatenate(probabilities_of_problems)
    bins = reliability(probabilities)
    distances = np.abs(bins.predicted - bins.observed)
    calibration_error = np.average(distances, weights=bins.n_pairs)
    # of a share of right answers, if the probabilities are right; the mean distance is √(2/π) of it
    standard_deviations = np.sqrt(bins.predicted * (1 - bins.predicted) / bins.n_pairs)
    error_by_chance = np.mean(standard_deviations) * np.sqrt(2 / np.pi)
    return [
        method,
        float(-np.log(probabilities).mean()),
        float(np.std(losses, ddof=1) / np.sqrt(len(losses))),
        float(np.mean(probabilities > 0.5)),
        float(calibration_error),
        float(error_by_chance),
        float(relative_time),
    ]


def main(arguments=None):
    """Print a table for each data set, and the bins of CalibratedRanker."""
    parser = make_parser(__doc__)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", help="one data set")
    options = parser.parse_args(arguments)
    sets = {
        "OHSUMED": lambda: letor(options.data, "ohsumed"),
        "MQ2008": lambda: letor(options.data, "mq2008"),
        "LLM battles": lambda: battles(options.data, options.folds),
        "tennis": lambda: tennis(options.data),
    }
    header = ["", "log loss", "±", "right", "calibration\nerror", "by chance", "time /\none fit"]
    for name, make_problems in sets.items():
        if options.only and options.only != name:
            continue
        probabilities, seconds = judge_all(make_problems())
        rows = []
        for method, values in probabilities.items():
            relative_time = np.median(seconds[method]) / np.median(seconds["one fit"])
            rows.append(row_of(method, values, relative_time))
        calibrated = np.concatenate(probabilities["CalibratedRanker"])
        print_table(f"{name}: {len(calibrated):,} test pairs", header, rows, digits=4)
        bins = reliability(calibrated)
        predicted = " ".join(f"{value:.3f}" for value in bins.predicted)
        observed = " ".join(f"{value:.3f}" for value in bins.observed)
        print(f"\nsaid {predicted}\nwas  {observed}", flush=True)


if __name__ == "__main__":
    record(main)
