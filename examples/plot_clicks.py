r"""
Clicks: position bias
=====================

People look at the top of a list, so clicks depend on positions as well as on items. With positions
as nuisance columns, a model estimates the effects of both and excludes positions from its scores.
"""

# %%
# Simulated clicks: feature 0 determines the relevance, the old ranker used feature 1, and position
# k is examined with probability 1/k.

import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankLogistic

rng = np.random.default_rng(0)
n_lists, length = 1000, 10
X = rng.normal(size=(n_lists, length, 2))
relevance = 1 / (1 + np.exp(1 - 1.5 * X[..., 0]))
seen = X[..., 1] + rng.normal(size=(n_lists, length))
place = np.argsort(np.argsort(-seen, axis=1), axis=1) + 1
clicks = (rng.random(place.shape) < relevance / place).ravel().astype(float)

items, lists = X.reshape(-1, 2), np.repeat(np.arange(n_lists), length)
one_hot = np.eye(length)[place.ravel() - 1]
naive = RankLogistic().fit(items, clicks, lists)
model = RankLogistic().fit(items, clicks, lists, nuisance=one_hot)

# %%
# Left: the weights of the two features. From clicks alone, the model learns the old ranking. Right:
# effects of the positions with 95% intervals; the dashed line is the logarithm of 1/k, centered.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
names = ["relevant feature", "old ranker's feature"]
for shift, ranker, label in ((-0.2, naive, "clicks alone"), (0.2, model, "with positions")):
    left.bar(np.arange(2) + shift, ranker.coef_, 0.38, label=label)
left.set(xticks=range(2), xticklabels=names, ylabel="weight")
left.legend()
places = np.arange(1, length + 1)
truth = -np.log(places)
right.errorbar(places, model.nuisance_coef_, 1.96 * model.nuisance_se_, fmt="o", capsize=3)
right.plot(places, truth - truth.mean(), "k--", label="log of 1/place, centered")
right.set(xlabel="place in the list", ylabel="effect on a click (log odds)", xticks=places)
right.legend()
plt.show()
