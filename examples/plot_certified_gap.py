r"""
RankSVM knows when it is done
=============================

An iterative solver that stops "because nothing changes any more" may be far from the minimum.
`RankSVM` carries a lower bound along: no model at all has a smaller objective. When objective and
bound have met up to ``tol``, that is a proof.

The picture shows both while the model is trained, for the default solver and for the cutting
planes of the original paper, and what the two hinge losses do with the same pairs.
"""

# %%
# Objective above, bound below
# ----------------------------

# sphinx_gallery_thumbnail_number = 2

import warnings

import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankRLS, RankSVM
from rankwise.datasets import make_ranking
from rankwise.metrics import evaluate

X, y, groups = make_ranking(n_queries=100, n_documents=30, n_features=30, noise=1, random_state=0)[
    :3
]
solvers = {"lbfgs": "#0072B2", "bmrm": "#D55E00"}
models = {name: RankSVM(1e-3, tol=1e-4, solver=name).fit(X, y, groups) for name in solvers}

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for name, color in solvers.items():
    history = models[name].history_
    steps = np.arange(1, len(history["gap"]) + 1)
    left.plot(steps, history["objective"], color=color, label=f"{name}: objective")
    left.plot(steps, history["lower_bound"], color=color, ls="--", label=f"{name}: lower bound")
    right.semilogy(steps, history["gap"], color=color, label=f"{name}: {len(steps)} iterations")
low = models["lbfgs"].lower_bound_
left.set(xscale="log", xlabel="iteration", ylabel="objective", ylim=(0.4 * low, 1.6 * low))
left.set_title("the minimum lies between the lines")
left.legend(loc="upper right")
right.axhline(1e-4, color="black", ls=":", label="tol")
right.set(xscale="log", xlabel="iteration", ylabel="(objective − bound) / objective")
right.set_title("certified gap")
right.legend()
plt.show()

# %%
# Both end at the same certificate; the quasi-Newton steps need far fewer passes over the data. A
# model that is stopped early says so: its ``gap_`` is what is left to win at most.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the warning says that max_iter was reached
    early = RankSVM(1e-3, max_iter=5).fit(X, y, groups)
print(f"after 5 iterations the objective is within {early.gap_:.1%} of its minimum")

# %%
# Three losses, one order
# -----------------------
# The hinge ignores pairs that are right by a margin of one, the squared hinge punishes large
# mistakes more, least squares pulls every pair to its difference of scores. On data like these
# they rank alike; the distribution of the margins is where they differ.

losses = {
    "hinge": RankSVM(1e-3),
    "squared hinge": RankSVM(1e-3, loss="squared_hinge"),
    "least squares, sign": RankRLS(1e-3, cost="sign"),
}
figure, ax = plt.subplots(layout="constrained")
first, second = np.triu_indices(len(y), k=1)
same = groups[first] == groups[second]
first, second = first[same], second[same]
sign = np.sign(y[first] - y[second])
styles = zip(losses.items(), ["#0072B2", "#009E73", "#D55E00"], ["-", "--", ":"], strict=True)
for (name, model), color, style in styles:
    scores = model.fit(X, y, groups).predict(X)
    margin = (sign * (scores[first] - scores[second]))[sign != 0]
    error = evaluate(y, scores, groups, "disagreement")["disagreement"]
    density, edges = np.histogram(margin, bins=np.linspace(-3, 6, 91), density=True)
    ax.plot(
        edges[:-1] + 0.05,
        density,
        color=color,
        ls=style,
        lw=2,
        label=f"{name} ({error:.1%} of pairs wrong)",
    )
ax.axvline(0, color="black", lw=1)
ax.axvline(1, color="black", lw=1, ls=":")
ax.set(xlabel="margin of a pair (negative: wrong order)", ylabel="density of pairs")
ax.set_ylim(0, 1.05)
ax.legend(loc="upper right")
plt.show()
