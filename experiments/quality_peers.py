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
from typing import NamedTuple

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


class Rows(NamedTuple):
    """Rows with those of a group next to each other, as the libraries want them."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    group_sizes: np.ndarray


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
    _, group_sizes = np.unique(groups, return_counts=True)
    return Rows(X[order], y[order], groups[order], group_sizes)


def choose_and_fit(train, X, y, groups):
    """`train(data, validation, n_trees)` gives a model and its best number of trees."""
    best_numbers = []
    for train_rows, validation_rows in inner_folds(y, groups):
        data = by_group(X[train_rows], y[train_rows], groups[train_rows])
        validation = by_group(X[validation_rows], y[validation_rows], groups[validation_rows])
        _, best_number = train(data, validation, N_TREES)
        best_numbers.append(best_number)
    n_trees = max(1, round(float(np.mean(best_numbers))))
    predict, _ = train(by_group(X, y, groups), None, n_trees)
    return predict, f"{n_trees} trees"


def is_list(groups):
    """Whether all items are one list."""
    return len(np.unique(groups)) == 1


def lightgbm(objective):
    """LightGBM's ranker, or its regression, as a function of the training data."""
    is_ranker = objective != "regression"

    def fit(X, y, groups):
        import lightgbm as lgb

        def data_set(rows, **options):
            if is_ranker:
                options["group"] = rows.group_sizes
            return lgb.Dataset(rows.X, rows.y, **options)

        def wrong_pairs(scores, rows):
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
            train_set = data_set(data)
            if validation is None:
                return lgb.train(options, train_set, n_trees).predict, n_trees
            metric = None
            if is_list(groups):
                options["metric"] = "None"
                metric = wrong_pairs
            model = lgb.train(
                options,
                train_set,
                n_trees,
                valid_sets=[data_set(validation, reference=train_set)],
                feval=metric,
                callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
            )
            return model.predict, model.best_iteration or n_trees

        if is_ranker:
            y = grades(y)
        return choose_and_fit(train, X, y, groups)

    return fit


def xgboost(objective):
    """XGBoost's ranker, or its regression."""
    is_ranker = objective.startswith("rank")

    def fit(X, y, groups):
        import xgboost as xgb

        def matrix(rows):
            if is_ranker:
                return xgb.DMatrix(rows.X, rows.y, group=rows.group_sizes)
            return xgb.DMatrix(rows.X, rows.y)

        def wrong_pairs(scores, rows):
            return "wrong", disagreement_error(rows.get_label(), scores)

        def train(data, validation, n_trees):
            options = {"objective": objective, "seed": 0, "nthread": THREADS}
            training = {}
            if is_ranker:
                has_small_grades = int(data.y.max()) < N_GRADES
                options |= {"eval_metric": "ndcg@10", "ndcg_exp_gain": has_small_grades}
            if is_list(groups):
                options.pop("eval_metric", None)
                options["disable_default_eval_metric"] = True
                training["custom_metric"] = wrong_pairs
            if validation is not None:
                training["evals"] = [(matrix(validation), "validation")]
                training["early_stopping_rounds"] = PATIENCE
            booster = xgb.train(options, matrix(data), n_trees, verbose_eval=False, **training)

            def predict(X):
                return booster.predict(xgb.DMatrix(X))

            if validation is None:
                return predict, n_trees
            return predict, booster.best_iteration + 1

        if is_ranker:
            y = grades(y)
        return choose_and_fit(train, X, y, groups)

    return fit


def catboost_losses(loss, groups):
    """The loss to train with and the metric to stop by, as CatBoost writes them."""
    _, group_sizes = np.unique(groups, return_counts=True)
    pair_logit = "PairLogit"
    if group_sizes.max() > 1000:
        pair_logit = f"PairLogit:max_pairs={MAX_PAIRS}"
    if loss == "PairLogit":
        loss = pair_logit
    if loss == "RMSE":
        metric = "RMSE"
    elif is_list(groups):
        metric = pair_logit
    else:
        metric = "NDCG:top=10;type=Exp"
    return loss, metric


def catboost(loss):
    """CatBoost with a ranking loss, or its regression."""
    is_ranker = loss != "RMSE"

    def fit(X, y, groups):
        from catboost import CatBoost, Pool

        training_loss, metric = catboost_losses(loss, groups)

        def pool(rows):
            _, group_numbers = np.unique(rows.groups, return_inverse=True)
            return Pool(rows.X, rows.y, group_id=group_numbers)

        def train(data, validation, n_trees):
            model = CatBoost(
                {
                    "loss_function": training_loss,
                    "eval_metric": metric,
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
            best_iteration = model.get_best_iteration()
            if best_iteration is None:
                return model.predict, n_trees
            return model.predict, best_iteration + 1

        if is_ranker:
            y = grades(y).astype(float)
        return choose_and_fit(train, X, y, groups)

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
