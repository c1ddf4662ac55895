"""Clicks simulated on MQ2008: how much of what position bias takes away does a learner get back?

A ranker of a few judged queries, with noise, shows ten documents of each training query in some
sessions. Clicks come from two models of users, each with three strengths of bias:

* examination: position k is looked at with the probability k^(−η), η = 0.5, 1, 2;
* cascade: from the top down; a user goes on after a click (after none) with the probability 0.7,
  0.4, 0.1 (0.95, 0.85, 0.7).

A document that is looked at is clicked with the probability 0.1, 0.4 or 1 for the labels 0, 1, 2.
Sessions without a click are left out. Parameters are fixed beforehand and the same for all runs.
NDCG@10 is of the true labels of the test part. Learners of one row have the same model; "naive"
takes clicks for labels, "oracle" has the true labels of the same rows. Inverse propensities are the
true ones of the simulation, which nobody has.

    python -m experiments.clicks.mq2008 --data DIR
"""

import warnings
from importlib.util import find_spec

import numpy as np
from scipy.stats import wilcoxon
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from experiments.shared.command_line import make_parser, record
from experiments.shared.letor import read_folds
from experiments.shared.tables import print_notes, print_table
from rankwise import RankLogistic, RankLogisticCV, RankRLS, RankRLSCV
from rankwise.metrics import ndcg

DEPTH = 10
SEEN = {0: 0.1, 1: 0.4, 2: 1.0}
EXAMINATION = {"weak": 0.5, "medium": 1.0, "strong": 2.0}
CASCADE = {"weak": (0.7, 0.95), "medium": (0.4, 0.85), "strong": (0.1, 0.7)}
TREES = 50
SHARED = {"learning_rate": 0.1, "num_leaves": 8}
METHODS = ("naive", "propensities", "positions", "oracle")


