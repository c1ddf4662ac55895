r"""
A few features that rank: greedy pursuit
========================================

`RankingPursuit` takes one feature after the other (or one kernel function after the other),
always the one that lowers the error of the pairs most. How many should it take? The fit to the
training data gets better with every step; the error on new queries has a minimum.
"""

# %%
# Five of sixty features matter
# -----------------------------

import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankingPursuit, RankingPursuitCV
from rankwise.datasets import make_ranking
from rankwise.plot import StagedErrorDisplay

X, y, groups, coef, _ = make_ranking(
    n_queries=120, n_documents=8, n_features=60, n_informative=5, noise=1.2, random_state=0
)
train, test = groups < 50, groups >= 50
options = {"kernel": "linear", "dictionary": "features", "backfit": "every"}
model = RankingPursuit(40, **options).fit(X[train], y[train], groups[train])

# %%
# Error after each step
# ---------------------
# The held-out curve below is that of 70 queries that the model has never seen. Nobody has those
# when a model is made, so `RankingPursuitCV` finds the number of steps by folds of training
# queries alone; its choice is the dotted line.

search = RankingPursuitCV(40, **options).fit(X[train], y[train], groups[train])

_, left = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
StagedErrorDisplay.from_estimator(
    model,
    X[train],
    y[train],
    groups[train],
    X_test=X[test],
    y_test=y[test],
    groups_test=groups[test],
    ax=left,
)
left.axvline(search.n_basis_, color="black", ls=":", label=f"chosen by folds: {search.n_basis_}")
left.set_ylim(top=0.38)
left.legend(loc="upper left")

# %%
# What was chosen
# ---------------
# The path of the coefficients over the steps. Features that really matter are colored; most of
# them come first, and the gray ones that enter later are the noise that the held-out curve
# complains about.

_, right = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
steps = np.arange(1, model.n_basis_ + 1)
real = np.flatnonzero(coef)
colors = dict(zip(real, ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"], strict=True))
for j, path in zip(model.basis_indices_, model.coef_path_.T, strict=True):
    begun = np.flatnonzero(path)[0]
    style = {"color": "#BBBBBB", "lw": 0.8, "zorder": 1}
    if j in colors:
        style = {"color": colors[j], "lw": 2, "label": f"feature {j}"}
    right.plot(steps[begun:], path[begun:], **style)
right.axvline(search.n_basis_, color="black", ls=":")
right.set(
    xlabel="number of basis functions",
    ylabel="coefficient",
    title="in color: features that matter",
)
right.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
plt.show()

found = [int(j) for j in search.basis_indices_]
print("chosen by folds:", found, "  true:", real.tolist())

# %%
# The folds stop early here: 50 queries are not enough to see that the next features help a little.
# With more noise in the scores (1.5 in place of 1.2) they stopped after two features.
