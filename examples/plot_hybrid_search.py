r"""
Hybrid search: how many judged queries do learned weights need?
===============================================================

Hybrid search adds BM25, vector similarity and recency with weights. Reciprocal rank fusion needs no
judgments; weights learned by `RankRLSCV` need some. This example shows how many, and the gain.
"""

# %%
# Simulated queries with grades from 0 to 3: three signals on different scales, whose levels and
# weights vary between queries.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankRLSCV
from rankwise.metrics import evaluate


def made_queries(n_queries, seed):
    """Signals (words, vectors, freshness), grades and queries."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), 30)
    signals = rng.normal(size=(len(query), 3))
    need = rng.normal([0.8, 1.2, 0.4], 0.3, (n_queries, 3))[query]
    worth = (need * signals).sum(axis=1) + rng.normal(size=len(query))
    level = rng.normal([0, 0, 0], [0.8, 0.8, 0], (n_queries, 3))[query]
    return signals + level, np.clip(np.floor(worth - 0.5), 0, 3), query


def fused(signals, k=60):
    """Reciprocal rank fusion of lists of 30."""
    lists = -signals.reshape(-1, 30, 3)
    ranks = lists.argsort(axis=1).argsort(axis=1) + 1
    return (1 / (k + ranks)).sum(axis=2).ravel()


X, y, queries = made_queries(2000, seed=1)
few = made_queries(30, seed=0)
learned = RankRLSCV().fit(*few)
ways = {
    "BM25": X[:, 0],
    "vectors": X[:, 1],
    "rank fusion": fused(X),
    "learned": learned.predict(X),
}

# %%
# Left: 2,000 new queries, ranked in four ways. Right: weights from 3 to 300 judged queries, ten
# draws each; the dashed line is rank fusion.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for place, scores in enumerate(ways.values()):
    (row,) = evaluate(y, scores, queries, "ndcg@10")
    left.plot([row.low, row.high], [place, place], color="#0072B2", linewidth=3)
    left.plot(row.mean, place, "o", color="#0072B2")
left.set(yticks=range(4), yticklabels=ways, xlabel="NDCG@10 of new queries", ylim=(3.5, -0.5))

numbers = [3, 5, 10, 30, 100, 300]
scores = np.empty((len(numbers), 10))
for k, number in enumerate(numbers):
    for draw in range(10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few queries: the best alpha may be the largest
            model = RankRLSCV().fit(*made_queries(number, seed=100 + draw))
        scores[k, draw] = evaluate(y, model.predict(X), queries, "ndcg@10")["ndcg@10"]
right.fill_between(numbers, scores.min(axis=1), scores.max(axis=1), color="#0072B2", alpha=0.2)
right.plot(numbers, scores.mean(axis=1), "o-", color="#0072B2", label="learned")
right.axhline(
    evaluate(y, ways["rank fusion"], queries, "ndcg@10")["ndcg@10"], color="#D55E00", ls="--"
)
right.set(xscale="log", xticks=numbers, xticklabels=numbers, xlabel="judged queries")
right.minorticks_off()
plt.show()
print(dict(zip(numbers, scores.mean(axis=1).round(3).tolist(), strict=True)))