def shown_lists(data, n_sessions, rng):
    """Rows of the documents, session after session from the top down, and their positions."""
    queries = np.unique(data.groups)
    judged = np.isin(data.groups, rng.choice(queries, max(2, len(queries) // 50), replace=False))
    model = RankRLS(alpha=0.1).fit(data.X[judged], data.y[judged], data.groups[judged])
    scores = model.predict(data.X)
    rows = []
    for query in queries:
        documents = np.flatnonzero(data.groups == query)
        for _ in range(n_sessions):
            noisy = scores[documents] + scores.std() * rng.gumbel(size=len(documents))
            rows.append(documents[np.argsort(-noisy)[:DEPTH]])
    return rows


def clicks_by_examination(labels, eta, rng):
    """Which documents of a session are looked at, and which are clicked."""
    looked = rng.random(len(labels)) < np.arange(1, len(labels) + 1) ** -eta
    return looked, looked & (rng.random(len(labels)) < [SEEN[label] for label in labels])


def clicks_by_cascade(labels, going_on, rng):
    """The same for a user who goes from the top down and stops somewhere."""
    looked, clicked = np.zeros((2, len(labels)), dtype=bool)
    for k, label in enumerate(labels):
        looked[k] = True
        clicked[k] = rng.random() < SEEN[label]
        if rng.random() >= going_on[0 if clicked[k] else 1]:
            break
    return looked, clicked


class Log:
    """Sessions with at least one click: rows, positions, clicks and propensities of positions."""

    def __init__(self, data, model, strength, n_sessions, rng):
        draw_clicks = clicks_by_cascade
        if model == "examination":
            draw_clicks = clicks_by_examination
        lists = shown_lists(data, n_sessions, rng)
        labels = data.y.astype(int)
        drawn = [draw_clicks(labels[rows], strength, rng) for rows in lists]
        depth = np.concatenate([np.arange(len(rows)) for rows in lists])
        is_examined = np.concatenate([is_examined for is_examined, _ in drawn])
        propensity = np.bincount(depth, is_examined) / np.bincount(depth)

        clicked_lists = []
        clicks_of_lists = []
        for rows, (_, clicks) in zip(lists, drawn, strict=True):
            if clicks.any():
                clicked_lists.append(rows)
                clicks_of_lists.append(clicks)
        lengths = [len(rows) for rows in clicked_lists]
        self.rows = np.concatenate(clicked_lists)
        self.clicks = np.concatenate(clicks_of_lists).astype(float)
        self.position = np.concatenate([np.arange(length) for length in lengths])
        self.session = np.repeat(np.arange(len(lengths)), lengths)
        self.X = data.X[self.rows]
        self.labels = data.y[self.rows]
        self.queries = data.groups[self.rows]
        self.weight = np.where(self.clicks > 0, 1 / propensity[self.position], 1.0)
        self.names = np.array([f"{k + 1:02d}" for k in self.position])

    def fit(self, model, y, method):
        """A ranker of ours, trained naively, with weights, or with the positions as nuisance."""
        if hasattr(model, "cv"):
            model.cv = list(GroupKFold(5).split(self.X, groups=self.queries))
        options = {}
        if method == "propensities":
            options["sample_weight"] = self.weight
        elif method == "positions":
            options["nuisance"] = self.names
        return model.fit(self.X, y, self.session, **options)

    def lightgbm(self, y, method):
        """LambdaMART of LightGBM; `positions` are its own correction."""
        import lightgbm

        correction = {}
        if method == "propensities":
            correction["weight"] = self.weight
        elif method == "positions":
            correction["position"] = self.position
        data = lightgbm.Dataset(self.X, y, group=np.bincount(self.session), **correction)
        options = {"objective": "lambdarank", "num_threads": 1, "verbosity": -1, **SHARED}
        return lightgbm.train(options, data, TREES)

    def xgboost(self, y, method):
        """LambdaMART of XGBoost; its correction reads positions from the order of the rows."""
        from xgboost import XGBRanker

        model = XGBRanker(
            n_estimators=TREES,
            max_leaves=SHARED["num_leaves"],
            learning_rate=SHARED["learning_rate"],
            grow_policy="lossguide",
            tree_method="hist",
            n_jobs=1,
            random_state=0,
            lambdarank_unbiased=method == "positions",
        )
        return model.fit(self.X, y, qid=self.session)


def learners():
    """By name a function of a log, targets and method, and the methods that it has."""
    methods_of_learner = {
        "RankRLSCV": (lambda log, *how: log.fit(RankRLSCV(), *how), METHODS),
        "RankLogisticCV": (lambda log, *how: log.fit(RankLogisticCV(), *how), METHODS),
        "RankLogistic": (lambda log, *how: log.fit(RankLogistic(), *how), METHODS),
    }
    if find_spec("lightgbm"):
        methods_of_learner["LightGBM"] = (Log.lightgbm, METHODS)
    if find_spec("xgboost"):
        methods_of_learner["XGBoost"] = (Log.xgboost, ("naive", "positions", "oracle"))
    return methods_of_learner


def one_run(fold, kind, strength, n_sessions, seed):
    """NDCG@10 of each learner and method."""
    scaler = StandardScaler().fit(fold.train.X)
    train = fold.train._replace(X=scaler.transform(fold.train.X))
    X = scaler.transform(fold.test.X)
    log = Log(train, kind, strength, n_sessions, np.random.default_rng(seed))
    values = {}
    for name, (learn, methods) in learners().items():
        for method in methods:
            targets = log.clicks
            if method == "oracle":
                targets = log.labels
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = learn(log, targets, method)
            scores = model.predict(X)
            values[name, method] = float(ndcg(fold.test.y, scores, fold.test.groups, k=10))
    return values


def row_of(name, runs):
    """Means with standard errors over the runs, and what the corrections gain."""
    values = {
        method: np.array([run[name, method] for run in runs if (name, method) in run])
        for method in METHODS
    }
    row = [_mean_and_error(values[method]) for method in METHODS]
    gap = values["oracle"].mean() - values["naive"].mean()
    for method in ("propensities", "positions"):
        gains = values[method]
        if len(gains):
            gains = gains - values["naive"]
        if gap > 0.002:
            row.append(_mean_and_error(gains / gap, 2))
        else:
            row.append(None)
    p_value = None
    if np.any(gains):  # of the last method, positions
        p_value = f"{wilcoxon(gains).pvalue:.1g}"
    return [*row, p_value]


def _mean_and_error(values, digits=3):
    if not len(values):
        return None
    error = np.nan
    if len(values) > 1:
        error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def _mean_of(settings):
    """The runs of one fold and simulation, averaged over the settings."""
    return [
        {key: np.mean([run[key] for run in same]) for key in same[0]}
        for same in zip(*settings, strict=True)
    ]


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="simulations for each fold")
    parser.add_argument("--folds", type=int, default=5, help="folds of MQ2008")
    parser.add_argument("--sessions", type=int, default=3, help="for each training query")
    options = parser.parse_args(arguments)
    folds = read_folds(options.data, "mq2008")[: options.folds]
    settings = {
        f"{kind}, {word}": [
            one_run(fold, kind, strength, options.sessions, seed)
            for fold in folds
            for seed in range(options.seeds)
        ]
        for kind, strengths in (("examination", EXAMINATION), ("cascade", CASCADE))
        for word, strength in strengths.items()
    }
    header = ["learner", "naive", "inverse\npropensities", "position\ncorrected", "oracle",
              "share closed\npropensities", "share closed\ncorrected",
              "p, corrected\nand naive"]  # fmt: skip
    n_runs = options.folds * options.seeds
    print(f"NDCG@10 on true labels, mean ± standard error of {n_runs} runs")
    for title, runs in {"Mean of the six": _mean_of(settings.values()), **settings}.items():
        print_table(title, header, [[name, *row_of(name, runs)] for name in learners()])
    print_notes(
        f"{options.folds} folds × {options.seeds} simulations, {options.sessions} sessions a "
        "query.",
        "Corrected: nuisance columns (ours), position factors (LightGBM), lambdarank_unbiased "
        "(XGBoost).",
        "Share closed: (way − naive)/(oracle − naive) of the same learner; its error is that of "
        "the gain. A dash: the gap is below 0.002, or the library has no such way.",
        "p: Wilcoxon signed-rank test over the runs. Runs of a fold share their test queries and "
        "folds share training queries, so p is too small rather than too large.",
        f"Trees: {TREES} of {SHARED['num_leaves']} leaves, learning rate "
        f"{SHARED['learning_rate']}. The searches hold out queries, with their clicks; "
        "RankLogistic has alpha = 0.001.",
    )


if __name__ == "__main__":
    record(main)
