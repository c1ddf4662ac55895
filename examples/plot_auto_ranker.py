r"""
AutoRanker: members and weights
===============================

`AutoRanker` trains several models, evaluates each on held-out queries, and combines them. In this
example the relation is nonlinear and two features interact, which a linear model cannot represent.
"""

# %%
# Nonlinear data
# --------------

import matplotlib.pyplot as plt
import numpy as np

from rankwise import AutoRanker, RankRLSCV

rng = np.random.default_rng(0)
groups = np.repeat(np.arange(150), 12)
X = rng.normal(size=(len(groups), 4))
utility = X[:, 0] - X[:, 1] ** 2 + X[:, 2] * X[:, 3] + rng.normal(size=len(X))
y = np.digitize(utility, [-2, -0.5, 0.5])
train, test = groups < 100, groups >= 100

auto = AutoRanker().fit(X[train], y[train], groups=groups[train])
linear = RankRLSCV(scoring="ndcg@10").fit(X[train], y[train], groups=groups[train])
print(f"held-out {auto.scoring_} {auto.score_:.3f}, best member: {auto.best_member_}")

# %%
# Held-out scores and weights
# ---------------------------
# Left: the held-out score of each member with its interval over queries. Right: its weight in the
# combination.

members = sorted(auto.members_, key=lambda row: row["score"])
names = [row["name"] for row in members]
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 5), sharey=True, layout="constrained", width_ratios=[3, 1]
)
score = np.array([row["score"] for row in members])
left.errorbar(
    score,
    range(len(members)),
    xerr=[
        score - [row["low"] for row in members],
        [row["high"] for row in members] - score,
    ],
    fmt="o",
    color="#0072B2",
    ecolor="#99c2e0",
)
left.axvline(auto.estimate_["score"], color="#D55E00", label="all together, honest estimate")
left.set_yticks(range(len(members)), names)
left.set(xlabel=auto.scoring_, title="held out")
left.legend(loc="lower right")
right.barh(range(len(members)), [row["weight"] for row in members], color="#009E73")
right.set(xlabel="weight")
plt.show()

# %%
# New queries
# -----------

for name, model in (("AutoRanker", auto), ("linear RankRLSCV", linear)):
    value = model.score(X[test], y[test], groups[test])
    print(f"{name}: {value:.3f} of the pairs in the right order")
