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
    loss = lambda s: np.mean(np.logaddexp(0, -s * difference / scale))  # noqa: E731
    return minimize_scalar(loss, bounds=(0, 50), method="bounded").x / scale


def strict_pairs(y, groups, rng):
    """Pairs of one group, the better item first."""
    found = []
    for g in np.unique(groups):
        rows = np.flatnonzero(groups == g)
        i, j = (rows[part] for part in np.triu_indices(len(rows), 1))
        found.append(np.stack([np.where(y[i] > y[j], i, j), np.where(y[i] > y[j], j, i)]))
    pairs = np.concatenate(found, axis=1)
    pairs = pairs[:, y[pairs[0]] != y[pairs[1]]]
    kept = rng.permutation(pairs.shape[1])[:N_PAIRS]
    return pairs[:, kept]


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
    every = read_battles(data)
    n = len(every.names)
    for train, test in KFold(n_folds, shuffle=True, random_state=0).split(every.outcome):
        rest = every.subset(train)
        decided = every.subset(test[every.outcome[test] != 0])
        won = decided.outcome > 0
        first = np.where(won, decided.left, decided.right)
        second = np.where(won, decided.right, decided.left)
        yield Problem(np.eye(n), rest.graph(), None, np.eye(n), first, second)


def tennis(data, years=range(2013, 2019)):
    """Two years of matches to learn from, the next one to test on; items are the players."""

    def read(year):
        season = read_season(data, year)
        return list(zip(season["winner"], season["loser"], strict=True))

    for year in years:
        known = np.array(read(year - 1) + read(year))
        names, ends = np.unique(known, return_inverse=True)
        number = {name: k for k, name in enumerate(names)}
        graph = PairGraph(*ends.reshape(-1, 2).T, n_items=len(names))
        test = [(number[a], number[b]) for a, b in read(year + 1) if a in number and b in number]
        first, second = np.array(test).T
        yield Problem(np.eye(len(names)), graph, None, np.eye(len(names)), first, second)


def refit_folds(problem, model):
    """Held-out differences of pairs of known order, by five refits."""
    if problem.groups is None:
        edges = problem.y
        for rest, held in KFold(5, shuffle=True, random_state=0).split(edges.winner):
            f = model().fit(problem.X, edges.with_edges(rest)).predict(problem.X)
            held = held[edges.magnitude[held] > 0]
            yield f[edges.winner[held]] - f[edges.loser[held]]
        return
    rng = np.random.default_rng(0)
    for rest, held in GroupKFold(5).split(problem.X, problem.y, problem.groups):
        f = model().fit(problem.X[rest], problem.y[rest], problem.groups[rest])
        i, j = strict_pairs(problem.y[held], problem.groups[held], rng)
        scores = f.predict(problem.X[held])
        yield scores[i] - scores[j]


def by_bradley_terry(problem):
    """Probabilities by logistic regression on pairs, with an L2 penalty chosen by held-out data."""
    if problem.groups is None:
        graph = problem.y
        nothing = np.zeros(graph.n_pairs)
        outcome = (graph.magnitude > 0).astype(float)
        names = np.arange(graph.n_items)
        f = bradley_terry(Battles(graph.winner, graph.loser, outcome, nothing, nothing, names))
        return expit(f[problem.first] - f[problem.second])
    model = RankLogisticCV([1e-4, 1e-3, 1e-2], cv=3).fit(problem.X, problem.y, problem.groups)
    return model.best_estimator_.predict_above(problem.X_test, problem.first, problem.second)


def judge(problem):
    """Probabilities of the test pairs by each method, and seconds."""
    found = {}
    seconds = {}

    def timed(name, start, probability):
        seconds[name] = time.perf_counter() - start
        found[name] = probability

    start = time.perf_counter()
    search = RankRLSCV().fit(problem.X, problem.y, problem.groups)
    seconds["RankRLSCV alone"] = time.perf_counter() - start
    start = time.perf_counter()
    RankRLS(search.alpha_).fit(problem.X, problem.y, problem.groups)
    seconds["one fit"] = time.perf_counter() - start
    pairs = problem.X_test, problem.first, problem.second
    start = time.perf_counter()
    model = CalibratedRanker(RankRLS(search.alpha_))
    model.fit(problem.X, problem.y, problem.groups)
    timed("CalibratedRanker", start, model.predict_above(*pairs))
    f = model.predict(problem.X_test)
    difference = f[problem.first] - f[problem.second]
    start = time.perf_counter()
    held = np.concatenate(list(refit_folds(problem, lambda: RankRLS(search.alpha_))))
    timed("Platt on refits", start, expit(slope_of(held) * difference))
    start = time.perf_counter()
    timed("Bradley–Terry", start, by_bradley_terry(problem))
    return found, seconds


def main(arguments=None):
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
    for name, problems in sets.items():
        if options.only and options.only != name:
            continue
        by_method = {}
        seconds = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for problem in problems():
                found, took = judge(problem)
                for method, p in found.items():
                    by_method.setdefault(method, []).append(p)
                for method, t in took.items():
                    seconds.setdefault(method, []).append(t)
        rows = []
        for method, parts in by_method.items():
            p = np.concatenate(parts)
            losses = [float(-np.log(part).mean()) for part in parts]
            bins = reliability(p)
            error = float(np.average(np.abs(bins.predicted - bins.observed), weights=bins.n_pairs))
            spread = np.sqrt(bins.predicted * (1 - bins.predicted) / bins.n_pairs)
            rows.append(
                [
                    method,
                    float(-np.log(p).mean()),
                    float(np.std(losses, ddof=1) / np.sqrt(len(losses))),
                    float(np.mean(p > 0.5)),
                    error,
                    float(np.mean(spread) * np.sqrt(2 / np.pi)),
                    float(np.median(seconds[method]) / np.median(seconds["one fit"])),
                ]
            )
        header = [
            "",
            "log loss",
            "±",
            "right",
            "calibration\nerror",
            "by chance",
            "time /\none fit",
        ]
        n_pairs = sum(len(p) for p in by_method["CalibratedRanker"])
        print_table(f"{name}: {n_pairs:,} test pairs", header, rows, digits=4)
        bins = reliability(np.concatenate(by_method["CalibratedRanker"]))
        said = " ".join(f"{value:.3f}" for value in bins.predicted)
        was = " ".join(f"{value:.3f}" for value in bins.observed)
        print(f"\nsaid {said}\nwas  {was}", flush=True)


if __name__ == "__main__":
    record(main)
