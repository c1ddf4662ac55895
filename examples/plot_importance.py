r"""
Feature importance inside queries
=================================

Permutation importance: a feature is shuffled among the items of each query, and the loss in the
metric is measured. Shuffling over all items is wrong for a ranker: a feature of the *query*, which
is the same for all of its items, does not affect their order.
"""

# %%
# Hotels
# ------
# The season is a feature of the search: it is the same for all hotels of a search.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankwise import RankRLSCV
from rankwise.inspection import permutation_importance

rng = np.random.default_rng(0)
search = np.repeat(np.arange(120), 10)
hotels = pd.DataFrame(
    {
        "price": rng.uniform(0, 1, len(search)),
        "stars": rng.integers(1, 6, len(search)) / 5,
        "distance": rng.exponential(0.3, len(search)),
        "season": rng.uniform(0, 1, 120)[search],
    }
)
liked = 3 * hotels["stars"] - 2 * hotels["price"] - hotels["distance"] + 3 * hotels["season"]
liked += 0.5 * rng.normal(size=len(search))
train = search < 80
model = RankRLSCV().fit(hotels[train], liked[train], groups=search[train])

# %%
# Importance
# ----------
# The loss in Kendall's tau if a feature is shuffled, on new searches, with an interval over these.

found = permutation_importance(
    model, hotels[~train], liked[~train], search[~train], scoring="tau", random_state=0
)
print(found)

order = np.argsort(found.importance)
value = found.importance[order]
error = [value - found.low[order], found.high[order] - value]
figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.barh(np.array(found.names)[order], value, xerr=error, color="#0072B2", ecolor="#222222")
ax.set(xlabel="Kendall's tau lost without it", title="shuffled inside each search")
plt.show()
