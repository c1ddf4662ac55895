r"""
A table with categories, dates and text
=======================================

A raw data frame with missing values, categories, dates, text and identifiers. `AutoRanker` reports
how each column is used; permutation importance shows how much the order depends on each column.
"""

# %%
# Flats of several towns, ranked by price within each month of sale.

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
# The loss in Kendall's tau on later months if a column is shuffled. The size has missing values,
# the town has sixty values, and one word of the text matters.

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
