"""What AutoRanker is compared with: boosted trees of three libraries, and ridge regression.

Everybody gets the same training data. The number of trees of a boosted model is chosen on three
inner folds of the groups of those data (early stopping on each, the mean number of trees), and the
model is trained again on all of them. All other settings are the libraries' own defaults.
"""

import os
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["PEERS", "inner_folds"]

N_TREES, PATIENCE, N_INNER = 1000, 50, 3
MAX_PAIRS = 200_000  # of CatBoost's PairLogit in a list of thousands of items
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
N_GRADES = 31  # of real scores where a library takes whole ones only


def inner_folds(y, groups):
    """Train and validation rows: folds of groups, or of the items of one list."""
    if len(np.unique(groups)) < N_INNER:
        return list(KFold(N_INNER, shuffle=True, random_state=0).split(y))
    return list(GroupKFold(N_INNER).split(y, y, groups))


def grades(y):
    """Whole numbers from 0 on in the order of y; real scores are cut at their quantiles."""
    levels = np.unique(y)
    if len(levels) <= N_GRADES:
        return np.searchsorted(levels, y)
    edges = np.quantile(y, np.linspace(0, 1, N_GRADES + 1)[1:-1])
    return np.searchsorted(edges, y, side="right")


def by_group(X, y, groups):
    """Rows of a group next to each other, and the sizes of the groups."""
    order = np.argsort(groups, kind="stable")
    return X[order], y[order], groups[order], np.unique(groups, return_counts=True)[1]


def choose_and_fit(train, X, y, groups):
    """`train(data, validation, n_trees)` gives a model and its best number of trees."""
    found = []
    for inside, outside in inner_folds(y, groups):
        parts = [by_group(X[rows], y[rows], groups[rows]) for rows in (inside, outside)]
        found.append(train(*parts, N_TREES)[1])
    n_trees = max(1, round(float(np.mean(found))))
    return train(by_group(X, y, groups), None, n_trees)[0], f"{n_trees} trees"


def lightgbm(objective):
    """LightGBM's ranker, as a function of the training data."""

    def fit(X, y, groups):
        import lightgbm as lgb

        def train(data, validation, n_trees):
            options = {
                "objective": objective,
                "label_gain": [2.0**g - 1 for g in range(N_GRADES + 1)],
                "eval_at": [10],
                "seed": 0,
                "num_threads": THREADS,
                "verbosity": -1,
            }
            rows = lgb.Dataset(data[0], data[1], group=data[3])
            if validation is None:
                return lgb.train(options, rows, n_trees).predict, n_trees
            outside = lgb.Dataset(validation[0], validation[1], group=validation[3], reference=rows)
            stop = lgb.early_stopping(PATIENCE, verbose=False)
            model = lgb.train(options, rows, n_trees, valid_sets=[outside], callbacks=[stop])
            return model.predict, model.best_iteration or n_trees

        return choose_and_fit(train, X, grades(y), groups)

    return fit


def xgboost(X, y, groups):
    """XGBoost with rank:ndcg."""
    import xgboost as xgb

    def matrix(data):
        return xgb.DMatrix(data[0], data[1], group=data[3])

    def train(data, validation, n_trees):
        options = {
            "objective": "rank:ndcg",
            "eval_metric": "ndcg@10",
            "seed": 0,
            "nthread": THREADS,
        }
        evals = [] if validation is None else [(matrix(validation), "validation")]
        stop = PATIENCE if evals else None
        exponential = int(data[1].max()) < N_GRADES
        booster = xgb.train(
            options | {"ndcg_exp_gain": exponential},
            matrix(data),
            n_trees,
            evals=evals,
            early_stopping_rounds=stop,
            verbose_eval=False,
        )
        best = booster.best_iteration + 1 if evals else n_trees
        return (lambda X: booster.predict(xgb.DMatrix(X))), best

    return choose_and_fit(train, X, grades(y), groups)


def catboost(loss):
    """CatBoost with a ranking loss."""

    def fit(X, y, groups):
        from catboost import CatBoostRanker, Pool

        longest = np.unique(groups, return_counts=True)[1].max()
        own = f"{loss}:max_pairs={MAX_PAIRS}" if loss == "PairLogit" and longest > 1000 else loss

        def pool(data):
            return Pool(data[0], data[1], group_id=np.unique(data[2], return_inverse=True)[1])

        def train(data, validation, n_trees):
            model = CatBoostRanker(
                loss_function=own,
                eval_metric="NDCG:top=10;type=Exp",
                iterations=n_trees,
                random_seed=0,
                thread_count=THREADS,
                verbose=False,
                allow_writing_files=False,
            )
            options = {}
            if validation is not None:
                options = {"eval_set": pool(validation), "early_stopping_rounds": PATIENCE}
            model.fit(pool(data), **options)
            best = model.get_best_iteration()
            return model.predict, n_trees if best is None else best + 1

        return choose_and_fit(train, X, grades(y).astype(float), groups)

    return fit


def ridge(X, y, groups):
    """Ridge regression on scaled features, alpha by group folds."""
    folds = inner_folds(y, groups)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": 10.0 ** np.arange(-4, 7)},
        cv=folds,
        scoring="neg_mean_squared_error",
    ).fit(X, y)
    return search.predict, f"alpha {search.best_params_['ridge__alpha']:g}"


PEERS = {
    "LightGBM lambdarank": ("lightgbm", lightgbm("lambdarank")),
    "LightGBM xendcg": ("lightgbm", lightgbm("rank_xendcg")),
    "XGBoost rank:ndcg": ("xgboost", xgboost),
    "CatBoost YetiRank": ("catboost", catboost("YetiRank")),
    "CatBoost PairLogit": ("catboost", catboost("PairLogit")),
    "Ridge": ("sklearn", ridge),
}
PEERS = {name: fit for name, (library, fit) in PEERS.items() if find_spec(library)}
"""Functions of X, y, groups; they return a function from items to scores, and what was chosen."""
