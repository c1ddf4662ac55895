"""Best sets: how often they hold the best item, and how large they are, on ten data sets.

    python -m experiments.sets.coverage --data DIR [--repeats 20] [--sets vowel,mq2008] [--short]

Asked for is a level of 90%, from 60 and from 200 lists (instances, queries, targets) drawn at
random; judged by at most 500 of the others, 20 times. Four ways, all with the same learner:

* rankwise: `LabelRankerCV.predict_set`, `CalibratedRanker.best_set`; exact held-out gaps of all
  lists, one model
* split conformal: the model learns from half of the lists, the gaps are those of the other half
* jackknife+: the models without each list, refitted one by one, all of them asked about every
  new list (Barber et al., Annals of Statistics 2021; its worst case is a level of 80%)
* gaps of the training itself, not held out: what must not be done

Eight sets of label ranking (Gaussian kernel of scikit-learn's default width, standardized on the
lists drawn), MQ2008 (linear, documents of a query) and Davis (drugs to be tested for a new target,
by the published similarity of targets). Alpha is chosen by leave-one-out inside each draw. Lists in
which all or no items are best are left out, also of the judging. ± is the standard error over the
draws.
"""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from experiments.score_tables.drug_target import read_set
from experiments.score_tables.label_ranking import read_ranks
from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_table
from rankwise import CalibratedRanker, LabelRanker, LabelRankerCV, RankRLS, RankRLSCV
from rankwise.datasets import read_letor

SETS = ("authorship", "cpu", "housing", "pendigits", "segment", "stock", "vehicle", "vowel")
LEVEL = 0.9
METHODS = ("rankwise", "split", "jackknife+", "not held out")
MOST_NEW = 500
LISTS = (60, 200)


class FittedLabels(NamedTuple):
    """A label ranker, and what its features need: the rows it was trained on, or their scaling."""

    model: LabelRanker | LabelRankerCV
    train: np.ndarray
    scaler: StandardScaler | None

    @property
    def alpha_(self):
        """The alpha that a search chose."""
        return self.model.alpha_


class Labels:
    """The same labels for each instance."""

    def __init__(self, name, data):
        if name == "davis":
            _, self.K, Y = read_set(data, "davis")
            self.truth = Y.T
        else:
            (path,) = find_data(data, f"label_ranking/{name}.csv.gz")
            self.X, ranks = read_ranks(path)
            self.truth = -ranks
        self.is_kernel = name == "davis"

    def learn(self, train, alpha=None):
        """A search, or a refit with this alpha."""
        kernel = "rbf"
        scaler = None
        if self.is_kernel:
            kernel = "precomputed"
        else:
            scaler = StandardScaler().fit(self.X[train])
        if alpha is None:
            model = LabelRankerCV(kernel=kernel)
        else:
            model = LabelRanker(alpha, kernel=kernel)
        model.fit(self._items(train, train, scaler), self.truth[train])
        return FittedLabels(model, train, scaler)

    def scores(self, fitted, lists):
        """Scores of the items of each list."""
        items = self._items(lists, fitted.train, fitted.scaler)
        return list(fitted.model.predict(items))

    def sets(self, fitted, lists):
        """For each list which items are in its best set."""
        items = self._items(lists, fitted.train, fitted.scaler)
        label_sets = fitted.model.predict_set(items, LEVEL)
        return [np.isin(fitted.model.labels_, labels) for labels in label_sets]

    def _items(self, rows, train, scaler):
        """Scaled features, or similarities to the training rows."""
        if self.is_kernel:
            return self.K[np.ix_(rows, train)]
        return scaler.transform(self.X[rows])


class Queries:
    """Documents of queries."""

    def __init__(self, name, data):
        self.items = []
        self.truth = []
        for path in find_data(data, *(f"{name}/S{k}.txt.gz" for k in range(1, 6))):
            fold = read_letor(path, sparse=False)
            groups = np.asarray(fold.groups)
            for group in np.unique(groups):
                self.items.append(fold.X[groups == group])
                self.truth.append(np.asarray(fold.y)[groups == group])

    def learn(self, train, alpha=None):
        """A search, or a refit with this alpha."""
        X, groups = self._stacked(train)
        y = np.concatenate([self.truth[k] for k in train])
        if alpha is None:
            model = CalibratedRanker(RankRLSCV(), max_pairs=1000)
        else:
            model = RankRLS(alpha)
        return model.fit(X, y, groups)

    def scores(self, fitted, lists):
        """Scores of the items of each list."""
        X, groups = self._stacked(lists)
        return np.split(fitted.predict(X), 1 + np.flatnonzero(np.diff(groups)))

    def sets(self, fitted, lists):
        """For each list which items are in its best set."""
        X, groups = self._stacked(lists)
        is_in_set = fitted.best_set(X, groups, LEVEL)
        return np.split(is_in_set, 1 + np.flatnonzero(np.diff(groups)))

    def _stacked(self, lists):
        """Items of the lists in one array, and the number of the list of each."""
        sizes = [len(self.truth[k]) for k in lists]
        X = np.vstack([self.items[k] for k in lists])
        return X, np.repeat(np.arange(len(lists)), sizes)


