r"""
Ratings over time
=================

With ``time=``, a board rates every item at every time, with intervals. In this example one player
improves, another declines, and a third arrives late.
"""

# %%
# Ten years of games
# ------------------
# The strengths are simulated, so that they can be compared with the ratings.

import matplotlib.pyplot as plt
import numpy as np

from rankwise.leaderboard import rate

rng = np.random.default_rng(0)
names = np.array(["Rise", "Fall", "Calm", "Late"])
day = np.sort(rng.integers(0, 3650, 1500))
first = rng.integers(4, size=1500)
second = (first + rng.integers(1, 4, size=1500)) % 4
year = day / 365
strength = np.stack([year - 5, 5 - year, 0 * year, np.maximum(year - 7, 0)]) / 3
rows = np.arange(1500)
chance = 1 / (1 + np.exp(strength[second, rows] - strength[first, rows]))
games = {
    "home": names[first],
    "away": names[second],
    "result": np.where(rng.random(1500) < chance, "home", "away"),
    "date": np.datetime64("2010-01-01") + day,
}
board = rate(games, time="date", sides=("home", "away"), outcome="result")
print([row.item for row in board])

# %%
# Ratings and true strengths
# --------------------------
# Solid lines are ratings with intervals; dashed lines are the true strengths minus their mean.

figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
moments = np.datetime64("2010-02-01") + np.arange(0, 3600, 90)
truth = strength - strength.mean(axis=0)
for k, (name, color) in enumerate(
    zip(names, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True)
):
    found = [board.at(moment)[name] for moment in moments]
    ax.plot(moments, [row.rating for row in found], color=color, label=name)
    ax.fill_between(
        moments, [row.low for row in found], [row.high for row in found], color=color, alpha=0.2
    )
    ax.plot(games["date"], truth[k], "--", color=color, linewidth=1)
ax.set(ylabel="rating (log odds)")
ax.legend(ncols=4)
plt.show()
