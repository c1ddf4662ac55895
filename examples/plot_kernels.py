r"""
Kernels, and how many basis items they need
===========================================

A linear ranker is a weighted sum of the features. A kernel model can represent nonlinear relations,
such as a feature whose middle values are best. A full kernel model has a coefficient for every
training item, and its training time is cubic in their number; with `n_basis`, it uses only some of
the items. This example measures the loss in accuracy and the gain in time.
"""

# %%
# A linear and a nonlinear task
# -----------------------------
# Patients of scikit-learn's diabetes data, ranked by the progression of their disease in a year:
# a linear model is about as good as any other. Images of digits, ranked by the digit: no weighted
# sum of pixels represents this order. Both are single lists, so the error is the share of wrongly
# ordered pairs in a test half. Alpha and gamma are selected by leave-pair-out.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from rankwise import RankRLS, RankRLSCV
from rankwise.metrics import disagreement_error

digits = load_digits(return_X_y=True)
data = {
    "diabetes": load_diabetes(return_X_y=True),
    "digits": tuple(part[:800] for part in digits),
}
COLORS = {"diabetes": "#E69F00", "digits": "#0072B2"}
sizes = np.array([5, 10, 20, 40, 80, 160, 220])
errors, curves = {}, {}


def error_with_basis(n_basis, seed, chosen, split):
    """Test error of the chosen kernel on a random basis."""
    X_train, X_test, y_train, y_test = split
    ranker = RankRLS(kernel="rbf", n_basis=int(n_basis), random_state=seed, **chosen)
    return disagreement_error(y_test, ranker.fit(X_train, y_train).predict(X_test))


for name, (X, y) in data.items():
    split = train_test_split(scale(X), y, test_size=0.5, random_state=0)
    X_train, X_test, y_train, y_test = split
    for kernel in ("linear", "rbf"):
        gamma = [0.1 / X.shape[1], 0.3 / X.shape[1]] if kernel == "rbf" else None
        alphas = np.logspace(-8, 2, 21)
        model = RankRLSCV(alphas, kernel=kernel, gamma=gamma).fit(X_train, y_train)
        errors[name, kernel] = disagreement_error(y_test, model.predict(X_test))
        print(f"{name:9s} {kernel:7s} {errors[name, kernel]:.3f}   {model.best_params_}")
    curves[name] = [
        [error_with_basis(size, seed, model.best_params_, split) for seed in range(5)]
        for size in sizes
    ]

# %%
# Time
# ----
# 1,200 digits: seconds to train over the size of the basis, and for the model without a
# basis.

X, y = scale(digits[0])[:1200], digits[1][:1200]


def seconds_with(n_basis):
    """Time of one training."""
    model = RankRLS(1e-4, kernel="rbf", gamma=0.01, n_basis=n_basis, random_state=0)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


seconds = [min(seconds_with(int(size)) for _ in range(3)) for size in sizes]
seconds_of_all = seconds_with(None)

# %%
# The three pictures
# ------------------

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for k, (kernel, hatch) in enumerate({"linear": "//", "rbf": None}.items()):
    for place, (name, color) in enumerate(COLORS.items()):
        height = errors[name, kernel]
        bar = left.bar(place + 0.38 * (k - 0.5), height, 0.34, color=color, hatch=hatch, ec="white")
        left.bar_label(bar, [f"{kernel}\n{height:.3f}"], fontsize=9)
left.set_xticks([0, 1], list(COLORS))
left.set(ylabel="pairs in the wrong order (test)", title="linear or RBF", ylim=(0, 0.33))
for name, color in COLORS.items():
    runs = np.array(curves[name])
    middle.plot(sizes, runs.mean(axis=1), "o-", color=color, label=name)
    middle.fill_between(sizes, runs.min(axis=1), runs.max(axis=1), color=color, alpha=0.2, lw=0)
    middle.axhline(errors[name, "rbf"], color=color, ls=":")
middle.set(xlabel="basis items", xscale="log", title="RBF on a random basis (dots: all items)")
middle.set_ylabel("pairs in the wrong order (test)")
middle.legend()
right.plot(sizes, seconds, "o-", color="black", label="basis")
right.axhline(seconds_of_all, color="black", ls=":", label="all 1,200 items")
right.set(xlabel="basis items", ylabel="seconds to train", xscale="log", ylim=(0, None))
right.set_title("time, this machine")
right.legend()
for ax in (middle, right):
    ax.set_xticks(sizes[:-1], [str(size) for size in sizes[:-1]])
    ax.minorticks_off()
plt.show()

# %%
# The number of basis items that is sufficient depends on the task. About twenty are sufficient for
# the diabetes data, where the relation is smooth. For the digits, which have many shapes, the error
# decreases as items are added. The band is the range over five draws of the basis.
