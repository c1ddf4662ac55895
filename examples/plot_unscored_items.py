r"""
Few scores, many unscored items
===============================

Judging documents is expensive, collecting them is not. `CoRankRLS` uses both: several *views* of
the items, each with its own ranker, are trained to agree on the order of the unjudged items. This
example shows one data set in which this helps and one in which it does not.
"""

# %%
# Two descriptions of the same items
# ----------------------------------
# A hidden quality is described twice. In the first data set, each description has its own
# disturbances, which its forty columns share: one view cannot separate signal and disturbance, but
# agreement with the other view can. In the second data set the columns have independent noise,
# which an ordinary ranker averages out.

import matplotlib.pyplot as plt
import numpy as np

from rankwise import CoRankRLSCV, RankRLSCV, View
from rankwise.metrics import disagreement_error

views = [View(slice(0, 40)), View(slice(40, 80))]


def world(disturbances, seed=1):
    """Items in 120 queries: 3 of 80 training queries are scored, 40 are kept for testing."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(120), 15)
    quality = rng.normal(size=len(groups))

    def description():
        signal = np.outer(quality, rng.normal(size=40))
        shared = rng.normal(size=(len(groups), 20)) @ rng.normal(size=(20, 40))
        noise = rng.normal(size=(len(groups), 40))
        return signal + (shared + noise if disturbances else 6 * noise)

    X = np.hstack([description(), description()])
    train, test = groups < 80, groups >= 80
    y = np.where(groups < 3, quality, np.nan)
    return X[train], y[train], groups[train], X[test], quality[test], groups[test]


# %%
# The learning curve
# ------------------
# All learners select their parameters on held-out scored queries. The dashed line is
# `RankRLSCV` on the 45 scored items; the band is the standard error over three random orders of
# the unscored queries.

sizes = np.array([0, 60, 150, 400, 1155])


def learning_curves(X, y, groups, X_test, y_test, groups_test):
    """Test error of the supervised ranker, and with more and more unscored items, three times."""

    def error(model, rows):
        model.fit(X[rows], y[rows], groups[rows])
        return disagreement_error(y_test, model.predict(X_test), groups_test)

    scored = np.flatnonzero(~np.isnan(y))
    curves = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(np.unique(groups[np.isnan(y)]))
        unscored = np.concatenate([np.flatnonzero(groups == group) for group in order])
        rows = [np.r_[scored, unscored[:size]] for size in sizes]
        curves.append([error(CoRankRLSCV(views=views), each) for each in rows])
    return error(RankRLSCV(), scored), np.array(curves)


figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, disturbances in zip(axes, (True, False), strict=True):
    supervised, curves = learning_curves(*world(disturbances))
    mean, spread = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    ax.plot(sizes, mean, "o-", color="#0072B2", label="CoRankRLS, two views")
    ax.fill_between(sizes, mean - spread, mean + spread, color="#0072B2", alpha=0.2, lw=0)
    ax.axhline(supervised, color="#D55E00", ls="--", label="supervised")
    ax.set(xlabel="unscored items", ylabel="test error (lower is better)")
    ax.set_title("disturbances of each view" if disturbances else "independent noise")
    ax.legend()
plt.show()

# %%
# On the left, a part of the gain comes from the two views themselves (without unscored items, the
# views agree on the scored ones), and the rest from the unscored items, mostly from the first 150.
# On the right there is no gain: the ordinary ranker on all columns is slightly better throughout,
# and with three scored queries the selected nu varies. Unscored items help if each view is
# sufficient and the errors of the views are independent. Draw such a curve before you use them.
