r"""
A table with categories, dates and text
=======================================

A frame goes in as it is: gaps, categories, dates, text, identifiers. `AutoRanker` says what it made
of each column, and what is lost if a column is shuffled says which of them it needs.
"""

# %%
# Flats of several towns, ranked by price inside a month of sale.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankwise import AutoRanker
from rankwise.inspection import permutation_importance

rng = np.random.default_rng(0)
n = 600
town, size = rng.integers(0, 60, n), rng.uniform(20, 150, n)
light = rng.choice(["sunny", "dark"], n)
flats = pd.DataFrame(
    {
        "flat_id": rng.permutation(n),
        "town": [f"town {k}" for k in town],
        "text": [f"{word} flat {k}" for k, word in enumerate(light)],
        "size": np.where(rng.random(n) < 0.1, np.nan, size),
        "state": rng.choice(["poor", "fair", "good"], n),
        "sold": np.datetime64("2022-01-01") + rng.integers(0, 900, n),
    }
)
price = size + town + 30 * (light == "sunny")
month = flats["sold"].dt.strftime("%Y-%m").to_numpy()

old = month < "2024-01"
model = AutoRanker(n_resamples=0).fit(flats[old], price[old], groups=month[old])
print(model.summary())

# %%
# What each column is worth on later months: Kendall's tau that is lost without it. The size has
# gaps, the town has sixty values, and the text holds one word that matters.

lost = permutation_importance(
    model, flats[~old], price[~old], month[~old], scoring="tau", random_state=0
)
order = np.argsort(lost.importance)
value = lost.importance[order]
error = [value - lost.low[order], lost.high[order] - value]
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.barh(np.array(lost.names)[order], value, xerr=error, color="#0072B2", ecolor="#222222")
ax.set(xlabel="Kendall's tau lost without it")
plt.show()
