"""What AutoRanker is compared with: boosted trees of three libraries, and ridge regression.

Everybody gets the same training data. The number of trees of a boosted model is chosen on three
inner folds of the groups of those data (early stopping on each, the mean number of trees), and the
model is refitted on all of them. All other settings are the libraries' own defaults.

Early stopping is by NDCG@10 in groups. In one list the first ten places are too few to stop by, so
there it is by the share of pairs in the wrong order (CatBoost: by the loss of pairs that it draws,
its regression by its own loss), and models of regression, which people would use for one list, are
there, too.
"""

import os
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise.metrics import disagreement_error

__all__ = ["LIST_PEERS", "PEERS", "inner_folds"]

N_TREES = 1000
PATIENCE = 50
N_INNER = 3
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


def is_list(groups):
    """Whether all items are one list."""
    return len(np.unique(groups)) == 1


def lightgbm(objective):
    """LightGBM's ranker, or its regression, as a function of the training data."""
    is_ranker = objective != "regression"

    def fit(X, y, groups):
        import lightgbm as lgb

        def wrong(scores, rows):
            return "wrong pairs", disagreement_error(rows.get_label(), scores), False

        def train(data, validation, n_trees):
            options = {
                "objective": objective,
                "label_gain": [2.0**g - 1 for g in range(N_GRADES + 1)],
                "eval_at": [10],
                "seed": 0,
                "num_threads": THREADS,
                "verbosity": -1,
            }
            by_pairs = {"metric": "None"} if is_list(groups) else {}
            rows = lgb.Dataset(data[0], data[1], group=data[3] if is_ranker else None)
            if validation is None:
                return lgb.train(options, rows, n_trees).predict, n_trees
            sizes = validation[3] if is_ranker else None
            outside = lgb.Dataset(validation[0], validation[1], group=sizes, reference=rows)
            model = lgb.train(
                options | by_pairs,
                rows,
                n_trees,
                valid_sets=[outside],
                feval=wrong if by_pairs else None,
                callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
            )
            return model.predict, model.best_iteration or n_trees

        return choose_and_fit(train, X, grades(y) if is_ranker else y, groups)

    return fit


def xgboost(objective):
    """XGBoost's ranker, or its regression."""
    is_ranker = objective.startswith("rank")

    def fit(X, y, groups):
        import xgboost as xgb

        def matrix(data):
            return xgb.DMatrix(data[0], data[1], group=data[3] if is_ranker else None)

        def wrong(scores, rows):
            return "wrong", disagreement_error(rows.get_label(), scores)

        def train(data, validation, n_trees):
            options = {"objective": objective, "seed": 0, "nthread": THREADS}
            if is_ranker:
                exponential = int(data[1].max()) < N_GRADES
                options |= {"eval_metric": "ndcg@10", "ndcg_exp_gain": exponential}
            by_pairs = {"custom_metric": wrong} if is_list(groups) else {}
            if by_pairs:
                options["disable_default_eval_metric"] = True
                options.pop("eval_metric", None)
            evals = [] if validation is None else [(matrix(validation), "validation")]
            booster = xgb.train(
                options,
                matrix(data),
                n_trees,
                evals=evals,
                early_stopping_rounds=PATIENCE if evals else None,
                verbose_eval=False,
                **by_pairs,
            )
            best = booster.best_iteration + 1 if evals else n_trees
            return (lambda X: booster.predict(xgb.DMatrix(X))), best

        return choose_and_fit(train, X, grades(y) if is_ranker else y, groups)

    return fit


def catboost(loss):
    """CatBoost with a ranking loss, or its regression."""
    is_ranker = loss != "RMSE"

    def fit(X, y, groups):
        from catboost import CatBoost, Pool

        longest = np.unique(groups, return_counts=True)[1].max()
        pairs = f"PairLogit:max_pairs={MAX_PAIRS}" if longest > 1000 else "PairLogit"
        metric = pairs if is_list(groups) else "NDCG:top=10;type=Exp"
        own = pairs if loss == "PairLogit" else loss

        def pool(data):
            return Pool(data[0], data[1], group_id=np.unique(data[2], return_inverse=True)[1])

        def train(data, validation, n_trees):
            model = CatBoost(
                {
                    "loss_function": own,
                    "eval_metric": metric if is_ranker else "RMSE",
                    "iterations": n_trees,
                    "random_seed": 0,
                    "thread_count": THREADS,
                    "verbose": False,
                    "allow_writing_files": False,
                }
            )
            options = {}
            if validation is not None:
                options = {"eval_set": pool(validation), "early_stopping_rounds": PATIENCE}
            model.fit(pool(data), **options)
            best = model.get_best_iteration()
            return model.predict, n_trees if best is None else best + 1

        return choose_and_fit(train, X, grades(y).astype(float) if is_ranker else y, groups)

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
    "XGBoost rank:ndcg": ("xgboost", xgboost("rank:ndcg")),
    "CatBoost YetiRank": ("catboost", catboost("YetiRank")),
    "CatBoost PairLogit": ("catboost", catboost("PairLogit")),
    "Ridge": ("sklearn", ridge),
}
LIST_PEERS = {
    "LightGBM regression": ("lightgbm", lightgbm("regression")),
    "XGBoost regression": ("xgboost", xgboost("reg:squarederror")),
    "CatBoost regression": ("catboost", catboost("RMSE")),
}


def _installed(peers):
    return {name: fit for name, (library, fit) in peers.items() if find_spec(library)}


PEERS = _installed(PEERS)
LIST_PEERS = _installed(LIST_PEERS)
"""Functions of X, y, groups; they return a function from items to scores, and what was chosen."""
