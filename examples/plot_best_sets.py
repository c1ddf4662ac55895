r"""
Best sets: how many results must be inspected?
==============================================

A best set consists of the first items of a list, as many as are needed to contain the best item
with a given probability. The number is calibrated on held-out queries.
"""

# %%
# Easy and hard queries
# ---------------------

import matplotlib.pyplot as plt
import numpy as np

from rankwise import CalibratedRanker
from rankwise.datasets import make_ranking

levels = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
figure, (size, hit) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for noise, color in ((0.3, "#009E73"), (1.0, "#0072B2"), (2.0, "#D55E00")):
    X, y, groups = make_ranking(n_queries=600, n_documents=20, noise=noise, random_state=0)[:3]
    train, test = groups < 100, groups >= 100
    model = CalibratedRanker().fit(X[train], y[train], groups[train])
    best = np.zeros(groups.max() + 1)
    np.maximum.at(best, groups, y)
    is_best = (y == best[groups])[test]
    sizes, found = [], []
    for level in levels:
        inside = model.best_set(X[test], groups[test], level=level)
        sizes.append(inside.sum() / 500)
        found.append(len(np.unique(groups[test][inside & is_best])) / 500)
    size.plot(levels, sizes, "o-", color=color, label=f"noise {noise:g}")
    hit.plot(levels, found, "o-", color=color)
size.set(xlabel="requested probability", ylabel="items in the set, of 20")
size.legend()
hit.plot(levels, levels, "k--", linewidth=1)
hit.set(xlabel="requested probability", ylabel="share of sets with a best item")
plt.show()
