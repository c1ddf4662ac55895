"""Survival times: SurvivalGraph next to the rankers of scikit-survival.

    python -m experiments.survival.peers [--repeats 2] [--only SET] [--growth]

Four public data sets that scikit-survival contains. Categories are one-hot encoded and missing
numbers imputed by the median, columns are standardized on the training part, and every model sees
the same splits: five folds, repeated. Concordance is Harrell's C of the held-out folds, with the
standard error over the folds. The models of rankwise choose alpha by cross-validation on the
training part, except RankRLS, which has its default alpha; the peers have the default settings of
scikit-survival, and FastSurvivalSVM also chooses its alpha by three folds. FastKernelSurvivalSVM
trains on at most 200 rows, since 400 take 16 seconds. `--growth` measures seconds and memory for up
to a million rows.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_table
from rankwise import RankRLS, RankRLSCV, RankSVM, RankSVMCV, SurvivalGraph
from rankwise.metrics import concordance

MOST_KERNEL_ROWS = 200
LEAST_TIME = 0.5  # days; the peers refuse 0, which flchain has


def read_sets():
    """Features as numbers, and times with events, of each data set."""
    from sksurv import datasets

    loaders = {
        "veterans": datasets.load_veterans_lung_cancer,
        "whas500": datasets.load_whas500,
        "gbsg2": datasets.load_gbsg2,
        "flchain": datasets.load_flchain,
    }
    for name, load in loaders.items():
        frame, y = load()
        frame = frame.drop(columns=["chapter"], errors="ignore")  # cause of death, of flchain
        event_name, time_name = y.dtype.names
        y[time_name] = np.maximum(y[time_name], LEAST_TIME)
        event = y[event_name]
        times = y[time_name]
        X = pd.get_dummies(frame, drop_first=True).astype(float)
        yield name, X.fillna(X.median()).to_numpy(), y, times.astype(float), event


class Ours:
    """A ranker of rankwise on times and events."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        """Make the graph, and train."""
        event, times = (y[field] for field in y.dtype.names)
        self.model.fit(X, SurvivalGraph(times, event))
        return self

    def survival(self, X):
        """Larger for longer survival."""
        return self.model.predict(X)


class Peer:
    """An estimator of scikit-survival, which predicts a risk."""

    def __init__(self, model, n_rows=None):
        self.model = model
        self.n_rows = n_rows

    def fit(self, X, y):
        """Train, on a sample if there are many rows."""
        rows = np.random.default_rng(0).permutation(len(X))[: self.n_rows]
        self.model.fit(X[rows], y[rows])
        return self

    def survival(self, X):
        """Larger for longer survival."""
        return -self.model.predict(X)


def learners():
    """A new learner of each kind, by its name."""
    from sksurv.ensemble import RandomSurvivalForest
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.svm import FastKernelSurvivalSVM, FastSurvivalSVM

    svm = FastSurvivalSVM(max_iter=100, random_state=0)
    grid = {"alpha": np.logspace(-6, 2, 9)}
    kernel = FastKernelSurvivalSVM(kernel="rbf", max_iter=50, random_state=0)
    forest = RandomSurvivalForest(100, min_samples_leaf=15, random_state=0)
    return {
        "RankRLS": Ours(RankRLS()),
        "RankRLSCV": Ours(RankRLSCV()),
        "RankRLSCV, rbf": Ours(RankRLSCV(kernel="rbf", n_basis=100, random_state=0)),
        "RankSVMCV": Ours(RankSVMCV()),
        "CoxPHSurvivalAnalysis": Peer(CoxPHSurvivalAnalysis(alpha=1e-4)),
        "FastSurvivalSVM": Peer(svm),
        "FastSurvivalSVM, searched": Peer(GridSearchCV(svm, grid, cv=3)),
        "FastKernelSurvivalSVM": Peer(kernel, MOST_KERNEL_ROWS),
        "RandomSurvivalForest": Peer(forest),
    }


def compare(name, X, y, times, event, n_repeats):
    """Concordance and seconds of all learners on one data set."""
    values = {}
    seconds = {}
    for repeat in range(n_repeats):
        for train, test in KFold(5, shuffle=True, random_state=repeat).split(X):
            scaler = StandardScaler().fit(X[train])
            X_train = scaler.transform(X[train])
            X_test = scaler.transform(X[test])
            for learner, model in learners().items():
                start = time.process_time()
                model.fit(X_train, y[train])
                seconds.setdefault(learner, []).append(time.process_time() - start)
                target = np.column_stack([times[test], event[test]])
                value = concordance(target, model.survival(X_test))
                values.setdefault(learner, []).append(value)
    rows = []
    for learner, concordances in values.items():
        difference = np.array(values["RankRLSCV"]) - concordances
        rows.append(
            [
                learner,
                np.mean(concordances),
                np.std(concordances, ddof=1) / np.sqrt(len(concordances)),
                difference.mean(),
                np.std(difference, ddof=1) / np.sqrt(len(concordances)),
                np.mean(seconds[learner]),
            ]
        )
    header = ["", "C", "s.e.", "RankRLSCV − this", "s.e.", "processor s"]
    title = f"{name}: {len(X):,} items, {int(event.sum()):,} events, {X.shape[1]} columns"
    print_table(title, header, rows, digits=4)


def growth():
    """Seconds and memory by the number of rows."""
    from sksurv.svm import FastSurvivalSVM

    rows = []
    for n_rows in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows, 20))
        survival = np.exp(0.3 * X[:, 0] + rng.normal(size=n_rows))
        censoring = np.exp(rng.normal(size=n_rows))
        times = np.minimum(survival, censoring)
        event = survival <= censoring
        y = np.empty(n_rows, dtype=[("event", bool), ("time", float)])
        y["event"] = event
        y["time"] = times
        models = {"RankRLS": Ours(RankRLS(1.0)), "RankSVM": Ours(RankSVM(1e-3))}
        basis = RankRLS(1e-3, kernel="rbf", gamma=0.02, n_basis=500, random_state=0)
        models["RankRLS, rbf, 500 basis points"] = Ours(basis)
        if n_rows <= 10_000:
            models["FastSurvivalSVM"] = Peer(FastSurvivalSVM(max_iter=100, random_state=0))
        if n_rows > 100_000:
            del models["RankRLS, rbf, 500 basis points"]
        for name, model in models.items():
            start = time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - start
            tracemalloc.start()
            model.fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            rows.append([f"{n_rows:,}", name, seconds, peak / 1e6])
    print_table("Growth, 20 columns", ["rows", "", "processor s", "MB beyond X"], rows, digits=2)


def main(argv=None):
    """Compare the rankers on the data sets, or measure how cost grows with the rows."""
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", help="one of the data sets, such as veterans")
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if options.growth:
        growth()
        return
    for name, X, y, times, event in read_sets():
        if options.only not in (None, name):
            continue
        n_repeats = 1 if len(X) > 2000 else options.repeats
        compare(name, X, y, times, event, n_repeats)


if __name__ == "__main__":
    record(main)
