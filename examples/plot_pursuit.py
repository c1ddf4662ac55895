r"""
A few features that rank: greedy pursuit
========================================

In each step, `RankingPursuit` adds the feature (or the kernel function) that reduces the error on
pairs most. The training error decreases with every step; the error on new queries has a minimum.
"""

# %%
# Five of sixty features matter
# -----------------------------

import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankingPursuit, RankingPursuitCV
from rankwise.datasets import make_ranking
from rankwise.metrics import disagreement_error
from rankwise.plot import SearchCurveDisplay

X, y, groups, coef, _ = make_ranking(
    n_queries=120, n_documents=8, n_features=60, n_informative=5, noise=1.2, random_state=0
)
train, test = groups < 50, groups >= 50
options = {"kernel": "linear", "dictionary": "features", "backfit": "every"}
model = RankingPursuit(40, **options).fit(X[train], y[train], groups[train])

# %%
# Error after each step
# ---------------------
# `RankingPursuitCV` selects the number of steps on folds of the training queries; the display shows
# its curve, with a band of one standard error over the queries, and the selected number. The other
# lines come from `staged_predict`: the error on the training data, and on 70 new queries.

search = RankingPursuitCV(40, **options).fit(X[train], y[train], groups[train])
display = SearchCurveDisplay.from_estimator(search)
steps = np.arange(1, model.n_basis_ + 1)
for rows, label, color in ((train, "training", "gray"), (test, "new queries", "#D55E00")):
    stages = model.staged_predict(X[rows])
    errors = [disagreement_error(y[rows], scores, groups[rows]) for scores in stages]
    display.ax_.plot(steps, errors, color=color, label=label)
display.ax_.set_ylim(top=0.38)
display.ax_.legend(loc="upper left")

# %%
# Selected features
# -----------------
# The coefficients after each step. Informative features are colored; most of them are added first.
# The gray features, which are added later, are noise.

_, right = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
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
# Cross-validation selects too few steps here: with 50 queries, the small gain of the next features
# is not detected. With more noise in the scores (1.5 instead of 1.2), it selected two features.
