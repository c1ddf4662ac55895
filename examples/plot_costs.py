r"""
What a pair asks for: magnitude, sign, relative
===============================================

When one item scores 9 and another 2, should the model's scores differ by 7, or is it enough that
the first comes first? `RankRLS` has three answers. ``cost="magnitude"`` asks for the difference
itself, ``"sign"`` for a difference of one whatever the scores, and ``"relative"`` asks for the
difference but counts an error in proportion to it.
"""

# %%
# Scores with a long tail
# -----------------------
# Scores are often counts (clicks, sales, citations) with a long tail: a few items are a hundred
# times larger than the rest. We take a linear utility with noise and stretch it: ``exp(t ·
# utility)`` has the same *order* for every t, and a longer tail the larger t is.

import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankRLSCV
from rankwise.datasets import make_ranking
from rankwise.metrics import disagreement_error

COSTS = {"magnitude": ("#D55E00", "s--"), "sign": ("#0072B2", "o-"), "relative": ("#009E73", "^:")}
stretch = [0.01, 0.5, 1.0, 1.5, 2.0, 3.0]


def errors(cost, seed):
    """Test error for each length of the tail; the order of the items is the same for all."""
    X, y, groups, _, utility = make_ranking(
        n_queries=60, n_documents=12, n_levels=None, noise=0.5, offset=0, random_state=seed
    )
    train, test = groups < 30, groups >= 30
    found = []
    for t in stretch:
        clicks = np.exp(t * y)
        model = RankRLSCV(cost=cost).fit(X[train], clicks[train], groups[train])
        found.append(disagreement_error(utility[test], model.predict(X[test]), groups[test]))
    return found


curves = {cost: np.mean([errors(cost, seed) for seed in range(4)], axis=0) for cost in COSTS}

# %%
# The sign cost depends on the order only
# ---------------------------------------
# The left picture shows what the scores look like, the right one the error against the true order
# of new queries. The sign cost sees the order only, so its line is flat. The magnitude cost
# spends its effort on the few large scores. The relative cost goes to the other extreme: its
# weight is one over the squared difference, so pairs that hardly differ count most, and with
# noisy real-valued scores the order of just those pairs is chance.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
y = make_ranking(60, 12, n_levels=None, noise=0.5, offset=0, random_state=0).y
for t, color in zip((0.5, 1.0, 2.0), ["#56B4E9", "#0072B2", "#000000"], strict=True):
    clicks = np.sort(np.exp(t * y))[::-1]
    share = np.cumsum(clicks) / clicks.sum()
    left.plot(np.linspace(0, 100, len(share)), 100 * share, color=color, label=f"t = {t:g}")
left.set(
    xlabel="% of the items, largest first", ylabel="% of all clicks", title="how long the tail is"
)
left.legend()
for cost, (color, style) in COSTS.items():
    right.plot(stretch, curves[cost], style, color=color, lw=2, label=f'cost="{cost}"')
right.set(xlabel="stretch t", ylabel="pairs in the wrong order (test)", ylim=(0, None))
right.set_title("RankRLS, alpha chosen for each")
right.legend()
plt.show()

# %%
# So is the sign always better? No: with a short tail (left end) the magnitude is as good, and it
# gives scores on the scale of y. If only the order can be trusted, take the sign, or take the
# logarithm of the scores. The relative cost is for scores whose small differences are as reliable
# as the large ones, such as a few grades.
