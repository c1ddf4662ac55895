r"""
What a metric sees, and what it does not
========================================

Two rankings of the same documents can be better and worse than each other at the same time.
NDCG@10 looks at the top and rewards the best grades; average precision knows relevant and not
relevant only; the disagreement error counts all pairs alike, at the top or at the bottom. Which
one should a model be chosen by? The one whose mistakes you would notice.
"""

# %%
# One swap, at every place
# ------------------------
# Take a perfect ranking of 20 documents with grades 0 to 4 and exchange two neighbors. How much
# does each metric lose, depending on where that happens?

import matplotlib.pyplot as plt
import numpy as np

from rankwise.metrics import evaluate, get_metric

grades = np.repeat([4, 3, 2, 1, 0], [2, 3, 4, 5, 6]).astype(float)
perfect = -np.arange(20.0)
metrics = ["ndcg@10", "map", "disagreement"]
colors = dict(zip(metrics, ["#0072B2", "#009E73", "#D55E00"], strict=True))


def loss(metric, scores):
    """How far from perfect, for one list of scores or the mean of several."""
    several = scores if scores.ndim == 1 else scores.T
    value = np.mean(get_metric(metric)(grades, several))
    return 1 - value if get_metric(metric).greater_is_better else value


def exchanged(i, j):
    """Scores of the perfect ranking with two documents exchanged."""
    scores = perfect.copy()
    scores[[i, j]] = scores[[j, i]]
    return scores


_, left = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
places = np.arange(19)
for k, metric in enumerate(metrics):
    lost = [loss(metric, exchanged(i, i + 1)) for i in places]
    left.bar(places + 1 + 0.28 * (k - 1), lost, 0.28, color=colors[metric], label=metric)
left.set(xlabel="exchanged: this place and the next", ylabel="loss", xticks=range(1, 20, 2))
left.set_title("one pair of neighbors in the wrong order")
left.legend()

# %%
# Only four of the nineteen exchanges cross a border between grades, and only those are mistakes.
# NDCG counts those at the top, and nothing beyond place 10; average precision counts just the
# border between grade 0 and the rest; the disagreement counts all four alike.
#
# From perfect to random
# ----------------------
# With more and more noise in the scores all metrics get worse, but not at the same pace: a small
# change of a saturated metric may be a large change of the ranking.

_, right = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
rng = np.random.default_rng(0)
levels = np.linspace(0, 12, 25)
noises = rng.normal(size=(100, 20))
for metric, style in zip(metrics, ["-", "--", ":"], strict=True):
    curve = [loss(metric, perfect + level * noises) for level in levels]
    right.plot(levels, curve, style, color=colors[metric], lw=2.2, label=metric)
right.set(xlabel="noise in the scores", ylabel="mean loss", title="from perfect to noisy")
right.legend()
plt.show()

# %%
# Ties
# ----
# A model that gives the same score to all documents has no ranking. A tool that keeps the order
# of the file then reports whatever that order was: perfect, if the file happened to be sorted.
# Here tied documents count by the mean over all their orders.

constant = np.zeros(20)
for ties in ("order", "average", "pessimistic", "optimistic"):
    value = get_metric("ndcg@10")(grades, constant, tied_scores=ties)
    print(f"all tied, file sorted by grade, tied_scores={ties!r:14s} ndcg@10 = {value:.3f}")
print(evaluate(grades, constant, metrics=metrics))
