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
MOST_NEW = 500
LISTS = (60, 200)


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
        kernel = "precomputed" if self.is_kernel else "rbf"
        model = LabelRankerCV(kernel=kernel) if alpha is None else LabelRanker(alpha, kernel=kernel)
        scaler = None if self.is_kernel else StandardScaler().fit(self.X[train])
        return model.fit(self._items(train, train, scaler), self.truth[train]), train, scaler

    def scores(self, learned, lists):
        """Scores of the items of each list."""
        model, train, scaler = learned
        return list(model.predict(self._items(lists, train, scaler)))

    def sets(self, learned, lists):
        """For each list which items are in its best set."""
        model, train, scaler = learned
        found = model.predict_set(self._items(lists, train, scaler), LEVEL)
        return [np.isin(model.labels_, labels) for labels in found]

    def _items(self, rows, train, scaler):
        return self.K[np.ix_(rows, train)] if self.is_kernel else scaler.transform(self.X[rows])


class Queries:
    """Documents of queries."""

    def __init__(self, name, data):
        self.items = []
        self.truth = []
        for path in find_data(data, *(f"{name}/S{k}.txt.gz" for k in range(1, 6))):
            part = read_letor(path)
            X = part.X.toarray() if hasattr(part.X, "toarray") else np.asarray(part.X)
            groups = np.asarray(part.groups)
            for group in np.unique(groups):
                self.items.append(X[groups == group])
                self.truth.append(np.asarray(part.y)[groups == group])

    def learn(self, train, alpha=None):
        """A search, or a refit with this alpha."""
        X, groups = self._stacked(train)
        y = np.concatenate([self.truth[k] for k in train])
        inner = CalibratedRanker(RankRLSCV(), max_pairs=1000) if alpha is None else RankRLS(alpha)
        return inner.fit(X, y, groups)

    def scores(self, learned, lists):
        """Scores of the items of each list."""
        X, groups = self._stacked(lists)
        return np.split(learned.predict(X), 1 + np.flatnonzero(np.diff(groups)))

    def sets(self, learned, lists):
        """For each list which items are in its best set."""
        X, groups = self._stacked(lists)
        inside = learned.best_set(X, groups, LEVEL)
        return np.split(inside, 1 + np.flatnonzero(np.diff(groups)))

    def _stacked(self, lists):
        sizes = [len(self.truth[k]) for k in lists]
        return np.vstack([self.items[k] for k in lists]), np.repeat(np.arange(len(lists)), sizes)


def gap(scores, y):
    """From the top to the highest of the best items."""
    return scores.max() - scores[y == y.max()].max()


def reach(gaps):
    """The ⌈(G + 1) level⌉-th smallest gap."""
    place = int(np.ceil((len(gaps) + 1) * LEVEL - 1e-9))
    return np.sort(gaps)[place - 1] if place <= len(gaps) else np.inf


def heads(scores, q):
    """The items that are no further below the top than q."""
    return [f >= f.max() - q for f in scores]


def draw(problem, n, rng):
    """Coverage and mean size of the four ways, of one draw."""
    useful = [k for k, y in enumerate(problem.truth) if y.min() < y.max()]
    train, new = np.split(rng.permutation(useful)[: n + MOST_NEW], [n])
    truth = problem.truth
    learned = problem.learn(train)
    alpha = getattr(learned[0] if isinstance(learned, tuple) else learned, "alpha_", None)
    scores = problem.scores(learned, new)
    own = [gap(f, truth[k]) for f, k in zip(problem.scores(learned, train), train, strict=True)]
    half = problem.learn(train[: n // 2])
    others = train[n // 2 :]
    split = [gap(f, truth[k]) for f, k in zip(problem.scores(half, others), others, strict=True)]
    beyond = [np.zeros(len(truth[k])) for k in new]  # models whose held-out gap is smaller
    for i in train:
        first, *rest = problem.scores(problem.learn(train[train != i], alpha), np.r_[i, new])
        left = gap(first, truth[i])
        for count, f in zip(beyond, rest, strict=True):
            count += f.max() - f > left + 1e-12
    ways = [
        problem.sets(learned, new),
        heads(problem.scores(half, new), reach(split)),
        [count < LEVEL * (n + 1) for count in beyond],
        heads(scores, reach(own)),
    ]
    best = [truth[k] == truth[k].max() for k in new]
    return [
        (
            np.mean([(inside & is_best).any() for inside, is_best in zip(way, best, strict=True)]),
            np.mean([inside.sum() for inside in way]),
        )
        for way in ways
    ]


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=20, help="draws")
    parser.add_argument("--sets", default=",".join([*SETS, "mq2008", "davis"]))
    parser.add_argument("--short", action="store_true", help="two draws of 60 lists")
    given = parser.parse_args(arguments)
    repeats = 2 if given.short else given.repeats
    rows = []
    for name in given.sets.split(","):
        problem = (Queries if name == "mq2008" else Labels)(name, given.data)
        length = np.mean([len(y) for y in problem.truth])
        for n in LISTS[:1] if given.short else LISTS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = [draw(problem, n, np.random.default_rng(k)) for k in range(repeats)]
            values = np.array(found)  # draws, ways, (coverage, size)
            mean = values.mean(axis=0)
            error = values.std(axis=0, ddof=1) / np.sqrt(repeats)
            cells = [f"{m:.{d}f} ± {e:.{d}f}" for k, d in ((0, 3), (1, 2))
                     for m, e in zip(mean[:, k], error[:, k], strict=True)]  # fmt: skip
            rows.append([name, n, round(float(length), 1), *cells])
    ways = ("rankwise", "split", "jackknife+", "not held out")
    header = ["set", "lists", "items\na list", *(f"coverage\n{way}" for way in ways),
              *(f"size\n{way}" for way in ways)]  # fmt: skip
    print_table(f"Best sets, 90% asked for, {repeats} draws", header, rows)
    return rows


if __name__ == "__main__":
    record(main)
