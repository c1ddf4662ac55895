r"""
Compare two rankers query by query
==================================

A paired comparison of two rankers on each query removes the differences between queries. Here a
ranker is compared with ordinary regression, on data in which every query has its own level. The
regression also fits the levels, which biases its weights.
"""

# %%
# Each query has an offset
# ------------------------
# ``make_ranking(offset=...)`` shifts the scores of a query by a linear function of the mean of its
# documents' features, with other weights than those of the order inside the query. Both learners
# are trained on the same data. Alpha is selected by leave-query-out for the ranker, and by
# leave-one-item-out for ridge regression.

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

from rankwise import RankRLSCV
from rankwise.datasets import make_ranking
from rankwise.metrics import ndcg
from rankwise.plot import GroupComparisonDisplay


def two_models(offset):
    """A ranker, a regressor, and test data."""
    X, y, groups = make_ranking(
        n_queries=120, n_documents=15, noise=0.7, offset=offset, random_state=0
    )[:3]
    train, test = groups < 60, groups >= 60
    ranker = RankRLSCV(scoring="ndcg@10").fit(X[train], y[train], groups[train])
    regressor = RidgeCV(np.logspace(-3, 5, 30)).fit(X[train], y[train])
    return ranker, regressor, X[test], y[test], groups[test]


# %%
# Query by query
# --------------
# Each point is a test query: NDCG@10 of the ranker on the x-axis, of the regression on the y-axis.
# Below the diagonal, the ranker is better. The title shows the mean difference with its interval
# and the p-value of a paired t test.

figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
for ax, offset in zip(axes, (0.0, 1.5), strict=True):
    ranker, regressor, X, y, groups = two_models(offset)
    GroupComparisonDisplay.from_predictions(
        y,
        ranker.predict(X),
        regressor.predict(X),
        groups,
        names=("RankRLS", "ridge"),
        ax=ax,
        name="all queries on one level" if offset == 0 else "every query has its own level",
    )
plt.show()

# %%
# On the left, queries have equal levels and both methods are equally good. On the right, the
# regression is worse. The difference depends on the size of the offset:

offsets = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
curves = np.array(
    [
        [ndcg(y, model.predict(X), groups, k=10) for model in (ranker, regressor)]
        for ranker, regressor, X, y, groups in map(two_models, offsets)
    ]
)
figure, ax = plt.subplots(layout="constrained")
ax.plot(offsets, curves[:, 0], "o-", color="#0072B2", label="RankRLS")
ax.plot(offsets, curves[:, 1], "s--", color="#D55E00", label="ridge")
ax.set(xlabel="size of the differences between queries", ylabel="test NDCG@10")
ax.legend()
plt.show()