def gap(scores, y):
    """From the top to the highest of the best items."""
    return scores.max() - scores[y == y.max()].max()


def gaps_of(problem, fitted, lists):
    """The gap of each list by the scores of a model."""
    scores_of_lists = problem.scores(fitted, lists)
    return [gap(scores, problem.truth[k]) for scores, k in zip(scores_of_lists, lists, strict=True)]


def reach(gaps):
    """The ⌈(G + 1) level⌉-th smallest gap."""
    rank = int(np.ceil((len(gaps) + 1) * LEVEL - 1e-9))
    if rank > len(gaps):
        return np.inf
    return np.sort(gaps)[rank - 1]


def sets_within(scores_of_lists, largest_gap):
    """For each list the items that are no further below the top than the largest gap."""
    return [scores >= scores.max() - largest_gap for scores in scores_of_lists]


def jackknife_plus_sets(problem, train, new, alpha):
    """Sets by the models without each training list, refitted one by one."""
    # for each item of a new list the number of models whose held-out gap is smaller than its own
    n_smaller_gaps = [np.zeros(len(problem.truth[k])) for k in new]
    for held_out in train:
        model = problem.learn(train[train != held_out], alpha)
        held_out_scores, *scores_of_new = problem.scores(model, np.r_[held_out, new])
        held_out_gap = gap(held_out_scores, problem.truth[held_out])
        for count, scores in zip(n_smaller_gaps, scores_of_new, strict=True):
            count += scores.max() - scores > held_out_gap + 1e-12
    return [count < LEVEL * (len(train) + 1) for count in n_smaller_gaps]


def draw(problem, n, rng):
    """Coverage and mean size of the sets of the four methods, of one draw."""
    has_order = [k for k, y in enumerate(problem.truth) if y.min() < y.max()]
    train, new = np.split(rng.permutation(has_order)[: n + MOST_NEW], [n])
    fitted = problem.learn(train)
    alpha = getattr(fitted, "alpha_", None)  # of label rankers; the others choose it again
    half = problem.learn(train[: n // 2])
    split_gaps = gaps_of(problem, half, train[n // 2 :])
    training_gaps = gaps_of(problem, fitted, train)
    sets_of_methods = {
        "rankwise": problem.sets(fitted, new),
        "split": sets_within(problem.scores(half, new), reach(split_gaps)),
        "jackknife+": jackknife_plus_sets(problem, train, new, alpha),
        "not held out": sets_within(problem.scores(fitted, new), reach(training_gaps)),
    }
    is_best = [problem.truth[k] == problem.truth[k].max() for k in new]
    return [coverage_and_size(sets_of_methods[name], is_best) for name in METHODS]


def coverage_and_size(sets, is_best):
    """Share of the lists whose set holds a best item, and the mean size of the sets."""
    holds_best = [(in_set & best).any() for in_set, best in zip(sets, is_best, strict=True)]
    sizes = [in_set.sum() for in_set in sets]
    return np.mean(holds_best), np.mean(sizes)


def row_of(name, problem, n, n_draws):
    """A row of the table: coverage of each method, then size of each method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = np.array([draw(problem, n, np.random.default_rng(k)) for k in range(n_draws)])
    means = values.mean(axis=0)  # (n_methods, 2): coverage and size
    errors = values.std(axis=0, ddof=1) / np.sqrt(n_draws)
    coverages = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means[:, 0], errors[:, 0], strict=True)]
    sizes = [f"{m:.2f} ± {e:.2f}" for m, e in zip(means[:, 1], errors[:, 1], strict=True)]
    mean_length = np.mean([len(y) for y in problem.truth])
    return [name, n, round(float(mean_length), 1), *coverages, *sizes]


def main(arguments=None):
    """Print one table."""
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=20, help="draws")
    parser.add_argument("--sets", default=",".join([*SETS, "mq2008", "davis"]))
    parser.add_argument("--short", action="store_true", help="two draws of 60 lists")
    options = parser.parse_args(arguments)
    n_draws = options.repeats
    n_lists = LISTS
    if options.short:
        n_draws = 2
        n_lists = LISTS[:1]
    rows = []
    for name in options.sets.split(","):
        if name == "mq2008":
            problem = Queries(name, options.data)
        else:
            problem = Labels(name, options.data)
        for n in n_lists:
            rows.append(row_of(name, problem, n, n_draws))
    header = ["set", "lists", "items\na list", *(f"coverage\n{name}" for name in METHODS),
              *(f"size\n{name}" for name in METHODS)]  # fmt: skip
    print_table(f"Best sets, 90% asked for, {n_draws} draws", header, rows)
    return rows


if __name__ == "__main__":
    record(main)
