r"""
A leaderboard with rank ranges
==============================

Twelve language models and 900 votes. Besides the rating, the board reports the interval and the
possible ranks of each model.
"""

# %%
# Votes
# -----
# The strengths are simulated. Some models are compared often, and one is new.

import matplotlib.pyplot as plt
import numpy as np

from rankwise.leaderboard import rate

rng = np.random.default_rng(3)
names = np.array([f"model {letter}" for letter in "ABCDEFGHIJKL"])
strength = np.r_[np.linspace(1.2, -1.2, 11), 0.0]
often = np.r_[np.full(11, 1.0), 0.08]  # the last one is new
left = rng.choice(12, 900, p=often / often.sum())
right = rng.choice(12, 900, p=often / often.sum())
left, right = left[left != right], right[left != right]
chance = 1 / (1 + np.exp(strength[right] - strength[left]))
votes = {
    "a": names[left],
    "b": names[right],
    "winner": np.where(rng.random(len(left)) < chance, "a", "b"),
}
board = rate(votes, sides=("a", "b"), outcome="winner", scale="elo", alpha="auto")
print(board)

# %%
# Intervals and possible ranks
# ----------------------------
# Left: ratings with 95% intervals. Right: the possible ranks of each model, from the intervals of
# its differences to all other models. The new model may have any rank.

rows = list(board)[::-1]
place = np.arange(len(rows))
figure, (ratings, ranks) = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
value = np.array([row.rating for row in rows])
low, high = (np.array([getattr(row, end) for row in rows]) for end in ("low", "high"))
ratings.errorbar(value, place, xerr=[value - low, high - value], fmt="o", color="#0072B2")
ratings.set_yticks(place, [row.item for row in rows])
ratings.set(xlabel="Elo points", xlim=(value.min() - 250, value.max() + 250))
first, last = (np.array([getattr(row, end) for row in rows]) for end in ("best_rank", "worst_rank"))
ranks.hlines(place, first, last, color="#009E73", linewidth=7)
ranks.plot([row.rank for row in rows], place, "o", color="black")
ranks.set(xlabel="possible ranks", xticks=range(1, 13))
plt.show()
