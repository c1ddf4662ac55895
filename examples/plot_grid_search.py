r"""
Inside scikit-learn: pipelines, searches, learning curves
=========================================================

The rankers are scikit-learn estimators. One thing is special: they need to know which rows belong
to the same query, and scikit-learn's tools do not hand that on. `make_target` puts scores and
queries in one array that can be sliced like any y, so no pipeline or search can lose the queries.
"""

# %%
# A search over a pipeline
# ------------------------
# Scale, rank, and try kernels and alphas with folds of whole queries, judged by NDCG@10. The
# utility is bent (it depends on the absolute value of one feature), so that there is something to
# choose.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, GroupKFold, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import RankRLS, make_target
from rankwise.model_selection import make_ranking_scorer

rng = np.random.default_rng(0)
queries = np.repeat(np.arange(40), 10)
X = rng.normal(size=(400, 6)) * [1, 1, 1, 10, 10, 0.1]
utility = X[:, 0] - 1.5 * np.abs(X[:, 1]) + 0.5 * X[:, 2] + rng.normal(size=40)[queries]
y = np.digitize(utility + 0.5 * rng.normal(size=400), [-2.5, -1.5, -0.5, 0.5])
target = make_target(y, queries)

alphas = np.logspace(-6, 2, 5)
grid = [
    {"rankrls__kernel": ["linear"], "rankrls__alpha": alphas},
    {"rankrls__kernel": ["rbf"], "rankrls__gamma": [0.02, 0.2], "rankrls__alpha": alphas},
]
search = GridSearchCV(
    make_pipeline(StandardScaler(), RankRLS()),
    grid,
    cv=GroupKFold(5),
    scoring=make_ranking_scorer("ndcg@10"),
)
search.fit(X, target, groups=queries)
print(search.best_params_, round(search.best_score_, 3))

# %%
# What the search has seen, and whether more queries would help
# -------------------------------------------------------------
# On the left all candidates of the search; on the right a learning curve of the linear and of the
# best pipeline, as scikit-learn's `learning_curve` makes it: the training sets grow query by
# query.

results = search.cv_results_
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
kinds = [("linear", None), ("rbf", 0.02), ("rbf", 0.2)]
styles = zip(kinds, ["#E69F00", "#0072B2", "#000000"], ["s--", "^-", "v:"], strict=True)
for (kernel, gamma), color, style in styles:
    rows = [
        k
        for k, p in enumerate(results["params"])
        if p["rankrls__kernel"] == kernel and p.get("rankrls__gamma") == gamma
    ]
    label = kernel if gamma is None else f"{kernel}, gamma = {gamma:g}"
    left.plot(alphas, results["mean_test_score"][rows], style, color=color, label=label)
left.set(xscale="log", xlabel="alpha", ylabel="NDCG@10, 5 folds of queries", title="GridSearchCV")
left.legend()

linear = make_pipeline(StandardScaler(), RankRLS(alpha=0.1))
models = {"linear": (linear, "#E69F00", "s--"), "best": (search.best_estimator_, "#0072B2", "^-")}
for name, (model, color, style) in models.items():
    sizes, _, scores = learning_curve(
        model,
        X,
        target,
        groups=queries,
        cv=GroupKFold(5),
        train_sizes=[40, 80, 160, 240, 320],
        scoring=make_ranking_scorer("ndcg@10"),
    )
    mean, error = scores.mean(axis=1), scores.std(axis=1) / np.sqrt(5)
    right.plot(sizes, mean, style, color=color, label=name)
    right.fill_between(sizes, mean - error, mean + error, color=color, alpha=0.2, lw=0)
right.set(xlabel="training items", ylabel="NDCG@10, 5 folds of queries", title="learning curve")
right.legend(loc="lower right")
plt.show()

# %%
# With enough queries the linear model is left behind, because it cannot express what there is to
# learn. With the smallest training sets the bands overlap, and which of the two comes first depends
# on the data drawn: in another draw the kernel led with as few as two queries.
